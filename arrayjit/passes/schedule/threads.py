"""threads: the outermost independent loops that do enough are shared by threads.

    for i in sequential(0, 512):                for i in parallel(0, 512, grain=9):
        for j in vector(0, 512, lanes=16):          for j in vector(0, 512, lanes=16):
            t[j] = exp(x[i, j])         ->              t[j] = exp(x[i, j])
        ...                                         ...
            y[i, j] = divide(t[j], s)                   y[i, j] = divide(t[j], s)

A loop says its grain: so many iterations are worth waking a thread for, also where what they store to comes
from the thread that does the rest of a loop around (`handed`). Where a body's work depends on numbers that
only the run knows, so does the grain, and it is computed before the loop.

Iterations of a sequential loop are independent if all that stands in the way is a temporary that each of
them makes anew: then every thread has its own. What goes on in order from row to row is shared by columns
(`strips`). What adds up in a variable of outside stays in its one order, on one thread; of a long sum, which
is a tree, threads make the branches (`partials`). Since any cell is computed by the same operations on
whatever thread, results are the same for any number of threads. What iterations combine in any order, as
the checks of positions, each of them notes for itself (`shares`), also whether it raises an exception
(`stops`).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace

from ...frozen import slotted
from ...ir.code import Caps
from ...ir.dtype import I64
from ...ir.expr import Apply, Const
from ...ir.index import Affine, Symbol
from ...ir.loops import Barrier, Bind, For, Kernel, LoopKind, Place, PlaceKind, Raise, Stmt, walk_statements
from ...ir.ops import OPS
from ...ir.tensor import Tensor
from ...ir.walk import outer_updates, rewrite_loops
from ..analysis.access import Range, given, visible
from ..analysis.accounts import Seen, nests_of, seen_loops
from ..analysis.carriers import carriers
from ..analysis.handed import handed_on, touched_alone
from ..analysis.private import is_private
from ..analysis.trips import enter, greater
from ..analysis.uses import counts
from ..analysis.work import PARTS, Work, as_expression, work
from .cascade import BRANCHES
from .partials import parts_of
from .shares import shares_of
from .stops import stops_after
from .strips import strips_of

__all__ = ["explain_threads", "threads"]

LEAST = 1 / 64
"""No iteration does less."""

BALANCED = 2
"""A loop shall have so many iterations for each thread; else large loops inside it are shared instead."""

LARGE = 10
"""In times what is worth waking a thread for."""

NOTING = 32
"""Iterations that do so much at least may note each what they combine, and have it read again."""


def threads(kernel: Kernel, caps: Caps) -> Kernel:
    """The kernel with its large independent loops shared."""
    if caps.threads == 1:
        return kernel
    sharing = _Sharing.of(kernel, caps)
    body = sharing.body(kernel.body)
    return kernel.with_body(body, sharing.notes, sharing.placement)


def explain_threads(before: Kernel, after: Kernel, caps: Caps) -> Iterator[str]:
    """Why nests are not shared, nor the loops of the user's that they stand in."""
    if caps.threads == 1:
        yield "threads: everything is done by one thread, since there is no other"
        return
    sharing = _Sharing.of(before, caps)
    nests = {id(stmt) for around, nest in nests_of(after.body) for stmt in (*around, nest)}
    small: list[Seen] = []
    for seen in seen_loops(after.body, sharing.ranges):
        inside = (stmt for stmt in walk_statements((seen.loop,)) if isinstance(stmt, For))
        is_shared = any(loop.grain is not None for loop in (*seen.around, *inside))
        is_written_out = seen.loop.trips == 1 or seen.loop.kind is LoopKind.UNROLLED
        if id(seen.loop) in nests and not is_shared and not is_written_out:
            own = sharing.independent(seen.loop)
            if isinstance(own, str):
                yield f"threads: {seen} stays on one thread: {own}"
            else:
                small.append(seen)
    if len(small) > 1:
        yield f"threads: {len(small)} loops do each too little to be worth waking another thread"
    elif small:
        yield f"threads: {small[0]} stays on one thread: it does too little to be worth waking another one"


@slotted
class _Sharing:
    """`given` comes from the caller, who sees `seen` after an exception as well; `scratch` is made anew by
    each iteration of the innermost loop around all its uses; `uses` says how often each storage is used;
    `enough` is the least work that is worth a thread; a row of a strip has `row_bytes` at most; `placement`
    is where what threads make is kept; `alone` says what of arrays one thread touches in the loop around that
    goes in order; `known` are the loops that `independent` was asked about."""

    given: frozenset[Tensor]
    seen: frozenset[Tensor]
    scratch: frozenset[Tensor]
    uses: Counter[Tensor]
    threads: int
    enough: int
    row_bytes: int
    ranges: dict[Symbol, Range] = field(default_factory=dict)
    placement: dict[Tensor, Place] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    alone: Mapping[Tensor, float] | None = None
    known: dict[int, tuple[For, frozenset[Tensor] | str]] = field(default_factory=dict)

    @staticmethod
    def of(kernel: Kernel, caps: Caps) -> _Sharing:
        uses, row_bytes = counts(kernel.body), caps.l1_bytes // 4
        return _Sharing(
            given=given(kernel.params),
            seen=visible(kernel.params),
            scratch=frozenset(kernel.placed(PlaceKind.SCRATCH)),
            uses=uses,
            threads=caps.threads,
            enough=caps.thread_work,
            row_bytes=row_bytes,
        )

    def body(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        return rewrite_loops(body, self.loop)

    def loop(self, loop: For) -> Sequence[Stmt]:
        """The loop, shared if it may be and does enough; else those inside it that are."""
        enter(loop, self.ranges)
        own = self.independent(loop)
        if not isinstance(own, str):
            inside = self.more_balanced(loop)
            shared = [inside] if inside is not None else self.shared(loop, own)
            if shared:
                return shared
        elif loop.kind is LoopKind.SEQUENTIAL:
            strips = self.strips(loop)
            if strips is not None:
                return [strips]
        if loop.kind is LoopKind.VECTOR:
            return self.sum(loop)
        return self.combined(loop) or self.stopping(loop) or [self.in_order(loop)]

    def in_order(self, loop: For) -> For:
        """A loop whose iterations one thread takes, with those inside shared for which it pays to have what
        they store to come from the thread that does the rest."""
        inner = self
        if self.alone is None and loop.kind is LoopKind.SEQUENTIAL:
            tried = replace(self, alone={}, placement={}, notes=[], ranges=dict(self.ranges)).body(loop.body)
            if tried is loop.body:
                return loop
            inner = replace(self, alone=touched_alone(tried, self.ranges))
        body = inner.body(loop.body)
        return loop if body is loop.body else replace(loop, body=body)

    def shared(self, loop: For, own: frozenset[Tensor]) -> Sequence[Stmt]:
        """An independent loop, shared after what computes its grain; nothing if it does too little."""
        before, grain = self.grain(loop)
        if grain is None:
            return ()
        self.decide(loop, grain, own)
        kind = LoopKind.PARALLEL if loop.kind is LoopKind.SEQUENTIAL else loop.kind
        return [*before, replace(loop, kind=kind, grain=grain)]

    def combined(self, loop: For) -> Sequence[Stmt]:
        """A loop whose iterations combine something in any order, shared if it does enough; else nothing."""
        parts = shares_of(loop)
        own = "" if parts is None else self.independent(parts.making)
        if parts is None or isinstance(own, str):
            return ()
        _, grain = self.grain(parts.making)
        if grain is None or not grain.is_constant or grain.offset > max(1, self.enough // NOTING):
            return ()
        made = self.shared(parts.making, own)
        self.keep(parts.tensors, "threads combine what iterations found")
        return [*made, parts.rest]

    def stopping(self, loop: For) -> Sequence[Stmt]:
        """A loop that may raise an exception, shared if it does enough and nobody sees how far it came; else
        nothing."""
        noting = stops_after(loop, self.seen)
        combined = () if noting is None else self.combined(noting[1])
        return [noting[0], *combined, noting[2]] if noting is not None and combined else ()

    def strips(self, loop: For) -> For | None:
        """A loop that goes in order, as strips of columns that do not, where these do enough."""
        if not self.scratch.isdisjoint(counts(loop.body)):
            return None
        strips = strips_of(loop, self.threads, self.row_bytes, self.ranges)
        if strips is None:
            return None
        enter(strips, self.ranges)
        _, grain = self.grain(strips)
        if grain is None or not grain.is_constant:
            return None
        self.decide(strips, grain, frozenset())
        return replace(strips, grain=grain)

    def sum(self, loop: For) -> Sequence[Stmt]:
        """A vector loop, which may be a long sum: its parts are shared, where they are large enough."""
        parts = parts_of(loop, BRANCHES * self.threads)
        if parts is None:
            return [loop]
        making = (parts.making,)
        made = self.body(making)
        if made is making:
            return [loop]
        self.keep(parts.tensors, "threads add up parts of a sum")
        return [*made, parts.rest]

    def keep(self, tensors: Sequence[Tensor], why: str) -> None:
        for tensor in tensors:
            self.placement[tensor] = Place(PlaceKind.ARENA, why)
            self.notes.append(f"threads: {tensor}: {why}")

    def decide(self, loop: For, grain: Affine, own: frozenset[Tensor]) -> None:
        count = "" if loop.trips is None else f" of {loop.trips}"
        size = str(grain.offset) if grain.is_constant else "a number that is computed before"
        name = f"loop {loop.symbol.hint}{count}"
        self.notes.append(f"threads: {name} is shared, {size} at least for each thread")
        for tensor in sorted(own, key=lambda tensor: tensor.label):
            self.placement[tensor] = Place(PlaceKind.SCRATCH, "each thread makes and uses its own")
            self.notes.append(f"threads: {tensor}: each thread makes and uses its own")

    def independent(self, loop: For) -> frozenset[Tensor] | str:
        """The temporaries that each thread must have for itself to run iterations of the loop; or why even so
        it may not. Found out once: loops in others are decided on twice."""
        if id(loop) not in self.known:
            self.known[id(loop)] = loop, self.needed(loop)
        return self.known[id(loop)][1]

    def needed(self, loop: For) -> frozenset[Tensor] | str:
        if loop.kind not in (LoopKind.SEQUENTIAL, LoopKind.PARALLEL, LoopKind.VECTOR) or loop.trips == 1:
            return "its iterations go in order, if side by side"
        inside = list(walk_statements(loop.body))
        if any(isinstance(stmt, (Raise, Barrier)) for stmt in inside):
            return "it may end with an exception"
        outer = outer_updates(inside)
        if any(stmt.accum is None for stmt in outer):
            return "an iteration hands a value on to the next"
        if outer:
            return "its iterations add up, in their order"
        here = counts(loop.body)
        if any(here[tensor] not in (0, self.uses[tensor]) for tensor in self.scratch):
            return "other loops use what it makes for itself"
        if loop.kind is not LoopKind.SEQUENTIAL:
            return frozenset()
        found = carriers(loop, self.ranges)
        if found is None:
            return "an iteration hands values on to the next"
        own, carried = found - self.scratch, found & self.given
        parts = [(stmt, counts((stmt,))) for stmt in loop.body] if own else []
        for tensor in own - carried:
            touching = [stmt for stmt, used in parts if tensor in used]
            if self.uses[tensor] != here[tensor] or not is_private(tensor, touching):
                carried |= {tensor}
        if carried:
            names = ", ".join(sorted(tensor.label for tensor in carried))
            return f"an iteration touches cells of {names} that another one writes"
        return own

    def more_balanced(self, loop: For) -> For | None:
        """A loop of few iterations with the loops in it shared instead, where these are large."""
        if loop.kind is LoopKind.VECTOR or loop.trips is None or loop.trips >= BALANCED * self.threads:
            return None
        inner = replace(self, enough=LARGE * self.enough)
        body = inner.body(loop.body)
        return None if body is loop.body else replace(loop, body=body)

    def grain(self, loop: For) -> tuple[Sequence[Stmt], Affine | None]:
        """How many iterations are worth a thread, after what computes it; None if the loop has not twice as
        many."""
        own = {loop.symbol}
        own |= {stmt.symbol for stmt in walk_statements(loop.body) if isinstance(stmt, (For, Bind))}
        each = work(loop.body, own, self.ranges, loop if loop.kind is LoopKind.VECTOR else None)
        asked = handed_on(loop, self.alone, self.ranges) if self.alone else 0.0
        if any(each):
            return self.computed_grain({**each, (): each.get((), 0.0) - asked})
        grain = max(loop.lanes, math.ceil(self.enough / max(each.get((), 0.0) - asked, LEAST)))
        span = (loop.hi - loop.lo).bounds(self.ranges)
        trips = None if span is None else max(len(range(0, end, loop.step)) for end in span)
        return (), None if trips is not None and trips < 2 * grain else Affine.of(grain)

    def computed_grain(self, each: Work) -> tuple[Sequence[Stmt], Affine]:
        """The same where it depends on numbers of the run."""
        one = Const(1, I64)
        total = greater(as_expression(each), one)
        quotient = Apply(OPS["raw_divide"], (Const(PARTS * self.enough, I64), total), I64)
        grain = Symbol("grain", lower=1, upper=PARTS * self.enough + 2)
        return (Bind(grain, Apply(OPS["add"], (quotient, one), I64)),), Affine.of(grain)
