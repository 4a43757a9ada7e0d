"""Numba: `@njit` on the program as it is."""

from __future__ import annotations

from inspect import unwrap

from numba import njit

from ..tasks import Entry, Task

__all__ = ["entry"]


def entry(task: Task, written: tuple[int, ...]) -> Entry:
    return Entry(lambda *arguments: njit(unwrap(task.program or task.function)))
