"""Sorting by exchanges: a list of pairs of places, the same whatever the cells are, of which each pair is put
in order. Rows go side by side, a lane each, and cells are exchanged while they are in registers.

    for group in range(-(-count // 16)):           16 rows, in vectors
        t[j, r] = x[16 * group + r, j]             for j in n, r in 16; what is behind in `t` comes last
        for block in range(-(-n // 8)):            8 cells at a time, by Batcher's merge exchange
            a, b, c, ... = t[8 * block, r], t[8 * block + 1, r], ...
            a, b = minimum(a, b), maximum(a, b)
            ...
            t[8 * block, r], t[8 * block + 1, r], ... = a, b, c, ...
        for size in 16, 32, ... while size < 2 * n:          blocks of two that are in order, bitonically
            for block in range(-(-n // size)):
                for start in range(size // 8):
                    8 cells from `start` on of one half, and as far from the end of the other
            ...                                    and so on, until neighbours have been compared
        x[16 * group + r, j] = t[j, r]

Of less than a group of rows each pair is looked up in a table, and exchanged in memory.

What is moved along with the keys are places, which decide between equal keys: these keep their order.

Of a few cells, of which those at some places of the order are wanted, each pair is a line of the program, and
what the wanted ones do not follow from is left out: medians of windows take one loop, which goes in vectors.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from ...frozen import frozen
from ...ir.conditions import both, compare, either, one_of
from ...ir.dtype import BOOL, I64, DType
from ...ir.expr import Apply, Const, Expr, Index, dtype_of
from ...ir.index import Affine
from ...ir.ops import op
from ..record.trace import Body, Trace, current_trace
from ..record.view import View
from ..values.array import SymbolicArray
from .adopted import numpy_program
from .keys import key_with_place, numbered_type, place_of
from .selection import last_key

__all__ = [
    "MOST_WRITTEN_OUT",
    "halving",
    "loaded",
    "ordered",
    "places_by_exchanges",
    "ranked_by_exchanges",
    "sort_by_exchanges",
    "sorting_pairs",
    "work_of_exchanges",
]

_VECTOR_BYTES, _FEWEST = 64, 16
"""Of each place in a group of rows: whole vectors of every machine, and at least so many rows, since fewer
are not transposed in registers."""

_HELD = 8
"""Cells of a row that are exchanged in registers. 16 take 0.93 of the time, where there are registers for
them, but 1.3 times as long to compile."""

MOST_WRITTEN_OUT = 25
"""Of so many cells pairs are lines of the program."""


def work_of_exchanges(keys: DType, rows: int, length: int, with_places: bool = False) -> float:
    """The cycles that it takes for keys, or for the places of their cells, roughly: of few rows, each pair
    waits for the stores of its cells."""
    dtypes = _moved(keys, with_places)
    side, size = _side(dtypes[0]), sum(dtype.itemsize for dtype in dtypes)
    if rows < side:
        return len(sorting_pairs(length)) * (4 + rows * size / 16)
    pairs = sum(step.blocks * step.starts * len(step.pairs) for step in _steps(length))
    return -(-rows // side) * pairs * side * size / 32


def _moved(keys: DType, with_places: bool) -> list[DType]:
    """What is exchanged: keys that take their places along, if there are such, or both."""
    if not with_places:
        return [keys]
    numbered = numbered_type(keys)
    return [keys, I64] if numbered is None else [numbered]


def _side(dtype: DType) -> int:
    """How many rows are sorted side by side."""
    return max(_FEWEST, _VECTOR_BYTES // dtype.itemsize)


def sorting_pairs(length: int) -> list[tuple[int, int]]:
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
    for one, other in reversed(sorting_pairs(length)):
        if one in wanted or other in wanted:
            found.append((one, other, one in wanted, other in wanted))
            wanted |= {one, other}
    return found[::-1]


@frozen
class _Step:
    """What goes on in registers, for each of `blocks` of a size and each of `starts` in a block: the cells at
    these places of the block, counted up from the start or down, of which pairs are put in order one after
    the other."""

    size: int
    blocks: int
    starts: int
    places: Sequence[tuple[int, int]]
    pairs: Sequence[tuple[int, int]]


def _steps(length: int) -> list[_Step]:
    """Blocks of as many cells as registers hold are sorted; then two blocks become one, until one is left.
    What lies behind the last cell comes last."""
    size = min(length, _HELD)
    steps = [_Step(size, -(-length // size), 1, [(n, 1) for n in range(size)], sorting_pairs(size))]
    while size < length:
        size *= 2
        steps += _merging(length, size)
    return steps


def _merging(length: int, size: int) -> Iterator[_Step]:
    """What puts blocks of a size in order whose halves are: each cell of one half is compared with the one of
    the other that is as far from its other end, then those a quarter of the block apart, an eighth, and so
    on; as many of these one after the other as registers allow."""
    distances = size.bit_length() - 1
    parts = -(-distances // (_HELD.bit_length() - 1))
    block = size
    for part in range(parts):
        many = 1 << (distances + part) // parts
        apart, half = block // many, many // 2
        places, pairs = [(n * apart, 1) for n in range(many)], list(halving(many))
        if block == size:
            places[half:] = [(block - 1 - n * apart, -1) for n in range(half)]
            later = [pair for n, m in halving(half) for pair in ((n, m), (m + half, n + half))]
            pairs = [(n, n + half) for n in range(half)] + later
        yield _Step(block, -(-length // block), apart, places, pairs)
        block = apart


def halving(many: int) -> Iterator[tuple[int, int]]:
    """The pairs of places half of them apart, then a quarter, and so on."""
    apart = many // 2
    while apart:
        yield from ((n, n + apart) for n in range(many) if not n & apart)
        apart //= 2


def sort_by_exchanges(keys: SymbolicArray) -> SymbolicArray:
    """The rows of keys, of a known length, in order. Those given may be overwritten."""
    return SymbolicArray(_sorted(keys.cells, with_places=False), current_trace())


def places_by_exchanges(keys: SymbolicArray) -> SymbolicArray:
    """For each row of keys, of a known length, where these stand, in their order."""
    trace, cells, numbered = current_trace(), keys.cells, numbered_type(keys.element_type)
    if numbered is None:
        return SymbolicArray(_sorted(cells, with_places=True), trace)
    numbers = trace.compute(cells.shape, numbered, lambda at: key_with_place(cells.load(at), at[1]))
    found = _sorted(numbers, with_places=False)
    return SymbolicArray(trace.compute(cells.shape, I64, lambda at: place_of(found.load(at))), trace)


def _sorted(keys: View, with_places: bool) -> View:
    trace = current_trace()
    count, length = (extent.constant for extent in keys.shape)
    side = min(count, _side(keys.tensor.dtype))
    groups = -(-count // side)
    whole = _with_rows(trace, keys, groups * side)
    found = trace.window(whole.shape, I64, "places") if with_places else whole
    is_full = side == _side(keys.tensor.dtype)
    steps = _steps(length) if is_full else []
    room = max((step.blocks * step.size for step in steps), default=length)
    with trace.loop(0, groups) as group:
        held = [trace.window((room, side), keys.tensor.dtype, "held")]
        trace.store(_rows_from(held[0], 0, length), _columns(whole, group * side, side).load)
        _fill(trace, _rows_from(held[0], length, room - length), last_key(keys.tensor.dtype))
        if with_places:
            held.append(trace.compute((room, side), I64, lambda at: Index(at[0]), label="held"))
        for step in steps:
            _take(trace, step, held)
        if not is_full:
            _sort_one_by_one(trace, held)
        trace.store(_columns(found, group * side, side), _rows_from(held[-1], 0, length).load)
    return _rows_from(found, 0, count)


def _sort_one_by_one(trace: Trace, held: Sequence[View]) -> None:
    """Put all pairs of places in order, in memory."""
    length = held[0].shape[0].constant
    pairs = sorting_pairs(length)
    tables = [trace.constant(np.array(ends, np.int64)) for ends in zip(*pairs, strict=True)]
    with trace.loop(0, len(pairs)) as pair:
        places = [trace.bind(View.whole(table).load((pair,)), 0, length) for table in tables]
        cells = [[array.part(place) for array in held] for place in places]
        _store(trace, cells, ordered(trace, cells))


def _take(trace: Trace, step: _Step, held: Sequence[View]) -> None:
    """Put pairs of places in order, in registers."""
    with (
        trace.loop(0, step.blocks) as block,
        trace.loop(0, step.starts) as start,
        trace.loop(0, held[0].shape[1]) as lane,
    ):
        places = [block * step.size + start * sign + first for first, sign in step.places]
        there = [[array.remap((), (), (place, lane)) for array in held] for place in places]
        cells = [[loaded(trace, cell) for cell in pair] for pair in there]
        for one, other in step.pairs:
            cells[one], cells[other] = ordered(trace, [cells[one], cells[other]])
        _store(trace, there, cells)


def _with_rows(trace: Trace, rows: View, count: int) -> View:
    """So many rows, of which those that are not there are of zeros."""
    own, extent = (part.constant for part in rows.shape)
    if own == count:
        return rows
    whole = trace.window((count, extent), rows.tensor.dtype, "rows")
    trace.store(_rows_from(whole, 0, own), rows.load)
    _fill(trace, _rows_from(whole, own, count - own), 0)
    return whole


def _rows_from(whole: View, first: int, count: int) -> View:
    row, column = whole.axes
    return whole.remap((count, whole.shape[1]), whole.axes, (row + first, column))


def _fill(trace: Trace, rows: View, number: int) -> None:
    dtype = rows.tensor.dtype
    trace.store(rows, lambda _: Const(number, dtype))


def _columns(rows: View, first: Affine, count: int) -> View:
    """So many rows from one on, as columns."""
    place, row = rows.axes[1], rows.axes[0]
    return rows.remap((rows.shape[1], count), (place, row), (first + Affine.of(row), place))


def loaded(trace: Trace, cells: View) -> View:
    return trace.compute(cells.shape, cells.tensor.dtype, cells.load)


def _store(trace: Trace, targets: Sequence[Sequence[View]], cells: Sequence[Sequence[View]]) -> None:
    for views, values in zip(targets, cells, strict=True):
        for view, value in zip(views, values, strict=True):
            trace.store(view, value.load)


def ordered(trace: Trace, cells: Sequence[Sequence[View]]) -> list[list[View]]:
    """Two keys in order, or two with what is moved along with them."""
    below, above = cells
    shape = below[0].shape
    if len(below) == 1:
        (low,), (high,) = below, above
        dtype, names = low.tensor.dtype, ("minimum", "maximum")
        return [[trace.compute(shape, dtype, _both(name, low.load, high.load))] for name in names]

    def is_wrong(at: tuple[Affine, ...]) -> Expr:
        key, tie, later, later_tie = (view.load(at) for view in (*below, *above))
        equal = both(compare("equal", later, key), compare("less", later_tie, tie))
        return either(compare("less", later, key), equal)

    wrong = trace.compute(shape, BOOL, is_wrong)

    def chosen(then: View, otherwise: View) -> View:
        return trace.compute(shape, then.tensor.dtype, _chosen(wrong, then, otherwise))

    return [
        [chosen(high, low) for low, high in zip(below, above, strict=True)],
        [chosen(low, high) for low, high in zip(below, above, strict=True)],
    ]


def _both(name: str, one: Body, other: Body) -> Body:
    return lambda at: Apply(op(name), (one(at), other(at)), dtype_of(one(at)))


def _chosen(condition: View, then: View, otherwise: View) -> Body:
    return lambda at: one_of(condition.load(at), then.load(at), otherwise.load(at))
