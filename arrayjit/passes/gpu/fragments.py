"""fragments: products of small floats are formed by tensor cores, a tile of the result by each block.

    for i in parallel(0, 512):              for f in grid(0, 64):           a tile of 64 by 64, at i0 and j0
        for j in parallel(0, 512):              for t in block(0, 128, lanes=128):
            s = 0.0                                 s_[t, ...] = 0.0
            for k in parallel(0, 64):           ...                         slices 0 and 1 are copied
                s += x[i, k] * w[k, j]   ->     barrier(1)                  the first one is there
            y[i, j] = exp(s)                    multiply_matrices(s_, xs, ws, 0, ...)
                                                ...
                                                for t in block(0, 128, lanes=128):
                                                    y[i0 + ..., j0 + ...] = exp(s_[t, ...])

The factors come to shared memory in slices of the depth, STAGES of which are under way or there, so that
copying hides behind multiplying; a slice takes one barrier. Each thread keeps the sums that tensor cores
leave it with, its fragments, in registers, and does with them what is done with a sum. Factors must lie along
memory by their rows, columns or depth. Tiles are large where there are enough for all processors. Products
of float32 are formed so where `fast` has "tf32", in slices of half the terms.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from ...frozen import frozen
from ...ir.code import Caps, GpuCaps
from ...ir.dtype import BOOL, F32, I64
from ...ir.expr import Apply, Cast, Const, Expr, Index, Load
from ...ir.index import Affine, Symbol, affine
from ...ir.loops import (
    Barrier,
    Bind,
    Copy,
    Define,
    For,
    If,
    Kernel,
    LoopKind,
    Multiply,
    Place,
    PlaceKind,
    Stmt,
    Store,
)
from ...ir.ops import OPS
from ...ir.tensor import Tensor
from ...ir.walk import kept, substitute_statements
from ..products import Product, product_of
from .nests import flat, nest_of

__all__ = ["fragments"]

STAGES = 3
"""Slices of the factors in shared memory."""

SLICE = 64
"""Bytes of a slice along the depth."""

PIECE = 16
"""Bytes that are copied at once."""

LEAST = 16
"""Rows, columns or terms of which a product has fewer are no work for tensor cores."""

UNASKED = 'float32 factors keep all their bits, of which tensor cores need fewer: jit(fast="tf32") allows it'

MOST = 2**31 - 1
"""Cells of matrices whose places are numbers of 32 bits."""

ZERO = Affine.of(0)


@frozen
class _Tile:
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
        return 32 * self.warps[0] * self.warps[1]

    @property
    def shared_bytes(self) -> int:
        return STAGES * SLICE * (self.rows + self.columns)

    def __str__(self) -> str:
        return f"{self.rows} by {self.columns}"


TILES = (_Tile((2, 4), 4, 4), _Tile((2, 2), 2, 4), _Tile((1, 2), 2, 2))
"""The largest first."""


def fragments(kernel: Kernel, caps: Caps) -> Kernel:
    """The kernel with its products of small floats, or of float32s if asked, as grids for tensor cores."""
    gpu = caps.gpu
    if gpu is None or not gpu.tensor_cores:
        return kernel
    placement = dict(kernel.placement)
    notes = list(kernel.notes)

    def visit(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        out: list[Stmt] = []
        for stmt in body:
            match stmt:
                case For(kind=LoopKind.SEQUENTIAL, body=inner):
                    new = visit(inner)
                    out.append(stmt if new is inner else replace(stmt, body=new))
                case For(kind=LoopKind.PARALLEL):
                    schedule = _schedule(stmt, gpu)
                    if schedule is None:
                        out.append(stmt)
                    elif schedule.dtype is F32 and "tf32" not in caps.fast:
                        out.append(stmt)
                        notes.append(f"fragments: {schedule.total.label}: {UNASKED}")
                    else:
                        out.append(schedule.grid())
                        placement.update(schedule.places)
                        notes.append(f"fragments: {schedule.note}")
                case _:
                    out.append(stmt)
        return kept(body, out)

    body = visit(kernel.body)
    if len(notes) == len(kernel.notes):
        return kernel
    return replace(kernel, body=body, placement=placement, notes=tuple(notes))


# ---- which products ----------------------------------------------------------------------------------


@frozen
class _Factor:
    """A factor's cells: those at `index` of a tensor, in which `across` is the symbol of rows or of columns;
    neighbours in memory are neighbours along it if it is turned, else along the depth."""

    tensor: Tensor
    index: tuple[Affine, ...]
    across: For
    is_across: bool


def _schedule(stmt: For, gpu: GpuCaps) -> _Schedule | None:
    """How tensor cores form what a statement is, if they can."""
    product = product_of(stmt)
    if product is None or product.within is not None or len(product.sums) != 1:
        return None
    (total,) = product.sums
    if len(total.terms) != 1 or total.variable.dtype is not F32 or not isinstance(total.start, Const):
        return None
    if not total.update.contract or not all(
        loop.lo.is_constant and loop.step == 1 for loop in product.around
    ):
        return None
    left = _factor(total.left, product.rows, total.terms[0])
    right = _factor(total.right, product.columns, total.terms[0])
    if left is None or right is None or left.tensor.dtype is not right.tensor.dtype:
        return None
    extents = [loop.trips or 0 for loop in (product.rows, product.columns, total.terms[0])]
    around = math.prod(loop.trips or 0 for loop in product.around)
    if min(extents) < LEAST or not 0 < around * extents[0] * extents[1] <= MOST:
        return None
    tile = _chosen(extents[0], extents[1], around, gpu)
    return None if tile is None else _Schedule(product, total.terms[0], left, right, total.start, tile)


def _factor(expr: Expr, across: For, along: For) -> _Factor | None:
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
    return _Factor(load.tensor, index, across, first == last)


def _is_plain(tensor: Tensor) -> bool:
    """Is it an array of float32s or small floats in C order?"""
    dtype = tensor.dtype
    suits = dtype is F32 or (dtype.is_small and dtype.bits == 16)
    fixed = tensor.strides is None and all(extent.is_constant for extent in tensor.shape)
    return suits and fixed and tensor.size <= MOST


def _chosen(rows: int, columns: int, around: int, gpu: GpuCaps) -> _Tile | None:
    """The largest tile of which there are enough for all processors; else the smallest."""
    best = None
    for tile in TILES:
        if tile.shared_bytes > gpu.shared_bytes:
            continue
        best = tile
        blocks = around * -(-rows // tile.rows) * -(-columns // tile.columns)
        if blocks >= gpu.processors:
            break
    return best


# ---- how ---------------------------------------------------------------------------------------------


class _Schedule:
    """A product in tiles. `first_row` and `first_column` are the numbers of a tile's first row and column."""

    def __init__(
        self, product: Product, depth: For, left: _Factor, right: _Factor, start: Const, tile: _Tile
    ) -> None:
        self.product = product
        self.depth = depth
        self.start = start
        self.tile = tile
        self.factors = left, right
        self.dtype = left.tensor.dtype
        self.piece = PIECE * 8 // self.dtype.bits
        self.terms = SLICE * 8 // self.dtype.bits
        variable = product.sums[0].variable
        shape = (tile.threads, tile.high, tile.wide, 2, 2)
        self.total = Tensor(variable.hint, affine(shape), F32)
        self.slices = self.slice_of(left, tile.rows), self.slice_of(right, tile.columns)
        rows, columns = product.rows.trips or 0, product.columns.trips or 0
        self.row_tiles = _tiles(product.rows.symbol.hint, rows, tile.rows)
        self.column_tiles = _tiles(product.columns.symbol.hint, columns, tile.columns)
        self.first_row = self.row_tiles.symbol * tile.rows
        self.first_column = self.column_tiles.symbol * tile.columns

    @property
    def places(self) -> dict[Tensor, Place]:
        """Where the temporaries live."""
        shared = Place(PlaceKind.SHARED, "tensor cores read slices of factors there")
        own = Place(PlaceKind.OWN, "tensor cores leave each thread its fragments")
        return {self.total: own, self.slices[0]: shared, self.slices[1]: shared}

    @property
    def note(self) -> str:
        kind = "float32 as tf32" if self.dtype is F32 else self.dtype.name
        return f"{self.total.label}: tensor cores multiply {kind}, a block for each tile of {self.tile}"

    def grid(self) -> For:
        """A block for each tile."""
        loops = (*self.product.around, self.row_tiles, self.column_tiles)
        body: tuple[Stmt, ...] = (self.starting(), *self.summing(), self.ending())
        for loop in reversed(loops):
            body = (replace(loop, body=body),)
        (nest,) = body
        assert isinstance(nest, For)
        return replace(flat(nest_of(nest)), kind=LoopKind.GRID)

    def by_threads(self, symbol: Symbol, *body: Stmt) -> For:
        count = self.tile.threads
        return For(symbol, ZERO, Affine.of(count), body, LoopKind.BLOCK, lanes=count)

    def starting(self) -> For:
        thread, cell, around = self.cell()
        return self.by_threads(thread, _nested(around, (Store(self.total, cell, self.start),)))

    def cell(self) -> tuple[Symbol, tuple[Affine, ...], tuple[For, ...]]:
        """A thread, one of its sums, and the loops over all of these."""
        thread = Symbol("t", lower=0, upper=self.tile.threads)
        loops = tuple(
            For(Symbol(hint), ZERO, extent, (), LoopKind.UNROLLED)
            for hint, extent in zip("mnrc", self.total.shape[1:], strict=True)
        )
        return thread, (Affine.of(thread), *(Affine.of(loop.symbol) for loop in loops)), loops

    # slices

    def slice_of(self, factor: _Factor, extent: int) -> Tensor:
        """A factor's slices in shared memory, as they lie in the factor."""
        matrix = (self.terms, extent) if factor.is_across else (extent, self.terms)
        return Tensor(factor.tensor.label, affine((STAGES, *matrix)), self.dtype)

    def summing(self) -> list[Stmt]:
        """Slice after slice: while tensor cores multiply one, the next ones are copied."""
        count = -(-(self.depth.trips or 0) // self.terms)
        first = Affine.of(0)
        out: list[Stmt] = [self.copying(first, number) for number in range(min(STAGES - 1, count))]
        rounds = max(count - (STAGES - 1), 0) // STAGES
        if rounds:
            turn = Symbol("s", lower=0, upper=rounds * STAGES)
            body = [stmt for n in range(STAGES) for stmt in self.slice(Affine.of(turn), n, count=None)]
            out.append(For(turn, ZERO, Affine.of(rounds * STAGES), tuple(body), step=STAGES))
        for number in range(rounds * STAGES, count):
            out += self.slice(first, number, count)
        return out

    def slice(self, first: Affine, number: int, count: int | None) -> list[Stmt]:
        """Multiply the slice of a number after the first; `count` is how many there are, if that matters."""
        ahead = STAGES - 2 if count is None else min(STAGES - 2, count - 1 - number)
        out: list[Stmt] = [Barrier(pending=ahead)]
        if count is None or number + STAGES - 1 < count:
            out.append(self.copying(first, number + STAGES - 1))
        left, right = self.factors
        turned = left.is_across, not right.is_across
        stage = Affine.of(number % STAGES)
        out.append(Multiply(self.total, *self.slices, stage, turned, self.tile.warps))
        return out

    def copying(self, first: Affine, number: int) -> For:
        """The threads copy the slice of a number after the first, neighbours by neighbouring threads."""
        thread = Symbol("t", lower=0, upper=self.tile.threads)
        stage, depth = Affine.of(number % STAGES), (first + number) * self.terms
        binds: dict[int, Bind] = {}
        loops: list[For] = []
        starts = self.first_row, self.first_column
        for factor, into, start in zip(self.factors, self.slices, starts, strict=True):
            _, high, wide = (extent.constant for extent in into.shape)
            pieces = wide // self.piece
            lines = self.tile.threads // pieces
            line = Symbol("line", lower=0, upper=lines)
            bind = binds.setdefault(pieces, Bind(line, _quotient(Affine.of(thread), pieces)))
            turn = Symbol("u")
            row, column = turn * lines + bind.symbol, (thread - bind.symbol * pieces) * self.piece
            copy = self.copy(factor, into, (stage, row, column), start, depth)
            loops.append(For(turn, ZERO, Affine.of(high // lines), (copy,), LoopKind.UNROLLED))
        return self.by_threads(thread, *binds.values(), *loops)

    def copy(
        self, factor: _Factor, into: Tensor, cell: tuple[Affine, ...], start: Affine, depth: Affine
    ) -> Copy:
        """A piece of a slice whose first cell is that row or column of a factor, at that depth."""
        loops = (self.depth, factor.across) if factor.is_across else (factor.across, self.depth)
        row, column = cell[1:]
        row, column = (row + depth, column + start) if factor.is_across else (row + start, column + depth)
        at = {loops[0].symbol: loops[0].lo + row, loops[1].symbol: loops[1].lo + column}
        source = tuple(position.substitute(at) for position in factor.index)
        count = _existing(row, loops[0], column, loops[1], into, self.piece)
        return Copy(into, cell, factor.tensor, source, self.piece, count)

    # what is done with sums

    def ending(self) -> For:
        """Each thread does with its sums what is done with a sum."""
        thread, cell, (down, across, half, pair) = self.cell()
        warps, tile = self.tile.warps, self.tile
        warp = Symbol("warp", lower=0, upper=warps[0] * warps[1])
        line = Symbol("line", lower=0, upper=warps[0])
        group = Symbol("g", lower=0, upper=8)
        lane = thread - warp * 32
        binds = (
            Bind(warp, _quotient(Affine.of(thread), 32)),
            Bind(line, _quotient(Affine.of(warp), warps[1])),
            Bind(group, _quotient(lane, 4)),
        )
        row = self.first_row + line * (16 * tile.high) + down.symbol * 16 + half.symbol * 8 + group
        column = (
            self.first_column
            + (warp - line * warps[1]) * (8 * tile.wide)
            + across.symbol * 8
            + (lane - group * 4) * 2
        )
        rows, columns = self.product.rows, self.product.columns
        at = {rows.symbol: rows.lo + row, columns.symbol: columns.lo + column + pair.symbol}
        inner = self.done_with(cell, at)
        if (columns.trips or 0) % 2:
            inner = (_nested((pair,), _within(column + pair.symbol, columns, tile.columns, inner)),)
        else:
            neighbours = replace(pair, kind=LoopKind.VECTOR, lanes=2)
            inner = _within(column, columns, tile.columns, (_nested((neighbours,), inner),))
        inner = _within(row, rows, tile.rows, (_nested((across,), inner),))
        return self.by_threads(thread, *binds, _nested((down, half), inner))

    def done_with(self, cell: tuple[Affine, ...], at: dict[Symbol, Affine]) -> tuple[Stmt, ...]:
        """The epilogue for one sum."""
        variable = self.product.sums[0].variable
        body = tuple(
            Define(variable, Load(self.total, cell))
            if isinstance(stmt, Define) and stmt.variable is variable
            else stmt
            for stmt in self.product.epilogue
        )
        return substitute_statements(body, at)


def _tiles(hint: str, extent: int, each: int) -> For:
    """A loop over tiles along one axis."""
    count = -(-extent // each)
    return For(Symbol(hint, lower=0, upper=count), ZERO, Affine.of(count), (), LoopKind.PARALLEL)


def _nested(loops: Sequence[For], body: tuple[Stmt, ...]) -> For:
    for loop in reversed(loops):
        body = (replace(loop, body=body),)
    (nest,) = body
    assert isinstance(nest, For)
    return nest


def _quotient(value: Affine, divisor: int) -> Expr:
    return Apply(OPS["raw_divide"], (Index(value), Const(divisor, I64)), I64)


def _within(number: Affine, loop: For, each: int, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """A body for the rows or columns that exist; all do in whole tiles."""
    extent = loop.trips or 0
    return body if extent % each == 0 else (If(_less(number, extent), body),)


def _less(number: Affine, extent: int) -> Expr:
    return Apply(OPS["less"], (Index(number), Const(extent, I64)), BOOL)


def _existing(row: Affine, rows: For, column: Affine, columns: For, into: Tensor, piece: int) -> Expr:
    """How many cells of a factor exist from a column of a row on; all do if whole tiles fill it."""
    _, high, wide = (extent.constant for extent in into.shape)
    extents = rows.trips or 0, columns.trips or 0
    count: Expr = Const(piece, I64) if extents[1] % wide == 0 else Index(extents[1] - column)
    if extents[0] % high == 0:
        return count
    return Apply(OPS["where"], (_less(row, extents[0]), count, Const(0, I64)), I64)
