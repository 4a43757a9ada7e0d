"""unison: loops of the same steps that a vector takes one after the other become one.

    for j in vector(0, 1200, lanes=8):              for j in vector(0, 1200, lanes=8):
        m = 0.0                                         m = 0.0
        for k in sequential(0, 11):                     v = 0.0
            m = add(m, multiply(w[k], x[k, j]))         for k in sequential(0, 11):
        a[j] = m                            ->              m = add(m, multiply(w[k], x[k, j]))
        v = 0.0                                             v = add(v, multiply(w[k], y[k, j]))
        for k in sequential(0, 11):                     a[j] = m
            v = add(v, multiply(w[k], y[k, j]))         b[j] = v
        b[j] = v

The steps of a sum wait for one another, and while a processor waits it does not come to the next sum. What
both loops read is read once. A loop moves up past what has nothing to do with it, with the locals that it
starts from. Loops that keep enough vectors under way by themselves stay as they are, and so do more of them
than fit in registers: five sums of eleven terms each take 0.6 of the time, two 0.93. Every sum has its order
of before.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial

from ...frozen import frozen
from ...ir.code import Caps
from ...ir.expr import Variable
from ...ir.index import Affine, Symbol
from ...ir.loops import Bind, Define, For, Kernel, LoopKind, Stmt, Update
from ...ir.walk import kept, locals_defined, locals_updated, rewrite_bodies, substitute_statements
from ..analysis.access import Effects, Range, effects
from ..analysis.carriers import disturb
from ..analysis.trips import enter

__all__ = ["unison"]

PART = 4
"""Such a part of the registers may hold what the steps of a loop hand on."""


def unison(kernel: Kernel, caps: Caps) -> Kernel:
    """The kernel with loops of equal steps in one, as far as registers hold what they hand on."""
    ranges: dict[Symbol, Range] = {}
    notes: list[str] = []

    def inside(body: tuple[Stmt, ...], lanes: int) -> tuple[Stmt, ...]:
        out: list[Stmt] = []
        for stmt in body:
            within = lanes
            if isinstance(stmt, For):
                enter(stmt, ranges)
                within = stmt.lanes if stmt.kind is LoopKind.VECTOR else lanes
            out.append(rewrite_bodies(stmt, partial(inside, lanes=within)))
        may_join = lanes > 0 and sum(map(_is_plain, out)) > 1
        joined = _Joining(caps, lanes, ranges).joined(out) if may_join else out
        if len(joined) < len(out):
            notes.append(f"unison: {len(out) - len(joined)} loops go along with others over the same steps")
        return kept(body, joined)

    return kernel.with_body(inside(kernel.body, 0), notes)


@frozen
class _Joining:
    """What is known of a body: in how many lanes it goes, and the ranges of the loops around."""

    caps: Caps
    lanes: int
    ranges: dict[Symbol, Range]

    def joined(self, body: Iterable[Stmt]) -> list[Stmt]:
        """The statements, each loop in the last one before it that it may join."""
        out: list[Stmt] = []
        does: list[Effects] = []
        for stmt in body:
            own = effects((stmt,), self.ranges)
            found = self.place(out, does, stmt, own) if isinstance(stmt, For) and _is_plain(stmt) else None
            if found is None:
                out.append(stmt)
                does.append(own)
                continue
            place, needed = found
            for position in needed:
                out.insert(place, out.pop(position))
                does.insert(place, does.pop(position))
                place += 1
            out[place] = _in_one(out[place], stmt)
            does[place].add(own)
        return out

    def place(
        self, out: Sequence[Stmt], does: Sequence[Effects], loop: For, own: Effects
    ) -> tuple[int, Sequence[int]] | None:
        """Where the loop is that this one may join, and the definitions that move up there with it."""
        needs = Effects()
        needs.add(own)
        defined: list[int] = []
        for place in reversed(range(len(out))):
            match out[place]:
                case Define(variable=variable) if variable in needs.uses or variable in needs.updates:
                    needs.add(does[place])
                    defined.insert(0, place)
                    continue
                case Bind():
                    return None
                case _ if disturb(does[place], needs):
                    return None
                case For() as other if other.bounds == loop.bounds and _is_plain(other):
                    return (place, defined) if self.fit(other, loop) else None
                case _:
                    pass
        return None

    def fit(self, *loops: For) -> bool:
        """Do registers hold what the steps of these loops hand on, beside what a step needs?"""
        register = self.caps.vector_bytes
        sizes = (self.lanes * name.dtype.itemsize for name in _handed_on(*loops))
        return sum(max(1, size // register) for size in sizes) <= self.caps.registers // PART


def _in_one(first: Stmt, second: Stmt) -> For:
    """Two loops over the same steps as one."""
    assert isinstance(first, For)
    assert isinstance(second, For)
    more = substitute_statements(second.body, {second.symbol: Affine.of(first.symbol)})
    return replace(first, body=(*first.body, *more))


def _is_plain(stmt: Stmt) -> bool:
    """Is it a loop of steps in order that only compute, and hand something on?"""
    return (
        isinstance(stmt, For)
        and stmt.kind is LoopKind.SEQUENTIAL
        and all(isinstance(step, (Define, Update)) for step in stmt.body)
        and bool(_handed_on(stmt))
    )


def _handed_on(*loops: For) -> set[Variable]:
    """The variables that steps of these loops take from those before."""
    steps = [step for loop in loops for step in loop.body]
    return locals_updated(steps) - locals_defined(steps)
