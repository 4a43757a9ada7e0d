"""Scalar expressions, shared by both IRs: what is computed for one cell.

Seven kinds, all frozen. Expressions contain no statements. They compare by structure (a constant by
its bits, so that -0.0 differs from 0.0 and NaN equals itself); never use a deep one as a dictionary
key, number values by identity instead.
"""

from __future__ import annotations

from dataclasses import field
from itertools import count
from typing import Union

import numpy as np

from ..frozen import frozen, frozen_by_identity
from .dtype import BOOL, F64, I64, DType
from .index import Affine
from .ops import PART_OPS, Op
from .tensor import Tensor

__all__ = [
    "Apply",
    "Cast",
    "Composed",
    "Const",
    "Expr",
    "ExprBuilder",
    "Gather",
    "Index",
    "Load",
    "Local",
    "Variable",
    "constant",
    "convert",
    "dtype_of",
    "literal",
    "neutral",
]

_creation_order = count()


@frozen_by_identity
class Variable:
    """A scalar local of a kernel; compares by identity, named at print time."""

    hint: str
    dtype: DType
    order: int = field(default_factory=_creation_order.__next__, repr=False)


@frozen_by_identity
class Const:
    """A number. `value` is a Python bool, int or float that `dtype` represents exactly."""

    value: bool | int | float
    dtype: DType

    @property
    def bits(self) -> bytes:
        return bytes(np.array(self.value, self.dtype.numpy).tobytes())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Const) and self.dtype is other.dtype and self.bits == other.bits

    def __hash__(self) -> int:
        return hash((self.dtype.name, self.bits))


class Composed:
    """What has operands. `below` are the nodes under it, in the order of `walk`, once somebody has asked:
    passes leave most expressions as they are, and go over all of them."""

    __slots__ = ("below",)
    below: tuple[Expr, ...]


@frozen
class Load:
    """One cell of a tensor, at an affine index."""

    tensor: Tensor
    index: tuple[Affine, ...]


@frozen
class Gather(Composed):
    """One cell of a tensor, at an index computed by the program; each index is an int64 in bounds."""

    tensor: Tensor
    index: tuple[Expr, ...]


@frozen
class Local:
    """The present value of a local variable."""

    variable: Variable


@frozen
class Index:
    """An affine expression as an int64 number, which wraps around."""

    value: Affine


@frozen
class Apply(Composed):
    """An op of the table. Arguments already have the dtypes that the op computes in."""

    op: Op
    args: tuple[Expr, ...]
    dtype: DType


@frozen
class Cast(Composed):
    """Conversion with NumPy's `astype` meaning (`unsafe` casting)."""

    arg: Expr
    dtype: DType


Expr = Union[Const, Load, Gather, Local, Index, Apply, Cast]


def dtype_of(expr: Expr) -> DType:
    """The element type of an expression's value."""
    match expr:
        case Const(dtype=dtype) | Apply(dtype=dtype) | Cast(dtype=dtype):
            return dtype
        case Load(tensor=tensor) | Gather(tensor=tensor):
            return tensor.dtype
        case Local(variable=variable):
            return variable.dtype
        case Index():
            return I64


def convert(value: Expr, dtype: DType) -> Expr:
    """The expression with `astype` meaning, or itself where it has the dtype."""
    return value if dtype_of(value) is dtype else Cast(value, dtype)


def constant(value: bool | int | float, dtype: DType) -> Const:
    """`value` converted to `dtype` as `np.asarray(value).astype(dtype)` would."""
    kind = type(value)
    if (dtype is F64 and kind is float) or (dtype is I64 and kind is int and -(2**63) <= value < 2**63):
        return Const(value, dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        converted = np.asarray(value).astype(dtype.numpy)
    if dtype is BOOL:
        return Const(bool(converted), dtype)
    return Const(float(converted) if dtype.is_float else int(converted), dtype)


def neutral(op: Op, dtype: DType) -> Const:
    """What changes no number that such an op combines it with."""
    assert op.identity is not None
    return constant(op.identity(dtype), dtype)


def literal(value: bool | int | float | complex, dtype: DType) -> Expr:
    """As `constant`, of any dtype: a complex number is made of its parts."""
    if not dtype.is_complex:
        return constant(value.real if isinstance(value, complex) else value, dtype)
    parts = complex(value)
    return Apply(
        PART_OPS["complex"], (constant(parts.real, dtype.part), constant(parts.imag, dtype.part)), dtype
    )


class ExprBuilder:
    """What `Builder`s over expressions have in common: all but `op` and `cast`."""

    def const(self, value: bool | int | float, dtype: DType) -> Expr:
        return constant(value, dtype)

    def dtype(self, value: Expr) -> DType:
        return dtype_of(value)

    def known(self, value: Expr) -> bool | int | float | None:
        return value.value if isinstance(value, Const) else None
