"""inward: of loops that a program has for each axis, steps are taken cell by cell too.

    for k in sequential(0, 64):                     for i in parallel(0, 80):
        for i in parallel(0, 80):                       for j in parallel(0, 90):
            for j in parallel(0, 90):       ->              for k in sequential(0, 64):
                t = multiply(a[i, k], b[k, j])                  t = multiply(a[i, k], b[k, j])
                c[i, j] = add(c[i, j], t)                       c[i, j] = add(c[i, j], t)

It is `invert`, once such loops are known to be of cells that need nothing of one another. So a product of
matrices is one in whichever order its three loops stand.
"""

from __future__ import annotations

from ...ir.code import Caps
from ...ir.loops import Kernel
from .invert import invert

__all__ = ["inward"]


def inward(kernel: Kernel, caps: Caps) -> Kernel:
    """Every loop over steps inside the cells that it is about."""
    return invert(kernel, caps)
