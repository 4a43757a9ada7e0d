"""A contest: the entries of a task are checked against NumPy, then timed in turn."""

from __future__ import annotations

import math
import statistics
import time
import timeit
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..frozen import frozen
from ..profile.answers import answer_seconds
from .checking import reference, tried
from .results import Row, Time
from .tasks import Arguments, Clock, Entry, Peer, Task

__all__ = ["Effort", "calls_for", "held", "in_turn", "sampler"]

MOST_SAMPLES = 41
SAMPLE_SECONDS = 2e-3
"""Calls that take less are made several times for a sample."""
LONG, LOOKS = 0.02, 3
"""Who takes so long for a call is not asked how long others take, which else is asked so many times."""
PAUSE = 0.15
"""Before the samples on several threads: those of the entry before look for work so long, OpenBLAS's for 0.11
seconds, on cores that the next one needs."""
TOGETHER = 3
"""Samples of an entry that follow such a pause."""
WARMING = 5e-3
"""After the pause calls go untimed so long: threads wake, and cores are half as fast for the first two
milliseconds after they have had nothing to do."""
PATIENCE = 4
"""Where nobody says when a row should be there, entries that take so many times what they may are sampled the
fewest times that do."""

Sampler = Callable[[int], float]
"""Takes a sample: the seconds of one of so many calls."""


@frozen
class Effort:
    """How long an entry is timed: so many samples at least, and what else fits into so many seconds; but the
    fewest if time is short."""

    seconds: float = 0.2
    samples: int = 7
    fewest: int = 3


def held(
    task: Task,
    peers: Mapping[str, Peer],
    threads: int,
    now: Clock,
    effort: Effort,
    begun: Callable[[str], None] = lambda peer: None,
    until: float = math.inf,
) -> Row:
    """Start every entry, compare what it returns with NumPy, and time those that agree.

    `begun` is told the name of each peer before it is started, and "" before all are timed. By `until`, as
    `time.perf_counter` has it, the row should be there."""
    arguments = task.make()
    wanted, written = reference(task, arguments)
    times: dict[str, Time] = {}
    samplers: dict[str, Sampler] = {}
    pause, warming = (PAUSE, WARMING) if threads > 1 else (0.0, 0.0)
    for name, peer in peers.items():
        if task.peers and name not in task.peers:
            continue
        begun(name)
        entry = peer(task, written)
        if entry is not None:
            times[name], call = tried(task, entry, arguments, written, wanted, now)
            if not times[name].error:
                writes = bool(written) and not task.idempotent
                samplers[name] = sampler(arguments, entry, call, writes, now, warming)
    begun("")
    for name, samples in in_turn(samplers, effort, pause, until).items():
        times[name] = timed(times[name], samples)
    answer = answer_seconds() if threads > 1 and not task.target else 0.0
    return Row(*task.key, threads, times, answer=answer)


def timed(time: Time, samples: Sequence[float]) -> Time:
    """The time of a first call, with those after it."""
    low, median, high = statistics.quantiles(samples, n=4, method="inclusive")
    return replace(time, median=median, low=low, high=high, least=min(samples), samples=len(samples))


def sampler(
    arguments: Arguments, entry: Entry, call: Callable[..., Any], writes: bool, now: Clock, warming: float
) -> Sampler:
    """What takes samples, after calls that go untimed for the seconds of `warming`. Calls that write to their
    arguments are made one at a time, on fresh ones."""
    names = positional(() if writes else entry.place(arguments)) | {"call": call}
    statement = f"call({', '.join(positional(arguments))})"
    timer = timeit.Timer(statement, timer=now, globals=names)

    def once(calls: int) -> float:
        if writes:
            names.update(positional(entry.place(arguments)))
        return timer.timeit(calls) / calls

    def sample(calls: int) -> float:
        end = time.perf_counter() + warming
        if calls > 1 or warming:
            once(1)  # brings its memory into the caches
        while time.perf_counter() < end:
            once(1)
        return once(1 if writes else calls)

    return sample


def positional(arguments: Arguments) -> dict[str, Any]:
    """A name for each argument."""
    return {f"a{k}": argument for k, argument in enumerate(arguments)}


def in_turn(
    samplers: Mapping[str, Sampler], effort: Effort, pause: float = 0.0, until: float = math.inf
) -> dict[str, list[float]]:
    """Samples of each, taken in turn, every time beginning with another one; after a pause each, some at
    once."""
    names = list(samplers)
    calls = {name: calls_for(samplers[name]) for name in names}
    samples: dict[str, list[float]] = {name: [] for name in names}
    together = TOGETHER if pause else 1
    begin, room = time.perf_counter(), effort.seconds * len(names)
    late = begin + PATIENCE * room if until == math.inf else max(until, begin + room / 4)
    for turn in range(math.ceil(MOST_SAMPLES / together) if names else 0):
        now = time.perf_counter()
        enough = effort.fewest if now > late else effort.samples
        if turn * together >= enough and now > min(late, begin + room):
            break
        shift = turn % len(names)
        for name in names[shift:] + names[:shift]:
            time.sleep(pause)
            samples[name] += [samplers[name](calls[name]) for _ in range(together)]
    return samples


def calls_for(sample: Sampler) -> int:
    """How many calls a sample is of. What they take is asked several times: the first ones take longer."""
    seconds, calls = sample(1), 1
    for _ in range(LOOKS if seconds < LONG else 0):
        seconds = min(seconds, sample(calls))
        calls = max(1, round(SAMPLE_SECONDS / max(seconds, 1e-8)))
    return calls
