"""What rewritten conditions and loops call (see `source.conditions`): `OURS`, by name."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from types import FunctionType
from typing import Any

from ...errors import UnsupportedError
from ...ir.dtype import I64
from ...ir.expr import Apply, literal
from ...ir.index import Affine
from ...ir.ops import OPS
from ..record.retrace import Reason
from ..record.trace import Trace, current_trace
from ..record.tree import statics
from ..values.array import SymbolicArray
from ..values.conversions import to_bool
from ..values.integer import SymbolicInt, python_int
from . import control
from .carries import Kind, kind_of
from .kinds import truth
from .loops import Counted
from .places import MISSING
from .ranges import Range, Rows
from .ranges import counted as counted_items
from .repeating import Repeating
from .states import Said, numbers_and_arrays, record, standing_in

__all__ = ["OURS"]

_PLAIN = (str, bytes, type(None), FunctionType, type, Kind)
"""What tells all about itself."""

_OUTWARDS = "assign it to a variable, in each way to where it is used"
_SIDES = "the sides of this condition give"
_OF_ANOTHER = Reason("a value that an iteration of this loop made is used outside it", None, _OUTWARDS)


def _branch(
    condition: Any,
    true_fun: Callable[..., Any],
    false_fun: Callable[..., Any],
    given: tuple[str, ...] | None,
    operands: tuple[Any, ...],
) -> Any:
    """What one of two functions of these values gives: the variables `given`, or a result."""
    trace = current_trace()
    known = truth(condition, trace)
    if isinstance(known, bool):
        return (true_fun if known else false_fun)(*operands)
    said = Said("this condition", _SIDES, _OUTWARDS, given, is_statement=True)
    return control.branch(trace, known, (true_fun, false_fun), operands, said)


def _both(value: Any, other: Callable[..., Any], operands: tuple[Any, ...]) -> Any:
    """`value and other`, where the other is a function of these values."""
    return _branch(value, other, lambda *_: value, None, operands)


def _either(value: Any, other: Callable[..., Any], operands: tuple[Any, ...]) -> Any:
    """`value or other`."""
    return _branch(value, lambda *_: value, other, None, operands)


def _opposite(value: Any) -> Any:
    """`not value`."""
    value = to_bool(value)
    return not value if type(value) is bool else value == False  # noqa: E712


def _repeat(
    test: Callable[..., Any],
    body: Callable[..., Any],
    names: tuple[str, ...],
    state: tuple[Any, ...],
    others: tuple[Any, ...],
) -> Any:
    """The variables of these names, which hold the `state`, when `test` of it and others no longer holds."""
    trace, said = (
        current_trace(),
        Said("this loop", "an iteration of this loop gives", _OUTWARDS, names, True),
    )
    key = _key(trace, (test, body), (*state, *others))
    if any(value is MISSING for value in state):
        state = _with_stand_ins(trace, state, lambda: body(*state, *others))
    return Repeating(
        trace, lambda now: test(*now, *others), lambda now: body(*now, *others), state, said, key
    ).run()


def _key(trace: Trace, functions: Sequence[Any], values: tuple[Any, ...]) -> Hashable:
    """What decides of which kinds the state of a loop is: its code and what that looks up, and the kinds of
    the values that it is given, with those that are known; None where objects may tell more."""
    leaves, structure = numbers_and_arrays(values)
    made = tuple((one.__code__, id(one.__globals__), *map(id, one.__closure__ or ())) for one in functions)
    held = tuple(_as_known(trace, leaf) for leaf in leaves)
    told = tuple(_as_counted(part) for part in statics(structure))
    is_told = all(type(part) in _PLAIN or part is MISSING for part in told)
    return (made, held, told, tuple(map(type, values))) if is_told else None


def _as_known(trace: Trace, leaf: Any) -> Hashable:
    known: Any = leaf
    if type(leaf) is SymbolicArray:
        numbers = trace.known(leaf.cells)
        known = None if numbers is None else numbers.tobytes()
    elif type(leaf) is SymbolicInt:
        known = None
    return type(leaf), kind_of(leaf), known


def _as_counted(value: Any) -> Any:
    if type(value) is _Items and type(value.of) is Rows:
        return kind_of(value.of.array)
    return type(value.of).__name__ if type(value) is _Items and type(value.of) is Range else value


def _with_stand_ins(
    trace: Trace, state: tuple[Any, ...], run: Callable[[], tuple[Any, ...]]
) -> tuple[Any, ...]:
    """The state with something of the kind that an iteration makes in place of what has no value yet, and is
    not read before."""
    survey = record(trace, run)
    trace.forget(survey.mark, survey.body, _OF_ANOTHER)
    pairs = zip(state, survey.result, strict=True)
    return tuple(standing_in(trace, made) if value is MISSING is not made else value for value, made in pairs)


class _Items:
    """What a loop goes over that may be left: items by the number of their iteration."""

    def __init__(self, items: Counted) -> None:
        self.of = items

    @property
    def times(self) -> Any:
        return python_int(self.of.times, self.of.trace)

    def item(self, position: Any) -> Any:
        """The item at a position that surely has one."""
        place = Affine.of(position) if type(position) is int else self._bound(position)
        return self.of.item(self.of.lo + place * self.of.pace)

    def _bound(self, position: SymbolicArray) -> Affine:
        times = self.of.times
        return self.of.trace.bind(position.load(()), 0, times.offset if times.is_constant else None)


def _counted(iterable: Any) -> _Items:
    items = counted_items(iterable)
    if items is None:
        raise UnsupportedError(
            f"only the compiled function can tell when this loop over a {type(iterable).__name__} is left",
            fix="go over an array or a range: for k in range(len(items))",
        )
    return _Items(items.handed_on())


def _following(position: Any) -> Any:
    """The next position, which is at most the number of items."""
    if type(position) is int:
        return position + 1
    trace = position.record
    view = trace.compute((), I64, lambda _: Apply(OPS["add"], (position.load(()), literal(1, I64)), I64))
    return SymbolicArray(view, trace, weak=int)


def _holds(test: Callable[..., Any], operands: tuple[Any, ...]) -> bool:
    """Whether it is known that a test of these values holds."""
    trace = current_trace()
    tried = record(trace, lambda: truth(test(*operands), trace))
    trace.forget(tried.mark, tried.body, _OF_ANOTHER)
    return tried.result is True


OURS: Mapping[str, Any] = {
    ".both": _both,
    ".branch": _branch,
    ".counted": _counted,
    ".either": _either,
    ".following": _following,
    ".holds": _holds,
    ".nothing": MISSING,
    ".opposite": _opposite,
    ".repeat": _repeat,
    ".true": to_bool,
}
"""The functions that rewritten code calls."""
