"""upright: a temporary of which vectors take columns lies in memory column by column.

    t: temporary[f64, 2000, 3]                      t: temporary[f64, 3, 2008]
    for i in vector(0, 2000, lanes=8):              for i in vector(0, 2000, lanes=8):
        t[i, 0] = divide(x[i], z[i])                    t[0, i] = divide(x[i], z[i])
        t[i, 1] = divide(y[i], z[i])        ->          t[1, i] = divide(y[i], z[i])
        t[i, 2] = divide(1.0, z[i])                     t[2, i] = divide(1.0, z[i])
    for i in vector(0, 2000, lanes=8):              for i in vector(0, 2000, lanes=8):
        w[i] = add(t[i, 2], t.at(i, k[i]))              w[i] = add(t[2, i], t.at(k[i], i))

NumPy programs stack what belongs together along the last axis, and loops take the first, which is long, in
vectors. Each vector then is put together of cells that lie apart, or as many accesses as it has lanes. No one
else sees how a temporary lies. Long columns begin on boundaries and are an odd number of lines apart: those
that a vector loop goes along at once have places of their own in the first cache.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

from ...ir.code import Caps
from ...ir.expr import Expr, Gather, Index, Load
from ...ir.index import Affine, Symbol
from ...ir.loops import Copy, Fill, For, If, Kernel, LoopKind, Multiply, Stmt, Store, While
from ...ir.tensor import Tensor
from ...ir.walk import nodes_in, transform_statements

__all__ = ["upright"]

MOST = 32
"""So many columns at most: of more, each row is a page of its own."""

ROOM = 1.25
"""Columns take so much more memory than their cells at most."""

NOWHERE = -1
"""Instead of an axis."""

VECTORS = (LoopKind.VECTOR, LoopKind.LOCKSTEP)

Part = TypeVar("Part")


def upright(kernel: Kernel, caps: Caps) -> Kernel:
    """The kernel with such temporaries turned."""
    axes = _axes(kernel)
    if not axes:
        return kernel
    turned = {tensor: _turned(tensor, axis, caps.line_bytes) for tensor, axis in axes.items()}

    def read(node: Expr) -> Expr:
        match node:
            case Load(tensor=tensor, index=index) if tensor in axes:
                return Load(turned[tensor], _last(index, axes[tensor]))
            case Gather(tensor=tensor, index=chosen) if tensor in axes:
                return Gather(turned[tensor], _last(chosen, axes[tensor]))
            case _:
                return node

    def written(stmt: Stmt) -> Stmt:
        match stmt:
            case Store(tensor=tensor, index=index) if tensor in axes:
                return replace(stmt, tensor=turned[tensor], index=_last(index, axes[tensor]))
            case _:
                return stmt

    body = transform_statements(kernel.body, read, written)
    placement = {turned.get(tensor, tensor): place for tensor, place in kernel.placement.items()}
    notes = (f"upright: {tensor.label} lies column by column" for tensor in axes)
    return replace(kernel, body=body, placement=placement, notes=(*kernel.notes, *notes))


def _axes(kernel: Kernel) -> dict[Tensor, int]:
    """The temporaries that are to be turned, and the axis along which vectors go: it becomes the last."""
    ways: dict[Tensor, set[int]] = {t: set() for t in kernel.placement if t.rank > 1 and t.has_fixed_shape}
    if not ways:
        return {}
    for tensor, axis in _ways(kernel.body, None):
        if tensor.storage in ways:
            ways[tensor.storage].add(axis if tensor is tensor.storage else NOWHERE)
    found = {tensor: next(iter(axes)) for tensor, axes in ways.items() if len(axes) == 1}
    return {tensor: axis for tensor, axis in found.items() if axis >= 0 and _pays(tensor, axis)}


def _pays(tensor: Tensor, axis: int) -> bool:
    """Do cells along an axis lie apart, and have they few columns between them?"""
    return 1 < math.prod(extent.offset for extent in tensor.shape[axis + 1 :]) <= MOST


def _ways(body: tuple[Stmt, ...], lanes: Symbol | None) -> Iterator[tuple[Tensor, int]]:
    """Along which axis each access of a body goes in vectors; NOWHERE for what has to lie as it does. Those
    of single cells are left out."""
    for stmt in body:
        for node in nodes_in((stmt,)):
            match node:
                case Load(tensor=tensor, index=index):
                    yield from _way(tensor, index, lanes)
                case Gather(tensor=tensor, index=chosen):
                    known = (at.value if isinstance(at, Index) else Affine.of(0) for at in chosen)
                    yield from _way(tensor, tuple(known), lanes)
                case _:
                    pass
        match stmt:
            case Store(tensor=tensor, index=index):
                yield from _way(tensor, index, lanes)
            case Fill(tensor=tensor):
                yield tensor, NOWHERE
            case Copy(into=into, source=source):
                yield from ((tensor, NOWHERE) for tensor in (into, source))
            case Multiply(total=total, left=left, right=right):
                yield from ((tensor, NOWHERE) for tensor in (total, left, right))
            case For(symbol=symbol, body=inner, kind=kind):
                yield from _ways(inner, symbol if kind in VECTORS else lanes)
            case If(body=inner, orelse=other):
                yield from _ways((*inner, *other), lanes)
            case While(test=test, body=inner):
                yield from _ways((*test, *inner), lanes)
            case _:
                pass


def _way(tensor: Tensor, index: tuple[Affine, ...], lanes: Symbol | None) -> Iterator[tuple[Tensor, int]]:
    """The axis along which lanes reach the cells at an index, if they reach several."""
    axes = [axis for axis, at in enumerate(index) if lanes is not None and at.coefficient(lanes)]
    if axes or tensor.base is not None:
        yield tensor, axes[0] if len(axes) == 1 else NOWHERE


def _turned(tensor: Tensor, axis: int, line: int) -> Tensor:
    """The temporary with such columns; short ones stand close together."""
    cells = max(1, line // tensor.dtype.itemsize)
    *others, extent = _last(tensor.shape, axis)
    apart = (-(-extent.offset // cells) | 1) * cells
    if apart <= extent.offset * ROOM:
        extent = Affine.of(apart)
    return Tensor(tensor.label, (*others, extent), tensor.dtype)


def _last(parts: Sequence[Part], axis: int) -> tuple[Part, ...]:
    """An index or a shape with an axis moved to the end."""
    return (*parts[:axis], *parts[axis + 1 :], parts[axis])
