"""What a function and its parameters are called."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...errors import StaticArgumentError
from ..record.current import user_location
from .signature import StaticArguments

__all__ = ["name_of", "parameters_of", "positional_names", "static_arguments"]


def parameters_of(function: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    """The parameters by name; none for a function of C code that does not tell."""
    try:
        return inspect.signature(function).parameters
    except (TypeError, ValueError):
        return {}


def positional_names(function: Callable[..., Any], count: int) -> list[str]:
    """A name for each of `count` positional arguments."""
    parameters = parameters_of(function).values()
    positional = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    rest = next((p.name for p in parameters if p.kind is p.VAR_POSITIONAL), "arg")
    return [positional[n] if n < len(positional) else f"{rest}{n - len(positional)}" for n in range(count)]


def static_arguments(function: Callable[..., Any], names: Sequence[str]) -> StaticArguments:
    """The arguments called `names`. Raises StaticArgumentError for a name that is no parameter."""
    if not names:
        return StaticArguments()
    parameters = list(parameters_of(function).values())
    known = {parameter.name: position for position, parameter in enumerate(parameters)}
    takes_any = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters)
    for name in names:
        if name not in known and not takes_any:
            raise StaticArgumentError(
                f"static_argnames names {name!r}, which is no parameter of {name_of(function)}",
                loc=user_location(),
                details=(f"its parameters are {', '.join(known) or 'none'}",),
                fix="name parameters of the function",
            )
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    positions = {known[n] for n in names if n in known and parameters[known[n]].kind in positional}
    return StaticArguments(frozenset(positions), frozenset(names))


def name_of(function: Callable[..., Any]) -> str:
    """An identifier for a function."""
    if isinstance(function, functools.partial):
        return name_of(function.func)
    name = getattr(function, "__name__", type(function).__name__)
    return name if name.isidentifier() else "function"
