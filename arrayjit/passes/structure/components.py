"""components: a few cells that an iteration makes for itself are temporaries of their own.

    for i in parallel(0, 400):                      for i in parallel(0, 400):
        s = 0.0                                         s = 0.0
        for j in parallel(0, 3):                        t0[i] = subtract(x[i, 0], c[0])
            t[i, j] = subtract(x[i, j], c[j])           s = reduce(add, s, multiply(t0[i], t0[i]))
            s = reduce(add, s, ...)         ->          t1[i] = subtract(x[i, 1], c[1])
        f = divide(1.0, s)                              ...
        for j in parallel(0, 3):                        f = divide(1.0, s)
            y[i, j] = multiply(f, t[i, j])              y[i, 0] = multiply(f, t0[i])
                                                        ...

Each then is a variable, and iterations go in vectors instead of cells. Rows of so few cells, which the next
iteration uses again, would keep iterations in order, and pairs of points out of vectors. So are more cells
along any axis, if every use says which one it is: those of a window that are put in order pair by pair.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

from ...ir.code import Caps
from ...ir.index import Affine
from ...ir.loops import Comment, Define, For, Kernel, LoopKind, Stmt, Store, Update
from ...ir.tensor import Tensor
from ...ir.walk import rewrite_cells, rewrite_loops
from ..analysis.copies import one_by_one
from ..analysis.repeats import weight
from ..analysis.uses import Use, common_path, uses_of_temporaries

__all__ = ["components"]

MOST = 8
"""So many components."""

MOST_MIXED = 16
"""So many where some uses say which one it is, and others stand in loops over all: a vector that is read from
cells that were just stored one by one waits until they have reached memory."""

ALWAYS = 3
"""So many whatever loop is around; more of them go in vectors unless many iterations do so beside them."""

BESIDE = 32
"""The fewest iterations of a loop around that go in vectors better than more than these components."""

MOST_KNOWN = 32
"""So many where every use says which one it is."""

MOST_OPERATIONS = 64
"""The most operations that a loop over them becomes."""


def components(kernel: Kernel, caps: Caps) -> Kernel:
    """The kernel with such temporaries taken apart, and the loops over them written out."""
    uses_of = uses_of_temporaries(kernel)
    few = {tensor: uses for tensor, uses in uses_of.items() if _has_few(tensor, uses)}
    loops = {id(loop) for uses in few.values() if _outlasts(uses) for use in uses for loop in _over(use)}
    axes = {tensor: -1 for tensor, uses in few.items() if loops and (_outlasts(uses) or _all_in(uses, loops))}
    for tensor, uses in uses_of.items():
        if tensor not in axes and (axis := _known_axis(tensor, uses)) is not None:
            axes[tensor] = axis
    parts = {tensor: _parts(tensor, axis) for tensor, axis in axes.items()}

    def cell(tensor: Tensor, index: tuple[Affine, ...]) -> tuple[Tensor, tuple[Affine, ...]]:
        if tensor not in parts:
            return tensor, index
        return parts[tensor][index[axes[tensor]].constant], _without(index, axes[tensor])

    notes = (f"components: {tensor.label} is taken apart" for tensor in axes)
    body = _written_out(kernel.body, loops)
    return kernel.with_body(rewrite_cells(body, cell) if axes else body, notes)


Part = TypeVar("Part")


def _without(parts: tuple[Part, ...], axis: int) -> tuple[Part, ...]:
    """An index or a shape without an axis."""
    return tuple(part for at, part in enumerate(parts) if at != axis % len(parts))


def _parts(tensor: Tensor, axis: int) -> list[Tensor]:
    """A temporary for each cell along the axis."""
    shape = _without(tensor.shape, axis)
    return [Tensor(tensor.label, shape, tensor.dtype) for _ in range(tensor.shape[axis].constant)]


def _known_axis(tensor: Tensor, uses: Sequence[Use]) -> int | None:
    """The axis of a temporary along which every use says which of a few cells it is, all in one iteration of
    a loop."""
    if tensor.wish is not None or any(use.tensor is not tensor for use in uses):
        return None
    around = [frame.loop for frame in common_path(use.path for use in uses) if frame.loop]
    for axis, extent in enumerate(tensor.shape):
        is_few = extent.is_constant and 2 <= extent.constant <= MOST_KNOWN
        rows = {_without(use.index, axis) if use.index is not None else None for use in uses}
        (row, *others) = rows
        if not around or not is_few or others or row is None:
            continue
        if all(use.index is not None and use.index[axis].is_constant for use in uses):
            return axis
    return None


def _has_few(tensor: Tensor, uses: Sequence[Use]) -> bool:
    """Has a temporary few cells in an iteration of a loop that may go in any order, each of them at a known
    place or in a short loop over them?"""
    if tensor.rank < 2 or tensor.wish is not None or not tensor.shape[-1].is_constant:
        return False
    cells = tensor.shape[-1].constant
    known = {use.index is not None and use.index[-1].is_constant for use in uses}
    most = MOST if len(known) == 1 else MOST_MIXED
    if not 2 <= cells <= most or any(use.tensor is not tensor for use in uses):
        return False
    around, row = _around(uses), uses[0].index
    if not around or around[-1].kind is not LoopKind.PARALLEL or row is None:
        return False
    if cells > ALWAYS and (around[-1].trips or BESIDE) < BESIDE:
        return False
    if Affine.of(around[-1].symbol) not in row[:-1]:
        return False
    return all(use.index is not None and use.index[:-1] == row[:-1] and _is_known(use) for use in uses)


def _around(uses: Sequence[Use]) -> list[For]:
    """The loops around all uses, but for those over components."""
    over = {id(loop) for use in uses for loop in _over(use)}
    every = (frame.loop for frame in common_path(use.path for use in uses) if frame.loop)
    return [loop for loop in every if id(loop) not in over]


def _outlasts(uses: Sequence[Use]) -> bool:
    """Is a component used elsewhere than in the iteration over components that makes it?"""
    return len({use.path[-1] for use in uses}) > 1


def _all_in(uses: Sequence[Use], loops: set[int]) -> bool:
    """Do all uses stand in loops that are written out?"""
    return all(id(loop) in loops for use in uses for loop in _over(use))


def _over(use: Use) -> Iterator[For]:
    """The loop over the components that a use stands in, if there is one."""
    last = use.index[-1] if use.index is not None else Affine.of(0)
    return (frame.loop for frame in use.path if frame.loop and frame.loop.symbol in last.symbols)


def _is_known(use: Use) -> bool:
    """Is it known which component is used, at least where a loop over them is written out?"""
    loops = list(_over(use))
    last = use.index[-1] if use.index is not None else None
    if last is None or len(last.symbols) != len(loops):
        return False
    return all(loop is use.path[-1].loop and _is_short(loop) for loop in loops)


def _is_short(loop: For) -> bool:
    if loop.kind is not LoopKind.PARALLEL or loop.trips is None or not loop.lo.is_constant:
        return False
    plain = all(isinstance(stmt, (Comment, Define, Store, Update)) for stmt in loop.body)
    return plain and loop.trips <= MOST_MIXED and loop.trips * weight(loop.body) <= MOST_OPERATIONS


def _written_out(body: tuple[Stmt, ...], loops: set[int]) -> tuple[Stmt, ...]:
    """A body in which these loops are written out."""
    return rewrite_loops(body, lambda loop: one_by_one(loop) if id(loop) in loops else None)
