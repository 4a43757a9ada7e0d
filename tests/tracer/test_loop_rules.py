"""The rules of docs/loops.md: which loops are kept, and what is left after them."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rolling import assert_kept, assert_like_numpy, assert_unrolled, length

import arrayjit
from arrayjit.errors import ConcretizationError, UnsupportedError

HERE = Path(__file__).parent
RULES = HERE.parents[1] / "docs" / "loops.md"

x10 = np.arange(10.0) - 3
square = np.arange(36.0).reshape(6, 6)


# ---- which loops are kept ----------------------------------------------------------------------------


def running_sum(x: Any) -> Any:
    total = 0.0
    for i in range(len(x)):
        total = total + x[i]
        x[i] = total
    return total


def test_a_loop_is_recorded_once() -> None:
    assert_kept(running_sum)
    assert_like_numpy(running_sum, (x10,), (np.ones(1000),))


def test_a_short_loop_is_unrolled() -> None:
    def halved(x: Any) -> Any:
        for _ in range(4):
            x = x / 2
        return x

    assert "for" not in arrayjit.jit(halved).lower(np.float64(1)).as_text("assignments")
    assert_like_numpy(halved, (x10,))


def test_a_short_loop_of_very_many_statements_is_kept() -> None:
    lines = "".join(f"        x = x * 0.5 + np.roll(np.abs(x), {n})\n" for n in range(40))
    names: dict[str, Any] = {"np": np}
    exec(f"def f(x, y):\n    for i in range(4):\n{lines}        x = x * y[i]\n    return x", names)
    program, numbers = names["f"], (2.0, 3.0, 4.0, 5.0)
    kept = arrayjit.jit(program).lower(x10, x10[:4]).as_text("assignments")
    assert kept.count("for k in range(0, 4)") == 1
    assert_like_numpy(program, (x10, x10[:4]))
    assert "range(0, 4)" not in arrayjit.jit(program).lower(x10, numbers).as_text("assignments")
    assert_like_numpy(lambda x: program(x, numbers), (x10,))


BOUNDS: dict[str, Callable[[Any, int], range]] = {
    "a constant": lambda x, k: range(7),
    "a size": lambda x, k: range(len(x)),
    "an argument": lambda x, k: range(k),
    "from an argument to a size": lambda x, k: range(k, len(x)),
    "backward": lambda x, k: range(len(x) - 1, -1, -1),
    "backward from an argument": lambda x, k: range(k, 0, -1),
    "every other": lambda x, k: range(0, len(x), 2),
    "every third backward": lambda x, k: range(len(x) - 1, 0, -3),
    "every other up to an argument": lambda x, k: range(1, k, 2),
    "none": lambda x, k: range(5, 2),
}


@pytest.mark.parametrize("bounds", BOUNDS.values(), ids=BOUNDS)
def test_bounds_of_every_kind(bounds: Callable[[Any, int], range]) -> None:
    def visited(x: Any, k: int) -> Any:
        order = 1.0
        for i in bounds(x, k):
            x[i] += order
            order = order + 1
        return order * 1.0

    assert_like_numpy(visited, (x10, 6), (x10, 9), (x10, 1))


def triangle(m: Any) -> Any:
    for i in range(len(m)):
        for j in range(i + 1, len(m)):
            m[j, i] = m[i, j] - m[j - i - 1, i]
    for i in range(len(m) - 1, 0, -1):
        for j in range(i, 0, -1):
            m[i, j] += m[i, :j].sum() + m[j, j:] @ m[j:, i]
    return m[::-1]


def test_nested_loops() -> None:
    assert length(triangle, np.ones((9, 9))) == length(triangle, np.ones((50, 50)))
    assert_like_numpy(triangle, (square,), (square[:5, :5],))


def divisors(x: Any) -> Any:
    """Multiples of each number, from its square on, and those as far below each cell."""
    for i in range(1, len(x)):
        for j in range(i * i, len(x), i):
            x[j] += i
        for j in range(i - 3, len(x), i + 1):
            x[i] -= j
    return x[::-1]


def test_steps_may_be_indices() -> None:
    assert_kept(divisors)
    assert_like_numpy(divisors, (np.ones(5),), (np.arange(50.0),), (np.zeros(1),), (np.zeros(0),))


def multiples_from_the_end(x: Any) -> Any:
    for i in range(1, len(x)):
        for j in range(len(x) - 1, -1, -i):
            x[j] += i * (j + 1)
    return x[::-1]


def test_steps_back_by_an_index_unroll_the_loop_around() -> None:
    assert_unrolled(multiples_from_the_end)
    assert_like_numpy(multiples_from_the_end, (np.ones(9),), (np.arange(20.0),), (np.zeros(1),))


def smoothed(x: Any, weight: float) -> Any:
    before = x[0]
    for i in range(1, len(x)):
        before = weight * before + x[i]
        x[i] = before
    return before


def test_loops_in_helper_functions() -> None:
    def rows(m: Any) -> Any:
        last = m[:, 0].copy()
        for i in range(len(m)):
            last[i] = smoothed(m[i], 2.0) + smoothed(m[i, 2:], 1.0)
        return last

    assert length(rows, np.ones((9, 9))) == length(rows, np.ones((50, 50)))
    assert_like_numpy(rows, (square,))


def over_rows(m: Any) -> Any:
    total = m[0] * 0
    for row in m:
        total = total + row
        row += total
    return total


def over_cells(m: Any) -> Any:
    total = 0.0
    for cell in m[0]:
        total = total * 2 + cell
    return total


def over_enumerated(m: Any) -> None:
    for number, row in enumerate(m, 1):
        row *= number


def over_zipped(m: Any) -> Any:
    total = 0.0
    for row, cell, n in zip(m[1:], m[0], range(100), strict=False):
        row[:] = row[::-1] + cell
        total = total + row[0] * n
    return total


def over_reversed(m: Any) -> Any:
    total = 0.0
    for i in reversed(range(len(m))):
        total = total * 2 + m[i, i]
    for row in reversed(m):
        row -= total
    return total


def over_pairs(m: Any) -> Any:
    total = 0.0
    for i, (row, cell) in enumerate(zip(m, m.T[0], strict=True)):
        total = total + row[i] * cell
    return total


@pytest.mark.parametrize(
    "program", [over_rows, over_cells, over_enumerated, over_zipped, over_reversed, over_pairs]
)
def test_arrays_are_iterated(program: Callable[[Any], Any]) -> None:
    assert length(program, np.ones((9, 9))) == length(program, np.ones((60, 60)))
    assert_like_numpy(program, (square,))


def test_comprehensions_take_numbers() -> None:
    names = ["a", "b", "c", "d", "e", "f"]

    def program(x: Any) -> Any:
        a, b, *others = range(len(x))
        weights = {name: x[i] for i, name in zip(range(6), names, strict=True)}
        halves = sum(x[i] / 2 for i in range(len(x)))
        return weights["c"], halves, x[list(range(3))], x[a] + x[b], len(others), max(range(len(x)))

    assert_like_numpy(program, (x10,))


def test_the_explicit_range_is_never_unrolled() -> None:
    def halved(x: Any) -> Any:
        for _ in arrayjit.range(3):
            x = x / 2
        return x

    def needing(x: Any) -> Any:
        for i in arrayjit.range(6):
            x = x / [1.0, 2.0, 4.0, 8.0, 16.0, 32.0][i]
        return x

    assert "range(" in arrayjit.jit(halved).lower(x10).as_text("assignments")
    assert_like_numpy(halved, (x10,))
    assert list(arrayjit.range(2, 5)) == [2, 3, 4]
    with pytest.raises((ConcretizationError, UnsupportedError), match="loop"):
        arrayjit.jit(needing)(x10)


def test_a_while_over_numbers_runs_while_tracing() -> None:
    def program(x: Any) -> Any:
        step = len(x)
        while step > 1:
            step //= 2
            x[:step] += x[-step:]
        return x[0]

    assert_like_numpy(program, (x10,))


# ---- after the loop ----------------------------------------------------------------------------------


def test_names_have_their_last_values() -> None:
    def program(x: Any) -> Any:
        for i in range(1, len(x), 2):
            doubled = x[i] * 2
            part = x[i - 1 : i + 1]
        part += 100
        return i, doubled, part, x[i]

    assert_kept(program)
    assert_like_numpy(program, (x10,))


def test_a_loop_of_zero_iterations_changes_nothing() -> None:
    def program(x: Any, k: int) -> Any:
        total, y = x[0], x * 1
        for i in range(len(x), 3):
            total, y, x = total + 1, y * 2, x[i]
        for i in range(k):
            total, y[i] = total + 1, total
        return total, y, x

    assert_like_numpy(program, (x10, 0), (x10, 2), (x10, -4))


def test_a_name_is_unbound_after_zero_iterations() -> None:
    def last(x: Any, k: int) -> Any:
        for i in range(k):
            doubled = x[i] * 2
        return doubled

    def never(x: Any) -> Any:
        for i in range(len(x), 3):
            doubled = x[i] * 2
        return doubled

    ours = assert_like_numpy(last, (x10, 3), (x10, 10))
    for program, arguments in ((last, (x10, 0)), (never, (x10,))):
        with pytest.raises(UnboundLocalError):
            program(*arguments)
        with pytest.raises(UnboundLocalError):
            arrayjit.jit(program)(*arguments)
    with pytest.raises(UnboundLocalError):
        ours(x10, 0)


def test_a_name_of_an_inner_loop_that_may_not_run() -> None:
    def program(x: Any) -> Any:
        for i in range(len(x)):
            for j in range(4, i):
                doubled = x[j] * 2
        return doubled

    with pytest.raises(UnsupportedError, match="fix: give doubled a value before the outer loop"):
        arrayjit.jit(program)(x10)


# ---- the document ------------------------------------------------------------------------------------


def test_every_rule_names_its_test() -> None:
    rules = re.split(r"^\d+\. ", RULES.read_text(), flags=re.MULTILINE)[1:]
    quoted = [re.findall(r"`(test_\w+)`", rule) for rule in rules]
    assert [number for number, names in enumerate(quoted, 1) if not names] == []
    files = HERE.glob("test_loop_*.py")
    written = {
        name for file in files for name in re.findall(r"^def (test_\w+)", file.read_text(), re.MULTILINE)
    }
    assert {name for names in quoted for name in names} - written == set()
