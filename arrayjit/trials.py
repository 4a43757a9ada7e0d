"""Runs of compiled code on copies of a call's arguments, to see what it computes and how long it takes.

What code writes lies in copies, which are restored before each measurement, so nothing that the caller has
changes, and every run starts from the same numbers.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Sequence
from functools import partial
from statistics import median

import numpy as np

from .ir.assign import ArrayParam, Param
from .runtime.host import addresses_of
from .runtime.procedure import Procedure

__all__ = ["Trials"]

SAMPLE = 200e-6
"""Seconds that a sample takes at least, by as many runs as that needs."""

ALIGNMENT = 64


class Trials:
    """Runs on one call's arrays, one for each parameter that is an array."""

    def __init__(self, params: Sequence[Param], arrays: Sequence[np.ndarray]) -> None:
        written = [
            isinstance(param, ArrayParam) and param.access not in ("read", "merge") for param in params
        ]
        self._arrays = list(arrays)
        self._copies = [_Copy(array) for array, is_written in zip(arrays, written, strict=True) if is_written]
        copies = iter(self._copies)
        self._addresses = [
            next(copies).address if is_written else address
            for address, is_written in zip(addresses_of(arrays), written, strict=True)
        ]

    def outcome(self, procedure: Procedure, *more: int) -> list[bytes]:
        """What a run leaves in the memory that it writes; `more` are the addresses of further parameters.
        Raises what the run raises."""
        self.ready(procedure, *more)()
        return [copy.content() for copy in self._copies]

    def ready(self, procedure: Procedure, *more: int) -> Callable[[], None]:
        """A run from the numbers of the first one, to be made before any other."""
        self._restore()
        return partial(procedure.launch, [*self._addresses, *more])

    def duration(self, procedure: Procedure) -> float:
        """The seconds of one run, in a sample that is long enough to be measured."""
        runs = 1
        while True:
            seconds = self._sample(procedure, runs)
            if seconds >= SAMPLE:
                return seconds / runs
            runs = 2 * runs if seconds <= 0 else max(2 * runs, round(runs * SAMPLE / seconds))

    def compare(self, one: Procedure, other: Procedure, rounds: int) -> tuple[float, float]:
        """How many times as fast as `one` the other is, by the shortest runs and by the medians. The two take
        turns."""
        runs = max(1, round(SAMPLE / self.duration(one)))
        pairs = [(self._sample(one, runs), self._sample(other, runs)) for _ in range(rounds)]
        ones, others = zip(*pairs, strict=True)
        return min(ones) / min(others), median(ones) / median(others)

    def _sample(self, procedure: Procedure, runs: int) -> float:
        self._restore()
        start = time.perf_counter()
        for _ in range(runs):
            procedure.launch(self._addresses)
        return time.perf_counter() - start

    def _restore(self) -> None:
        for copy in self._copies:
            copy.restore()


class _Copy:
    """The memory that an array covers, with any gaps, as it was at first."""

    def __init__(self, array: np.ndarray) -> None:
        low, high = np.lib.array_utils.byte_bounds(array)
        self._nbytes = high - low if array.size else 0
        self._memory = np.empty(self._nbytes + ALIGNMENT, np.uint8)
        self._first = np.empty(self._nbytes, np.uint8)
        self._start = self._memory.ctypes.data + (low - self._memory.ctypes.data) % ALIGNMENT
        self.address = self._start + array.ctypes.data - low
        ctypes.memmove(self._first.ctypes.data, low, self._nbytes)

    def restore(self) -> None:
        ctypes.memmove(self._start, self._first.ctypes.data, self._nbytes)

    def content(self) -> bytes:
        return ctypes.string_at(self._start, self._nbytes)
