"""Pieces become assignments of the IR; the projection decides which.

- every point has a cell of its own: one plain assignment, without loops whose last point wins;
- points share cells and the op has an identity: one accumulating assignment;
- otherwise: loops, in order, over what shares cells, around a plain assignment.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..errors import Location
from ..ir.assign import Assign, Loop, Statement
from ..ir.expr import Apply, Expr, Load
from ..ir.index import Affine, Symbol, affine
from ..ir.ops import Op
from ..ir.tensor import Tensor
from ..ir.walk import substitute
from .elements import combined
from .projections import Loops, Projection

__all__ = ["Emission", "Shape", "everywhere"]

ZERO = Affine.of(0)


@dataclass(frozen=True, slots=True)
class Shape:
    """What the projection of a piece says: `own` loops are in the target's index, `shared` ones are not, so
    that their points share cells; `apart` if no two points of the own loops do."""

    own: Loops
    shared: Loops
    apart: bool

    @staticmethod
    def of(projection: Projection) -> Shape:
        written = {symbol for position in projection.index for symbol in position.symbols}
        own = tuple(loop for loop in projection.loops if loop[0] in written)
        shared = tuple(loop for loop in projection.loops if loop[0] not in written)
        return Shape(own, shared, Projection(own, projection.index).is_injective())

    def is_plain(self, accum: Op | None) -> bool:
        """Whether one plain assignment will do."""
        return self.apart and (accum is None or all(extent == 1 for _, extent in self.shared))

    def is_ordered(self, accum: Op | None) -> bool:
        """Whether points have to be taken one after the other."""
        return not self.is_plain(accum) and (accum is None or accum.identity is None)


@dataclass(frozen=True, slots=True)
class Emission:
    """`into[index] = value` for every point, by `accum` if there is one: from `start` on, or from what
    `held` has."""

    shape: Shape
    loops: Loops
    into: Tensor
    held: Tensor
    index: tuple[Affine, ...]
    value: Expr
    accum: Op | None
    start: Expr | None
    loc: Location

    def statements(self) -> tuple[Statement, ...]:
        if any(extent == 0 for _, extent in self.loops):
            return ()
        if self.shape.is_plain(self.accum):
            return (self.plain(),)
        if self.shape.is_ordered(self.accum):
            return (self.ordered(),)
        assert self.accum is not None
        combined(self.accum, Load(self.held, self.index), self.value, self.loc)
        return (
            Assign(
                _extents(self.loops),
                self.into,
                self.index,
                self.value,
                self.accum,
                self.start,
                _is_product(self.value) and self.accum.name == "add",
                self.loc,
            ),
        )

    def plain(self) -> Assign:
        """One assignment; of the points that share a cell the last one."""
        value = substitute(
            self.value, {symbol: Affine.of(extent - 1) for symbol, extent in self.shape.shared}
        )
        if self.accum is not None:
            start = Load(self.held, self.index) if self.start is None else self.start
            onto = combined(self.accum, start, value, self.loc)
            value = value if self.start is not None and self.accum.identity is not None else onto
        return Assign(_extents(self.shape.own), self.into, self.index, value, loc=self.loc)

    def ordered(self) -> Statement:
        """What shares cells in loops around the rest."""
        around = self.shape.shared if self.shape.apart else self.loops
        inside = () if around is self.loops else self.shape.own
        value = self.value
        if self.accum is not None:
            value = combined(self.accum, Load(self.into, self.index), value, self.loc)
        statement: Statement = Assign(_extents(inside), self.into, self.index, value, loc=self.loc)
        for symbol, extent in reversed(around):
            statement = Loop(symbol, ZERO, Affine.of(extent), 1, (statement,), self.loc)
        return statement


def everywhere(tensor: Tensor, value: Callable[[tuple[Affine, ...]], Expr], loc: Location) -> Assign:
    """Every cell of a tensor gets the value for its index."""
    symbols = tuple(Symbol(f"i{axis}") for axis in range(tensor.rank))
    index = affine(symbols)
    return Assign(tuple(zip(symbols, tensor.shape, strict=True)), tensor, index, value(index), loc=loc)


def _extents(loops: Loops) -> tuple[tuple[Symbol, Affine], ...]:
    return tuple((symbol, Affine.of(extent)) for symbol, extent in loops)


def _is_product(value: Expr) -> bool:
    """A float product is added without being rounded first, as in matrix products."""
    return isinstance(value, Apply) and value.op.name == "multiply" and value.dtype.is_float
