"""crosswise: rows that are too short for vectors go a vector of rows at a time, a lane each.

    for i in sequential(0, 4000):               for b in sequential(0, 250):
        m = -inf                                    for i in vector(0, 16, lanes=16):
        for j in parallel(0, 10):                       for j in unrolled(0, 4):
            m = reduce(maximum, m, x[i, j])                 x_turned[j, i] = x[16*b + i, j]
        s = 0.0                                     ...
        for j in parallel(0, 10):          ->       for i in vector(0, 16, lanes=16):
            t[j] = exp(subtract(x[i, j], m))            m = -inf
            s = reduce(add, s, t[j])                    for j in sequential(0, 10):
        for j in parallel(0, 10):                           m = reduce(maximum, m, x_turned[j, i])
            y[i, j] = divide(t[j], s)                   ...
                                                            y_turned[j, i] = divide(t[j, i], s)
                                                    for g in parallel(0, 4):
                                                        for j in vector(0, 4, lanes=4):
                                                            for i in unrolled(0, 4):
                                                                y[16*b + 4*g + i, j] = y_turned[j, 4*g + i]
                                                    ...

What a row adds up is then added up in order, without a fold for each row, and no lane is left empty. Cells
are transposed in registers, a few columns at a time, of which the last ones may be taken twice. Rows that are
left at the end go with those before them, once more, or else one by one, in the same order. Softmaxes of 2 or
3 float32s take 0.15 of the time, of 5 to 10 of them 0.35 to 0.5, where the largest of 10 is found in 0.35.

Columns may be sums of their own, such as the distances of a point from some centres: the nearest of 5
takes 0.07 of the time, of 16 0.25 to 0.5, with 8 coordinates. Where those are sums of two to four cells, and
nothing is made for a row, it is enough that its loops go in order: vectors of rows are then taken apart as
they are loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import field, replace

from ...frozen import slotted
from ...ir.code import Caps
from ...ir.conditions import compare, one_of
from ...ir.dtype import BOOL, I64
from ...ir.expr import Const, Gather, Index, Load
from ...ir.index import Affine, Symbol, symbols_of
from ...ir.loops import (
    Bind,
    Comment,
    Define,
    For,
    Kernel,
    LoopKind,
    Place,
    PlaceKind,
    Stmt,
    Store,
    Update,
    walk_statements,
    written_in,
)
from ...ir.ops import OPS
from ...ir.tensor import GROUPS, Tensor
from ...ir.walk import nodes_in, outer_updates, rewrite_cells, rewrite_loops
from ..analysis.access import Range, reads
from ..analysis.accumulations import SHORT
from ..analysis.copies import copy_body
from ..analysis.costs import cost_of_nodes
from ..analysis.private import private_to
from ..analysis.repeats import weight
from ..analysis.strides import affine_accesses, stride
from ..analysis.trips import blocks, enter, fewest
from ..analysis.uses import counts
from ..analysis.work import REGISTER_BYTES
from ..bodies.unroll import FEW
from .beside import MOST_OPERATIONS

__all__ = ["crosswise"]

SUM, FOLD, MADE = 1, 2, 2
"""What a row does by itself, in additions of all its lanes: what it adds up, what it finds by comparing, and
waiting for cells that it has just made."""

WORK = 8
"""So much arithmetic for a row takes as long as one addition of lanes."""

READ, WRITTEN, GAINED = 1, 2, 3
"""What it takes to turn part of a row before, and after, and what is gained for each of the above: on a Xeon
with AMX, the least of rows of 9 to 12 float32s take 0.4 of the time, of 28 of them 0.9; sums of more than 12
of them go faster by themselves, and rows divided by their lengths from 9 on."""

WRITTEN_OUT = 32
"""The most operations of sums that are written out."""

STEPS = 8
"""So many steps of a sum take as long as one addition of lanes."""

ENOUGH = 4
"""So many vectors of rows there must be."""

ADD = OPS["add"]

PART = 16
"""The bytes of a row that are transposed at once: what every CPU interleaves in registers."""

TURNED = 4
"""So many columns of rows that are written out are transposed in registers."""

REASON = "a vector of rows is turned for its columns"

ZERO = Affine.of(0)

Columns = tuple[int, int]
"""From which to which column, the latter excluded."""


def crosswise(kernel: Kernel, caps: Caps) -> Kernel:
    """Every such loop over short rows a vector of them at a time."""
    turning = _Turning(kernel, caps.stack_bytes - kernel.stack_bytes)
    body = rewrite_loops(kernel.body, turning.rows)
    if body is kernel.body:
        return kernel
    gone = turning.wide.keys() - counts(body).keys()
    left = {tensor: place for tensor, place in kernel.placement.items() if tensor not in gone}
    return replace(kernel, placement=left).with_body(body, turning.notes, turning.placement)


@slotted
class _Tile:
    """What rows reach of a tensor: the index of a row is that of its cells without the last axis. What they
    read lies within some columns, and they write these."""

    tensor: Tensor
    row: tuple[Affine, ...]
    read: list[Columns] = field(default_factory=list)
    written: list[Columns] = field(default_factory=list)

    @property
    def part(self) -> int:
        """How many columns are transposed at once."""
        return PART // self.tensor.dtype.itemsize

    @property
    def fetched(self) -> Columns | None:
        """What is copied before rows are gone through: as many columns as are transposed at once, if rows are
        that long."""
        if not self.read:
            return None
        lo, hi = min(lo for lo, _ in self.read), max(hi for _, hi in self.read)
        extent = self.tensor.shape[-1]
        if hi - lo < self.part and extent.is_constant:
            hi = min(lo + self.part, extent.constant)
            lo = max(min(lo, hi - self.part), 0)
        return lo, hi

    @property
    def kept(self) -> Columns | None:
        """What is copied after it."""
        return (min(self.written)[0], max(hi for _, hi in self.written)) if self.written else None

    def parts(self, columns: Columns | None) -> int:
        """In how many parts some columns are transposed."""
        return 0 if columns is None else -(-_width(columns) // self.part)

    @property
    def columns(self) -> Columns:
        both = [columns for columns in (self.fetched, self.kept) if columns]
        return min(lo for lo, _ in both), max(hi for _, hi in both)

    def has_gaps(self) -> bool:
        """Is there anything between columns that are written which is not?"""
        written = sorted(self.written)
        most = [max(hi for _, hi in written[: n + 1]) for n in range(len(written))]
        return any(after > end for (after, _), end in zip(written[1:], most, strict=False))


@slotted
class _Rows:
    """What the rows of a loop reach: tiles of arrays, and temporaries that each row makes anew."""

    loop: For
    own: tuple[Tensor, ...]
    tiles: dict[Tensor, _Tile] = field(default_factory=dict)
    elsewhere: set[Tensor] = field(default_factory=set)

    def are_found(self) -> bool:
        """Note all that is reached; is it one cell for all rows, neighbours, or a tile?"""
        if not all(map(self._is_noted, affine_accesses(self.loop.body))):
            return False
        return bool(self.tiles) and self.elsewhere.isdisjoint(self.tiles)

    def _is_noted(self, access: tuple[Tensor, tuple[Affine, ...], bool]) -> bool:
        tensor, index, is_store = access
        if tensor in self.own:
            return True
        step = stride(tensor, index, self.loop.symbol)
        if step == 1 or (step == 0 and not is_store):
            self.elsewhere.add(tensor.storage)
            return True
        columns = None if step in (0, None) else self._columns(tensor, index)
        if columns is None:
            return False
        tile = self.tiles.setdefault(tensor.storage, _Tile(tensor, index[:-1]))
        (tile.written if is_store else tile.read).append(columns)
        return tile.tensor is tensor and tile.row == index[:-1]

    def _columns(self, tensor: Tensor, index: tuple[Affine, ...]) -> Columns | None:
        """Which columns of a row an access goes through."""
        inner = {loop.symbol: loop for loop in _loops(tuple(walk_statements(self.loop.body)))}
        *row, last = index
        is_dense = tensor.strides is None or tensor.strides[-1] == Affine.of(1)
        if not is_dense or not inner.keys().isdisjoint(symbols_of(row)):
            return None
        if tensor.dtype is BOOL or tensor.dtype.itemsize not in (4, 8) or len(last.terms) > 1:
            return None
        if last.is_constant:
            return last.offset, last.offset + 1
        ((factor, symbol),) = last.terms
        if symbol not in inner or factor != 1:
            return None
        lo, hi = (end.constant + last.offset for end in (inner[symbol].lo, inner[symbol].hi))
        return lo, hi

    def may_repeat(self) -> bool:
        """Does a row read nothing of the arrays that it writes?"""
        inside = list(walk_statements(self.loop.body))
        written = written_in(inside)
        return not any(
            tensor.storage in written.difference(self.own) for stmt in inside for tensor, _ in reads(stmt)
        )


@slotted
class _Turning:
    """A walk through a kernel's loops; `wide` are temporaries that have become those of vectors of rows."""

    kernel: Kernel
    stack_left: int
    notes: list[str] = field(default_factory=list)
    placement: dict[Tensor, Place] = field(default_factory=dict)
    ranges: dict[Symbol, Range] = field(default_factory=dict)
    wide: dict[Tensor, Tensor] = field(default_factory=dict)

    def rows(self, loop: For) -> Sequence[Stmt] | None:
        """What becomes of a loop over short rows."""
        enter(loop, self.ranges)
        if not _is_over_short_rows(loop):
            return None
        own = private_to(loop, self.kernel, self.ranges)
        rows = None if own is None else _Rows(loop, own)
        if rows is None or not rows.are_found() or any(tile.has_gaps() for tile in rows.tiles.values()):
            return None
        lanes = REGISTER_BYTES // max(tile.tensor.dtype.itemsize for tile in rows.tiles.values())
        if _go_beside(rows) or fewest(loop) < ENOUGH * lanes:
            return None
        if _are_groups(rows):
            self.notes.append(f"crosswise: rows of {loop.symbol.hint} go beside one another as they are")
            are_turned = all(_width(tile.columns) == TURNED for tile in rows.tiles.values())
            return [replace(loop, body=_in_order(loop.body, (Define, Store, Update), are_turned))]
        if not _pays(rows):
            return None
        self.notes.append(f"crosswise: {lanes} rows of {loop.symbol.hint} go at a time, a lane each")
        return self._in_vectors(rows, lanes)

    def memory(self, name: str, shape: Sequence[int], like: Tensor) -> Tensor:
        """Memory for what vectors of rows have of a tensor."""
        tensor = Tensor.of(name, tuple(shape), like.dtype)
        kind = PlaceKind.STACK if tensor.nbytes <= self.stack_left else PlaceKind.ARENA
        if kind is PlaceKind.STACK:
            self.stack_left -= tensor.nbytes
        self.placement[tensor] = Place(kind, REASON)
        return tensor

    def _in_vectors(self, rows: _Rows, lanes: int) -> list[Stmt]:
        """All rows, so many at a time, and what is left of them."""
        loop = rows.loop
        if loop.trips is None:
            return self._in_open_vectors(rows, lanes)
        count, left = divmod(loop.trips, lanes)
        block, again = Symbol(loop.symbol.hint), Symbol("again")
        first = loop.lo + Affine.of(block) * lanes
        if left and rows.may_repeat():
            first += Affine.of(again) * (loop.trips - lanes)
            many = Affine.of(count) - Affine.of(again) * (count - 1)
            blocks = For(block, ZERO, many, self._vector(rows, first, lanes))
            return [For(again, ZERO, Affine.of(2), (blocks,))]
        blocks = For(block, ZERO, Affine.of(count), self._vector(rows, first, lanes))
        rest = replace(loop, lo=loop.lo + count * lanes, body=_in_order(loop.body, (Update,), False))
        return [blocks, *copy_body((rest,), {}, {})] if left else [blocks]

    def _in_open_vectors(self, rows: _Rows, lanes: int) -> list[Stmt]:
        """All of as many rows as the run tells, so many at a time, and what is left of them."""
        loop, block = rows.loop, Symbol(rows.loop.symbol.hint)
        if not rows.may_repeat():
            told, count = blocks(loop, lanes)
            vectors = For(block, ZERO, count, self._vector(rows, loop.lo + Affine.of(block) * lanes, lanes))
            rest = replace(loop, lo=loop.lo + count * lanes, body=_in_order(loop.body, (Update,), False))
            return [*told, vectors, *copy_body((rest,), {}, {})]
        # Rows go on from a place that does not change meanwhile: threads see that they are apart.
        told, count = blocks(loop, lanes)
        again, ends = Symbol("again"), [end.bounds(self.ranges) or (None, None) for end in (loop.lo, loop.hi)]
        start = Symbol("start", lower=ends[0][0], upper=ends[1][1])
        most = count.bounds({})
        many = Symbol("many", lower=0, upper=None if most is None else most[1] + 1)
        is_first = compare("equal", Index(Affine.of(again)), Const(0, I64))
        binds = (
            Bind(start, one_of(is_first, Index(loop.lo), Index(loop.hi - lanes))),
            Bind(many, one_of(is_first, Index(count), Const(1, I64))),
        )
        vector = self._vector(rows, Affine.of(start) + Affine.of(block) * lanes, lanes)
        return [*told, For(again, ZERO, Affine.of(2), (*binds, For(block, ZERO, Affine.of(many), vector)))]

    def _vector(self, rows: _Rows, first: Affine, lanes: int) -> tuple[Stmt, ...]:
        """So many rows from the first on."""
        row, lane = rows.loop.symbol, Symbol(rows.loop.symbol.hint)
        here = Affine.of(lane)
        turned = {
            storage: self.memory(f"{tile.tensor.label}_turned", (_width(tile.columns), lanes), tile.tensor)
            for storage, tile in rows.tiles.items()
        }
        for tensor in rows.own:
            shape = (*(extent.constant for extent in tensor.shape), lanes)
            self.wide[tensor] = self.memory(tensor.label, shape, tensor)

        def cell(tensor: Tensor, index: tuple[Affine, ...]) -> tuple[Tensor, tuple[Affine, ...]]:
            if tensor in self.wide:
                return self.wide[tensor], (*index, here)
            tile = rows.tiles.get(tensor.storage)
            if tile is None:
                return tensor, index
            return turned[tensor.storage], (index[-1] - tile.columns[0], here)

        body = rewrite_cells(_in_order(rows.loop.body, (Define, Store, Update), True), cell)
        body = copy_body(body, {row: first + here}, {})
        before, after = list[Stmt](), list[Stmt]()
        for storage, tile in rows.tiles.items():
            copying = _Copying(tile, row, first, lanes, turned[storage])
            before += copying.fetched()
            after += copying.kept()
        return *before, _lanes(lane, lanes, body), *after


@slotted
class _Copying:
    """The cells of a tile, between its tensor and `turned`: those of so many rows from the first on."""

    tile: _Tile
    row: Symbol
    first: Affine
    lanes: int
    turned: Tensor

    def fetched(self) -> Iterator[Stmt]:
        """What rows read is turned."""
        columns = self.tile.fetched
        if columns is None:
            return
        part = self.tile.part
        if _width(columns) < part:
            yield self._one_by_one(columns, self._fetch)
            return
        for start in _starts(columns, part):
            lane, j = Symbol(self.row.hint), Symbol("j")
            fetch = self._fetch(Affine.of(lane), start + Affine.of(j))
            yield _lanes(lane, self.lanes, (For(j, ZERO, Affine.of(part), (fetch,), LoopKind.UNROLLED),))

    def kept(self) -> Iterator[Stmt]:
        """What rows write is turned back."""
        columns = self.tile.kept
        if columns is None:
            return
        part = self.tile.part
        if _width(columns) < part:
            yield self._one_by_one(columns, self._keep)
            return
        for start in _starts(columns, part):
            group, lane, j = Symbol("g"), Symbol(self.row.hint), Symbol("j")
            keep = self._keep(Affine.of(group) * part + Affine.of(lane), start + Affine.of(j))
            rows = For(lane, ZERO, Affine.of(part), (keep,), LoopKind.UNROLLED)
            groups = Affine.of(self.lanes // part)
            yield For(group, ZERO, groups, (_lanes(j, part, (rows,)),), LoopKind.PARALLEL)

    def _one_by_one(self, columns: Columns, copy: Callable[[Affine, Affine], Store]) -> Stmt:
        """Few columns, each by itself: groups of neighbours are taken apart anyway."""
        lane = Symbol(self.row.hint)
        stores = (copy(Affine.of(lane), Affine.of(column)) for column in range(*columns))
        return _lanes(lane, self.lanes, tuple(stores))

    def _fetch(self, lane: Affine, column: Affine) -> Store:
        return Store(self.turned, self._place(lane, column), Load(self.tile.tensor, self._cell(lane, column)))

    def _keep(self, lane: Affine, column: Affine) -> Store:
        value = Load(self.turned, self._place(lane, column))
        return Store(self.tile.tensor, self._cell(lane, column), value)

    def _place(self, lane: Affine, column: Affine) -> tuple[Affine, ...]:
        return column - self.tile.columns[0], lane

    def _cell(self, lane: Affine, column: Affine) -> tuple[Affine, ...]:
        row = {self.row: self.first + lane}
        return *(position.substitute(row) for position in self.tile.row), column


def _lanes(lane: Symbol, lanes: int, body: tuple[Stmt, ...]) -> For:
    return For(lane, ZERO, Affine.of(lanes), body, LoopKind.VECTOR, lanes=lanes)


def _width(columns: Columns) -> int:
    return columns[1] - columns[0]


def _starts(columns: Columns, part: int) -> list[int]:
    """Where parts of some columns start; the last one may overlap that before it."""
    lo, hi = columns
    starts = list(range(lo, hi - part + 1, part))
    return starts if starts[-1] + part == hi else [*starts, hi - part]


def _is_over_short_rows(loop: For) -> bool:
    """Does a loop go through rows in which something is accumulated, in any order of them?"""
    if loop.kind not in (LoopKind.PARALLEL, LoopKind.SEQUENTIAL) or loop.step != 1:
        return False
    inner, inside = _loops(loop.body), list(walk_statements(loop.body))
    if not inner or not all(map(_is_over_columns, inner)):
        return False
    if not all(isinstance(stmt, (Comment, Define, Update, For)) or _is_plain(stmt) for stmt in inside):
        return False
    if outer_updates(inside):
        return False
    accumulates = any(isinstance(stmt, Update) for loop in inner for stmt in loop.body)
    return accumulates and not any(isinstance(node, Gather) for node in nodes_in(inside))


def _is_over_columns(loop: For) -> bool:
    kinds = (LoopKind.PARALLEL, LoopKind.SEQUENTIAL)
    if loop.step != 1 or not (loop.lo.is_constant and loop.hi.is_constant):
        return False
    is_short = loop.trips is not None and 1 <= loop.trips <= SHORT
    return is_short and loop.kind in kinds and all(map(_is_over_columns, _loops(loop.body)))


def _is_plain(stmt: Stmt) -> bool:
    return isinstance(stmt, Store) and stmt.accum is None


def _loops(body: Sequence[Stmt]) -> list[For]:
    """Those that a body has itself."""
    return [stmt for stmt in body if isinstance(stmt, For)]


def _go_beside(rows: _Rows) -> bool:
    """Are columns so few, and is so little done with them, that they are written out beside one another?"""
    loops = _loops(tuple(walk_statements(rows.loop.body)))
    if _has_sums(rows.loop) and all((loop.trips or 0) <= FEW for loop in loops):
        return True
    return not rows.own and all(
        loop.trips in (1, *GROUPS) and loop.trips * weight(loop.body) <= MOST_OPERATIONS for loop in loops
    )


def _has_sums(loop: For) -> bool:
    """Do columns of rows have loops of their own?"""
    return any(_loops(columns.body) for columns in _loops(loop.body))


def _are_groups(rows: _Rows) -> bool:
    """Are all cells that rows form sums of so few that vectors of them are taken apart as they are loaded?"""
    if rows.loop.kind is not LoopKind.PARALLEL or rows.own or not _has_sums(rows.loop):
        return False
    return all(not tile.written and _width(tile.columns) in GROUPS for tile in rows.tiles.values())


def _pays(rows: _Rows) -> bool:
    """Does a row take longer for what is no work of vectors than to be turned?"""
    apart = MADE if rows.own else 0.0
    for stmt in rows.loop.body:
        for inner in stmt.body if isinstance(stmt, For) else ():
            if isinstance(inner, Update):
                apart += SUM if inner.accum is ADD else FOLD
    gained, lost = _sums(rows)
    apart += gained
    nodes = nodes_in(rows.loop.body)
    apart += cost_of_nodes(nodes) // WORK
    turned = sum(
        READ * tile.parts(tile.fetched) + WRITTEN * tile.parts(tile.kept) for tile in rows.tiles.values()
    )
    return turned + lost <= GAINED * apart


def _sums(rows: _Rows) -> tuple[int, int]:
    """What is gained and what is lost where each column of a row has a sum of its own. Alone, a row would
    find the columns of other arrays one by one, or in vectors, if they are neighbours there."""
    found = {False: 0, True: 0}
    for columns in _loops(rows.loop.body):
        for terms in _loops(columns.body):
            others = [
                (stride(tensor, index, columns.symbol), tensor.dtype.itemsize)
                for tensor, index, _ in affine_accesses((terms,))
                if tensor.storage in rows.elsewhere
            ]
            size = max((size for _, size in others), default=0)
            steps = (columns.trips or 0) * (terms.trips or 0) * size // REGISTER_BYTES
            found[(1, size) in others] += steps // STEPS
    return found[False], found[True]


def _in_order(
    body: tuple[Stmt, ...], of: tuple[type, ...], is_spelled: bool, is_inner: bool = False
) -> tuple[Stmt, ...]:
    """A body with the loops that have such statements in order; with `is_spelled`, short ones in others are
    written out."""

    def in_order(loop: For) -> For:
        has_such = any(isinstance(inner, of) for inner in loop.body)
        kind = LoopKind.SEQUENTIAL if has_such else loop.kind
        if is_spelled and is_inner and (loop.trips or 0) * weight(loop.body) <= WRITTEN_OUT:
            kind = LoopKind.UNROLLED
        return replace(loop, kind=kind, body=_in_order(loop.body, of, is_spelled, True))

    return tuple(in_order(stmt) if isinstance(stmt, For) else stmt for stmt in body)
