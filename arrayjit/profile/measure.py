"""Runs of one call: as a user's program makes it, as native code alone, and with a clock in the code."""

from __future__ import annotations

import copy
import mmap
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar, Union

import numpy as np

from ..errors import CompilerBug
from ..frozen import frozen, frozen_by_identity
from ..ir.journal import given
from ..runtime.procedure import Procedure
from ..runtime.results import results
from ..stages import CompiledForOther, Lowered
from ..tracer.calls.binding import ArgumentSource, Binding, FreshSource, ScalarSource, maker
from ..trials import Trials
from .counters import Refused, counted_while
from .laps import Timed, timed

__all__ = ["CALLS", "LEAST", "MOST", "Measured", "Spread", "measured", "whole_calls"]

Value = TypeVar("Value")

LEAST, MOST = 3, 2000
"""Rounds."""

WARM = 3, 60
"""Calls at least, and calls after which short ones go their quickest way."""

CALLS, ALLOCATIONS = 0.3, 0.1
"""Of the time, for whole calls, and for making memory for results."""


@frozen
class Spread:
    """Seconds: the median of so many measurements, the quartiles, and the least, which is disturbed least."""

    median: float
    low: float
    high: float
    least: float
    count: int

    @staticmethod
    def of(seconds: Sequence[float]) -> Spread:
        least, low, median, high = (float(one) for one in np.percentile(seconds, (0, 25, 50, 75)))
        return Spread(median, low, high, least, len(seconds))


@frozen_by_identity
class Measured:
    """`parts` are the times of the parts of `clock`, on memory that is there, `total` those of all together.
    Code with the clock takes `overhead` longer, as a fraction. `allocation` are the seconds that memory for
    results takes to be made and touched first. `call` is a whole call, with all that Python does for it; a
    reason where it cannot be measured. `counters` are per run."""

    clock: Timed
    parts: tuple[Spread, ...]
    total: Spread
    overhead: float
    allocation: float
    call: Union[Spread, Refused]
    counters: Union[Mapping[str, float], Refused]


def measured(
    lowered: Lowered,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    call: Callable[..., Any],
    seconds: float,
) -> Measured:
    """Measure for about so many seconds. Nothing that the caller has is written: runs work on copies. Raises
    what a run raises."""
    build, traced = lowered.build, lowered.traced
    leaves = lowered.leaves_of(args, kwargs)
    trials = Trials(given(build.code.params), Binding(traced.sources, traced.outputs).arrays(leaves))
    plain, clock = build.load(), timed(build.optimized.kernel, lowered.numbers)
    code = replace(build.backend.target.emit(clock.kernel), threads=build.code.threads, opt=build.code.opt)
    clocked = build.backend.get_device(0).load(code)
    times = np.zeros(clock.times.size, np.int64)
    if trials.outcome(clocked, times.ctypes.data) != trials.outcome(plain):
        raise CompilerBug("code with a clock computes something else", stage="profile")
    deadline = time.perf_counter() + (1 - CALLS - ALLOCATIONS) * seconds
    native, with_clock, rows = _rounds(trials, plain, clocked, times, deadline)
    rows = rows[:, : len(clock.parts)]
    fresh = [
        replace(source, shape=source.shape_in(leaves))
        for source in traced.sources
        if isinstance(source, FreshSource)
    ]
    return Measured(
        clock,
        tuple(Spread.of(column) for column in rows.T),
        Spread.of(rows.sum(axis=1)),
        float(min(with_clock) / min(native)) - 1,
        _allocation(fresh, ALLOCATIONS * seconds) if fresh else 0.0,
        whole_calls(lowered, args, kwargs, call, CALLS * seconds),
        _counters(trials, plain),
    )


def _rounds(
    trials: Trials, plain: Procedure, clocked: Procedure, times: np.ndarray, deadline: float
) -> tuple[list[float], list[float], np.ndarray]:
    """Both in turn: the seconds of each run, and of each part."""
    native: list[float] = []
    with_clock: list[float] = []
    rows: list[np.ndarray] = []
    while len(rows) < LEAST or (time.perf_counter() < deadline and len(rows) < MOST):
        native.append(_seconds(trials.ready(plain)))
        times[:] = 0
        with_clock.append(_seconds(trials.ready(clocked, times.ctypes.data)))
        rows.append(times[1:] * 1e-9)
    return native, with_clock, np.array(rows)


def _allocation(sources: Sequence[FreshSource], seconds: float) -> float:
    """How much longer it takes to make arrays for results and to touch each of their pages, than to touch
    those of arrays that are there and to make others of one cell."""
    allocator = results().maker
    makers = [maker(source, allocator) for source in sources]
    cells = [maker(replace(source, shape=(1,) * len(source.shape)), allocator) for source in sources]
    kept = [make(()) for make in makers]

    def again() -> None:
        for make, array in zip(cells, kept, strict=True):
            make(())
            _touch(array)

    def anew() -> None:
        for make in makers:
            _touch(make(()))

    def pair() -> tuple[float, float]:
        return _seconds(again), _seconds(anew)

    before, after = np.median(_repeated(pair, LEAST, MOST, seconds), axis=0)
    return max(0.0, float(after - before))


def _touch(array: np.ndarray) -> None:
    """Write into each page of an array without gaps."""
    array.ravel("K").view(np.uint8)[:: mmap.PAGESIZE] = 0


def whole_calls(
    lowered: Lowered,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    call: Callable[..., Any],
    seconds: float,
    wait: Callable[[], None] = lambda: None,
) -> Union[Spread, Refused]:
    """Whole calls, until `wait` returns. One that writes its arguments is made on copies, if copies of all
    arguments are arguments of the same kind."""
    changed = []
    for source in lowered.traced.sources:
        if isinstance(source, (FreshSource, ScalarSource)) or not source.written:
            continue
        if not isinstance(source, ArgumentSource):
            return Refused("whole calls are not measured: they write memory that is no argument of its own")
        changed.append(source.leaf)
    first = lowered.leaves_of(args, kwargs)
    if changed:
        args, kwargs = copy.deepcopy((tuple(args), dict(kwargs)))
    try:
        leaves = lowered.leaves_of(args, kwargs)
    except CompiledForOther:
        return Refused("whole calls are not measured: copies of the arguments lie otherwise in memory")

    def one() -> float:
        for leaf in changed:
            leaves[leaf][...] = first[leaf]
        wait()

        def called() -> None:
            call(*args, **kwargs)
            wait()

        return _seconds(called)

    _repeated(one, *WARM, seconds / 2)
    return Spread.of(_repeated(one, LEAST, MOST, seconds / 2))


def _repeated(measure: Callable[[], Value], least: int, most: int, seconds: float) -> list[Value]:
    """Measurements for about so many seconds, within bounds."""
    found: list[Value] = []
    deadline = time.perf_counter() + seconds
    while len(found) < least or (time.perf_counter() < deadline and len(found) < most):
        found.append(measure())
    return found


def _seconds(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def _counters(trials: Trials, plain: Procedure) -> Union[Mapping[str, float], Refused]:
    """What the processor counts for a run, on the calling thread: the medians of some."""
    counts: list[Mapping[str, int]] = []
    for _ in range(LEAST):
        found = counted_while(trials.ready(plain))
        if isinstance(found, Refused):
            return found
        counts.append(found)
    return {name: float(np.median([count[name] for count in counts])) for name in counts[0]}
