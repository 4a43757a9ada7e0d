"""Slabs of device memory, and how buffers are laid out in them.

A buffer is named by its place, `{pool, offset}`: small numbers that are the same in every run. Several
buffers that are needed at the same time share a slab, which `plan` lays out.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from enum import Enum

from ..errors import DeviceError
from ..frozen import frozen
from .driver import Memory

__all__ = ["ALIGNMENT", "Location", "Pool", "Purpose", "Segment", "plan"]

ALIGNMENT = 64
"""Bytes: a cache line, and the widest vector."""

SLAB = 1 << 32
"""Bytes in a slab that several buffers share, at most: larger pieces are hard to find."""


class Purpose(Enum):
    """What memory is for; reports count by it."""

    WORKING = "working"  # a context's tensors
    CONSTANT = "constant"  # constants, one copy for all contexts of a device
    MERGE = "merge"  # merge buffers
    WORKSPACE = "workspace"  # temporaries of routines
    ARRAY = "array"  # the user's arrays


@frozen
class Location:
    """The place of a buffer on its device."""

    pool: int
    offset: int


@frozen
class Segment:
    """Part of a plan: one slab, and where in it the items `first`, `first + 1`, ... start."""

    first: int
    offsets: tuple[int, ...]
    nbytes: int


def plan(sizes: Sequence[int], limit: int = SLAB) -> tuple[Segment, ...]:
    """Lay out items of these sizes in bytes, in order, each aligned, in slabs of at most `limit` bytes. An
    item that is larger has a slab of its own."""
    segments: list[Segment] = []
    offsets: list[int] = []
    first = end = 0
    for number, size in enumerate(sizes):
        start = -(-end // ALIGNMENT) * ALIGNMENT
        if offsets and start + size > limit:
            segments.append(Segment(first, tuple(offsets), end))
            first, offsets, start = number, [], 0
        offsets.append(start)
        end = start + size
    if offsets:
        segments.append(Segment(first, tuple(offsets), end))
    return tuple(segments)


class Pool:
    """A slab of the device with the id `owner`. Its memory is given back by `free`, or when nothing refers to
    the pool any more."""

    def __init__(
        self,
        owner: int,
        number: int,
        memory: Memory,
        nbytes: int,
        purpose: Purpose,
        freed: Callable[[int, Purpose], None],
    ) -> None:
        self.owner = owner
        self.number = number
        self.nbytes = nbytes
        self.purpose = purpose
        self._memory: Memory | None = memory
        self._count = weakref.finalize(self, freed, nbytes, purpose)
        self._count.atexit = False

    @property
    def memory(self) -> Memory:
        """Raises DeviceError once it has been given back."""
        if self._memory is None:
            raise DeviceError(f"{self} was given back", fix="use a context before it is finalized")
        return self._memory

    def free(self) -> None:
        """Nothing that was submitted uses the pool any more."""
        self._memory = None
        self._count()

    def __repr__(self) -> str:
        return f"Pool({self.number}, {self.nbytes} bytes, {self.purpose.value})"
