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
outlives the kernel, and before any other one. A loop that may not run asks whether it does. What a nest makes
in a temporary of its own, such as a matrix that each step scales, is made once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Sequence
from dataclasses import replace
from functools import cached_property

from ...ir.code import Caps
from ...ir.conditions import both, compare
from ...ir.expr import Expr, Index
from ...ir.index import Affine, Symbol
from ...ir.loops import (
    Bind,
    Comment,
    Define,
    Fill,
    For,
    If,
    Kernel,
    LoopKind,
    Raise,
    Stmt,
    Store,
    Update,
    walk_statements,
    written,
)
from ...ir.tensor import Tensor
from ...ir.walk import (
    expressions,
    kept,
    locals_updated,
    outer_updates,
    rewrite_bodies,
    walk,
)
from ..analysis.access import Range
from ..analysis.changes import Changes
from ..analysis.trips import enter
from ..analysis.uses import counts

__all__ = ["steady"]


def steady(kernel: Kernel, caps: Caps) -> Kernel:
    """Every loop without the definitions, exceptions and nests of its body that no iteration changes."""
    return kernel.with_body(_Walk(kernel).body(kernel.body))


class _Walk:
    """`passing` are the tensors that do not outlive the kernel, `ranges` those of the loops so far."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.passing: Container[Tensor] = kernel.placement
        self.ranges: dict[Symbol, Range] = {}

    @cached_property
    def touched(self) -> Counter[Tensor]:
        return counts(self.kernel.body)

    def body(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        out: list[Stmt] = []
        for stmt in body:
            if isinstance(stmt, For):
                enter(stmt, self.ranges)
            new = rewrite_bodies(stmt, self.body)
            out.extend(self.parted(new) if isinstance(new, For) else (new,))
        return kept(body, out)

    def parted(self, loop: For) -> tuple[Stmt, ...]:
        """A loop after what no iteration changes, if there is anything else in it."""
        changes, before, rest = Changes.by(loop), list[Stmt](), list[Stmt]()
        updated = locals_updated(walk_statements(loop.body))
        comes_first = True
        for stmt in loop.body:
            match stmt:
                case Define(variable=variable, value=value) if self.is_kept(value, changes):
                    if variable in updated:
                        rest.append(stmt)
                    else:
                        before.append(stmt)
                        changes.locals.discard(variable)
                case For() if self.makes_the_same(stmt, loop, rest, changes):
                    before.append(stmt)
                    changes.storages -= Changes.by(stmt).storages
                case Raise(condition=condition) if comes_first and self.is_kept(condition, changes):
                    before.append(self.if_it_runs(loop, stmt))
                case _:
                    rest.append(stmt)
                    comes_first = comes_first and self.passes(stmt)
        if not before:
            return (loop,)
        return (*before, replace(loop, body=tuple(rest))) if rest else tuple(before)

    def makes_the_same(self, nest: For, loop: For, earlier: Sequence[Stmt], changes: Changes) -> bool:
        """Does a nest make, in each iteration of a loop, the same temporaries of what is not changed there?
        Nobody else makes them, or reads them before it or outside of the loop."""
        if loop.kind is not LoopKind.SEQUENTIAL:
            return False
        own, inside = Changes.by(nest), walk_statements((nest,))
        if not all(isinstance(stmt, (Comment, Define, For, Store, Update)) for stmt in inside):
            return False
        if any(isinstance(stmt, Store) and stmt.accum is not None for stmt in inside):
            return False
        if not all(storage in self.passing for storage in own.storages) or outer_updates(inside):
            return False
        free = Changes(changes.symbols - own.symbols, changes.locals - own.locals, changes.storages)
        ends = (
            Index(Affine.of(end)) for stmt in inside if isinstance(stmt, For) for end in (stmt.lo, stmt.hi)
        )
        values = (value for stmt in inside for value in expressions(stmt))
        if not all(self.is_kept(value, free) for value in (*ends, *values)):
            return False
        within, so_far = counts(loop.body), counts(earlier)
        if any(within[storage] < self.touched[storage] or so_far[storage] for storage in own.storages):
            return False
        others = Changes.by(*(stmt for stmt in loop.body if stmt is not nest))
        return own.storages.isdisjoint(others.storages)

    def is_kept(self, value: Expr, changes: Changes) -> bool:
        """Is a value that of all iterations, and can it be computed if there are none?"""
        return all(changes.leave(node, self.ranges) for node in walk(value))

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
