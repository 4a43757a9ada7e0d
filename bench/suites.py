"""What `python -m arrayjit bench` measures: `SUITES` is the table.

The tasks of each suite are in a module of their own, written in plain NumPy; `peers` has them as users of
other compilers write them.
"""

from __future__ import annotations

from collections.abc import Iterator

from calls import calls
from compiling import compiling
from gpu import on_gpu
from kernels import KERNELS
from programs import matmul, memory, vector
from reductions import reductions
from starting import children_seconds, starting

from arrayjit.contest.tasks import Choice, Suite, Task

__all__ = ["SUITES", "kernels"]

FLOATING = 1e-7
"""Compilers that use fused multiply-adds round otherwise than NumPy, also where arrayjit must not, and some
kernels are chaotic."""
QUICK = ("cholesky", "jacobi_2d", "layer_norm", "black_scholes")


def kernels(choice: Choice) -> Iterator[Task]:
    """The kernels, whatever their dtypes."""
    for size in choice.sizes or ("medium",):
        for kernel in KERNELS:
            if (choice.quick and kernel.name not in QUICK) or size not in kernel.sizes:
                continue
            yield Task(
                suite="kernels",
                name=kernel.name,
                size=size,
                dtype="",
                function=kernel.plain or kernel.function,
                make=lambda kernel=kernel, size=size: kernel.arguments(size),
                tolerance=max(kernel.tolerance, FLOATING),
                program=kernel.function,
            )


SUITES = {
    suite.name: suite
    for suite in (
        Suite("kernels", "Scientific programs, a call each.", kernels),
        Suite("matmul", "Products of matrices, alone and in a layer of a network.", matmul),
        Suite("vector", "Elementary functions of arrays, and what is made of them.", vector),
        Suite("reductions", "Sums, extremes and scans of arrays of a million numbers.", reductions),
        Suite("memory", "Programs that do little but move arrays of so many megabytes.", memory),
        Suite("calls", "Calls on arrays of 16 numbers: what calling itself costs.", calls, threaded=False),
        Suite("compile", "First calls of functions in a process that has compiled before.", compiling, False),
        Suite(
            "gpu",
            "Arrays in a GPU's memory, until the GPU is done.",
            on_gpu,
            targets=("cuda", "cuda-sim"),
        ),
        Suite(
            "startup",
            "Whole processes, in processor time: an import, a first call, one whose code was kept.",
            starting,
            threaded=False,
            clock=lambda threads: children_seconds,
        ),
    )
}
