"""By which memory may iterations of a loop, or two bodies, disturb one another?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice, product

from ...ir.expr import Variable
from ...ir.index import Symbol
from ...ir.loops import For, LoopKind
from ...ir.tensor import Tensor
from .access import Distance, Effects, Ranges, Touched, distances, effects

__all__ = ["carriers", "conflicts", "disturb", "disturbed", "meetings", "upwards"]

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


def meetings(
    first: Touched, second: Touched, aligned: Sequence[Symbol], ranges: Ranges
) -> Iterator[dict[Symbol, Distance]]:
    """At which distances the one touches what the other does, wherever they meet."""
    for storage, mine in first.items():
        for one, other in product(mine, second.get(storage, ())):
            apart = distances(one, other, aligned, ranges)
            if apart is not None:
                yield apart


def conflicts(
    one: Effects, other: Effects, aligned: Sequence[Symbol], ranges: Ranges
) -> Iterator[dict[Symbol, Distance]]:
    """At which distances one of two bodies touches what the other one writes, wherever they meet."""
    yield from meetings(one.writes, other.reads, aligned, ranges)
    yield from meetings(one.reads, other.writes, aligned, ranges)
    yield from meetings(one.writes, other.writes, aligned, ranges)


def disturb(one: Effects, other: Effects) -> bool:
    """May one of two bodies leave the kernel, or change an array or a local that the other one is about?"""
    return (
        one.leaves
        or other.leaves
        or one.shares_variables(other)
        or not one.writes.keys().isdisjoint(other.reads.keys() | other.writes.keys())
        or not one.reads.keys().isdisjoint(other.writes)
    )


def upwards(loop: For) -> For:
    """The loop as a parallel one; one that counts down may count up as well."""
    if loop.step == -1:
        loop = replace(loop, lo=loop.hi + 1, hi=loop.lo + 1, step=1)
    return replace(loop, kind=LoopKind.PARALLEL)
