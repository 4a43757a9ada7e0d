"""rare: what is seldom needed is computed only where it is.

    for i in vector(0, 96, lanes=8):            for i in vector(0, 96, lanes=8):
        t0 = multiply(x[i], x[i])                   t0 = multiply(x[i], x[i])
        t1 = sqrt(t0)                               t2 = t0
        t2 = rarely(less(9.0, x[i]), t1, t0)  ->    if less(9.0, x[i]):
        y[i] = t2                                       t1 = sqrt(t0)
                                                        t2 = t1
                                                    y[i] = t2

`rarely` is a `where` whose condition seldom holds. All that only its first choice needs moves into a branch,
which a vector loop takes when the condition holds in any lane.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from ..ir.code import Caps
from ..ir.expr import Apply, Expr, Gather, Index, Load, Local, Variable
from ..ir.loops import Define, If, Kernel, Stmt, Update, walk_statements
from ..ir.ops import OPS
from ..ir.walk import expressions, kept, rewrite_bodies, walk

__all__ = ["rare"]

RARELY = OPS["rarely"]


def rare(kernel: Kernel, caps: Caps) -> Kernel:
    """Every `rarely` whose first choice needs work made a branch."""
    everywhere = list(walk_statements(kernel.body))
    reads = Counter(variable for stmt in everywhere for variable in _read(expressions(stmt)))
    changing = frozenset(stmt.variable for stmt in everywhere if isinstance(stmt, Update))
    body = _Mover(reads, changing).body(kernel.body)
    return kernel if body is kernel.body else replace(kernel, body=body)


def _read(exprs: tuple[Expr, ...]) -> Iterator[Variable]:
    return (node.variable for expr in exprs for node in walk(expr) if isinstance(node, Local))


class _Mover:
    """`reads` counts the places that read each local of the kernel."""

    def __init__(self, reads: Counter[Variable], changing: frozenset[Variable]) -> None:
        self.reads = reads
        self.changing = changing

    def body(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """From the end: what moves stands before the choice that needs it, and may hold choices itself."""
        remaining, done = list(body), list[Stmt]()
        while remaining:
            stmt = remaining.pop()
            match stmt:
                case Define(variable=variable, value=Apply(op=op, args=(condition, then, otherwise))) if (
                    op is RARELY and (moved := self._moved(remaining, then))
                ):
                    branch = self.body((*moved, Update(variable, then)))
                    done += [If(condition, branch), Define(variable, otherwise)]
                case _:
                    done.append(rewrite_bodies(stmt, self.body))
        return kept(body, done[::-1])

    def _moved(self, before: list[Stmt], then: Expr) -> list[Stmt]:
        """The definitions that only `then` needs, taken out of the statements before it. What reads memory or
        a local that changes stays where it is."""
        needed = Counter(_read((then,)))
        moved: list[Stmt] = []
        for position in reversed(range(len(before))):
            stmt = before[position]
            if isinstance(stmt, Define) and needed[stmt.variable] == self.reads[stmt.variable] > 0:
                read = list(_read((stmt.value,)))
                if _is_pure(stmt.value) and self.changing.isdisjoint(read):
                    needed.update(read)
                    moved.append(before.pop(position))
        return moved[::-1]


def _is_pure(value: Expr) -> bool:
    """Whether a value follows from locals alone."""
    return not any(isinstance(node, (Load, Gather, Index)) for node in walk(value))
