"""What users are told of compilations: a log, a report, a warning of too many, an error where none may be."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

import numpy as np

from .errors import CompilationForbidden, Location
from .late import Late
from .settings import compilations_shown
from .stats import COMPILED_IN, Description, Miss
from .tracer.record.current import user_location

if TYPE_CHECKING:
    import logging
else:
    logging = Late("logging")

__all__ = [
    "MANY",
    "RecompilationWarning",
    "call_site",
    "forbidden",
    "is_forbidden",
    "log",
    "no_compile",
    "report",
    "warn_of_many",
]

MANY = 8
"""Variants of a function after which its user is told."""

SHARE = 0.01
"""The share of a compilation from which on a phase is told by itself."""

_LIBRARIES = (
    os.path.dirname(os.path.abspath(__file__)) + os.sep,
    os.path.dirname(os.__file__) + os.sep,
    os.path.dirname(os.path.dirname(np.__file__)) + os.sep,
    "<frozen ",
)
"""Python's own files and those of what is installed beside NumPy."""

_forbidden: ContextVar[bool] = ContextVar("arrayjit_no_compile", default=False)


class RecompilationWarning(UserWarning):
    """A function was compiled for many kinds of arguments."""


@contextmanager
def no_compile() -> Iterator[None]:
    """Within the block, a call that is not compiled yet in this process raises CompilationForbidden. So a
    service that has warmed up stays quick, or says what it had not seen."""
    token = _forbidden.set(True)
    try:
        yield
    finally:
        _forbidden.reset(token)


def is_forbidden() -> bool:
    """Whether nothing must be compiled here."""
    return _forbidden.get()


def forbidden(function: str, reason: str) -> CompilationForbidden:
    """The error for that; `reason` says what is new about the call."""
    return CompilationForbidden(
        f"{function} is not compiled for this call: {reason}",
        fix="call it with such arguments before no_compile(), or bring them into a form seen before",
    )


def call_site() -> Location | None:
    """The user's line that a call comes from, whatever libraries it went through. In a thread that runs
    nothing but libraries it is the innermost line that is not arrayjit's."""
    frame = sys._getframe(1)
    while frame is not None:
        if not frame.f_code.co_filename.startswith(_LIBRARIES):
            return Location(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)
        frame = frame.f_back  # type: ignore[assignment]
    return user_location()


def log(miss: Miss) -> None:
    """Tell the logger `arrayjit`, at level INFO, or WARNING if `ARRAYJIT_LOG_COMPILES` wants it shown; the
    record has the `miss`. While nobody has imported `logging`, nobody listens to less than warnings."""
    is_shown = compilations_shown()
    if is_shown or "logging" in sys.modules:
        level = logging.WARNING if is_shown else logging.INFO
        logging.getLogger("arrayjit").log(level, "compiled %s", miss, extra={"miss": miss})


def warn_of_many(function: str, described: Sequence[Description], loc: Location | None) -> None:
    """Tell the user which arguments vary most; called once a function has as many variants as `MANY`."""
    kinds = {
        name: list(dict.fromkeys(one.get(name, "absent") for one in described))
        for name in dict.fromkeys(name for one in described for name in one)
    }
    most = max(map(len, kinds.values()), default=0)
    varying = [_varying(name, seen) for name, seen in kinds.items() if len(seen) == most > 1]
    what = f"{function} was compiled {len(described)} times"
    why = f": what varies is {'; '.join(varying)}" if varying else ""
    fix = "name arrays of many lengths in any_length, or make it an argument of one dtype and layout"
    if any(COMPILED_IN in one for one in varying):
        fix = "np.where or arrayjit.cond in that line choose in the compiled code, for all values"
    message = f"{what}{why}; {fix}"
    warnings.warn_explicit(
        message, RecompilationWarning, loc.file if loc else "<arrayjit>", loc.line if loc else 1
    )


def _varying(name: str, seen: Sequence[str]) -> str:
    """An argument and what it was in some compilations; why that made a difference is said once."""
    first = [one.partition(COMPILED_IN)[0] for one in seen[:3]]
    _, compiled_in, reason = seen[-1].partition(COMPILED_IN)
    return f"{name} ({', '.join(first)}, ...){compiled_in}{reason}"


def report(misses: Sequence[Miss]) -> str:
    """Each compilation with its phases in milliseconds, the slowest first, and all short ones as one."""
    lines = (line for miss in misses for line in (str(miss), *_phases(miss)))
    return "\n".join(lines) or "nothing was compiled yet"


def _phases(miss: Miss) -> Iterator[str]:
    enough = SHARE * sum(miss.phases.values())
    long = {name: seconds for name, seconds in miss.phases.items() if seconds >= enough}
    for name, seconds in sorted(long.items(), key=lambda phase: -phase[1]):
        yield f"{seconds * 1e3:10.2f}  {name}"
    rest = [seconds for name, seconds in miss.phases.items() if name not in long]
    if rest:
        yield f"{sum(rest) * 1e3:10.2f}  {len(rest)} others"
