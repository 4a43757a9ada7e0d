"""carry: what the iteration before has stored is still at hand.

    for k in sequential(1, 100):                    c = x[0]
        x[k] = add(x[k - 1], y[k])                  for k in sequential(1, 100):
                                        ->              t = add(c, y[k])
                                                        x[k] = t
                                                        c = t

Read back from memory it would make each iteration wait for the store of the one before. The same goes for a
cell that every iteration reads and then writes. The first value is read before the loop, so its cell must
exist even if the loop does not run.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ..ir.code import Caps
from ..ir.expr import Const, Expr, Load, Local, Variable
from ..ir.index import Affine, Symbol
from ..ir.loops import Bind, Comment, Define, For, Kernel, LoopKind, Raise, Stmt, Store, Update
from ..ir.walk import expressions, kept, rewrite_bodies, rewrite_expressions, transform, walk
from .access import Range, Ranges, exists
from .lockstep import in_lockstep
from .trips import enter

__all__ = ["carry"]


def carry(kernel: Kernel, caps: Caps) -> Kernel:
    """Every value that one iteration stores for the next one also kept in a local."""
    ranges: dict[Symbol, Range] = {}

    def visit(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        out: list[Stmt] = []
        for stmt in body:
            if isinstance(stmt, For):
                enter(stmt, ranges)
                if _is_candidate(stmt, ranges):
                    out.extend(_carried(stmt, ranges))
                    continue
            out.append(rewrite_bodies(stmt, visit))
        return kept(body, out)

    body = visit(kernel.body)
    return kernel if body is kernel.body else replace(kernel, body=body)


def _is_candidate(loop: For, ranges: Ranges) -> bool:
    """Is this a simple loop whose iterations cannot go side by side?"""
    plain = (Bind, Comment, Define, Raise, Store, Update)
    is_simple = loop.kind is LoopKind.SEQUENTIAL and all(isinstance(stmt, plain) for stmt in loop.body)
    return is_simple and not in_lockstep(loop, ranges)


def _carried(loop: For, ranges: Ranges) -> list[Stmt]:
    """The loop, after the first values of the locals that it hands on."""
    before: list[Stmt] = []
    for number in range(sum(isinstance(stmt, Store) for stmt in loop.body)):
        at = [n for n, stmt in enumerate(loop.body) if isinstance(stmt, Store)][number]
        handed_on = _handed_on(loop, at)
        if handed_on is None or not _may_begin(loop, handed_on, ranges):
            continue
        carried = Variable(handed_on.tensor.label, handed_on.tensor.dtype)
        first = tuple(position.substitute({loop.symbol: loop.lo}) for position in handed_on.index)
        before.append(Define(carried, Load(handed_on.tensor, first)))
        loop = replace(loop, body=tuple(_handing_on(loop.body, at, handed_on, carried)))
    return [*before, loop]


def _handed_on(loop: For, at: int) -> Load | None:
    """How the body reads the cell that the store at position `at` has written an iteration ago, if that is
    the only store to its array."""
    store = loop.body[at]
    assert isinstance(store, Store)
    stores = [stmt for stmt in loop.body if isinstance(stmt, Store)]
    bound = {stmt.symbol for stmt in loop.body if isinstance(stmt, Bind)}
    symbols = {symbol for position in store.index for symbol in position.symbols}
    if sum(other.tensor.storage is store.tensor.storage for other in stores) > 1 or symbols & bound:
        return None
    ago = {loop.symbol: Affine.of(loop.symbol) - loop.step}
    load = Load(store.tensor, tuple(position.substitute(ago) for position in store.index))
    reading = loop.body if loop.symbol in symbols else loop.body[: at + 1]
    nodes = (node for stmt in reading for expr in expressions(stmt) for node in walk(expr))
    return load if any(node == load for node in nodes) else None


def _may_begin(loop: For, load: Load, ranges: Ranges) -> bool:
    """Whether the first iteration surely reads the cell, or could."""
    if loop.trips and not any(isinstance(stmt, Raise) for stmt in loop.body):
        return True
    first = {loop.symbol: loop.lo}
    return exists(load.tensor, tuple(position.substitute(first) for position in load.index), ranges)


def _handing_on(body: tuple[Stmt, ...], at: int, load: Load, carried: Variable) -> Iterator[Stmt]:
    """The body with the local in place of the load, and what is stored put into the local at the end."""
    store = body[at]
    assert isinstance(store, Store)
    moves = store.index != load.index

    def rule(node: Expr) -> Expr:
        return Local(carried) if node == load else node

    value = store.value
    for position, stmt in enumerate(body):
        if moves or position <= at:
            stmt = rewrite_expressions(stmt, lambda expr: transform(expr, rule))
        if position == at:
            assert isinstance(stmt, Store)
            value = stmt.value
            if not _stays(value, body):
                stored = Variable("t", carried.dtype)
                yield Define(stored, value)
                value = Local(stored)
            stmt = replace(stmt, value=value)
        yield stmt
    yield Update(carried, value)


def _stays(value: Expr, body: tuple[Stmt, ...]) -> bool:
    """Is this a constant, or a local that never changes?"""
    match value:
        case Const():
            return True
        case Local(variable=variable):
            return not any(isinstance(stmt, Update) and stmt.variable is variable for stmt in body)
        case _:
            return False
