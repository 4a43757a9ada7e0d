"""Traces: what happened within a block, as a file that Perfetto and Chrome show.

The file is in the trace event format
(https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU): complete events (`X`) on
threads of two processes, Python's threads and the devices' streams, and flow events (`s`, `f`) for what
waited for what.
"""

from __future__ import annotations

import gzip
import io
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from .entry.entries import withdraw_all
from .errors import UserError
from .timeline import DEVICES, RECORDER, Span, Timeline, Track

__all__ = ["TraceInProgress", "trace"]


class TraceInProgress(UserError, RuntimeError):
    """A trace that begins while another one is recorded."""


@contextmanager
def trace(file: str | Path) -> Iterator[None]:
    """Record what happens within the block, in all threads, into a `.json` or `.json.gz` file.

    There are the calls of jitted functions, compilations with their phases and passes, tasks of streams,
    copies, kernels, and arrows from what was waited for to what waited. Functions are called through Python
    meanwhile; what a stream has not ended by the end of the block is left out. The file is written even if
    the block raises. Raises TraceInProgress, and OSError if the file cannot be written.
    """
    if RECORDER.timeline is not None:
        raise TraceInProgress(
            "a trace is being recorded already", fix="let one block contain the other's work"
        )
    timeline = Timeline()
    with _opened(Path(file)) as stream:
        RECORDER.timeline = timeline
        withdraw_all()
        try:
            yield
        finally:
            RECORDER.timeline = None
            json.dump({"traceEvents": events(timeline), "displayTimeUnit": "ms"}, stream)


def events(timeline: Timeline) -> list[dict[str, Any]]:
    """The recorded spans and arrows as trace events; times are microseconds from the first span on."""
    spans = sorted(timeline.spans, key=lambda span: (span.start, -span.end))
    zero = spans[0].start if spans else 0.0
    tracks: dict[Track, tuple[int, int]] = {}
    for span in spans:
        tracks.setdefault(span.track, (_process(span.track), len(tracks) + 1))
    found = list(_names(tracks))
    for span in spans:
        process, thread = tracks[span.track]
        duration = _microseconds(span.end - span.start)
        found.append(
            {"ph": "X", "name": span.name, "cat": span.category, "pid": process, "tid": thread}
            | {"ts": _microseconds(span.start - zero), "dur": duration}
        )
    for number, (source, target) in enumerate(_ends(timeline), 1):
        for phase, span, time in (("s", source, source.end), ("f", target, target.start)):
            process, thread = tracks[span.track]
            arrow = {
                "ph": phase,
                "name": "waits",
                "cat": "event",
                "id": number,
                "pid": process,
                "tid": thread,
            }
            # A flow begins in the span around its time, so not at the very end.
            inside = (span.start + time) / 2 if phase == "s" else time
            found.append(arrow | {"ts": _microseconds(inside - zero)} | ({"bp": "e"} if phase == "f" else {}))
    return found


def _process(track: Track) -> int:
    return 2 if track[0] == DEVICES else 1


def _names(tracks: dict[Track, tuple[int, int]]) -> Iterator[dict[str, Any]]:
    """What processes and threads are called."""
    for number, name in ((1, f"python {os.getpid()}"), (2, "streams")):
        if any(process == number for process, _ in tracks.values()):
            yield {"ph": "M", "name": "process_name", "pid": number, "tid": 0, "args": {"name": name}}
    for (_, name), (process, thread) in tracks.items():
        yield {"ph": "M", "name": "thread_name", "pid": process, "tid": thread, "args": {"name": name}}


def _ends(timeline: Timeline) -> Iterator[tuple[Span, Span]]:
    """The arrows of which both tasks are recorded."""
    for arrow in timeline.arrows:
        source, target = timeline.tasks.get(arrow.source), timeline.tasks.get(arrow.target)
        if source is not None and target is not None:
            yield source, target


def _microseconds(seconds: float) -> float:
    return round(seconds * 1e6, 3)


def _opened(file: Path) -> TextIO:
    if file.suffix == ".gz":
        return io.TextIOWrapper(gzip.open(file, "wb"), encoding="utf-8")
    return file.open("w", encoding="utf-8")
