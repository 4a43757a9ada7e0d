"""reverse: an array that sums run through backwards, step after step, is kept in reverse as well.

    for k in sequential(1, 5000):                   for i in vector(0, 5000, lanes=8):
        s = 0.0                                         reversed[i] = x[4999 - i]
        for i in vector(0, k, lanes=32):            for k in sequential(1, 5000):
            s = fma(w[i], x[k - i - 1], s)    ->        s = 0.0
        x[k] = s                                        for i in vector(0, k, lanes=32):
                                                            s = fma(w[i], reversed[i - k + 5000], s)
                                                        t = s
                                                        x[k] = t
                                                        reversed[4999 - k] = t

A vector that is needed backwards has its lanes exchanged, which takes longer than all else that is done for
a term of such a sum. Recurrences over all that came before, as those of power series, read the past in that
way in every step, and add one cell to it. The terms, their lanes and their order stay as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...frozen import frozen
from ...ir.expr import Expr, Load, Local, Variable
from ...ir.index import Affine, Symbol
from ...ir.loops import (
    Define,
    For,
    If,
    LoopKind,
    Place,
    PlaceKind,
    Stmt,
    Store,
    While,
    walk_statements,
    written,
)
from ...ir.tensor import Tensor
from ...ir.walk import transform_statements
from ..analysis.access import Range, reads
from ..analysis.loopwise import Site, loopwise
from ..analysis.trips import about, enter
from ..analysis.uses import counts

__all__ = ["reverse"]

REUSE = 8
"""How often a cell must be read for a copy to pay."""

LANES = 8


@loopwise
def reverse(loop: For, site: Site) -> Sequence[Stmt] | None:
    """Every such loop after the copies that it reads instead of arrays. Not inside loops whose iterations are
    independent: they would have to share what is kept."""
    if loop.kind is not LoopKind.SEQUENTIAL:
        return (loop,)
    copies: list[Stmt] = []
    for tensor, terms in _backwards(loop, site.ranges).items():
        if _pays(tensor, terms):
            copy = _Copy(tensor, Tensor(f"{tensor.label}_reversed", tensor.shape, tensor.dtype))
            reason = f"sums read {tensor.label} backwards"
            site.placement[copy.reversed] = Place(PlaceKind.ARENA, reason)
            site.notes.append(f"reverse: {copy.reversed.label}: {reason}")
            copies.append(copy.made())
            loop = replace(loop, body=copy.used(loop.body))
    return (*copies, loop) if copies else None


@frozen
class _Copy:
    """An array and its cells in reverse."""

    tensor: Tensor
    reversed: Tensor

    def at(self, index: tuple[Affine, ...]) -> tuple[Affine, ...]:
        """Where the copy of a cell is, or the cell of a copy."""
        (extent,), (position,) = self.tensor.shape, index
        return (extent - 1 - position,)

    def made(self) -> For:
        symbol = Symbol("i")
        here = (Affine.of(symbol),)
        cell = Store(self.reversed, here, Load(self.tensor, self.at(here)))
        return For(symbol, Affine.of(0), self.tensor.shape[0], (cell,), LoopKind.VECTOR, lanes=LANES)

    def used(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """A step: its loops read the copy, and a cell that it stores is stored there as well."""
        out: list[Stmt] = []
        for stmt in body:
            match stmt:
                case For():
                    out += transform_statements((stmt,), self.read)
                case Store(tensor=tensor, index=index, value=value) if tensor is self.tensor:
                    both = Variable(tensor.label, tensor.dtype)
                    copied = Store(self.reversed, self.at(index), Local(both), stmt.loc)
                    out += (Define(both, value), replace(stmt, value=Local(both)), copied)
                case _:
                    out.append(stmt)
        return tuple(out)

    def read(self, node: Expr) -> Expr:
        match node:
            case Load(tensor=tensor, index=index) if tensor is self.tensor:
                return Load(self.reversed, self.at(index))
            case _:
                return node


def _pays(tensor: Tensor, terms: int) -> bool:
    return terms >= REUSE * tensor.size >= REUSE * LANES


def _backwards(steps: For, ranges: dict[Symbol, Range]) -> dict[Tensor, int]:
    """The arrays of one axis that loops of a step only read backwards, in sums, and of which a step itself
    stores single cells at most; with how many terms all steps read."""
    terms: dict[Tensor, int] = {}
    found: dict[Tensor, int] = {}
    for loop in walk_statements(steps.body):
        if not isinstance(loop, For):
            continue
        enter(loop, ranges)
        if loop.kind is LoopKind.VECTOR and not any(isinstance(stmt, (Store, For)) for stmt in loop.body):
            times = (about(steps, ranges) or 0) * (about(loop, ranges) or 0)
            for tensor, index in (cell for stmt in loop.body for cell in reads(stmt)):
                if index is not None and _is_row(tensor) and index[0].coefficient(loop.symbol) == -1:
                    found[tensor] = found.get(tensor, 0) + 1
                    terms[tensor] = terms.get(tensor, 0) + times
    if not found:
        return found
    inside = counts(stmt for stmt in steps.body if isinstance(stmt, (For, If, While)))
    others = {written(stmt) for stmt in steps.body if not _stores_a_cell(stmt)}
    return {
        tensor: terms[tensor]
        for tensor, count in found.items()
        if inside[tensor] == count and tensor not in others
    }


def _stores_a_cell(stmt: Stmt) -> bool:
    return isinstance(stmt, Store) and stmt.tensor.base is None and stmt.accum is None


def _is_row(tensor: Tensor) -> bool:
    """Is this an array of one axis that lies in memory as it is, and how long it is is known?"""
    return tensor.rank == 1 and tensor.has_fixed_shape and tensor.strides is None and tensor.base is None
