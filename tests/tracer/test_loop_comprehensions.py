"""Comprehensions, and generators given to Python's functions, that are kept as one loop."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from harness import assert_same
from rolling import assert_like_numpy, length

import arrayjit
from arrayjit.garbage import resting


def numbers(x: Any) -> Any:
    found = [x[i] * i - 1 for i in range(len(x))]
    return found, np.array(found), len(found), found[3]


def rows(x: Any) -> Any:
    a = x[:, None] * x
    return np.stack([row / row.max() for row in a]), [row.max() for row in a]


def pairs(x: Any) -> Any:
    return np.array([a * b for a, b in zip(x, x[::-1], strict=True)]), [(i, a + i) for i, a in enumerate(x)]


def indices(x: Any) -> Any:
    places = [2 * i for i in range(len(x))]
    return places, x[places[3]]


def views(x: Any) -> Any:
    windows = [x[i : i + 3] for i in range(len(x) - 3)]
    return np.array(windows), windows[2]


def written_later(x: Any) -> Any:
    found = [x[:3] * i for i in range(len(x))]
    found[1][0] = 7.0
    found[2] += found[1]
    return found


def nested(x: Any) -> Any:
    table = [[a * b + 1 for b in x] for a in x]
    return np.array(table), table[1][2], sum(table[2])


def few_beside(x: Any) -> Any:
    table = [[np.sqrt(a * b) for b in x[:3]] for a in x]
    turns = [[[a * a, -a], [0.0, 1]] for a in x]
    return np.array(table), np.array(turns), np.array([[x[:2] * a, x[1:3]] for a in x]), table[3]


def two_loops(x: Any) -> Any:
    return np.array([a * b for a in x for b in x[:20]])


def in_a_loop(x: Any) -> Any:
    total = 0.0
    for i in range(len(x)):
        total = total + np.array([x[i] * b for b in x]).max()
    return total


def sums(x: Any) -> Any:
    a = x[:, None] * x
    plain = sum(a[i, i] * i for i in range(len(x)))
    return plain, sum((row * row for row in a), x[0]), sum([row.max() for row in a])


def extremes(x: Any) -> Any:
    return max(a * (1 - a) for a in x), min(x[i] - 0.1 * i for i in range(len(x)))


def questions(x: Any) -> Any:
    none, some = any(a > 2 for a in x), any(a > 0.6 for a in x)
    return none, some, all(a < 2 for a in x), all(a < 0.6 for a in x)


def collected(x: Any) -> Any:
    return list(a + 1 for a in x), tuple(x * a for a in x)


def running(x: Any) -> Any:
    total = 0.0
    return [total := total + a for a in x], total


def constant_conditions(x: Any) -> Any:
    flag, names = True, []
    return [a * 2 for a in x if flag], [a for a in x if names], [a if flag else 0.0 for a in x]


def through_a_function(x: Any) -> Any:
    calls = []

    def twice(a: Any) -> Any:
        calls.append(a)
        return a * 2

    return [twice(a) for a in x], len(calls)


def dicts(x: Any) -> Any:
    found = [{"a": a, "b": (a + 1, i)} for i, a in enumerate(x)]
    return found, found[3]["b"][0]


KEPT = [
    numbers, rows, pairs, indices, written_later, nested, few_beside, two_loops, in_a_loop, sums, extremes,
    questions, collected, running, constant_conditions, dicts, views,
]  # fmt: skip
UNROLLED = [through_a_function]


@pytest.mark.parametrize("program", [*KEPT, *UNROLLED])
def test_comprehensions_are_as_in_numpy(program: Callable[..., Any]) -> None:
    for n in (9, 24, 140):
        assert_like_numpy(program, (np.linspace(0.1, 0.9, n),))


@pytest.mark.parametrize("program", KEPT[:-3])
def test_a_long_comprehension_is_kept(program: Callable[..., Any]) -> None:
    shorter, longer = (length(program, np.linspace(0.1, 0.9, n)) for n in (130, 300))
    assert shorter == longer


@pytest.mark.parametrize("target", ["c", "llvm"])
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("program", [rows, nested, sums, questions])
def test_targets_and_threads(program: Callable[..., Any], target: str, threads: int) -> None:
    x = np.linspace(0.1, 0.9, 70)
    assert_same(arrayjit.jit(program, threads=threads).on(target)(x), program(x))


def test_what_is_few_statements_is_unrolled() -> None:
    """A filter's terms are then added up in one loop over its results."""

    def program(x: Any, weights: Any) -> Any:
        return sum(weights[k] * x[k : len(x) - 20 + k] for k in range(20))

    text = arrayjit.jit(program).lower(np.ones(100), np.ones(20)).as_text("assignments")
    assert "range(" not in text
    assert_like_numpy(program, (np.linspace(0, 1, 100), np.linspace(1, 2, 20)))


def test_few_items_of_many_statements_are_kept() -> None:
    """Unrolled they would be hundreds of statements, each of which takes its time to compile."""

    def program(x: Any) -> Any:
        labels = np.arange(len(x)) % 6
        return np.array([[np.sum(x[labels == i]) * j for j in range(9)] for i in range(6)])

    assert_like_numpy(program, (np.arange(20.0),))
    assert "one loop of 6 iterations" in str(arrayjit.jit(program).explain(np.ones(20)))


def test_a_number_that_python_needs_unrolls_the_comprehension() -> None:
    names = [f"w{n % 7}" for n in range(200)]

    def program(x: Any) -> Any:
        weights = {f"w{i}": x[i] for i in range(7)}
        odd = [x[i] for i in range(len(x)) if i % 2]
        return [weights[names[i]] * x[i] * i for i in range(len(x))], odd

    assert_like_numpy(program, (np.linspace(0.1, 0.9, 200),))
    told = str(arrayjit.jit(program).explain(np.ones(200)))
    assert "unrolled, because" in told


def test_shapes_that_differ_unroll_the_comprehension() -> None:
    def program(x: Any) -> Any:
        return [x[:i] * 2 for i in range(len(x))]

    assert_like_numpy(program, (np.linspace(0.1, 0.9, 140),))


def test_the_number_of_items_is_compiled_in() -> None:
    def program(x: Any, n: int) -> Any:
        return (
            np.array([x[i % 3] * i for i in range(3)]),
            [x * i for i in range(n)],
            sum(i * x for i in range(n)),
        )

    assert_like_numpy(program, (np.ones(3), 0), (np.ones(3), 300), (np.ones(3), 5), (np.ones(3), 2000))


def test_other_lists_are_left_alone() -> None:
    """Lists that are made in between, in a body or by another generator."""

    def program(x: Any) -> Any:
        others: Any = []
        made = [[[], [a]] for a in x]
        half = (a / 2 for a in x)
        first = next(half)
        return [[*others, a * 2] for a in x], made, first, list(half)

    x = np.linspace(0.1, 0.9, 140)
    assert_like_numpy(program, (x,))
    gc.disable()
    try:
        assert_like_numpy(program, (x,))
    finally:
        gc.enable()


def test_explain_says_that_a_comprehension_is_kept() -> None:
    told = str(arrayjit.jit(numbers).explain(np.ones(200)))
    assert "one loop of 200 iterations; appends to items" in told


def test_a_long_comprehension_is_a_few_statements() -> None:
    x = np.linspace(-1.0, 1.0, 10_000)
    assert_same(arrayjit.jit(sums_of_squares)(x), sums_of_squares(x))


def sums_of_squares(x: Any) -> Any:
    return sum(a * a for a in x), max(a * a for a in x), np.array([a * a for a in x])


def stops_at_a_known_item(x: Any) -> Any:
    seen: list[int] = []
    found = any(seen.append(i) or i > 3 for i in range(len(x)))  # type: ignore[func-returns-value]
    items = (i < 5 for i in range(9))
    return found, len(seen), all(items), next(items)


def asks_only(x: Any) -> Any:
    y = x * 2
    return any(np.sin(y)[i] > 0.5 for i in range(len(x))), all(y[i] > x[i] for i in range(len(x)))


@pytest.mark.parametrize("program", [stops_at_a_known_item, asks_only])
def test_any_and_all_are_as_in_numpy(program: Callable[..., Any]) -> None:
    assert_like_numpy(program, (np.linspace(0.1, 0.9, 40),), (np.linspace(0.9, -0.2, 40),))


def writes_into_an_array(x: Any) -> Any:
    y = x.copy()

    def put(i: Any) -> Any:
        y[i] = -1.0
        return x[i] > 0.5

    return any(put(i) for i in range(len(x))), y


def changes_a_list(x: Any) -> Any:
    seen: list[int] = []
    return all(seen.append(i) or x[i] < 0.5 for i in range(9)), len(seen)  # type: ignore[func-returns-value]


def binds_a_name(x: Any) -> Any:
    witness = 0.0
    return any((witness := x[i]) > 0.5 for i in range(len(x))), witness


@pytest.mark.parametrize(
    ("program", "words"),
    [
        (writes_into_an_array, "writes into an array"),
        (changes_a_list, "changes seen"),
        (binds_a_name, "binds a name"),
    ],
)
def test_what_any_and_all_would_do_to_items_that_they_do_not_ask_for(
    program: Callable[..., Any], words: str
) -> None:
    with pytest.raises(arrayjit.UnsupportedError, match=words):
        arrayjit.jit(program)(np.linspace(0.1, 0.9, 40))


def test_what_was_made_before_comprehensions_is_gone_through_once(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    young = gc.get_objects

    def counted(generation: int) -> list[Any]:
        found = young(generation=generation)
        seen.append(len(found))
        return found

    def sums(x: Any) -> Any:
        return sum([row * 2 for row in x]) + sum([row * 3 for row in x])

    with resting():
        made = [[] for _ in range(20_000)]  # type: ignore[var-annotated]
        monkeypatch.setattr(gc, "get_freeze_count", lambda: 0)  # the tests keep things from the collector
        monkeypatch.setattr(gc, "unfreeze", lambda: None)
        monkeypatch.setattr(gc, "get_objects", counted)
        assert_same(arrayjit.jit(sums)(np.ones((3, 4))), np.full(4, 15.0))
    first, *later = seen
    assert first >= len(made) > max(later)
