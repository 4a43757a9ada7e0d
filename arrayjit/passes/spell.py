"""spell: short loops in order are written out by the target.

    for k in sequential(0, 8):                      for k in unrolled(0, 8):
        c = bitwise_xor(shifted(c), p)      ->          c = bitwise_xor(shifted(c), p)

Counting to eight takes as long as a light step does, and what a step leaves in a register is better known to
the one after it. Not in vectors: there a step is long already.
"""

from __future__ import annotations

from dataclasses import replace

from ..ir.code import Caps
from ..ir.loops import Comment, Define, For, Kernel, LoopKind, Stmt, Store, Update
from ..ir.walk import kept, rewrite_bodies
from .tails import weight

__all__ = ["spell"]

MOST = 8
"""The most iterations that are written out."""

HEAVY = 64
"""Operations that make too long a text."""


def spell(kernel: Kernel, caps: Caps) -> Kernel:
    """Every such loop unrolled."""
    body = _body(kernel.body)
    return kernel if body is kernel.body else replace(kernel, body=body)


def _body(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    return kept(body, [_spelled(stmt) for stmt in body])


def _spelled(stmt: Stmt) -> Stmt:
    if isinstance(stmt, For) and stmt.kind in (LoopKind.VECTOR, LoopKind.LOCKSTEP):
        return stmt
    stmt = rewrite_bodies(stmt, _body)
    if not isinstance(stmt, For) or stmt.kind is not LoopKind.SEQUENTIAL or stmt.trips is None:
        return stmt
    plain = all(isinstance(inner, (Comment, Define, Store, Update)) for inner in stmt.body)
    short = plain and stmt.trips <= MOST and stmt.trips * weight(stmt.body) <= HEAVY
    return replace(stmt, kind=LoopKind.UNROLLED) if short else stmt
