"""Is a loop shared only where that pays? `python bench/thread_work.py`.

For each program the smallest size is found at which it is shared, by what the compiler says. There and at 2,
4 and 16 times that size, calls on one thread and on all take turns: at once, and after a pause in which the
threads have gone to sleep. The numbers are how many times as fast all threads are, by the shortest of many
calls and by the medians; below 0.95, the threshold is too low.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

import arrayjit

PAUSE = 0.01
TIMES = (1, 2, 4, 16)
MOST = 1 << 22


def scaled(x: np.ndarray, y: np.ndarray) -> None:
    y[:] = 2.0 * x + 1.0


def exponential(x: np.ndarray, y: np.ndarray) -> None:
    np.exp(x, out=y)


def total(x: np.ndarray, y: np.ndarray) -> None:
    y[0] = x.sum()


def rows(x: np.ndarray, y: np.ndarray) -> None:
    a = x.reshape(-1, 16)
    y.reshape(-1, 16)[:] = a / a.sum(axis=1, keepdims=True)


def windows(x: np.ndarray, y: np.ndarray) -> None:
    y[2:-2] = x[4:] + x[3:-1] + x[2:-2] + x[1:-3] + x[:-4]


PROGRAMS = (scaled, exponential, total, rows, windows)


def main() -> None:
    table = Table("program", "type", "from", box=SIMPLE_HEAD)
    for moment in ("hot", "asleep"):
        for times in TIMES:
            table.add_column(f"{moment} x{times}", justify="right")
    for program in PROGRAMS:
        for dtype in (np.float32, np.float64):
            one, shared = arrayjit.jit(program, threads=1), arrayjit.jit(program)
            size = threshold(shared, dtype)
            ratios = [
                ratio((one, shared), size * times, dtype, pause) for pause in (0.0, PAUSE) for times in TIMES
            ]
            table.add_row(program.__name__, np.dtype(dtype).name, f"{size:,}", *ratios)
    Console(width=120).print(table)


def threshold(function: Any, dtype: Any) -> int:
    """The smallest size, a multiple of 64, of which loops are shared."""
    low, high = 0, MOST // 64
    while high - low > 1:
        middle = (low + high) // 2
        spec = arrayjit.spec(64 * middle, dtype)
        if "is shared" in function.explain(spec, spec):
            high = middle
        else:
            low = middle
    return 64 * high


def ratio(functions: Sequence[Any], size: int, dtype: Any, pause: float) -> str:
    """How many times as fast a call of the second is."""
    x, y = np.random.default_rng(1).random(size).astype(dtype), np.zeros(size, dtype)
    found: list[list[float]] = [[], []]
    for _ in range(30 if pause else 400):
        for function, seconds in zip(functions, found, strict=True):
            time.sleep(pause)
            start = time.perf_counter()
            function(x, y)
            seconds.append(time.perf_counter() - start)
    kept = [seconds[len(seconds) // 10 :] for seconds in found]
    return " ".join(f"{f(kept[0]) / f(kept[1]):.2f}" for f in (min, statistics.median))


if __name__ == "__main__":
    main()
