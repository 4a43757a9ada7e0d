"""Questions about numbers that only a call knows: ranges answer them, or earlier runs of the trace decided to
compile the answer in, or it is compiled in from now on, for which the trace starts again."""

from __future__ import annotations

from ...ir.dtype import I64
from ...ir.expr import Apply, Const, Index
from ...ir.index import Affine
from ...ir.ops import op
from .facts import Argument, Fact
from .retrace import Reason, Retrace, positive, remainder
from .trace import Trace, user_location

__all__ = [
    "is_positive",
    "know_bools",
    "not_negative",
    "one_if_positive",
    "quotient",
    "require_decided",
    "rest",
]


def know_bools(trace: Trace, what: str) -> None:
    """Raise Retrace where arguments are Python's bools that are not compiled in yet: nothing that stands for
    True is True."""
    reason = Reason(what, user_location())
    bools = (Argument(n) for n, leaf in enumerate(trace.leaves) if type(leaf) is bool)
    bake: dict[Fact, Reason] = {fact: reason for fact in bools if fact not in trace.decisions.baked}
    if bake:
        trace.wanted = Retrace(bake=bake)
        raise trace.wanted


def is_positive(value: Affine, trace: Trace) -> bool | None:
    """Whether the value is more than 0, as far as ranges tell or earlier runs decided to compile in."""
    answer = _is_positive(value, trace)
    if answer is None and (parts := _parts(value, trace)) != [value]:
        answers = [is_positive(part, trace) for part in parts]
        return False if False in answers else True if None not in answers else None
    return answer


def _is_positive(value: Affine, trace: Trace) -> bool | None:
    value = _span(value, trace)
    if value.is_constant:
        return value.offset > 0
    least, most = trace.limits.least(value), trace.limits.most(value)
    if least is not None and least > 0:
        return True
    if most is not None and most <= 0:
        return False
    greatest = trace.limits.greatest(value)
    fact = positive(trace, greatest)
    if fact is None or fact not in trace.decisions.baked:
        return None
    is_ever = fact.read(trace.leaves)
    return is_ever if greatest == value or not is_ever else None


def _parts(value: Affine, trace: Trace) -> list[Affine]:
    """The least of these is the value: 7 - n and 3 of `minimum(7 - n, 3)` and of `7 - maximum(n, 4)`."""
    for symbol in value.symbols:
        coefficient = value.coefficient(symbol)
        match trace.origin(symbol):
            case Apply(op=chosen, args=(Index(value=one), Index(value=other))) if chosen is op(
                "minimum" if coefficient > 0 else "maximum"
            ):
                return [value + (end - symbol) * coefficient for end in (one, other)]
            case _:
                pass
    return [value]


def _span(value: Affine, trace: Trace) -> Affine:
    """A number of the same sign, of which arguments tell more: of steps, how far they lead."""
    for count, (span, step) in trace.spans.items():
        fewer = value - count
        if fewer.is_constant and fewer.offset <= 0:
            return span + fewer.offset * step
    return value


def require_decided(value: Affine, trace: Trace, what: str) -> None:
    """Raise Retrace where arguments tell whether the value is more than 0: it is then compiled in."""
    fact = positive(trace, _span(value, trace))
    if fact is not None and fact not in trace.decisions.baked:
        raise Retrace(bake={fact: Reason(what, user_location())})
    if fact is None and (parts := _parts(value, trace)) != [value]:
        for part in parts:
            require_decided(part, trace, what)


def rest(value: Affine, period: int, trace: Trace, what: str) -> int | None:
    """What is left of the value, if it is not negative, after division by `period`. It is compiled in where
    arguments tell; None where nothing does."""
    if value.is_constant:
        return max(value.offset, 0) % period
    if all(factor % period == 0 for factor in (value.offset, *(factor for factor, _ in value.terms))):
        return 0
    fact = remainder(trace, value, period)
    if fact is None:
        return None
    if fact not in trace.decisions.baked:
        raise Retrace(bake={fact: Reason(what, user_location())})
    return fact.read(trace.leaves)


def not_negative(value: Affine, trace: Trace) -> Affine:
    """The value, or 0 where it is less."""
    bounds = trace.limits.between(value)
    if bounds is not None and bounds[0] >= 0:
        return value
    clamped = Apply(op("maximum"), (Index(value), Const(0, I64)), I64)
    return trace.bind(clamped, 0, bounds and max(bounds[1], 0) + 1)


def one_if_positive(value: Affine, trace: Trace) -> Affine:
    """1 where the value is more than 0, else 0."""
    if is_positive(value, trace):
        return Affine.of(1)
    least = Apply(op("minimum"), (Index(not_negative(value, trace)), Const(1, I64)), I64)
    return trace.bind(least, 0, 2)


def quotient(value: Affine, divisor: int, trace: Trace) -> Affine:
    """A value that is not negative, divided and rounded down."""
    if value.is_constant:
        return Affine.of(value.offset // divisor)
    most = trace.limits.most(value)
    divided = Apply(op("floor_divide"), (Index(value), Const(divisor, I64)), I64)
    return trace.bind(divided, 0, None if most is None else most // divisor + 1)
