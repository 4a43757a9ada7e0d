"""rebase: loops that begin where another loop stands begin at 0.

    for k in sequential(0, 90):                     for k in sequential(0, 90):
        for j in sequential(k + 1, 90):     ->          for j in sequential(0, 89 - k):
            a[k, j] = divide(a[k, j], a[k, k])              a[k, k + j + 1] = divide(a[k, k + j + 1], a[k, k])

How far two cells are apart is seen in their positions then: no `k + j + 1` is `k`, so that the iterations
need nothing of one another. Slices are recorded like that (`a[k, k + 1 :]`).
"""

from __future__ import annotations

from ...ir.code import Caps
from ...ir.loops import For, Kernel, walk_statements
from ...ir.walk import rewrite_loops_inside_out
from ..analysis.trips import from_zero

__all__ = ["rebase"]


def rebase(kernel: Kernel, caps: Caps) -> Kernel:
    """Every loop by steps of one from 0 on, if it begins at the index of a loop around it."""
    indices = {stmt.symbol for stmt in walk_statements(kernel.body) if isinstance(stmt, For)}

    def rebased(loop: For) -> tuple[For] | None:
        begins_elsewhere = loop.step == 1 and not indices.isdisjoint(loop.lo.symbols)
        return (from_zero(loop),) if begins_elsewhere else None

    return kernel.with_body(rewrite_loops_inside_out(kernel.body, rebased))
