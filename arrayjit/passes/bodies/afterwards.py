"""afterwards: exceptions are noted while a loop runs, and raised by running it again.

    for i in sequential(0, 1000):                   fails = False
        t = sqrt(x[i])                              for i in parallel(0, 1000):
        raise_(isnan(t), ...)              ->           t = sqrt(x[i])
        y[i] = t                                        fails = reduce(logical_or, fails, isnan(t))
                                                        y[i] = t
                                                    if seldom(fails):
                                                        for i in sequential(0, 1000):
                                                            t = sqrt(x[i])
                                                            raise_(isnan(t), ...)
                                                            y[i] = t

Iterations that need nothing else of one another may then go in vectors and in any order. Those after an
exception run as well: the loop must write to nothing that the caller sees then, and divide no integers by
what may be zero, and all memory that it finds must be within its arrays, by the symbols of loops alone,
whatever the exceptions are about. What these depend on it does not write, so that the second run meets the
same exception first; nor what it reads at all, if the second run may end without one (`watched`).
(Speculation with recovery: Cytron, Ferrante, Sarkar, Compact representations for control dependence, 1990.)
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import replace

from ...frozen import frozen
from ...ir.dtype import BOOL
from ...ir.expr import Apply, Const, Expr, Gather, Load, Local, Variable
from ...ir.loops import (
    Comment,
    Define,
    For,
    If,
    LoopKind,
    Raise,
    Stmt,
    Store,
    Update,
    walk_statements,
    written_in,
)
from ...ir.ops import OPS
from ...ir.tensor import Tensor
from ...ir.walk import kept, nodes_in, rewrite_bodies, walk
from ..analysis.access import reads, visible
from ..analysis.carriers import carriers, upwards
from ..analysis.copies import copy_body
from ..analysis.inside import exists
from ..analysis.loopwise import Site, loopwise
from ..analysis.repeats import weight
from ..analysis.strides import affine_accesses
from ..analysis.trips import enter
from .watched import watched

__all__ = ["afterwards"]

LONG = 64
"""Operations in a body beyond which a second copy takes too long to compile."""

FEW = 16
"""So few iterations are not worth a second copy."""

OR = OPS["logical_or"]
PLAIN = (Comment, Define, For, Raise, Store, Update)
DIVISIONS = {OPS[name] for name in ("floor_divide", "remainder", "fmod", "raw_divide", "raw_remainder")}


@loopwise
def afterwards(loop: For, site: Site) -> tuple[Stmt, ...] | None:
    """Every loop with its exceptions after it, if its iterations then need nothing of one another, before a
    second one."""
    if loop.kind is not LoopKind.SEQUENTIAL or not _is_worth_it(loop):
        return None
    ranges = site.ranges
    for inner in walk_statements(loop.body):
        if isinstance(inner, For):
            enter(inner, ranges)
    sums = watched(loop, ranges)
    once = loop if sums is None else sums.loop
    seen = visible(site.kernel.params)
    if not _may_go_on(once, seen, _asked(loop) if sums is None else _read(loop)):
        return None
    if not all(exists(tensor, index, ranges) for tensor, index, _ in affine_accesses(once.body)):
        return None
    fails = Variable("fails", BOOL)
    bad = Variable("bad", BOOL)
    body = (Define(bad, Const(False, BOOL)), *_Noted(bad).body(once.body), Update(fails, Local(bad), OR))
    quick = replace(once, body=body)
    totals = frozenset[Variable]() if sums is None else sums.totals
    if carriers(quick, ranges, totals | {fails}) != frozenset():
        return None
    again = copy_body((loop,), {}, {})
    if sums is None:
        return Define(fails, Const(False, BOOL)), upwards(quick), If(Local(fails), again, seldom=True)
    choice = If(Local(fails), again, sums.after, seldom=True)
    return *sums.before, Define(fails, sums.doubt), upwards(quick), choice


def _is_worth_it(loop: For) -> bool:
    """Whether a loop may raise exceptions, and is one of which a second copy may be made."""
    inside = list(walk_statements((loop,)))
    if not all(isinstance(stmt, PLAIN) for stmt in inside) or not any(isinstance(s, Raise) for s in inside):
        return False
    return (loop.trips is None or loop.trips > FEW) and weight(loop.body) <= LONG


def _read(loop: For) -> set[Tensor]:
    """The memory that a loop reads."""
    return {tensor.storage for stmt in walk_statements((loop,)) for tensor, _ in reads(stmt)}


def _asked(loop: For) -> set[Tensor]:
    """The memory that exceptions depend on."""
    values: dict[Variable, list[Expr]] = {}
    pending: list[Expr] = []
    for stmt in walk_statements((loop,)):
        if isinstance(stmt, Raise):
            pending.append(stmt.condition)
        elif isinstance(stmt, (Define, Update)):
            values.setdefault(stmt.variable, []).append(stmt.value)
    found: set[Tensor] = set()
    while pending:
        for node in walk(pending.pop()):
            if isinstance(node, (Load, Gather)):
                found.add(node.tensor.storage)
            elif isinstance(node, Local):
                pending += values.pop(node.variable, ())
    return found


def _may_go_on(loop: For, seen: Container[Tensor], fixed: Container[Tensor]) -> bool:
    """May iterations run that come after an exception, and the loop once more, if it changes nothing of what
    is to be `fixed`?"""
    inside = list(walk_statements((loop,)))
    stored = written_in(inside)
    return (
        not any(storage in fixed for storage in stored)
        and not any(storage in seen for storage in stored)
        and all(map(_is_harmless, nodes_in(inside)))
    )


def _is_harmless(node: Expr) -> bool:
    """Whether it may be computed of anything."""
    match node:
        case Gather():
            return False
        case Apply(op=op, args=(_, divisor), dtype=dtype) if op in DIVISIONS and not dtype.is_float:
            return isinstance(divisor, Const) and divisor.value > 0
        case _:
            return True


@frozen
class _Noted:
    """Bodies in which exceptions are noted in a local instead."""

    bad: Variable

    def body(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        return kept(body, [self.statement(stmt) for stmt in body])

    def statement(self, stmt: Stmt) -> Stmt:
        if isinstance(stmt, Raise):
            return Update(self.bad, stmt.condition, OR)
        return rewrite_bodies(stmt, self.body)
