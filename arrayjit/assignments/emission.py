"""Pieces become assignments of the IR; the projection decides which.

- every point has a cell of its own: one plain assignment, without loops whose last point wins;
- points share cells and the op has an identity: one accumulating assignment;
- otherwise: loops, in order, over what shares cells, around a plain assignment.
"""

from __future__ import annotations

from ..errors import Location
from ..frozen import frozen
from ..ir.assign import Assign, Loop, Statement
from ..ir.expr import Apply, Const, Expr, Load
from ..ir.index import Affine, Symbol, affine
from ..ir.ops import Op
from ..ir.tensor import Tensor
from ..ir.walk import substitute
from .elements import combined
from .pieces import Piece
from .projections import Loops, Projection

__all__ = ["Emission", "Sharing", "everywhere"]

ZERO = Affine.of(0)


@frozen
class Sharing:
    """Which points of a projection share cells: `own` loops are in the index, `shared` ones are not, so that
    their points do; `apart` if no two points of the own loops do."""

    own: Loops
    shared: Loops
    apart: bool

    @staticmethod
    def of(projection: Projection) -> Sharing:
        written = {symbol for position in projection.index for symbol in position.symbols}
        own = tuple(loop for loop in projection.loops if loop[0] in written)
        shared = tuple(loop for loop in projection.loops if loop[0] not in written)
        return Sharing(own, shared, Projection(own, projection.index).is_injective())

    def is_plain(self, accum: Op | None) -> bool:
        """Whether one plain assignment will do."""
        return self.apart and (accum is None or all(extent == 1 for _, extent in self.shared))

    def is_ordered(self, accum: Op | None) -> bool:
        """Whether points have to be taken one after the other."""
        return not self.is_plain(accum) and (accum is None or accum.identity is None)


@frozen
class Emission:
    """A piece that puts `value` into a tensor, by `accum` if there is one: from `start` on, or from what
    `held` has."""

    piece: Piece
    into: Tensor
    held: Tensor
    value: Expr
    accum: Op | None
    start: Expr | None

    def statements(self) -> tuple[Statement, ...]:
        piece, accum = self.piece, self.accum
        sharing = Sharing.of(piece.projection)
        if any(extent == 0 for _, extent in piece.loops):
            return ()
        if sharing.is_plain(accum):
            return (self.plain(sharing),)
        if accum is None or sharing.is_ordered(accum):
            return (self.ordered(sharing),)
        self.onto(self.held, self.value)
        fused = accum.name == "add" and _is_product(self.value)
        loops, index = _extents(piece.loops), piece.target.index
        return (Assign(loops, self.into, index, self.value, accum, self.start, fused, piece.loc),)

    def plain(self, sharing: Sharing) -> Assign:
        """One assignment, axes counted upwards; of the points that share a cell the last one."""
        piece, accum = self.piece, self.accum
        values = {symbol: Affine.of(extent - 1) for symbol, extent in sharing.shared}
        for symbol, extent in sharing.own:
            if any(position == extent - 1 - symbol for position in piece.target.index):
                values[symbol] = extent - 1 - symbol
        index = tuple(position.substitute(values) for position in piece.target.index)
        value = substitute(self.value, values)
        if accum is not None:
            onto = combined(accum, self.start or Load(self.held, index), value, piece.loc)
            value = value if self.start is not None and accum.identity is not None else onto
        return Assign(_extents(sharing.own), self.into, index, value, loc=piece.loc)

    def ordered(self, sharing: Sharing) -> Statement:
        """What shares cells in loops around the rest."""
        piece = self.piece
        around, inside = (sharing.shared, sharing.own) if sharing.apart else (piece.loops, ())
        value = self.onto(self.into, self.value)
        statement: Statement = Assign(_extents(inside), self.into, piece.target.index, value, loc=piece.loc)
        for symbol, extent in reversed(around):
            statement = Loop(symbol, ZERO, Affine.of(extent), 1, (statement,), piece.loc)
        return statement

    def onto(self, held: Tensor, value: Expr) -> Expr:
        """The value combined with what a tensor has in its cell; raises DTypeError if it cannot be."""
        if self.accum is None:
            return value
        return combined(self.accum, Load(held, self.piece.target.index), value, self.piece.loc)


def everywhere(tensor: Tensor, source: Const | Tensor, loc: Location) -> Assign:
    """Every cell of a tensor gets the constant, or what the other tensor has there."""
    symbols = tuple(Symbol(f"i{axis}") for axis in range(tensor.rank))
    index = affine(symbols)
    value = source if isinstance(source, Const) else Load(source, index)
    return Assign(tuple(zip(symbols, tensor.shape, strict=True)), tensor, index, value, loc=loc)


def _extents(loops: Loops) -> tuple[tuple[Symbol, Affine], ...]:
    return tuple((symbol, Affine.of(extent)) for symbol, extent in loops)


def _is_product(value: Expr) -> bool:
    """A float product is added without being rounded first, as in matrix products."""
    return isinstance(value, Apply) and value.op.name == "multiply" and value.dtype.is_float
