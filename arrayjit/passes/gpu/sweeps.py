"""Two products and what is between them, by tensor cores: what a block does for a tile of rows.

    for g in grid(0, 64):                                   rows 64*g ... of the scores
        for t in block(0, 128, lanes=128): queries[t, ...] = q[...], m[t, ...] = -inf
        for c in sequential(0, 8):                          the first sweep: columns 32*c ... of the scores
            barrier(0)                                      the keys of this tile are there;
            for t in block(...): copy(keys[...], k[...])    those of the next one are on their way
            multiply_matrices(s, queries, keys, ...)
            for t in block(...): m[t, ...] = maximum(m[t, ...], 0.125 * s[t, ...])
        for t in block(...): parts[...] = m[t, ...]
        barrier()
        for t in block(...): m[t, ...] = maximum(parts[0, ...], parts[1, ...], ...)
        ...                                                 the second sweep: a[t, ...] += exp(... - m)
        for c in sequential(0, 8):                          the last sweep
            ...                                             the scores once more
            for t in block(...): left[t, ...] = divide(exp(... - m[t, ...]), a[t, ...])
            barrier(0)                                      the values of this tile are there
            multiply_matrices(o, left, values, ...)
        for t in block(...): y[...] = o[t, ...]

A fold that needs others is done in a sweep after theirs, and the second product in one after all that it
needs; in each the scores are formed anew, of which none leaves its thread. So every number is the program's,
rounded where the program rounds; only sums are in another order: a thread's terms, tile after tile, then the
sums of the four threads that have the same rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from ...frozen import frozen
from ...ir.code import GpuCaps
from ...ir.dtype import F32
from ...ir.expr import Apply, Cast, Const, Expr, Load, Local, Variable, constant, dtype_of
from ...ir.index import Affine, Symbol, affine
from ...ir.loops import Barrier, Bind, Define, For, If, LoopKind, Multiply, Place, PlaceKind, Stmt, Store
from ...ir.ops import OPS
from ...ir.tensor import Tensor
from ...ir.walk import rewrite_expressions, substitute, variables
from ..analysis.copies import Copying
from ..analysis.values import written_out
from ..products.products import Product
from .cores import LEAST, MOST, Bringing, Cell, Matrix, Side, Tile, copying, quotient, starting
from .nests import Nest, flat
from .slices import less
from .tiling import tiles_of
from .weights import Fold, Weighing

__all__ = ["Plan", "sweeping", "sweeps"]

STAGES = 2
"""Tiles of keys in shared memory: the one that is multiplied, and the next."""

SHARING = 4
"""Threads that have sums of the same rows."""

WARPS = (4, 2)
"""Of a block, each for 16 rows: more read the factors less often, fewer keep more processors busy."""

SIDES = (32, 64, 128)
"""Terms of the first product, and columns of the second, in tiles: at least a piece for each thread."""

COLUMNS = 32
"""Of a tile of scores. More take registers, and long to compile."""

ZERO = Affine.of(0)


@frozen
class Plan:
    """What tensor cores multiply: `queries`, small floats computed for a row and a term, by `keys`; what is
    made of the sums, `left`, by `values`. Tiles have `depth` terms and `wide` columns of the result."""

    weighing: Weighing
    queries: Expr
    keys: Matrix
    left: Expr
    values: Matrix
    tile: Tile
    depth: int
    wide: int

    @property
    def columns(self) -> int:
        """Of a tile of scores."""
        return self.tile.columns

    def shared_bytes(self) -> int:
        """What a block keeps in its memory."""
        tiles = self.columns * (STAGES * self.depth + self.wide) * self.keys.tensor.dtype.itemsize
        parts = (fold.variable.dtype.itemsize for fold in self.weighing.folds)
        return tiles + SHARING * self.tile.rows * sum(parts)


def sweeping(weighing: Weighing, gpu: GpuCaps) -> Plan | str:
    """How tensor cores do both products of a weighing; or why they do not."""
    scores, result = weighing.scores, weighing.result
    (score,), (total,) = scores.sums, result.sums
    queries, left = _small(score.left), _small(weighing.left)
    keys = Matrix.of(score.right, scores.columns, score.terms[0]) if len(score.terms) == 1 else None
    values = Matrix.of(total.right, result.columns, total.terms[0])
    if queries is None or left is None or keys is None or values is None:
        return "factors are no matrices of small floats that lie along memory"
    if not gpu.tensor_cores:
        return "there are no tensor cores"
    factors = {dtype_of(queries), dtype_of(left), keys.tensor.dtype, values.tensor.dtype}
    if len(factors) > 1 or {score.variable.dtype, total.variable.dtype} != {F32}:
        return "factors, or sums, differ in their types"
    extents = [scores.rows.trips or 0, scores.columns.trips or 0, score.depth, result.columns.trips or 0]
    around = math.prod(loop.trips or 0 for loop in scores.around)
    if min(extents) < LEAST or not 0 < around * extents[0] * max(extents[1:]) <= MOST:
        return "there is too little, or too much, of it"
    depth, wide = (next((side for side in SIDES if side >= extent), 0) for extent in extents[2:])
    if not depth or not wide:
        return f"a block has no room for more than {SIDES[-1]} terms, or columns of the result"
    for warps in WARPS:
        tile = Tile((warps, 1), 1, COLUMNS // 8)
        plan = Plan(weighing, queries, keys, left, values, tile, depth, wide)
        if plan.shared_bytes() > gpu.shared_bytes:
            return "tiles do not fit into the memory of a block"
        if around * -(-extents[0] // tile.rows) >= gpu.processors:
            return plan
    return f"there are too few rows for {gpu.processors} processors"


def _small(factor: Expr) -> Expr | None:
    """The small float that is cast to be a factor."""
    if isinstance(factor, Cast) and factor.dtype is F32 and dtype_of(factor.arg).is_small:
        return factor.arg
    return None


def sweeps(plan: Plan) -> tuple[For, dict[Tensor, Place]]:
    """The rows of a result as a loop over tiles, a block's each, and where the temporaries of one live."""
    return _Block(plan).grid()


class _Block:
    """What a block does. Threads own `queries`, the sums `total` of a tile of scores, `left`, which is made
    of them, the sums `result`, and for each fold what they have `folded` of their rows; its `parts` are what
    those that have the same rows tell one another."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        weighing, tile = plan.weighing, plan.tile
        (self.scored,), (self.summed,) = weighing.scores.sums, weighing.result.sums
        self.by_depth = Tile(tile.warps, tile.high, plan.depth // 8)
        self.by_result = Tile(tile.warps, tile.high, plan.wide // 8)
        dtype = plan.keys.tensor.dtype
        self.queries = self.by_depth.sums("queries", dtype)
        self.total = tile.sums(self.scored.variable.hint)
        self.left = tile.sums("left", dtype)
        self.result = self.by_result.sums(self.summed.variable.hint)
        self.keys = plan.keys.stages(STAGES, tile.columns, plan.depth)
        self.values = plan.values.stages(1, plan.wide, tile.columns)
        self.folded, self.parts = dict[Variable, Tensor](), dict[Variable, Tensor]()
        for fold in weighing.folds:
            hint, kind = fold.variable.hint, fold.variable.dtype
            self.folded[fold.variable] = tile.of_rows(hint, kind)
            self.parts[fold.variable] = Tensor(f"{hint}_parts", affine((SHARING, tile.rows)), kind)
        self.row_tiles = tiles_of(weighing.scores.rows, tile.rows)
        self.rows = Side.of(weighing.scores.rows, self.row_tiles.symbol * tile.rows, tile.rows)

    def grid(self) -> tuple[For, dict[Tensor, Place]]:
        """The tiles of rows, and where temporaries live."""
        shared = Place(PlaceKind.SHARED, "tensor cores read tiles of factors there")
        told = Place(PlaceKind.SHARED, "the threads of a block hand it to one another")
        own = Place(PlaceKind.OWN, "each thread makes and uses what has its number")
        owned = (self.queries, self.total, self.left, self.result, *self.folded.values())
        places = {self.keys: shared, self.values: shared}
        places |= dict.fromkeys(self.parts.values(), told) | dict.fromkeys(owned, own)
        nest = Nest((*self.plan.weighing.scores.around, self.row_tiles), tuple(self.body()))
        return replace(flat(nest), kind=LoopKind.GRID, lanes=1), places

    def body(self) -> Iterator[Stmt]:
        """What is done for a tile of rows."""
        yield self.asked()
        levels = self.levels()
        last = max(levels.values())
        for level in range(1, last + 1):
            folds = [fold for fold in self.plan.weighing.folds if levels[fold.variable] == level]
            yield from self.sweep(folds, level == last)
        yield self.ending()

    def levels(self) -> dict[Variable | None, int]:
        """The sweep in which each fold, and for None the second product, is done: after all that it needs."""
        levels: dict[Variable | None, int] = {}
        for fold in self.plan.weighing.folds:
            levels[fold.variable] = 1 + max((levels.get(one, 0) for one in variables(fold.value)), default=0)
        levels[None] = 1 + max((levels.get(one, 0) for one in variables(self.plan.left)), default=0)
        levels[None] = max(levels.values())
        return levels

    # sweeps

    def sweep(self, folds: Sequence[Fold], is_last: bool) -> Iterator[Stmt]:
        """All scores of the rows, tile after tile."""
        tile = self.plan.tile
        for fold in folds:
            yield starting(self.folded[fold.variable], fold.start)
        if is_last:
            assert isinstance(self.summed.start, Const)
            yield starting(self.result, self.summed.start)
        tiles = tiles_of(self.plan.weighing.scores.columns, tile.columns)
        number, half = Affine.of(tiles.symbol), Symbol("h", lower=0, upper=(tiles.trips or 0) // STAGES + 1)
        stage = number - Affine.of(half) * STAGES
        yield copying(tile.threads, [self.brought(ZERO, ZERO)])
        body = (
            Bind(half, quotient(number, STAGES)),
            Barrier(pending=0),
            *self.following(tiles, stage, is_last),
            *self.scores(stage),
            self.looked(number * tile.columns, folds, is_last),
            *(self.multiplied() if is_last else ()),
        )
        yield replace(tiles, body=body, kind=LoopKind.SEQUENTIAL)
        for fold in folds:
            yield from self.told(fold)

    def brought(self, number: Affine, stage: Affine) -> Bringing:
        """The keys of a tile of scores on their way."""
        return Bringing(self.plan.keys, self.keys, stage, number * self.plan.tile.columns, ZERO)

    def following(self, tiles: For, stage: Affine, is_last: bool) -> Iterator[Stmt]:
        """The keys of the next tile, and the values of this one, are brought."""
        number, threads = Affine.of(tiles.symbol), self.plan.tile.threads
        if is_last:
            along = number * self.plan.tile.columns
            yield copying(threads, [Bringing(self.plan.values, self.values, ZERO, ZERO, along)])
        if (tiles.trips or 0) > 1:
            keys = copying(threads, [self.brought(number + 1, 1 - stage)])
            yield If(less(number, (tiles.trips or 0) - 1), (keys,))

    def scores(self, stage: Affine) -> Iterator[Stmt]:
        """The sums that are a tile of scores."""
        assert isinstance(self.scored.start, Const)
        yield starting(self.total, self.scored.start)
        turned = False, not self.plan.keys.is_across
        yield Multiply(self.total, self.queries, self.keys, stage, turned, self.plan.tile.warps)

    def multiplied(self) -> Iterator[Stmt]:
        """The second product, of a tile of columns."""
        yield Barrier(pending=0)
        turned = False, not self.plan.values.is_across
        yield Multiply(self.result, self.left, self.values, ZERO, turned, self.plan.tile.warps)

    # what a thread does

    def asked(self) -> For:
        """The queries of a tile."""
        (term,) = self.scored.terms
        zero = constant(0, self.queries.dtype)

        def inside(cell: Cell) -> tuple[Stmt, ...]:
            query = substitute(self.plan.queries, {**self.rows.at(cell.row), **depth.at(cell.column)})
            return (Store(self.queries, cell.index, query),)

        depth = Side.of(term, ZERO, self.plan.depth)
        return self.by_depth.cells(
            (self.rows, depth), inside, other=lambda cell: (Store(self.queries, cell.index, zero),)
        )

    def looked(self, column: Affine, folds: Sequence[Fold], is_last: bool) -> For:
        """What follows from the scores of a tile, which starts at a column."""
        columns = Side.of(self.plan.weighing.scores.columns, column, self.plan.tile.columns)
        zero = constant(0, self.left.dtype)

        def inside(cell: Cell) -> tuple[Stmt, ...]:
            defined, score = self.score(cell, columns)
            known = {self.plan.weighing.score: Local(score), **self.known(cell)}
            found = [self.combined(fold, cell, written_out(fold.value, known)) for fold in folds]
            left = Store(self.left, cell.index, written_out(self.plan.left, known))
            return (*defined, *found, *([left] if is_last else []))

        def other(cell: Cell) -> tuple[Stmt, ...]:
            return (Store(self.left, cell.index, zero),) if is_last else ()

        return self.plan.tile.cells((self.rows, columns), inside, other=other)

    def score(self, cell: Cell, columns: Side) -> tuple[tuple[Stmt, ...], Variable]:
        """A score, and what defines it."""
        values = {**self.rows.at(cell.row), **columns.at(cell.column)}
        epilogue = _started(self.plan.weighing.scores, Load(self.total, cell.index))
        *before, store = Copying(values, {}).body(epilogue)
        assert isinstance(store, Store)
        score = Variable("score", dtype_of(store.value))
        return (*before, Define(score, store.value)), score

    def known(self, cell: Cell) -> dict[Variable, Expr]:
        """What the folds of a row are."""
        return {variable: Load(tensor, cell.of_row) for variable, tensor in self.folded.items()}

    def combined(self, fold: Fold, cell: Cell, value: Expr) -> Store:
        """One more value of a row."""
        into = self.folded[fold.variable]
        args: tuple[Expr, ...] = (Load(into, cell.of_row), value)
        op = fold.op
        if fold.contract:
            assert isinstance(value, Apply)
            op, args = OPS["fma"], (*value.args, args[0])
        return Store(into, cell.of_row, Apply(op, args, into.dtype))

    def told(self, fold: Fold) -> Iterator[For]:
        """Threads that have the same rows tell one another what they have folded."""
        folded, parts, tile = self.folded[fold.variable], self.parts[fold.variable], self.plan.tile

        def tell(cell: Cell) -> tuple[Stmt, ...]:
            return (Store(parts, (cell.sharer, cell.row), Load(folded, cell.of_row)),)

        def hear(cell: Cell) -> tuple[Stmt, ...]:
            first, *others = (Load(parts, (Affine.of(part), cell.row)) for part in range(SHARING))
            whole: Expr = first
            for other in others:
                whole = Apply(fold.op, (whole, other), folded.dtype)
            return (Store(folded, cell.of_row, whole),)

        yield tile.rows_of(tell)
        yield tile.rows_of(hear)

    def ending(self) -> For:
        """What is done with the sums of the result."""
        result = self.plan.weighing.result
        columns = Side.of(result.columns, ZERO, self.plan.wide)

        def inside(cell: Cell) -> tuple[Stmt, ...]:
            known = self.known(cell)
            epilogue = _started(result, Load(self.result, cell.index))
            stmts = tuple(
                rewrite_expressions(stmt, lambda expr: written_out(expr, known)) for stmt in epilogue
            )
            return Copying({**self.rows.at(cell.row), **columns.at(cell.column)}, {}).body(stmts)

        by_pairs = (result.columns.trips or 0) % 2 == 0
        return self.by_result.cells((self.rows, columns), inside, by_pairs=by_pairs)


def _started(product: Product, total: Load) -> tuple[Stmt, ...]:
    """What is done with a sum, which has been formed."""
    variable = product.sums[0].variable
    return tuple(
        Define(variable, total) if isinstance(stmt, Define) and stmt.variable is variable else stmt
        for stmt in product.epilogue
    )
