"""`np.interp`, `np.gradient`, `np.convolve` and `np.correlate`, on both targets like NumPy."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from refusing import assert_raises_like_numpy
from rolling import assert_kept, assert_like_numpy

import arrayjit
from arrayjit.errors import NotANumber

Function = Callable[..., Any]
random = np.random.default_rng(5)
known = np.sort(random.standard_normal(9))
values = random.standard_normal(9)
places = np.concatenate((2 * random.standard_normal(50), known, [np.nan, np.inf, -np.inf]))
infinite = np.where(np.arange(9) // 2 == 2, np.inf, values)

INTERPOLATIONS: dict[str, Function] = {
    "plain": lambda x, a, b: np.interp(x, a, b),
    "beyond the ends": lambda x, a, b: np.interp(x, a, b, left=-1.0, right=0),
    "a number": lambda x, a, b: (np.interp(x[0], a, b), np.interp(0.25, a, b)),
    "a period": lambda x, a, b: np.interp(x, a, b, period=2.0),
    "two axes": lambda x, a, b: np.interp(x.reshape(2, -1), a, b),
    "one sample": lambda x, a, b: np.interp(x, a[:1], b[:1]),
    "lists": lambda x, a, b: np.interp([1, 2], [0, 1, 5], a[:3]),
}


@pytest.mark.parametrize("program", INTERPOLATIONS.values(), ids=INTERPOLATIONS)
@pytest.mark.parametrize("heights", [values, infinite], ids=["finite", "infinite"])
def test_interpolation(program: Function, heights: np.ndarray) -> None:
    with np.errstate(invalid="ignore"):
        assert_like_numpy(program, (places, known, heights))


def test_many_places_that_are_sorted_are_merged_with_the_samples() -> None:
    known = np.sort(np.concatenate([random.standard_normal(37), [-np.inf, -1.0, -1.0, 0.0]]))
    many = random.standard_normal(4005)
    many[:5] = -1.0, -0.0, np.inf, -np.inf, 1.0
    ends_in_nan = np.sort(many)
    ends_in_nan[-1] = np.nan
    program = INTERPOLATIONS["plain"]
    for where in (np.sort(many), many, ends_in_nan, np.sort(many)[::-1], np.zeros(4000)):
        assert_like_numpy(program, (where, known, random.standard_normal(41)))
    assert_like_numpy(program, (np.sort(many), known[1:], random.standard_normal(40) * (1 - 2j)))
    assert_like_numpy(lambda x, a: np.interp(x, a, a, period=2.0), (np.arange(4000), np.arange(5.0)))


ENDS = (-np.inf, -1.5e308, -1.0, 0.0, 3.0, 1.7e308, np.inf)
interpolated = arrayjit.jit(INTERPOLATIONS["plain"])
checked = arrayjit.jit(INTERPOLATIONS["plain"], check="nan")
HEIGHTS = (-np.inf, -1e308, -0.0, 0.0, 2.5, 1e308, np.inf)
ANYWHERE = np.array([-np.inf, -1.7e308, -3.0, -1.0, -0.5, 0.0, 1e-300, 1.0, 3.0, 1e308, 1.7e308, np.inf])


@pytest.mark.parametrize("ends", [*combinations(ENDS, 2), (1.0, 1.0), (np.inf, np.inf)], ids=str)
def test_between_infinite_and_huge_samples_only_a_nan_of_numpy_s_stops_a_check(
    ends: tuple[float, float],
) -> None:
    for heights in product(HEIGHTS, repeat=2):
        samples = np.array(ends), np.array(heights)
        with np.errstate(all="ignore"):
            expected = np.interp(ANYWHERE, *samples)
        is_nan = np.isnan(expected)
        result = interpolated(ANYWHERE, *samples)
        np.testing.assert_array_equal(result, expected)
        np.testing.assert_array_equal(np.signbit(result)[~is_nan], np.signbit(expected)[~is_nan])
        checked(np.where(is_nan, ANYWHERE[0], ANYWHERE), *samples)
        if is_nan.any():
            with pytest.raises(NotANumber):
                checked(ANYWHERE, *samples)


SLOPES: dict[str, Function] = {
    "one distance": lambda y, x, e: (np.gradient(y, edge_order=e), np.gradient(y, x[2], edge_order=e)),
    "places": lambda y, x, e: np.gradient(y, x, edge_order=e),
    "places made here": lambda y, x, e: np.gradient(y, np.linspace(x[0], 5, len(y)), edge_order=e),
    "whole numbers": lambda y, x, e: np.gradient((9 * y).astype("i4"), (9 * x).astype("i4"), edge_order=e),
    "small floats": lambda y, x, e: np.gradient(y.astype("f2"), x.astype("f2"), edge_order=e),
    "complex numbers": lambda y, x, e: np.gradient(y + 1j * x, x, edge_order=e),
    "axes": lambda y, x, e: np.gradient(y * x[:, None], x, 0.5, edge_order=e),
    "one of the axes": lambda y, x, e: np.gradient(y * x[:3, None], x, axis=-1, edge_order=e),
    "what a mask selects": lambda y, x, e: np.gradient(y[y > 0.2], x[y > 0.2], edge_order=e),
}


@pytest.mark.parametrize("program", SLOPES.values(), ids=SLOPES)
@pytest.mark.parametrize(
    "where", [np.cumsum(random.random(12) + 0.2), np.arange(12) / 4], ids=["any", "even"]
)
@pytest.mark.parametrize("edge_order", [1, 2])
def test_slopes(program: Function, where: np.ndarray, edge_order: int) -> None:
    heights = random.random(12)
    assert_like_numpy(lambda y, x: program(y, x, edge_order), (heights, where))


FEW = "Shape of array too small to calculate a numerical gradient"


@pytest.mark.parametrize(
    ("program", "words"),
    [
        (lambda y: np.gradient(y, y[:9]), "distances must match the length of the corresponding dimension"),
        (lambda y: np.gradient(y, y[:, None]), "distances must be either scalars or 1d"),
        (lambda y: np.gradient(y, y, y), "invalid number of arguments"),
        (lambda y: np.gradient(y[:1]), FEW),
        (lambda y: np.gradient(y[:1], y[:1]), "index 0 is out of bounds for axis 0 with size 0"),
        (lambda y: np.gradient(y[:2], y[:2], edge_order=2), FEW),
        (lambda y: np.gradient(y[y > 5]), FEW),
        (lambda y: np.gradient(y, edge_order=3), "'edge_order' greater than 2 not supported"),
        (lambda y: np.gradient(y > 0.5), "numpy boolean subtract, the `-` operator, is not supported"),
        (lambda y: np.gradient(y, axis=1), "axis 1 is out of bounds for array of dimension 1"),
    ],
)
def test_mistakes_in_slopes(program: Function, words: str) -> None:
    assert_raises_like_numpy(program, words, random.random(12))


LENGTHS = [(9, 3), (3, 9), (9, 4), (4, 4), (1, 5), (4, 9)]


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize(("length", "width"), LENGTHS)
def test_convolution(length: int, width: int, mode: str) -> None:
    def program(a: np.ndarray, b: np.ndarray) -> Any:
        return np.convolve(a, b, mode), np.correlate(a, b, mode), np.convolve(a, [1, 2], mode)

    one, other = random.integers(-9, 10, length), random.integers(-9, 10, width)
    for kind in ("f8", "i4"):
        assert_like_numpy(program, (one.astype(kind), other.astype(kind)))
    assert_like_numpy(program, (one, other.astype("f4")))


def test_correlations_of_rows_that_change_places_lie_as_others() -> None:
    row, wider = np.arange(3.0), np.arange(5.0)
    assert arrayjit.jit(lambda a, b: np.correlate(a, b, "full"))(row, wider).flags.c_contiguous


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
def test_infinity_beyond_the_ends_meets_nothing(mode: str) -> None:
    def program(a: np.ndarray, b: np.ndarray) -> Any:
        return np.convolve(a, b, mode), np.correlate(a, b, mode), np.correlate(b, a, mode)

    one = np.array([1.0, 2.0, np.inf, 3.0])
    for kind in ("f8", "f4"):
        assert_like_numpy(program, (one.astype(kind), np.array([1.0, -np.inf, 2.0]).astype(kind)))


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
def test_what_is_slid_along_is_conjugated_only_to_correlate(mode: str) -> None:
    def program(a: np.ndarray, b: np.ndarray) -> Any:
        return np.convolve(a, b, mode), np.correlate(a, b, mode), np.correlate(b, a, mode)

    one, other = random.integers(-9, 10, (7, 2)) @ [1, 1j], random.integers(-9, 10, (3, 2)) @ [1, 1j]
    assert_like_numpy(program, (one, other))
    assert_like_numpy(program, (one.real.copy(), other))


def test_between_samples_that_a_mask_selects() -> None:
    def program(y: np.ndarray, chosen: np.ndarray) -> Any:
        at = np.flatnonzero(chosen)
        y[~chosen] = np.interp(np.flatnonzero(~chosen), at, y[chosen])
        return y, np.interp(y, at, y[at]), np.interp(np.nan, at, y[at])

    several, single = values > 0, np.arange(9) == 4
    assert_like_numpy(program, (values, several), (values, ~several), (values, single))
    nothing = np.zeros(9, bool)
    assert_raises_like_numpy(program, "array of sample points is empty", values, nothing)


def test_default_modes() -> None:
    def program(a: np.ndarray) -> Any:
        return np.convolve(a, a[:3]), np.correlate(a, a[:3])

    assert_like_numpy(program, (np.arange(7.0),))


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("dtype", ["f8", "i4", "c16"])
def test_the_longer_of_two_selections_is_known_in_the_run(dtype: str, mode: str) -> None:
    def program(a: np.ndarray, k: int) -> Any:
        large, small = a[a.real > k], a[a.real <= k]
        three = np.array([1, 2j, -1]) if dtype == "c16" else np.array([1, 2, -1])
        pairs = [(large, three), (three, small), (large, small), (small, large), (small, small)]
        return [(np.convolve(*pair, mode), np.correlate(*pair, mode)) for pair in pairs]

    row = np.array([3, -1, 4, 1, -5, 9, 2, 6, -3, 5, 8]).astype(dtype)
    if dtype == "c16":
        row = row + 1j * row[::-1]
    values = np.sort(row.real)
    assert_like_numpy(program, *((row, value) for value in values[[0, 1, 5, 8, 9]]))


def test_nothing_that_was_selected_is_not_convolved() -> None:
    row = np.ones(3)
    calls = {
        "a cannot be empty": lambda a: np.convolve(a[a > 2], a),
        "v cannot be empty": lambda a: np.convolve(a, a[a > 2]),
        "first array argument cannot be empty": lambda a: np.correlate(a[a > 2], a),
        "second array argument cannot be empty": lambda a: np.correlate(a, a[a > 2]),
    }
    for words, program in calls.items():
        assert_raises_like_numpy(program, words, row)


def test_prefixes_are_convolved_in_a_loop() -> None:
    def program(a: np.ndarray) -> np.ndarray:
        total = np.zeros(len(a) + 2)
        for k in range(3, len(a) + 1):
            total[: k + 2] += np.convolve(a[:k], np.array([1.0, 2.0, 3.0]))
        return total

    assert_like_numpy(program, (np.arange(9.0),))
    assert_kept(program)


@pytest.mark.parametrize("program", INTERPOLATIONS.values(), ids=INTERPOLATIONS)
def test_complex_heights(program: Function) -> None:
    assert_like_numpy(program, (places, known, values + 1j * values[::-1]))


def test_mistakes() -> None:
    row = np.arange(4.0)
    assert_raises_like_numpy(lambda a: np.convolve(a, a[:0]), "cannot be empty", row)
    assert_raises_like_numpy(lambda a: np.convolve(a[None], a), "object too deep", row)
    assert_raises_like_numpy(lambda a: np.correlate(a, a, "some"), "mode must be one of", row)
    assert_raises_like_numpy(lambda a: np.interp(a * 1j, a, a), "according to the rule 'safe'", row)
    assert_raises_like_numpy(lambda a: np.interp(a, a, a[1:]), "not of the same length", row)
    assert_raises_like_numpy(lambda a: np.interp(a, a[:0], a[:0]), "array of sample points is empty", row)
