"""steady: what no step of a loop changes, and what steps are stopped at because of it, stands before them.

    for k in sequential(0, 50):                 t0 = multiply(h[()], h[()])
        t0 = multiply(h[()], h[()])             raise_(not isfinite(t0), ...)
        raise_(not isfinite(t0), ...)     ->    for k in sequential(0, 50):
        for i in parallel(0, 90):                   for i in parallel(0, 90):
            b[i] = multiply(t0, a[i])                   b[i] = multiply(t0, a[i])
        for i in parallel(0, 90):                   for i in parallel(0, 90):
            a[i] = b[i + 1]                             a[i] = b[i + 1]

Such steps are nests alone, which passes rearrange; those that may end with an exception they leave as they
are. An exception is raised before the first step if that would raise it before it changes anything that
outlives the kernel, and before any other one. A loop that may not run asks whether it does.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import replace

from ...ir.code import Caps
from ...ir.conditions import both, compare
from ...ir.expr import Expr, Gather, Index, Load, Local, Variable
from ...ir.index import Affine, Symbol
from ...ir.loops import (
    Bind,
    Comment,
    Define,
    Fill,
    For,
    If,
    Kernel,
    Raise,
    Stmt,
    Store,
    Update,
    walk_statements,
    written,
)  # fmt: skip
from ...ir.tensor import Tensor
from ...ir.walk import kept, rewrite_bodies, walk
from ..analysis.access import Range, exists
from ..analysis.trips import enter

__all__ = ["steady"]


def steady(kernel: Kernel, caps: Caps) -> Kernel:
    """Every loop without the definitions and the exceptions of its body that no iteration changes."""
    return kernel.with_body(_Walk(kernel.placement).body(kernel.body))


class _Walk:
    """`passing` are the tensors that do not outlive the kernel, `ranges` those of the loops so far."""

    def __init__(self, passing: Container[Tensor]) -> None:
        self.passing = passing
        self.ranges: dict[Symbol, Range] = {}

    def body(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        out: list[Stmt] = []
        for stmt in body:
            if isinstance(stmt, For):
                enter(stmt, self.ranges)
            new = rewrite_bodies(stmt, self.body)
            out.extend(self.parted(new) if isinstance(new, For) else (new,))
        return kept(body, out)

    def parted(self, loop: For) -> tuple[Stmt, ...]:
        """A loop after what no iteration changes."""
        changes, before, rest = _Changes(loop), list[Stmt](), list[Stmt]()
        comes_first = True
        for stmt in loop.body:
            match stmt:
                case Define(variable=variable, value=value) if self.is_kept(value, changes):
                    if variable in changes.updates:
                        rest.append(stmt)
                    else:
                        before.append(stmt)
                        changes.locals.discard(variable)
                case Raise(condition=condition) if comes_first and self.is_kept(condition, changes):
                    before.append(self.if_it_runs(loop, stmt))
                case _:
                    rest.append(stmt)
                    comes_first = comes_first and self.passes(stmt)
        return (*before, replace(loop, body=tuple(rest))) if before else (loop,)

    def is_kept(self, value: Expr, changes: _Changes) -> bool:
        """Is a value that of all iterations, and can it be computed if there are none?"""
        for node in walk(value):
            match node:
                case Local(variable=variable):
                    changed = variable in changes.locals
                case Index(value=position):
                    changed = not changes.symbols.isdisjoint(position.symbols)
                case Load(tensor=tensor, index=index):
                    own = any(not changes.symbols.isdisjoint(position.symbols) for position in index)
                    changed = own or tensor.storage in changes.stores
                    changed = changed or not exists(tensor, index, self.ranges)
                case Gather():
                    changed = True
                case _:
                    changed = False
            if changed:
                return False
        return True

    def if_it_runs(self, loop: For, stop: Raise) -> Raise:
        """The exception of a loop that may have no iterations."""
        span = (loop.hi - loop.lo).bounds(self.ranges)
        if span is not None and (span[0] > 0 if loop.step > 0 else span[1] < 0):
            return stop
        ends = Index(Affine.of(loop.lo)), Index(Affine.of(loop.hi))
        runs = compare("less" if loop.step > 0 else "greater", *ends)
        return replace(stop, condition=both(runs, stop.condition))

    def passes(self, stmt: Stmt) -> bool:
        """Does nobody see, after an exception, whether a statement was done?"""
        simple = (Bind, Comment, Define, Fill, For, If, Store, Update)
        return all(
            isinstance(inner, simple) and ((storage := written(inner)) is None or storage in self.passing)
            for inner in walk_statements((stmt,))
        )


class _Changes:
    """What iterations of a loop change: the symbols they bind, the `locals` they define or update, and what
    they store to."""

    def __init__(self, loop: For) -> None:
        inside = list(walk_statements(loop.body))
        inner = {stmt.symbol for stmt in inside if isinstance(stmt, (Bind, For))}
        self.symbols: frozenset[Symbol] = frozenset({loop.symbol, *inner})
        self.updates: set[Variable] = {stmt.variable for stmt in inside if isinstance(stmt, Update)}
        defined = {stmt.variable for stmt in inside if isinstance(stmt, Define)}
        self.locals: set[Variable] = defined | self.updates
        self.stores: set[Tensor | None] = {written(stmt) for stmt in inside}
