"""Values as the bits that registers and memories hold."""

from __future__ import annotations

import numpy as np

from .types import Array, Type, unsigned

__all__ = ["bfloat_bits", "bfloat_values", "bits_of", "typed"]


def bfloat_values(bits: Array) -> Array:
    """bfloat16s, given as uint16, as float32s."""
    result: Array = (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)
    return result


def bfloat_bits(values: Array) -> Array:
    """float32s as the nearest bfloat16s, given as uint16; every NaN becomes 0x7fff."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    up = np.uint32(0x7FFF) + (bits >> np.uint32(16) & np.uint32(1))
    result: Array = np.where(
        np.isnan(values), np.uint16(0x7FFF), ((bits + up) >> np.uint32(16)).astype(np.uint16)
    )
    return result


def typed(bits: Array, kind: Type) -> Array:
    """Bits, shape (n,), as values; those of packed types have a second axis."""
    if kind.packed > 1:
        bits = bits.reshape(-1, 1).view(unsigned(kind.bits // kind.packed))
    return bfloat_values(bits) if kind.is_widened else bits.view(kind.dtype)


def bits_of(values: Array, kind: Type) -> Array:
    """Values as bits, shape (n,)."""
    values = bfloat_bits(values) if kind.is_widened else values.astype(kind.dtype, copy=False)
    return np.ascontiguousarray(values).view(unsigned(kind.bits)).reshape(-1)
