"""parallel: loops of the user's whose iterations need nothing of one another may be taken in any order.

    for k in sequential(0, 120):                    for k in parallel(0, 120):
        p = 0.0                                         p = 0.0
        for i in parallel(0, 150):          ->          for i in parallel(0, 150):
            p = fma(q[i], a[i, k], p)                       p = fma(q[i], a[i, k], p)
        r[k] = p                                        r[k] = p

Then the passes that follow are free to vectorise or interleave them, here along the rows of `a`. An iteration
must write only cells that no other one touches, and no local that it has not made. Here no column needs
another one, for `m` never is `k`:

    for k in sequential(0, 20):                     for k in sequential(0, 20):
        for l in sequential(0, 20 - k):                 for l in parallel(0, 20 - k):
            for m in sequential(0, k):      ->              for m in sequential(0, k):
                a[k, k + l] -= a[m, k + l]                      a[k, k + l] -= a[m, k + l]

Whole numbers may be added up, compared or combined bit by bit in any order, since they wrap: a local in which
an innermost loop does that and nothing else accumulates.

    for k in sequential(0, 120):                    for k in parallel(0, 120):
        t = less(x[k], 1.0)                             t = less(x[k], 1.0)
        t1 = add(c, cast(t, i64))           ->          c = reduce(add, c, cast(t, i64))
        c = t1
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from ...ir.code import Caps
from ...ir.expr import Apply, Expr, Local, Variable
from ...ir.index import Symbol
from ...ir.loops import Define, For, If, Kernel, LoopKind, Stmt, Update, While
from ...ir.walk import kept, locals_read, rewrite_bodies, rewrite_loops_inside_out
from ..analysis.access import Range, Ranges
from ..analysis.carriers import carriers, upwards
from ..analysis.trips import enter, from_its_end

__all__ = ["parallel"]


def parallel(kernel: Kernel, caps: Caps) -> Kernel:
    """The kernel with every independent loop parallel."""
    ranges: dict[Symbol, Range] = {}

    def visit(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        return kept(body, [statement(stmt) for stmt in body])

    def statement(stmt: Stmt) -> Stmt:
        if isinstance(stmt, For):
            enter(stmt, ranges)
            if stmt.kind is LoopKind.SEQUENTIAL:
                stmt = _independent(stmt, ranges)
        return rewrite_bodies(stmt, visit)

    return kernel.with_body(visit(kernel.body))


def _independent(loop: For, ranges: dict[Symbol, Range]) -> For:
    """The loop as a parallel one, if that does the same."""
    summing, sums = _accumulating(loop)
    for form in _forms(summing, ranges):
        enter(form, ranges)
        if carriers(form, ranges, sums) == frozenset():
            return upwards(summing)
    return loop


def _forms(loop: For, ranges: Ranges) -> Iterator[For]:
    """The loop, and from their ends on it and those in it: if one ends where another one stands, positions
    tell that it never is there."""
    yield from _both_ways(loop)
    body = _from_their_ends(loop.body, ranges)
    if body is not loop.body:
        yield from _both_ways(replace(loop, body=body))


def _both_ways(loop: For) -> Iterator[For]:
    yield loop
    if loop.step == 1 and loop.hi.symbols:
        yield from_its_end(loop)


def _from_their_ends(body: tuple[Stmt, ...], ranges: Ranges) -> tuple[Stmt, ...]:
    """A body whose loops are counted from their ends on, if these go along with outer loops."""

    def turned(loop: For) -> tuple[Stmt, ...] | None:
        goes_along = any(factor > 0 and symbol in ranges for factor, symbol in loop.hi.terms)
        return (from_its_end(loop),) if loop.step == 1 and goes_along else None

    return rewrite_loops_inside_out(body, turned)


def _accumulating(loop: For) -> tuple[For, frozenset[Variable]]:
    """An innermost loop in which whole numbers accumulate, and the locals that do. A step stands where
    what it adds was computed."""
    updates = {stmt.variable: stmt for stmt in loop.body if isinstance(stmt, Update)}
    if not updates or any(isinstance(stmt, (For, While, If)) for stmt in loop.body):
        return loop, frozenset()
    reads = Counter(locals_read(loop.body))
    times = Counter(stmt.variable for stmt in loop.body if isinstance(stmt, Update))
    once = {
        stmt
        for total, stmt in updates.items()
        if stmt.accum is None and times[total] == reads[total] == 1 and not total.dtype.is_inexact
    }
    named = {stmt.value.variable: stmt for stmt in once if isinstance(stmt.value, Local)}
    body: list[Stmt] = []
    done: set[Update] = set()
    for stmt in loop.body:
        update: Update | None
        match stmt:
            case Define(variable=name, value=value) if name in named and reads[name] == 1 and not times[name]:
                update, step = named[name], _step(named[name].variable, value)
            case Update(value=value) if stmt in once and stmt not in done:
                update, step = stmt, _step(stmt.variable, value)
            case _:
                update, step = None, None
        if update is not None and step is not None:
            done.add(update)
            body.append(step)
        elif stmt not in done:
            body.append(stmt)
    sums = frozenset(update.variable for update in done)
    return (replace(loop, body=tuple(body)) if sums else loop), sums


def _step(total: Variable, value: Expr) -> Update | None:
    """What combines a whole number with another one, as a step that accumulates it."""
    match value:
        case Apply(op=op, args=(one, other)) if op.associative and op.identity is not None:
            added = other if one == Local(total) else one if other == Local(total) else None
            return None if added is None else Update(total, added, op)
        case _:
            return None
