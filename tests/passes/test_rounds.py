"""What many rounds do that a program has written out is the body of a loop, to the same bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from pass_programs import CAPS
from test_cases import outcome

from arrayjit import jit
from arrayjit.ir.assign import Computation, Loop
from arrayjit.ir.parse import parse
from arrayjit.ir.text import print_computation
from arrayjit.ir.verify import verify_computation
from arrayjit.passes.structure.rounds import rounds
from arrayjit.tracer.calls.function import trace_function

X = np.linspace(0.5, 2.0, 12)
Y = np.linspace(2.0, -1.0, 12)


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few statements are a long program, and few rounds many."""
    monkeypatch.setattr("arrayjit.passes.structure.rounds.LONG", 12)
    monkeypatch.setattr("arrayjit.passes.structure.rounds.MANY", 4)


def loops(function: Callable[..., Any], *args: Any) -> list[int]:
    """How often the loops go round that a function has after the pass, which leaves what it does alone."""
    computation = trace_function(function, args, {}).computation
    result = rounds(computation, CAPS)
    verify_computation(result)
    for expected, actual in zip(outcome(computation, computation), outcome(result, computation), strict=True):
        np.testing.assert_array_equal(actual, expected)
    return [statement.hi.constant for statement in result.body if isinstance(statement, Loop)]


def waves(x: np.ndarray, y: np.ndarray) -> Any:
    total = x[0]
    for i in range(-1, 2):
        for j in range(-1, 2):
            if i * i + j * j > 0:
                total = total + (i * np.cos(x) - j * y).sum()
    return total


def arrays(x: np.ndarray, y: np.ndarray) -> Any:
    total = x[0]
    for i in range(-1, 2):
        for j in range(-1, 2):
            if i * i + j * j > 0:
                total = total + (x[:2] * np.array([i, j], dtype=float)).sum()
    return total


def queue(x: np.ndarray, y: np.ndarray) -> Any:
    kept: list[np.ndarray] = []
    for _ in range(12):
        if kept:
            y = y - kept[0] * (kept[-1] @ y) / 16
        kept.append(np.cos(y * x + 1) / 2 - np.sqrt(x * x + 3) * np.sin(y / 4))
        if len(kept) > 2:
            kept.pop(0)
    return kept[0], kept[-1]


def rows(x: np.ndarray, y: np.ndarray) -> Any:
    out = np.zeros(12)
    last: list[Any] = []
    for i in range(1, 11):
        last.append(x[i] * y[11 - i] + i)
        if len(last) > 1:
            out[i] = np.sqrt(last.pop(0))
    return out


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize(("function", "times"), [(waves, 6), (arrays, 6), (queue, 8), (rows, 8)])
def test_rounds_that_make_a_loop(function: Callable[..., Any], times: int) -> None:
    assert loops(function, X, Y) == [times]
    for got, expected in zip(np.atleast_1d(jit(function)(X, Y)), np.atleast_1d(function(X, Y)), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-12)


def powers(x: np.ndarray, y: np.ndarray) -> Any:
    total = x[0]
    for i in range(-1, 2):
        for j in range(-1, 2):
            if i * i + j * j > 0:
                total = total + (x ** (i * i + 3 * j + 7)).sum() * y[0]
    return total


def kept(x: np.ndarray, y: np.ndarray) -> Any:
    found = []
    for i in range(-1, 2):
        for j in range(-1, 2):
            if i * i + j * j > 0:
                found.append((x * np.cos(y)).sum() * j)
    return found[5] + found[6]


def cells(x: np.ndarray, y: np.ndarray) -> Any:
    kept: list[np.ndarray] = []
    for _ in range(12):
        if kept:
            y = np.sqrt(kept[0] * 2 + y) / 3 + 1
        kept.append(y)
        if len(kept) > 1:
            kept.pop(0)
    return kept[0]


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("function", [powers, kept, cells])
def test_rounds_that_stay_apart(function: Callable[..., Any]) -> None:
    assert loops(function, X, Y) == []


def test_few_statements_stay() -> None:
    assert loops(waves, X, Y) == []


@pytest.mark.usefixtures("few")
def test_what_is_printed() -> None:
    lines = [
        f"""\
    t{k}[()] = multiply[f64](x[{k}], f64({c}.0))
    u{k}[()] = add[f64](t{k}[()], w{k}[()])
    v{k}[()] = exp[f64](u{k}[()])
    s{k}[()] = add[f64](s{k - 1 if k else ""}[()], v{k}[()])
"""
        for k, c in enumerate([1, 4, 2, 8, 5, 7])
    ]
    given = ", ".join(f"w{k}: read[f64]" for k in range(6))
    declared = [f"    {name}{k}: temporary[f64]\n" for name in "stuv" for k in ("", *range(6))]
    start = f"def f(x: read[f64, 8], y: update[f64, 8], {given}):\n"
    program = parse("".join([start, *declared, "    s[()] = x[7]\n", *lines, "    y[0] = s5[()]\n"]))
    assert isinstance(program, Computation)
    assert print_computation(rounds(program, CAPS)).endswith("""\
    s0[()] = add[f64](s[()], v0[()])
    table[0] = f64(4.0)
    table[1] = f64(2.0)
    table[2] = f64(8.0)
    table[3] = f64(5.0)
    table[4] = f64(7.0)
    table1[0] = w1[()]
    table1[1] = w2[()]
    table1[2] = w3[()]
    table1[3] = w4[()]
    table1[4] = w5[()]
    for round in range(0, 5):
        t5[()] = multiply[f64](x[round + 1], table[round])
        u5[()] = add[f64](t5[()], table1[round])
        v5[()] = exp[f64](u5[()])
        s5[()] = add[f64](s0[()], v5[()])
        s0[()] = s5[()]
    y[0] = s5[()]
""")
