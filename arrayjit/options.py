"""What users say of a function: where and how calls run, and how it is compiled."""

from __future__ import annotations

from collections.abc import Iterable
from inspect import isasyncgenfunction, iscoroutinefunction, isgeneratorfunction
from typing import Any, NamedTuple

from .errors import NumberError, StaticArgumentError, UnsupportedError
from .ir.code import DEFAULT_OPT
from .settings import FAST, names_in

__all__ = ["UNSAID", "Making", "Options", "fast_in", "names_of", "require_function", "require_threads"]


class Options(NamedTuple):
    """Where and how a call runs, as far as it says."""

    target: str | None = None
    threads: int | None = None
    fast: str | Iterable[str] | None = None

    def require(self) -> None:
        """Raise NumberError or SettingError for what no call can be told."""
        require_threads(self.threads)
        fast_in(self.fast)


UNSAID = Options()


class Making(NamedTuple):
    """How a function is compiled, whatever its calls say; see `jit`."""

    static_argnames: tuple[str, ...] = ()
    unchecked: bool = False
    tune: float | None = None
    opt: int = DEFAULT_OPT
    check: tuple[str, ...] = ()
    any_length: tuple[str, ...] = ()
    branches: bool = False

    def require(self) -> None:
        """Raise NumberError for numbers that say nothing."""
        tune, opt = self.tune, self.opt
        is_number = isinstance(tune, (int, float)) and not isinstance(tune, bool)
        if tune is not None and not (is_number and tune > 0):
            raise NumberError(f"tune is {tune!r}", fix="give seconds, such as 2.0, or leave it out")
        if type(opt) is not int or not 0 <= opt <= 3:
            raise NumberError(f"opt is {opt!r}", fix="give 0, 1, 2 or 3, or leave it out")

    @property
    def trusts_indices(self) -> bool:
        """Whether indices that are computed when the function runs are taken to be right."""
        return self.unchecked and "bounds" not in self.check


def require_function(function: Any) -> None:
    """Raise TypeError for what is no function, UnsupportedError for one that gives no result when it is
    called but something that runs it later."""
    if isinstance(function, staticmethod) or not callable(function):
        wraps = hasattr(type(function), "__get__")  # a classmethod, a property, a partialmethod
        above = f": write @{type(function).__name__} above @jit" if wraps else ""
        raise TypeError(f"jit takes a function, not {function!r}{above}")
    if iscoroutinefunction(function) or isasyncgenfunction(function):
        raise UnsupportedError(
            "an async function is not compiled: its calls give what must be awaited",
            fix="put what it computes into a function of its own, with @jit, and call that from it",
        )
    if isgeneratorfunction(function):
        raise UnsupportedError(
            "a function with yield is not compiled: its calls give a generator",
            fix="return a list of what it yields, or call it from a function that returns, with @jit",
        )


def require_threads(threads: int | None) -> None:
    """Raise NumberError for a number of threads that is none."""
    if threads is not None and (type(threads) is not int or threads < 1):
        raise NumberError(f"threads is {threads!r}", fix="give 1, 2, 3, ..., or leave it out for all of them")


def fast_in(wish: str | Iterable[str] | None) -> tuple[str, ...]:
    """What may change bits, in a fixed order. Raises SettingError for what names nothing that may."""
    return names_in(wish, FAST, "fast") if wish else ()


def names_of(option: str, wish: str | Iterable[str]) -> tuple[str, ...]:
    """The names of arguments that an option gives. Raises StaticArgumentError for what is not names."""
    if isinstance(wish, str):
        return (wish,)
    if not isinstance(wish, Iterable):
        raise StaticArgumentError(f"{option} is {wish!r}", fix='give a name or some: ("n", "axis")')
    return tuple(wish)
