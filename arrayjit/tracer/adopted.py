"""NumPy functions that are traced through NumPy's own Python code, as a function of the user's would be.

Only functions whose code needs no number of its arguments to choose what to do; each has a test.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from .registry import implements
from .trace import current_trace

__all__: list[str] = []

_ADOPTED: tuple[Any, ...] = (
    np.apply_over_axes,
    np.corrcoef,
    np.cov,
    np.gradient,
    np.polyadd,
    np.polyder,
    np.polysub,
    np.polyval,
    np.sinc,
    np.trapezoid,
    np.unwrap,
    np.vander,
)


def _adopted(code: Any) -> Callable[..., Any]:
    """A function that runs NumPy's code with the trace's view of its names."""

    @wraps(code)
    def function(*args: Any, **kwargs: Any) -> Any:
        return current_trace().namespace.rebuilt(code)(*args, **kwargs)

    return function


for _function in _ADOPTED:
    implements(_function)(_adopted(_function.__wrapped__))
