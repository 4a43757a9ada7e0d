"""The state of a user's objects that a trace bakes in.

A method reads attributes of `self`, a function those of a global object or the items of a global list.
Their numbers become part of the compiled code, so the code is valid only while they stay. `state_of`
describes a value such that two descriptions are equal exactly if the trace would see the same; it holds
what it compares by identity, so that no identity is given twice.
"""

from __future__ import annotations

import sys
from collections.abc import Hashable, Iterator
from copy import copy
from dataclasses import dataclass
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

__all__ = ["Same", "Watch", "has_state", "state_of"]

_BY_VALUE = (bool, int, float, complex, str, bytes, type(None))
_STATELESS = (
    type,
    np.generic,
    np.ndarray,
    np.dtype,
    np.ufunc,
    FunctionType,
    BuiltinFunctionType,
    MethodType,
    ModuleType,
)
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
    if kind in _BY_VALUE or issubclass(kind, _STATELESS):
        return False
    if issubclass(kind, tuple):
        return any(has_state(item) for item in value)
    return issubclass(kind, (list, dict, set)) or bool(_attributes(value))


def _attributes(value: Any) -> dict[str, Any]:
    """The attributes that an object holds itself; empty for what is no object of a user's class."""
    if isinstance(value, _STATELESS) or type(value).__module__.partition(".")[0] in _NOT_THE_USERS:
        return {}
    found: dict[str, Any] = getattr(value, "__dict__", None) or {}
    return found if type(found) is dict else {}


class Watch:
    """An object's state when the trace met it."""

    def __init__(self, value: Any) -> None:
        self.value = value
        self._state = state_of(value)
        self._contents = copy(value) if isinstance(value, (list, dict, set)) else dict(_attributes(value))

    def changed(self) -> bool:
        return state_of(self.value) != self._state

    def restore(self) -> None:
        """Give the object the items or attributes it had; objects inside it keep theirs."""
        if isinstance(self.value, list):
            self.value[:] = self._contents
            return
        held = self.value if isinstance(self.value, (dict, set)) else _attributes(self.value)
        held.clear()
        held.update(self._contents)


def state_of(value: Any) -> Hashable:
    """The value, its items and its attributes: numbers and text by value, the rest by identity."""
    return _state(value, set())


def _state(value: Any, visited: set[int]) -> Hashable:
    kind = type(value)
    if kind in _BY_VALUE:
        return kind, value
    if issubclass(kind, _STATELESS) or id(value) in visited:
        return Same(value)
    visited.add(id(value))
    if issubclass(kind, (tuple, list)):
        return kind, tuple(_state(item, visited) for item in value)
    if issubclass(kind, dict):
        return kind, tuple(_pairs(value.items(), visited))
    if issubclass(kind, (set, frozenset)):
        return kind, frozenset(value)
    return Same(value), tuple(_pairs(_attributes(value).items(), visited))


def _pairs(items: Any, visited: set[int]) -> Iterator[Hashable]:
    for name, item in items:
        yield name, _state(item, visited)
