"""What every target is: something that turns a Kernel into Code."""

from __future__ import annotations

from typing import Protocol

from ..ir.code import Caps, Code, Failure
from ..ir.loops import Kernel, Raise, walk_statements

__all__ = ["Target", "failures_of", "raises"]


class Target(Protocol):
    """An emitter. `name` is the row of the table of backends that its code belongs to, `cpu` the CPU that it
    was asked to emit for, "" for the one that is here."""

    name: str
    cpu: str

    def caps(self) -> Caps:
        """What the hardware that the code is for can do."""

    def emit(self, kernel: Kernel) -> Code: ...


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
