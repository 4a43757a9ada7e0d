"""The device layer on one side, the model on the other: each operation is done on both and compared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Union

import numpy as np
import sequential
from lazy import Explorer, LazyQueue
from races import Clock, joined
from schedule_programs import PLANNED, Program

from arrayjit.errors import UserError
from arrayjit.runtime.device import Device
from arrayjit.runtime.stream import Event, Events, Stream

__all__ = ["Copy", "Mark", "Pair", "Place", "Sides", "Wrong"]


class Wrong(AssertionError):
    """The device layer did something else than the model."""


@dataclass(frozen=True, eq=False)
class Place:
    """A stream of a device, the model's, and the number that `copies` know it by."""

    device: Device
    real: Stream
    model: sequential.Stream
    number: int


@dataclass(frozen=True, eq=False)
class Pair:
    """A context or a routine of the device layer, the model's, and the stream that they work on. `program` is
    that of a routine, if it is no transfer."""

    real: Any
    model: Any
    place: Place
    program: Union[Program, None] = None


@dataclass
class Copy:
    """A host array that work on a stream uses: a source, or a result and what it must be."""

    array: np.ndarray
    expected: Union[np.ndarray, None] = None
    is_over: bool = False


@dataclass(frozen=True)
class Mark:
    """An event; by stream, how many copies are over with it; and, by queue, how many tasks."""

    event: Union[Event, Events]
    places: tuple[Place, ...]
    copies: Clock
    tasks: Clock


class Sides:
    """What was done so far. With an `explorer`, host arrays and explicit waits are checked for races too."""

    def __init__(self, explorer: Union[Explorer, None]) -> None:
        self.places: list[Place] = []
        self.log: list[str] = []
        self._explorer = explorer
        self._copies: dict[Place, list[Copy]] = {}
        self._awaited: dict[Place, Clock] = {}
        # After an error: the streams that may drop work, those of them because they were told to wait for
        # another, those that have to raise, and the arrays that dropped work may have been about.
        self._doubtful: set[Place] = set()
        self._leaning: set[Place] = set()
        self._owing: set[Place] = set()
        self._unsure: list[np.ndarray] = []

    def add(self, device: Device, stream: Stream, model: sequential.Stream) -> Place:
        place = Place(device, stream, model, len(self.places))
        self.places.append(place)
        self._copies[place], self._awaited[place] = [], {}
        return place

    def do(
        self,
        name: str,
        place: Place,
        real: Callable[[], Any],
        model: Callable[[], Any] = lambda: None,
        *,
        copy: Union[Copy, None] = None,
        fails: bool = False,
    ) -> Union[Pair, None]:
        """The results of both; None when both refuse, or when an earlier task's exception is raised, and
        nothing was done. `fails` says that the work submitted will raise."""
        self.log.append(f"{name} on stream {place.number}")
        refused: Union[type, None] = None
        try:
            found = real()
        except (UserError, RuntimeError) as error:
            if PLANNED in str(error):
                self._raised(place)
                return None
            refused = type(error)
        try:
            expected = model()
        except UserError as error:
            if refused is not type(error):
                raise Wrong(f"{name}: {refused}, should be {type(error)}") from error
            return None
        if refused is not None:
            raise Wrong(f"{name} was refused: {refused}")
        if isinstance(expected, bool) and found is not expected:
            raise Wrong(f"{name} says {found}")
        if copy is not None and found:
            self._copies[place].append(copy)
        if fails:
            self._owing.add(place)
            self._doubtful.add(place)
        self._follow(place)
        return Pair(found, expected, place)

    def finalize(self, context: Pair) -> None:
        doubtful = set(self._doubtful)
        if self.do("finalize", context.place, context.real.finalize, context.model.finalize) is None:
            # It raised what was to be raised on any of the streams that use the context's memory.
            self._owing.clear()
            self._doubtful = doubtful
            context.model.finalize()

    def record(self, places: tuple[Place, ...], real: Callable[[], Any]) -> Union[Mark, None]:
        done = self.do("record", places[0], real)
        if done is None:
            return None
        tasks = joined(*(_queue(place).point() for place in places)) if self._explorer else {}
        return Mark(done.real, places, self._copied(places), tasks)

    def wait(self, place: Place, mark: Mark) -> None:
        """Make work on a stream wait for an event."""
        self.do("wait", place, lambda: place.real.wait_for(mark.event))
        self._awaited[place] = joined(self._awaited[place], mark.copies)
        if self._doubtful.intersection(mark.places):
            self._doubtful.add(place)
            self._leaning.add(place)
        if self._explorer is not None:
            _queue(place).awaited = joined(_queue(place).awaited, mark.tasks)

    def sync(self, mark: Mark) -> None:
        if self.do("sync", mark.places[0], mark.event.sync) is not None:
            self._reached(mark)

    def poll(self, mark: Mark) -> None:
        if mark.event.is_done():
            self._reached(mark)

    def await_(self, place: Place) -> bool:
        """Wait for all work of a stream; whether nothing was raised."""
        if self.do("await", place, place.real.await_) is None:
            return False
        if place in self._owing:
            raise Wrong(f"stream {place.number} never raised what a task raised")
        self._leaning.discard(place)
        self._check(self._copied((place,)))
        return True

    def recover(self) -> None:
        """Wait for all work, until nothing is raised any more; then everything works again."""
        for _ in range(len(self.places) + 1):
            if all([self.await_(place) for place in self.places]):
                break
        else:
            raise Wrong("streams go on raising")
        for doubts in (self._doubtful, self._leaning, self._unsure):
            doubts.clear()

    def _raised(self, place: Place) -> None:
        """All that was submitted to the stream is over. What it was told to wait for, it still waits for."""
        self._owing.discard(place)
        if place not in self._leaning:
            self._doubtful.discard(place)

    def _follow(self, place: Place) -> None:
        """Work that a failed task may have stopped leaves its results unknown, and stops others."""
        used = [*place.model.reads, *place.model.writes]
        if place in self._doubtful or any(one is other for one in used for other in self._unsure):
            self._doubtful.add(place)
            self._unsure.extend(used)
            for array in place.model.writes:
                array[:] = np.nan
        place.model.reads.clear()
        place.model.writes.clear()

    def _copied(self, places: tuple[Place, ...]) -> Clock:
        """How many copies are over with all the work of these streams."""
        return joined(
            {place.number: len(self._copies[place]) for place in places},
            *(self._awaited[place] for place in places),
        )

    def _reached(self, mark: Mark) -> None:
        if self._explorer is not None and not self._explorer.knows(mark.tasks):
            raise Wrong("an event is done before what it stands for")
        self._check(mark.copies)

    def _check(self, copies: Clock) -> None:
        """These are over: results are there, and sources may change."""
        for number, count in copies.items():
            for copy in self._copies[self.places[number]][:count]:
                if not copy.is_over:
                    copy.is_over = True
                    self._settle(copy)

    def _settle(self, copy: Copy) -> None:
        if self._explorer is not None:
            self._explorer.touch_host(copy.array, copy.expected is None)
        if copy.expected is None:
            copy.array[:] = np.nan
            return
        known = ~np.isnan(copy.expected)
        if not np.array_equal(copy.array[known], copy.expected[known]):
            raise Wrong(f"{copy.array} should be {copy.expected}")


def _queue(place: Place) -> LazyQueue:
    queue = place.real.queue
    assert isinstance(queue, LazyQueue)
    return queue
