"""numexpr: expressions in strings, for the tasks that are one expression without partial reductions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numexpr
import numpy as np
from contest import Entry, Task

__all__ = ["entry"]

EXPRESSIONS = {
    "exp": "exp(a)",
    "log": "log(a)",
    "tanh": "tanh(a)",
    "sin": "sin(a)",
    "pow": "a ** b",
    "gelu": "half * a * (one + tanh(scale * (a + cubic * a * a * a)))",
    "triad": "a + three * b",
    "copy": "a",
}
CONSTANTS = {"half": 0.5, "one": 1.0, "three": 3.0, "scale": 0.7978845608028654, "cubic": 0.044715}


def entry(task: Task, written: tuple[int, ...]) -> Entry | None:
    expression = EXPRESSIONS.get(task.name)
    if task.suite == "kernels" or expression is None:
        return None

    def start(*arguments: Any) -> Callable[..., Any]:
        out = np.empty_like(arguments[0])
        numbers = {name: out.dtype.type(value) for name, value in CONSTANTS.items()}

        def call(*arguments: Any) -> Any:
            names = dict(zip("ab", arguments, strict=False), **numbers)
            return numexpr.evaluate(expression, names, out=out)

        return call

    return Entry(start)
