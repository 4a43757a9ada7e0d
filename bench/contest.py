"""A contest: one computation by several compilers, checked against NumPy, then timed in turn.

A `Task` is the computation, an `Entry` how one of the compilers does it. What is measured is a `Row`.
"""

from __future__ import annotations

import copy
import math
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from kernels import difference

__all__ = ["OURS", "Entry", "Peer", "Row", "Task", "Time", "held", "in_turn", "verdict"]

OURS = "arrayjit"
FEWEST_SAMPLES, MOST_SAMPLES = 7, 41
SECONDS = 0.5
"""What the samples of one entry may take, once there are the fewest."""
SAMPLE_SECONDS = 2e-3
"""Calls that take less are made several times for a sample."""
PAUSE = 0.15
"""Before a sample on several threads: those of the entry before it look for work so long, OpenBLAS's for 0.11
seconds, on cores that the next one needs."""
WARMING = 5e-3
"""After the pause calls go untimed so long: threads wake, and cores are half as fast for the first two
milliseconds after they have had nothing to do."""

Arguments = tuple[Any, ...]
Clock = Callable[[], float]


@dataclass(frozen=True, slots=True)
class Task:
    """What is computed: `function` is the program in plain NumPy, `arguments` are copied for each use.

    `program` is the one that arrayjit compiles, where it had to be changed for that. A result may differ from
    NumPy's by `tolerance`, a fraction of its largest number. What bounds the speed, if known, is that
    `limit` of `machine.Limits`; a call needs `amount` of it: floating-point operations, or bytes.
    """

    suite: str
    name: str
    size: str
    dtype: str
    function: Callable[..., Any]
    arguments: Arguments
    tolerance: float
    program: Callable[..., Any] | None = None
    limit: str = ""
    amount: float = 0.0


@dataclass(frozen=True, slots=True)
class Entry:
    """How a compiler does a task: `start(*arguments)` makes what is called, and has time for buffers.

    `place` makes arguments of the compiler's own from NumPy's, untimed. A `pure` entry does not write to its
    arguments, but returns what has become of those that the task writes to, after what else it returns.
    """

    start: Callable[..., Callable[..., Any]]
    place: Callable[[Arguments], Arguments] = copy.deepcopy
    pure: bool = False


Peer = Callable[[Task, tuple[int, ...]], "Entry | None"]
"""The entry of a compiler in a task, if it has one; the task writes to those of its arguments."""


@dataclass(frozen=True, slots=True)
class Time:
    """Seconds: of the first call, which compiles; the median of the others, and the least. `error` says why
    there are none."""

    first: float = math.nan
    median: float = math.nan
    least: float = math.nan
    error: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """The times of all entries of a task."""

    suite: str
    name: str
    size: str
    dtype: str
    threads: int
    limit: str
    amount: float
    times: Mapping[str, Time] = field(default_factory=dict)

    @property
    def best(self) -> str:
        """The fastest of the others, "" if there is none."""
        others = {peer: time.median for peer, time in self.times.items() if peer != OURS and not time.error}
        return min(others, key=others.__getitem__, default="")

    def ratio(self, peer: str) -> float | None:
        """How many times as fast as the peer we are."""
        ours, theirs = self.times.get(OURS), self.times.get(peer)
        if ours is None or theirs is None or ours.error or theirs.error:
            return None
        return theirs.median / ours.median

    def as_json(self) -> dict[str, Any]:
        """What `from_json` reads; JSON has no NaN."""
        times = {
            peer: {key: value for key, value in asdict(time).items() if value == value}
            for peer, time in self.times.items()
        }
        return {**asdict(self), "times": times}

    @staticmethod
    def from_json(read: Mapping[str, Any]) -> Row:
        times = {peer: Time(**time) for peer, time in read["times"].items()}
        return Row(**{**read, "times": times})


def held(task: Task, peers: Mapping[str, Peer], threads: int, clock: Clock) -> Row:
    """Start every entry, compare what it returns with NumPy, and time those that agree."""
    wanted, written = reference(task)
    entries = {name: entry for name, peer in peers.items() if (entry := peer(task, written)) is not None}
    times: dict[str, Time] = {}
    calls: dict[str, Callable[[int], float]] = {}
    pause, warming = (PAUSE, WARMING) if threads > 1 else (0.0, 0.0)
    for name, entry in entries.items():
        first, call, error = tried(task, entry, written, wanted, clock)
        times[name] = Time(first, error=error)
        if not error:
            calls[name] = sampler(task, entry, call, written, clock, warming)
    for name, samples in in_turn(calls, pause).items():
        times[name] = Time(times[name].first, statistics.median(samples), min(samples))
    return Row(task.suite, task.name, task.size, task.dtype, threads, task.limit, task.amount, times)


def verdict(task: Task, peer: Peer) -> str:
    """What is wrong with a peer's version of a task, "" if nothing is."""
    wanted, written = reference(task)
    entry = peer(task, written)
    return "there is none" if entry is None else tried(task, entry, written, wanted, time.perf_counter)[2]


def reference(task: Task) -> tuple[list[np.ndarray], tuple[int, ...]]:
    """NumPy's results, and which arguments the task writes to."""
    before, after = task.arguments, copy.deepcopy(task.arguments)
    with np.errstate(all="ignore"):
        returned = task.function(*after)
    arrays = [k for k, argument in enumerate(before) if isinstance(argument, np.ndarray)]
    written = tuple(k for k in arrays if not np.array_equal(before[k], after[k], equal_nan=True))
    return [*leaves(returned), *(np.asarray(after[k]) for k in written)], written


def tried(
    task: Task, entry: Entry, written: tuple[int, ...], wanted: list[np.ndarray], clock: Clock
) -> tuple[float, Callable[..., Any], str]:
    """The seconds of the first call, what is called from now on, and what is wrong with it."""
    arguments = entry.place(task.arguments)
    begin = clock()
    try:
        call = entry.start(*arguments)
        returned = call(*arguments)
    except Exception as refusal:
        lines = str(refusal).strip().splitlines()
        return math.nan, refused, f"{type(refusal).__name__}: {lines[0] if lines else ''}"
    first = clock() - begin
    after = () if entry.pure else (np.asarray(arguments[k]) for k in written)
    apart = distance([*leaves(returned), *after], wanted)
    wrong = f"differs by {apart:.0e}, more than {task.tolerance:g}"
    return first, call, "" if apart <= task.tolerance else wrong


def refused(*arguments: Any) -> Any:
    raise AssertionError("an entry that has failed is not called again")


def leaves(returned: Any) -> Iterator[np.ndarray]:
    """The arrays and numbers that a call returns, copied, since a next call may use their memory."""
    if isinstance(returned, tuple | list):
        for part in returned:
            yield from leaves(part)
    elif returned is not None:
        yield np.array(returned)


def distance(got: list[np.ndarray], wanted: list[np.ndarray]) -> float:
    """How far results are from NumPy's, whatever their dtypes."""
    if len(got) != len(wanted):
        return math.inf
    return difference(tuple(map(np.ndarray.astype, got, (one.dtype for one in wanted))), tuple(wanted))


def sampler(
    task: Task, entry: Entry, call: Callable[..., Any], written: tuple[int, ...], clock: Clock, warming: float
) -> Callable[[int], float]:
    """What takes a sample: the seconds of one of so many calls, after others for the seconds of `warming`.
    Calls that write to their arguments are made one at a time, on fresh ones."""
    placed = None if written else entry.place(task.arguments)

    def timed(calls: int) -> float:
        arguments = placed or entry.place(task.arguments)
        begin = clock()
        for _ in range(calls):
            call(*arguments)
        return (clock() - begin) / calls

    def sample(calls: int) -> float:
        end = time.perf_counter() + warming
        if calls > 1 or warming:
            timed(1)  # brings its memory into the caches
        while time.perf_counter() < end:
            timed(1)
        return timed(1 if written else calls)

    return sample


def in_turn(samplers: Mapping[str, Callable[[int], float]], pause: float = 0.0) -> dict[str, list[float]]:
    """Samples of each, taken in turn, every time beginning with another one, after a pause each."""
    names = list(samplers)
    calls = {name: calls_for(samplers[name]) for name in names}
    samples: dict[str, list[float]] = {name: [] for name in names}
    end = time.perf_counter() + SECONDS * len(names)
    for taken in range(MOST_SAMPLES):
        if taken >= FEWEST_SAMPLES and time.perf_counter() > end:
            break
        shift = taken % max(1, len(names))
        for name in names[shift:] + names[:shift]:
            time.sleep(pause)
            samples[name].append(samplers[name](calls[name]))
    return samples


def calls_for(sample: Callable[[int], float]) -> int:
    return max(1, round(SAMPLE_SECONDS / max(min(sample(1), sample(1)), 1e-7)))
