"""multiples: steps that fill cells which an earlier step has filled are left out.

    for k in sequential(2, 1001):                   for k in sequential(2, 1001):
        n = multiply(k, k)                              if k - 2 <= 0 or (k - 2) % 2 != 0 and ...:
        c = floor_divide(k - n + 1000000, k)                n = multiply(k, k)
        for j in sequential(0, c):          ->              c = floor_divide(k - n + 1000000, k)
            at = add(n, multiply(k, j))                     for j in sequential(0, c):
            a[at] = False                                       at = add(n, multiply(k, j))
                                                                a[at] = False

What a sieve strikes out by a multiple of a number it has struck out by the number itself. Where the numbers
of all steps are known, each step's cells are compared with those of a few early ones: those that start within
an earlier step's cells, go on in a multiple of its stride and do not go further fill nothing that does not
hold the value already. If such steps follow one another at equal distances, as multiples do, a remainder
tells them. Nothing else may be done in a step, and all steps fill in the same constant. Of the stores of a
sieve up to a million a third is left.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...frozen import frozen
from ...ir.conditions import both, compare, either
from ...ir.dtype import I64, named
from ...ir.expr import Apply, Cast, Const, Expr, Gather, Index, Load, Local, Variable
from ...ir.index import Affine, Symbol
from ...ir.loops import Bind, Comment, Define, For, If, Stmt, Store
from ...ir.ops import OPS
from ...ir.walk import bottom_up
from ..analysis.loopwise import Site, loopwise
from ..analysis.striding import Steps, Stride

__all__ = ["multiples"]

U32 = named("u32")

MOST = 1 << 16
"""The numbers of so many steps are worth looking at."""

EARLY = 16
"""So many steps at the beginning are compared with all later ones."""

PERIOD = 64
"""Steps that are left out follow one another at such a distance at most."""

SHARE = 32
"""A remainder is worth its time where it leaves out one of so many stores."""

Numbers = NDArray[Any]


@loopwise
def multiples(loop: For, site: Site) -> Sequence[Stmt] | None:
    """Steps that fill what an earlier step has filled left out."""
    steps = Steps.of(loop, site.ranges)
    fills = None if steps is None or steps.condition is not None else _Fills.of(steps)
    condition = None if fills is None else fills.condition(loop)
    if condition is None:
        return None
    site.notes.append(f"multiples: steps of loop {loop.symbol.hint} that fill nothing new are left out")
    return (_only_if(condition, loop),)


def _only_if(condition: Expr, loop: For) -> For:
    return For(loop.symbol, loop.lo, loop.hi, (If(condition, loop.body),), loop.kind, loop.step)


@frozen
class _Fills:
    """What each step fills, in numbers: where it starts, how long its strides are, and how many there are."""

    starts: Numbers
    strides: Numbers
    counts: Numbers

    @staticmethod
    def of(steps: Steps) -> _Fills | None:
        """None where these are not known, or steps differ in what they fill in."""
        loop, trips = steps.loop, steps.loop.trips
        if not loop.lo.is_constant or trips is None or not 2 <= trips <= MOST or len(steps.strides) != 1:
            return None
        (stride,) = steps.strides
        known = _Known({loop.symbol: loop.lo.offset + loop.step * np.arange(trips)})
        if not _fills(stride) or not all(known.enter(stmt) for stmt in steps.body):
            return None
        found = [known.affine(value) for value in (stride.start, stride.step, stride.loop.hi)]
        starts, strides, counts = (None if one is None else np.broadcast_to(one, (trips,)) for one in found)
        if starts is None or strides is None or counts is None:
            return None
        return _Fills(starts, strides, counts)

    def condition(self, loop: For) -> Expr | None:
        """Which steps fill anything new; None where nearly all of them do."""
        left = np.ones(len(self.counts), bool)
        least = max(1, int(self.counts.sum()) // SHARE)
        conditions = []
        for first in range(min(EARLY, len(left) - 1)):
            period = self._period(first) if left[first] else None
            if period is None:
                continue
            later = slice(first + period, None, period)
            if self.counts[later][left[later]].sum() >= least:
                left[later] = False
                conditions.append(_beside(loop, first, period))
        if not conditions:
            return None
        result = conditions[0]
        for more in conditions[1:]:
            result = both(result, more)
        return result

    def _period(self, first: int) -> int | None:
        """At which distance from one another all later steps fill nothing but what this one has filled."""
        start, stride = self.starts[first], self.strides[first]
        end = start + stride * self.counts[first]
        starts, strides, counts = (part[first + 1 :] for part in (self.starts, self.strides, self.counts))
        within = (starts >= start) & ((starts - start) % stride == 0) & (strides % stride == 0)
        covered = (counts == 0) | within & (starts + strides * (counts - 1) < end)
        for period in range(1, min(PERIOD, len(covered)) + 1):
            if covered[period - 1 :: period].all():
                return period
        return None


def _beside(loop: For, first: int, period: int) -> Expr:
    """Whether a step is none of those that follow the first at such distances."""
    forwards = 1 if loop.step > 0 else -1
    number = (Affine.of(loop.symbol) - loop.lo) * forwards
    apart = abs(loop.step)
    rest = Apply(OPS["raw_remainder"], (Cast(Index(number), U32), Const(period * apart, U32)), U32)
    other = compare("not_equal", rest, Const(first % period * apart, U32))
    return either(compare("less_equal", Index(number), Const(first * apart, I64)), other)


def _fills(stride: Stride) -> bool:
    """Is a constant stored in each of the positions, and nothing else done?"""
    rest = [stmt for stmt in stride.loop.body if not isinstance(stmt, Comment)]
    match rest:
        case [Bind(), Store(index=(Affine(symbol=position),), value=Const(), accum=None)]:
            return position is stride.position
        case _:
            return False


class _Known:
    """The numbers of all iterations of a loop at once."""

    def __init__(self, symbols: Mapping[Symbol, Numbers]) -> None:
        self.symbols = dict(symbols)
        self.locals: dict[Variable, Numbers] = {}

    def enter(self, stmt: Stmt) -> bool:
        """Note what a statement calls by a name; False where that is not known."""
        match stmt:
            case Bind(symbol=symbol, value=value):
                found = self.value(value)
                if found is not None:
                    self.symbols[symbol] = found
                return found is not None
            case Define(variable=variable, value=value):
                found = self.value(value)
                if found is not None:
                    self.locals[variable] = found
                return found is not None
            case _:
                return True

    def affine(self, value: Affine) -> Numbers | None:
        if any(symbol not in self.symbols for symbol in value.symbols):
            return None
        terms = (factor * self.symbols[symbol] for factor, symbol in value.terms)
        return np.asarray(sum(terms, np.int64(value.offset)))

    def value(self, expr: Expr) -> Numbers | None:
        with np.errstate(all="ignore"):
            return bottom_up(expr, self._node)

    def _node(self, node: Expr, operands: tuple[Numbers | None, ...]) -> Numbers | None:
        match node:
            case Const(value=number, dtype=dtype):
                return np.full(1, number, dtype.numpy)
            case Index(value=value):
                return self.affine(value)
            case Local(variable=variable):
                return self.locals.get(variable)
            case Load() | Gather():
                return None
            case Cast(dtype=dtype):
                return None if operands[0] is None else operands[0].astype(dtype.numpy)
            case Apply(op=op):
                return None if any(one is None for one in operands) else np.asarray(op.ref(*operands))
