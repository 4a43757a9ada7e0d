"""Whole processes: what importing a compiler costs, and what a first call does."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import arrayjit
from arrayjit.contest.tasks import Arguments, Choice, Entry, Task

__all__ = ["children_seconds", "process", "starting"]

STARTS = Path(__file__).parent / "peers" / "starts"
"""A script for each peer: a function, compiled as its users do, called once; prints the sum of the result."""
PATHS = (str(Path(arrayjit.__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")]))
GIVEN = {**os.environ, "PYTHONPATH": os.pathsep.join(PATHS), "PYTHONDONTWRITEBYTECODE": ""}
"""Python keeps the code of modules, as it does unless it is told otherwise."""
CACHES = ("ARRAYJIT_CACHE_DIR", "NUMBA_CACHE_DIR", "JAX_COMPILATION_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR")
KEEPING = {
    "ARRAYJIT_CACHE_BYTES": "",
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
}
"""What has everybody keep all that they compile."""
ALL = ("numpy", "arrayjit", "numba", "numexpr", "jax", "torch")


def children_seconds() -> float:
    """The processor time of all processes that this one has started and that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def nothing() -> float:
    return 0.0


def hypotenuses() -> float:
    """What the scripts print."""
    x, y = np.arange(16.0), np.ones(16)
    return float(np.sqrt(x * x + y * y).sum())


def no_arguments() -> Arguments:
    return ()


ROWS: dict[str, tuple[Callable[[], float], tuple[str, ...]]] = {
    "import": (nothing, ALL),
    "first call": (hypotenuses, (*ALL, "torch.compile")),
    "first call, kept": (hypotenuses, ("numpy", "arrayjit", "numba", "jax")),
}


def starting(choice: Choice) -> Iterator[Task]:
    for name, (function, peers) in ROWS.items():
        if not choice.quick or name == "first call, kept":
            yield Task("startup", name, "", "", function, no_arguments, 1e-6, peers=peers)


def process(package: str, script: str, task: Task) -> Entry:
    """A call is a process: it imports the package, or runs the script."""
    command = ["-c", f"import {package}; print(0)"] if task.name == "import" else [str(STARTS / script)]
    return Entry(partial(start, command, task.name.endswith("kept")))


def start(command: list[str], is_kept: bool) -> Callable[..., Any]:
    """Everybody's caches are empty, unless what the first process keeps is for the later ones."""
    folder = tempfile.TemporaryDirectory()
    kept = {name: folder.name for name in CACHES} | KEEPING if is_kept else {}

    def call() -> float:
        with tempfile.TemporaryDirectory() as empty:
            caches = kept or {name: empty for name in CACHES}
            ran = subprocess.run(
                [sys.executable, *command],
                env={**GIVEN, **caches},
                check=True,
                stdout=subprocess.PIPE,
                text=True,
                cwd=folder.name,
            )
        return float(ran.stdout.split()[-1])

    return call
