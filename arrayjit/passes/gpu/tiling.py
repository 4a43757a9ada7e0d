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
from ...ir.walk import expressions, storages_read, substitute
from ..analysis.copies import Copying, unless_once
from ..analysis.strides import stride
from ..products.products import Product, Sum
from .nests import Nest, flat
from .slices import BUFFERS, MOST_LANES, WARP, Factor, Numbers, Tile, all_of, block, less, unrolled

__all__ = ["Corner", "Own", "Slicing", "Sums", "Tiling", "in_tiles", "tiles_of"]

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
    row_tiles, column_tiles = tiles_of(product.rows, tile.rows), tiles_of(product.columns, tile.columns)
    row, column = Affine.of(row_tiles.symbol) * tile.rows, Affine.of(column_tiles.symbol) * tile.columns
    tiling = Tiling(product, tile, access_bytes, row, column)
    slicing = Slicing(tiling.sums, (tiling.left(), tiling.right()), tiling.total.depth)
    body = (tiling.begin(), *slicing.body(), tiling.end())
    loops = (*product.around, row_tiles, column_tiles)
    temporaries = (*tiling.sums.temporaries, *slicing.temporaries)
    return replace(flat(Nest(loops, body)), lanes=1), temporaries


@frozen
class _Source:
    """Where a factor's terms lie in the memory of a block: at `tensor[*before, first + term, ...]`."""

    tensor: Tensor
    before: tuple[Affine, ...]
    first: Affine = ZERO

    def load(self, term: Symbol, place: Affine) -> Load:
        """A term, for a place along rows or columns."""
        return Load(self.tensor, (*self.before, self.first + term, place))


@frozen
class Corner:
    """The row and the column of a thread's first sum within a tile, and which of those threads it is that
    have sums of the same rows; `binds` tell these numbers."""

    binds: tuple[Stmt, ...]
    row: Affine
    column: Affine
    number: Affine


@frozen
class Sums:
    """The sums of a tile, and what threads do with a slice: each forms `high` x `wide` sums, whose rows and
    columns are neighbours by `lanes`. `left` and `right` are what it has read of a term."""

    total: Sum
    tile: Tile
    lanes: int
    sums: Tensor
    left: Tensor
    right: Tensor

    @staticmethod
    def of(total: Sum, tile: Tile, access_bytes: int) -> Sums:
        """Those of one sum of a product."""
        dtype = total.variable.dtype
        lanes = min(MOST_LANES, access_bytes // dtype.itemsize, tile.high, tile.wide)
        return Sums(
            total,
            tile,
            lanes,
            Tensor(total.variable.hint, affine((tile.threads, tile.high, tile.wide)), dtype),
            Tensor("left", affine((tile.threads, tile.high)), dtype),
            Tensor("right", affine((tile.threads, tile.wide)), dtype),
        )

    def corner(self, thread: Symbol) -> Corner:
        """Where a thread's first sum is within the tile."""
        numbers = Numbers()
        across = self.tile.columns // (WARP_COLUMNS * self.tile.wide)
        warp, lane = numbers.split(Affine.of(thread), self.tile.threads, WARP)
        down, right = numbers.split(warp, self.tile.threads // WARP, across)
        high, wide = numbers.split(lane, WARP, WARP_COLUMNS)
        row = down * (WARP_ROWS * self.tile.high) + high * self.lanes
        column = right * (WARP_COLUMNS * self.tile.wide) + wide * self.lanes
        return Corner(tuple(numbers.binds), row, column, right * WARP_COLUMNS + wide)

    @property
    def temporaries(self) -> tuple[Tensor, ...]:
        """What threads keep."""
        return (self.sums, self.left, self.right)

    def term(self, thread: Symbol, corner: Corner, term: Symbol,
             sources: tuple[_Source, _Source]) -> tuple[Stmt, ...]:  # fmt: skip
        """One more term of all sums of a thread."""
        own = Affine.of(thread)
        out: list[Stmt] = []
        for tensor, source, start, count, apart in (
            (self.left, sources[0], corner.row, self.tile.high, WARP_ROWS),
            (self.right, sources[1], corner.column, self.tile.wide, WARP_COLUMNS),
        ):
            group, lane = Symbol("g"), Symbol("l")
            place = Affine.of(group) * self.lanes + lane
            far = start + Affine.of(group) * (self.lanes * apart) + lane
            read: Stmt = Store(tensor, (own, place), source.load(term, far))
            read = For(lane, ZERO, Affine.of(self.lanes), (read,), LoopKind.VECTOR, lanes=self.lanes)
            out.extend(unless_once(unrolled(group, count // self.lanes, (read,))))
        r, c = Symbol("r"), Symbol("c")
        sums = (own, Affine.of(r), Affine.of(c))
        left, right = Load(self.left, (own, Affine.of(r))), Load(self.right, (own, Affine.of(c)))
        store = Store(self.sums, sums, _plus(self.total, Load(self.sums, sums), left, right))
        return (*out, unrolled(r, self.tile.high, (unrolled(c, self.tile.wide, (store,)),)))

    def rows(self, inside: Cell) -> For:
        """What each thread does for its rows: `inside` gets the place of what it keeps for one, the row
        within the tile, and the number of the thread among those that share it."""

        def body(thread: Symbol) -> tuple[Stmt, ...]:
            corner, group, part = self.corner(thread), Symbol("g"), Symbol("r")
            row = corner.row + Affine.of(group) * (self.lanes * WARP_ROWS) + part
            own = (Affine.of(thread), Affine.of(group) * self.lanes + part)
            loop = unrolled(part, self.lanes, inside(own, row, corner.number))
            return (*corner.binds, *unless_once(unrolled(group, self.tile.high // self.lanes, (loop,))))

        return block(self.tile.threads, body)

    def multiply(self, terms: int, sources: tuple[_Source, _Source]) -> For:
        """All sums, with the terms of a slice added."""

        def inside(thread: Symbol) -> tuple[Stmt, ...]:
            corner, term = self.corner(thread), Symbol("k")
            body = self.term(thread, corner, term, sources)
            kind = LoopKind.UNROLLED if terms == self.tile.depth else LoopKind.SEQUENTIAL
            return (*corner.binds, *unless_once(For(term, ZERO, Affine.of(terms), body, kind)))

        return block(self.tile.threads, inside)


def _plus(total: Sum, sofar: Expr, left: Expr, right: Expr) -> Expr:
    """A sum with one more term, rounded as it is in the program."""
    dtype = total.variable.dtype
    if total.update.contract:
        return Apply(OPS["fma"], (left, right, sofar), dtype)
    return Apply(OPS["add"], (sofar, Apply(OPS["multiply"], (left, right), dtype)), dtype)


@frozen
class Slicing:
    """How the terms of a tile's sums, so many from `first` on, are gone through: slices of those factors that
    are `brought`; the left one lies in the memory of the block, all terms of it, if that is `there`."""

    sums: Sums
    brought: tuple[Factor, ...]
    count: int
    first: Affine = ZERO
    there: Tensor | None = None

    @property
    def temporaries(self) -> tuple[Tensor, ...]:
        """What slices go through."""
        return tuple(tensor for factor in self.brought for tensor in (factor.held, factor.slices))

    def body(self) -> Iterator[Stmt]:
        """What a block does."""
        depth = self.sums.tile.depth
        full, rest = divmod(self.count, depth)
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
                self.sums.multiply(depth, self.sources(turn, buffer)),
                *self.unless_last(turn, self.put(1 - buffer)),
            )
            yield For(number, ZERO, Affine.of(full), inside)
        if rest:
            sources = self.sources(Affine.of(full), Affine.of(full % BUFFERS))
            yield self.sums.multiply(rest, sources)

    def sources(self, turn: Affine, buffer: Affine) -> tuple[_Source, _Source]:
        """Where the slice of a number lies, which is in a buffer."""
        right = _Source(self.brought[-1].slices, (buffer,))
        if self.there is not None:
            return _Source(self.there, (), turn * self.sums.tile.depth), right
        return _Source(self.brought[0].slices, (buffer,)), right

    def unless_last(self, turn: Affine, stmt: Stmt) -> tuple[Stmt, ...]:
        """A statement for the slice after the one of number `turn`, if there is one."""
        full, rest = divmod(self.count, self.sums.tile.depth)
        if rest:
            return (stmt,)
        return (If(less(turn, full - 1), (stmt,)),) if full > 1 else ()

    def bring(self, start: Affine) -> For:
        """Each thread reads its cells of the slice from a term on."""
        start = self.first + start
        return block(
            self.sums.tile.threads, lambda t: tuple(s for f in self.brought for s in f.bring(t, start))
        )

    def put(self, buffer: Affine) -> For:
        """Each thread puts these into a buffer, for all."""
        return block(
            self.sums.tile.threads, lambda t: tuple(s for f in self.brought for s in f.put(t, buffer))
        )


class Tiling:
    """One product of one sum, and a tile of it, whose first row and column have the numbers `row` and
    `column`."""

    def __init__(self, product: Product, tile: Tile, access_bytes: int, row: Affine, column: Affine) -> None:
        (self.total,) = product.sums
        self.product = product
        self.tile = tile
        self.access_bytes = access_bytes
        self.row = row
        self.column = column
        self.sums = Sums.of(self.total, tile, access_bytes)

    def left(self) -> Factor:
        """The factor that varies by row."""
        return self.factor(self.total.left, self.product.rows, self.row, self.tile.rows, self.tile.depth)

    def right(self, together: int = 0) -> Factor:
        """The factor that varies by column, whose terms are gone through by so many, or slice by slice."""
        columns, together = self.product.columns, together or self.tile.depth
        return self.factor(self.total.right, columns, self.column, self.tile.columns, together)

    def factor(self, value: Expr, side: For, first: Affine, size: int, together: int) -> Factor:
        """One of the two."""
        return Factor.of(self.total, value, side, first, size, self.tile, self.access_bytes, together)

    def begin(self) -> For:
        """The sums, as they start."""
        start, sums = self.total.start, self.sums.sums

        def cell(own: Own, row: Affine, column: Affine) -> tuple[Stmt, ...]:
            values = {self.product.rows.symbol: row, self.product.columns.symbol: column}
            return (Store(sums, own, substitute(start, values)),)

        if not isinstance(start, Const):
            zero = constant(0, sums.dtype)
            return self.cells(cell, 1, lambda own, _row, _column: (Store(sums, own, zero),))

        def inside(thread: Symbol) -> tuple[Stmt, ...]:
            r, c = Symbol("r"), Symbol("c")
            own = (Affine.of(thread), Affine.of(r), Affine.of(c))
            row = unrolled(c, self.tile.wide, (Store(sums, own, start),))
            return (unrolled(r, self.tile.high, (row,)),)

        return block(self.tile.threads, inside)

    def end(self) -> For:
        """What is done with the sums."""
        return self.cells(self.done, self.lanes_of_epilogue())

    def done(self, own: Own, row: Affine, column: Affine) -> tuple[Stmt, ...]:
        """What is done with a sum."""
        product = self.product
        epilogue = tuple(
            replace(stmt, value=Load(self.sums.sums, own))
            if isinstance(stmt, Define) and stmt.variable is self.total.variable
            else stmt
            for stmt in product.epilogue
        )
        values = {product.rows.symbol: row, product.columns.symbol: column}
        return Copying(values, {}).body(epilogue)

    def lanes_of_epilogue(self) -> int:
        """How many neighbours of a row a thread may store at once."""
        columns, written = self.product.columns, set[Tensor]()
        for stmt in self.product.epilogue:
            read = set(storages_read(expressions(stmt)))
            if read & written:
                return 1
            if isinstance(stmt, Store):
                if stride(stmt.tensor, stmt.index, columns.symbol) != 1:
                    return 1
                written.add(stmt.tensor.storage)
        return 1 if (columns.trips or 0) % self.sums.lanes else self.sums.lanes

    def cells(self, cell: Cell, lanes: int, other: Cell | None = None) -> For:
        """What is done for each of a thread's sums, by `lanes` neighbours: `cell` if it is one of the
        product's, else `other`."""
        tile, unit = self.tile, self.sums.lanes
        rows, columns = self.product.rows, self.product.columns

        def inside(thread: Symbol) -> tuple[Stmt, ...]:
            corner = self.sums.corner(thread)
            r, g, group, part, lane = Symbol("r"), Symbol("g"), Symbol("c"), Symbol("p"), Symbol("l")
            down = corner.row + Affine.of(g) * (unit * WARP_ROWS) + r
            place = Affine.of(part) * lanes + lane
            right = corner.column + Affine.of(group) * (unit * WARP_COLUMNS) + place
            own = (Affine.of(thread), Affine.of(g) * unit + r, Affine.of(group) * unit + place)
            at = own, rows.lo + self.row + down, columns.lo + self.column + right
            body = cell(*at)
            kind = LoopKind.VECTOR if lanes > 1 else LoopKind.UNROLLED
            body = unless_once(For(lane, ZERO, Affine.of(lanes), body, kind, lanes=lanes))
            guards = []
            if (rows.trips or 0) % tile.rows:
                guards.append(less(self.row + down, rows.trips or 0))
            if (columns.trips or 0) % tile.columns:
                first = corner.column + Affine.of(group) * (unit * WARP_COLUMNS) + Affine.of(part) * lanes
                guards.append(less(self.column + first, columns.trips or 0))
            if guards:
                otherwise = other(*at) if other else ()
                if otherwise:
                    otherwise = unless_once(For(lane, ZERO, Affine.of(lanes), otherwise, LoopKind.UNROLLED))
                body = (If(all_of(guards), body, Copying({}, {}).body(otherwise)),)
            for symbol, count in ((part, unit // lanes), (group, tile.wide // unit), (r, unit),
                                  (g, tile.high // unit)):  # fmt: skip
                body = unless_once(unrolled(symbol, count, body))
            return (*corner.binds, *body)

        return block(tile.threads, inside)


def tiles_of(side: For, size: int) -> For:
    """The loop over the tiles of a side."""
    count = -(-(side.trips or 0) // size)
    symbol = Symbol(f"{side.symbol.hint}_tile", lower=0, upper=count)
    return For(symbol, ZERO, Affine.of(count), (), LoopKind.PARALLEL)
