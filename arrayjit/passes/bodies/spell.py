"""spell: steps in order that are light are written out by the target.

    for k in sequential(0, 8):                      for k in unrolled(0, 8):
        c = bitwise_xor(shifted(c), p)                  c = bitwise_xor(shifted(c), p)
    for i in sequential(0, 1000):           ->      for i in sequential(0, 250):
        h[n[i]] = add(h[n[i]], 1)                       h[n[4*i]] = add(h[n[4*i]], 1)
                                                        h[n[4*i + 1]] = add(h[n[4*i + 1]], 1)
                                                        h[n[4*i + 2]] = add(h[n[4*i + 2]], 1)
                                                        h[n[4*i + 3]] = add(h[n[4*i + 3]], 1)

Counting takes as long as a light step does, and what a step leaves in a register is better known to the one
after it. A processor learns for each instruction that loads whether it has to wait for one that stores: of
several, few do. Short loops are written out whole, long ones by a few steps, where their number is the same
each time that they are come to. Not in vectors: there a step is long already.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...ir.code import Caps
from ...ir.index import SymbolKind
from ...ir.loops import Bind, Comment, Define, For, If, Kernel, LoopKind, Raise, Stmt, Store, Update
from ...ir.walk import kept, rewrite_bodies
from ..analysis.copies import in_steps
from ..analysis.repeats import weight

__all__ = ["spell"]

MOST = 8
"""The most iterations that are written out."""

STEPS = 4
"""So many steps of a long loop are written out."""

LONG = 32
"""The fewest iterations of a long loop."""

HEAVY = 64
"""Operations that make too long a text."""


def spell(kernel: Kernel, caps: Caps) -> Kernel:
    """Every such loop unrolled, or by a few steps at a time."""
    return kernel.with_body(_body(kernel.body))


def _body(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    return kept(body, [new for stmt in body for new in _spelled(stmt)])


def _spelled(stmt: Stmt) -> Sequence[Stmt]:
    if isinstance(stmt, For) and stmt.kind in (LoopKind.VECTOR, LoopKind.LOCKSTEP):
        return (stmt,)
    stmt = rewrite_bodies(stmt, _body)
    if not isinstance(stmt, For) or stmt.kind is not LoopKind.SEQUENTIAL:
        return (stmt,)
    if not all(map(_is_plain, stmt.body)):
        return (stmt,)
    steps = stmt.trips if stmt.trips is not None and stmt.trips <= MOST else STEPS
    if steps * weight(stmt.body) > HEAVY:
        return (stmt,)
    if steps == stmt.trips:
        return (replace(stmt, kind=LoopKind.UNROLLED),)
    return in_steps(stmt, (stmt.body,) * STEPS) if _is_long(stmt) else (stmt,)


def _is_plain(stmt: Stmt) -> bool:
    """Is it no loop, and no branch but one that is seldom taken, in which exceptions are raised?"""
    match stmt:
        case If(seldom=True, body=body, orelse=()):
            raises = any(isinstance(inner, Raise) for inner in body)
            return raises and all(isinstance(inner, (Define, Raise, Update)) for inner in body)
        case _:
            return isinstance(stmt, (Bind, Comment, Define, Raise, Store, Update))


def _is_long(loop: For) -> bool:
    """Is it certainly, or as often as sizes and arguments say?"""
    if abs(loop.step) != 1:
        return False
    if loop.trips is not None:
        return loop.trips >= LONG
    return all(symbol.kind is not SymbolKind.LOOP for symbol in loop.bound_by)
