"""Dataclasses with slots, frozen or not, of which neither the class nor an instance takes long to make.

    @frozen                    @dataclass(frozen=True, slots=True)
    @frozen_by_identity        the same, with eq=False
    @slotted                   @dataclass(slots=True)
    @slotted_by_identity       the same, with eq=False

They are dataclasses in all that they do. The standard decorator compiles the text of each method by itself,
which was half of the time of arrayjit's import, and its `__init__` looks every slot up by name. Here fields
are stored through their slots, which takes 0.4 of the time, and classes of the same number of fields share
what is compiled: only the names in it differ. Programs are made of hundreds of thousands of such objects
while they are compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, FrozenInstanceError, dataclass, field, fields, replace
from functools import cache
from reprlib import recursive_repr
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:

    def dataclass_transform(**_: object) -> Callable[[Any], Any]:
        """What type checkers read alone."""
        return lambda decorator: decorator

    def replace(one: T, /, **changes: Any) -> T:
        """An instance with other values in some fields, as `dataclasses.replace`, in half of the time."""
        return _replacing(one.__class__)(one, **changes)


__all__ = ["frozen", "frozen_by_identity", "replace", "slotted", "slotted_by_identity"]

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: type[T]) -> type[T]:
    """A class whose instances are equal if their fields are."""
    made = _made(cls)
    return _with(made, cls, {**_equality(made), **_FROZEN})


@dataclass_transform(frozen_default=True, eq_default=False, field_specifiers=(field,))
def frozen_by_identity(cls: type[T]) -> type[T]:
    """A class whose instances are equal only to themselves."""
    return _with(_made(cls), cls, _FROZEN)


@dataclass_transform(field_specifiers=(field,))
def slotted(cls: type[T]) -> type[T]:
    """A class whose instances may change, and are equal if their fields are."""
    made = _made(cls)
    return _with(made, cls, {**_equality(made), "__hash__": None})


@dataclass_transform(eq_default=False, field_specifiers=(field,))
def slotted_by_identity(cls: type[T]) -> type[T]:
    """A class whose instances may change, and are equal only to themselves."""
    return _with(_made(cls), cls, {})


def _made(cls: type[T]) -> Any:
    cls.__doc__ = cls.__doc__ or cls.__name__  # for want of one, `dataclass` would ask `inspect`, for 10 ms
    return dataclass(init=False, repr=False, eq=False, slots=True)(cls)


def _with(made: Any, cls: type[T], methods: Mapping[str, Any]) -> type[T]:
    """The class with methods, as far as it does not define them itself."""
    for name, method in {"__init__": _init(made), "__repr__": _repr, **methods}.items():
        if name not in vars(cls):
            setattr(made, name, method)
    return made  # type: ignore[no-any-return]


def _equality(made: Any) -> dict[str, Any]:
    """By the fields that count."""
    names = [each.name for each in fields(made) if each.compare]
    return {"__eq__": _renamed(_EQ, names), "__hash__": _renamed(_HASH, names)}


def _init(made: Any) -> FunctionType:
    """It stores each argument through the slot's own descriptor. A field with `init=False` has no default:
    the class stores it itself, later."""
    known = [each for each in fields(made) if each.init]
    makers = tuple(number for number, each in enumerate(known) if each.default_factory is not MISSING)
    code = _init_code(len(known), makers, hasattr(made, "__post_init__"))
    names: dict[str, Any] = {"MISSING": MISSING}
    defaults = []
    for number, each in enumerate(known):
        names[f"store{number}"] = getattr(made, each.name).__set__
        names[f"make{number}"] = each.default_factory
        if number in makers or each.default is not MISSING:
            defaults.append(each.default)
    code = code.replace(co_varnames=("self", *(each.name for each in known)))
    return FunctionType(code, names, "__init__", tuple(defaults))


@cache
def _init_code(count: int, makers: tuple[int, ...], has_more: bool) -> CodeType:
    """Of classes with so many fields, of which some make their own defaults."""
    lines = [f"def __init__(self, {', '.join(f'field{n}' for n in range(count))}):"]
    for n in range(count):
        made = f"make{n}() if field{n} is MISSING else field{n}" if n in makers else f"field{n}"
        lines.append(f"    store{n}(self, {made})")
    lines.append("    self.__post_init__()" if has_more else "    pass")
    return _function_code("\n".join(lines))


@cache
def _replacing(cls: type) -> FunctionType:
    """The function that makes one instance of a class from another, by keywords."""
    names = [each.name for each in fields(cls) if each.init]
    code = _replacing_code(len(names))
    own = {f"field{number}": name for number, name in enumerate(names)}
    code = code.replace(
        co_varnames=("self", *names), co_names=tuple(own.get(name, name) for name in code.co_names)
    )
    made = FunctionType(code, {"MISSING": MISSING, "cls": cls}, "replace")
    made.__kwdefaults__ = dict.fromkeys(names, MISSING)
    return made


@cache
def _replacing_code(count: int) -> CodeType:
    """Of classes with so many fields."""
    named = "".join(f", field{n}" for n in range(count))
    values = ", ".join(f"self.field{n} if field{n} is MISSING else field{n}" for n in range(count))
    return _function_code(f"def replace(self, /, *{named}):\n    return cls({values})")


_EQ = """
def __eq__(self, other):
    if other.__class__ is not self.__class__:
        return NotImplemented
    return self is other or ({self}) == ({other})
"""
_HASH = """
def __hash__(self):
    return hash(({self}))
"""


def _renamed(template: str, names: Sequence[str]) -> FunctionType:
    """The function of a template for fields of these names."""
    code = _code_for(template, len(names))
    own = {f"field{number}": name for number, name in enumerate(names)}
    code = code.replace(co_names=tuple(own.get(name, name) for name in code.co_names))
    return FunctionType(code, {}, code.co_name)


@cache
def _code_for(template: str, count: int) -> CodeType:
    owned = {owner: "".join(f"{owner}.field{n}, " for n in range(count)) for owner in ("self", "other")}
    return _function_code(template.format(**owned))


def _function_code(text: str) -> CodeType:
    """Of the one function in a text."""
    module = compile(text, __file__, "exec")
    return next(part for part in module.co_consts if isinstance(part, CodeType))


@recursive_repr()
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


_FROZEN = {
    "__setattr__": _refuse,
    "__delattr__": _refuse,
    "__getstate__": _state,
    "__setstate__": _restore,
}
