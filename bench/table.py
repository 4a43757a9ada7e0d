"""The kernels, by NumPy and by arrayjit: `python bench/table.py [--size S ...] [--only NAME ...]`.

Each row is one kernel of `bench/kernels` with the decorator alone. The ratio is taken in one run, the two
called in turn on fresh copies of the same arguments. Both run on the calling thread, and the times are what
the processor spent on it, so other programs on the machine hardly count. `--markdown FILE` writes
docs/kernels.md, `--json FILE` the rows. Exits with 1 where a kernel fails or differs from NumPy by more than
it may.
"""

from __future__ import annotations

import argparse
import copy
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from kernels import KERNELS, Kernel, difference, results_of
from machine import description
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

import arrayjit
from arrayjit.demo.measure import environment_for_numpy

SECONDS_PER_KERNEL = 1.5
FEWEST_RUNS, MOST_RUNS = 3, 25
SIZES = ("small", "medium", "large")

PAGE = """\
# The kernels

{count} scientific programs in plain NumPy, `bench/kernels`, with the decorator alone; {changed}.

On one thread of {machine}. Times are of the processor, the
median of up to {most} calls, NumPy's in turn. "First" is the first call, which compiles; "differs" is the
greatest difference from NumPy, as a fraction of the largest number of a result. Written by
`python bench/table.py --size medium large --markdown docs/kernels.md`.
"""


@dataclass(frozen=True, slots=True)
class Row:
    """What was measured of a kernel, times in seconds; `error` is why nothing was, or what is wrong."""

    name: str
    source: str
    changed: str
    size: str
    first: float | None = None
    numpy: float | None = None
    warm: float | None = None
    difference: float | None = None
    error: str = ""

    @property
    def ratio(self) -> float | None:
        return self.numpy / self.warm if self.numpy and self.warm else None


def measured(kernel: Kernel, size: str, target: str | None) -> Row:
    """Call a kernel for the first time, compare it with NumPy, and time both."""
    jitted, plain = arrayjit.jit(kernel.function, target=target), kernel.plain or kernel.function
    arguments = kernel.arguments(size)
    row = Row(kernel.name, kernel.source, kernel.changed, size)
    try:
        used = copy.deepcopy(arguments)
        first, got = seconds(lambda: results_of(jitted, used))
    except Exception as refusal:
        return replace(row, error=f"{type(refusal).__name__}: {str(refusal).splitlines()[0]}")
    apart = difference(got, results_of(plain, copy.deepcopy(arguments)))
    error = "" if apart <= kernel.tolerance else f"differs by more than {kernel.tolerance:g}"
    numpy, warm = in_turn(plain, jitted, arguments)
    return replace(row, first=first, numpy=numpy, warm=warm, difference=apart, error=error)


def in_turn(one: Callable[..., Any], other: Callable[..., Any], arguments: tuple[Any, ...]) -> list[float]:
    """The median seconds of each. They may write to their arguments, so each call has its own."""
    times: tuple[list[float], list[float]] = ([], [])
    end = time.perf_counter() + SECONDS_PER_KERNEL
    while len(times[0]) < FEWEST_RUNS or (len(times[0]) < MOST_RUNS and time.perf_counter() < end):
        for function, taken in zip((one, other), times, strict=True):
            taken.append(seconds(partial(function, *copy.deepcopy(arguments)))[0])
    return [statistics.median(taken) for taken in times]


def shown(rows: Sequence[Row], size: str) -> Table:
    """The rows as a table, and what they come to beneath it."""
    table = Table(
        title=f"Kernels at size {size!r}, times in milliseconds",
        caption=f"{summary(rows)}; {sum(bool(row.changed) for row in rows)} changed",
        box=SIMPLE_HEAD,
    )
    table.add_column("kernel", no_wrap=True)
    for heading in ("first call", "NumPy", "arrayjit", "ratio", "differs"):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(row.name, *cells(row), style="red" if row.error else "")
    return table


def summary(rows: Sequence[Row]) -> str:
    ratios = [row.ratio for row in rows if row.ratio and not row.error]
    mean = f", {statistics.geometric_mean(ratios):.1f}x in the geometric mean" if ratios else ""
    return f"{sum(not row.error for row in rows)} of {len(rows)} as NumPy{mean}"


def remarks(rows: Sequence[Row]) -> Iterator[str]:
    """What the table has no room for."""
    for row in rows:
        if row.error:
            yield f"{row.name}: {row.error}"
        if row.changed:
            yield f"{row.name} was changed: {row.changed}"


def page(rows: Mapping[str, Sequence[Row]]) -> Iterator[str]:
    """The lines of docs/kernels.md, for rows by their size."""
    kernels = next(iter(rows.values()))
    changes = [f"- `{row.name}`: {row.changed}" for row in kernels if row.changed]
    changed = f"{len(changes) or 'none'} had to be changed"
    yield PAGE.format(count=len(kernels), changed=changed, machine=description(), most=MOST_RUNS)
    if changes:
        yield from ("## Changed\n", *changes, "")
    for size, taken in rows.items():
        yield f"## {size.capitalize()}\n"
        slower = [f"`{row.name}` ({row.ratio:.2f}x)" for row in taken if row.ratio and row.ratio < 1]
        yield f"{summary(taken)}. Slower than NumPy: {', '.join(slower) or 'none'}.\n"
        yield "| kernel | from | first, ms | NumPy, ms | arrayjit, ms | ratio | differs |"
        yield "|---|---|--:|--:|--:|--:|--:|"
        for row in taken:
            measured = (f"{row.error} |",) if row.error else cells(row)
            yield f"| {row.name} | {row.source} | {' | '.join(measured)} |"
        yield ""


def cells(row: Row) -> tuple[str, ...]:
    """Times in milliseconds, their ratio, and the difference from NumPy."""
    times = (milliseconds(value) for value in (row.first, row.numpy, row.warm))
    apart = "0" if row.difference == 0 else cell(row.difference, "{:.0e}")
    return *times, cell(row.ratio, "{:.2f}"), apart


def milliseconds(value: float | None) -> str:
    return cell(value, "{:,.2f}" if value and value < 0.1 else "{:,.0f}", 1e3)


def cell(value: float | None, pattern: str, scale: float = 1) -> str:
    return "" if value is None else pattern.format(value * scale)


def seconds(call: Callable[[], Any]) -> tuple[float, Any]:
    """How long the processor was busy with a call, and what it returns."""
    start = time.thread_time()
    result = call()
    return time.thread_time() - start, result


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Time the kernels by NumPy and by arrayjit.")
    parser.add_argument("--size", choices=SIZES, nargs="+", default=["medium"])
    parser.add_argument("--only", metavar="NAME", nargs="+", choices=[kernel.name for kernel in KERNELS])
    parser.add_argument("--target", default="sync_llvm", help="what runs arrayjit's code")
    parser.add_argument("--json", metavar="FILE", type=Path, help="write the rows to this file as well")
    parser.add_argument("--markdown", metavar="FILE", type=Path, help="write them as a page to this file")
    return parser.parse_args()


def main() -> int:
    chosen = options()
    environment, _ = environment_for_numpy()
    wanted = {**environment, "OPENBLAS_NUM_THREADS": "1", "ARRAYJIT_CACHE_BYTES": "0"}
    if wanted != dict(os.environ):
        return subprocess.run([sys.executable, *sys.argv], env=wanted, check=False).returncode
    kernels = [kernel for kernel in KERNELS if not chosen.only or kernel.name in chosen.only]
    arrayjit.jit(np.ones_like, target=chosen.target)(np.ones(1))  # loads the compiler
    console = Console()
    rows: dict[str, list[Row]] = {}
    for size in chosen.size:
        with console.status("") as status:
            rows[size] = []
            for kernel in kernels:
                status.update(f"{kernel.name}, {size}")
                rows[size].append(measured(kernel, size, chosen.target))
        console.print(shown(rows[size], size))
        for remark in remarks(rows[size]):
            console.print(remark, markup=False)
    every = [row for taken in rows.values() for row in taken]
    if chosen.json:
        chosen.json.write_text(json.dumps([asdict(row) | {"ratio": row.ratio} for row in every], indent=2))
    if chosen.markdown:
        chosen.markdown.write_text("\n".join(page(rows)))
    return 1 if any(row.error for row in every) else 0


if __name__ == "__main__":
    sys.exit(main())
