"""An array that a list holds and that has a name besides is one array where both are returned."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from rolling import assert_like_numpy, length

import arrayjit


def the_last_item(x: Any) -> Any:
    xs = [x]
    for _ in range(len(x)):
        x = x * 2
        xs.append(x)
    return x, xs


def made_anew(x: Any) -> Any:
    xs = []
    for i in range(len(x)):
        y = x * i
        xs.append(y)
    return y[::-1], xs[3:], y[1:], y


def of_an_inner_loop(x: Any) -> Any:
    for j in range(len(x)):
        xs = []
        for i in range(len(x)):
            y = x * i + j
            xs.append(y)
    return xs, y


def of_a_comprehension(x: Any) -> Any:
    xs = [row * 2 for row in np.outer(x, x)]
    return xs[-1], xs


def in_two_lists(x: Any) -> Any:
    xs, ys = [], []
    for i in range(len(x)):
        y = x * i
        xs.append(y)
        ys.append({"y": y, "i": i})
    return xs, ys, y


def before_the_last(x: Any) -> Any:
    xs = []
    for _ in range(len(x)):
        xs.append(x)
        before = x
        x = x * 2
    return x, xs, before


def the_last_item_before(x: Any) -> Any:
    xs = [x]
    for _ in range(len(x)):
        before = xs[-1]
        xs += [before + 1, before.copy()]
    return before, xs


def names_that_follow(x: Any) -> Any:
    xs, one, other = [x], x * 1, x + 1
    for i in range(len(x)):
        xs.append(x * i)
        one, other = other, xs[-1]
    return one, xs, other


def a_part_of_it(x: Any) -> Any:
    xs = []
    for i in range(len(x)):
        y = x * i
        xs.append(y[1:])
    return xs, y


def another_shape(x: Any) -> Any:
    xs = []
    for i in range(len(x)):
        y = np.outer(x, x + i)
        xs.append(y)
    return y.T, xs, y.reshape(-1)[2:]


def lists_of_other_lengths(x: Any) -> Any:
    xs, ys = [], []
    for i in range(len(x)):
        y = x * i
        xs.append(y)
        ys += [y, x + i]
    return xs, ys


def from_item_to_item(x: Any) -> Any:
    xs, one, other = [], x, x + 1
    for _ in range(len(x)):
        one, other = other, one + other
        xs.append((one, other))
    return one, xs, other


KEPT = [
    the_last_item, made_anew, of_an_inner_loop, of_a_comprehension, in_two_lists, before_the_last,
    the_last_item_before, names_that_follow,
]  # fmt: skip


def shared(result: Any) -> list[tuple[bool, bool]]:
    """Of each two arrays of a result, whether they are one, and whether they have memory in common."""
    arrays = [leaf for leaf in leaves(result) if isinstance(leaf, np.ndarray)]
    return [(one is other, np.shares_memory(one, other)) for one, other in combinations(arrays, 2)]


def leaves(result: Any) -> list[Any]:
    if isinstance(result, dict):
        result = list(result.values())
    return (
        [leaf for part in result for leaf in leaves(part)] if isinstance(result, (list, tuple)) else [result]
    )


@pytest.mark.parametrize(
    "program", [*KEPT, a_part_of_it, another_shape, lists_of_other_lengths, from_item_to_item]
)
def test_what_a_list_holds_is_returned_as_one_array(program: Callable[..., Any]) -> None:
    x = np.linspace(0.1, 0.9, 18)
    jitted = assert_like_numpy(program, (x,))
    assert shared(jitted(x.copy())) == shared(program(x.copy()))


@pytest.mark.parametrize("program", KEPT)
def test_its_loop_is_kept(program: Callable[..., Any]) -> None:
    shorter, longer = (length(program, np.linspace(0.1, 0.9, n)) for n in (20, 300))
    assert longer < shorter + 40


def test_a_name_alone_has_memory_of_its_own() -> None:
    def last(x: Any) -> Any:
        xs = []
        for _ in range(len(x)):
            x = x * 2
            xs.append(x)
        return x, np.array(xs)

    assert arrayjit.jit(last)(np.ones(30))[0].base is None
