"""arrayjit, and Python itself: the program with the decorator alone, and without it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ...arrays.array import asarray
from ...backends import device_named
from ..tasks import Arguments, Entry, Task
from ..work import jitted

__all__ = ["numpy", "ours"]


def ours(task: Task, written: tuple[int, ...]) -> Entry:
    """Results are fresh arrays; a target's are there when the call returns."""
    if task.target:
        return Entry(partial(finished, task), partial(placed, task.target))
    return Entry(lambda *arguments: jitted(task))


def finished(task: Task, *arguments: Any) -> Callable[..., Any]:
    """What starts the task on its target, and waits."""
    called, device = jitted(task), device_named(task.target)

    def call(*arguments: Any) -> Any:
        result = called(*arguments)
        device.sync_device()
        return result

    return call


def placed(target: str, arguments: Arguments) -> Arguments:
    """Copies in the target's memory."""
    return tuple(
        asarray(one, device=target, copy=True) if isinstance(one, np.ndarray) else one for one in arguments
    )


def numpy(task: Task, written: tuple[int, ...]) -> Entry:
    return Entry(lambda *arguments: task.function)
