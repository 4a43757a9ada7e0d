"""CuPy: its functions on its own arrays, elementwise expressions fused; the result is there when a call
returns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cupy as cp
import numpy as np
from cupyx.scipy.special import softmax

from arrayjit.contest.tasks import Entry, Task

__all__ = ["entry", "has_gpu"]


def has_gpu() -> bool:
    return bool(cp.cuda.is_available())


def entry(task: Task, written: tuple[int, ...]) -> Entry | None:
    function = VERSIONS.get(task.name)
    if function is None or task.dtype == "bfloat16":  # which CuPy's arrays do not have
        return None

    def start(*arguments: Any) -> Callable[..., Any]:
        stream = cp.cuda.get_current_stream()

        def call(*arguments: Any) -> Any:
            result = function(*arguments)
            stream.synchronize()
            return result

        return call

    return Entry(start, place, fetch=cp.asnumpy)


def place(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(cp.array(one) if isinstance(one, np.ndarray) else one for one in arguments)


@cp.fuse()
def gelu(x: Any) -> Any:
    return 0.5 * x * (1 + cp.tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)))


def ten_layers(x: Any, weights: Any) -> Any:
    for _ in range(10):
        x = cp.tanh(x @ weights)
    return x


VERSIONS: dict[str, Callable[..., Any]] = {
    "copy": cp.copy,
    "gelu": gelu,
    "softmax": lambda x: softmax(x, axis=-1),
    "matmul": cp.matmul,
    "a + b": cp.add,
    "ten_layers": ten_layers,
}
