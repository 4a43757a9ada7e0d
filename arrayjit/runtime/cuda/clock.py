"""How long work takes on the GPU itself, by events around it, whatever the host does meanwhile."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Protocol

from ...frozen import frozen
from .api import Api, Dims

__all__ = ["LaunchClock", "TimedLaunch", "seconds_of"]

_PENDING = 512
"""Launches of which the events are kept before the first are waited for."""


class Timed(Protocol):
    """What a clock needs of a lane."""

    api: Api
    stream: int

    def take_event(self) -> int: ...

    def give_event(self, event: int) -> None: ...


@frozen
class TimedLaunch:
    """A launch: the place of its kernel in the plan, its grid of blocks, and what it took."""

    number: int
    grid: Dims
    seconds: float


class LaunchClock:
    """Measures the launches of a lane: there is an event before and one after each. A launch for which the
    GPU waits seems longer, so a lane should have other work before those that are measured."""

    def __init__(self, lane: Timed) -> None:
        self._lane = lane
        self._pending: deque[tuple[int, Dims, int, int]] = deque()
        self._launches: list[TimedLaunch] = []
        self._started = (0, (0, 0, 0), 0)

    def start(self, number: int, grid: Dims) -> None:
        """A launch follows."""
        self._started = (number, grid, _recorded(self._lane))

    def stop(self) -> None:
        """The launch has been submitted."""
        self._pending.append((*self._started, _recorded(self._lane)))
        while len(self._pending) > _PENDING:
            self._take()

    def launches(self) -> tuple[TimedLaunch, ...]:
        """All launches so far, in order. Waits for them."""
        while self._pending:
            self._take()
        return tuple(self._launches)

    def _take(self) -> None:
        number, grid, start, end = self._pending.popleft()
        self._launches.append(TimedLaunch(number, grid, _between(self._lane, start, end)))


def seconds_of(lane: Timed, work: Callable[[], object]) -> float:
    """What takes the GPU so long that `work` submits to the lane. Waits for it."""
    start = _recorded(lane)
    work()
    return _between(lane, start, _recorded(lane))


def _recorded(lane: Timed) -> int:
    event = lane.take_event()
    lane.api.record(event, lane.stream)
    return event


def _between(lane: Timed, start: int, end: int) -> float:
    """The seconds between two events, which are given back."""
    lane.api.sync_event(end)
    seconds = 1e-3 * lane.api.elapsed(start, end)
    lane.give_event(start)
    lane.give_event(end)
    return seconds
