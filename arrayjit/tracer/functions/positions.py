"""`argmax` and `argmin`, also without NaN: where the greatest or the least value stands first; and
`unravel_index`.

One pass finds the value, another the first position that holds it. Along a long axis the first pass keeps
the value of every block, so that the second reads the blocks' values and one block only. Of bools the value
is known, and blocks are gone through until one has it.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import ShapeError
from ...ir.conditions import compare, either, is_nan, one_of
from ...ir.dtype import BOOL, I32, I64
from ...ir.expr import Apply, Cast, Const, Expr, Index
from ...ir.index import Affine, affine, row_major_strides
from ...ir.ops import Op, op
from ..indices.gathering import gather
from ..indices.indexing import getitem
from ..record.registry import implements, method
from ..record.trace import Body, current_trace
from ..values.array import SymbolicArray, describe
from ..values.elementwise import as_array, cast, elementwise, operand_at
from ..values.extents import ZERO, is_at_least, numbers, product, require_at_least
from ..values.integer import number, python_int
from .operands import (
    deliver,
    is_given,
    is_true,
    reduced_axes,
    refuse,
    require_all,
    require_cast,
    require_integers,
    result_of,
    shape_of,
)
from .reductions import accumulate_over, extreme_number, reduce_array, split_last
from .reshaping import ravel
from .shaping import insert_axes
from .statistics import without_nan

__all__ = ["argmax", "argmin"]

BLOCK = 512
"""How many cells have one value kept for them. The positions of 1000000 float32 cells take 0.30 ms
without blocks and 0.08 ms with them."""

BLOCK_OF_BOOLS = 2048
"""Of bools it is more, which are looked through a register at a time, and no further than needed."""

MANY = 16 * BLOCK
"""From how many cells on blocks pay."""

NOWHERE = int(np.iinfo(np.int32).max)
"""A position behind all others. Those of more cells are found block by block, so that 32 bits do."""


@implements(np.argmax)
@method("argmax")
def argmax(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = False) -> SymbolicArray:
    return _first_position(op("maximum"), as_array(a), axis, out, keepdims)


@implements(np.argmin)
@method("argmin")
def argmin(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = False) -> SymbolicArray:
    return _first_position(op("minimum"), as_array(a), axis, out, keepdims)


@implements(np.nanargmax)
def nanargmax(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = np._NoValue) -> SymbolicArray:
    return argmax(_instead_of_nan(a, axis, -np.inf), axis, out, keepdims=keepdims)


@implements(np.nanargmin)
def nanargmin(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = np._NoValue) -> SymbolicArray:
    return argmin(_instead_of_nan(a, axis, np.inf), axis, out, keepdims=keepdims)


def _instead_of_nan(a: Any, axis: Any, number: float) -> SymbolicArray:
    """The array with a number where it is NaN, which it may not be everywhere along an axis."""
    array = as_array(a)
    if array.element_type.is_inexact:
        is_number = reduce_array(op("logical_or"), elementwise(op("equal"), array, array), axis)
        require_all(is_number, "All-NaN slice encountered")
    return without_nan(array, number)


def _first_position(operation: Op, array: SymbolicArray, axis: Any, out: Any, keepdims: Any) -> SymbolicArray:
    """The least position where the array equals its extreme, or is NaN if any cell is."""
    axes = reduced_axes(None if axis is None else operator.index(axis), array.ndim)
    name = "argmax" if operation is op("maximum") else "argmin"
    words = f"attempt to get {name} of an empty sequence"
    extents = [array.cells.shape[one] for one in axes]
    if not all(require_at_least(extent, 1, "ValueError", words) for extent in extents):
        raise ShapeError(words, details=(describe(array),))
    count = product(extents)
    if not is_at_least(NOWHERE - count, 0):
        count = Affine.of(number(count, array.record, f"of how many cells {name} is taken"))
    is_long = count.is_constant and count.offset >= MANY
    flat = ravel(array) if is_long and len(axes) > 1 else array
    over = (0,) if flat is not array else axes
    kept = [one for one in range(flat.ndim) if one not in over]
    moved = SymbolicArray(flat.cells.transpose((*kept, *over)), flat.record)
    if is_long and array.element_type is BOOL:
        result = _first_bool(operation is op("maximum"), moved)
    elif is_long:
        result = _by_blocks(operation, moved)
    else:
        last = count.offset - 1 if count.is_constant else NOWHERE
        result = _search(moved, extreme_number(operation, flat, over), last)
    result = result_of(result.cells)
    if is_given(out):
        require_cast(as_array(out), np.intp, "safe")
    return deliver(insert_axes(result, axes) if is_true(keepdims) else result, out, "unsafe")


@implements(np.unravel_index)
def unravel_index(indices: Any, shape: Any, order: str = "C") -> tuple[SymbolicArray, ...]:
    """The positions along each axis of those counted through all of them."""
    refuse("np.unravel_index", "use order='C' or 'F'", order=None if order in ("C", "F") else order)
    extents = shape_of(shape)
    size = product(extents)
    words = f"index is out of bounds for array with size {size}"
    rest = require_integers(as_array(indices))
    for relation, limit in (("greater_equal", ZERO), ("less", size)):
        inside = elementwise(op(relation), rest, python_int(limit, rest.record))
        rest.record.check(inside.cells.shape, inside.load, "ValueError", words)
    found = []
    for extent in extents if order == "F" else reversed(extents):
        by = python_int(extent, rest.record)
        found.append(_counted(elementwise(op("remainder"), rest, by)))
        rest = elementwise(op("floor_divide"), rest, by)
    return tuple(found if order == "F" else reversed(found))


def _counted(positions: SymbolicArray) -> SymbolicArray:
    return positions if positions.element_type is I64 else cast(positions, I64)


def _search(array: SymbolicArray, value: SymbolicArray, otherwise: int) -> SymbolicArray:
    """The first position, among the axes that `value` lacks, where `array` has the value."""
    rank = value.ndim
    extents = array.cells.shape[rank:]
    known = numbers(extents[1:], "an extent of what is searched")
    strides = row_major_strides((*extents[:1], *affine(known)))

    def cell(position: tuple[Affine, ...]) -> Expr:
        linear = Affine.of(0)
        for index, stride in zip(position[rank:], strides, strict=True):
            linear = linear + index * stride.constant
        found = operand_at(array, position, array.element_type)
        return _position_if_found(found, value, position[:rank], linear, otherwise)

    return _least(cell, value, extents, otherwise)


def _by_blocks(operation: Op, array: SymbolicArray) -> SymbolicArray:
    """The first position along the last axis. What does not fill a block is looked for in the last
    `BLOCK` cells, of which those of the block before are known not to have the value."""
    count = array.cells.shape[-1].constant
    trace, last = current_trace(), array.ndim - 1
    blocks = count // BLOCK
    whole = split_last(array.cells, blocks, BLOCK)
    extremes = extreme_number(operation, SymbolicArray(whole, trace), (last + 1,))
    best = extreme_number(operation, extremes, (last,))
    if count % BLOCK:
        rest = getitem(array, (..., slice(blocks * BLOCK, None)))
        best = elementwise(operation, best, extreme_number(operation, rest, (last,)))
    start, inside = _within_block(array, best, _search(extremes, best, blocks), BLOCK, BLOCK - 1)
    return elementwise(op("add"), start, inside)


def _first_bool(wanted: bool, array: SymbolicArray) -> SymbolicArray:
    """As `_by_blocks`, of bools, of which the extreme is known before. Where it is nowhere, all cells are the
    same, and the first is the one."""
    count, last = array.cells.shape[-1].constant, array.ndim - 1
    blocks = count // BLOCK_OF_BOOLS
    whole = SymbolicArray(split_last(array.cells, blocks, BLOCK_OF_BOOLS), current_trace())
    held = accumulate_over(op("maximum" if wanted else "minimum"), whole, (last + 1,), BOOL)
    best = elementwise(op("logical_or" if wanted else "logical_and"), getitem(array, (..., 0)), wanted)
    block = _search(held, best, blocks)
    start, inside = _within_block(array, best, block, BLOCK_OF_BOOLS, BLOCK_OF_BOOLS)
    is_found = elementwise(op("less"), inside, BLOCK_OF_BOOLS)
    return elementwise(op("where"), is_found, elementwise(op("add"), start, inside), 0)


def _within_block(
    array: SymbolicArray, best: SymbolicArray, block: SymbolicArray, size: int, otherwise: int
) -> tuple[SymbolicArray, SymbolicArray]:
    """Where the block starts, the last cells if it is behind all, and where the extreme stands in it."""
    count = array.cells.shape[-1].constant
    start = elementwise(op("minimum"), elementwise(op("multiply"), block, size), count - size)

    if best.ndim == 0:
        # Cells from a symbol on are read as any others are: what they are computed from, not stored before.
        at = Affine.of(current_trace().bind(start.load(()), 0, count - size + 1))

        def found(outer: Sequence[Affine], inside: Affine) -> Expr:
            return array.load((at + inside,))
    else:

        def found(outer: Sequence[Affine], inside: Affine) -> Expr:
            place: Expr = Apply(op("add"), (operand_at(start, outer, I64), Index(inside)), I64)
            return gather(array.cells, [*map(Index, outer), place])

    def cell(position: tuple[Affine, ...]) -> Expr:
        *outer, inside = position
        return _position_if_found(found(outer, inside), best, outer, inside, otherwise)

    return start, _least(cell, best, affine((size,)), otherwise)


def _least(cell: Body, like: SymbolicArray, over: Sequence[Affine], otherwise: int) -> SymbolicArray:
    trace = current_trace()
    initial = Const(otherwise, I32)
    view = trace.compute(
        like.cells.shape, I32, cell, label="position", over=over, accum=op("minimum"), initial=initial
    )
    return cast(SymbolicArray(view, trace), I64)


def _position_if_found(
    found: Expr, value: SymbolicArray, at: Sequence[Affine], position: Affine, otherwise: int
) -> Expr:
    wanted = operand_at(value, at, value.element_type)
    hit: Expr = compare("equal", found, wanted)
    if value.element_type.is_float or value.element_type.is_complex:
        hit = either(hit, is_nan(found))
    return one_of(hit, Cast(Index(position), I32), Const(otherwise, I32))
