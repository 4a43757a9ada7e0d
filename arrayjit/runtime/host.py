"""What the drivers of the host share."""

from __future__ import annotations

import ctypes
import os
import platform
import sys
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from .driver import Driver, Memory, Queue
from .queues import InlineQueue

__all__ = ["Borrowed", "HostDriver", "HostMemory", "addresses_of"]

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


PAGE = 4096
"""Where memory starts. CPUs mistake a load for one of what was stored just before, where the addresses differ
by whole pages. Large arrays of NumPy's start 16 bytes behind a page's boundary: what a loop stores to new
memory is then never just ahead of what it loads. Else an exponential of 10 million float32 takes 10 ms, not
5."""


class HostMemory:
    """Host memory on a page's boundary."""

    def __init__(self, nbytes: int) -> None:
        block = np.empty(nbytes + PAGE, np.uint8)
        start = -block.ctypes.data % PAGE
        self._block = block
        self.nbytes = nbytes
        self.address: int = block.ctypes.data + start


class Borrowed:
    """Host memory of somebody else's."""

    def __init__(self, address: int, owner: object) -> None:
        self.address = address
        self.owner = owner


class HostDriver:
    """What drivers of the host share: its memory, and by default one device whose work is done at once. What
    depends on the kind of code is `load`."""

    is_host = True

    def __init__(self, name: str) -> None:
        self.name = name

    def num_devices(self) -> int:
        return 1

    def static_properties(self, ordinal: int) -> Mapping[str, str | int]:
        return {"machine": platform.machine(), "cores": os.cpu_count() or 1, "ordinal": ordinal}

    def debug_info(self, ordinal: int) -> Mapping[str, str | int]:
        return {"ordinal": ordinal}

    def queue(self, ordinal: int, name: str) -> Queue:
        return InlineQueue(name)

    def threads(self, ordinal: int, most: int | None = None) -> int:
        return 0

    def reaches(self, ordinal: int, other: int) -> bool:
        return True

    def enable_access(self, ordinal: int, other: int) -> None:
        return None

    def dlpack_device(self, ordinal: int) -> tuple[int, int]:
        return 1, 0

    def borrow(self, ordinal: int, address: int, nbytes: int, owner: object) -> Borrowed:
        return Borrowed(address, owner)

    def order(self) -> None:
        return None

    def allocate(self, ordinal: int, nbytes: int) -> HostMemory:
        return HostMemory(nbytes)

    def memset_zero(self, memory: Memory, offset: int, nbytes: int) -> None:
        ctypes.memset(memory.address + offset, 0, nbytes)

    def upload(self, memory: Memory, offset: int, array: np.ndarray) -> None:
        ctypes.memmove(memory.address + offset, array.ctypes.data, array.nbytes)

    def download(self, memory: Memory, offset: int, array: np.ndarray) -> None:
        ctypes.memmove(array.ctypes.data, memory.address + offset, array.nbytes)

    def copy(
        self, memory: Memory, offset: int, source: Driver, origin: Memory, start: int, nbytes: int
    ) -> None:
        if source.is_host:
            ctypes.memmove(memory.address + offset, origin.address + start, nbytes)
        else:
            array = np.empty(nbytes, np.uint8)
            source.download(origin, start, array)
            self.upload(memory, offset, array)

    def close(self) -> None:
        return None
