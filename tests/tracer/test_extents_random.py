"""Views of views of views, each a slice whose bounds depend on an argument."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from sizing import EDGES, N, assert_like_numpy, vector

Bound = Callable[[Any, Any], Any]

BOUNDS: dict[str, Bound] = {
    "": lambda k, size: None,
    "0": lambda k, size: 0,
    "2": lambda k, size: 2,
    "-1": lambda k, size: -1,
    "k": lambda k, size: k,
    "-k": lambda k, size: -k,
    "k + 1": lambda k, size: k + 1,
    "2 * k": lambda k, size: 2 * k,
    "size - k": lambda k, size: size - k,
    "size // 2": lambda k, size: size // 2,
    "size + k": lambda k, size: size + k,
}
bounds = st.sampled_from(sorted(BOUNDS))
slices = st.tuples(bounds, bounds, st.sampled_from([None, 1, 2, 3, -1, -2]))


def part(view: Any, slices: list[tuple[str, str, int | None]], k: Any) -> Any:
    for start, stop, step in slices:
        size = view.shape[0]
        view = view[BOUNDS[start](k, size) : BOUNDS[stop](k, size) : step]
    return view


@given(st.lists(slices, min_size=1, max_size=3))
@settings(max_examples=60)
def test_views_of_views(slices: list[tuple[str, str, int | None]]) -> None:
    def program(x: Any, cells: Any, k: int) -> Any:
        view = part(x, slices, k)
        cells[: view.size] = view
        view += 10
        return view.size, view.sum()

    assert_like_numpy(program, vector, np.zeros(N), numbers=EDGES[::2])


@given(st.lists(slices, min_size=1, max_size=2), st.integers(0, 1))
@settings(max_examples=30)
def test_views_of_both_axes(slices: list[tuple[str, str, int | None]], axis: int) -> None:
    def program(a: Any, k: int) -> Any:
        for row in range(a.shape[0]):
            view = part(a[row:, : row + 1] if axis else a[:, row:].T, slices, k)
            view *= 2
            a[row, 0] += view.sum() + view.shape[0]
        return a.sum(axis=0)

    square = np.arange(25.0).reshape(5, 5) % 7
    assert_like_numpy(program, square, numbers=EDGES[1::3])
