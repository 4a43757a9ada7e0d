"""within: positions that surely lie within an axis are neither looked at nor counted from its end.

    p[i] = minimum(maximum(k[i], 0), 9)   for i in n        p[i] = minimum(maximum(k[i], 0), 9)   for i in n
    check(-10 <= p[i] < 10, ...)   for i in n          ->   q[i] = p[i]   for i in n
    q[i] = where(p[i] < 0, p[i] + 10, p[i])   for i in n

Programs clip positions, take rests of them or a few of their bits, count them, or read them from bytes. What
an array holds lies between two ends if one statement has written all of it, or if its type has no others.
A check has to come out for all positions before anything that follows may be done, and so each is a loop of
its own and what comes before it goes through memory. Without it what is looked up is computed where it is
used: a picture warped by four points takes 0.45 of the time.
"""

from __future__ import annotations

import math
from dataclasses import replace

from ...frozen import slotted
from ...ir.assign import (
    ArrayParam,
    Assign,
    Check,
    Computation,
    Loop,
    Statement,
    assigned,
    rewrite_bodies,
    rewrite_expressions,
    statements,
)
from ...ir.code import Caps
from ...ir.dtype import BOOL, I64, DType
from ...ir.expr import Apply, Const, Expr, Gather, Index, Load, dtype_of
from ...ir.index import Affine, Symbol
from ...ir.ops import OPS
from ...ir.tensor import Tensor
from ...ir.walk import kept, transform
from ..analysis.access import Ranges
from ..analysis.spans import Span, around, comparison, computed, held
from ..analysis.trips import at_points, enter

__all__ = ["within"]

WHERE, NOT = OPS["where"], OPS["logical_not"]
AND, OR = OPS["logical_and"], OPS["logical_or"]
EXTREMES = {OPS["minimum"], OPS["maximum"]}
COMPARISONS = {OPS[name] for name in ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")}


def within(computation: Computation, caps: Caps) -> Computation:
    """The computation without checks and choices that are known to come out one way."""
    if not any(isinstance(statement, Check) for statement in statements(computation.body)):
        return computation
    given = frozenset(param.tensor for param in computation.params if isinstance(param, ArrayParam))
    body = _Known({}, {}, given).body(computation.body)
    return computation if body is computation.body else replace(computation, body=body)


@slotted
class _Known:
    """Between which ends the numbers lie in arrays that have memory of their own, where a walk has come to,
    and the values of symbols; of arrays that are `given` others may be views."""

    spans: dict[Tensor, Span]
    ranges: Ranges
    given: frozenset[Tensor]

    def body(self, body: tuple[Statement, ...]) -> tuple[Statement, ...]:
        return kept(body, [new for statement in body for new in self.statement(statement)])

    def statement(self, statement: Statement) -> tuple[Statement, ...]:
        """A statement, if it is needed; what is known becomes what is so after it."""
        match statement:
            case Check(loops=loops, condition=condition):
                there = self.over(loops)
                return () if there.outcome(condition) is True else (there.chosen(statement),)
            case Assign(loops=loops):
                there = self.over(loops)
                new = there.chosen(statement)
                self.forget((statement,))
                span = there.stored(statement) if self.is_whole(statement) else None
                if span is not None:
                    self.spans[statement.into] = span
                return (new,)
            case _:
                self.forget((statement,))
                return (rewrite_bodies(self.chosen(statement), self.inside(statement).apart),)

    def chosen(self, statement: Statement) -> Statement:
        """A statement whose choices are made, if they are certain."""

        def rule(node: Expr) -> Expr:
            match node:
                case Apply(op=op, args=(condition, then, otherwise)) if op is WHERE:
                    outcome = self.outcome(condition)
                    return node if outcome is None else then if outcome else otherwise
                case _:
                    return node

        return rewrite_expressions(statement, lambda expr: transform(expr, rule))

    # Where a walk is

    def over(self, loops: tuple[tuple[Symbol, Affine], ...]) -> _Known:
        """What is known at a point of these loops."""
        return _Known(self.spans, at_points(loops, self.ranges), self.given)

    def inside(self, statement: Statement) -> _Known:
        """What is known in the bodies of a statement."""
        ranges = dict(self.ranges)
        if isinstance(statement, Loop):
            enter(statement, ranges)
        return _Known(self.spans, ranges, self.given)

    def apart(self, body: tuple[Statement, ...]) -> tuple[Statement, ...]:
        """A body that may not run: what it tells of arrays is known in it alone."""
        return _Known(dict(self.spans), self.ranges, self.given).body(body)

    def forget(self, body: tuple[Statement, ...]) -> None:
        """Nothing is known any more of what statements write."""
        for tensor in assigned(body):
            self.spans.pop(tensor, None)

    def is_whole(self, assign: Assign) -> bool:
        """Does a statement write each cell of an array of the program's own, once, with one of its values?"""
        into, own = assign.into, assign.loops[: assign.into.rank]
        if into in self.given or into.storage is not into:
            return False
        if assign.accum is None:
            own = assign.loops
        elif assign.accum not in EXTREMES or assign.initial is None:
            return False
        return assign.index == assign.point[: len(own)] and tuple(extent for _, extent in own) == into.shape

    # What is known of numbers

    def stored(self, assign: Assign) -> Span | None:
        """Between which ends the cells lie that a statement writes."""
        if dtype_of(assign.value) is BOOL and assign.accum is None:
            outcome = self.outcome(assign.value)
            return None if outcome is None else (outcome, outcome)
        values = [assign.value] if assign.initial is None else [assign.value, assign.initial]
        ends = [self.ends(value) for value in values]
        known = [span for span in ends if span is not None]
        return around(known) if len(known) == len(ends) else None

    def ends(self, expr: Expr) -> Span | None:
        """What a number is at least and at most; None where it may be no finite one."""
        dtype = dtype_of(expr)
        found: Span | None = None
        match expr:
            case Const(value=value):
                return (value, value) if not dtype.is_complex and math.isfinite(value) else None
            case Index(value=value):
                found = value.bounds(self.ranges)
            case Load(tensor=tensor) | Gather(tensor=tensor) if tensor.dtype is tensor.storage.dtype:
                found = self.spans.get(tensor.storage)
            case _:
                found = computed(expr, self.ends)
        return _all(dtype) if found is None else found

    def outcome(self, condition: Expr) -> bool | None:
        """How a condition comes out wherever it is asked, if that is known."""
        match condition:
            case Const(value=value):
                return bool(value)
            case Load(tensor=tensor) | Gather(tensor=tensor):
                span = self.spans.get(tensor)
                return None if span is None or span[0] != span[1] else bool(span[0])
            case Apply(op=op, args=(arg,)) if op is NOT:
                known = self.outcome(arg)
                return None if known is None else not known
            case Apply(op=op, args=(left, right)) if op in (AND, OR):
                found = self.outcome(left), self.outcome(right)
                decisive = op is OR
                return decisive if decisive in found else None if None in found else not decisive
            case Apply(op=op, args=(left, right)) if op in COMPARISONS and dtype_of(left) is not BOOL:
                one, other = self.ends(left), self.ends(right)
                return None if one is None or other is None else comparison(op, one, other)
            case _:
                return None


def _all(dtype: DType) -> Span | None:
    """The integers of a type; None of other types."""
    return (-(2**63), 2**63 - 1) if dtype is I64 else held(dtype)
