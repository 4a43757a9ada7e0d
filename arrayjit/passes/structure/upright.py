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
else sees how a temporary lies.
"""

from __future__ import annotations

from ...ir.code import Caps
from ...ir.loops import Kernel
from ..analysis.turning import has_few_columns, may_be_turned, turned, ways

__all__ = ["upright"]


def upright(kernel: Kernel, caps: Caps) -> Kernel:
    """The kernel with such temporaries turned: the axis along which vectors go becomes the last."""
    found = {tensor: axes for tensor, axes in ways(kernel, may_be_turned(kernel)).items() if len(axes) == 1}
    axes = {tensor: next(iter(axes)) for tensor, axes in found.items()}
    axes = {tensor: axis for tensor, axis in axes.items() if axis >= 0 and has_few_columns(tensor, axis)}
    return turned(kernel, axes, caps.line_bytes, "upright")[0] if axes else kernel
