"""Sums of products: `dot`, `matmul`, `tensordot`, `inner`, `outer`, `vdot`, `kron`, `trace`, `cross`.

All are one primitive, `contract`, which names the axes of its operands by labels as einsum does. Float
products are accumulated by fused multiply-add.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, NoReturn

import numpy as np

from ...errors import IndexOutOfRange, LinearAlgebraError, ShapeError
from ...ir.dtype import BF16, F32, DType
from ...ir.expr import Apply, Expr, literal
from ...ir.index import Affine
from ...ir.ops import op
from ..record.registry import implements, method
from ..record.trace import current_trace
from ..values.array import SymbolicArray, describe
from ..values.elementwise import as_array, broadcast, cast, elementwise, laid, operand_at
from ..values.extents import agree, known_number, numbers, product, same_shape, shape_text
from ..values.layout import contiguity, shape_order
from .adopted import numpy_program
from .joining import stack
from .operands import (
    alone,
    arrays_of,
    axes_of,
    axis_of,
    common_dtype,
    deliver,
    element_type,
    is_given,
    refuse,
    result_of,
)
from .parts import conjugated
from .reductions import reduce_array
from .reshaping import flat, reshape
from .shaping import diagonal, insert_axes, moveaxis

__all__ = ["contract", "dot", "matmul", "tensordot"]

Labels = Sequence[Hashable]


def contract(
    operands: Sequence[SymbolicArray], terms: Sequence[Labels], output: Labels, dtype: DType
) -> SymbolicArray:
    """The product of one or two operands, whose axes `terms` name, summed over the labels that `output`
    lacks. Axes of extent 1 are repeated where the label's extent is larger. Small floats are summed in
    float32, as NumPy does it."""
    if dtype.is_small:
        return cast(contract(operands, terms, output, F32), dtype)
    extents: dict[Hashable, Affine] = {}
    for operand, term in zip(operands, terms, strict=True):
        for label, extent in zip(term, operand.cells.shape, strict=True):
            known = extents.get(label)
            if known is None or known == Affine.of(1):
                extents[label] = extent
    summed = [label for label in extents if label not in output]
    labels = (*output, *summed)

    def cell(position: tuple[Affine, ...]) -> Expr:
        at = dict(zip(labels, position, strict=True))
        factors = [
            operand_at(operand, [at[label] for label in term], dtype)
            for operand, term in zip(operands, terms, strict=True)
        ]
        return factors[0] if len(factors) == 1 else Apply(op("multiply"), tuple(factors), dtype)

    view = current_trace().compute(
        [extents[label] for label in output],
        dtype,
        cell,
        label="product",
        over=[extents[label] for label in summed],
        accum=op("add") if summed else None,
        initial=literal(0, dtype) if summed else None,
        contract=bool(summed) and len(operands) == 2 and dtype.is_inexact,
    )
    return result_of(view)


@implements(np.matmul, np.linalg.matmul)
def matmul(
    x1: Any, x2: Any, /, out: Any = None, *, dtype: Any = None, axes: Any = None, axis: Any = None
) -> SymbolicArray:
    refuse("np.matmul", "move the axes with np.moveaxis first", axes=axes, axis=axis)
    left, right = as_array(x1), as_array(x2)
    for number, operand in enumerate((left, right)):
        if operand.ndim == 0:
            raise ShapeError(
                f"matmul: Input operand {number} does not have enough dimensions (has 0, gufunc core with "
                "signature (n?,k),(k,m?)->(n?,m?) requires 1)",
                fix="use * to multiply by a number",
            )
    rows: Labels = ["row"] if left.ndim > 1 else []
    columns: Labels = ["column"] if right.ndim > 1 else []
    inner_extents = left.cells.shape[-1], right.cells.shape[-2 if columns else -1]
    _require_equal(*inner_extents, "matmul", "(n?,k),(k,m?)->(n?,m?)")
    inner = ([*rows, "inner"], ["inner", *columns])
    return deliver(_batched((left, right), inner, [*rows, *columns], dtype), out)


@implements(np.vecdot, np.linalg.vecdot)
def vecdot(x1: Any, x2: Any, /, out: Any = None, *, axis: int = -1, dtype: Any = None) -> SymbolicArray:
    left, right = (moveaxis(array, axis, -1) for array in arrays_of((x1, x2)))
    left = conjugated(left)
    _require_equal(left.cells.shape[-1], right.cells.shape[-1], "vecdot", "(n),(n)->()")
    return deliver(_batched((left, right), (["inner"], ["inner"]), [], dtype), out)


@implements("matvec")
def matvec(x1: Any, x2: Any, /, out: Any = None, *, dtype: Any = None) -> SymbolicArray:
    left, right = arrays_of((x1, x2))
    _require_axes((left, 2), (right, 1), "matvec", "(m,n),(n)->(m)")
    _require_equal(left.cells.shape[-1], right.cells.shape[-1], "matvec", "(m,n),(n)->(m)")
    return deliver(_batched((left, right), (["row", "inner"], ["inner"]), ["row"], dtype), out)


@implements("vecmat")
def vecmat(x1: Any, x2: Any, /, out: Any = None, *, dtype: Any = None) -> SymbolicArray:
    left, right = arrays_of((x1, x2))
    left = conjugated(left)
    _require_axes((left, 1), (right, 2), "vecmat", "(n),(n,m)->(m)")
    _require_equal(left.cells.shape[-1], right.cells.shape[-2], "vecmat", "(n),(n,m)->(m)")
    return deliver(_batched((left, right), (["inner"], ["inner", "column"]), ["column"], dtype), out)


def _require_axes(
    left: tuple[SymbolicArray, int], right: tuple[SymbolicArray, int], name: str, signature: str
) -> None:
    for number, (array, least) in enumerate((left, right)):
        if array.ndim < least:
            raise ShapeError(
                f"{name}: Input operand {number} does not have enough dimensions (has {array.ndim}, gufunc "
                f"core with signature {signature} requires {least})",
                details=(describe(array),),
                fix="give the operand the axes, or use np.dot",
            )


def _require_equal(first: Affine, second: Affine, name: str, signature: str) -> None:
    words = (
        f"{name}: Input operand 1 has a mismatch in its core dimension 0, with gufunc signature "
        f"{signature} (size {second} is different from {first})"
    )
    if not agree(first, second, words):
        raise ShapeError(words, fix="make the inner dimensions equal, for example by transposing an operand")


def _batched(
    operands: tuple[SymbolicArray, SymbolicArray],
    core: tuple[Labels, Labels],
    output: Labels,
    dtype: Any,
) -> SymbolicArray:
    """A contraction of trailing axes, with the leading axes broadcast together."""
    terms = []
    leading: list[tuple[Affine, ...]] = []
    for operand, labels in zip(operands, core, strict=True):
        batch = operand.ndim - len(labels)
        leading.append(operand.cells.shape[:batch])
        terms.append([*range(batch)[::-1], *labels])
    try:
        broadcast(*leading)
    except ShapeError:
        raise ShapeError(
            "operands could not be broadcast together with remapped shapes [original->remapped]: "
            f"{shape_text(operands[0].cells.shape)} and {shape_text(operands[1].cells.shape)}",
            fix="make the leading dimensions equal, or 1",
        ) from None
    ranks = max(len(shape) for shape in leading)
    common = common_dtype(*operands)
    kind = element_type(dtype, F32 if common is BF16 else common)  # NumPy's ufuncs know their own floats only
    return contract(operands, terms, [*range(ranks)[::-1], *output], kind)


@implements(np.dot)
@method("dot")
def dot(a: Any, b: Any, out: Any = None) -> SymbolicArray:
    left, right = alone(a), alone(b)
    if not left.ndim or not right.ndim:
        return _stored_alike(out, elementwise(op("multiply"), left, right))
    depth = max(right.ndim - 2, 0)
    _require_aligned(left, right, depth)
    return _stored_alike(out, _summed_axes(left, right, (left.ndim - 1,), (depth,)))


def _stored_alike(out: Any, result: SymbolicArray) -> SymbolicArray:
    """The result in `out=`, which must be as NumPy would make it."""
    if is_given(out):
        target = as_array(out)
        alike = target.element_type is result.element_type and target.ndim == result.ndim
        if not alike or contiguity(target.cells, "C") is False:
            words = "output array is not acceptable (must have the right datatype, number of dimensions, "
            raise ShapeError(
                words + "and be a C-Array)",
                details=(describe(target),),
                fix="pass a contiguous out= array of the result's dtype and shape",
            )
    return deliver(result, out)


def _require_aligned(left: SymbolicArray, right: SymbolicArray, axis: int) -> None:
    """The last axis of the left operand and this one of the right are summed over."""
    shapes = left.cells.shape, right.cells.shape
    first, second = shapes[0][-1], shapes[1][axis]
    words = (
        f"shapes {shape_text(shapes[0])} and {shape_text(shapes[1])} not aligned: "
        f"{first} (dim {left.ndim - 1}) != {second} (dim {axis})"
    )
    if not agree(first, second, words):
        fix = "make the inner dimensions equal, for example by transposing an operand"
        raise ShapeError(words, fix=fix)


def _summed_axes(
    left: SymbolicArray, right: SymbolicArray, left_axes: Sequence[int], right_axes: Sequence[int]
) -> SymbolicArray:
    """The free axes of the left operand, then of the right one; pairs of axes are summed over."""
    first: list[Hashable] = [("left", axis) for axis in range(left.ndim)]
    second: list[Hashable] = [("right", axis) for axis in range(right.ndim)]
    for one, other in zip(left_axes, right_axes, strict=True):
        second[other] = first[one]
    free = [label for label in first if label not in second]
    free += [label for label in second if label not in first]
    return contract((left, right), (first, second), free, common_dtype(left, right))


@implements(np.inner)
def inner(a: Any, b: Any, /) -> SymbolicArray:
    left, right = alone(a), alone(b)
    if not left.ndim or not right.ndim:
        return elementwise(op("multiply"), left, right)
    _require_aligned(left, right, right.ndim - 1)
    return _summed_axes(left, right, (left.ndim - 1,), (right.ndim - 1,))


@implements(np.vdot)
def vdot(a: Any, b: Any, /) -> SymbolicArray:
    left, right = flat(as_array(a)), flat(as_array(b))
    return dot(conjugated(left), right)


@implements(np.outer)
def outer(a: Any, b: Any, out: Any = None) -> SymbolicArray:
    left, right = flat(as_array(a)), flat(as_array(b))
    return deliver(
        contract((left, right), (["row"], ["column"]), ["row", "column"], common_dtype(left, right)), out
    )


@implements(np.tensordot, np.linalg.tensordot)
def tensordot(a: Any, b: Any, axes: Any = 2) -> SymbolicArray:
    left, right = as_array(a), as_array(b)
    if isinstance(axes, (tuple, list)):
        left_axes, right_axes = axes_of(axes[0], left.ndim), axes_of(axes[1], right.ndim)
    else:
        left_axes, right_axes = tuple(range(left.ndim - axes, left.ndim)), tuple(range(axes))
    if any(axis < 0 for axis in left_axes) or any(axis >= right.ndim for axis in right_axes):
        raise IndexOutOfRange(
            f"{axes} axes to sum over are more than an array has",
            details=(describe(left), describe(right)),
            fix="sum over axes that both arrays have",
        )
    first = [left.cells.shape[axis] for axis in left_axes]
    second = [right.cells.shape[axis] for axis in right_axes]
    words = "shape-mismatch for sum"
    if not same_shape(first, second, words):
        raise ShapeError(
            words,
            details=(f"{describe(left)} over {left_axes}", f"{describe(right)} over {right_axes}"),
            fix="sum over axes of equal sizes",
        )
    return _as_array_result(_summed_axes(left, right, left_axes, right_axes))


def _as_array_result(array: SymbolicArray) -> SymbolicArray:
    """A result without axes as an array, where NumPy gives no scalar."""
    return SymbolicArray(array.cells, array.record)


@implements(np.trace)
@method("trace")
def trace(
    a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: Any = None
) -> SymbolicArray:
    return reduce_array(op("add"), diagonal(a, offset, axis1, axis2), -1, dtype, out)


@implements(np.kron)
def kron(a: Any, b: Any) -> Any:
    left, right = as_array(a), as_array(b)
    rank = max(left.ndim, right.ndim)
    left = insert_axes(left, range(rank - left.ndim))
    right = insert_axes(right, range(rank - right.ndim))
    spread = insert_axes(left, range(1, 2 * rank, 2))
    repeated = insert_axes(right, range(0, 2 * rank, 2))
    if rank == 1 and known_number(right.cells.shape[0], "an extent that this line rearranges") is None:
        return _in_rows(left, right)
    products = elementwise(op("multiply"), spread, repeated)
    shape = [product(pair) for pair in zip(left.cells.shape, right.cells.shape, strict=True)]
    return products if rank == 0 else reshape(products, tuple(shape))


@numpy_program
def _in_rows(left: Any, right: Any) -> Any:
    """`np.kron` of rows, the second of as many cells as only the run knows."""
    count = len(right)
    result: Any = np.empty(len(left) * count, np.result_type(left, right))
    for n in range(len(left)):
        result[n * count : (n + 1) * count] = left[n] * right
    return result


@implements(np.cross)
def cross(
    a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: Any = None
) -> SymbolicArray:
    """Of vectors in the plane it is the third component alone, beside one in space their own third is 0."""
    if axis is not None:
        axisa = axisb = axisc = axis
    left, right = moveaxis(as_array(a), axisa, -1), moveaxis(as_array(b), axisb, -1)
    sizes = _components(left, right)
    if not set(sizes) <= {2, 3}:
        _refuse_vectors("incompatible dimensions for cross product\n(dimension must be 2 or 3)", left, right)
    if sizes == (2, 2):
        flat_result = _component(left, right, sizes, 0, 1)
        result = SymbolicArray(flat_result.cells, flat_result.record)
        return laid(result, shape_order(result.ndim, "C"))
    parts = [_component(left, right, sizes, *pair) for pair in ((1, 2), (2, 0), (0, 1))]
    rank = max(left.ndim, right.ndim)
    along = axis_of(axisc, rank)
    return laid(stack(parts, along), (*(axis for axis in range(rank) if axis != along), along))


def _components(*vectors: SymbolicArray) -> tuple[int, ...]:
    extents = [vector.cells.shape[-1] for vector in vectors]
    return tuple(numbers(extents, "how many components vectors have"))


def _component(
    left: SymbolicArray, right: SymbolicArray, sizes: tuple[int, ...], first: int, second: int
) -> SymbolicArray:
    """What two components of each contribute to a cross product; those beyond their sizes are 0."""
    one, other = (first, second), (second, first)
    is_one, is_other = (at < sizes[0] and to < sizes[1] for at, to in (one, other))
    products = [
        elementwise(op("multiply"), left[..., at], right[..., to])
        for (at, to), there in ((one, is_one), (other, is_other))
        if there
    ]
    if is_one and is_other:
        return elementwise(op("subtract"), *products)
    return products[0] if is_one else elementwise(op("negative"), *products)


def _refuse_vectors(words: str, *vectors: SymbolicArray) -> NoReturn:
    details = tuple(map(describe, vectors))
    raise ShapeError(words, details=details, fix="pass vectors of 3 components")


@implements(np.linalg.multi_dot)
def multi_dot(arrays: Sequence[Any], *, out: Any = None) -> SymbolicArray:
    """Products in the order that needs the fewest multiplications."""
    operands = arrays_of(arrays)
    if len(operands) < 2:
        raise ShapeError("Expecting at least two arrays.", fix="pass two or more arrays")
    first, last = operands[0].ndim, operands[-1].ndim
    if first == 1:
        operands[0] = insert_axes(operands[0], (0,))
    if last == 1:
        operands[-1] = insert_axes(operands[-1], (1,))
    _require_matrices(operands)
    result = _cheapest_product(operands)
    row = 0 if first == 1 else slice(None)
    column = 0 if last == 1 else slice(None)
    return deliver(result[row, column], out)


def _require_matrices(operands: Sequence[SymbolicArray]) -> None:
    for operand in operands:
        if operand.ndim != 2:
            raise LinearAlgebraError(
                f"{operand.ndim}-dimensional array given. Array must be two-dimensional",
                details=(describe(operand),),
                fix="pass matrices; only the first and the last may be vectors",
            )


def _cheapest_product(operands: Sequence[SymbolicArray]) -> SymbolicArray:
    if len(operands) == 2:
        return dot(*operands)
    extents = [*(operand.cells.shape[0] for operand in operands), operands[-1].cells.shape[-1]]
    sizes = numbers(extents, "a size that decides which product comes first")
    best: dict[tuple[int, int], tuple[int, int]] = {(n, n + 1): (0, n) for n in range(len(operands))}
    for length in range(2, len(operands) + 1):
        for lo in range(len(operands) - length + 1):
            hi = lo + length
            best[lo, hi] = min(
                (best[lo, cut][0] + best[cut, hi][0] + sizes[lo] * sizes[cut] * sizes[hi], cut)
                for cut in range(lo + 1, hi)
            )

    def multiplied(lo: int, hi: int) -> SymbolicArray:
        if hi == lo + 1:
            return operands[lo]
        cut = best[lo, hi][1]
        return dot(multiplied(lo, cut), multiplied(cut, hi))

    return multiplied(0, len(operands))
