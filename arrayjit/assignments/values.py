"""What is computed for one cell, as the user writes it: element types are not known yet.

Values take Python's operators and NumPy's elementwise functions: `np.tanh(x[i]) * 2 + w[i, j]`. Ops that
NumPy lacks are written `apply("relu", x[i])`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from ..errors import ConcretizationError, DTypeError, UnsupportedError
from ..frozen import frozen_by_identity
from ..ir.dtype import DType, real_from_numpy
from ..ir.index import Affine, Extent
from ..ir.ops import OPS, Op
from .here import here

__all__ = [
    "Bits",
    "Call",
    "Converted",
    "Embedded",
    "Number",
    "Value",
    "apply",
    "as_value",
    "number",
    "rebuilt",
    "walk",
]

_ROWS: Mapping[str, tuple[Op, ...]] = {
    name: tuple(sorted((row for row in OPS.values() if row.ufunc == name), key=lambda row: row.output))
    for name in {row.ufunc for row in OPS.values() if row.ufunc}
}
"""The ops that NumPy's functions stand for: one for each output."""


class Value(NDArrayOperatorsMixin):
    """An operand. Comparisons make values too, so values are told apart by identity."""

    __slots__ = ()
    __hash__ = object.__hash__

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        rows = _ROWS.get(ufunc.__name__)
        if "out" in options:
            raise UnsupportedError(
                "a cell is no place to write to",
                loc=here(),
                fix=f"make a statement: accumulate({ufunc.__name__!r}, cell, value)",
            )
        if rows is None or method != "__call__" or options:
            what = ufunc.__name__ if method == "__call__" else f"{ufunc.__name__}.{method}"
            raise UnsupportedError(
                f"np.{what}{' with options' if options else ''} is no operation on single cells",
                loc=here(),
                fix="use an elementwise function; sums over an axis are reduce('add', y[i], x[i, j])",
            )
        results = tuple(Call(row, tuple(map(as_value, inputs))) for row in rows)
        return results if len(results) > 1 else results[0]

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Value:
        if function is not np.where or len(args) != 3 or options:
            raise UnsupportedError(
                f"np.{function.__name__} is no operation on single cells",
                loc=here(),
                fix="write it out with indices, for example reduce('add', y[i], x[i, j])",
            )
        return apply("where", *args)

    def __bool__(self) -> bool:
        raise ConcretizationError(
            "the value of a cell is not known while the program is written",
            loc=here(),
            fix="write np.where(condition, a, b)",
        )

    def astype(self, dtype: DType | np.dtype[Any] | type | str) -> Value:
        """The value converted to another element type, as NumPy does."""
        return Converted(self, dtype if isinstance(dtype, DType) else real_from_numpy(dtype))


@frozen_by_identity
class Number(Value):
    """A constant; without a dtype it takes that of what stands beside it, as Python numbers do."""

    value: bool | int | float
    dtype: DType | None = None


@frozen_by_identity
class Bits(Value):
    """The number of the target's element type that has these bits."""

    pattern: int


@frozen_by_identity
class Embedded(Value):
    """An index as an int64 number."""

    index: Affine


@frozen_by_identity
class Call(Value):
    """An op of the table; each argument is converted to what the op computes in."""

    op: Op
    args: tuple[Value, ...]


@frozen_by_identity
class Converted(Value):
    """A conversion of the user's."""

    arg: Value
    dtype: DType


def as_value(operand: object) -> Value:
    """A value, or a number as one. Raises DTypeError for anything else."""
    match operand:
        case Value():
            return operand
        case np.generic():
            return Number(operand.item(), real_from_numpy(operand.dtype))
        case bool() | int() | float():
            return Number(operand)
        case _:
            raise DTypeError(
                f"{type(operand).__name__} is no operand",
                loc=here(),
                fix="give a cell such as x[i, j], a number, or number(i) for an index",
            )


def number(index: Extent) -> Value:
    """An index, a static symbol or an affine expression of them as an int64 value."""
    return Embedded(Affine.of(index))


def apply(op: str | Op, *args: object) -> Value:
    """An op of the table by its name, for those that no function of NumPy's stands for."""
    row = OPS.get(op) if isinstance(op, str) else op
    if row is None:
        raise UnsupportedError(f"there is no op {op!r}", loc=here(), fix="choose a row of the table of ops")
    if len(args) != row.arity:
        raise DTypeError(f"{row.name} takes {row.arity} operands, not {len(args)}", loc=here())
    return Call(row, tuple(map(as_value, args)))


def walk(value: Value) -> Iterator[Value]:
    """Every part of a value, each before its operands, from left to right."""
    pending = [value]
    while pending:
        part = pending.pop()
        yield part
        match part:
            case Call(args=args):
                pending.extend(args[::-1])
            case Converted(arg=arg):
                pending.append(arg)
            case _:
                pass


def rebuilt(value: Value, leaf: Callable[[Value], Value]) -> Value:
    """The value with `leaf` applied to every part that has no operands."""
    match value:
        case Call(op=op, args=args):
            return Call(op, tuple(rebuilt(arg, leaf) for arg in args))
        case Converted(arg=arg, dtype=dtype):
            return Converted(rebuilt(arg, leaf), dtype)
        case _:
            return leaf(value)
