"""The interpreter's memory: which NumPy array is behind which tensor."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

import numpy as np

from ..errors import CompilerBug, LinkError
from ..frozen import frozen
from .dtype import DType, Kind
from .frame import Array, Number
from .index import Symbol
from .loops import Kernel, PlaceKind
from .tensor import Tensor

__all__ = ["Memory"]


@frozen
class _Cells:
    """A tensor's memory. `first` is the position of its first cell, for flat views of memory that also
    extends below it."""

    array: Array
    first: int = 0


class Memory:
    """The arrays behind tensors: parameters as given, temporaries made at their first mention."""

    def __init__(
        self, kernel: Kernel | None, arrays: Mapping[Tensor, Array], bindings: Mapping[Symbol, int]
    ) -> None:
        self._bindings = bindings
        self._placement = kernel.placement if kernel else {}
        self._arena = np.empty(kernel.arena_bytes if kernel else 0, np.uint8)
        self._cells: dict[Tensor, _Cells] = {}
        for tensor, array in arrays.items():
            if array.dtype != tensor.dtype.numpy or array.shape != self._shape(tensor):
                raise LinkError(f"{tensor} was given an array of {array.dtype} and shape {array.shape}")
            self._cells[tensor] = _Cells(array if tensor.rank else array.reshape(1))

    def cells(self, tensor: Tensor) -> _Cells:
        found = self._cells.get(tensor)
        if found is None:
            if tensor.base is not None:
                held = self.cells(tensor.base)
                found = _real(held, tensor) if tensor.is_real_form else _flat(tensor.base, held.array)
            else:
                found = _Cells(self._temporary(tensor))
            self._cells[tensor] = found
        return found

    def load(self, tensor: Tensor, index: Sequence[Number]) -> Array:
        cells = self.cells(tensor)
        return np.asarray(cells.array[self._checked(tensor, cells, index)])

    def store(self, tensor: Tensor, index: Sequence[Number], value: Array) -> None:
        cells = self.cells(tensor)
        cells.array[self._checked(tensor, cells, index)] = value

    def fill(self, tensor: Tensor, value: Array) -> None:
        self.cells(tensor).array[...] = value

    def lap(self, times: Tensor, number: int) -> None:
        """The time since the last lap is added to a cell."""
        cells, now = self.cells(times).array, time.perf_counter_ns()
        cells[number] += now - cells[0]
        cells[0] = now

    def _checked(self, tensor: Tensor, cells: _Cells, index: Sequence[Number]) -> tuple[Number, ...]:
        """The position in the array, which NumPy would let wrap around below zero."""
        place: list[Number] = list(index) or [0]
        if cells.first:
            place = [place[0] + cells.first]
        for position, extent in zip(place, cells.array.shape, strict=True):
            low, high = (
                (position.min(initial=0), position.max(initial=-1))
                if isinstance(position, np.ndarray)
                else (position, position)
            )
            if low < 0 or high >= extent:
                raise CompilerBug(f"an index of {tensor} lies outside {extent} cells", stage="interp")
        return tuple(place)

    def _shape(self, tensor: Tensor) -> tuple[int, ...]:
        return tuple(extent.evaluate(self._bindings) for extent in tensor.shape)

    def _temporary(self, tensor: Tensor) -> Array:
        shape = self._shape(tensor) or (1,)
        place = self._placement.get(tensor)
        if place is not None and place.kind is PlaceKind.ARENA and self._arena.size:
            size = int(np.prod(shape)) * tensor.dtype.itemsize
            part = self._arena[place.offset : place.offset + size]
            if part.size != size:
                raise CompilerBug(f"{tensor} lies outside the arena", stage="interp")
            array = part.view(tensor.dtype.numpy).reshape(shape)
        else:
            array = np.empty(shape, tensor.dtype.numpy)
        array[...] = _poison(tensor.dtype)
        return array


def _poison(dtype: DType) -> bool | int | float:
    match dtype.kind:
        case Kind.BOOL:
            return True
        case Kind.INT:
            return int(np.iinfo(dtype.name).min)
        case Kind.UINT:
            return int(np.iinfo(dtype.name).max)
        case Kind.FLOAT | Kind.COMPLEX:
            return float("nan")


def _real(cells: _Cells, tensor: Tensor) -> _Cells:
    """The parts of complex numbers along a last axis."""
    array = cells.array if tensor.rank > 1 else cells.array.reshape(())
    strides = (*array.strides, tensor.dtype.itemsize)
    return _Cells(np.lib.stride_tricks.as_strided(array.real, (*array.shape, 2), strides), cells.first)


def _flat(tensor: Tensor, array: Array) -> _Cells:
    """The memory of an array as one axis, from its lowest cell to its highest."""
    if array.flags.c_contiguous:
        return _Cells(array.reshape(-1))
    if tensor.strides is None:
        raise LinkError(f"{tensor} needs an array in C order")
    if array.size == 0:
        return _Cells(np.empty(0, array.dtype))
    strides = [stride // array.itemsize for stride in array.strides]
    reach = [(extent - 1) * stride for extent, stride in zip(array.shape, strides, strict=True)]
    below, above = -sum(min(0, step) for step in reach), sum(max(0, step) for step in reach)
    lowest = array[tuple(slice(-1, None) if stride < 0 else slice(0, 1) for stride in strides)]
    return _Cells(np.lib.stride_tricks.as_strided(lowest, (below + above + 1,), (array.itemsize,)), below)
