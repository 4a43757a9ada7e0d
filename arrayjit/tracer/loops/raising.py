"""Exceptions that the user's code raises in what may not run: compiled code raises them, if it does."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from opcode import opmap
from typing import TypeVar, Union

import numpy as np

from ...errors import Location, UnsupportedError, UserError
from ...frozen import frozen
from ..record.trace import location_of
from ..values.array import TEXT

__all__ = ["Raised", "outcome"]

T = TypeVar("T")

_RAISE = opmap["RAISE_VARARGS"]


@frozen
class Raised:
    """The exception of a `raise` or an `assert` of the user's: its class, with the module, and its text."""

    exception: str
    message: str
    loc: Location | None


def outcome(run: Callable[[], T]) -> Union[T, Raised]:
    """What `run` gives, or what the user's code raised there by a statement of its own. Other exceptions are
    mistakes, and are raised. Raises UnsupportedError for an exception that compiled code cannot make."""
    try:
        return run()
    except UserError:
        raise
    except Exception as error:
        if not _is_raised_by_a_statement(error):
            raise
        return _raised(error)


def _is_raised_by_a_statement(error: Exception) -> bool:
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    return last is not None and last.tb_frame.f_code.co_code[last.tb_lasti] == _RAISE


def _raised(error: Exception) -> Raised:
    kind, loc = type(error), location_of(error)
    known = getattr(builtins, kind.__name__, None) is kind or kind is np.linalg.LinAlgError
    if not known or not all(type(part) is str for part in error.args[:1]) or len(error.args) > 1:
        raise UnsupportedError(
            f"{error!r} is raised where only the compiled function knows whether it is",
            loc=loc,
            fix="raise one of Python's own exceptions with a text: ValueError('...')",
        ) from None
    message = "".join(error.args)
    if TEXT in message:
        raise UnsupportedError(
            f"the text of an exception shows a value that is known only when it is raised: {message!r}",
            loc=loc,
            fix="leave the value out of the text",
        ) from None
    return Raised(f"{kind.__module__}.{kind.__name__}", message, loc)
