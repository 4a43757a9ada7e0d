"""arrayjit beside what users would pick instead, in one run: `python bench/comparison.py SUITE [options]`.

The suites: matmul, vector, memory, and kernels, which are the programs of `bench/kernels`. Every entry is
compared with NumPy before it is timed; the entries of a row are timed in turn. One thread is measured by the
time that the processor spends, more by the time that passes, after a pause in which the entry before goes to
sleep. Each number of threads gets a process of its own, in which every peer is told to use so many, without
the variables that would slow OpenBLAS down. Peers that are not installed have no column. Exits with 1 where a
result is wrong or something is refused.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path

from contest import Row, held
from kernels import KERNELS
from machine import Limits, best_of, clock, description, limits
from peers import PEERS, installed
from rich.console import Console
from standings import markdown, printed
from workloads import SUITES, Task

__all__ = ["environment", "kernels", "main"]

DTYPES = ("float32", "float64")
THREAD_VARIABLES = (
    "ARRAYJIT_NUM_THREADS", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS", "NUMEXPR_NUM_THREADS", "NPROC",
)  # fmt: skip
"""Where the peers read how many threads they may use; the last is JAX's."""
MISLEADING = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "NVPL_BLAS_DEBUG_CPU_TYPE")
"""They make BLAS libraries choose kernels for another machine than this one."""
FLOATING = 1e-7
"""Compilers that use fused multiply-adds round otherwise than NumPy, also where arrayjit must not, and some
kernels are chaotic."""


def kernels(dtypes: tuple[str, ...], sizes: tuple[str, ...] | None = None) -> Iterator[Task]:
    """The kernels, whatever their dtypes."""
    for size in sizes or ("medium",):
        for kernel in KERNELS:
            yield Task(
                suite="kernels",
                name=kernel.name,
                size=size,
                dtype="",
                function=kernel.plain or kernel.function,
                arguments=kernel.arguments(size),
                tolerance=max(kernel.tolerance, FLOATING),
                program=kernel.function,
            )


def environment(threads: int) -> dict[str, str]:
    """Of the process that measures with so many threads, and compiles itself what it calls first."""
    kept = {name: value for name, value in os.environ.items() if name not in MISLEADING}
    compiling = {"TORCHINDUCTOR_COMPILE_THREADS": "1", "ARRAYJIT_CACHE_BYTES": "0"}
    return kept | dict.fromkeys(THREAD_VARIABLES, str(threads)) | compiling


def measured(chosen: argparse.Namespace, threads: int, console: Console) -> tuple[list[Row], Limits]:
    """Every row of the suite, and what the machine can do, measured before and after."""
    peers, reasons = installed(tuple(chosen.peers) if chosen.peers else None)
    for reason in reasons:
        console.print(reason)
    suite = {**SUITES, "kernels": kernels}[chosen.suite]
    rows = []
    before = limits(threads)
    with console.status("") as status:
        for task in suite(tuple(chosen.dtype), tuple(chosen.size) if chosen.size else None):
            if not chosen.only or task.name in chosen.only:
                status.update(f"{task.name} {task.size} {task.dtype}, {threads} thread(s)")
                rows.append(held(task, peers, threads, clock(threads)))
    if not rows:
        raise SystemExit(f"{chosen.suite} has no such row")
    return rows, best_of(before, limits(threads))


def options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("suite", choices=[*SUITES, "kernels"])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--size", nargs="+", help="of the arrays, as the suite calls them")
    parser.add_argument("--dtype", nargs="+", choices=DTYPES, default=list(DTYPES))
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these rows")
    parser.add_argument("--peers", nargs="+", choices=[row.name for row in PEERS], help="these columns")
    parser.add_argument("--json", metavar="FILE", type=Path, help="write the rows to this file as well")
    parser.add_argument("--markdown", metavar="FILE", type=Path, help="write them as a page to this file")
    return parser.parse_args(arguments)


def document(words: str, rows: list[Row], machine: Mapping[int, Limits]) -> str:
    """What `--json` writes, and each process hands to the one that started it."""
    reached = {threads: asdict(measured) for threads, measured in machine.items()}
    whole = {"machine": words, "limits": reached, "rows": [row.as_json() for row in rows]}
    return json.dumps(whole, indent=1)


def read(text: str) -> tuple[list[Row], dict[int, Limits]]:
    whole = json.loads(text)
    reached = {int(threads): Limits(**measured) for threads, measured in whole["limits"].items()}
    return [Row.from_json(row) for row in whole["rows"]], reached


def in_processes(arguments: list[str], threads: list[int]) -> tuple[list[Row], dict[int, Limits]]:
    """The same command for each number of threads."""
    rows, reached = [], {}
    with tempfile.TemporaryDirectory() as folder:
        for count in threads:
            file = Path(folder) / f"{count}.json"
            command = [sys.executable, __file__, *arguments, "--threads", str(count), "--json", str(file)]
            ended = subprocess.run(command, env=environment(count), check=False)
            if not file.exists():
                raise SystemExit(ended.returncode)
            more, limits_now = read(file.read_text())
            rows += more
            reached |= limits_now
    return rows, reached


def write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def main(arguments: list[str] | None = None) -> int:
    given = sys.argv[1:] if arguments is None else arguments
    chosen, words = options(given), f"{description()}; load {os.getloadavg()[0]:.1f} before"
    console = Console(width=None if sys.stdout.isatty() else 200)
    if chosen.threads[1:] or dict(os.environ) != environment(chosen.threads[0]):
        console.print(f"without {', '.join(name for name in MISLEADING if name in os.environ) or 'changes'}")
        rows, reached = in_processes(given, chosen.threads)
    else:
        (threads,) = chosen.threads
        rows, taken = measured(chosen, threads, console)
        reached = {threads: taken}
        printed(console, chosen.suite, rows, taken)
    if chosen.json:
        write(chosen.json, document(words, rows, reached))
    if chosen.markdown:
        write(chosen.markdown, markdown(chosen.suite, rows, reached, words))
    return 1 if any(time.error for row in rows for time in row.times.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
