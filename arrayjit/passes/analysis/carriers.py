"""By which memory may iterations of a loop disturb one another?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice

from ...ir.expr import Variable
from ...ir.index import Symbol
from ...ir.loops import For, LoopKind
from ...ir.tensor import Tensor
from .access import Effects, Ranges, distances, effects

__all__ = ["carriers", "disturbed", "upwards"]

MAX_REGIONS = 64
"""Places of one array that are compared with one another; a loop that goes to more stays as it is."""


def carriers(loop: For, ranges: Ranges, sums: frozenset[Variable] = frozenset()) -> frozenset[Tensor] | None:
    """The storages by which an iteration may disturb another one; None if there is more than memory to it,
    and these locals in which the loop accumulates."""
    found = effects(loop.body, ranges)
    if found.leaves or not found.updates <= sums:
        return None
    return frozenset(disturbed(found, (loop.symbol,), ranges))


def disturbed(
    found: Effects, own: Sequence[Symbol], ranges: Ranges, others: Sequence[Symbol] = ()
) -> Iterator[Tensor]:
    """The storages by which bodies with such effects may disturb one another that differ in a symbol of
    `own`, whatever the `others` are in each."""
    for storage, written in found.writes.items():
        touched = {**written, **found.reads.get(storage, {})}
        pairs = ((one, other) for at, one in enumerate(written) for other in islice(touched, at, None))
        if len(touched) > MAX_REGIONS or any(
            apart is not None and any(apart[symbol] != (0, 0) for symbol in own)
            for one, other in pairs
            for apart in (distances(one, other, (*others, *own), ranges),)
        ):
            yield storage


def upwards(loop: For) -> For:
    """The loop as a parallel one; one that counts down may count up as well."""
    if loop.step == -1:
        loop = replace(loop, lo=loop.hi + 1, hi=loop.lo + 1, step=1)
    return replace(loop, kind=LoopKind.PARALLEL)
