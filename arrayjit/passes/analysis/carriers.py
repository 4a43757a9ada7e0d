"""By which memory may iterations of a loop disturb one another?"""

from __future__ import annotations

from dataclasses import replace
from itertools import product

from ...ir.expr import Variable
from ...ir.loops import For, LoopKind
from ...ir.tensor import Tensor
from .access import Ranges, distances, effects

__all__ = ["carriers", "upwards"]

MAX_REGIONS = 64
"""Places of one array that are compared with one another; a loop that goes to more stays as it is."""


def carriers(loop: For, ranges: Ranges, sums: frozenset[Variable] = frozenset()) -> frozenset[Tensor] | None:
    """The storages by which an iteration may disturb another one; None if there is more than memory to it,
    and these locals in which the loop accumulates."""
    found = effects(loop.body, ranges)
    if found.leaves or not found.updates <= sums:
        return None
    disturbed = set()
    for storage, written in found.writes.items():
        touched = {**written, **found.reads.get(storage, {})}
        if len(touched) > MAX_REGIONS or any(
            apart is not None and apart[loop.symbol] != (0, 0)
            for one, other in product(written, touched)
            for apart in (distances(one, other, (loop.symbol,), ranges),)
        ):
            disturbed.add(storage)
    return frozenset(disturbed)


def upwards(loop: For) -> For:
    """The loop as a parallel one; one that counts down may count up as well."""
    if loop.step == -1:
        loop = replace(loop, lo=loop.hi + 1, hi=loop.lo + 1, step=1)
    return replace(loop, kind=LoopKind.PARALLEL)
