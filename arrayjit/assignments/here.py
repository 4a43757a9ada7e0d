"""Where in the user's program something was asked for."""

from __future__ import annotations

import sys

from ..errors import Location

__all__ = ["here"]

_NOT_THE_USER_S = (__name__.partition(".")[0] + ".", "numpy.")


def here() -> Location:
    """The innermost line on the stack that is neither arrayjit's own nor NumPy's."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(_NOT_THE_USER_S):
        frame = frame.f_back
    return Location(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)
