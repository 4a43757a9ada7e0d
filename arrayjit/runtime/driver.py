"""What a driver gives: hardware, by a few operations. Everything else about devices is the same for all.

A driver allocates, copies, loads code and makes queues. It knows nothing of tensors, contexts or events.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, Union, runtime_checkable

import numpy as np

from ..ir.code import Code

__all__ = [
    "Driver",
    "Executable",
    "Memory",
    "NativeExecutable",
    "Outcome",
    "Queue",
    "SharedDriver",
    "Task",
]

Task = Callable[[], None]

Outcome = Callable[[], Union[BaseException, None]]
"""Blocks until some tasks of a queue are over; what stopped one of them."""


class Memory(Protocol):
    """Memory of a device, freed when the object dies."""

    @property
    def address(self) -> int: ...


class Executable(Protocol):
    """Loaded code; it stays loaded as long as the object lives. `seconds` has the time of each phase."""

    seconds: Mapping[str, float]

    def launch(self, pointers: Sequence[int], bindings: Sequence[int], workspace: int, pool: int = 0) -> int:
        """Run; the status, 0 for success. `pointers` has the address of the first cell of each array
        parameter, `bindings` the number of each index parameter, in their order; of memory of the host, and
        without bindings, `pointers` has the addresses of these numbers as well, in their places. `pool` is
        the address of the threads that may help, 0 for none."""


@runtime_checkable
class NativeExecutable(Executable, Protocol):
    """Machine code of this process: a function of a table of pointers, to the parameters in their order, the
    workspace and the pool. It returns the status."""

    @property
    def address(self) -> int: ...


class Queue(Protocol):
    """Work that is done in order. Tasks are counted from 1 in the order in which they were put.

    When a task raises, the tasks behind it are dropped, and with them, on any queue, what waits for them.
    Each queue so stopped raises the exception once, at its next `put`, `flush` or `wait`; then it works
    again. Who was waiting already is told too.
    """

    name: str

    @property
    def done(self) -> int:
        """How many tasks are over, done or dropped."""

    @property
    def recorded_as(self) -> object:
        """What a recording knows its tasks by."""

    def put(self, task: Task, label: str) -> None:
        """Add a task. Calls of `put` and `wait_for` come one at a time. Raises what stopped an earlier task;
        then the queue has forgotten what it was told to wait for since its latest task."""

    def wait_for(self, other: Queue, count: int) -> None:
        """Tasks put from now on start after the first `count` tasks of the other queue."""

    def flush(self, count: int) -> None:
        """Called by who put task `count`: do it here, if that is how the queue works; or, when the queue is
        full, block until it is empty."""

    def wait(self, count: int) -> None:
        """Block until the first `count` tasks are over. Raises what a task raised."""

    def outcome(self, count: int) -> Outcome | None:
        """For other queues: how to wait for the first `count` tasks; None if they are over and nothing
        stopped them. The exception is still raised here."""

    def end(self) -> None:
        """Finish the work and take no more, without waiting for it."""

    def close(self) -> None:
        """`end`, and wait for it."""


class Driver(Protocol):
    """A kind of hardware. `name` is its target's name; with `is_host` a device's memory is the host's, so
    that arrays need no copies."""

    name: str
    is_host: bool

    def num_devices(self) -> int:
        """How many physical devices there are."""

    def static_properties(self, ordinal: int) -> Mapping[str, str | int]:
        """What is known of the hardware without running anything."""

    def debug_info(self, ordinal: int) -> Mapping[str, str | int]:
        """What the driver knows about itself now."""

    def queue(self, ordinal: int, name: str) -> Queue: ...

    def threads(self, ordinal: int, most: int | None = None) -> int:
        """The address of the threads that help kernels on the device, at most so many with the one that
        calls; 0 for none."""

    def reaches(self, ordinal: int, other: int) -> bool:
        """Whether code on the device can be given access to memory of another of the driver's."""

    def enable_access(self, ordinal: int, other: int) -> None:
        """From now on code on the device can use all memory of the other, which it reaches."""

    def dlpack_device(self, ordinal: int) -> tuple[int, int] | None:
        """How DLPack names the device to other libraries; None where they cannot use its memory."""

    def borrow(self, ordinal: int, address: int, nbytes: int, owner: object) -> Memory:
        """Memory of somebody else's, which is there as long as the owner."""

    def order(self) -> object:
        """What the launches that this thread asks for are in order with, though they may not be over when
        `launch` returns; None where they are."""

    def allocate(self, ordinal: int, nbytes: int) -> Memory:
        """Memory with any contents, aligned to 64 bytes. Raises MemoryError when there is not enough."""

    def memset_zero(self, memory: Memory, offset: int, nbytes: int) -> None: ...

    def upload(self, memory: Memory, offset: int, array: np.ndarray) -> None:
        """Copy a C-ordered host array to the device."""

    def download(self, memory: Memory, offset: int, array: np.ndarray) -> None:
        """Copy from the device into a C-ordered host array."""

    def copy(
        self, memory: Memory, offset: int, source: Driver, origin: Memory, start: int, nbytes: int
    ) -> None:
        """Copy from memory of a device of the driver `source` to memory of this one's."""

    def load(self, code: Code, ordinal: int = 0) -> Executable: ...

    def assembly(self, code: Code) -> str:
        """The machine code as text. Raises UnsupportedError where there is none."""

    def close(self) -> None:
        """Give back what the driver holds; nothing is running any more."""


@runtime_checkable
class SharedDriver(Driver, Protocol):
    """A driver of devices that other libraries in this process use as well, with streams of CUDA's."""

    def ordinal_of(self, address: int) -> int:
        """The device that has this memory."""

    def lend(self, ordinal: int) -> int:
        """A stream. Work on the device that is submitted from now on comes after what is on it then."""

    def follow(self, ordinal: int, stream: int) -> None:
        """Work that is submitted from now on comes after what is on the stream."""
