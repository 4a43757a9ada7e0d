"""Scientific programs in plain NumPy, as the sciences write them: `KERNELS` is the table of all of them.

Each module holds the programs of a field, written from their descriptions, and ends in its rows. The
programs know nothing of arrayjit; where one had to be changed for it, its row says so.
"""

from __future__ import annotations

from .bodies import BODIES
from .differential_equations import DIFFERENTIAL_EQUATIONS
from .factorisations import FACTORISATIONS
from .finance import FINANCE
from .images import IMAGES
from .iterations import ITERATIONS
from .layers import LAYERS
from .learning import LEARNING
from .linear_algebra import LINEAR_ALGEBRA
from .observations import OBSERVATIONS
from .registry import Kernel, difference, results_of
from .sequences import SEQUENCES
from .solvers import SOLVERS
from .stencils import STENCILS
from .waves import WAVES

__all__ = ["KERNELS", "Kernel", "difference", "results_of"]

KERNELS: tuple[Kernel, ...] = (
    *LINEAR_ALGEBRA,
    *FACTORISATIONS,
    *STENCILS,
    *DIFFERENTIAL_EQUATIONS,
    *LAYERS,
    *OBSERVATIONS,
    *ITERATIONS,
    *SOLVERS,
    *LEARNING,
    *IMAGES,
    *SEQUENCES,
    *BODIES,
    *FINANCE,
    *WAVES,
)
