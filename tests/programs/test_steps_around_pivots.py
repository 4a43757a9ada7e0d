"""Steps that change a matrix by a row and a column of it have NumPy's bits, also where most cells take a
group of steps at once."""

from __future__ import annotations

import linecache
import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import arrayjit
from arrayjit.compile import build
from arrayjit.ir.code import Schedule
from arrayjit.passes.schedule import panels
from arrayjit.tracer.calls.function import trace_function

ROWS, COLUMNS = 70, 141


def factorised(a):
    for k in range(len(a) - 1):
        a[k + 1 :, k] /= a[k, k]
        a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])


def eliminated(a):
    b = a[:, 0].copy()
    for k in range(len(a) - 1):
        for i in range(k + 1, len(a)):
            f = a[i, k] / a[k, k]
            a[i, k:] -= f * a[k, k:]
            b[i] -= f * b[k]
    return b


def in_two_factors(a):
    lower = np.eye(len(a))
    for k in range(len(a) - 1):
        lower[k + 1 :, k] = a[k + 1 :, k] / a[k, k]
        a[k + 1 :] -= lower[k + 1 :, k, None] * a[k]
    return lower


def both_sides(a):
    right = a + 1
    for k in range(len(a)):
        d = a[k, k]
        a[k] /= d
        right[k] /= d
        for i in range(len(a)):
            if i != k:
                f = a[i, k]
                a[i] -= f * a[k]
                right[i] -= f * right[k]
    return right


def swept(a):
    for k in range(len(a)):
        d = a[k, k]
        row, column = a[k] / d, a[:, k].copy()
        a -= np.outer(column, row)
        a[k] = row
        a[: len(a), k] = -column / d
        a[k, k] = 1 / d


def complements(a):
    for k in range(len(a) - 1, 0, -1):
        c = a[:k, k] / a[k, k]
        a[:k, :k] -= c[:, None] * a[k, :k]
        a[:k, k] = c


def determinant(a):
    d = 1.0
    for k in range(len(a)):
        d *= a[k, k]
        a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k] / a[k, k], a[k, k + 1 :])
    return d


def beside_the_diagonal(a):
    for k in range(len(a) - 2):
        a[k + 2 :, k + 1 :] -= a[k + 2 :, k + 1, None] * a[k + 1, k + 1 :]


def shortest_cell_by_cell(a):
    for k in range(len(a)):
        for i in range(len(a)):
            for j in range(len(a)):
                a[i, j] = min(a[i, j], a[i, k] + a[k, j])


def shortest_row_by_row(a):
    for k in range(len(a)):
        for i in range(len(a)):
            a[i] = np.where(a[i, k] + a[k] < a[i], a[i, k] + a[k], a[i])


def shortest_and_by_which_way(a):
    following = np.tile(np.arange(a.shape[1]), (len(a), 1))
    for k in range(len(a)):
        other = a[:, k, None] + a[k]
        better = other < a
        a[:] = np.where(better, other, a)
        following = np.where(better, following[:, k, None], following)
    return following


PROGRAMS = (
    factorised,
    eliminated,
    in_two_factors,
    both_sides,
    swept,
    complements,
    determinant,
    beside_the_diagonal,
    shortest_cell_by_cell,
    shortest_row_by_row,
    shortest_and_by_which_way,
)


def same_as_numpy(program: Callable[..., Any], arguments: Sequence[np.ndarray], threads: int) -> list[str]:
    """Asserts it, on a machine with small caches; the names of the passes that did something."""
    schedule = Schedule(sizes=(("l1_bytes", 2048), ("threads", threads), ("thread_work", 50)))
    with np.errstate(all="ignore"):
        wanted = [argument.copy() for argument in arguments]
        result = program(*wanted)
    built = build(trace_function(program, tuple(arguments), {}).computation, "sync_llvm", schedule=schedule)
    ours = [argument.copy() for argument in arguments]
    if result is not None:
        wanted.append(np.asarray(result))
        ours.append(np.empty_like(wanted[-1]))
    built.load().launch([array.ctypes.data for array in ours])
    for one, other in zip(wanted, ours, strict=True):
        np.testing.assert_array_equal(one, other)
    return [note.partition(":")[0] for note in built.optimized.kernel.notes]


def drawn(program: Callable[..., Any], dtype: str) -> np.ndarray:
    """Lengths of ways, or a matrix whose pivots are large."""
    generator = np.random.default_rng(0)
    if program.__name__.startswith("shortest"):
        return generator.integers(1, 10_000, (ROWS, COLUMNS)).astype(dtype)
    return generator.uniform(0, 1, (ROWS, COLUMNS)).astype(dtype) + ROWS * np.eye(ROWS, COLUMNS, dtype=dtype)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_groups_of_steps_have_numpy_s_bits(program: Callable[..., Any], dtype: str, threads: int) -> None:
    assert "panels" in same_as_numpy(program, [drawn(program, dtype)], threads)


@pytest.mark.parametrize("dtype", ["i4", "i8"])
@pytest.mark.parametrize("program", [shortest_cell_by_cell, shortest_row_by_row, shortest_and_by_which_way])
def test_whole_numbers_too(program: Callable[..., Any], dtype: str) -> None:
    assert "panels" in same_as_numpy(program, [drawn(program, dtype)], 1)


@pytest.mark.parametrize("program", [shortest_cell_by_cell, shortest_row_by_row])
def test_the_pivot_s_row_goes_by_itself(program: Callable[..., Any]) -> None:
    assert "peel" in same_as_numpy(program, [drawn(program, "f8")], 1)


def sums_that_the_next_step_looks_at(a):
    b = np.zeros(2)
    for i in arrayjit.range(2):
        for j in arrayjit.range(2):
            b[0] += a[i, 1] > a[j, 0]
        a[i, 0] = b[0]


def test_no_iteration_at_an_inner_loop_s_index_goes_by_itself() -> None:
    same_as_numpy(sums_that_the_next_step_looks_at, [drawn(factorised, "f8")], 1)


def written(choose: random.Random, whole: bool) -> str:
    """A program of steps around pivots: what happens before, one or two updates, what happens after."""
    shift = choose.choice(("k", "k", "k + 1"))
    parts = {"all": ":", "from": f"{shift}:", "behind": f"{shift} + 1:", "before": f":{shift}"}
    numbers = {
        "all": "range({0})",
        "from": f"range({shift}, {{0}})",
        "behind": f"range({shift} + 1, {{0}})",
        "before": f"range({shift})",
    }
    arrays = choose.choice(("a", "a", "ac"))

    def number() -> str:
        return choose.choice((f"{choose.choice(arrays)}[{shift}, {shift}]", "3", "b[k]", "g"))

    def other() -> str:
        x, rows, columns = choose.choice(arrays), *(choose.choice(list(parts.values())) for _ in range(2))
        return choose.choice(
            (
                f"{x}[{shift}, {columns}] -= {number()}",
                f"{x}[{rows}, {shift}] {'*=' if whole else '/='} {number()}",
                f"{x}[{shift}, {shift}] = {x}[{shift}, {shift}] + 1",
                f"b[k] = b[k] - {number()}",
                f"g = g * 2 - {x}[{shift}, {shift}]",
                f"b[{rows}] -= {x}[{rows}, {shift}] * b[k]",
                f"{x}[{rows}, {shift}] += {choose.choice(arrays)}[{rows}, {shift}]",
            )
        )

    def update() -> list[str]:
        x, y, rows, columns = (choose.choice(names) for names in (arrays, arrays, list(parts), list(parts)))
        operation = choose.choice(("{0} + {1}", "{0} - {1}", "np.minimum({0}, {1})", "np.maximum({1}, {0})"))
        left, right = choose.choice(("{1}[{0}, {2}]", "b[{0}]")), choose.choice(("{1}[{2}, {0}]", "w[{0}]"))
        between = choose.choice("**+")
        match choose.choice(("whole", "rows", "cells")):
            case "whole":
                i, j = parts[rows], parts[columns]
                made = f"({left.format(i, y, shift)})[:, None] {between} {right.format(j, y, shift)}"
                return [f"{x}[{i}, {j}] = " + operation.format(f"{x}[{i}, {j}]", made)]
            case "rows":
                j = parts[columns]
                made = f"f {between} {right.format(j, y, shift)}"
                after = choose.choice(((), (f"    {x}[i, {shift}] = f",), (f"    {x}[i, {shift}] *= 2",)))
                return [
                    f"for i in {numbers[rows].format(f'len({x})')}:",
                    f"    f = {left.format('i', y, shift)}",
                    f"    {x}[i, {j}] = " + operation.format(f"{x}[i, {j}]", made),
                    *after,
                ]
            case _:
                made = f"{left.format('i', y, shift)} {between} {right.format('j', y, shift)}"
                return [
                    f"for i in {numbers[rows].format(f'len({x})')}:",
                    f"    for j in {numbers[columns].format(f'{x}.shape[1]')}:",
                    f"        {x}[i, j] = " + operation.format(f"{x}[i, j]", made),
                ]

    lines = [other() for _ in range(choose.choice((0, 1, 1, 2)))]
    for _ in range(choose.choice((1, 1, 2))):
        lines += update()
    lines += [other() for _ in range(choose.choice((0, 0, 1)))]
    steps = choose.choice(("range(len(a) - 2)", "range(len(a) - 2)", "range(len(a) - 2, 0, -1)"))
    body = "\n".join(f"        {line}" for line in lines)
    return f"def steps(a, b, c, w):\n    g = w[0]\n    for k in {steps}:\n{body}\n    return g\n"


@pytest.mark.parametrize("seed", range(30))
def test_steps_of_any_kind(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(panels, "VECTORS", 1)
    monkeypatch.setattr(panels, "GROUPS", 2)
    choose = random.Random(seed)
    whole = choose.random() < 0.5
    text = written(choose, whole)
    names: dict[str, Any] = {"np": np}
    file = f"<steps {seed}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    exec(compile(text, file, "exec"), names)
    generator = np.random.default_rng(seed)
    shape = (choose.randrange(18, 40), choose.randrange(40, 60))
    shapes = shape, shape[0], shape, shape[1]
    if whole:
        arguments = [generator.integers(-3, 4, extent) for extent in shapes]
    else:
        arguments = [generator.uniform(-0.5, 0.5, extent) + 0.01 for extent in shapes]
    same_as_numpy(names["steps"], arguments, choose.choice((1, 2)))
