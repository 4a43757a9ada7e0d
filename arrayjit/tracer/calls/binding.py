"""From the values of a call to the arrays that compiled code works on, and back to the results.

A traced function says where each parameter's memory comes from (a `Source` per parameter of its
Computation) and what each leaf of its result is made of (an `Output`). Plain data, computed once; the
`Binding` applies it at each call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import prod
from operator import itemgetter
from typing import Any, Protocol, Union

import numpy as np

from ...errors import IntegerOverflow, UnsupportedError
from ...frozen import frozen, frozen_by_identity
from ..record.foreign import native_copy, pitch
from ..record.resident import Resident, layout_of

__all__ = [
    "ArgumentOutput",
    "ArgumentSource",
    "Binding",
    "CapturedSource",
    "Counted",
    "FreshSource",
    "Number",
    "Output",
    "OverlapSource",
    "Reckoned",
    "RepeatedOutput",
    "ScalarOutput",
    "ScalarSource",
    "SizedOutput",
    "Source",
    "ViewOutput",
    "array_at",
    "giver",
    "made_by",
    "maker",
    "numbers_in",
    "refuse_hidden_overlap",
    "view_of",
    "written_original",
]


@frozen
class ArgumentSource:
    """An array among the leaves of the arguments. `copied`: code gets an aligned native copy, which is
    copied back if it is `written`."""

    leaf: int
    label: str
    copied: bool
    written: bool


@frozen
class ScalarSource:
    """A Python or NumPy scalar among the leaves, or a length behind them, as an array of shape ()."""

    leaf: int
    label: str
    dtype: np.dtype[Any]
    is_length: bool = False


@frozen
class OverlapSource:
    """The memory that arrays cover together, as one flat array: it starts `offset` bytes below the first
    element of the leaf `leaf` and has `size` elements. `copied` and `written` as of an ArgumentSource."""

    leaf: int
    offset: int
    size: int
    dtype: np.dtype[Any]
    copied: bool
    written: bool


@frozen_by_identity
class CapturedSource:
    """An array that the function met by another way than its arguments."""

    array: np.ndarray | Resident
    copied: bool
    written: bool


@frozen
class Reckoned:
    """A number that lengths tell before code runs: `offset + sum(coefficient * leaf)`."""

    terms: tuple[tuple[int, int], ...]
    offset: int

    def of(self, leaves: Sequence[Any]) -> int:
        total: int = self.offset + sum(factor * leaves[leaf] for factor, leaf in self.terms)
        return total


Number = Union[int, Reckoned]


def numbers_in(leaves: Sequence[Any], numbers: Sequence[Number]) -> tuple[int, ...]:
    """The numbers in a call."""
    return tuple(number.of(leaves) if isinstance(number, Reckoned) else number for number in numbers)


@frozen
class FreshSource:
    """A result: new memory, which code fills in C's order. Axis `order[k]` of the array that is handed out
    is axis `k` of what code sees."""

    shape: tuple[Number, ...]
    dtype: np.dtype[Any]
    order: tuple[int, ...]

    @property
    def has_fixed_shape(self) -> bool:
        """Whether each call makes an array of the same shape."""
        return all(isinstance(extent, int) for extent in self.shape)

    def shape_in(self, leaves: Sequence[Any]) -> tuple[int, ...]:
        """The shape in a call."""
        return numbers_in(leaves, self.shape)

    @property
    def is_transposed(self) -> bool:
        return self.order != tuple(range(len(self.shape)))


Source = Union[ArgumentSource, ScalarSource, OverlapSource, CapturedSource, FreshSource]


@frozen
class ArgumentOutput:
    """The very object that was passed."""

    leaf: int


@frozen
class ViewOutput:
    """A view of the memory of parameter `param`.

    None as `shape` is the whole array. Otherwise the view's first element is the array's element
    `corner`, and a step along its axis `a` moves by `steps[a][k]` elements along axis `k` of the array;
    `flat` counts in the flattened array. With `parts` the array is the real form of a complex one: its real
    and imaginary parts along one more axis.
    """

    param: int
    shape: tuple[Number, ...] | None = None
    corner: tuple[Number, ...] = ()
    steps: tuple[tuple[int, ...], ...] = ()
    flat: bool = False
    writeable: bool = True
    parts: bool = False

    @property
    def is_fixed(self) -> bool:
        """Whether it is the same part of the array in each call."""
        return not any(isinstance(number, Reckoned) for number in (*(self.shape or ()), *self.corner))


@frozen
class Counted:
    """An extent that is the number in parameter `param`."""

    param: int


@frozen
class SizedOutput:
    """An array of its own: the first `extents[k]` cells along axis `k` of parameter `param`."""

    param: int
    extents: tuple[int | Counted, ...]


@frozen
class ScalarOutput:
    """The number in parameter `param`, if that has axes the one at `cell`: a NumPy scalar, or with `python` a
    Python one."""

    param: int
    python: bool
    cell: tuple[int, ...] = ()


@frozen
class RepeatedOutput:
    """The very object that is leaf `leaf` of the result, which comes before."""

    leaf: int


Output = Union[ArgumentOutput, ViewOutput, SizedOutput, ScalarOutput, RepeatedOutput]


Leaves = Sequence[Any]
Arrays = Sequence[np.ndarray]
Finder = Callable[[Leaves], np.ndarray]
Giver = Callable[[Leaves, Arrays, Sequence[Any]], Any]


class Allocator(Protocol):
    """Gives what makes arrays of a kind, with any content."""

    def __call__(
        self, shape: tuple[int, ...], dtype: np.dtype[Any], strides: tuple[int, ...] | None = None
    ) -> Callable[[], np.ndarray]: ...


def in_own_memory(
    shape: tuple[int, ...], dtype: np.dtype[Any], strides: tuple[int, ...] | None = None
) -> Callable[[], np.ndarray]:
    """Each array allocates its memory."""
    return lambda: np.ndarray(shape, dtype, strides=strides)


def made_by(sources: Sequence[Source], outputs: Sequence[Output]) -> Iterator[int]:
    """The bytes of the arrays that a call makes, where they are the same in each. One whose cells are counted
    is two, of which the one with all cells goes at once."""
    counted = (sources[output.param] for output in outputs if isinstance(output, SizedOutput))
    for source in (*sources, *counted):
        if isinstance(source, FreshSource) and source.has_fixed_shape:
            yield prod(source.shape_in(())) * source.dtype.itemsize


class Binding:
    """The arrays and the results of a traced function's calls: what `sources` and `outputs` say, made into
    functions once, so that a call decides nothing again. `allocator` is for the memory of results."""

    __slots__ = ("_copied", "_givers", "_makers", "_meets_hidden", "_sources")

    def __init__(
        self, sources: Sequence[Source], outputs: Sequence[Output], allocator: Allocator = in_own_memory
    ) -> None:
        self._sources = sources
        self._meets_hidden = any(isinstance(source, CapturedSource) for source in sources)
        self._makers = [maker(source, allocator) for source in sources]
        originals = [(param, written_original(source)) for param, source in enumerate(sources)]
        self._copied = [(param, original) for param, original in originals if original is not None]
        self._givers = [giver(output, sources) for output in outputs]

    def arrays(self, leaves: Leaves) -> list[np.ndarray]:
        """The array for each parameter: the user's own memory wherever code can use it."""
        arrays = [make(leaves) for make in self._makers]
        if self._meets_hidden:
            refuse_hidden_overlap(self._sources, leaves)
        return arrays

    def write_back(self, leaves: Leaves, arrays: Arrays) -> None:
        """Copy what code wrote into copies to the arrays they were copied from."""
        for param, original in self._copied:
            original(leaves)[...] = arrays[param]

    def results(self, leaves: Leaves, arrays: Arrays) -> list[Any]:
        """The leaves of the result."""
        results: list[Any] = []
        for give in self._givers:
            results.append(give(leaves, arrays, results))
        return results


def maker(source: Source, allocator: Allocator = in_own_memory) -> Finder:
    """What gives the array of a parameter."""
    match source:
        case ScalarSource(leaf=leaf, label=label, dtype=dtype):
            return lambda leaves: _scalar_array(leaves[leaf], label, dtype)
        case FreshSource(has_fixed_shape=False):
            return lambda leaves: _make(source, source.shape_in(leaves), allocator)()
        case FreshSource():
            make = _make(source, source.shape_in(()), allocator)
            return lambda _: make()
        case ArgumentSource(copied=copied) | OverlapSource(copied=copied) | CapturedSource(copied=copied):
            find = _users(source)
            return (lambda leaves: native_copy(find(leaves))) if copied else find


def _make(source: FreshSource, shape: tuple[int, ...], allocator: Allocator) -> Callable[[], np.ndarray]:
    """What makes arrays for code. Of one that is handed out transposed, it gets a view."""
    order, dtype = source.order, source.dtype
    if not source.is_transposed:
        return allocator(shape, dtype)
    axes = [order.index(axis) for axis in range(len(order))]
    strides = tuple(dtype.itemsize * prod(shape[axis + 1 :]) for axis in axes)
    make = allocator(tuple(shape[axis] for axis in axes), dtype, strides)
    return lambda: make().transpose(order)


def _users(source: ArgumentSource | OverlapSource | CapturedSource) -> Finder:
    """What gives the user's own memory."""
    match source:
        case ArgumentSource(leaf=leaf):
            return itemgetter(leaf)
        case OverlapSource():
            return lambda leaves: _flat_memory(source, leaves)
        case CapturedSource(array=array):
            layout: np.ndarray = layout_of(array)
            return lambda _: layout


def _original(source: Source) -> Finder | None:
    """What gives the user's own memory where code works on a copy of it."""
    match source:
        case ArgumentSource(copied=True) | OverlapSource(copied=True) | CapturedSource(copied=True):
            return _users(source)
        case _:
            return None


def written_original(source: Source) -> Finder | None:
    match source:
        case ArgumentSource(written=True) | OverlapSource(written=True) | CapturedSource(written=True):
            return _original(source)
        case _:
            return None


def giver(output: Output, sources: Sequence[Source]) -> Giver:
    """What gives a leaf of the result, from the leaves of the call, the arrays and the results before."""
    match output:
        case ArgumentOutput(leaf=leaf):
            return lambda leaves, arrays, results: leaves[leaf]
        case RepeatedOutput(leaf=leaf):
            return lambda leaves, arrays, results: results[leaf]
        case SizedOutput():
            return lambda leaves, arrays, results: _sized(output, arrays)
        case ScalarOutput(param=param, python=True, cell=cell):
            return lambda leaves, arrays, results: arrays[param].item(cell)
        case ScalarOutput(param=param, cell=cell):
            return lambda leaves, arrays, results: arrays[param][cell]
        case ViewOutput(param=param, shape=None) if isinstance(source := sources[param], FreshSource):
            if source.is_transposed:
                return lambda leaves, arrays, results: arrays[param].base
            return lambda leaves, arrays, results: arrays[param]
        case ViewOutput(param=param):
            original = _original(sources[param])
            if original is None:
                return lambda leaves, arrays, results: view_of(output, arrays[param], leaves)
            return lambda leaves, arrays, results: view_of(output, original(leaves), leaves)


def _scalar_array(value: Any, label: str, dtype: np.dtype[Any]) -> np.ndarray:
    try:
        return np.array(value, dtype)
    except OverflowError:
        raise IntegerOverflow(
            f"the Python int {value} of argument {label} is outside the 64-bit integers",
            fix="pass it as a float, or name the argument in static_argnames",
        ) from None


class _Memory:
    """Memory, described by NumPy's array interface; keeps its owner alive."""

    def __init__(self, owner: object, interface: Mapping[str, Any]) -> None:
        self.owner = owner
        self.__array_interface__ = interface


def array_at(
    address: int,
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    strides: tuple[int, ...] | None = None,
    *,
    owner: object = None,
    writeable: bool = True,
) -> np.ndarray:
    """The array whose first element is at an address. It keeps its owner alive."""
    interface = {
        "version": 3,
        "data": (address, not writeable),
        "shape": shape,
        "strides": strides,
        "typestr": dtype.str,
    }
    array = np.asarray(_Memory(owner, interface))
    # The interface has no word for bfloat16.
    return array if array.dtype == dtype else array.view(dtype)


def _flat_memory(source: OverlapSource, leaves: Sequence[Any]) -> np.ndarray:
    leaf: np.ndarray = leaves[source.leaf]
    address = leaf.__array_interface__["data"][0] - source.offset
    return array_at(address, (source.size,), source.dtype, owner=leaf)


def refuse_hidden_overlap(sources: Sequence[Source], leaves: Sequence[Any]) -> None:
    """An array met both as an argument and by another way is two parameters: it must not be written."""
    entries: list[tuple[np.ndarray, bool, bool]] = []
    for source in sources:
        match source:
            case ArgumentSource(leaf=leaf, written=written) | OverlapSource(leaf=leaf, written=written):
                entries.append((leaves[leaf], written, False))
            case CapturedSource(array=array, written=written):
                entries.append((layout_of(array), written, True))
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


def _sized(output: SizedOutput, arrays: Arrays) -> np.ndarray:
    extents = [int(arrays[e.param]) if isinstance(e, Counted) else e for e in output.extents]
    sized: np.ndarray = arrays[output.param][tuple(map(slice, extents))].copy()
    return sized


def view_of(output: ViewOutput, array: np.ndarray, leaves: Leaves) -> np.ndarray:
    """The view of the array of a parameter, in a call."""
    if output.shape is None:
        whole: np.ndarray = array.view()
        return whole
    shape, corner = numbers_in(leaves, output.shape), numbers_in(leaves, output.corner)
    if output.parts:
        last = array.dtype.itemsize // 2
        array = np.lib.stride_tricks.as_strided(array.real, (*array.shape, 2), (*array.strides, last))
    if 0 in shape:
        empty = np.empty(shape, array.dtype)
        empty.flags.writeable = output.writeable
        return empty
    if output.flat:
        unit, (cell,) = pitch(array), corner
        start = np.lib.stride_tricks.as_strided(array, (2,), (int(cell * unit),))[1:]
        strides = tuple(int(count * unit) for (count,) in output.steps)
    else:
        start = array[tuple(slice(at, at + 1) for at in corner)] if corner else array
        strides = tuple(
            sum(count * stride for count, stride in zip(step, array.strides, strict=True))
            for step in output.steps
        )
    return np.lib.stride_tricks.as_strided(start, shape, strides, writeable=output.writeable)
