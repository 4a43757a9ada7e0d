"""lengthwise: short rows of a temporary lie beside one another where that lets a long loop go in vectors.

    t: temporary[f64, 3000, 10]                     t: temporary[f64, 10, 3016]
    for i in parallel(0, 3000):                     for i in parallel(0, 3000):
        for j in parallel(0, 10):                       for j in parallel(0, 10):
            t[i, j] = subtract(x[i], c[j])  ->              t[j, i] = subtract(x[i], c[j])
    for i in parallel(0, 3000):                     for i in parallel(0, 3000):
        m = inf                                         m = inf
        for j in parallel(0, 10):                       for j in parallel(0, 10):
            m = reduce(minimum, m, t[i, j])                 m = reduce(minimum, m, t[j, i])
        y[i] = sqrt(m)                                  y[i] = sqrt(m)

Ten cells fill a vector and a part of another, their least is found across lanes, and what a row does with it
is done number by number. All of that goes in vectors if each lane has a row of its own, but lanes would reach
cells that lie apart as the temporary does, so that the choice would be for the short loops. `vectorise` is
asked what it would choose otherwise: a temporary is turned if all vectors then go along the long axis.
"""

from __future__ import annotations

from ...ir.code import Caps
from ...ir.loops import For, Kernel, LoopKind
from ...ir.tensor import Tensor
from ..analysis.turning import Access, accesses, has_few_columns, may_be_turned, turned, ways
from .vectorise import vectorise

__all__ = ["lengthwise"]

LONG = 64
"""The fewest iterations of a long loop."""


def lengthwise(kernel: Kernel, caps: Caps) -> Kernel:
    """The kernel with such temporaries turned."""
    axes = _long_axes(kernel)
    while axes:
        new, tensors = turned(kernel, axes, caps.line_bytes, "lengthwise")
        taken = ways(vectorise(new, caps), tensors.values())
        along = {old: axes[old] for old, tensor in tensors.items() if taken[tensor] == {tensor.rank - 1}}
        if len(along) == len(axes):
            return new
        axes = along
    return kernel


def _long_axes(kernel: Kernel) -> dict[Tensor, int]:
    """The temporaries of which loops take short rows, and the axis of which a long loop takes one each."""
    axes = {tensor: set(range(tensor.rank - 1)) for tensor in may_be_turned(kernel)}
    by_rows: set[Tensor] = set()
    for access in accesses(kernel.body) if axes else ():
        tensor, index, loops = access
        if tensor.storage in axes:
            axes[tensor.storage] &= _by_long_loops(access)
            if index and loops and index[-1].coefficient(loops[-1].symbol):
                by_rows.add(tensor)
    few = {t: [axis for axis in axes[t] if has_few_columns(t, axis)] for t in axes if t in by_rows}
    return {tensor: min(found) for tensor, found in few.items() if found}


def _by_long_loops(access: Access) -> set[int]:
    """The axes of which an access has a position for each iteration of a long loop, in any order."""
    tensor, index, loops = access
    symbols = {loop.symbol for loop in loops if _is_long(loop)}
    return {axis for axis, at in enumerate(index) if tensor.base is None and at.symbol in symbols}


def _is_long(loop: For) -> bool:
    return loop.kind is LoopKind.PARALLEL and (loop.trips or 0) >= LONG
