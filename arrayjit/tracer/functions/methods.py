"""Methods of ndarray that belong to no other feature: conversion, copying, filling, Python scalars."""

from __future__ import annotations

from math import prod
from typing import Any, NoReturn

import numpy as np

from ...errors import DTypeError, ShapeError, UnsupportedError
from ...ir.dtype import BOOL, C128, F64, I64, DType, from_numpy
from ...ir.expr import Expr, convert
from ...ir.index import Affine
from ...ir.ops import op
from ..indices.indexing import getitem, setitem
from ..loops.loops import MOST_UNROLLED
from ..record.registry import method
from ..record.trace import current_trace
from ..values.array import PythonNumber, SymbolicArray, describe
from ..values.elementwise import as_operand, cast, copy, elementwise
from ..values.extents import ONE, agree, numbers
from ..values.integer import SymbolicInt
from ..values.layout import is_laid_out, order_named
from .operands import named_dtype, refuse
from .reshaping import flat

__all__ = ["astype", "bit_count", "fill", "item"]


@method("astype")
def astype(
    self: SymbolicArray,
    dtype: Any,
    order: str = "K",
    casting: str = "unsafe",
    subok: bool = True,
    copy: bool = True,
) -> SymbolicArray:
    """The array converted; a copy, unless `copy=False` and it has the dtype already."""
    target, order = named_dtype(dtype), order_named(order, "K")
    refuse("x.astype", "compare the two arrays", casting=casting if casting == "same_value" else None)
    if not np.can_cast(self.dtype, target, casting):  # type: ignore[arg-type]
        raise DTypeError(
            f"Cannot cast array data from {self.dtype!r} to {target!r} according to the rule '{casting}'",
            details=(describe(self),),
            fix="use casting='unsafe' (the default)",
        )
    kind = from_numpy(target)
    if copy or kind is not self.element_type:
        return cast(self, kind, order)
    result = self if is_laid_out(self.cells, order) else cast(self, kind, order)
    if order != "K":
        self.record.layouts.doubt(self.cells, result.cells)
    return result


@method("copy")
def copied(self: SymbolicArray, order: str = "C") -> SymbolicArray:
    """A fresh array with the same cells."""
    return copy(self, order_named(order))


@method("fill")
def fill(self: SymbolicArray, value: Any) -> None:
    """Write one number into every cell. Raises ShapeError for more of them, which would be broadcast."""
    operand = as_operand(value)
    if type(operand) is SymbolicArray:
        words = "setting an array element with a sequence"
        if not all(agree(extent, ONE, words) for extent in operand.cells.shape):
            fix = "broadcast it: x[...] = values"
            raise ShapeError(words, details=(describe(operand),), fix=fix)
    setitem(self, Ellipsis, operand)


@method("item")
def item(self: SymbolicArray, *position: Any) -> SymbolicArray:
    """The only element, or the one at `position`, as a Python scalar."""
    trace = current_trace()
    as_operand(self, trace)
    if len(position) == 1 and isinstance(position[0], tuple):
        position = position[0]
    if len(position) not in (0, 1, self.ndim):
        raise ShapeError("incorrect number of indices for array", details=(describe(self),))
    words = "can only convert an array of size 1 to a Python scalar"
    if not position and not all(agree(extent, ONE, words) for extent in self.cells.shape):
        raise ShapeError(words, details=(describe(self),), fix="give the position: x.item(i, j)")
    if len(position) == 1:
        element = getitem(flat(self), position)
    else:
        element = getitem(self, position or (0,) * self.ndim)
    weak, kind = _python_type(self.element_type)

    def cell(_: tuple[Affine, ...]) -> Expr:
        return convert(element.load(()), kind)

    return SymbolicArray(trace.compute((), kind, cell), trace, weak=weak)


def _python_type(dtype: DType) -> tuple[PythonNumber, DType]:
    if dtype is BOOL:
        return bool, BOOL
    if dtype.is_float:
        return float, F64
    if dtype.is_complex:
        return complex, C128
    if dtype.name == "uint64":
        raise UnsupportedError(
            "a uint64 as a Python int may exceed the 64-bit integers of a jitted function",
            fix="use x.astype(np.int64).item()",
        )
    return int, I64


@method("bit_count")
def bit_count(self: SymbolicArray | SymbolicInt) -> SymbolicArray:
    """How many bits of the size of an integer are set; arrays have no such method."""
    name = self.__class__.__name__
    if not hasattr(self.__class__, "bit_count"):
        raise AttributeError(f"{name!r} object has no attribute 'bit_count'")
    trace = current_trace()
    counted = elementwise(op("bitwise_count"), self)

    def cell(_: tuple[Affine, ...]) -> Expr:
        return convert(counted.load(()), I64)

    return SymbolicArray(trace.compute((), I64, cell), trace, weak=int)


@method("tolist")
def tolist(self: SymbolicArray) -> Any:
    """The elements as Python scalars, in nested lists."""
    extents = numbers(self.cells.shape, "the length of a list")
    if prod(extents) > MOST_UNROLLED:
        raise UnsupportedError(
            f"x.tolist() of more than {MOST_UNROLLED} elements is not supported in a jitted function",
            details=(describe(self),),
            fix="use the array itself, whose rows and elements loops take, or return it",
        )
    if not extents:
        return item(self)
    count = extents[0]
    return [tolist(getitem(self, row)) for row in range(count)]


@method("tobytes", "tofile", "dump", "dumps")
def outside_only(self: SymbolicArray, *args: Any, **kwargs: Any) -> NoReturn:
    """Methods that hand the numbers to Python."""
    self.__array__()
