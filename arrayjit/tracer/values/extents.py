"""Arithmetic and questions about extents, some of which are known only when the compiled function runs.

An extent is an affine expression; the ranges of its symbols decide most questions while tracing. What they
leave open becomes a check, or a number bound to a symbol of its own.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain

from ...errors import ConcretizationError
from ...ir.conditions import compare
from ...ir.dtype import I64
from ...ir.expr import Apply, Const, Expr, Index
from ...ir.index import Affine, Symbol, symbols_of
from ...ir.ops import op
from ..record.trace import current_trace
from .integer import number

__all__ = [
    "ONE",
    "ZERO",
    "agree",
    "as_expr",
    "divided",
    "greater",
    "is_at_least",
    "is_repeatable",
    "known_number",
    "least",
    "lesser",
    "most",
    "numbers",
    "product",
    "remainder",
    "require_at_least",
    "same_shape",
    "shape_text",
    "shape_texts",
    "steps_between",
]

ZERO, ONE = Affine.of(0), Affine.of(1)
_NOT_REPEATED = " (an extent of 1 is repeated only if it is known while tracing)"


def least(value: Affine) -> int | None:
    """The smallest value that is known to be possible; None when there is no bound."""
    return value.offset if value.is_constant else current_trace().limits.least(value)


def most(value: Affine) -> int | None:
    """The largest value that is known to be possible; None when there is no bound."""
    return value.offset if value.is_constant else current_trace().limits.most(value)


def is_at_least(value: Affine, low: int) -> bool:
    """Whether the value certainly is `low` or more."""
    known = least(value)
    return known is not None and known >= low


def agree(first: Affine, second: Affine, words: str, exception: str = "ValueError") -> bool:
    """Whether two extents are equal. False where they certainly differ; where the ranges leave it open,
    True, and the compiled function raises the exception with these words if they differ."""
    if first == second:
        return True
    if is_at_least(first - second, 1) or is_at_least(second - first, 1):
        return False
    _check_equal(first, second, words, exception)
    return True


def _check_equal(first: Affine, second: Affine, words: str, exception: str) -> None:
    equal = compare("equal", as_expr(first), as_expr(second))
    current_trace().check((), lambda _: equal, exception, words)


def is_repeatable(extent: Affine, room: Affine, words: str) -> bool:
    """Whether an extent may be repeated to another: it is 1, or equal as `agree` answers. NumPy would repeat
    one that is 1 only when the compiled function runs; that raises ValueError and says so."""
    if extent in (ONE, room):
        return True
    if extent.is_constant or is_at_least(extent, 2) or is_at_least(-extent, 0):
        return agree(extent, room, words)
    _check_equal(extent, room, words + _NOT_REPEATED, "ValueError")
    return True


def same_shape(first: Sequence[Affine], second: Sequence[Affine], words: str) -> bool:
    """Whether two shapes are equal, as `agree` answers for extents."""
    pairs = zip(first, second, strict=False)
    return len(first) == len(second) and all(agree(one, other, words) for one, other in pairs)


def require_at_least(value: Affine, low: int, exception: str, words: str) -> bool:
    """Whether the value may be `low` or more; where it may also be less, the compiled function raises."""
    if is_at_least(value, low):
        return True
    if is_at_least(-value, 1 - low):
        return False
    enough = compare("greater_equal", as_expr(value), Const(low, I64))
    current_trace().check((), lambda _: enough, exception, words)
    return True


def lesser(one: Affine, other: Affine) -> Affine:
    """The smaller of two numbers."""
    if is_at_least(other - one, 0):
        return one
    if is_at_least(one - other, 0):
        return other
    low = _of_both(min, least(one), least(other))
    return _bound("minimum", one, other, low, _of_known(min, most(one), most(other)))


def greater(one: Affine, other: Affine) -> Affine:
    """The larger of two numbers."""
    if is_at_least(one - other, 0):
        return one
    if is_at_least(other - one, 0):
        return other
    high = _of_both(max, most(one), most(other))
    return _bound("maximum", one, other, _of_known(max, least(one), least(other)), high)


def divided(value: Affine, divisor: int) -> Affine:
    """The quotient by a positive number, rounded down."""
    if all(coefficient % divisor == 0 for coefficient, _ in value.terms):
        return Affine(tuple((c // divisor, s) for c, s in value.terms), value.offset // divisor)
    low, high = (None if end is None else end // divisor for end in (least(value), most(value)))
    quotient = _bound("floor_divide", value, Affine.of(divisor), low, high)
    current_trace().limits.note_quotient(quotient, value, divisor)
    return quotient


def steps_between(low: Affine, high: Affine, step: Affine) -> Affine:
    """How many steps of a positive number lead from one to below the other."""
    if step.is_constant:
        return greater(divided(high - low + step.offset - 1, step.offset), ZERO)
    rounded = Apply(op("floor_divide"), (as_expr(high - low + step - 1), as_expr(step)), I64)
    longest = most(greater(high - low, ZERO))
    room = None if longest is None else longest + 1
    return current_trace().bind(Apply(op("maximum"), (rounded, Const(0, I64)), I64), 0, room)


def remainder(value: Affine, divisor: Affine) -> Affine:
    """The remainder of the division by an extent, from 0 on; 0 for an extent of 0."""
    if value.is_constant and divisor.is_constant:
        return Affine.of(value.offset % divisor.offset if divisor.offset else 0)
    if is_at_least(value, 0) and is_at_least(divisor - value, 1):
        return value
    high = most(divisor)
    return _bound("remainder", value, divisor, 0, None if high is None else max(high - 1, 0))


def product(extents: Iterable[Affine]) -> Affine:
    """The number of cells: affine where one extent at most is symbolic."""
    result = ONE
    for extent in extents:
        if extent.is_constant:
            result = result * extent.offset
        elif result.is_constant:
            result = extent * result.offset
        else:
            high = _of_both(operator.mul, most(result), most(extent))
            result = _bound("multiply", result, extent, 0, high)
    return result


def numbers(extents: Sequence[Affine], purpose: str) -> tuple[int, ...]:
    """The extents as numbers, where nothing else will do."""
    trace = current_trace()
    return tuple(number(extent, trace, purpose) for extent in extents)


def known_number(value: Affine, purpose: str) -> int | None:
    """The number, compiled in if arguments tell it; None if only the run knows it."""
    try:
        return number(value, current_trace(), purpose)
    except ConcretizationError:
        return None


def shape_text(shape: Sequence[Affine]) -> str:
    """A shape as NumPy writes it in messages."""
    return "(" + ",".join(str(extent) for extent in shape) + ("," if len(shape) == 1 else "") + ")"


def shape_texts(*shapes: Sequence[Affine]) -> Iterator[str]:
    """Shapes of one message, in which different numbers have different names."""
    names: dict[str, dict[Symbol, Affine]] = {}
    for symbol in symbols_of(chain(*shapes)):
        alike = names.setdefault(symbol.hint, {})
        alike.setdefault(symbol, Affine.of(Symbol(f"{symbol.hint}{len(alike)}") if alike else symbol))
    values = {symbol: name for alike in names.values() for symbol, name in alike.items()}
    return (shape_text([extent.substitute(values) for extent in shape]) for shape in shapes)


def as_expr(value: Affine) -> Expr:
    """The number in an expression, as an int64."""
    return Const(value.offset, I64) if value.is_constant else Index(value)


def _of_both(choose: Callable[[int, int], int], one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else choose(one, other)


def _of_known(choose: Callable[[int, int], int], one: int | None, other: int | None) -> int | None:
    if one is None or other is None:
        return one if other is None else other
    return choose(one, other)


def _bound(name: str, one: Affine, other: Affine, low: int | None, high: int | None) -> Affine:
    value = Apply(op(name), (as_expr(one), as_expr(other)), I64)
    return current_trace().bind(value, low, None if high is None else high + 1)
