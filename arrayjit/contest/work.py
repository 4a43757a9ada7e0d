"""How much a call computes and moves, counted from our own code."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..api import JitFunction, jit
from .results import Row
from .tasks import Task

__all__ = ["jitted", "with_work"]


def jitted(task: Task) -> JitFunction[..., Any]:
    """The task's program, compiled by arrayjit."""
    program = task.program or task.function
    return program if isinstance(program, JitFunction) else jit(program)


def with_work(row: Row, task: Task) -> Row:
    """The task's row with what our code does in a call; at least, where data decides."""
    cost = jitted(task).lower(*task.make()).cost()
    flops = {dtype: amount.low for dtype, amount in cost.executed.flops.items()}
    return replace(row, flops=flops, moved=cost.read.low + cost.written.low)
