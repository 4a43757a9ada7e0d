"""A product in tiles, as the loops of a grid: what a block of threads does for a tile of rows and columns.

    for g in grid(0, 64):                                   a tile: rows 128*m ..., columns 128*n ...
        for t in block(0, 256, lanes=256): sums[t, ...] = 0.0
        for t in block(0, 256, lanes=256): held[t, ...] = x[...], held1[t, ...] = w[...]    slice 0
        for t in block(0, 256, lanes=256): rows[0, ...] = held[t, ...], ...
        for s in sequential(0, 16):
            if s < 15: for t in block(...): held[t, ...] = x[...], ...                      slice s + 1
            barrier()
            for t in block(...): for k in unrolled(0, 16):
                sums[t, r, c] = fma(rows[p, k, ...], columns[p, k, ...], sums[t, r, c])
            if s < 15: for t in block(...): rows[1 - p, ...] = held[t, ...], ...
        for t in block(...): y[...] = maximum(add(sums[t, r, c], b[...]), 0.0)

The factors of a *slice*, of `depth` terms, are brought to the memory of the block while the slice before is
worked on: from memory to registers, then to the one of two buffers that nobody reads. There neighbours along
rows or columns lie side by side, whatever the layout in memory is. Each thread keeps a few sums. Every sum is
the one chain of before, term by term.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from ...frozen import frozen
from ...ir.dtype import I64
from ...ir.expr import Apply, Const, Expr, Index, Load, constant
from ...ir.index import Affine, Symbol, affine
from ...ir.loops import Bind, Define, For, If, LoopKind, Stmt, Store
from ...ir.ops import OPS
from ...ir.tensor import Tensor
from ...ir.walk import expressions, substitute
from ..access import loads
from ..copies import Copying, unless_once
from ..products import Product, Sum
from ..strides import stride
from .nests import Nest, flat
from .slices import BUFFERS, MOST_LANES, WARP, Factor, Numbers, Tile, all_of, block, less, unrolled

__all__ = ["in_tiles"]

WARP_ROWS, WARP_COLUMNS = 4, 8
"""How the threads of a warp lie over rows and columns: what they read of a term is in few banks."""

Own = tuple[Affine, ...]

Cell = Callable[[Own, Affine, Affine], tuple[Stmt, ...]]
"""What is done for a sum, that of a thread, of a row and a column."""

ZERO = Affine.of(0)


def in_tiles(product: Product, tile: Tile, access_bytes: int) -> tuple[For, tuple[Tensor, ...]] | None:
    """The independent tiles of a product of one sum as one loop, and the temporaries of an iteration; None if
    the extents of two loops around it are not known."""
    if sum(loop.trips is None for loop in product.around) > 1:
        return None
    tiling = _Tiling(product, tile, access_bytes)
    loops = (*product.around, tiling.row_tiles, tiling.column_tiles)
    return replace(flat(Nest(loops, tuple(tiling.body()))), lanes=1), tiling.temporaries


@frozen
class _Sums:
    """The sums of a tile, and what threads do with a slice: each forms `high` x `wide` sums, whose rows and
    columns are neighbours by `lanes`. `mine` and `theirs` are what it has read of a term."""

    total: Sum
    tile: Tile
    lanes: int
    sums: Tensor
    left: Tensor
    right: Tensor

    @staticmethod
    def of(total: Sum, tile: Tile, access_bytes: int) -> _Sums:
        dtype = total.variable.dtype
        lanes = min(MOST_LANES, access_bytes // dtype.itemsize, tile.high, tile.wide)
        return _Sums(
            total,
            tile,
            lanes,
            Tensor(total.variable.hint, affine((tile.threads, tile.high, tile.wide)), dtype),
            Tensor("left", affine((tile.threads, tile.high)), dtype),
            Tensor("right", affine((tile.threads, tile.wide)), dtype),
        )

    def corner(self, thread: Symbol) -> tuple[tuple[Stmt, ...], Affine, Affine]:
        """The row and the column of a thread's first sum within the tile, after what tells them."""
        numbers = Numbers()
        across = self.tile.columns // (WARP_COLUMNS * self.tile.wide)
        warp, lane = numbers.split(Affine.of(thread), self.tile.threads, WARP)
        down, right = numbers.split(warp, self.tile.threads // WARP, across)
        high, wide = numbers.split(lane, WARP, WARP_COLUMNS)
        row = down * (WARP_ROWS * self.tile.high) + high * self.lanes
        column = right * (WARP_COLUMNS * self.tile.wide) + wide * self.lanes
        return tuple(numbers.binds), row, column

    def term(self, thread: Symbol, row: Affine, column: Affine, cell: tuple[Affine, Affine],
             slices: tuple[Tensor, Tensor]) -> tuple[Stmt, ...]:  # fmt: skip
        """One more term of all sums of a thread: that of `cell`, a buffer and a place in it."""
        own = Affine.of(thread)
        out: list[Stmt] = []
        for tensor, source, start, count, apart in (
            (self.left, slices[0], row, self.tile.high, WARP_ROWS),
            (self.right, slices[1], column, self.tile.wide, WARP_COLUMNS),
        ):
            group, lane = Symbol("g"), Symbol("l")
            place = Affine.of(group) * self.lanes + lane
            far = start + Affine.of(group) * (self.lanes * apart) + lane
            read: Stmt = Store(tensor, (own, place), Load(source, (*cell, far)))
            read = For(lane, ZERO, Affine.of(self.lanes), (read,), LoopKind.VECTOR, lanes=self.lanes)
            out.extend(unless_once(unrolled(group, count // self.lanes, (read,))))
        r, c = Symbol("r"), Symbol("c")
        sums = (own, Affine.of(r), Affine.of(c))
        left, right = Load(self.left, (own, Affine.of(r))), Load(self.right, (own, Affine.of(c)))
        store = Store(self.sums, sums, _plus(self.total, Load(self.sums, sums), left, right))
        return (*out, unrolled(r, self.tile.high, (unrolled(c, self.tile.wide, (store,)),)))

    def multiply(self, buffer: Affine, terms: int, slices: tuple[Tensor, Tensor]) -> For:
        """All sums, with the terms of a slice added."""

        def inside(thread: Symbol) -> tuple[Stmt, ...]:
            binds, row, column = self.corner(thread)
            term = Symbol("k")
            body = self.term(thread, row, column, (buffer, Affine.of(term)), slices)
            kind = LoopKind.UNROLLED if terms == self.tile.depth else LoopKind.SEQUENTIAL
            return (*binds, *unless_once(For(term, ZERO, Affine.of(terms), body, kind)))

        return block(self.tile.threads, inside)


def _plus(total: Sum, sofar: Expr, left: Expr, right: Expr) -> Expr:
    """A sum with one more term, rounded as it is in the program."""
    dtype = total.variable.dtype
    if total.update.contract:
        return Apply(OPS["fma"], (left, right, sofar), dtype)
    return Apply(OPS["add"], (sofar, Apply(OPS["multiply"], (left, right), dtype)), dtype)


class _Tiling:
    """One product, whose tile of a block has number `row_tiles.symbol` along rows, and so on."""

    def __init__(self, product: Product, tile: Tile, access_bytes: int) -> None:
        (self.total,) = product.sums
        self.product = product
        self.tile = tile
        self.row_tiles = _tiles(product.rows, tile.rows)
        self.column_tiles = _tiles(product.columns, tile.columns)
        self.row = Affine.of(self.row_tiles.symbol) * tile.rows
        self.column = Affine.of(self.column_tiles.symbol) * tile.columns
        total = self.total
        self.left = Factor.of(total, total.left, product.rows, self.row, tile.rows, tile, access_bytes)
        self.right = Factor.of(
            total, total.right, product.columns, self.column, tile.columns, tile, access_bytes
        )
        self.sums = _Sums.of(total, tile, access_bytes)

    @property
    def temporaries(self) -> tuple[Tensor, ...]:
        """What the threads of a block need for a tile."""
        sums = (self.sums.sums, self.sums.left, self.sums.right)
        return (*sums, self.left.held, self.left.slices, self.right.held, self.right.slices)

    def body(self) -> Iterator[Stmt]:
        """What a block does for a tile."""
        depth = self.tile.depth
        full, rest = divmod(self.total.depth, depth)
        slices = (self.left.slices, self.right.slices)
        yield self.begin()
        yield self.bring(ZERO)
        yield self.put(ZERO)
        if full:
            number, half = Symbol("s", lower=0, upper=full), Symbol("h", lower=0, upper=full // 2 + 1)
            turn = Affine.of(number)
            buffer = turn - Affine.of(half) * 2
            halved = Bind(half, Apply(OPS["raw_divide"], (Index(turn), Const(BUFFERS, I64)), I64))
            inside = (
                halved,
                *self.unless_last(turn, self.bring((turn + 1) * depth)),
                self.sums.multiply(buffer, depth, slices),
                *self.unless_last(turn, self.put(1 - buffer)),
            )
            yield For(number, ZERO, Affine.of(full), inside)
        if rest:
            yield self.sums.multiply(Affine.of(full % BUFFERS), rest, slices)
        yield self.end()

    def unless_last(self, turn: Affine, stmt: Stmt) -> tuple[Stmt, ...]:
        """A statement for the slice after the one of number `turn`, if there is one."""
        full, rest = divmod(self.total.depth, self.tile.depth)
        if rest:
            return (stmt,)
        return (If(less(turn, full - 1), (stmt,)),) if full > 1 else ()

    def bring(self, start: Affine) -> For:
        factors = (self.left, self.right)
        return block(self.tile.threads, lambda t: tuple(s for f in factors for s in f.bring(t, start)))

    def put(self, buffer: Affine) -> For:
        factors = (self.left, self.right)
        return block(self.tile.threads, lambda t: tuple(s for f in factors for s in f.put(t, buffer)))

    def begin(self) -> For:
        """The sums, as they start."""
        start, sums = self.total.start, self.sums.sums

        def cell(own: Own, row: Affine, column: Affine) -> tuple[Stmt, ...]:
            values = {self.product.rows.symbol: row, self.product.columns.symbol: column}
            return (Store(sums, own, substitute(start, values)),)

        if not isinstance(start, Const):
            zero = constant(0, sums.dtype)
            return self.cells(cell, 1, lambda own: (Store(sums, own, zero),))

        def inside(thread: Symbol) -> tuple[Stmt, ...]:
            r, c = Symbol("r"), Symbol("c")
            own = (Affine.of(thread), Affine.of(r), Affine.of(c))
            row = unrolled(c, self.tile.wide, (Store(sums, own, start),))
            return (unrolled(r, self.tile.high, (row,)),)

        return block(self.tile.threads, inside)

    def end(self) -> For:
        """What is done with the sums."""
        product, total = self.product, self.total

        def cell(own: Own, row: Affine, column: Affine) -> tuple[Stmt, ...]:
            epilogue = tuple(
                replace(stmt, value=Load(self.sums.sums, own))
                if isinstance(stmt, Define) and stmt.variable is total.variable
                else stmt
                for stmt in product.epilogue
            )
            values = {product.rows.symbol: row, product.columns.symbol: column}
            return Copying(values, {}).body(epilogue)

        return self.cells(cell, self.lanes_of_epilogue())

    def lanes_of_epilogue(self) -> int:
        """How many neighbours of a row a thread may store at once."""
        columns, written = self.product.columns, set[Tensor]()
        for stmt in self.product.epilogue:
            read = {tensor.storage for expr in expressions(stmt) for tensor, _ in loads(expr)}
            if read & written:
                return 1
            if isinstance(stmt, Store):
                if stride(stmt.tensor, stmt.index, columns.symbol) != 1:
                    return 1
                written.add(stmt.tensor.storage)
        return 1 if (columns.trips or 0) % self.sums.lanes else self.sums.lanes

    def cells(self, cell: Cell, lanes: int, other: Callable[[Own], tuple[Stmt, ...]] | None = None) -> For:
        """What is done for each of a thread's sums, by `lanes` neighbours: `cell` if it is one of the
        product's, else `other`."""
        tile, unit = self.tile, self.sums.lanes
        rows, columns = self.product.rows, self.product.columns

        def inside(thread: Symbol) -> tuple[Stmt, ...]:
            binds, top, left = self.sums.corner(thread)
            r, g, group, part, lane = Symbol("r"), Symbol("g"), Symbol("c"), Symbol("p"), Symbol("l")
            down = top + Affine.of(g) * (unit * WARP_ROWS) + r
            place = Affine.of(part) * lanes + lane
            right = left + Affine.of(group) * (unit * WARP_COLUMNS) + place
            own = (Affine.of(thread), Affine.of(g) * unit + r, Affine.of(group) * unit + place)
            body = cell(own, rows.lo + self.row + down, columns.lo + self.column + right)
            kind = LoopKind.VECTOR if lanes > 1 else LoopKind.UNROLLED
            body = unless_once(For(lane, ZERO, Affine.of(lanes), body, kind, lanes=lanes))
            guards = []
            if (rows.trips or 0) % tile.rows:
                guards.append(less(self.row + down, rows.trips or 0))
            if (columns.trips or 0) % tile.columns:
                first = left + Affine.of(group) * (unit * WARP_COLUMNS) + Affine.of(part) * lanes
                guards.append(less(self.column + first, columns.trips or 0))
            if guards:
                otherwise = other(own) if other else ()
                if otherwise:
                    otherwise = unless_once(For(lane, ZERO, Affine.of(lanes), otherwise, LoopKind.UNROLLED))
                body = (If(all_of(guards), body, Copying({}, {}).body(otherwise)),)
            for symbol, count in ((part, unit // lanes), (group, tile.wide // unit), (r, unit),
                                  (g, tile.high // unit)):  # fmt: skip
                body = unless_once(unrolled(symbol, count, body))
            return (*binds, *body)

        return block(tile.threads, inside)


def _tiles(side: For, size: int) -> For:
    """The loop over the tiles of a side."""
    count = -(-(side.trips or 0) // size)
    symbol = Symbol(f"{side.symbol.hint}_tile", lower=0, upper=count)
    return For(symbol, ZERO, Affine.of(count), (), LoopKind.PARALLEL)
