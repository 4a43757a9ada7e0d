"""What a function and its parameters are called."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...errors import StaticArgumentError
from ..record.current import user_location
from .signature import Declared, Named

__all__ = ["declared", "name_of", "parameters_of", "positional_names"]


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


def declared(
    function: Callable[..., Any], static: Sequence[str] = (), any_length: Sequence[str] = ()
) -> Declared:
    """What is declared of the arguments with these names. Raises StaticArgumentError for a name that is no
    parameter, or is among both."""
    for name in static:
        if name in any_length:
            raise StaticArgumentError(
                f"{name!r} is static, and its arrays are said to have any length",
                loc=user_location(),
                fix="leave it out of static_argnames or of any_length",
            )
    return Declared(_named(function, "static_argnames", static), _named(function, "any_length", any_length))


def _named(function: Callable[..., Any], option: str, names: Sequence[str]) -> Named:
    """The arguments called `names`."""
    if not names:
        return Named()
    parameters = list(parameters_of(function).values())
    known = {parameter.name: position for position, parameter in enumerate(parameters)}
    takes_any = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters)
    for name in names:
        if name not in known and not takes_any:
            raise StaticArgumentError(
                f"{option} names {name!r}, which is no parameter of {name_of(function)}",
                loc=user_location(),
                details=(f"its parameters are {', '.join(known) or 'none'}",),
                fix="name parameters of the function",
            )
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    positions = {known[n] for n in names if n in known and parameters[known[n]].kind in positional}
    return Named(frozenset(positions), frozenset(names))


def name_of(function: Callable[..., Any]) -> str:
    """An identifier for a function."""
    if isinstance(function, functools.partial):
        return name_of(function.func)
    name = getattr(function, "__name__", type(function).__name__)
    return name if name.isidentifier() else "function"
