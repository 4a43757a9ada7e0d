"""along: sums down the columns of rows that a nest before goes through are formed on its way.

    for i in parallel(0, 3000):                     for j in parallel(0, 3500):
        t = 0.0                                         sums[j] = 0.0
        for j in parallel(0, 3500):                 for b in sequential(0, 375):
            t = fma(a[i, j], x[j], t)                   for i in parallel(0, 8):
        y[i] = t                                            t = 0.0
    for j in parallel(0, 3500):                             for j in parallel(0, 3500):
        s = 0.0                            ->                   t = fma(a[8*b + i, j], x[j], t)
        for i in parallel(0, 3000):                         y[8*b + i] = t
            s = fma(a[i, j], y[i], s)                   for j in parallel(0, 3500):
        z[j] = s                                            s = sums[j]
                                                            for i in sequential(0, 8):
                                                                s = fma(a[8*b + i, j], y[8*b + i], s)
                                                            sums[j] = s
                                                    for j in parallel(0, 3500):
                                                        z[j] = sums[j]

A large array is brought from memory once for both: the few rows of a block stay in a near cache. Every sum is
made of the very operations of before, in their order: what `cascade` would add up in a tree stays, as it does
for more threads.

    for i in parallel(0, 3000):                     for b in sequential(0, 375):
        for j in parallel(0, 3500):                     for j in parallel(0, 3500):
            a[i, j] = add(a[i, j], x[j])       ->           s = sums[j]
    for j in parallel(0, 3500):                             for i in sequential(0, 8):
        s = 0.0                                                 a[8*b + i, j] = add(a[8*b + i, j], x[j])
        for i in parallel(0, 3000):                             s = fma(a[8*b + i, j], y[8*b + i], s)
            s = fma(a[i, j], y[i], s)                       sums[j] = s
        z[j] = s

Cells that the nest changes one by one are added as soon as they are made, where that was seen to gain
(Zen 5): a block's rows go beside one another then, which takes 0.6 to 0.9 of the time.

The blocks are taken in order; two threads that only read the array share the rows of each,
and then the columns: their blocks are as many rows as stay in the cache that they have in common.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from functools import partial

from ...frozen import frozen, slotted
from ...ir.code import Caps
from ...ir.expr import Load, Local, Variable
from ...ir.index import Affine, Symbol, symbols_of
from ...ir.loops import Define, For, Kernel, LoopKind, Place, PlaceKind, Stmt, Store, Update
from ...ir.tensor import Tensor
from ...ir.walk import expressions, kept, locals_defined, rewrite_bodies
from ..analysis.access import Effects, Range, effects
from ..analysis.accumulations import SHORT, sums_short_rows
from ..analysis.carriers import disturb, meetings
from ..analysis.copies import Copying, copy_body, unless_once
from ..analysis.costs import cost_of
from ..analysis.strides import affine_accesses, stride
from ..analysis.trips import enter
from ..products.products import product_of
from .cascade import goes_in_tree

__all__ = ["along"]

ROWS = 8
"""How many rows are gone through at once."""

THREADS = 2
"""More of them have not been seen to gain by it."""

SHARED = 8
"""A block that threads share is such a part of the last cache: for smaller ones they would wait too often."""

NEAR = 4
"""So many statements may stand between the two nests."""

LITTLE = 12
"""Additions that making a cell costs at most which is added to a sum at once."""

NEAR_ROW, FAR_ROW = 2048, 8192
"""Bytes of a row at least, in arrays that half of the last cache holds and in larger ones, that is gone
through beside the others of its block: short ones all start anew too often."""

ZERO = Affine.of(0)


def along(kernel: Kernel, caps: Caps) -> Kernel:
    """The kernel with sums of columns formed while their rows are near."""
    if caps.threads > THREADS:
        return kernel
    joining = _Joining(caps)
    body = joining.body(kernel.body)
    return kernel.with_body(body, joining.notes, joining.placement)


@frozen
class _Sums:
    """A loop over columns that sums over rows: what is done for each column before, for each row, and after;
    `homes` are rows that hold the locals of a column from one to the other."""

    columns: For
    before: tuple[Stmt, ...]
    rows: For
    after: tuple[Stmt, ...]
    homes: Mapping[Variable, Tensor]

    def loop(self, body: tuple[Stmt, ...]) -> For:
        """Some statements for all columns; the locals of a column that they need come from their homes, and
        those that they change go back there."""
        column = Symbol(self.columns.symbol.hint)
        here = (Affine.of(column),)
        seen = effects(body, {})
        needed = [v for v in self.homes if v in seen.uses or v in seen.updates]
        found = {v: Variable(v.hint, v.dtype) for v in needed}
        copy = Copying({self.columns.symbol: self.columns.lo + Affine.of(column)}, found)
        inside = copy.body(body)
        made = locals_defined(body) | seen.updates
        taken = (Define(name, Load(self.homes[v], here)) for v, name in found.items())
        put = (Store(self.homes[v], here, Local(copy.variables[v])) for v in self.homes if v in made)
        extent = self.columns.hi - self.columns.lo
        return For(column, ZERO, extent, (*taken, *inside, *put), LoopKind.PARALLEL)


@slotted
class _Joining:
    """What is found out on the way through a kernel; `ranges` are those of the loops around."""

    caps: Caps
    placement: dict[Tensor, Place] = field(default_factory=dict)
    ranges: dict[Symbol, Range] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def body(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """Not inside loops whose iterations are independent: they would have to share the rows of sums."""
        out: list[Stmt] = []
        for stmt in body:
            if isinstance(stmt, For):
                enter(stmt, self.ranges)
            sums = _sums(stmt)
            first = None if sums is None else self.partner(sums, out)
            if sums is not None and first is not None:
                out = [other for other in out if other is not first]
                out.extend(self.together(first, sums))
                continue
            if not isinstance(stmt, For) or stmt.kind is LoopKind.SEQUENTIAL:
                stmt = rewrite_bodies(stmt, self.body)
            out.append(stmt)
        return kept(body, out)

    def partner(self, sums: _Sums, before: Sequence[Stmt]) -> For | None:
        """The statement before that goes through the rows, if it may do so now as well."""
        between = Effects()
        for stmt in before[: -NEAR - 1 : -1]:
            found = effects((stmt,), self.ranges)
            if isinstance(stmt, For) and self.fits(stmt, sums):
                return None if disturb(found, between) else stmt
            between.add(found)
        return None

    def fits(self, first: For, sums: _Sums) -> bool:
        """May the sums be formed block by block, each after the same block of the nest `first`, and is
        something brought from memory once less?"""
        if (
            first.bounds != sums.rows.bounds
            or first.kind is not LoopKind.PARALLEL
            or product_of(first) is not None
        ):
            return False
        if goes_in_tree(sums.rows) or (sums.columns.trips or 0) <= SHORT or sums_short_rows(first):
            return False
        enter(first, self.ranges)
        enter(sums.rows, self.ranges)
        row, column = sums.rows.symbol, sums.columns.symbol
        makes, start = effects(first.body, self.ranges), effects(sums.before, self.ranges)
        takes = effects(sums.rows.body, self.ranges).renamed({row: Affine.of(first.symbol)})
        takes = takes.without({column: self.ranges.get(column)})
        if makes.updates or disturb(makes, start):
            return False
        handed_on = meetings(makes.writes, takes.reads, (first.symbol,), self.ranges)
        return all(apart[first.symbol] == (0, 0) for apart in handed_on) and self.pays(sums, makes)

    def pays(self, sums: _Sums, makes: Effects) -> bool:
        """Do both go through rows of an array too large for the caches, a block of which is not?"""
        height, width = sums.rows.trips or 0, sums.columns.trips or 0
        for tensor, index, _ in affine_accesses(sums.rows.body):
            down, right = (stride(tensor, index, loop.symbol) for loop in (sums.rows, sums.columns))
            row = width * tensor.dtype.itemsize
            large = row * height > self.caps.l2_bytes and row * ROWS <= self.caps.l2_bytes // 2
            both = tensor.storage in makes.reads or tensor.storage in makes.writes
            if large and both and right == 1 and down is not None and abs(down) >= width:
                return True
        return False

    def cells(self, first: For, sums: _Sums) -> For | None:
        """The loop over a row of the nest `first`, if it goes through one array alone, makes each cell by
        itself and at little cost, and the sums take of it just what is in their row and column."""
        *before, cells = first.body
        columns = sums.columns
        if not self.caps.ahead.rows or not isinstance(cells, For) or cells.kind is not LoopKind.PARALLEL:
            return None
        if (cells.lo, cells.hi, cells.step) != (columns.lo, columns.hi, 1):
            return None
        if not all(isinstance(stmt, Define) and isinstance(stmt.value, Load) for stmt in before):
            return None
        if not all(isinstance(stmt, Define) or _is_plain_store(stmt) for stmt in cells.body):
            return None
        cost = sum(cost_of(expr) for stmt in cells.body for expr in expressions(stmt))
        if cost > LITTLE or not self.is_one(first, cells, sums):
            return None
        enter(cells, self.ranges)
        both = {sums.rows.symbol: Affine.of(first.symbol), columns.symbol: Affine.of(cells.symbol)}
        makes, takes = effects(cells.body, self.ranges), effects(sums.rows.body, self.ranges).renamed(both)
        if not makes.writes.keys().isdisjoint(effects(before, self.ranges).reads):
            return None  # what is read once for a row would be read again for each cell
        handed_on = meetings(makes.writes, takes.reads, (first.symbol, cells.symbol), self.ranges)
        return cells if all(set(apart.values()) == {(0, 0)} for apart in handed_on) else None

    def is_one(self, first: For, cells: For, sums: _Sums) -> bool:
        """Do both go through the rows of one array only, and are these long?"""
        rows, columns = {first.symbol, sums.rows.symbol}, {cells.symbol, sums.columns.symbol}
        named = (
            (tensor.storage, set(symbols_of(index)))
            for tensor, index, _ in affine_accesses((*cells.body, *sums.rows.body))
        )
        arrays = {storage for storage, symbols in named if symbols & rows and symbols & columns}
        if len(arrays) != 1:
            return False
        row = (cells.trips or 0) * arrays.pop().dtype.itemsize
        is_near = 2 * row * (first.trips or 0) <= self.caps.l3_bytes
        return row >= (NEAR_ROW if is_near else FAR_ROW)

    def together(self, first: For, sums: _Sums) -> Sequence[Stmt]:
        reason = "sums down the columns go on from block to block of rows"
        self.placement |= {home: Place(PlaceKind.ARENA, reason) for home in sums.homes.values()}
        names, height = ", ".join(variable.hint for variable in sums.homes), self.height(first, sums)
        self.notes.append(
            f"along: {names}: summed along with the rows of the nest before, {height} at a time"
        )
        cells = self.cells(first, sums) if height == ROWS else None
        part = partial(_rows, first, sums) if cells is None else partial(_columns, first, cells, sums)
        blocks = _in_blocks(first.lo, sums.rows.trips or 0, height, first, part)
        return (sums.loop(sums.before), *blocks, sums.loop(sums.after))

    def height(self, first: For, sums: _Sums) -> int:
        """How many rows a block has. Rows that change stay with the thread that changes them: another one
        would wait for them longer than for memory."""
        makes, takes = (effects(loop.body, self.ranges) for loop in (first, sums.rows))
        changes = any(tensor.rank > 1 for tensor in makes.writes.keys() & takes.reads.keys())
        if self.caps.threads == 1 or changes:
            return ROWS
        row = max(home.nbytes for home in sums.homes.values())
        return max(1, self.caps.l3_bytes // (SHARED * ROWS * row)) * ROWS


def _in_blocks(
    start: Affine, count: int, height: int, loop: For, part: Callable[[Affine, int], tuple[Stmt, ...]]
) -> tuple[Stmt, ...]:
    """What is to be done for so many rows from `start` on, block by block, each of them as `part` says."""
    times, rest = divmod(count, height)
    block = Symbol(loop.symbol.hint)
    whole = part(start + Affine.of(block) * height, height)
    blocks = unless_once(For(block, ZERO, Affine.of(times), whole)) if times else ()
    return (*blocks, *(part(start + times * height, rest) if rest else ()))


def _rows(first: For, sums: _Sums, start: Affine, count: int) -> tuple[Stmt, ...]:
    """Some rows of the nest, then their part of the sums."""
    own = Symbol(first.symbol.hint)
    body = copy_body(first.body, {first.symbol: start + own}, {})
    made = For(own, ZERO, Affine.of(count), body, LoopKind.PARALLEL)
    return made, *_in_blocks(start, count, ROWS, sums.rows, partial(_terms, sums))


def _columns(first: For, cells: For, sums: _Sums, start: Affine, count: int) -> tuple[Stmt, ...]:
    """Some rows of the nest, whose cells are added to the sums as soon as they are made."""
    row = Symbol(sums.rows.symbol.hint)
    here = {first.symbol: start + row, cells.symbol: Affine.of(sums.columns.symbol)}
    made = copy_body((*first.body[:-1], *cells.body), here, {})
    terms = copy_body(sums.rows.body, {sums.rows.symbol: start + row}, {})
    return (sums.loop((For(row, ZERO, Affine.of(count), (*made, *terms)),)),)


def _terms(sums: _Sums, start: Affine, count: int) -> tuple[Stmt, ...]:
    """The part of the sums that a few rows are."""
    row = Symbol(sums.rows.symbol.hint)
    terms = copy_body(sums.rows.body, {sums.rows.symbol: start + row}, {})
    return (sums.loop((For(row, ZERO, Affine.of(count), terms),)),)


def _is_plain_store(stmt: Stmt) -> bool:
    return isinstance(stmt, Store) and stmt.accum is None


def _sums(stmt: Stmt) -> _Sums | None:
    """The sums that a statement forms, if it does and all is known about them."""
    if not isinstance(stmt, For) or stmt.kind is not LoopKind.PARALLEL or stmt.step != 1 or not stmt.trips:
        return None
    loops = [number for number, inner in enumerate(stmt.body) if isinstance(inner, For)]
    if len(loops) != 1:
        return None
    before, rows, after = stmt.body[: loops[0]], stmt.body[loops[0]], stmt.body[loops[0] + 1 :]
    assert isinstance(rows, For)
    if rows.step != 1 or not rows.trips or stmt.symbol in rows.bound_by:
        return None
    plain = all(isinstance(inner, Define) for inner in before)
    if not plain or not all(isinstance(inner, (Define, Update)) for inner in rows.body):
        return None
    if not all(isinstance(inner, (Define, Update, Store)) for inner in after):
        return None
    homes = {
        inner.variable: Tensor(f"{inner.variable.hint}_row", (Affine.of(stmt.trips),), inner.variable.dtype)
        for inner in before
        if isinstance(inner, Define)
    }
    return _Sums(stmt, before, rows, after, homes)
