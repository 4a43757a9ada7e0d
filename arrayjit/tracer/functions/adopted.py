"""NumPy functions that are traced through Python code, as a function of the user's would be: through NumPy's
own, where that needs no number of its arguments to choose what to do, or through programs of ours.

Each has a test.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, TypeVar, cast

import numpy as np

from ...errors import DTypeError, ShapeError, UserError
from ..record.registry import AnyCallable, creates, implements
from ..record.trace import current_trace
from ..values.array import SymbolicArray, describe
from .operands import AxisError, no_axis

__all__ = ["adopted", "numpy_program"]

Function = TypeVar("Function", bound=Callable[..., Any])

_NEWER = ("astype", "cumulative_prod", "cumulative_sum", "unstack")
"""Functions that NumPy 2.0 lacks."""

_ADOPTED: tuple[Any, ...] = (
    np.angle,
    np.append,
    np.apply_over_axes,
    np.argwhere,
    np.column_stack,
    np.common_type,
    np.corrcoef,
    np.diff,
    np.dsplit,
    np.dstack,
    np.extract,
    np.flatnonzero,
    np.fliplr,
    np.flipud,
    np.hsplit,
    np.hstack,
    np.i0,
    np.intersect1d,
    np.isclose,
    np.iscomplex,
    np.isneginf,
    np.isposinf,
    np.isreal,
    np.isrealobj,
    np.linalg.cross,
    np.linalg.diagonal,
    np.linalg.matrix_norm,
    np.linalg.outer,
    np.linalg.svdvals,
    np.linalg.tensorinv,
    np.linalg.trace,
    np.linalg.vector_norm,
    np.logspace,
    np.poly,
    np.polyadd,
    np.polyder,
    np.polyint,
    np.polysub,
    np.polyval,
    np.ptp,
    np.resize,
    np.rollaxis,
    np.sinc,
    np.sort_complex,
    np.split,
    np.trapezoid,
    np.union1d,
    np.unique_all,
    np.unique_counts,
    np.unique_inverse,
    np.unwrap,
    np.vander,
    np.vsplit,
    np.vstack,
    *(getattr(np, name) for name in _NEWER if hasattr(np, name)),
)


def numpy_program(code: Function) -> Function:
    """The function, run with the trace's view of its names: its loops become loops of the program."""

    @wraps(code)
    def function(*args: Any, **kwargs: Any) -> Any:
        return current_trace().namespace.rebuilt(code)(*args, **kwargs)

    return cast(Function, function)


def adopted(code: Callable[..., Any]) -> AnyCallable:
    """Code of NumPy's as such a program. Its exceptions are the user's mistakes."""
    program = numpy_program(code)

    @wraps(code)
    def function(*args: Any, **kwargs: Any) -> Any:
        try:
            return program(*args, **kwargs)
        except Exception as error:
            if type(error) not in _MISTAKES or not _is_numpys(error):
                raise
            if isinstance(error, np.exceptions.AxisError) and error.ndim is not None:
                raise no_axis(str(error), error.ndim) from None
            given = tuple(describe(each) for each in args if type(each) is SymbolicArray)
            raise _MISTAKES[type(error)](str(error), details=given) from None

    return function


_MISTAKES: Mapping[type[Exception], Callable[..., UserError]] = {
    TypeError: DTypeError,
    ValueError: ShapeError,
    np.exceptions.AxisError: AxisError,
}


_NUMPYS = os.path.dirname(np.__file__) + os.sep


def _is_numpys(error: Exception) -> bool:
    """Whether code of NumPy's raises an exception, and not a function that it was given."""
    if isinstance(error, np.exceptions.AxisError):
        return True
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    return last is not None and last.tb_frame.f_code.co_filename.startswith(_NUMPYS)


for _function in _ADOPTED:
    implements(_function)(adopted(_function.__wrapped__))

for _function in (np.fromfunction, np.require):
    creates(_function)(numpy_program(_function))
