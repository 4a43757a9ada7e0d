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

from ...ir.dtype import I64
from ...ir.expr import Apply, Expr, Index
from ...ir.index import Affine, Symbol, affine
from ...ir.ops import op
from ..record.trace import Trace
from ..values.array import SymbolicArray
from ..values.elementwise import broadcast_view, copy
from ..values.extents import ONE, ZERO, as_expr, most
from ..values.fitting import Operand
from .gathering import chosen_shape, part
from .keys import Item, Many, New, Point, Span, Steps

__all__ = ["scatter", "scatter_steps", "stepped_shape"]

Write = Callable[[SymbolicArray, Operand], None]


def scatter(
    array: SymbolicArray, items: Sequence[Item], operand: Operand, write: Write, trace: Trace
) -> None:
    """`write(cells, value)` for one choice of the items' integer arrays after another: `cells` is the part
    of the array there, `value` that of the operand, which fits the shape of all that is chosen."""
    common, before, shape = chosen_shape(items)
    if ZERO in shape:
        return
    held = _spread(operand, array, shape)
    extents = iter(array.cells.shape)
    points: list[Item] = []
    with ExitStack() as loops:
        place = tuple(loops.enter_context(trace.loop(0, extent)) for extent in common)
        for item in items:
            extent = ONE if isinstance(item, New) else next(extents)
            points.append(_point(item.at(place), extent, trace) if isinstance(item, Many) else item)
        cells = SymbolicArray(part(array.cells, points), trace)
        write(cells, _at_place(held, cells, place, before))


def _point(position: Expr, extent: Affine, trace: Trace) -> Point:
    return Point(position.value if isinstance(position, Index) else trace.bind(position, 0, most(extent)))


def scatter_steps(
    array: SymbolicArray, items: Sequence[Item], operand: Operand, write: Write, trace: Trace
) -> None:
    """`write(cells, value)` for one position of the items' only `Steps` after another."""
    (at,) = (n for n, item in enumerate(items) if isinstance(item, Steps))
    steps = items[at]
    assert isinstance(steps, Steps)
    held = _spread(operand, array, stepped_shape(items))
    axis = sum(1 for item in items[:at] if not isinstance(item, New))
    with trace.loop(0, steps.extent) as count:
        ahead = Apply(op("multiply"), (as_expr(steps.step), Index(count)), I64)
        position = Apply(op("add"), (as_expr(steps.start), ahead), I64)
        point = Point(trace.bind(position, 0, most(array.cells.shape[axis])))
        cells = SymbolicArray(part(array.cells, [*items[:at], point, *items[at + 1 :]]), trace)
        write(cells, _at_place(held, cells, (count,), len(stepped_shape(items[:at]))))


def stepped_shape(items: Sequence[Item]) -> tuple[Affine, ...]:
    """The shape of what points, slices and new axes choose."""
    kept = (item for item in items if not isinstance(item, Point))
    return tuple(item.extent if isinstance(item, (Span, Steps)) else ONE for item in kept)


def _spread(operand: Operand, array: SymbolicArray, shape: Sequence[Affine]) -> Operand:
    """The operand repeated to the shape of all that is chosen; a copy where writing the array would change
    it. Numbers stay as they are."""
    if type(operand) is not SymbolicArray or operand.weak is not None:
        return operand
    if operand.cells.tensor.storage is array.cells.tensor.storage:
        operand = copy(operand)
    return SymbolicArray(broadcast_view(operand.cells, shape), operand.record)


def _at_place(held: Operand, cells: SymbolicArray, place: tuple[Affine, ...], before: int) -> Operand:
    """What of the operand belongs to the cells at one place of the integer arrays."""
    if type(held) is not SymbolicArray or held.weak is not None:
        return held
    symbols = tuple(Symbol("i") for _ in cells.cells.shape)
    inner = affine(symbols)
    position = (*inner[:before], *place, *inner[before:])
    return SymbolicArray(held.cells.remap(cells.cells.shape, symbols, position), held.record)
