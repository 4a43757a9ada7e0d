"""`f.explain(...)` shows the user's lines with what became of them, then what the passes did."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

import arrayjit

x10 = np.arange(1.0, 11.0)


def lines(function: Callable[..., Any], *args: Any) -> list[tuple[str, str]]:
    """The lines of this file that are explained, each with what is said of it."""
    told = arrayjit.jit(function).explain(*args).splitlines()
    found = [re.fullmatch(rf"{re.escape(__file__)}:\d+: (.*)  # (.*)", line) for line in told]
    return [(match[1], match[2]) for match in found if match]


def test_outer_loops_come_before_inner_ones() -> None:
    def program(x: Any) -> Any:
        total = x[0]
        for i in range(len(x)):
            for j in range(i):
                total += x[j]
        return total

    assert lines(program, x10) == [
        ("for i in range(len(x)):", "one loop of 10 iterations; carries total"),
        ("for j in range(i):", "one loop; carries total"),
    ]


def test_what_an_attempt_recorded_is_said_only_if_it_was_kept() -> None:
    def program(x: Any, y: Any) -> Any:
        for _ in range(9):
            x, y = y, x
            for i in range(5):
                x[i] += y[i]
        return x, y

    assert lines(program, x10, -x10) == [
        (
            "for _ in range(9):",
            "one loop of 4 iterations; each does 2 iterations of this one, after which arrays are back at "
            "their names",
        ),
        ("for i in range(5):", "one loop of 5 iterations"),
    ]


def test_what_is_compiled_in_of_an_argument() -> None:
    def program(x: Any, k: int) -> Any:
        return x[:k] * 2

    ((line, what),) = lines(program, x10, 3)
    assert line == "def program(x: Any, k: int) -> Any:"
    assert what.startswith("of k, its value is compiled in, because ")


def test_loops_over_conditions() -> None:
    def program(x: Any) -> Any:
        return arrayjit.while_loop(lambda x: x.sum() > 1, lambda x: x / 2, x)

    ((_, what),) = lines(program, x10)
    assert what == "one loop until its condition is false; carries state"


def test_what_a_pass_does_often_is_said_once() -> None:
    def program(x: Any) -> Any:
        for i in range(9):
            half, root = x[i] / 2, np.sqrt(x[i + 1])
            x[i], x[i + 1] = half + root, half - root
        return x

    told = arrayjit.jit(program).explain(x10).splitlines()
    assert len(set(told)) == len(told)
    assert any(re.search(r" \(\d times\)$", line) for line in told)
