"""`arrayjit.cond` and `arrayjit.while_loop`: conditions that only the compiled function can decide.

Outside a jitted function both run as plain Python. Inside, the two sides of `cond` become a branch of the
program and `while_loop` a loop of it (see `repeating`). A side that raises becomes a check: what the other
one does is what comes after it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

from ...errors import DTypeError, UnsupportedError
from ...ir.assign import Branch, Check, Statement
from ...ir.conditions import opposite
from ...ir.dtype import BOOL
from ...ir.expr import Const, Expr
from ..record.retrace import Reason
from ..record.trace import Trace, current_trace, tracing, user_location
from ..record.tree import unflatten
from ..values.array import SymbolicArray
from .carries import kind_of, same
from .kinds import common_kind, memory, truth
from .places import MISSING
from .raising import Raised, outcome
from .repeating import Repeating
from .states import (
    Record,
    Said,
    State,
    call,
    leaves_in,
    numbers_and_arrays,
    places_in,
    put_all,
    record,
    require_functions,
    require_one_structure,
    standing_in,
    storages_of,
)

__all__ = ["branch", "cond", "while_loop"]

T = TypeVar("T")

_COND = Said(
    "arrayjit.cond",
    "the functions of arrayjit.cond return",
    "return it from both sides, and use what arrayjit.cond gives",
)


def cond(pred: Any, true_fun: Callable[..., T], false_fun: Callable[..., T], /, *operands: Any) -> T:
    """`true_fun(*operands) if pred else false_fun(*operands)`, where `pred` may be computed from arrays.

    Inside a jitted function only the side that `pred` chooses runs. Both sides may write arrays in place.
    They must return values of one structure, with equal shapes and dtypes; a Python number takes the type
    of the other side where that keeps its value. Where both sides return the same array, so does `cond`.
    One side may raise an exception of Python's with a text, which leaves the jitted function if it runs.

    Raises DTypeError where the sides do not agree or are no functions, and UnsupportedError where a side
    changes a variable, a container or an object outside it.
    """
    condition = truth(pred, current_trace()) if tracing() else bool(pred)
    if isinstance(condition, bool):
        return true_fun(*operands) if condition else false_fun(*operands)
    require_functions("arrayjit.cond", true_fun, false_fun)
    result: T = branch(current_trace(), condition, (true_fun, false_fun), operands)
    return result


def while_loop(cond_fun: Callable[[T], Any], body_fun: Callable[[T], T], init: T, /) -> T:
    """From `state = init`, `while cond_fun(state): state = body_fun(state)`; the last state.

    The state is an array, a number, or tuples, lists, dicts, namedtuples or dataclasses of them. Inside a
    jitted function this is one loop of the compiled program, however often it runs: the body must return a
    state of the same structure, shapes and dtypes, but a Python number may become a NumPy number in the
    first iteration, and either an array of no axes. Both functions may write arrays in place; what the body
    returns as it got it is not copied.

    Raises DTypeError where the state does not stay of a kind, or a function is none, and UnsupportedError
    where one changes a variable, a container or an object outside it.
    """
    if tracing():
        require_functions("arrayjit.while_loop", cond_fun, body_fun)
        result: T = Repeating(current_trace(), cond_fun, body_fun, init).run()
        return result
    state = init
    while cond_fun(state):
        state = body_fun(state)
    return state


def branch(
    trace: Trace,
    condition: Expr,
    sides: Sequence[Callable[..., Any]],
    operands: tuple[Any, ...],
    said: Said = _COND,
) -> Any:
    """What the side gives that the condition chooses; of a statement, what its variables become."""
    records = [_recorded(trace, side, operands, said) for side in sides]
    (first, second) = (side.result for side in records)
    if isinstance(first, Raised) or isinstance(second, Raised):
        for side in reversed(records):
            trace.forget(side.mark, side.body, _ended(said))
        return _past(trace, condition, sides, operands, isinstance(first, Raised), said)
    (yes, structure), (no, other) = first, second
    if said.names is not None:
        ((yes, structure), (no, other)) = _both_complete(trace, first, second)
    require_one_structure(f"{said.parts} different structures", structure, other)
    places = enumerate(places_in(structure, "the result", said.names))
    merged = {n: _merged(trace, place, yes[n], no[n], said) for n, place in places if not same(yes[n], no[n])}
    puts = [record(trace, partial(put_all, trace, merged, leaves)) for leaves in (yes, no)]
    bodies = [(*side.body, *last.body) for side, last in zip(records, puts, strict=True)]
    trace.emit(Branch(condition, bodies[0], bodies[1], user_location()))
    for n, target in merged.items():
        for storage in storages_of(trace, yes[n]) | storages_of(trace, no[n]):
            if not trace.is_new(storage, records[0].mark):
                trace.sameness.note(target.cells.tensor, storage, _one_side(said))
    return unflatten(structure, [merged.get(n, leaf) for n, leaf in enumerate(yes)])


def _both_complete(trace: Trace, one: State, other: State) -> tuple[State, State]:
    """The variables that two sides give. One that has no value on one of them is not read where that one was
    taken, and is of the other's kind."""
    values = [list(unflatten(structure, leaves)) for leaves, structure in (one, other)]
    for mine, theirs in (values, values[::-1]):
        for n, value in enumerate(mine):
            if value is MISSING and theirs[n] is not MISSING:
                mine[n] = standing_in(trace, theirs[n])
    yes, no = (numbers_and_arrays(tuple(side)) for side in values)
    return yes, no


def _ended(said: Said) -> Reason:
    return Reason(f"a value that one side of {said.caller} made is used outside it", None, said.outwards)


def _one_side(said: Said) -> Reason:
    what = f"{said.caller} gave either a new array or one that was there, and one of them was written since"
    return Reason(what, None, "let both sides give new arrays: x.copy()")


def _past(
    trace: Trace,
    condition: Expr,
    sides: Sequence[Callable[..., Any]],
    operands: tuple[Any, ...],
    raises_if: bool,
    said: Said,
) -> Any:
    """What the other side gives, past a check: the one that runs if the condition is `raises_if` raises."""
    raising, other = sides if raises_if else reversed(sides)
    recorded = _recorded(trace, raising, operands, said)
    raised, wrong = recorded.result, condition if raises_if else opposite(condition)
    assert isinstance(raised, Raised)
    trace.emit(_leaving(wrong, recorded.body, raised))
    result = outcome(lambda: other(*operands))
    if isinstance(result, Raised):
        raise UnsupportedError(
            f"both sides of {said.caller} raise",
            fix=f"raise one of the exceptions on its own, behind {said.caller}",
        )
    return result


def _leaving(wrong: Expr, body: tuple[Statement, ...], raised: Raised) -> Statement:
    if not body:
        return Check((), opposite(wrong), raised.exception, raised.message, raised.loc)
    last = Check((), Const(False, BOOL), raised.exception, raised.message, raised.loc)
    return Branch(wrong, (*body, last), (), user_location())


def _recorded(
    trace: Trace, side: Callable[..., Any], operands: tuple[Any, ...], said: Said
) -> Record[State | Raised]:
    recorded = record(trace, lambda: outcome(lambda: leaves_in(call(side, operands, said))))
    trace.bury(recorded.mark, recorded.body, _ended(said))
    return recorded


def _merged(trace: Trace, place: str, yes: Any, no: Any, said: Said) -> SymbolicArray:
    """Memory for what one side or the other gives."""
    kind = common_kind(yes, no)
    if kind is None:
        raise DTypeError(
            f"{place} of {said.caller} is {kind_of(yes)} from one side and {kind_of(no)} from the other",
            fix="let both sides give one dtype and shape, as with x.astype(...), np.full(...), float(...)",
        )
    return memory(kind, trace, yes)
