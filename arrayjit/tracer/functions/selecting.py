"""Choosing among values: `where`, `clip`, `take`, `select`, `choose`, triangles, and tests of equality."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import DTypeError, IndexOutOfRange, NumberError, ShapeError, UnsupportedError
from ...ir.conditions import compare, one_of
from ...ir.dtype import BF16, BOOL, F32, F64, I64, DType
from ...ir.expr import Apply, Const, Expr, Index, literal
from ...ir.index import Affine
from ...ir.ops import op
from ..indices.bounds import require_integers, within
from ..indices.compaction import nonzero
from ..indices.gathering import gather
from ..indices.indexing import getitem, setitem
from ..record.registry import implements, method
from ..record.trace import current_trace
from ..record.view import View
from ..values.array import SymbolicArray, describe
from ..values.elementwise import (
    Operand,
    as_array,
    as_operand,
    broadcast,
    cast,
    constant_array,
    copy,
    elementwise,
    laid,
    operand_at,
    views_of,
)
from ..values.extents import ONE, ZERO, numbers, require_at_least
from ..values.fitting import ALL_MUST_FIT, check_fits
from ..values.layout import copy_order, is_laid_out, kept_order
from ..values.numbers import integer_of
from .adopted import numpy_program
from .operands import (
    arrays_of,
    axis_of,
    common_dtype,
    deliver,
    is_given,
    put_back,
    require_between,
    require_cast,
    result_of,
)
from .reductions import reduce_array
from .reshaping import ravel
from .shaping import atleast_1d, broadcast_to

__all__ = ["choose", "clip", "select", "take", "triangle", "where"]


@implements(np.where)
def where(condition: Any, x: Any = np._NoValue, y: Any = np._NoValue, /) -> Any:
    if x is np._NoValue and y is np._NoValue:
        return nonzero(as_array(condition))
    if x is np._NoValue or y is np._NoValue:
        words = "either both or neither of x and y should be given"
        raise ShapeError(words, fix="use np.where(condition, x, y)")
    return _chosen(as_array(condition), x, y, common_dtype(x, y))


def _chosen(condition: SymbolicArray, x: Any, y: Any, dtype: DType) -> SymbolicArray:
    yes, no = (_converted(value, dtype) for value in (x, y))
    given = [operand for operand in (condition, yes, no) if type(operand) is SymbolicArray]
    shape = broadcast(*(operand.cells.shape for operand in given))

    def cell(position: tuple[Affine, ...]) -> Expr:
        cases = (operand_at(condition, position, BOOL), operand_at(yes, position, dtype))
        return Apply(op("where"), (*cases, operand_at(no, position, dtype)), dtype)

    trace = current_trace()
    order = kept_order(len(shape), views_of(given))
    return SymbolicArray(trace.compute(shape, dtype, cell, label="where", order=order), trace)


def _converted(value: Any, dtype: DType) -> Operand:
    """A choice; a Python number beyond an integer dtype wraps around until NumPy 2.4."""
    operand = as_operand(value)
    if ALL_MUST_FIT:
        check_fits(operand, dtype, current_trace())
        return operand
    if type(operand) is SymbolicArray or not dtype.is_integer:
        return operand
    return int(np.array(operand).astype(dtype.numpy))


@implements(np.clip)
def clip(
    a: Any,
    a_min: Any = np._NoValue,
    a_max: Any = np._NoValue,
    out: Any = None,
    *,
    min: Any = np._NoValue,
    max: Any = np._NoValue,
    casting: str = "same_kind",
) -> SymbolicArray:
    given = [bound is not np._NoValue for bound in (a_min, a_max)]
    if not any(given):
        return clip_method(a, min, max, out, casting=casting)
    if not all(given):
        words = f"clip() missing 1 required positional argument: {'a_max' if given[0] else 'a_min'!r}"
        raise UnsupportedError(words, fix="pass None where there is no bound")
    if not (min is np._NoValue and max is np._NoValue):
        words = "Passing `min` or `max` keyword argument when `a_min` and `a_max` are provided is forbidden."
        raise NumberError(words, fix="pass each bound once")
    return clip_method(a, a_min, a_max, out, casting=casting)


@method("clip")
def clip_method(
    a: Any, min: Any = None, max: Any = None, out: Any = None, *, casting: str = "same_kind"
) -> SymbolicArray:
    low, high = (as_operand(bound) if is_given(bound) else None for bound in (min, max))
    result = as_array(a) if type(a) is SymbolicArray else as_operand(a)
    bounds = [(name, bound) for name, bound in (("maximum", low), ("minimum", high)) if is_given(bound)]
    is_bool = False
    if len(bounds) == 2 and type(result) is SymbolicArray and result.element_type is not BF16:
        kind = common_dtype(result, low, high)  # of all three together
        is_bool = result.element_type is BOOL
        if result.weak is None and kind is not result.element_type:
            result = cast(result, kind)
    stays = len(bounds) == 2 and all(_is_number(bound, result) for _, bound in bounds)
    for name, bound in bounds:
        nearer = bound if is_bool else _reachable_bound(name, bound, result)
        result = elementwise(op(name), *((nearer, result) if stays else (result, nearer)))
    if not bounds:
        result = elementwise(op("positive"), result)
    assert type(result) is SymbolicArray
    if result.element_type is BF16:
        result = cast(result, F32)  # as np.clip, which knows NumPy's own floats only
    return deliver(result, out, casting)


def _is_number(bound: Operand | None, array: Operand) -> bool:
    """Whether a bound is one number for all cells. Between two such NumPy leaves a float that equals one as
    it is, the sign of zero too; otherwise it becomes the bound, the second of two extremes. Of float16 the
    first is taken."""
    if type(array) is SymbolicArray and array.element_type not in (F32, F64):
        return False
    if type(bound) is not SymbolicArray or not bound.ndim:
        return True
    beside = array.cells.shape if type(array) is SymbolicArray else ()
    return all(extent == ONE for extent in bound.cells.shape) and any(extent != ONE for extent in beside)


def _reachable_bound(name: str, bound: Any, array: Any) -> Any:
    """A Python int that no element lies beyond stands for the dtype's own limit."""
    if type(array) is not SymbolicArray or not array.element_type.is_integer:
        return bound
    limits = np.iinfo(array.dtype)
    limit = int(limits.min if name == "maximum" else limits.max)
    if type(bound) is int:
        return max(bound, limit) if name == "maximum" else min(bound, limit)
    if type(bound) is not SymbolicArray or bound.weak is not int or limit > np.iinfo(np.int64).max:
        return bound
    trace = current_trace()
    nearer = Apply(op(name), (bound.load(()), Const(limit, I64)), I64)
    return SymbolicArray(trace.compute((), I64, lambda _: nearer), trace, weak=int)


@implements(np.take)
@method("take")
def take(a: Any, indices: Any, axis: Any = None, out: Any = None, mode: str = "raise") -> SymbolicArray:
    array, positions = atleast_1d(a), as_array(indices)
    if axis is None:
        array, axis = ravel(array), 0
    along = axis_of(axis, array.ndim)
    require_cast(positions, np.int64, "same_kind")
    extent = array.cells.shape[along]
    words = "cannot do a non-empty take from an empty axes."
    if ZERO not in positions.cells.shape and not require_at_least(extent, 1, "IndexError", words):
        raise IndexOutOfRange(words, details=(describe(array),), fix="take from an array that has cells")
    counted = within(positions, extent, along, mode)
    rank = positions.ndim
    shape = (*array.cells.shape[:along], *positions.cells.shape, *array.cells.shape[along + 1 :])

    def cell(position: tuple[Affine, ...]) -> Expr:
        before, picked, after = position[:along], position[along : along + rank], position[along + rank :]
        index = (*map(Index, before), counted.load(picked), *map(Index, after))
        return gather(array.cells, index)

    return put_back(result_of(current_trace().compute(shape, array.element_type, cell, label="taken")), out)


@implements(np.take_along_axis)
def take_along_axis(arr: Any, indices: Any, axis: Any = -1) -> SymbolicArray:
    array, positions = as_array(arr), as_array(indices)
    if axis is None:
        array, axis = ravel(array), 0
    along = axis_of(axis, array.ndim)
    if positions.ndim != array.ndim:
        raise ShapeError(
            "`indices` and `arr` must have the same number of dimensions", fix="insert axes with np.newaxis"
        )
    require_integers(positions, "`indices` must be an integer array")
    counted = within(positions, array.cells.shape[along], along)
    others = [one if axis != along else Affine.of(1) for axis, one in enumerate(array.cells.shape)]
    shape = list(broadcast(others, positions.cells.shape))
    shape[along] = positions.cells.shape[along]

    def cell(position: tuple[Affine, ...]) -> Expr:
        index: list[Expr] = [
            Index(Affine.of(0) if extent == Affine.of(1) else part)
            for extent, part in zip(array.cells.shape, position, strict=True)
        ]
        index[along] = operand_at(counted, position, I64)
        return gather(array.cells, index)

    result = result_of(current_trace().compute(shape, array.element_type, cell, label="taken"))
    return laid(result, kept_order(result.ndim, [positions.cells])) if result.ndim else result


@implements(np.select)
def select(condlist: Any, choicelist: Any, default: Any = 0) -> SymbolicArray:
    if len(condlist) != len(choicelist) or not condlist:
        raise ShapeError(
            "list of cases must be same length as list of conditions",
            fix="give one choice for each condition, and at least one",
        )
    conditions = arrays_of(condlist)
    for position, condition in enumerate(conditions):
        if condition.element_type is not BOOL:
            words = f"invalid entry {position} in condlist: should be boolean ndarray"
            raise DTypeError(words, fix="compare: x != 0")
    dtype = common_dtype(*choicelist, default)
    result = default
    for condition, choice in zip(conditions[::-1], choicelist[::-1], strict=True):
        result = _chosen(condition, choice, result, dtype)
    result = as_array(result)
    return result if is_laid_out(result.cells, "C") else copy(result, "C")


@implements(np.choose)
def choose(a: Any, choices: Any, out: Any = None, mode: str = "raise") -> SymbolicArray:
    selector, choices = as_array(a), list(choices)
    dtype = common_dtype(*choices)
    options = [as_array(_converted(choice, dtype), dtype) for choice in choices]
    shape = broadcast(selector.cells.shape, *(option.cells.shape for option in options))
    positions = _chosen_option(selector, len(options), mode)

    def cell(position: tuple[Affine, ...]) -> Expr:
        number = operand_at(positions, position, I64)
        result = operand_at(options[-1], position, dtype)
        for n, option in reversed(list(enumerate(options[:-1]))):
            hit = compare("equal", number, Const(n, I64))
            result = one_of(hit, operand_at(option, position, dtype), result)
        return result

    result = result_of(current_trace().compute(shape, dtype, cell, label="chosen"))
    return deliver(result, out, "unsafe")


@method("choose")
def choose_method(self: SymbolicArray, *choices: Any, out: Any = None, mode: str = "raise") -> SymbolicArray:
    return choose(self, choices[0] if len(choices) == 1 else choices, out, mode)


def _chosen_option(selector: SymbolicArray, count: int, mode: str) -> SymbolicArray:
    """The numbers of the options, which do not count from the end."""
    require_cast(selector, np.int64, "safe")
    if mode == "raise":
        require_between(selector, 0, count, "invalid entry in choice array")
    return within(selector, Affine.of(count), 0, "clip" if mode == "raise" else mode)


def triangle(position: Sequence[Affine], k: Affine) -> Expr:
    """Whether a cell lies on or below the diagonal `k` of the last two axes."""
    row, column = position[-2:]
    return compare("less_equal", Index(column), Index(row + k))


@implements(np.tril)
def tril(m: Any, k: int = 0) -> SymbolicArray:
    return _triangular(as_array(m), integer_of(k, current_trace()), lower=True)


@implements(np.triu)
def triu(m: Any, k: int = 0) -> SymbolicArray:
    return _triangular(as_array(m), integer_of(k, current_trace()) - 1, lower=False)


@implements(np.tril_indices_from)
def tril_indices_from(arr: Any, k: int = 0) -> tuple[SymbolicArray, ...]:
    rows, columns = numbers(as_array(arr).cells.shape, "an extent of a triangle's matrix")
    return tuple(map(constant_array, np.tril_indices(rows, k, columns)))


@implements(np.triu_indices_from)
def triu_indices_from(arr: Any, k: int = 0) -> tuple[SymbolicArray, ...]:
    rows, columns = numbers(as_array(arr).cells.shape, "an extent of a triangle's matrix")
    return tuple(map(constant_array, np.triu_indices(rows, k, columns)))


@implements(np.diag_indices_from)
def diag_indices_from(arr: Any) -> tuple[SymbolicArray, ...]:
    extents = numbers(as_array(arr).cells.shape, "an extent of what has a diagonal")
    if len(extents) < 2 or len(set(extents)) > 1:
        words = "All dimensions of input must be of equal length"
        raise ShapeError(words, fix="use a square matrix")
    return tuple(map(constant_array, np.diag_indices(extents[0], len(extents))))


def _triangular(array: SymbolicArray, k: Affine, *, lower: bool) -> SymbolicArray:
    dtype = array.element_type
    zero = literal(0, dtype)
    if array.ndim == 0:
        raise UnsupportedError("a triangle of a number", details=(describe(array),), fix="use a matrix")
    if array.ndim == 1:
        array = broadcast_to(array, array.cells.shape * 2)

    def cell(position: tuple[Affine, ...]) -> Expr:
        value = array.load(position)
        cases = (value, zero) if lower else (zero, value)
        return Apply(op("where"), (triangle(position, k), *cases), dtype)

    trace = current_trace()
    cells = trace.compute(array.cells.shape, dtype, cell, label="triangle")
    mask = View.fresh("mask", array.cells.shape[-2:], BOOL)
    return laid(SymbolicArray(cells, trace), kept_order(array.ndim, [mask, array.cells]))


@implements(np.nan_to_num)
def nan_to_num(x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    array = as_array(x)
    if array.element_type.is_complex:
        kept = SymbolicArray(cast(array, array.element_type).cells, array.record) if copy else array
        for part in (kept.real, kept.imag):
            setitem(part, Ellipsis, nan_to_num(part, True, nan, posinf, neginf))
        return kept if kept.ndim else getitem(kept, ())
    if not array.element_type.is_float or array.element_type is BF16:
        kept = cast(array, array.element_type) if copy else array
        return kept if kept.ndim else getitem(kept, ())
    limits = np.finfo(array.dtype)
    high = limits.max.item() if posinf is None else posinf
    low = limits.min.item() if neginf is None else neginf
    result = elementwise(op("where"), elementwise(op("equal"), array, np.inf), high, array)
    result = elementwise(op("where"), elementwise(op("equal"), array, -np.inf), low, result)
    result = elementwise(op("where"), elementwise(op("isnan"), array), nan, result)
    result = cast(result, array.element_type)
    return laid(result, copy_order(array.cells, "K")) if copy else deliver(result, array)


def _is_nan(value: Any) -> Any:
    return elementwise(op("isnan"), value)


@implements(np.allclose)
@numpy_program
def allclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> Any:
    """A traced bool; NumPy's own is a Python bool."""
    return _python_bool(np.isclose(a, b, rtol, atol, equal_nan))


def _python_bool(truth: Any) -> SymbolicArray:
    """Whether all cells hold, as a Python bool."""
    verdict = reduce_array(op("logical_and"), truth)
    return SymbolicArray(verdict.cells, verdict.record, weak=bool)


@implements(np.array_equal)
def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> SymbolicArray | bool:
    left, right = as_array(a1), as_array(a2)
    shapes = left.cells.shape, right.cells.shape
    if shapes[0] != shapes[1]:
        purpose = "an extent on which depends whether arrays are equal"
        if left.ndim != right.ndim or numbers(shapes[0], purpose) != numbers(shapes[1], purpose):
            return False
    same = elementwise(op("equal"), left, right)
    if equal_nan:
        both = elementwise(op("logical_and"), _is_nan(left), _is_nan(right))
        same = elementwise(op("logical_or"), same, both)
    return _python_bool(same)


@implements(np.array_equiv)
def array_equiv(a1: Any, a2: Any) -> SymbolicArray | bool:
    left, right = as_array(a1), as_array(a2)
    purpose = "an extent on which depends whether arrays are equal"
    try:
        np.broadcast_shapes(*(numbers(array.cells.shape, purpose) for array in (left, right)))
    except ValueError:
        return False
    return _python_bool(elementwise(op("equal"), left, right))
