"""segments: long accumulations go several segments at a time.

    for k in sequential(1, 2056):              for k in sequential(1, 8):
        y[k] = add(y[k - 1], x[k])                 y[k] = add(y[k - 1], x[k])
                                               t = y[7]
                                               for b in sequential(0, 32):
                                                   for l in vector(0, 8, lanes=8):
                                                       s = -0.0
                                      ->               for k in unrolled(0, 8):
                                                           s = add(s, x[64*b + 8*l + k + 8])
                                                           own[k, l] = s
                                                   for l in unrolled(0, 8):
                                                       ahead[l] = t
                                                       t = add(t, own[7, l])
                                                   for k in vector(0, 8, lanes=8):
                                                       for l in unrolled(0, 8):
                                                           y[64*b + 8*l + k + 8] = add(ahead[l], own[k, l])

One step after another, each waits for the addition of the one before. Here a segment is accumulated from
nothing, in lanes, side by side with others; then what comes before it is added. A matrix of segments is
transposed in registers on its way in and on its way out. Sums of numbers that are not negative still never
decrease: what comes before a segment is exactly the last cell of the one before.

That is another order: the same bits for integers, extremes and logic, and floats where the program says that
their order is open. It depends on the loop and its type alone. Where threads may share a long one, they first
add up all segments, then one of them adds up what comes before each, and last the cells are formed as above.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from ...frozen import slotted
from ...ir.code import Caps
from ...ir.dtype import BOOL
from ...ir.expr import Load, Local, Variable
from ...ir.index import Affine, Symbol, affine
from ...ir.loops import Define, For, Kernel, LoopKind, Place, PlaceKind, Stmt, Store, Update
from ...ir.tensor import Tensor
from ...ir.walk import kept, rewrite_bodies
from ..analysis.accumulations import Accumulation, accumulation
from ..analysis.copies import copy_body
from ..analysis.repeats import weight
from ..analysis.trips import blocks

__all__ = ["segments"]

SIDE_BYTES = 64
"""So many bytes of segments go side by side, and so long is each: what fits into registers."""

MOST = 16
"""Of narrow types, so many at most."""

LONG = 1024
"""Shorter accumulations stay in NumPy's order."""

SHARED, THREADS = 1 << 16, 4
"""One of so many cells is worth adding up twice if so many threads share it: fewer only make up for that."""

LIGHT = 4
"""So many operations may be done twice for it."""

ZERO = Affine.of(0)


def segments(kernel: Kernel, caps: Caps) -> Kernel:
    """The kernel with its long accumulations in segments."""
    placement: dict[Tensor, Place] = {}
    notes: list[str] = []

    def visit(body: tuple[Stmt, ...], threads: int) -> tuple[Stmt, ...]:
        out: list[Stmt] = []
        for stmt in body:
            steps = accumulation(stmt) if isinstance(stmt, For) else None
            if isinstance(stmt, For) and steps is not None and _pays(stmt, steps):
                made = _Segments.of(stmt, steps, placement)
                out += made.all(threads)
                side = made.side
                notes.append(f"segments: {steps.into.label}: {side} segments of {side} cells at a time")
                continue
            left = 1 if isinstance(stmt, For) and stmt.kind is LoopKind.PARALLEL else threads
            out.append(rewrite_bodies(stmt, partial(visit, threads=left)))
        return kept(body, out)

    body = visit(kernel.body, caps.threads)
    return kernel.with_body(body, notes, placement)


def _pays(loop: For, steps: Accumulation) -> bool:
    """Is it surely a long loop, whose steps may be grouped otherwise?"""
    ends = (loop.hi - loop.lo).bounds({})
    return ends is not None and ends[0] >= LONG and steps.is_free and steps.into.dtype is not BOOL


@slotted
class _Segments:
    """What a loop accumulates: one by one up to `lo`, from there on `side` segments of as many cells at a
    time. Positions count from there."""

    loop: For
    steps: Accumulation
    lo: Affine
    side: int
    placement: dict[Tensor, Place]

    @staticmethod
    def of(loop: For, steps: Accumulation, placement: dict[Tensor, Place]) -> _Segments:
        """Segments that begin at multiples of their length."""
        side = min(MOST, SIDE_BYTES // steps.into.dtype.itemsize)
        return _Segments(loop, steps, loop.lo + (-loop.lo.offset % side), side, placement)

    def all(self, threads: int) -> list[Stmt]:
        """All steps of the loop, which so many threads may share."""
        loop, trips = self.loop, self.loop.trips
        counting, count = blocks(replace(loop, lo=self.lo), self.block)
        first = replace(loop, hi=self.lo)
        (rest,) = copy_body((replace(loop, lo=self.lo + count * self.block),), {}, {})
        is_long = trips is not None and trips >= SHARED
        is_shared = is_long and threads >= THREADS and weight(loop.body) <= LIGHT
        made = self.shared(count.constant) if is_shared else self.in_turn(count)
        return [one for one in (*counting, first, *made, rest) if not isinstance(one, For) or one.trips != 0]

    @property
    def block(self) -> int:
        return self.side * self.side

    def in_turn(self, count: Affine) -> list[Stmt]:
        """Blocks one after the other."""
        block = Symbol("b")
        first, last = Affine.of(block) * self.block, Affine.of(self.side - 1)
        own, ahead = self.tensor("own", self.side), self.tensor("ahead", 1)
        before = self.before()
        putting = self.put_ahead(before, own, last, ahead, ZERO)
        body = (self.formed(first, own), putting, self.written(first, own, ahead, ZERO))
        return [before, For(block, ZERO, count, body)]

    def shared(self, count: int) -> list[Stmt]:
        """Blocks by threads, which first add up each segment."""
        totals, ahead = (self.tensor(name, count, PlaceKind.ARENA) for name in ("totals", "ahead"))
        own, before = self.tensor("own", self.side), self.before()
        one, two, three = (Symbol("b") for _ in range(3))
        first, second, third = (Affine.of(block) for block in (one, two, three))
        adding = (self.formed(first * self.block, totals, first),)
        putting = (self.put_ahead(before, totals, second, ahead, second),)
        cells = (self.formed(third * self.block, own), self.written(third * self.block, own, ahead, third))
        return [
            For(one, ZERO, Affine.of(count), adding, LoopKind.PARALLEL),
            before,
            For(two, ZERO, Affine.of(count), putting),
            For(three, ZERO, Affine.of(count), cells, LoopKind.PARALLEL),
        ]

    def formed(self, first: Affine, into: Tensor, row: Affine | None = None) -> For:
        """The segments of the block at a position, each from nothing: their cells, or in a `row` their last
        cells alone."""
        lane, step, sofar = Symbol("l"), Symbol("k"), Variable("sofar", into.dtype)
        place = self.lo + first + lane * self.side + step
        add = Update(sofar, self.steps.combined(Local(sofar), self.steps.value_at(place)))
        kept = Store(into, (Affine.of(step) if row is None else row, Affine.of(lane)), Local(sofar))
        inside, after = ((add, kept), ()) if row is None else ((add,), (kept,))
        down = For(step, ZERO, Affine.of(self.side), inside, LoopKind.UNROLLED)
        body = (Define(sofar, self.steps.identity), down, *after)
        return For(lane, ZERO, Affine.of(self.side), body, LoopKind.VECTOR, lanes=self.side)

    def before(self) -> Define:
        """The cell before all."""
        sofar = Variable("sofar", self.steps.into.dtype)
        return Define(sofar, Load(self.steps.into, self.steps.cell(self.lo - 1)))

    def put_ahead(self, before: Define, totals: Tensor, row: Affine, ahead: Tensor, to: Affine) -> For:
        """What comes before each segment of a block, in a row of `ahead`; their totals are in one of
        `totals`."""
        number, sofar = Symbol("l"), before.variable
        total = Load(totals, (row, Affine.of(number)))
        body = (
            Store(ahead, (to, Affine.of(number)), Local(sofar)),
            Update(sofar, self.steps.combined(Local(sofar), total)),
        )
        return For(number, ZERO, Affine.of(self.side), body, LoopKind.UNROLLED)

    def written(self, first: Affine, own: Tensor, ahead: Tensor, row: Affine) -> For:
        """The cells of the block at a position: those of its segments, with what comes before these."""
        lane, number = Symbol("k"), Symbol("l")
        parts = Load(ahead, (row, Affine.of(number))), Load(own, (Affine.of(lane), Affine.of(number)))
        cell = self.steps.cell(self.lo + first + number * self.side + lane)
        store = Store(self.steps.into, cell, self.steps.combined(*parts), self.steps.loc)
        across = For(number, ZERO, Affine.of(self.side), (store,), LoopKind.UNROLLED)
        return For(lane, ZERO, Affine.of(self.side), (across,), LoopKind.VECTOR, lanes=self.side)

    def tensor(self, name: str, rows: int, kind: PlaceKind = PlaceKind.SCRATCH) -> Tensor:
        made = Tensor(name, affine((rows, self.side)), self.steps.into.dtype)
        self.placement[made] = Place(kind, "segments are accumulated side by side")
        return made
