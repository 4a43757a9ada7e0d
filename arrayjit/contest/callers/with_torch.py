"""PyTorch: `torch.compile` on the program as it is, which takes NumPy's arrays and calls."""

from __future__ import annotations

from inspect import unwrap
from typing import Any

import torch

from ..tasks import Entry, Task

__all__ = ["entry"]


def entry(task: Task, written: tuple[int, ...]) -> Entry:
    def start(*arguments: Any) -> Any:
        torch._dynamo.reset()
        return torch.compile(unwrap(task.program or task.function), dynamic=False)

    return Entry(start)
