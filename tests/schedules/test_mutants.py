"""The checker finds what it is there for: each mistake planted in the device layer shows in some schedule."""

from __future__ import annotations

from dataclasses import replace

import pytest
from exploring import explore, fault
from lazy import LazyDriver

from arrayjit.runtime import stream
from arrayjit.runtime.life import Life
from arrayjit.runtime.merge import MergeBuffers
from arrayjit.runtime.stream import Buffer, Event, Stream

SCHEDULES = 500


class OneReader(dict):
    """Forgets all readers but the last."""

    def __setitem__(self, key, value):
        self.clear()
        super().__setitem__(key, value)


def needed(of_reads=True, of_writes=True, readers=True, explicit=True):
    """What a task has to follow, or part of it."""

    def mutant(self, reads, writes):
        events = list(self._awaited) if explicit else []
        events += [buffer.writer for buffer in reads if of_reads]
        events += [buffer.writer for buffer in writes if of_writes]
        events += [event for buffer in writes if readers for event in buffer.readers.values()]
        return self._fewest([event for event in events if event is not None])

    return mutant


def untracked(self, *wanted, original=MergeBuffers.take):
    """Merge buffers in which nobody sees who reads them."""
    return tuple(
        replace(held, buffer=Buffer(held.buffer.pool, held.buffer.offset, held.buffer.nbytes))
        for held in original(self, *wanted)
    )


def freed_when_outgrown(self, slot, nbytes, original=MergeBuffers.room):
    old = self._own.get(slot)
    new = original(self, slot, nbytes)
    if old is not None and old is not new:
        old.pool.free()
    return new


def one_reader(self, pool, offset, nbytes, original=Buffer.__init__):
    original(self, pool, offset, nbytes)
    self.readers = OneReader()


def without_parent(self, parent=None, pools=(), original=Life.__init__):
    original(self, None, pools)


def learn_the_next_task_too(self, events, original=Stream._learn):
    original(self, [Event(event.queue, event.number + 1, event.clock) for event in events])


def learn_what_others_know_now(self, events, original=Stream._learn):
    """The clock of the other stream now, instead of that of the event."""
    clocks = {known.queue: known._clock for known in STREAMS}
    original(self, [Event(event.queue, event.number, clocks[event.queue]) for event in events])


STREAMS: list[Stream] = []


def noted(self, name, number, queue, original=Stream.__init__):
    original(self, name, number, queue)
    STREAMS.append(self)


def record_without_waits(self):
    return Event(self.queue, self.submitted, self._clock)


MUTANTS = {
    "read after write": [(Stream, "_needed", needed(of_reads=False))],
    "write after write": [(Stream, "_needed", needed(of_writes=False))],
    "write after read": [(Stream, "_needed", needed(readers=False))],
    "explicit waits": [(Stream, "_needed", needed(explicit=False))],
    "waits before an event": [(Stream, "record", record_without_waits)],
    "all readers": [(Buffer, "__init__", one_reader)],
    "readers of merge buffers": [(MergeBuffers, "take", untracked)],
    "all that a task follows": [(Stream, "_fewest", lambda self, events: events[:1])],
    "only what a wait tells": [(Stream, "_learn", learn_the_next_task_too)],
    "when a clock was read": [(Stream, "_learn", learn_what_others_know_now), (Stream, "__init__", noted)],
    "the exact number that is known": [
        (Stream, "_knows", lambda self, event: self._clock.get(event.queue, 0) >= event.number - 1)
    ],
    "what implies what": [
        (stream, "_implied", lambda event, others: any(event.queue in other.clock for other in others))
    ],
    "the end of work on finalized memory": [(Buffer, "events", lambda self: ())],
    "contexts that descend from a finalized one": [(Life, "__init__", without_parent)],
    "users of an outgrown merge buffer": [(MergeBuffers, "room", freed_when_outgrown)],
    "zeros in new memory": [(LazyDriver, "memset_zero", lambda self, memory, offset, nbytes: None)],
}


@pytest.mark.parametrize("forgotten", MUTANTS)
def test_a_device_layer_that_forgets_something_is_found_out(monkeypatch, forgotten):
    for place, name, mutant in MUTANTS[forgotten]:
        monkeypatch.setattr(place, name, mutant)
    assert any(fault(seed) for seed in range(SCHEDULES))


def test_a_wait_too_many_is_found_out(monkeypatch):
    monkeypatch.setattr(stream, "_implied", lambda event, others: False)
    assert any(
        not fault(seed, number) for seed in range(SCHEDULES) for number in range(explore(seed).num_waits)
    )
