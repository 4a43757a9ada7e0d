"""A stream of a GPU's: what has become of its work, pinned memory for its copies, and a status word.

The thread that issues a task for a lane is *on* it: what it asks of the driver is then issued there.
"""

from __future__ import annotations

import ctypes
from collections import deque
from threading import Lock, RLock, local

import numpy as np

from .api import Api
from .clock import LaunchClock

__all__ = ["CHUNK", "Lane", "lane_in_use", "stay_on"]

CHUNK = 4 << 20
"""Bytes of each half of the pinned memory. Longer copies take turns: while one half travels, the host works
on the other."""

_RECENT = 8

_MANY = 32
"""Marks, above which those that are over are looked for."""


class Lane:
    """A stream, by its handle. One thread at a time issues work, with `lock` held.

    The work is numbered, by who issues it: `issued` is the last, and what is up to `finished` is known to be
    over. `recent` has names of kernels that were launched and may not have finished, the newest last. While
    there is a `clock`, it measures every launch.
    """

    def __init__(self, api: Api, ordinal: int, stream: int) -> None:
        self.api = api
        self.ordinal = ordinal
        self.stream = stream
        self.lock = RLock()
        self.recent: deque[str] = deque(maxlen=_RECENT)
        self.issued = self.finished = 0
        self.is_left = False
        self.clock: LaunchClock | None = None
        self._marks: deque[tuple[int, int]] = deque()  # numbers, and the events behind that work
        self._idle: list[int] = []
        self._marking = Lock()
        self._pinned = 0
        self._status = 0
        self._half = 0
        self._used = 0
        self._events = (0, 0)

    def mark(self) -> int:
        """An event after all that was issued; 0 if that is known to be over."""
        with self._marking:
            number = self.issued
            if self.finished >= number:
                return 0
            if not self._marks or self._marks[-1][0] < number:
                event = self.take_event()
                self.api.record(event, self.stream)
                self._marks.append((number, event))
            event = self._marks[-1][1]
        if len(self._marks) > _MANY:
            self.look()
        return event

    def mark_of(self, number: int) -> int:
        """An event after the work up to a number; 0 if that is known to be over."""
        if self.finished >= min(number, self.issued):
            return 0
        with self._marking:
            for marked, event in self._marks:
                if marked >= number:
                    return event
        return self.mark()

    def look(self) -> None:
        """Find out what is over."""
        with self._marking:
            while self._marks and self.api.is_done(self._marks[0][1]):
                number, event = self._marks.popleft()
                self.finished = number
                self.give_event(event)
            if self.finished >= self.issued:
                self.recent.clear()

    def take_event(self) -> int:
        """An event that nobody uses."""
        try:
            return self._idle.pop()
        except IndexError:
            return self.api.event()

    def give_event(self, event: int) -> None:
        """Nobody uses the event any more; who waits for it on the GPU waits for what it meant."""
        self._idle.append(event)

    def follow(self, other: Lane) -> None:
        """Let what is issued here from now on come after what was issued there."""
        event = other.take_event()
        self.api.record(event, other.stream)
        self.api.wait(self.stream, event)
        other.give_event(event)

    def upload(self, target: int, array: np.ndarray) -> None:
        """Copy a C-ordered array, of which the values are taken now."""
        source, left = array.ctypes.data, array.nbytes
        while left:
            place, nbytes = self._room(left)
            ctypes.memmove(place, source, nbytes)
            self.api.h2d(target, place, nbytes, self.stream)
            target, source, left = target + nbytes, source + nbytes, left - nbytes

    def download(self, array: np.ndarray, source: int) -> None:
        """Copy into a C-ordered array, and wait for it."""
        target, left = array.ctypes.data, array.nbytes
        arrived: tuple[int, int, int, int] | None = None
        while left:
            self._used = CHUNK  # each piece has a half of its own
            place, nbytes = self._room(left)
            self.api.d2h(place, source, nbytes, self.stream)
            event = self._events[self._half]
            self.api.record(event, self.stream)
            if arrived is not None:
                self._take(*arrived)
            arrived = event, target, place, nbytes
            target, source, left = target + nbytes, source + nbytes, left - nbytes
        if arrived is not None:
            self._take(*arrived)
            self.recent.clear()

    def status_address(self) -> int:
        """Of the status word, in the device's memory."""
        if not self._status:
            self._status = self.api.alloc(8, self.stream)
        return self._status

    def status(self) -> int:
        """What kernels have written into the status word, once they are done."""
        word = np.empty(1, np.uint32)
        self.download(word, self.status_address())
        return int(word[0])

    def sync(self) -> None:
        """Block until all that was issued is over."""
        self.api.sync_stream(self.stream)
        self.recent.clear()

    def close(self) -> None:
        """Give all back: nothing is issued any more, and what was is over."""
        self.api.destroy_stream(self.stream)
        if self._pinned:
            self.api.pinned_free(self._pinned)
        for event in (*self._idle, *(event for event in self._events if event)):
            self.api.destroy_event(event)

    def _room(self, nbytes: int) -> tuple[int, int]:
        """The address of pinned memory that nothing uses, and how much of it there is."""
        if not self._pinned:
            self._pinned = self.api.pinned_alloc(2 * CHUNK)
            self._events = self.api.event(), self.api.event()
        if self._used == CHUNK:
            self.api.record(self._events[self._half], self.stream)
            self._half, self._used = 1 - self._half, 0
            self.api.sync_event(self._events[self._half])
        start = self._pinned + self._half * CHUNK + self._used
        nbytes = min(nbytes, CHUNK - self._used)
        self._used = min(CHUNK, -(-(self._used + nbytes) // 64) * 64)
        return start, nbytes

    def _take(self, event: int, target: int, place: int, nbytes: int) -> None:
        self.api.sync_event(event)
        ctypes.memmove(target, place, nbytes)


_thread = local()


def lane_in_use() -> Lane | None:
    """The lane that this thread is on."""
    lane: Lane | None = getattr(_thread, "lane", None)
    return lane


def stay_on(lane: Lane | None) -> Lane | None:
    """Put this thread on a lane, or on none; the one that it was on."""
    before = lane_in_use()
    _thread.lane = lane
    return before
