"""Loops that accumulate: along an axis, where each step applies an op to the cell before it and another
value, or into locals."""

from __future__ import annotations

from ...errors import Location
from ...frozen import frozen
from ...ir.expr import Apply, Const, Expr, Load, neutral
from ...ir.index import Affine, Symbol
from ...ir.loops import For, LoopKind, Stmt, Store, Update
from ...ir.ops import Op
from ...ir.tensor import Tensor
from ...ir.walk import storages_read, substitute

__all__ = ["EXACT", "SHORT", "Accumulation", "accumulation", "is_rounded", "sums_short_rows"]

EXACT = (
    *("maximum", "minimum", "fmax", "fmin"),
    *("logical_and", "logical_or", "logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor"),
)
"""The ops that give floats the same bits in any order."""

SHORT = 32
"""The most columns of short rows."""


@frozen
class Accumulation:
    """`into[index] = accum(the one before, value)` for every `along`; `is_free` where steps may be grouped
    otherwise: that has the same bits, or the program says that it may have others."""

    along: Symbol
    into: Tensor
    index: tuple[Affine, ...]
    value: Expr
    accum: Op
    is_free: bool
    loc: Location | None

    @property
    def identity(self) -> Const:
        """What changes no value that it is combined with."""
        return neutral(self.accum, self.into.dtype)

    def value_at(self, place: Affine) -> Expr:
        """What the step of a place adds."""
        return substitute(self.value, {self.along: place})

    def cell(self, place: Affine) -> tuple[Affine, ...]:
        """Where the step of a place puts what it has."""
        return tuple(position.substitute({self.along: place}) for position in self.index)

    def combined(self, before: Expr, value: Expr) -> Expr:
        """Two values as one, of which the first comes first."""
        return Apply(self.accum, (before, value), self.into.dtype)


def accumulation(loop: For) -> Accumulation | None:
    """What a loop does that goes one by one and accumulates, if that is all it does."""
    if loop.kind is not LoopKind.SEQUENTIAL or loop.step != 1 or len(loop.body) != 1:
        return None
    (store,) = loop.body
    if not isinstance(store, Store):
        return None
    tensor, along = store.tensor, loop.symbol
    before = Load(tensor, tuple(position.substitute({along: along - 1}) for position in store.index))
    match store.value:
        case Apply(op=op, args=(first, value)) if first == before and before.index != store.index:
            reads_itself = tensor.storage in storages_read((value,))
        case _:
            return None
    if reads_itself or not op.associative or op.identity is None or tensor.dtype.is_complex:
        return None
    is_free = not tensor.dtype.is_inexact or op.name in EXACT or store.regroup
    return Accumulation(along, tensor, store.index, value, op, is_free, store.loc)


def is_rounded(stmt: Stmt) -> bool:
    """Does a statement accumulate floats into a local by what depends on their order?"""
    if not isinstance(stmt, Update) or stmt.accum is None:
        return False
    return stmt.variable.dtype.is_inexact and stmt.accum.name not in EXACT


def sums_short_rows(rows: For) -> bool:
    """Does a loop over rows add up few columns of each? They may go a lane each, in order: whether they do
    must not depend on what a cache holds, for which rows are gone through otherwise."""
    loops = (stmt for stmt in rows.body if isinstance(stmt, For))
    return any((loop.trips or SHORT + 1) <= SHORT and any(map(is_rounded, loop.body)) for loop in loops)
