"""`x.strides` and `as_strided`: how far apart the cells of an array lie, and views of any such distances.

A view of other strides is one of the tensor's flat form. Only what the tensor's own cells span can be seen.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import NumberError, ShapeError
from ...ir.index import Affine, Symbol
from ..record.registry import creates, method
from ..record.trace import current_trace
from ..record.view import View
from ..values.array import SymbolicArray, describe
from ..values.elementwise import as_array
from ..values.extents import numbers, require_at_least
from ..values.numbers import integer_of
from .operands import shape_of

__all__ = ["as_strided"]

_KNOWN = "the shape of an array of which the strides are asked for"


@method("strides")
def strides(self: SymbolicArray) -> tuple[int, ...]:
    """The bytes from each cell to the next one, along each axis."""
    return tuple(step * self.itemsize for step in _steps(self))


@creates(np.lib.stride_tricks.as_strided)
def as_strided(
    x: Any, shape: Any = None, strides: Any = None, subok: bool = False, writeable: bool = True
) -> SymbolicArray:
    """The view of such a shape from the array's first cell on, with so many bytes between neighbours. One
    that shows a cell more than once is read only. Raises NumberError for what lies outside of the memory."""
    array = as_array(x)
    array.record.layouts.require_numpys(array.cells)
    wanted = array.cells.shape if shape is None else shape_of(shape)
    extents = numbers(wanted, "the shape of a view of other strides")
    steps = _steps(array) if strides is None else _in_elements(array, strides)
    if len(steps) != len(extents):
        raise ShapeError("mismatch in length of strides and shape", fix="give each axis one")
    view = array.shown()
    start = view.tensor.linear(view.at((0,) * view.rank))
    axes = tuple(Symbol("i") for _ in extents)
    place = sum((Affine.of(axis) * step for axis, step in zip(axes, steps, strict=True)), start)
    if 0 not in extents:
        _require_inside(array, view, start, extents, steps)
    once = writeable and not _meets_itself(extents, steps)
    whole = array.record.flat(view.tensor)
    cells = View(whole, tuple(map(Affine.of, extents)), axes, (place,), view.writeable and once)
    return SymbolicArray(cells, array.record)


def _steps(array: SymbolicArray) -> tuple[int, ...]:
    array.record.layouts.require_numpys(array.cells)
    numbers(array.cells.shape, _KNOWN)
    steps = array.cells.element_strides()
    assert steps is not None, "tensors have constant shapes"
    return tuple(step.constant for step in steps)


def _in_elements(array: SymbolicArray, strides: Any) -> tuple[int, ...]:
    """Strides in bytes as numbers of cells."""
    given = [integer_of(step, current_trace()) for step in strides]
    steps = numbers(given, "the strides of a view")
    for step in steps:
        if step % array.itemsize:
            raise NumberError(
                f"a stride of {step} bytes ends within a cell",
                details=(describe(array),),
                fix=f"give multiples of {array.itemsize}, as x.strides has them",
            )
    return tuple(step // array.itemsize for step in steps)


def _ends(extents: tuple[int, ...], steps: tuple[int, ...]) -> tuple[int, int]:
    """The lowest and the highest of the cells, from the first one on."""
    reaches = [(extent - 1) * step for extent, step in zip(extents, steps, strict=True)]
    return sum(min(reach, 0) for reach in reaches), sum(max(reach, 0) for reach in reaches)


def _require_inside(
    array: SymbolicArray, view: View, start: Affine, extents: tuple[int, ...], steps: tuple[int, ...]
) -> None:
    lowest, highest = _ends(extents, steps)
    own = [step.constant for step in view.tensor.element_strides()]
    low, high = _ends(tuple(extent.constant for extent in view.tensor.shape), tuple(own))
    words = f"a view of shape {extents} with such strides leaves the memory of the array"
    for room in (start + lowest - low, Affine.of(high - highest) - start):
        if not require_at_least(room, 0, "ValueError", words):
            raise NumberError(
                words,
                details=(describe(array),),
                fix="make it smaller, as by the number of windows: (len(x) - width) // step + 1",
            )


def _meets_itself(extents: tuple[int, ...], steps: tuple[int, ...]) -> bool:
    """Whether two positions may be one cell; False only when that is certain."""
    reach = 1
    for step, extent in sorted(zip(map(abs, steps), extents, strict=True)):
        if extent > 1:
            if step < reach:
                return True
            reach += (extent - 1) * step
    return False
