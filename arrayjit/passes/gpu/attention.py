"""Two products and the weights between them, as the loops of a grid: what a block does for a tile of rows.

    for g in grid(0, 64):                                   rows 64*g ... of the scores
        for r in block(0, 64, lanes=256): maxima[r] = -inf, totals[r] = 0.0
        for t in block(0, 256, lanes=256): o[t, ...] = 0.0
        for c in sequential(0, 8):                          columns 64*c ... of the scores
            ...                                             their sums, s[t, ...], slice by slice
            for t in block(...): s[t, ...] = multiply(s[t, ...], 0.125), parts[..., r] = maxima of these
            barrier()
            for r in block(0, 64, lanes=256):
                m = maximum(maxima[r], parts[0, r], ...)
                scales[r] = exp(maxima[r] - m), maxima[r] = m
            barrier()
            for t in block(...): weights[..., r] = exp(s[t, ...] - maxima[r]), parts[..., r] = their sums
            barrier()
            for r in block(0, 64, lanes=256): totals[r] = totals[r] * scales[r] + parts[0, r] + ...
            for t in block(...): o[t, ...] = o[t, ...] * scales[r]
            ...                                             o[t, ...] += weights * v, slice by slice
        for t in block(...): y[...] = divide(o[t, ...], totals[r])

No score leaves the block. Weights are those by the maximum so far; when a larger one comes, what has been
added up is scaled down (M. Milakov, N. Gimelshein, "Online normalizer calculation for softmax", 2018; T. Dao
and others, "FlashAttention", 2022). While all scores of a row are -inf, its weights are by 0, and are 0; at
the end everything is scaled to the maximum itself, so that such a row is no number, as it is in the program.

Sums are formed in this order: the weights of a thread, in its order; the sums of the threads that have the
same rows, in theirs; tile after tile. Terms of the second product are added one by one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace

from ...frozen import frozen
from ...ir.dtype import BOOL
from ...ir.expr import Apply, Expr, Load, Local, Variable, constant
from ...ir.index import Affine, Symbol, affine
from ...ir.loops import Define, For, LoopKind, Place, PlaceKind, Stmt, Store, Update
from ...ir.ops import OPS
from ...ir.tensor import Tensor
from ...ir.walk import rewrite_expressions, transform
from ..analysis.uses import counts
from ..products.products import Product
from .nests import Nest, flat
from .online import OnePass
from .slices import BUFFERS, Tile, unrolled
from .tiling import Own, Slicing, Tiling, tiles_of

__all__ = ["RESULTS", "Tiles", "attending"]

COLUMNS = 64
"""Of a tile of scores."""

DEPTH = 8
"""Terms of a slice."""

OF_A_ROW = 4
"""Numbers that a block has of each row."""

RESULTS = tuple(
    Tile(COLUMNS, columns, DEPTH, high, wide) for columns, high, wide in ((32, 2, 4), (64, 4, 4), (128, 4, 8))
)
"""Tiles of results, with as many threads for a row as those of scores."""

ZERO = Affine.of(0)


@frozen
class Tiles:
    """`scores` are formed tile by tile, `result` is one tile, of the same rows and threads."""

    scores: Tile
    result: Tile

    @staticmethod
    def of(rows: int, columns: int) -> Tiles:
        """For so many rows, and at least so many columns of the result."""
        scores = Tile(rows, COLUMNS, DEPTH, 4, 4)
        result = next((tile for tile in RESULTS if tile.columns >= columns), RESULTS[-1])
        return Tiles(scores, replace(result, rows=rows))

    @property
    def sharing(self) -> int:
        """How many threads have scores of a row."""
        return self.scores.columns // self.scores.wide

    def shared_bytes(self, itemsize: int, access_bytes: int) -> int:
        """What a block keeps in its memory."""
        rows, room = self.scores.rows, access_bytes
        sides = rows, self.scores.columns, self.result.columns
        slices = sum(BUFFERS * DEPTH * (side * itemsize + room) for side in sides)
        weights = COLUMNS * (rows * itemsize + room)
        return slices + weights + (self.sharing + OF_A_ROW) * rows * itemsize


def attending(weighing: OnePass, tiles: Tiles, access_bytes: int) -> tuple[For, dict[Tensor, Place]]:
    """The rows of a result as a loop over tiles, a block's each, and where the temporaries of one live."""
    return _Block(weighing, tiles, access_bytes).grid()


class _Block:
    """What a block does. Of a row, `maxima` has the maximum so far, `bases` the number that weights are by,
    `scales` what turns weights by the base before into these, `totals` the sum of the weights; `parts` is
    what each of the threads that share a row has found of it, and has kept as `partial` before."""

    def __init__(self, weighing: OnePass, tiles: Tiles, access_bytes: int) -> None:
        self.weighing = weighing
        self.sharing = tiles.sharing
        self.dtype = weighing.stored.tensor.dtype
        rows, high = tiles.scores.rows, tiles.scores.high
        self.maxima, self.bases, self.scales, self.totals = (
            self.tensor(name, rows) for name in ("maxima", "bases", "scales", "totals")
        )
        self.parts = self.tensor("parts", tiles.sharing, rows)
        self.weights = self.tensor("weights", COLUMNS, rows + access_bytes // self.dtype.itemsize)
        self.partial = self.tensor("partial", tiles.scores.threads, high)
        self.row_tiles = tiles_of(weighing.scores.rows, rows)
        self.column_tiles = tiles_of(weighing.scores.columns, COLUMNS)
        self.row = Affine.of(self.row_tiles.symbol) * rows
        self.column = Affine.of(self.column_tiles.symbol) * COLUMNS
        result = self.with_cells(weighing.result)
        self.scores = Tiling(weighing.scores, tiles.scores, access_bytes, self.row, self.column)
        self.result = Tiling(result, tiles.result, access_bytes, self.row, ZERO)
        factors, values = (self.scores.left(), self.scores.right()), (self.result.right(COLUMNS),)
        self.scoring = Slicing(self.scores.sums, factors, self.scores.total.depth)
        self.weighted = Slicing(self.result.sums, values, COLUMNS, self.column, self.weights)

    def tensor(self, name: str, *shape: int) -> Tensor:
        return Tensor(name, affine(shape), self.dtype)

    def with_cells(self, result: Product) -> Product:
        """The result, with what it needs of a row where the block has it."""
        row = (result.rows.symbol - self.row,)
        cells = {self.weighing.maximum: self.maxima, self.weighing.total: self.totals}

        def node(expr: Expr) -> Expr:
            match expr:
                case Local(variable=variable) if variable in cells:
                    return Load(cells[variable], row)
                case _:
                    return expr

        epilogue = [rewrite_expressions(stmt, lambda expr: transform(expr, node)) for stmt in result.epilogue]
        return replace(result, epilogue=tuple(epilogue))

    def grid(self) -> tuple[For, dict[Tensor, Place]]:
        """The tiles of rows, and where temporaries live."""
        body = tuple(self.body())
        used = counts(body)
        shared = Place(PlaceKind.SHARED, "the threads of a block hand it to one another")
        own = Place(PlaceKind.OWN, "each thread makes and uses what has its number")
        places: dict[Tensor, Place] = {self.partial: own}
        for tensor in (self.maxima, self.bases, self.scales, self.totals, self.parts, self.weights):
            places[tensor] = shared
        for slicing in (self.scoring, self.weighted):
            places |= dict.fromkeys(slicing.sums.temporaries, own)
            for factor in slicing.brought:
                places |= {factor.held: own, factor.slices: shared}
        nest = Nest((*self.weighing.scores.around, self.row_tiles), body)
        grid = replace(flat(nest), kind=LoopKind.GRID, lanes=1)
        return grid, {tensor: place for tensor, place in places.items() if tensor in used}

    def body(self) -> Iterator[Stmt]:
        """What is done for a tile of rows."""
        rest = (self.result.begin(), *self.summed(), self.result.end())
        starts = {self.maxima: -math.inf, self.bases: 0.0, self.totals: 0.0}
        used = {tensor: value for tensor, value in starts.items() if tensor in counts(rest)}
        if used:
            yield self.rows(lambda row: tuple(self.store(into, row, value) for into, value in used.items()))
        yield from rest

    def summed(self) -> Iterator[Stmt]:
        """The sums of weights, tile after tile of scores."""
        yield replace(self.column_tiles, body=tuple(self.columns()), kind=LoopKind.SEQUENTIAL)
        if self.weighing.is_relative:
            yield self.rows(self.settled)
            yield self.scaled()

    def columns(self) -> Iterator[Stmt]:
        """What is done for a tile of scores."""
        yield self.scores.begin()
        yield from self.scoring.body()
        if self.weighing.maximum is not None:
            yield self.found(-math.inf)
        yield self.scores.cells(self.scored, 1)
        if self.weighing.maximum is not None:
            yield self.told()
            yield self.rows(self.higher)
        if self.weighing.total is not None:
            yield self.found(0.0)
        yield self.scores.cells(self.weighed, 1, self.weightless)
        if self.weighing.total is not None:
            yield self.told()
            yield self.rows(self.more)
        if self.weighing.is_relative:
            yield self.scaled()
        yield from self.weighted.body()

    # rows

    def rows(self, inside: Callable[[Affine], tuple[Stmt, ...]]) -> For:
        """What is done for each row, by a thread."""
        tile = self.scores.tile
        row = Symbol("r", lower=0, upper=tile.rows)
        body = inside(Affine.of(row))
        return For(row, ZERO, Affine.of(tile.rows), body, LoopKind.BLOCK, lanes=tile.threads)

    def store(self, into: Tensor, row: Affine, value: Expr | float) -> Store:
        """Something for a row."""
        known = constant(value, self.dtype) if isinstance(value, float) else value
        return Store(into, (row,), known)

    def apply(self, op: str, *args: Expr) -> Expr:
        return Apply(OPS[op], args, self.dtype)

    def folded(self, op: str, value: Variable, row: Affine) -> For:
        """A value combined with the parts of the threads that share a row, in order."""
        part = Symbol("p")
        update = Update(value, Load(self.parts, (Affine.of(part), row)), OPS[op])
        return unrolled(part, self.sharing, (update,))

    def higher(self, row: Affine) -> tuple[Stmt, ...]:
        """The maximum with that of one more tile, and what follows from it for weights."""
        before, maximum, base = (Variable(name, self.dtype) for name in ("before", "maximum", "base"))
        none = Apply(OPS["equal"], (Local(maximum), constant(-math.inf, self.dtype)), BOOL)
        found = (
            Define(before, Load(self.maxima, (row,))),
            Define(maximum, Local(before)),
            self.folded("maximum", maximum, row),
            self.store(self.maxima, row, Local(maximum)),
        )
        if not self.weighing.is_relative:
            return found
        return (
            *found,
            Define(base, self.apply("where", none, constant(0.0, self.dtype), Local(maximum))),
            self.store(self.bases, row, Local(base)),
            self.store(self.scales, row, self.weighing.weighed(Local(before), Local(base))),
        )

    def more(self, row: Affine) -> tuple[Stmt, ...]:
        """The sum of the weights with those of one more tile."""
        total, start = Variable("total", self.dtype), Load(self.totals, (row,))
        scaled = self.apply("multiply", start, Load(self.scales, (row,)))
        return (
            Define(total, scaled if self.weighing.is_relative else start),
            self.folded("add", total, row),
            self.store(self.totals, row, Local(total)),
        )

    def settled(self, row: Affine) -> tuple[Stmt, ...]:
        """Weights by the base become weights by the maximum: the same, or no numbers."""
        scale = Variable("scale", self.dtype)
        value = self.weighing.weighed(Load(self.bases, (row,)), Load(self.maxima, (row,)))
        scaled = (Define(scale, value), self.store(self.scales, row, Local(scale)))
        if self.weighing.total is None:
            return scaled
        total = self.apply("multiply", Load(self.totals, (row,)), Local(scale))
        return (*scaled, self.store(self.totals, row, total))

    # what a thread has of rows

    def found(self, value: float) -> For:
        """What a thread has found of its rows before it looks."""
        start = constant(value, self.dtype)
        return self.scores.sums.rows(lambda own, _row, _number: (Store(self.partial, own, start),))

    def told(self) -> For:
        """What a thread has found of its rows, for the others."""
        return self.scores.sums.rows(
            lambda own, row, number: (Store(self.parts, (number, row), Load(self.partial, own)),)
        )

    def scaled(self) -> For:
        """The sums of a thread, as they are by the base of now."""
        sums = self.result.sums

        def row(own: Own, row: Affine, _number: Affine) -> tuple[Stmt, ...]:
            column, scale = Symbol("c"), Variable("scale", self.dtype)
            cell = (*own, Affine.of(column))
            scaled = Store(sums.sums, cell, self.apply("multiply", Load(sums.sums, cell), Local(scale)))
            define = Define(scale, Load(self.scales, (row,)))
            return (define, unrolled(column, sums.tile.wide, (scaled,)))

        return sums.rows(row)

    # scores

    def also(self, op: str, own: Own, value: Expr) -> Store:
        """One more score, or weight, of a row of a thread."""
        cell = own[:2]
        return Store(self.partial, cell, self.apply(op, Load(self.partial, cell), value))

    def scored(self, own: Own, row: Affine, column: Affine) -> tuple[Stmt, ...]:
        """A score in place of the sum that it is made of."""
        *before, store = self.scores.done(own, row, column)
        assert isinstance(store, Store)
        score = Variable("score", self.dtype)
        kept = Store(self.scores.sums.sums, own, Local(score))
        also = () if self.weighing.maximum is None else (self.also("maximum", own, Local(score)),)
        return (*before, Define(score, store.value), kept, *also)

    def weighed(self, own: Own, row: Affine, column: Affine) -> tuple[Stmt, ...]:
        """The weight of a score."""
        weight, row = Variable("weight", self.dtype), row - self.row
        value = self.weighing.weighed(Load(self.scores.sums.sums, own), Load(self.bases, (row,)))
        store = Store(self.weights, (column - self.column, row), Local(weight))
        also = () if self.weighing.total is None else (self.also("add", own, Local(weight)),)
        return (Define(weight, value), store, *also)

    def weightless(self, _own: Own, row: Affine, column: Affine) -> tuple[Stmt, ...]:
        """Where there is no score."""
        return (Store(self.weights, (column - self.column, row - self.row), constant(0, self.dtype)),)
