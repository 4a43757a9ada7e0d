"""Positions along all axes at once: `x.flat`, `np.ndenumerate`, `np.ndindex`, `itertools.product`, and
`np.ravel_multi_index`.

A loop over them is one loop of the program, over the positions in row-major order.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from ...errors import NumberError, UnsupportedError
from ...ir.dtype import I64
from ...ir.index import Affine
from ...ir.ops import op
from ..indices.bounds import within
from ..indices.indexing import element_or_part, getitem, setitem
from ..loops.loops import UNROLLED, Counted, Once
from ..loops.ranges import counted
from ..record.deciding import not_negative
from ..record.registry import creates, implements, method
from ..record.trace import Trace, current_trace
from ..values.array import SymbolicArray, describe
from ..values.elementwise import as_array, as_operand, as_stored, cast, copy, elementwise
from ..values.extents import ZERO, product
from ..values.fitting import Operand, check_single
from ..values.integer import python_int
from ..values.layout import is_laid_out
from ..values.numbers import as_affine
from .creation import arange
from .operands import refuse, require_between, require_integers, shape_of
from .putting import put
from .reshaping import ravel

__all__ = ["traced_product"]


class Flat(Once):
    """`x.flat`: the cells in row-major order."""

    kind = np.flatiter

    def __init__(self, array: SymbolicArray) -> None:
        self.trace, self.array = array.record, array
        self.lo, self.hi, self.pace = ZERO, product(array.cells.shape), 1

    def item(self, index: Affine) -> Any:
        return element_or_part(self.array, _coordinates(index, self.array.cells.shape, self.trace))

    def __len__(self) -> Any:
        return python_int(self.hi, self.trace)

    def __getitem__(self, key: Any) -> Any:
        found = element_or_part(ravel(self.array), key)
        return copy(found) if type(found) is SymbolicArray and not found.is_scalar else found

    def __setitem__(self, key: Any, value: Any) -> None:
        dtype = self.array.element_type
        if _is_position(key):
            operand = as_operand(value)
            check_single(operand, dtype, self.trace)
            _require_number(operand)
        else:
            operand = as_stored(value, dtype, self.trace)
        if type(operand) is SymbolicArray:
            operand = cast(operand, dtype)
        is_number = type(operand) is not SymbolicArray or not operand.ndim
        if is_number and is_laid_out(self.array.cells, "C"):
            setitem(ravel(self.array), key, operand)
        else:
            put(self.array, getitem(arange(len(self)), key), operand)

    def copy(self) -> SymbolicArray:
        return self.array.flatten()  # type: ignore[no-any-return]


class Places(Once):
    """`np.ndindex(shape)`: the positions in row-major order, as tuples."""

    kind: type = np.ndindex

    def __init__(self, trace: Trace, shape: Sequence[Affine]) -> None:
        self.trace, self.shape = trace, shape
        self.lo, self.hi, self.pace = ZERO, product(shape), 1

    def item(self, index: Affine) -> Any:
        return _coordinates(index, self.shape, self.trace)


class Cells(Places):
    """`np.ndenumerate(array)`: positions with the cells there."""

    kind = np.ndenumerate

    def __init__(self, array: SymbolicArray) -> None:
        super().__init__(array.record, array.cells.shape)
        self.array = array

    def item(self, index: Affine) -> Any:
        place = super().item(index)
        return place, element_or_part(self.array, place)


class Product(Places):
    """`itertools.product` of counted items."""

    kind = itertools.product

    def __init__(self, parts: Sequence[Counted]) -> None:
        trace = parts[0].trace
        super().__init__(trace, [not_negative(part.times, trace) for part in parts])
        self.parts = parts

    def item(self, index: Affine) -> Any:
        places = (as_affine(place, self.trace) for place in super().item(index))
        pairs = zip(self.parts, places, strict=True)
        return tuple(part.item(part.lo + place * part.pace) for part, place in pairs if place is not None)


def _is_position(key: Any) -> bool:
    """Whether the key chooses one cell."""
    if type(key) is SymbolicArray:
        return not key.ndim and key.element_type.is_integer
    is_array = isinstance(key, (np.ndarray, np.integer)) and not key.ndim and key.dtype.kind in "iu"
    return is_array or (isinstance(key, int) and not isinstance(key, bool))


def _require_number(operand: Operand) -> None:
    if type(operand) is SymbolicArray and operand.ndim:
        raise NumberError(
            "Error setting single item of array.",
            details=(describe(operand),),
            fix="store a number, for example value[0]",
        )


def _coordinates(index: Affine, shape: Sequence[Affine], trace: Trace) -> tuple[Any, ...]:
    """The position along each axis of one counted through all of them."""
    rest: Any = python_int(index, trace)
    found = []
    for extent in reversed(shape[1:]):
        size: Any = python_int(extent, trace)
        found.append(rest % size)
        rest = rest // size
    return (rest, *reversed(found)) if shape else ()


@method("flat")
def flat(array: SymbolicArray) -> Flat:
    return Flat(array)


@creates(np.ndenumerate)
def ndenumerate(arr: Any) -> Any:
    return _few(Cells(as_array(arr)))


@creates(np.ndindex)
def ndindex(*shape: Any) -> Any:
    given = shape[0] if len(shape) == 1 and isinstance(shape[0], tuple) else shape
    return _few(Places(current_trace(), shape_of(given)))


def traced_product(*iterables: Any, repeat: int = 1) -> Any:
    """`itertools.product` inside a traced function; beside a list the items are taken one by one."""
    parts = [counted(iterable) for iterable in iterables]
    known = [part for part in parts if part is not None]
    if not known or repeat < 1 or len(known) < len(parts):
        return itertools.product(*iterables, repeat=repeat)
    return _few(Product([part.handed_on() for part in known] * repeat))


def _few(places: Places) -> Any:
    """The positions one by one where a loop over each axis would be unrolled."""
    if all(extent.is_constant and extent.offset <= UNROLLED for extent in places.shape):
        return iter(list(places.items()))
    return places


@creates(np.nditer)
def nditer(*args: Any, **kwargs: Any) -> NoReturn:
    raise UnsupportedError(
        "np.nditer is not supported in a jitted function",
        fix="use whole arrays, or a loop: for i, j in np.ndindex(x.shape)",
    )


@implements(np.ravel_multi_index)
def ravel_multi_index(multi_index: Any, dims: Any, mode: Any = "raise", order: str = "C") -> SymbolicArray:
    """The positions, counted through all axes, of those along each axis."""
    refuse("np.ravel_multi_index", "use order='C' or 'F'", order=None if order in ("C", "F") else order)
    extents = shape_of(dims)
    modes = mode if isinstance(mode, tuple) else (mode,) * len(extents)
    total: Any = 0
    steps = list(zip(multi_index, extents, modes, strict=True))
    for positions, extent, how in steps if order == "C" else reversed(steps):
        inside = _inside(require_integers(as_array(positions)), extent, how)
        whole = elementwise(op("multiply"), total, python_int(extent, inside.record))
        total = elementwise(op("add"), whole, inside)
    return cast(as_array(total), I64)


def _inside(positions: SymbolicArray, extent: Affine, mode: str) -> SymbolicArray:
    if mode != "raise":
        return within(positions, extent, 0, mode)
    words = f"invalid entry in coordinates array, of an axis of size {extent}"
    require_between(positions, 0, python_int(extent, positions.record), words)
    return positions
