"""Devices, streams, events and buffers: what every driver gives and what all devices share.

A driver is a kind of hardware: it allocates, copies, loads code and runs it on its streams. A `Device`
is the same plain object for every driver.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from threading import Lock
from typing import Protocol

import numpy as np

from ..ir.code import Code

__all__ = ["Buffer", "Device", "Driver", "Event", "Executable", "Memory", "Stream"]

_device_ids = count()


class Event(Protocol):
    """A point in a stream's work."""

    def is_done(self) -> bool: ...

    def sync(self) -> None:
        """Block until the work before the event is done."""


class Stream(Protocol):
    """A queue of work, done in order."""

    def submit(self, task: Callable[[], None]) -> None: ...

    def record(self) -> Event:
        """The event of everything submitted so far."""

    def wait_for(self, event: Event) -> None:
        """Work submitted from now on starts after the event."""

    def await_(self) -> None:
        """Block until the stream is empty; a task's exception is raised here at the latest."""

    def is_idle(self) -> bool: ...


class Memory(Protocol):
    """Memory of a device, freed when the object dies."""

    @property
    def address(self) -> int: ...


class Executable(Protocol):
    """Loaded code; it stays loaded as long as the object lives. `seconds` has the time of each phase."""

    seconds: Mapping[str, float]

    def launch(self, pointers: Sequence[int], bindings: Sequence[int], workspace: int) -> int:
        """Run on the calling thread; the status, 0 for success. `pointers` has the address of the first
        cell of each array parameter, `bindings` the number of each index parameter, in their order."""


class Driver(Protocol):
    """A kind of hardware. `name` is its target's name."""

    name: str

    def num_devices(self) -> int: ...

    def get_device(self, ordinal: int) -> Device:
        """The device, always the same object. Raises BackendUnavailable when there is none."""

    def static_properties(self, ordinal: int) -> Mapping[str, str | int]: ...

    def stream(self, ordinal: int) -> Stream: ...

    def allocate(self, ordinal: int, nbytes: int) -> Memory:
        """Zeroed memory, aligned for any vector."""

    def upload(self, memory: Memory, array: np.ndarray) -> None:
        """Copy a C-ordered host array to the device."""

    def download(self, memory: Memory, array: np.ndarray) -> None:
        """Copy the device's memory into a C-ordered host array."""

    def load(self, code: Code) -> Executable: ...

    def assembly(self, code: Code) -> str:
        """The machine code as text. Raises UnsupportedError where there is none."""


class Buffer:
    """Zeroed memory of a device, taken at first use and given back when the buffer dies."""

    def __init__(self, device: Device, nbytes: int) -> None:
        self.device = device
        self.nbytes = nbytes
        self._memory: Memory | None = None
        self._lock = Lock()

    @property
    def memory(self) -> Memory:
        with self._lock:
            if self._memory is None:
                self._memory = self.device.take(self, self.nbytes)
            return self._memory

    @property
    def address(self) -> int:
        return self.memory.address

    def __repr__(self) -> str:
        return f"Buffer({self.device.name}, {self.nbytes} bytes)"


class Device:
    """One device of a driver, with its default stream."""

    def __init__(self, driver: Driver, ordinal: int) -> None:
        self.driver = driver
        self.ordinal = ordinal
        self.device_id = next(_device_ids)
        self.stream = driver.stream(ordinal)
        self._used = 0
        self._lock = Lock()

    @property
    def name(self) -> str:
        return f"{self.driver.name}:{self.ordinal}"

    @property
    def static_properties(self) -> Mapping[str, str | int]:
        """What is known of the hardware without running anything."""
        return self.driver.static_properties(self.ordinal)

    def take(self, owner: Buffer, nbytes: int) -> Memory:
        """Memory that counts as used while `owner` lives."""
        memory = self.driver.allocate(self.ordinal, nbytes)
        self._count(nbytes)
        weakref.finalize(owner, self._count, -nbytes).atexit = False
        return memory

    def get_used_memory(self) -> int:
        """Bytes in buffers."""
        return self._used

    def all_work(self) -> Event:
        """The event of everything submitted so far."""
        return self.stream.record()

    def await_(self) -> None:
        """Block until all submitted work is done."""
        self.stream.await_()

    def is_idle(self) -> bool:
        """Whether no submitted work is left."""
        return self.stream.is_idle()

    def _count(self, nbytes: int) -> None:
        with self._lock:
            self._used += nbytes

    def __repr__(self) -> str:
        return f"Device({self.name})"
