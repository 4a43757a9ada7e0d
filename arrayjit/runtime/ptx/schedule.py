"""Which threads run when: the group at the lowest position runs until it branches; groups that meet merge.

Threads that wait, at a barrier or for the rest of their warp, stand aside; when no others are left, what is
complete goes on, and what is not is a fault.
"""

from __future__ import annotations

import numpy as np

from .barriers import Barriers
from .code import Barrier, Branch, Code, Collective, Exit, Fall, Segment, Switch
from .copies import unfinished
from .faults import BadAddress, Fault, InactiveLane, Place, Unending
from .races import WARP
from .site import Reader
from .threads import Threads
from .types import Array

__all__ = ["run"]


def run(code: Code, threads: Threads, budget: int) -> None:
    """Run the threads to their ends. Raises a Fault that says where and which thread."""
    _Schedule(code, threads, budget).run()


class _Schedule:
    def __init__(self, code: Code, threads: Threads, budget: int) -> None:
        self.code = code
        self.threads = threads
        self.budget = budget
        self.groups: dict[int, Array] = {0: np.flatnonzero(threads.live)}
        self.parked: dict[int, tuple[Array, Collective]] = {}
        """Parts of warps that wait for the other lanes of an operation, by its position."""
        self.barriers = Barriers(threads)
        self.position = 0

    def run(self) -> None:
        threads = self.threads
        try:
            while self.groups or self.released():
                leader = min(self.groups)
                lanes = self.groups.pop(leader)
                segment = self.code.segments[leader]
                threads.select(lanes)
                for position, action in segment.steps:
                    self.position = position
                    action(threads)
                self.position = segment.position
                threads.steps += len(segment.steps) + 1
                if threads.steps > self.budget:
                    raise Unending(f"it does not end within {self.budget} steps", lane=int(lanes[0]))
                self.leave(segment, lanes)
            unfinished(threads)
        except Fault as fault:
            place = self.code.place(self.position)
            raise fault.located(_of_thread(place, threads, fault.lane)) from fault
        finally:
            threads.select(threads.every)

    def send(self, position: int, lanes: Array) -> None:
        """Lanes go on at a position, with those that are there."""
        if len(lanes):
            there = self.groups.get(position)
            self.groups[position] = lanes if there is None else np.sort(np.concatenate([there, lanes]))

    def leave(self, segment: Segment, lanes: Array) -> None:
        """What becomes of lanes at the end of a segment."""
        after = segment.position + 1
        match segment.end:
            case Fall():
                self.send(after, lanes)
            case Branch(target, predicate):
                taken, left = self.split(predicate, lanes)
                self.send(target, taken)
                self.send(after, left)
            case Switch(targets, index):
                chosen = np.broadcast_to(index(self.threads), len(lanes))
                for number, target in enumerate(targets):
                    self.send(target, lanes[chosen == number])
                if (chosen >= len(targets)).any():
                    lane = int(lanes[chosen >= len(targets)][0])
                    raise BadAddress(
                        f"the index is not below {len(targets)}, the length of the table", lane=lane
                    )
            case Exit(predicate):
                taken, left = self.split(predicate, lanes)
                self.threads.live[taken] = False
                self.send(after, left)
            case Barrier() as barrier:
                taken, left = self.split(barrier.predicate, lanes)
                self.send(after, left)
                self.send(after, self.barriers.arrive(barrier, segment.position, taken))
            case Collective() as together:
                taken, left = self.split(together.predicate, lanes)
                self.send(after, left)
                self.gather(segment.position, together, taken)

    def split(self, predicate: Reader | None, lanes: Array) -> tuple[Array, Array]:
        """The lanes for which a predicate holds, and the others."""
        if predicate is None:
            return lanes, lanes[:0]
        holds = predicate(self.threads)
        return lanes[holds], lanes[~holds]

    def gather(self, position: int, together: Collective, lanes: Array) -> None:
        """Warps whose lanes are all here do their operation; other lanes wait."""
        if not len(lanes):
            return
        if position in self.parked:
            lanes = np.sort(np.concatenate([self.parked.pop(position)[0], lanes]))
        complete = self.complete(together, lanes)
        if not complete.all():
            self.parked[position] = lanes[~complete], together
            lanes = lanes[complete]
        if len(lanes):
            self.threads.select(lanes)
            together.action(self.threads)
            self.send(position + 1, lanes)

    def complete(self, together: Collective, lanes: Array) -> Array:
        """For which lanes are all living lanes that they name here?"""
        threads = self.threads
        if len(lanes) == threads.size:
            return np.ones(len(lanes), bool)
        here = np.zeros(threads.size, bool)
        here[lanes] = True
        missing = threads.live & ~here
        bits = np.where(missing, np.uint64(1) << (threads.every % WARP).astype(np.uint64), np.uint64(0))
        absent = np.bitwise_or.reduce(bits.reshape(-1, WARP), axis=1)[lanes // WARP]
        threads.select(lanes)
        members = together.members(threads) if together.members else np.full(1, 0xFFFF_FFFF, np.uint32)
        whole = absent & members.astype(np.uint64) == 0
        incomplete = np.unique(lanes[~whole] // WARP)
        return ~np.isin(lanes // WARP, incomplete) if len(incomplete) else np.ones(len(lanes), bool)

    def released(self) -> bool:
        """Nothing runs: is there anything that may go on?"""
        for position, (lanes, together) in list(self.parked.items()):
            del self.parked[position]
            self.position = position
            self.gather(position, together, lanes)
        if self.groups:
            return True
        for position, lanes in self.barriers.release():
            self.send(position, lanes)
        if self.groups:
            return True
        if self.parked:
            self.position = min(self.parked)
            lane = int(self.parked[self.position][0][0])
            raise InactiveLane("not all lanes that it names come to it: one waits elsewhere", lane=lane)
        if self.barriers.arrivals:
            self.position = self.barriers.arrivals[0].position
            self.barriers.refuse()
        return False


def _of_thread(place: Place, threads: Threads, lane: int | None) -> Place:
    if lane is None:
        return place
    block, thread = threads.shape.names(
        threads.first + lane // threads.block_lanes, lane % threads.block_lanes
    )
    return Place(place.kernel, place.line, place.text, block, thread)
