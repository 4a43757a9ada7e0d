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
from ..record.tree import Structure, unflatten
from ..values.array import SymbolicArray
from .carries import kind_of, same
from .kinds import common_kind, memory, truth
from .raising import Raised, outcome
from .repeating import Repeating
from .states import (
    Record,
    call,
    leaves_in,
    places_in,
    put_all,
    record,
    require_functions,
    require_one_structure,
    storages_of,
)

__all__ = ["cond", "while_loop"]

T = TypeVar("T")

_ENDED = Reason(
    "a value that one side of arrayjit.cond made is used outside it",
    None,
    "return it from both sides, and use what arrayjit.cond gives",
)
_ONE_SIDE = Reason(
    "arrayjit.cond gave either a new array or one that was there, and one of them was written since",
    None,
    "let both sides give new arrays: x.copy()",
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
    result: T = _branch(current_trace(), condition, (true_fun, false_fun), operands)
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


def _branch(
    trace: Trace, condition: Expr, sides: Sequence[Callable[..., Any]], operands: tuple[Any, ...]
) -> Any:
    require_functions("arrayjit.cond", *sides)
    records = [_recorded(trace, side, operands) for side in sides]
    (first, second) = (side.result for side in records)
    if isinstance(first, Raised) or isinstance(second, Raised):
        for side in reversed(records):
            trace.forget(side.mark, side.body, _ENDED)
        return _past(trace, condition, sides, operands, isinstance(first, Raised))
    (yes, structure), (no, other) = first, second
    require_one_structure("the functions of arrayjit.cond return different structures", structure, other)
    places = enumerate(places_in(structure, "the result"))
    merged = {n: _merged(trace, place, yes[n], no[n]) for n, place in places if not same(yes[n], no[n])}
    puts = [record(trace, partial(put_all, trace, merged, leaves)) for leaves in (yes, no)]
    bodies = [(*side.body, *last.body) for side, last in zip(records, puts, strict=True)]
    trace.emit(Branch(condition, bodies[0], bodies[1], user_location()))
    for n, target in merged.items():
        for storage in storages_of(trace, yes[n]) | storages_of(trace, no[n]):
            if not trace.is_new(storage, records[0].mark):
                trace.sameness.note(target.cells.tensor, storage, _ONE_SIDE)
    return unflatten(structure, [merged.get(n, leaf) for n, leaf in enumerate(yes)])


def _past(
    trace: Trace,
    condition: Expr,
    sides: Sequence[Callable[..., Any]],
    operands: tuple[Any, ...],
    raises_if: bool,
) -> Any:
    """What the other side gives, past a check: the one that runs if the condition is `raises_if` raises."""
    raising, other = sides if raises_if else reversed(sides)
    recorded = _recorded(trace, raising, operands)
    raised, wrong = recorded.result, condition if raises_if else opposite(condition)
    assert isinstance(raised, Raised)
    trace.emit(_leaving(wrong, recorded.body, raised))
    result = outcome(lambda: other(*operands))
    if isinstance(result, Raised):
        raise UnsupportedError(
            "both functions of arrayjit.cond raise",
            fix="raise one of the exceptions on its own, behind arrayjit.cond",
        )
    return result


def _leaving(wrong: Expr, body: tuple[Statement, ...], raised: Raised) -> Statement:
    if not body:
        return Check((), opposite(wrong), raised.exception, raised.message, raised.loc)
    last = Check((), Const(False, BOOL), raised.exception, raised.message, raised.loc)
    return Branch(wrong, (*body, last), (), user_location())


def _recorded(
    trace: Trace, side: Callable[..., Any], operands: tuple[Any, ...]
) -> Record[tuple[list[Any], Structure] | Raised]:
    recorded = record(trace, lambda: outcome(lambda: leaves_in(call(side, operands))))
    trace.bury(recorded.mark, recorded.body, _ENDED)
    return recorded


def _merged(trace: Trace, place: str, yes: Any, no: Any) -> SymbolicArray:
    """Memory for what one side or the other gives."""
    kind = common_kind(yes, no)
    if kind is None:
        raise DTypeError(
            f"{place} of arrayjit.cond is {kind_of(yes)} from one side and {kind_of(no)} from the other",
            fix="let both sides return one dtype and shape, as with x.astype(...), np.full(...), float(...)",
        )
    return memory(kind, trace, yes)
