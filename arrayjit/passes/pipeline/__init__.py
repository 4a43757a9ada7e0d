"""THE table of passes, in the order in which they run.

Its rows stand in `assignments`, `nests` and `lanes`. A pass is a pure function in a file of its name; adding
one is adding a row. Those for GPUs alone are imported when they first run, which in most processes they never
do. `after` names the passes that must have run and `why` says what would go wrong otherwise. A pass that
changes nothing returns the very object it was given. Without one that is `optional` programs are right, and
some are slower. `explained` tells, once somebody asks, what a run of the pass did and left undone beside what
it noted on the kernel.
"""

from __future__ import annotations

from ...ir.assign import Computation
from ...ir.loops import Kernel
from ..structure.lower import lower
from ..table import BOTH, Pass
from .assignments import ON_ASSIGNMENTS
from .lanes import ON_LANES
from .nests import ON_NESTS

__all__ = ["LOWERING", "ON_ASSIGNMENTS", "ON_LOOPS", "OPTIONAL"]

LOWERING: Pass[Computation, Kernel] = Pass(lower, on=BOTH)

ON_LOOPS: tuple[Pass[Kernel, Kernel], ...] = (*ON_NESTS, *ON_LANES)

OPTIONAL = frozenset(
    (
        *(step.name for step in ON_ASSIGNMENTS if step.optional),
        *(step.name for step in ON_LOOPS if step.optional),
    )
)
"""A schedule may leave these out."""
