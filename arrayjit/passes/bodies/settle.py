"""settle: steps that no longer change anything are not taken.

    for k in sequential(0, 60):                     for k in sequential(0, 60):
        near = less(x, 4.0)                             near = less(x, 4.0)
        x = where(near, multiply(x, x), x)              x = where(near, multiply(x, x), x)
        n = add(n, cast(near, i64))         ->          n = add(n, cast(near, i64))
                                                        stay(near)

If a condition decides whether a step changes any local at all, and follows from these locals alone, then a
step that changes nothing is followed by others that do not either. So it is with points of which only the
active ones are moved on: a vector of them is done with when all its lanes are. Whether a condition decides is
seen by taking it for false, or for true, and simplifying: then every update has to leave its local as it was.
What is computed again from what has not changed is what it was, among it the condition itself.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import replace

from ...ir.code import Caps
from ...ir.dtype import BOOL
from ...ir.expr import Apply, Cast, Const, Expr, Gather, Index, Load, Local, Variable, dtype_of
from ...ir.loops import Comment, Define, For, Kernel, LoopKind, Stay, Stmt, Update
from ...ir.ops import OPS, Op
from ...ir.walk import expressions, locals_read, rewrite_loops_inside_out, transform, walk
from .rules import simpler
from .standstill import until_standstill

__all__ = ["settle"]

FEWEST = 4
"""So many steps are worth a branch in each."""

TRIED = 8
"""So many conditions of a body are tried, from the last one on, which depends on others."""


def settle(kernel: Kernel, caps: Caps) -> Kernel:
    """Every such loop left when it has settled."""
    notes: list[str] = []

    def settled(loop: For) -> tuple[Stmt, ...] | None:
        if not _may_end(loop):
            return None
        condition = _deciding(loop)
        body = until_standstill(loop.body) if condition is None else (*loop.body, Stay(condition))
        if body is None:
            return None
        notes.append(f"settle: steps of {loop.symbol.hint} end when they change nothing more")
        return (replace(loop, body=body),)

    return kernel.with_body(rewrite_loops_inside_out(kernel.body, settled), notes)


def _may_end(loop: For) -> bool:
    """Is it a loop of many steps, of locals alone?"""
    few = loop.trips is not None and loop.trips < FEWEST
    if loop.kind is not LoopKind.SEQUENTIAL or few:
        return False
    return all(isinstance(stmt, (Comment, Define, Update)) for stmt in loop.body)


def _deciding(loop: For) -> Expr | None:
    """What holds as long as steps of a loop change anything, if one condition decides about that."""
    body = _Body(loop.body)
    conditions = body.conditions()[: -TRIED - 1 : -1]
    moving = set(body.moved({})) if conditions else set()
    for condition in conditions:
        if not moving <= body.decided_by(condition):
            continue
        for decided in (False, True):
            if body.is_still(condition, decided) and not (decided and body.is_nan(condition)):
                stays = Local(condition)
                return Apply(OPS["bitwise_xor"], (stays, Const(True, BOOL)), BOOL) if decided else stays
    return None


class _Body:
    """A body of definitions and updates; `made` and `changed` say where. `counts` are floats to which each
    step adds a bool: they are never -0.0 after it, and adding 0.0 changes them no more."""

    def __init__(self, body: tuple[Stmt, ...]) -> None:
        self.body = body
        self.made = {stmt.variable: at for at, stmt in enumerate(body) if isinstance(stmt, Define)}
        updates = [(at, stmt) for at, stmt in enumerate(body) if isinstance(stmt, Update)]
        self.changed = {stmt.variable: at for at, stmt in reversed(updates)}
        self.counts = {stmt.variable for _, stmt in updates if self._is_count(stmt)}

    def _is_count(self, stmt: Update) -> bool:
        value = stmt.value
        while isinstance(value, Local) and value.variable in self.made:
            (value,) = expressions(self.body[self.made[value.variable]])
        match value:
            case Apply(op=Op(name="add"), args=(one, other)) if stmt.variable.dtype.is_float:
                return Local(stmt.variable) in (one, other) and (_is_of_bool(one) or _is_of_bool(other))
            case _:
                return False

    def conditions(self) -> list[Variable]:
        """The bools that follow from what the steps before have left, and what never changes."""
        found = dict.fromkeys(self.changed)
        for at, stmt in enumerate(self.body):
            if isinstance(stmt, Define) and self._is_of_steps(stmt.value, at, found):
                found[stmt.variable] = None
        return [variable for variable in found if variable.dtype is BOOL]

    def _is_of_steps(self, value: Expr, at: int, found: Container[Variable]) -> bool:
        """Does a value follow from what the steps before have left, and what was `found` to do so?"""
        for node in walk(value):
            match node:
                case Load() | Gather() | Index():
                    return False
                case Local(variable=variable):
                    is_new = variable in self.made and variable not in found
                    if is_new or self.changed.get(variable, at) < at:
                        return False
                case _:
                    pass
        return True

    def is_nan(self, condition: Variable) -> bool:
        """Does a condition hold for a NaN alone? Steps keep it, but programs do not wait for one."""
        at = self.made.get(condition)
        match None if at is None else expressions(self.body[at])[0]:
            case Apply(op=Op(name="not_equal"), args=(one, other)):
                return one == other
            case _:
                return False

    def decided_by(self, condition: Variable) -> set[Variable]:
        """The locals that may be another number if a condition is."""
        found = {condition}
        for stmt in self.body:
            if isinstance(stmt, (Define, Update)) and not found.isdisjoint(locals_read((stmt,))):
                found.add(stmt.variable)
        return found

    def is_still(self, condition: Variable, decided: bool) -> bool:
        """Does no step change anything, once the condition is `decided`?"""
        return not any(True for _ in self.moved({condition: Const(decided, BOOL)}))

    def moved(self, known: dict[Variable, Expr]) -> Iterator[Variable]:
        """The locals that a step changes, as far as it can be told from what is known of some."""
        given = frozenset(known)
        same: dict[Expr, Expr] = {}

        def node(expr: Expr) -> Expr:
            if isinstance(expr, Local):
                return known.get(expr.variable, expr)
            expr = self._count(simpler(expr))
            return expr if isinstance(expr, (Const, Local)) else same.get(expr, expr)

        for stmt in self.body:
            if isinstance(stmt, Define):
                value = transform(stmt.value, node)
                if stmt.variable not in given and isinstance(value, (Const, Local)):
                    known[stmt.variable] = value
                elif not isinstance(value, (Const, Local)):
                    same[value] = known.get(stmt.variable, Local(stmt.variable))
            elif isinstance(stmt, Update):
                was = known.get(stmt.variable, Local(stmt.variable))
                if stmt.variable in self.made or stmt.accum or transform(stmt.value, node) != was:
                    yield stmt.variable

    def _count(self, expr: Expr) -> Expr:
        """A count to which nothing is added, for the sum."""
        match expr:
            case Apply(op=Op(name="add"), args=(Local(variable=count) as same, Const() as zero)) if (
                count in self.counts and zero == Const(0.0, zero.dtype)
            ):
                return same
            case _:
                return expr


def _is_of_bool(value: Expr) -> bool:
    return isinstance(value, Cast) and dtype_of(value.arg) is BOOL
