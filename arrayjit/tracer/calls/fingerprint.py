"""What a trace depends on, told by value: the same text in any process where tracing would go the same way.

Tracing runs the user's function, and that may do anything. So this is no list of what is unsafe: told is what
is known to be safe, and where a single thing is met that is not, there is no fingerprint, and every process
traces for itself. Told are the code of functions, line numbers included; the numbers, texts, functions and
modules that their globals, closures and defaults hold under any name that stands in the code; of modules the
attributes of names that stand in any of this code; plain classes whole. Functions of NumPy and of Python's
own mathematics are told by name. An array or an object that a function meets outside of its arguments, an
import inside of it, or a built-in such as `open`, `print` or `getattr` leaves it without a fingerprint.
"""

from __future__ import annotations

import builtins
import gc
import marshal
import sys
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from opcode import opmap
from types import (
    BuiltinFunctionType,
    CellType,
    CodeType,
    FunctionType,
    MappingProxyType,
    MemberDescriptorType,
    ModuleType,
)
from typing import Any

import numpy as np

from ...frozen import frozen, frozen_by_identity
from ..record.guards import ABSENT, FunctionGuard, NameGuard, content
from ..record.state import Same, has_state, state_of
from .signature import Overlap

__all__ = ["Fingerprint", "Place", "fingerprint_of"]

_PLAIN = (bool, int, float, complex, str, bytes, type(None), type(Ellipsis), range, slice)
_NAMED = (type, FunctionType, BuiltinFunctionType, np.ufunc, type(np.sum))
_KNOWN = {
    "arrayjit",
    "builtins",
    "collections",
    "functools",
    "itertools",
    "math",
    "numpy",
    "operator",
    "scipy",
    "_functools",
    "_operator",
}
"""Packages whose functions and types do the same in every process of the same versions, or are replaced by
ours (SciPy's special functions)."""

_NOT_KNOWN = {
    "DataSource", "attrgetter", "cache", "fromfile", "fromregex", "genfromtxt", "geterr", "geterrcall",
    "get_printoptions", "getbufsize", "load", "loadtxt", "lru_cache", "memmap", "methodcaller",
}  # fmt: skip
"""Of these, what reads files, settings or attributes that no name in the code tells."""

_BUILTINS = {
    "abs", "all", "any", "bool", "complex", "dict", "divmod", "enumerate", "filter", "float",
    "frozenset", "int", "isinstance", "issubclass", "iter", "len", "list", "map", "max", "min", "next",
    "object", "pow", "range", "reversed", "round", "set", "slice", "sorted", "str", "sum", "tuple",
    "type", "zip",
}  # fmt: skip
_EXCEPTIONS = {
    name
    for name, held in vars(builtins).items()
    if isinstance(held, type) and issubclass(held, BaseException)
}
_OF_ANY_CLASS = {
    "__annotations__", "__dict__", "__doc__", "__firstlineno__", "__module__", "__qualname__",
    "__static_attributes__", "__weakref__",
}  # fmt: skip
_IMPORT = opmap["IMPORT_NAME"]
_NO_REFERENCES = 2  # the last version of marshal whose output does not depend on reference counts


Names = tuple[str, ...]


@frozen_by_identity
class Place:
    """A function, or a global or closure variable, that is told, with what it holds."""

    holder: Any  # a mapping, a CellType or a FunctionType
    name: str

    def guard(self) -> NameGuard | FunctionGuard:
        """That it stays as it is now."""
        held = self.holder
        if isinstance(held, FunctionType):
            return FunctionGuard.of(held)
        value = content(held) if isinstance(held, CellType) else held.get(self.name, ABSENT)
        return NameGuard(held, self.name, value, state_of(value) if has_state(value) else None)


@frozen
class Fingerprint:
    """`places` are in an order that is the same in any process of the same text."""

    text: str
    places: tuple[Place, ...]

    def numbers(self, guards: Iterable[NameGuard | FunctionGuard]) -> tuple[int, ...] | None:
        """Which places the guards are about; None if they are about any other."""
        known = {(_holder(place), place.name): number for number, place in enumerate(self.places)}
        found = [known.get((_holder(guard), guard.name)) for guard in guards]
        return None if None in found else tuple(number for number in found if number is not None)


def fingerprint_of(function: Callable[..., Any], *key: Hashable) -> Fingerprint | None:
    """The fingerprint of a call of a function; `key` is what else the trace depends on. None if there is
    none."""
    names: Names = ()
    while True:
        teller = _Teller(names)
        try:
            text = "\n".join([*teller.told(function), *teller.told(key)])
        except _Untold:
            return None
        if len(teller.names) == len(names):
            return Fingerprint(text, tuple(teller.places))
        names = tuple(sorted(teller.names))


class _Untold(Exception):
    """There is something that is not known to be safe."""


class _Teller:
    """Tells values as lines of text. Any function may get any module, so that of each those attributes are
    told whose `names` stand in the code of one; afterwards `names` has those of all code that was met."""

    def __init__(self, names: Names) -> None:
        self.names = set(names)
        self.places: list[Place] = []
        self._attributes = names
        self._numbers: dict[int, int] = {}

    def told(self, value: Any) -> Iterator[str]:
        kind = type(value)
        if kind in _PLAIN:
            yield f"{kind.__name__} {value!r}"
        elif issubclass(kind, (np.generic, np.dtype, Overlap)):
            yield f"{value.dtype!r} {value.tobytes().hex()}" if issubclass(kind, np.generic) else repr(value)
        elif kind is tuple:
            yield from self._items(value)
        elif kind is Same:
            yield from self.told(value.value)
        elif kind is type and value in _PLAIN + _NAMED:
            yield f"type {value.__name__}"
        elif (known := _known_name(value)) is not None:
            yield known
        elif kind.__module__ == "arrayjit.api":
            yield from self.told(value.__wrapped__)
        else:
            yield from self._told_once(value)

    def _told_once(self, value: Any) -> Iterator[str]:
        """What may lead to itself."""
        kind = type(value)
        tell = _WAYS.get(kind)
        if tell is None:
            raise _Untold
        known = self._numbers.get(id(value))
        if known is not None:
            yield f"{kind.__name__} number {known}"
            return
        self._numbers[id(value)] = len(self._numbers)
        yield from tell(self, value)

    def _items(self, value: Any) -> Iterator[str]:
        yield f"{type(value).__name__} {len(value)}"
        for item in value.items() if isinstance(value, dict) else value:
            yield from self.told(item)

    def _module(self, module: ModuleType) -> Iterator[str]:
        yield f"module {module.__name__}"
        held = vars(module)
        for name in self._attributes:
            if name in held:
                yield from self._place(held, name)

    def _function(self, function: FunctionType) -> Iterator[str]:
        """Its code and everything that the names in the code may stand for."""
        code = function.__code__
        names = sorted(set(_names(code)))
        self.names.update(names)
        self.places.append(Place(function, function.__name__))
        yield f"function {function.__module__}.{function.__qualname__}"
        yield from self._code(code)
        yield from self.told((function.__defaults__, function.__kwdefaults__, function.__dict__))
        for cell in function.__closure__ or ():
            if content(cell) is ABSENT:
                raise _Untold
            self.places.append(Place(cell, ""))
            yield from self.told(content(cell))
        given = function.__kwdefaults__ or {}
        self.places += [Place(given, name) for name in given]
        for name in names:
            if name in function.__globals__:
                yield from self._place(function.__globals__, name)
                continue
            self.places += [Place(function.__globals__, name), Place(vars(builtins), name)]
            if hasattr(builtins, name):
                if name not in _BUILTINS | _EXCEPTIONS:
                    raise _Untold
                yield from self.told(getattr(builtins, name))

    def _code(self, code: CodeType) -> Iterator[str]:
        """Code, and its constants one by one: `marshal` knows slices only where it writes references."""
        yield marshal.dumps(code.replace(co_consts=()), _NO_REFERENCES).hex()
        yield from self.told(code.co_consts)

    def _frozenset(self, value: frozenset[Any]) -> Iterator[str]:
        """Its order is that of hashes, which differ from process to process."""
        yield f"frozenset {len(value)}"
        yield from sorted("\n".join(self.told(item)) for item in value)

    def _class(self, kind: type) -> Iterator[str]:
        """A class with all its members."""
        yield f"class {kind.__module__}.{kind.__qualname__}"
        yield from self.told(tuple(base for base in kind.__bases__ if base is not object))
        inherited = {name for base in kind.__mro__[1:-1] for name in vars(base)}
        self.places += [Place(vars(kind), name) for name in sorted(inherited - set(vars(kind)))]
        for name, member in vars(kind).items():
            if name in _OF_ANY_CLASS:
                continue
            yield name
            self.places.append(Place(vars(kind), name))
            match member:
                case staticmethod() | classmethod():
                    yield type(member).__name__
                    yield from self.told(member.__func__)
                case property():
                    yield "property"
                    yield from self.told((member.fget, member.fset, member.fdel))
                case MemberDescriptorType():
                    yield "slot"
                case _:
                    yield from self.told(member)

    def _place(self, holder: Mapping[str, Any], name: str) -> Iterator[str]:
        yield name
        self.places.append(Place(holder, name))
        yield from self.told(holder[name])


_WAYS: Mapping[type, Callable[[_Teller, Any], Iterator[str]]] = {
    ModuleType: _Teller._module,
    FunctionType: _Teller._function,
    CodeType: _Teller._code,
    frozenset: _Teller._frozenset,
    type: _Teller._class,
    list: _Teller._items,
    dict: _Teller._items,
}


def _names(code: CodeType) -> Iterator[str]:
    """The names in code and in that of the functions that it makes."""
    if _IMPORT in code.co_code[::2]:
        raise _Untold
    for name in code.co_names:
        if name.startswith("__"):
            raise _Untold
        yield name
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _known_name(value: Any) -> str | None:
    """The name of a function or type of a known package, if it is found there under that name."""
    if not isinstance(value, _NAMED):
        return None
    homes: tuple[Any, ...]
    if isinstance(value, np.ufunc):
        homes, name = ("numpy", "scipy.special"), value.__name__
    else:
        homes, name = (getattr(value, "__module__", None),), value.__qualname__
    for home in homes:
        if isinstance(home, str) and getattr(sys.modules.get(home), name, None) is value:
            package = home.partition(".")[0]
            if name in _NOT_KNOWN or (home == "builtins" and name not in _BUILTINS | _EXCEPTIONS):
                raise _Untold
            return f"{home}.{name}" if package in _KNOWN else None
    return None


def _holder(place: Place | NameGuard | FunctionGuard) -> int:
    """What tells a holder from others. The members of a class are shown by another proxy each time."""
    holder = place.holder
    return id(gc.get_referents(holder)[0] if isinstance(holder, MappingProxyType) else holder)
