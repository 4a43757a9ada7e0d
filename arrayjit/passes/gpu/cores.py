"""What a block does around tensor cores: it copies matrices to the memory that its threads share, and goes
through the sums that its threads own.

    for t in block(0, 128, lanes=128): copy(xs[0, t / 4, 8 * (t % 4)], x[...], 8, count)
    barrier(0)
    multiply_matrices(s, ..., xs, 0, ...)
    for t in block(0, 128, lanes=128):
        for m, r, n, c: y[16 * m + 8 * r + ..., 8 * n + ... + c] = s[t, m, n, r, c]

Where sums lie is what `ir/loops` says of `Multiply`. Matrices must lie along memory by one of their own axes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from ...frozen import frozen
from ...ir.conditions import one_of
from ...ir.dtype import F32, I64, DType
from ...ir.expr import Apply, Cast, Const, Expr, Index, Load
from ...ir.index import Affine, Symbol, affine
from ...ir.loops import Bind, Copy, For, If, LoopKind, Stmt, Store, nested
from ...ir.ops import OPS
from ...ir.tensor import Tensor
from ..analysis.copies import Copying
from .slices import block, less, unrolled

__all__ = [
    "LEAST",
    "MOST",
    "PIECE",
    "Bringing",
    "Cell",
    "Matrix",
    "Side",
    "Tile",
    "copying",
    "quotient",
    "starting",
]

PIECE = 16
"""Bytes that are copied at once."""

LEAST = 16
"""Rows, columns or terms of which a product has fewer are no work for tensor cores."""

MOST = 2**31 - 1
"""Cells of matrices whose places are numbers of 32 bits."""

WARP = 32


@frozen
class Side:
    """The rows, or columns, of a tile: those of a loop from number `first` on, of which the last may not
    exist unless tiles are `whole`."""

    loop: For
    first: Affine
    whole: bool

    @staticmethod
    def of(loop: For, first: Affine, size: int) -> Side:
        return Side(loop, first, (loop.trips or 0) % size == 0)

    def at(self, number: Affine) -> dict[Symbol, Affine]:
        """What the loop's symbol is at a row or column of the tile."""
        return {self.loop.symbol: self.loop.lo + self.first + number}

    def within(
        self, number: Affine, body: tuple[Stmt, ...], other: tuple[Stmt, ...] = ()
    ) -> tuple[Stmt, ...]:
        """A body for what exists, another one for what does not."""
        if self.whole:
            return body
        return (If(less(self.first + number, self.loop.trips or 0), body, Copying({}, {}).body(other)),)


Inside = Callable[["Cell"], tuple[Stmt, ...]]
"""What is done for a sum, or for a row."""


@frozen
class Cell:
    """A sum of a thread, in `loops` over all of these; its row within the tile, the column of the `left` one
    of two neighbours, and which of the four threads it is that have the same rows."""

    thread: Symbol
    loops: tuple[For, For, For, For]
    row: Affine
    left: Affine
    sharer: Affine

    @property
    def index(self) -> tuple[Affine, ...]:
        """In a tensor of sums."""
        return (Affine.of(self.thread), *(Affine.of(loop.symbol) for loop in self.loops))

    @property
    def of_row(self) -> tuple[Affine, ...]:
        """In a tensor of something for each of a thread's rows."""
        thread, down, _, half, _ = self.index
        return thread, down, half

    @property
    def column(self) -> Affine:
        return self.left + self.loops[3].symbol


@frozen
class Tile:
    """Rows and columns of a tile, and of the warps that share it; a warp has `high` by `wide` fragments, of
    16 by 8 sums each."""

    warps: tuple[int, int]
    high: int
    wide: int

    @property
    def rows(self) -> int:
        return 16 * self.high * self.warps[0]

    @property
    def columns(self) -> int:
        return 8 * self.wide * self.warps[1]

    @property
    def threads(self) -> int:
        return WARP * self.warps[0] * self.warps[1]

    def __str__(self) -> str:
        return f"{self.rows} by {self.columns}"

    def sums(self, hint: str, dtype: DType = F32) -> Tensor:
        """What the threads own of a tile."""
        return Tensor(hint, affine((self.threads, self.high, self.wide, 2, 2)), dtype)

    def of_rows(self, hint: str, dtype: DType) -> Tensor:
        """Something for each of a thread's rows."""
        return Tensor(hint, affine((self.threads, self.high, 2)), dtype)

    def cell(self, thread: Symbol) -> tuple[tuple[Stmt, ...], Cell]:
        """A sum of a thread, and what tells where it is."""
        loops = (
            unrolled(Symbol("m"), self.high, ()),
            unrolled(Symbol("n"), self.wide, ()),
            unrolled(Symbol("r"), 2, ()),
            unrolled(Symbol("c"), 2, ()),
        )
        warp = Symbol("warp", lower=0, upper=self.warps[0] * self.warps[1])
        line = Symbol("line", lower=0, upper=self.warps[0])
        group = Symbol("g", lower=0, upper=8)
        lane = thread - warp * WARP
        binds: tuple[Stmt, ...] = (
            Bind(warp, quotient(Affine.of(thread), WARP)),
            Bind(line, quotient(Affine.of(warp), self.warps[1])),
            Bind(group, quotient(lane, 4)),
        )
        down, across, half, _ = (loop.symbol for loop in loops)
        row = line * (16 * self.high) + down * 16 + half * 8 + group
        left = (warp - line * self.warps[1]) * (8 * self.wide) + across * 8 + (lane - group * 4) * 2
        return binds, Cell(thread, loops, row, left, lane - group * 4)

    def cells(
        self,
        sides: tuple[Side, Side],
        inside: Inside,
        *,
        other: Inside = lambda cell: (),
        of_row: Inside = lambda cell: (),
        by_pairs: bool = False,
    ) -> For:
        """What is done for each sum of each thread, if its row and its column exist, else `other`; after
        `of_row`, once for a row. Neighbours of a row are done at once if that is asked for."""
        rows, columns = sides

        def body(thread: Symbol) -> tuple[Stmt, ...]:
            binds, cell = self.cell(thread)
            down, across, half, pair = cell.loops
            if by_pairs:
                pair = replace(pair, kind=LoopKind.VECTOR, lanes=2)
                sums = columns.within(cell.left, nested((pair,), inside(cell)), nested((pair,), other(cell)))
            else:
                sums = nested((pair,), columns.within(cell.column, inside(cell), other(cell)))
            some = *of_row(cell), *nested((across,), sums)
            return (
                *binds,
                *nested((down, half), rows.within(cell.row, some, nested((across, pair), other(cell)))),
            )

        return block(self.threads, body)

    def rows_of(self, inside: Inside) -> For:
        """What each thread does for each of its rows."""

        def body(thread: Symbol) -> tuple[Stmt, ...]:
            binds, cell = self.cell(thread)
            return (*binds, *nested((cell.loops[0], cell.loops[2]), inside(cell)))

        return block(self.threads, body)


def starting(tensor: Tensor, start: Const) -> For:
    """What threads own starts from a constant."""

    def body(thread: Symbol) -> tuple[Stmt, ...]:
        loops = tuple(unrolled(Symbol(hint), extent.constant, ())
                      for hint, extent in zip("mnrc", tensor.shape[1:], strict=False))  # fmt: skip
        cell = (Affine.of(thread), *(Affine.of(loop.symbol) for loop in loops))
        return nested(loops, (Store(tensor, cell, start),))

    return block(tensor.shape[0].constant, body)


@frozen
class Matrix:
    """A factor's cells: those at `index` of a tensor, in which `across` is the loop over rows or columns, and
    `along` that over terms; neighbours in memory are neighbours across if `is_across`, else along."""

    tensor: Tensor
    index: tuple[Affine, ...]
    across: For
    along: For
    is_across: bool

    @staticmethod
    def of(expr: Expr, across: For, along: For) -> Matrix | None:
        """What a factor reads, if it is a matrix for tensor cores that lies along memory."""
        load = expr.arg if isinstance(expr, Cast) and expr.dtype is F32 else expr
        if not isinstance(load, Load) or not _is_plain(load.tensor):
            return None
        index = load.index
        places = [
            [at for at, position in enumerate(index) if position.coefficient(loop.symbol)]
            for loop in (across, along)
        ]
        if [len(found) for found in places] != [1, 1] or places[0] == places[1]:
            return None
        (first,), (second,) = places
        steps = index[first].coefficient(across.symbol), index[second].coefficient(along.symbol)
        last = len(index) - 1
        if steps != (1, 1) or last not in (first, second):
            return None
        return Matrix(load.tensor, index, across, along, first == last)

    @property
    def piece(self) -> int:
        """Cells that are copied at once."""
        return PIECE // self.tensor.dtype.itemsize

    def stages(self, count: int, across: int, along: int) -> Tensor:
        """So many tiles in shared memory, as they lie in the factor."""
        tile = (along, across) if self.is_across else (across, along)
        return Tensor(self.tensor.label, affine((count, *tile)), self.tensor.dtype)


@frozen
class Bringing:
    """A tile of a matrix on its way to a stage of shared memory: rows, or columns, from number `across` on,
    and terms from number `along` on."""

    matrix: Matrix
    into: Tensor
    stage: Affine
    across: Affine
    along: Affine

    def copy(self, row: Affine, column: Affine) -> Copy:
        """A piece of the tile, whose first cell is there."""
        matrix = self.matrix
        down, right = (matrix.across, self.across), (matrix.along, self.along)
        if matrix.is_across:
            down, right = right, down
        (rows, first_row), (columns, first_column) = down, right
        at = {rows.symbol: rows.lo + first_row + row, columns.symbol: columns.lo + first_column + column}
        source = tuple(position.substitute(at) for position in matrix.index)
        _, high, wide = (extent.constant for extent in self.into.shape)
        sides = Side.of(rows, first_row, high), Side.of(columns, first_column, wide)
        count = self.existing(*sides, row, column)
        return Copy(self.into, (self.stage, row, column), matrix.tensor, source, matrix.piece, count)

    def existing(self, rows: Side, columns: Side, row: Affine, column: Affine) -> Expr:
        """How many cells exist from a column of a row on."""
        count: Expr = Const(self.matrix.piece, I64)
        if not columns.whole:
            count = Index((columns.loop.trips or 0) - (columns.first + column))
        if rows.whole:
            return count
        exists = less(rows.first + row, rows.loop.trips or 0)
        return one_of(exists, count, Const(0, I64))


def copying(threads: int, tiles: Sequence[Bringing]) -> For:
    """The threads copy tiles, neighbours by neighbouring threads."""

    def body(thread: Symbol) -> tuple[Stmt, ...]:
        binds: dict[int, Bind] = {}
        loops: list[For] = []
        for tile in tiles:
            piece = tile.matrix.piece
            _, high, wide = (extent.constant for extent in tile.into.shape)
            pieces = wide // piece
            lines = threads // pieces
            assert high % lines == 0, f"{tile.into} has no pieces for all of {threads} threads"
            line = Symbol("line", lower=0, upper=lines)
            bind = binds.setdefault(pieces, Bind(line, quotient(Affine.of(thread), pieces)))
            turn = Symbol("u")
            copy = tile.copy(turn * lines + bind.symbol, (thread - bind.symbol * pieces) * piece)
            loops.append(unrolled(turn, high // lines, (copy,)))
        return (*binds.values(), *loops)

    return block(threads, body)


def quotient(value: Affine, divisor: int) -> Expr:
    return Apply(OPS["raw_divide"], (Index(value), Const(divisor, I64)), I64)


def _is_plain(tensor: Tensor) -> bool:
    """Is it an array of float32s or small floats in C order?"""
    dtype = tensor.dtype
    suits = dtype is F32 or (dtype.is_small and dtype.bits == 16)
    fixed = tensor.strides is None and tensor.has_fixed_shape
    return suits and fixed and tensor.size <= MOST
