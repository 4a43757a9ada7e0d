"""`round(x, digits)` of Python floats: exact, as in Python, not by way of a rounded product as in NumPy."""

from __future__ import annotations

from typing import Any

from ...ir.ops import OPS
from .array import SymbolicArray
from .elementwise import elementwise

__all__ = ["MOST_DECIMALS", "to_decimals"]

MOST_DECIMALS = 22
"""Greater powers of ten are no float64."""

_EXACT = 2.0**53


def to_decimals(number: SymbolicArray, places: int) -> SymbolicArray:
    """A float64 rounded to so many decimals, to an even last one where two are equally near. What has no more
    decimals than a float64 of its size is itself, and so is what is no number."""
    scale = 10.0 ** abs(places)
    x = SymbolicArray(number.cells, number.record, is_scalar=True)
    whole, scaled = _times(x, scale) if places >= 0 else _over(x, scale)
    rounded = _of("divide" if places >= 0 else "multiply", whole, scale)
    result = _of("where", _of("less", _of("absolute", scaled), _EXACT), rounded, x)
    return SymbolicArray(result.cells, result.record, weak=float)


def _times(x: SymbolicArray, scale: float) -> tuple[SymbolicArray, SymbolicArray]:
    """The integer next to the product, which is `scaled` and an `error`; and `scaled`."""
    scaled = _of("multiply", x, scale)
    error = _of("fma", x, scale, _of("negative", scaled))
    whole = _of("rint", scaled)
    rest = _of("subtract", scaled, whole)
    is_half = _of("equal", _of("absolute", rest), 0.5)
    is_beyond = _of("logical_and", is_half, _of("greater", _of("multiply", rest, error), 0))
    return _moved(whole, error, is_beyond, 0.5), scaled


def _over(x: SymbolicArray, scale: float) -> tuple[SymbolicArray, SymbolicArray]:
    """The integer next to the quotient; and the quotient, rounded."""
    scaled = _of("divide", x, scale)
    whole = _of("rint", scaled)
    rest = _of("fma", _of("negative", whole), scale, x)
    return _moved(whole, rest, _of("greater", _of("absolute", rest), scale / 2), scale / 2), scaled


def _moved(whole: SymbolicArray, rest: SymbolicArray, is_beyond: SymbolicArray, half: float) -> SymbolicArray:
    """The integer, or the next one towards the rest if it is nearer, or as near and even."""
    halved = _of("multiply", whole, 0.5)
    is_odd = _of("not_equal", halved, _of("rint", halved))
    is_tie = _of("logical_and", is_odd, _of("equal", _of("absolute", rest), half))
    is_moved = _of("logical_or", is_beyond, is_tie)
    return _of("where", is_moved, _of("add", whole, _of("sign", rest)), whole)


def _of(name: str, *operands: Any) -> SymbolicArray:
    return elementwise(OPS[name], *operands)
