"""Loops that append to lists and use them, or what is in them, otherwise as well: as in NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from rolling import assert_like_numpy

import arrayjit
from arrayjit import UnsupportedError


def reads_the_whole(x: Any) -> Any:
    xs, best = [], 0.0
    for i in range(len(x)):
        xs.append(x[i])
        best = np.array(xs).max()
    return best


def iterates(x: Any) -> Any:
    xs = [x[0]]
    for _ in range(len(x)):
        total = 0.0
        for item in xs:
            total = total + item
        xs.append(total * 0.5)
    return np.array(xs)


def reads_an_item(x: Any) -> Any:
    xs = [x[0]]
    for i in range(len(x)):
        xs.append(xs[i] * 0.5)
    return np.array(xs)


def matches(x: Any) -> Any:
    xs = [x[0]]
    for i in range(len(x)):
        match xs:
            case [first]:
                xs.append(first * 2)
            case [_, second]:
                xs.append(second * 3)
            case _:
                xs.append(x[i])
    return np.array(xs)


def adds_lists(x: Any) -> Any:
    xs, head = [x[0]], [x[1]]
    for i in range(len(x)):
        xs.append(x[i] * len(head + xs))
    return np.array(xs)


def compares(x: Any) -> Any:
    xs, found = [], 0
    for i in range(len(x)):
        xs.append(i)
        found += xs == [0, 1, 2]
        found += 3 in xs
    return x * found


def is_in_a_tuple(x: Any) -> Any:
    xs: list[Any] = []
    both = xs, x
    for i in range(len(x)):
        both[0].append(x[i] * (len(xs) + 1))
        xs.append(x[i])
    return both


def is_put_into_a_tuple(x: Any) -> Any:
    xs: list[Any] = []
    for i in range(len(x)):
        xs.append(x[i])
        both = xs, i
    return both


def is_known_by_a_method(x: Any) -> Any:
    xs: list[Any] = []
    add = xs.append
    for i in range(len(x)):
        add(x[i])
    return np.array(xs)


def is_passed_as_a_method(x: Any) -> Any:
    xs: list[Any] = []

    def fill(add: Callable[[Any], None]) -> None:
        for i in range(len(x)):
            add(x[i])

    fill(xs.append)
    return np.array(xs)


def is_an_argument(x: Any) -> Any:
    xs: list[Any] = []

    def fill(ys: list[Any]) -> None:
        for i in range(len(x)):
            ys.append(x[i])

    fill(xs)
    return np.array(xs)


class Recorder:
    def __init__(self, loss: Any) -> None:
        self.loss = loss


def objects(x: Any) -> Any:
    recorders = []
    for i in range(len(x)):
        recorders.append(Recorder(x[i]))
    return [recorder.loss for recorder in recorders]


def one_dict(x: Any) -> Any:
    found, xs = {}, []
    for i in range(len(x)):
        found["loss"] = x[i]
        xs.append(found)
    return xs


def a_dict_that_has_a_name(x: Any) -> Any:
    found, xs = {}, []
    for i in range(len(x)):
        found = {"loss": x[i]}
        xs.append(found)
    found["last"] = x[0]
    return xs


def one_array_twice(x: Any) -> Any:
    xs = []
    for i in range(len(x)):
        row = x * i
        xs.append(row)
        xs.append(row)
    xs[0][0] = 5
    return xs


def one_array_in_two_lists(x: Any) -> Any:
    xs, ys = [], []
    for i in range(len(x)):
        row = x * i
        xs.append(row)
        ys.append(row)
    xs[1][0] = 5
    return ys[1], xs


def a_name_written_afterwards(x: Any) -> Any:
    xs, state = [], x * 1
    for _ in range(len(x)):
        state = state * 0.5
        xs.append(state)
    state[0] = 99
    return xs, state


def an_item_written_afterwards(x: Any) -> Any:
    xs, state = [], x * 1
    for _ in range(len(x)):
        state = state * 0.5
        xs.append(state)
    xs[-1][0] = 99
    return state, np.array(xs)


def an_argument_written_afterwards(x: Any) -> Any:
    xs, state = [], x
    for _ in range(len(x)):
        xs.append(state)
        state = state * 0.5
    xs[0][0] = 77
    return xs, x


def one_list_after_the_other(x: Any) -> Any:
    xs, ys, state = [], [], x
    for _ in range(len(x)):
        xs.append(state)
        state = state * 0.5
        ys.append(state)
    ys[0][0] = 77
    return xs, ys


def written_in_the_next_iteration(x: Any) -> Any:
    xs, state = [], x * 1
    for _ in range(len(x)):
        state *= 2
        state = state + 1
        xs.append(state)
    return np.array(xs)


def written_through_the_list(x: Any) -> Any:
    xs = [x * 1]
    for _ in range(len(x)):
        xs[-1][0] = 5
        xs.append(xs[-1] + 1)
    return np.array(xs)


def names_that_follow(x: Any) -> Any:
    xs, now, then = [], x * 1, x * 2
    for _ in range(len(x)):
        xs.append(now)
        now, then = then, now + then
    return xs, now, then


def a_name_of_the_item_before(x: Any) -> Any:
    xs, now = [], x * 1
    for _ in range(len(x)):
        xs.append(now)
        before = now
        now = now * 2
    before[0] = 9.0
    return np.array(xs), now


def a_name_of_the_last_item(x: Any) -> Any:
    xs = [x]
    for _ in range(len(x)):
        before = xs[-1]
        xs.append(before + 1)
    before[0] = 9.0
    return xs


def a_name_of_the_item_before_that(x: Any) -> Any:
    xs, one, other = [x], x * 1, x + 1
    for i in range(len(x)):
        xs.append(x * i)
        one, other = other, xs[-1]
    one[0] = 9.0
    return xs, other


def one_array_in_two_iterations(x: Any) -> Any:
    xs, now = [], x * 1
    for _ in range(len(x)):
        xs.append(now)
        now = now + 1
        xs.append(now)
    xs[2][0] = 9.0
    return np.array(xs)


def arrays_that_move_on(x: Any) -> Any:
    xs, one, other = [], x * 1, x + 1
    for _ in range(len(x)):
        one, other = other, one + other
        xs.append(one)
        xs.append(other)
    xs[2][0] = 9.0
    return np.array(xs)


def arrays_that_move_on_twice(x: Any) -> Any:
    xs, one, two, three = [], x * 1, x + 1, x + 2
    for _ in range(len(x)):
        one, two, three = two, three, one + three
        xs += [one, three]
    xs[4][0] = 9.0
    return np.array(xs)


def shapes_that_grow(x: Any) -> Any:
    xs = []
    for i in range(len(x)):
        xs.append(x[:i] * 2)
    return xs


def left_early(x: Any) -> Any:
    xs = []
    for i in range(len(x)):
        xs.append(x[i])
        if i == 5:
            break
    return np.array(xs)


def some_iterations(x: Any) -> Any:
    xs = []
    for i in range(len(x)):
        if i % 2:
            xs.append(x[i])
    return np.array(xs)


def few_items(x: Any) -> Any:
    xs: list[Any] = []
    for i in range(len(x)):
        if not xs or len(xs) < 3:
            xs.append(x[i])
    return np.array(xs)


def removes(x: Any) -> Any:
    xs = [x[0]]
    for i in range(len(x)):
        xs.append(x[i])
        xs.pop(0)
    return xs


def a_list_in_each_iteration(x: Any) -> Any:
    xs = []
    for i in range(len(x)):
        pair = [x[i]]
        pair.append(x[i] * 2)
        xs.append(pair)
    return xs


def parts_of_complex_numbers(x: Any) -> Any:
    xs, z = [], x * (1 + 2j)
    for _ in range(len(x)):
        z = z * 1j
        xs.append(z.real)
        xs.append(z.imag)
    ys = [part for number in range(5) for part in (z[number].real, z[number].imag)]
    flat = z.reshape(-1, 1)[:, 0]
    return xs, np.array(xs), np.array(ys), np.stack([flat.real, flat.imag, flat.real, flat.imag, flat.real])


def triangular(x: Any) -> Any:
    xs = []
    for i in range(len(x)):
        for j in range(i):
            xs.append(x[j])
    return np.array(xs)


@pytest.mark.parametrize(
    "program",
    [
        reads_the_whole, iterates, reads_an_item, matches, adds_lists, compares, is_in_a_tuple,
        is_put_into_a_tuple, is_known_by_a_method, is_passed_as_a_method, is_an_argument, objects, one_dict,
        a_dict_that_has_a_name, one_array_twice, one_array_in_two_lists, a_name_written_afterwards,
        an_item_written_afterwards, an_argument_written_afterwards, one_list_after_the_other,
        a_name_of_the_item_before, a_name_of_the_last_item, a_name_of_the_item_before_that,
        arrays_that_move_on_twice, one_array_in_two_iterations, arrays_that_move_on,
        written_in_the_next_iteration, written_through_the_list, names_that_follow, shapes_that_grow,
        left_early, some_iterations, few_items, removes, a_list_in_each_iteration, parts_of_complex_numbers,
        triangular,
    ],
)  # fmt: skip
def test_other_uses_are_as_in_numpy(program: Callable[..., Any]) -> None:
    assert_like_numpy(program, (np.linspace(0.1, 0.9, 9),), (np.linspace(0.9, 0.2, 12),))


def test_many_iterations_that_must_be_unrolled() -> None:
    with pytest.raises(UnsupportedError, match="uses the whole of xs, a list that the loop appends to"):
        arrayjit.jit(reads_the_whole)(np.ones(2000))
