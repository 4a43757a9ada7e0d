"""if_conversion: in independent loops both sides of a branch are computed, and their results chosen.

    for k in parallel(0, 100000):                   for k in parallel(0, 100000):
        if less(x[k], 0.0):                             t = sqrt(x[k])
            y[k] = 0.0                       ->         chosen = where(less(x[k], 0.0), 0.0, t)
        else:                                           y[k] = chosen
            t = sqrt(x[k])
            y[k] = t

Such a loop goes in vectors, which takes an eighth of the time and guesses no branch wrongly (Allen, Kennedy,
Porterfield, Warren, Conversion of control dependence to data dependence, POPL 1983). A cell that one side
alone stores to is written with what it holds. Sides that may raise, look something up or take long stay
branches, and so do those of loops in order, which wait for a choice but not for a branch.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...frozen import replace
from ...ir.loops import For, If, LoopKind, Stmt, walk_statements
from ..analysis.loopwise import Site, loopwise
from .branches import without_branches

__all__ = ["if_conversion"]

MOST = 96.0
"""The work of a side, in additions, that vectors do in less time than a number by itself takes a branch."""


@loopwise
def if_conversion(loop: For, site: Site) -> Iterable[Stmt] | None:
    """The branches of every innermost independent loop as choices, where all of them can be."""
    inside = walk_statements(loop.body)
    if loop.kind is not LoopKind.PARALLEL or any(isinstance(stmt, For) for stmt in inside):
        return None
    if not any(isinstance(stmt, If) for stmt in inside):
        return None
    body = without_branches(loop.body, site.ranges, MOST)
    if body is None:
        return None
    site.notes.append(f"if_conversion: {loop.symbol.hint} chooses among what both sides of its branches give")
    return [replace(loop, body=body)]
