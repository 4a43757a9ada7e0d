"""Element types: one row each.

A row says how the type is called, how wide it is, and how NumPy, LLVM and C spell it. Memory and
register differ for one type only: a bool is an `i8` in memory and an `i1` in a register. A small float is
kept as its bits: it is moved, chosen and converted, and computed with in float32.

`DTYPES` are those that targets compute with. Complex numbers exist in the high-level IR only: the pass
`reals` makes pairs of their parts of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import TYPE_CHECKING

import numpy as np

from ..errors import DTypeError
from ..frozen import frozen_by_identity
from ..late import Late

if TYPE_CHECKING:
    import ml_dtypes
else:
    ml_dtypes = Late("ml_dtypes")

__all__ = [
    "BF16",
    "BOOL",
    "C64",
    "C128",
    "COMPLEX",
    "DTYPES",
    "F16",
    "F32",
    "F64",
    "I32",
    "I64",
    "SHORT_NAMES",
    "DType",
    "Kind",
    "from_numpy",
    "named",
    "of_any_order",
    "real_from_numpy",
]


_FOREIGN = "bfloat16"
"""What NumPy has from ml_dtypes, which is imported when it is met."""


class Kind(Enum):
    """The arithmetic family of an element type; the key of the spelling columns in `ops.py`."""

    BOOL = "bool"
    INT = "int"
    UINT = "uint"
    FLOAT = "float"
    COMPLEX = "complex"


@frozen_by_identity
class DType:
    """An element type. Rows are singletons: compare with `is`."""

    name: str
    short: str
    kind: Kind
    bits: int
    llvm: str
    llvm_memory: str
    c: str

    @property
    def itemsize(self) -> int:
        """Bytes in memory."""
        return self.bits // 8

    @property
    def numpy(self) -> np.dtype[np.generic]:
        return np.dtype(ml_dtypes.bfloat16 if self.name == _FOREIGN else self.name)

    @property
    def is_float(self) -> bool:
        return self.kind is Kind.FLOAT

    @property
    def is_small(self) -> bool:
        """A float that is computed with in float32."""
        return self.is_float and self.bits < 32

    @property
    def is_complex(self) -> bool:
        return self.kind is Kind.COMPLEX

    @property
    def is_inexact(self) -> bool:
        """Whether it is a type of rounded numbers, float or complex."""
        return self.kind in (Kind.FLOAT, Kind.COMPLEX)

    @property
    def part(self) -> DType:
        """The type of the real and of the imaginary part; of a real type, itself."""
        return _PARTS.get(self.short, self)

    @property
    def is_integer(self) -> bool:
        return self.kind in (Kind.INT, Kind.UINT)

    def __repr__(self) -> str:
        return self.short

    def __reduce__(self) -> tuple[Callable[[str], DType], tuple[str]]:
        return named, (self.short,)


def _row(name: str, short: str, kind: Kind, bits: int, llvm: str, c: str) -> DType:
    return DType(name, short, kind, bits, llvm, "i8" if kind is Kind.BOOL else llvm, c)


DTYPES: tuple[DType, ...] = (
    _row("bool", "bool", Kind.BOOL, 8, "i1", "_Bool"),
    _row("int8", "i8", Kind.INT, 8, "i8", "int8_t"),
    _row("int16", "i16", Kind.INT, 16, "i16", "int16_t"),
    _row("int32", "i32", Kind.INT, 32, "i32", "int32_t"),
    _row("int64", "i64", Kind.INT, 64, "i64", "int64_t"),
    _row("uint8", "u8", Kind.UINT, 8, "i8", "uint8_t"),
    _row("uint16", "u16", Kind.UINT, 16, "i16", "uint16_t"),
    _row("uint32", "u32", Kind.UINT, 32, "i32", "uint32_t"),
    _row("uint64", "u64", Kind.UINT, 64, "i64", "uint64_t"),
    _row("float16", "f16", Kind.FLOAT, 16, "i16", "uint16_t"),
    _row("bfloat16", "bf16", Kind.FLOAT, 16, "i16", "uint16_t"),
    _row("float32", "f32", Kind.FLOAT, 32, "float", "float"),
    _row("float64", "f64", Kind.FLOAT, 64, "double", "double"),
)

COMPLEX: tuple[DType, ...] = (
    _row("complex64", "c64", Kind.COMPLEX, 64, "", ""),
    _row("complex128", "c128", Kind.COMPLEX, 128, "", ""),
)
"""A real part, then an imaginary part. No target has them, so they have no spelling."""

_ROWS = (*DTYPES, *COMPLEX)
_BY_SHORT = {dtype.short: dtype for dtype in _ROWS}
_BY_NUMPY = {(dtype.numpy.kind, dtype.itemsize): dtype for dtype in _ROWS if dtype.name != _FOREIGN}

SHORT_NAMES = frozenset(_BY_SHORT)

BF16 = _BY_SHORT["bf16"]
BOOL = _BY_SHORT["bool"]
I32 = _BY_SHORT["i32"]
I64 = _BY_SHORT["i64"]
F16 = _BY_SHORT["f16"]
F32 = _BY_SHORT["f32"]
F64 = _BY_SHORT["f64"]
C64, C128 = COMPLEX

_PARTS = {"c64": F32, "c128": F64}


def named(short: str) -> DType:
    """The row called `short` (`"f32"`). Raises KeyError."""
    return _BY_SHORT[short]


def from_numpy(dtype: np.dtype[np.generic] | type | str) -> DType:
    """The row for a NumPy dtype. Raises DTypeError for one without a row, or of foreign byte order."""
    wanted = np.dtype(dtype)
    if not wanted.isnative:
        raise DTypeError(
            f"dtype {wanted.str!r} is not supported: numbers are made in the byte order of the machine",
            fix=f"convert what the function returns: result.astype({wanted.str!r})",
        )
    is_foreign = wanted.kind == "V" and wanted.name == _FOREIGN
    row = BF16 if is_foreign else _BY_NUMPY.get((wanted.kind, wanted.itemsize))
    if row is None:
        raise _unsupported(wanted, _ROWS)
    return row


def of_any_order(dtype: np.dtype[np.generic]) -> DType:
    """The row for the dtype of an array that is there, in any byte order. Raises DTypeError."""
    return from_numpy(dtype if dtype.isnative else dtype.newbyteorder("="))


def real_from_numpy(dtype: np.dtype[np.generic] | type | str) -> DType:
    """As `from_numpy`, where complex numbers are not supported."""
    row = from_numpy(dtype)
    if row.is_complex:
        raise _unsupported(row.numpy, DTYPES)
    return row


def _unsupported(dtype: np.dtype[np.generic], rows: Sequence[DType]) -> DTypeError:
    return DTypeError(
        f"dtype {dtype} is not supported",
        details=("supported: " + ", ".join(row.name for row in rows),),
        fix="use one of the supported dtypes; convert arguments before the call, with .astype(...)",
    )
