"""Where in the user's program something was asked for."""

from __future__ import annotations

import sys

from ..errors import Location

__all__ = ["here"]

_PACKAGE = __name__.partition(".")[0] + "."


def here() -> Location:
    """The innermost line on the stack that is not arrayjit's own."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(_PACKAGE):
        frame = frame.f_back
    return Location(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)
