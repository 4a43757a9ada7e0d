"""sections: nests that work on sections of memory by themselves go through it together, section by section.

    for i in parallel(0, 4096):                     for s in parallel(0, 64):
        t[2*i] = add(x[2*i], x[2*i + 1])                for i in parallel(0, 64):
        t[2*i + 1] = subtract(x[2*i], ...)                  near[2*i] = add(x[128*s + 2*i], ...)
    for i in parallel(0, 2048):             ->              near[2*i + 1] = subtract(...)
        for j in parallel(0, 2):                        for i in parallel(0, 32):
            y[4*i + j] = add(t[4*i + j],                    for j in parallel(0, 2):
                             t[4*i + j + 2])                    y[128*s + 4*i + j] = add(near[4*i + j],
                                                                                         near[4*i + j + 2])

What a section holds lies in a cache from one nest to the next, and of a temporary that only these nests use
a section is left, in memory that later ones use again. Sections are as large as the second cache has room
for, where the arrays are larger, and those within them as large as the first has. Nests that run differently
meet so, as the stages of a Walsh-Hadamard transform do: it takes 0.55 of the time, and 0.4 of it in memory.
Nests that only read the same go together too, and may store to parts of an array that no other one touches,
as the steps of Haar's wavelets do: they take 0.5 to 0.65 of the time (Zen 5), and loops that read an array by
twos and by fours 0.8 to 0.95. Where sections would be far too short, since the iterations have few divisors,
nests stay as they are: means of means of such a length take 0.7 of the time that one iteration each took.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import cache
from itertools import combinations, product
from typing import Literal

from ...frozen import frozen, slotted, slotted_by_identity
from ...ir.code import Caps
from ...ir.index import Affine, Symbol
from ...ir.loops import For, Kernel, LoopKind, Place, PlaceKind, Stmt, walk_statements, written_in
from ...ir.tensor import Tensor
from ...ir.walk import kept, rewrite_bodies, rewrite_cells, substitute_statements
from ..analysis.access import Effects, Range, Span, effects, reads
from ..analysis.accumulations import sums_short_rows
from ..analysis.private import is_private
from ..analysis.strides import gathered
from ..analysis.trips import SHORT, divisors
from ..analysis.uses import counts
from .lag import contracts

__all__ = ["sections"]

ROOM = 0.75
"""The part of a cache that a section may take."""

MOST = 32
"""Nests that go together: each is compared with all others."""

REASON = "nests use a section at a time"


def sections(kernel: Kernel, caps: Caps) -> Kernel:
    """The kernel with nests that can in loops over sections."""
    dividing = _Dividing(max(caps.threads, 2), dict(kernel.placement), cache(lambda: counts(kernel.body)))
    body = kernel.body
    for size in (caps.l2_bytes, caps.l1_bytes):
        body = dividing.body(body, size)
    if body is kernel.body:
        return kernel
    return replace(kernel, body=body, placement=dividing.placement, notes=(*kernel.notes, *dividing.notes))


@frozen
class _Run:
    """The next so many cells of a storage for each iteration, from a first one on."""

    cells: int
    first: Affine


@frozen
class _Nest:
    """A loop from 0 whose iterations are independent, and which runs it touches of each storage: none if it
    is not by runs."""

    loop: For
    touched: Mapping[Tensor, frozenset[_Run]]
    stores: frozenset[Tensor]

    @staticmethod
    def of(stmt: Stmt) -> _Nest | None:
        match stmt:
            case For(kind=LoopKind.PARALLEL, step=1) if stmt.trips and stmt.lo == Affine.of(0):
                does = effects(stmt.body, {stmt.symbol: (0, stmt.trips - 1)})
                if does.leaves or does.updates or contracts(stmt) or sums_short_rows(stmt):
                    return None
                return _Nest(stmt, dict(_touched(does, stmt.symbol)), frozenset(does.writes))
            case _:
                return None

    @property
    def trips(self) -> int:
        return self.loop.trips or 0

    def cells(self, storage: Tensor, count: int) -> int:
        """What one of so many parts of the loop touches of a storage."""
        runs = self.touched[storage]
        return sum(run.cells for run in runs) * (self.trips // count) if runs else storage.size

    def bytes(self, count: int) -> int:
        """What such a part touches."""
        return sum(self.cells(storage, count) * storage.dtype.itemsize for storage in self.touched)


def _bytes_at_most(loop: For) -> float:
    """What a loop may touch: of runs that the end of an array cuts short, twice the array."""
    inside = walk_statements(loop.body)
    storages = written_in(inside) | {tensor.storage for stmt in inside for tensor, _ in reads(stmt)}
    return sum(2 * storage.nbytes if storage.has_fixed_shape else math.inf for storage in storages)


def _touched(does: Effects, symbol: Symbol) -> Iterator[tuple[Tensor, frozenset[_Run]]]:
    for storage in dict.fromkeys((*does.reads, *does.writes)):
        regions = (*does.reads.get(storage, ()), *does.writes.get(storage, ()))
        runs = frozenset(_run(region.linear(), symbol) for region in regions)
        yield storage, frozenset(run for run in runs if run and None not in runs)


def _run(span: Span | None, symbol: Symbol) -> _Run | None:
    """The run among whose cells of an iteration these are. It starts as many cells behind the storage's first
    one as some iterations have."""
    if span is None or (cells := span.base.coefficient(symbol)) <= 0:
        return None
    first = span.base - Affine.of(symbol) * cells
    low, high = ((first.offset + end) // cells for end in (span.low, span.high))
    return _Run(cells, first - first.offset + low * cells) if 0 <= low == high else None


@slotted_by_identity
class _Known:
    """What was found out about a loop for one cache, for the next: how many bytes it touches at most, and
    what it is, once somebody has asked."""

    loop: For
    most: float
    nest: _Nest | Literal[False] | None = False


@slotted
class _Dividing:
    """What is known on the way through a kernel: how many sections there must be, where temporaries lie, how
    often storages are used, and which loops are over sections, from which to which."""

    fewest: int
    placement: dict[Tensor, Place]
    uses: Callable[[], Counter[Tensor]]
    made: dict[Symbol, Range] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    known: dict[int, _Known] = field(default_factory=dict)

    def is_large(self, stmt: Stmt, cache: int) -> bool:
        """Whether a statement is independent iterations that may touch more than the cache holds."""
        if not isinstance(stmt, For) or stmt.symbol in self.made or stmt.kind is not LoopKind.PARALLEL:
            return False
        if id(stmt) not in self.known:
            self.known[id(stmt)] = _Known(stmt, _bytes_at_most(stmt))
        return self.known[id(stmt)].most > cache

    def nest(self, stmt: Stmt) -> _Nest | None:
        """One that is large as a nest, if it is one."""
        known = self.known[id(stmt)]
        if known.nest is False:
            known.nest = _Nest.of(stmt)
        return known.nest

    def body(self, body: tuple[Stmt, ...], cache: int) -> tuple[Stmt, ...]:
        """A body with runs of nests by sections for a cache; not inside loops that threads may share."""
        out: list[Stmt] = []
        group: list[_Nest] = []
        large = [self.is_large(stmt, cache) for stmt in body]
        for at, stmt in enumerate(body):
            is_beside = any((*large[max(at - 1, 0) : at], *large[at + 1 : at + 2]))
            nest = self.nest(stmt) if large[at] and is_beside else None
            if nest is None or not self.goes_on(group, nest, cache):
                out += self.together(group, cache)
                group = []
            if nest is not None and self.goes_on(group, nest, cache):
                group.append(nest)
            elif isinstance(stmt, For) and stmt.kind is LoopKind.PARALLEL and stmt.symbol not in self.made:
                out.append(stmt)
            else:
                out.append(rewrite_bodies(stmt, lambda inner: self.body(inner, cache)))
        return kept(body, [*out, *self.together(group, cache)])

    def goes_on(self, group: Sequence[_Nest], nest: _Nest, cache: int) -> bool:
        """Whether a nest that touches more than the cache holds may follow the others in each section, of
        which it has room for what any of them touches."""
        every = (*group, nest)
        if len(every) > MOST or nest.bytes(1) <= cache or self.count(every, cache) is None:
            return False
        count = math.gcd(*(one.trips for one in every))
        return all(
            self.agree(one, nest, storage, count)
            for one in group
            for storage in one.touched.keys() & nest.touched.keys()
            if storage in one.stores or storage in nest.stores
        )

    def have_room(self, group: Sequence[_Nest], count: int, cache: int) -> bool:
        """Whether so many sections are enough."""
        return count >= self.fewest and all(one.bytes(count) <= ROOM * cache for one in group)

    def count(self, group: Sequence[_Nest], cache: int) -> int | None:
        """The least number of sections; None where all have room for too much, or are far too short."""
        numbers = divisors(math.gcd(*(one.trips for one in group)))
        found = next((number for number in numbers if self.have_room(group, number, cache)), None)
        return None if found is None or self.have_room(group, found // SHORT, cache) else found

    def together(self, group: Sequence[_Nest], cache: int) -> Sequence[Stmt]:
        """The nests by sections, if one hands anything on to another, or reads what another has read: else as
        they were."""
        met = [
            (one, later, storage)
            for one, later in combinations(group, 2)
            for storage in one.touched
            if self.meet(one, later, storage)
        ]
        handed = dict.fromkeys(storage for one, _, storage in met if storage in one.stores)
        count = self.count(group, cache) if group else None
        if count is None or not (handed or any(self.is_read_again(*found, cache) for found in met)):
            return [one.loop for one in group]
        body = tuple(one.loop for one in group)
        inside, looked_up = counts(body), gathered(body)
        own = [
            storage
            for storage in handed
            if storage in self.placement
            and storage not in looked_up
            and inside[storage] == self.uses()[storage]
            and self.is_whole(storage, group)
            and is_private(storage, body)
        ]
        section = Symbol("section")
        self.made[section] = (0, count - 1)
        parts = self.near(_parts(group, section, count), group, own, section, count)
        self.uses().update(counts(parts))
        self.notes.append(f"sections: {len(group)} nests go through memory together, in {count} sections")
        return [For(section, Affine.of(0), Affine.of(count), parts, LoopKind.PARALLEL)]

    def agree(self, one: _Nest, other: _Nest, storage: Tensor, count: int) -> bool:
        """Whether two nests touch the same sections of a storage, each in one of so many parts, or no cell in
        common."""
        mine, its = one.touched[storage], other.touched[storage]
        parts = one.trips // count, other.trips // count
        return bool(mine and its) and all(
            (run.first == its_run.first and run.cells * parts[0] == its_run.cells * parts[1])
            or self.are_apart(run, one.trips, its_run, other.trips)
            for run, its_run in product(mine, its)
        )

    def meet(self, one: _Nest, other: _Nest, storage: Tensor) -> bool:
        """Whether two nests may touch the same cells of a storage."""
        if storage not in one.touched or storage not in other.touched:
            return False
        mine, its = one.touched[storage], other.touched[storage]
        return not (mine and its) or not all(
            self.are_apart(run, one.trips, its_run, other.trips) for run, its_run in product(mine, its)
        )

    def are_apart(self, one: _Run, trips: int, other: _Run, its_trips: int) -> bool:
        """Whether loops of so many iterations have no cells in common."""
        between = (other.first - one.first).bounds(self.made)
        return between is not None and (
            between[0] >= one.cells * trips or between[1] <= -other.cells * its_trips
        )

    def is_whole(self, storage: Tensor, group: Sequence[_Nest]) -> bool:
        """Whether all nests that touch a storage do it in the same sections, one run each."""
        touching = [one for one in group if storage in one.touched]
        sections = {(run.first, one.cells(storage, 1)) for one in touching for run in one.touched[storage]}
        return len(sections) == 1 and all(len(one.touched[storage]) == 1 for one in touching)

    def is_read_again(self, one: _Nest, other: _Nest, storage: Tensor, cache: int) -> bool:
        """Whether nests touch the same sections of more than the cache holds."""
        is_large = one.cells(storage, 1) * storage.dtype.itemsize > cache
        return is_large and self.agree(one, other, storage, math.gcd(one.trips, other.trips))

    def near(
        self,
        parts: Sequence[For],
        group: Sequence[_Nest],
        own: Sequence[Tensor],
        section: Symbol,
        count: int,
    ) -> tuple[Stmt, ...]:
        """The parts with a section of each temporary of their own, in memory that is used again after the
        last nest that touches it."""
        free: list[Tensor] = []
        places: dict[Tensor, Tensor] = {}
        out: list[Stmt] = []
        firsts = {
            storage: run.first for nest in group for storage, runs in nest.touched.items() for run in runs
        }
        for at, (part, nest) in enumerate(zip(parts, group, strict=True)):
            for storage in own:
                if storage in nest.touched and storage not in places:
                    places[storage] = self.place(free, storage, nest.cells(storage, count))

            def cell(tensor: Tensor, index: tuple[Affine, ...]) -> tuple[Tensor, tuple[Affine, ...]]:
                near = places.get(tensor.storage)
                if near is None:
                    return tensor, index
                start = firsts[tensor.storage] + Affine.of(section) * near.size
                return near, (tensor.linear(index) - start,)

            out += rewrite_cells((part,), cell)
            later = {storage for one in group[at + 1 :] for storage in one.touched}
            free += [places[storage] for storage in own if storage in nest.touched and storage not in later]
        for storage in own:
            del self.placement[storage]
        return tuple(out)

    def place(self, free: list[Tensor], storage: Tensor, cells: int) -> Tensor:
        """Memory for a section of a temporary."""
        for near in free:
            if (near.size, near.dtype) == (cells, storage.dtype):
                free.remove(near)
                return near
        near = Tensor.of("near", (cells,), storage.dtype)
        self.placement[near] = Place(PlaceKind.SCRATCH, REASON)
        return near


def _parts(group: Sequence[_Nest], section: Symbol, count: int) -> Sequence[For]:
    """Of each nest what is done for a section."""
    parts: list[For] = []
    for loop, trips in ((nest.loop, nest.trips // count) for nest in group):
        start = Affine.of(section) * trips + Affine.of(loop.symbol)
        body = substitute_statements(loop.body, {loop.symbol: start})
        parts.append(replace(loop, hi=Affine.of(trips), body=body))
    return parts
