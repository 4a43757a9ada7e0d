"""halving: bits that are added up in fields, of which each step leaves half as many, are counted at once.

    a = subtract(x, bitwise_and(right_shift(x, 1), 0x55555555))             n = popcount(x)
    b = add(bitwise_and(a, 0x33333333),
            bitwise_and(right_shift(a, 2), 0x33333333))             ->
    c = bitwise_and(add(b, right_shift(b, 4)), 0x0f0f0f0f)
    n = right_shift(multiply(c, 0x01010101), 24)

So bits are counted where there is no instruction for it (Warren, Hacker's Delight, 5-1). After each step a
field holds how many of its bits were set, as an integer's single bits do from the start. Fields of four bits
and more have room for the sum of two; a product with ones forms the sum of all bytes in the highest.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from ...frozen import frozen
from ...ir.dtype import DType
from ...ir.expr import Apply, Const, Expr, Local, Variable, dtype_of
from ...ir.loops import Comment, Define, Stmt, walk_statements
from ...ir.ops import OPS
from ...ir.walk import expressions, kept, rewrite_bodies, rewrite_expressions, transform, walk
from ..analysis.values import written_out

__all__ = ["counted_at_once"]

ADD, AND, MULTIPLY, SUBTRACT = (OPS[name] for name in ("add", "bitwise_and", "multiply", "subtract"))
SHIFT, POPCOUNT = OPS["right_shift"], OPS["popcount"]

ROOM, BYTE = 4, 8
"""Fields of so many bits have room for the sum of two; and of so many for that of all."""

SHORT = 8
"""Nodes of an expression that is looked at in the place of its name."""


@frozen
class _Counts:
    """That each field of so many bits holds how many bits of `base` are set there; of one `half`, 0 the lower
    and 1 the upper, that each field twice as wide holds the count of this half of it."""

    base: Expr
    width: int
    half: int | None = None


Known = Mapping[Variable, _Counts]


def counted_at_once(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """A body in which such sums are counts of bits, if any number in it tells the first halves."""
    values = (expr for stmt in walk_statements(body) for expr in expressions(stmt))
    numbers = (node for value in values for node in walk(value) if isinstance(node, Const))
    halves = any(number.dtype.is_integer and _is_mask(number, 1, 2, number.dtype) for number in numbers)
    return _counted(body) if halves else body


def _counted(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """What other statements than definitions stand between is not put together: they may change what the bits
    are read from."""
    known: dict[Variable, _Counts] = {}
    made: dict[Variable, Expr] = {}
    out: list[Stmt] = []
    for stmt in body:
        at_once = partial(transform, rule=partial(_at_once, known=known, made=made))
        new = rewrite_bodies(rewrite_expressions(stmt, at_once), _counted)
        if isinstance(new, Define):
            value = written_out(new.value, made)
            found = _counts(value, known)
            if found is not None:
                known[new.variable] = found
            elif sum(1 for _ in walk(value)) <= SHORT:
                made[new.variable] = value
        elif not isinstance(new, Comment):
            known.clear()
            made.clear()
        out.append(new)
    return kept(body, out)


def _at_once(value: Expr, known: Known, made: Mapping[Variable, Expr]) -> Expr:
    """The count of all bits in the place of their sum."""
    found = _counts(written_out(value, made), known) if isinstance(value, Apply) else None
    if found is None or found.half is not None or found.width != dtype_of(value).bits:
        return value
    return Apply(POPCOUNT, (found.base,), dtype_of(value))


def _counts(value: Expr, known: Known) -> _Counts | None:
    """The counts that a value holds, in fields of more than one bit."""
    match value:
        case Local(variable=variable):
            return known.get(variable)
        case Apply(op=op, args=(one, other), dtype=dtype) if dtype.is_integer and op in (AND, ADD):
            found = _of_two(value, one, other, known)
            return _of_two(value, other, one, known) if found is None else found
        case Apply(op=op, args=(one, other), dtype=dtype) if dtype.is_integer and op is SUBTRACT:
            return _Counts(one, 2) if _counts(other, known) == _Counts(one, 1, 1) else None
        case Apply(op=op, args=(Apply(op=of, args=(bytes_, Const() as ones)), Const(value=by)), dtype=dtype):
            found = _counts(bytes_, known)
            is_sum = (op, of, by) == (SHIFT, MULTIPLY, dtype.bits - BYTE) and _is_mask(ones, 1, BYTE, dtype)
            is_sum &= found is not None and (found.width, found.half) == (BYTE, None)
            return _Counts(found.base, dtype.bits) if found is not None and is_sum else None
        case _:
            return None


def _of_two(value: Apply, one: Expr, other: Expr, known: Known) -> _Counts | None:
    """Those of a sum of the halves of fields; of one half; and of what has room for the sum of both."""
    if value.op is ADD:
        lower, upper = _counts(one, known), _counts(other, known)
        if lower is None or upper is None or (lower.half, upper.half) != (0, 1):
            return None
        is_whole = (lower.base, lower.width) == (upper.base, upper.width)
        return _Counts(lower.base, 2 * lower.width) if is_whole else None
    if not isinstance(other, Const):
        return None
    fields, half = _fields(one, known), 0
    match one:
        case Apply(op=op, args=(shifted, Const(value=by))) if op is SHIFT:
            wider = _fields(shifted, known)
            fields, half = (wider, 1) if wider.width == by else (fields, half)
        case Apply(op=op, args=(first, Apply(args=(second, Const(value=by))) as after)) if op is ADD:
            wider = _fields(first, known)
            has_room = after.op is SHIFT and first == second and wider.width == by >= ROOM
            if has_room and wider.half is None and _is_mask(other, wider.width, 2 * wider.width, value.dtype):
                return _Counts(wider.base, 2 * wider.width)
        case _:
            pass
    is_masked = fields.half is None and _is_mask(other, fields.width, 2 * fields.width, value.dtype)
    return _Counts(fields.base, fields.width, half) if is_masked else None


def _fields(value: Expr, known: Known) -> _Counts:
    """The counts that a value holds: each bit is its own."""
    return _counts(value, known) or _Counts(value, 1)


def _is_mask(value: Const, ones: int, every: int, dtype: DType) -> bool:
    """Has a number so many ones at the lower end of every field of so many bits?"""
    whole = (1 << dtype.bits) - 1
    return int(value.value) & whole == sum(((1 << ones) - 1) << at for at in range(0, dtype.bits, every))
