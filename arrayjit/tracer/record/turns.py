"""Where conditions on the indices of loops turn, so that loops are recorded in stretches of one answer each;
and rests of indices, of which several iterations in a row have one each.

    for i in range(100):                for i in range(2, 100): ...       turns at 1 and 2
        if i == 1: ...           =>     (after 0 and 1 by themselves)

    for j in range(100):                for k in range(50):
        if j % 2: ...            =>         j = 2 * k; ...
                                            j = 2 * k + 1; ...

The loop whose index decides is the innermost one; where it turns may depend on the indices of those around.
(Index-set splitting: Griebl, Feautrier, Lengauer, International Journal of Parallel Programming 28, 2000.)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import gcd, lcm, prod
from typing import Any, NamedTuple, NoReturn, Protocol

from ...ir.expr import Apply, Cast, Const, Expr, Index, Load
from ...ir.index import Affine, Symbol
from ...ir.tensor import Tensor
from .facts import Argument
from .limits import Limits
from .retrace import Decisions, Origin, Reason, Retrace, Site, Turn, roots

__all__ = ["require_one_answer", "turns_of"]

_FEW = 16
"""Loops of so few iterations are unrolled where a condition needs their index: what they do to arrays is then
done in one way through these."""

_MOST_COPIES = 64
"""So often at most the body of nested loops is written out for that, unless one condition has all indices."""

_MOST_TURNS = 6
_MOST_TOGETHER = 8
_MOST_IN_NEST = 128
"""So many iterations are recorded in a row at most; or this many, in all of nested loops, where the loop may
have more than two such rows: unrolled, its body would be written out more often."""

_SIDES = "this line asks on which side of a number its index lies"
_RESTS = "this line asks for a rest of its index"
_COMPARISONS = {
    "less": (0,),
    "greater_equal": (0,),
    "less_equal": (1,),
    "greater": (1,),
    "equal": (0, 1),
    "not_equal": (0, 1),
}
"""How far behind the other side an index is where a comparison turns."""


class Recorder(Protocol):
    """What records a loop: its statement, the symbol of the recorded loop, whether it may be recorded in
    stretches, and whether it is so few iterations that may be unrolled."""

    site: Site

    @property
    def symbol(self) -> Symbol: ...

    def is_at_most(self, iterations: int) -> bool: ...

    @property
    def may_turn(self) -> bool: ...


class Recording(Protocol):
    """What a Trace knows of the loops that are being recorded: `indices` are those at which they stand,
    `copies` how often those that are unrolled are written out."""

    decisions: Decisions
    recorders: list[Any]
    indices: dict[Site, Affine]
    copies: dict[Site, int]
    limits: Limits
    wanted: Retrace | None

    def origin(self, of: Symbol | Tensor) -> Origin | None: ...


class _Question(NamedTuple):
    """How an index compares: whether `gap` is less than 0, equal to it, and so on."""

    gap: Affine
    comparison: str


def require_one_answer(trace: Recording, condition: Expr, reason: Reason) -> None:
    """Raise Retrace if loops can be recorded such that their indices decide a condition each time."""
    _require_arguments(trace, condition, reason)
    number = _number(trace, condition)
    questions = _questions(trace, condition) if number is None else [_Question(number, "not_equal")]
    for question in questions:
        for symbol in question.gap.symbols:
            _require_one_rest(trace, trace.origin(symbol), reason)
        _require_one_side(trace, question, reason)


def turns_of(trace: Recording, site: Site) -> list[tuple[Affine, int]]:
    """The indices from which on a loop that begins goes on otherwise, those that are known here: numbers with
    what they are to be divided by, rounded down."""
    around = trace.indices
    return [
        (sum((around[outer] * factor for factor, outer in turn.terms), Affine.of(turn.offset)), turn.divisor)
        for turn in trace.decisions.turns.get(site, ())
        if all(outer in around for _, outer in turn.terms)
    ]


def _require_arguments(trace: Recording, condition: Expr, reason: Reason) -> None:
    """Raise Retrace where only indices of loops and arguments decide a condition: these are compiled in."""
    found = set(roots(trace, [condition]))
    arguments = {root for root in found if isinstance(root, Argument)}
    turning = any(recorder.site in found and recorder.may_turn for recorder in trace.recorders)
    if arguments and turning and None not in found:
        _again(trace, Retrace(bake=dict.fromkeys(arguments, reason)))


def _questions(trace: Recording, expr: Expr) -> Iterator[_Question]:
    """The comparisons of indices that an expression depends on, however long a chain makes it."""
    waiting, seen = [expr], set[Tensor]()
    while waiting:
        match waiting.pop():
            case Load(tensor=tensor, index=()) if tensor.storage not in seen:
                seen.add(tensor.storage)
                origin = trace.origin(tensor.storage)
                if origin is not None and not isinstance(origin, (Site, Argument)):
                    waiting.append(origin)
            case Cast(arg=arg):
                waiting.append(arg)
            case Apply(op=op, args=args):
                match [_number(trace, arg) for arg in args]:
                    case [Affine() as one, Affine() as other] if op.name in _COMPARISONS:
                        yield _Question(one - other, op.name)
                    case [Affine() as one] if op.name == "absolute":
                        yield _Question(one, "less")
                waiting += reversed(args)
            case _:
                pass


def _number(trace: Recording, expr: Expr) -> Affine | None:
    match expr:
        case Index(value=value):
            return value
        case Const(value=int(value)):
            return Affine.of(value)
        case Load(tensor=tensor, index=()):
            origin = trace.origin(tensor.storage)
            return None if origin is None or isinstance(origin, (Site, Argument)) else _number(trace, origin)
        case _:
            return None


def _require_one_rest(trace: Recording, origin: Origin | None, reason: Reason) -> None:
    """Raise Retrace if a rest is one of an index of a loop that can be taken several times in a row."""
    match origin:
        case Apply(op=op, args=(Index(value=value), Index(value=period))) if op.name == "remainder":
            divisor = period.offset
        case _:
            return
    if not period.is_constant:
        return
    for recorder in reversed(trace.recorders):
        factor = _factor(trace, value, recorder)
        if factor and factor % divisor and recorder.may_turn:
            _unroll(trace, recorder, _FEW, reason)
            known = trace.decisions.together.get(recorder.site)
            before = 1 if known is None else known[0]
            together = lcm(before, divisor // gcd(factor, divisor))
            if before < together and _may_go_together(trace, recorder, together):
                _again(trace, Retrace(together={recorder.site: (together, replace(reason, what=_RESTS))}))


def _may_go_together(trace: Recording, recorder: Recorder, together: int) -> bool:
    """Whether so many iterations of a loop are recorded in a row."""
    if together <= _MOST_TOGETHER:
        return True
    decided = trace.decisions.together
    others = [decided[one.site][0] for one in trace.recorders if one is not recorder and one.site in decided]
    copies = prod(others) * prod(trace.copies.values()) * together
    return copies <= _MOST_IN_NEST and not recorder.is_at_most(2 * together)


def _require_one_side(trace: Recording, question: _Question, reason: Reason) -> None:
    """Raise Retrace if the innermost of the loops that a question depends on can be recorded in stretches."""
    found: list[tuple[int, Recorder]] = []
    rest = question.gap
    for recorder in reversed(trace.recorders):
        factor = _factor(trace, rest, recorder)
        if factor:
            found.append((factor, recorder))
            rest = rest - trace.indices[recorder.site] * factor
    if not found or not rest.is_constant:
        return
    (factor, turning), *others = found
    if not turning.may_turn:
        return
    if others and not trace.copies and all(recorder.is_at_most(_FEW) for _, recorder in found):
        _again(trace, Retrace({recorder.site: reason for _, recorder in found}))
    _unroll(trace, turning, _MOST_TURNS if others else _FEW, reason)
    sign = 1 if factor > 0 else -1
    terms = tuple((-sign * other, recorder.site) for other, recorder in others)
    steps = _COMPARISONS[question.comparison]
    steps = steps if factor > 0 else tuple(1 - step for step in steps)
    divisor = abs(factor)
    offsets = [step - sign * rest.offset + divisor - 1 for step in sorted(steps)]
    turns = [Turn(terms, offset, divisor) if terms else Turn((), offset // divisor) for offset in offsets]
    known = trace.decisions.turns.get(turning.site, {})
    more = [turn for turn in turns if turn not in known]
    if more and len(known) + len(more) <= _MOST_TURNS:
        _again(trace, Retrace(turns={turning.site: dict.fromkeys(more, replace(reason, what=_SIDES))}))


def _unroll(trace: Recording, recorder: Recorder, most: int, reason: Reason) -> None:
    """Raise Retrace for a loop of no more iterations than that: each may be a turn of a loop around."""
    most = min(most, _MOST_COPIES // prod(trace.copies.values()))
    if recorder.is_at_most(most):
        _again(trace, Retrace({recorder.site: reason}))


def _factor(trace: Recording, value: Affine, recorder: Recorder) -> int:
    """How often a number has a loop's index in it; 0 if it has not, or not as a whole."""
    index = trace.indices.get(recorder.site)
    each = 0 if index is None else index.coefficient(recorder.symbol)
    factor, left = divmod(value.coefficient(recorder.symbol), each) if each else (0, 0)
    return 0 if left else factor


def _again(trace: Recording, retrace: Retrace) -> NoReturn:
    trace.wanted = retrace
    raise retrace
