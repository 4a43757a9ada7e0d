"""Positions that the program computes, brought within an axis: checked when it runs, wrapped, or clipped."""

from __future__ import annotations

from ...errors import IndexOutOfRange, ShapeError
from ...ir.conditions import both, compare, either, one_of
from ...ir.dtype import I64, Kind
from ...ir.expr import Apply, Const, Expr, Index, convert
from ...ir.index import Affine
from ...ir.ops import op
from ..record.trace import current_trace
from ..values.array import SymbolicArray, describe

__all__ = ["require_integers", "within"]

_MODES = ("raise", "wrap", "clip")
_ZERO = Const(0, I64)


def within(positions: SymbolicArray, extent: Affine, axis: int, mode: str = "raise") -> SymbolicArray:
    """The positions as int64 from 0 to below the extent of an axis. With "raise", negative ones count from
    the end and others raise IndexError."""
    if mode not in _MODES:
        raise ShapeError(
            f"clipmode must be one of 'clip', 'raise', or 'wrap' (got '{mode}')", fix="use mode='raise'"
        )

    def brought(position: tuple[Affine, ...]) -> Expr:
        return _brought(convert(positions.load(position), I64), extent, mode)

    def is_inside(position: tuple[Affine, ...]) -> Expr:
        return _is_inside(convert(positions.load(position), I64), extent)

    trace = current_trace()
    shape = positions.cells.shape
    if mode == "raise":
        known = f" with size {extent}" if extent.is_constant else ""
        words = f"index is out of bounds for axis {axis}{known}"
        trace.check(shape, is_inside, "IndexError", words)
    return SymbolicArray(trace.compute(shape, I64, brought, label="positions"), trace)


def _is_inside(value: Expr, extent: Affine) -> Expr:
    above = compare("greater_equal", value, Index(-extent))
    below = compare("less", value, Index(extent))
    return both(above, below)


def _brought(value: Expr, extent: Affine, mode: str) -> Expr:
    if mode == "wrap":
        return _around(value, extent)
    if mode == "clip":
        positive = Apply(op("maximum"), (value, _ZERO), I64)
        return Apply(op("minimum"), (positive, Index(extent - 1)), I64)
    negative = compare("less", value, _ZERO)
    return one_of(negative, Apply(op("add"), (value, Index(extent)), I64), value)


def _around(value: Expr, extent: Affine) -> Expr:
    """The position after any number of turns; of most it is one at most, which needs no division."""
    size = Index(extent)
    forwards = one_of(compare("less", value, _ZERO), Apply(op("add"), (value, size), I64), value)
    back = Apply(op("subtract"), (value, size), I64)
    near = one_of(compare("greater_equal", value, size), back, forwards)
    far = either(compare("less", value, Index(-extent)), compare("greater_equal", value, Index(extent * 2)))
    return Apply(op("rarely"), (far, Apply(op("remainder"), (value, size), I64), near), I64)


def require_integers(positions: SymbolicArray, words: str) -> None:
    """Raises IndexOutOfRange, saying `words`, for positions of another kind."""
    if positions.element_type.kind not in (Kind.INT, Kind.UINT):
        raise IndexOutOfRange(words, details=(describe(positions),), fix="convert them with .astype(int)")
