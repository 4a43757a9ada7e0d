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

__all__ = ["WARP", "Clocks", "Meeting", "Shadow", "first_stamps"]

WARP = 32
_TIME_BITS = 20
_TIME = (1 << _TIME_BITS) - 1
_ATOMIC = 1 << _TIME_BITS
"""Of writes: an atomic operation."""
_SEVERAL = 2 << _TIME_BITS
"""Of reads and atomic operations: other threads have done so as well, and nothing orders them."""
_THREAD = _TIME_BITS + 2
"""A stamp is the time, the flags, and above them the thread: its number in the block, the block plus one."""


def first_stamps(first: int, blocks: int, warps: int) -> Array:
    """The stamps of the threads of some blocks at time 0, whole warps counted."""
    thread = np.arange(warps * WARP)
    block = np.arange(first + 1, first + 1 + blocks) << _block_bit(warps)
    stamps: Array = (block[:, None] | thread << _THREAD).ravel()
    return stamps


def _block_bit(warps: int) -> int:
    return _THREAD + (warps * WARP - 1).bit_length()


class Clocks:
    """What the warps of the running blocks know of one another. `first` is the first block's number."""

    def __init__(self, first: int, blocks: int, warps: int, released: Array, acquired: Array) -> None:
        self.first = first
        self.block_bit = _block_bit(warps)
        self.time = np.zeros(blocks, np.int64)
        self.known = np.zeros((blocks, warps, warps), np.int32)
        self.all_met = np.zeros(blocks, np.int64)
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
        self.all_met[blocks] = self.time[blocks]

    def fence(self, blocks: Array) -> None:
        """Blocks have ordered their accesses before what other blocks see of them."""
        self.time[blocks] += 1
        self.released[self.first + blocks] = self.time[blocks]
        self.acquired[self.first + blocks] = True

    def block(self, stamps: Array) -> Array:
        """The numbers of the stamps' blocks within the launch."""
        numbers: Array = (stamps >> self.block_bit) - 1
        return numbers

    def warp(self, stamps: Array) -> Array:
        """The numbers of the stamps' warps within their blocks."""
        mask = (1 << self.block_bit - _THREAD - 5) - 1
        numbers: Array = stamps >> _THREAD + 5 & mask
        return numbers

    def unordered(self, before: Array, stamps: Array) -> Array:
        """For which pairs of stamps, one earlier access and one at this moment, is there no order?"""
        time = before & _TIME
        block, own = self.block(before), self.block(stamps)
        result: Array = (block != own) | (time >= self.all_met[own - self.first])
        at = np.flatnonzero(result)
        if not len(at):
            return result
        before, stamps, time, block, own = (each[at] for each in (before, stamps, time, block, own))
        is_same = block == own
        place = np.where(is_same, own - self.first, 0)
        known = self.known[place, self.warp(stamps), self.warp(before)] > time
        fenced = (time < self.released[block]) & self.acquired[own]
        result[at] = ~np.where(is_same, known, fenced)
        return result


class Shadow:
    """The last accesses to each cell of a memory. Cells are as small as the smallest access so far."""

    def __init__(self, nbytes: int, race: type[Race]) -> None:
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
        self._check(written, stamps, parts, clocks, "reads what thread {} has written", self.race)
        if is_strong:
            return
        noted = _joined(self.reads[cells], stamps, clocks)
        self.reads[cells] = noted
        lost = _differ(self.reads[cells], noted)
        if lost.any():
            self.reads[cells[lost]] |= _SEVERAL

    def write(self, offsets: Array, size: int, stamps: Array, clocks: Clocks, *, is_atomic: bool) -> None:
        """Note writes. Atomic ones may meet one another. Raises Meeting, also of two lanes of this access."""
        cells, stamps, parts = self._cells(offsets, size, stamps)
        written = self.writes[cells]
        if is_atomic:
            written = np.where(written & _ATOMIC, 0, written)
        self._check(written, stamps, parts, clocks, "writes what thread {} has written", DoubleStore)
        self._check(self.reads[cells], stamps, parts, clocks, "writes what thread {} has read", self.race)
        noted = _joined(self.writes[cells], stamps, clocks) | _ATOMIC if is_atomic else stamps
        self.writes[cells] = noted
        lost = np.flatnonzero(_differ(self.writes[cells], noted))
        if len(lost) and is_atomic:
            self.writes[cells[lost]] |= _SEVERAL
        elif len(lost):
            other = int(self.writes[cells[lost[0]]])
            raise Meeting(
                DoubleStore, int(lost[0]) // parts, "writes what thread {} writes at the same time", other
            )

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

    def _check(
        self, before: Array, stamps: Array, parts: int, clocks: Clocks, what: str, race: type[Race]
    ) -> None:
        suspect = (_differ(before, stamps) & (before != 0)) | (before & _SEVERAL != 0)
        if not suspect.any():
            return
        met = np.flatnonzero(suspect)
        bad = met[clocks.unordered(before[met], stamps[met])]
        if len(bad):
            raise Meeting(race, int(bad[0]) // parts, what, int(before[bad[0]]))


def _joined(before: Array, stamps: Array, clocks: Clocks) -> Array:
    """Stamps of accesses that may meet, marked where others have come before and nothing orders them."""
    met = np.flatnonzero((_differ(before, stamps) | (before & _SEVERAL != 0)) & (before != 0))
    if not len(met):
        return stamps
    before, own = before[met], stamps[met]
    several = (before ^ own) & _TIME == 0
    later = np.flatnonzero(~several)
    if len(later):
        several[later] = clocks.unordered(before[later], own[later])
    noted: Array = stamps.copy()
    noted[met[several]] |= _SEVERAL
    return noted


def _differ(one: Array, other: Array) -> Array:
    """Are they stamps of different threads?"""
    result: Array = (one ^ other) >> _THREAD != 0
    return result


class Meeting(Exception):
    """A race, before its lane and its threads have names. `other` is the other thread's stamp."""

    def __init__(self, race: type[Race], index: int, what: str, other: int) -> None:
        super().__init__(what)
        self.race = race
        self.index = index
        self.what = what
        self.other = other

    def thread(self, clocks: Clocks) -> tuple[int, int]:
        """Block and thread of the other one, by number."""
        field = self.other >> _THREAD
        bits = clocks.block_bit - _THREAD
        return (field >> bits) - 1, field & (1 << bits) - 1
