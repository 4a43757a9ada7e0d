"""Reductions, statistics and scans give NumPy's values, dtypes, shapes and scalars.

Floats here are whole numbers whose sums are exact, so that every order of adding gives the same bits.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from harness import assert_like_numpy, trace_and_interpret

import arrayjit
from arrayjit.errors import UnsupportedError

Function = Callable[..., Any]
DTYPES = ("f8", "f4", "i8", "i4", "i1", "u1", "u8", "?")
SHAPES = ((4, 2, 8), (1, 7), (5,), (), (2, 0, 3))


def whole(dtype: str, *shape: int, least: int = -9) -> np.ndarray:
    """Whole numbers of either sign (where the dtype has one), the same at each call."""
    low = 0 if np.dtype(dtype).kind in "ub" else least
    return np.random.default_rng(len(shape)).integers(low, 10, shape).astype(dtype)


def numpy_refusal(function: Function, given: np.ndarray) -> type[Exception] | None:
    """The kind of exception that NumPy raises, if any."""
    try:
        function(given.copy())
    except (np.exceptions.AxisError, TypeError, ValueError) as refused:
        kinds = (np.exceptions.AxisError, TypeError, ValueError)
        return next(kind for kind in kinds if isinstance(refused, kind))
    return None


FOLDS: dict[str, Function] = {
    "sum": lambda x: (np.sum(x), x.sum(-1), x.sum(axis=(0,), keepdims=True)),
    "prod": lambda x: (np.prod(np.sign(x)), np.prod(np.sign(x), axis=0)),
    "any": lambda x: (np.any(x), x.any(axis=0), np.any(x > 3, axis=-1, keepdims=True)),
    "all": lambda x: (np.all(x), x.all(axis=0), np.all(x > -3, axis=-1, keepdims=True)),
    "count_nonzero": lambda x: (np.count_nonzero(x), np.count_nonzero(x, axis=0)),
    "add.reduce": lambda x: (np.add.reduce(x), np.add.reduce(x, axis=None), np.add.reduce(x, -1)),
    "logical.reduce": lambda x: (np.logical_and.reduce(x), np.logical_or.reduce(x, axis=None)),
    "mean": lambda x: (np.mean(x), x.mean(0), np.mean(x, axis=-1, keepdims=True)),
    "gcd.reduce": lambda x: (
        np.gcd.reduce(x),
        np.gcd.reduce(x, axis=None),
        np.lcm.reduce(x, -1, keepdims=True),
    ),
    "subtract.reduce": lambda x: (np.subtract.reduce(x), np.subtract.reduce(x, axis=-1, initial=3)),
    "initial of another dtype": lambda x: (
        np.hypot.reduce(x > 2, axis=0, initial=2.5),
        np.left_shift.reduce(x > 2, axis=0, initial=2),
        np.divide.reduce(x > 2, axis=0, initial=1.5),
    ),
    "power.reduce": lambda x: np.power.reduce(x.astype(int), axis=-1),
    "power.accumulate": lambda x: np.power.accumulate(x.astype(int)),
    "without initial": lambda x: (np.add.reduce(x, None, initial=None), np.prod(np.sign(x), 0, initial=None)),
    "where without initial": lambda x: np.add.reduce(x, initial=None, where=x > 2),
    "cumsum": lambda x: (np.cumsum(x), x.cumsum(0), np.cumsum(x, axis=-1)),
    "cumprod": lambda x: (np.cumprod(np.sign(x)), np.sign(x).cumprod(-1)),
    "maximum.accumulate": lambda x: np.maximum.accumulate(x, axis=-1),
    "extreme with initial": lambda x: (np.min(x, initial=3), np.max(x, axis=0, initial=3)),
    "where": lambda x: (np.sum(x, where=x > 2), np.sum(x, axis=0, where=x > 2), np.any(x, where=x < 3)),
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("fold", FOLDS.values(), ids=FOLDS)
def test_folds(fold: Function, shape: tuple[int, ...]) -> None:
    for dtype in DTYPES:
        given = whole(dtype, *shape)
        refusal = numpy_refusal(fold, given)
        if refusal is None:
            assert_like_numpy(fold, lambda given=given: (given.copy(),))
        else:
            with pytest.raises(refusal):
                trace_and_interpret(fold, given)


EXTREMES: dict[str, Function] = {
    "min": lambda x: (np.min(x), x.min(0), np.amin(x, axis=(0, -1)), x.min(axis=1, keepdims=True)),
    "max": lambda x: (np.max(x), x.max(0), np.amax(x, axis=(-1, 0)), x.max(axis=1, keepdims=True)),
    "argmin": lambda x: (np.argmin(x), x.argmin(0), np.argmin(x, axis=-1, keepdims=True)),
    "argmax": lambda x: (np.argmax(x), x.argmax(0), np.argmax(x, axis=1, keepdims=True)),
    "minimum.reduce": lambda x: np.minimum.reduce(x, axis=1),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("extreme", EXTREMES.values(), ids=EXTREMES)
def test_extremes(extreme: Function, dtype: str) -> None:
    assert_like_numpy(extreme, lambda: (whole(dtype, 3, 5, 2),))


@pytest.mark.parametrize("initial", [300, -1, 1e300])
def test_an_initial_number_must_fit(initial: float) -> None:
    """As an argument too, where only the call tells it."""
    program = arrayjit.jit(lambda x, n: x.max(initial=n))
    assert program(np.arange(3, dtype="u1"), 200) == 200
    with pytest.raises(OverflowError):
        program(np.arange(3, dtype="u1"), initial)
    with pytest.raises(OverflowError):
        np.arange(3, dtype="u1").max(initial=initial)


@pytest.mark.parametrize("dtype", ["f8", "f4", "c16"])
def test_sums_without_initial_begin_with_a_cell(dtype: str) -> None:
    given = np.full(5, -0.0, dtype)

    def parts(x: np.ndarray) -> tuple[Any, ...]:
        first, second = np.sum(x), np.sum(x, initial=None)
        return first.real, first.imag, second.real, second.imag

    assert_like_numpy(parts, lambda: (given.copy(),))


@pytest.mark.parametrize("dtype", ["u1", "f2"])
@pytest.mark.parametrize("ufunc", [np.logaddexp, np.logaddexp2])
def test_sums_of_exponentials_are_rounded_after_each(ufunc: np.ufunc, dtype: str) -> None:
    given = (np.arange(200).reshape(5, 40) % 9).astype(dtype)
    assert_like_numpy(lambda x: (ufunc.reduce(x, 1), ufunc.reduce(x)), lambda: (given.copy(),))
    assert np.any(ufunc.reduce(given, 1) != ufunc.reduce(given.astype("f8"), 1).astype("f2"))


@pytest.mark.parametrize("extreme", EXTREMES.values(), ids=EXTREMES)
def test_extremes_of_nan_and_signed_zero(extreme: Function) -> None:
    values = np.array([[1.0, np.nan, 3.0], [np.inf, -np.inf, 2.0], [5.0, 5.0, -7.0], [np.nan, 1.0, np.nan]])
    assert_like_numpy(extreme, lambda: (values.reshape(4, 3).copy(),))


STATISTICS: dict[str, Function] = {
    "mean where": lambda x: (np.mean(x, where=x > 1), np.mean(x, axis=1, where=x < 4)),
    "mean dtype": lambda x: (np.mean(x, dtype="f4"), x.mean(dtype=float)),
    "var": lambda x: (np.var(x), x.var(0), np.var(x, axis=(0, 1), keepdims=True), x.var(1, ddof=1)),
    "std": lambda x: (np.std(x), x.std(0), np.std(x, axis=1, correction=1)),
    "ptp": lambda x: (np.ptp(x), np.ptp(x, axis=0)),
    "average": lambda x: (np.average(x), np.average(x, axis=0)),
    "weighted average": lambda x: np.average(x, axis=1, weights=[1, 2, 4, 1]),
    "average and weights": lambda x: np.average(x, axis=1, weights=[1, 2, 4, 1], returned=True),
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", ["f8", "f4", "i4", "u1"])
@pytest.mark.parametrize("statistic", STATISTICS.values(), ids=STATISTICS)
def test_statistics(statistic: Function, dtype: str) -> None:
    values = whole("i8", 8, 4).astype(dtype) * np.dtype(dtype).type(8)
    assert_like_numpy(statistic, lambda: (values.copy(),))


NAN_FOLDS: dict[str, Function] = {
    "nansum": lambda x: (np.nansum(x), np.nansum(x, axis=0)),
    "nanprod": lambda x: np.nanprod(x, axis=1),
    "nanmin": lambda x: (np.nanmin(x), np.nanmin(x, axis=0)),
    "nanmax": lambda x: (np.nanmax(x), np.nanmax(x, axis=1)),
    "nanmean": lambda x: (np.nanmean(x), np.nanmean(x, axis=1)),
    "nanvar": lambda x: np.nanvar(x, axis=1),
    "nanstd": lambda x: np.nanstd(x, axis=1),
    "nancumsum": lambda x: np.nancumsum(x, axis=1),
    "nancumprod": lambda x: np.nancumprod(x),
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", ["f8", "f4", "i4"])
@pytest.mark.parametrize("fold", NAN_FOLDS.values(), ids=NAN_FOLDS)
def test_folds_that_skip_nan(fold: Function, dtype: str) -> None:
    values = np.array([[1.0, 8.0, 4.0, 3.0], [np.nan, 2.0, 6.0, np.nan], [np.nan] * 4])
    if dtype == "i4":
        values = np.nan_to_num(values)
    assert_like_numpy(fold, lambda: (values.astype(dtype),))


OPTIONS: dict[str, Function] = {
    "ufunc dtype": lambda x: (
        np.less(x, 1, dtype=bool),
        np.isnan(x, dtype=bool),
        np.logical_and(x > 1, x, dtype=bool),
        np.add(x, x, dtype="f4"),
        np.sqrt(np.abs(x), dtype="f4"),
    ),
    "sum dtype": lambda x: (x.sum(dtype="f4"), x.sum(axis=0, dtype=np.int16)),
    "sum initial": lambda x: (np.sum(x, initial=5), np.sum(x, axis=0, initial=x[0, 0])),
    "axes out of order": lambda x: np.sum(x.reshape(2, 2, 4), axis=(2, 0)),
    "no axes": lambda x: np.sum(x, axis=()),
    "cumsum dtype": lambda x: x.cumsum(0, dtype="f4"),
    "cumulative_sum": lambda x: np.cumulative_sum(x, axis=1, include_initial=True),
    "cumulative_prod": lambda x: np.cumulative_prod(np.sign(x), axis=1),
    "diff": lambda x: (np.diff(x), np.diff(x, 2, axis=0), np.diff(x, prepend=0), np.diff(x, 0)),
    "diff of edges": lambda x: np.diff(x, axis=0, prepend=x[:1], append=x[-1:]),
    "ediff1d": lambda x: np.ediff1d(x),
    "multiply.outer": lambda x: np.multiply.outer(x[0], x[:, 1]),
    "subtract.outer": lambda x: np.subtract.outer(x[0], 2),
    "bitwise": lambda x: (np.bitwise_or.reduce(x), np.bitwise_and.reduce(x, 1), np.bitwise_xor.reduce(x)),
}


@pytest.mark.parametrize("function", OPTIONS.values(), ids=OPTIONS)
def test_options(function: Function) -> None:
    assert_like_numpy(function, lambda: (whole("i4", 4, 4),))


def test_a_number_is_scanned_along_its_only_axis() -> None:
    assert_like_numpy(lambda x: (np.cumsum(x, axis=-1), np.cumprod(x, 0)), lambda: (np.array(2.5),))
    with pytest.raises(np.exceptions.AxisError, match="axis 2 is out of bounds for array of dimension 1"):
        trace_and_interpret(lambda x: np.cumprod(x, axis=2), np.array(2.5))


def test_integers_may_be_combined_in_floats() -> None:
    assert_like_numpy(lambda x: np.logaddexp.reduce(x), lambda: (np.array([2, -1], np.int8),))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", ["f8", "f4", "f2", "c16", "c8", "i8", "i1", "u1", "?"])
@pytest.mark.parametrize("given", ["f8", "f4", "f2", "i8", "?", "c8"])
def test_variances_in_a_dtype_that_is_asked_for(given: str, dtype: str) -> None:
    x = np.array([1.5, 2.5, 4, 8, 2.5]).astype(given)
    for name in ("std", "var", "nanstd", "nanvar", "nanmean"):

        def statistic(x: np.ndarray, name: str = name) -> Any:
            return getattr(np, name)(x, dtype=dtype)

        refusal = numpy_refusal(statistic, x)
        if refusal is None:
            got, wanted = trace_and_interpret(statistic, x), statistic(x)
            assert type(got) is type(wanted)
            accuracy = 4 * np.finfo(wanted.dtype).eps if wanted.dtype.kind in "fc" else 0
            np.testing.assert_allclose(got, wanted, rtol=accuracy)
        else:
            with pytest.raises(refusal):
                trace_and_interpret(statistic, x)


@pytest.mark.filterwarnings("ignore")
def test_variances_of_numbers_among_nan() -> None:
    def statistics(x: np.ndarray) -> Any:
        return (
            np.nanvar(x, axis=1, ddof=2),
            np.nanstd(x, axis=1, correction=1),
            np.nanvar(x, axis=0, mean=np.ones((1, 4), x.dtype)),
            np.nanvar(x, dtype="f8"),
            np.nanstd(np.isnan(x), axis=0),
        )

    x = np.array([[1, np.nan, 3, 5], [np.nan] * 4, [np.nan, 2, np.nan, np.nan], [1, 3, np.nan, np.nan]])
    for dtype in ("f8", "f4", "f2"):
        assert_like_numpy(statistics, lambda dtype=dtype: (x.astype(dtype),))  # type: ignore[misc]


REDUCED_INTO: dict[str, Function] = {
    "sum": lambda x, out: np.sum(x, axis=1, out=out),
    "nansum": lambda x, out: np.nansum(x, axis=1, out=out),
    "prod": lambda x, out: np.prod(x, axis=1, out=out),
    "mean": lambda x, out: np.mean(x, axis=1, out=out),
    "nanmean": lambda x, out: np.nanmean(x, axis=1, out=out),
    "var": lambda x, out: np.var(x, axis=1, out=out),
    "std": lambda x, out: np.std(x, axis=1, out=out),
    "ptp": lambda x, out: np.ptp(x, axis=1, out=out),
    "median": lambda x, out: np.median(x, axis=1, out=out),
    "nanmin": lambda x, out: np.nanmin(x, axis=1, out=out),
    "max": lambda x, out: np.max(x, axis=1, out=out),
    "argmax": lambda x, out: np.argmax(x, axis=1, out=out),
    "any": lambda x, out: np.any(x, axis=1, out=out),
    "hypot": lambda x, out: np.hypot.reduce(x, axis=1, out=out),
    "bitwise_or": lambda x, out: np.bitwise_or.reduce(x, axis=1, out=out),
    "subtract": lambda x, out: np.subtract.reduce(x, axis=1, out=out),
    "accumulate": lambda x, out: np.multiply.accumulate(x, axis=1, out=out[:, None].repeat(3, 1)),
    "reduceat": lambda x, out: np.add.reduceat(x.T, [0], out=out[None]),
    "cumsum of one": lambda x, out: np.cumsum(x[:, 0], out=out),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("function", REDUCED_INTO.values(), ids=REDUCED_INTO)
@pytest.mark.parametrize("given", ["f8", "f4", "i8", "i1", "u1", "?"])
def test_reductions_go_into_out_of_any_dtype(function: Function, given: str) -> None:
    """As in NumPy, or not at all where that combines cells in memory that cannot hold them."""
    values = np.array([[100, 100, -3], [300, 20, 40]]).astype(given)
    for dtype in ("f8", "f4", "c16", "i8", "i1", "u1", "?"):

        def into(x: np.ndarray, dtype: str = dtype) -> Any:
            out = np.zeros(2, dtype)
            return function(x, out), out

        refusal = numpy_refusal(into, values)
        if refusal is not None:
            with pytest.raises((refusal, NotImplementedError)):
                trace_and_interpret(into, values)
            continue
        with suppress(UnsupportedError):
            assert_like_numpy(into, lambda: (values.copy(),))


def test_sums_of_integers_in_out_keep_their_lowest_bits() -> None:
    def sums(x: np.ndarray, out: np.ndarray) -> Any:
        return np.sum(x, out=out[0, ...]), np.prod(x, out=out[1, ...]), out

    assert_like_numpy(sums, lambda: (np.array([300, -700, 41]), np.zeros(2, np.int8)))


@pytest.mark.parametrize("axis", [None, (0,), (-1,)])
def test_the_only_axis_needs_no_number(axis: Any) -> None:
    def along(x: np.ndarray) -> Any:
        return np.add.accumulate(x, axis=axis), np.maximum.reduceat(x, [0, 2], axis=axis)

    assert_like_numpy(along, lambda: (whole("f8", 5),))


def test_results_go_into_out() -> None:
    def sums(x: np.ndarray, total: np.ndarray, running: np.ndarray) -> np.ndarray:
        np.cumsum(x, axis=1, out=running)
        return np.sum(x, axis=0, out=total)

    assert_like_numpy(sums, lambda: (whole("f4", 3, 4), np.zeros(4), np.zeros((3, 4))))


@pytest.mark.parametrize(
    ("function", "error"),
    [
        (lambda x: x.sum(axis=2), np.exceptions.AxisError),
        (lambda x: x.sum(axis=(0, 0)), ValueError),
        (lambda x: x[:0].max(), ValueError),
        (lambda x: np.argmin(x[:, :0]), ValueError),
        (lambda x: np.min(x, where=x > 0), ValueError),
        (lambda x: np.add.accumulate(x, axis=None), ValueError),
        (lambda x: np.add.accumulate(x[0], axis=()), ValueError),
        (lambda x: np.add.reduceat(x, [0], axis=None), ValueError),
        (lambda x: np.var(x, ddof=1, correction=1), ValueError),
        (lambda x: np.nanmax(x, out=np.zeros((), "i1")), NotImplementedError),
        (lambda x: np.sum(x, axis=0, out=np.zeros(7)), ValueError),
        (lambda x: np.subtract.reduce(x, where=x > 0), NotImplementedError),
        (lambda x: np.bitwise_and.reduce(x), TypeError),
        (lambda x: np.ediff1d(x > 0), TypeError),
        (lambda x: np.bitwise_or.reduce(x > 0, dtype="f8"), TypeError),
        (lambda x: np.bitwise_xor.accumulate(x > 0, dtype="f8"), TypeError),
        (lambda x: np.logical_xor.reduce(x, dtype="u4"), TypeError),
        (lambda x: np.logical_or.reduce(x, dtype="c16"), TypeError),
        (lambda x: np.divide.reduce(x, dtype="u4"), TypeError),
        (lambda x: np.rint(x, dtype="u1"), TypeError),
        (lambda x: np.less(x, 1, dtype="f8"), TypeError),
        (lambda x: np.sqrt(x, dtype="i4"), TypeError),
        (lambda x: np.nanquantile(x, 0.5, method="inverted_cdf"), NotImplementedError),
    ],
)
def test_mistakes(function: Function, error: type[Exception]) -> None:
    with pytest.raises(error, match=r"test_functions_reduce\.py") as raised:
        trace_and_interpret(function, whole("f8", 3, 4))
    assert len(str(raised.value).splitlines()) <= 15


@pytest.mark.parametrize("name", ["sum", "prod", "min", "max", "any", "all"])
def test_a_method_that_lacks_an_argument_is_called_by_its_name(name: str) -> None:
    with pytest.raises(TypeError, match=rf"^{name}\(\) got an unexpected keyword argument 'order'"):
        trace_and_interpret(lambda x: getattr(x, name)(order="C"), whole("f8", 3))


PARTS: dict[str, Function] = {
    "add": lambda x, i: (np.add.reduceat(x, i), np.add.reduceat(x, i, axis=-1), np.add.reduceat(x, [0, 2])),
    "maximum": lambda x, i: (np.maximum.reduceat(x, i, -1), np.minimum.reduceat(x, [3, 1])),
    "subtract": lambda x, i: np.subtract.reduceat(x, i),
    "in another dtype": lambda x, i: np.multiply.reduceat(np.sign(x), i, dtype="f8"),
    "nowhere": lambda x, i: np.add.reduceat(x, []),
    "single cells": lambda x, i: np.hypot.reduceat(-np.abs(x[:2].astype("f8")), [1, 0]),
}


@pytest.mark.parametrize("parts", PARTS.values(), ids=PARTS)
@pytest.mark.parametrize("dtype", ["f8", "i8", "i1"])
@pytest.mark.parametrize("shape", [(8,), (5, 6)], ids=str)
def test_parts_of_an_axis_are_reduced(parts: Function, dtype: str, shape: tuple[int, ...]) -> None:
    assert_like_numpy(parts, lambda: (whole(dtype, *shape), np.array([0, 3, 1, 4, 4, 2])))


@pytest.mark.parametrize(
    ("parts", "error", "words"),
    [
        (lambda x, i: np.add.reduceat(x, i + 7), IndexError, r"out-of-bounds in add\.reduceat"),
        (lambda x, i: np.add.reduceat(x, i - 1), IndexError, r"out-of-bounds in add\.reduceat"),
        (lambda x, i: np.add.reduceat(x, i * 0.5), TypeError, "according to the rule 'safe'"),
        (lambda x, i: np.add.reduceat(x[0], i), TypeError, "cannot reduceat on a scalar"),
        (lambda x, i: np.lcm.reduce(np.outer(i, i), axis=None), ValueError, "at most one axis"),
        (lambda x, i: np.subtract.reduce(x[:0]), ValueError, "subtract which has no identity"),
        (
            lambda x, i: np.subtract.reduce(x, where=x > 0),
            NotImplementedError,
            r"subtract\.reduce with where",
        ),
    ],
)
def test_mistakes_of_reductions(parts: Function, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        trace_and_interpret(parts, whole("f8", 8), np.array([0, 3]))
