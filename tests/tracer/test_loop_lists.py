"""Loops that append to lists and are kept as one loop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from harness import assert_same
from rolling import assert_like_numpy, length

import arrayjit


def numbers(x: Any) -> Any:
    losses = []
    for i in range(len(x)):
        losses.append(x[i] * i - 1)
    return losses, np.array(losses), losses[-1], losses[2], len(losses)


def python_numbers(x: Any) -> Any:
    path = []
    for i in range(len(x)):
        path.append(float(x[i]) * 2)
    return np.array(path), path[-1] * x[0], path


def indices(x: Any) -> Any:
    places, kinds = [], []
    for i in range(len(x)):
        places.append(i * 2)
        kinds.append(True)
    return places, kinds, x[places[3]]


def arrays(x: Any) -> Any:
    xs = []
    for i in range(len(x)):
        xs.append(x[:3] * i)
    return np.array(xs), np.stack(xs, axis=1), np.concatenate(xs), np.vstack(xs), xs[2]


def last_item(x: Any) -> Any:
    xs = [x[0]]
    for _ in range(len(x)):
        xs.append(xs[-1] + 0.1 * (1 - xs[-1]))
    return np.array(xs), xs


def last_array(x: Any) -> Any:
    xs = [x]
    for _ in range(len(x)):
        xs.append(xs[-1] + 0.1 * xs[-1])
    return np.stack(xs)


def last_two_items(x: Any) -> Any:
    xs = [x[0], x[1]]
    for _ in range(len(x)):
        xs.append(xs[-1] + 0.5 * xs[-2])
    return np.array(xs), xs[-2]


def last_of_this_iteration(x: Any) -> Any:
    xs, ys = [], []
    for i in range(len(x)):
        xs.append(x[i] * 2)
        ys.append(xs[-1] + 1)
    return np.array(xs), np.array(ys)


def dict_of_lists(x: Any) -> Any:
    history: dict[str, list[Any]] = {"loss": [], "norm": []}
    for i in range(len(x)):
        history["loss"].append(x[i])
        history["norm"].append(x[i] * x[i])
    return history


class Recorder:
    def __init__(self) -> None:
        self.losses: list[Any] = []

    def record(self, loss: Any) -> None:
        self.losses.append(loss)


def attribute(x: Any) -> Any:
    recorder = Recorder()
    for i in range(len(x)):
        recorder.losses.append(x[i] + 1)
    return recorder.losses


def method(x: Any) -> Any:
    recorder = Recorder()
    for i in range(len(x)):
        recorder.record(x[i] + 1)
    return recorder.losses


def closure(x: Any) -> Any:
    seen: list[Any] = []

    def record(value: Any) -> None:
        seen.append(value)

    for i in range(len(x)):
        record(x[i] - 1)
    return seen


def two_names(x: Any) -> Any:
    xs: list[Any] = []
    same = xs
    for i in range(len(x)):
        xs.append(x[i])
        same.append(x[i] + 1)
    return np.array(xs), same is xs


def named_in_the_body(x: Any) -> Any:
    history = {"loss": [0.5]}
    for i in range(len(x)):
        losses = history["loss"]
        losses.append(x[i])
    return np.array(losses), losses is history["loss"]


def extended(x: Any) -> Any:
    xs: list[Any] = []
    for i in range(len(x)):
        xs += [x[i]]
        xs.extend([x[i] * 2, x[i] * 3])
        xs.extend(x[:2])
    return np.array(xs)


def in_tuples_and_dicts(x: Any) -> Any:
    pairs, records = [], []
    for i in range(len(x)):
        pairs.append((x[i], x * i, i))
        records.append({"loss": x[i], "step": i, "name": "adam"})
    return pairs, records


@dataclass
class State:
    position: Any
    speed: Any


def in_dataclasses(x: Any) -> Any:
    states = []
    for i in range(len(x)):
        states.append(State(x * i, x[i]))
    return states[3].position, states[-1].speed, np.array([state.speed for state in states])


def conditions_known_while_tracing(x: Any, verbose: bool = True) -> Any:
    xs, ys = [], []
    for i in range(len(x)):
        if verbose:
            xs.append(x[i])
        if x.ndim > 1:
            ys.append(x[i])
    return np.array(xs), ys


def nested(x: Any) -> Any:
    xs = []
    for i in range(len(x)):
        for j in range(6):
            xs.append(x[i] * j)
        xs.append(x[i])
    return np.array(xs)


def list_of_lists(x: Any) -> Any:
    rows = []
    for i in range(len(x)):
        row = []
        for j in range(6):
            row.append(x[i] * j)
        rows.append(np.array(row))
    return np.array(rows)


def lengths(x: Any) -> Any:
    xs: list[Any] = [x[0]]
    for _ in range(len(x)):
        xs.append(x[0] * len(xs))
    return np.array(xs), len(xs)


def carried(x: Any) -> Any:
    xs, state = [], x * 1.0
    for i in range(len(x)):
        state = state * 0.5 + i
        xs.append(state)
    return xs, state


def appended_before_it_is_rebound(x: Any) -> Any:
    xs, state = [], x
    for _ in range(len(x)):
        xs.append(state)
        state = state * 0.5
    return xs, state


def written_after_it_is_appended(x: Any) -> Any:
    xs = []
    for i in range(len(x)):
        row = x * i
        xs.append(row)
        row += 1
    return np.array(xs)


def views_of_an_older_array(x: Any) -> Any:
    whole = np.zeros((len(x), 3))
    xs = []
    for i in range(len(x)):
        xs.append(whole[i])
    for i in range(len(x)):
        whole[i] = x[i]
    return xs[2], np.array(xs)


def one_array_each_time(x: Any) -> Any:
    sums, xs = np.zeros(3), []
    for i in range(len(x)):
        sums += x[i]
        xs.append(sums)
    return xs[0], xs[1], np.array(xs)


def copies_of_one_array(x: Any) -> Any:
    sums, xs = np.zeros(3), []
    for i in range(len(x)):
        sums += x[i]
        xs.append(sums.copy())
    return np.array(xs)


def exchanged(x: Any) -> Any:
    now, then, xs = x * 1.0, x * 2.0, []
    for i in range(len(x)):
        then[:] = now + i
        now, then = then, now
        xs.append(now[1])
    return np.array(xs)


def parts_of_one_array(x: Any) -> Any:
    state, positions, speeds = np.stack([x, x]), [], []
    for _ in range(len(x)):
        state = state * 0.5
        positions.append(state[0])
        speeds.append(state[1])
    return np.array(positions), np.array(speeds), state


def sums_and_extremes(x: Any) -> Any:
    xs, rows = [], []
    for i in range(len(x)):
        xs.append(x[i] * (x[i] - 0.3))
        rows.append(x + i)
    return sum(xs), min(xs), max(xs), sum(xs, 1.5), sum(rows), np.mean(xs), np.sum(rows, axis=0)


def changes_kind_first(x: Any) -> Any:
    xs, best = [0], None
    for i in range(len(x)):
        best = x[i] if best is None else np.maximum(best, x[i])
        xs.append(xs[-1] + best)
    return np.array(xs), best


def over_pairs(x: Any) -> Any:
    xs = []
    for i, (one, other) in enumerate(zip(x, x[::-1], strict=True)):
        xs.append(one * other + i)
    return np.array(xs)


KEPT = [
    numbers, python_numbers, indices, arrays, last_item, last_array, last_two_items, last_of_this_iteration,
    dict_of_lists, attribute, method, closure, two_names, named_in_the_body, extended, in_tuples_and_dicts,
    in_dataclasses, conditions_known_while_tracing, nested, list_of_lists, lengths, carried,
    appended_before_it_is_rebound, written_after_it_is_appended, views_of_an_older_array,
    one_array_each_time, copies_of_one_array, exchanged, parts_of_one_array, sums_and_extremes,
    changes_kind_first, over_pairs,
]  # fmt: skip


@pytest.mark.parametrize("program", KEPT)
def test_appending_is_as_in_numpy(program: Callable[..., Any]) -> None:
    assert_like_numpy(program, (np.linspace(0.1, 0.9, 8),), (np.linspace(0.9, 0.2, 30),))


LATER_WRITTEN = (one_array_each_time, views_of_an_older_array)


@pytest.mark.parametrize("program", [program for program in KEPT if program not in LATER_WRITTEN])
def test_a_loop_that_appends_is_kept(program: Callable[..., Any]) -> None:
    shorter, longer = (length(program, np.linspace(0.1, 0.9, n)) for n in (12, 300))
    assert shorter == longer


@pytest.mark.parametrize("target", ["c", "llvm"])
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("program", [arrays, last_array, python_numbers, nested])
def test_targets_and_threads(program: Callable[..., Any], target: str, threads: int) -> None:
    x = np.linspace(0.1, 0.9, 40)
    assert_same(arrayjit.jit(program, threads=threads).on(target)(x), program(x))


def walk(steps: Any) -> Any:
    x, path = 0.0, []
    for step in steps:
        x = x + step
        path.append(x)
    return np.array(path), path


def test_a_long_list_is_a_few_statements() -> None:
    steps = np.linspace(-1.0, 1.0, 10_000)
    assert_same(arrayjit.jit(walk)(steps), walk(steps))
    assert length(walk, steps) == length(walk, steps[:100])


def test_the_number_of_iterations_is_compiled_in() -> None:
    def program(x: Any, n: int) -> Any:
        xs = [x]
        for _ in range(n):
            xs.append(xs[-1] * 0.5)
        return np.stack(xs), len(xs)

    assert_like_numpy(program, (np.ones(3), 9), (np.ones(3), 0), (np.ones(3), 5000))


def test_a_number_of_iterations_from_an_array() -> None:
    def program(x: Any, counts: Any) -> Any:
        xs = []
        for i in range(counts[0]):
            xs.append(x[i])
        return np.array(xs)

    with pytest.raises(arrayjit.UserError, match="how many items a loop appends to a list") as raised:
        arrayjit.jit(program)(np.ones(5), np.array([3]))
    assert "write into an array made before the loop" in str(raised.value)


def test_explain_names_the_lists() -> None:
    x = np.ones(9)
    told = str(arrayjit.jit(last_of_this_iteration).explain(x))
    assert "one loop of 9 iterations; appends to xs, ys" in told
    told = str(arrayjit.jit(dict_of_lists).explain(x))
    assert "appends to" in told
    assert "history['loss']" in told
    assert "appends to recorder.losses" in str(arrayjit.jit(attribute).explain(x))


def test_a_number_that_python_needs_unrolls_the_loop() -> None:
    def program(x: Any, n: int) -> Any:
        xs = [0]
        for i in range(n):
            xs.append(xs[-1] + i % 3)
        return x[: xs[-1]], [0] * xs[2]

    assert_like_numpy(program, (np.arange(100.0), 9))
