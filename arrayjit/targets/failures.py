"""The exceptions that a kernel may leave with."""

from __future__ import annotations

from ..ir.code import Failure
from ..ir.loops import Kernel, Raise, walk_statements

__all__ = ["failures_of", "raises"]


def raises(kernel: Kernel) -> tuple[Raise, ...]:
    """The kernel's Raise statements in program order: the one at `k - 1` leaves with status `k`."""
    return tuple(stmt for stmt in walk_statements(kernel.body) if isinstance(stmt, Raise))


def failures_of(kernel: Kernel) -> tuple[Failure, ...]:
    """What each status of the kernel means."""
    return tuple(
        Failure(
            stmt.exception, stmt.message, stmt.loc.file if stmt.loc else "", stmt.loc.line if stmt.loc else 0
        )
        for stmt in raises(kernel)
    )
