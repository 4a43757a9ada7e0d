"""Loops that put side by side what they select.

for k in sequential(0, 999, lanes=8):     a vector of iterations: the lanes that the condition chooses are
    t = x[k]                              moved together in a register and stored from `reached` on, and
    if greater(t, 0.5):                   that grows by as many as they are
        n = reached
        selected[n] = t
        reached = add(reached, 1)
"""

from __future__ import annotations

from .dtype import I64
from .expr import Apply, Const, Local
from .index import Symbol, symbols_of
from .loops import Bind, Comment, Define, For, If, Stmt, Store, Update
from .ops import OPS

__all__ = ["may_append"]


def may_append(loop: For) -> bool:
    """Whether iterations may append together: the body defines locals, and then has selections, each at a
    number of outside of its own."""
    selections = [stmt for stmt in loop.body if isinstance(stmt, If)]
    numbers = {stmt.body[-1].variable for stmt in selections if isinstance(stmt.body[-1], Update)}
    return (
        loop.step == 1
        and bool(selections)
        and len(numbers) == len(selections)
        and all(map(_is_selection, selections))
        and all(isinstance(stmt, (Comment, Define, If)) for stmt in loop.body)
    )


def _is_selection(stmt: If) -> bool:
    """A number is bound, what is stored lies side by side from there on, and the number grows by one."""
    match stmt:
        case If(
            body=(
                Bind(symbol=symbol, value=Local(variable=number)),
                *stores,
                Update(variable=counted, value=Apply() as more, accum=None),
            ),
            orelse=(),
        ):
            one = Apply(OPS["add"], (Local(number), Const(1, I64)), I64)
            return counted is number and more == one and all(_is_at(store, symbol) for store in stores)
        case _:
            return False


def _is_at(stmt: Stmt, symbol: Symbol) -> bool:
    if not isinstance(stmt, Store) or stmt.accum is not None or not stmt.index:
        return False
    *before, last = stmt.index
    return symbol in symbols_of((last,)) and symbol not in symbols_of(before)
