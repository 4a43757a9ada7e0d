"""sweep: nests that hand rows on go through memory together, each as many rows behind as it must be.

    for i in parallel(0, 250):                      for i in parallel(0, 2):
        for j in parallel(0, 250):                      for j in parallel(0, 250):
            t[i, j] = a[i, j]                               t[i, j] = a[i, j]
    for i in parallel(0, 248):              ->      for i in sequential(2, 250):
        for j in parallel(0, 250):                      for j in parallel(0, 250):
            a[i + 1, j] = add(t[i, j], t[i + 2, j])         t[i, j] = a[i, j]
                                                            a[i - 1, j] = add(t[i - 2, j], t[i, j])

What a nest takes from those before it is then still near, and so is what it overwrites. It is so many rows
behind that each cell is written and read in the order of before. What stores to one row is a nest over that
row. Loops over the columns of a row meet as well where they can (`columns`).

Steps of a loop that is made of such nests alone are taken two at a time, where the arrays are larger than the
first cache, and where that holds all rows between the first one that is touched and the last, or the last
cache does not hold the arrays: they go through memory once for both. Waves of complex numbers, with values of
their own along the border, take 0.55 of the time where only memory holds them. Rows that hand anything on to
others are taken in order: threads share them by `slabs`, where there are many more of them than lie between
nests. Where there are not, one is enough of two threads that wait for memory, and nests that do little are
left to one anyway.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import field, replace
from itertools import chain, pairwise

from ...frozen import slotted
from ...ir.code import Caps
from ...ir.expr import Apply, Const, Variable
from ...ir.index import Affine, Symbol
from ...ir.loops import (
    Bind,
    Define,
    For,
    Kernel,
    LoopKind,
    Place,
    PlaceKind,
    Stmt,
    Store,
    walk_statements,
)
from ...ir.ops import OPS
from ...ir.tensor import Tensor
from ...ir.walk import kept, locals_read, rewrite_bodies, rewrite_cells, substitute_statements
from ..analysis.access import Effects, Range, Touched, effects
from ..analysis.accumulations import is_rounded, sums_short_rows
from ..analysis.carriers import meetings
from ..analysis.copies import copy_body, in_steps
from ..analysis.handed import threads_for
from ..analysis.strides import affine_accesses, known_bytes
from ..analysis.trips import enter
from ..analysis.work import in_vectors
from .lag import THREADS, contracts
from .slabs import Rows, fits, in_slabs, part, span, together

__all__ = ["sweep"]

BEHIND = 4
"""So many rows may lie between a row that is made and what takes it."""

STEPS = 2
"""So many steps of a loop go through memory together. More of them gain little."""

PART = 2
"""An array of less than such a part of the first cache costs little to fetch again."""

RAW_DIVIDE = OPS["raw_divide"]

MOST = 2
"""Slabs are the larger part of what nests do."""

WAKING = 20
"""In times what is worth a thread: nests do so much at least if threads that sleep shall be woken for slabs,
which are too few to tell how much they do."""

LARGE = 128
"""The most statements of a step: each is written several times."""


def sweep(kernel: Kernel, caps: Caps) -> Kernel:
    """The kernel with nests that hand rows on in one loop."""
    sweeping = _Sweeping(caps, kernel.placement)
    body = sweeping.body(kernel.body)
    return kernel.with_body(body, sweeping.notes)


@slotted
class _Sweeping:
    """What is found out on the way through a kernel; `around` is what the outermost loop around does,
    `ranges` are those of the loops, `settled` count loops that have several steps an iteration already, or
    are what is left of such; `touched` are the bytes of the arrays of the body at hand; `parts` says which
    symbols count how many times so many fit."""

    caps: Caps
    placement: Mapping[Tensor, Place]
    around: tuple[Stmt, ...] = ()
    ranges: dict[Symbol, Range] = field(default_factory=dict)
    settled: set[Symbol] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)
    touched: int = 0
    parts: dict[Symbol, int] = field(default_factory=dict)

    def body(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        around, self.touched = self.touched, known_bytes(body)
        new = self.nests(body)
        self.touched = around
        return new

    def nests(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """A body whose nests go through memory together."""
        for stmt in body:
            match stmt:
                case Bind(symbol=symbol, value=Apply(op=op, args=(_, Const(value=int() as size)))):
                    self.parts.update({symbol: size} if op is RAW_DIVIDE else {})
                case _:
                    pass
        out: list[Stmt] = []
        group: list[Rows] = []
        stmts = tuple(chain.from_iterable(map(_row_by_row, body)))
        for at, stmt in enumerate(stmts):
            if not any(map(_is_parallel, (*stmts[max(at - 1, 0) : at], *stmts[at + 1 : at + 2]))):
                out += self.alone(stmt)
                continue
            one = self.following(group, stmt)
            if one is None and group:
                out += self.together(group)
                group = []
                one = self.following(group, stmt)
            if one is not None:
                group.append(one)
            else:
                out += self.alone(stmt)
        return kept(body, [*out, *self.together(group)])

    def alone(self, stmt: Stmt) -> Sequence[Stmt]:
        """A statement that takes part in nothing; not inside loops whose iterations are independent: they
        would have to share the rows."""
        if not isinstance(stmt, For):
            return [rewrite_bodies(stmt, self.body)]
        if stmt.kind is not LoopKind.SEQUENTIAL:
            return [stmt]
        parts = self.several_steps(stmt)
        if len(parts) > 1 or parts[0] is not stmt:
            return self.body(tuple(parts))
        enter(stmt, self.ranges)
        return [rewrite_bodies(stmt, replace(self, around=self.around or stmt.body).body)]

    def several_steps(self, loop: For) -> Sequence[Stmt]:
        """A loop over steps; several of them an iteration if they can go through memory together."""
        left = any(self.parts.get(symbol) == size <= STEPS for size, symbol in loop.lo.terms)
        short = left or (loop.trips is not None and loop.trips < 2 * STEPS)
        large = len(list(walk_statements(loop.body))) > LARGE
        if loop.step != 1 or short or large or loop.symbol in self.settled:
            return [loop]
        enter(loop, self.ranges)
        inside = replace(self, around=self.around or loop.body, touched=known_bytes(loop.body))
        if not inside.pays([part for stmt in loop.body for part in _row_by_row(stmt)] * STEPS):
            return [loop]
        self.notes.append(f"sweep: {STEPS} steps of loop {loop.symbol.hint} go through memory together")
        parts = in_steps(loop, (loop.body,) * STEPS)
        self.settled.update(part.symbol for part in parts if isinstance(part, For))
        return parts

    def pays(self, steps: Sequence[Stmt]) -> bool:
        """Can all these nests go through memory together, and would each array have to be fetched again? What
        a cache gives anyway, the nearest one has to hold meanwhile."""
        group: list[Rows] = []
        for stmt in steps:
            one = self.following(group, stmt)
            if one is None:
                return False
            group.append(one)
        far = self.touched > self.caps.l3_bytes
        if not far and _bytes_at_once(group) > self.caps.l1_bytes:
            return False
        threads = threads_for(steps, self.around, self.ranges, self.caps)
        slabs = threads if self.may_be_cut(group, threads) else 1
        return all(self.has_left(storage, slabs) for one in group for storage in one.does.writes)

    def following(self, group: Sequence[Rows], stmt: Stmt) -> Rows | None:
        """A statement as one that follows the others; None if it cannot, or that does not pay."""
        loop = _over_rows(stmt)
        touched = () if loop is None else [tensor.storage for tensor, _, _ in affine_accesses((loop,))]
        if loop is None or not any(self.is_large(storage, 1, 1) for storage in touched):
            return None
        nests = (*(one.stmt for one in group), stmt)
        threads = threads_for(nests, self.around, self.ranges, self.caps)
        if sums_short_rows(loop) or any(
            _disturbs(*pair) for one in group for pair in ((one.loop, loop), (loop, one.loop))
        ):
            return None
        row = group[0].loop.symbol if group else loop.symbol
        loop = replace(loop, symbol=row, body=substitute_statements(loop.body, {loop.symbol: Affine.of(row)}))
        rows = [one.loop for one in (*group, Rows(stmt, loop, Effects()))]
        self.ranges[row] = min(one.lo.constant for one in rows), max(one.hi.constant for one in rows) - 1
        does = effects(loop.body, self.ranges)
        if does.leaves or does.updates:
            return None
        for slabs in (threads, 1) if 1 < threads <= THREADS else (threads,):
            one = self.placed(group, Rows(stmt, loop, does), touched, slabs, threads)
            if one is not None:
                return one
        return None

    def placed(
        self, group: Sequence[Rows], one: Rows, touched: Sequence[Tensor], slabs: int, threads: int
    ) -> Rows | None:
        """The nest so many rows behind the others as it must be, where all of them go in so many slabs; None
        if they cannot, or that does not pay."""
        large = {storage for storage in touched if self.is_large(storage, slabs, threads)}
        if not large:
            return None
        if group:
            placed = self.behind(group, one, large)
            if placed is None:
                return None
            one = placed
        taking_part = (*group, one)
        begin, end = span(taking_part)
        if group and not (begin < end and self.is_near(taking_part)):
            return None
        return one if slabs == 1 or self.may_be_cut(taking_part, slabs) else None

    def may_be_cut(self, group: Sequence[Rows], slabs: int) -> bool:
        """Can most of what the nests do be cut into slabs for so many threads? Those are woken for slabs that
        are not those of a step."""
        begin, end = span(group)
        does = sum(in_vectors(one.loop, self.ranges).get((), 0.0) for one in group)
        if slabs == 1 or (not self.around and does < WAKING * self.caps.thread_work):
            return False
        return any(
            fits(_at(group, *times), *times, slabs, self.placement)
            for times in _times(group)
            if MOST * (times[1] - times[0]) >= end - begin
        )

    def behind(self, group: Sequence[Rows], rows: Rows, large: Collection[Tensor]) -> Rows | None:
        """The nest so far behind the first one that an iteration finds made all that it takes, and overwrites
        nothing that is still to be read; None where that is too far, or no large array would have to be
        fetched again."""
        row, does, behind, pays = rows.loop.symbol, rows.does, group[-1].behind, False
        ahead = -math.inf
        for one in group:
            handed_on = self.distances(row, one.does.writes, does.reads)
            kept_back = self.distances(row, one.does.reads, does.writes)
            apart = (*handed_on, *kept_back, *self.distances(row, one.does.writes, does.writes))
            spread = max(handed_on) - min(handed_on) if handed_on else 0
            if max(spread, *apart, 0) > BEHIND:
                return None
            behind = max((behind, *(one.behind + int(rows) for rows in apart)))
            ahead = max((ahead, *(one.ahead - rows for rows in apart)))
            shared = {*one.does.reads, *one.does.writes} & {*does.reads, *does.writes}
            pays |= not shared.isdisjoint(large)
        return replace(rows, behind=behind, ahead=max(ahead, -behind)) if pays else None

    def distances(self, row: Symbol, first: Touched, second: Touched) -> list[float]:
        """How many rows further on the one touches what the other does: the least and the greatest number for
        any two places."""
        return [end for apart in meetings(first, second, (row,), self.ranges) for end in apart[row]]

    def is_large(self, storage: Tensor, slabs: int, threads: int) -> bool:
        """Would an array, in so many slabs, have left the cache by the time that another nest of so many
        threads touches it?"""
        if storage.rank < 2 or not storage.has_fixed_shape:
            return False
        place = self.placement.get(storage)
        if slabs < threads:
            return storage.nbytes > self.caps.l3_bytes
        is_own = place is not None and place.kind is PlaceKind.ARENA
        return (is_own and storage.nbytes // slabs > self.caps.l1_bytes) or self.has_left(storage, slabs)

    def has_left(self, storage: Tensor, slabs: int) -> bool:
        """Would a slab of an array of the caller's have left the first cache until the next nest?"""
        near = self.caps.l1_bytes * slabs
        return storage.nbytes > near // PART and self.touched > near

    def is_near(self, group: Sequence[Rows]) -> bool:
        """Do the rows between the first nest and the last one stay in a near cache?"""
        arrays = {storage for one in group for storage in (*one.does.reads, *one.does.writes)}
        if not all(storage.has_fixed_shape for storage in arrays):
            return False
        return _row_bytes(group) * (group[-1].behind + BEHIND + 1) <= self.caps.l2_bytes

    def together(self, group: Sequence[Rows]) -> Sequence[Stmt]:
        """The nests in one; what they do before all of them take part, and after that, by themselves."""
        long = [one for one in group if one.is_long]
        if len(long) < 2:
            return [stmt for one in group for stmt in self.alone(one.stmt)]
        names = ", ".join(dict.fromkeys(str(made) for one in long for made in one.does.writes))
        last = long[-1].behind - long[0].behind
        rows = f"{last} row" + "s" * (last != 1)
        self.notes.append(f"sweep: {names}: {len(long)} nests in one, the last {rows} behind the first")
        begin, end = span(group)
        return (
            *(stmt for one in group for stmt in part(one, one.first, begin)),
            *(stmt for times in _times(group) for stmt in self.all(group, *times)),
            *(stmt for one in group for stmt in part(one, end, one.end)),
        )

    def all(self, group: Sequence[Rows], begin: int, end: int) -> Sequence[Stmt]:
        """What all nests do that take part from one time to another; in slabs, where threads share them
        and rows go in order."""
        here = _at(group, begin, end)
        slabs = threads_for([one.stmt for one in group], self.around, self.ranges, self.caps)
        done = together(here, Affine.of(begin), Affine.of(end), self.ranges)
        in_order = any(isinstance(stmt, For) and stmt.kind is LoopKind.SEQUENTIAL for stmt in done)
        if not in_order or not self.may_be_cut(group, slabs):
            return done
        if not fits(here, begin, end, slabs, self.placement):
            return done
        self.notes.append(f"sweep: {slabs} slabs of rows go through memory apart")
        return in_slabs(here, begin, end, slabs, self.ranges)


def _times(group: Sequence[Rows]) -> Sequence[tuple[int, int]]:
    """The times when all nests over more than one row take part, cut where others do."""
    begin, end = span(group)
    single = [one for one in group if not one.is_long and begin <= one.first < end]
    cuts = sorted({begin, end, *(cut for one in single for cut in (one.first, one.end))})
    return list(pairwise(cuts))


def _at(group: Sequence[Rows], begin: int, end: int) -> Sequence[Rows]:
    """Those that take part from one time to another."""
    return [one for one in group if one.first <= begin and end <= one.end]


def _row_bytes(group: Sequence[Rows]) -> int:
    """How much a row of all arrays takes."""
    arrays = {storage for one in group for storage in (*one.does.reads, *one.does.writes)}
    return sum(storage.nbytes // storage.shape[0].constant for storage in arrays if storage.rank > 1)


def _bytes_at_once(group: Sequence[Rows]) -> int:
    """How much the rows of all arrays take from the one that is touched first to the one touched last."""
    places: dict[Tensor, set[int]] = {}
    for one in group:
        for tensor, index, _ in affine_accesses(one.loop.body):
            if tensor.rank > 1 and index[0].coefficient(one.loop.symbol) == 1:
                places.setdefault(tensor.storage, set()).add(index[0].offset - one.behind)
    return sum(
        (max(rows) - min(rows) + 1) * (storage.nbytes // storage.shape[0].constant)
        for storage, rows in places.items()
    )


def _over_rows(stmt: Stmt) -> For | None:
    """A nest as a loop over rows of what it touches, whose iterations are independent. A single cell of each,
    at a position that is computed, is none: a vector that reads its row would wait for the number stored."""
    if not isinstance(stmt, For) or stmt.kind is not LoopKind.PARALLEL or contracts(stmt):
        return None
    kinds = {type(inner) for inner in walk_statements(stmt.body)}
    if Bind in kinds and For not in kinds:
        return None
    if stmt.step != 1 or not (stmt.lo.is_constant and stmt.hi.is_constant and stmt.trips):
        return None
    along = [
        (index[0].coefficient(stmt.symbol), index[-1].coefficient(stmt.symbol))
        for tensor, index, _ in affine_accesses((stmt,))
        if tensor.rank > 1
    ]
    one_row = _over_one_row(stmt) if all(first == 0 for first, _ in along) else None
    return one_row or (stmt if all(last == 0 for _, last in along) else None)


def _disturbs(steps: For, sums: For) -> bool:
    """Do rows of the one go in order, and does the other form sums of floats? In one loop these would be in
    order too, and that in caches of some sizes only."""
    inside = walk_statements(steps.body)
    is_chain = any(isinstance(stmt, For) and stmt.kind is LoopKind.SEQUENTIAL for stmt in inside)
    return is_chain and any(map(is_rounded, walk_statements(sums.body)))


def _is_parallel(stmt: Stmt) -> bool:
    return isinstance(stmt, For) and stmt.kind is LoopKind.PARALLEL


def _row_by_row(stmt: Stmt) -> Sequence[Stmt]:
    """Of a nest that stores to some rows alone, such as those along the border, a nest for each, if none
    touches what another one makes."""
    if not isinstance(stmt, For) or len(stmt.body) < 2 or stmt.kind is not LoopKind.PARALLEL:
        return [stmt]
    if not all(isinstance(inner, (Define, Store)) for inner in stmt.body):
        return [stmt]
    stores = [inner for inner in stmt.body if isinstance(inner, Store)]
    rows = dict.fromkeys(store.index[0] for store in stores if store.tensor.rank > 1)
    if len(rows) < 2 or not all(store.tensor.rank > 1 for store in stores):
        return [stmt]
    parts = [replace(stmt, body=_for_row(stmt.body, row)) for row in rows]
    made, taken = [_rows_of(part, True) for part in parts], [_rows_of(part, False) for part in parts]
    known = all(position.is_constant for _, position in set().union(*made, *taken))
    if not known:
        return [stmt]
    apart = all(
        one.isdisjoint(made[at] | taken[at])
        for number, one in enumerate(made)
        for at in range(len(parts))
        if at != number
    )
    return copy_body(tuple(parts), {}, {}) if apart else [stmt]


def _for_row(body: Sequence[Stmt], row: Affine) -> tuple[Stmt, ...]:
    """What stores to a row, and computes what it stores."""
    out: list[Stmt] = []
    needed: set[Variable] = set()
    for stmt in reversed(body):
        match stmt:
            case Store(index=(first, *_)) if first == row:
                out.append(stmt)
            case Define(variable=variable) if variable in needed:
                out.append(stmt)
            case _:
                continue
        needed.update(locals_read((stmt,)))
    return tuple(reversed(out))


def _rows_of(nest: For, stored: bool) -> set[tuple[Tensor, Affine]]:
    """The rows that a nest stores to, or takes."""
    return {
        (tensor.storage, index[0])
        for tensor, index, stores in affine_accesses((nest,))
        if stores is stored and tensor.rank > 1
    }


def _over_one_row(nest: For) -> For | None:
    """A nest that stores to one row as an iteration of a loop over rows."""
    touched = [(index[0], stores) for tensor, index, stores in affine_accesses((nest,)) if tensor.rank > 1]
    stored = {position for position, stores in touched if stores}
    if len(stored) != 1 or not all(position.is_constant for position, _ in touched):
        return None
    (here,) = stored
    row = Symbol("i")

    def moving(tensor: Tensor, index: tuple[Affine, ...]) -> tuple[Tensor, tuple[Affine, ...]]:
        return tensor, (row + (index[0] - here), *index[1:]) if len(index) > 1 else index

    return For(row, here, here + 1, rewrite_cells((nest,), moving), LoopKind.PARALLEL)
