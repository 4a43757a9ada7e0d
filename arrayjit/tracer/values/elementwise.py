"""Elementwise operations: operands of any kind, broadcasting, dtypes by NEP 50, `out`, `where`, `dtype`.

Each operation records one assignment over the broadcast shape; passes fuse them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Union

import numpy as np

from ...errors import (
    DTypeError,
    IntegerOverflow,
    LeakedArrayError,
    NumberError,
    ReadOnlyError,
    ShapeError,
    UnsupportedError,
    UserError,
)
from ...ir.conditions import compare, one_of
from ...ir.dtype import BOOL, F64, I64, DType, Kind, from_numpy, of_any_order
from ...ir.expr import Apply, Cast, Const, Expr, constant, convert, dtype_of, literal
from ...ir.index import Affine, Extent, Symbol, affine
from ...ir.ops import Op
from ...ir.resolve import resolve
from ..record.resident import Resident, layout_of
from ..record.trace import Body, Trace, current_trace
from ..record.view import View
from .array import PythonNumber, SymbolicArray, describe
from .extents import ONE, ZERO, is_at_least, is_repeatable, same_shape, shape_text, shape_texts
from .fitting import Operand, check_fits, check_stored, limits, literal_of
from .integer import SymbolicInt
from .layout import Order, copy_order, kept_order, lies_in
from .numbers import as_scalar
from .rows import LISTS, Rows, columns_of, rows_of, table_of

__all__ = [
    "Operand",
    "always",
    "as_array",
    "as_operand",
    "as_stored",
    "broadcast",
    "broadcast_view",
    "broadcasts_to",
    "cast",
    "check_exponent",
    "constant_array",
    "copy",
    "elementwise",
    "is_traced",
    "items_of",
    "laid",
    "operand_at",
    "shape_of",
    "store",
    "views_of",
]

Kinds = Union[DType, PythonNumber]

_PYTHON_NUMBERS = (bool, int, float, complex)
_UNSIGNED = range(1 << 63, 1 << 64)

_COMPARISONS = frozenset(("less", "less_equal", "greater", "greater_equal", "equal", "not_equal"))


def as_operand(value: Any, trace: Trace | None = None) -> Operand:
    """What an operation computes with: a symbolic array, or a Python scalar, which stays weakly typed."""
    trace = trace or current_trace()
    if type(value) is SymbolicArray:
        _require_owned(value, trace)
        return value
    if type(value) in _PYTHON_NUMBERS:
        return value  # type: ignore[no-any-return]
    if type(value) is SymbolicInt:
        return as_scalar(value, trace)
    if isinstance(value, np.generic):
        number = _constant_of(value)
        return SymbolicArray(trace.compute((), dtype_of(number), lambda _: number), trace, is_scalar=True)
    if isinstance(value, (np.ndarray, Resident)):
        return _captured(value, trace)
    if isinstance(value, LISTS):
        return _stacked(list(value), trace)
    if isinstance(value, range):
        return constant_array(np.array(value[:]))
    if isinstance(value, _PYTHON_NUMBERS):
        kinds: tuple[Any, ...] = _PYTHON_NUMBERS
        return next(kind(value) for kind in kinds if isinstance(value, kind))  # type: ignore[no-any-return]
    raise DTypeError(
        f"a {type(value).__name__} cannot take part in array arithmetic",
        fix="use arrays and numbers of bool, int, uint, float and complex dtypes",
    )


def as_array(value: Any, dtype: DType | None = None) -> SymbolicArray:
    """An operand as a symbolic array; Python scalars take `dtype`, or NumPy's default for their type."""
    operand = as_operand(value)
    if type(operand) is SymbolicArray:
        return operand
    trace = current_trace()
    kind = dtype or _dtype_of(operand)
    number = literal_of(operand, kind)
    return SymbolicArray(trace.compute((), kind, lambda _: number), trace, is_scalar=True)


def _dtype_of(operand: Operand) -> DType:
    """The dtype that NumPy gives an operand alone: no Python number is weak then, and an int that needs all
    64 bits has no sign."""
    if type(operand) is int and operand in _UNSIGNED:
        return from_numpy(np.dtype(np.uint64))
    kind = _kind(operand)
    return from_numpy(np.dtype(kind)) if isinstance(kind, type) else kind


def as_stored(value: Any, dtype: DType, trace: Trace) -> Operand:
    """The operand that is stored in an array of a dtype. A Python number must fit, and so must each in
    a list, of which NumPy makes such an array first."""
    if isinstance(value, LISTS) and not is_traced(value):
        return _constant(_listed(value, dtype), trace)
    for number in items_of(value):
        item = as_operand(number, trace)
        check_fits(item, dtype, trace, stored=True)
        if number is not value:
            check_stored(item, dtype, trace)
    return as_operand(value, trace)


def _listed(value: Any, dtype: DType) -> np.ndarray:
    """The array that NumPy makes of a list of numbers."""
    try:
        return np.array(value, dtype.numpy)
    except OverflowError as error:
        wrong: type[UserError] = IntegerOverflow
        words = str(error)
    except TypeError as error:
        wrong, words = DTypeError, str(error)
    except ValueError as error:
        wrong, words = NumberError, str(error)
    raise wrong(words, fix=f"store a row of numbers that {dtype.name} holds")


def items_of(value: Any) -> Iterator[Any]:
    """What (nested) lists of whatever kind hold; anything else is itself."""
    if isinstance(value, LISTS):
        for item in value:
            yield from items_of(item)
    else:
        yield value


def broadcast(*shapes: Sequence[Extent]) -> tuple[Affine, ...]:
    """The common shape. Raises ShapeError with NumPy's words. An extent that is known only when the
    compiled function runs is not repeated there: it must then be equal to the others."""
    given = [affine(shape) for shape in shapes]
    rank = max((len(shape) for shape in given), default=0)
    result = [ONE] * rank
    for shape in given:
        for axis, extent in enumerate(shape, rank - len(shape)):
            result[axis] = _common_extent(result[axis], extent, given)
    return tuple(result)


def _common_extent(one: Affine, other: Affine, shapes: Sequence[Sequence[Affine]]) -> Affine:
    if other in (one, ONE):
        return one
    if one == ONE:
        return other
    words = f"operands could not be broadcast together with shapes {' '.join(shape_texts(*shapes))}"
    fewer, more = (other, one) if one.is_constant or is_at_least(one, 2) else (one, other)
    if is_repeatable(fewer, more, words):
        return other if other.is_constant else one
    raise ShapeError(words, fix="reshape an operand, or insert axes with x[:, np.newaxis]")


def broadcasts_to(shape: Sequence[Affine], wanted: Sequence[Affine], words: str) -> bool:
    """Whether an array of this shape can be repeated to the `wanted` one. Extents known only when the
    compiled function runs are checked there, as in `broadcast`."""
    pairs = zip(reversed(shape), reversed(wanted), strict=False)
    return len(shape) <= len(wanted) and all(is_repeatable(*pair, words) for pair in pairs)


def broadcast_view(view: View, shape: Sequence[Extent]) -> View:
    """The view repeated along its extents of 1 and along new leading axes; read-only as in NumPy."""
    axes = tuple(Symbol("i") for _ in shape)
    return View(view.tensor, affine(shape), axes, view.at(_aligned(view.shape, affine(axes))), False)


def constant_array(numbers: np.ndarray) -> SymbolicArray:
    """A fresh array that holds numbers known while tracing."""
    trace = current_trace()
    symbolic = copy(_captured(numbers, trace), "C")
    trace.knowledge.know(symbolic.cells.tensor, numbers)
    return symbolic


def operand_at(operand: Operand, position: Sequence[Affine], dtype: DType) -> Expr:
    """The operand's cell for a position of the broadcast shape, converted to `dtype`."""
    if type(operand) is not SymbolicArray:
        return literal_of(operand, dtype)
    value: Expr = operand.load(_aligned(operand.cells.shape, position))
    if operand.weak is int and dtype.is_inexact and dtype.part is not F64:
        value = Cast(value, F64)
    return convert(value, dtype)


def elementwise(
    op: Op,
    *operands: Any,
    out: SymbolicArray | None = None,
    where: Any = None,
    dtype: Any = None,
    casting: str = "same_kind",
) -> SymbolicArray:
    """`op` on each cell of the broadcast operands: a fresh array, or `out`. They are converted, and the
    results for `out`, by the rule `casting`.

    Where the mask `where` is false, `out` keeps its values and a fresh array holds zeros.
    """
    trace = current_trace()
    values = [as_operand(value, trace) for value in operands]
    kinds = [_kind(value) for value in values]
    if out is not None:
        _require_writeable(out, trace)
    inputs, output = resolve(op, kinds, None if dtype is None else from_numpy(dtype), casting)
    if out is not None:
        _require_output_cast(op.ufunc or op.name, output, out, casting)
    shape = broadcast(*(shape_of(value) for value in values))
    body = _comparison_with_integer(op, values, inputs) if op.name in _COMPARISONS else None
    if body is None:
        for value, kind in zip(values, inputs, strict=True):
            check_fits(value, kind, trace)
        if op.name == "power" and ZERO not in shape:
            check_exponent(values[1], output, trace, _mask_if_any(where))
        body = _applied(op, values, inputs, output)
    return store(op.ufunc or op.name, trace, shape, output, body, out, where, views_of(values), casting)


def store(
    name: str,
    trace: Trace,
    shape: Sequence[Extent],
    dtype: DType,
    body: Body,
    out: SymbolicArray | None = None,
    where: Any = None,
    like: Sequence[View] = (),
    casting: str = "same_kind",
) -> SymbolicArray:
    """Deliver the cells `body(position)`: into a fresh array in the memory order of the operands `like`,
    or into `out` by NumPy's rules for ufuncs."""
    shape = affine(shape)
    mask = _mask_if_any(where)
    if mask is not None:
        shape = broadcast(shape, shape_of(mask))
    if out is None:
        if mask is not None:
            body = _either(_cells(mask, BOOL), body, always(literal(0, dtype)), dtype)
            like = (*like, *views_of((mask,)))
        order = kept_order(len(shape), like)
        return SymbolicArray(trace.compute(shape, dtype, body, order=order), trace, is_scalar=not shape)
    target = _require_writeable(out, trace)
    _require_output_cast(name, dtype, target, casting)
    _require_room(target, shape)
    kind = target.element_type
    converted: Body = lambda position: convert(body(_aligned(shape, position)), kind)  # noqa: E731
    if mask is not None:
        converted = _either(_cells(mask, BOOL), converted, target.cells.load, kind)
    trace.store(target.cells, converted)
    return target


def copy(array: SymbolicArray, order: str = "K") -> SymbolicArray:
    """A fresh array with the same cells, in NumPy's `order`."""
    return cast(array, array.element_type, order)


def laid(array: SymbolicArray, order: Order) -> SymbolicArray:
    """An array of its own that NumPy lays in `order`: a copy where it lies otherwise and the program can tell
    the difference."""
    trace = array.record
    if lies_in(array.cells, order):
        return array
    if trace.layouts.are_numpys:
        cells = trace.compute(array.cells.shape, array.element_type, array.load, order=order)
        return SymbolicArray(cells, trace)
    trace.layouts.differ(array.cells)
    return array


def cast(array: SymbolicArray, dtype: DType, order: str = "K") -> SymbolicArray:
    """A fresh array with the cells converted as `astype` converts, in NumPy's `order`."""
    trace = current_trace()
    _require_owned(array, trace)

    def cell(position: tuple[Affine, ...]) -> Expr:
        return convert(array.load(position), dtype)

    view = trace.compute(array.cells.shape, dtype, cell, order=copy_order(array.cells, order))
    return SymbolicArray(view, trace, is_scalar=array.is_scalar)


def _require_owned(array: SymbolicArray, trace: Trace) -> None:
    if array.record is not trace or not trace.is_open:
        raise LeakedArrayError(
            "a symbolic array of another call was used",
            details=(describe(array),),
            fix="return the array from the function that made it; do not keep it in a global or an object",
        )
    trace.require_alive((array.cells.tensor.storage,))


def _aligned(shape: tuple[Affine, ...], position: Sequence[Affine]) -> tuple[Affine, ...]:
    """The index into `shape` of a position in a shape that it broadcasts to."""
    tail = position[len(position) - len(shape) :]
    return tuple(ZERO if extent == ONE else part for extent, part in zip(shape, tail, strict=True))


def views_of(operands: Sequence[Operand]) -> list[View]:
    """The cells of the operands that are arrays."""
    return [operand.cells for operand in operands if type(operand) is SymbolicArray]


def shape_of(operand: Operand) -> tuple[Affine, ...]:
    """The shape of an operand; a number has none."""
    return operand.cells.shape if type(operand) is SymbolicArray else ()


def _kind(operand: Operand) -> Kinds:
    if type(operand) is SymbolicArray:
        return operand.weak or operand.element_type
    return type(operand)


def _constant_of(value: np.generic) -> Expr:
    return literal(value.item(), from_numpy(value.dtype))


def _captured(array: np.ndarray | Resident, trace: Trace) -> SymbolicArray:
    layout: np.ndarray = layout_of(array)
    if type(layout) not in (np.ndarray, np.memmap):
        raise UnsupportedError(
            f"{type(array).__name__}, a subclass of ndarray, is not supported",
            fix="convert it with np.asarray(...) before the call",
        )
    of_any_order(layout.dtype)
    return SymbolicArray(View.whole(trace.capture(array), layout.flags.writeable), trace)


def _constant(numbers: np.ndarray, trace: Trace) -> SymbolicArray:
    """An array that nobody else has."""
    constant = _captured(numbers, trace)
    trace.knowledge.know(constant.cells.tensor, numbers)
    return constant


def _stacked(values: Sequence[Any], trace: Trace) -> Operand:
    """A (nested) list as an array; the elements are broadcast against none: their shapes must agree."""
    if not is_traced(values):
        return _constant(np.asarray(values), trace)
    table = table_of(values)
    if table is not None:
        return _stored(table, trace)
    columns = columns_of(values)
    if columns is not None:
        return _beside(len(values), columns, trace)
    parts = [as_operand(value, trace) for value in values]
    dtype = _common_dtype(parts)
    shape = shape_of(parts[0])
    words = "the elements of a list differ in shape"
    if not all(same_shape(shape_of(part), shape, words) for part in parts):
        raise ShapeError(
            words,
            details=tuple(shape_text(shape_of(part)) for part in parts),
            fix="give every element the same shape",
        )
    whole = trace.window((len(parts), *shape), dtype)
    row = 0
    for part in rows_of(parts) or parts:
        count, operand = (part.count, part.together) if type(part) is Rows else (None, part)
        target = _rows_from(whole, row, count)
        trace.store(target, lambda position, of=operand: operand_at(of, position, dtype))  # type: ignore[misc]
        row += count or 1
    return SymbolicArray(whole, trace)


def _stored(table: SymbolicArray, trace: Trace) -> SymbolicArray:
    """A fresh array of the numbers or arrays that lie in a table."""
    dtype = _common_dtype([table])
    whole = trace.window(table.cells.shape, dtype)
    trace.store(whole, lambda position: operand_at(table, position, dtype))
    return SymbolicArray(whole, trace)


def _beside(count: int, columns: Sequence[tuple[tuple[int, ...], Any]], trace: Trace) -> SymbolicArray:
    """A fresh array of what so many lists of one form hold, which goes place by place of that form."""
    dtype = _common_dtype([column for _, column in columns])
    last, column = columns[-1]
    inner = shape_of(column)[1:]
    whole = trace.window((count, *(n + 1 for n in last), *inner), dtype)
    row, *axes = whole.axes
    cells = axes[len(last) :]
    for place, column in columns:
        target = whole.remap((count, *inner), (row, *cells), affine((row, *place, *cells)))
        trace.store(target, lambda position, of=column: operand_at(of, position, dtype))  # type: ignore[misc]
    return SymbolicArray(whole, trace)


def _rows_from(view: View, start: int, count: int | None) -> View:
    """So many places of the first axis; None for one, without the axis."""
    row, *inner = affine(view.axes)
    if count is None:
        return view.remap(view.shape[1:], view.axes[1:], (start, *inner))
    return view.remap((count, *view.shape[1:]), view.axes, (row + start, *inner))


def is_traced(value: Any) -> bool:
    """Whether the value is known only when the compiled function runs, or a list that holds such."""
    if type(value) in (SymbolicArray, SymbolicInt):
        return True
    return isinstance(value, LISTS) and any(is_traced(item) for item in value)


def _common_dtype(parts: Sequence[Operand]) -> DType:
    """The dtype of `np.array([...])`."""
    return from_numpy(np.result_type(*{_dtype_of(part).numpy for part in parts}))


def _applied(op: Op, values: Sequence[Operand], inputs: Sequence[DType], output: DType) -> Body:
    def body(position: tuple[Affine, ...]) -> Expr:
        pairs = zip(values, inputs, strict=True)
        return Apply(op, tuple(operand_at(value, position, kind) for value, kind in pairs), output)

    return body


def _comparison_with_integer(op: Op, values: Sequence[Operand], inputs: Sequence[DType]) -> Body | None:
    """Comparing integers with a Python int, which may be beyond their range, where NumPy alone answers
    by value. None where the plain comparison does."""
    for place, (value, kind) in enumerate(zip(values, inputs, strict=True)):
        if not kind.is_integer:
            continue
        if type(value) is int:
            low, high = limits(kind)
            if not low <= value <= high:
                return always(_verdict(op, value, place))
        elif type(value) is SymbolicArray and value.weak is int and kind is not I64:
            if kind.bits < I64.bits:
                return _applied(op, values, (I64, I64), BOOL)
            negative = compare("less", value.load(()), Const(0, I64))
            beyond = always(_verdict(op, -1, place))
            return _either(always(negative), beyond, _applied(op, values, inputs, BOOL), BOOL)
    return None


def _verdict(op: Op, beyond: int, place: int) -> Const:
    """The answer of comparing anything in range with a number beyond it, which stands at `place`."""
    return Const(bool(op.ref(0, beyond) if place else op.ref(beyond, 0)), BOOL)


def always(value: Expr) -> Callable[[tuple[Affine, ...]], Expr]:
    """A body with this value in every cell."""
    return lambda _: value


def check_exponent(exponent: Operand, dtype: DType, trace: Trace, mask: Operand | None = None) -> None:
    """A power computed in integers has no negative exponents where the mask holds, or the function raises
    NumPy's ValueError."""
    if dtype.kind is not Kind.INT or _is_never_negative(exponent):
        return
    words = "Integers to negative integer powers are not allowed."
    if mask is None and type(exponent) is not SymbolicArray:
        raise NumberError(words, fix="use a float base, x.astype(float) ** n")

    def holds(position: tuple[Affine, ...]) -> Expr:
        at_least = compare("greater_equal", operand_at(exponent, position, dtype), constant(0, dtype))
        if mask is None:
            return at_least
        return one_of(operand_at(mask, position, BOOL), at_least, literal(True, BOOL))

    shapes = [shape_of(exponent)] if mask is None else [shape_of(exponent), shape_of(mask)]
    trace.check(broadcast(*shapes), holds, "ValueError", words)


def _is_never_negative(exponent: Operand) -> bool:
    if type(exponent) is SymbolicArray:
        return exponent.element_type is BOOL or exponent.element_type.kind is Kind.UINT
    return exponent.real >= 0


def _mask_if_any(where: Any) -> Operand | None:
    if where is None or where is True:
        return None
    mask = cast(as_array(where), BOOL) if isinstance(where, LISTS) else as_operand(where)
    kind = _kind(mask)
    if kind is not BOOL and kind is not bool:
        raise DTypeError(
            f"the mask where= must be bool, not {kind.__name__ if isinstance(kind, type) else kind.name}",
            fix="compare: where=(mask != 0)",
        )
    return mask


def _cells(operand: Operand, dtype: DType) -> Body:
    return lambda position: operand_at(operand, position, dtype)


def _either(condition: Body, then: Body, otherwise: Body, dtype: DType) -> Body:
    def chosen(position: tuple[Affine, ...]) -> Expr:
        return one_of(condition(position), then(position), otherwise(position))

    return chosen


def _require_room(target: SymbolicArray, shape: tuple[Affine, ...]) -> None:
    """The output of a ufunc has the broadcast shape."""
    room = target.cells.shape
    words = (
        f"non-broadcastable output operand with shape {shape_text(room)} doesn't match the broadcast shape "
    )
    if not broadcasts_to(shape, room, words + shape_text(shape)):
        raise ShapeError(words + shape_text(broadcast(shape, room)), fix="give out= the shape of the result")


def _require_writeable(out: Any, trace: Trace) -> SymbolicArray:
    if type(out) is not SymbolicArray or out.is_scalar or out.weak is not None:
        raise DTypeError(
            "the array that this line writes is neither passed to nor made in the jitted function",
            fix="pass the array as an argument",
        )
    _require_owned(out, trace)
    if not out.cells.writeable:
        raise ReadOnlyError(
            "output array is read-only", details=(describe(out),), fix="write into a copy: x = x.copy()"
        )
    return out


def _require_output_cast(name: str, dtype: DType, out: SymbolicArray, casting: str) -> None:
    source, target = dtype.numpy, out.dtype
    if not np.can_cast(source, target, casting):  # type: ignore[arg-type]
        raise DTypeError(
            f"Cannot cast ufunc '{name}' output from {source!r} to {target!r} with casting rule '{casting}'",
            fix=f"convert explicitly with .astype(np.{target}), or choose an output of dtype {source}",
        )
