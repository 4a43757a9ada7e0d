"""The steps by which the dispatcher comes to the values of a call, and what each of them must be."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import is_dataclass
from typing import Any

import numpy as np

from ..tracer.calls.binding import (
    ArgumentSource,
    CapturedSource,
    FreshSource,
    OverlapSource,
    ScalarSource,
    Source,
)
from ..tracer.calls.signature import (
    PYTHON_SCALARS,
    Declared,
    Overlap,
    ends_of,
    is_leaf,
    length_of,
    same_memory,
)
from ..tracer.record.state import has_plain_attributes, has_state, is_kept
from ..tracer.record.tree import contents
from .layout import C_CONTIGUOUS, LAYOUT_FLAGS
from .rows import address, code, row, words

__all__ = ["Steps", "ThroughPython"]

_FETCHES: Mapping[type, str] = {tuple: "TUPLE", list: "LIST", dict: "DICT"}
_CHECKS = {bool: "BOOL", int: "INT", float: "VALUE", complex: "VALUE"}
_MOST_NUMBER_BYTES = {"b": 1, "i": 8, "u": 8, "f": 8, "c": 16}
_NO_PARAM = -1


class ThroughPython(Exception):
    """What the dispatcher cannot do, and leaves to Python."""


class Steps:
    """`rows` are the steps, `leaves` has the step of each leaf of the call, `ranges` are those of memory that
    its arrays lie in, several in one if they `share` it. `owned` is what the rows name, `objects` are those
    that must be as they were. `lengths` has the parameter of each length that is left open, `open_leaves` are
    the arrays of any length."""

    def __init__(
        self,
        sources: Sequence[Source],
        pinned: Collection[int],
        shared: Sequence[Overlap],
        lengths: Mapping[int, int],
    ) -> None:
        self.open_leaves: set[int] = set()
        self._lengths = lengths
        self._told: set[int] = set()
        self.rows: list[list[int]] = []
        self.leaves: list[int] = []
        self.owned: list[Any] = []
        self.objects: list[Any] = []
        self.ranges: list[tuple[int, int]] = []
        self._sources = sources
        self._params = _params(sources)
        self._pinned = pinned
        self._shared = {leaf: group for group in shared for leaf in group.leaves}
        self._numbers: dict[Overlap, int] = {}
        self._met: dict[Overlap, list[tuple[np.ndarray, int]]] = {}

    def add_call(self, args: Sequence[Any], kwargs: Mapping[str, Any], declared: Declared) -> None:
        """The arguments, as the key of a call goes through them."""
        for index, value in enumerate((*args, *kwargs.values())):
            name = list(kwargs)[index - len(args)] if index >= len(args) else None
            is_static = declared.static.has(index, name)
            where = {"fetch": code("FETCH", "ARGUMENT"), "index": index}
            if is_static:
                self._add_static(value, where)
            else:
                self._add(value, where, declared.any_length.has(index, name))

    def add_captured(self, array: np.ndarray, param: int) -> None:
        """An array that the function met by another way."""
        where = {"fetch": code("FETCH", "OBJECT"), "key": id(array)}
        self._add_array(array, where, param, None)

    def _add(self, value: Any, where: Mapping[str, int], any_length: bool) -> None:
        """A value of the call with all that is in it. `where` says how to come to it."""
        if is_leaf(value):
            leaf = len(self.leaves)
            self.leaves.append(len(self.rows))
            param = self._params.get(leaf, _NO_PARAM)
            if type(value) is np.ndarray:
                if any_length and length_of(value) in self._lengths:
                    self.open_leaves.add(leaf)
                self._add_array(value, where, param, leaf)
            else:
                self._add_number(value, where, param, leaf in self._pinned)
            return
        inner = contents(value)
        if inner is None:
            self._add_static(value, where)
        else:
            self._add_container(value, where, *inner, any_length)

    def _add_static(self, value: Any, where: Mapping[str, int]) -> None:
        if has_state(value):
            self.objects.append(value)
        self._row(value, where, check=code("CHECK", "SAME"), wanted=id(value))

    def _add_array(self, array: np.ndarray, where: Mapping[str, int], param: int, leaf: int | None) -> None:
        dtype, flags = array.dtype, array.flags.num & LAYOUT_FLAGS
        if not dtype.isnative:
            raise ThroughPython("an array has foreign byte order")
        start = array.__array_interface__["data"][0]
        group = None if leaf is None else self._shared.get(leaf)
        number, is_first = self._range(array, start, group)
        low, high = self.ranges[number]
        source = self._sources[param] if param != _NO_PARAM else None
        one, other = _numbers(dtype)
        length = self._length(array, is_shared=group is not None) if leaf in self.open_leaves else {}
        self._row(
            dtype,
            where,
            check=code("CHECK", "ARRAY"),
            wanted=id(dtype),
            size=array.ndim,
            flags=flags,
            extents=self._words(array.shape),
            strides=0 if flags & C_CONTIGUOUS else self._words(array.strides),
            number=one,
            other_number=other,
            param=param,
            range=number,
            low=low - start,
            high=0 if length.get("row") else high - start,
            shared=int(not is_first),
            twin=self._twin(array, group),
            before=source.offset if isinstance(source, OverlapSource) else 0,
            **length,
        )

    def _length(self, array: np.ndarray, is_shared: bool) -> dict[str, int]:
        """What is asked of the length of an array of any length. One that shares memory has this one, and its
        range ends where that of all who share it does, whatever its rows are."""
        length = len(array)
        least, most = (length, length) if is_shared else ends_of(length)
        param = self._lengths[length]
        is_told = param in self._told
        self._told.add(param)
        return {
            "is_open": 1,
            "least": least,
            "most": most,
            "length": param,
            "as_before": int(is_told),
            "row": 0 if is_shared else array.strides[0],
        }

    def _twin(self, array: np.ndarray, group: Overlap | None) -> int:
        """The step of the first argument that is this very array."""
        if group is not None:
            met = self._met.setdefault(group, [])
            for other, step in met:
                if other is array:
                    return step
                if same_memory(other, array):
                    raise ThroughPython("two arrays are views of the same cells")
            met.append((array, len(self.rows)))
        return len(self.rows)

    def _range(self, array: np.ndarray, start: int, group: Overlap | None) -> tuple[int, bool]:
        """The number of the range of memory that an array lies in, and whether it is the first one there."""
        if group is None:
            found = np.lib.array_utils.byte_bounds(array)
        elif group in self._numbers:
            return self._numbers[group], False
        else:
            low = start - group.offsets[0]
            found = (low, low + group.nbytes)
            self._numbers[group] = len(self.ranges)
        if not array.size:
            found = (start, start + 1)  # it counts as a byte, by which it is told from others
        if any(low < found[1] and found[0] < high for low, high in self.ranges):
            raise ThroughPython("an array lies between the cells of another one")
        self.ranges.append(found)
        return len(self.ranges) - 1, True

    def _add_number(self, value: Any, where: Mapping[str, int], param: int, is_pinned: bool) -> None:
        kind = type(value)
        dtype = np.dtype(kind) if kind in PYTHON_SCALARS else value.dtype
        is_plain = dtype.itemsize <= _MOST_NUMBER_BYTES.get(dtype.kind, 0)
        if not (kind in PYTHON_SCALARS or issubclass(kind, np.generic)) or not is_plain:
            raise ThroughPython(f"a {kind.__name__} is no plain number")
        pin = (0, 0)
        if is_pinned:
            pin = self._bytes(value, dtype)
        check = code("CHECK", _CHECKS.get(kind, "VALUE"))
        self._row(kind, where, check=check, wanted=id(kind), param=param, pinned=pin[0], pinned_bytes=pin[1])

    def _add_container(
        self,
        value: Any,
        where: Mapping[str, int],
        keys: tuple[Hashable, ...],
        children: Sequence[Any],
        any_length: bool,
    ) -> None:
        kind = type(value)
        fetch = _fetch(kind, keys)
        if fetch is None:
            raise ThroughPython(f"a {kind.__name__} is no plain container")
        source = len(self.rows)
        check = code("CHECK", "INSTANCE" if fetch == "ATTRIBUTE" else "CONTAINER")
        if fetch == "ATTRIBUTE":
            self.objects.append(kind)
        self._row(kind, where, check=check, wanted=id(kind), size=len(children))
        for index, child in enumerate(children):
            key = keys[index] if fetch in ("DICT", "ATTRIBUTE") else None
            self.owned.append(key)
            here = {
                "fetch": code("FETCH", fetch),
                "source": source,
                "index": index,
                "key": id(key),
                "owned": int(fetch != "TUPLE" or where.get("owned", 0)),
            }
            self._add(child, here, any_length)

    def _row(self, named: Any, where: Mapping[str, int], **wanted: int) -> None:
        self.owned.append(named)
        self.rows.append(row("STEP", **where, **wanted))

    def _words(self, numbers: Sequence[int]) -> int:
        memory = words([numbers])
        self.owned.append(memory)
        return address(memory)

    def _bytes(self, value: Any, dtype: np.dtype[Any]) -> tuple[int, int]:
        """The bytes of a number that is compiled in, as the dispatcher meets them."""
        kind = np.dtype(np.int64) if type(value) in (bool, int) else dtype
        try:
            pin = np.array(value, kind)
        except OverflowError:
            raise ThroughPython("an integer that is compiled in has more than 64 bits") from None
        self.owned.append(pin)
        return pin.ctypes.data, pin.nbytes


def _fetch(kind: type, keys: Sequence[Hashable]) -> str | None:
    """How the children of a container are come to; None if the dispatcher has no way."""
    if issubclass(kind, tuple) and kind.__iter__ is tuple.__iter__:
        return "TUPLE"
    if is_dataclass(kind) and has_plain_attributes(kind) and all(is_kept(kind, str(key)) for key in keys):
        return "ATTRIBUTE"
    return _FETCHES.get(kind)


def _params(sources: Sequence[Source]) -> dict[int, int]:
    """The parameter that each leaf is for."""
    params: dict[int, int] = {}
    for number, source in enumerate(sources):
        match source:
            case ArgumentSource(copied=True) | CapturedSource(copied=True):
                raise ThroughPython("code works on a copy of an array")
            case OverlapSource(copied=True):
                raise ThroughPython("code works on a copy of arrays that share memory")
            case ArgumentSource(leaf=leaf) | ScalarSource(leaf=leaf) | OverlapSource(leaf=leaf):
                params[leaf] = number
            case CapturedSource() | FreshSource():
                pass
    return params


def _numbers(dtype: np.dtype[Any]) -> tuple[int, int]:
    """The numbers of NumPy's types that are the same as this one: itself, and another one of C's integers."""
    alike = [kind.num for kind in map(np.dtype, "bBhHiIlLqQ") if kind == dtype]
    return (alike[0], alike[-1]) if alike else (dtype.num, dtype.num)
