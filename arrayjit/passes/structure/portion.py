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

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from ...frozen import frozen
from ...ir.code import Caps
from ...ir.dtype import I64
from ...ir.expr import Apply, Const, Expr, Index
from ...ir.index import Affine, Symbol
from ...ir.loops import Bind, Comment, Define, For, Kernel, LoopKind, Stmt, Store, walk_statements, written
from ...ir.ops import OPS
from ...ir.tensor import Tensor
from ...ir.walk import rewrite_loops
from ..analysis.access import Range, Ranges, effects, reads
from ..analysis.copies import in_steps
from ..analysis.trips import enter

__all__ = ["portion"]

LARGE = 4
"""An array of so many portions is worth them."""

VISITS = 4
"""So many cells of a portion are worth the two divisions that find them."""

TOGETHER = 4
"""So many strides are written out one after another: a loop takes longer than a store."""

ZERO = Affine.of(0)


def portion(kernel: Kernel, caps: Caps) -> Kernel:
    """All steps that stride through a large array taken in one portion of it after another."""
    ranges: dict[Symbol, Range] = {}
    notes: list[str] = []

    def in_portions(loop: For) -> Sequence[Stmt] | None:
        enter(loop, ranges)
        steps = _Steps.of(loop, ranges)
        cells = 0 if steps is None else steps.cells(ranges, caps)
        if steps is None or not cells:
            return None
        notes.append(f"portion: all steps of loop {loop.symbol.hint} are taken in {cells:,} cells at a time")
        return (steps.in_portions(cells),)

    return kernel.with_body(rewrite_loops(kernel.body, in_portions), notes)


@frozen
class _Stride:
    """A loop whose iterations stand at the positions `start`, `start + step`, `start + 2 * step`, ..."""

    loop: For
    start: Affine
    step: Affine

    @staticmethod
    def of(loop: For, arrays: Collection[Tensor], ranges: Ranges) -> _Stride | None:
        """None where it is not known that they touch no other cells of the arrays, and go upwards."""
        runs, does = loop.hi.bounds(ranges), effects(loop.body, ranges)
        if runs is None or runs[0] < 0 or (loop.lo, loop.step) != (ZERO, 1) or does.leaves or does.updates:
            return None
        values = {stmt.symbol: stmt.value for stmt in loop.body if isinstance(stmt, Bind)}
        own = {loop.symbol, *values}
        match [*set(_positions(loop.body, arrays))]:
            case [Affine(symbol=Symbol() as position)] if position in values:
                stride = _Stride._by(loop, values[position])
            case _:
                return None
        if stride is None or not own.isdisjoint((*stride.start.symbols, *stride.step.symbols)):
            return None
        apart = stride.step.bounds(ranges)
        return stride if apart is not None and apart[0] > 0 else None

    @staticmethod
    def _by(loop: For, position: Expr) -> _Stride | None:
        """How a position follows from the number of the iteration."""
        match position:
            case Apply(
                op=add, args=(Index(value=start), Apply(op=multiply, args=(Index(value=step), count)))
            ):
                found = (add, multiply, count)
                known = (OPS["add"], OPS["multiply"], Index(Affine.of(loop.symbol)))
                return _Stride(loop, start, step) if found == known else None
            case _:
                return None

    def before(self, end: Affine) -> Expr:
        """How many of the positions lie before `end`, if there is no end to them."""
        ahead = Apply(OPS["maximum"], (Index(end - self.start + self.step - 1), Const(0, I64)), I64)
        return Apply(OPS["raw_divide"], (ahead, Index(self.step)), I64)

    def within(self, begin: Affine, end: Affine) -> Sequence[Stmt]:
        """What is done at the positions from `begin` on that lie before `end`."""
        first, last = Symbol("first", lower=0), Symbol("last", lower=0)
        least = Apply(OPS["minimum"], (self.before(end), Index(self.loop.hi)), I64)
        binds = Bind(first, self.before(begin)), Bind(last, least)
        loop = replace(self.loop, lo=Affine.of(first), hi=Affine.of(last))
        if any(isinstance(stmt, For) for stmt in loop.body):
            return *binds, loop
        return *binds, *in_steps(loop, (loop.body,) * TOGETHER)


def _positions(body: tuple[Stmt, ...], arrays: Collection[Tensor]) -> Iterator[Affine | None]:
    """Where along their first axis statements touch the arrays; None for anywhere."""
    for stmt in walk_statements(body):
        touched = [*reads(stmt)]
        if isinstance(stmt, Store):
            touched.append((stmt.tensor, stmt.index))
        elif (whole := written(stmt)) is not None:
            touched.append((whole, None))
        for tensor, index in touched:
            if tensor.storage in arrays:
                yield index[0] if index and tensor in arrays else None


@frozen
class _Steps:
    """A loop of steps that stride through `arrays`; `strides` are the loops of its body, in their order."""

    loop: For
    arrays: Collection[Tensor]
    strides: Sequence[_Stride]

    @staticmethod
    def of(loop: For, ranges: Ranges) -> _Steps | None:
        """None where steps do anything else, or one has to go on before another has been everywhere."""
        inner = [stmt for stmt in loop.body if isinstance(stmt, For)]
        rest = tuple(stmt for stmt in loop.body if not isinstance(stmt, For))
        if not inner or not all(one.kind is LoopKind.SEQUENTIAL for one in (loop, *inner)):
            return None
        arrays = effects(inner, ranges).writes.keys()
        if not all(isinstance(stmt, (Bind, Define, Comment)) for stmt in rest) or [*_positions(rest, arrays)]:
            return None
        strides = [stride for one in inner if (stride := _Stride.of(one, arrays, ranges)) is not None]
        return _Steps(loop, arrays, strides) if len(strides) == len(inner) else None

    @property
    def extent(self) -> int:
        """How many positions the longest array has; 0 where that is not known."""
        if not all(extent.is_constant for array in self.arrays for extent in array.shape):
            return 0
        return max(array.shape[0].constant for array in self.arrays)

    def cells(self, ranges: Ranges, caps: Caps) -> int:
        """How many positions make a portion; 0 where portions do not pay."""
        extent = self.extent
        if not extent:
            return 0
        cells = caps.l1_bytes * extent // sum(array.nbytes for array in self.arrays)
        steps = [stride.step.bounds(ranges) for stride in self.strides]
        longest = max(apart[1] for apart in steps if apart is not None)
        return cells if VISITS * longest <= cells <= extent // LARGE else 0

    def in_portions(self, cells: int) -> For:
        """All steps in one portion of so many positions, then in the next."""
        number = Symbol("p")
        begin = Affine.of(number) * cells
        strides = iter(self.strides)
        body = [
            part
            for stmt in self.loop.body
            for part in (next(strides).within(begin, begin + cells) if isinstance(stmt, For) else (stmt,))
        ]
        steps = replace(self.loop, body=tuple(body))
        return For(number, ZERO, Affine.of(-(-self.extent // cells)), (steps,), LoopKind.PARALLEL)
