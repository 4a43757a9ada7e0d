"""popcount: a loop that takes the bits of an integer one by one, and counts them, counts them at once.

    n: i64 = i64(0)                                 n: i64 = i64(0)
    v: i64 = x[k]                                   v: i64 = x[k]
    while not_equal[bool](v, i64(0)):               ones: i64 = popcount[i64](v)
        t = subtract[i64](v, i64(1))       ->       n = add[i64](n, multiply[i64](ones, i64(1)))
        v = bitwise_and[i64](v, t)                  v = i64(0)
        n = add[i64](n, i64(1))

Such a loop clears the lowest bit that is set, once for each (Wegner, 1960), or shifts the lowest bit out and
adds that. One that shifts bits out and counts steps does one for each place up to the highest bit: all of
these are set first, by shifts of one, two, four and so on places (Warren, Hacker's Delight, 5-3). Processors
count the bits of 64 in an instruction, and vectors those of eight such at once. So they are where bits are
added up by shifts and masks (`halving`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ...frozen import frozen
from ...ir.code import Caps
from ...ir.conditions import one_of
from ...ir.dtype import BOOL, Kind
from ...ir.expr import Apply, Cast, Const, Expr, Local, Variable, constant
from ...ir.loops import Comment, Define, Kernel, Stmt, Update, While, walk_statements
from ...ir.ops import OPS
from ...ir.walk import kept, rewrite_bodies
from ..analysis.values import stays, written_out
from .halving import counted_at_once

__all__ = ["popcount"]

ADD, AND = OPS["add"], OPS["bitwise_and"]
NOT_EQUAL, GREATER, POPCOUNT = OPS["not_equal"], OPS["greater"], OPS["popcount"]


def popcount(kernel: Kernel, caps: Caps) -> Kernel:
    """The kernel without loops that count bits, nor sums of them by halves."""
    body = counted_at_once(kernel.body)
    notes = [] if body is kernel.body else ["popcount: bits that are added up in fields are counted at once"]
    if not any(isinstance(stmt, While) for stmt in walk_statements(body)):
        return kernel.with_body(body, notes)

    def visit(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        return kept(body, [new for stmt in body for new in statement(stmt)])

    def statement(stmt: Stmt) -> tuple[Stmt, ...]:
        counting = _counting(stmt) if isinstance(stmt, While) else None
        if counting is None:
            return (rewrite_bodies(stmt, visit),)
        notes.append(f"popcount: the bits of {counting.bits.hint} are counted at once")
        return tuple(counting.at_once())

    return kernel.with_body(visit(body), notes)


@frozen
class _Counting:
    """A loop that takes bits until there are none, and adds to each of some totals a number for each bit that
    is set, or for each `place` up to the highest one; with `positive`, only if they begin as a positive
    number."""

    bits: Variable
    positive: bool
    place: bool
    totals: Mapping[Variable, Expr]

    def at_once(self) -> Iterator[Stmt]:
        """What is done instead."""
        start: Expr = Local(self.bits)
        zero = constant(0, self.bits.dtype)
        end: Expr = zero
        if self.positive:
            test = Variable("t", BOOL)
            yield Define(test, Apply(GREATER, (start, zero), BOOL))
            start, end = (
                one_of(Local(test), value, other) for value, other in ((start, zero), (zero, start))
            )
        if self.place:
            for power in range((self.bits.dtype.bits - 1).bit_length()):
                below = Apply(
                    OPS["right_shift"], (start, constant(1 << power, self.bits.dtype)), self.bits.dtype
                )
                places = Variable("places", self.bits.dtype)
                yield Define(places, Apply(OPS["bitwise_or"], (start, below), places.dtype))
                start = Local(places)
        ones = Variable("ones", self.bits.dtype)
        yield Define(ones, Apply(POPCOUNT, (start,), ones.dtype))
        for total, each in self.totals.items():
            added = Apply(OPS["multiply"], (Cast(Local(ones), total.dtype), each), total.dtype)
            yield Update(total, Apply(ADD, (Local(total), added), total.dtype))
        yield Update(self.bits, end)


def _counting(loop: While) -> _Counting | None:
    """The loop as one that counts bits."""
    if not all(isinstance(stmt, (Define, Comment)) for stmt in loop.test):
        return None
    test = {stmt.variable: stmt.value for stmt in loop.test if isinstance(stmt, Define)}
    match written_out(loop.condition, test):
        case Apply(op=op, args=(Local(variable=bits), Const(value=0))) if op in (NOT_EQUAL, GREATER):
            after = _after(loop.body, test)
        case _:
            return None
    if after is None or bits not in after or not bits.dtype.is_integer:
        return None
    left = after.pop(bits)
    each, place = None, False
    if _is_cleared(left, bits):
        each = _for_each_bit_set(bits, after)
    elif _is_half(left, bits):
        each = _for_each_bit(bits, after)
        # A negative number is never shifted to zero.
        place = each is None and (op is GREATER or bits.dtype.kind is Kind.UINT)
        each = _for_each_bit_set(bits, after) if place else each
    return None if each is None else _Counting(bits, op is GREATER, place, each)


def _after(body: tuple[Stmt, ...], test: Mapping[Variable, Expr]) -> dict[Variable, Expr] | None:
    """What locals are after an iteration, by what they were before it; None if it does more than compute."""
    values = dict(test)
    changed = []
    for stmt in body:
        match stmt:
            case Define(variable=variable, value=value) | Update(variable=variable, value=value, accum=None):
                values[variable] = written_out(value, values)
            case Update(variable=variable, value=value, accum=op) if op is not None and not stmt.contract:
                values[variable] = written_out(Apply(op, (Local(variable), value), variable.dtype), values)
            case Comment():
                continue
            case _:
                return None
        changed += [variable] if isinstance(stmt, Update) else []
    return {variable: values[variable] for variable in changed}


def _for_each_bit_set(bits: Variable, totals: Mapping[Variable, Expr]) -> dict[Variable, Expr] | None:
    """What each step of a loop that takes bits adds to totals, which is the same in all of them."""
    steps = {total: _added(total, value) for total, value in totals.items()}
    known: dict[Variable, Expr] = {
        total: each for total, each in steps.items() if each is not None and stays(each, (bits, *totals))
    }
    return known if len(known) == len(steps) else None


def _for_each_bit(bits: Variable, totals: Mapping[Variable, Expr]) -> dict[Variable, Expr] | None:
    """The number 1 for each total, if a loop that shifts bits out adds them to all of these."""
    if not all(_is_lowest(_added(total, value), bits) for total, value in totals.items()):
        return None
    return {total: constant(1, total.dtype) for total in totals}


def _added(total: Variable, value: Expr) -> Expr | None:
    """What is added to an integer."""
    match value:
        case Apply(op=op, args=(Local(variable=variable), each)) if op is ADD and variable is total:
            return each if total.dtype.is_integer else None
        case Apply(op=op, args=(each, Local(variable=variable))) if op is ADD and variable is total:
            return each if total.dtype.is_integer else None
        case _:
            return None


def _is_cleared(value: Expr, bits: Variable) -> bool:
    """Is it the bits without the lowest that is set?"""
    match value:
        case Apply(op=op, args=(left, right)) if op is AND and Local(bits) in (left, right):
            return _is_before(right if left == Local(bits) else left, bits)
        case _:
            return False


def _is_before(value: Expr, bits: Variable) -> bool:
    """Is it the integer before?"""
    match value:
        case Apply(op=op, args=(left, Const(value=1))) if op is OPS["subtract"]:
            return left == Local(bits)
        case _:
            return False


def _is_half(value: Expr | None, bits: Variable) -> bool:
    """Is it the bits without the last place?"""
    match value:
        case Apply(op=op, args=(left, Const(value=by))) if left == Local(bits):
            return (op, by) in ((OPS["right_shift"], 1), (OPS["floor_divide"], 2))
        case _:
            return False


def _is_lowest(value: Expr | None, bits: Variable) -> bool:
    """Is it the bit in the last place?"""
    match value:
        case Cast(arg=arg, dtype=dtype) if dtype.is_integer:
            return _is_lowest(arg, bits)
        case Apply(op=op, args=(Local(variable=variable), Const(value=by))) if variable is bits:
            return (op, by) in ((AND, 1), (OPS["remainder"], 2))
        case _:
            return False
