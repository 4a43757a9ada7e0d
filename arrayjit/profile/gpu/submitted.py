"""Work on a GPU that is measured while it is on its stream."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from ...errors import CompilerBug
from ...runtime.cuda.clock import LaunchClock, TimedLaunch
from ...runtime.cuda.lane import Lane, lane_in_use
from ...runtime.device import Device
from ...runtime.stream import Buffer

__all__ = ["submitted", "timed_launches"]

T = TypeVar("T")


def submitted(device: Device, work: Callable[[Lane], T], label: str, uses: Sequence[Buffer] = ()) -> T:
    """What `work` gives on the lane of the device's first stream, after all that was submitted and uses these
    buffers; it may write them. Waits. Raises what the work raises, and DeviceError."""
    found: list[T] = []

    def task() -> None:
        lane = lane_in_use()
        if lane is None:
            raise CompilerBug(f"{device.name} has no stream of a GPU", stage="profile")
        found.append(work(lane))

    device.stream.submit(task, label, writes=uses).sync()
    return found[0]


def timed_launches(lane: Lane, work: Callable[[], object]) -> tuple[TimedLaunch, ...]:
    """The launches that `work` submits to the lane. Waits for them."""
    clock = LaunchClock(lane)
    lane.clock = clock
    try:
        work()
    finally:
        lane.clock = None
    return clock.launches()
