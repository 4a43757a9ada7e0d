"""beforehand: positions that steps look at again and again are looked through before the first of them.

    for i in sequential(1, 40):                         signs = 0
        for j in sequential(1, 80):                     for j in parallel(1, 80):
            n = x[j]                                        t = x[j]
            raise_(not (n + 9 >= 0), ...)                   signs = reduce(bitwise_or, signs, t | (8 - t))
            raise_(not (8 - n >= 0), ...)         ->    if signs < 0:
            m = where(n < 0, n + 9, n)                      (the loops of before)
            y[i, j] = y[i, j - 1] + table[m]            else:
                                                            for i in sequential(1, 40):
                                                                for j in sequential(1, 80):
                                                                    n = x[j]
                                                                    m = n
                                                                    y[i, j] = y[i, j - 1] + table[m]

Steps that may end with an exception are not rearranged. Where no position is negative or too large, which one
number tells (`positions`), none does, and each position is what it counts to. Else the steps are done as they
were, with their exception after all that comes before it. Both forms take their steps in order, so that they
have the same bits.

Of positions that go along with a loop (`ends`) the first and the last tell:

    for v in sequential(c, 101):                    if (c | 100 - c) < 0:
        raise_(not (v + 101 >= 0), ...)                 (the loop of before)
        w[where(v < 0, v + 101, v)] = 2          ->  else:
                                                        for v in sequential(c, 101):
                                                            w[v] = 2

So do they of sums and products with what stays, which must not wrap around, and of positions that
these make, as `j * rows + i` of arguments: without tests a loop goes along in vector registers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from ...ir.code import Caps
from ...ir.dtype import I64
from ...ir.expr import Expr, Index, Local, Variable
from ...ir.index import Affine, Symbol
from ...ir.loops import Bind, For, If, Kernel, LoopKind, Raise, Stmt, walk_statements
from ...ir.walk import rewrite_loops
from ..analysis.access import Range, effects
from ..analysis.positions import Positions, are_negative, tested
from ..analysis.repeats import HEAVY, weight
from ..analysis.trips import enter
from .ends import Ends, straight

__all__ = ["beforehand"]


def beforehand(kernel: Kernel, caps: Caps) -> Kernel:
    """Every such nest of steps in two forms, of which its positions choose one."""
    if not any(isinstance(stmt, Raise) for stmt in walk_statements(kernel.body)):
        return kernel
    ranges: dict[Symbol, Range] = {}
    notes: list[str] = []

    def in_two_forms(loop: For) -> Iterable[Stmt] | None:
        enter(loop, ranges)
        looked_at = _Steps.of(loop) or Ends.of(loop, ranges)
        if looked_at is None:
            return None
        notes.append(f"beforehand: positions are looked through before the loop {loop.symbol.hint}")
        return looked_at.in_two_forms()

    return kernel.with_body(rewrite_loops(kernel.body, in_two_forms), notes)


class _Steps:
    """A nest of steps: the `positions` that it binds symbols to, the `last` one that each may be, and the
    `tests` of that, by identity."""

    def __init__(self, nest: For) -> None:
        self.nest = nest
        inside = list(walk_statements((nest,)))
        self.written = effects((nest,), {}).writes
        self.symbols = {stmt.symbol for stmt in inside if isinstance(stmt, (Bind, For))}
        self.positions: dict[Symbol, Positions] = {}
        self.last: dict[Symbol, Affine] = {}
        self.tests: set[int] = set()

    @staticmethod
    def of(nest: For) -> _Steps | None:
        """None if they stop for something else, or look at no position twice, or are too long to be written
        twice."""
        inside = list(walk_statements((nest,)))
        raises = {id(stmt) for stmt in inside if isinstance(stmt, Raise)}
        kinds = {stmt.kind for stmt in inside if isinstance(stmt, For)}
        if not raises or kinds != {LoopKind.SEQUENTIAL} or weight(nest.body) > HEAVY:
            return None
        steps = _Steps(nest)
        steps.collect(nest, ())
        are_known = steps.tests == raises and steps.last.keys() == steps.positions.keys()
        return steps if are_known and any(map(_repeats, steps.positions.values())) else None

    def collect(self, loop: For, around: tuple[For, ...]) -> None:
        """Enter the positions and the tests that stand in a loop."""
        around = (*around, loop)
        for stmt in loop.body:
            match stmt:
                case For():
                    self.collect(stmt, around)
                case Bind(symbol=symbol, value=value):
                    positions = Positions.of(value, around)
                    if positions is not None and self.are_there_before(positions):
                        self.positions[symbol] = positions
                case Raise(condition=condition) if self.is_test(condition):
                    self.tests.add(id(stmt))
                case _:
                    pass

    def are_there_before(self, positions: Positions) -> bool:
        """Can they be read before the first step, which certainly comes to them?"""
        own = positions.own()
        unknown = self.symbols - {loop.symbol for loop in own}
        places = (*positions.load.index, *(end for loop in own for end in (loop.lo, loop.hi)))
        return (
            positions.load.tensor.storage not in self.written
            and all(loop.trips for loop in positions.loops if loop not in own)
            and not any(symbol in unknown for place in places for symbol in place.symbols)
        )

    def is_test(self, condition: Expr) -> bool:
        """Does a position between 0 and the last one pass? The last one is what another test says."""
        value = tested(condition)
        if value is None:
            return False
        symbol = next((symbol for symbol in value.symbols if symbol in self.positions), None)
        if symbol is None:
            return False
        rest = value - Affine.of(symbol) * value.coefficient(symbol)
        match value.coefficient(symbol):
            case 1:
                least = rest.bounds({})
                return least is not None and least[0] >= 0
            case -1:
                return not self.symbols & set(rest.symbols) and self.last.setdefault(symbol, rest) == rest
            case _:
                return False

    def in_two_forms(self) -> Iterator[Stmt]:
        """What tells the signs of all positions, and the choice by them."""
        signs = {symbol: Variable("signs", I64) for symbol in self.positions}
        for symbol, positions in self.positions.items():
            loops = [_in_any_order(loop) for loop in positions.own()]
            yield from positions.told(loops, Index(self.last[symbol]), signs[symbol])
        instead = straight(
            self.nest, lambda stmt: id(stmt) in self.tests, lambda place: place.symbol in self.positions
        )
        yield If(are_negative([Local(sign) for sign in signs.values()]), (self.nest,), instead)


def _repeats(positions: Positions) -> bool:
    """Do steps look at one of them more than once?"""
    own = positions.own()
    return any(loop.trips != 1 for loop in positions.loops if loop not in own)


def _in_any_order(loop: For) -> For:
    return replace(loop, kind=LoopKind.PARALLEL) if loop.step == 1 else loop
