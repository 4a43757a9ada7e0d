"""Global memory: allocations at device addresses, each backed by an array of bytes.

Addresses are never used twice, and unused bytes lie between allocations, so that an overrun and a use after
the release are errors. Fresh and released memory holds `POISON`, which as floats is NaN.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque

import numpy as np

from .faults import BadAddress, Fault, UseAfterFree
from .types import Array

__all__ = ["FIRST_ADDRESS", "POISON", "Allocation", "GlobalMemory"]

POISON = 0xFF
FIRST_ADDRESS = 1 << 32
"""Below are the windows through which generic addresses reach other memories."""

_ALIGNMENT = 256
_GAP = 4096
_REMEMBERED = 10_000
"""Released allocations of which the error still knows that they were released."""


class Allocation:
    """Bytes from an address on. `is_constant` ones cannot be stored to."""

    def __init__(self, start: int, nbytes: int, name: str, is_constant: bool) -> None:
        self.start = start
        self.nbytes = nbytes
        self.name = name
        self.is_constant = is_constant
        padded = np.full(-(-max(nbytes, 1) // 32) * 32, POISON, np.uint8)
        self.padded = padded
        """The bytes and what is missing to whole vectors."""
        self.bytes = padded[:nbytes]

    def __str__(self) -> str:
        name = f" {self.name!r}" if self.name else ""
        return f"the allocation{name} of {self.nbytes} bytes at {self.start:#x}"


class GlobalMemory:
    """The memory of one device. Not for several threads at once.

    Several devices may share an address space: give each another `first` address. What is in memory of the
    `peers` can be reached through this one, too.
    """

    def __init__(self, first: int = FIRST_ADDRESS) -> None:
        if first < FIRST_ADDRESS:
            raise ValueError(f"device memory begins at {FIRST_ADDRESS:#x} or later")
        self._next = first
        self._starts: list[int] = []
        self._allocations: list[Allocation] = []
        self._released: deque[tuple[int, int, str]] = deque(maxlen=_REMEMBERED)
        self.peers: set[GlobalMemory] = set()

    def allocate(self, nbytes: int, name: str = "", *, is_constant: bool = False) -> int:
        """The address of fresh, poisoned bytes, a multiple of 256. `name` appears in faults."""
        made = Allocation(self._next, nbytes, name, is_constant)
        self._next += -(-(nbytes + _GAP) // _ALIGNMENT) * _ALIGNMENT
        self._starts.append(made.start)
        self._allocations.append(made)
        return made.start

    def free(self, address: int) -> None:
        """Give an allocation back. Views of it see poison. Raises BadAddress, UseAfterFree."""
        at = bisect_right(self._starts, address) - 1
        if at < 0 or self._starts[at] != address:
            raise self.refusal(address, 1, "released")
        released = self._allocations.pop(at)
        self._starts.pop(at)
        released.padded.fill(POISON)
        self._released.append((released.start, released.nbytes, str(released)))

    def view(self, address: int, nbytes: int) -> Array:
        """The bytes themselves, as uint8, shape (nbytes,). Raises BadAddress, UseAfterFree."""
        found = self.find(address, address + nbytes)
        if found is None:
            raise self.refusal(address, nbytes, "used")
        offset = address - found.start
        return found.bytes[offset : offset + nbytes]

    def find(self, low: int, high: int) -> Allocation | None:
        """The allocation that holds all bytes from `low` up to `high`, exclusively."""
        for memory in (self, *self.peers):
            found = memory._before(low)
            if found is not None and high <= found.start + found.nbytes:
                return found
        return None

    def refusal(self, address: int, nbytes: int, done: str, lane: int | None = None) -> Fault:
        """Why `nbytes` at an address may not be `done`."""
        what = f"{nbytes} bytes at {address:#x} cannot be {done}"
        reached = (self, *self.peers)
        for start, size, name in (released for memory in reached for released in memory._released):
            if start <= address < start + size:
                return UseAfterFree(f"{what}: {name} was released", lane=lane)
        before = [found for memory in reached if (found := memory._before(address)) is not None]
        if not before:
            return BadAddress(f"{what}: no allocation is there", lane=lane)
        nearest = max(before, key=lambda found: found.start)
        return BadAddress(f"{what}: that is byte {address - nearest.start} of {nearest}", lane=lane)

    def _before(self, address: int) -> Allocation | None:
        """The last allocation of this memory's own that begins at an address or before it."""
        at = bisect_right(self._starts, address) - 1
        return self._allocations[at] if at >= 0 else None
