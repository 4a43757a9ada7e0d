"""What names stand for after a recorded loop, if that is a list, a dict or the like: writing into it
must be seen under each of its names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from rolling import assert_like_numpy


@dataclass
class Layer:
    weight: Any
    bias: Any


def from_before_the_loop(x: Any) -> Any:
    xs = [x[0]]
    for _ in range(9):
        last = xs
    xs.append(x[1])
    last[0] = 5.0
    return xs, last


def whose_items_change(x: Any) -> Any:
    xs = [x[0]]
    for i in range(9):
        xs[0] = xs[0] + x[i]
        last = (xs, i)
    last[0].append(1.0)
    xs[0] = 2.0
    return xs, last


def from_within_another(x: Any) -> Any:
    layers = [[x[0], x[1]], [x[1], x[2]]]
    h = x
    for _ in range(5):
        for layer in layers:
            h = h * layer[0] + layer[1]
    layer[0] = 100.0
    return h, layers


def dataclasses_from_before_the_loop(x: Any) -> Any:
    layers = [Layer(x[0], x[1]), Layer(x[1], x[2])]
    h = x
    for _ in range(5):
        for layer in layers:
            h = h * layer.weight + layer.bias
    layer.bias = 100.0
    return h, layers[0].bias, layers[1].bias


def made_in_the_loop(x: Any) -> Any:
    other = [1.0]
    for i in range(9):
        made = [x[i]]
        other, inside = made, (made,)
    other[0] = 3.0
    return made, other, inside


def carried_and_made_in_the_loop(x: Any) -> Any:
    made = [x[0]]
    for i in range(9):
        made = [made[0] + x[i]]
        other = made
    other[0] = 3.0
    made.append(1.0)
    return made, other


def carried_and_in_a_dict(x: Any) -> Any:
    made, held = [x[1]], {"last": [x[0]]}
    for i in range(9):
        made = [made[0] + x[i]]
        held["last"] = made
    made[0] = 4.0
    return made, held


def from_before_a_loop_that_may_not_run(x: Any) -> Any:
    xs, last = [x[0]], [x[1]]
    for _ in range(len(x) - 9):
        last = xs
    last.append(1.0)
    return xs, last


def passed_on_in_a_tuple(x: Any) -> Any:
    xs = [x[0], x[1]]
    state = (0.0, xs)
    for i in range(9):
        state = (state[0] + x[i], state[1])
    state[1].append(7.0)
    xs[0] = 2.0
    return state, xs


def passed_on_in_a_dict_by_two_loops(x: Any) -> Any:
    inner = {"last": [x[0]]}
    state = {"sum": 0.0, "inner": inner}
    for _ in range(9):
        for i in range(9):
            state = {"sum": state["sum"] + x[i], "inner": state["inner"]}
            state["inner"]["last"][0] = state["sum"]
    state["inner"]["more"] = 3.0
    return state, inner


def passed_on_beside_a_copy(x: Any) -> Any:
    xs = [x[0], x[1]]
    state = (0.0, xs, xs)
    for i in range(9):
        state = (state[0] + x[i], state[1], list(state[2]))
    state[1].append(1.0)
    state[2].append(3.0)
    return state, xs


def from_elsewhere_in_a_tuple(x: Any) -> Any:
    xs, ys = [x[0]], [x[1]]
    state = (0.0, xs)
    for _ in range(9):
        state = (state[0] + state[1][0], ys)
    state[1].append(1.0)
    return state, xs, ys


@pytest.mark.parametrize(
    "program",
    [
        from_before_the_loop, whose_items_change, from_within_another, dataclasses_from_before_the_loop,
        made_in_the_loop, carried_and_made_in_the_loop, carried_and_in_a_dict,
        from_before_a_loop_that_may_not_run, passed_on_in_a_tuple, passed_on_in_a_dict_by_two_loops,
        passed_on_beside_a_copy, from_elsewhere_in_a_tuple,
    ],
)  # fmt: skip
def test_lists_are_one_under_all_their_names(program: Callable[..., Any]) -> None:
    assert_like_numpy(program, (np.linspace(0.1, 0.9, 9),), (np.linspace(0.9, 0.2, 12),))
