"""The state of a user's objects that a trace bakes in.

A method reads attributes of `self`, a function those of a global object or the items of a global list.
Their numbers become part of the compiled code, so the code is valid only while they stay. `state_of`
describes a value such that two descriptions are equal only if the trace would see the same: 1 is not 1.0,
nor 0.0 -0.0. It holds what it compares by identity, so that no identity is given twice.
"""

from __future__ import annotations

import ctypes
import sys
from array import array
from collections import deque
from collections.abc import Hashable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from enum import Enum
from io import IOBase
from types import (
    BuiltinFunctionType,
    FunctionType,
    GetSetDescriptorType,
    MappingProxyType,
    MemberDescriptorType,
    MethodType,
    MethodWrapperType,
    ModuleType,
    WrapperDescriptorType,
)
from typing import Any
from weakref import ReferenceType

import numpy as np

from ...frozen import frozen_by_identity
from ...settings import variables

__all__ = [
    "Same",
    "Standing",
    "Watch",
    "attributes_of",
    "has_attributes_alone",
    "has_plain_attributes",
    "has_plain_items",
    "has_state",
    "is_fixed",
    "is_kept",
    "is_read",
    "reachable",
    "set_attributes",
    "slots_of",
    "state_of",
]

_BY_VALUE = (bool, int, str, bytes, type(None))
_BY_TEXT = (float, complex)  # tells -0.0 from 0.0, and any NaN is the same
_STATELESS = (
    np.generic,
    np.ndarray,
    np.dtype,
    np.ufunc,
    BuiltinFunctionType,
    ModuleType,
    Enum,
    *(ContextVar, IOBase, type(variables())),  # seen by views of their own, see `names.outside`
)
# Loggers, threads, paths, jitted functions: what changes in them is not what a computation reads.
_NOT_READ = {__name__.partition(".")[0], "logging", "numpy", "pathlib", "threading"}
_NO_SLOTS = ("__dict__", "__vectorcalloffset__")  # the second is a number of the class
_PACKED = (array, bytearray)
_BUFFERS = (memoryview, ctypes.Array, ctypes.Structure, ctypes.Union)
_HOLDING = (*_PACKED, *_BUFFERS, ReferenceType)
_MUTABLE = (list, deque, dict, set, *_PACKED)
_ITEMS = (tuple, list, deque, set, frozenset)
_DICT_VIEWS: tuple[type, ...] = (type({}.keys()), type({}.values()), type({}.items()))
_CONTAINERS = (list, dict, set, frozenset, deque, MappingProxyType)


@frozen_by_identity
class Same:
    """Compares by the identity of what it holds."""

    value: Any

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


class Standing:
    """What stands for a list of the user's while a loop is recorded: it leads to `items` alone, though
    `isinstance` takes it for the list."""

    __slots__ = ("items",)

    items: list[Any]


def has_state(value: Any) -> bool:
    """Whether the value can change while it stays the same object."""
    mutable = (*_MUTABLE, *_BUFFERS, MappingProxyType)
    return any(isinstance(part, mutable) or attributes_of(part) for part in reachable(value))


def reachable(value: Any) -> Iterator[Any]:
    """The value and all that its items and attributes lead to, each object once."""
    waiting = [value]
    seen: set[int] = set()
    while waiting:
        part = waiting.pop()
        if id(part) not in seen:
            seen.add(id(part))
            yield part
            waiting.extend(_inside(part))


def _inside(value: Any) -> Iterable[Any]:
    holder = _holder(value)
    if holder is not None:
        return (holder,)
    if isinstance(value, ReferenceType):
        return (value(),)
    if issubclass(type(value), Standing):
        return value.items  # type: ignore[no-any-return]
    if isinstance(value, (dict, MappingProxyType)):
        held = () if type(value) in _CONTAINERS else attributes_of(value).values()
        return (*(key for key in value if type(key) not in _BY_VALUE), *value.values(), *held)
    if isinstance(value, BaseException):
        return (*value.args, *attributes_of(value).values())
    return value if isinstance(value, _ITEMS) else (*attributes_of(value).values(), *_classes(value))


def _holder(value: Any) -> Any:
    """The object or container that a method or a view of a dict is of; None for any other value."""
    if type(value) in _DICT_VIEWS:
        return value.mapping
    is_method = type(value) in (BuiltinFunctionType, MethodWrapperType)
    if type(value) is MethodType or (is_method and isinstance(value.__self__, _CONTAINERS)):
        return value.__self__
    return None


def _classes(value: Any) -> tuple[type, ...]:
    """Where Python looks for the attributes that a value does not hold itself."""
    return value.__bases__ if isinstance(value, type) else (type(value),)


def _contents(value: Any) -> tuple[Any, dict[str, Any]]:
    """The items and the attributes that the value holds itself and could exchange."""
    items: Any = None
    if isinstance(value, dict):
        items = dict(dict.items(value))
    elif isinstance(value, _MUTABLE):
        items = value[:] if isinstance(value, _PACKED) else list(value)
    return items, attributes_of(value)


def attributes_of(value: Any) -> dict[str, Any]:
    """The attributes that an object or a class holds itself; empty for what computes nothing."""
    if isinstance(value, type):
        return _class_attributes(value)
    kind = type(value)
    if kind is FunctionType:
        return {name: item for name, item in vars(value).items() if name != "__wrapped__"}
    if isinstance(value, _STATELESS):
        return {}
    if not is_read(kind):
        return _attributes_read(value)
    slots = {name: getattr(value, name) for name, _ in slots_of(kind) if hasattr(value, name)}
    try:
        return slots | dict(object.__getattribute__(value, "__dict__"))
    except AttributeError:  # it holds none, whatever its own `__getattr__` would give for the name
        return slots


def slots_of(kind: type) -> Iterator[tuple[str, MemberDescriptorType]]:
    """The attributes of objects of a class that have a place of their own."""
    for part in kind.__mro__:
        for name, member in vars(part).items():
            if isinstance(member, MemberDescriptorType) and name not in _NO_SLOTS:
                yield name, member


def is_read(kind: type) -> bool:
    """Whether the attributes of objects of a class are what computations read."""
    return _home(kind) not in _NOT_READ


def is_fixed(value: Any) -> bool:
    """Whether a value has the same state as long as what it leads to has."""
    kind = type(value)
    if issubclass(kind, tuple):
        return kind.__iter__ is tuple.__iter__
    if kind in _BY_VALUE or kind in _BY_TEXT or kind is frozenset or _holder(value) is not None:
        return True
    has_fields = issubclass(kind, np.void) or (issubclass(kind, np.dtype) and bool(value.names))
    return issubclass(kind, _STATELESS) and not has_fields


def has_attributes_alone(kind: type) -> bool:
    """Whether the state of an object of a class is that of its attributes and of the class."""
    others = (*_CONTAINERS, *_HOLDING, tuple, np.generic, np.dtype, Standing)
    return not issubclass(kind, others) and not _is_polynomial(kind)


def has_plain_items(kind: type) -> bool:
    """Whether no code of a class of dicts says what the items are that they keep."""
    return all(getattr(kind, name) is getattr(dict, name) for name in ("__iter__", "items", "values"))


def has_plain_attributes(kind: type) -> bool:
    """Whether no code of a class says what the attributes are that an object of it keeps."""
    for part in kind.__mro__:
        how, held = vars(part).get("__getattribute__"), vars(part).get("__dict__")
        if not isinstance(how, (WrapperDescriptorType, type(None))):
            return False
        if not isinstance(held, (GetSetDescriptorType, type(None))):
            return False
    return True


def is_kept(kind: type, name: str) -> bool:
    """Whether an object of a class keeps an attribute itself: reading it makes nothing anew."""
    found = next((vars(part)[name] for part in kind.__mro__ if name in vars(part)), None)
    return isinstance(found, MemberDescriptorType) or not hasattr(type(found), "__get__")


def _attributes_read(value: Any) -> dict[str, Any]:
    """The attributes that computations read of an object of NumPy's."""
    if type(value) is np.vectorize:
        return {"pyfunc": value.pyfunc, "otypes": value.otypes}
    return dict(vars(value)) if _is_polynomial(type(value)) else {}


def _is_polynomial(kind: type) -> bool:
    """Whether objects of the class are NumPy's polynomials: what they compute is in their attributes."""
    return issubclass(kind, np.poly1d) or str(kind.__module__).startswith("numpy.polynomial.")


def _class_attributes(kind: type) -> dict[str, Any]:
    """The data of a class of the user's: no methods, no properties."""
    if _home(kind) in _NOT_READ or _home(kind) in sys.stdlib_module_names:
        return {}
    return {
        name: item
        for name, item in vars(kind).items()
        if not name.startswith("__") and not hasattr(type(item), "__get__")
    }


def _home(kind: type) -> str:
    return str(kind.__module__).partition(".")[0]


class Watch:
    """The state of an object, and of those inside it, when the trace met it."""

    def __init__(self, value: Any) -> None:
        self.value = value
        self._state = state_of(value)
        self._contents = [(part, _contents(part)) for part in reachable(value)]

    def changed(self) -> bool:
        return state_of(self.value) != self._state

    def restore(self) -> None:
        """Give every object the items and attributes that it had."""
        for part, (items, attributes) in self._contents:
            if isinstance(part, (list, deque)):
                part.clear()
                part.extend(items)
            elif isinstance(part, (dict, set)):
                part.clear()
                part.update(items)
            elif isinstance(part, _PACKED):
                part[:] = items
            set_attributes(part, attributes)


def set_attributes(value: Any, wanted: Mapping[str, Any]) -> None:
    """Give an object these attributes and no others, past what its class does to assignments."""
    kind: Any = type if isinstance(value, type) else object
    held = attributes_of(value)
    for name in held.keys() - wanted.keys():
        kind.__delattr__(value, name)
    for name, item in wanted.items():
        if held.get(name, wanted) is not item:
            kind.__setattr__(value, name, item)


def state_of(value: Any) -> Hashable:
    """The value, its items and its attributes. Numbers, text and objects with a hash of their own are
    compared by value, other objects by identity."""
    return _state(value, set())


def _state(value: Any, visited: set[int]) -> Hashable:
    kind = type(value)
    if kind in _BY_VALUE:
        return kind, value
    if kind in _BY_TEXT:
        return kind, repr(value)
    if issubclass(kind, np.generic):
        return value.dtype, value.tobytes()
    if issubclass(kind, np.dtype):
        return value  # type: ignore[no-any-return]
    if issubclass(kind, tuple):
        return kind, tuple(_state(item, visited) for item in value)
    holder = _holder(value)
    if holder is not None:
        return Same(value.__func__ if kind is MethodType else value), _state(holder, visited)
    if issubclass(kind, _STATELESS) or id(value) in visited:
        return Same(value)
    visited.add(id(value))
    if issubclass(kind, _CONTAINERS):
        if issubclass(kind, (dict, MappingProxyType)):
            items: Hashable = tuple(_pairs(value.items(), visited))
        else:
            states = [_state(item, visited) for item in value]
            items = frozenset(states) if issubclass(kind, (set, frozenset)) else tuple(states)
        if kind in _CONTAINERS:
            return kind, items
        return kind, items, tuple(_pairs(attributes_of(value).items(), visited))
    if kind is not type and (issubclass(kind, _HOLDING) or _is_polynomial(kind)):
        return _of_numbers(value, visited)
    itself = (kind, value) if _is_hashed(value) else Same(value)
    classes = tuple(_state(part, visited) for part in _classes(value))
    return itself, tuple(_pairs(attributes_of(value).items(), visited)), classes


def _is_hashed(value: Any) -> bool:
    """Whether an object has a hash of its own, and gives it: one that is half made need not."""
    hashing: Any = type(value).__hash__
    if hashing in (None, object.__hash__):
        return False
    try:
        hash(value)
    except Exception:  # whatever the code of its class raises
        return False
    return True


def _of_numbers(value: Any, visited: set[int]) -> Hashable:
    """The state of what is not described by its attributes alone."""
    kind = type(value)
    if issubclass(kind, ReferenceType):
        return Same(value), _state(value(), visited)
    if issubclass(kind, _HOLDING):
        itself = kind if issubclass(kind, _PACKED) else Same(value)
        return itself, getattr(value, "typecode", None), bytes(value)
    return Same(value), tuple(_numbers(attributes_of(value)))


def _numbers(attributes: Mapping[str, Any]) -> Iterator[Hashable]:
    """The attributes of a polynomial, with the numbers in its arrays: code of NumPy's reads them."""
    for name, item in attributes.items():
        if isinstance(item, np.ndarray):
            yield name, item.dtype, item.shape, item.tobytes()
        else:
            yield name, _state(item, set())


def _pairs(items: Iterable[tuple[Any, Any]], visited: set[int]) -> Iterator[Hashable]:
    for name, item in items:
        yield name if type(name) is str else _state(name, visited), _state(item, visited)
