"""Scans along one axis: `cumsum`, `cumprod`, `ufunc.accumulate`, and `ediff1d`.

A scan is a loop over the axis in which each cell is combined with the one before, as NumPy does.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np

from ...errors import DTypeError, UnsupportedError
from ...ir.conditions import both, either, opposite
from ...ir.dtype import BOOL, I64, DType
from ...ir.expr import Apply, Expr, Index
from ...ir.index import Affine, affine
from ...ir.ops import OPS, Op, op
from ..indices.indexing import getitem
from ..record.registry import implements, method, ufunc_method
from ..record.trace import current_trace
from ..record.view import View
from ..values.array import SymbolicArray
from ..values.elementwise import as_array, cast, check_exponent, elementwise, operand_at
from ..values.extents import ONE, ZERO, is_at_least, lesser
from ..values.layout import kept_order
from .joining import concatenate
from .operands import alone, axis_of, deliver, only_axis
from .positions import argmax, argmin
from .reductions import computing_dtype, reduce_array
from .reshaping import flat
from .shaping import permuted
from .statistics import without_nan

__all__ = ["cumprod", "cumsum"]

_DECIDED = dict.fromkeys(map(op, ("logical_or", "bitwise_or", "maximum", "fmax", "add")), True)
_DECIDED |= dict.fromkeys(map(op, ("logical_and", "bitwise_and", "minimum", "fmin", "multiply")), False)
"""The bool from which on nothing changes in a scan of bools."""

MANY = 32
"""So many bools are worth looking for that one first."""


@ufunc_method("accumulate")
def accumulate(ufunc: np.ufunc, array: Any, axis: Any = 0, dtype: Any = None, out: Any = None) -> Any:
    row = OPS.get(ufunc.__name__)
    if row is None or row.arity != 2:
        raise UnsupportedError(
            f"np.{ufunc.__name__}.accumulate is not supported in a jitted function",
            fix="accumulate with add, multiply, minimum, maximum or another ufunc of two operands",
        )
    given = as_array(array)
    if given.ndim == 0:
        raise DTypeError("cannot accumulate on a scalar", fix="use np.atleast_1d(x)")
    along = only_axis(axis, given.ndim, "accumulate")
    kind = computing_dtype(row, given.element_type, dtype, out)
    if row is op("power"):
        exponents = getitem(given, (*(slice(None),) * along, slice(1, None)))
        check_exponent(exponents, kind, current_trace())
    return deliver(_scan(row, given, along, kind), out, "unsafe")


@ufunc_method("outer")
def outer(ufunc: np.ufunc, left: Any, right: Any, **options: Any) -> Any:
    first, second = alone(left), alone(right)
    spread = getitem(first, (..., *(np.newaxis,) * second.ndim)) if second.ndim else first
    return ufunc(spread, second, **options)


@implements(np.cumsum)
@method("cumsum")
def cumsum(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> SymbolicArray:
    return _along(op("add"), a, axis, dtype, out)


@implements(np.cumprod)
@method("cumprod")
def cumprod(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> SymbolicArray:
    return _along(op("multiply"), a, axis, dtype, out)


@implements(np.nancumsum)
def nancumsum(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> SymbolicArray:
    return _along(op("add"), without_nan(as_array(a), 0.0), axis, dtype, out)


@implements(np.nancumprod)
def nancumprod(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> SymbolicArray:
    return _along(op("multiply"), without_nan(as_array(a), 1.0), axis, dtype, out)


def _along(operation: Op, a: Any, axis: Any, dtype: Any, out: Any) -> SymbolicArray:
    array = as_array(a)
    if axis is None or array.ndim == 0:
        array, axis = flat(array), axis or 0
    kind = computing_dtype(operation, array.element_type, dtype, out)
    return deliver(_scan(operation, array, axis_of(axis, array.ndim), kind), out, "unsafe")


def _scan(operation: Op, array: SymbolicArray, axis: int, kind: DType) -> SymbolicArray:
    """The scan, in the memory order of the array."""
    trace = current_trace()
    order = kept_order(array.ndim, [array.cells])
    if kind is BOOL and operation in _DECIDED and order[-1] == axis:
        count = array.cells.shape[axis]
        if count.is_constant and count.constant >= MANY:
            return _scan_of_bools(operation, array, axis, order)
    array = permuted(array, order)
    whole = trace.window(array.cells.shape, kind, f"cum_{operation.name}")
    if ZERO not in whole.shape:
        with ExitStack() as rows:
            before = whole.shape[: order.index(axis)]
            outer = tuple(rows.enter_context(trace.loop(0, extent)) for extent in before)
            _scan_row(operation, array, whole, outer)
    return permuted(SymbolicArray(whole, trace), [order.index(n) for n in range(array.ndim)])


def _scan_of_bools(operation: Op, array: SymbolicArray, axis: int, order: Sequence[int]) -> SymbolicArray:
    """The scan of a row, which stays what it is from the first bool on that decides."""
    wanted = _DECIDED[operation]
    bools = array if array.element_type is BOOL else cast(array, BOOL)
    place = (argmax if wanted else argmin)(bools, axis, keepdims=True)
    ends = reduce_array(op("logical_or" if wanted else "logical_and"), bools, axis, keepdims=True)

    def cell(position: tuple[Affine, ...]) -> Expr:
        here = Index(position[axis])
        is_decided = Apply(op("greater_equal"), (here, operand_at(place, position, I64)), BOOL)
        end = operand_at(ends, position, BOOL)
        return both(end, is_decided) if wanted else either(end, opposite(is_decided))

    trace = current_trace()
    return SymbolicArray(trace.compute(array.cells.shape, BOOL, cell, order=order), trace)


def _scan_row(operation: Op, array: SymbolicArray, whole: View, outer: tuple[Affine, ...]) -> None:
    """The scan along the axis that follows the indices `outer`, of all that lies behind it."""
    trace, kind = current_trace(), whole.tensor.dtype
    axes = whole.axes[len(outer) + 1 :]
    # Each step of a small float is rounded, which tells: in float16, 2048 and less than 1 is 2048.
    is_open = operation.associative and not kind.is_small

    def slab(at: Affine) -> View:
        return whole.remap(whole.shape[len(outer) + 1 :], axes, (*outer, at, *affine(axes)))

    def cell(position: tuple[Affine, ...], at: Affine) -> Expr:
        return operand_at(array, (*outer, at, *position), kind)

    count = whole.shape[len(outer)]
    if is_at_least(count, 1):
        trace.store(slab(ZERO), lambda position: cell(position, ZERO))
    else:
        with trace.loop(0, lesser(count, ONE)) as first:
            trace.store(slab(first), lambda position: cell(position, first))
    with trace.loop(1, count) as here:
        before = slab(here - 1)
        trace.store(
            slab(here),
            lambda position: Apply(operation, (before.load(position), cell(position, here)), kind),
            regroup=is_open,
        )


@implements(np.ediff1d)
def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> SymbolicArray:
    row = flat(as_array(ary))
    differences = elementwise(op("subtract"), getitem(row, slice(1, None)), getitem(row, slice(None, -1)))
    ends = [None if end is None else flat(as_array(end)) for end in (to_begin, to_end)]
    parts = [part for part in (ends[0], differences, ends[1]) if part is not None]
    return concatenate(parts, 0, dtype=differences.dtype) if len(parts) > 1 else differences
