"""Nests that read memory across, or read it many times, by blocks that first bring a window of it near.

    for i in parallel(0, 640):              for f in grid(0, 400):
        for j in parallel(0, 640):              ib, jb = f // 20, f % 20
            y[i, j] = x[j, i]       ->          for e in block(0, 1024, lanes=256):
                                                    v, u = e // 32, e % 32
                                                    xs[v, u] = x[32*jb + v, 32*ib + u]
                                                for e in block(0, 1024, lanes=256):
                                                    u, v = e // 32, e % 32
                                                    y[32*ib + u, 32*jb + v] = xs[v, u]

A transposing nest steps far through `x` from one lane of a warp to the next: it would touch a line of memory
for each, while a window is read along its rows and written along those of the result. Its own rows are longer
by a word, so that lanes find its columns in different banks.

A stencil reads each cell again for other rows, mostly from other processors, so that it goes through the
second cache that often. A window with a rim goes through it about once. That is done where it saves enough,
by a count of the bytes: cells that are neighbours along memory share what comes from there anyway.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from functools import reduce

from ...frozen import frozen, slotted
from ...ir.code import GpuCaps
from ...ir.conditions import both, compare
from ...ir.expr import Expr, Index, Load
from ...ir.index import Affine, Symbol, affine
from ...ir.loops import (
    Comment,
    Define,
    For,
    If,
    LoopKind,
    Place,
    PlaceKind,
    Stmt,
    Store,
    Update,
    walk_statements,
    written_in,
)
from ...ir.tensor import Tensor
from ...ir.walk import nodes_in, rewrite_expressions, transform
from ..analysis.copies import copy_body
from ..analysis.strides import affine_accesses, stride
from .nests import Grids, Nest, flat, power_of_two

__all__ = ["by_windows"]

THREADS = 256
"""Of a block."""

EDGE, SMALL_EDGE = 32, 64
"""Of a window that is transposed; of cells of one or two bytes the longer one, so that rows fill lines."""

FAR = 64
"""Lanes that are so many bytes apart share nothing of what memory gives at once."""

NEAR = 2
"""Cells that are no farther apart, as the parts of complex numbers are, fill most of a line."""

FEWEST = 8
"""Shorter rows are not worth a window."""

STENCILS: Mapping[int, tuple[int, ...]] = {1: (16, 64), 2: (8, 8, 32)}
"""The windows of stencils, without their rims, by the number of axes along which cells are read again."""

READS = 3
"""So often a cell must be read along such an axis."""

SAVED = 1.5
"""What goes through the second cache must become less by this factor."""

WORD = 4
"""Bytes of a bank of shared memory."""

ZERO = Affine.of(0)


def by_windows(nest: Nest, gpu: GpuCaps) -> Grids | None:
    """The nest by windows, where that pays."""
    if not all(loop.step == 1 and loop.trips for loop in nest.loops) or len(nest.loops) < 2:
        return None
    if not all(isinstance(stmt, (Define, Update, Store, If, Comment)) for stmt in nest.body):
        return None
    columns = max(nest.loops, key=lambda loop: _near(nest.body, loop.symbol))
    cutting = _transposed(nest, columns) or _stencil(nest, columns)
    if cutting is None or nest.points({}) < cutting.cells * gpu.processors:
        return None
    if cutting.shared_bytes > gpu.shared_bytes // 2:
        return None
    return _Blocks(nest, cutting).grids()


@frozen
class _Axis:
    """A loop that is cut, and of how many iterations a block takes."""

    loop: For
    size: int

    @property
    def count(self) -> int:
        """How many blocks there are along it."""
        assert self.loop.trips is not None
        return -(-self.loop.trips // self.size)

    @property
    def is_whole(self) -> bool:
        """Are all blocks of the full size?"""
        return self.loop.trips == self.count * self.size


@frozen
class _Window:
    """The cells of a tensor at an index, over the symbols of the axes, and at so many more along each: `rim`.
    `order` are the axes from that with the longest step to that along which the tensor's memory lies."""

    tensor: Tensor
    index: tuple[Affine, ...]
    rim: Mapping[Symbol, int]
    order: tuple[_Axis, ...]
    padding: int = 0

    def extent(self, axis: _Axis) -> int:
        return axis.size + self.rim.get(axis.loop.symbol, 0)

    @property
    def shape(self) -> tuple[int, ...]:
        *outer, last = map(self.extent, self.order)
        return (*outer, last + self.padding)


@frozen
class _Cutting:
    """Which loops are cut, the windows by the loads that read them, each with how far it is from the window's
    first cell along the axes, and why."""

    axes: tuple[_Axis, ...]
    windows: tuple[tuple[_Window, Mapping[Load, Mapping[Symbol, int]]], ...]
    reason: str

    @property
    def cells(self) -> int:
        return math.prod(axis.size for axis in self.axes)

    @property
    def shared_bytes(self) -> int:
        return sum(math.prod(window.shape) * window.tensor.dtype.itemsize for window, _ in self.windows)


def _loads(body: Sequence[Stmt]) -> dict[Load, None]:
    """The loads that each iteration makes for sure, of tensors that nothing here changes."""
    written = written_in(walk_statements(tuple(body)))
    loads = (node for node in nodes_in(body) if isinstance(node, Load))
    return {load: None for load in loads if load.tensor.storage not in written}


def _near(body: tuple[Stmt, ...], symbol: Symbol) -> int:
    """How many accesses move by a few cells when the symbol grows by one; a store counts four times."""
    return sum(
        1 + 3 * is_store
        for tensor, index, is_store in affine_accesses(body)
        if 1 <= abs(stride(tensor, index, symbol) or 0) <= NEAR
    )


# transposes


def _transposed(nest: Nest, columns: For) -> _Cutting | None:
    """Windows for what is read across memory: lanes follow `columns`, and it lies along another loop."""
    for rows in nest.loops:
        if rows is columns or min(rows.trips or 0, columns.trips or 0) < FEWEST:
            continue
        loads = [load for load in _loads(nest.body) if _is_across(load, rows, columns)]
        if loads:
            break
    else:
        return None
    smallest = min(load.tensor.dtype.itemsize for load in loads)
    edge = EDGE if smallest >= WORD else SMALL_EDGE
    height, width = (min(edge, power_of_two(loop.trips or 0)) for loop in (rows, columns))
    height = max(height, min(edge * edge // width, power_of_two(rows.trips or 0)))
    width = max(width, min(edge * edge // height, power_of_two(columns.trips or 0)))
    axes = (_Axis(rows, height), _Axis(columns, width))
    windows: list[tuple[_Window, Mapping[Load, Mapping[Symbol, int]]]] = []
    for load in loads:
        padding = max(1, WORD // load.tensor.dtype.itemsize)
        window = _Window(load.tensor, load.index, {}, axes[::-1], padding)
        windows.append((window, {load: {}}))
    names = ", ".join(dict.fromkeys(load.tensor.label for load in loads))
    reason = f"{names} is read across memory, so {height} x {width} cells are transposed in shared memory"
    return _Cutting(axes, tuple(windows), reason)


def _is_across(load: Load, rows: For, columns: For) -> bool:
    """Does memory lie along the rows, while columns are far apart?"""
    along, far = (stride(load.tensor, load.index, loop.symbol) for loop in (rows, columns))
    near = along is not None and 1 <= abs(along) <= NEAR
    return near and (far is None or abs(far) * load.tensor.dtype.itemsize >= FAR)


# stencils


@frozen
class _Group:
    """Loads that differ by a few cells along the axes of a window."""

    window: _Window
    loads: Mapping[Load, Mapping[Symbol, int]]

    def rows(self, columns: Symbol) -> int:
        """How many different rows they read for a cell."""
        shifts = {
            tuple((symbol, shift) for symbol, shift in found.items() if symbol is not columns)
            for found in self.loads.values()
        }
        return len(shifts)


def _stencil(nest: Nest, columns: For) -> _Cutting | None:
    """Windows for what is read several times along an axis along which memory does not lie."""
    loads = [load for load in _loads(nest.body) if stride(load.tensor, load.index, columns.symbol) in (1, -1)]
    groups = _groups(loads, tuple(_Axis(loop, 1) for loop in nest.loops))
    reads = {
        loop: max((group.window.rim.get(loop.symbol, 0) + 1 for group in groups), default=1)
        for loop in nest.loops
        if loop is not columns
    }
    again = sorted((loop for loop in reads if reads[loop] >= READS), key=lambda loop: -reads[loop])
    again = [loop for loop in nest.loops if loop in again[: max(STENCILS)]]
    if not again:
        return None
    sizes = STENCILS[len(again)]
    axes = tuple(
        _Axis(loop, min(size, power_of_two(loop.trips or 0)))
        for loop, size in zip((*again, columns), sizes, strict=True)
    )
    groups = _groups(loads, axes)
    near = [group for group in groups if group.rows(columns.symbol) >= READS]
    if not near:
        return None
    direct, windowed = _traffic(nest, groups, near, columns.symbol)
    if direct < SAVED * windowed:
        return None
    names = ", ".join(dict.fromkeys(group.window.tensor.label for group in near))
    size = " x ".join(str(axis.size) for axis in axes)
    reason = (
        f"windows of {size} cells of {names} in shared memory take {windowed:.1f} bytes a cell through the"
        f" second cache, and single reads {direct:.1f}"
    )
    return _Cutting(axes, tuple((group.window, group.loads) for group in near), reason)


def _traffic(
    nest: Nest, groups: Sequence[_Group], near: Sequence[_Group], columns: Symbol
) -> tuple[float, float]:
    """The bytes for each cell that go through the second cache, without windows and with them."""
    stores = [stmt for stmt in nest.body if isinstance(stmt, Store)]
    direct = windowed = float(sum(store.tensor.dtype.itemsize for store in stores))
    for group in groups:
        size, rows = group.window.tensor.dtype.itemsize, group.rows(columns)
        direct += size * rows
        whole = math.prod(axis.size for axis in group.window.order)
        windowed += size * (math.prod(group.window.shape) / whole if group in near else rows)
    return direct, windowed


def _groups(loads: Iterable[Load], axes: tuple[_Axis, ...]) -> list[_Group]:
    """The loads by the tensor and the place that they read, but for how far along the axes."""
    found: dict[tuple[Tensor, tuple[Affine, ...]], list[Load]] = {}
    for load in loads:
        key = _apart_from_shifts(load.index, {axis.loop.symbol for axis in axes})
        if key is not None:
            found.setdefault((load.tensor, key), []).append(load)
    return [_group(members, axes) for members in found.values()]


def _apart_from_shifts(index: tuple[Affine, ...], symbols: set[Symbol]) -> tuple[Affine, ...] | None:
    """What loads have in common that differ in how far along the symbols they read; None if a symbol does not
    move along one dimension, by single cells."""
    met: list[Symbol] = []
    common: list[Affine] = []
    for position in index:
        moving = [(step, symbol) for step, symbol in position.terms if symbol in symbols]
        if len(moving) > 1 or any(abs(step) != 1 for step, _ in moving):
            return None
        met += [symbol for _, symbol in moving]
        common.append(Affine(position.terms, 0) if moving else position)
    return tuple(common) if len(met) == len(symbols) == len(set(met)) else None


def _group(loads: Sequence[Load], axes: tuple[_Axis, ...]) -> _Group:
    index = list(loads[0].index)
    rim: dict[Symbol, int] = {}
    shifts: dict[Load, dict[Symbol, int]] = {load: {} for load in loads}
    for axis in axes:
        symbol = axis.loop.symbol
        (dimension,) = (number for number, position in enumerate(index) if position.coefficient(symbol))
        step = index[dimension].coefficient(symbol)
        offsets = [load.index[dimension].offset * step for load in loads]
        index[dimension] = Affine(index[dimension].terms, min(offsets) * step)
        rim[symbol] = max(offsets) - min(offsets)
        for load, offset in zip(loads, offsets, strict=True):
            shifts[load][symbol] = offset - min(offsets)
    return _Group(_Window(loads[0].tensor, tuple(index), rim, axes), shifts)


# blocks


@slotted
class _Blocks:
    """A nest on its way into blocks. `starts` are the first iterations of a block."""

    nest: Nest
    cutting: _Cutting
    placement: dict[Tensor, Place] = field(default_factory=dict)
    starts: dict[Symbol, Affine] = field(default_factory=dict)

    def grids(self) -> Grids:
        """One launch."""
        axes = self.cutting.axes
        cut = [axis.loop for axis in axes]
        loops = [loop for loop in self.nest.loops if loop not in cut]
        for axis in axes:
            tile = Symbol(f"{axis.loop.symbol.hint}b")
            self.starts[axis.loop.symbol] = axis.loop.lo
            if axis.count > 1 or not loops:
                self.starts[axis.loop.symbol] += Affine.of(tile) * axis.size
                loops.append(For(tile, ZERO, Affine.of(axis.count), (), LoopKind.PARALLEL))
        cells: dict[Load, Load] = {}
        bringing = [self.brought(window, loads, cells) for window, loads in self.cutting.windows]
        whole = flat(Nest(tuple(loops), (*bringing, self.computed(cells))))
        grid = replace(whole, kind=LoopKind.GRID)
        return Grids((grid,), self.placement, self.cutting.reason)

    def brought(
        self, window: _Window, loads: Mapping[Load, Mapping[Symbol, int]], cells: dict[Load, Load]
    ) -> For:
        """A window put into shared memory; `cells` gets where each load finds its own cell."""
        near = Tensor(window.tensor.label, affine(window.shape), window.tensor.dtype)
        self.placement[near] = Place(PlaceKind.SCRATCH, "a block brings a window near")
        for load, shifts in loads.items():
            place = (
                axis.loop.symbol - self.starts[axis.loop.symbol] + shifts.get(axis.loop.symbol, 0)
                for axis in window.order
            )
            cells[load] = Load(near, tuple(place))
        numbers = {axis.loop.symbol: Symbol("u") for axis in window.order}
        values = {symbol: self.starts[symbol] + number for symbol, number in numbers.items()}
        there = tuple(position.substitute(values) for position in window.index)
        store = Store(near, affine(numbers.values()), Load(window.tensor, there))
        extents = {axis: window.extent(axis) for axis in window.order}
        return self.dealt(extents, numbers, (store,))

    def computed(self, cells: Mapping[Load, Load]) -> For:
        """What the nest does, for the block's iterations."""

        def near(node: Expr) -> Expr:
            return cells.get(node, node) if isinstance(node, Load) else node

        body = tuple(rewrite_expressions(stmt, lambda expr: transform(expr, near)) for stmt in self.nest.body)
        numbers = {axis.loop.symbol: Symbol(axis.loop.symbol.hint) for axis in self.cutting.axes}
        values = {symbol: self.starts[symbol] + number for symbol, number in numbers.items()}
        extents = {axis: axis.size for axis in self.cutting.axes}
        return self.dealt(extents, numbers, copy_body(body, values, {}))

    def dealt(
        self, extents: Mapping[_Axis, int], numbers: Mapping[Symbol, Symbol], body: tuple[Stmt, ...]
    ) -> For:
        """Statements for all cells that exist among so many along each axis, which the threads share."""
        thread, threads = Symbol("e", lower=0, upper=self.threads), Affine.of(self.threads)
        loops = tuple(
            For(numbers[axis.loop.symbol], ZERO, Affine.of(extent), (), LoopKind.PARALLEL)
            for axis, extent in extents.items()
        )
        inside = _turns(flat(Nest(loops, body)), thread, self.threads, LoopKind.UNROLLED)
        cut = [axis for axis in extents if not axis.is_whole]
        if cut:
            some = copy_body(body, {}, {})
            for axis in cut:
                start, end = self.starts[axis.loop.symbol], axis.loop.hi + (extents[axis] - axis.size)
                some = (If(_less(start + numbers[axis.loop.symbol], end), some),)
            ends = (_less(self.starts[axis.loop.symbol] + (axis.size - 1), axis.loop.hi) for axis in cut)
            whole = reduce(lambda one, other: both(one, other), ends)
            others = _turns(flat(Nest(loops, some)), thread, self.threads, LoopKind.SEQUENTIAL)
            inside = (If(whole, inside, others),)
        return For(thread, ZERO, threads, inside, LoopKind.BLOCK, lanes=self.threads)

    @property
    def threads(self) -> int:
        return min(THREADS, self.cutting.cells)


def _less(one: Affine, other: Affine) -> Expr:
    return compare("less", Index(one), Index(other))


def _turns(cells: For, thread: Symbol, threads: int, kind: LoopKind) -> tuple[Stmt, ...]:
    """The cells that a thread takes. Those of an unrolled loop it waits for together."""
    turns, rest = divmod(cells.trips or 0, threads)
    turn = Symbol("n")
    number = Affine.of(turn) * threads + thread
    out: list[Stmt] = []
    if turns:
        body = copy_body(cells.body, {cells.symbol: number}, {})
        out.append(For(turn, ZERO, Affine.of(turns), body, kind))
    if rest:
        last = copy_body(cells.body, {cells.symbol: turns * threads + Affine.of(thread)}, {})
        out.append(If(_less(Affine.of(thread), Affine.of(rest)), last))
    return tuple(out)
