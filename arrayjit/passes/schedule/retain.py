"""retain: what the next row computes again is kept for it.

    for i in parallel(0, 62):                       for j in parallel(0, 60):
        for j in parallel(0, 60):                       old[j] = sqrt(a[0, j])
            y[i, j] = subtract(             ->      for i in sequential(0, 31):
                sqrt(a[i + 1, j]),                      for j in parallel(0, 60):
                sqrt(a[i, j]))                              t = sqrt(a[2*i + 1, j])
                                                            new[j] = t
                                                            y[2*i, j] = subtract(t, old[j])
                                                        for j in parallel(0, 60):
                                                            t = sqrt(a[2*i + 2, j])
                                                            old[j] = t
                                                            y[2*i + 1, j] = subtract(t, new[j])

This is predictive commoning [Kennedy and Allen, Optimizing Compilers for Modern Architectures, 8.3], of rows
in place of scalars. Of two values of one shape (`shifts`) the one that is a row further on is computed and
stored in one of two rows; the others are read from the row before, at their neighbours' places too: what lies
beyond the ends of the loops is computed after the row. That pays where a value takes longer to compute than
to store and to load again. The largest values come first: what only they needed is no longer computed at all.

Rows now go in order. The nest is cut into strips of columns, which threads share, and whose rows stay in the
second cache, those that are read again and those that come and go among them.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import field, replace

from ...frozen import frozen, slotted
from ...ir.code import Caps
from ...ir.dtype import DType
from ...ir.expr import Apply, Cast, Expr, Gather, Load, Local, Variable, dtype_of
from ...ir.index import Affine, Symbol
from ...ir.loops import Define, For, LoopKind, Place, PlaceKind, Stmt, Store, nested, written_in
from ...ir.ops import divides_integers
from ...ir.tensor import Tensor
from ...ir.walk import children, rebuild, rewrite_expressions, substitute_statements, walk
from ..analysis.access import Ranges
from ..analysis.boxes import Box, size, without
from ..analysis.copies import in_steps, unless_once
from ..analysis.inside import exists
from ..analysis.latency import SLOW
from ..analysis.loopwise import Site, loopwise
from ..analysis.shifts import Numbering, Offset, Value
from ..analysis.strides import affine_accesses, known_bytes, parallel_nest
from ..analysis.trips import enter

__all__ = ["retain"]

LEAST_ROWS = 8
"""Fewer rows are not worth the first one, which is computed twice."""

LARGE = 2000
"""The most nodes of a value that is written out once more."""

NEAR, FAR = 1.0, 2.0
"""What a load or a store costs, in additions, of rows that stay in the first cache or in the second."""

BUSY, COVERED = 4, 6.0
"""Where so many operations are begun in a cycle (Zen 5), loops over what the last cache does not hold compute
while they wait for memory: what is kept saves time only where so many additions make up for each load and
store. Divisions and roots count twice. Stencils of stencils, limiters and the diffusion of a weather model
take 0.53 to 0.8 of the time computed again."""

LONG = 300
"""Bodies with more values are left alone: each is written at least twice."""

NARROW = 32
"""A row of a strip has so many cells at least."""

BEYOND = 8
"""Of so many cells one may lie beyond the ends of the loops."""

AROUND, APART = 2, 8
"""What a strip costs beside its columns, in columns; and if it has a text of its own."""


@loopwise
def retain(loop: For, site: Site) -> Sequence[Stmt] | None:
    """Every nest that keeps what the next row needs. Not inside loops whose iterations are independent: they
    would have to share the rows."""
    return None if loop.kind is LoopKind.SEQUENTIAL else _Retaining(site).nest(loop)


@frozen
class _Kept:
    """What a row keeps for the next: `made` is computed for a cell, `taken` are values that were made for the
    row before at cells so far from it. For each loop in a row, so many cells `before` the first one and
    `behind` the last one are kept too."""

    made: Value
    dtype: DType
    taken: Mapping[Value, tuple[int, ...]]
    before: tuple[int, ...]
    behind: tuple[int, ...]

    def cells(self, extents: Sequence[int]) -> Box:
        """The cells of a row whose loops go through so many."""
        return tuple(
            range(-before, extent + behind)
            for before, extent, behind in zip(self.before, extents, self.behind, strict=True)
        )

    def nbytes(self, extents: Sequence[int]) -> int:
        return size(self.cells(extents)) * self.dtype.itemsize

    def tensor(self, extents: Sequence[int]) -> Tensor:
        """A row in memory."""
        lengths = [len(span) for span in self.cells(extents)]
        joined = self.joined
        return Tensor.of("kept", (*lengths[:-joined], math.prod(lengths[-joined:])), self.dtype)

    def index(self, cell: Sequence[Affine], extents: Sequence[int]) -> tuple[Affine, ...]:
        """Where a cell lies there."""
        moved = [position + before for position, before in zip(cell, self.before, strict=True)]
        start = len(moved) - self.joined
        last = moved[start]
        for position, extent in zip(moved[start + 1 :], extents[start + 1 :], strict=True):
            last = last * extent + position
        return *moved[:start], last

    @property
    def joined(self) -> int:
        """How many loops are one axis in memory: the last one and those around what is kept whole."""
        count = 1
        while count < len(self.before) and self.before[-count] == self.behind[-count] == 0:
            count += 1
        return count


@frozen
class _Retaining:
    """What is found out on the way through a nest."""

    site: Site

    def nest(self, nest: For) -> Sequence[Stmt]:
        """A nest, its rows in order if they have something to keep."""
        band = parallel_nest(nest)
        if len(band) < 2 or not all(isinstance(stmt, (Define, Store)) for stmt in band[-1].body):
            return [nest]
        if not all(loop.step == 1 and loop.lo.is_constant and loop.hi.is_constant for loop in band):
            return [nest]
        free = 1
        for depth, loop in enumerate(band[:-1]):
            enter(loop, self.site.ranges)
            threads = 1 if free >= self.site.caps.threads else self.site.caps.threads
            if (loop.trips or 0) >= LEAST_ROWS and _has_neighbours(loop, band[-1].body):
                rows = _Rows.of(loop, band[depth + 1 :])
                if rows.survey(self.site.caps, self.site.ranges):
                    return self.in_order(band[:depth], rows, threads) or [nest]
            free *= loop.trips or 0
        return [nest]

    def in_order(self, around: Sequence[For], rows: _Rows, threads: int) -> Sequence[Stmt]:
        """The nest with rows in order, in strips for so many threads; nothing if these are too narrow."""
        most = rows.extents[0] * self.site.caps.l2_bytes // (2 * rows.nbytes(rows.extents) + rows.touched())
        width = _width(rows.extents[0], most, threads)
        if not rows.is_wide(width):
            return ()
        count, left = divmod(rows.extents[0], width)
        strip = Symbol("strip")
        columns = self.strip(rows, Affine.of(strip) * width, width)
        body = unless_once(For(strip, Affine.of(0), Affine.of(count), columns, LoopKind.PARALLEL))
        if left:
            body += self.strip(rows, Affine.of(count * width), left)
        self.site.notes.append(
            f"retain: loop {rows.loop.symbol.hint} of {rows.loop.trips}: {len(rows.kept)} values of a row "
            f"are kept for the next, in strips of {width} columns"
        )
        return nested(around, body)

    def strip(self, rows: _Rows, start: Affine, width: int) -> tuple[Stmt, ...]:
        """So many columns of all rows."""
        strip = _Strip.of(rows, start, width)
        place = Place(PlaceKind.SCRATCH, "two rows are left of what the next one needs")
        self.site.placement |= dict.fromkeys((*strip.even, *strip.odd), place)
        return tuple(strip.body())


@slotted
class _Rows:
    """A loop over rows, the loops of a row, the values of its body, those that are stored, and those that are
    kept for the next row."""

    loop: For
    row: Sequence[For]
    values: Numbering
    stored: list[Value]
    kept: list[_Kept] = field(default_factory=list)

    @property
    def body(self) -> tuple[Stmt, ...]:
        return self.row[-1].body

    @property
    def extents(self) -> tuple[int, ...]:
        """How many cells the loops of a row go through."""
        return tuple(loop.trips or 0 for loop in self.row)

    @staticmethod
    def of(loop: For, row: Sequence[For]) -> _Rows:
        values, stored = Numbering([loop.symbol, *(inner.symbol for inner in row)]), []
        for stmt in row[-1].body:
            if isinstance(stmt, Define):
                values.define(stmt.variable, stmt.value)
            elif isinstance(stmt, Store):
                stored.append(values.number(stmt.value))
        return _Rows(loop, row, values, stored)

    def survey(self, caps: Caps, ranges: Ranges) -> bool:
        """Find what to keep; `ranges` are those of the loops around."""
        everything = self.computed(())
        if len(everything) > LONG:
            return False
        alike: dict[int, list[Value]] = {}
        for value, cost in everything.items():
            if cost and value.offset[0] is not None:
                alike.setdefault(value.shape, []).append(value)
        again = [values for values in alike.values() if len({value.offset[0] for value in values}) > 1]
        for values in sorted(again, key=lambda values: -self.values.sizes[values[0]]):
            computed = self.computed(self.kept)
            one = self.kept_of([value for value in values if value in computed])
            if one is not None and self.may_keep(one, ranges) and self.pays(one, caps):
                self.kept.append(one)
        return bool(self.kept)

    def computed(self, keeping: Sequence[_Kept]) -> dict[Value, float]:
        """The values that a cell loads or computes, by what the last step of each costs."""
        taken = {value for one in keeping for value in one.taken}
        found: dict[Value, float] = {}
        pending = list(self.stored)
        while pending:
            value = pending.pop()
            if value not in found and value not in taken:
                expr = self.values.expressions[value]
                found[value] = expr.op.cost if isinstance(expr, Apply) else 0.0
                pending += self.values.operands[value]
        return found

    def kept_of(self, alike: Sequence[Value]) -> _Kept | None:
        """What is kept of values of one shape, if some are of one row and some of the next."""
        places = {value: _numbers(value.offset) for value in alike}
        if len(places) < 2 or not all(places.values()):
            return None
        made = max(places, key=lambda value: places[value])
        last, *here = places[made]
        taken = {
            value: tuple(b - a for a, b in zip(here, there, strict=True))
            for value, (row, *there) in places.items()
            if row == last - 1
        }
        if not taken:
            return None
        columns = list(zip(*taken.values(), strict=True))
        before = tuple(-min(0, *parts) for parts in columns)
        behind = tuple(max(0, *parts) for parts in columns)
        return _Kept(made, dtype_of(self.values.expressions[made]), taken, before, behind)

    def may_keep(self, one: _Kept, ranges: Ranges) -> bool:
        """Can the value be computed a row earlier, and beyond the ends of the loops, from what stays the same
        meanwhile?"""
        if self.values.sizes[one.made] > LARGE or not one.dtype.is_float:
            return False
        written = written_in(self.body)
        known = {**ranges, self.loop.symbol: (self.loop.lo.constant - 1, self.loop.hi.constant - 1)}
        for loop, span in zip(self.row, one.cells(self.extents), strict=True):
            known[loop.symbol] = loop.lo.constant + span.start, loop.lo.constant + span.stop - 1
        for node in walk(self.values.elsewhere(one.made, {})):
            match node:
                case Load(tensor=tensor, index=index):
                    if tensor.storage in written or not exists(tensor, index, known):
                        return False
                case Gather():
                    return False
                case _ if _may_fail(node):
                    return False
                case _:
                    pass
        return True

    def pays(self, one: _Kept, caps: Caps) -> bool:
        """Does it take less to store a value and to load it than to compute it?"""
        nbytes = 2 * sum(other.nbytes(self.extents) for other in (*self.kept, one))
        before, after = self.computed(self.kept), self.computed([*self.kept, one])
        saved = sum(before.values()) - sum(after.values())
        price = NEAR if nbytes <= caps.l1_bytes // 2 else FAR
        if caps.pipes.at_once >= BUSY and known_bytes(self.body) > caps.l3_bytes:
            price = COVERED
            saved += sum(cost for value, cost in before.items() if value not in after and self.divides(value))
        return saved > (1 + len(one.taken)) * price

    def divides(self, value: Value) -> bool:
        expr = self.values.expressions[value]
        return isinstance(expr, Apply) and expr.op.name in SLOW

    def nbytes(self, extents: Sequence[int]) -> int:
        """What is kept of a row whose loops go through so many cells."""
        return sum(one.nbytes(extents) for one in self.kept)

    def touched(self) -> int:
        """How many bytes the rows of arrays have that an iteration touches, from the first to the last."""
        places: dict[tuple[Tensor, int], set[int]] = {}
        for tensor, index, _ in affine_accesses(self.body):
            for axis, position in enumerate(index):
                if position.coefficient(self.loop.symbol) == 1:
                    places.setdefault((tensor, axis), set()).add(position.offset)
        return sum(
            (max(rows) - min(rows) + 1) * math.prod(self.extents) * tensor.dtype.itemsize
            for (tensor, _), rows in places.items()
        )

    def is_wide(self, width: int) -> bool:
        """Is a row of a strip worth a loop, and does little of all that is kept lie beyond its ends?"""
        extents = width, *self.extents[1:]
        inside = math.prod(extents) * sum(one.dtype.itemsize for one in self.kept)
        return math.prod(extents) >= NARROW and (self.nbytes(extents) - inside) * BEYOND <= inside


@frozen
class _Strip:
    """Some columns of all rows: cells of the outermost loop in a row. Rows with an even number find in `even`
    what they need of the row before, those with an odd number in `odd`."""

    rows: _Rows
    starts: tuple[Affine, ...]
    extents: tuple[int, ...]
    even: tuple[Tensor, ...]
    odd: tuple[Tensor, ...]

    @staticmethod
    def of(rows: _Rows, start: Affine, width: int) -> _Strip:
        first, *others = (loop.lo for loop in rows.row)
        extents = width, *rows.extents[1:]
        even, odd = (tuple(one.tensor(extents) for one in rows.kept) for _ in range(2))
        return _Strip(rows, (first + start, *others), extents, even, odd)

    def body(self) -> Iterator[Stmt]:
        """What the first row needs; then the rows."""
        loop, kept = self.rows.loop, self.rows.kept
        for one, into in zip(kept, self.even, strict=True):
            yield self.made(one, into, loop.lo - 1, one.cells(self.extents))
        even, odd = self.one_row(self.even, self.odd), self.one_row(self.odd, self.even)
        yield from in_steps(replace(loop, body=even, kind=LoopKind.SEQUENTIAL), (even, odd))

    def one_row(self, before: Sequence[Tensor], now: Sequence[Tensor]) -> tuple[Stmt, ...]:
        """A row, with what is kept of the row before and of this one."""
        symbols = [loop.symbol for loop in self.rows.row]
        positions = {symbol: start + symbol for symbol, start in zip(symbols, self.starts, strict=True)}
        body = substitute_statements(_Writing(self, before, now).written(), positions)
        for symbol, extent in zip(reversed(symbols), reversed(self.extents), strict=True):
            body = (For(symbol, Affine.of(0), Affine.of(extent), body, LoopKind.PARALLEL),)
        here = Affine.of(self.rows.loop.symbol)
        beyond = (
            self.made(one, into, here, cells)
            for one, into in zip(self.rows.kept, now, strict=True)
            for cells in without(one.cells(self.extents), tuple(map(range, self.extents)))
        )
        return (*body, *beyond)

    def made(self, one: _Kept, into: Tensor, row: Affine, cells: Box) -> Stmt:
        """A nest that computes and stores some cells of a row."""
        symbols = [Symbol(loop.symbol.hint) for loop in self.rows.row]
        here = [Affine.of(symbol) for symbol in symbols]
        positions = {self.rows.loop.symbol: row}
        for loop, start, position in zip(self.rows.row, self.starts, here, strict=True):
            positions[loop.symbol] = start + position
        stmt: Stmt = Store(
            into, one.index(here, self.extents), self.rows.values.elsewhere(one.made, positions)
        )
        for symbol, span in zip(reversed(symbols), reversed(cells), strict=True):
            stmt = For(symbol, Affine.of(span.start), Affine.of(span.stop), (stmt,), LoopKind.PARALLEL)
        return stmt

    def cell(self, one: _Kept, apart: Sequence[int]) -> tuple[Affine, ...]:
        """Where the cell that is so far from where the loops of the row are lies in memory."""
        cell = [
            loop.symbol - start + part
            for loop, start, part in zip(self.rows.row, self.starts, apart, strict=True)
        ]
        return one.index(cell, self.extents)


class _Writing:
    """The body of a row, which takes values from the row `before` and keeps those of `now`."""

    def __init__(self, strip: _Strip, before: Sequence[Tensor], now: Sequence[Tensor]) -> None:
        self.rows = strip.rows
        self.lines: list[Stmt] = []
        self.loads: dict[Value, Expr] = {}
        self.stores: dict[Value, tuple[Tensor, tuple[Affine, ...]]] = {}
        self.locals: dict[Value, Local] = {}
        for one, old, new in zip(self.rows.kept, before, now, strict=True):
            self.stores[one.made] = new, strip.cell(one, (0,) * len(strip.extents))
            self.loads |= {value: Load(old, strip.cell(one, apart)) for value, apart in one.taken.items()}

    def written(self) -> tuple[Stmt, ...]:
        """All of it but definitions that nothing needs any more."""
        needed = self.rows.computed(self.rows.kept)
        for stmt in self.rows.body:
            if isinstance(stmt, Define):
                value = self.rows.values.number(stmt.value)
                if value not in needed or value in self.stores:
                    continue
            self.lines.append(rewrite_expressions(stmt, self.expression))
        return tuple(self.lines)

    def expression(self, expr: Expr) -> Expr:
        value = self.rows.values.number(expr)
        if value in self.loads:
            return self.loads[value]
        if value in self.stores:
            return self.local(value)
        return rebuild(expr, tuple(self.expression(child) for child in children(expr)))

    def local(self, value: Value) -> Local:
        """A value that is kept, which is computed where it is needed first."""
        if value not in self.locals:
            expr = self.rows.values.expressions[value]
            made = rebuild(expr, tuple(self.expression(child) for child in children(expr)))
            variable = Variable("t", dtype_of(expr))
            self.locals[value] = Local(variable)
            self.lines.append(Define(variable, made))
            self.lines.append(Store(*self.stores[value], Local(variable)))
        return self.locals[value]


def _may_fail(node: Expr) -> bool:
    """Is it what cannot be done to all numbers: a division of integers, or a conversion to them?"""
    match node:
        case Apply(op=op, args=(arg, *_)):
            return divides_integers(op, dtype_of(arg))
        case Cast(arg=arg, dtype=dtype):
            return dtype_of(arg).is_float and dtype.is_integer
        case _:
            return False


def _has_neighbours(loop: For, body: tuple[Stmt, ...]) -> bool:
    """Does an iteration read some array at several places along the loop?"""
    seen: dict[Hashable, int] = {}
    return any(
        seen.setdefault((tensor, axis, position.terms), position.offset) != position.offset
        for tensor, index, stores in affine_accesses(body)
        for axis, position in enumerate(index)
        if not stores and position.coefficient(loop.symbol)
    )


def _numbers(offset: Offset) -> tuple[int, ...]:
    """An offset if it has a number for each loop, else nothing."""
    found = tuple(part for part in offset if part is not None)
    return found if len(found) == len(offset) else ()


def _width(columns: int, most: int, threads: int) -> int:
    """How many columns a strip has, `most` at most, so that threads are done soonest."""

    def time(width: int) -> int:
        count, left = divmod(columns, width)
        return -(-count // threads) * (width + AROUND) + (left + APART if left else 0)

    return min(range(max(1, min(most, -(-columns // threads))), 0, -1), key=time)
