"""What a loop costs to compile: the work does not depend on how often it runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from work import calls_in

import arrayjit
from arrayjit.tracer.record import rewrites, trace


def jacobi(steps: int) -> Callable[[Any, Any], None]:
    def smooth(a: Any, b: Any) -> None:
        for _ in range(steps):
            b[1:-1, 1:-1] = 0.2 * (a[1:-1, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:] + a[2:, 1:-1] + a[:-2, 1:-1])
            a[1:-1, 1:-1] = 0.2 * (b[1:-1, 1:-1] + b[1:-1, :-2] + b[1:-1, 2:] + b[2:, 1:-1] + b[:-2, 1:-1])

    return smooth


def recursion(steps: int) -> Callable[[Any, Any], Any]:
    def follow(a: Any, b: Any) -> Any:
        total, before = 0, None
        for i in range(steps):
            for j in range(i % 7, 6):
                total = total + a[j, 0]
            before = total if before is None else before + total
            a, b = b, a
        return total, before

    return follow


@pytest.mark.parametrize("program", [jacobi, recursion])
def test_a_hundred_steps_and_ten_thousand_are_the_same_work(program: Callable[[int], Any]) -> None:
    """Of ten, remainders by seven would be simpler."""
    grid = np.ones((40, 40))

    def compiling(steps: int) -> int:
        return calls_in(lambda: arrayjit.jit(program(steps)).lower(grid, grid.copy()))

    compiling(10)
    assert compiling(10_000) == pytest.approx(compiling(100), rel=0.05)


def test_the_number_of_steps_is_no_reason_to_compile() -> None:
    @arrayjit.jit
    def smooth(x: Any, steps: int) -> None:
        for _ in range(steps):
            x[1:-1] = (x[:-2] + x[2:]) / 2

    for steps in (0, 1, 3, 100):
        smooth(np.ones(9), steps)
    assert smooth.stats().compiles == 1


def test_a_program_that_unrolling_makes_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace, "MOST_STATEMENTS", 1000)

    @arrayjit.jit
    def cells(x: Any) -> None:
        for i in range(1000):
            for j in range(1000):
                x[0] += float(f"{i}.{j}")

    with pytest.raises(arrayjit.UnsupportedError, match="1,000 operations"):
        cells(np.ones(1))


def test_the_users_file_is_read_for_errors_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def others(x: Any) -> Any:
        total = 0.0
        for i in range(len(x)):
            if i != 2:
                total = total + x[i]
        return total

    read: list[object] = []
    monkeypatch.setattr(rewrites, "_nodes_at", lambda loc: read.append(loc) or iter(()))
    assert arrayjit.jit(others)(np.arange(6.0)) == 13.0
    assert not read
