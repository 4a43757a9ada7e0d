"""The state of a user's objects that a trace bakes in.

A method reads attributes of `self`, a function those of a global object or the items of a global list.
Their numbers become part of the compiled code, so the code is valid only while they stay. `state_of`
describes a value such that two descriptions are equal only if the trace would see the same: 1 is not 1.0,
nor 0.0 -0.0. It holds what it compares by identity, so that no identity is given twice.
"""

from __future__ import annotations

import sys
from collections.abc import Hashable, Iterator
from copy import copy
from dataclasses import dataclass
from types import BuiltinFunctionType, FunctionType, MemberDescriptorType, MethodType, ModuleType
from typing import Any

import numpy as np

__all__ = ["Same", "Watch", "has_state", "state_of"]

_BY_VALUE = (bool, int, str, bytes, type(None))
_BY_TEXT = (float, complex)  # tells -0.0 from 0.0, and any NaN is the same
_STATELESS = (type, np.generic, np.ndarray, np.dtype, np.ufunc, FunctionType, BuiltinFunctionType, ModuleType)
# Loggers, locks, jitted functions: what changes in them is not what a computation reads.
_NOT_THE_USERS = sys.stdlib_module_names | {__name__.partition(".")[0], "numpy"}


@dataclass(frozen=True, slots=True, eq=False)
class Same:
    """Compares by the identity of what it holds."""

    value: Any

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


def has_state(value: Any) -> bool:
    """Whether the value can change while it stays the same object."""
    kind = type(value)
    if kind in _BY_VALUE or kind in _BY_TEXT or issubclass(kind, _STATELESS):
        return False
    if kind is MethodType:
        return has_state(value.__self__)
    if issubclass(kind, tuple):
        return any(has_state(item) for item in value)
    return issubclass(kind, (list, dict, set)) or bool(_attributes(value))


def _attributes(value: Any) -> dict[str, Any]:
    """The attributes that an object holds itself; empty for what is no object of a user's class."""
    kind = type(value)
    if isinstance(value, _STATELESS) or kind.__module__.partition(".")[0] in _NOT_THE_USERS:
        return {}
    slots = {name: value for name, value in _slots(value)}
    return slots | dict(getattr(value, "__dict__", {}))


def _slots(value: Any) -> Iterator[tuple[str, Any]]:
    for kind in type(value).__mro__:
        for name, member in vars(kind).items():
            if isinstance(member, MemberDescriptorType) and hasattr(value, name):
                yield name, getattr(value, name)


class Watch:
    """An object's state when the trace met it."""

    def __init__(self, value: Any) -> None:
        self.value = value
        self._state = state_of(value)
        self._contents = copy(value) if isinstance(value, (list, dict, set)) else _attributes(value)

    def changed(self) -> bool:
        return state_of(self.value) != self._state

    def restore(self) -> None:
        """Give the object the items or attributes it had; objects inside it keep theirs."""
        if isinstance(self.value, list):
            self.value[:] = self._contents
        elif isinstance(self.value, (dict, set)):
            self.value.clear()
            self.value.update(self._contents)
        else:
            for name in _attributes(self.value).keys() - self._contents.keys():
                object.__delattr__(self.value, name)
            for name, held in self._contents.items():
                object.__setattr__(self.value, name, held)


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
        return value
    if issubclass(kind, _STATELESS) or id(value) in visited:
        return Same(value)
    visited.add(id(value))
    if kind is MethodType:
        return Same(value.__func__), _state(value.__self__, visited)
    if issubclass(kind, (tuple, list)):
        return kind, tuple(_state(item, visited) for item in value)
    if issubclass(kind, dict):
        return kind, tuple(_pairs(value.items(), visited))
    if issubclass(kind, (set, frozenset)):
        return kind, frozenset(_state(item, visited) for item in value)
    own = (kind, value) if kind.__hash__ not in (None, object.__hash__) else Same(value)
    return own, tuple(_pairs(_attributes(value).items(), visited))


def _pairs(items: Any, visited: set[int]) -> Iterator[Hashable]:
    for name, item in items:
        yield name, _state(item, visited)
