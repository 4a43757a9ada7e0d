"""Python's own functions of traced numbers: docs/control.md, rules 14 to 16."""

from __future__ import annotations

import cmath
import functools
import itertools
import math
import numbers
from collections.abc import Callable, Container, Hashable, Iterable, Sequence, Sized
from copy import deepcopy
from functools import reduce
from math import sqrt
from typing import Any

import numpy as np
import pytest
from harness import assert_same
from rolling import assert_kept

import arrayjit

TARGETS = ("interp", "sync_llvm")
X = np.array([3.7, -1.2, 2.5, 0.0, 7.0, 9.5])
WITH_NAN = np.array([1.0, np.nan, 5.0, -2.0, 5.0, 0.5])
EVERY_DTYPE = [np.arange(7)[::-1].astype(dtype) for dtype in ("?", "i1", "i4", "i8", "u1", "u8", "f4", "f8")]


def as_in_python(function: Callable[..., Any], *calls: tuple[Any, ...]) -> None:
    """Jitted, the function gives or raises what it gives or raises in Python."""
    for target in TARGETS:
        jitted = arrayjit.jit(function, target=target)
        for args in calls:
            try:
                with np.errstate(all="ignore"):
                    wanted = function(*deepcopy(args))
            except Exception as error:
                with pytest.raises(type(error)):
                    jitted(*args)
            else:
                assert_same(jitted(*args), wanted)


@pytest.mark.parametrize("x", [X, *EVERY_DTYPE], ids=lambda x: x.dtype.name)
def test_conversions_give_traced_numbers(x: np.ndarray) -> None:
    as_in_python(lambda x: (int(x[2]), float(x[2]), bool(x[2]), bool(x[-1])), (x,))
    as_in_python(lambda x: (np.float32(x[2]), np.int32(x[2]), np.bool_(x[2]), np.uint8(x[2])), (x,))
    as_in_python(lambda x: int(float(x[4])) + round(float(x[2])), (x,))
    as_in_python(lambda x: np.float32(x), (x,))


@pytest.mark.parametrize("x", [X, *EVERY_DTYPE[:5], X.astype("f4").reshape(2, 3), np.array(2.5), X[:0]])
def test_lists_of_numbers(x: np.ndarray) -> None:
    as_in_python(lambda x: (x.tolist(), sum(x.ravel().tolist()), [2 * v for v in x.ravel().tolist()]), (x,))


def test_long_lists_of_numbers_are_refused() -> None:
    with pytest.raises(NotImplementedError, match="of more than 1024 elements"):
        arrayjit.jit(lambda x: x.tolist())(np.zeros((5, 300)))


def test_conversions_of_arguments() -> None:
    as_in_python(lambda a: (int(a), float(a), bool(a), round(a), np.float32(a)), (2.5,), (3.5,), (-0.5,))
    as_in_python(lambda a: (int(a), float(a), bool(a), np.int16(a)), (7,), (0,), (-3,))


def test_calls_are_found_in_code_of_every_form() -> None:
    def function(x: Any, flag: bool) -> Any:
        first = np.float32(x[0] + np.float64(max(x[1], x[2])))
        second = [np.int32(v) for v in (x[0], float(x[1]))][1]
        third = (np.float64(x[3]) if flag else np.float64(int(x[4])), float(x[1] if flag else x[2]))
        return (
            first,
            second,
            third,
            sorted((int, float, bool), key=lambda t: t.__name__),
            list(map(abs, [x[1]])),
        )

    as_in_python(function, (X, True), (X, False))


def test_methods_of_types_are_no_calls_of_these() -> None:
    def function(x: Any) -> Any:
        numbers = float.fromhex("0x1p3"), int.from_bytes(b"ab", "big"), int.bit_length(5)
        return numbers, list.copy([x[0]]), tuple.index((1, 2), 2), list([x[0]]).copy(), sum([x[0]]).ndim

    as_in_python(function, (X,))


@pytest.mark.parametrize(
    "value", [3, 2.5, True, 1j, np.float64(2.5), np.int32(3), np.array(2.5), np.zeros(3)], ids=repr
)
def test_values_have_the_methods_of_what_they_stand_for(value: Any) -> None:
    kinds = (
        Iterable,
        Sized,
        Container,
        Sequence,
        Hashable,
        numbers.Number,
        numbers.Real,
        np.ndarray,
        (int, str),
    )
    names = ("__iter__", "__len__", "__getitem__", "__float__", "__array__", "__array_interface__")
    names += (
        "shape",
        "ndim",
        "dtype",
        "device",
        "is_integer",
        "bit_length",
        "real",
        "tolist",
        "keys",
        "mask",
    )

    def program(x: Any) -> Any:
        found = [hasattr(x, name) for name in names]
        return found, [isinstance(x, kind) for kind in kinds], getattr(x, "__iter__", None) is None

    def chosen(x: Any) -> Any:
        return np.sum(x) if isinstance(x, Iterable) and getattr(x, "ndim", 0) else x * 2

    as_in_python(program, (value,))
    as_in_python(chosen, (value,))


def test_a_converted_number_is_an_index() -> None:
    as_in_python(lambda x, t: x[int(t * len(x))], (X, 0.4), (X, 0.99), (X, 1.0))


def test_rounding_numbers() -> None:
    as_in_python(lambda x: (round(x[0]), round(x[2]), round(x[1]), round(x[0], 1)), (X,))
    as_in_python(lambda n: (round(n), round(n[0])) if n.ndim == 0 else round(n[1]), (np.arange(3),))


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
def test_conversions_raise_as_python_does(number: float) -> None:
    as_in_python(lambda a: int(a), (number,))
    as_in_python(lambda a: round(a), (number,))
    as_in_python(lambda a: np.int64(a), (number,))
    as_in_python(lambda z: int(z[0]), (np.array([complex(number, 2.0)]),))


@pytest.mark.parametrize("places", [-22, -3, -1, 0, 1, 2, 5, 16, 22])
def test_floats_are_rounded_to_decimals_exactly(places: int) -> None:
    random = np.random.default_rng(7)
    numbers = [2.675, 0.15, 2.5, 1.45, -0.01, -0.0, 1e22, 5e21, 15.0, 25.0, -250.0]
    numbers += [2.0**52 + 0.5, 1e300, 5e-324]
    numbers += [float("inf"), float("nan"), *(random.integers(-(10**6), 10**6, 40) / 1000 + 0.0005)]
    numbers += [*(random.integers(2**51, 2**54, 40) * 10.0 ** -random.integers(0, 8, 40))]
    rounded = arrayjit.jit(lambda x: [round(float(x[k]), places) for k in range(len(x))], target="sync_llvm")
    got = rounded(np.array(numbers))
    assert list(map(repr, got)) == [repr(round(number, places)) for number in map(float, numbers)]


def test_integers_are_rounded_to_decimals() -> None:
    as_in_python(lambda a, n: (round(a > 0, 1), round(int(a), 2)), (2.5, 3))
    with pytest.raises(arrayjit.UnsupportedError, match="rounding a Python int to -1 decimals"):
        arrayjit.jit(lambda a: round(int(a), -1))(15.0)


def test_numpy_types_take_python_numbers_that_fit() -> None:
    as_in_python(lambda k: np.uint8(k), (255,), (256,), (-1,), (0,))
    as_in_python(lambda x: np.uint8(x[0]), (np.array([256]),), (np.array([-1]),))


def test_types_stay_types() -> None:
    def function(x: Any) -> Any:
        kind = float
        known = (
            x.dtype == float,
            isinstance(x[0], float),
            kind is float,
            {int: 1}[int],
            np.float64 is not float,
        )
        made = np.zeros(2, dtype=int), x.astype(float), x.astype(np.float32), np.array([1, 2], np.int8)
        names = [t.__name__ for t in (int, bool, np.float32)], (int, bool)[0] is int
        return known, made, names, isinstance(int(x[0]), int)

    as_in_python(function, (X,), (np.arange(3),))


def test_types_stay_types_beside_calls() -> None:
    def function(x: Any) -> Any:
        pair = (float, max(1, 2))
        chosen = np.result_type(np.float32, np.promote_types("i4", "f4"))
        made = np.sqrt(x[:2] ** 2, dtype=np.float32, out=np.zeros(2, "f4"))
        return pair[0] is float, chosen, made, x.astype(np.float32 if divmod(7, 2) == (3, 1) else np.int8)

    as_in_python(function, (X,), (np.arange(3.0),))


def test_types_are_called_with_arguments_in_a_row() -> None:
    def function(*x: Any) -> Any:
        named = {"imag": x[0][1]}
        return np.float32(*x), float(*[x[0][0]]), int(*(x[0][1],)), complex(x[0][0], **named)

    as_in_python(function, (X,), (np.arange(3.0),))


@pytest.mark.parametrize("x", [X, WITH_NAN, *EVERY_DTYPE], ids=lambda x: x.dtype.name)
def test_items_are_taken_in_order(x: np.ndarray) -> None:
    as_in_python(lambda x: (min(x), max(x), sum(x), any(x), all(x), len(x)), (x,), (x[:1],), (x[3:],))


def test_items_of_lists_and_generators() -> None:
    as_in_python(lambda x: sum([x[0], x[1], x[2]], 1.5), (X,))
    as_in_python(lambda x: sum(v * v for v in x), (X,))
    as_in_python(lambda x: any(x[i] > 9 for i in range(len(x))), (X,), (-X,))
    as_in_python(lambda x: all([x[0] > 0, True, x[1] < 0]), (X,), (-X,))
    as_in_python(lambda x: (any([]), all([]), any([x[0] > 0, 1]), all([0, x[0] > 0])), (X,))
    as_in_python(lambda x: max(min(row[0], row[1]) for row in x), (X.reshape(3, 2),))


def test_rows_are_summed() -> None:
    as_in_python(lambda x: sum(x), (np.arange(24.0).reshape(6, 4),))


def test_the_first_of_equal_numbers_wins() -> None:
    as_in_python(lambda x: (max(x[0], x[1]), max(x[1], x[0]), min(x[0], x[1])), (np.array([0.0, -0.0]),))
    as_in_python(lambda x: (max(x[0], x[1]), max(x[1], x[0]), min(x[1], x[0])), (WITH_NAN,))


def test_the_item_of_the_best_key() -> None:
    as_in_python(lambda x: (max(x, key=abs), min(x, key=abs), max(x, key=lambda v: -v)), (X,), (WITH_NAN,))
    as_in_python(lambda x: (max(x[0], x[1], key=abs), min([x[1], x[0]], key=math.sqrt)), (X,))
    as_in_python(lambda x: max(range(len(x)), key=lambda i: x[i]), (X,), (-X,), (X[:2],))
    as_in_python(lambda x: min(range(1, len(x) - 1), key=x.__getitem__), (X,), (-X,))
    as_in_python(lambda x: max(enumerate(x), key=lambda pair: pair[1]), (X,), (-X,))
    as_in_python(lambda x: (max(x[:0], key=abs, default=5), max(range(9), key=lambda i: i % 4)), (X,))
    as_in_python(lambda x: max(x[:0], key=abs), (X,))


def test_the_row_of_the_best_key() -> None:
    def best(rows: Any) -> Any:
        row = max(rows, key=lambda row: row[1])
        row[0] = 9
        return row + 0, min(rows, key=np.sum).copy(), max(rows[:1], key=np.max).T * 2, rows

    rows = np.arange(60.0).reshape(20, 3) * 7 % 11
    as_in_python(best, (rows,), (rows[:4],), (rows[::-1] * np.nan,), (rows.reshape(10, 2, 3),))
    as_in_python(lambda rows: max(rows[:0], key=np.sum), (rows,))
    assert_kept(lambda x: max(x.reshape(-1, 1), key=np.sum) + 0)


def test_a_long_range_is_compared_by_keys_in_one_loop() -> None:
    assert_kept(lambda x: max(x, key=abs))
    assert_kept(lambda x: max(range(len(x)), key=lambda i: x[i]))


def test_items_are_folded() -> None:
    as_in_python(lambda x: (reduce(max, x), functools.reduce(lambda a, v: a * 0.5 + v, x)), (X,), (X[:1],))
    as_in_python(lambda x: (reduce(max, x[:0], 2.0), reduce(lambda a, v: a + v, x, 0)), (X,), (X[:0],))
    as_in_python(lambda x: reduce(lambda a, v: (a[0] + v, max(a[1], v)), x, (0.0, -9.0)), (X,))
    as_in_python(lambda x: (reduce(np.add, [x, x]), reduce(min, (v * 2 for v in x))), (X,))
    as_in_python(lambda x: reduce(max, x), (X[:0],))
    assert_kept(lambda x: reduce(lambda a, v: a * 0.5 + v, x))


def test_functions_are_mapped_over_items() -> None:
    as_in_python(lambda x: (sum(map(float, x)), list(map(abs, x)), tuple(map(int, x))), (X,), (X[:2],))
    as_in_python(lambda x: (sum(map(lambda a, b: a * b, x, x[::-1])), list(map(max, x, x[::-1]))), (X,))
    as_in_python(lambda x: (max(map(abs, x)), any(map(lambda v: v > 2, x)), list(map(float, [1, 2]))), (X,))
    assert_kept(lambda x: sum(map(abs, np.concatenate([x] * 20))))


BY_NAME = {"max": max, "min": min, "sum": sum, "any": any, "len": len}


class Chooses:
    best = staticmethod(max)

    def __init__(self, worst: Callable[..., Any] = min) -> None:
        self.worst = worst


def test_functions_are_the_same_in_tables_and_as_arguments() -> None:
    def called(function: Callable[..., Any], x: Any) -> Any:
        return function(x[0], x[1])

    as_in_python(lambda x: [function(x[0], x[1]) for function in (min, max)], (X,), (-X,))
    as_in_python(lambda x: [BY_NAME[name](x) for name in ("max", "min", "sum", "len")], (X,), (WITH_NAN,))
    as_in_python(lambda x: BY_NAME["any"](x > 9), (X,), (-X,))
    as_in_python(lambda x: (called(max, x), functools.partial(called, min)(x)), (X,), (-X,))
    as_in_python(lambda x: functools.partial(max, x[0])(x[1]), (X,), (-X,))
    as_in_python(lambda x: (Chooses.best(x[0], x[1]), Chooses().worst(x[0], x[1])), (X,), (-X,))
    as_in_python(lambda x: list(itertools.accumulate(x, max)), (X,), (X[:1],))
    as_in_python(lambda x: np.apply_along_axis(max, 0, x.reshape(2, 3)), (X,))
    as_in_python(lambda x: np.vectorize(max)(x, x[::-1]), (X,))
    as_in_python(lambda x: (BY_NAME["max"] is max, max.__name__, {max: 2}[max], max(2, 3)), (X,))
    assert arrayjit.jit(lambda x: max)(X) is max


def test_numbers_and_constants() -> None:
    function = lambda x: (max(x[1], 0.0), min(x[0], 2), max(0.0, x[0], x[4]))  # noqa: E731
    for x in (X, -X):
        assert arrayjit.jit(function)(x) == function(x)
    as_in_python(lambda a, b: (max(a, b), min(a, b, 3)), (2, 5), (7, 5))


def test_the_larger_of_two_types_is_refused() -> None:
    with pytest.raises(arrayjit.DTypeError, match="NumPy float64 or a NumPy float32"):
        arrayjit.jit(lambda x: max(x.astype("f4")[0], x[1]))(X)
    with pytest.raises(arrayjit.DTypeError):
        arrayjit.jit(lambda x: max(x.astype("f4")[0], 0.1))(X)


def test_the_larger_of_numbers_and_arrays_of_no_axes() -> None:
    def packed(weights: Any, values: Any, most: int) -> Any:
        best = np.zeros(most + 1, int)
        for i in range(len(weights)):
            for w in range(most, -1, -1):
                with_it = np.where(weights[i] <= w, best[w - weights[i]] + values[i], 0)
                best[w] = max(best[w], with_it)
        return best

    as_in_python(
        packed, (np.array([1, 3, 4, 5]), np.array([1, 4, 5, 7]), 7), (np.array([2]), np.array([3]), 2)
    )

    def both(x: Any) -> Any:
        one, other = np.where(x[0] > x[1], x[0], 1.0), np.where(x[2] > 0, x[1], 2.0)
        return max(one, other), min(x[0], one, other) * 1

    as_in_python(both, (X,), (-X,))

    def written(x: Any) -> Any:
        one = np.where(x[0] > 0, x[0], 1.0)
        largest = max(one, x[1])
        largest += 1
        return one + x

    with pytest.raises(arrayjit.UnsupportedError, match="may be the same as another one"):
        arrayjit.jit(written)(X)


def test_types_are_called_over_conditions() -> None:
    def converted(x: Any, choice: bool) -> Any:
        first, second = x[0], x[1]
        one = float(first if choice else second)
        return one + (int if choice else float)(second) + float([y * 2 for y in (first, second)][choice])

    as_in_python(converted, (X, True), (X, False))


def test_clamped_bounds_of_slices() -> None:
    def windows(x: Any, k: int) -> Any:
        sums = np.zeros(len(x))
        for i in range(len(x)):
            sums[i] = x[max(0, i - k) : min(i + k + 1, len(x))].sum()
        return sums

    as_in_python(windows, (X, 1), (X, 0), (X, 9))

    def triangle(n: int) -> int:
        total = 0
        for i in range(n):
            for j in range(max(i - 2, 0), min(i + 2, n)):
                total += i * j
        return total

    as_in_python(triangle, (9,), (0,), (2,))


ONE = ("sqrt", "exp", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "asin", "acos", "atan",
       "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "fabs", "degrees", "radians", "erf", "erfc",
       "isnan", "isinf", "isfinite", "floor", "ceil", "trunc")  # fmt: skip
TWO = ("atan2", "hypot", "copysign", "fmod", "pow", "log")
NUMBERS = (0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 2.0, 1000.0, np.inf, -np.inf, np.nan)


def close(got: Any, wanted: Any) -> bool:
    if type(got) is not type(wanted):
        return False
    return (
        got == wanted or abs(got - wanted) <= 4e-16 * abs(wanted) or (math.isnan(got) and math.isnan(wanted))
    )


def same_or_raises(jitted: Any, function: Callable[..., Any], *args: float) -> None:
    try:
        wanted = function(*args)
    except (ValueError, OverflowError, ZeroDivisionError) as error:
        with pytest.raises(type(error)):
            jitted(*args)
    else:
        got = jitted(*args)
        assert close(got, wanted), (args, got, wanted)


@pytest.mark.parametrize("name", ONE)
def test_math_of_traced_numbers(name: str) -> None:
    function = getattr(math, name)
    jitted = arrayjit.jit(lambda a: function(a))
    for number in NUMBERS:
        same_or_raises(jitted, function, number)


GAMMAS = (1e-25, -1e-25, 1e-310, 3.3, 5.0, 23.0, 24.0, 139.9, 170.5, 171.7, -3.0, -3.5, -139.5, -170.5,
          -200.5, -201.5, 199.5, 1e300, -1e300)  # fmt: skip


@pytest.mark.parametrize("name", ["gamma", "lgamma"])
def test_gamma_functions(name: str) -> None:
    function = getattr(math, name)
    for target in TARGETS:
        jitted = arrayjit.jit(lambda x: function(x[0]), target=target)
        for number in (*NUMBERS, *GAMMAS):
            try:
                wanted = function(number)
            except (ValueError, OverflowError) as error:
                with pytest.raises(type(error)):
                    jitted(np.array([number]))
            else:
                got = jitted(np.array([number]))
                assert type(got) is float
                np.testing.assert_allclose(got, wanted, rtol=3e-15, err_msg=str(number))
                assert math.copysign(1, got) == math.copysign(1, wanted) or math.isnan(wanted)


def test_parts_of_floats() -> None:
    for target in TARGETS:
        parts = arrayjit.jit(lambda x: (math.modf(x[0]), math.frexp(x[0])), target=target)
        scaled = arrayjit.jit(lambda x, i: math.ldexp(x[0], i[0]), target=target)
        for number in NUMBERS:
            x = np.array([number])
            for got, wanted in zip(parts(x), (math.modf(number), math.frexp(number)), strict=True):
                assert [repr(one) for one in got] == [repr(float(wanted[0])), repr(wanted[1])]
            for exponent in (-1100, -3, 0, 5, 1023, 3000):
                exponents = np.array([exponent])
                same_or_raises(scaled, lambda x, i: math.ldexp(float(x[0]), int(i[0])), x, exponents)


@pytest.mark.parametrize("target", TARGETS)
def test_math_of_several_numbers(target: str) -> None:
    programs: list[Callable[..., Any]] = [
        lambda a, b: math.hypot(a[0], b[0], 2),
        lambda a, b: math.hypot(a[0]),
        lambda a, b: math.dist((a[0], 1), [b[0], a[0]]),
        lambda a, b: math.isclose(a[0], b[0]),
        lambda a, b: math.isclose(a[0], 1.5, rel_tol=0.5, abs_tol=b[0]),
    ]
    for program in programs:
        jitted = arrayjit.jit(program, target=target)
        for first in (*NUMBERS, 1.7e308):
            for second in (*NUMBERS, 1.7e308):
                same_or_raises(jitted, program, np.array([first]), np.array([second]))
    with pytest.raises(ValueError, match="same number of dimensions"):
        arrayjit.jit(lambda a: math.dist(a, a[:1]), target=target)(X)


def test_math_of_integers() -> None:
    squares = [k * k + d for k in (3, 94906267, 3037000499) for d in (-1, 0, 1)]
    numbers = [np.array([n, 18]) for n in (0, 1, 7, -12, 2**53 + 1, 2**63 - 1, *squares)]
    calls = [(x,) for x in numbers]
    as_in_python(lambda x: (math.gcd(x[0], x[1]), math.gcd(12, int(x[1]), x[0]), math.isqrt(x[0])), *calls)
    as_in_python(lambda x: math.gcd(x[0], 2), (X,))
    pairs = [
        np.array(pair) for pair in ((4, 6), (0, 0), (0, 5), (-4, 6), (7, -7), (2**40, 2**20 * 3), (1, 1))
    ]
    as_in_python(
        lambda x: (math.lcm(x[0], x[1]), math.lcm(int(x[0]), 12, x[1]), math.lcm(x[1])),
        *((x,) for x in pairs),
    )
    as_in_python(lambda x: math.lcm(x[0], 2), (X,))
    with pytest.raises(OverflowError):
        arrayjit.jit(lambda x: math.lcm(x[0], x[1]))(np.array([2**62 - 1, 2**61]))


def test_gamma_functions_in_loops_are_kept() -> None:
    def likelihood(counts: np.ndarray) -> float:
        total = 0.0
        for k in counts:
            total += math.log(2.5) * k - 2.5 - math.lgamma(k + 1)
        return total

    assert_kept(likelihood)
    counts = np.arange(40.0)
    np.testing.assert_allclose(arrayjit.jit(likelihood)(counts), likelihood(counts), rtol=1e-14)


def test_a_function_without_a_form_for_arrays_is_not_named_as_one() -> None:
    with pytest.raises(arrayjit.ConcretizationError, match=r"compute what math\.fsum would give before"):
        arrayjit.jit(lambda x: math.fsum([x[0]]))(X)


@pytest.mark.parametrize("name", TWO)
def test_math_of_two_numbers(name: str) -> None:
    function = getattr(math, name)
    jitted = arrayjit.jit(lambda a, b: function(a, b))
    for first in NUMBERS:
        for second in NUMBERS:
            same_or_raises(jitted, function, first, second)


def test_math_raises_as_python_does() -> None:
    as_in_python(lambda x: math.sqrt(x[1]), (X,), (-X,))
    as_in_python(lambda x: math.log(x[0]), (X,), (np.zeros(1),), (-X,))
    as_in_python(lambda a: math.exp(a) > 1, (1.0,), (1e4,))
    as_in_python(lambda a: math.floor(a), (1.5,), (np.nan,), (np.inf,))


COMPLEX = [
    complex(*parts) for parts in itertools.product((0.0, -2.0, 1.0, -1.0, 800.0, np.inf, -np.inf), repeat=2)
]
OF_COMPLEX = ("acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "exp", "log", "log10", "sin",
              "sinh", "sqrt", "tan", "tanh", "phase", "polar", "isfinite", "isinf", "isnan")  # fmt: skip


def as_in_cmath(function: Callable[..., Any], *calls: tuple[Any, ...]) -> None:
    """The parts of results are near, and a NaN where Python's are; exceptions are of the same class."""
    jitted = arrayjit.jit(function, target="sync_llvm")
    for arguments in calls:
        try:
            wanted = function(*arguments)
        except (ValueError, OverflowError) as error:
            with pytest.raises(type(error), match=str(error)):
                jitted(*arguments)
        else:
            got = jitted(*arguments)
            ours, theirs = (value if isinstance(value, tuple) else (value,) for value in (got, wanted))
            assert [*map(type, ours)] == [*map(type, theirs)]
            np.testing.assert_allclose(ours, theirs, rtol=1e-14, atol=1e-300)


@pytest.mark.parametrize("name", OF_COMPLEX)
def test_cmath_of_traced_numbers(name: str) -> None:
    function = getattr(cmath, name)
    as_in_cmath(lambda z: function(z), *((number,) for number in COMPLEX), (0.5,), (np.float32(2),))


def test_cmath_of_several_numbers() -> None:
    lengths, angles = (0.0, 2.0, -1.5, np.inf), (0.0, 1.0, -3.0, np.inf)
    as_in_cmath(lambda r, phi: cmath.rect(r, phi), *itertools.product(lengths, angles))
    as_in_cmath(lambda z, base: cmath.log(z, base), (2j, 2.0), (3 + 1j, 10), (0j, 2j), (2j, 1.0), (2j, 0.0))
    near = [
        (1 + 1j, 1 + 1.0000000001j),
        (1j, 1.1j),
        (complex(np.inf), complex(np.inf)),
        (complex(np.inf), 1j),
    ]
    as_in_cmath(lambda a, b: cmath.isclose(a, b), *near)
    as_in_cmath(lambda a, most: cmath.isclose(a, 1j, abs_tol=most), (1.1j, 0.2), (1.1j, 0.0), (1j, -1.0))


def test_a_fourier_transform_by_cmath_is_one_loop() -> None:
    def transform(x: np.ndarray) -> np.ndarray:
        result = np.zeros(len(x), complex)
        for k in range(len(x)):
            for n in range(len(x)):
                result[k] += x[n] * cmath.exp(-2j * cmath.pi * k * n / len(x))
        return result

    x = np.linspace(-1, 1, 40)
    np.testing.assert_allclose(arrayjit.jit(transform)(x), np.fft.fft(x), atol=1e-12)
    assert_kept(transform)


def test_math_however_it_is_imported() -> None:
    as_in_python(lambda x: sqrt(x[0]) + math.pi + math.hypot(3, 4), (X,))
    as_in_python(lambda n: [math.sqrt(i * i) for i in range(n)][2], (5,))


def test_math_of_a_loop_index() -> None:
    def function(n: int) -> float:
        total = 0.0
        for i in range(n):
            total += math.sqrt(i) + math.floor(i / 2)
        return total

    as_in_python(function, (9,), (0,), (100,))


def test_the_type_of_a_traced_value_is_the_one_that_it_has_when_the_function_runs() -> None:
    def typed(x: Any, n: int) -> Any:
        for i in range(len(x)):
            if type(i) is int and type(x[i]) is np.float64:
                x[i] += 1
        return type(x) is np.ndarray, type(n) is int, type(x).__name__, x

    as_in_python(typed, (X, 3))
