"""What users do with the numbers that a mask selects, of which only the run knows how many there are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from likeness import assert_near_numpy
from refusing import assert_raises_like_numpy
from rolling import assert_like_numpy

import arrayjit

X = np.array([3.0, -1, 4, -1, 5, -9, 2, 6, -5])
TABLE = np.outer(X[:5], X[:3]) + 0.5
Program = Callable[[Any], Any]

MARGINS = ("edge", "reflect", "symmetric", "wrap", "mean", "median", "maximum", "minimum", "linear_ramp")
METHODS = (
    "linear", "lower", "higher", "nearest", "midpoint", "interpolated_inverted_cdf", "hazen", "weibull",
    "median_unbiased", "normal_unbiased",
)  # fmt: skip
OF_KNOWN = (*METHODS, "inverted_cdf", "averaged_inverted_cdf", "closest_observation")


def python_s_functions(x: Any) -> Any:
    y = x[x > 0]
    return sum(y), sum(y, 0.5), max(y), min(y), any(y > 4), all(y > 4), len(y)


def evenly_spaced(x: Any) -> Any:
    y = x[x > 0]
    whole = np.linspace(0, 10, len(y), dtype=int), np.linspace(y, -y, len(y))
    return np.linspace(0, 1, len(y)), np.linspace(-1, 2, len(y), endpoint=False), *whole


def repeated(x: Any) -> Any:
    y = x[x > 0]
    return np.tile(y, 3), np.tile(y, (2, 2)), np.tile(y[:, None], (1, 3)), np.tile(y, 0)


def products(x: Any) -> Any:
    y = x[x > 0]
    return np.kron(y, x[:2]), np.kron(x[:2], y), np.kron(y, y)


def parts(x: Any) -> Any:
    return [part.copy() for part in np.array_split(x[x > 0], 4)]


@pytest.mark.parametrize("program", [python_s_functions, evenly_spaced, repeated, products, parts])
@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "i1"])
def test_of_numbers_that_a_mask_selects(program: Program, dtype: str) -> None:
    assert_like_numpy(program, (X.astype(dtype),), (np.array([2, -1], dtype),))


def test_the_largest_of_none_is_an_error() -> None:
    assert_raises_like_numpy(lambda x: max(x[x > 99]), "empty", X)
    assert_raises_like_numpy(lambda x: min(x[x > 99]), "empty", X)


@pytest.mark.parametrize("mode", MARGINS)
def test_margins_of_what_a_mask_selects(mode: str) -> None:
    def program(x: Any) -> Any:
        return tuple([np.pad(x[x > 0], width, mode=mode) for width in (1, (2, 0), (0, 23))])

    def rows(a: Any) -> Any:
        return np.pad(a[a[:, 0] > 0], ((1, 2), (3, 1)), mode=mode)

    assert_near_numpy(program, X)
    assert_near_numpy(program, X[1:3])
    assert_near_numpy(rows, TABLE)
    assert_raises_like_numpy(lambda x: np.pad(x[x > 99], 1, mode=mode), "can't extend empty axis", X)


@pytest.mark.parametrize("mode", ["mean", "median", "maximum", "minimum", "linear_ramp"])
def test_margins_that_are_computed(mode: str) -> None:
    options: list[dict[str, Any]] = [{"end_values": ((5, -4), (1, 2))}, {"end_values": 3}]
    if mode != "linear_ramp":
        options = [{"stat_length": 2}, {"stat_length": ((1, 2), (9, 1))}, {}]

    def program(a: Any) -> Any:
        return tuple([np.pad(a, ((1, 2), (0, 3)), mode=mode, **option) for option in options])

    for table in (TABLE, TABLE.astype("i4"), TABLE.astype("f4")):
        assert_near_numpy(program, table)
    assert_near_numpy(lambda a: np.pad(a[:, :0], ((2, 1), (0, 0)), mode=mode), TABLE)


@pytest.mark.parametrize("method", OF_KNOWN)
def test_quantiles_by_every_method(method: str) -> None:
    wanted = [0.0, 0.02, 0.1, 0.25, 0.5, 0.77, 0.99, 1.0]

    def program(a: Any) -> Any:
        some: list[Any] = [np.quantile(a, q, method=method) for q in (0, 1, 0.0, 0.3, np.float32(0.3))]
        rows = np.quantile(a, wanted, axis=1, method=method, keepdims=True)
        return *some, rows, np.percentile(a, [0, 50, 100], method=method)

    for table in (TABLE, TABLE.astype("i4"), TABLE.astype("f4")):
        assert_near_numpy(program, table)


@pytest.mark.parametrize("method", METHODS)
def test_quantiles_of_what_a_mask_selects(method: str) -> None:
    wanted = [0.0, 0.02, 0.1, 0.25, 0.5, 0.77, 0.99, 1.0]
    holes = np.where(TABLE > 10, np.nan, TABLE)
    assert_near_numpy(lambda x: np.quantile(x[x > 0], wanted, method=method), X)
    assert_near_numpy(lambda a: np.nanquantile(a, wanted, axis=0, method=method), holes)


def test_a_method_that_numpy_lacks_is_an_error() -> None:
    assert_raises_like_numpy(lambda x: np.quantile(x, 0.5, method="best"), "is not a valid method", X)


def test_a_fourier_transform_has_a_known_length() -> None:
    assert_near_numpy(lambda x: (np.fft.fft(x[x > 0], 8), np.fft.rfft(x[x > 0], n=3)), X)
    with pytest.raises(TypeError, match="pass n=, the length of the transform"):
        arrayjit.jit(lambda x: np.fft.fft(x[x > 0]))(X)


def test_numbers_along_the_diagonal_are_taken_in_turns() -> None:
    def program(x: Any) -> Any:
        wide, tall, solid = np.zeros((4, 6)), np.zeros((7, 3), int), np.zeros((3, 3, 3))
        np.fill_diagonal(wide, x[:3])
        np.fill_diagonal(tall, x[:4], wrap=True)
        np.fill_diagonal(solid, x.reshape(3, 3))
        return wide, tall, solid

    assert_like_numpy(program, (X,))
    assert_raises_like_numpy(lambda x: np.fill_diagonal(x, 1), "at least 2-d", X)


def test_steps_of_zero_to_one_of_several_ends() -> None:
    """NumPy then divides before it multiplies, for all of them."""
    ends = np.array([0.1, 0.7, 3.3])
    ahead = ends + np.array([0, 0.3, 1])
    assert_like_numpy(lambda a, b: np.linspace(a, b, 8), (ends, ahead), (ends, ends + 1))


def test_weights_may_be_complex() -> None:
    def program(x: Any) -> Any:
        weights = x * (1 + 0.5j)
        return np.histogram(x, 4, weights=weights), np.histogram(x, [-1, 0, 5], weights=weights.astype("c8"))

    assert_near_numpy(lambda x: program(x)[0][0], X)
    assert_near_numpy(lambda x: program(x)[1][0], X)


def test_nan_is_distinct_once_along_the_axis_of_a_row() -> None:
    def program(x: Any) -> Any:
        x[::2] = np.nan
        return np.unique(x, axis=0), np.unique(x, axis=0, return_inverse=True), np.unique_values(x > 0)

    assert_like_numpy(program, (X,))


def test_a_column_of_rows_that_a_mask_selects() -> None:
    def program(a: Any) -> Any:
        column = a[a[:, 0] > 0][:, 1]
        found = np.unique(column, return_inverse=True), np.intersect1d(column, a), np.union1d(column, a)
        return *found, np.setdiff1d(column, a[0]), np.setdiff1d(a, column)

    assert_like_numpy(program, (TABLE,), (TABLE[:1],), (-TABLE[:1],))


def test_arrays_that_are_equal_when_repeated() -> None:
    def program(a: Any) -> Any:
        rows = np.array_equiv(a, a[0]), np.array_equiv(a, a[:, :2]), np.array_equiv(a * 0, 0)
        return *rows, np.array_equiv(a, a + 1), np.array_equiv(a[0], np.stack([a[0], a[0]]))

    assert_like_numpy(program, (TABLE,))


def test_products_and_quotients_of_polynomials_have_no_leading_zeros() -> None:
    roots = np.array([1.0, -6, 11, -6])
    zeros_first = np.array([0.0, 0, 3, -1])
    for one, other in ((roots, zeros_first), (zeros_first, roots[:2]), (roots * 0, roots)):
        assert_near_numpy(lambda a, b: np.polymul(a, b), one, other)
    for one, other in ((roots, np.array([1.0, -1])), (roots, roots), (roots[:2], roots), (roots, roots[:1])):
        assert_near_numpy(lambda a, b: np.polydiv(a, b), one, other)
    assert_near_numpy(lambda a: np.polydiv(a, [2, 1]), np.array([2, 3, 1]))


def test_axes_of_a_number_are_kept() -> None:
    def program(x: Any) -> Any:
        number = x[0]
        found = np.quantile(number, 0.5, keepdims=True), np.median(number, keepdims=True)
        return *found, np.nanmedian(number, keepdims=True), np.expand_dims(number, ())

    assert_like_numpy(program, (X,))


def test_where_takes_flags_only() -> None:
    for reduction in (np.sum, np.nanstd):
        assert_raises_like_numpy(lambda x, of=reduction: of(x, where=x), "Cannot cast array data", X)
    assert_raises_like_numpy(lambda x: np.copyto(x, 1, where=x), "Cannot cast array data", X)


def test_places_of_complex_numbers_are_in_their_range() -> None:
    assert_raises_like_numpy(lambda x: np.partition(x * 1j, 9), "out of bounds", X)
    assert_raises_like_numpy(lambda x: np.argpartition(x * 1j, -10), "out of bounds", X)


def test_no_difference_is_asked_of_any_axis() -> None:
    assert_like_numpy(lambda x: np.diff(x, n=0, axis=5), (X,))


def test_equations_of_tensors() -> None:
    rng = np.random.default_rng(5)
    tensors, right = rng.random((2, 3, 6)), rng.random((2, 3))
    assert_near_numpy(np.linalg.tensorsolve, tensors, right)
    assert_near_numpy(
        lambda a, b: np.linalg.tensorsolve(a, b, axes=(0,)), np.moveaxis(tensors, 2, 0).copy(), right
    )
    assert_raises_like_numpy(
        lambda a, b: np.linalg.tensorsolve(a, b), "must satisfy", tensors[:, :, :5].copy(), right
    )
