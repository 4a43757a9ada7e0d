"""wrap: an index that goes round an axis once at most is compared with its end instead of divided by it.

    for i in sequential(0, 50):                         for i in sequential(0, 50):
        n = remainder(index(i + 1), index(50))  ->          n = where(less(index(i + 1), 50), index(i + 1),
        y[i] = x[n]                                                   index(i - 49))
                                                            y[i] = x[n]

Neighbours on a ring, `(i + 1) % n` and `(i - 1) % n`, are what this is for: a division takes some twenty
instructions, with those that give the remainder the sign of the divisor. The range of the index follows from
the loops around; where it is wider than two laps, the division stays.

That an index counts from one end of the axis or the other is tested at once, as a number without a sign:

    raise_(not (n + 50 >= 0), ...)              raise_(u64(n + 50) > 99, ...)
    raise_(not (49 - n >= 0), ...)      ->      y[i] = x[where(n < 0, n + 50, n)]
    y[i] = x[where(n < 0, n + 50, n)]
"""

from __future__ import annotations

from dataclasses import replace

from ...ir.code import Caps
from ...ir.conditions import compare, one_of
from ...ir.dtype import I64
from ...ir.expr import Apply, Const, Expr, Index
from ...ir.index import Affine, Symbol
from ...ir.loops import For, Kernel, Raise, Stmt
from ...ir.ops import OPS, Op
from ...ir.walk import kept, rewrite_bodies, rewrite_expressions, transform
from ..analysis.access import Range, Ranges
from ..analysis.positions import outside, tested
from ..analysis.trips import enter

__all__ = ["wrap"]

REMAINDER, LAPS = OPS["remainder"], OPS["floor_divide"]
ZERO = Affine.of(0)


def wrap(kernel: Kernel, caps: Caps) -> Kernel:
    """Every such remainder or quotient of an index a choice."""
    ranges: dict[Symbol, Range] = {}

    def visit(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        return kept(body, [statement(stmt) for stmt in _tested_once(body)])

    def statement(stmt: Stmt) -> Stmt:
        if isinstance(stmt, For):
            enter(stmt, ranges)
        stmt = rewrite_expressions(stmt, lambda expr: transform(expr, lambda node: _wrapped(node, ranges)))
        return rewrite_bodies(stmt, visit)

    return kernel.with_body(visit(kernel.body))


def _wrapped(node: Expr, ranges: Ranges) -> Expr:
    match node:
        case Apply(op=op, args=(Index(value=value), divisor)) if op in (REMAINDER, LAPS):
            length = _length(divisor, ranges)
            return node if length is None else _in_laps(op, value, length, ranges) or node
        case _:
            return node


def _length(divisor: Expr, ranges: Ranges) -> Affine | None:
    """What an index is divided by, if that is one as well, and positive."""
    match divisor:
        case Index(value=length):
            known = length.bounds(ranges)
        case Const(value=int(number)) if divisor.dtype is I64:
            length, known = Affine.of(number), (number, number)
        case _:
            return None
    return length if known is not None and known[0] > 0 else None


def _in_laps(op: Op, value: Affine, length: Affine, ranges: Ranges) -> Expr | None:
    """The remainder or the quotient, if the index is not before the last lap, nor after the next."""

    def below(one: Affine, other: Affine) -> bool:
        gap = (one - other).bounds(ranges)
        return gap is not None and gap[1] < 0

    def in_lap(lap: int) -> Index:
        return Index(value - length * lap if op is REMAINDER else Affine.of(lap))

    def either(end: Affine, lap: int) -> Expr:
        """This lap before `end`, the one after it from there on."""
        is_before = compare("less", Index(value), Index(end))
        return one_of(is_before, in_lap(lap), in_lap(lap + 1))

    if not (below(length * -1 - 1, value) and below(value, length * 2)):
        return None
    if below(Affine.of(-1), value):
        return in_lap(0) if below(value, length) else either(length, 0)
    return either(ZERO, -1) if below(value, length) else None


def _tested_once(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """A body where the exceptions for a number below a range and for one above it are raised on one
    condition."""
    out: list[Stmt] = []
    for stmt in body:
        before = out[-1] if out else None
        outside = _outside(before, stmt) if isinstance(before, Raise) and isinstance(stmt, Raise) else None
        if outside is None:
            out.append(stmt)
        else:
            out[-1] = outside
    return kept(body, out)


def _outside(first: Raise, second: Raise) -> Raise | None:
    """Both in one, if they are alike and the numbers that must not be negative have a known sum: the first is
    larger than that, as a number without a sign, where either of them is negative."""
    one, other = tested(first.condition), tested(second.condition)
    are_alike = (first.exception, first.message) == (second.exception, second.message)
    if one is None or other is None or not are_alike or not (one + other).is_constant:
        return None
    most = (one + other).constant
    return replace(first, condition=outside(one, most)) if most >= 0 else None
