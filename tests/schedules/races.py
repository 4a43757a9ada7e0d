"""Which accesses to memory are ordered, by what the queues were told and nothing else."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field

__all__ = ["HOST", "Actor", "Clock", "Races", "joined"]

Clock = Mapping[int, int]
"""By queue, how many of its tasks are over; the host is queue 0, and its steps are its tasks."""

HOST = 0


def joined(*clocks: Clock) -> Clock:
    """What is over when all that these say is over."""
    total: dict[int, int] = {}
    for clock in clocks:
        for queue, number in clock.items():
            if number > total.get(queue, 0):
                total[queue] = number
    return total


@dataclass(frozen=True, slots=True)
class Actor:
    """A task, or a step of the host: number `number` of a queue; it starts when `clock` is reached."""

    queue: int
    number: int
    clock: Clock
    name: str

    def precedes(self, other: Actor) -> bool:
        if self.queue == other.queue:
            return self.number <= other.number
        return other.clock.get(self.queue, 0) >= self.number


@dataclass(frozen=True, slots=True)
class _Access:
    start: int
    end: int
    is_write: bool
    actor: Actor

    def conflicts(self, later: _Access) -> bool:
        overlap = self.start < later.end and later.start < self.end
        return overlap and (self.is_write or later.is_write) and not self.actor.precedes(later.actor)

    def is_covered(self, later: _Access) -> bool:
        """Whether whoever is ordered after the later access is ordered after this one too."""
        inside = later.start <= self.start and self.end <= later.end
        return inside and (later.is_write or not self.is_write) and self.actor.precedes(later.actor)


@dataclass
class Races:
    """The races found so far, one line each, with both names."""

    found: list[str] = field(default_factory=list)
    _accesses: dict[Hashable, list[_Access]] = field(default_factory=dict)

    def touch(self, memory: Hashable, start: int, end: int, is_write: bool, actor: Actor) -> None:
        """The actor accesses these bytes, after all that touched them before."""
        access = _Access(start, end, is_write, actor)
        earlier = self._accesses.get(memory, [])
        for other in earlier:
            if other.conflicts(access):
                did = f"{other.actor.name} {_verb(other.is_write)}"
                self.found.append(f"{actor.name} {_verb(is_write)} what {did}, unordered")
        self._accesses[memory] = [other for other in earlier if not other.is_covered(access)] + [access]

    def promise(self, actor: Actor, awaited: Clock) -> None:
        """The actor was to start after what the program explicitly made it wait for."""
        for queue, number in awaited.items():
            if queue != actor.queue and actor.clock.get(queue, 0) < number:
                self.found.append(
                    f"{actor.name} may start before task {number} of queue {queue}, an explicit wait"
                )


def _verb(is_write: bool) -> str:
    return "writes" if is_write else "reads"
