"""What does the first call of a process cost? `python bench/first_calls.py [--only NAME ...] [--size SIZE]`

Every kernel of `bench/kernels` in processes of its own, in processor time: with an empty cache, where it is
compiled, and with what the process before has kept. Milliseconds; the smallest of so many processes, since
whatever else runs can only add to it. The imports are NumPy's, then arrayjit's on top of it.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from kernels import KERNELS
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import track
from rich.table import Table

PROCESSES = 3
BAR = 10.0
"""Milliseconds that the first call of a process may take once its code is kept."""

CHILD = """
import time
start = time.process_time()
import numpy
numpy_there = time.process_time()
import arrayjit
there = time.process_time()
import json, sys
from kernels import KERNELS
kernel = next(kernel for kernel in KERNELS if kernel.name == sys.argv[1])
arguments = kernel.arguments(sys.argv[2])
function = arrayjit.jit(kernel.function)
before = time.process_time()
function(*arguments)
after = time.process_time()
function(*arguments)
end = time.process_time()
first, warm = after - before, end - after
print(json.dumps([numpy_there - start, there - numpy_there, first - warm, "llvmlite" in sys.modules]))
"""


@dataclass(frozen=True, slots=True)
class Row:
    """Milliseconds of a kernel: the imports, and what the first call takes longer than the second."""

    name: str
    numpy: float
    arrayjit: float
    compiled: float
    recalled: float


def measured(name: str, size: str) -> Row:
    with tempfile.TemporaryDirectory() as folder:
        cold = list(child(name, size, folder))
        warm = [list(child(name, size, folder)) for _ in range(PROCESSES)]
    loads = [bool(took[3]) for took in (cold, *warm)]
    assert loads == [True] + PROCESSES * [False], f"{name}: which processes loaded LLVM is {loads}"
    numpy, ours, recalled = (min(took[k] for took in warm) for k in range(3))
    return Row(name, numpy, ours, cold[2], recalled)


def child(name: str, size: str, folder: str) -> Iterator[float]:
    here = Path(__file__).parent
    paths = [str(here), str(here.parent), *sys.path]
    environment = {**os.environ, "ARRAYJIT_CACHE_DIR": folder, "PYTHONPATH": os.pathsep.join(paths)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, "-c", CHILD, name, size]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    for value in json.loads(ran.stdout.splitlines()[-1]):
        yield value * 1e3


def shown(rows: Sequence[Row]) -> Table:
    slow = [row.name for row in rows if row.recalled > BAR]
    table = Table(
        title="First calls, milliseconds beside the second one",
        caption=f"imports: NumPy {median(rows, 'numpy'):.0f}, arrayjit {median(rows, 'arrayjit'):.0f} more; "
        f"above {BAR:.0f} ms: {', '.join(slow) or 'none'}",
        box=SIMPLE_HEAD,
    )
    table.add_column("kernel", no_wrap=True)
    table.add_column("compiled", justify="right")
    table.add_column("recalled", justify="right")
    for row in sorted(rows, key=lambda row: -row.recalled):
        table.add_row(row.name, f"{row.compiled:.1f}", f"{row.recalled:.1f}")
    return table


def median(rows: Sequence[Row], what: str) -> float:
    return statistics.median(getattr(row, what) for row in rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--only", nargs="*", metavar="NAME", help="the kernels, by default all")
    parser.add_argument("--size", default="medium", help="small, medium or large")
    chosen = parser.parse_args()
    names = [kernel.name for kernel in KERNELS if not chosen.only or kernel.name in chosen.only]
    Console().print(shown([measured(name, chosen.size) for name in track(names, transient=True)]))


if __name__ == "__main__":
    main()
