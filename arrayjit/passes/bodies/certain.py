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
Abstract interpretation (1977). What a known number of iterations add to moves by so many steps at most; and
where only what is computed ends a loop, by as many as a run can take at all: a counter needs centuries to
reach the end of its 64 bits. (Of a loop that ends by a counter, a compiler may know the last value without
running it.) The loops in which nothing is raised after all are looked at by `parallel` once more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain

from ...frozen import frozen
from ...ir.code import Caps
from ...ir.conditions import compare, one_of
from ...ir.dtype import BOOL, I64, Kind, named
from ...ir.expr import Apply, Cast, Const, Expr, Gather, Local, Variable
from ...ir.index import Affine, Symbol
from ...ir.loops import (
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
from ...ir.ops import OPS
from ...ir.tensor import Tensor
from ...ir.walk import kept, locals_read, locals_updated, nodes_in, rewrite_expressions, transform, variables
from ..analysis.access import Range, loads, reads
from ..structure.parallel import parallel
from .facts import ALL, Facts, Moves, Way, hull
from .least import without_less
from .plain import with_plain_numbers

__all__ = ["certain", "follow", "followed"]

ROUNDS = 4
"""After so many iterations nothing is known of what still changes: one to begin with, one to find out at
which end, one to see that it stays, and one to see how near."""

LIFETIME = 2**56
"""No run comes to so many iterations of a loop: at one a cycle they take half a year."""

MOST_CELLS = 2**48
"""Loops over what memory holds are no longer."""

ENDLESS = 2**128
"""So many iterations move whatever moves beyond 64 bits."""

WHERE = OPS["where"]

U64 = named("u64")

COMPUTED = {
    OPS[name]
    for name in (
        "multiply", "floor_divide", "remainder", "right_shift", "raw_divide", "raw_remainder",
        "raw_right_shift", "bitwise_and", "bitwise_or", "bitwise_xor",
    )
}  # fmt: skip
"""By what such numbers are found."""

MULTIPLY = OPS["multiply"]
TRIED = MULTIPLY, OPS["floor_divide"], OPS["remainder"]
ORS = OPS["logical_or"], OPS["bitwise_or"], OPS["logical_not"]

NEUTRAL = {OPS["logical_and"]: True, OPS["logical_or"]: False}
"""What changes nothing of tests that are taken together."""

UPWARDS = {OPS["floor_divide"]: OPS["raw_divide"], OPS["remainder"]: OPS["raw_remainder"]}
"""The ops that do the same to numbers without a sign."""

EXTREMES = {OPS["minimum"]: OPS["less_equal"], OPS["maximum"]: OPS["greater_equal"]}
"""Where what holds the first of two numbers is the extreme."""


def certain(kernel: Kernel, caps: Caps) -> Kernel:
    """The kernel without exceptions that are never raised."""
    if not any(_may_be_certain(stmt) for stmt in walk_statements(kernel.body)):
        return kernel
    found = followed(kernel.with_body(without_less(kernel.body)), caps)
    return found.with_body(with_plain_numbers(found.body))


def followed(kernel: Kernel, caps: Caps) -> Kernel:
    """The kernel with what follows from tests before; a loop in which nothing is raised after all may be
    parallel."""
    changing = frozenset(locals_updated(walk_statements(kernel.body)))
    facts = Facts.none(_cells(kernel.body), changing)
    facts.held.update(dict.fromkeys(_stored_once(kernel), ALL))
    return parallel(kernel.with_body(_body(kernel.body, facts)), caps)


def _may_be_certain(stmt: Stmt) -> bool:
    """Is something raised or divided here, which ranges may tell more of?"""
    if isinstance(stmt, Raise):
        return True
    nodes = nodes_in((stmt,))
    return any(isinstance(node, Apply) and node.op in UPWARDS and node.dtype is I64 for node in nodes)


def _cells(body: tuple[Stmt, ...]) -> dict[Tensor, Variable]:
    """The integers in memory that nothing but plain loads and stores reaches, each as a local."""
    inside = list(walk_statements(body))
    stored = {stmt.tensor for stmt in inside if isinstance(stmt, Store) and stmt.accum is None}
    others = {written(stmt) for stmt in inside if not isinstance(stmt, Store) or stmt.accum is not None}
    views = {tensor for stmt in inside for tensor, _ in reads(stmt)} | stored
    others |= {view.storage for view in views if view.storage is not view}
    cells = (tensor for tensor in stored if tensor.rank == 0 and tensor.dtype is I64)
    return {tensor: Variable(tensor.label, I64) for tensor in cells if tensor.storage not in others}


def _stored_once(kernel: Kernel) -> Iterator[Tensor]:
    """The temporaries whose integers one statement stores, which no loop in order comes to again."""
    inside = list(walk_statements(kernel.body))
    counts = Counter(written(stmt) for stmt in inside)
    counts.update(view.storage for stmt in inside for view, _ in reads(stmt) if view.storage is not view)
    pending = list(kernel.body)
    while pending:
        stmt = pending.pop()
        if isinstance(stmt, For) and not _is_in_order(stmt):
            pending += stmt.body
        elif isinstance(stmt, Store) and counts[stmt.tensor] == 1 and _holds_numbers(stmt, kernel):
            yield stmt.tensor


def _holds_numbers(stmt: Store, kernel: Kernel) -> bool:
    """Does it store integers to a temporary of more than a cell?"""
    tensor = stmt.tensor
    is_array = tensor in kernel.placement and tensor.rank > 0
    return is_array and tensor.dtype is I64 and stmt.accum is None


def _body(body: tuple[Stmt, ...], facts: Facts) -> tuple[Stmt, ...]:
    """A body without such exceptions; the facts become those after it."""
    return kept(body, [new for stmt in body for new in follow(stmt, facts)])


def follow(stmt: Stmt, facts: Facts) -> Iterable[Stmt]:
    """A statement without what is certain; the facts become those after it."""
    match stmt:
        case Raise(condition=condition):
            test = facts.test(condition)
            outcome = facts.outcome(test)
            facts.assume(test.no)
            return () if outcome is False else (_rewritten(stmt, facts),)
        case For() | While():
            loop = _looped(stmt, facts)
            return (loop,) if loop.body or isinstance(loop, While) else ()
        case If():
            return (_branched(stmt, facts),)
        case Update(value=value, accum=accum) if accum in NEUTRAL and (
            facts.outcome(facts.test(value)) is NEUTRAL[accum]
        ):
            return ()
        case _:
            new = _rewritten(stmt, facts)
            _note(stmt, facts)
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
        case Store(tensor=tensor, value=value) if tensor in facts.held:
            number = facts.number(value)
            facts.held[tensor] = ALL if number is None else facts.range(number)
        case Bind(symbol=symbol, value=value):
            facts.bind(symbol, value)
        case _:
            pass


def _rewritten(stmt: Stmt, facts: Facts) -> Stmt:
    """A statement whose choices are made, if they are certain."""

    def rule(node: Expr) -> Expr:
        match node:
            case Apply(op=op, args=(left, right), dtype=dtype) if op in UPWARDS and dtype is I64:
                return _within_a_period(node, facts) or (
                    _without_sign(node) if _is_plain(left, right, facts) else node
                )
            case Apply(op=op, args=(condition, then, otherwise)) if op is WHERE and node.dtype is I64:
                return facts.settled(facts.test(condition), then, otherwise) or node
            case Apply(op=op, args=(left, right), dtype=dtype) if op in EXTREMES and dtype is I64:
                is_first = facts.test(Apply(EXTREMES[op], (left, right), BOOL))
                outcome = facts.outcome(is_first)
                return node if outcome is None else left if outcome else right
            case _:
                return node

    return rewrite_expressions(stmt, lambda expr: transform(expr, rule))


def _is_plain(left: Expr, right: Expr, facts: Facts) -> bool:
    """Is neither of two numbers that are divided negative, nor the second one zero, nor a power of two, by
    which it is quicker to divide downwards?"""
    if isinstance(right, Const) and int(right.value).bit_count() == 1:
        return False
    one, other = facts.number(left), facts.number(right)
    if one is None or other is None:
        return False
    return facts.range(one)[0] >= 0 and facts.range(other)[0] > 0


def _within_a_period(node: Apply, facts: Facts) -> Expr | None:
    """A remainder of what lies less than a period beyond the divisor or below zero, as steps around a ring
    do; None of any other, and where the divisor is a power of two, of which bits are the remainder."""
    left, right = node.args
    one, other = facts.number(left), facts.number(right)
    if node.op is not OPS["remainder"] or one is None or other is None or facts.range(other)[0] <= 0:
        return None
    if isinstance(right, Const) and int(right.value).bit_count() == 1:
        return None
    is_below = facts.range(one - other)[1] < 0
    if facts.range(one)[0] >= 0:
        if is_below:
            return left
        around, turn = compare("greater_equal", left, right), OPS["subtract"]
        is_near = facts.range(one - other * 2)[1] < 0
    else:
        around, turn = compare("less", left, Const(0, I64)), OPS["add"]
        is_near = is_below and facts.range(one + other)[0] >= 0
    return one_of(around, Apply(turn, (left, right), I64), left) if is_near else None


def _without_sign(node: Apply) -> Expr:
    """A division of numbers that are not negative."""
    args = (Const(arg.value, U64) if isinstance(arg, Const) else Cast(arg, U64) for arg in node.args)
    return Cast(Apply(UPWARDS[node.op], tuple(args), U64), I64)


def _branched(stmt: If, facts: Facts) -> If:
    other, test = facts.copy(), facts.test(stmt.condition)
    facts.assume(test.yes)
    other.assume(test.no)
    body, orelse = _body(stmt.body, facts), _body(stmt.orelse, other)
    facts.join(other, _changed((stmt,), facts), test)
    return stmt if body is stmt.body and orelse is stmt.orelse else replace(stmt, body=body, orelse=orelse)


def _looped(loop: For | While, facts: Facts) -> For | While:
    """A loop, in each iteration of which the locals that it changes have any value of theirs."""
    found = _ranges(loop, facts)
    body = found.body
    if body is None:
        there = facts.copy()
        there.move(found.starts, found.steps, found.trips - 1)
        body = _iterate(loop, there)
    if isinstance(loop, For):
        facts.move(found.ends, found.steps, found.trips)
        return loop if body is loop.body else replace(loop, body=body)
    facts.move(found.starts, found.steps, found.trips - 1)
    test = _body(loop.test, facts)
    facts.assume(facts.test(loop.condition).no)
    return loop if test is loop.test and body is loop.body else replace(loop, test=test, body=body)


Ranges = Mapping[Variable, Range]


@frozen
class _Found:
    """The values that locals have at the start of any iteration of a loop, and after the last; how far each
    of so many `trips` moves some; its body over those values, if that was walked through."""

    starts: Ranges
    ends: Ranges
    steps: Mapping[Variable, Way]
    trips: int
    body: tuple[Stmt, ...] | None


def _ranges(loop: For | While, facts: Facts) -> _Found:
    """What a loop does to locals, found by going through iterations from wider and wider ranges; at first
    from those that were found last, in an earlier iteration of a loop around, so that depths add up."""
    changed = _changed((loop,), facts)
    trips = _most_trips(loop, facts) if isinstance(loop, For) else _lifetime(loop, facts)
    altogether = _altogether(loop, trips)
    before = {variable: facts.range_of(variable) for variable in changed}
    known, steps = _known(loop, facts, before, trips)
    for number in range(ROUNDS if _is_in_order(loop) else 0):
        there = facts.copy()
        there.move(known, steps, trips - 1)
        origins = {variable: there.local(variable) for variable in changed if variable.dtype is I64}
        old = frozenset(there.ranges)
        body = _iterate(loop, there)
        new = there.ranges.keys() - old
        after = {variable: hull(before[variable], there.range_of(variable)) for variable in changed}
        moved = {
            variable: _step(there.local(variable) - origin, origin, altogether, there, new)
            for variable, origin in origins.items()
        }
        steady = {at for at, way in moved.items() if way is not None and way.within(steps.get(at), trips)}
        wider = [
            variable
            for variable in changed
            if hull(known[variable], after[variable]) != known[variable] and variable not in steady
        ]
        if not wider:
            starts = {**after, **{at: _meet(after[at], known[at]) for at in steps}}
            is_walked = starts == known and steady.issuperset(steps)
            # Of a local that an iteration may move further by now, only the range still holds.
            steps = {at: step for at, step in steps.items() if at in steady}
            facts.loops[id(loop)] = Moves(starts, steps)
            ends = {at: _moved(before[at], step.over(trips)) for at, step in steps.items()}
            return _Found(starts, {**after, **ends}, steps, trips, body if is_walked else None)
        for variable in wider:
            step = moved[variable] if number and variable not in steps else None
            if step is None or not trips:
                steps.pop(variable, None)
                known[variable] = _wider(known[variable], after[variable], number)
            else:
                steps[variable] = step.or_nothing()
                known[variable] = _moved(before[variable], steps[variable].over(trips - 1))
    any_value = dict.fromkeys(changed, ALL)
    facts.loops[id(loop)] = Moves(any_value, {})
    return _Found(any_value, any_value, {}, trips, None)


def _known(
    loop: For | While, facts: Facts, before: Ranges, trips: int
) -> tuple[dict[Variable, Range], dict[Variable, Way]]:
    """The values to begin with, and the steps."""
    last = facts.loops.get(id(loop))
    if last is None:
        return dict(before), {}
    steps = dict(last.steps) if trips else {}
    known = {variable: hull(start, last.starts[variable]) for variable, start in before.items()}
    known.update(
        (variable, _moved(before[variable], step.over(trips - 1))) for variable, step in steps.items()
    )
    return known, steps


def _most_trips(loop: For, facts: Facts) -> int:
    """How often a loop runs at most."""
    lo, hi = (end.substitute(facts.numbers) for end in (loop.lo, loop.hi))
    span = facts.range(hi - lo)[1 if loop.step > 0 else 0]
    return max(0, -(-span // loop.step))


def _most_run(loop: For, facts: Facts) -> int:
    """How often its body may run before the time of a run is over, where each of them takes time."""
    trips = _most_trips(loop, facts)
    takes_time = trips > LIFETIME and any(
        isinstance(stmt, While) and _lifetime(stmt, facts) for stmt in loop.body
    )
    return LIFETIME if takes_time else max(1, trips)


def _lifetime(loop: While, facts: Facts) -> int:
    """How many iterations a run can take; 0 where they may be skipped, since the loop ends by what each of
    them adds to."""
    tested = {stmt.variable: stmt.value for stmt in loop.test if isinstance(stmt, Define)}
    if _is_tried(loop.condition, tested, _changed((loop,), facts)):
        return LIFETIME
    inside = list(walk_statements(loop.body))
    made = {stmt.variable: stmt.value for stmt in inside if isinstance(stmt, Define)}
    asked = {*locals_read(loop.test), *variables(loop.condition)}
    read = chain(loads(loop.condition), *map(reads, walk_statements(loop.test)))
    asked |= {facts.cells[tensor] for tensor, _ in read if tensor in facts.cells}
    values = [stmt.value for stmt in inside if isinstance(stmt, Update) and stmt.variable in asked]
    values += [
        stmt.value for stmt in inside if isinstance(stmt, Store) and facts.cells.get(stmt.tensor) in asked
    ]
    return LIFETIME if any(_is_computed(value, made) for value in values) else 0


def _is_tried(condition: Expr, made: Mapping[Variable, Expr], changed: Collection[Variable]) -> bool:
    """Does a loop go on by what only each of its iterations tells: by a remainder, or a product of numbers
    that change?"""
    match condition:
        case Local(variable=variable):
            return variable in made and _is_tried(made[variable], made, changed)
        case Apply(op=op, args=args, dtype=dtype) if dtype is BOOL and op not in ORS:
            return any(_is_tried(arg, made, changed) for arg in args)
        case Apply(op=op, args=args) if op in TRIED:
            changing = [not changed_by.isdisjoint(changed) for changed_by in map(set, map(variables, args))]
            return all(changing) if op is MULTIPLY else any(changing)
        case _:
            return False


def _is_computed(value: Expr, made: Mapping[Variable, Expr]) -> bool:
    """Is a number found by what has no inverse, so that nobody knows it before?"""
    match value:
        case Local(variable=variable):
            return variable in made and _is_computed(made[variable], made)
        case Cast(arg=arg):
            return _is_computed(arg, made)
        case Apply(op=op, args=(_, then, otherwise)) if op is WHERE:
            return _is_computed(then, made) or _is_computed(otherwise, made)
        case Apply(op=op, dtype=dtype):
            return dtype.kind is Kind.FLOAT or (op in COMPUTED and dtype is not BOOL)
        case _:
            return isinstance(value, Gather)


def _altogether(loop: For | While, trips: int) -> int:
    """How many iterations of a loop a run can take, however often it comes to the loop: a compiler may know
    what a `for` loop counts without running it, but for those in which it has to run another one."""
    inside = loop.body if isinstance(loop, For) and trips <= MOST_CELLS else ()
    is_run = isinstance(loop, While) or any(isinstance(stmt, While) for stmt in walk_statements(inside))
    return LIFETIME if is_run else ENDLESS


def _step(way: Affine, start: Affine, altogether: int, facts: Facts, new: Collection[Symbol]) -> Way | None:
    """How far an iteration moves a number; None where that depends on the number. What a loop in it moves it
    by, which is a new symbol, comes together to no more than a run can take."""
    if not set(start.symbols).isdisjoint(way.symbols):
        return None
    low = high = 0
    rest = way
    for factor, symbol in way.terms:
        if symbol in facts.altogether and symbol in new:
            rest -= Affine.of(symbol) * factor
            ends = [factor * end for end in facts.altogether[symbol]]
            low, high = low + min(ends), high + max(ends)
    least, most = facts.range(rest)
    return Way(facts.range(way), (low + least * altogether, high + most * altogether))


def _moved(known: Range, way: Range) -> Range:
    """The range of what is so much further on."""
    return max(ALL[0], known[0] + way[0]), min(ALL[1], known[1] + way[1])


def _meet(one: Range, other: Range) -> Range:
    """What lies in both, which have numbers in common."""
    return max(one[0], other[0]), min(one[1], other[1])


def _is_in_order(loop: For | While) -> bool:
    return isinstance(loop, While) or loop.kind is LoopKind.SEQUENTIAL


def _iterate(loop: For | While, facts: Facts) -> tuple[Stmt, ...]:
    """The facts become those after an iteration; its body over them."""
    if isinstance(loop, For):
        facts.enter(loop, _most_run(loop, facts))
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
