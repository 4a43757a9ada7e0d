"""Sorting by Batcher's merge exchange: a list of pairs of places, the same whatever the cells are, of which
each pair is put in order.

    for group in range(count // 16):       16 rows side by side, in vectors
        t[j, r] = x[16 * group + r, j]     for j in n, r in 16
        for pair in range(len(first)):
            a = first[pair]; b = second[pair]
            t[a, r], t[b, r] = minimum(t[a, r], t[b, r]), maximum(t[a, r], t[b, r])   for r in 16
        x[16 * group + r, j] = t[j, r]

What is moved along with the keys are places, which decide between equal keys: these keep their order.

Of a few cells, of which those at some places of the order are wanted, each pair is a line of the program, and
what the wanted ones do not follow from is left out: medians of windows take one loop, which goes in vectors.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ...ir.conditions import both, compare, either, one_of
from ...ir.dtype import BOOL, DType
from ...ir.expr import Apply, Expr, dtype_of
from ...ir.index import Affine
from ...ir.ops import op
from ..record.trace import Body, Trace, current_trace
from ..record.view import View
from ..values.array import SymbolicArray
from .adopted import numpy_program

__all__ = ["MOST_WRITTEN_OUT", "ranked_by_exchanges", "sort_by_exchanges", "work_of_exchanges"]

_GROUP_BYTES = 128
"""Of each place in a group of rows: whole vectors of every machine, and whole lines of its caches."""


MOST_WRITTEN_OUT = 25
"""Of so many cells pairs are lines of the program."""


def work_of_exchanges(dtypes: Sequence[DType], rows: int, length: int) -> float:
    """The cycles that it takes for keys, and places if these are moved along, roughly: an exchange waits for
    the stores of its cells."""
    side = _side(dtypes[0], rows)
    groups = -(-rows // side)
    return groups * len(_pairs(length)) * (4 + side * sum(dtype.itemsize for dtype in dtypes) / 16)


def _side(dtype: DType, rows: int) -> int:
    """How many rows are sorted side by side."""
    return max(1, min(rows, _GROUP_BYTES // dtype.itemsize))


def _pairs(length: int) -> list[tuple[int, int]]:
    """Which places are put in order, one pair after the other (Knuth's algorithm 5.2.2M)."""
    found = []
    top = 1 << max(length - 1, 0).bit_length() >> 1
    step = top
    while step:
        offset, rest, reach = step, 0, top
        while True:
            found += [(n, n + offset) for n in range(length - offset) if n & step == rest]
            if reach == step:
                break
            offset, rest, reach = reach - step, step, reach >> 1
        step >>= 1
    return found


@numpy_program
def ranked_by_exchanges(few: Sequence[Any], ranks: Sequence[int]) -> Any:
    """Of rows whose few cells are arrays, those at given places of the order, along a last axis; anything
    where a row has a NaN."""
    cells = list(few)
    for one, other, is_first, is_second in _needed(len(cells), ranks):
        first, second = cells[one], cells[other]
        is_less = first < second
        if is_first:
            cells[one] = np.where(is_less, first, second)
        if is_second:
            cells[other] = np.where(is_less, second, first)
    return np.stack([cells[rank] for rank in ranks], axis=-1)


def _needed(length: int, ranks: Iterable[int]) -> list[tuple[int, int, bool, bool]]:
    """The pairs from which the cells at these places follow; and whether the lesser cell of each is needed,
    and the greater one."""
    wanted, found = set(ranks), list[tuple[int, int, bool, bool]]()
    for one, other in reversed(_pairs(length)):
        if one in wanted or other in wanted:
            found.append((one, other, one in wanted, other in wanted))
            wanted |= {one, other}
    return found[::-1]


def sort_by_exchanges(arrays: Sequence[SymbolicArray]) -> None:
    """Sort each row of the first array in place, rows of a known length; the cells of the second one, which
    tells their places, along with it."""
    trace = current_trace()
    count, extent = (part.constant for part in arrays[0].cells.shape)
    side = _side(arrays[0].element_type, count)
    tables = [trace.constant(np.array(ends, np.int64)) for ends in zip(*_pairs(extent), strict=True)]
    firsts = [View.whole(table) for table in tables]
    for first, wide in ((0, side), (count // side * side, count % side)):
        groups = count // side if not first else 1
        if not wide:
            continue
        with trace.loop(0, groups) as group:
            rows = [_columns(array.cells, group * side + first, wide) for array in arrays]
            held = [trace.window((extent, wide), array.element_type, "held") for array in arrays]
            for cells, there in zip(rows, held, strict=True):
                trace.store(there, cells.load)
            with trace.loop(0, len(_pairs(extent))) as pair:
                one, other = (trace.bind(table.load((pair,)), 0, extent) for table in firsts)
                _exchange(trace, held, one, other)
            for cells, there in zip(rows, held, strict=True):
                trace.store(cells, there.load)


def _columns(rows: View, first: Affine, count: int) -> View:
    """So many rows from one on, as columns."""
    place, row = rows.axes[1], rows.axes[0]
    return rows.remap((rows.shape[1], count), (place, row), (first + Affine.of(row), place))


def _exchange(trace: Trace, held: Sequence[View], one: Affine, other: Affine) -> None:
    """Put the cells at two places of each column in order."""
    shape = held[0].shape[1:]
    below, above = ([array.part(place) for array in held] for place in (one, other))
    key, tie = below[0].load, below[-1].load
    later, later_tie = above[0].load, above[-1].load
    if len(held) == 1:
        least = trace.compute(shape, held[0].tensor.dtype, _both("minimum", key, later))
        trace.store(above[0], _both("maximum", key, later))
        trace.store(below[0], least.load)
        return

    def is_wrong(at: tuple[Affine, ...]) -> Expr:
        less = compare("less", later(at), key(at))
        equal = compare("equal", later(at), key(at))
        before = compare("less", later_tie(at), tie(at))
        return either(less, both(equal, before))

    wrong = trace.compute(shape, BOOL, is_wrong)
    for low, high in zip(below, above, strict=True):
        dtype = low.tensor.dtype
        first = trace.compute(shape, dtype, _chosen(wrong, high, low))
        trace.store(high, _chosen(wrong, low, high))
        trace.store(low, first.load)


def _both(name: str, one: Body, other: Body) -> Body:
    return lambda at: Apply(op(name), (one(at), other(at)), dtype_of(one(at)))


def _chosen(condition: View, then: View, otherwise: View) -> Body:
    return lambda at: one_of(condition.load(at), then.load(at), otherwise.load(at))
