"""The front of data parallelism: a batch is split along its leading axis over devices.

Each device computes its shard's gradients; they are merged pair by pair, always in the same order, into those
of the first device, which updates the parameters and hands them to the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from ..arrays.array import as_device
from ..backends import fresh_backend
from ..errors import DeviceError, NumberError, ShapeError, UnsupportedError
from ..locks import reentrant_lock
from ..runtime.device import Device
from ..tracer.calls.signature import Spec
from ..tracer.record.tree import Structure, paths
from .located import located
from .programs import Layout, Program, Reduce, arrays_of, parts_of, step_program, update_program
from .replicas import Replicated, Shard

__all__ = ["DataParallel", "data_parallel", "devices"]


@located
def devices(count: int, target: str = "llvm") -> tuple[Device, ...]:
    """So many devices of the host that no one else uses: for "llvm" each works on its own and has its part of
    the cores; for other targets they are virtual, and share what there is."""
    if count < 1:
        raise NumberError(f"{count} devices", fix="ask for at least one")
    if target.lower() == "llvm":
        return fresh_backend(target, devices=count).machine.devices()
    machine = fresh_backend(target).machine
    first = machine.get_device()
    return (first, *(machine.new_virtual_device(first) for _ in range(count - 1)))


@located
def data_parallel(
    step: Callable[..., Any],
    devices: Sequence[Device | str],
    *,
    update: Callable[..., Any] | None = None,
    reduce: Reduce = "mean",
) -> DataParallel:
    """`step`, computed by several devices at once.

    `step(parameters, *batch)` returns gradients, nested as the parameters are and of their shapes; or
    `(value, gradients)`, where `value` is a loss or other nested numbers and arrays. It is traced, as by
    `jit`, and writes none of its arguments. The arrays of the batch have one leading extent, along which they
    are split into shards whose sizes differ by at most one. With `reduce="mean"` what it returns is averaged
    over the shards, each weighted by its share of the batch, with `"sum"` it is added up.

    `update(parameters, gradients)` returns new parameters; or `update(parameters, gradients, *state)` new
    parameters and state, as a tuple. It runs on the first device.

    `devices` are devices or their names, as `"llvm:0"`; they may be of different targets.
    Raises DeviceError for no device and for the same one twice.
    """
    if reduce not in ("mean", "sum"):
        raise UnsupportedError(f"reduce is {reduce!r}", fix='choose "mean" or "sum"')
    return DataParallel(step, _devices(devices), update, reduce)


class DataParallel:
    """A step that several devices compute together; `data_parallel` makes it and says what it means."""

    def __init__(
        self,
        step: Callable[..., Any],
        devices: Sequence[Device],
        update: Callable[..., Any] | None,
        reduce: Reduce,
    ) -> None:
        self.devices = tuple(devices)
        self._step = step
        self._update = update
        self._reduce = reduce
        self._steps: dict[tuple[Layout, Layout, float], Program] = {}
        self._updates: dict[tuple[Layout, Layout, tuple[Layout, ...]], Program] = {}
        self._own: dict[Layout, Replicated] = {}
        self._lock = reentrant_lock()

    @located
    def replicate(self, parameters: Any, *state: Any) -> Replicated:
        """Copy parameters to all devices, and state that only `update` uses to the first."""
        layout = Layout.of(parameters)
        if not layout.leaves:
            raise ShapeError("there are no parameters", fix="pass arrays, nested as step takes them")
        if state and self._update is None:
            raise UnsupportedError("state without an update", fix="pass update= to data_parallel")
        replicated = Replicated(self.devices, layout, [Layout.of(part) for part in state])
        replicated.load(parameters, *state)
        return replicated

    @located
    def __call__(self, parameters: Any, *batch: Any) -> Any:
        """What the step returns for the whole batch; with an update, which changes the parameters in place,
        without the gradients: the value, or None.

        `parameters` is what `replicate` returned, or, without an update, may be nested arrays. Returns when
        the result is there, so that the batch may be changed; the update may still be running. What a step
        raises is raised here, with the device's name; parameters and state are then as they were before.
        """
        if isinstance(parameters, Replicated):
            return self._run(parameters, batch)
        if self._update is not None:
            raise UnsupportedError(
                "these parameters are not on the devices", fix="pass what replicate(parameters) returns"
            )
        with self._lock:
            return self._run(self._loaded(parameters), batch)

    def _loaded(self, parameters: Any) -> Replicated:
        """The parameters on the devices, where others of their layout were before."""
        layout = Layout.of(parameters)
        replicated = self._own.get(layout)
        if replicated is None:
            replicated = self._own[layout] = self.replicate(parameters)
        else:
            replicated.load(parameters)
        return replicated

    def _run(self, replicated: Replicated, batch: tuple[Any, ...]) -> Any:
        if replicated.devices != self.devices:
            raise DeviceError(
                "the parameters are on other devices", fix="replicate them on the devices of the step"
            )
        shards = self._shards(replicated.layout, batch)
        result = shards[0].program.layout
        if any(shard.program.layout != result for shard in shards):
            raise ShapeError(
                "step returns arrays of other shapes for other sizes of the batch",
                fix="return sums or means over the batch, and gradients",
            )
        if self._update is None:
            return result.value(replicated.run(shards, None))
        value, gradients = parts_of(result, replicated.layout)
        update = self._update_for(replicated, gradients)
        return value.value(replicated.run(shards, update))

    def _shards(self, parameters: Layout, batch: tuple[Any, ...]) -> list[Shard]:
        """The batch in as many parts as there are devices, the larger ones first."""
        arrays, structure = arrays_of(batch)
        rows = _rows(arrays, structure)
        count = len(self.devices)
        if rows < count:
            raise ShapeError(
                f"a batch of {rows} cannot be split over {count} devices",
                fix="use a larger batch or fewer devices",
            )
        sizes = [rows // count + (number < rows % count) for number in range(count)]
        steps = {}
        for size in set(sizes):
            specs = tuple(Spec((size, *array.shape[1:]), array.dtype) for array in arrays)
            steps[size] = self._step_for(parameters, Layout(structure, specs), size / rows)
        return [
            Shard(steps[size], tuple(array[end - size : end] for array in arrays))
            for size, end in zip(sizes, accumulate(sizes), strict=True)
        ]

    def _step_for(self, parameters: Layout, shard: Layout, weight: float) -> Program:
        with self._lock:
            program = self._steps.get((parameters, shard, weight))
            if program is None or not program.is_valid():
                program = step_program(self._step, parameters, shard, self._reduce, weight)
                self._steps[parameters, shard, weight] = program
            return program

    def _update_for(self, replicated: Replicated, gradients: Layout) -> Program:
        assert self._update is not None
        key = (replicated.layout, gradients, replicated.state_layouts)
        with self._lock:
            program = self._updates.get(key)
            if program is None or not program.is_valid():
                program = self._updates[key] = update_program(self._update, *key)
            return program

    def __repr__(self) -> str:
        name = getattr(self._step, "__name__", type(self._step).__name__)
        return f"<{name} on {', '.join(device.name for device in self.devices)}>"


def _rows(arrays: Sequence[np.ndarray], structure: Structure) -> int:
    """The leading extent that all arrays of a batch have."""
    extents = {array.shape[:1] for array in arrays}
    if len(extents) != 1 or () in extents:
        names = paths(structure, "batch")
        raise ShapeError(
            "the arrays of the batch have no leading extent in common",
            details=tuple(f"{name}: {array.shape}" for name, array in zip(names, arrays, strict=True)),
            fix="pass arrays with one row for each example",
        )
    return len(arrays[0])


def _devices(given: Sequence[Device | str]) -> list[Device]:
    """The devices, by themselves or by name."""
    found = [as_device(device) for device in given]
    if not found:
        raise DeviceError("there are no devices", fix="pass at least one, such as devices(1)")
    for number, device in enumerate(found):
        device.check_alive()
        if device in found[:number]:
            raise DeviceError(f"{device.name} is given twice", fix="pass each device once")
    return found
