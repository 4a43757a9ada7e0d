"""The loops of a blocked product.

    panels, which threads share                         blocks of rows, which threads share

    for p in parallel(0, 16):                           for p in parallel(0, 128):
        for k in parallel(0, 256):                          for k in parallel(0, 2048):
            for l in parallel(0, 16):                           for l in parallel(0, 16):
                right[k, l] = w[k, 16*p + l]                        right[p, k, l] = w[k, 16*p + l]
        ... the tile of all rows                        for b in parallel(0, 22):
                                                            ... left[r, k] = x[96*b + r, k]
                                                            for q in sequential(0, 16):
                                                                for p in sequential(0, 128):
                                                                    ... a sliver

A tile is made of slivers, each of as many rows as there are registers for:

    for q in sequential(0, 16):
        for l in vector(0, 16, lanes=16):
            c = 0.0
            c1 = 0.0  ...
            for k in sequential(0, 256, 4):
                for u in unrolled(0, 4):
                    t = right[k + u, l]
                    c = fma(left[6*q, k + u], t, c)
                    c1 = fma(left[6*q + 1, k + u], t, c1)  ...
            tile[6*q, l] = c
            tile[6*q + 1, l] = c1  ...
    for i in parallel(0, 96):
        for l in parallel(0, 16):
            y[96*b + i, 16*p + l] = tanh(add(tile[i, l], bias[16*p + l]))

A little that is done with a sum is done where that is, in registers, and there is no tile: 3000 x 100 x 1000
float64 with a bias and a ReLU take 0.7 of the time. In blocks a sliver goes through all panels, so that whole
rows are written.

Every sum has its one chain of operations, in order: a deep one leaves off in the tile and goes on from there.
A wide strip then goes through all its panels, packed a run at a time, before the next part of the terms.
Where rows or columns do not make whole slivers or panels, the last one overlaps the one before; if few
columns are left, their panel is narrower. One panel may be wider than all columns: it has zeros beside them,
whose sums nobody takes from the tile.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field, replace
from functools import partial

from ...frozen import slotted
from ...ir.conditions import compare, one_of
from ...ir.dtype import I64, DType
from ...ir.expr import Apply, Const, Expr, Index, Load, Local, Variable, dtype_of
from ...ir.index import Affine, Symbol
from ...ir.loops import Bind, Define, For, LoopKind, Place, PlaceKind, Stmt, Store, nested
from ...ir.ops import OPS
from ...ir.tensor import Tensor
from ...ir.walk import substitute
from ..analysis.copies import Copying, copy_body, unless_once
from ..analysis.repeats import may_repeat
from ..analysis.strides import stride
from ..analysis.trips import between, greater, lesser, quotient
from .ahead import following, requests
from .cuts import ZERO, Blocking, Onward, Panel, Rows, Strip, end_of, last_panel, row_numbers
from .depths import Depth, all_terms, some_terms, unrolled
from .products import Product, Sum

__all__ = ["blocked"]

BAND = 8
"""How many rows are copied into panels together: so many streams the hardware follows, and panels are written
in runs, not line by line with long steps between, of which the first cache holds few."""


def blocked(product: Product, blocking: Blocking, placement: dict[Tensor, Place]) -> tuple[Stmt, ...]:
    """The product's loops; `placement` gets what they keep."""
    return _Blocked(product, blocking, placement).all()


@slotted
class _Blocked:
    """One product on its way into blocks, and the packed copies and tiles that its sums read."""

    product: Product
    blocking: Blocking
    placement: dict[Tensor, Place]
    lefts: dict[Variable, Tensor] = field(default_factory=dict)
    rights: dict[Variable, Tensor] = field(default_factory=dict)
    tiles: dict[Variable, Tensor] = field(default_factory=dict)

    def all(self) -> tuple[Stmt, ...]:
        """The product; iterations around it take turns with memory that they share."""
        product, cut = self.product, self.blocking
        if cut.block is None and cut.left and product.has_same_rows:
            return (*self.packed_left(self.all_rows, PlaceKind.ARENA), *nested(product.around, self.strips()))
        if cut.block is None:
            return nested(product.around, self.strips(), LoopKind.SEQUENTIAL if cut.left else None)
        if not cut.right:
            return nested(product.around, self.blocks(cut.block))
        outer, inner = product.around[: product.shared], product.around[product.shared :]
        packing = self.packed_right()
        return nested(outer, (*packing, *nested(inner, self.blocks(cut.block))), LoopKind.SEQUENTIAL)

    def kept(self, name: str, shape: tuple[int, ...], dtype: DType, kind: PlaceKind, reason: str) -> Tensor:
        tensor = Tensor.of(name, shape, dtype)
        self.placement[tensor] = Place(kind, reason)
        return tensor

    # Strips and blocks

    @property
    def all_rows(self) -> Rows:
        rows = self.product.rows
        return Rows(ZERO, rows.hi - rows.lo, self.product.height, least=self.product.least[0])

    def strips(self) -> tuple[Stmt, ...]:
        """All rows of one strip after the other."""
        is_missing = self.blocking.left and not self.lefts
        before = self.packed_left(self.all_rows, PlaceKind.ARENA) if is_missing else ()
        return (*before, *self.each_strip(partial(self.tile, self.all_rows), self.blocking.strip))

    def blocks(self, block: int) -> tuple[Stmt, ...]:
        """All panels of one block of rows after the other."""
        symbol = Symbol("b")
        counting, blocks, here = self.each_block(symbol, block)
        packing = self.packed_left(here, PlaceKind.SCRATCH) if self.blocking.left else ()
        tiles = self.each_strip(partial(self.tile, here), self.blocking.strip, LoopKind.SEQUENTIAL)
        body = (*here.before, *packing, *tiles)
        return (*counting, *unless_once(For(symbol, ZERO, blocks, body, LoopKind.PARALLEL)))

    def each_block(self, symbol: Symbol, block: int) -> tuple[tuple[Stmt, ...], Affine, Rows]:
        """How many blocks there are, after what finds it out, and the rows of one. Of rows that only the run
        counts, the last block has what is left, or what is a sliver less than a block more than that."""
        rows, most, height = self.product.rows, self.product.height, self.blocking.rows
        start, count, left = Affine.of(symbol) * block, Affine.of(block), rows.hi - rows.lo
        if rows.trips is not None:
            blocks = Affine.of(-(-most // block))
            if most % block == 0:
                return (), blocks, Rows(start, count, block)
            rest = Symbol("rows", lower=1, upper=block + 1)
            before = (Bind(rest, lesser(count, left - start)),)
            return (), blocks, Rows(start, Affine.of(rest), block, before)
        counting, blocks = quotient("blocks", left + (block - height), block, most // block + 1, least=1)
        rest = Symbol("rows", lower=height, upper=block + height)
        is_last = compare("less", Index(left - start), Const(block + height, I64))
        before = (Bind(rest, one_of(is_last, Index(left - start), Index(count))),)
        return counting, blocks, Rows(start, Affine.of(rest), block + height - 1, before)

    def each_strip(
        self,
        one: Callable[[Strip], tuple[Stmt, ...]],
        size: int,
        kind: LoopKind = LoopKind.PARALLEL,
    ) -> tuple[Stmt, ...]:
        """What `one` makes of a strip of panels, for all of them. If the last panel overlaps the one before,
        it goes along with all others if it is as wide, or is a strip of its own."""
        columns, width = self.product.width, self.blocking.columns
        if self.product.columns.trips is None:
            return self.each_open_strip(one, size, kind)
        if columns < width:
            return one(Strip(ZERO, Affine.of(columns), ZERO, Affine.of(1), 1, width))
        whole, rest = divmod(columns, width)
        lanes = last_panel(columns, width)
        last = Affine.of(columns - lanes)
        if rest and lanes == width and whole < size and self.may_overlap():
            panels = whole + 1
            return one(Strip(ZERO, Affine.of(columns), ZERO, Affine.of(panels), panels, width, last=last))
        symbol, count = Symbol("s"), Affine.of(min(size, whole))
        number = Affine.of(symbol) * size
        before: tuple[Stmt, ...] = ()
        if whole % size and whole > size:
            some = Symbol("panels", lower=1, upper=size + 1)
            before, count = (Bind(some, lesser(count, whole - number)),), Affine.of(some)
        strip = Strip(number * width, count * width, number, count, min(size, whole), width)
        body = (*before, *one(strip))
        out = unless_once(For(symbol, ZERO, Affine.of(-(-whole // size)), body, kind))
        if rest:
            once, fresh = Affine.of(1), 0 if may_repeat(self.product.epilogue) else lanes - rest
            out += one(Strip(last, Affine.of(lanes), Affine.of(whole), once, 1, lanes, Affine.of(fresh)))
        return out

    def each_open_strip(
        self, one: Callable[[Strip], tuple[Stmt, ...]], size: int, kind: LoopKind
    ) -> tuple[Stmt, ...]:
        """The same of columns that only the run counts: the last panel, which may overlap the one before, is
        a strip of its own, and there may be no other."""
        width, columns = self.blocking.columns, self.product.columns.hi - self.product.columns.lo
        most = (self.product.width - 1) // width
        binds, whole = quotient("whole", columns - 1, width, most)
        counting, strips = quotient("strips", whole + (size - 1), size, -(-most // size))
        symbol = Symbol("s")
        number = Affine.of(symbol) * size
        before, count = tuple[Stmt, ...](), Affine.of(1)
        if size > 1:
            some = Symbol("panels", lower=1, upper=size + 1)
            before, count = (Bind(some, lesser(Affine.of(size), whole - number)),), Affine.of(some)
        strip = Strip(number * width, count * width, number, count, min(size, most), width)
        fresh = ZERO if may_repeat(self.product.epilogue) else (whole + 1) * width - columns
        last = Strip(columns - width, Affine.of(width), whole, Affine.of(1), 1, width, fresh)
        strips_of = For(symbol, ZERO, strips, (*before, *one(strip)), kind)
        return (*binds, *counting, strips_of, *one(last))

    def may_overlap(self) -> bool:
        """Whether panels with columns in common may go one after the other in one loop: sums are not gone on
        with, and no copy is made across memory, for which a nest is transposed that has nothing between its
        loops."""
        sums = self.product.sums
        return self.product.within is None and all(
            total.depth <= self.blocking.depth and (not self.blocking.right or self.is_along(total))
            for total in sums
        )

    def each_panel(
        self,
        strip: Strip,
        one: Callable[[Panel], tuple[Stmt, ...]],
        kind: LoopKind = LoopKind.SEQUENTIAL,
    ) -> tuple[Stmt, ...]:
        symbol = Symbol("p")
        here = Affine.of(symbol)
        offset, before = here * strip.lanes, tuple[Stmt, ...]()
        if strip.last is not None:
            first = Symbol("column", lower=0, upper=strip.last.constant + 1)
            offset, before = Affine.of(first), (Bind(first, lesser(offset, strip.last)),)
        column = strip.place * strip.lanes + offset
        panel = Panel(strip.start + offset, column, strip.number + here, here, strip.lanes)
        return unless_once(For(symbol, ZERO, strip.count, (*before, *one(panel)), kind))

    def each_run(self, strip: Strip, one: Callable[[Strip], tuple[Stmt, ...]]) -> tuple[Stmt, ...]:
        """What `one` makes of the panels of a strip that are packed together, for all of them."""
        size, depth = self.blocking.run, self.blocking.depth
        if strip.most <= size:
            ends = all(total.depth <= depth for total in self.product.sums)
            onward = (
                Onward(ZERO, strip.start + strip.width) if ends else Onward(Affine.of(depth), strip.start)
            )
            return one(replace(strip, onward=onward))
        symbol = Symbol("run")
        binds, next_one = following(symbol, strip.most // size, size, depth, strip)
        place = Affine.of(symbol) * size
        width = strip.lanes
        start, columns = strip.start + place * width, Affine.of(size * width)
        panels = Strip(start, columns, strip.number + place, Affine.of(size), size, width, place=place)
        panels = replace(panels, onward=next_one)
        body = (*(binds if self.blocking.ahead else ()), *one(panels))
        return (For(symbol, ZERO, Affine.of(strip.most // size), body),)

    # Packing

    def packed_right(self) -> tuple[Stmt, ...]:
        """All panels, one after the other."""
        width = self.blocking.columns
        panels = -(-self.product.width // width)
        for total in self.product.sums:
            name, shape = f"{_name(total.right, 'right')}_panels", (panels, total.depth, width)
            reason = "all rows of a product read these columns"
            copy = self.kept(name, shape, dtype_of(total.right), PlaceKind.ARENA, reason)
            self.rights[total.variable] = copy

        def one(strip: Strip) -> tuple[Stmt, ...]:
            sums = self.product.sums
            return tuple(stmt for total in sums for stmt in self.copied_right(total, strip, all_terms(total)))

        return self.each_strip(one, self.blocking.strip)

    def strip_right(self, total: Sum, strip: Strip, terms: Depth) -> tuple[Stmt, ...]:
        """The strip's part of the right factor, if that is packed strip by strip."""
        if not self.blocking.right or self.blocking.block is not None:
            return ()
        name, depth = f"{_name(total.right, 'right')}_panel", min(total.depth, self.blocking.depth)
        shape, reason = (
            (strip.most, depth, strip.lanes),
            "many rows of a product read these columns",
        )
        copy = self.kept(name, shape, dtype_of(total.right), PlaceKind.SCRATCH, reason)
        self.rights[total.variable] = copy
        return self.copied_right(total, strip, terms)

    def copied_right(self, total: Sum, strip: Strip, terms: Depth) -> tuple[Stmt, ...]:
        """Panels of the right factor, row by row of it where these lie in memory one after the other."""
        columns, lane, along = self.product.columns, Symbol("l"), self.is_along(total)
        width = min(strip.lanes, self.product.width)

        def store(panel: Panel, value: Expr, lo: int, hi: int) -> For:
            cell = self.cell_right(panel, terms, lane)
            return _parallel(lane, hi, (Store(self.rights[total.variable], cell, value),), lo)

        def one(panel: Panel) -> tuple[Stmt, ...]:
            symbols = {**terms.symbols, columns.symbol: columns.lo + panel.start + lane}
            line = store(panel, substitute(total.right, symbols), 0, width)
            return (line,) if along else nested(terms.loops, (line,), LoopKind.PARALLEL)

        def padding(panel: Panel) -> tuple[Stmt, ...]:
            nothing = Const(0, dtype_of(total.right))
            return nested(terms.loops, (store(panel, nothing, width, strip.lanes),), LoopKind.PARALLEL)

        pad = copy_body(self.each_panel(strip, padding), {}, {}) if width < strip.lanes else ()
        if not along:
            return (*pad, *self.each_panel(strip, one, LoopKind.PARALLEL))
        return (*pad, *self.in_bands(strip, terms.loops, one))

    def is_along(self, total: Sum) -> bool:
        """Whether columns of the right factor are neighbours in memory, or computed."""
        right, column = total.right, self.product.columns.symbol
        return not isinstance(right, Load) or stride(right.tensor, right.index, column) == 1

    def in_bands(
        self, strip: Strip, loops: Sequence[For], one: Callable[[Panel], tuple[Stmt, ...]]
    ) -> tuple[Stmt, ...]:
        """What `one` makes of a row of a panel, for a few rows of all panels at a time."""
        if strip.most == 1:
            return nested(loops, self.each_panel(strip, one), LoopKind.PARALLEL)
        *outer, inner = loops
        most, band = inner.trips or self.blocking.depth, Symbol("band")
        size = min(most, BAND)
        first, count = inner.lo + Affine.of(band) * size, Affine.of(size)
        binds: tuple[Stmt, ...] = ()
        if inner.trips is None or most % size:
            rest = Symbol("rows", lower=0, upper=size + 1)
            binds, count = between(rest, inner.hi - first, ZERO, count), Affine.of(rest)

        def rows(panel: Panel) -> tuple[Stmt, ...]:
            return (replace(inner, lo=first, hi=first + count, body=one(panel), kind=LoopKind.PARALLEL),)

        bands = For(band, ZERO, Affine.of(-(-most // size)), ())
        panels = self.each_panel(strip, rows, LoopKind.PARALLEL)
        return nested((*outer, bands), (*binds, *panels), LoopKind.PARALLEL)

    def cell_right(self, panel: Panel, terms: Depth, lane: Symbol) -> tuple[Affine, ...]:
        if self.blocking.block is None:
            return panel.packed, terms.place, Affine.of(lane)
        return panel.number, terms.number, Affine.of(lane)

    def packed_left(self, rows: Rows, kind: PlaceKind) -> tuple[Stmt, ...]:
        """The rows, part by part of their terms."""
        out: list[Stmt] = []
        for total in self.product.sums:
            at_once = min(total.depth, self.blocking.depth)
            shape = (-(-total.depth // at_once), rows.most, at_once)
            name, reason = f"{_name(total.left, 'left')}_rows", "all columns of a product read these rows"
            target = self.kept(name, shape, dtype_of(total.left), kind, reason)
            self.lefts[total.variable] = target
            out += self.copied_parts(total, partial(self.copied_left, total, rows, target))
        return tuple(out)

    def copied_parts(self, total: Sum, one: Callable[[Depth], tuple[Stmt, ...]]) -> tuple[Stmt, ...]:
        """What `one` makes of the terms of each part; of a last part with fewer by itself, since loops that
        run a known number of times are transposed in registers."""
        at_once = self.blocking.depth
        if total.depth <= at_once:
            return one(all_terms(total))
        depth, part = total.length, Symbol("part")
        counting, whole = quotient("whole", depth, at_once, total.depth // at_once)
        lo = Affine.of(part) * at_once
        body = one(some_terms(total, Affine.of(part), lo, lo + at_once))
        parts = (*counting, *unless_once(For(part, ZERO, whole, body, LoopKind.PARALLEL)))
        if whole * at_once == depth:
            return parts
        return (*parts, *one(some_terms(total, whole, whole * at_once, depth)))

    def copied_left(self, total: Sum, rows: Rows, target: Tensor, terms: Depth) -> tuple[Stmt, ...]:
        row = Symbol("r")
        here = self.product.rows.lo + rows.start + row
        source = substitute(total.left, {**terms.symbols, self.product.rows.symbol: here})
        store = Store(target, (terms.part, Affine.of(row), terms.place), source)
        copies = nested(terms.loops, (store,), LoopKind.PARALLEL)
        return unless_once(For(row, ZERO, rows.count, copies, LoopKind.PARALLEL))

    def each_part(
        self,
        total: Sum,
        one: Callable[[Callable[[], Depth]], tuple[Stmt, ...]],
    ) -> tuple[Stmt, ...]:
        """What `one` makes of some of the terms, for all of them in turn."""
        at_once = self.blocking.depth
        if total.depth <= at_once:
            return one(partial(all_terms, total))
        part = Symbol("part")
        lo = Affine.of(part) * at_once
        hi = lo + at_once
        before: tuple[Stmt, ...] = ()
        counting, parts = quotient("parts", total.length + (at_once - 1), at_once, -(-total.depth // at_once))
        if parts * at_once != total.length:
            end = Symbol("end", lower=0, upper=total.depth + 1)
            before, hi = (Bind(end, lesser(hi, total.length)),), Affine.of(end)
        body = (*before, *one(partial(some_terms, total, Affine.of(part), lo, hi)))
        return (*counting, For(part, ZERO, parts, body))

    # Slivers

    def slivers(self, rows: Rows) -> tuple[tuple[Stmt, ...], Affine]:
        """How many slivers rows have, after what finds it out."""
        height = self.blocking.rows
        if rows.count.is_constant or rows.most <= height:
            return (), Affine.of(-(-rows.most // height))
        return quotient("slivers", rows.count + (height - 1), height, -(-rows.most // height), least=1)

    def first_row(self, rows: Rows, sliver: Symbol) -> tuple[tuple[Stmt, ...], Affine]:
        """Where a sliver starts, after what finds it out."""
        start, offset = self.product.rows.lo + rows.start, Affine.of(sliver) * self.blocking.rows
        if rows.most <= self.blocking.rows or (
            rows.count.is_constant and rows.most % self.blocking.rows == 0
        ):
            return (), start + offset
        first = Symbol("first", lower=0, upper=rows.most - self.blocking.rows + 1)
        return (Bind(first, lesser(offset, rows.count - self.blocking.rows)),), start + first

    def tile(self, rows: Rows, strip: Strip) -> tuple[Stmt, ...]:
        """The sums of some rows of a strip, then what else is done with them."""
        binds, count = self.slivers(rows)
        self.tiles = self.tiles_for(rows, strip)
        out: list[Stmt] = [*strip.before, *binds]
        for total in self.product.sums:
            out += self.whole_sums(total, rows, strip, count)
        if self.tiles:
            out += self.finished(rows, strip, count)
        return tuple(out)

    def tiles_for(self, rows: Rows, strip: Strip) -> dict[Variable, Tensor]:
        """Where the sums of a tile are kept; none for those with which everything is done at once."""
        product, cut = self.product, self.blocking
        is_whole = strip.lanes <= product.width
        at_once = product.ending is not None and (self.is_even() or may_repeat(product.epilogue))
        if is_whole and at_once and all(t.depth <= cut.depth for t in product.sums):
            return {}
        shape, reason = (-(-rows.most // cut.rows) * cut.rows, strip.most * strip.lanes), "sums of a tile"
        names = [total.variable for total in product.sums]
        kind = PlaceKind.SCRATCH
        return {name: self.kept(f"{name.hint}_tile", shape, name.dtype, kind, reason) for name in names}

    def is_even(self) -> bool:
        """Do slivers and panels have no cells in common, whose sums would end twice?"""
        rows, columns, cut = self.product.rows.trips, self.product.columns.trips, self.blocking
        if rows is None or columns is None:
            return False
        block = cut.block or rows
        return rows % block == block % cut.rows == columns % cut.columns == 0

    def whole_sums(self, total: Sum, rows: Rows, strip: Strip, slivers: Affine) -> Sequence[Stmt]:
        """All terms of the sums of a tile, so many at once as are near then."""
        starts = total.depth <= self.blocking.depth

        def some(make: Callable[[], Depth]) -> tuple[Stmt, ...]:
            return self.each_run(strip, partial(one, make))

        def one(make: Callable[[], Depth], run: Strip) -> tuple[Stmt, ...]:
            packing = self.strip_right(total, run, make())
            sums = partial(self.sums, total, rows, run, terms=make(), starts=starts)
            if not self.blocking.across:
                return (*packing, *self.each_panel(run, lambda panel: self.down(rows, panel, slivers, sums)))
            sliver = Symbol("q")
            panels = self.each_panel(run, lambda panel: sums(panel, sliver))
            return (*packing, *unless_once(For(sliver, ZERO, slivers, panels)))

        starting = () if starts else self.started(total, rows, strip, slivers)
        return (*starting, *self.each_part(total, some))

    def down(
        self,
        rows: Rows,
        panel: Panel,
        slivers: Affine,
        one: Callable[[Panel, Symbol], tuple[Stmt, ...]],
    ) -> tuple[Stmt, ...]:
        """What `one` makes of a sliver, for all that have columns of a panel."""
        sliver = Symbol("q")
        binds, some, end = self.met(rows, panel.start, Affine.of(panel.lanes), slivers)
        return (*binds, *unless_once(For(sliver, some, end, one(panel, sliver))))

    def sums(
        self, total: Sum, rows: Rows, run: Strip, panel: Panel, sliver: Symbol, terms: Depth, starts: bool
    ) -> tuple[Stmt, ...]:
        """A sliver's sums for a panel of a run, over some of the terms."""
        lane = Symbol("l")
        asked = None
        if self.blocking.ahead is not None:
            columns = self.product.columns
            asked = partial(requests, total, columns, self.blocking.ahead, run, terms, panel, sliver)
        before, first = self.first_row(rows, sliver)
        column = self.product.columns.lo + panel.start + lane
        again, numbers = row_numbers(rows, self.blocking.rows)
        cells = [first + number for number in numbers]
        offset = Affine.of(sliver) * self.blocking.rows
        kept = [(offset + row, panel.column + lane) for row in range(self.blocking.rows)]
        tile = self.tiles.get(total.variable)
        names = [Variable(total.variable.hint, total.variable.dtype) for _ in cells]
        shared = Variable("t", dtype_of(total.right))
        right = self.factor_right(total, panel, terms, column, lane)
        updates: list[Stmt] = [Define(shared, right)]
        for name, cell in zip(names, cells, strict=True):
            updates.append(total.plus(name, self.factor_left(total, rows, terms, cell), Local(shared)))
        body: list[Stmt] = []
        for name, place, cell in zip(names, kept, cells, strict=True):
            start = self.start(total, cell, column) if tile is None or starts else Load(tile, place)
            body.append(Define(name, start))
        body += unrolled(terms.loops, tuple(updates), asked)
        ending = self.product.ending if tile is None else None
        for name, place, cell in zip(names, kept, cells, strict=True):
            if tile is not None:
                body.append(Store(tile, place, Local(name)))
                continue
            assert ending is not None
            symbols = {self.product.rows.symbol: cell, self.product.columns.symbol: column}
            body += Copying(symbols, {total.variable: name}).body(ending)
        width = panel.lanes
        return (*before, *again, For(lane, ZERO, Affine.of(width), tuple(body), LoopKind.VECTOR, lanes=width))

    def met(
        self, rows: Rows, start: Affine, width: Affine, slivers: Affine
    ) -> tuple[tuple[Stmt, ...], Affine, Affine]:
        """The first sliver with columns among these, and the end of such slivers, after what finds out."""
        if self.product.within is None:
            return (), ZERO, slivers
        row, height = self.product.rows.symbol, self.blocking.rows
        here, top = self.product.columns.lo + start, self.product.rows.lo + rows.start
        lo, hi = self.product.within
        binds: list[Stmt] = []
        ends = [ZERO, slivers]
        for common in (hi - here, here + width - lo):
            slant = common.coefficient(row)
            if slant:
                at_top = common.substitute({row: top})
                offset = 1 - at_top if slant > 0 else at_top + (height - 1)
                room, sliver = Symbol("room"), Symbol("sliver")
                bound = Symbol("first" if slant > 0 else "end", lower=0, upper=-(-rows.most // height) + 1)
                number = Apply(OPS["raw_divide"], (Index(Affine.of(room)), Const(height, I64)), I64)
                binds += Bind(room, greater(offset, ZERO)), Bind(sliver, number)
                binds += between(bound, Affine.of(sliver), *ends)
                ends[slant < 0] = Affine.of(bound)
        return tuple(binds), ends[0], ends[1]

    def factor_left(self, total: Sum, rows: Rows, terms: Depth, cell: Affine) -> Expr:
        if (packed := self.lefts.get(total.variable)) is not None:
            return Load(packed, (terms.part, cell - self.product.rows.lo - rows.start, terms.place))
        return substitute(total.left, {**terms.symbols, self.product.rows.symbol: cell})

    def factor_right(self, total: Sum, panel: Panel, terms: Depth, column: Affine, lane: Symbol) -> Expr:
        if (packed := self.rights.get(total.variable)) is not None:
            return Load(packed, self.cell_right(panel, terms, lane))
        return substitute(total.right, {**terms.symbols, self.product.columns.symbol: column})

    def started(self, total: Sum, rows: Rows, strip: Strip, slivers: Affine) -> tuple[Stmt, ...]:
        """Every cell of the tile as its sum starts."""
        sliver, row, lane = Symbol("q"), Symbol("r"), Symbol("l")
        before, first = self.first_row(rows, sliver)
        start = self.start(total, first + row, self.product.columns.lo + strip.start + lane)
        cell = (Affine.of(sliver) * self.blocking.rows + row, Affine.of(lane))
        store = Store(self.tiles[total.variable], cell, start)
        width = Affine.of(strip.lanes) if strip.most == 1 else strip.width
        line = For(lane, ZERO, width, (store,), LoopKind.PARALLEL)
        lines = For(row, ZERO, end_of(rows, self.blocking.rows), (line,), LoopKind.PARALLEL)
        return unless_once(For(sliver, ZERO, slivers, (*before, lines), LoopKind.PARALLEL))

    def start(self, total: Sum, row: Affine, column: Affine) -> Expr:
        return substitute(total.start, {self.product.rows.symbol: row, self.product.columns.symbol: column})

    def finished(self, rows: Rows, strip: Strip, slivers: Affine) -> tuple[Stmt, ...]:
        """The rest of the product's body, for each cell of the tile that is not of the sliver or of the panel
        before."""
        sliver, row, lane = Symbol("q"), Symbol("r"), Symbol("l")
        of_rows, of_columns, height = self.product.rows, self.product.columns, self.blocking.rows
        before, first = self.first_row(rows, sliver)
        symbols = {of_rows.symbol: first + row, of_columns.symbol: of_columns.lo + strip.start + lane}
        number = Affine.of(sliver) * height
        cell = (number + row, Affine.of(lane))
        body = [
            replace(stmt, value=Load(self.tiles[stmt.variable], cell))
            if isinstance(stmt, Define) and stmt.variable in self.tiles
            else stmt
            for stmt in self.product.epilogue
        ]
        copy = Copying(symbols, {}).body(tuple(body))
        binds, some, end = self.columns_of(first + row, strip)
        line = For(lane, some, end, copy, LoopKind.PARALLEL)
        again = of_rows.lo + rows.start + number - first
        lines = For(row, again, end_of(rows, self.blocking.rows), (*binds, line), LoopKind.PARALLEL)
        binds, some, end = self.met(rows, strip.start, strip.width, slivers)
        return (*binds, *unless_once(For(sliver, some, end, (*before, lines), LoopKind.PARALLEL)))

    def columns_of(self, row: Affine, strip: Strip) -> tuple[tuple[Stmt, ...], Affine, Affine]:
        """The first new column of a row in a strip, and the end of these columns, after what finds out."""
        ends = [strip.fresh, strip.width]
        binds: list[Stmt] = []
        for number, bound in enumerate(self.product.within or ()):
            if bound.coefficient(self.product.rows.symbol):
                here = (
                    bound.substitute({self.product.rows.symbol: row}) - self.product.columns.lo - strip.start
                )
                end = Symbol(("some", "end")[number], lower=0, upper=strip.most * strip.lanes + 1)
                binds += between(end, here, *ends)
                ends[number] = Affine.of(end)
        return tuple(binds), ends[0], ends[1]


def _name(factor: Expr, otherwise: str) -> str:
    return factor.tensor.label if isinstance(factor, Load) else otherwise


def _parallel(symbol: Symbol, hi: int, body: tuple[Stmt, ...], lo: int = 0) -> For:
    return For(symbol, Affine.of(lo), Affine.of(hi), body, LoopKind.PARALLEL)
