"""The process that measures: its environment, and the machine that it runs on, in words."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from datetime import datetime, timezone
from importlib.metadata import PackageNotFoundError, version

from ..profile.machine import description
from ..settings import environment_for_numpy, num_threads, variables

__all__ = ["COMPARED", "THREAD_VARIABLES", "environment", "is_ready", "machine"]

THREAD_VARIABLES = (
    "ARRAYJIT_NUM_THREADS", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS", "NUMEXPR_NUM_THREADS", "NPROC",
)  # fmt: skip
"""Where the peers read how many threads they may use; the last is JAX's."""
SLOWING = ("PYTHONDONTWRITEBYTECODE",)
"""It has every process compile again what it imports, where first calls do: a second of it."""
COMPARED = ("arrayjit", "numpy", "llvmlite", "numba", "jax", "torch", "numexpr", "scipy", "cupy")
"""The packages whose versions matter."""


def environment(threads: int) -> dict[str, str]:
    """Of the process that measures with so many threads, and compiles itself what it calls first."""
    kept = {name: value for name, value in environment_for_numpy().items() if name not in SLOWING}
    compiling = {"TORCHINDUCTOR_COMPILE_THREADS": "1", "ARRAYJIT_CACHE_BYTES": "0"}
    compiling |= {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}  # else JAX takes most of a GPU's memory
    return kept | dict.fromkeys(THREAD_VARIABLES, str(threads)) | compiling


def is_ready(threads: int) -> bool:
    """Whether this process has such an environment."""
    return variables() == environment(threads)


def machine() -> dict[str, str]:
    """The processor, the system and the versions, by what they are about."""
    load = ", ".join(f"{part:.1f}" for part in os.getloadavg())
    return {
        "date": datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "processor": description().partition(";")[0],
        "cores": f"{os.cpu_count()}, of which this process may use {num_threads()}",
        "memory": f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.1f} GiB",
        "system": f"{platform.system()} {platform.release()}",
        "load before": load,
        "Python": platform.python_version(),
        **dict(versions()),
    }


def versions() -> Iterator[tuple[str, str]]:
    """Of the packages that are installed."""
    for name in COMPARED:
        try:
            yield name, version(name)
        except PackageNotFoundError:
            continue
