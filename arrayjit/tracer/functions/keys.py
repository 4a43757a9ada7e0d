"""Keys: integers that lie as the cells do whose order is wanted. NaN comes last.

A float's bits, as a signed integer `b`, lie as positive floats do; of negative ones all bits but the sign are
turned, `b ^ ((b >> 63) & (2**63 - 1))`. Then NaN with a sign come first, as many as there are without one,
and are moved to the end.
"""

from __future__ import annotations

from ...ir.conditions import compare, is_nan, one_of
from ...ir.definitions.layout import mantissa_bits, signed
from ...ir.dtype import BF16, BOOL, I64, DType, Kind, named
from ...ir.expr import Apply, Cast, Const, Expr, Index, dtype_of
from ...ir.index import Affine
from ...ir.ops import op

__all__ = [
    "MOST_NUMBERED",
    "bits_from",
    "cell_of",
    "digit_of",
    "key",
    "key_of_equals",
    "key_with_place",
    "length_of",
    "numbered_type",
    "place_of",
    "type_of_keys",
    "zeros_below",
]

_OF_BOOLS = named("u8")
_PLACE_BITS = 16

MOST_NUMBERED = 1 << _PLACE_BITS
"""Of so many keys each can take its place along."""


def type_of_keys(dtype: DType) -> DType:
    """The type of the keys of cells of a type."""
    return signed(dtype) if dtype.is_float else _OF_BOOLS if dtype is BOOL else dtype


def key(cell: Expr) -> Expr:
    """The cell's own key, by which `cell_of` finds it again: -0.0 comes before 0.0."""
    dtype = dtype_of(cell)
    if not dtype.is_float:
        return Cast(cell, type_of_keys(dtype)) if dtype is BOOL else cell
    place = _turned(Apply(op("bits"), (cell,), signed(dtype)))
    nans, least, ahead = _nans(dtype)
    beyond = compare("less", place, Const(least.value + nans, least.dtype))
    there = one_of(beyond, Apply(op("bitwise_xor"), (place, least), least.dtype), place)
    return Apply(op("add"), (there, one_of(beyond, ahead, Const(-nans, least.dtype))), least.dtype)


def key_of_equals(cell: Expr) -> Expr:
    """As `key`, but equal cells have one key, and so have all NaN."""
    dtype = dtype_of(cell)
    if not dtype.is_float:
        return key(cell)
    positive = key(Apply(op("add"), (cell, Const(0.0, dtype)), dtype))
    last = Const((1 << (dtype.bits - 1)) - 1, signed(dtype))
    return one_of(is_nan(cell), last, positive)


def numbered_type(keys: DType) -> DType | None:
    """The type of keys with their places, numbers of 16 bits, behind them; None where there is none."""
    bits = max(32, 2 * keys.bits)
    return None if bits > 64 else named(f"{'i' if keys.kind is Kind.INT else 'u'}{bits}")


def key_with_place(key: Expr, place: Affine) -> Expr:
    """A key and its place in one integer: none are equal, and those of equal keys lie as their places do."""
    dtype = dtype_of(key)
    whole = numbered_type(dtype)
    assert whole is not None
    above = Apply(op("raw_left_shift"), (Cast(key, whole), Const(_PLACE_BITS, whole)), whole)
    return Apply(op("bitwise_or"), (above, Cast(Index(place), whole)), whole)


def place_of(key: Expr) -> Expr:
    """The place behind a key."""
    dtype = dtype_of(key)
    return Cast(Apply(op("bitwise_and"), (key, Const(MOST_NUMBERED - 1, dtype)), dtype), I64)


def cell_of(key: Expr, dtype: DType) -> Expr:
    """The cell of a type that has the key."""
    if not dtype.is_float:
        return Cast(key, BOOL) if dtype is BOOL else key
    nans, least, ahead = _nans(dtype)
    beyond = compare("greater_equal", key, ahead)
    step = one_of(beyond, Const(-ahead.value, ahead.dtype), Const(nans, ahead.dtype))
    there = Apply(op("add"), (key, step), ahead.dtype)
    place = one_of(beyond, Apply(op("bitwise_xor"), (there, least), least.dtype), there)
    return Apply(op("from_brain_bits" if dtype is BF16 else "from_bits"), (_turned(place),), dtype)


def digit_of(key: Expr, shift: Expr, bits: int) -> Expr:
    """So many bits of a key from the shift on. Of signed integers, negative ones come first."""
    dtype = dtype_of(key)
    if dtype.kind is Kind.INT:
        key = Apply(op("bitwise_xor"), (key, Const(-(1 << (dtype.bits - 1)), dtype)), dtype)
    return bits_from(key, shift, bits)


def bits_from(whole: Expr, shift: Expr, bits: int) -> Expr:
    """So many bits of an integer from the shift on, as an int64."""
    dtype, mask = dtype_of(whole), (1 << bits) - 1
    moved = Apply(op("raw_right_shift"), (whole, shift), dtype)
    if bits == dtype.bits and dtype.kind is Kind.INT:
        return Apply(op("bitwise_and"), (Cast(moved, I64), Const(mask, I64)), I64)
    return Cast(Apply(op("bitwise_and"), (moved, Const(mask, dtype)), dtype), I64)


def length_of(bits: Expr) -> Expr:
    """How many bits there are up to the highest one that is set, as an int64."""
    dtype, filled = dtype_of(bits), bits
    for step in (1, 2, 4, 8, 16, 32):
        if step < dtype.bits:
            lower = Apply(op("raw_right_shift"), (filled, Const(step, dtype)), dtype)
            filled = Apply(op("bitwise_or"), (filled, lower), dtype)
    return Cast(Apply(op("popcount"), (filled,), dtype), I64)


def zeros_below(bits: Expr) -> Expr:
    """How many bits lie below the lowest one that is set, as an int64: all, if there is none."""
    dtype = dtype_of(bits)
    before = Apply(op("raw_subtract"), (bits, Const(1, dtype)), dtype)
    below = Apply(op("bitwise_and"), (before, Apply(op("invert"), (bits,), dtype)), dtype)
    return Cast(Apply(op("popcount"), (below,), dtype), I64)


def _turned(bits: Expr) -> Expr:
    """The bits of a float in the order of floats, or the other way round."""
    whole = dtype_of(bits)
    signs = Apply(op("raw_right_shift"), (bits, Const(whole.bits - 1, whole)), whole)
    mask = Apply(op("bitwise_and"), (signs, Const((1 << (whole.bits - 1)) - 1, whole)), whole)
    return Apply(op("bitwise_xor"), (bits, mask), whole)


def _nans(dtype: DType) -> tuple[int, Const, Const]:
    """How many NaN have a sign, the place of the first of them, and its key."""
    whole, count, least = signed(dtype), (1 << mantissa_bits(dtype)) - 1, -(1 << (dtype.bits - 1))
    return count, Const(least, whole), Const(-least - count, whole)
