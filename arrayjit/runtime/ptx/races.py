"""Who touched which byte, and whether anything orders the one before the other.

Each block counts its synchronisations: its *time*. An access is remembered as the thread and the time of its
block. `Clocks.known[block, v, w]` says up to which time warp `v` knows the accesses of warp `w`: a barrier
raises it for all pairs of warps that meet there, `bar.warp.sync` for a warp and itself. An access at a time
that is not known to the other thread's warp is a race. The method is that of vector clocks as FastTrack uses
them (Flanagan and Freund, PLDI 2009), with one clock a warp.

Blocks are ordered by fences only: what a block wrote before a fence, another may use after one of its own.
That is all that is asked of kernels with fences; so races between such blocks may stay unnoticed.
"""

from __future__ import annotations

import numpy as np

from .faults import DoubleStore, Race
from .types import Array

__all__ = ["WARP", "Clocks", "Meeting", "Shadow", "first_stamp"]

WARP = 32
_THREAD = 26
"""A stamp is the thread's number plus one above this bit; below are flags and the time."""
_SEVERAL = 1 << 25
"""Of reads: other threads have read it since the last order as well."""
_ATOMIC = 1 << 24
"""Of writes: an atomic operation."""
_TIME = _ATOMIC - 1


def first_stamp(threads: Array) -> Array:
    """The stamps of threads, numbered over the launch, at time 0."""
    return (threads.astype(np.int64) + 1) << _THREAD


class Clocks:
    """What the warps of the running blocks know of one another. `first` is the first block's number."""

    def __init__(self, first: int, blocks: int, warps: int, released: Array, acquired: Array) -> None:
        self.first = first
        self.warps = warps
        self.time = np.zeros(blocks, np.int64)
        self.known = np.zeros((blocks, warps, warps), np.int32)
        self.released = released
        self.acquired = acquired

    def meet(self, block: int, warps: Array) -> None:
        """Warps of a block, counted within the running blocks, have synchronised."""
        self.time[block] += 1
        known = self.known[block]
        known[warps] = known[warps].max(axis=0)
        known[np.ix_(warps, warps)] = self.time[block]

    def meet_all(self, blocks: Array) -> None:
        """All warps of these blocks have synchronised."""
        self.time[blocks] += 1
        self.known[blocks] = self.time[blocks][:, None, None]

    def fence(self, blocks: Array) -> None:
        """Blocks have ordered their accesses before what other blocks see of them."""
        self.time[blocks] += 1
        self.released[self.first + blocks] = self.time[blocks]
        self.acquired[self.first + blocks] = True

    def unordered(self, before: Array, stamps: Array) -> Array:
        """For which pairs of stamps, one earlier access and one at this moment, is there no order?"""
        other, own = ((each >> _THREAD) - 1 >> 5 for each in (before, stamps))
        time = before & _TIME
        block, own_block = other // self.warps, own // self.warps
        index = np.where(block == own_block, own_block - self.first, 0)
        known = self.known[index, own % self.warps, other % self.warps] > time
        fenced = (time < self.released[block]) & self.acquired[own_block]
        result: Array = ~np.where(block == own_block, known, fenced)
        return result


class Shadow:
    """The last accesses to each cell of a memory. Cells are as small as the smallest access so far."""

    def __init__(self, nbytes: int, race: type[Race]) -> None:
        self.nbytes = nbytes
        self.race = race
        self.size = 16
        self.writes = np.zeros(-(-nbytes // 16), np.int64)
        self.reads = np.zeros(-(-nbytes // 16), np.int64)

    def read(self, offsets: Array, size: int, stamps: Array, clocks: Clocks, *, is_strong: bool) -> None:
        """Note reads of `size` bytes. Strong ones may meet atomic writes. Raises Meeting."""
        cells, stamps, parts = self._cells(offsets, size, stamps)
        written = self.writes[cells]
        if is_strong:
            written = np.where(written & _ATOMIC, 0, written)
        self._check(written, stamps, parts, clocks, "reads what thread {} has written")
        if is_strong:
            return
        seen = self.reads[cells]
        others = np.flatnonzero((seen >> _THREAD != stamps >> _THREAD) & (seen != 0))
        noted = stamps
        if len(others):
            several = others[clocks.unordered(seen[others], stamps[others])]
            noted = stamps.copy()
            noted[several] |= _SEVERAL
        self.reads[cells] = noted
        shared = self.reads[cells] >> _THREAD != noted >> _THREAD
        if shared.any():
            self.reads[cells[shared]] |= _SEVERAL

    def write(self, offsets: Array, size: int, stamps: Array, clocks: Clocks, *, is_atomic: bool) -> None:
        """Note writes. Atomic ones may meet one another. Raises Meeting, also of two lanes of this access."""
        cells, stamps, parts = self._cells(offsets, size, stamps)
        written = self.writes[cells]
        if is_atomic:
            written = np.where(written & _ATOMIC, 0, written)
        self._check(written, stamps, parts, clocks, "writes what thread {} has written")
        self._check(self.reads[cells], stamps, parts, clocks, "writes what thread {} has read")
        noted = stamps | _ATOMIC if is_atomic else stamps
        self.writes[cells] = noted
        if not is_atomic:
            stored = self.writes[cells]
            lost = np.flatnonzero(stored != noted)
            if len(lost):
                other = int(stored[lost[0]] >> _THREAD) - 1
                raise Meeting(DoubleStore, int(lost[0]) // parts, "stores to what thread {} stores to", other)

    def _cells(self, offsets: Array, size: int, stamps: Array) -> tuple[Array, Array, int]:
        """Which cells each access touches; the stamps, once for each; how many an access has."""
        if size < self.size:
            factor = self.size // size
            self.writes = np.repeat(self.writes, factor)
            self.reads = np.repeat(self.reads, factor)
            self.size = size
        parts = size // self.size
        first = offsets // self.size
        if parts == 1:
            return first, stamps, 1
        return (first[:, None] + np.arange(parts)).ravel(), np.repeat(stamps, parts), parts

    def _check(self, before: Array, stamps: Array, parts: int, clocks: Clocks, what: str) -> None:
        suspects = (before >> _THREAD != stamps >> _THREAD) & (before != 0) | (before & _SEVERAL != 0)
        met = np.flatnonzero(suspects)
        if not len(met):
            return
        bad = met[clocks.unordered(before[met], stamps[met])]
        if len(bad):
            raise Meeting(self.race, int(bad[0]) // parts, what, int(before[bad[0]] >> _THREAD) - 1)


class Meeting(Exception):
    """A race, before its lane and its threads have names."""

    def __init__(self, race: type[Race], index: int, what: str, other: int) -> None:
        super().__init__(what)
        self.race = race
        self.index = index
        self.what = what
        self.other = other
