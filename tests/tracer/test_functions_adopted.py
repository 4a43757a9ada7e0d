"""Functions traced through NumPy's own code, and constants of the program that serve as indices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from harness import assert_like_numpy
from numpy.polynomial import chebyshev, polynomial

import arrayjit

Function = Callable[..., Any]


def whole(*shape: int) -> np.ndarray:
    return np.random.default_rng(7).integers(-9, 10, shape).astype("f8")


ADOPTED: dict[str, Function] = {
    "apply_over_axes": lambda x: np.apply_over_axes(np.sum, x, [0, 1]),
    "cov": lambda x: (np.cov(x), np.cov(x, rowvar=False), np.cov(x[0], x[1]), np.cov(x[0])),
    "cov with weights": lambda x: (
        np.cov(x, fweights=np.arange(8)),
        np.cov(x[0], x[1], aweights=x[2] ** 2, bias=True),
        np.cov(x, rowvar=False, ddof=2, fweights=[1, 2, 0, 3], aweights=x[:, 0] ** 2 + 1),
    ),
    "corrcoef": lambda x: np.corrcoef(x),
    "gradient": lambda x: (np.gradient(x), np.gradient(x, 2.0, 0.5), np.gradient(x, axis=1, edge_order=2)),
    "geomspace": lambda x: (
        np.geomspace(2, 3 + x[0, 0] ** 2, 1),
        np.geomspace(1 + x[0] ** 2, 1 + x[1] ** 2, 2, axis=1),
        np.geomspace(-1 - x[0, 0] ** 2, -2, 0),
        np.geomspace(1 + x[0, 0] * 0, 256, 9, dtype=int),
    ),
    "logspace": lambda x: (np.logspace(0, x[0, 0] / 9, 5), np.logspace(x[0], 2, 4, base=2.0, endpoint=False)),
    "polynomials": lambda x: (np.polyadd(x[0], x[1, :3]), np.polysub(x[0], x[1]), np.polyder(x[0])),
    "polyint": lambda x: (np.polyint(x[0]), np.polyint(x[1], 2, [1, 2]), np.polyint([1, 2, 3])),
    "polyval": lambda x: (np.polyval(x[0], x[1]), np.polyval([1, 2, 3], x)),
    "np.polynomial": lambda x: (
        polynomial.polyval(x, [1, 2, 3]),
        polynomial.polyval(x[0, 0], x[1, :3]),
        polynomial.polyvander(x[0], 3),
        chebyshev.chebval(x[0] / 9, x[1, :4]),
        chebyshev.chebder(x[0]),
        np.polynomial.legendre.legint(x[0], 2, [1, 2]),
        np.polynomial.hermite_e.hermeval(x, x[0, :1]),
    ),
    "resize": lambda x: (np.resize(x, (7, 9)), np.resize(x, 3), np.resize(x[:0], 2), np.resize(x, (0, 2))),
    "poly": lambda x: np.poly(x[0, :3]),
    "array API": lambda x: (np.unique_counts(x), np.unique_inverse(x), np.unique_all(x)),
    "sort_complex": lambda x: np.sort_complex(x[0]).real,
    "sinc": lambda x: np.sinc(x),
    "i0": lambda x: (np.i0(x * 2), np.i0(x[0].astype("f4")), np.i0(x[1, 0]), np.i0(x.astype(int))),
    "sets": lambda x: (np.union1d(x, [1, 2, 99]), np.intersect1d(x[0], x[1], return_indices=True)),
    "trapezoid": lambda x: (np.trapezoid(x), np.trapezoid(x, dx=0.5, axis=0), np.trapezoid(x[0], x[1])),
    "unwrap": lambda x: np.unwrap(x),
    "vander": lambda x: (np.vander(x[0]), np.vander(x[0], 3, increasing=True)),
    "conversions": lambda x: (
        np.require(x, np.float32),
        np.require(x.T, requirements=["C", "W"]).flags.c_contiguous,
        np.asarray_chkfinite(x),
        np.common_type(x, x.astype("c8")) is np.complex128,
        np.can_cast(x, np.float32),
        np.can_cast(x, np.float32, "same_kind"),
    ),
    "questions": lambda x: (np.result_type(x, "f4").name, np.isrealobj(x), x.conj(), np.conj(x)),
}


@pytest.mark.parametrize("function", ADOPTED.values(), ids=ADOPTED)
def test_functions_of_numpys_own_code(function: Function) -> None:
    assert_like_numpy(function, lambda: (whole(4, 8),))


INDICES: dict[str, Function] = {
    "arange": lambda x: (x[np.arange(3)], x[np.arange(3, -1, -2), 1], x[np.arange(4) * 2 // 2]),
    "array": lambda x: (x[np.array([0, 2])], x[:, np.array([True, False] * 4)], x[np.array([[3], [0]]), 1]),
    "triangles": lambda x: (x[np.triu_indices(4)], x[np.tril_indices(4, -1)], x[np.diag_indices(4)]),
    "iteration": lambda x: [x[i] + i for i in np.arange(1, 4)],
    "element": lambda x: x[np.array([5, 2])[1], : np.arange(9)[3]],
    "part of a constant": lambda x: x[np.arange(8).reshape(2, 4)[0, ::-1]],
}


@pytest.mark.parametrize("function", INDICES.values(), ids=INDICES)
def test_constants_made_by_the_function_are_indices(function: Function) -> None:
    assert_like_numpy(function, lambda: (whole(4, 8),))


def test_shapes_of_arguments_are_compiled_in_where_numpys_own_code_asks_for_them() -> None:
    def shapes(x: np.ndarray, n: int) -> Any:
        return np.broadcast_shapes((n, 1), x.shape), np.broadcast_to(1.5, (n, 2)) * x[1]

    assert_like_numpy(shapes, lambda: (np.arange(3.0), 4))


def test_constants_made_by_the_function_say_where_to_write() -> None:
    def write(x: np.ndarray) -> np.ndarray:
        x[np.diag_indices(4)] = 0
        x[np.array([0, 2])] += 1
        x[:, np.arange(2)] = 3
        return x

    assert_like_numpy(write, lambda: (whole(4, 8),))


def test_a_written_constant_is_no_constant_any_more() -> None:
    def pick(x: np.ndarray) -> Any:
        places = np.array([0, 1])
        before = x[places]
        places[0] = 3
        return before, x[places], places

    assert_like_numpy(pick, lambda: (whole(4, 8),))


@pytest.mark.skipif(not hasattr(np, "astype"), reason="NumPy 2.0 lacks it")
def test_astype_is_a_function_too() -> None:
    assert_like_numpy(
        lambda x: (np.astype(x, np.int16), np.astype(x.sum(), "f4"), np.astype(x, x.dtype, copy=False) is x),
        lambda: (whole(4, 8),),
    )


def test_numbers_that_are_not_finite_are_refused_when_the_function_runs() -> None:
    check = arrayjit.jit(lambda x: np.asarray_chkfinite(1 / x))
    np.testing.assert_array_equal(check(np.array([1.0, 2.0])), [1.0, 0.5])
    with pytest.raises(ValueError, match="must not contain infs or NaNs"):
        check(np.array([1.0, 0.0]))


@pytest.mark.parametrize(
    ("options", "kind", "words"),
    [
        ({"fweights": np.full(8, 0.5)}, TypeError, "fweights must be integer"),
        ({"fweights": np.full(8, -1)}, ValueError, "fweights cannot be negative"),
        ({"aweights": np.full(8, -0.5)}, ValueError, "aweights cannot be negative"),
        ({"aweights": np.zeros(8)}, ZeroDivisionError, "sum to zero"),
        ({"aweights": np.ones(7)}, ValueError, "incompatible numbers"),
    ],
)
def test_weights_of_observations_are_checked(options: Any, kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        arrayjit.jit(lambda x: np.cov(x, **options))(whole(4, 8))


def test_a_fit_of_rows_that_turn_out_unlike_is_a_type_error() -> None:
    fit = arrayjit.jit(lambda x, y: np.polyfit(x[x > 0], y[y > 0], 1))
    x = np.array([1.0, 2.0, -1.0, 3.0])
    np.testing.assert_allclose(fit(x, x), [1.0, 0.0], atol=1e-12)
    with pytest.raises(TypeError, match="same length"):
        fit(x, -x)


@pytest.mark.parametrize("function", [lambda x: np.diff(x, axis=2), lambda x: np.rollaxis(x, 2)])
def test_of_an_axis_that_is_not_there_numpys_own_code_says_which_there_are(function: Function) -> None:
    with pytest.raises(np.exceptions.AxisError, match=r"(?s)axis 2 is out.*use an axis from -2 to 1"):
        arrayjit.jit(function)(whole(3, 4))
