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
from dataclasses import replace

from ...ir.code import Caps, GpuCaps
from ...ir.dtype import F32
from ...ir.expr import Const, Load
from ...ir.index import Affine, Symbol
from ...ir.loops import Barrier, Define, For, Kernel, LoopKind, Multiply, Place, PlaceKind, Stmt, nested
from ...ir.tensor import Tensor
from ...ir.walk import kept, substitute_statements
from ..products.products import Product, product_of
from .cores import LEAST, MOST, Bringing, Cell, Matrix, Side, Tile, copying, starting
from .nests import flat, nest_of
from .tiling import tiles_of

__all__ = ["fragments"]

STAGES = 3
"""Slices of the factors in shared memory."""

SLICE = 64
"""Bytes of a slice along the depth."""

UNASKED = 'float32 factors keep all their bits, of which tensor cores need fewer: jit(fast="tf32") allows it'

ZERO = Affine.of(0)


TILES = (Tile((2, 4), 4, 4), Tile((2, 2), 2, 4), Tile((1, 2), 2, 2))
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
    left = Matrix.of(total.left, product.rows, total.terms[0])
    right = Matrix.of(total.right, product.columns, total.terms[0])
    if left is None or right is None or left.tensor.dtype is not right.tensor.dtype:
        return None
    extents = [loop.trips or 0 for loop in (product.rows, product.columns, total.terms[0])]
    around = math.prod(loop.trips or 0 for loop in product.around)
    if min(extents) < LEAST or not 0 < around * extents[0] * extents[1] <= MOST:
        return None
    tile = _chosen(extents[0], extents[1], around, gpu)
    return None if tile is None else _Schedule(product, total.terms[0], (left, right), total.start, tile)


def _chosen(rows: int, columns: int, around: int, gpu: GpuCaps) -> Tile | None:
    """The largest tile of which there are enough for all processors; else the smallest."""
    best = None
    for tile in TILES:
        if STAGES * SLICE * (tile.rows + tile.columns) > gpu.shared_bytes:
            continue
        best = tile
        blocks = around * -(-rows // tile.rows) * -(-columns // tile.columns)
        if blocks >= gpu.processors:
            break
    return best


# ---- how ---------------------------------------------------------------------------------------------


class _Schedule:
    """A product in tiles, whose factors are matrices of rows and of columns."""

    def __init__(
        self, product: Product, depth: For, factors: tuple[Matrix, Matrix], start: Const, tile: Tile
    ) -> None:
        self.product = product
        self.depth = depth
        self.factors = factors
        self.start = start
        self.tile = tile
        self.dtype = factors[0].tensor.dtype
        self.terms = SLICE // self.dtype.itemsize
        self.total = tile.sums(product.sums[0].variable.hint)
        sizes = tile.rows, tile.columns
        self.slices = tuple(
            factor.stages(STAGES, size, self.terms) for factor, size in zip(factors, sizes, strict=True)
        )
        self.tiles = tiles_of(product.rows, tile.rows), tiles_of(product.columns, tile.columns)
        rows, columns = (loop.symbol * size for loop, size in zip(self.tiles, sizes, strict=True))
        self.sides = Side.of(product.rows, rows, tile.rows), Side.of(product.columns, columns, tile.columns)

    @property
    def places(self) -> dict[Tensor, Place]:
        """Where the temporaries live."""
        shared = Place(PlaceKind.SHARED, "tensor cores read slices of factors there")
        own = Place(PlaceKind.OWN, "tensor cores leave each thread its fragments")
        return {self.total: own, **dict.fromkeys(self.slices, shared)}

    @property
    def note(self) -> str:
        kind = "float32 as tf32" if self.dtype is F32 else self.dtype.name
        return f"{self.total.label}: tensor cores multiply {kind}, a block for each tile of {self.tile}"

    def grid(self) -> For:
        """A block for each tile."""
        body = (starting(self.total, self.start), *self.summing(), self.ending())
        (nest,) = nested((*self.product.around, *self.tiles), body)
        assert isinstance(nest, For)
        return replace(flat(nest_of(nest)), kind=LoopKind.GRID)

    # slices

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
        first_slice, second_slice = self.slices
        out.append(Multiply(self.total, first_slice, second_slice, stage, turned, self.tile.warps))
        return out

    def copying(self, first: Affine, number: int) -> For:
        """The threads copy the slice of a number after the first."""
        stage, depth = Affine.of(number % STAGES), (first + number) * self.terms
        tiles = [
            Bringing(factor, into, stage, side.first, depth)
            for factor, into, side in zip(self.factors, self.slices, self.sides, strict=True)
        ]
        return copying(self.tile.threads, tiles)

    # what is done with sums

    def ending(self) -> For:
        """Each thread does with its sums what is done with a sum."""
        by_pairs = (self.product.columns.trips or 0) % 2 == 0
        return self.tile.cells(self.sides, self.done_with, by_pairs=by_pairs)

    def done_with(self, cell: Cell) -> tuple[Stmt, ...]:
        """The epilogue for one sum."""
        variable = self.product.sums[0].variable
        body = tuple(
            Define(variable, Load(self.total, cell.index))
            if isinstance(stmt, Define) and stmt.variable is variable
            else stmt
            for stmt in self.product.epilogue
        )
        rows, columns = self.sides
        return substitute_statements(body, {**rows.at(cell.row), **columns.at(cell.column)})
