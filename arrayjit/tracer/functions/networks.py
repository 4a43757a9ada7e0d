"""Sorting a row by exchanges that go in vectors: pieces of a power of two of cells lie in columns, which are
sorted and merged bitonically; so are the pieces.

    t[j, r] = x[16 * j + r]                            for j in m, r in 16; odd columns are to descend
    sort the columns, 8 cells at a time                as in `exchanges`, whose lanes are rows
    for phase in 1, 2, 3, 4:                           2 ** phase columns are as one, first up, then down
        u = t, blocks of 16 x 16 transposed            then neighbours in a row are columns of `u`
        exchange in `u` columns that are 2 ** (phase - 1), ..., 2, 1 apart, and in each far rows of `t`
        t = u, transposed back
        exchange 16 neighbouring rows of `t`
    x[m * r + j] = t[j, r]

    for size in 2, 4, ... pieces:                      rows of `y` are 16 neighbours in the order of `x`
        exchange rows of `y` that are as far from one end of `size` pieces as from the other
        exchange rows that are half as far apart, and so on
        in each piece: the same in blocks of 16 x 16, transposed, between neighbours in a row

Cells that are to descend have their bits inverted: all exchanges go up. Of pieces that are merged each second
one has its rows backwards, since its last row meets the first one's first.

Each exchange is of whole vectors, and which cells meet does not depend on the cells: there are no branches to
guess. What a step goes through again, since three distances are one step, is in order already. How far steps
go is computed, so that a program of a few loops sorts any number of cells.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ...frozen import frozen, frozen_by_identity
from ...ir.conditions import compare, one_of
from ...ir.dtype import I64, DType, Kind, named
from ...ir.expr import Apply, Cast, Const, Expr, Index, dtype_of
from ...ir.index import Affine, Symbol
from ...ir.ops import op
from ..record.trace import Trace, current_trace
from ..record.view import View
from ..values.array import SymbolicArray
from ..values.elementwise import always
from .exchanges import halving, loaded, ordered, sorting_pairs
from .keys import MOST_NUMBERED, key_with_place, numbered_type, place_of
from .selection import last_key

__all__ = ["places_by_network", "sort_by_network", "work_of_network"]

_BITS = 3
_HELD = 1 << _BITS
"""Rows that are exchanged in registers. Of 16, steps are fewer, and take 0.95 of the time, but twice as long
to compile."""

_LOW = 16
"""Rows that are transposed together."""

_FEW = 128
"""Of so many cells there are 8 columns."""

_PIECE_BYTES = 1 << 14
"""Of a piece: it lies three times in the memory next to the processor."""

_MOST_BYTES = 1 << 19
"""Of all cells: each merging goes through them, and beyond the second cache digits take less."""

_WIDE, _WIDENED = 1.5, 1.2
"""Integers of 64 bits are compared by more than one instruction, or a slow one, but on Zen 5; narrow ones are
copied."""


def work_of_network(keys: DType, length: int, with_places: bool = False) -> float:
    """The cycles that it takes to sort a row of so many keys, roughly, or the places of their cells, if keys
    can take these along."""
    moved = numbered_type(keys) if with_places else _wide(keys)
    if moved is None or length * moved.itemsize > _MOST_BYTES or (with_places and length > MOST_NUMBERED):
        return float("inf")
    work = _Cut.of(moved, length).steps * moved.itemsize / 200
    if moved.bits > 32:
        return _WIDE * work
    return work if with_places or moved is keys else _WIDENED * work


def _wide(keys: DType) -> DType:
    """What keys go as: lanes narrower than 32 bits take longer to transpose than wider ones to copy."""
    return keys if keys.bits >= 32 else named("i32" if keys.kind is Kind.INT else "u32")


@frozen
class _Cut:
    """How a row is cut: in `pieces` of so many cells, those in so many columns."""

    cells: int
    pieces: int
    columns: int

    @staticmethod
    def of(dtype: DType, length: int) -> _Cut:
        """With the least work: of long rows, the last piece is nearly full if pieces are small."""
        if length <= _FEW:
            return _Cut(_FEW, 1, 8)
        most = _PIECE_BYTES // dtype.itemsize
        sizes = (1 << bits for bits in range(_FEW.bit_length(), most.bit_length()))
        return min((_Cut(size, -(-length // size), 16) for size in sizes), key=lambda cut: cut.steps)

    @property
    def merges(self) -> int:
        """How often two pieces become one."""
        return (self.pieces - 1).bit_length()

    @property
    def steps(self) -> int:
        """What is done with each cell: each of so many exchanges, and so much else."""
        bits = self.cells.bit_length() - 1
        return self.pieces * self.cells * (140 + bits * (bits + 1) // 2 + 42 * self.merges)


def sort_by_network(keys: SymbolicArray) -> SymbolicArray:
    """The rows of keys, of a known length, in order."""
    trace, cells, dtype, wide = current_trace(), keys.cells, keys.element_type, _wide(keys.element_type)
    if wide is dtype:
        return SymbolicArray(_sorted(cells), trace)
    found = _sorted(trace.compute(cells.shape, wide, lambda at: Cast(cells.load(at), wide)))
    return SymbolicArray(trace.compute(cells.shape, dtype, lambda at: Cast(found.load(at), dtype)), trace)


def places_by_network(keys: SymbolicArray) -> SymbolicArray:
    """For each row of keys, of a known length, where these stand, in their order."""
    trace, cells, numbered = current_trace(), keys.cells, numbered_type(keys.element_type)
    assert numbered is not None
    numbers = trace.compute(cells.shape, numbered, lambda at: key_with_place(cells.load(at), at[1]))
    found = _sorted(numbers)
    return SymbolicArray(trace.compute(cells.shape, I64, lambda at: place_of(found.load(at))), trace)


def _sorted(keys: View) -> View:
    trace, dtype = current_trace(), keys.tensor.dtype
    count, length = (extent.constant for extent in keys.shape)
    cut = _Cut.of(dtype, length)
    height = (cut.cells << cut.merges) // cut.columns
    found = trace.window((count, length), dtype, "found")
    with trace.loop(0, count) as here:
        row = trace.window((height, cut.columns), dtype, "row")
        for place in _boxes(cut.columns, 0, length):
            trace.store(place.of_row(row), place.of_cells(keys.part(here), cut.columns).load)
        for place in _boxes(cut.columns, length, height * cut.columns):
            trace.store(place.of_row(row), lambda _: Const(last_key(dtype), dtype))
        _Row.of(trace, cut, row).sort()
        for place in _boxes(cut.columns, 0, length):
            trace.store(place.of_cells(found.part(here), cut.columns), place.of_row(row).load)
    return found


@frozen
class _Box:
    """So many cells, from one on, of each of so many rows."""

    top: int
    height: int
    left: int
    width: int

    def of_row(self, row: View) -> View:
        j, c = Symbol("j"), Symbol("c")
        return row.remap(
            (self.height, self.width), (j, c), (Affine.of(j) + self.top, Affine.of(c) + self.left)
        )

    def of_cells(self, cells: View, columns: int) -> View:
        """The same of cells in order, each row of which has so many columns."""
        j, c = Symbol("j"), Symbol("c")
        position = (Affine.of(j) + self.top) * columns + Affine.of(c) + self.left
        return cells.remap((self.height, self.width), (j, c), (position,))


def _boxes(columns: int, first: int, last: int) -> Iterator[_Box]:
    """The cells between two numbers: those that end a row, whole rows, and those that begin one."""
    top, bottom = -(-first // columns), last // columns
    if first % columns:
        yield _Box(top - 1, 1, first % columns, columns - first % columns)
    if top < bottom:
        yield _Box(top, bottom - top, 0, columns)
    if last % columns:
        yield _Box(bottom, 1, 0, last % columns)


@frozen_by_identity
class _Row:
    """A row as `whole`, in which neighbours stand side by side; a piece of it in `columns`; and that with
    blocks transposed, as `across`."""

    trace: Trace
    cut: _Cut
    whole: View
    columns: View
    across: View

    @staticmethod
    def of(trace: Trace, cut: _Cut, whole: View) -> _Row:
        dtype = whole.tensor.dtype
        columns = trace.window((cut.cells // cut.columns, cut.columns), dtype, "columns")
        return _Row(trace, cut, whole, columns, trace.window((cut.cells // _LOW, _LOW), dtype, "across"))

    @property
    def height(self) -> int:
        """The rows of a piece."""
        return self.cut.cells // self.cut.columns

    def sort(self) -> None:
        trace, columns, width = self.trace, self.columns, self.cut.columns
        high = self.height // width
        with trace.loop(0, self.cut.pieces) as number:
            piece = self._piece(number)
            self._turn(piece, Affine.of(0))
            self._sort_columns()
            self._turn(columns, Affine.of(1))
            self._merge_columns(number)
            r, j, k = (Symbol(name) for name in "rjk")
            ordered = piece.remap((width, high, width), (r, j, k), (Affine.of(r) * high + j, k))
            trace.store(ordered, lambda at: columns.load((at[1] * width + at[2], at[0])))
        if self.cut.merges:
            with trace.loop(1, self.cut.merges + 1) as phase:
                self._merge_pieces(phase)

    def _piece(self, number: Affine) -> View:
        j, r = Symbol("j"), Symbol("r")
        shape = (self.height, self.cut.columns)
        return self.whole.remap(shape, (j, r), (number * self.height + j, r))

    def _turn(self, source: View, phase: Affine) -> None:
        """Invert the columns that change between up and down as a phase begins."""
        masks = self._masks(phase)
        self.trace.store(self.columns, lambda at: _turned(source.load(at), masks.load(at[1:])))

    def _masks(self, phase: Affine) -> View:
        """For each column, what it is turned by: in a phase those go down whose bit of that number is set."""
        dtype = self.columns.tensor.dtype

        inverted = Const(-1 if dtype.kind is Kind.INT else (1 << dtype.bits) - 1, dtype)

        def mask(at: tuple[Affine, ...]) -> Expr:
            bits = _of("bitwise_xor", Index(at[0]), Index(at[0] * 2))
            bit = _of("bitwise_and", _of("raw_right_shift", bits, Index(phase)), 1)
            return one_of(compare("not_equal", bit, Const(0, I64)), inverted, Const(0, dtype))

        return self.trace.compute((self.cut.columns,), dtype, mask, label="masks")

    def _sort_columns(self) -> None:
        trace, bits = self.trace, _log(self.height)
        with trace.loop(0, self.height // _HELD) as block:
            _exchange(trace, self.columns, _from(block * _HELD, _HELD), sorting_pairs(_HELD))
        with trace.loop(_BITS + 1, bits + 1) as size:
            _meet(trace, self.columns, Index(size - _BITS))
            _halve_down(trace, self.columns, size - _BITS)

    def _merge_columns(self, number: Affine) -> None:
        """Make the columns one: of two that are as one before, one goes up and one down."""
        trace, width, high = self.trace, self.cut.columns, self.height // _LOW
        last, far = _log(width), _log(high)
        first = min(max(1, _BITS - far), last + 1)
        for early in range(1, first):  # of fewer distances than are one step
            self._transpose(self.columns, high, 1)
            _halve(trace, self.across, Const(0, I64), 1 << early + far)
            self._transpose_back(self.columns, high, 1)
            self._merge_near(Affine.of(early), number)
        with trace.loop(first, last + 1) as phase:
            self._transpose(self.columns, high, 1)
            _halve_down(trace, self.across, phase + far)
            self._transpose_back(self.columns, high, 1)
            self._merge_near(phase, number)

    def _transpose(self, rows: View, far: int, near: int) -> None:
        """Blocks of the rows to `across`: columns of one are `far` rows apart, those of two blocks `near`."""
        a, q, v = (Symbol(name) for name in "aqv")
        shape = (self.height // _LOW, self.cut.columns, _LOW)
        target = self.across.remap(shape, (a, q, v), (Affine.of(q) * far + Affine.of(a) * near, v))
        self.trace.store(target, rows.remap(shape, (a, q, v), (Affine.of(a) * _LOW + v, q)).load)

    def _transpose_back(self, rows: View, far: int, near: int) -> None:
        a, v, q = (Symbol(name) for name in "avq")
        shape = (self.height // _LOW, _LOW, self.cut.columns)
        source = self.across.remap(shape, (a, v, q), (Affine.of(q) * far + Affine.of(a) * near, v))
        self.trace.store(rows.remap(shape, (a, v, q), (Affine.of(a) * _LOW + v, q)), source.load)

    def _merge_near(self, phase: Affine, number: Affine) -> None:
        """Merge neighbouring rows of columns, which are then turned for the next phase; after the last one,
        those of a piece that is to be backwards change places."""
        trace, columns, last = self.trace, self.columns, _log(self.cut.columns)
        masks = self._masks(phase + 1)
        is_last = _of("floor_divide", Index(phase), last)
        start, step = self._direction(_of("bitwise_and", is_last, Index(number)))
        with trace.loop(0, self.height // _LOW) as block:
            targets = _from(block * _LOW + start, _LOW, step)
            _exchange(trace, columns, _from(block * _LOW, _LOW), list(halving(_LOW)), targets, masks)

    def _direction(self, number: Expr) -> tuple[Affine, Affine]:
        """Where a row starts, and its step: backwards, if the number is odd."""
        if not self.cut.merges:
            return Affine.of(0), Affine.of(1)
        trace, odd, last = self.trace, _of("bitwise_and", number, 1), self.cut.columns - 1
        start = trace.bind(_of("multiply", odd, last), 0, last + 1)
        return start, trace.bind(_of("subtract", 1, _of("multiply", odd, 2)), -1, 2)

    def _merge_pieces(self, phase: Affine) -> None:
        """Make groups of 2 ** phase pieces one, of which each half is in order: the second one backwards in
        its rows."""
        trace, bits, filled = self.trace, _log(self.height), self.cut.pieces * self.height
        _meet(trace, self.whole, Index(phase + bits - _BITS), filled)
        left = phase + bits - _BITS
        beyond = _of("maximum", Index(phase - 1), _BITS - 1)
        steps = trace.bind(_of("floor_divide", beyond, _BITS), 0, bits)
        with trace.loop(0, steps) as step:
            _halve(trace, self.whole, Index(left - _BITS - step * _BITS), filled=filled)
        with trace.loop(0, self.cut.pieces) as number:
            piece = self._piece(number)
            _halve_down(trace, piece, left - steps * _BITS)
            self._merge_rows(
                piece, *(_of("raw_right_shift", Index(number), Index(n)) for n in (phase - 1, phase))
            )

    def _merge_rows(self, piece: View, before: Expr, after: Expr) -> None:
        """Put each row in order. They are backwards if the first number is odd, and then if the second one
        is."""
        trace, width = self.trace, self.cut.columns
        self._transpose(piece, 1, width)
        old, new = self._direction(before), self._direction(after)
        with trace.loop(0, self.height // _LOW) as block:
            places, targets = (_from(block * width + start, width, step) for start, step in (old, new))
            _exchange(trace, self.across, places, list(halving(width)), targets)
        self._transpose_back(piece, 1, width)


def _halve_down(trace: Trace, array: View, bits: Affine) -> None:
    """Exchange rows that are half of 1 << bits apart, then half of that, and so on; the last steps go through
    distances again if there are fewer left than go in one."""
    steps = trace.bind(_of("floor_divide", Index(bits + _BITS - 1), _BITS), 0, array.shape[0].constant)
    with trace.loop(0, steps) as step:
        _halve(trace, array, _of("maximum", Index(bits - _BITS - step * _BITS), 0))


def _halve(trace: Trace, array: View, shift: Expr, many: int = _HELD, filled: int | None = None) -> None:
    """Exchange so many rows that are 1 << shift apart: those half of them apart, and so on. Behind those that
    are filled, nothing is out of order."""
    with _groups(trace, array.shape[0].constant, shift, many, filled) as (apart, block, start):
        first = trace.bind(_of("add", block, start), 0, array.shape[0].constant)
        _exchange(trace, array, _from(first, many, apart), list(halving(many)))


def _meet(trace: Trace, array: View, shift: Expr, filled: int | None = None) -> None:
    """Exchange rows of blocks of 8 << shift: first those that are as far from one end of the block as from
    the other, then those that are a quarter of it apart, and an eighth."""
    rows, half = array.shape[0].constant, _HELD // 2
    with _groups(trace, rows, shift, _HELD, filled) as (apart, block, start):
        first = trace.bind(_of("add", block, start), 0, rows)
        last = trace.bind(_of("subtract", block, start), -rows, rows)
        places = _from(first, half, apart) + _from(last + apart * _HELD - 1, half, apart * -1)
        later = [pair for n, m in halving(half) for pair in ((n, m), (m + half, n + half))]
        _exchange(trace, array, places, [*((n, n + half) for n in range(half)), *later])


@contextmanager
def _groups(
    trace: Trace, rows: int, shift: Expr, many: int, filled: int | None
) -> Iterator[tuple[Affine, Expr, Expr]]:
    """A loop over groups of so many rows that are 1 << shift apart: how far that is, in which block of rows a
    group is, and where it starts there."""
    bits, most = _log(many), rows // many
    apart = trace.bind(_of("raw_left_shift", 1, shift), 1, most + 1)
    number = Affine.of(most)
    if filled is not None:
        whole = _of("raw_left_shift", _of("raw_right_shift", filled, _of("add", shift, bits)), shift)
        rest = _of("bitwise_and", filled, Index(apart * many - 1))
        number = trace.bind(_of("add", whole, _of("minimum", rest, Index(apart))), 0, most + 1)
    with trace.loop(0, number) as group:
        block = _of("raw_left_shift", _of("raw_right_shift", Index(group), shift), _of("add", shift, bits))
        yield apart, block, _of("bitwise_and", Index(group), Index(apart - 1))


def _exchange(
    trace: Trace,
    array: View,
    places: Sequence[Affine],
    pairs: Sequence[tuple[int, int]],
    targets: Sequence[Affine] = (),
    masks: View | None = None,
) -> None:
    """Put pairs of rows in order, in registers; store them in their places or at targets, turned by masks."""
    with trace.loop(0, array.shape[1]) as lane:
        cells = [[loaded(trace, array.remap((), (), (place, lane)))] for place in places]
        for one, other in pairs:
            cells[one], cells[other] = ordered(trace, [cells[one], cells[other]])
        for place, (cell,) in zip(targets or places, cells, strict=True):
            value = cell.load(())
            kept = _turned(value, masks.load((lane,))) if masks else value
            trace.store(array.remap((), (), (place, lane)), always(kept))


def _from(first: Affine, many: int, step: Affine | int = 1) -> list[Affine]:
    return [first + Affine.of(step) * n for n in range(many)]


def _turned(value: Expr, mask: Expr) -> Expr:
    return Apply(op("bitwise_xor"), (value, mask), dtype_of(value))


def _of(name: str, one: Expr | int, other: Expr | int) -> Expr:
    args = tuple(Const(arg, I64) if isinstance(arg, int) else arg for arg in (one, other))
    return Apply(op(name), args, I64)


def _log(number: int) -> int:
    return number.bit_length() - 1
