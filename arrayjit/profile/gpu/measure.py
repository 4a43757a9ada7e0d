"""Runs of one call on a GPU: as a user's program makes it, as its launches alone, and launch by launch.

Before each measured run something else is written over the second cache: a run finds nothing there that the
one before has left, and while the GPU does that, the host submits what is measured. (Triton's `do_bench` does
so too.)
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar, Union

import numpy as np

from ...arrays.storage import Storage
from ...frozen import frozen_by_identity
from ...late import Late
from ...runtime.cuda.api import Dims, GpuInfo
from ...runtime.cuda.clock import LaunchClock, TimedLaunch, seconds_of
from ...runtime.cuda.lane import Lane
from ...runtime.cuda.program import GpuExecutable, LoadedKernel
from ...runtime.device import Device
from ...runtime.host import addresses_of
from ...runtime.memory import Purpose
from ...runtime.procedure import Procedure
from ...runtime.stream import Buffer
from ...stages import Lowered
from ...tracer.record.resident import Resident
from ..counters import Refused
from ..measure import CALLS, LEAST, MOST, Spread, whole_calls
from .submitted import submitted, timed_launches

__all__ = ["Measured", "MeasuredKernel", "measured"]

placed: Any = Late("arrayjit.arrays.placed")  # which imports `api`, which knows profiles

T = TypeVar("T")

FLUSHED = 4
"""Times the second cache: as much is written between runs."""

CLOCKED = 20
"""Launches of nothing that tell what a clock takes."""


@frozen_by_identity
class MeasuredKernel:
    """A launch of the plan: what it runs, the seconds of all its runs in a call, how many these are, and the
    greatest grid that it had, of no blocks where it never ran."""

    kernel: LoadedKernel
    seconds: Spread
    runs: int
    grid: Dims


@frozen_by_identity
class Measured:
    """`kernels` are in the order of the plan, `native` is all of them with what is between, `clock` what an
    event after another takes. `call` is a whole call, until its results are there; a reason where it cannot
    be measured."""

    kernels: tuple[MeasuredKernel, ...]
    native: Spread
    clock: float
    call: Union[Spread, Refused]


def measured(
    lowered: Lowered,
    device: Device,
    info: GpuInfo,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    call: Callable[..., Any],
    seconds: float,
    is_simulated: bool,
) -> Measured:
    """Measure for about so many seconds. Nothing that the caller has is written: runs work on copies. Raises
    what a run raises, and DeviceError."""
    leaves = lowered.leaves_of(args, kwargs)
    for leaf in leaves:
        if isinstance(leaf, Resident):
            leaf.block_until_ready()  # type: ignore[attr-defined]
    call_of = placed.Placed(lowered.traced, lowered.build, device)
    flushed = 0 if is_simulated else FLUSHED * info.l2_bytes
    trials = _Trials(device, call_of.procedure, call_of.operands(leaves), flushed)
    for _ in range(2):
        trials.seconds()  # what runs again on the same memory becomes a graph
    native: list[float] = []
    launches: list[Sequence[TimedLaunch]] = []
    deadline = time.perf_counter() + (1 - CALLS) * seconds
    while len(native) < LEAST or (time.perf_counter() < deadline and len(native) < MOST):
        native.append(trials.seconds())
        launches.append(trials.launches())
    return Measured(
        tuple(_kernel(kernel, number, launches) for number, kernel in enumerate(trials.kernels)),
        Spread.of(native),
        submitted(device, _of_the_clock, "clock"),
        Refused("whole calls are not measured: an array can be donated once")
        if placed.donated_among(leaves)
        else whole_calls(lowered, args, kwargs, call, CALLS * seconds, device.await_),
    )


def _kernel(kernel: LoadedKernel, number: int, rounds: Sequence[Sequence[TimedLaunch]]) -> MeasuredKernel:
    """Entry `number` of a plan, by all launches of all rounds."""
    own = [[launch for launch in launches if launch.number == number] for launches in rounds]
    grids = [launch.grid for launch in own[0]]
    return MeasuredKernel(
        kernel,
        Spread.of([sum(launch.seconds for launch in launches) for launches in own]),
        len(grids),
        max(grids, key=lambda grid: int(np.prod(grid)), default=(0, 0, 0)),
    )


def _of_the_clock(lane: Lane) -> float:
    clock = LaunchClock(lane)
    for _ in range(CLOCKED):
        clock.start(0, (0, 0, 0))
        clock.stop()
    return float(np.median([launch.seconds for launch in clock.launches()]))


class _Trials:
    """Runs on one call's `operands` in the device's memory, each with whether it is written. What is written
    lies in copies, which are restored before each run; so many other bytes are then overwritten."""

    def __init__(
        self, device: Device, procedure: Procedure, operands: Sequence[tuple[Any, bool]], flushed: int
    ) -> None:
        executable = procedure.executable
        assert isinstance(executable, GpuExecutable)
        self.kernels = executable.kernels
        self._procedure = procedure
        self._device = device
        self._flushed = device.alloc_buffer(flushed, Purpose.WORKSPACE, "a profile")
        self._storages: list[Storage | None] = [operand.storage for operand, _ in operands]
        self._copies: dict[Storage, Buffer] = {}
        for storage, (_, is_written) in zip(self._storages, operands, strict=True):
            if is_written and storage is not None and storage not in self._copies:
                nbytes = storage.buffer.nbytes
                self._copies[storage] = device.alloc_buffer(nbytes, Purpose.ARRAY, "a profile", zeroed=False)
        addresses = addresses_of([operand.layout for operand, _ in operands])
        self._pointers = [
            address + self._moved(storage) for address, storage in zip(addresses, self._storages, strict=True)
        ]

    def seconds(self) -> float:
        """What a run takes the GPU, as calls make it."""
        return self._submitted(lambda lane: seconds_of(lane, self._run))

    def launches(self) -> tuple[TimedLaunch, ...]:
        """What each launch of a run takes."""
        return self._submitted(lambda lane: timed_launches(lane, self._run))

    def _run(self) -> None:
        self._procedure.launch(self._pointers)

    def _submitted(self, work: Callable[[Lane], T]) -> T:
        def prepared(lane: Lane) -> T:
            for storage, copy in self._copies.items():
                lane.api.d2d(copy.address, storage.buffer.address, copy.nbytes, lane.stream)
            if self._flushed.nbytes:
                lane.api.memset(self._flushed.address, 0, self._flushed.nbytes, lane.stream)
            return work(lane)

        used = [storage.buffer for storage in self._storages if storage is not None]
        return submitted(self._device, prepared, self._procedure.name, used)

    def _moved(self, storage: Storage | None) -> int:
        """How far the copy of some memory lies from it."""
        copy = None if storage is None else self._copies.get(storage)
        return 0 if copy is None or storage is None else copy.address - storage.buffer.address
