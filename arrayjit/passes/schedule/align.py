"""align: what steps read again and again is first copied to where vectors begin on boundaries.

    for t in sequential(0, 1000):                   for i in parallel(0, 192):
        for i in parallel(0, 192):                      for j in parallel(0, 48):
            p = 0.0                                         u_aligned[i, j] = u[i, j]
            for j in vector(0, 48, lanes=8):    ->      for t in sequential(0, 1000):
                p = fma(u[i, j], h[j], p)                   for i in parallel(0, 192):
            g[i] = p                                            p = 0.0
        ...                                                     for j in vector(0, 48, lanes=8):
                                                                    p = fma(u_aligned[i, j], h[j], p)
                                                                g[i] = p
                                                            ...

NumPy's arrays begin 16 bytes behind a boundary of lines, more often than not. Vectors that fill a line then
take two lines each, and loops that wait for the caches wait twice: a recurrent network of 48 numbers takes
0.68 of the time where its weights, 72 kB, are copied. Rows of the copy begin on boundaries too.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from dataclasses import replace

from ...ir.code import Caps
from ...ir.expr import Load
from ...ir.index import Affine, symbols_of
from ...ir.loops import (
    Bind,
    For,
    Kernel,
    LoopKind,
    Place,
    PlaceKind,
    Stmt,
    Store,
    walk_statements,
    written_in,
)
from ...ir.tensor import Tensor
from ...ir.walk import rewrite_cells
from ..analysis.access import given
from ..analysis.copies import each_cell
from ..analysis.strides import affine_accesses, stride

__all__ = ["align"]

REUSE = 16
"""So many steps make up for a copy."""

LEAST = 2048
"""Bytes below which nobody waits for the caches."""

SHARE = 4
"""A copy takes one part in so many of the second cache at most: beyond it, memory is what loops wait for."""


def align(kernel: Kernel, caps: Caps) -> Kernel:
    """Every such array in a copy."""
    arrays = given(kernel.params)
    placement: dict[Tensor, Place] = {}
    body: list[Stmt] = []
    for stmt in kernel.body:
        if isinstance(stmt, For) and stmt.kind is LoopKind.SEQUENTIAL and (stmt.trips or 0) >= REUSE:
            again = _read_again(stmt, arrays, caps)
            copies = {tensor: _copy_of(tensor, caps.line_bytes) for tensor in again}
            for tensor, copy in copies.items():
                placement[copy] = Place(
                    PlaceKind.ARENA, f"{tensor.label} is read in every {stmt.symbol.hint}"
                )
                body.append(_copying(tensor, copy))
            stmt = _reading(stmt, copies)
        body.append(stmt)
    notes = tuple(f"align: {copy.label}: {place.reason}" for copy, place in placement.items())
    return kernel.with_body(tuple(body), notes, placement) if placement else kernel


def _read_again(steps: For, arrays: Container[Tensor], caps: Caps) -> Iterator[Tensor]:
    """Those of the arrays that are matrices which every step sums up in the same places, not in some that it
    computes, vectors at a time, and that none writes."""
    room = caps.l2_bytes // SHARE
    inside = list(walk_statements((steps,)))
    others = written_in(inside)
    own_numbers = {steps.symbol, *(stmt.symbol for stmt in inside if isinstance(stmt, Bind))}
    summed: dict[Tensor, None] = {}
    for loop in (stmt for stmt in inside if isinstance(stmt, For)):
        own = tuple(stmt for stmt in loop.body if not isinstance(stmt, For))
        sums = loop.kind is LoopKind.VECTOR and not any(isinstance(stmt, Store) for stmt in own)
        for tensor, index, _ in affine_accesses(own):
            if not own_numbers.isdisjoint(symbols_of(index)) or tensor not in arrays:
                others.add(tensor.storage)
            elif sums and tensor.rank > 1 and stride(tensor, index, loop.symbol) == 1:
                summed[tensor] = None
    for tensor in summed:
        is_known = tensor.strides is None and tensor.has_fixed_shape
        if is_known and tensor not in others and LEAST <= tensor.nbytes <= room:
            room -= tensor.nbytes
            yield tensor


def _copy_of(tensor: Tensor, line: int) -> Tensor:
    """Memory for an array whose rows begin on boundaries."""
    *rows, columns = tensor.shape
    cells = max(1, line // tensor.dtype.itemsize)
    whole = Affine.of(-(-columns.constant // cells) * cells)
    return Tensor(f"{tensor.label}_aligned", (*rows, whole), tensor.dtype)


def _copying(tensor: Tensor, copy: Tensor) -> Stmt:
    """The loops that copy an array."""
    return each_cell(tensor, lambda cell: Store(copy, cell, Load(tensor, cell)))


def _reading(steps: For, copies: Mapping[Tensor, Tensor]) -> For:
    """The steps with the copies in place of the arrays."""
    cells = rewrite_cells(steps.body, lambda tensor, index: (copies.get(tensor, tensor), index))
    return replace(steps, body=cells)
