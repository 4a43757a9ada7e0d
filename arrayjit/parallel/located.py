"""Mistakes are shown at the user's line."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TypeVar

from typing_extensions import ParamSpec

from ..errors import UserError
from ..tracer.record.trace import user_location

__all__ = ["located"]

P = ParamSpec("P")
R = TypeVar("R")


def located(function: Callable[P, R]) -> Callable[P, R]:
    """The function, whose errors name the line that called it unless they name another."""

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except UserError as error:
            error.loc = error.loc or user_location()
            raise

    return call
