"""How numbers lie in bits: what definitions need to know to take floats apart and put them together."""

from __future__ import annotations

from ..dtype import BF16, DType, named
from .terms import Term

__all__ = [
    "from_bits",
    "largest_exponent",
    "mantissa_bits",
    "power_of_two",
    "shifted_right",
    "signed",
    "unsigned",
]


def signed(dtype: DType) -> DType:
    """The signed integer of the same width."""
    return named(f"i{dtype.bits}")


def unsigned(dtype: DType) -> DType:
    """The unsigned integer of the same width."""
    return named(f"u{dtype.bits}")


_MANTISSA_BITS = {"float16": 10, "bfloat16": 7, "float32": 23, "float64": 52}


def mantissa_bits(dtype: DType) -> int:
    """Those that are stored, without the first."""
    return _MANTISSA_BITS[dtype.name]


def largest_exponent(dtype: DType) -> int:
    """That of the largest finite number, which is also what biases the stored exponent."""
    return (1 << (dtype.bits - 2 - mantissa_bits(dtype))) - 1


def from_bits(bits: Term, dtype: DType) -> Term:
    """The float whose bytes a signed integer of its width holds."""
    return bits.op("from_brain_bits" if dtype is BF16 else "from_bits")


def power_of_two(biased: Term, dtype: DType) -> Term:
    """The float whose stored exponent is `biased`: `2**(biased - largest_exponent)`."""
    return biased.op("raw_left_shift", mantissa_bits(dtype)).op("from_bits")


def shifted_right(x: Term, count: int) -> Term:
    """A signed integer's bits moved down, zeros from above; arithmetic shifts of 64 bits are slow."""
    return x.cast(unsigned(x.dtype)).op("raw_right_shift", count).cast(x.dtype)
