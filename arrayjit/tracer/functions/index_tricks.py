"""Arrays that are written as indices, `np.mgrid[0:2, 0:3]` and `np.r_[x, 0]`: NumPy's module of that name."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import NumberError, UnsupportedError
from ..record.registry import CREATION
from ..record.trace import current_trace
from ..values.array import SymbolicArray
from ..values.elementwise import as_array, as_stored, is_traced
from .creation import arange, constant_of
from .joining import concatenate
from .operands import common_dtype
from .shaping import insert_axes
from .spacing import linspace

__all__: list[str] = []


class _Grid:
    """`np.mgrid` and `np.ogrid` in a traced function: constants of the program."""

    def __init__(self, grid: Any) -> None:
        self._grid = grid

    def __getitem__(self, key: Any) -> Any:
        numbers = self._grid[key]
        if isinstance(numbers, np.ndarray):
            return constant_of(numbers)
        return tuple(constant_of(part) for part in numbers)


class _Concatenator:
    """`np.r_` and `np.c_` in a traced function: what is known while tracing is a constant of the program.

    NumPy's attributes say what is done with the items: they get at least `ndmin` axes, their own ones from
    `trans1d` on (-1: last), and are joined along `axis`. A text before them, "axis,ndmin,trans1d", says it
    for one index.
    """

    def __init__(self, concatenator: Any) -> None:
        self._known = concatenator
        self._directions = (concatenator.axis, concatenator.ndmin, concatenator.trans1d)

    def __getitem__(self, key: Any) -> SymbolicArray:
        items = key if isinstance(key, tuple) else (key,)
        axis, ndmin, trans1d = self._directions
        if items and isinstance(items[0], str):
            axis, ndmin, trans1d = self._directed(items[0])
            items = items[1:]
        if not any(map(_is_array, items)):
            return constant_of(self._known[key])
        given = [_numbers(item) for item in items]
        kind = common_dtype(*given)
        stored = [as_stored(item, kind, current_trace()) for item in given]
        parts = [_with_axes(as_array(item), ndmin, trans1d) for item in stored]
        return concatenate(parts, axis, dtype=kind.numpy, casting="unsafe")

    def _directed(self, text: str) -> tuple[int, ...]:
        if text in ("r", "c") or not text.replace(",", "").replace("-", "").isdigit():
            raise UnsupportedError(
                f"np.matrix objects, as {text!r} asks for, are not supported in a jitted function",
                fix="use np.block, or leave the text out",
            )
        numbers = tuple(int(number) for number in text.split(","))
        return (*numbers, *self._directions[len(numbers) :])


def _is_array(item: Any) -> bool:
    if isinstance(item, slice):
        return is_traced((item.start, item.stop, item.step))
    return isinstance(item, np.ndarray) or is_traced(item)


def _numbers(item: Any) -> Any:
    """What an item stands for: a slice for its numbers, one whose step is `5j` for five of them."""
    if isinstance(item, str):
        raise NumberError(f"the text {item!r} stands after what it is about", fix="put it first")
    if not isinstance(item, slice):
        return as_array(item) if isinstance(item, (list, tuple)) else item
    start = 0 if item.start is None else item.start
    if isinstance(item.step, complex):  # np.complex128 is one as well
        return linspace(start, item.stop, int(abs(item.step)))
    return arange(start, item.stop, item.step)


def _with_axes(array: SymbolicArray, ndmin: int, trans1d: int) -> SymbolicArray:
    missing = ndmin - array.ndim
    if missing <= 0:
        return array
    first = trans1d if trans1d >= 0 else max(trans1d + missing + 1, 0)
    return insert_axes(array, [*range(first), *range(first + array.ndim, ndmin)])


CREATION[np.mgrid] = _Grid(np.mgrid)
CREATION[np.ogrid] = _Grid(np.ogrid)
CREATION[np.r_] = _Concatenator(np.r_)
CREATION[np.c_] = _Concatenator(np.c_)
