"""certain: what follows from tests before is not tested again.

    while True:                                         while True:
        if not (j >= 0 and key < x[last]):                  if not (j >= 0 and key < x[last]):
            break                                               break
        raise_(u64(j + 50) > 99, 'IndexError', ...)
        y[where(j < 0, j + 50, j)] = key          ->        y[j] = key
        raise_(not (j - 1 <= j), 'OverflowError', ...)
        j = j - 1                                           j = j - 1

Python's integers have no end and its positions count from both ends of an axis, so that each step of a loop
that moves a position has exceptions of its own. Few of them can be raised: the loop's condition, the
positions looked at before and where the integer came from tell its range. In a loop that changes integers
their ranges are those of before, widened until an iteration leaves them as they are: Cousot and Cousot,
Abstract interpretation (1977). What a known number of iterations add to moves by so many steps at most.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from ..frozen import frozen
from ..ir.code import Caps
from ..ir.dtype import BOOL, I64
from ..ir.expr import Apply, Expr, Local, Variable
from ..ir.index import Affine
from ..ir.loops import (
    Bind,
    Define,
    For,
    If,
    Kernel,
    LoopKind,
    Raise,
    Stmt,
    Store,
    Update,
    While,
    walk_statements,
    written,
)
from ..ir.ops import OPS
from ..ir.tensor import Tensor
from ..ir.walk import kept, rewrite_expressions, transform
from .access import Range, reads
from .facts import ALL, Facts, Moves, hull

__all__ = ["certain"]

ROUNDS = 4
"""After so many iterations nothing is known of what still changes: one to begin with, one to find out at
which end, one to see that it stays, and one to see how near."""

WHERE = OPS["where"]


def certain(kernel: Kernel, caps: Caps) -> Kernel:
    """The kernel without exceptions that are never raised."""
    if not any(isinstance(stmt, Raise) for stmt in walk_statements(kernel.body)):
        return kernel
    return kernel.with_body(_body(kernel.body, Facts.none(_cells(kernel.body))))


def _cells(body: tuple[Stmt, ...]) -> dict[Tensor, Variable]:
    """The integers in memory that nothing but plain loads and stores reaches, each as a local."""
    inside = list(walk_statements(body))
    stored = {stmt.tensor for stmt in inside if isinstance(stmt, Store) and stmt.accum is None}
    others = {written(stmt) for stmt in inside if not isinstance(stmt, Store) or stmt.accum is not None}
    views = {tensor for stmt in inside for tensor, _ in reads(stmt)} | stored
    others |= {view.storage for view in views if view.storage is not view}
    cells = (tensor for tensor in stored if tensor.rank == 0 and tensor.dtype is I64)
    return {tensor: Variable(tensor.label, I64) for tensor in cells if tensor.storage not in others}


def _body(body: tuple[Stmt, ...], facts: Facts) -> tuple[Stmt, ...]:
    """A body without such exceptions; the facts become those after it."""
    return kept(body, [new for stmt in body for new in _statement(stmt, facts)])


def _statement(stmt: Stmt, facts: Facts) -> Iterable[Stmt]:
    match stmt:
        case Raise(condition=condition):
            test = facts.test(condition)
            outcome = facts.outcome(test)
            facts.assume(test.no)
            return () if outcome is False else (_rewritten(stmt, facts),)
        case For() | While():
            return (_looped(stmt, facts),)
        case If():
            return (_branched(stmt, facts),)
        case _:
            new = _rewritten(stmt, facts)
            _note(new, facts)
            return (new,)


def _note(stmt: Stmt, facts: Facts) -> None:
    """What a statement does to numbers."""
    match stmt:
        case Define(variable=variable, value=value):
            facts.define(variable, value)
        case Update(variable=variable, value=value, accum=accum):
            facts.define(
                variable, value if accum is None else Apply(accum, (Local(variable), value), variable.dtype)
            )
        case Store(tensor=tensor, value=value) if tensor in facts.cells:
            facts.define(facts.cells[tensor], value)
        case Bind(symbol=symbol, value=value):
            facts.bind(symbol, value)
        case _:
            pass


def _rewritten(stmt: Stmt, facts: Facts) -> Stmt:
    """A statement whose choices are made, if they are certain."""

    def rule(node: Expr) -> Expr:
        match node:
            case Apply(op=op, args=(condition, then, otherwise)) if op is WHERE and node.dtype is I64:
                outcome = facts.outcome(facts.test(condition))
                return node if outcome is None else then if outcome else otherwise
            case _:
                return node

    return rewrite_expressions(stmt, lambda expr: transform(expr, rule))


def _branched(stmt: If, facts: Facts) -> If:
    other, test = facts.copy(), facts.test(stmt.condition)
    facts.assume(test.yes)
    other.assume(test.no)
    body, orelse = _body(stmt.body, facts), _body(stmt.orelse, other)
    facts.join(other, _changed((stmt,), facts))
    return stmt if body is stmt.body and orelse is stmt.orelse else replace(stmt, body=body, orelse=orelse)


def _looped(loop: For | While, facts: Facts) -> Stmt:
    """A loop, in each iteration of which the locals that it changes have any value of theirs."""
    found = _ranges(loop, facts)
    if isinstance(loop, For):
        body = found.body
        if body is None:
            there = facts.copy()
            there.change(found.starts)
            body = _iterate(loop, there)
        before = {variable: facts.local(variable) for variable in found.ways}
        facts.change(found.ends)
        facts.move(before, found.ways)
        return loop if body is loop.body else replace(loop, body=body)
    facts.change(found.starts)
    test = _body(loop.test, facts)
    there, outcome = facts.copy(), facts.test(loop.condition)
    there.assume(outcome.yes)
    body = _body(loop.body, there)
    facts.assume(outcome.no)
    return loop if test is loop.test and body is loop.body else replace(loop, test=test, body=body)


Ranges = Mapping[Variable, Range]


@frozen
class _Found:
    """The values that locals have at the start of any iteration of a loop, and after the last; how far the
    loop moves some; its body over those values, if that was walked through."""

    starts: Ranges
    ends: Ranges
    ways: Ranges
    body: tuple[Stmt, ...] | None


def _ranges(loop: For | While, facts: Facts) -> _Found:
    """What a loop does to locals, found by going through iterations from wider and wider ranges; at first
    from those that were found last, in an earlier iteration of a loop around, so that depths add up."""
    changed = _changed((loop,), facts)
    trips = _most_trips(loop, facts) if isinstance(loop, For) else 0
    before = {variable: facts.range_of(variable) for variable in changed}
    known, steps = _known(loop, facts, before, trips)
    for number in range(ROUNDS if _is_in_order(loop) else 0):
        there = facts.copy()
        there.change(known)
        origins = {variable: there.local(variable) for variable in changed if variable.dtype is I64}
        body = _iterate(loop, there)
        after = {variable: hull(before[variable], there.range_of(variable)) for variable in changed}
        moved = {
            variable: _step(origin, there.local(variable), there) for variable, origin in origins.items()
        }
        wider = [
            variable
            for variable in changed
            if hull(known[variable], after[variable]) != known[variable]
            and not _is_within(moved[variable], steps.get(variable))
        ]
        if not wider:
            starts = {**after, **{variable: known[variable] for variable in steps}}
            # Of a local that an iteration may move further by now, only the range still holds.
            steps = {at: step for at, step in steps.items() if _is_within(moved[at], step)}
            facts.loops[id(loop)] = Moves(starts, steps)
            ways = {at: (low * trips, high * trips) for at, (low, high) in steps.items()}
            ends = {at: _moved(before[at], way) for at, way in ways.items()}
            return _Found(starts, {**after, **ends}, ways, body if starts == known else None)
        for variable in wider:
            step = moved[variable] if number and variable not in steps else None
            if step is None or not trips:
                steps.pop(variable, None)
                known[variable] = _wider(known[variable], after[variable], number)
            else:
                steps[variable] = hull(step, (0, 0))
                known[variable] = _reached(before[variable], steps[variable], trips)
    any_value = dict.fromkeys(changed, ALL)
    facts.loops[id(loop)] = Moves(any_value, {})
    return _Found(any_value, any_value, {}, None)


def _known(
    loop: For | While, facts: Facts, before: Ranges, trips: int
) -> tuple[dict[Variable, Range], dict[Variable, Range]]:
    """The values to begin with, and the steps."""
    last = facts.loops.get(id(loop))
    if last is None:
        return dict(before), {}
    steps = dict(last.steps) if trips else {}
    known = {variable: hull(start, last.starts[variable]) for variable, start in before.items()}
    known.update((variable, _reached(before[variable], step, trips)) for variable, step in steps.items())
    return known, steps


def _reached(before: Range, step: Range, trips: int) -> Range:
    """The range at the start of any of so many iterations, each of which takes a step."""
    return _moved(before, (step[0] * (trips - 1), step[1] * (trips - 1)))


def _most_trips(loop: For, facts: Facts) -> int:
    """How often a loop runs at most."""
    lo, hi = (end.substitute(facts.numbers) for end in (loop.lo, loop.hi))
    span = facts.range(hi - lo)[1 if loop.step > 0 else 0]
    return max(0, -(-span // loop.step))


def _step(start: Affine, end: Affine, facts: Facts) -> Range | None:
    """How far an iteration moves a number; None where that depends on the number."""
    way = end - start
    return facts.range(way) if set(start.symbols).isdisjoint(way.symbols) else None


def _is_within(step: Range | None, steps: Range | None) -> bool:
    return step is not None and steps is not None and hull(step, steps) == steps


def _moved(known: Range, way: Range) -> Range:
    """The range of what is so much further on."""
    return max(ALL[0], known[0] + way[0]), min(ALL[1], known[1] + way[1])


def _is_in_order(loop: For | While) -> bool:
    return isinstance(loop, While) or loop.kind is LoopKind.SEQUENTIAL


def _iterate(loop: For | While, facts: Facts) -> tuple[Stmt, ...]:
    """The facts become those after an iteration; its body over them."""
    if isinstance(loop, For):
        facts.enter(loop.symbol, loop.lo, loop.hi, loop.step)
    else:
        _body(loop.test, facts)
        facts.assume(facts.test(loop.condition).yes)
    return _body(loop.body, facts)


def _wider(known: Range, after: Range, number: int) -> Range:
    """Both, and from the second iteration on whatever lies beyond an end that has moved."""
    low, high = hull(known, after)
    if number:
        low, high = ALL[0] if low < known[0] else low, ALL[1] if high > known[1] else high
    return low, high


def _changed(body: tuple[Stmt, ...], facts: Facts) -> tuple[Variable, ...]:
    """The integers and the tests that a body changes."""
    inside = list(walk_statements(body))
    updates = (stmt.variable for stmt in inside if isinstance(stmt, Update))
    numbers = (variable for variable in updates if variable.dtype in (I64, BOOL))
    stored = (
        facts.cells[stmt.tensor] for stmt in inside if isinstance(stmt, Store) and stmt.tensor in facts.cells
    )
    return tuple(dict.fromkeys((*numbers, *stored)))
