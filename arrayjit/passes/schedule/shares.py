"""What independent iterations combine in a variable of outside, each iteration's share for itself, so that
threads may share the loop.

    for i in parallel(0, 300):                      for i in parallel(0, 300):
        ...                                             own = True
        ok = logical_and(ok, less(t, n))     ->         ...
                                                        own = logical_and(own, less(t, n))
                                                        ok_shares[i] = own
                                                    for j in sequential(0, 300):
                                                        ok = logical_and(ok, ok_shares[j])

That is for ops which give the same bits in any order: logic, extremes, integers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ...ir.expr import Load, Local, Variable, neutral
from ...ir.index import Affine, Symbol
from ...ir.loops import Define, For, LoopKind, Stmt, Store, Update, walk_statements
from ...ir.ops import Op
from ...ir.tensor import Tensor
from ...ir.walk import locals_read, outer_updates, rewrite_bodies
from ..analysis.accumulations import EXACT
from .partials import Parts

__all__ = ["shares_of"]


def shares_of(loop: For) -> Parts | None:
    """A loop in two, the making of shares and their combination; None if it is no such loop."""
    if loop.kind not in (LoopKind.PARALLEL, LoopKind.SEQUENTIAL) or loop.trips is None or loop.step != 1:
        return None
    ops = _combined(loop)
    if not ops:
        return None
    own = {variable: Variable(variable.hint, variable.dtype) for variable in ops}
    shape = (Affine.of(loop.trips),)
    shares = {variable: Tensor(f"{variable.hint}_shares", shape, variable.dtype) for variable in ops}
    at, number = (Affine.of(loop.symbol) - loop.lo,), Symbol("j")
    body = (
        *(Define(own[variable], neutral(op, variable.dtype)) for variable, op in ops.items()),
        *_renamed(loop.body, own),
        *(Store(shares[variable], at, Local(own[variable])) for variable in ops),
    )
    each = tuple(
        Update(variable, Load(shares[variable], (Affine.of(number),)), op) for variable, op in ops.items()
    )
    rest = For(number, Affine.of(0), shape[0], each)
    return Parts(replace(loop, body=body), rest, tuple(shares.values()))


def _combined(loop: For) -> Mapping[Variable, Op] | None:
    """The variables of outside that iterations combine something with, in any order, and by which op; None if
    they do more with one."""
    inside = list(walk_statements(loop.body))
    ops: dict[Variable, Op] = {}
    for update in outer_updates(inside):
        op = update.accum
        if op is None or not _is_free(op, update.variable) or ops.setdefault(update.variable, op) is not op:
            return None
    return ops if ops.keys().isdisjoint(locals_read(inside)) else None


def _is_free(op: Op, variable: Variable) -> bool:
    is_exact = not variable.dtype.is_inexact or op.name in EXACT
    return is_exact and op.associative and op.commutative and op.identity is not None


def _renamed(body: tuple[Stmt, ...], names: Mapping[Variable, Variable]) -> tuple[Stmt, ...]:
    """A body that updates other variables; it reads none of them."""
    return tuple(
        replace(stmt, variable=names.get(stmt.variable, stmt.variable))
        if isinstance(stmt, Update)
        else rewrite_bodies(stmt, lambda inner: _renamed(inner, names))
        for stmt in body
    )
