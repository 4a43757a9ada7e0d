"""Barriers of blocks: who waits where, and which are complete."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NoReturn

import numpy as np

from ...frozen import frozen_by_identity
from .code import Barrier
from .faults import DivergentBarrier
from .races import WARP
from .threads import Threads
from .types import Array

__all__ = ["Barriers"]

_NUMBERS = 16
"""Barriers of a block."""


@frozen_by_identity
class _Arrival:
    """Lanes at a barrier: its number, and how many threads it waits for, 0 for all of a block."""

    barrier: Barrier
    position: int
    lanes: Array
    numbers: Array
    counts: Array
    votes: Array


class Barriers:
    """Of the running blocks."""

    def __init__(self, threads: Threads) -> None:
        self.threads = threads
        self.arrivals: list[_Arrival] = []

    def arrive(self, barrier: Barrier, position: int, lanes: Array) -> Array:
        """Lanes reach a barrier; the ones that go on at once are returned."""
        threads = self.threads
        if not len(lanes):
            return lanes
        threads.select(lanes)
        numbers = np.broadcast_to(barrier.number(threads), len(lanes))
        counts = np.zeros(1, np.uint32) if barrier.threads is None else barrier.threads(threads)
        votes = np.ones(1, bool) if barrier.voted is None else barrier.voted(threads)
        if (numbers >= _NUMBERS).any() or (counts % WARP).any():
            raise DivergentBarrier(f"a barrier's number is below {_NUMBERS}, its count a multiple of {WARP}")
        self.arrivals.append(
            _Arrival(
                barrier,
                position,
                lanes,
                numbers.astype(np.int64),
                np.broadcast_to(counts, len(lanes)).astype(np.int64),
                np.broadcast_to(votes, len(lanes)),
            )
        )
        return lanes[:0] if barrier.waits else lanes

    def release(self) -> Iterator[tuple[int, Array]]:
        """The lanes of complete barriers with the positions at which they go on."""
        waiting, self.arrivals = self.arrivals, []
        if not waiting:
            return
        lanes = np.concatenate([each.lanes for each in waiting])
        keys = self.threads.block[lanes] * _NUMBERS + np.concatenate([each.numbers for each in waiting])
        counts = np.concatenate([each.counts for each in waiting])
        complete = self._complete(waiting, lanes, keys, counts)
        self._order(lanes, keys, complete, bool(counts.any()))
        start = 0
        for each in waiting:
            done = complete[keys[start : start + len(each.lanes)]]
            self._vote(each, waiting, done)
            start += len(each.lanes)
            if each.barrier.waits and done.any():
                yield each.position + 1, each.lanes[done]
            if not done.all():
                left = (part[~done] for part in (each.lanes, each.numbers, each.counts, each.votes))
                self.arrivals.append(_Arrival(each.barrier, each.position, *left))

    def _complete(self, waiting: list[_Arrival], lanes: Array, keys: Array, counts: Array) -> Array:
        """By key, whether enough threads have come. Raises DivergentBarrier for too many or unequal ones."""
        threads = self.threads
        size = threads.blocks * _NUMBERS
        arrived = np.bincount(keys, minlength=size)
        wanted = np.full(size, threads.shape.threads)
        if counts.any():
            warps = np.unique(keys * threads.size + lanes // WARP) // threads.size
            arrived = np.where(
                np.isin(np.arange(size), keys[counts > 0]), np.bincount(warps, minlength=size) * WARP, arrived
            )
            wanted[keys[counts > 0]] = counts[counts > 0]
        positions = np.concatenate([np.full(len(each.lanes), each.position) for each in waiting])
        low, high = np.full(size, np.iinfo(np.int64).max), np.full(size, -1)
        whole = counts == 0
        np.minimum.at(low, keys[whole], positions[whole])
        np.maximum.at(high, keys[whole], positions[whole])
        mixed = np.flatnonzero((high >= 0) & (low != high))
        if len(mixed):
            lane = int(lanes[keys == mixed[0]][0])
            line = {each.position: each.barrier.line for each in waiting}
            lines = f"lines {line[int(low[mixed[0]])]} and {line[int(high[mixed[0]])]}"
            raise DivergentBarrier(f"threads of one block meet at different barriers, {lines}", lane=lane)
        if (arrived > wanted).any():
            lane = int(lanes[keys == np.flatnonzero(arrived > wanted)[0]][0])
            raise DivergentBarrier("more threads come to a barrier than it counts", lane=lane)
        done: Array = (arrived == wanted) & (arrived > 0)
        return done

    def _order(self, lanes: Array, keys: Array, complete: Array, has_counts: bool) -> None:
        """Tell the clocks who has met."""
        threads = self.threads
        done = np.flatnonzero(complete)
        if not len(done):
            return
        if has_counts:
            for key in done:
                warps = np.unique(lanes[keys == key] // WARP) % threads.shape.warps
                threads.clocks.meet(int(key) // _NUMBERS, warps)
        else:
            threads.clocks.meet_all(np.unique(done // _NUMBERS))
        threads.synchronised()

    def _vote(self, own: _Arrival, waiting: list[_Arrival], done: Array) -> None:
        """What `bar.red` gives to the lanes of a complete barrier."""
        if own.barrier.store is None or not done.any():
            return
        threads = self.threads
        size = threads.blocks * _NUMBERS
        yes, all_ = np.zeros(size, np.int64), np.zeros(size, np.int64)
        for each in waiting:
            keys = threads.block[each.lanes] * _NUMBERS + each.numbers
            yes += np.bincount(keys, each.votes, minlength=size).astype(np.int64)
            all_ += np.bincount(keys, minlength=size)
        keys = (threads.block[own.lanes] * _NUMBERS + own.numbers)[done]
        threads.select(own.lanes[done])
        match own.barrier.vote:
            case "popc":
                own.barrier.store(threads, yes[keys].astype(np.uint32))
            case "and":
                own.barrier.store(threads, yes[keys] == all_[keys])
            case _:
                own.barrier.store(threads, yes[keys] > 0)

    def refuse(self) -> NoReturn:
        """Nothing else runs and no barrier is complete."""
        lanes = self.arrivals[0].lanes
        block = int(self.threads.block[lanes[0]])
        here = sum(int((self.threads.block[each.lanes] == block).sum()) for each in self.arrivals)
        all_ = self.threads.shape.threads
        what = f"{here} of the block's {all_} threads wait at a barrier that the others do not reach"
        raise DivergentBarrier(what, lane=int(lanes[0]))
