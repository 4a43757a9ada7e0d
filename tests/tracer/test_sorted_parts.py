"""Orders of which a program reads some places alone: those are found without sorting, as in NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from rolling import assert_like_numpy

import arrayjit

Function = Callable[..., Any]
random = np.random.default_rng(5)
ROW = random.permutation(2000) / 4
ROWS = {
    "floats": ROW,
    "floats with NaN": np.where(random.random(2000) < 0.2, np.nan, ROW),
    "NaN but for three": np.where(ROW < 0.7, ROW, np.nan),
    "zeros of both signs": np.where(random.random(2000) < 0.5, -0.0, 0.0),
    "equal cells": np.zeros(2000),
    "few values": random.integers(0, 3, 2000) / 1.0,
    "in order": np.sort(ROW),
    "backwards": np.sort(ROW)[::-1].copy(),
    "integers": random.integers(-9, 9, 2000),
    "extreme integers": np.where(random.random(2000) < 0.5, -(2**63), 2**63 - 1),
    "uint8": random.integers(0, 255, 2000).astype("u1"),
    "float32": ROW.astype("f4"),
    "bools": random.random(2000) < 0.999,
}


def places(x: np.ndarray, axis: int = -1) -> Any:
    return np.argsort(x, axis, kind="stable")


def in_a_loop(x: np.ndarray) -> Any:
    total = np.zeros(4)
    for i in range(50):
        total = total + x[places(x * total[i % 4] + x)[:4]]
    return total


def by_an_index(x: np.ndarray) -> Any:
    order, total = places(x), 0.0
    for i in range(10):
        total = total + x[order[i]] * i
    return total


def several(x: np.ndarray) -> Any:
    return x[places(x)[:3]], x[places(-x)[:5]], np.sort(x)[-4:]


IN_PART: dict[str, Function] = {
    "the first": lambda x: places(x)[:5],
    "the last": lambda x: places(x)[-5:],
    "the last, backwards": lambda x: places(x)[::-1][:5],
    "one": lambda x: x[places(x)[3]],
    "a column": lambda x: places(x.reshape(10, 200))[:, 2],
    "columns": lambda x: places(x.reshape(10, 200))[:, -4:],
    "rows": lambda x: places(x.reshape(200, 10), 0)[:4],
    "three axes": lambda x: places(x.reshape(2, 5, 200))[..., :6],
    "sorted": lambda x: np.sort(x)[:16],
    "sorted, the last": lambda x: np.sort(x)[-16:] + 1,
    "sorted stably": lambda x: np.sort(x, kind="stable")[:5],
    "by an index": by_an_index,
    "in a loop": in_a_loop,
    "several": several,
}


def text_of(function: Function, *args: Any) -> str:
    return arrayjit.jit(function, target="sync_llvm").lower(*args).as_text("assignments")


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_every_row(row: np.ndarray) -> None:
    def program(x: np.ndarray) -> Any:
        own = np.sort(x)[-3:] + x.dtype.type(0), np.sort(x)[:30] + x.dtype.type(0)  # no sign of a zero
        return places(x)[:3], places(x)[:30], places(x)[-30:], own

    assert_like_numpy(program, (row[:600],))


@pytest.mark.parametrize("program", IN_PART.values(), ids=IN_PART)
def test_a_part_of_an_order(program: Function) -> None:
    assert_like_numpy(program, (ROW,))
    text = text_of(program, ROW)
    assert "leading" in text
    assert "spare" not in text


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_a_part_of_a_partition(row: np.ndarray) -> None:
    def program(x: np.ndarray) -> Any:
        return np.argpartition(x, 5)[:5], np.argpartition(x, -5)[-5:], np.partition(x, 5)[:5]

    first, last, cells = arrayjit.jit(program, target="interp")(row[:600])
    assert "leading" in text_of(program, row[:600])
    ordered = np.sort(row[:600])
    for found, wanted in ((row[first], ordered[:5]), (row[last], ordered[-5:]), (cells, ordered[:5])):
        np.testing.assert_array_equal(np.sort(found), wanted)


def both_ends(x: np.ndarray) -> Any:
    order = places(x)
    return order[:3], order[-3:]


def written(x: np.ndarray) -> Any:
    order = places(x)
    order[0] = 7
    return order[:3]


def two_views(x: np.ndarray) -> Any:
    order = places(x)
    return order[:3], order[1:4]


def by_an_argument(x: np.ndarray, k: int) -> Any:
    order, total = places(x), 0.0
    for i in range(k):
        total = total + x[order[i]] * i
    return total


@pytest.mark.parametrize("program", [both_ends, written, two_views])
def test_an_order_that_is_read_otherwise_is_made_whole(program: Function) -> None:
    assert_like_numpy(program, (ROW,))
    assert "leading" not in text_of(program, ROW)


def test_an_order_that_is_read_as_far_as_an_argument_says_is_made_whole() -> None:
    assert_like_numpy(by_an_argument, (ROW, 9))
    assert "leading" not in text_of(by_an_argument, ROW, 9)


def test_a_part_that_is_returned_has_memory_of_its_own() -> None:
    assert "write[i64, 5]" in text_of(lambda x: places(x)[:5], ROW)
