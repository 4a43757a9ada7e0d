"""The kernels of `bench/kernels` for JAX: expressions and loops without side effects.

A kernel returns what it returns in NumPy, and then what has become of the arguments that it writes to."""

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
