"""NumPy functions that are traced through Python code, as a function of the user's would be: through NumPy's
own, where that needs no number of its arguments to choose what to do, or through programs of ours.

Each has a test.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

import numpy as np

from ..record.registry import creates, implements
from ..record.trace import current_trace

__all__ = ["numpy_program"]

Function = TypeVar("Function", bound=Callable[..., Any])

_ADOPTED: tuple[Any, ...] = (
    np.angle,
    np.append,
    np.apply_over_axes,
    np.argwhere,
    np.column_stack,
    np.common_type,
    np.corrcoef,
    np.dstack,
    np.flatnonzero,
    np.hstack,
    np.i0,
    np.intersect1d,
    np.isclose,
    np.iscomplex,
    np.isreal,
    np.isrealobj,
    np.linalg.diagonal,
    np.linalg.matrix_norm,
    np.linalg.svdvals,
    np.linalg.tensorinv,
    np.linalg.trace,
    np.logspace,
    np.poly,
    np.polyadd,
    np.polyder,
    np.polyint,
    np.polysub,
    np.polyval,
    np.resize,
    np.sinc,
    np.sort_complex,
    np.trapezoid,
    np.union1d,
    np.unique_all,
    np.unique_counts,
    np.unique_inverse,
    np.unwrap,
    np.vander,
    np.vstack,
    *([np.astype] if hasattr(np, "astype") else ()),  # which NumPy 2.0 lacks
)


def numpy_program(code: Function) -> Function:
    """The function, run with the trace's view of its names: its loops become loops of the program."""

    @wraps(code)
    def function(*args: Any, **kwargs: Any) -> Any:
        return current_trace().namespace.rebuilt(code)(*args, **kwargs)

    return cast(Function, function)


for _function in _ADOPTED:
    implements(_function)(numpy_program(_function.__wrapped__))

for _function in (np.fromfunction, np.require):
    creates(_function)(numpy_program(_function))
