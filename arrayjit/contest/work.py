"""How much a call computes and moves, counted from our own code."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..api import JitFunction, jit
from ..profile.gpu.work import by_kind
from .results import Row
from .tasks import Task

__all__ = ["jitted", "with_work"]


def jitted(task: Task) -> JitFunction[..., Any]:
    """The task's program, compiled by arrayjit."""
    program = task.program or task.function
    return program if isinstance(program, JitFunction) else jit(program)


def with_work(row: Row, task: Task) -> Row:
    """The task's row with what our code does in a call; at least, where data decides.

    On a target it is what the program asks for, an elementary function as no operation, so that operations
    per second are those that GPUs and other libraries are praised for."""
    lowered = jitted(task).lower(*task.make(), target=task.target or None)
    cost = lowered.cost()
    done = cost.asked if task.target else cost.executed
    flops = by_kind(
        {dtype: amount.low for dtype, amount in done.flops.items()}, lowered.build.optimized.kernel.body
    )
    return replace(row, flops=flops, moved=cost.read.low + cost.written.low)
