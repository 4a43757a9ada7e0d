"""Arrays that lie one after another in one array, as those do that a recorded loop appended to a list: taken
together they are one array."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from ...frozen import frozen_by_identity
from ...ir.index import Affine, Symbol
from ..record.view import View
from .array import SymbolicArray

__all__ = ["LISTS", "MANY", "Rows", "columns_of", "rows_of", "runs", "table_of"]

LISTS = (list, tuple, deque)
"""What NumPy makes an array of, item by item."""

MANY = 5
"""Fewer arrays are taken one by one."""


@frozen_by_identity
class Rows:
    """Values of a list that follow one another: the cells of `together` along its first axis. Each is a
    number of NumPy's or Python's if `together` is marked as one."""

    together: SymbolicArray

    @property
    def count(self) -> int:
        return self.together.cells.shape[0].constant

    def item(self, place: Affine) -> SymbolicArray:
        """The value at a place of these."""
        whole = self.together
        return SymbolicArray(whole.cells.part(place), whole.record, whole.weak, whole.is_scalar)


def rows_of(values: Sequence[Any]) -> list[Any | Rows] | None:
    """The values of a list in order, many that lie in rows as one; None where no such are among them."""
    if len(values) < MANY:
        return None
    found: list[Any | Rows] = []
    for (is_traced, weak, is_scalar), group in groupby(values, _kind):
        alike = list(group)
        if not is_traced:
            found += alike
            continue
        for start, view in runs([value.cells for value in alike]):
            count = view.shape[0].constant
            if count < MANY:
                found += alike[start : start + count]
            else:
                found.append(Rows(SymbolicArray(view, alike[0].record, weak, is_scalar)))
    return found if any(type(value) is Rows for value in found) else None


def table_of(values: Sequence[Any]) -> SymbolicArray | None:
    """What lists of one length hold, as one array with an axis for each list around it, if all of that lies
    in rows; else None."""
    lengths: list[int] = []
    while values and all(isinstance(value, LISTS) for value in values):
        if len({len(value) for value in values}) > 1:
            return None
        lengths.append(len(values[0]))
        values = [item for value in values for item in value]
    rows = rows_of(values) if lengths else None
    if rows is None or len(rows) > 1:
        return None
    together = rows[0].together
    while lengths:
        together = _cut(together, lengths.pop())
    return together


def columns_of(values: Sequence[Any]) -> list[tuple[tuple[int, ...], Any]] | None:
    """What lists of one form hold at each place of that form: an array with an axis for the lists if the
    items there lie in rows, or the number that all of them are. None where some place holds anything else."""
    if len(values) < MANY:
        return None
    columns: list[tuple[tuple[int, ...], Any]] = [((), values)]
    while any(isinstance(items[0], LISTS) for _, items in columns):
        if not all(isinstance(item, LISTS) for _, items in columns for item in items):
            return None
        lengths = {len(item) for _, items in columns for item in items}
        if len(lengths) > 1:
            return None
        (length,) = lengths
        columns = [((*at, n), [item[n] for item in items]) for at, items in columns for n in range(length)]
    taken = [(at, _column(items)) for at, items in columns if at]
    shapes = {column.cells.shape[1:] if type(column) is SymbolicArray else () for _, column in taken}
    return taken if len(shapes) == 1 and all(column is not None for _, column in taken) else None


def _column(items: list[Any]) -> Any | None:
    """Items that lie in rows as one array; a number that all of them are, as that."""
    rows = rows_of(items)
    if rows is not None:
        return rows[0].together if len(rows) == 1 else None
    first = items[0]
    is_number = type(first) in (bool, int, float, complex)
    return first if is_number and len({(type(item), repr(item)) for item in items}) == 1 else None


def _cut(array: SymbolicArray, length: int) -> SymbolicArray:
    """The array with its first axis cut into two, the second one so long."""
    cells = array.cells
    count, *inner = cells.shape
    row, column = Symbol("i"), Symbol("j")
    position = (Affine.of(row) * length + Affine.of(column), *map(Affine.of, cells.axes[1:]))
    shape = (Affine.of(count.constant // length), Affine.of(length), *inner)
    view = cells.remap(shape, (row, column, *cells.axes[1:]), position)
    return SymbolicArray(view, array.record, array.weak, array.is_scalar)


def _kind(value: Any) -> tuple[bool, Any, bool]:
    if type(value) is SymbolicArray:
        return True, value.weak, value.is_scalar
    return False, None, False


def runs(views: Sequence[View]) -> Iterator[tuple[int, View]]:
    """Views of one shape, those that lie at even distances taken together: where each such run starts, and
    the array of it, along a first axis more."""
    start = 0
    while start < len(views):
        first = views[start]
        step = _step(first, views[start + 1]) if start + 1 < len(views) else None
        end = start + 1
        while step is not None and end < len(views) and _step(views[end - 1], views[end]) == step:
            end += 1
        yield start, _together(first, end - start, step or (0,) * len(first.index))
        start = end


def _step(one: View, other: View) -> tuple[int, ...] | None:
    """How far the cells of a view are from those of another one in the same array; None if they are in none,
    or are other parts of complex numbers than these, which take turns along the last axis."""
    if one.tensor is not other.tensor or one.shape != other.shape:
        return None
    index = other.index if other.axes == one.axes else other.at(one.axes)
    step = tuple(there - here for here, there in zip(one.index, index, strict=True))
    if not all(part.is_constant for part in step):
        return None
    is_of_parts = one.tensor.storage.dtype.is_complex and not one.tensor.dtype.is_complex
    return None if is_of_parts and step[-1].offset % 2 else tuple(part.offset for part in step)


def _together(first: View, count: int, step: Sequence[int]) -> View:
    row = Symbol("i")
    index = tuple(
        part + Affine.of(row) * each if each else part for part, each in zip(first.index, step, strict=True)
    )
    return View(first.tensor, (Affine.of(count), *first.shape), (row, *first.axes), index, first.writeable)
