"""From the values of a call to the arrays that compiled code works on, and back to the results.

A traced function says where each parameter's memory comes from (a `Source` per parameter of its
Computation) and what each leaf of its result is made of (an `Output`). Plain data, computed once; the
functions below apply it at each call.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Union

import numpy as np
from typing_extensions import assert_never

from ..errors import IntegerOverflow, UnsupportedError

__all__ = [
    "ArgumentOutput",
    "ArgumentSource",
    "CapturedSource",
    "FreshSource",
    "Output",
    "OverlapSource",
    "RepeatedOutput",
    "ScalarOutput",
    "ScalarSource",
    "Source",
    "ViewOutput",
    "arrays_for",
    "outputs_from",
    "write_back",
]


@dataclass(frozen=True, slots=True)
class ArgumentSource:
    """An array among the leaves of the arguments. `copied`: code gets an aligned native copy, which is
    copied back if it is `written`."""

    leaf: int
    label: str
    copied: bool
    written: bool


@dataclass(frozen=True, slots=True)
class ScalarSource:
    """A Python or NumPy scalar among the leaves, as an array of shape ()."""

    leaf: int
    label: str
    dtype: np.dtype[Any]


@dataclass(frozen=True, slots=True)
class OverlapSource:
    """The memory that arrays cover together, as one flat array: it starts `offset` bytes below the first
    element of the leaf `leaf` and has `size` elements. `copied` and `written` as of an ArgumentSource."""

    leaf: int
    offset: int
    size: int
    dtype: np.dtype[Any]
    copied: bool
    written: bool


@dataclass(frozen=True, slots=True, eq=False)
class CapturedSource:
    """An array that the function met by another way than its arguments."""

    array: np.ndarray
    copied: bool
    written: bool


@dataclass(frozen=True, slots=True)
class FreshSource:
    """A result: new memory, which code fills."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]


Source = Union[ArgumentSource, ScalarSource, OverlapSource, CapturedSource, FreshSource]


@dataclass(frozen=True, slots=True)
class ArgumentOutput:
    """The very object that was passed."""

    leaf: int


@dataclass(frozen=True, slots=True)
class ViewOutput:
    """A view of the memory of parameter `param`.

    None as `shape` is the whole array. Otherwise the view's first element is the array's element
    `corner`, and a step along its axis `a` moves by `steps[a][k]` elements along axis `k` of the array;
    `flat` counts in the flattened array.
    """

    param: int
    shape: tuple[int, ...] | None = None
    corner: tuple[int, ...] = ()
    steps: tuple[tuple[int, ...], ...] = ()
    flat: bool = False
    writeable: bool = True


@dataclass(frozen=True, slots=True)
class ScalarOutput:
    """The number in parameter `param`: a NumPy scalar, or with `python` a Python one."""

    param: int
    python: bool


@dataclass(frozen=True, slots=True)
class RepeatedOutput:
    """The very object that is leaf `leaf` of the result, which comes before."""

    leaf: int


Output = Union[ArgumentOutput, ViewOutput, ScalarOutput, RepeatedOutput]


def arrays_for(sources: Sequence[Source], leaves: Sequence[Any]) -> list[np.ndarray]:
    """The array for each parameter: the user's own memory wherever code can use it."""
    arrays = [_array_for(source, leaves) for source in sources]
    if any(isinstance(source, CapturedSource) for source in sources):
        _refuse_hidden_overlap(sources, leaves)
    return arrays


def write_back(sources: Sequence[Source], leaves: Sequence[Any], arrays: Sequence[np.ndarray]) -> None:
    """Copy what code wrote into copies to the arrays they were copied from."""
    for source, array in zip(sources, arrays, strict=True):
        match source:
            case ArgumentSource(leaf=leaf, copied=True, written=True):
                leaves[leaf][...] = array
            case OverlapSource(copied=True, written=True):
                _flat_memory(source, leaves)[...] = array
            case CapturedSource(array=original, copied=True, written=True):
                original[...] = array


def outputs_from(
    outputs: Sequence[Output], sources: Sequence[Source], leaves: Sequence[Any], arrays: Sequence[np.ndarray]
) -> list[Any]:
    """The leaves of the result."""
    results: list[Any] = []
    for output in outputs:
        match output:
            case ArgumentOutput(leaf=leaf):
                results.append(leaves[leaf])
            case RepeatedOutput(leaf=leaf):
                results.append(results[leaf])
            case ScalarOutput(param=param, python=python):
                results.append(arrays[param].item() if python else arrays[param][()])
            case ViewOutput(param=param):
                memory = _memory_of(sources[param], leaves, arrays[param])
                results.append(_view_of(output, memory, sources[param]))
            case _:
                assert_never(output)
    return results


def _array_for(source: Source, leaves: Sequence[Any]) -> np.ndarray:
    match source:
        case ArgumentSource(leaf=leaf, copied=copied):
            array: np.ndarray = leaves[leaf]
            return _native_copy(array) if copied else array
        case ScalarSource(leaf=leaf, label=label, dtype=dtype):
            return _scalar_array(leaves[leaf], label, dtype)
        case OverlapSource(copied=copied):
            memory = _flat_memory(source, leaves)
            return _native_copy(memory) if copied else memory
        case CapturedSource(array=array, copied=copied):
            return _native_copy(array) if copied else array
        case FreshSource(shape=shape, dtype=dtype):
            return np.empty(shape, dtype)


def _native_copy(array: np.ndarray) -> np.ndarray:
    return np.array(array, array.dtype.newbyteorder("="), order="C", copy=True, subok=False)


def _scalar_array(value: Any, label: str, dtype: np.dtype[Any]) -> np.ndarray:
    try:
        return np.array(value, dtype)
    except OverflowError:
        raise IntegerOverflow(
            f"the Python int {value} of argument {label} is outside the 64-bit integers",
            fix="pass it as a float, or name the argument in static_argnames",
        ) from None


class _Memory:
    """Memory of an array's, described by NumPy's array interface; keeps the array alive."""

    def __init__(self, owner: np.ndarray, address: int, size: int, dtype: np.dtype[Any]) -> None:
        self.owner = owner
        self.__array_interface__ = {
            "version": 3,
            "data": (address, False),
            "shape": (size,),
            "typestr": dtype.str,
        }


def _flat_memory(source: OverlapSource, leaves: Sequence[Any]) -> np.ndarray:
    leaf: np.ndarray = leaves[source.leaf]
    address = leaf.__array_interface__["data"][0] - source.offset
    return np.asarray(_Memory(leaf, address, source.size, source.dtype))


def _refuse_hidden_overlap(sources: Sequence[Source], leaves: Sequence[Any]) -> None:
    """An array met both as an argument and by another way is two parameters: it must not be written."""
    entries: list[tuple[np.ndarray, bool, bool]] = []
    for source in sources:
        match source:
            case ArgumentSource(leaf=leaf, written=written) | OverlapSource(leaf=leaf, written=written):
                entries.append((leaves[leaf], written, False))
            case CapturedSource(array=array, written=written):
                entries.append((array, written, True))
            case ScalarSource() | FreshSource():
                pass
    for n, (left, left_written, left_hidden) in enumerate(entries):
        for right, right_written, right_hidden in entries[:n]:
            involved = (left_written or right_written) and (left_hidden or right_hidden)
            if involved and np.may_share_memory(left, right):
                raise UnsupportedError(
                    "the function writes an array that it meets twice, once through a global or a closure",
                    fix="pass the array as an argument only, or keep it in the global only",
                )


def _memory_of(source: Source, leaves: Sequence[Any], array: np.ndarray) -> np.ndarray:
    """The array that a result is a view of: the user's own, even where code worked on a copy."""
    match source:
        case ArgumentSource(leaf=leaf, copied=True):
            original: np.ndarray = leaves[leaf]
            return original
        case CapturedSource(array=original, copied=True):
            return original
        case OverlapSource(copied=True):
            return _flat_memory(source, leaves)
        case _:
            return array


def _from_cell(array: np.ndarray, cell: int) -> np.ndarray:
    """The memory of an array as one axis that starts `cell` elements after its first."""
    step = array.itemsize if cell >= 0 else -array.itemsize
    last = np.lib.stride_tricks.as_strided(array, (abs(cell) + 1,), (step,))[-1:]
    return np.lib.stride_tricks.as_strided(last, (1,), (array.itemsize,))


def _view_of(output: ViewOutput, array: np.ndarray, source: Source) -> np.ndarray:
    if output.shape is None:
        return array if isinstance(source, FreshSource) else array.view()
    if 0 in output.shape:
        empty = np.empty(output.shape, array.dtype)
        empty.flags.writeable = output.writeable
        return empty
    if output.flat:
        array = _from_cell(array, *output.corner)
        output = replace(output, corner=(0,))
    start = array[tuple(slice(at, at + 1) for at in output.corner)] if output.corner else array
    strides = tuple(
        sum(count * stride for count, stride in zip(step, array.strides, strict=True))
        for step in output.steps
    )
    return np.lib.stride_tricks.as_strided(start, output.shape, strides, writeable=output.writeable)
