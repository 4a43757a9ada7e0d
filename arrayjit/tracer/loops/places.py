"""Where the user's code keeps values while a loop is recorded: the local variables of the frame, and what
lists, dicts, objects and closures that they lead to hold.

A variable is named by a string, anything else by a `Place`. Assigning the local variables of a running
frame follows PEP 667; before CPython 3.13 it goes through the C API.
"""

from __future__ import annotations

import ctypes
import gc
import sys
from collections import deque
from collections.abc import Hashable, Iterable, Mapping
from types import BuiltinMethodType, CellType, FrameType, FunctionType, MethodType
from typing import Any, Union

from ...frozen import frozen
from ..record.state import attributes_of, reachable, set_attributes
from .growing import Growing, Growth

__all__ = ["MISSING", "Name", "Place", "Places", "captured_by"]

MISSING = object()
"""In place of the value of a name that has none."""

_UNBOUND = object()
"""What a variable holds that had no value before an attempt that was discarded: none can be taken from it."""

_PLAIN = (str, bytes, int, float, complex, type(None))


@frozen
class Place:
    """What holds a value besides local variables: the item, attribute or closure variable `key` of the object
    number `part`."""

    part: int
    key: Hashable
    label: str

    def __str__(self) -> str:
        return self.label


@frozen
class FromEnd:
    """The key of the item of a growing list that is so many from its end."""

    back: int


Name = Union[str, Place]


class Places:
    """The places that named values lead to now, and with a frame its variables too. `iterators` are the names
    that lead to an iterator, `grown` the lists that a loop appends to, by the numbers of their parts."""

    def __init__(self, values: Mapping[str, Any], frame: FrameType | None = None) -> None:
        self._frame = frame
        self._parts: list[tuple[str, Any]] = []
        self._known: set[int] = set()
        self.iterators: list[str] = []
        self.grown: dict[int, Growth] = {}
        for name, value in values.items():
            if not isinstance(value, _PLAIN):
                self._explore(name, value)

    @staticmethod
    def of(frame: FrameType, besides: Mapping[str, Any]) -> Places:
        """The variables of a frame and what they, and named values `besides`, lead to."""
        return Places({**_variables(frame), **besides}, frame)

    def read(self) -> dict[Name, Any]:
        """What every place holds."""
        names: dict[Name, Any] = {}
        if self._frame is not None:
            names.update(_variables(self._frame))
        for number, (label, part) in enumerate(self._parts):
            for key, value in _items(part).items():
                names[Place(number, key, _label(label, part, key))] = value
        return names | self.last_items()

    def last_items(self) -> dict[Name, Any]:
        """The last items of growing lists, as far as the loop reads them."""
        return {
            Place(number, FromEnd(back), f"{growth.label}[-{back}]"): item
            for number, growth in self.grown.items()
            for back, item in growth.last_items().items()
        }

    def lists(self) -> dict[int, tuple[str, Any]]:
        """The lists among the places, and what stands for one, each with its name."""
        kinds = (list, Growing)
        return {
            number: (label, part) for number, (label, part) in enumerate(self._parts) if type(part) in kinds
        }

    def exchange(self, old: Any, new: Any) -> None:
        """Put one object in the place of another, wherever that is."""
        self.write(dict.fromkeys((name for name, value in self.read().items() if value is old), new))

    def refresh(self) -> None:
        """Have the frame forget what its variables held before: CPython before 3.13 keeps that in a dict."""
        if self._frame is not None:
            _ = self._frame.f_locals

    def references(self, value: Any) -> int:
        """How often the value is held here."""
        return sum(part is value for _, part in self._parts)

    @staticmethod
    def overwritten(value: Any, places: Iterable[Places]) -> int:
        """How often frames keep the value because a variable held it when another was put there. CPython
        does so from 3.14 on, whose stack may borrow what variables hold."""
        if sys.version_info < (3, 14):
            return 0
        frames = {id(one._frame): one._frame for one in places if one._frame is not None}
        kept = (part for part in gc.get_referents(*frames.values()) if type(part) is tuple)
        return sum(part is value for parts in kept for part in parts)

    def write(self, values: Mapping[Name, Any]) -> None:
        """Put values into places that exist."""
        variables = {name: value for name, value in values.items() if isinstance(name, str)}
        if variables and self._frame is not None:
            self._frame.f_locals.update(variables)
            if sys.version_info < (3, 13):
                ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(self._frame), ctypes.c_int(0))
        for name, value in values.items():
            if isinstance(name, Place) and isinstance(name.key, FromEnd):
                self.grown[name.part].carry(name.key.back, value)
            elif isinstance(name, Place):
                _put(self._parts[name.part][1], name.key, value)

    def restore(self, values: Mapping[Name, Any]) -> None:
        """Put everything back that has changed since `values` were read."""
        now = self.read()
        back = {name: value for name, value in values.items() if now.get(name, MISSING) is not value}
        for name in now.keys() - values.keys():
            if isinstance(name, str):
                back[name] = _UNBOUND
            elif not isinstance(name.key, FromEnd):
                _remove(self._parts[name.part][1], name.key)
        self.write(back)

    def has(self, value: Any) -> bool:
        """Whether the value is one of the objects whose places are known."""
        return id(value) in self._known

    def _explore(self, name: str, value: Any) -> None:
        waiting = [(name, value)]
        while waiting:
            label, value = waiting.pop()
            for part in reachable(value):
                if id(part) in self._known or isinstance(part, _PLAIN):
                    continue
                self._known.add(id(part))
                if hasattr(type(part), "__next__"):
                    self.iterators.append(name)
                elif isinstance(part, FunctionType):
                    waiting += zip(part.__code__.co_freevars, part.__closure__ or (), strict=True)
                    waiting += ((label, part.__defaults__), (label, part.__kwdefaults__))
                    self._parts.append((label, part))
                elif isinstance(part, MethodType):
                    waiting.append((label, part.__func__))
                elif isinstance(part, BuiltinMethodType) and isinstance(part.__self__, (list, dict, set)):
                    waiting.append((label, part.__self__))
                elif isinstance(part, CellType):
                    waiting += ((label, value) for value in _items(part).values())
                    if not self._is_variable(label, part):
                        self._parts.append((label, part))
                else:
                    self._parts.append((label, part))

    def _is_variable(self, name: str, cell: CellType) -> bool:
        """Whether the cell is the frame's own variable of that name, which only an assignment can tell."""
        if self._frame is None or not _items(cell):
            return False
        held = cell.cell_contents
        cell.cell_contents = MISSING
        try:
            return self._frame.f_locals.get(name) is MISSING
        finally:
            cell.cell_contents = held


def _variables(frame: FrameType) -> dict[str, Any]:
    return {name: value for name, value in frame.f_locals.items() if value is not _UNBOUND}


def captured_by(values: Iterable[Any]) -> set[str]:
    """The closure variables of the functions that values lead to."""
    names: set[str] = set()
    known: set[int] = set()
    waiting = list(values)
    while waiting:
        for part in reachable(waiting.pop()):
            if id(part) in known:
                continue
            known.add(id(part))
            if isinstance(part, MethodType):
                waiting.append(part.__func__)
            elif isinstance(part, FunctionType):
                names.update(part.__code__.co_freevars)
                waiting += (part.__defaults__, part.__kwdefaults__, *(part.__closure__ or ()))
            elif isinstance(part, CellType):
                waiting += _items(part).values()
    return names


def _items(part: Any) -> dict[Any, Any]:
    """What an object holds and might exchange, by key. A set holds its items as a whole."""
    if type(part) is Growing:
        part = part.items
    if isinstance(part, (list, deque)):
        return dict(enumerate(part))
    if isinstance(part, dict):
        return dict(part)
    if isinstance(part, set):
        return {"items": frozenset(part)}
    if isinstance(part, FunctionType):
        return dict(vars(part))
    if isinstance(part, CellType):
        try:
            return {"variable": part.cell_contents}
        except ValueError:
            return {}
    return attributes_of(part)


def _label(name: str, part: Any, key: Any) -> str:
    if isinstance(part, (list, deque, dict)):
        return f"{name}[{key!r}]"
    return name if isinstance(part, CellType) else f"{name}.{key}"


def _put(part: Any, key: Any, value: Any) -> None:
    if type(part) is Growing:
        part = part.items
    if isinstance(part, (list, deque, dict)):
        if isinstance(part, (list, deque)) and key == len(part):
            part.append(value)
        else:
            part[key] = value
    elif isinstance(part, set):
        part.clear()
        part.update(value)
    elif isinstance(part, CellType):
        part.cell_contents = value
    elif isinstance(part, FunctionType):
        vars(part)[key] = value
    else:
        set_attributes(part, {**_items(part), key: value})


def _remove(part: Any, key: Any) -> None:
    if type(part) is Growing:
        part = part.items
    if isinstance(part, (list, deque)):
        part.pop()
    elif isinstance(part, dict):
        del part[key]
    elif isinstance(part, CellType):
        del part.cell_contents
    elif isinstance(part, FunctionType):
        del vars(part)[key]
    elif not isinstance(part, set):
        set_attributes(part, {name: item for name, item in _items(part).items() if name != key})
