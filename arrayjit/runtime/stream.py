"""Buffers, streams and events: in which order work is done, and what makes it wait.

Every task is submitted with the buffers that it reads and those that it writes. It starts after the tasks
of its own stream, and of other streams after the last writer of what it touches and, for what it writes,
after the readers since: a program without explicit events is never wrong.

A wait is left out where it is implied. Each stream has a clock: for every other stream, how many of its
tasks are known to be over when its last task starts. An event carries its stream's clock, and a wait takes
over the clock of what is waited for (C. J. Fidge, "Timestamps in message-passing systems that preserve the
partial ordering", 1988). The queue is told of waits right before a task, so that none of them is in vain.
"""

from __future__ import annotations

import weakref
from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType

from ..frozen import frozen
from ..locks import reentrant_lock
from ..timeline import RECORDER
from .driver import Queue, Task
from .memory import Location, Pool, Purpose

__all__ = ["Buffer", "Event", "Events", "Stream"]


MANY_STREAMS = 32
"""Streams come and go: when more than these are in the books, those whose work is over are taken out."""


class Event:
    """A point in a stream's work: after task `number` of its queue. Never changed."""

    __slots__ = ("clock", "number", "queue")

    def __init__(self, queue: Queue, number: int, clock: Mapping[Queue, int]) -> None:
        self.queue = queue
        self.number = number
        self.clock = clock

    def is_done(self) -> bool:
        return self.queue.done >= self.number

    def sync(self) -> None:
        """Block until the work before the event is over. Raises what a task of the stream raised."""
        self.queue.wait(self.number)

    def __repr__(self) -> str:
        return f"Event({self.queue.name}, {self.number})"


@frozen
class Events:
    """Several events as one: a point in the work of a device that has several streams."""

    events: tuple[Event, ...]

    def is_done(self) -> bool:
        return all(event.is_done() for event in self.events)

    def sync(self) -> None:
        for event in self.events:
            event.sync()


class Buffer:
    """A part of a slab: what hazards are about.

    `writer` is the event of the last write, `readers` the events of the reads since, the latest of each
    stream. `is_filled` once something other than the zeros of a new buffer was scheduled into it.
    """

    __slots__ = ("__weakref__", "address", "is_filled", "location", "nbytes", "pool", "readers", "writer")

    def __init__(self, pool: Pool, offset: int, nbytes: int) -> None:
        self.pool = pool
        self.location = Location(pool.number, offset)
        self.nbytes = nbytes
        self.address = pool.memory.address + offset
        self.writer: Event | None = None
        self.readers: dict[Queue, Event] = {}
        self.is_filled = False

    @property
    def offset(self) -> int:
        return self.location.offset

    @property
    def is_constant(self) -> bool:
        return self.pool.purpose is Purpose.CONSTANT

    def read_at(self, event: Event) -> None:
        self.readers[event.queue] = event
        if len(self.readers) > MANY_STREAMS:
            self.readers = {queue: event for queue, event in self.readers.items() if not event.is_done()}

    def events(self) -> tuple[Event, ...]:
        """Nothing that was submitted uses the buffer once these are done."""
        return (*self.readers.values(), *((self.writer,) if self.writer else ()))

    def sync(self) -> None:
        """Block until nothing that was submitted uses the buffer."""
        for event in self.events():
            event.sync()

    def __repr__(self) -> str:
        return f"Buffer(pool {self.location.pool} + {self.offset}, {self.nbytes} bytes)"


_NOTHING: Mapping[Queue, int] = MappingProxyType({})

# A transfer touches buffers of two devices, maybe of two drivers: one lock for all keeps every buffer's
# writer and readers as if work were submitted by one thread.
_submitting = reentrant_lock()


class Stream:
    """Work of a device, done in order. Any thread may submit to it."""

    def __init__(self, name: str, number: int, queue: Queue) -> None:
        self.name = name
        self.number = number
        self.queue = queue
        self.submitted = 0
        self._clock: Mapping[Queue, int] = _NOTHING
        self._awaited: list[Event] = []
        weakref.finalize(self, queue.end).atexit = False

    def submit(
        self, task: Task, label: str, reads: Sequence[Buffer] = (), writes: Sequence[Buffer] = ()
    ) -> Event:
        """Add a task that reads and writes these buffers. Blocks only while the queue is full. Raises what
        an earlier task of the stream raised."""
        queue = self.queue
        with _submitting:
            needed = self._needed(reads, writes)
            for event in needed:
                queue.wait_for(event.queue, event.number)
            queue.put(task, label)
            self.submitted += 1
            if needed:
                self._learn(needed)
            if self._awaited:
                self._awaited.clear()
            event = Event(queue, self.submitted, self._clock)
            if RECORDER.timeline is not None:
                for other in needed:
                    source = other.queue.recorded_as, other.number
                    RECORDER.timeline.waits((queue.recorded_as, event.number), source)
            for buffer in reads:
                buffer.read_at(event)
            for buffer in writes:
                buffer.writer = event
                buffer.readers.clear()
                buffer.is_filled = True
        queue.flush(event.number)
        return event

    def record(self) -> Event:
        """The event of everything submitted so far, and of what that is to wait for. Raises what `submit`
        raises."""
        with _submitting:
            if not self._awaited:
                return Event(self.queue, self.submitted, self._clock)
        return self.submit(_nothing, "event")

    def wait_for(self, event: Event | Events) -> None:
        """Work submitted from now on starts after the event."""
        with _submitting:
            for one in event.events if isinstance(event, Events) else (event,):
                if not self._knows(one):
                    self._awaited.append(one)

    def await_(self) -> None:
        """Block until the stream is empty. Raises what a task raised."""
        self.record().sync()

    def is_idle(self) -> bool:
        """Whether no submitted work is left."""
        return self.queue.done >= self.submitted

    def _needed(self, reads: Sequence[Buffer], writes: Sequence[Buffer]) -> Collection[Event]:
        """The fewest events, each of which must be waited for."""
        queue = self.queue
        events = self._awaited[:]
        for buffer in (*reads, *writes):
            writer = buffer.writer
            if writer is not None and writer.queue is not queue:
                events.append(writer)
        for buffer in writes:
            events.extend(reader for reader in buffer.readers.values() if reader.queue is not queue)
        return self._fewest(events) if events else ()

    def _fewest(self, events: Sequence[Event]) -> Collection[Event]:
        latest: dict[Queue, Event] = {}
        for event in events:
            known = latest.get(event.queue)
            if not self._knows(event) and (known is None or known.number < event.number):
                latest[event.queue] = event
        if len(latest) < 2:
            return latest.values()
        return [event for event in latest.values() if not _implied(event, latest.values())]

    def _knows(self, event: Event) -> bool:
        return event.queue is self.queue or self._clock.get(event.queue, 0) >= event.number

    def _learn(self, events: Collection[Event]) -> None:
        clock = dict(self._clock)
        for event in events:
            for queue, number in (*event.clock.items(), (event.queue, event.number)):
                if queue is not self.queue:
                    clock[queue] = max(number, clock.get(queue, 0))
        if len(clock) > MANY_STREAMS:
            clock = {queue: number for queue, number in clock.items() if queue.done < number}
        self._clock = MappingProxyType(clock)

    def __repr__(self) -> str:
        return f"Stream({self.name})"


def _nothing() -> None:
    return None


def _implied(event: Event, others: Iterable[Event]) -> bool:
    return any(other.clock.get(event.queue, 0) >= event.number for other in others if other is not event)
