"""broaden: steps that wait for one another are taken by several registers of lanes at a time.

    for i in vector(0, 32000, lanes=8):             for i in vector(0, 32000, lanes=32):
        x = x0[i]                                       x = x0[i]
        for k in sequential(0, 100):         ->         for k in sequential(0, 100):
            x = multiply(x, subtract(1.0, x))               x = multiply(x, subtract(1.0, x))
        y[i] = x                                        y[i] = x

A step starts when the one before it has ended, and the steps of the next vector are too far ahead to be seen
by the processor: it waits most of the time. Other lanes need not wait, as far as there are registers for what
they keep. The number of lanes means nothing, since nothing is added up across them. Escape times take 0.4 to
0.5 of the time, though lanes then wait for more others to end.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ...ir.code import Caps
from ...ir.dtype import BOOL
from ...ir.expr import Apply, Expr, Gather, Load, Local, Variable
from ...ir.index import Symbol
from ...ir.loops import Comment, Define, For, LoopKind, Stay, Stmt, Update, walk_statements
from ...ir.ops import Op, is_of_library
from ...ir.walk import bottom_up, locals_read, locals_updated, nodes_in, outer_updates
from ..analysis.access import Range
from ..analysis.latency import USUAL, busy, ready
from ..analysis.loopwise import Site, loopwise
from ..analysis.trips import about

__all__ = ["CROWDED", "broaden", "is_seen", "kept_values", "waits", "works"]

MOST = 4
"""So many times as many lanes."""

GAIN = 1.0
"""So much faster steps must become each time that lanes are doubled."""

SEEN = 256
"""Operations of steps that a processor has in sight: the next vector's go beside shorter ones."""

ROUNDS = 8
"""After so many steps each waits as long as all that follow."""

WHOLE = 10
"""After so many cycles a product of whole numbers is there."""

ACCUMULATED = 4
"""After so many cycles a sum has its next term."""

CROWDED = 1.5
"""So many times as many values as there are registers may be kept: of those that wait some are in memory."""

FEWEST = 4
"""So many vectors there must be."""


@loopwise
def broaden(loop: For, site: Site) -> Sequence[Stmt] | None:
    """Every such loop with more lanes."""
    lanes = _lanes(loop, site.ranges, site.caps) if _may_be_wider(loop) else loop.lanes
    if lanes == loop.lanes:
        return None
    site.notes.append(
        f"broaden: loop {loop.symbol.hint} has {lanes} lanes, since its steps wait for one another"
    )
    return (replace(loop, lanes=lanes),)


def _may_be_wider(loop: For) -> bool:
    """Does the number of lanes mean nothing, and is nothing done lane by lane?"""
    if loop.kind is not LoopKind.VECTOR or loop.cuts or loop.aligned is not None:
        return False
    inside = list(walk_statements(loop.body))
    nodes = nodes_in(inside)
    return not outer_updates(inside) and not any(
        isinstance(node, Gather) or (isinstance(node, Apply) and is_of_library(node.op)) for node in nodes
    )


def _lanes(loop: For, ranges: Mapping[Symbol, Range], caps: Caps) -> int:
    """With how many lanes the steps inside go fastest."""
    inner = list(_innermost(loop.body))
    if not inner or not all(_is_of_steps(steps, ranges) for steps in inner):
        return loop.lanes
    lanes, widest = loop.lanes, max(map(_widest, inner))
    while 2 * lanes <= MOST * loop.lanes and (loop.trips is None or loop.trips >= 2 * FEWEST * lanes):
        registers = max(1, lanes * widest // caps.vector_bytes)
        if any(waits(steps) < GAIN * registers * works(steps) for steps in inner):
            break
        if any(2 * registers * kept_values(steps) > CROWDED * caps.registers for steps in inner):
            break
        lanes *= 2
    return lanes


def _innermost(body: tuple[Stmt, ...]) -> Iterator[For]:
    """The loops without loops in them."""
    loops = [stmt for stmt in walk_statements(body) if isinstance(stmt, For)]
    return (loop for loop in loops if not any(isinstance(stmt, For) for stmt in walk_statements(loop.body)))


def _is_of_steps(loop: For, ranges: Mapping[Symbol, Range]) -> bool:
    """Is it a loop in order, of locals alone, of which the processor does not see the end?"""
    if loop.kind is not LoopKind.SEQUENTIAL:
        return False
    if not all(isinstance(stmt, (Comment, Define, Update, Stay)) for stmt in loop.body):
        return False
    return not is_seen(loop, ranges)


def is_seen(steps: For, ranges: Mapping[Symbol, Range]) -> bool:
    """Does the processor see the end of steps when they begin?"""
    trips = about(steps, ranges)
    return trips is not None and trips * len(list(_operations(steps))) <= SEEN


def _operations(steps: For) -> Iterator[Expr]:
    return (node for node in nodes_in(steps.body) if isinstance(node, (Apply, Load)))


def _widest(steps: For) -> int:
    """The bytes of the widest value of a lane."""
    made = (stmt.variable for stmt in steps.body if isinstance(stmt, (Define, Update)))
    return max((variable.dtype.itemsize for variable in made), default=1)


def works(steps: For) -> float:
    """For how many cycles a step of one register keeps the units busy."""
    return max(sum(map(busy, _operations(steps))), len(list(_operations(steps))) / USUAL.at_once)


def waits(steps: For) -> float:
    """How many cycles pass from one step to the next, if all that is to be done is waiting. What is read is
    there before."""
    carried = locals_updated(steps.body)
    times: dict[Variable, int] = dict.fromkeys(carried, 0)

    def there(node: Expr, operands: tuple[int, ...]) -> int:
        match node:
            case Local(variable=variable):
                return times.get(variable, 0)
            case Load():
                return 0
            case Apply(op=Op(name="multiply"), dtype=dtype) if not dtype.is_float:
                return max(operands) + WHOLE
            case _:
                return ready(node, operands)

    ends = [0]
    for _ in range(ROUNDS):
        for stmt in steps.body:
            if isinstance(stmt, (Define, Update)):
                time = bottom_up(stmt.value, there)
                if isinstance(stmt, Update) and stmt.accum is not None:
                    time = max(time, times[stmt.variable]) + ACCUMULATED
                times[stmt.variable] = time
        ends.append(max((times[variable] for variable in carried), default=0))
    return (ends[-1] - ends[ROUNDS // 2]) / (ROUNDS - ROUNDS // 2)


def kept_values(steps: For) -> int:
    """The most values of lanes that a step has at a time."""
    uses: dict[Variable, int] = {}
    for at, stmt in enumerate(steps.body):
        uses |= dict.fromkeys(locals_read((stmt,)), at)
    made = {stmt.variable: at for at, stmt in enumerate(steps.body) if isinstance(stmt, Define)}
    outside = [variable for variable in uses if variable not in made and variable.dtype is not BOOL]
    here = [(at, uses.get(variable, at)) for variable, at in made.items() if variable.dtype is not BOOL]
    return len(outside) + max(
        (sum(at <= now < last for at, last in here) for now in range(len(steps.body))), default=0
    )
