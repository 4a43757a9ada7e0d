"""What it costs to share a loop: `python bench/fork_join.py [--threads N] [--json FILE]`.

A loop of one part per thread is run by the pool and by one thread, in turn. What the pool takes beyond one
part is the cost: of waking, claiming, waiting. Empty parts are mostly done by the caller before anyone else
comes, so the rows with work are the fair ones. `inside` repeats the loop in one native call; `call` makes a
call from Python for each, beside a bare call through ctypes. Threads still look for work when the next loop
comes, but for the last row, which follows a pause. Medians of many, and the minimum.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from arrayjit.ir.parse import parse
from arrayjit.runtime.cpu import CpuDriver, CpuExecutable
from arrayjit.runtime.threads import ThreadPool
from arrayjit.settings import num_threads
from arrayjit.targets.llvm import LlvmTarget

SAMPLES = 1001
PAUSE = 0.02
LONG = 10_000
WORK = {0: 1000, 1_000: 20, LONG: 3}
"""Divisions in each part, one after another, and how often such a loop runs in one native call."""

PROGRAM = """
def shared(y: update[f64, {cells}]):
    for again in sequential(0, {times}):
        for part in parallel(0, {threads}, grain=1):
            value: f64 = y[32*part]
            for i in sequential(0, {work}):
                value = divide[f64](f64(1.0), value)
            y[32*part] = value
"""


@dataclass(frozen=True)
class Time:
    """Microseconds, of many measurements."""

    median: float
    shortest: float


@dataclass(frozen=True)
class Row:
    """What one thread and the pool take for a loop that has so many parts, or for a call."""

    what: str
    parts: int
    alone: Time
    shared: Time

    @property
    def cost(self) -> Time:
        """What sharing adds to the time of one part."""
        return Time(
            self.shared.median - self.alone.median / self.parts,
            self.shared.shortest - self.alone.shortest / self.parts,
        )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="What it costs to share a loop.")
    parser.add_argument("--threads", type=int, default=num_threads())
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args(arguments)
    (bare,) = microseconds([bare_call()], 1)
    rows = list(measured(chosen.threads))
    show(rows, chosen.threads, bare)
    if chosen.json:
        chosen.json.write_text(
            json.dumps([{**asdict(row), "cost": asdict(row.cost)} for row in rows], indent=1)
        )


def measured(threads: int) -> Iterator[Row]:
    pool, driver = ThreadPool(threads), CpuDriver("sync_llvm")
    try:
        for work, times in WORK.items():
            name = f"inside, {work:,} divisions" if work else "inside, empty"
            yield Row(name, threads, *microseconds(launches(driver, pool, work, times), times))
        yield Row("call, empty", 1, *microseconds(launches(driver, pool, 0, 1), 1))
        late = microseconds(launches(driver, pool, LONG, 1), 1, PAUSE, SAMPLES // 10)
        yield Row(f"call after {PAUSE * 1e3:.0f} ms", threads, *late)
    finally:
        pool.close()


@dataclass(frozen=True)
class Launch:
    """A call of the program, whose memory lives as long."""

    loaded: CpuExecutable
    cells: np.ndarray
    address: int
    pool: int

    def __call__(self) -> None:
        self.loaded.launch((self.address,), (), 0, self.pool)


def launches(driver: CpuDriver, pool: ThreadPool, work: int, times: int) -> tuple[Launch, Launch]:
    """The program on one thread, and on all."""
    text = PROGRAM.format(cells=32 * pool.threads, times=times, threads=pool.threads, work=work)
    loaded = driver.load(LlvmTarget("sync_llvm").emit(parse(text)))
    cells = np.full(32 * pool.threads, 1.5)
    address = cells.ctypes.data
    return Launch(loaded, cells, address, 0), Launch(loaded, cells, address, pool.address)


def bare_call() -> Callable[[], object]:
    """A call of a function that does next to nothing, as kernels are called."""
    function = ctypes.CDLL(None).abs
    return lambda: function(1)


def microseconds(
    functions: Sequence[Callable[[], object]], times: int, pause: float = 0.0, samples: int = SAMPLES
) -> list[Time]:
    """What each function takes, divided by `times`. They take turns."""
    found: list[list[float]] = [[] for _ in functions]
    for _ in range(samples):
        for function, seconds in zip(functions, found, strict=True):
            if pause:
                time.sleep(pause)
            start = time.perf_counter()
            function()
            seconds.append(time.perf_counter() - start)
    return [Time(*(f(seconds) * 1e6 / times for f in (statistics.median, min))) for seconds in found]


def show(rows: Sequence[Row], threads: int, bare: Time) -> None:
    title = f"{threads} threads; µs, median and minimum; a bare call: {bare.median:.2f}, {bare.shortest:.2f}"
    table = Table("loop", box=SIMPLE_HEAD, title=title)
    for name in ("one thread", "shared", "cost", "in bare calls"):
        table.add_column(name, justify="right")
    for row in rows:
        calls = Time(row.cost.median / bare.median, row.cost.shortest / bare.shortest)
        numbers = (row.alone, row.shared, row.cost, calls)
        table.add_row(row.what, *(f"{number.median:.2f} {number.shortest:6.2f}" for number in numbers))
    Console(width=100).print(table)


if __name__ == "__main__":
    main()
