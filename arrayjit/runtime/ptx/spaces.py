"""The memories that instructions reach: global, shared, local, arguments, and all by generic address.

`locate` checks the accesses of the active lanes, notes them, and says where the values lie.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import IntEnum

import numpy as np

from .faults import (
    BadAddress,
    Fault,
    GlobalRace,
    Misaligned,
    SharedRace,
    UnfinishedCopy,
    UninitialisedRead,
)
from .memory import FIRST_ADDRESS, POISON, Allocation, GlobalMemory
from .races import Clocks, Meeting, Shadow
from .threads import Piece, Space, Threads, Use
from .types import Array

__all__ = [
    "WINDOW",
    "WINDOWS",
    "ArgumentSpace",
    "GenericSpace",
    "GlobalSpace",
    "LocalSpace",
    "SharedSpace",
    "words",
]

WINDOW = 1 << 24
WINDOWS = {"shared": WINDOW, "local": 2 * WINDOW, "param": 3 * WINDOW}
"""Where the generic addresses of small memories begin. Global addresses are generic as they are."""


def words(padded: Array, nbytes: int) -> Array:
    """Memory as rows of `nbytes`, each of one or more equal words."""
    word = min(nbytes, 8)
    return padded.view(f"u{word}").reshape(-1, nbytes // word)


def _aligned(addresses: Array, nbytes: int, threads: Threads) -> None:
    wrong = addresses & np.uint64(nbytes - 1)
    if wrong.any():
        at = int(np.flatnonzero(wrong)[0])
        address = int(addresses[at])
        raise Misaligned(
            f"{nbytes} bytes at {address:#x}, which is no multiple of {nbytes}", lane=int(threads.numbers[at])
        )


def _race(met: Meeting, threads: Threads, which: slice | Array, where: str) -> Fault:
    block, thread = threads.shape.names(*met.thread(threads.clocks))
    other = f"{thread} of block {block}"
    lane = int(threads.numbers[which][met.index])
    return met.race(f"{met.what.format(other)}, and nothing orders the two: {where}", lane=lane)


def _note(shadow: Shadow, offsets: Array, nbytes: int, stamps: Array, clocks: Clocks, use: Use) -> None:
    if use.is_read:
        shadow.read(offsets, nbytes, stamps, clocks, is_strong=use is Use.STRONG_READ)
    else:
        shadow.write(offsets, nbytes, stamps, clocks, is_atomic=use is not Use.WRITE)


class GlobalSpace:
    """Global memory during one launch."""

    def __init__(self, memory: GlobalMemory) -> None:
        self.memory = memory
        self.shadows: dict[int, Shadow] = {}

    def locate(self, threads: Threads, addresses: Array, nbytes: int, use: Use) -> Iterator[Piece]:
        """Raises BadAddress, UseAfterFree, Misaligned, GlobalRace, DoubleStore."""
        low, high = int(addresses.min()), int(addresses.max())
        found = self.memory.find(low, high + nbytes)
        if found is not None:
            _aligned(addresses, nbytes, threads)
            yield self._piece(threads, found, addresses, nbytes, use, slice(None))
            return
        left = np.ones(len(addresses), bool)
        while left.any():
            at = int(np.flatnonzero(left)[0])
            address = int(addresses[at])
            found = self.memory.find(address, address + nbytes)
            if found is None:
                raise self.memory.refusal(address, nbytes, use.value, int(threads.numbers[at]))
            end = np.uint64(found.start + found.nbytes - nbytes)
            which = np.flatnonzero(left & (addresses >= np.uint64(found.start)) & (addresses <= end))
            left[which] = False
            _aligned(addresses, nbytes, threads)
            yield self._piece(threads, found, addresses[which], nbytes, use, which)

    def _piece(
        self,
        threads: Threads,
        found: Allocation,
        addresses: Array,
        nbytes: int,
        use: Use,
        which: slice | Array,
    ) -> Piece:
        offsets = (addresses - np.uint64(found.start)).astype(np.int64)
        lanes = threads.numbers[which]
        if found.is_constant:
            if not use.is_read:
                raise BadAddress(f"{found} is constant and cannot be {use.value}", lane=int(lanes[0]))
        else:
            shadow = self.shadows.get(found.start)
            if shadow is None:
                shadow = self.shadows[found.start] = Shadow(found.nbytes, GlobalRace)
            try:
                _note(shadow, offsets, nbytes, threads.stamps[lanes], threads.clocks, use)
            except Meeting as met:
                where = f"{nbytes} bytes at {int(addresses[met.index]):#x}, in {found}"
                raise _race(met, threads, which, where) from None
        return words(found.padded, nbytes), offsets // nbytes, which


class State(IntEnum):
    """What a byte of shared memory holds."""

    FRESH = 0
    WRITTEN = 1
    COPIED = 2
    NOTHING = 3


class SharedSpace:
    """The shared memory of the running blocks.

    The arrays of a block lie apart, so that an index beyond one of them meets nothing.
    """

    def __init__(self, blocks: int, arrays: Mapping[str, tuple[int, int]], nbytes: int) -> None:
        self.arrays = arrays
        self.nbytes = -(-nbytes // 32) * 32
        self.bytes = np.full(blocks * self.nbytes, POISON, np.uint8)
        states = np.full((blocks, self.nbytes), State.NOTHING, np.uint8)
        for start, size in arrays.values():
            states[:, start : start + size] = State.FRESH
        self.states = states.ravel()
        self.shadow = Shadow(blocks * self.nbytes, SharedRace)

    def locate(self, threads: Threads, addresses: Array, nbytes: int, use: Use) -> Iterator[Piece]:
        """Raises BadAddress, Misaligned, SharedRace, DoubleStore, UninitialisedRead, UnfinishedCopy."""
        offsets = self.offsets(threads, addresses, nbytes)
        rows = offsets // nbytes
        states = words(self.states, nbytes)
        held = states[rows]
        expected = np.frombuffer(bytes([State.WRITTEN]) * nbytes, held.dtype)
        if (held != expected).any():
            self._check(threads, addresses, held.view(np.uint8).reshape(len(rows), nbytes), use)
            if not use.is_read:
                states[rows] = expected
        self.note(threads, offsets, addresses, nbytes, use)
        yield words(self.bytes, nbytes), rows, slice(None)

    def offsets(self, threads: Threads, addresses: Array, nbytes: int) -> Array:
        """Of the lanes' addresses in the memory of all blocks."""
        over = addresses > np.uint64(max(self.nbytes - nbytes, 0))
        if over.any() or not self.nbytes:
            at = int(np.flatnonzero(over)[0]) if over.any() else 0
            raise self._outside(threads, int(addresses[at]), nbytes, at)
        _aligned(addresses, nbytes, threads)
        block = threads.block[threads.lanes]
        offsets: Array = block * self.nbytes + addresses.astype(np.int64)
        return offsets

    def note(self, threads: Threads, offsets: Array, addresses: Array, nbytes: int, use: Use) -> None:
        """Note accesses. Raises SharedRace, DoubleStore."""
        try:
            _note(self.shadow, offsets, nbytes, threads.stamps[threads.lanes], threads.clocks, use)
        except Meeting as met:
            where = f"{nbytes} bytes {self.place(int(addresses[met.index]))}"
            raise _race(met, threads, slice(None), where) from None

    def begin_copy(self, threads: Threads, offsets: Array, addresses: Array, nbytes: int) -> None:
        """An asynchronous copy to these places begins. Raises what a write there would."""
        states = words(self.states, nbytes)
        rows = offsets // nbytes
        self._check(threads, addresses, states[rows].view(np.uint8).reshape(len(rows), nbytes), Use.WRITE)
        self.note(threads, offsets, addresses, nbytes, Use.WRITE)
        states[rows] = np.frombuffer(bytes([State.COPIED]) * nbytes, states.dtype)
        words(self.bytes, nbytes)[rows] = np.frombuffer(bytes([POISON]) * nbytes, states.dtype)

    def end_copy(self, threads: Threads, offsets: Array, values: Array) -> None:
        """The active lanes' copies are there."""
        nbytes = values.shape[1] * values.dtype.itemsize
        rows = offsets // nbytes
        words(self.bytes, nbytes)[rows] = values
        words(self.states, nbytes)[rows] = np.frombuffer(bytes([State.WRITTEN]) * nbytes, values.dtype)
        self.note(threads, offsets, (offsets % self.nbytes).astype(np.uint64), nbytes, Use.WRITE)

    def _check(self, threads: Threads, addresses: Array, held: Array, use: Use) -> None:
        """Why not all bytes of the accesses have been written, if that matters."""
        nbytes = held.shape[1]
        for state in (State.NOTHING, State.COPIED, State.FRESH):
            bad = np.flatnonzero((held == state).any(axis=1))
            if not len(bad) or (state is State.FRESH and use in (Use.WRITE, Use.STRONG_WRITE)):
                continue
            at = int(bad[0])
            lane, address = int(threads.numbers[at]), int(addresses[at])
            if state is State.NOTHING:
                raise self._outside(threads, address, nbytes, at)
            what = f"{nbytes} bytes {self.place(address)} are {use.value}"
            if state is State.COPIED:
                raise UnfinishedCopy(f"{what} before the asynchronous copy to them is waited for", lane=lane)
            raise UninitialisedRead(f"{what}, which no thread has written", lane=lane)

    def _outside(self, threads: Threads, address: int, nbytes: int, at: int) -> BadAddress:
        lane = int(threads.numbers[at])
        return BadAddress(f"{nbytes} bytes {self.place(address)} lie outside the shared arrays", lane=lane)

    def place(self, address: int) -> str:
        """An address in words."""
        for name, (start, size) in reversed(list(self.arrays.items())):
            if start <= address:
                return f"at byte {address - start} of the shared array {name!r} of {size} bytes"
        return f"at shared address {address:#x}"


class LocalSpace:
    """The local arrays of each thread."""

    def __init__(self, lanes: int, nbytes: int) -> None:
        self.nbytes = -(-nbytes // 32) * 32
        self.bytes = np.full(lanes * self.nbytes, POISON, np.uint8)

    def locate(self, threads: Threads, addresses: Array, nbytes: int, use: Use) -> Iterator[Piece]:
        """Raises BadAddress, Misaligned."""
        over = addresses > np.uint64(max(self.nbytes - nbytes, 0))
        if over.any() or not self.nbytes:
            at = int(np.flatnonzero(over)[0]) if over.any() else 0
            what = f"{nbytes} bytes at local address {int(addresses[at]):#x} of {self.nbytes}"
            raise BadAddress(f"{what} cannot be {use.value}", lane=int(threads.numbers[at]))
        _aligned(addresses, nbytes, threads)
        rows = (threads.numbers * self.nbytes + addresses.astype(np.int64)) // nbytes
        yield words(self.bytes, nbytes), rows, slice(None)


class ArgumentSpace:
    """The block of a launch's arguments, which all threads read."""

    def __init__(self, arguments: bytes) -> None:
        self.nbytes = len(arguments)
        self.bytes = np.zeros(-(-max(len(arguments), 1) // 32) * 32, np.uint8)
        self.bytes[: len(arguments)] = np.frombuffer(arguments, np.uint8)

    def locate(self, threads: Threads, addresses: Array, nbytes: int, use: Use) -> Iterator[Piece]:
        """Raises BadAddress, Misaligned."""
        over = addresses + np.uint64(nbytes) > np.uint64(self.nbytes)
        if over.any() or not use.is_read:
            at = int(np.flatnonzero(over)[0]) if over.any() else 0
            what = f"{nbytes} bytes at {int(addresses[at]):#x} of {self.nbytes} bytes of arguments"
            raise BadAddress(f"{what} cannot be {use.value}", lane=int(threads.numbers[at]))
        _aligned(addresses, nbytes, threads)
        yield words(self.bytes, nbytes), addresses.astype(np.int64) // nbytes, slice(None)


class GenericSpace:
    """All memories, by addresses that tell which."""

    def __init__(self, spaces: Mapping[str, Space]) -> None:
        self.spaces = spaces

    def locate(self, threads: Threads, addresses: Array, nbytes: int, use: Use) -> Iterable[Piece]:
        """Raises what the memories raise."""
        if int(addresses.min()) >= FIRST_ADDRESS:
            return self.spaces["global"].locate(threads, addresses, nbytes, use)
        return self._split(threads, addresses, nbytes, use)

    def _split(self, threads: Threads, addresses: Array, nbytes: int, use: Use) -> Iterator[Piece]:
        window = np.minimum(addresses // np.uint64(WINDOW), np.uint64(4))
        lanes, numbers = threads.lanes, threads.numbers
        for number in np.unique(window):
            name = dict(enumerate(WINDOWS, 1)).get(int(number), "global")
            which = np.flatnonzero(window == number)
            threads.select(numbers[which])
            start = np.uint64(WINDOWS.get(name, 0))
            pieces = list(self.spaces[name].locate(threads, addresses[which] - start, nbytes, use))
            threads.lanes, threads.count = lanes, len(numbers)
            for memory, rows, part in pieces:
                yield memory, rows, which[part]
