"""Where the user's code is: in which trace, and at which line."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from contextvars import ContextVar
from functools import lru_cache
from typing import Any

import numpy as np

from ...errors import ConcretizationError, Location, UnsupportedError, UserError

__all__ = ["CURRENT_TRACE", "CYTHON", "caught", "location_of", "tracing", "user_location"]

_NOT_THE_USERS = (
    os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) + os.sep,
    os.path.dirname(np.__file__) + os.sep,
    "<frozen ",  # the interpreter's own start-up and import code
)
_PYTHONS = os.path.dirname(os.__file__) + os.sep
_PACKAGES = tuple(os.path.join(_PYTHONS, folder) + os.sep for folder in ("site-packages", "dist-packages"))

CYTHON = (".pyx", ".pxd", ".pxi", "<stringsource>")
"""How the files of code in Cython end, which is compiled, and looks at the memory of arrays."""


@lru_cache(maxsize=1024)
def _is_users(file: str) -> bool:
    """Whether a file of code in Python is none of arrayjit's, of NumPy's or of Python's own modules."""
    is_pythons = file.startswith(_PYTHONS) and not file.startswith(_PACKAGES)
    return not is_pythons and not file.startswith(_NOT_THE_USERS) and not file.endswith(CYTHON)


def user_location() -> Location | None:
    """The innermost line that is neither arrayjit's, nor NumPy's, nor of Python's own modules; where only
    these run the user's function, the innermost of Python's."""
    pythons = None
    frame = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if _is_users(file):
            return Location(file, frame.f_lineno, frame.f_code.co_name)
        if pythons is None and not file.startswith(_NOT_THE_USERS):
            pythons = Location(file, frame.f_lineno, frame.f_code.co_name)
        frame = frame.f_back  # type: ignore[assignment]
    return pythons


def location_of(error: BaseException) -> Location | None:
    """The innermost line of the user's, as above, that an exception passed through."""
    found = None
    traceback = error.__traceback__
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if _is_users(code.co_filename):
            found = Location(code.co_filename, traceback.tb_lineno, code.co_name)
        traceback = traceback.tb_next
    return found


def caught(errors: Iterable[UserError]) -> UserError | None:
    """The first error that NumPy would not have raised and that the user's code has caught: what it did then
    is not what the function means."""
    for error in errors:
        handled = error.__traceback__
        if not isinstance(error, (ConcretizationError, UnsupportedError)) or handled is None:
            continue
        code = handled.tb_frame.f_code
        if _is_users(code.co_filename):
            error.details = (*error.details, f"{code.co_name} catches this, which NumPy does not raise")
            return error
    return None


CURRENT_TRACE: ContextVar[Any] = ContextVar("arrayjit_trace", default=None)
"""The trace that is recorded in this context; what it leaves is None, or one that is closed."""


def tracing() -> bool:
    """Whether a trace is open in this context."""
    trace = CURRENT_TRACE.get()
    return trace is not None and trace.is_open
