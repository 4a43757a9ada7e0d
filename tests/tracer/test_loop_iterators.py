"""`range`, `enumerate`, `zip` and `reversed` as types, as iterators of which items are taken one by one, and
as results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from rolling import assert_kept, assert_like_numpy

import arrayjit
from arrayjit.errors import ConcretizationError, UnsupportedError

x5 = np.arange(5.0) - 1
x40 = np.arange(40.0)
COUNTS = {"rows": range(2, 5)}


def of_types(x: Any) -> Any:
    made = range(3), enumerate(x), zip(x, x, strict=True), reversed(x)
    kinds = range, enumerate, zip, reversed
    known = [isinstance(item, kind) for item in (*made, COUNTS["rows"], x) for kind in kinds]
    exact = [type(item) is kind for item, kind in zip(made, kinds, strict=True)]
    return known, exact, type(COUNTS["rows"]) is range, {range: 1}[range], [kind.__name__ for kind in kinds]


def of_patterns(x: Any) -> Any:
    match COUNTS["rows"]:
        case range():
            return [x[i] for i in COUNTS["rows"]]
    return None


def of_annotations(x: Any) -> Any:
    def rows(which: range | None = None) -> Any:
        return x if which is None else x[which.start : which.stop]

    return rows(), rows(range(1, 3)), issubclass(range, object)


def of_parts(x: Any) -> Any:
    steps = range(1, 10, 3)
    return (
        steps.start,
        steps.stop,
        steps.step,
        steps.count(4),
        steps.index(7),
        str(range(4)),
        repr(steps),
        x[1],
    )


@pytest.mark.parametrize("program", [of_types, of_patterns, of_annotations, of_parts])
def test_ranges_and_their_kin_have_types(program: Callable[[Any], Any]) -> None:
    assert_like_numpy(program, (x5,))


def test_ranges_are_results() -> None:
    def program(x: Any, n: int) -> Any:
        return range(3), {"rows": range(1, len(x), 2)}, COUNTS, x * n

    assert_like_numpy(program, (x5, 3))
    with pytest.raises(ConcretizationError, match="must be known while tracing") as caught:
        arrayjit.jit(lambda x: range(int(x[2])))(x5)
    assert caught.value.loc is not None
    assert caught.value.loc.file == __file__


UNFIT: dict[str, Callable[[Any], Any]] = {
    "zip": lambda x: zip(x, x, strict=True),
    "flatiter": lambda x: [x.flat],
    "Flags": lambda x: x.flags,
    "ValueError": lambda x: ValueError(x),
}


@pytest.mark.parametrize("name", UNFIT)
def test_iterators_and_what_holds_traced_values_are_no_results(name: str) -> None:
    with pytest.raises(UnsupportedError, match=f"the function returns a {name} that"):
        arrayjit.jit(UNFIT[name])(x5)


def first_of_each(x: Any) -> Any:
    pairs, numbered, back, cells = zip(x, x[2:], strict=False), enumerate(x, 3), reversed(x), x.flat
    firsts = next(pairs), next(numbered), next(numbered), next(back), next(cells), next(np.ndindex(2, 2))
    return firsts, list(pairs), list(numbered), list(numbered), sum(back), list(cells), next(back, None)


def none_left(x: Any) -> Any:
    return next(zip([], x, strict=False), 7), next(enumerate(x[:0]), 8), next(iter(range(0)), 9)


def loop_over_the_rest(x: Any) -> Any:
    numbered, total = enumerate(x), 0.0
    start = next(numbered)[1]
    for i, value in numbered:
        total = total * 0.5 + value * i
    return start, total


def taken_in_a_loop(x: Any) -> Any:
    numbered, total = enumerate(x), 0.0
    for _ in range(20):
        i, value = next(numbered)
        total = total * 0.5 + value * i
    return total


@pytest.mark.parametrize("program", [first_of_each, none_left, loop_over_the_rest])
def test_items_are_taken_by_next(program: Callable[[Any], Any]) -> None:
    assert_like_numpy(program, (x5,), (x40,))


def test_what_is_left_of_an_iterator_is_a_loop() -> None:
    assert_kept(loop_over_the_rest)
    assert_like_numpy(taken_in_a_loop, (x40,))  # which `next` unrolls


def in_two_places(x: Any) -> Any:
    numbered = enumerate(x)
    return list(zip(numbered, numbered, strict=False))


def after_another(x: Any) -> Any:
    numbered = enumerate(x)
    return list(zip(range(2), numbered, strict=False)), list(numbered)


@pytest.mark.parametrize("program", [in_two_places, after_another])
def test_an_iterator_that_another_one_takes_is_not_used_besides(program: Callable[[Any], Any]) -> None:
    with pytest.raises(UnsupportedError, match="an iterator of which some items were taken"):
        arrayjit.jit(program)(x5)
