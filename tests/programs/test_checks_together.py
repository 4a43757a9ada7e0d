"""Programs that look up several times: their checks stand together, and come out in the order of NumPy's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import arrayjit


def between(img: np.ndarray, y: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Of a picture, between four points."""
    i, j = np.floor(y).astype(np.int64), np.floor(x).astype(np.int64)
    f, g = y - i, x - j
    above = img[i, j] * (1 - g) + img[i, j + 1] * g
    below = img[i + 1, j] * (1 - g) + img[i + 1, j + 1] * g
    return above * (1 - f) + below * f


def areas(points: np.ndarray, triangles: np.ndarray) -> np.ndarray:
    a, b, c = points[triangles[:, 0]], points[triangles[:, 1]], points[triangles[:, 2]]
    return (b[:, 0] - a[:, 0]) * (c[:, 1] - a[:, 1]) - (c[:, 0] - a[:, 0]) * (b[:, 1] - a[:, 1])


def deposited(x: np.ndarray, p: np.ndarray, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Nobody sees what is looked up and deposited before the last positions turn out to be wrong."""
    cells = np.zeros(9)
    np.add.at(cells, p, v * x[q])
    np.add.at(cells, q + 1, v)
    return cells


def overwritten(x: np.ndarray, p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """The caller sees that the first row is overwritten, whatever the second positions are."""
    x[0] = x[1][p]
    return x[1][q]


def by_cases(x: np.ndarray, table: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Positions stand in the rows of a table that a number tells for each case."""
    rows = table[(y[:100] > 0.5).astype(np.int64) + ((y[1:101] > 0.5).astype(np.int64) << 1)]
    return x[np.maximum(rows[:, 0], 0)] + y[np.maximum(rows[:, 1], -2)] * x[rows[:, 2]]


PROGRAMS = (between, areas, deposited, overwritten, by_cases)


def arguments(program: Callable[..., Any], random: np.random.Generator) -> list[np.ndarray]:
    match program.__name__:
        case "between":
            return [random.random((9, 12)), 7.5 * random.random(100), 10.5 * random.random(100)]
        case "areas":
            return [random.random((50, 2)), random.integers(-50, 50, (100, 3))]
        case "deposited":
            p, q = random.integers(-9, 9, 100), random.integers(0, 8, 100)
            return [random.random(9), p, q, random.random(100)]
        case "by_cases":
            return [random.random(9), random.integers(-9, 9, (4, 3)), random.random(101)]
        case _:
            return [random.random((2, 100)), random.integers(-100, 100, 100), random.integers(0, 100, 100)]


@pytest.mark.parametrize("target", ["sync_llvm", "sync_c", "interp"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_programs_that_look_up_several_times(program: Callable[..., Any], target: str) -> None:
    given = arguments(program, np.random.default_rng(0))
    expected = program(*(each.copy() for each in given))
    actual = arrayjit.jit(program, target=target)(*given)
    np.testing.assert_allclose(actual, expected, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_first_of_several_exceptions_is_raised(program: Callable[..., Any]) -> None:
    random = np.random.default_rng(1)
    jitted = arrayjit.jit(program, target="sync_llvm")
    for wrong in range(1, 8):
        ours, theirs = arguments(program, random), []
        positions = [each for each in ours[1:] if each.dtype == np.int64] or ours[1:]
        for number, each in enumerate(positions):
            if wrong >> number & 1:
                each.flat[random.integers(each.size)] = 1000 + number
        theirs = [each.copy() for each in ours]
        try:
            expected = program(*theirs)
        except IndexError as error:
            axis = str(error).split("for ")[1]
            with pytest.raises(IndexError, match=axis):
                jitted(*ours)
        else:
            np.testing.assert_allclose(jitted(*ours), expected, rtol=1e-13, atol=1e-15)
        for one, other in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("program", [between, areas])
def test_nothing_goes_through_memory(program: Callable[..., Any]) -> None:
    given = arguments(program, np.random.default_rng(2))
    text = arrayjit.jit(program, target="sync_llvm").lower(*given).as_text("optimized")
    assert "place(" not in text


def test_checks_by_a_table_are_one_loop() -> None:
    given = arguments(by_cases, np.random.default_rng(3))
    text = arrayjit.jit(by_cases, target="sync_llvm").lower(*given).as_text("optimized")
    _, *between, _ = text.split("raise_(")
    assert len(between) == 2
    assert not any("for " in part.replace("for axis", "") for part in between)
