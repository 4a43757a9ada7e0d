"""PTX's types: one row each."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...frozen import frozen_by_identity

__all__ = ["TYPES", "Array", "Type", "unsigned"]

Array = NDArray[Any]


@frozen_by_identity
class Type:
    """A type of values. `kind` is u, s (integers), b (bits), f (floats) or p (predicates).

    `dtype` is what operations compute with: a bfloat16 is widened to a float32. `packed` elements share
    a register. `significand` is the number of bits of a float's significand, the hidden one included.
    """

    name: str
    kind: str
    bits: int
    dtype: np.dtype[Any]
    packed: int = 1
    significand: int = 0

    @property
    def nbytes(self) -> int:
        return self.bits // 8

    @property
    def is_float(self) -> bool:
        return self.kind == "f"

    @property
    def is_widened(self) -> bool:
        """Is a value wider while computed with than in its register?"""
        return self.dtype.itemsize * 8 * self.packed != self.bits and self.kind == "f"


def _row(name: str, dtype: str, packed: int = 1, significand: int = 0) -> Type:
    kind = "f" if name.startswith("bf") else name[0]
    bits = 1 if name == "pred" else int(name.lstrip("ubsf").split("x")[0]) * packed
    return Type(name, kind, bits, np.dtype(dtype), packed, significand)


TYPES = {
    row.name: row
    for row in (
        _row("pred", "bool"),
        *(_row(f"u{bits}", f"u{bits // 8}") for bits in (8, 16, 32, 64)),
        *(_row(f"s{bits}", f"i{bits // 8}") for bits in (8, 16, 32, 64)),
        *(_row(f"b{bits}", f"u{bits // 8}") for bits in (8, 16, 32, 64)),
        _row("f16", "f2", significand=11),
        _row("f32", "f4", significand=24),
        _row("f64", "f8", significand=53),
        _row("bf16", "f4", significand=8),
        _row("f16x2", "f2", packed=2, significand=11),
        _row("bf16x2", "f4", packed=2, significand=8),
        _row("u16x2", "u2", packed=2),
        _row("s16x2", "i2", packed=2),
    )
}


def unsigned(bits: int) -> np.dtype[Any]:
    """The dtype that holds so many bits."""
    return np.dtype(f"u{bits // 8}")
