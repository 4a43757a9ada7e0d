"""Values get element types: what the user wrote becomes an expression of the IR.

NumPy decides (NEP 50): an op converts its operands to what it computes in, a number without a dtype takes
that of its neighbours, and the target's dtype matters only to the finished value, which is converted to it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from ..errors import DTypeError, IntegerOverflow, Location
from ..ir.dtype import BOOL, F64, I64, DType, named
from ..ir.expr import Apply, Const, Expr, Index, Load, constant, convert, dtype_of
from ..ir.ops import Op, op
from ..ir.resolve import Argument, resolve
from .nodes import Cell
from .values import Bits, Call, Converted, Embedded, Number, Value

__all__ = ["Reader", "combined", "is_weak", "neutral", "typed", "typed_as"]

Reader = Callable[[Cell], Load]
"""How a cell is read: the tensor that holds the node's values at this place in the program."""

_DEFAULTS: Mapping[type, DType] = {bool: BOOL, int: I64, float: F64}

_NEUTRAL: Mapping[str, int | float] = {
    "add": 0,
    "subtract": 0,
    "divide": 1,
    "floor_divide": 1,
    "power": 1,
    "float_power": 1,
    "relu_gate": 1,
    "satur01_gate": 0.5,
}
"""What cells start from where the table of ops has no identity, or one that reads oddly: -0.0 for sums."""


def typed(value: Value, read: Reader, loc: Location) -> Expr:
    """The value as an expression."""
    match value:
        case Number(value=number, dtype=dtype):
            return _constant(number, dtype or _DEFAULTS[type(number)], loc)
        case Bits(pattern=pattern):
            return _from_bits(pattern, I64, loc)
        case Embedded(index=index):
            return Index(index)
        case Cell():
            return read(value)
        case Converted(arg=arg, dtype=dtype):
            return convert(typed(arg, read, loc), dtype)
        case Call(op=called, args=args):
            given = [None if is_weak(arg) else typed(arg, read, loc) for arg in args]
            wanted, result = _resolved(
                called, [_argument(*pair) for pair in zip(args, given, strict=True)], loc
            )
            operands = (
                typed_as(arg, dtype, read, loc) if expr is None else convert(expr, dtype)
                for arg, expr, dtype in zip(args, given, wanted, strict=True)
            )
            return Apply(called, tuple(operands), result)
        case _:
            raise DTypeError(f"{type(value).__name__} has no element type", loc=loc)


def typed_as(value: Value, dtype: DType, read: Reader, loc: Location) -> Expr:
    """The value as an expression of this element type."""
    match value:
        case Number(value=number, dtype=None):
            return _constant(number, dtype, loc)
        case Bits(pattern=pattern):
            return _from_bits(pattern, dtype, loc)
        case _:
            return convert(typed(value, read, loc), dtype)


def combined(accum: Op, held: Expr, value: Expr, loc: Location) -> Expr:
    """`accum(held, value)`, both being of one dtype, which the result must have, too."""
    dtype = dtype_of(held)
    wanted, result = _resolved(accum, (dtype, dtype), loc)
    if result is not dtype:
        raise DTypeError(
            f"{accum} of {dtype.name} gives {result.name} and cannot accumulate in {dtype.name}",
            loc=loc,
            fix=f"let the target have dtype {result.name}, or choose another op",
        )
    return Apply(
        accum, tuple(convert(arg, to) for arg, to in zip((held, value), wanted, strict=True)), result
    )


def neutral(accum: Op, dtype: DType, loc: Location) -> Const:
    """What cells start from that `accum` is reduced into."""
    number = _NEUTRAL.get(accum.name)
    if number is None and accum.identity is not None:
        number = accum.identity(dtype)
    if number is None:
        raise DTypeError(
            f"{accum} has no neutral element to start from",
            loc=loc,
            fix="fill the target first, then accumulate",
        )
    return constant(number, dtype)


def is_weak(value: Value) -> bool:
    """Whether the value takes the dtype of what stands beside it."""
    return isinstance(value, Bits) or (isinstance(value, Number) and value.dtype is None)


def _argument(value: Value, expr: Expr | None) -> Argument:
    if expr is not None:
        return dtype_of(expr)
    return type(value.value) if isinstance(value, Number) else int


def _resolved(called: Op, args: Sequence[Argument], loc: Location) -> tuple[tuple[DType, ...], DType]:
    try:
        return resolve(called, args)
    except DTypeError as error:
        raise DTypeError(error.what, loc=loc, details=error.details, fix=error.fix) from None


def _constant(number: bool | int | float, dtype: DType, loc: Location) -> Const:
    if type(number) is int and dtype.is_integer:
        limits = np.iinfo(dtype.name)
        if not limits.min <= number <= limits.max:
            raise IntegerOverflow(
                f"{dtype.name} does not hold {number}", loc=loc, fix="use another dtype, or another number"
            )
    return constant(number, dtype)


def _from_bits(pattern: int, dtype: DType, loc: Location) -> Expr:
    """The number of this element type with these bits; a float is taken from the integer of its width."""
    if dtype is BOOL or not -(2 ** (dtype.bits - 1)) <= pattern < 2**dtype.bits:
        raise IntegerOverflow(
            f"{pattern:#x} is no pattern of {dtype.bits} bits of {dtype.name}",
            loc=loc,
            fix="give as many bits as the element type has, and fill bools with True or False",
        )
    signed = (pattern + 2 ** (dtype.bits - 1)) % 2**dtype.bits - 2 ** (dtype.bits - 1)
    if dtype.is_float:
        return Apply(op("from_bits"), (Const(signed, named(f"i{dtype.bits}")),), dtype)
    return Const(signed if dtype.numpy.kind == "i" else pattern % 2**dtype.bits, dtype)
