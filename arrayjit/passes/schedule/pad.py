"""pad: grids that steps go through again and again lie, meanwhile, so that their rows begin on boundaries.

    for k in sequential(0, 100):                    for i in parallel(0, 300):
        for i in parallel(0, 298):                      for j in parallel(0, 300):
            for j in parallel(0, 298):                      a_padded[i, j + 7] = a[i, j]
                b[i + 1, j + 1] = add(                  ... the same for b
                    a[i + 1, j], a[i + 1, j + 2])   ->  for k in sequential(0, 100):
        for i in parallel(0, 298):                          for i in parallel(0, 298):
            for j in parallel(0, 298):                          for j in parallel(0, 298):
                a[i + 1, j + 1] = b[i + 1, j + 1]                   b_padded[i + 1, j + 8] = add(
                                                                        a_padded[i + 1, j + 7],
                                                                        a_padded[i + 1, j + 9])
                                                            ...
                                                        for i in parallel(0, 300):
                                                            for j in parallel(0, 300):
                                                                a[i, j] = a_padded[i, j + 7]
                                                        ... the same for b

NumPy's large arrays begin 16 bytes behind a line, a row of 300 numbers ends within one, and the inside of a
grid starts at its second column. Of vectors that fill lines nearly each one then lies across two, which takes
two loads, whatever cache holds them. So a copy of each grid has rows of whole lines, with the column that
most loops start at on a boundary. On Zen 5, 50 steps of grids of up to 300 x 350 take 0.65 to 0.85 of the
time, and those that only the last cache holds 0.8 to 1. Where the number of steps is known only at run time,
a branch leaves few of them to the grids as they are. Sums keep the grids that they go through, since rows
that are apart would be added up in another order.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise, product
from typing import TypeGuard

from ...frozen import frozen
from ...ir.code import Caps
from ...ir.conditions import compare
from ...ir.dtype import I64
from ...ir.expr import Apply, Const, Index, Load
from ...ir.index import Affine
from ...ir.loops import (
    Bind,
    Comment,
    Define,
    For,
    If,
    Kernel,
    LoopKind,
    Place,
    PlaceKind,
    Stmt,
    Store,
    Update,
    walk_statements,
)
from ...ir.ops import OPS
from ...ir.tensor import Tensor
from ...ir.walk import rewrite_cells
from ..analysis.access import given
from ..analysis.accumulations import is_rounded
from ..analysis.copies import copy_body, each_cell
from ..analysis.strides import affine_accesses
from ..analysis.uses import counts, uses_of

__all__ = ["pad"]

STEPS, MANY = 16, 32
"""So many steps make up for the copies there and back: usually, and where these go through the last cache."""

FAR = 2
"""What takes more than so many times the second cache goes through the last one."""

PAGE, NEAR = 4096, 512
"""Addresses that differ by whole pages, or by so few bytes more, are taken for one another for a while."""

LINES = 4
"""A row that has fewer lines is over before it matters where they begin."""

SHARE = 2
"""The grids take one part in so many of the last cache at most: beyond it, memory is what loops wait for."""

STORED = 16
"""A column at which stores start counts as so many at which loads do."""

PLAIN = (For, If, Store, Define, Update, Bind, Comment)
"""What may be in a step. Exceptions would leave the loop before results are copied back."""

RAW_DIVIDE = OPS["raw_divide"]


def pad(kernel: Kernel, caps: Caps) -> Kernel:
    """The kernel with such grids in copies."""
    if not caps.pads:
        return kernel
    arrays = given(kernel.params)
    placement: dict[Tensor, Place] = {}
    notes: list[str] = []
    body: list[Stmt] = []
    for at, stmt in enumerate(kernel.body):
        copies = _copies(stmt, caps, kernel) if _has_steps(stmt, kernel.body[:at]) else {}
        if not (copies and isinstance(stmt, For)):
            body.append(stmt)
            continue
        before, after = (counts(part) for part in (kernel.body[:at], kernel.body[at + 1 :]))
        filled = [tensor for tensor in copies if tensor in arrays or before[tensor]]
        taken = [tensor for tensor in copies if tensor in arrays or after[tensor]]
        least = _least(sum(tensor.nbytes for tensor in copies), caps)
        body += _padded(stmt, copies, filled, taken, least)
        place = Place(PlaceKind.ARENA, f"rows begin on boundaries in every {stmt.symbol.hint}")
        placement |= {copy.tensor: place for copy in copies.values()}
        names = ", ".join(tensor.label for tensor in copies)
        notes.append(f"pad: {names}: in copies, rows begin on boundaries for all of loop {stmt.symbol.hint}")
    return kernel.with_body(tuple(body), notes, placement) if placement else kernel


@frozen
class _Copy:
    """Memory for a grid, whose first column is so many cells behind a boundary."""

    tensor: Tensor
    behind: int

    @staticmethod
    def of(tensor: Tensor, start: int, line: int) -> _Copy:
        """With the column `start` on a boundary of so many bytes. Where the next grid would begin as far
        into a page, so that a store may look like what a load waits for, there is a row more."""
        first, *rows, columns = tensor.shape
        cells = line // tensor.dtype.itemsize
        behind = -start % cells
        whole = -(-(columns.constant + behind) // cells) * cells
        row = math.prod(extent.constant for extent in rows) * whole * tensor.dtype.itemsize
        first += int(first.constant * row % PAGE < NEAR)
        return _Copy(Tensor(f"{tensor.label}_padded", (first, *rows, Affine.of(whole)), tensor.dtype), behind)

    def cell(self, index: tuple[Affine, ...]) -> tuple[Affine, ...]:
        return *index[:-1], index[-1] + self.behind


def _least(nbytes: int, caps: Caps) -> int:
    """How many steps make up for copies of so many bytes."""
    return MANY if nbytes > FAR * caps.l2_bytes else STEPS


def _has_steps(stmt: Stmt, before: tuple[Stmt, ...]) -> bool:
    """Is it a loop over steps, with many of them as far as is known? What two steps at a time leave over is
    none."""
    if not isinstance(stmt, For) or stmt.kind is not LoopKind.SEQUENTIAL or stmt.step != 1:
        return False
    parts = {
        bind.symbol
        for bind in before
        if isinstance(bind, Bind) and isinstance(bind.value, Apply) and bind.value.op is RAW_DIVIDE
    }
    return parts.isdisjoint(stmt.lo.symbols) and (stmt.trips is None or stmt.trips >= STEPS)


def _copies(steps: Stmt, caps: Caps, kernel: Kernel) -> dict[Tensor, _Copy]:
    """The grids that are worth it, each with its copy."""
    inside = tuple(walk_statements((steps,)))
    if not all(isinstance(stmt, PLAIN) for stmt in inside):
        return {}
    uses, summed, arrays = uses_of((steps,)), _summed(steps), given(kernel.params)
    starts = {
        tensor: start
        for tensor, start in _starts(inside, caps.line_bytes).items()
        if _is_grid(tensor, caps)
        and (tensor in arrays or _is_in_arena(tensor, kernel))
        and tensor not in summed
        and all(use.tensor is tensor and _is_all_there(use.index, steps) for use in uses[tensor])
    }
    nbytes = sum(tensor.nbytes for tensor in starts)
    if not caps.l1_bytes < nbytes <= caps.l3_bytes // SHARE:
        return {}
    if isinstance(steps, For) and steps.trips is not None and steps.trips < _least(nbytes, caps):
        return {}
    if all(tensor not in arrays and _has_whole_lines(tensor, caps) for tensor in starts):
        return {}
    return {tensor: _Copy.of(tensor, start, caps.line_bytes) for tensor, start in starts.items()}


def _is_all_there(index: tuple[Affine, ...] | None, steps: Stmt) -> bool:
    """Does each step go through the cells, not through those of a row of its own? Rows that are read once or
    twice do not make up for copies."""
    symbol = steps.symbol if isinstance(steps, For) else None
    return index is not None and not any(symbol in position.symbols for position in index)


def _starts(inside: tuple[Stmt, ...], line: int) -> dict[Tensor, int]:
    """The column of each grid that most stencils start at, if they do not start elsewhere to store; and of
    arrays that other loops go along beside these, so that they lie alike."""
    found: dict[Tensor, Counter[int]] = {}
    rows = [stmt for stmt in inside if _is_along_row(stmt)]
    for loop in rows:
        for tensor, start, stores in _along(loop) if _is_stencil(loop, line) else ():
            found.setdefault(tensor, Counter())[start] += STORED if stores else 1
    known = {tensor: columns.most_common(1)[0][0] for tensor, columns in found.items()}
    others: dict[Tensor, Counter[int]] = {}
    for loop in rows:
        cells = [(tensor, start) for tensor, start, _ in _along(loop)]
        for (tensor, start), (other, beside) in product(cells, cells):
            if tensor not in known and other in known and tensor.dtype.itemsize == other.dtype.itemsize:
                others.setdefault(tensor, Counter())[known[other] + start - beside] += 1
    return {**known, **{tensor: columns.most_common(1)[0][0] for tensor, columns in others.items()}}


def _summed(steps: Stmt) -> set[Tensor]:
    """What sums of floats go through."""
    loops = (stmt for stmt in walk_statements((steps,)) if isinstance(stmt, For) and stmt is not steps)
    sums = [loop for loop in loops if any(map(is_rounded, walk_statements(loop.body)))]
    return {tensor.storage for tensor, _, _ in affine_accesses(tuple(sums))}


def _is_along_row(stmt: Stmt) -> TypeGuard[For]:
    """Is it a loop that computes cells by themselves?"""
    if not isinstance(stmt, For) or stmt.kind is not LoopKind.PARALLEL or stmt.step != 1:
        return False
    return all(isinstance(inner, (Define, Update, Store)) for inner in stmt.body)


def _is_stencil(loop: For, line: int) -> bool:
    """Are there neighbours in a row, fewer than so many bytes apart, among what a cell is computed from?"""
    starts: dict[Tensor, set[int]] = {}
    for tensor, start, _ in _along(loop):
        starts.setdefault(tensor, set()).add(start)
    return any(
        (after - before) * tensor.dtype.itemsize < line
        for tensor, found in starts.items()
        for before, after in pairwise(sorted(found))
    )


def _along(loop: For) -> Iterator[tuple[Tensor, int, bool]]:
    """The arrays that a loop goes along, from which column on, and whether it stores there."""
    for tensor, index, stores in affine_accesses(loop.body):
        if index and loop.lo.is_constant and index[-1] - index[-1].offset == Affine.of(loop.symbol):
            yield tensor, index[-1].offset + loop.lo.constant, stores


def _is_grid(tensor: Tensor, caps: Caps) -> bool:
    """Does it have rows that are long enough?"""
    if tensor.base is not None or tensor.strides is not None or not tensor.has_fixed_shape:
        return False
    size = tensor.dtype.itemsize
    is_long = tensor.rank > 1 and tensor.shape[-1].constant * size >= LINES * caps.line_bytes
    return is_long and caps.line_bytes % size == 0


def _is_in_arena(tensor: Tensor, kernel: Kernel) -> bool:
    """Is it a temporary that is no thread's own?"""
    place = kernel.placement.get(tensor)
    return place is not None and place.kind is PlaceKind.ARENA


def _has_whole_lines(tensor: Tensor, caps: Caps) -> bool:
    return tensor.shape[-1].constant * tensor.dtype.itemsize % caps.line_bytes == 0


def _padded(
    steps: For,
    copies: Mapping[Tensor, _Copy],
    filled: Sequence[Tensor],
    taken: Sequence[Tensor],
    least: int,
) -> Iterator[Stmt]:
    """The steps on the copies; where there may be fewer than the least, in one branch of two."""

    def in_copies(tensor: Tensor, index: tuple[Affine, ...]) -> tuple[Tensor, tuple[Affine, ...]]:
        copy = copies.get(tensor)
        return (tensor, index) if copy is None else (copy.tensor, copy.cell(index))

    written = {stmt.tensor for stmt in walk_statements(steps.body) if isinstance(stmt, Store)}
    body = (
        *(_copying(tensor, copies[tensor], there=True) for tensor in filled),
        *rewrite_cells((steps,), in_copies),
        *(_copying(tensor, copies[tensor], there=False) for tensor in taken if tensor in written),
    )
    if steps.trips is not None:
        yield from body
        return
    many = compare("less", Const(least - 1, I64), Index(steps.hi - steps.lo))
    yield If(many, body, copy_body((steps,), {}, {}))


def _copying(tensor: Tensor, copy: _Copy, there: bool) -> Stmt:
    """The loops that copy a grid, or copy it back."""

    def copied(index: tuple[Affine, ...]) -> Stmt:
        cell = copy.cell(index)
        if there:
            return Store(copy.tensor, cell, Load(tensor, index))
        return Store(tensor, index, Load(copy.tensor, cell))

    return each_cell(tensor, copied)
