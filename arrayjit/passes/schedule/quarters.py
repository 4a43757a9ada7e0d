"""quarters: long sums go through the four quarters of an array at once.

    for i in vector(0, 1000000, lanes=32):      s0 = -0.0; s1 = -0.0; s2 = -0.0; s3 = -0.0
        s = add(s, x[i])                        for i in vector(0, 250000, lanes=8):
                                        ->          s0 = add(s0, x[i])
                                                    s1 = add(s1, x[i + 250000])  ...
                                                s = add(s, s0)
                                                s = add(s, s1)  ...

A processor fetches ahead so many lines of each place that is read in order; four places are more lines on
their way. Sums of arrays that the last cache holds take two thirds of the time, those in memory 0.85. There
are as many sums under way as before, each of a quarter of the lanes, on any machine: on that depends in
which order numbers are added ([decision 4](../../docs/decisions/004-documented-reduction-order.md)).
`cascade` makes trees of them. What is left after four quarters is added up for itself. Narrow integers
are left to `cascade` as they are: a quarter of the lanes would not fill a register of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from ...ir.expr import Gather, Load
from ...ir.index import Affine, Symbol
from ...ir.loops import Define, For, LoopKind, Stmt, Update
from ...ir.walk import nodes_in
from ..analysis.copies import copy_body
from ..analysis.loopwise import Site, loopwise
from ..analysis.strides import stride
from .cascade import Names, Sums, accumulated, narrow_sums, partial

__all__ = ["quarters"]

QUARTERS = 4

LONG = 1 << 20
"""The bytes that a loop must read: what is less is near, in the second cache."""

MOST_ARRAYS = 3
"""How many arrays a loop may read: processors follow only so many places."""

LINE_BYTES = 64
"""What is read of a quarter at once, at least."""

PAGE_BYTES, APART = 4096, 512
"""Quarters begin so far apart within pages: lines at one place of all pages share a set of each cache."""


@loopwise
def quarters(loop: For, site: Site) -> Iterable[Stmt] | None:
    """Every long sum by quarters."""
    sums = accumulated(loop)
    length = _length(loop, sums) if sums else 0
    return _at_once(loop, sums, length) if length else None


def _length(loop: For, sums: Sums) -> int:
    """How many iterations are a quarter of a loop; 0 where it should not go by quarters."""
    sizes = _read_along(loop)
    if loop.trips is None or not 0 < len(sizes) <= MOST_ARRAYS or loop.trips * sum(sizes) < LONG:
        return 0
    widest = max((*sizes, *(variable.dtype.itemsize for variable in sums)))
    if loop.lanes * widest < QUARTERS * LINE_BYTES or any(op.identity is None for op in sums.values()):
        return 0
    if narrow_sums(loop) is not None:
        return 0
    lanes = loop.lanes // QUARTERS
    length = loop.trips // loop.lanes * lanes
    while not _is_apart(length * max(sizes)):
        length -= lanes
    return length


def _read_along(loop: For) -> Sequence[int]:
    """The bytes of a cell of each array that a vector loop goes along; none if it does anything else."""
    if loop.kind is not LoopKind.VECTOR or loop.step != 1:
        return ()
    if not all(isinstance(stmt, (Define, Update)) for stmt in loop.body):
        return ()
    nodes = set(nodes_in(loop.body))
    loads = [node for node in nodes if isinstance(node, Load)]
    steps = [stride(load.tensor, load.index, loop.symbol) for load in loads]
    if any(isinstance(node, Gather) for node in nodes) or not {-1, 0, 1}.issuperset(steps):
        return ()
    return [load.tensor.dtype.itemsize for load, step in zip(loads, steps, strict=True) if step]


def _is_apart(distance: int) -> bool:
    """Are quarters that follow at such a distance in bytes at other places of their pages?"""
    places = (number * distance % PAGE_BYTES for number in range(1, QUARTERS))
    return all(APART <= place <= PAGE_BYTES - APART for place in places)


def _at_once(loop: For, sums: Sums, length: int) -> Sequence[Stmt]:
    """The quarters of a loop in one, and then what they leave."""
    place = Symbol(loop.symbol.hint)

    def together(found: Sequence[Names]) -> Sequence[Stmt]:
        if len(found) < QUARTERS:
            return partial(sums, {}, lambda names: together((names, *found)))
        body: list[Stmt] = []
        for number, names in enumerate(found):
            body += copy_body(loop.body, {loop.symbol: loop.lo + length * number + place}, names)
        lo, hi, lanes = Affine.of(0), Affine.of(length), loop.lanes // QUARTERS
        return [replace(loop, symbol=place, lo=lo, hi=hi, body=tuple(body), lanes=lanes)]

    rest = replace(loop, lo=loop.lo + QUARTERS * length)
    if not rest.trips:
        return together(())
    return [*together(()), *partial(sums, {}, lambda names: copy_body((rest,), {}, names))]
