"""rebase: loops that begin where another loop stands begin at 0.

    for k in sequential(0, 90):                     for k in sequential(0, 90):
        for j in sequential(k + 1, 90):     ->          for j in sequential(0, 89 - k):
            a[k, j] = divide(a[k, j], a[k, k])              a[k, k + j + 1] = divide(a[k, k + j + 1], a[k, k])

How far two cells are apart is seen in their positions then: no `k + j + 1` is `k`, so that the iterations
need nothing of one another. Slices are recorded like that (`a[k, k + 1 :]`).
"""

from __future__ import annotations

from ...ir.code import Caps
from ...ir.index import Symbol
from ...ir.loops import For, Kernel, Stmt
from ...ir.walk import kept, rewrite_bodies
from ..analysis.trips import from_zero

__all__ = ["rebase"]


def rebase(kernel: Kernel, caps: Caps) -> Kernel:
    """Every loop by steps of one from 0 on, if it begins at the index of a loop around it."""
    around: set[Symbol] = set()

    def visit(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        return kept(body, [statement(stmt) for stmt in body])

    def statement(stmt: Stmt) -> Stmt:
        if not isinstance(stmt, For):
            return rewrite_bodies(stmt, visit)
        if stmt.step == 1 and not around.isdisjoint(stmt.lo.symbols):
            stmt = from_zero(stmt)
        around.add(stmt.symbol)
        return rewrite_bodies(stmt, visit)

    return kernel.with_body(visit(kernel.body))
