"""What users are told of compilations: a report, a warning of too many, an error where none may be."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

from .errors import CompilationForbidden, Location
from .stats import Description, Miss

__all__ = [
    "MANY",
    "RecompilationWarning",
    "forbidden",
    "is_forbidden",
    "no_compile",
    "report",
    "warn_of_many",
]

MANY = 8
"""Variants of a function after which its user is told."""

_forbidden: ContextVar[bool] = ContextVar("arrayjit_no_compile", default=False)


class RecompilationWarning(UserWarning):
    """A function was compiled for many kinds of arguments."""


@contextmanager
def no_compile() -> Iterator[None]:
    """Within the block, a call that is not compiled yet in this process raises CompilationForbidden. So a
    service that has warmed up stays quick, or says what it had not seen."""
    token = _forbidden.set(True)
    try:
        yield
    finally:
        _forbidden.reset(token)


def is_forbidden() -> bool:
    """Whether nothing must be compiled here."""
    return _forbidden.get()


def forbidden(function: str, reason: str) -> CompilationForbidden:
    """The error for that; `reason` says what is new about the call."""
    return CompilationForbidden(
        f"{function} is not compiled for this call: {reason}",
        fix="call it with such arguments before no_compile(), or bring them into a form seen before",
    )


def warn_of_many(function: str, described: Sequence[Description], loc: Location | None) -> None:
    """Tell the user which arguments vary most; called once a function has as many variants as `MANY`."""
    kinds = {
        name: list(dict.fromkeys(one.get(name, "absent") for one in described))
        for name in dict.fromkeys(name for one in described for name in one)
    }
    most = max(map(len, kinds.values()), default=0)
    varying = [
        f"{name} ({', '.join(seen[:3])}, ...)" for name, seen in kinds.items() if len(seen) == most > 1
    ]
    what = f"{function} was compiled {len(described)} times"
    why = f": what varies is {'; '.join(varying)}" if varying else ""
    message = f"{what}{why}; pad sizes to a few, or make it an argument of one dtype and layout"
    warnings.warn_explicit(
        message, RecompilationWarning, loc.file if loc else "<arrayjit>", loc.line if loc else 1
    )


def report(misses: Sequence[Miss]) -> str:
    """Each compilation with its phases in milliseconds, the slowest first."""
    blocks = []
    for miss in misses:
        head = f"{miss.function} for {miss.target}, {miss.milliseconds:.1f} ms: {miss.reason}"
        place = f"  called at {miss.loc}" if miss.loc else ""
        phases = sorted(miss.phases.items(), key=lambda phase: -phase[1])
        blocks.append("\n".join([head, *([place] if place else []), *map(_phase, phases)]))
    return "\n".join(blocks) or "nothing was compiled yet"


def _phase(phase: tuple[str, float]) -> str:
    name, seconds = phase
    return f"{seconds * 1e3:10.2f}  {name}"
