"""unchosen: sums that a condition leaves unchosen are not formed.

    for i in sequential(0, 300):                    for i in sequential(0, 300):
        s = 0.0                                         s = 0.0
        for j in vector(0, 304, lanes=8):               if inside[i]:
            s += x[i, j]                                    for j in vector(0, 304, lanes=8):
        y[i] = where(inside[i], s, inf)      ->                 s += x[i, j]
                                                        y[i] = where(inside[i], s, inf)

NumPy forms all of them, and so does a loop that was made of its program. Where one is long, a branch that is
not foreseen takes less: sums of 300 numbers, of which one in six is chosen, take 0.2 of the time.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from ...ir.code import Caps
from ...ir.conditions import opposite
from ...ir.expr import Apply, Cast, Expr, Gather, Local, Variable, dtype_of
from ...ir.loops import (
    Bind,
    Comment,
    Define,
    For,
    If,
    Kernel,
    LoopKind,
    Stmt,
    Store,
    Update,
    walk_statements,
    written_in,
)
from ...ir.ops import OPS
from ...ir.walk import (
    kept,
    locals_defined,
    locals_updated,
    locals_used,
    rewrite_bodies,
    storages_read,
    symbols_read,
    variables,
    walk,
)
from ..analysis.work import work

__all__ = ["unchosen"]

WHERE = OPS["where"]

_SILENT = (Bind, Comment, Define, For, If, Update)
"""What does nothing but to change locals."""

LONG = 32.0
"""Additions of one register each that take longer than to go back after a wrong guess, twice."""


def unchosen(kernel: Kernel, caps: Caps) -> Kernel:
    """Every such loop in a branch."""
    notes: list[str] = []

    def visit(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        return kept(body, [statement(body, at) for at in range(len(body))])

    def statement(body: tuple[Stmt, ...], at: int) -> Stmt:
        stmt = body[at]
        in_lanes = isinstance(stmt, For) and stmt.kind in (LoopKind.VECTOR, LoopKind.LOCKSTEP)
        inner = stmt if in_lanes else rewrite_bodies(stmt, visit)
        if not isinstance(stmt, For) or (condition := _condition(body, at, stmt)) is None:
            return inner
        notes.append(f"unchosen: {stmt.symbol.hint} runs only where its sums are chosen")
        return If(condition, (inner,))

    return kernel.with_body(visit(kernel.body), notes)


def _condition(body: Sequence[Stmt], at: int, loop: For) -> Expr | None:
    """Where anything that a long loop makes is looked at, if that is known before it."""
    inside = walk_statements((loop,))
    if not all(isinstance(line, _SILENT) for line in inside):
        return None
    made = locals_updated(inside) - locals_defined(inside)
    if not made or not made <= locals_defined(body[:at]):
        return None
    chosen = _chosen(body[at + 1 :], made)
    if chosen is None or not _is_known(chosen, body, at):
        return None
    amount = work((loop,), frozenset(), {})
    return chosen if amount.keys() - {()} or amount.get((), 0.0) >= LONG else None


def _chosen(after: Sequence[Stmt], made: Collection[Variable]) -> Expr | None:
    """The one condition by which the statements after a loop choose whether they take what it made, and what
    follows from that."""
    following = set(made)
    later: dict[Variable, Expr] = {}
    found: set[Expr | None] = set()
    for stmt in after:
        if following.isdisjoint(locals_used((stmt,))):
            if isinstance(stmt, Define):
                later[stmt.variable] = stmt.value
            continue
        match stmt:
            case Define(value=Apply(op=op) as choice) | Store(value=Apply(op=op) as choice) if op is WHERE:
                found.add(_side(choice, following, later))
            case Define(variable=variable, value=value) if all(map(_is_harmless, walk(value))):
                following.add(variable)
            case _:
                return None
    return found.pop() if len(found) == 1 else None


def _side(choice: Apply, following: Collection[Variable], later: Mapping[Variable, Expr]) -> Expr | None:
    """When a choice takes what is `following`, as a condition on what is not defined `later`."""
    condition = choice.args[0]
    reads = [any(variable in following for variable in variables(value)) for value in choice.args]
    if reads[0] or reads[1] == reads[2]:
        return None
    if isinstance(condition, Local):
        condition = later.get(condition.variable, condition)
    return condition if reads[1] else opposite(condition)


def _is_harmless(node: Expr) -> bool:
    """May this be computed of any number?"""
    return not isinstance(node, (Cast, Gather)) and dtype_of(node).is_float


def _is_known(condition: Expr, body: Sequence[Stmt], at: int) -> bool:
    """Is a condition of the statements after one of a body the same before it?"""
    changed = locals_updated(walk_statements(tuple(body))) | locals_defined(body[at:])
    written = written_in(walk_statements(tuple(body[at:])))
    bound = {stmt.symbol for stmt in body[at:] if isinstance(stmt, Bind)}
    return (
        changed.isdisjoint(variables(condition))
        and written.isdisjoint(storages_read((condition,)))
        and bound.isdisjoint(symbols_read(condition))
        and not any(isinstance(node, Gather) for node in walk(condition))
    )
