"""What the drivers of the host share: one device, its memory, and a stream on the calling thread."""

from __future__ import annotations

import ctypes
import os
import platform
import sys
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from ..errors import BackendUnavailable
from .device import Event, Memory

__all__ = ["HostDriver", "HostMemory", "InlineStream", "addresses_of"]

ALIGNMENT = 64


_HEAD = object.__basicsize__
_number_at = ctypes.c_void_p.from_address


def _addresses_in_objects(arrays: Sequence[np.ndarray]) -> list[int]:
    """As NumPy's C interface fixes it, an array's address follows the head that all objects have."""
    return [_number_at(id(array) + _HEAD).value or 0 for array in arrays]


def _addresses_in_interface(arrays: Sequence[np.ndarray]) -> list[int]:
    return [array.__array_interface__["data"][0] for array in arrays]


# Reading the objects takes a tenth of the time, where an object's `id` is its address.
addresses_of: Callable[[Sequence[np.ndarray]], list[int]] = (
    _addresses_in_objects if sys.implementation.name == "cpython" else _addresses_in_interface
)
"""The address of each array's first element."""


class HostMemory:
    """Zeroed host memory on a cache line's boundary. Pages are taken from the system when first touched."""

    def __init__(self, nbytes: int) -> None:
        block = np.zeros(nbytes + ALIGNMENT, np.uint8)
        start = -block.ctypes.data % ALIGNMENT
        self._block = block
        self.address: int = block.ctypes.data + start


class _Done:
    """The event of work that is done when it has been submitted."""

    def is_done(self) -> bool:
        return True

    def sync(self) -> None:
        return None


class InlineStream:
    """Work is done where it is submitted."""

    def submit(self, task: Callable[[], None]) -> None:
        task()

    def record(self) -> Event:
        return _Done()

    def wait_for(self, event: Event) -> None:
        event.sync()

    def await_(self) -> None:
        return None

    def is_idle(self) -> bool:
        return True


class HostDriver:
    """The half of a driver that does not depend on the kind of code. The other half is `load`."""

    def __init__(self, name: str) -> None:
        self.name = name

    def num_devices(self) -> int:
        return 1

    def check_ordinal(self, ordinal: int) -> None:
        """Raises BackendUnavailable for a device that is not there."""
        if not 0 <= ordinal < self.num_devices():
            raise BackendUnavailable(
                f"{self.name} has no device {ordinal}", fix=f"choose one below {self.num_devices()}"
            )

    def static_properties(self, ordinal: int) -> Mapping[str, str | int]:
        return {"machine": platform.machine(), "cores": os.cpu_count() or 1, "ordinal": ordinal}

    def stream(self, ordinal: int) -> InlineStream:
        return InlineStream()

    def allocate(self, ordinal: int, nbytes: int) -> HostMemory:
        return HostMemory(nbytes)

    def upload(self, memory: Memory, array: np.ndarray) -> None:
        ctypes.memmove(memory.address, array.ctypes.data, array.nbytes)

    def download(self, memory: Memory, array: np.ndarray) -> None:
        ctypes.memmove(array.ctypes.data, memory.address, array.nbytes)
