"""Writing cells at positions that arrays of integers choose.

    a[p] = v        ->      for k in range(n):
                                s = p[k]
                                a[s] = v[k]

One position after another, as in NumPy: of repeated ones the last remains. The positions were checked
before anything is written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack

from ..ir.dtype import I64
from ..ir.index import Affine
from .array import SymbolicArray
from .elementwise import Operand, copy, operand_at
from .gathering import chosen_shape, part
from .keys import Item, Many, New, Point
from .trace import Trace
from .view import View

__all__ = ["scatter", "unaliased"]

Position = tuple[Affine, ...]
Write = Callable[[View, Callable[[Position], Position]], None]


def scatter(array: SymbolicArray, items: Sequence[Item], write: Write, trace: Trace) -> None:
    """`write(target, within)` for one choice of the items' integer arrays after another: `target` is the
    view of the cells there, `within(p)` where its position `p` stands in the shape of all that is chosen."""
    common, before, shape = chosen_shape(items)
    if Affine.of(0) in shape:
        return
    arrays = {n: item.symbolic(trace) for n, item in enumerate(items) if isinstance(item, Many)}
    extents = iter(array.cells.shape)
    points: list[Item] = []
    with ExitStack() as loops:
        place = tuple(loops.enter_context(trace.loop(0, extent)) for extent in common)
        for n, item in enumerate(items):
            extent = Affine.of(1) if isinstance(item, New) else next(extents)
            if n in arrays:
                bounds = extent.bounds({})
                cell = operand_at(arrays[n], place, I64)
                item = Point(trace.bind(cell, 0, bounds and bounds[1]))
            points.append(item)
        write(part(array.cells, points), lambda position: (*position[:before], *place, *position[before:]))


def unaliased(operand: Operand, array: SymbolicArray) -> Operand:
    """The operand, or a copy where writing the array would change it."""
    if type(operand) is SymbolicArray and operand.cells.tensor.storage is array.cells.tensor.storage:
        return copy(operand)
    return operand
