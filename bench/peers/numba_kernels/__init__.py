"""The kernels of `bench/kernels` for Numba: loops, as its users write them, on NumPy's arrays."""

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
from .sequences import SEQUENCES
from .solvers import SOLVERS
from .stencils import STENCILS
from .waves import WAVES

__all__ = ["KERNELS"]

KERNELS = {
    **LINEAR_ALGEBRA,
    **FACTORISATIONS,
    **STENCILS,
    **DIFFERENTIAL_EQUATIONS,
    **LAYERS,
    **OBSERVATIONS,
    **ITERATIONS,
    **SOLVERS,
    **LEARNING,
    **IMAGES,
    **SEQUENCES,
    **BODIES,
    **FINANCE,
    **WAVES,
}
