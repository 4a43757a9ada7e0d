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
from .expr import Apply, Const, Local, Variable
from .index import Symbol, symbols_of
from .loops import Bind, Comment, Define, For, If, Stmt, Store, Update
from .ops import OPS

__all__ = ["may_append"]


def may_append(loop: For) -> bool:
    """Whether iterations may append together: the body defines locals, and then has selections, each at a
    number of outside of its own."""
    numbers = [_number_of(stmt) for stmt in loop.body if isinstance(stmt, If)]
    return (
        loop.step == 1
        and 0 < len(numbers) == len(set(numbers))
        and None not in numbers
        and all(isinstance(stmt, (Comment, Define, If)) for stmt in loop.body)
    )


def _number_of(selection: If) -> Variable | None:
    """The number that is bound, that what is stored lies side by side from, and that grows by one."""
    match selection:
        case If(
            body=(
                Bind(symbol=symbol, value=Local(variable=number)),
                *stores,
                Update(variable=counted, value=Apply() as more, accum=None),
            ),
            orelse=(),
        ):
            one = Apply(OPS["add"], (Local(number), Const(1, I64)), I64)
            is_so = counted is number and more == one and all(_is_at(store, symbol) for store in stores)
            return number if is_so else None
        case _:
            return None


def _is_at(stmt: Stmt, symbol: Symbol) -> bool:
    if not isinstance(stmt, Store) or stmt.accum is not None or not stmt.index:
        return False
    *before, last = stmt.index
    return symbol in symbols_of((last,)) and symbol not in symbols_of(before)
