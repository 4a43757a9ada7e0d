"""settle: steps that no longer change anything are not taken.

    for k in sequential(0, 60):                     for k in sequential(0, 60):
        near = less(x, 4.0)                             near = less(x, 4.0)
        x = where(near, multiply(x, x), x)      ->      stay(near)
        n = where(near, index(k), n)                    x = where(near, multiply(x, x), x)
                                                        n = where(near, index(k), n)

If a condition decides whether a step changes any local at all, and follows from these locals alone, then a
step that changes nothing is followed by others that do not either. So it is with points of which only the
active ones are moved on: a vector of them is done with when all its lanes are.
"""

from __future__ import annotations

from dataclasses import replace

from ...ir.code import Caps
from ...ir.dtype import BOOL
from ...ir.expr import Apply, Expr, Gather, Index, Load, Local, Variable
from ...ir.loops import Comment, Define, For, Kernel, LoopKind, Stay, Stmt, Update
from ...ir.walk import expressions, kept, rewrite_bodies, walk

__all__ = ["settle"]

FEWEST = 4
"""So many steps are worth a branch in each."""


def settle(kernel: Kernel, caps: Caps) -> Kernel:
    """Every such loop left when it has settled."""
    notes: list[str] = []

    def visit(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        return kept(body, [statement(stmt) for stmt in body])

    def statement(stmt: Stmt) -> Stmt:
        stmt = rewrite_bodies(stmt, visit)
        new = _settling(stmt) if isinstance(stmt, For) else stmt
        if new is not stmt and isinstance(new, For):
            notes.append(f"settle: steps of {new.symbol.hint} end when they change nothing more")
        return new

    return kernel.with_body(visit(kernel.body), notes)


def _settling(loop: For) -> For:
    """The loop with a way out, if a condition decides about all that its body changes."""
    few = loop.trips is not None and loop.trips < FEWEST
    if loop.kind is not LoopKind.SEQUENTIAL or few:
        return loop
    if not all(isinstance(stmt, (Comment, Define, Update)) for stmt in loop.body):
        return loop
    body = _Body(loop.body)
    condition = body.condition()
    if condition is None or not body.is_of_steps(condition):
        return loop
    at = body.made.get(condition, -1) + 1
    return replace(loop, body=(*loop.body[:at], Stay(Local(condition)), *loop.body[at:]))


class _Body:
    """A body of definitions and updates; `made` and `changed` say where."""

    def __init__(self, body: tuple[Stmt, ...]) -> None:
        self.body = body
        self.made = {stmt.variable: at for at, stmt in enumerate(body) if isinstance(stmt, Define)}
        self.updates = [(at, stmt) for at, stmt in enumerate(body) if isinstance(stmt, Update)]
        self.changed = {stmt.variable: at for at, stmt in self.updates}

    def condition(self) -> Variable | None:
        """The local without which no update changes anything, none being updated twice."""
        if not self.updates or len(self.changed) < len(self.updates):
            return None
        (_, first), *_ = found = [self._deciding(at, stmt) for at, stmt in self.updates]
        if first is None or any(other is not first for _, other in found):
            return None
        last = self.changed.get(first, len(self.body))
        return first if all(at <= last for at, _ in found) else None

    def _deciding(self, at: int, stmt: Update) -> tuple[int, Variable | None]:
        """The local without which an update leaves its variable as it was, and where it is asked."""
        value, at = self._named(stmt.value, at)
        if stmt.accum is not None or not isinstance(value, Apply):
            return at, None
        kept = Local(stmt.variable)
        match value.op.name, value.args:
            case "where", (Local(variable=condition) as asked, _, old) if self._named(old, at)[0] == kept:
                source, _ = self._named(asked, at)
                return at, source.variable if isinstance(source, Local) else condition
            case "bitwise_and", args if stmt.variable.dtype is BOOL and any(
                self._named(arg, at)[0] == kept for arg in args
            ):
                return at, stmt.variable
            case _:
                return at, None

    def _named(self, value: Expr, at: int) -> tuple[Expr, int]:
        """What a local of the body stands for, and where it is defined."""
        while isinstance(value, Local) and value.variable in self.made:
            at = self.made[value.variable]
            (value,) = expressions(self.body[at])
        return value, at

    def is_of_steps(self, condition: Variable) -> bool:
        """Does a condition follow from what the steps before have left, and what never changes?"""
        first = min(self.changed.values())
        pending, seen = [condition], set[Variable]()
        while pending:
            variable = pending.pop()
            at = self.made.get(variable)
            if at is None or variable in seen:
                continue
            seen.add(variable)
            if at > first:
                return False
            for node in (node for expr in expressions(self.body[at]) for node in walk(expr)):
                if isinstance(node, (Load, Gather, Index)):
                    return False
                if isinstance(node, Local):
                    pending.append(node.variable)
        return True
