"""What the dispatcher makes for a call's results: memory before the kernel runs, objects after it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from operator import mul
from typing import Any, TypedDict

import numpy as np

from ..runtime.results import least_of_blocks, results
from ..tracer.calls.binding import (
    ArgumentOutput,
    ArgumentSource,
    Counted,
    FreshSource,
    Output,
    Reckoned,
    RepeatedOutput,
    ScalarOutput,
    ScalarSource,
    SizedOutput,
    Source,
    ViewOutput,
    made_by,
    numbers_in,
)
from ..tracer.record.tree import Leaf, Node, Static, Structure, is_called
from .arguments import Steps, ThroughPython
from .layout import WRITEABLE
from .rows import address, code, row, words

__all__ = ["Outcome"]

_PYTHON_NUMBERS = {
    np.dtype(float): "FLOAT",
    np.dtype(complex): "COMPLEX",
    np.dtype(np.int64): "INT",
    np.dtype(bool): "BOOL",
}


_MOST_STEPS = 1 << 14
"""Of each, the dispatcher keeps two words on the caller's stack."""


class _Cells(TypedDict):
    """Where cells of an array lie, in bytes, and its flags."""

    strides: list[int]
    start: int
    flags: int


class Outcome:
    """`fresh` are the rows of new memory, `build` the steps to the result: none where it is the one new
    array.
    `owned` is what the rows name. `asks_python`: Python makes some of the memory, so other code may run."""

    def __init__(
        self,
        sources: Sequence[Source],
        outputs: Sequence[Output],
        structure: Structure,
        leaves: Sequence[Any],
        steps: Steps,
    ) -> None:
        self.fresh: list[list[int]] = []
        self.build: list[list[int]] = []
        self.owned: list[Any] = []
        self.asks_python = False
        self._outputs = outputs
        self._leaves = leaves
        self._steps, self._open_leaves = steps.leaves, steps.open_leaves
        self._lengths = {
            source.leaf: param
            for param, source in enumerate(sources)
            if isinstance(source, ScalarSource) and source.is_length
        }
        self._leaf_steps: list[int] = []
        self._has_called = False
        numbers = {output.param for output in outputs if isinstance(output, ScalarOutput) and not output.cell}
        numbers |= {
            extent.param
            for output in outputs
            if isinstance(output, SizedOutput)
            for extent in output.extents
            if isinstance(extent, Counted)
        }
        arrays = {
            output.param
            for output in outputs
            if not isinstance(output, (ScalarOutput, ArgumentOutput, RepeatedOutput))
        }
        self._places: dict[int, int] = {}
        self._sources = sources
        self._least = least_of_blocks(made_by(sources, outputs))
        for param, source in enumerate(sources):
            if isinstance(source, FreshSource):
                self._places[param] = len(self.fresh)
                self._add_fresh(param, source, param in numbers and param not in arrays)
        self._add(structure)
        if len(self.fresh) == 1 and self.build == [row("BUILD", kind=code("BUILD", "ARRAY"))]:
            self.build = []

    def _add_fresh(self, param: int, source: FreshSource, is_number: bool) -> None:
        if is_number:
            self.fresh.append(row("FRESH", param=param))
            return
        dtype, shape = source.dtype, source.shape_in(self._leaves)
        axes = [source.order.index(axis) for axis in range(len(shape))]
        handed_out = [shape[axis] for axis in axes]
        along = tuple(_strides(source)[axis] for axis in axes) if source.is_transposed else None
        extents = words([handed_out])
        steps = None if along is None else words([along])
        told = {axis: source.shape[place] for axis, place in enumerate(axes)}
        lengths = {axis: extent for axis, extent in told.items() if isinstance(extent, Reckoned)}
        make: Callable[..., np.ndarray] | None = None
        # Of an extent of any length, the next one may be nearly twice as long.
        if (prod(shape) * dtype.itemsize << len(lengths)) >= self._least:
            make = _maker(handed_out, dtype, along, self._least, tuple(lengths))
            self.asks_python = True
        rows = words([self._length(axis, extent) for axis, extent in lengths.items()])
        self.owned += (dtype, extents, steps, make, rows)
        self.fresh.append(
            row(
                "FRESH",
                param=param,
                descr=id(dtype),
                rank=len(shape),
                extents=address(extents),
                strides=0 if steps is None else address(steps),
                maker=0 if make is None else id(make),
                open=address(rows),
                open_count=len(lengths),
            )
        )

    def _length(self, axis: int, extent: Reckoned) -> list[int]:
        """How long an array is along an axis where that differs from call to call."""
        terms = words(row("TERM", factor=factor, place=self._lengths[leaf]) for factor, leaf in extent.terms)
        self.owned.append(terms)
        told = {"terms": address(terms), "term_count": len(extent.terms), "offset": extent.offset}
        return row("OPEN", axis=axis, **told)

    def _add(self, structure: Structure) -> None:
        match structure:
            case Leaf():
                output = self._outputs[len(self._leaf_steps)]
                self._leaf_steps.append(len(self.build))
                self._add_output(output)
            case Static(value=value):
                self.owned.append(value)
                self._step("OBJECT", id(value))
            case Node(kind=kind, keys=keys, children=children):
                for child in children:
                    self._add(child)
                if kind is dict:
                    self.owned.append(keys)
                    self._step("DICT", id(keys))
                elif kind in (tuple, list):
                    self._step("TUPLE" if kind is tuple else "LIST", len(children))
                elif is_called(kind):
                    self._has_called = True
                    self.owned.append(kind)
                    self._step("CALL", len(children), id(kind))
                else:
                    raise ThroughPython(f"the result has a {kind.__name__}")

    def _add_output(self, output: Output) -> None:
        match output:
            case ViewOutput(is_fixed=False):
                raise ThroughPython("which part of an array a result is differs from call to call")
            case ArgumentOutput(leaf=leaf):
                self._step("ARGUMENT", self._steps[leaf])
            case RepeatedOutput() if self._has_called:
                raise ThroughPython("a class may have dropped what it was called with")
            case RepeatedOutput(leaf=leaf):
                self._step("AGAIN", self._leaf_steps[leaf])
            case ScalarOutput(param=param) if isinstance(source := self._sources[param], FreshSource):
                self._add_number(output, source)
            case ViewOutput(param=param, shape=None) if isinstance(self._sources[param], FreshSource):
                self._step("ARRAY", self._places[param])
            case ViewOutput(param=param, shape=shape) if (
                isinstance(source := self._sources[param], FreshSource)
                and shape is not None
                and 0 not in shape
            ):
                self._add_view(output, numbers_in((), shape), source)
            case SizedOutput(param=param) if isinstance(source := self._sources[param], FreshSource):
                self._add_sized(output, source)
            case ViewOutput(param=param) if (
                isinstance(source := self._sources[param], ArgumentSource) and not source.copied
            ):
                self._add_part(output, source.leaf)
            case ScalarOutput() | ViewOutput() | SizedOutput():
                raise ThroughPython("the result is a number or a part of an argument")

    def _add_view(self, output: ViewOutput, shape: tuple[int, ...], source: FreshSource) -> None:
        """Cells of a new array, which need not be all of it."""
        dtype, units = _cell(output, source.dtype, _strides(source))
        place = self._places[output.param]
        self._add_cells("VIEW", place, dtype, [shape], **_cells(output, units))

    def _add_part(self, output: ViewOutput, leaf: int) -> None:
        """Cells of an argument, whose strides and whether it may be written are checked before."""
        if leaf in self._open_leaves and output.shape is None:
            raise ThroughPython("the result is all of an argument of any length")
        array = self._leaves[leaf]
        shape = array.shape if output.shape is None else numbers_in((), output.shape)
        if not shape or 0 in shape:
            raise ThroughPython("the result is a part of an argument that has no cells, or no axis")
        whole: _Cells = {"strides": list(array.strides), "start": 0, "flags": WRITEABLE}
        dtype, units = _cell(output, array.dtype, array.strides)
        cells = whole if output.shape is None else _cells(output, units)
        cells["flags"] &= array.flags.num
        self._add_cells("PART", self._steps[leaf], dtype, [shape], **cells)

    def _add_sized(self, output: SizedOutput, source: FreshSource) -> None:
        """As many cells of a new array as are counted, in an array of their own."""
        extents = [
            row("EXTENT", counted=1, number=extent.param)
            if isinstance(extent, Counted)
            else row("EXTENT", number=extent)
            for extent in output.extents
        ]
        self._add_cells("SIZED", self._places[output.param], source.dtype, extents, _strides(source))

    def _add_cells(
        self,
        kind: str,
        place: int,
        dtype: np.dtype[Any],
        extents: Sequence[Sequence[int]],
        strides: Sequence[int],
        **more: int,
    ) -> None:
        shape, steps = words(extents), words([strides])
        view = row("VIEW", rank=len(strides), extents=address(shape), strides=address(steps), **more)
        described = words([view], shape, steps)
        self.owned += (dtype, described)
        self._step(kind, place, id(dtype), address(described))

    def _add_number(self, output: ScalarOutput, source: FreshSource) -> None:
        """A number with a slot of its own, or one in a cell of a new array."""
        place, dtype = self._places[output.param], source.dtype
        start = sum(map(mul, output.cell, _strides(source)))
        if not output.python:
            self.owned.append(dtype)
            self._step("SCALAR", place, id(dtype), start)
        elif dtype in _PYTHON_NUMBERS:
            self._step(_PYTHON_NUMBERS[dtype], place, view=start)
        else:
            raise ThroughPython(f"the result has a Python number of type {dtype}")

    def _step(self, kind: str, argument: int, descr: int = 0, view: int = 0) -> None:
        if len(self.build) == _MOST_STEPS:
            raise ThroughPython("the result has many parts")
        self.build.append(row("BUILD", kind=code("BUILD", kind), argument=argument, descr=descr, view=view))


def _cell(
    output: ViewOutput, dtype: np.dtype[Any], strides: Sequence[int]
) -> tuple[np.dtype[Any], Sequence[int]]:
    """The dtype of a view's cells, and the strides of the array that it counts in: of a complex one, perhaps,
    as its parts along one more axis."""
    if output.parts:
        dtype = np.empty(0, dtype).real.dtype
        strides = (*strides, dtype.itemsize)
    return dtype, (dtype.itemsize,) if output.flat else strides


def _cells(output: ViewOutput, units: Sequence[int]) -> _Cells:
    """Where a view's cells lie in an array that has these strides."""
    strides = [sum(map(mul, step, units)) for step in output.steps]
    start = sum(map(mul, numbers_in((), output.corner), units))
    return {"strides": strides, "start": start, "flags": WRITEABLE if output.writeable else 0}


def _strides(source: FreshSource) -> tuple[int, ...]:
    """The strides in bytes of a new array along the axes that code sees."""
    if any(isinstance(extent, Reckoned) for extent in source.shape[1:]):
        raise ThroughPython("the strides of an array that is made differ from call to call")
    behind = numbers_in((), source.shape[1:])
    return tuple(source.dtype.itemsize * prod(behind[axis:]) for axis in range(len(source.shape)))


def _maker(
    shape: Sequence[int],
    dtype: np.dtype[Any],
    strides: tuple[int, ...] | None,
    least: int,
    open_axes: Sequence[int],
) -> Callable[..., np.ndarray]:
    """What makes a large array: of this shape, or with the extents along some axes that it is told."""
    maker = results().maker
    if not open_axes:
        return maker(tuple(shape), dtype, strides, least)

    def make(*extents: int) -> np.ndarray:
        whole = [*shape]
        for axis, extent in zip(open_axes, extents, strict=True):
            whole[axis] = extent
        return maker(tuple(whole), dtype, strides, least)()

    return make
