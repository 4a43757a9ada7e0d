"""What happens when: spans of time on tracks, and arrows between tasks. Nothing is kept while nobody records,
and whoever has something to tell looks only at `RECORDER.timeline`.

A track is a thread of Python's, or a stream of a device: what a thread does for a stream is on the stream's.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from .frozen import frozen

__all__ = ["DEVICES", "RECORDER", "Arrow", "Span", "Timeline", "Track", "note"]

PYTHON, DEVICES = "python", "devices"

Track = tuple[str, str]
"""The group of a track, and its name."""

_COPIES = ("copy", "upload", "download")


@frozen
class Span:
    """Something that took from `start` to `end`, in seconds of `time.perf_counter`."""

    name: str
    category: str
    track: Track
    start: float
    end: float


@frozen
class Arrow:
    """A task that waited for another: their queues, each with the task's number there."""

    source: tuple[object, int]
    target: tuple[object, int]


class Timeline:
    """What is recorded. Any thread may add to it."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.arrows: list[Arrow] = []
        self.tasks: dict[tuple[object, int], Span] = {}
        self._here = threading.local()

    def add(self, name: str, category: str, start: float) -> Span:
        """Something that this thread did from `start` until now."""
        track = getattr(self._here, "track", None) or (PYTHON, threading.current_thread().name)
        span = Span(name, category, track, start, time.perf_counter())
        self.spans.append(span)
        return span

    @contextmanager
    def span(self, name: str, category: str) -> Iterator[None]:
        """What this thread does in a block."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.add(name, category, start)

    @contextmanager
    def task(self, queue: object, name: str, number: int, label: str) -> Iterator[None]:
        """A task of the queue with this name, done by this thread."""
        outer = getattr(self._here, "track", None)
        self._here.track = DEVICES, name
        start = time.perf_counter()
        try:
            yield
        finally:
            category = "copy" if label.startswith(_COPIES) else "task"
            self.tasks[queue, number] = self.add(label, category, start)
            self._here.track = outer

    def waits(self, target: tuple[object, int], source: tuple[object, int]) -> None:
        """A task starts after another one: their queues, each with the task's number there."""
        self.arrows.append(Arrow(source, target))


class Recorder:
    """Who records what happens now, and who takes the lines of values that programs assign, if anybody
    does."""

    __slots__ = ("timeline", "values")

    def __init__(self) -> None:
        self.timeline: Timeline | None = None
        self.values: Callable[[Iterable[str]], None] | None = None

    @property
    def is_watching(self) -> bool:
        """Whether calls have to be seen."""
        return self.timeline is not None or self.values is not None


RECORDER = Recorder()


def note(name: str, category: str, start: float) -> None:
    """Something that this thread did from `start` until now, if that is recorded."""
    if RECORDER.timeline is not None:
        RECORDER.timeline.add(name, category, start)
