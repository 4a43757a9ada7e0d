"""What a compiled function depends on in a call: the key of the cache.

The key is one flat tuple: for an array its dtype, shape, flags and, unless C-contiguous, strides; for a
Python or NumPy scalar its type; for a static value itself; for a container its type and keys; and, where
arrays share memory, how. Computing it is the whole price of a warm call's lookup.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...errors import StaticArgumentError
from ...frozen import frozen
from ..record.resident import Resident, layout_of
from ..record.state import attributes_of, state_of
from ..record.tree import contents

__all__ = [
    "PYTHON_SCALARS",
    "Declared",
    "Key",
    "Named",
    "Overlap",
    "Spec",
    "ends_of",
    "is_leaf",
    "key_of",
    "length_of",
    "overlaps",
    "same_memory",
]

Key = tuple[Any, ...]

PYTHON_SCALARS: Mapping[type, type] = {bool: bool, int: int, float: float, complex: complex}

_C_CONTIGUOUS, _OWNS_DATA, _ALIGNED, _WRITEABLE = 0x1, 0x4, 0x100, 0x400
_MAX_WORK: Any = 1000
_SMALL = 16
_LAYOUT = _C_CONTIGUOUS | _ALIGNED | _WRITEABLE


@frozen
class Spec:
    """The shape and dtype of an argument that is described instead of passed."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]


@frozen
class Named:
    """Some arguments: by position and by name."""

    positions: frozenset[int] = frozenset()
    names: frozenset[str] = frozenset()

    def has(self, position: int, name: str | None) -> bool:
        """Whether an argument is among them; one that is given by position comes without its name."""
        return position in self.positions if name is None else name in self.names


_NONE = Named()


@frozen
class Declared:
    """What is declared of arguments: which are static, and of which the arrays have any length."""

    static: Named = _NONE
    any_length: Named = _NONE


@frozen
class Overlap:
    """Arrays that share memory: their positions among the leaves, for each the first position of the very
    same array, and where each starts, in bytes from the lowest byte of any of them; `nbytes` is the size of
    the memory that they cover together."""

    leaves: tuple[int, ...]
    firsts: tuple[int, ...]
    offsets: tuple[int, ...]
    nbytes: int


def is_leaf(value: Any) -> bool:
    """Whether a value of an argument varies from call to call: an array or a number."""
    kind = type(value)
    return kind in PYTHON_SCALARS or issubclass(kind, (np.ndarray, np.generic, Spec, Resident))


def key_of(args: Sequence[Any], kwargs: Mapping[str, Any], declared: Declared) -> tuple[Key, list[Any]]:
    """The key of a call and its leaves, left to right, with the lengths that are left open behind them, each
    once. Raises StaticArgumentError for a static value that has no hash."""
    key: list[Any] = [len(args)]
    leaves: list[Any] = []
    lengths: dict[int, int] = {}
    static, any_length = declared.static, declared.any_length
    views = 0
    for position, value in enumerate(args):
        if position in static.positions:
            _add_static(value, key, f"argument {position}")
        elif position in any_length.positions:
            views += _add_of_any_length(value, key, leaves, lengths)
        else:
            views += _add(value, key, leaves)
    for name, value in kwargs.items():
        key.append(name)
        if name in static.names:
            _add_static(value, key, repr(name))
        elif name in any_length.names:
            views += _add_of_any_length(value, key, leaves, lengths)
        else:
            views += _add(value, key, leaves)
    if len(leaves) > 1 and (views or len(set(map(id, leaves))) < len(leaves)):
        shared = overlaps(leaves)
        key.extend(shared)
        if shared:
            key.extend(lengths)
    leaves.extend(lengths)
    return tuple(key), leaves


def _add(value: Any, key: list[Any], leaves: list[Any]) -> int:
    """Append one argument to the key and the leaves; the number of its arrays that own no memory."""
    kind = type(value)
    if kind is np.ndarray:
        flags = value.flags.num
        key += (value.dtype, value.shape, flags & _LAYOUT)
        if not flags & _C_CONTIGUOUS:
            key.append(value.strides)
        leaves.append(value)
        return 0 if flags & _OWNS_DATA else 1
    if kind in PYTHON_SCALARS:
        key.append(kind)
        leaves.append(value)
        return 0
    return _add_other(value, kind, key, leaves)


def _add_of_any_length(value: Any, key: list[Any], leaves: list[Any], lengths: dict[int, int]) -> int:
    """`_add` of an argument whose arrays have any length: of one the key has the number of its length among
    all `lengths`, and between which ends it lies."""
    length = length_of(value)
    if length is not None:
        flags = _LAYOUT | _OWNS_DATA if type(value) is Spec else value.flags.num
        number = lengths.setdefault(length, len(lengths))
        key += (value.dtype, number, ends_of(length), value.shape[1:], flags & _LAYOUT)
        leaves.append(value)
        return 0 if flags & _OWNS_DATA else 1
    inner = None if is_leaf(value) else contents(value)
    if inner is None:
        return _add(value, key, leaves)
    keys, children = inner
    key += (type(value), keys, len(children))
    return sum(_add_of_any_length(child, key, leaves, lengths) for child in children)


def length_of(value: Any) -> int | None:
    """The length that code for arrays of any length leaves open: how many rows a C-contiguous array has, if
    there is more than one, since NumPy repeats a single one."""
    is_open = type(value) is Spec or (type(value) is np.ndarray and value.flags.num & _C_CONTIGUOUS)
    return value.shape[0] if is_open and value.shape and value.shape[0] > 1 else None


def ends_of(length: int) -> tuple[int, int]:
    """The least and the greatest length that the same code serves: up to the next power of two, and all that
    are small. What is decided for the greatest is then right for all, none of which is half as long."""
    if length <= _SMALL:
        return 2, _SMALL
    most = 1 << (length - 1).bit_length()
    return most // 2 + 1, most


def _add_other(value: Any, kind: type, key: list[Any], leaves: list[Any]) -> int:
    if issubclass(kind, np.generic):
        key += (kind, value.dtype)
        leaves.append(value)
        return 0
    if kind is Spec:
        key += (value.dtype, value.shape, _LAYOUT)
        leaves.append(value)
        return 0
    if issubclass(kind, np.ndarray):
        key += (kind, value.dtype, value.shape, value.flags.num & _LAYOUT, value.strides)
        leaves.append(value)
        return 1
    if issubclass(kind, Resident):
        layout = value.layout
        key += (value.place, layout.dtype, layout.shape, layout.flags.num & _LAYOUT, layout.strides)
        leaves.append(value)
        return 0 if value.is_alone else 1
    inner = contents(value)
    if inner is None:
        _add_static(value, key, f"an argument of type {kind.__name__}")
        return 0
    keys, children = inner
    key += (kind, keys, len(children))
    return sum(_add(child, key, leaves) for child in children)


def _add_static(value: Any, key: list[Any], name: str) -> None:
    is_array = _is_array(value)
    try:
        hash(value)
    except (TypeError, ValueError):  # the latter by views of memory that may be written
        raise StaticArgumentError(
            f"{name} is static, but a {type(value).__name__} cannot be hashed",
            fix="pass np.asarray(...) of it"
            if is_array or _is_memory(value)
            else "pass a tuple, a frozen dataclass or another hashable value",
        ) from None
    if is_array:
        raise StaticArgumentError(
            f"{name} is static, but the numbers of a {type(value).__name__} may change",
            fix="pass np.asarray(...) of it",
        )
    key.append(state_of(value))


def _is_array(value: Any) -> bool:
    """Whether the value is an array of another library's, whose numbers are not among its attributes."""
    named = any(hasattr(type(value), name) for name in ("__array__", "__array_interface__", "__dlpack__"))
    return named and not isinstance(value, np.generic) and not attributes_of(value)


def _is_memory(value: Any) -> bool:
    """Whether NumPy can take the value for an array as it is, as it can array.array and memoryview."""
    try:
        memoryview(value)
    except TypeError:
        return False
    return True


def overlaps(leaves: Sequence[Any]) -> tuple[Overlap, ...]:
    """The groups of arrays that share memory, an array passed twice included."""
    layouts = enumerate(map(layout_of, leaves))
    arrays = [(n, layout) for n, layout in layouts if isinstance(layout, np.ndarray)]
    groups: list[list[tuple[int, np.ndarray]]] = []
    for entry in arrays:
        apart: list[list[tuple[int, np.ndarray]]] = []
        joined = [entry]
        for group in groups:
            if any(_share(entry[1], other) for _, other in group):
                joined = [*group, *joined]
            else:
                apart.append(group)
        groups = [*apart, sorted(joined, key=lambda member: member[0])]
    return tuple(_overlap(group, leaves) for group in groups if len(group) > 1)


def _share(left: np.ndarray, right: np.ndarray) -> bool:
    if left is right:
        return True
    if not np.may_share_memory(left, right):
        return False
    try:
        return np.shares_memory(left, right, max_work=_MAX_WORK)
    except np.exceptions.TooHardError:
        return True


def same_memory(left: np.ndarray, right: np.ndarray) -> bool:
    """Whether two arrays have the same cells, of the same type and in the same order. How long a step along
    an axis of one cell is says nothing: of the view `x[::-1]` of such an array it is another."""

    def layout(array: np.ndarray) -> tuple[Any, ...]:
        steps = [step for step, extent in zip(array.strides, array.shape, strict=True) if extent > 1]
        return array.__array_interface__["data"][0], array.dtype, array.shape, steps

    return left is right or layout(left) == layout(right)


def _overlap(group: Sequence[tuple[int, np.ndarray]], leaves: Sequence[Any]) -> Overlap:
    bounds = [np.lib.array_utils.byte_bounds(array) for _, array in group]
    low = min(first for first, _ in bounds)
    starts = [array.__array_interface__["data"][0] for _, array in group]
    return Overlap(
        tuple(position for position, _ in group),
        tuple(next(n for n, _ in group if leaves[n] is leaves[position]) for position, _ in group),
        tuple(start - low for start in starts),
        max(last for _, last in bounds) - low,
    )
