"""`arrayjit.bench`: a function of the user's, timed beside plain NumPy and others that can run it."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import UserError
from ..frozen import frozen_by_identity
from ..late import Late
from ..profile.machine import clock
from ..profile.roofline import roofline
from ..settings import misleading, num_threads
from .callers import CALLERS
from .environment import machine
from .peers import installed
from .requirements import need
from .results import Results
from .tasks import OURS, Task
from .timing import Effort, held
from .work import with_work

if TYPE_CHECKING:
    from . import report, tables
else:
    report = Late("arrayjit.contest.report")
    tables = Late("arrayjit.contest.tables")

__all__ = ["Benchmark", "bench"]

TOLERANCE = {"float16": 1e-2, "float32": 1e-4}
"""What results may differ by from NumPy's, as a fraction of their largest number, by the dtypes of the
arguments."""
EXACT = 1e-9
"""For other dtypes."""


@frozen_by_identity
class Benchmark:
    """What was measured; printed, it is a table.

    `results` has one row: `results.rows[0].times["numpy"].median` are seconds.
    """

    results: Results

    def ratio(self, peer: str = "numpy") -> float:
        """How many times as fast as the peer arrayjit is. Raises UserError where one of both was not
        timed."""
        row = self.results.rows[0]
        ratio = row.ratio(peer)
        if ratio is None:
            reasons = [f"{name}: {time.error}" for name, time in row.times.items() if time.error]
            raise UserError(f"there are no times to compare with {peer}", details=tuple(reasons))
        return ratio

    def save(self, path: str | Path) -> None:
        """Write an HTML page or, if the name ends in `.json`, the numbers. Raises UserError where that
        cannot be written, MissingPackage without matplotlib."""
        report.write(self.results, Path(path))

    def __str__(self) -> str:
        return tables.text(self.results)

    __repr__ = __str__


def bench(
    function: Callable[..., Any],
    *arguments: Any,
    peers: Sequence[str] = ("numpy",),
    seconds: float = 0.5,
    tolerance: float | None = None,
) -> Benchmark:
    """Time calls of a function by arrayjit and by `peers`: "numpy", "numba", "jax", "torch.compile".

    The function is one for NumPy, jitted or not; in JAX's version `np` is `jax.numpy`, Numba and PyTorch
    compile it as it is. The arguments are copied, and each call of a function that writes to them has fresh
    copies. What differs from NumPy's result by more than `tolerance`, a fraction of the largest number of
    each result, is not timed, nor is who refuses the function or is not installed; the result says so.
    Samples are taken in turn, for about `seconds` each. Times are those of the processor if everybody uses
    one thread, else those that pass.

    Raises what the function raises in NumPy, and UserError for peers of other names.
    """
    need("rich")
    names = [row.name for row in CALLERS]
    if unknown := [peer for peer in peers if peer not in names]:
        raise UserError(f"there is no peer {unknown[0]!r}", fix=f"choose among {', '.join(names)}")
    found, reasons = installed(CALLERS, (OURS, *peers))
    threads = num_threads()
    plain = inspect.unwrap(function)
    kept = copy.deepcopy(arguments)
    task = Task(
        suite="functions",
        name=getattr(plain, "__qualname__", repr(plain)),
        size="",
        dtype="",
        function=plain,
        make=lambda: copy.deepcopy(kept),
        tolerance=default_tolerance(kept) if tolerance is None else tolerance,
        program=function,
    )
    row = held(task, found, threads, clock(threads), Effort(seconds))
    if not row.times[OURS].error:
        row = with_work(row, task)
    slow = [f"{name} is set, which slows NumPy's products down" for name in misleading()]
    return Benchmark(Results(machine(), {threads: roofline(threads)}, [row], (*reasons, *slow)))


def default_tolerance(arguments: tuple[Any, ...]) -> float:
    """For the narrowest floats among the arguments."""
    dtypes = {str(one.dtype) for one in arguments if isinstance(one, (np.ndarray, np.generic))}
    return max((TOLERANCE.get(dtype, EXACT) for dtype in dtypes), default=EXACT)
