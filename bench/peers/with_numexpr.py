"""numexpr: expressions in strings, for the tasks that are one expression, without partial reductions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numexpr
import numpy as np
from starting import process

from arrayjit.contest.tasks import Entry, Task

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
    "a + b": "a + b",
    "np.add(a, b, out)": "a + b",
    "a * 2.5": "a * b",
}
REDUCTIONS = {"sum": "sum(a)", "dot": "sum(a * b)"}
CONSTANTS = {"half": 0.5, "one": 1.0, "three": 3.0, "scale": 0.7978845608028654, "cubic": 0.044715}


def entry(task: Task, written: tuple[int, ...]) -> Entry | None:
    if task.suite == "startup":
        return process("numexpr", "numexpr_program.py", task)
    if task.name in REDUCTIONS:
        sums = REDUCTIONS[task.name]
        return Entry(lambda *arguments: lambda *given: evaluated(sums, given), in_order=True)
    expression = EXPRESSIONS.get(task.name)
    if task.suite == "kernels" or expression is None:
        return None

    def start(*arguments: Any) -> Callable[..., Any]:
        out = arguments[written[0]] if written else np.empty_like(arguments[0])
        numbers = {name: out.dtype.type(value) for name, value in CONSTANTS.items()}
        return lambda *given: evaluated(expression, given, numbers, out)

    return Entry(start)


def evaluated(
    expression: str,
    arguments: tuple[Any, ...],
    numbers: Mapping[str, Any] = MappingProxyType({}),
    out: Any = None,
) -> Any:
    """With the arguments as `a` and `b`."""
    return numexpr.evaluate(expression, dict(zip("ab", arguments, strict=False), **numbers), out=out)
