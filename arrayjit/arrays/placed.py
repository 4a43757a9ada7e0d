"""A traced function linked on a device: calls with arrays that live there, whose results stay there.

A call is submitted to the device's stream with what it reads and writes, and returns at once. It waits for
its end only where it works on NumPy arrays, which are read and written by the time that it returns, and where
its results are known only then: Python numbers, and arrays of sizes that it computes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from ..compile import Emitted
from ..errors import DeviceMismatch
from ..frozen import frozen
from ..ir.params import IndexParam
from ..runtime.device import Device
from ..runtime.host import addresses_of
from ..tracer.calls.binding import (
    ArgumentOutput,
    ArgumentSource,
    CapturedSource,
    Counted,
    FreshSource,
    Output,
    OverlapSource,
    RepeatedOutput,
    ScalarOutput,
    ScalarSource,
    SizedOutput,
    Source,
    ViewOutput,
    array_at,
    giver,
    maker,
    refuse_hidden_overlap,
    view_of,
    written_original,
)
from ..tracer.calls.convention import Convention
from ..tracer.record.guards import guards_hold
from ..tracer.record.resident import layout_of
from ..tracer.record.tree import unflatten
from .eager import Array
from .storage import Storage, Values, address_of, bounds

__all__ = ["Operand", "Placed", "device_among", "donated_among"]


def device_among(leaves: Sequence[Any]) -> Device | None:
    """The device of the Arrays in a call. Raises DeviceMismatch where there are several."""
    devices = {leaf.device: None for leaf in leaves if isinstance(leaf, Array)}
    if len(devices) > 1:
        raise DeviceMismatch(
            f"the arguments are on several devices: {', '.join(device.name for device in devices)}",
            fix="bring them to one, x.to(y.device)",
        )
    return next(iter(devices), None)


def donated_among(leaves: Sequence[Any]) -> frozenset[int]:
    """The places of the Arrays that were donated."""
    return frozenset(
        n for n, leaf in enumerate(leaves) if isinstance(leaf, Array) and leaf.storage.is_donated
    )


@frozen
class Operand:
    """A parameter in a call: `layout` is where code finds it. Memory of the device has its `storage`; a NumPy
    array of the user's is `host`."""

    layout: np.ndarray
    storage: Storage | None
    host: np.ndarray | None = None

    def shown(self, layout: np.ndarray) -> Array:
        """An Array of the operand's memory."""
        assert self.storage is not None
        return Array(self.storage, layout)

    def number(self, cell: tuple[int, ...] = ()) -> Any:
        """The value of a cell as a Python number, once it is there."""
        layout = _cell(self.layout, cell)
        return layout.item() if self.storage is None else self.shown(layout).item()

    def seen(self) -> np.ndarray:
        """The operand as the host has it."""
        return self.layout if self.host is None else self.host


Finder = Callable[[Sequence[Any], Sequence[Any]], Operand]
Giver = Callable[[Sequence[Any], Sequence[Operand], Sequence[Any]], Any]


class Placed:
    """The whole of a warm call on a device, as `Variant` is of one on NumPy's arrays."""

    __slots__ = (
        "_captured",
        "_finders",
        "_givers",
        "_guards",
        "_lengths",
        "_written",
        "convention",
        "device",
        "emitted",
        "procedure",
    )

    def __init__(self, convention: Convention, emitted: Emitted, device: Device) -> None:
        self.convention = convention
        self.emitted = emitted
        self.device = device
        self.procedure = device.load(emitted.code)
        self._guards = convention.guards
        self._captured = convention.captured
        self._finders = [self._finder(source) for source in convention.sources]
        self._givers = [_giver(output, convention.sources) for output in convention.outputs]
        self._written = [_writes(source) for source in convention.sources]
        self._lengths = sum(isinstance(param, IndexParam) for param in self.procedure.params)

    def is_valid(self) -> bool:
        """Whether the names outside the function that the trace baked in are bound as they were."""
        return not self._guards or guards_hold(self._guards)

    def __call__(self, leaves: Sequence[Any]) -> Any:
        """Run on the leaves of a call's arguments. What was donated is gone, even if it raises."""
        needed = [array.storage.values for array in (*leaves, *self._captured) if isinstance(array, Array)]
        leaves = _without_donated(leaves)
        pairs = self.operands(leaves)
        operands = [operand for operand, _ in pairs]
        self._run(pairs, leaves, needed)
        results: list[Any] = []
        for give in self._givers:
            results.append(give(leaves, operands, results))
        return unflatten(self.convention.results, results)

    def operands(self, leaves: Sequence[Any]) -> list[tuple[Operand, bool]]:
        """What each parameter of a call is, and whether it is written. NumPy arrays are uploaded, results
        have new memory."""
        layouts = [layout_of(leaf) for leaf in leaves]
        storages = [leaf.storage if isinstance(leaf, Array) else None for leaf in leaves]
        if self._captured:
            refuse_hidden_overlap(self.convention.sources, layouts)
        operands = (find(layouts, storages) for find in self._finders)
        return list(zip(operands, self._written, strict=True))

    def _run(
        self, pairs: Sequence[tuple[Operand, bool]], leaves: Sequence[Any], needed: Sequence[Values]
    ) -> None:
        """Submit the call, and wait for it where it works on NumPy arrays."""
        operands = [operand for operand, _ in pairs]
        users = [operand for operand in operands if operand.host is not None]
        made = [o.storage.values for o in operands if o.storage and o.storage.values not in needed]
        reads = [array.storage.buffer for array in (*leaves, *self._captured) if isinstance(array, Array)]
        writes = [operand.storage.buffer for operand, written in pairs if written and operand.storage]
        first_length = len(operands) - self._lengths
        pointers = addresses_of([operand.layout for operand in operands[:first_length]])
        lengths = [int(operand.layout) for operand in operands[first_length:]]
        procedure = self.procedure

        def task(_kept: object = (operands, reads, writes)) -> None:
            for values in needed:
                values.require()
            procedure.launch(pointers, lengths)
            for values in made:
                values.are_computed = True

        try:
            event = self.device.stream.submit(task, procedure.name, reads, writes)
            if users:
                event.sync()
        finally:
            if users:
                self._bring_back(pairs, leaves)

    def _bring_back(self, pairs: Sequence[tuple[Operand, bool]], leaves: Sequence[Any]) -> None:
        """Give NumPy arrays what was written into what stood for them."""
        for (operand, written), source in zip(pairs, self.convention.sources, strict=True):
            if not written or operand.host is None:
                continue
            if operand.storage is not None:
                operand.host[...] = operand.shown(operand.layout).numpy()
            original = written_original(source)
            if original is not None:
                original(leaves)[...] = operand.host

    def _finder(self, source: Source) -> Finder:
        """What gives the operand of a parameter, from the leaves' layouts and storages."""
        match source:
            case FreshSource(has_fixed_shape=False):
                return lambda layouts, storages: self._made(source.shape_in(layouts), source.dtype)
            case FreshSource():
                shape = source.shape_in(())
                return lambda layouts, storages: self._made(shape, source.dtype)
            case ScalarSource(is_length=True):
                length = maker(source)
                return lambda layouts, storages: Operand(length(layouts), None)
            case ScalarSource():
                number = maker(source)
                return lambda layouts, storages: replace(self._from_host(number(layouts)), host=None)
            case CapturedSource(array=Array() as array):
                return lambda layouts, storages: Operand(array.layout, array.storage)
            case CapturedSource():
                captured = maker(source)
                return lambda layouts, storages: self._from_host(captured(layouts))
            case ArgumentSource(leaf=leaf) | OverlapSource(leaf=leaf):
                find = maker(source)
                return lambda layouts, storages: (
                    self._from_host(find(layouts))
                    if storages[leaf] is None
                    else Operand(find(layouts), storages[leaf])
                )

    def _made(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Operand:
        storage = Storage.new(self.device, prod(shape) * dtype.itemsize, Values(are_computed=False))
        return Operand(array_at(storage.buffer.address, shape, dtype), storage)

    def _from_host(self, host: np.ndarray) -> Operand:
        """A NumPy array where code can use it: itself, or its memory uploaded as it is."""
        device = self.device
        if device.driver.is_host:
            return Operand(host, None, host)
        low, high = bounds(host)
        storage = Storage.new(device, high - low)
        device.upload(storage.buffer, array_at(low, (high - low,), np.dtype(np.uint8), owner=host))
        start = storage.buffer.address + address_of(host) - low
        return Operand(array_at(start, host.shape, host.dtype, host.strides), storage, host)


def _giver(output: Output, sources: Sequence[Source]) -> Giver:
    """What gives a leaf of the result. What shows a NumPy array's memory is a NumPy array."""
    match output:
        case ScalarOutput(param=param, python=True, cell=cell):
            return lambda leaves, operands, results: operands[param].number(cell)
        case ScalarOutput(param=param, cell=cell):
            return lambda leaves, operands, results: operands[param].shown(
                _read_only(_cell(operands[param].layout, cell))
            )
        case SizedOutput(param=param, extents=extents):
            return lambda leaves, operands, results: _sized(operands[param], extents, operands)
        case ViewOutput(param=param, shape=None) if isinstance(source := sources[param], FreshSource):
            axes = [source.order.index(axis) for axis in range(len(source.order))]
            return lambda leaves, operands, results: operands[param].shown(
                operands[param].layout.transpose(axes)
            )
        case ViewOutput(param=param):
            given = giver(output, sources)
            return lambda leaves, operands, results: (
                operands[param].shown(view_of(output, operands[param].layout, leaves))
                if operands[param].host is None
                else given(leaves, [operand.seen() for operand in operands], results)
            )
        case ArgumentOutput() | RepeatedOutput():
            plain = giver(output, sources)
            return lambda leaves, operands, results: plain(leaves, (), results)


def _sized(operand: Operand, extents: Sequence[int | Counted], operands: Sequence[Operand]) -> Array:
    """An array that holds no more memory than it shows."""
    ends = (operands[e.param].number() if isinstance(e, Counted) else e for e in extents)
    part = operand.shown(operand.layout[tuple(map(slice, ends))])
    return part.sent(part.device)


def _without_donated(leaves: Sequence[Any]) -> Sequence[Any]:
    """The leaves, with what was donated taken over: its memory belongs to the call and its results."""
    donated = {leaf.storage for leaf in leaves if isinstance(leaf, Array) and leaf.storage.is_donated}
    if not donated:
        return leaves
    taken = {storage: storage.taken() for storage in donated}
    return [
        Array(taken[leaf.storage], leaf.layout) if isinstance(leaf, Array) and leaf.storage in taken else leaf
        for leaf in leaves
    ]


def _writes(source: Source) -> bool:
    match source:
        case FreshSource():
            return True
        case ScalarSource():
            return False
        case _:
            return source.written


def _cell(layout: np.ndarray, cell: tuple[int, ...]) -> np.ndarray:
    """An array of one cell of a layout."""
    index: Any = (*cell, ...)
    return layout[index]  # type: ignore[no-any-return]


def _read_only(layout: np.ndarray) -> np.ndarray:
    layout.flags.writeable = False
    return layout
