"""portion: steps that stride through a large array are all taken in one portion of it, then in the next.

    for k in sequential(2, 1001):                   for p in parallel(0, 31):
        n = multiply(k, k)                              for k in sequential(2, 1001):
        c = floor_divide(k - n + 1000000, k)                n = multiply(k, k)
        for j in sequential(0, c):          ->              c = floor_divide(k - n + 1000000, k)
            at = add(n, multiply(k, j))                     first = raw_divide(..., k)
            a[at] = False                                   last = minimum(... 32768*p + 32768 ..., c)
                                                            for j in sequential(first, last):
                                                                at = add(n, multiply(k, j))
                                                                a[at] = False

A portion stays in the nearest cache for all steps, and threads may share the portions: that is what makes a
sieve a segmented one (C. Bays and R. H. Hudson, "The segmented sieve of Eratosthenes and primes in arithmetic
progressions to 10^12", BIT 17, 1977), for any steps. It is allowed where an iteration touches of what the
steps write no cells but those at its own position along the first axis: each cell then meets the iterations
that touch it in their old order. What a step finds out before it strides must not depend on these arrays
either; it is found out for every portion.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ...frozen import frozen
from ...ir.code import Caps
from ...ir.dtype import I64
from ...ir.expr import Apply, Const, Expr, Index
from ...ir.index import Affine, Symbol
from ...ir.loops import Bind, For, If, LoopKind, Stmt
from ...ir.ops import OPS
from ...ir.walk import substitute_statements
from ..analysis.access import Ranges
from ..analysis.copies import copy_body, in_steps, unless_once
from ..analysis.loopwise import Site, loopwise
from ..analysis.striding import Steps, Stride

__all__ = ["portion"]

LARGE = 4
"""An array of so many portions is worth them."""

VISITS = 4
"""So many cells of a portion are worth the two divisions that find them."""

TOGETHER = 4
"""So many strides are written out one after another: a loop takes longer than a store."""

NEAR = 4
"""So many positions or more in a register are worth a vector under a mask."""

FIRST = 16
"""So many steps at the beginning are written out at most, since their strides are short."""

ZERO = Affine.of(0)


@loopwise
def portion(loop: For, site: Site) -> Sequence[Stmt] | None:
    """All steps that stride through a large array taken in one portion of it after another."""
    steps = Steps.of(loop, site.ranges)
    cells = 0 if steps is None else _cells(steps, site.ranges, site.caps)
    if steps is None or not cells:
        return None
    site.notes.append(f"portion: all steps of loop {loop.symbol.hint} are taken in {cells:,} cells at a time")
    return (_in_portions(steps, cells, site.caps),)


def _extent(steps: Steps) -> int:
    """How many positions the longest array has; 0 where that is not known."""
    if not all(array.has_fixed_shape for array in steps.arrays):
        return 0
    return max(array.shape[0].constant for array in steps.arrays)


def _cells(steps: Steps, ranges: Ranges, caps: Caps) -> int:
    """How many positions make a portion; 0 where portions do not pay."""
    extent = _extent(steps)
    if not extent:
        return 0
    cells = caps.l1_bytes * extent // sum(array.nbytes for array in steps.arrays)
    lengths = [stride.step.bounds(ranges) for stride in steps.strides]
    longest = max(apart[1] for apart in lengths if apart is not None)
    return cells if VISITS * longest <= cells <= extent // LARGE else 0


def _in_portions(steps: Steps, cells: int, caps: Caps) -> For:
    """All steps in one portion of so many positions, then in the next."""
    number = Symbol("p")
    begin = Affine.of(number) * cells
    part = _Portion(begin, begin + cells)
    loop, written_out = steps.loop, _short(steps, caps)
    body: list[Stmt] = []
    for at in written_out:
        body.extend(copy_body(part.of(steps, {loop.symbol: at}), {loop.symbol: at}, {}))
    rest = replace(loop, lo=loop.lo + len(written_out) * loop.step, body=part.of(steps, {}))
    if rest.trips != 0:
        body.extend(unless_once(rest))
    return For(number, ZERO, Affine.of(-(-_extent(steps) // cells)), tuple(body), LoopKind.PARALLEL)


def _short(steps: Steps, caps: Caps) -> Sequence[Affine]:
    """The first steps, as long as a register has several positions of each of their strides."""
    loop, size = steps.loop, max(array.dtype.itemsize for array in steps.arrays)
    found: list[Affine] = []
    for at in (loop.lo + n * loop.step for n in range(min(FIRST, loop.trips or 0))):
        lengths = [stride.step.substitute({loop.symbol: at}) for stride in steps.strides]
        if not all(one.is_constant and one.offset * NEAR * size <= caps.vector_bytes for one in lengths):
            break
        found.append(at)
    return found


@frozen
class _Portion:
    """The positions from `begin` on that lie before `end`."""

    begin: Affine
    end: Affine

    def of(self, steps: Steps, values: Mapping[Symbol, Affine]) -> tuple[Stmt, ...]:
        """What a step does in them, whose strides go by what symbols are."""
        strides = {id(stride.loop): stride for stride in steps.strides}
        body = tuple(
            part
            for stmt in steps.body
            for part in (self._strided(strides[id(stmt)], values) if isinstance(stmt, For) else (stmt,))
        )
        return body if steps.condition is None else (If(steps.condition, body),)

    def _strided(self, stride: Stride, values: Mapping[Symbol, Affine]) -> Sequence[Stmt]:
        first, last = Symbol("first", lower=0), Symbol("last", lower=0)
        least = Apply(OPS["minimum"], (_before(stride, self.end), Index(stride.loop.hi)), I64)
        binds = Bind(first, _before(stride, self.begin)), Bind(last, least)
        loop = replace(stride.loop, lo=Affine.of(first), hi=Affine.of(last))
        step = stride.step.substitute(values)
        if values and step.is_constant:
            at = stride.start + Affine.of(loop.symbol) * step.offset
            body = tuple(stmt for stmt in loop.body if not _binds(stmt, stride.position))
            body = substitute_statements(body, {stride.position: at})
            return *binds, replace(loop, body=body, kind=LoopKind.PARALLEL)
        if any(isinstance(stmt, For) for stmt in loop.body):
            return *binds, loop
        return *binds, *in_steps(loop, (loop.body,) * TOGETHER)


def _before(stride: Stride, end: Affine) -> Expr:
    """How many of the positions lie before `end`, if there is no end to them."""
    ahead = Apply(OPS["maximum"], (Index(end - stride.start + stride.step - 1), Const(0, I64)), I64)
    return Apply(OPS["raw_divide"], (ahead, Index(stride.step)), I64)


def _binds(stmt: Stmt, symbol: Symbol) -> bool:
    return isinstance(stmt, Bind) and stmt.symbol is symbol
