"""What a mask selects, in a row.

    x[mask]     ->      n = sum(mask)
                        k = 0
                        for i in range(len(x)):
                            t[k] = x[i]
                            k += mask[i]

The result has room for all values; its extent is `n`. The values are written whether they are selected or
not, since a branch that nobody can predict costs more.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

from ...errors import ShapeError
from ...ir.dtype import BOOL, I64, DType
from ...ir.expr import Apply, Cast, Const, Expr, Index
from ...ir.index import Affine
from ...ir.ops import op
from ..record.selections import Selection
from ..record.trace import Body, Trace, current_trace
from ..values.array import SymbolicArray, describe
from ..values.elementwise import always, cast
from ..values.extents import most, product
from .masked import equal_selection

__all__ = ["compacted", "nonzero"]


def nonzero(array: SymbolicArray) -> tuple[SymbolicArray, ...]:
    """For each axis, where the array differs from zero: int64 positions in row-major order."""
    if array.ndim == 0:
        raise ShapeError(
            "Calling nonzero on 0d arrays is not allowed. Use np.atleast_1d(scalar).nonzero() instead.",
            details=(describe(array),),
            fix="write np.atleast_1d(x).nonzero()",
        )
    return compacted(array, I64, [_coordinate(axis) for axis in range(array.ndim)])


def compacted(array: SymbolicArray, dtype: DType, bodies: Sequence[Body]) -> tuple[SymbolicArray, ...]:
    """For each of the bodies, its values at the positions where the array differs from zero, in row-major
    order."""
    mask = array if array.element_type is BOOL else cast(array, BOOL)
    room = most(product(mask.cells.shape))
    trace, zero = current_trace(), Const(0, I64)
    if room == 0:
        return tuple(SymbolicArray(trace.window((0,), dtype), trace) for _ in bodies)

    total = _number(mask, room, trace)
    results = [trace.window((total,), dtype, "selected") for _ in bodies]
    reached = trace.window((), I64, "reached")
    trace.store(reached, always(zero))
    with ExitStack() as loops:
        position = tuple(loops.enter_context(trace.loop(0, extent)) for extent in mask.cells.shape)
        at = trace.bind(reached.load(()), 0, room)
        for result, body in zip(results, bodies, strict=True):
            trace.store(result.remap((), (), (at,)), always(body(position)))
        selected = Cast(mask.load(position), I64)
        trace.store(reached, always(Apply(op("add"), (reached.load(()), selected), I64)))
    loop = trace.statements[-1]
    values = {result.tensor: body for result, body in zip(results, bodies, strict=True)}
    trace.selections[id(loop)] = Selection(loop, mask.cells, total, values)
    return tuple(SymbolicArray(result, trace) for result in results)


def _number(mask: SymbolicArray, room: int | None, trace: Trace) -> Affine:
    """How many cells the mask selects. Equal masks give the same number, and so arrays of one shape."""
    earlier = equal_selection(mask.cells, trace)
    if earlier is not None:
        return earlier.total

    def selected(position: tuple[Affine, ...]) -> Expr:
        return Cast(mask.load(position), I64)

    count = trace.compute(
        (), I64, selected, label="count", over=mask.cells.shape, accum=op("add"), initial=Const(0, I64)
    )
    return trace.bind(count.load(()), 0, None if room is None else room + 1)


def _coordinate(axis: int) -> Body:
    return lambda position: Index(position[axis])
