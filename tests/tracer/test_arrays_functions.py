"""NumPy's functions that read, write and look for values where arrays say."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from rolling import TARGETS, assert_like_numpy

import arrayjit
from arrayjit.tracer.functions import finding

ROW = np.array([3.0, -1, 4, -1, 5, -9, 2, 6, -5])
MATRIX = np.arange(20.0).reshape(4, 5) % 7
REPEATED = np.array([1, -1, 1, 3, 0, -4, 1])
Program = Callable[..., Any]


def returning(write: Callable[..., None]) -> Program:
    """The program that writes into its first argument and returns it."""

    def program(a: Any, *others: Any) -> Any:
        write(a, *others)
        return a

    return program


@pytest.mark.parametrize(
    "ufunc",
    [np.add, np.subtract, np.multiply, np.divide, np.maximum, np.minimum, np.copysign, np.nextafter, np.fmod],
)
def test_at_accumulates_in_the_order_of_the_positions(ufunc: np.ufunc) -> None:
    def program(a: Any, p: Any, b: Any) -> Any:
        ufunc.at(a, p, b)
        return a

    values = np.linspace(0.1, 2.5, 7)
    assert_like_numpy(program, (ROW, REPEATED, values), (ROW, REPEATED, 2.0), (MATRIX, REPEATED % 4, 0.1))


@pytest.mark.parametrize("ufunc", [np.power, np.arctan2, np.hypot])
def test_at_accumulates_elementary_functions_too(ufunc: np.ufunc) -> None:
    """One after the other, so that what they may be off by adds up: one cell is met three times."""

    @arrayjit.jit
    def program(a: Any, p: Any, b: Any) -> Any:
        ufunc.at(a, p, b)
        return a

    wanted = np.abs(ROW)
    ufunc.at(wanted, REPEATED, np.linspace(0.1, 2.5, 7))
    for target in TARGETS:
        got = program.on(target)(np.abs(ROW), REPEATED, np.linspace(0.1, 2.5, 7))
        np.testing.assert_array_max_ulp(got, wanted, maxulp=8)


@pytest.mark.parametrize(
    "write",
    [
        lambda a, p: np.add.at(a, p, np.arange(5)),
        lambda a, p: np.add.at(a, (p, 1), 1),
        lambda a, p: np.add.at(a, (slice(1, 3), p), 1),
        lambda a, p: np.add.at(a, (p, slice(1, 3)), [[1, 2]]),
        lambda a, p: np.add.at(a, (p, p), a[p, p]),
        lambda a, p: np.add.at(a, (p[:, None], p), np.arange(p.size)),
        lambda a, p: np.add.at(a, slice(None), 1),
        lambda a, p: np.add.at(a, 1, np.arange(5)),
        lambda a, p: np.add.at(a[::-1, ::2], p, 1),
        lambda a, p: np.add.at(a.T, p, 1),
        lambda a, p: np.add.at(a, a > 3, 1),
        lambda a, p: np.add.at(a, a[:, 0] > 3, a[0]),
        lambda a, p: np.negative.at(a, p),
        lambda a, p: np.square.at(a, (p, 1)),
    ],
)
def test_at_takes_every_key(write: Callable[..., None]) -> None:
    assert_like_numpy(returning(write), (MATRIX, np.array([1, 1, -1, 0])))


@pytest.mark.parametrize("value", [0.1, 300, True, np.float64(0.1), np.float32(0.1), np.int64(7)])
@pytest.mark.parametrize("dtype", ["f4", "f8", "i1", "i8", "u1"])
def test_at_gives_numbers_a_dtype_of_their_own(dtype: str, value: Any) -> None:
    assert_like_numpy(returning(lambda a, p, b: np.add.at(a, p, b)), (np.ones(5, dtype), REPEATED[:3], value))


def test_at_reads_its_operands_before_it_writes() -> None:
    assert_like_numpy(returning(lambda a: np.add.at(a, a, a)), (np.array([1, 2, 3, 0]),))


@pytest.mark.parametrize(
    "write",
    [
        lambda a, p: np.put(a, p, 7),
        lambda a, p: np.put(a, p, [1, 2, 3]),
        lambda a, p: np.put(a, p, np.arange(100)),
        lambda a, p: np.put(a, p[:, None], np.arange(7)),
        lambda a, p: np.put(a, p, a[:0]),
        lambda a, p: np.put(a, p * 9, 7, mode="wrap"),
        lambda a, p: np.put(a, p * 9, [1, 2], mode="clip"),
        lambda a, p: np.put(a.T, p, [1, 2]),
        lambda a, p: np.put(a[::-1], p, [1, 2]),
        lambda a, p: np.put(a[0, ...], 1, 2),
        lambda a, p: a.put(p, p),
        lambda a, p: np.put(a, p[2], 1),
    ],
)
def test_put_writes_at_flat_positions(write: Callable[..., None]) -> None:
    assert_like_numpy(returning(write), (MATRIX, REPEATED))


@pytest.mark.parametrize(
    "write",
    [
        lambda a: np.place(a, a > 3, [1, 2]),
        lambda a: np.place(a, a > 3, 9),
        lambda a: np.place(a, (a > 3).ravel(), a * 2),
        lambda a: np.place(a.T, a.T > 3, [1, 2, 3]),
        lambda a: np.place(a, a > 30, [1, 2]),
        lambda a: np.putmask(a, a > 3, [1, 2]),
        lambda a: np.putmask(a, a > 3, 9),
        lambda a: np.putmask(a, a > 3, a * 2),
        lambda a: np.putmask(a, a.astype(int), a[0]),
        lambda a: np.putmask(a, a > 3, a[:0]),
        lambda a: np.copyto(a, 5, where=a > 3),
    ],
)
def test_place_goes_on_with_the_values_and_putmask_takes_them_by_place(write: Callable[..., None]) -> None:
    assert_like_numpy(returning(write), (MATRIX,), (MATRIX.T.copy().T,), (MATRIX.astype(np.float32),))


def put_along(a: Any, p: Any) -> Any:
    np.put_along_axis(a, p, -1, axis=1)
    return a


def put_along_rows(a: Any, p: Any) -> Any:
    np.put_along_axis(a, p[:1], a[:1] + 5, axis=0)
    return a


def put_along_nothing(a: Any, p: Any) -> Any:
    b = a.copy()
    np.put_along_axis(b, p[0], [1, 2, 3, 4, 5], axis=None)
    return b


def take_and_put(a: Any, p: Any) -> Any:
    b = np.zeros_like(a)
    np.put_along_axis(b, p, np.take_along_axis(a, p, axis=1), axis=1)
    return b


@pytest.mark.parametrize("program", [put_along, put_along_rows, put_along_nothing, take_and_put])
def test_values_are_taken_and_put_along_an_axis(program: Program) -> None:
    places = (np.arange(20).reshape(4, 5) * 3) % 4
    assert_like_numpy(program, (MATRIX, places), (MATRIX.T.copy().T, places))


@pytest.mark.parametrize(
    "program",
    [
        lambda a, p: np.take(a, p, mode="wrap"),
        lambda a, p: np.take(a, p * 7, mode="wrap"),
        lambda a, p: np.take(a, p * 7, mode="clip"),
        lambda a, p: np.take(a, p, axis=0, mode="clip"),
        lambda a, p: np.take(a, p % 3, axis=-1),
        lambda a, p: a.take(p[0]),
        lambda a, p: np.take(a, p[0], axis=0),
        lambda a, p: np.choose(p % 3, [a[0, :7], a[1, 0], p]),
        lambda a, p: np.choose(p, [1, 2, 3], mode="wrap"),
        lambda a, p: (p % 3).choose([a[0, :7], a[1, 0], p]),
        lambda a, p: np.choose(p, [1, 2, 3], mode="clip"),
        lambda a, p: np.choose(p % 3, [a[0, :7].astype("f4"), 2.5, 7]),
        lambda a, p: np.choose(p % 3, [p.astype("i1"), 300, -1]),
    ],
)
def test_take_and_choose_wrap_and_clip(program: Program) -> None:
    assert_like_numpy(program, (np.arange(70.0).reshape(7, 10), REPEATED))


NUMBERS = np.array([0.5, 1, 1, 2.5, 9, -3, np.nan, np.inf])
SORTED = [
    np.array([0.0, 1, 1, 2, 5, 8]),
    np.array([1, 1, 1]),
    np.array([2.5]),
    np.array([], np.float64),
    np.array([0, 3, np.inf, np.nan]),
    np.arange(100) // 3,
]


@pytest.mark.parametrize("edges", SORTED)
def test_searchsorted_finds_the_place_of_each_value(edges: Any) -> None:
    for side in ("left", "right"):
        assert_like_numpy(
            lambda a, v, side=side: np.searchsorted(a, v, side=side),
            (edges, NUMBERS),
            (edges, NUMBERS.reshape(2, 4)),
            (edges, np.arange(5)),
        )
    assert_like_numpy(lambda a, v: a.searchsorted(v[0]), (edges, NUMBERS))
    assert_like_numpy(
        lambda a, v: np.searchsorted(a[::-1], v, sorter=np.arange(a.size)[::-1]), (edges, NUMBERS)
    )


@pytest.mark.parametrize("edges", SORTED)
def test_digitize_takes_rising_and_falling_bins(edges: Any) -> None:
    for program in (
        lambda x, b: np.digitize(x, b),
        lambda x, b: np.digitize(x, b, right=True),
        lambda x, b: np.digitize(x, b[::-1]),
        lambda x, b: np.digitize(x[0], b),
    ):
        assert_like_numpy(program, (NUMBERS[:6], edges))


def trims_along_several_axes() -> bool:
    with suppress(TypeError):
        return np.trim_zeros(np.ones((1, 1)), "fb", (0, 1)).size == 1
    return False


BOTH = pytest.param(
    (0, 1), marks=pytest.mark.skipif(not trims_along_several_axes(), reason="NumPy 2.2 takes one axis")
)


@pytest.mark.parametrize("axis", [None, 0, -1, BOTH])
@pytest.mark.parametrize("trim", ["fb", "f", "B"])
def test_zeros_are_trimmed(trim: str, axis: Any) -> None:
    def program(x: np.ndarray) -> Any:
        inner = np.trim_zeros(x, trim, axis)
        x[0] += inner.sum() * inner.size
        return inner.copy(), len(inner), inner * 2

    rows = np.zeros((5, 4))
    rows[1, 2] = rows[2, 1] = 3
    rows[2, 2] = np.nan
    ends = np.zeros((2, 3))
    ends[0, 0] = ends[1, 2] = -1
    assert_like_numpy(program, *((x,) for x in (rows, ends, np.zeros((3, 3)), np.zeros((2, 0)))))


def test_zeros_of_what_a_mask_selects_are_trimmed() -> None:
    def program(x: np.ndarray, low: float) -> Any:
        return np.trim_zeros(x[x > low]), np.repeat(x, x > low), np.repeat(x, x[:1] > low)

    x = np.array([-1.0, 0, 0, 2, 0, -3, 1, 0])
    assert_like_numpy(program, (x, -0.5), (x, -1.5), (x, 5.0))


def test_a_list_is_trimmed_to_a_list() -> None:
    assert arrayjit.jit(lambda x: x + len([*np.trim_zeros([0, 3, 0, 1, 0]), 4]))(1) == 5


def test_a_part_of_an_argument_is_returned_as_a_copy() -> None:
    with pytest.raises(arrayjit.ConcretizationError, match=r"fix: return a copy: x\.copy\(\)"):
        arrayjit.jit(lambda x: np.trim_zeros(x))(np.ones(3))


@pytest.mark.parametrize(
    "program",
    [
        lambda a, b: np.isin(a, b),
        lambda a, b: np.isin(a, b, invert=True),
        lambda a, b: np.isin(a, [1, 5]),
        lambda a, b: np.isin(a, b[:0]),
        lambda a, b: np.isin(a[0, 0], b),
        lambda a, b: a[np.isin(a, b)].sum(),
    ],
)
def test_isin_compares_with_each_element(program: Program) -> None:
    assert_like_numpy(
        program, (MATRIX, np.array([2.0, 5, np.nan])), (MATRIX.astype(int), np.array([3, 3, 6]))
    )


def test_isin_tells_integers_of_two_types_apart() -> None:
    """Rounded to floats, the largest of the one would equal numbers of the other."""
    wanted = np.arange(2**63 - 150, 2**63 - 1)
    assert_like_numpy(lambda a, b: np.isin(a, b), (np.array([2**63 + 1, 2**63, 5], np.uint64), wanted))


@pytest.mark.parametrize(
    ("dtype", "start"),
    [("int64", -(2**63)), ("int64", 2**63 - 300), ("uint64", 2**63), ("int32", -5), ("int8", -128)],
)
def test_isin_looks_integers_up_that_lie_close_together(dtype: str, start: int) -> None:
    """Also those at the ends of what the type has, and with one of them far from the others."""
    info, random = np.iinfo(dtype), np.random.default_rng(3)
    most = min(300, info.max - start)
    array, wanted = (
        (random.integers(0, most, size).astype(object) + start).astype(dtype) for size in ((5, 40), 250)
    )
    array[0, :4] = info.min, info.max, 0, 1
    apart = np.append(wanted, np.array([info.min, info.max], dtype))

    def program(a: Any, b: Any) -> Any:
        return np.isin(a, b), np.isin(a, b, invert=True)

    assert_like_numpy(program, (array, wanted), (array, apart))


def test_isin_needs_no_search_where_integers_lie_close_together() -> None:
    array, wanted = np.arange(300), np.arange(5, 1000, 3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(finding, "_compared_or_searched", lambda a, b: a != a)
        np.testing.assert_array_equal(
            arrayjit.jit(lambda a, b: np.isin(a, b))(array, wanted), np.isin(array, wanted)
        )


@pytest.mark.parametrize("length", [101, 128, 333])
@pytest.mark.parametrize("dtype", ["int64", "uint8", "float32", "float64"])
@pytest.mark.parametrize(
    "program",
    [
        lambda a, b: np.isin(a, b),
        lambda a, b: np.isin(a[0, 0], b, invert=True),
        lambda a, b: np.isin(a, b[b > b[0]]),
        lambda a, b: np.isin(a, b[b < b.min()]),
        lambda a, b: np.isin(a.astype(np.int32), b),
        lambda a, b: np.setdiff1d(a, b),
    ],
)
def test_isin_searches_among_many(program: Program, dtype: str, length: int) -> None:
    random = np.random.default_rng(length)
    array, wanted = (random.integers(0, 250, size).astype(dtype) for size in ((5, 40), length))
    if wanted.dtype.kind == "f":
        array[0, :3], wanted[:3] = (np.nan, np.inf, 0.0), (np.nan, np.inf, -0.0)
    assert_like_numpy(program, (array, wanted))


@pytest.mark.parametrize(
    "program",
    [
        lambda p, w: np.bincount(p, minlength=9),
        lambda p, w: np.bincount(p, w, minlength=9),
        lambda p, w: np.bincount(p, weights=w.astype(np.float32), minlength=7),
        lambda p, w: np.bincount(p, weights=p, minlength=7),
        lambda p, w: np.bincount(p[:0], minlength=3),
        lambda p, w: np.bincount(p.astype(np.uint8), minlength=7) / len(p),
        lambda p, w: np.bincount(p.astype(np.uint8)),
        lambda p, w: np.bincount(p.astype(np.int16), weights=w),
        lambda p, w: np.bincount(p > 1),
        lambda p, w: np.bincount(p[:0].astype(np.uint8), w[:0]),
        lambda p, w: np.bincount(p[:0], w[:0], minlength=3),
        lambda p, w: np.bincount(p[:0].astype(np.uint8)),
        lambda p, w: np.bincount(p.astype(np.uint16), w).argmax() + len(np.bincount(p.astype(np.uint8))),
    ],
)
def test_bincount_adds_up_in_the_order_of_the_numbers(program: Program) -> None:
    assert_like_numpy(program, (np.array([1, 6, 1, 0, 3, 1]), np.array([1e16, 1, 1, -1e16, 0.1, 0.2])))


def raised(x: Any) -> Any:
    return x**2 - 1


@pytest.mark.parametrize(
    "program",
    [
        lambda x: np.piecewise(x, [x < 0, x > 3], [-1, 1]),
        lambda x: np.piecewise(x, [x < 0, x > 3], [-1, 1, lambda v: v / 2]),
        lambda x: np.piecewise(x, [x < 3, x < 0], [lambda v: v + 10, raised]),
        lambda x: np.piecewise(x.ravel(), x.ravel() < 0, [0, raised]),
        lambda x: np.piecewise(x, [x < 0], [lambda v, k: v * k, 7], 3),
        lambda x: np.piecewise(x.astype(int), [x < 0], [lambda v: v / 2, 2.75]),
    ],
)
def test_piecewise_calls_each_function_with_its_values(program: Program) -> None:
    assert_like_numpy(program, (ROW,), (MATRIX,))


SPREAD = np.sin(np.arange(300.0) * 1.7) * 3
WEIGHTS = np.arange(300.0) % 11


@pytest.mark.parametrize(
    "program",
    [
        lambda x: np.histogram(x),
        lambda x: np.histogram(x, 37),
        lambda x: np.histogram(x, bins=7, range=(-1, 1)),
        lambda x: np.histogram(x, bins=7, range=(-1.0, 0.3), density=True),
        lambda x: np.histogram(x.reshape(30, 10), 9),
        lambda x: np.histogram(x, 5, weights=WEIGHTS),
        lambda x: np.histogram(x, 5, weights=WEIGHTS.astype(np.int16)),
        lambda x: np.histogram(x * 0 + 2, 4),
        lambda x: np.histogram(x[:0], 4),
        lambda x: np.histogram(x, [-1, 0, 0.5, 2]),
        lambda x: np.histogram(x, np.arange(-3, 4)),
        lambda x: np.histogram(x, x[:1].repeat(3)),
    ],
)
def test_histograms_have_numpy_s_edges_and_counts(program: Program) -> None:
    assert_like_numpy(program, (SPREAD,), (SPREAD.astype(np.float32),), ((SPREAD * 10).astype(np.int32),))


def test_steps_of_a_histogram_ask_for_nothing_but_a_bin() -> None:
    jitted = arrayjit.jit(lambda x: np.histogram(x, 9, range=(-1, 2), weights=WEIGHTS)[0], target="sync_llvm")
    *before, steps = jitted.lower(SPREAD).as_text("optimized").split("sequential")
    assert before
    assert not any(test in steps for test in ("where", "greater", "less"))
    assert not any("vector" in part and ".at(" in part for part in before)


OTHERS = np.cos(np.arange(300.0) * 0.7)
EDGES = np.array([-1, 0, 0.1, 0.7, 2.0])


@pytest.mark.parametrize(
    "program",
    [
        lambda x: np.histogram2d(x, OTHERS),
        lambda x: np.histogram2d(x, x[::-1], 7),
        lambda x: np.histogram2d(OTHERS, x, [3, 5]),
        lambda x: np.histogram2d(x, OTHERS, bins=(4, EDGES)),
        lambda x: np.histogram2d(x, OTHERS, EDGES, density=True),
        lambda x: np.histogram2d(x, OTHERS, bins=8, range=[[0, 1], [-1, 1]], weights=WEIGHTS),
        lambda x: np.histogram2d(x[:0], OTHERS[:0], 3),
        lambda x: np.histogram2d(x * 0 + 1, OTHERS, 3),
        lambda x: np.histogram2d(np.where(x > 2, np.nan, x), OTHERS, 4, range=((-2, 2), (-2, 2))),
    ],
)
def test_histograms_of_pairs_have_numpy_s_edges_and_counts(program: Program) -> None:
    assert_like_numpy(program, (SPREAD,), (SPREAD.astype(np.float32),), ((SPREAD * 10).astype(np.int32),))


@pytest.mark.parametrize(
    "program",
    [
        lambda x: np.histogram_bin_edges(x, 4),
        lambda x: np.histogram_bin_edges(x, 4, range=(0, 1)),
        lambda x: np.histogram_bin_edges(x, [0, 1, 3]),
        lambda x: np.histogramdd(x, 3),
        lambda x: np.histogramdd((x, OTHERS), bins=(2, EDGES), density=True),
        lambda x: np.histogramdd([x, OTHERS, x[::-1]], bins=[2, 3, 4], weights=WEIGHTS),
        lambda x: np.histogramdd(np.stack([x, OTHERS], axis=1), 4, range=[(-1, 1), (0, 2)]),
    ],
)
def test_histograms_of_samples_have_numpy_s_edges_and_counts(program: Program) -> None:
    assert_like_numpy(program, (SPREAD,), (SPREAD.astype(np.float32),), ((SPREAD * 10).astype(np.int32),))


@pytest.mark.parametrize("options", [{"bins": (2,)}, {"range": [(0, 1)]}])
def test_a_histogram_of_samples_wants_bins_for_each_dimension(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="one entry per dimension"):
        arrayjit.jit(lambda x: np.histogramdd((x, OTHERS), **options))(SPREAD)
