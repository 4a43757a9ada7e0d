"""Temporaries with another of their axes last in memory, and along which of them vectors go."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from ...ir.expr import Expr, Gather, Index, Load
from ...ir.index import Affine, Symbol
from ...ir.loops import Copy, Fill, For, If, Kernel, LoopKind, Multiply, Stmt, Store, While, touched
from ...ir.tensor import Tensor
from ...ir.walk import nodes_in, transform_statements

__all__ = ["Access", "accesses", "has_few_columns", "may_be_turned", "turned", "ways"]

NOWHERE = -1
"""Instead of an axis."""

MOST = 32
"""So many columns at most: of more, each row is a page of its own."""

ROOM = 1.25
"""Columns take so much more memory than their cells at most."""

VECTORS = (LoopKind.VECTOR, LoopKind.LOCKSTEP)

Access = tuple[Tensor, tuple[Affine, ...], tuple[For, ...]]
"""Cells that are read or written, with the loops around that; without an index what is used as a whole."""

Part = TypeVar("Part")


def may_be_turned(kernel: Kernel) -> list[Tensor]:
    """The temporaries of several axes."""
    return [tensor for tensor in kernel.placement if tensor.rank > 1 and tensor.has_fixed_shape]


def has_few_columns(tensor: Tensor, axis: int) -> bool:
    """Do cells along an axis lie apart, and have they few columns between them?"""
    return 1 < math.prod(extent.offset for extent in tensor.shape[axis + 1 :]) <= MOST


def accesses(body: Sequence[Stmt], loops: tuple[For, ...] = ()) -> Iterator[Access]:
    """All of a body. What a position is that the program computes is left out, as a 0."""
    for stmt in body:
        for node in nodes_in((stmt,)):
            match node:
                case Load(tensor=tensor, index=index):
                    yield tensor, index, loops
                case Gather(tensor=tensor, index=chosen):
                    known = (at.value if isinstance(at, Index) else Affine.of(0) for at in chosen)
                    yield tensor, tuple(known), loops
                case _:
                    pass
        match stmt:
            case Store(tensor=tensor, index=index):
                yield tensor, index, loops
            case Fill() | Copy() | Multiply():
                yield from ((tensor, (), loops) for tensor in touched(stmt))
            case For(body=inner):
                yield from accesses(inner, (*loops, stmt))
            case If(body=inner, orelse=other):
                yield from accesses((*inner, *other), loops)
            case While(test=test, body=inner):
                yield from accesses((*test, *inner), loops)
            case _:
                pass


def ways(kernel: Kernel, tensors: Iterable[Tensor]) -> dict[Tensor, set[int]]:
    """Along which axes vectors go through each of some temporaries; NOWHERE is among them if it has to lie as
    it does. Accesses of single cells do not count."""
    found: dict[Tensor, set[int]] = {tensor: set() for tensor in tensors}
    for tensor, index, loops in accesses(kernel.body) if found else ():
        if tensor.storage in found:
            lanes = next((loop.symbol for loop in reversed(loops) if loop.kind in VECTORS), None)
            found[tensor.storage].update(_way(tensor, index, lanes))
    return found


def _way(tensor: Tensor, index: tuple[Affine, ...], lanes: Symbol | None) -> tuple[int, ...]:
    """Along which axis an access goes, in such lanes, if it is not one of single cells."""
    axes = tuple(axis for axis, at in enumerate(index) if lanes is not None and at.coefficient(lanes))
    return (NOWHERE,) if tensor.base is not None or not index or len(axes) > 1 else axes


def turned(
    kernel: Kernel, axes: Mapping[Tensor, int], line: int, by: str
) -> tuple[Kernel, Mapping[Tensor, Tensor]]:
    """The kernel with temporaries of which these axes are the last, and these temporaries. A line of the
    caches has so many bytes; the pass `by` wants it so."""
    new = {tensor: _turned(tensor, axis, line) for tensor, axis in axes.items()}

    def read(node: Expr) -> Expr:
        match node:
            case Load(tensor=tensor, index=index) if tensor in axes:
                return Load(new[tensor], _last(index, axes[tensor]))
            case Gather(tensor=tensor, index=chosen) if tensor in axes:
                return Gather(new[tensor], _last(chosen, axes[tensor]))
            case _:
                return node

    def written(stmt: Stmt) -> Stmt:
        match stmt:
            case Store(tensor=tensor, index=index) if tensor in axes:
                return replace(stmt, tensor=new[tensor], index=_last(index, axes[tensor]))
            case _:
                return stmt

    body = transform_statements(kernel.body, read, written)
    placement = {new.get(tensor, tensor): place for tensor, place in kernel.placement.items()}
    notes = (f"{by}: {tensor.label} lies column by column" for tensor in axes)
    return replace(kernel, body=body, placement=placement, notes=(*kernel.notes, *notes)), new


def _turned(tensor: Tensor, axis: int, line: int) -> Tensor:
    """The temporary with such columns. Long ones begin on boundaries and are an odd number of lines apart:
    those that a vector loop goes along at once have places of their own in the first cache."""
    cells = max(1, line // tensor.dtype.itemsize)
    *others, extent = _last(tensor.shape, axis)
    apart = (-(-extent.offset // cells) | 1) * cells
    if apart <= extent.offset * ROOM:
        extent = Affine.of(apart)
    return Tensor(tensor.label, (*others, extent), tensor.dtype)


def _last(parts: Sequence[Part], axis: int) -> tuple[Part, ...]:
    """An index or a shape with an axis moved to the end."""
    return (*parts[:axis], *parts[axis + 1 :], parts[axis])
