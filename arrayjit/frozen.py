"""Frozen dataclasses with slots, of which neither the class nor an instance takes long to make.

    @frozen                    @dataclass(frozen=True, slots=True)
    @frozen_by_identity        the same, with eq=False

They are dataclasses in all that they do. The standard decorator compiles the text of each method by itself,
which was half of the time of arrayjit's import, and its `__init__` looks every slot up by name. Here one text
is compiled for a class, and fields are stored through their slots, which takes 0.4 of the time. Programs are
made of hundreds of thousands of such objects while they are compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import MISSING, FrozenInstanceError, dataclass, field, fields
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:

    def dataclass_transform(**_: object) -> Callable[[Any], Any]:
        """What type checkers read alone."""
        return lambda decorator: decorator


__all__ = ["frozen", "frozen_by_identity"]

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: type[T]) -> type[T]:
    """A class whose instances are equal if their fields are."""
    return _made(cls, _init, _equality)


@dataclass_transform(frozen_default=True, eq_default=False, field_specifiers=(field,))
def frozen_by_identity(cls: type[T]) -> type[T]:
    """A class whose instances are equal only to themselves."""
    return _made(cls, _init)


def _made(cls: type[T], *parts: Callable[[Any], Iterator[str]]) -> type[T]:
    made: Any = dataclass(init=False, repr=False, eq=False, slots=True)(cls)
    names = {"made": made, "MISSING": MISSING}
    for each in fields(made):
        names[f"store_{each.name}"] = getattr(made, each.name).__set__
        names[f"default_{each.name}"] = each.default
        names[f"make_{each.name}"] = each.default_factory
    methods: dict[str, Any] = {}
    exec("\n".join(line for part in parts for line in part(made)), names, methods)
    for name, method in (methods | _SHARED).items():
        if name not in vars(cls):
            setattr(made, name, method)
    return made  # type: ignore[no-any-return]


def _init(made: Any) -> Iterator[str]:
    arguments = ["self"]
    body = []
    for each in fields(made):
        name = each.name
        if each.default_factory is not MISSING:
            arguments.append(f"{name}=MISSING")
            body.append(f"    store_{name}(self, make_{name}() if {name} is MISSING else {name})")
        else:
            arguments.append(name if each.default is MISSING else f"{name}=default_{name}")
            body.append(f"    store_{name}(self, {name})")
    if hasattr(made, "__post_init__"):
        body.append("    self.__post_init__()")
    yield f"def __init__({', '.join(arguments)}):"
    yield from body or ["    pass"]


def _equality(made: Any) -> Iterator[str]:
    compared = [each.name for each in fields(made) if each.compare]
    mine, theirs = ("".join(f"{owner}.{name}, " for name in compared) for owner in ("self", "other"))
    yield "def __eq__(self, other):"
    yield "    if other.__class__ is not self.__class__:"
    yield "        return NotImplemented"
    yield f"    return self is other or ({mine}) == ({theirs})"
    yield "def __hash__(self):"
    yield f"    return hash(({mine}))"


def _repr(self: Any) -> str:
    shown = ", ".join(f"{each.name}={getattr(self, each.name)!r}" for each in fields(self) if each.repr)
    return f"{self.__class__.__qualname__}({shown})"


def _refuse(self: Any, name: str, *value: Any) -> NoReturn:
    raise FrozenInstanceError(f"cannot change field {name!r}")


def _state(self: Any) -> list[Any]:
    return [getattr(self, each.name) for each in fields(self)]


def _restore(self: Any, state: list[Any]) -> None:
    for each, value in zip(fields(self), state, strict=True):
        object.__setattr__(self, each.name, value)


_SHARED = {
    "__repr__": _repr,
    "__setattr__": _refuse,
    "__delattr__": _refuse,
    "__getstate__": _state,
    "__setstate__": _restore,
}
