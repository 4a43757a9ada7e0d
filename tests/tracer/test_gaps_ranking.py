"""Sorting, and what sorted cells tell: on both targets like NumPy."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from refusing import assert_raises_like_numpy
from rolling import TARGETS, assert_like_numpy, length

import arrayjit

Function = Callable[..., Any]
random = np.random.default_rng(3)
floats = random.permutation(60).reshape(3, 4, 5) / 4
holes = np.where(random.random((3, 4, 5)) < 0.2, np.nan, floats)
INPUTS = {
    "floats": floats,
    "floats with NaN": holes,
    "infinities": np.where(floats > 12, np.inf, floats),
    "float32": floats.astype("f4"),
    "integers": random.integers(-9, 9, (3, 4, 5)),
    "uint8": random.integers(0, 255, (3, 4, 5)).astype("u1"),
    "bools": random.random((3, 4, 5)) < 0.5,
    "a view": floats[:, ::-1, 1:4],
}


@pytest.mark.parametrize("array", INPUTS.values(), ids=INPUTS)
def test_sort(array: np.ndarray) -> None:
    assert_like_numpy(lambda x: [np.sort(x), np.sort(x, axis=0), np.sort(x, 1), np.sort(x, None)], (array,))


@pytest.mark.parametrize("array", INPUTS.values(), ids=INPUTS)
def test_argsort_keeps_the_order_of_equal_cells(array: np.ndarray) -> None:
    def program(x: np.ndarray) -> Any:
        return [np.argsort(x, axis, kind="stable") for axis in (0, 1, -1)], x.argsort(None, stable=True)

    assert_like_numpy(program, (array,))


@pytest.mark.parametrize("length", [0, 1, 2, 3, 4, 5, 8, 17])
def test_every_length(length: int) -> None:
    assert_like_numpy(lambda x: (np.sort(x), np.argsort(x)), (floats.ravel()[:length],))


def test_a_single_number_is_in_order() -> None:
    program = lambda x: (np.argsort(x), np.argsort(x, axis=0), x.argsort(), np.argpartition(x, 0))  # noqa: E731
    assert_like_numpy(program, (np.array(2.5),))


def test_sorting_in_place_writes_the_array() -> None:
    def program(x: np.ndarray) -> None:
        x[0].sort()
        x[1, :, ::2].sort(axis=0)
        x[2].partition(2)

    for target in TARGETS:
        ours, theirs = floats.copy(), floats.copy()
        arrayjit.jit(program, target=target)(ours)
        program(theirs)
        np.testing.assert_array_equal(ours[:2], theirs[:2])
        np.testing.assert_array_equal(ours[2, :, 2], theirs[2, :, 2])


def test_sorting_is_one_loop_for_all_sizes() -> None:
    def program(x: np.ndarray) -> np.ndarray:
        return x[np.argsort(-x)]

    assert length(program, np.ones(6)) == length(program, np.ones(30))
    assert length(program, np.ones(600)) == length(program, np.ones(996))


SPECIAL = np.array([0.0, -0.0, np.nan, -np.nan, np.inf, -np.inf, 1.0, -1.0, 5e-324, -5e-324])
KEYS = {
    "floats": random.choice([*SPECIAL, *random.standard_normal(8)], 3000),
    "float32": random.choice([*SPECIAL, *random.standard_normal(8)], 3000).astype("f4"),
    "float16": random.choice([*SPECIAL, *random.standard_normal(8)], 3000).astype("f2"),
    "int64": random.integers(-(2**63), 2**63 - 1, 3000),
    "small integers": random.integers(-3, 3, 3000),
    "int8": random.integers(-128, 128, 3000).astype("i1"),
    "uint64": random.integers(0, 2**64 - 1, 3000, "u8"),
    "bools": random.random(3000) < 0.5,
}


@pytest.mark.parametrize("keys", KEYS.values(), ids=KEYS)
def test_rows_by_digits_and_by_exchanges(keys: np.ndarray) -> None:
    """Few long rows are sorted by their digits; short ones, and many, side by side, the last group of them
    smaller, in blocks, the last one of them smaller."""
    program = arrayjit.jit(lambda x: (np.sort(x), np.argsort(x, kind="stable")))
    many = np.tile(keys[:720], 7).reshape(14, 360)
    for rows in (
        keys[:600].reshape(2, 300),
        keys[: 37 * 11].reshape(37, 11),
        keys[: 70 * 8].reshape(70, 8),
        keys[: 33 * 90].reshape(33, 90),
        keys[:50].reshape(1, 50),
        keys,
        many,
    ):
        ordered, places = program(rows)
        np.testing.assert_array_equal(ordered, np.sort(rows))
        np.testing.assert_array_equal(places, np.argsort(rows, kind="stable"))


@pytest.mark.parametrize("keys", KEYS.values(), ids=KEYS)
def test_rows_by_networks(keys: np.ndarray) -> None:
    """Of one piece, full or not, and of several, of which the last one, and those that are merged with it,
    are not full; of one row and of a few. NumPy's own unstable sort leaves long rows of float16 with NaN out
    of order."""
    program = arrayjit.jit(lambda x: (np.sort(x), np.argsort(x, kind="stable")))
    long = np.tile(keys, 4)
    for rows in (keys[:65], keys[:128], keys[:129], keys[:2048], keys[:2100].reshape(3, 700), long[:9217]):
        ordered, places = program(rows)
        np.testing.assert_array_equal(ordered, np.sort(rows, kind="stable"))
        np.testing.assert_array_equal(places, np.argsort(rows, kind="stable"))


@pytest.mark.parametrize("length", [50, 300, 5000])
def test_networks_mean_the_same_everywhere(length: int) -> None:
    keys = np.tile(KEYS["float32"], 2)[:length]
    assert "across" in arrayjit.jit(np.sort).lower(keys).as_text("optimized")
    expected = arrayjit.jit(np.sort, target="sync_c")(keys)
    np.testing.assert_array_equal(expected, np.sort(keys))
    for target in ("interp", "llvm") if length < 5000 else ("llvm", "sync_llvm"):
        assert arrayjit.jit(np.sort, target=target)(keys).tobytes() == expected.tobytes()


def test_one_program_of_a_network_sorts_any_number_of_pieces() -> None:
    def lines(count: int) -> int:
        return len(arrayjit.jit(np.sort).lower(np.zeros(count, "f4")).as_text("optimized").splitlines())

    assert lines(20_000) == lines(60_000)


@pytest.mark.parametrize("dtype", ["i1", "u2", "f4"])
def test_rows_side_by_side_need_no_tables_and_no_places_beside_their_keys(dtype: str) -> None:
    for function in (np.sort, np.argsort):
        lowered = arrayjit.jit(lambda x, function=function: function(x)).lower(np.zeros((64, 20), dtype))
        text = lowered.as_text("optimized")
        assert "captured" not in text
        assert len(re.findall(r"held\d*: temporary", text)) == 1


NEARLY_ALL_EQUAL = np.where(random.random(400) < 0.01, -1e18, 1 + 1e-13 * random.integers(0, 500, 400))


@pytest.mark.parametrize(
    "keys",
    [
        NEARLY_ALL_EQUAL,
        -NEARLY_ALL_EQUAL,
        random.standard_normal(400) * 2.0 ** random.integers(-40, 40, 400),
        np.where(random.random(400) < 0.01, -(2**62), random.integers(0, 500, 400)),
        random.integers(-(2**62), 2**62, 400) * 2,
        random.integers(-300, 300, 400) * 2**40,
        random.integers(0, 2**64, 400, dtype="u8"),
        random.integers(-300, 300, 400).astype("f4"),
        np.full(400, 7.0),
    ],
    ids=["low", "high", "exponents", "outliers", "all", "upper", "unsigned", "small", "equal"],
)
def test_digits_that_leave_bits_out(keys: np.ndarray) -> None:
    """The highest bits in which keys differ are sorted by, and what they leave is put in order; where that is
    much, all bits are."""
    assert_like_numpy(lambda x: [np.sort(x), np.argsort(x, kind="stable")], (keys,))


@pytest.mark.parametrize("keys", [KEYS[name] for name in KEYS if name != "bools"])
def test_what_is_selected_is_what_sorting_finds(keys: np.ndarray) -> None:
    """Few places of long rows are found without sorting, whatever the cells have in common."""
    rows = np.stack([keys, np.repeat(keys[:3], 1000), np.repeat(keys[0], 3000), np.sort(keys)])

    def program(x: np.ndarray) -> Any:
        found = np.quantile(x, [0.3, 0.3015], axis=-1)
        return found, np.median(x, axis=-1), np.percentile(x, [0, 100], axis=-1)

    if keys.dtype.kind == "f":
        rows = np.where(np.isnan(rows), keys.dtype.type(2), rows)
    text = arrayjit.jit(program).lower(rows).as_text("assignments")
    assert ("candidates" in text) == (keys.itemsize > 2)
    with np.errstate(all="ignore"):
        for ours, theirs in zip(arrayjit.jit(program)(rows), program(rows), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-3 if keys.itemsize == 2 else 1e-6)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("keys", [KEYS[name] for name in KEYS if name != "bools"])
def test_what_is_selected_of_numbers_is_what_sorting_finds(keys: np.ndarray) -> None:
    """Where it stands in a row's order is known only when NaN have been counted."""
    rows = np.stack([keys[:1500], np.repeat(keys[:3], 500), np.repeat(keys[0], 1500), np.sort(keys[:1500])])

    def program(x: np.ndarray) -> Any:
        few = np.nanquantile(x, [0.3, 0.8], axis=-1), np.nanmedian(x[:, ::20], axis=-1)
        return *few, np.nanmedian(x, axis=-1), np.nanpercentile(x, [0, 100], axis=-1)

    if keys.dtype.kind == "f":
        rows[2:, 1:100] = np.nan
        rows = np.concatenate([rows, np.where(rows < 0, rows, np.nan), np.where(rows == 1, rows, np.nan)])
    text = arrayjit.jit(lambda x: np.nanmedian(x, axis=-1)).lower(rows).as_text("assignments")
    assert ("candidates" in text) == (keys.itemsize > 2)
    with np.errstate(all="ignore"):
        for ours, theirs in zip(arrayjit.jit(program)(rows), program(rows), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-3 if keys.itemsize == 2 else 1e-6)


@pytest.mark.parametrize("keys", KEYS.values(), ids=KEYS)
@pytest.mark.parametrize("kth", [0, 150, 299, -7])
def test_partitions_of_long_rows(keys: np.ndarray, kth: int) -> None:
    rows, k = keys[:600].reshape(2, 300), kth % 300
    ordered = np.sort(rows)

    def program(x: np.ndarray) -> Any:
        return np.partition(x, kth), np.take_along_axis(x, np.argpartition(x, kth), -1)

    for divided in arrayjit.jit(program)(rows):
        np.testing.assert_array_equal(divided[:, k], ordered[:, k])
        np.testing.assert_array_equal(np.sort(divided[:, :k]), ordered[:, :k])
        np.testing.assert_array_equal(np.sort(divided[:, k:]), ordered[:, k:])


def fooled(low: bool) -> np.ndarray:
    """Cells of which a sample, which takes one in so many, sees none that are like the others."""
    row = random.standard_normal(2048)
    row[::32] = -1e9 if low else 1e9
    return row


SAMPLED = {
    "below the others": fooled(True),
    "above the others": fooled(False),
    "in order": np.arange(2048) / 3,
    "backwards": -np.arange(2048, dtype="i4"),
    "two values": np.tile([2.0, 1.0], 1024).astype("f4"),
    "mostly one": np.where(random.random(2048) < 0.9, 5, random.integers(0, 9, 2048)),
    "NaN": np.where(random.random(2048) < 0.5, np.nan, -np.inf),
    "zeros": np.where(random.random(2048) < 0.5, -0.0, 0.0),
    "ends": np.where(random.random(2048) < 0.5, -(2**63), 2**63 - 1),
    "unsigned": random.integers(0, 2**64, 2048, dtype="u8"),
}


@pytest.mark.parametrize("row", SAMPLED.values(), ids=SAMPLED)
def test_a_sample_may_mislead(row: np.ndarray) -> None:
    ordered = np.sort(row)

    def program(x: np.ndarray) -> Any:
        return np.partition(x, 1024), x[np.argpartition(x, 2030)]

    for kth, divided in zip((1024, 2030), arrayjit.jit(program, target="sync_llvm")(row), strict=True):
        parts = np.sort(divided[:kth]), divided[kth : kth + 1], np.sort(divided[kth + 1 :])
        np.testing.assert_array_equal(np.concatenate(parts), ordered)
        assert np.count_nonzero(np.signbit(divided)) == np.count_nonzero(np.signbit(row))


def test_rows_that_are_sampled_go_to_threads() -> None:
    text = arrayjit.jit(lambda x: np.median(x, axis=1), target="llvm").lower(np.zeros((400, 3000)))
    assert "parallel(0, 400" in text.as_text("optimized")
    assert "'scratch'" in text.as_text("optimized")


STABLE = [{"kind": "stable"}, {"kind": "mergesort"}, {"kind": "s"}, {"kind": b"Merge"}, {"stable": True}]


@pytest.mark.parametrize("asked", STABLE, ids=str)
def test_stable_sorts_keep_the_order_of_zeros(asked: dict[str, Any]) -> None:
    def sorted_in_place(x: Any) -> Any:
        x.sort(**asked)

    zeros = random.choice([0.0, -0.0, 1.0], 400)
    for x in (zeros[:20], zeros):
        expected = np.sort(x, **asked).tobytes()
        assert arrayjit.jit(lambda x: np.sort(x, **asked))(x).tobytes() == expected
        ordered = x.copy()
        arrayjit.jit(sorted_in_place)(ordered)
        assert ordered.tobytes() == expected


@pytest.mark.parametrize("function", [np.sort, np.argsort])
@pytest.mark.parametrize(
    ("asked", "error"),
    [({"kind": "bubble"}, ValueError), ({"kind": 3}, TypeError), ({"kind": "s", "stable": True}, ValueError)],
    ids=str,
)
def test_kinds_of_sorts_that_numpy_refuses_are_refused(
    asked: dict[str, Any], error: type[Exception], function: Any
) -> None:
    x = np.arange(3.0)
    with pytest.raises(error) as refused:
        function(x, **asked)
    with pytest.raises(error, match=re.escape(str(refused.value))):
        arrayjit.jit(lambda x: function(x, **asked))(x)


@pytest.mark.parametrize(
    ("function", "length", "own"),
    [
        *((np.sort, 20_000, "spare: i64[20000]"), (np.sort, 1100, "row: i64[128, 16]")),
        *((np.median, 1100, "candidates: i64[1100]"), (np.nanmedian, 1100, "candidates: i64[1100]")),
    ],
)
def test_threads_share_rows(function: Any, length: int, own: str) -> None:
    program = arrayjit.jit(lambda x: function(x, axis=-1), threads=2)
    rows = random.standard_normal((200, length))
    assert f"{own}: each thread makes and uses its own" in program.explain(rows)
    np.testing.assert_array_equal(program(rows), function(rows, axis=-1))


def test_prefixes_in_a_loop_are_sorted() -> None:
    def program(x: np.ndarray) -> np.ndarray:
        for k in range(1, len(x)):
            x[:k] = np.sort(x[:k])[::-1]
        return x

    assert_like_numpy(program, (floats.ravel(),))
    assert length(program, np.ones(600)) == length(program, np.ones(996))


def test_partitions_have_their_places() -> None:
    def program(x: np.ndarray) -> Any:
        low = np.partition(x, 3)
        return low[3], np.sort(low[:3]), np.sort(x[np.argpartition(x, 4)[:4]]), np.partition(x, -2)[-2:]

    assert_like_numpy(program, (floats.ravel(),))


COMPLEX = [3 + 1j, 3 - 1j, complex("nan+1j"), complex(1, np.nan), complex(0, np.nan), -2, 3 - 1j, 0, -0.0, 3]


@pytest.mark.parametrize("dtype", ["c8", "c16"])
def test_complex_numbers_are_ordered_by_their_parts(dtype: str) -> None:
    def ordered(z: np.ndarray) -> Any:
        by_hand = z.copy()
        by_hand.sort(axis=0)
        places = (
            np.argsort(z, kind="stable"),
            np.argsort(z, axis=None, kind="stable"),
            np.lexsort((z[0], z[1])),
        )
        sets = np.unique(z, return_inverse=True, return_counts=True), np.intersect1d(z, [3 - 1j, 0, 9j])
        some = np.partition(z, 2)[..., 2], np.take_along_axis(z, np.argpartition(z, 1), -1)[..., 1]
        return np.sort(z), np.sort(z, axis=None), by_hand, places, sets, some, np.sort_complex(z[1])

    numbers = np.array([*COMPLEX, complex(np.nan, np.nan), complex(np.nan, -3)], dtype).reshape(2, 6)
    assert_like_numpy(ordered, (numbers,))
    assert_like_numpy(lambda z: np.sort(z), (np.arange(600) * 7 % 13 + 1j * (np.arange(600) * 11 % 17),))


def test_lexsort() -> None:
    tens, ones = np.array([3, 1, 1, 2, 3, 1]), np.array([0, 5, 2, 2, 0, 2])
    assert_like_numpy(lambda a, b: (np.lexsort((a, b)), np.lexsort((b, a)), np.lexsort([a])), (tens, ones))
    assert_like_numpy(lambda a: np.lexsort((a[0], a[1]), axis=0), (floats,))
    assert_like_numpy(lambda a: (np.lexsort((a[0],)), np.lexsort((3, 4.5)), np.lexsort(a)), (tens,))
    words = "need sequence of keys with len > 0 in lexsort"
    assert_raises_like_numpy(lambda a: np.lexsort(a.sum(keepdims=True).reshape(())), words, tens)


NUMBERS = {name: INPUTS[name] for name in INPUTS if name not in ("bools", "infinities")}


@pytest.mark.parametrize("array", NUMBERS.values(), ids=NUMBERS)
def test_medians(array: np.ndarray) -> None:
    def program(x: np.ndarray) -> Any:
        return (
            [np.median(x), np.median(x[:2]), np.median(x, axis=0), np.median(x, axis=(0, -1))],
            [
                np.median(x, axis=1, keepdims=True),
                np.median(x, keepdims=True),
                np.median(x[0, 0, :1]),
                np.median(x[:, :0], -1),
            ],
        )

    assert_like_numpy(program, (array,))


@pytest.mark.parametrize("array", NUMBERS.values(), ids=NUMBERS)
def test_quantiles(array: np.ndarray) -> None:
    def program(x: np.ndarray) -> Any:
        return (
            [np.percentile(x, 30), np.percentile(x, 50.0, axis=0), np.quantile(x, 0.75, axis=(0, 1))],
            [np.percentile(x, [0, 25, 99.5, 100], axis=1), np.quantile(x, [0.5], keepdims=True)],
            np.quantile(x, np.array([[0.2, 0.4], [0.5, 1]]), axis=-1, keepdims=True),
        )

    assert_like_numpy(program, (array,))


@pytest.mark.parametrize("array", NUMBERS.values(), ids=NUMBERS)
@pytest.mark.parametrize("wanted", [[0.75], [[0.2, 1], [0, 0.7]], [1, 0]], ids=str)
def test_quantiles_that_are_computed(array: np.ndarray, wanted: Any) -> None:
    def program(x: np.ndarray, q: np.ndarray) -> Any:
        few = np.quantile(x, q, axis=0), np.percentile(x, 100 * q, axis=(0, 1), keepdims=True)
        return *few, np.nanquantile(x, q, axis=-1), np.quantile(x.ravel()[3:][x.ravel()[3:] > -99], q)

    assert_like_numpy(program, (array, np.array(wanted)))


@pytest.mark.parametrize("array", NUMBERS.values(), ids=NUMBERS)
@pytest.mark.parametrize("wanted", [[0.3, 0.75], [0, 1]], ids=str)
def test_one_quantile_that_is_computed(array: np.ndarray, wanted: Any) -> None:
    def program(x: np.ndarray, q: np.ndarray) -> Any:
        one = np.quantile(x, q[0], axis=0), np.percentile(x, 100 * q[1], axis=(0, 1), keepdims=True)
        return *one, np.quantile(x, [q[1], q[0]]), np.nanquantile(x, q.max(), axis=-1)

    assert_like_numpy(program, (array, np.array(wanted)))


def test_computed_quantiles_are_in_their_range() -> None:
    for quantile, whole in ((np.quantile, 1), (np.nanpercentile, 100)):
        jitted = arrayjit.jit(lambda x, q, of=quantile: of(x, q))
        for wrong in (-0.1, 1.1, np.nan):
            with pytest.raises(ValueError, match=rf"must be in the range \[0, {whole}\]"):
                jitted(floats, whole * np.array([0.5, wrong]))
            with pytest.raises(ValueError, match=rf"must be in the range \[0, {whole}\]"):
                jitted(floats, whole * np.array(wrong))


def test_medians_of_few_cells_go_in_vectors() -> None:
    def of_windows(x):
        return np.median(np.lib.stride_tricks.sliding_window_view(x, (3, 3)), axis=(2, 3))

    def of_cells(x):
        out = np.empty((x.shape[0] - 2, x.shape[1] - 2), x.dtype)
        for i in range(x.shape[0] - 2):
            for j in range(x.shape[1] - 2):
                out[i, j] = np.median(x[i : i + 3, j : j + 3])
        return out

    x = np.random.default_rng(4).normal(size=(30, 40))
    x[7, 5], x[20, 8] = np.nan, np.inf
    for function in (of_windows, of_cells):
        assert_like_numpy(function, (x,))
        text = arrayjit.jit(function, threads=1).lower(x).as_text("optimized")
        assert "temporary" not in text
        assert "in vector(" in text


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_quantiles_of_few_cells() -> None:
    random = np.random.default_rng(6)
    for dtype in (np.float64, np.float32, np.int64, np.uint8):
        for count in (1, 2, 5, 8, 25, 26):
            rows = (100 * random.random((7, count))).astype(dtype)
            if rows.dtype.kind == "f" and count > 2:
                rows[1, 1], rows[2, 2], rows[3, 0] = np.nan, np.inf, -0.0
            assert_like_numpy(lambda x: (np.median(x, axis=1), np.quantile(x, [0, 0.3, 1], axis=-1)), (rows,))
            assert_like_numpy(lambda x: (np.median(x), np.percentile(x.T, 60, 0, method="lower")), (rows,))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("array", NUMBERS.values(), ids=NUMBERS)
def test_medians_and_quantiles_of_numbers(array: np.ndarray) -> None:
    def program(x: np.ndarray) -> Any:
        return (
            [np.nanmedian(x), np.nanmedian(x, axis=0), np.nanmedian(x, axis=(0, -1), keepdims=True)],
            [np.nanpercentile(x, 30), np.nanquantile(x, 0.75, axis=(0, 1)), np.nanmedian(x[:0])],
            [np.nanquantile(x, [[0.2, 0.4], [0.5, 1]], axis=-1), np.nanpercentile(x, [50], keepdims=True)],
        )

    assert_like_numpy(program, (array,))
    if array.dtype == np.float64:
        array = array.copy()
        array[1] = np.nan
        assert_like_numpy(lambda x: (np.nanmedian(x, axis=1), np.nanquantile(x, 0.3, axis=2)), (array,))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(
    "array", [*NUMBERS.values(), np.array([[[np.inf, -np.inf]]])], ids=[*NUMBERS, "infinite"]
)
def test_ends_by_integers_are_cells(array: np.ndarray) -> None:
    def program(x: np.ndarray) -> Any:
        return (
            [np.quantile(x, 0), np.quantile(x, 1, axis=0), np.quantile(x > 0, np.int64(1))],
            [np.nanquantile(x, 0, axis=-1), np.nanquantile(x, 1), np.nanquantile(x, [1, 0], axis=1)],
            np.quantile(x, [[0, 1], [1, 0]], axis=-1, keepdims=True),
        )

    assert_like_numpy(program, (array,))


@pytest.mark.parametrize("quantile", [np.quantile, np.nanquantile, np.percentile, np.nanpercentile])
def test_quantiles_are_of_the_dtype_of_what_is_wanted(quantile: Any) -> None:
    assert_like_numpy(lambda x: quantile(x, np.float32(0.75)), (floats.astype(np.float32),), (floats,))


@pytest.mark.parametrize("quantile", [np.quantile, np.nanquantile])
@pytest.mark.parametrize("wanted", [0.3, np.float32(0.7), [np.float16(0.3), np.float16(0.7)]], ids=str)
def test_quantiles_are_weighed_in_the_dtype_of_what_is_wanted(quantile: Any, wanted: Any) -> None:
    rows = 9 * np.random.default_rng(4).standard_normal((40, 57))
    for dtype in (np.float64, np.float32, np.int64):
        assert_like_numpy(lambda x: quantile(x, wanted, axis=-1), (rows.astype(dtype),))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("array", INPUTS.values(), ids=INPUTS)
def test_medians_and_quantiles_of_what_a_mask_selects(array: np.ndarray) -> None:
    def program(x: np.ndarray) -> Any:
        some, rows, columns = x[~(x < 1)], x[0][x[0, :, 0] > -99], x[0][:, x[0, 0] > -99]
        return (
            [np.median(some), np.median(some, keepdims=True), np.median(x[x != x]), np.median(columns, 1)],
            [np.percentile(some, 30), np.quantile(some, [[0.2, 1], [0, 0.7]]), np.quantile(some, 1)],
            [np.median(rows, axis=0), np.quantile(rows, [0.1, np.float32(0.9)], axis=0, keepdims=True)],
        )

    x = array.astype(float) if array.dtype == bool else array
    assert_like_numpy(program, (np.concatenate([x, x + 2]),))


def test_quantiles_of_nothing_that_a_mask_selects() -> None:
    with pytest.raises(IndexError, match="out of bounds"):
        arrayjit.jit(lambda x: np.quantile(x[x > 1], 0.3))(np.zeros(4))
    with pytest.raises(arrayjit.UserError, match=r"x\[~np.isnan\(x\)\]"):
        arrayjit.jit(lambda x: np.nanmedian(x[x > 1]))(np.zeros(4))


def test_distinct_values_of_several_arrays() -> None:
    rows = np.array([[1, 1, 2, 2], [1, 2, 3, 4], [5, 5, 5, 5]])
    assert_like_numpy(lambda x: [np.unique(row) for row in x], (rows,), (rows[::-1].copy(),))


@pytest.mark.parametrize("dtype", ["i8", "f8", "u1", "?", "c8"])
@pytest.mark.parametrize("shape", [(40, 2), (12, 3, 2), (9,), (3, 0), (0, 3)], ids=str)
def test_distinct_rows(shape: tuple[int, ...], dtype: str) -> None:
    rows = np.random.default_rng(7).integers(0, 3, shape).astype(dtype)
    for axis in range(len(shape)):

        def program(x: np.ndarray, axis: int = axis) -> Any:
            places = np.unique(x, return_index=True, return_inverse=True, return_counts=True, axis=axis)
            return np.unique(x, axis=axis), places

        assert_like_numpy(program, (rows,))


def test_rows_with_nan_are_distinct() -> None:
    rows = np.array([[1, np.nan], [-0.0, 0], [np.nan, 1], [1, np.nan], [0, -0.0], [np.inf, 1]])
    assert_like_numpy(lambda x: np.unique(x, axis=0, return_counts=True), (rows,))


@pytest.mark.parametrize("array", INPUTS.values(), ids=INPUTS)
def test_sets(array: np.ndarray) -> None:
    def program(x: np.ndarray) -> Any:
        some = x[0, :2]
        return np.setdiff1d(x, some), np.setxor1d(x[:2], x[1:]), np.setdiff1d(some, x, assume_unique=True)

    assert_like_numpy(program, (array,), (array[:, :, :0],))


def test_which_quantile_is_compiled_in() -> None:
    jitted = assert_like_numpy(lambda x, q: np.percentile(x, q), (floats, 10), (floats, 20), (floats, 10))
    assert jitted.stats().compiles == 4  # two numbers, two targets


def test_results_go_into_out() -> None:
    def program(x: np.ndarray, out: np.ndarray) -> np.ndarray:
        np.median(x, axis=0, out=out[0])
        np.percentile(x, 25, axis=0, out=out[1])
        return out

    assert_like_numpy(program, (floats, np.zeros((2, 4, 5))))


@pytest.mark.parametrize("array", NUMBERS.values(), ids=NUMBERS)
def test_distinct_values(array: np.ndarray) -> None:
    def program(x: np.ndarray) -> Any:
        values, first, inverse, counts = np.unique(
            x, return_index=True, return_inverse=True, return_counts=True
        )
        return (
            len(values),
            values[:3],
            values[-1],
            first[:2],
            inverse,
            counts.sum(),
            counts.max(),
            values.dtype,
        )

    assert_like_numpy(lambda x: program(x)[:-1], (array,))
    assert_like_numpy(lambda x: np.unique(x).size, (array,))


def test_quantiles_lie_between_0_and_1() -> None:
    for program in (lambda x: np.quantile(x, 1.5), lambda x: np.percentile(x, [50, 101])):
        with pytest.raises(ValueError, match="must be in the range"):
            program(floats)
        with pytest.raises(ValueError, match="must be in the range"):
            arrayjit.jit(program)(floats)


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0)])
@pytest.mark.parametrize("dtype", ["f8", "f4", "i4"])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_quantiles_of_no_values(shape: tuple[int, ...], dtype: str) -> None:
    """NumPy has none but of numbers, of which it does not ask how many are wanted."""
    x = np.zeros(shape, dtype)
    for fractions in (0, 1, 0.5, [0.5], [0, 1], [0.1, 0.9]):
        for quantile in (np.quantile, np.percentile):
            with pytest.raises(IndexError):
                quantile(x, fractions)
            with pytest.raises(IndexError, match="no quantile of no values"):
                arrayjit.jit(lambda x, quantile=quantile, q=fractions: quantile(x, q))(x)
        for axis in range(len(shape)):
            assert_like_numpy(lambda x, q=fractions, axis=axis: np.nanquantile(x, q, axis=axis), (x,))
    assert_like_numpy(lambda x: [np.nanmedian(x), np.median(x), np.nanmedian(x, 0, keepdims=True)], (x,))


@pytest.mark.parametrize("kth", [20, -21, np.int64(30), [1, 25], True, [True], 2.0, [], [1, 2.0]])
def test_places_that_no_row_has_are_refused(kth: Any) -> None:
    rows = np.zeros((3, 20))
    for program in (
        lambda x: np.partition(x, kth),
        lambda x: np.argpartition(x, kth, 1),
        lambda x: x.partition(kth),
    ):
        with pytest.raises((ValueError, TypeError)) as theirs:
            program(rows.copy())
        with pytest.raises(theirs.type) as ours:
            arrayjit.jit(program)(rows.copy())
        assert isinstance(ours.value, arrayjit.UserError)
        assert str(theirs.value).partition("(=")[0] in str(ours.value)


@pytest.mark.parametrize("kth", [19, -20, np.int64(3), [1, 19], np.array([2, -20]), (4,)])
def test_places_of_rows_may_be_given_in_many_ways(kth: Any) -> None:
    rows = random.permutation(60).reshape(3, 20)
    ordered, places = np.sort(rows), np.ravel(kth)
    np.testing.assert_array_equal(
        arrayjit.jit(lambda x: np.partition(x, kth))(rows)[:, places], ordered[:, places]
    )


def test_of_no_cells_any_place_may_be_asked_for() -> None:
    for shape in ((0, 4), (3, 0), (0,)):
        assert_like_numpy(lambda x: np.partition(x, 9), (np.zeros(shape),))
