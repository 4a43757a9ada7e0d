"""`jit(check=...)` stops a call at the first NaN that is computed, at an index outside its axis, at an
integer that overflows: with the user's line, the place and the numbers, the same on every target."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import arrayjit
from arrayjit.errors import IndexOutOfRange, IntegerOverflow, NotANumber, SettingError, UserError
from arrayjit.ir.journal import journal_of
from arrayjit.profile.laps import timed

TARGETS = ("interp", "llvm", "sync_llvm", "sync_c")
INF, NAN = np.inf, np.nan


def stopped(function: Callable[..., Any], *args: Any, check: str, **options: Any) -> UserError:
    """What a call raises, in the same words on every target."""
    raised: list[UserError] = []
    for target in TARGETS:
        copies = [np.copy(arg) if isinstance(arg, np.ndarray) else arg for arg in args]
        with pytest.raises(UserError) as error:
            arrayjit.jit(function, check=check, target=target, **options)(*copies)
        raised.append(error.value)
    assert len({str(error) for error in raised}) == 1
    assert len({type(error) for error in raised}) == 1
    assert raised[0].loc is not None
    assert raised[0].loc.file == __file__
    return raised[0]


def passes(function: Callable[..., Any], *args: Any, check: str = "nan,bounds,overflow") -> None:
    """A call goes on, with NumPy's results."""
    with np.errstate(all="ignore"):
        expected = function(*(np.copy(arg) if isinstance(arg, np.ndarray) else arg for arg in args))
    for target in TARGETS:
        copies = [np.copy(arg) if isinstance(arg, np.ndarray) else arg for arg in args]
        np.testing.assert_array_equal(arrayjit.jit(function, check=check, target=target)(*copies), expected)


def test_the_first_nan_that_is_computed() -> None:
    def program(x: Any) -> Any:
        y = x + 1
        return np.log(x) * y

    error = stopped(program, np.array([[1.0, NAN, 2.0], [3.0, -1.0, -2.0]]), check="nan")
    assert isinstance(error, NotANumber)
    assert isinstance(error, FloatingPointError)
    assert error.what == "log gives nan at [1, 1]"
    assert error.details == ("x[1, 1]: -1.0",)
    assert error.loc is not None
    assert error.loc.line == program.__code__.co_firstlineno + 2


@pytest.mark.parametrize(
    ("function", "values", "what", "details"),
    [
        (
            lambda x: x[:2] - x[2:],
            [1.0, INF, 2.0, INF],
            "subtract gives nan at [1]",
            ("x[1]: inf", "x[3]: inf"),
        ),
        (lambda x: np.sqrt(x[0]), [-4.0], "sqrt gives nan", ("an operand: -4.0",)),
        (lambda x: x / 0.0, [0.0], "divide gives nan at [0]", ("x[0]: 0.0",)),
        (lambda x: x.sum(), [INF, 1.0, -INF], "reduce add gives nan from numbers that are none", ()),
        (lambda x: x @ (x * 0), [INF, 1.0], "multiply gives nan at [0]", ("x[0]: inf",)),
        (
            lambda x: np.cumsum(x),
            [1.0, INF, -INF],
            "add gives nan in iteration 2",
            ("an operand: inf", "x[2]: -inf"),
        ),
    ],
)
def test_where_nan_comes_from(
    function: Callable[..., Any], values: list[float], what: str, details: tuple[str, ...]
) -> None:
    error = stopped(function, np.array(values), check="nan")
    assert (error.what, error.details) == (what, details)


def test_nan_of_each_cell_of_a_reduction() -> None:
    error = stopped(lambda x: x.sum(axis=0), np.array([[1.0, NAN, INF], [1.0, INF, -INF]]), check="nan")
    assert error.what == "reduce add gives nan from numbers that are none at [2]"


def test_nan_of_a_product_of_matrices() -> None:
    x, y = np.array([[1.0, 2.0], [INF, 1.0]]), np.array([[1.0, 0.0], [1.0, 1.0]])
    error = stopped(lambda x, y: x @ y, x, y, check="nan")
    assert error.what == "reduce add of multiply gives nan from numbers that are none at [1, 1]"


def test_nan_of_small_floats() -> None:
    error = stopped(lambda x: np.sqrt(x), np.array([1.0, -0.1], np.float32), check="nan")
    assert error.details == ("x[1]: -0.1",)


@pytest.mark.parametrize(
    ("function", "values"),
    [
        (lambda x: x * 2 + 1, [1.0, NAN]),
        (lambda x: x.sum(), [NAN, INF, -INF]),
        (lambda x: np.where(x > 0, np.nan, x), [1.0, -1.0]),
        (lambda x: np.maximum(x, 0.0), [NAN, 1.0]),
        (lambda x: np.full(3, np.nan), [1.0]),
        (lambda x: x.mean(), [INF, 1.0]),
    ],
)
def test_nan_that_was_there_stops_nothing(function: Callable[..., Any], values: list[float]) -> None:
    passes(function, np.array(values), check="nan")


def test_nan_in_place_is_looked_for_before_operands_are_overwritten() -> None:
    def program(x: Any) -> Any:
        x[1:] -= x[:-1]
        x[0] = x.sum()
        return x

    error = stopped(program, np.array([1.0, INF, INF]), check="nan")
    assert error.what == "subtract gives nan at [1]"
    passes(program, np.array([1.0, 5.0, INF]))


def test_the_iteration_of_the_users_loop_is_told() -> None:
    def program(x: Any, n: int) -> Any:
        for i in range(2, n):
            for j in range(i):
                x[i] = np.sqrt(x[i] - x[j] * j)
        return x

    error = stopped(program, np.arange(9.0) + 9, 9, check="nan")
    assert error.what == "sqrt gives nan in iterations 2, 1"


def test_indices_that_unchecked_code_takes_to_be_right() -> None:
    def program(x: Any, i: Any) -> Any:
        return x[i]

    error = stopped(program, np.arange(6.0), np.array([[0, 1], [-6, 6]]), check="bounds", unchecked=True)
    assert isinstance(error, IndexOutOfRange)
    assert error.what == "index is out of bounds for axis 0 with size 6 at [1, 1]"
    assert error.details == ("i[1, 1]: 6",)


def test_indices_that_are_written() -> None:
    def program(x: Any, i: Any) -> Any:
        x[i] = 1.0
        return x

    error = stopped(program, np.arange(6.0), np.array([2, -7]), check="bounds")
    assert error.what == "index is out of bounds for axis 0 with size 6 at [1]"
    assert error.details == ("i[1]: -7",)
    assert isinstance(error, IndexError)


def test_indices_in_loops_over_computed_bounds() -> None:
    def program(x: Any, n: int) -> Any:
        total = 0.0
        for i in range(n):
            total += x[i]
        return total

    passes(program, np.arange(6.0), 6)
    assert "out of bounds for axis 0 with size 6" in str(stopped(program, np.arange(6.0), 7, check="bounds"))


@pytest.mark.parametrize(
    ("function", "array", "what", "details"),
    [
        (
            lambda x: x + 1,
            np.array([0, 127], np.int8),
            "add overflows int8 at [1]",
            ("x[1]: 127", "an operand: 1"),
        ),
        (
            lambda x: x - 1,
            np.array([1, 0], np.uint64),
            "subtract overflows uint64 at [1]",
            ("x[1]: 0", "an operand: 1"),
        ),
        (lambda x: x * x, np.array([2**31, 2**32]), "multiply overflows int64 at [1]", ("x[1]: 4294967296",)),
        (
            lambda x: -x,
            np.array([-(2**31)], np.int32),
            "negative overflows int32 at [0]",
            ("x[0]: -2147483648",),
        ),
        (lambda x: abs(x), np.array([-128], np.int8), "absolute overflows int8 at [0]", ("x[0]: -128",)),
        (lambda x: x**2, np.array([3, 2**16], np.int32), "square overflows int32 at [1]", ("x[1]: 65536",)),
        (
            lambda x: x.astype(np.int8),
            np.array([100, 200]),
            "a cast from int64 overflows int8 at [1]",
            ("x[1]: 200",),
        ),
        (
            lambda x: x.astype(np.uint32),
            np.array([1.5, -1.0]),
            "a cast from float64 overflows uint32 at [1]",
            ("x[1]: -1.0",),
        ),
        (
            lambda x: x.astype(np.int64),
            np.array([9.2e18, 2.0**63]),
            "a cast from float64 overflows int64 at [1]",
            ("x[1]: 9.223372036854775807e18",),
        ),
        (
            lambda x: x.astype(np.int64),
            np.array([NAN]),
            "a cast from float64 overflows int64 at [0]",
            ("x[0]: nan",),
        ),
        (
            lambda x: x.astype(np.uint64),
            np.array([-1]),
            "a cast from int64 overflows uint64 at [0]",
            ("x[0]: -1",),
        ),
        (
            lambda x: x.sum(axis=1),
            np.array([[1, 2], [2**62, 2**62]]),
            "reduce add overflows int64 at [1]",
            ("exactly: 9.223372036854776e+18", "wrapped: -9223372036854775808"),
        ),
        (
            lambda x: x.prod(),
            np.array([2**40, 2**30]),
            "reduce multiply overflows int64",
            ("exactly: 1.1805916207174113e+21", "wrapped: 0"),
        ),
    ],
)
def test_integers_that_overflow(
    function: Callable[..., Any], array: np.ndarray, what: str, details: tuple[str, ...]
) -> None:
    error = stopped(function, array, check="overflow")
    assert isinstance(error, IntegerOverflow)
    assert isinstance(error, OverflowError)
    shown = tuple(detail.replace("9.223372036854775807e18", "9.223372036854776e+18") for detail in details)
    assert (error.what, error.details) == (what, shown)


@pytest.mark.parametrize(
    ("function", "array"),
    [
        (lambda x: x + x, np.array([2**62 - 1, -(2**62)])),
        (lambda x: x * 1 - 1, np.array([2**63 - 1, -(2**63) + 1])),
        (lambda x: x + 0, np.array([2**64 - 1, 0], np.uint64)),
        (lambda x: x.astype(np.uint8), np.array([0.0, 255.9, -0.9])),
        (lambda x: x.astype(np.int64), np.array([-(2.0**63), 2.0**63 - 1024])),
        (lambda x: x.sum() + x.prod(), np.array([2**31, 2**31 - 1])),
        (lambda x: x.sum(), np.array([2**62, 2**62, -(2**62)])),
        (lambda x: np.sort(x)[::-1], np.array([5, 2**63 - 1, -(2**63)])),
        (lambda x: np.argsort(x), np.array([3.0, 1.0, NAN])),
        (lambda x: np.argsort(x, kind="stable"), np.resize([3.0, -1.0, NAN, -NAN], 400)),
        (lambda x: np.sort(x), np.resize([3.0, -1.0, -0.0, INF, -INF], 400)),
        (lambda x: np.sort(x), np.full(400, 0, np.uint64)),
        (lambda x: np.sort(x), np.full(400, -(2**63))),
        (lambda x: np.median(x), np.resize([-(2**63), 2**63 - 1, -5], 400)),
        (lambda x: np.partition(x, 50)[50], np.resize([1.5, -INF, 0.0], 400)),
        (lambda x: np.searchsorted(np.arange(5.0), x), np.array([NAN, 2.5, 1e300])),
        (lambda x: x[np.array([-1, 0])], np.arange(4)),
    ],
)
def test_integers_that_fit_stop_nothing(function: Callable[..., Any], array: np.ndarray) -> None:
    passes(function, array)


def test_what_is_not_looked_for_stops_nothing() -> None:
    passes(lambda x: np.log(x), np.array([-1.0]), check="overflow,bounds")
    passes(lambda x: x + 1, np.array([127], np.int8), check="nan,bounds")


def test_statements_before_the_failing_one_are_done() -> None:
    def program(x: Any) -> Any:
        x[0] = 5.0
        x[1] = np.log(x[2])
        x[0] = 6.0
        return x

    x = np.array([0.0, 0.0, -1.0])
    with pytest.raises(NotANumber):
        arrayjit.jit(program, check="nan")(x)
    assert x.tolist() == [5.0, 0.0, -1.0]


def test_a_failing_call_hurts_no_other() -> None:
    f = arrayjit.jit(lambda x: np.log(x), check="nan")
    for value in (-1.0, -2.0):
        with pytest.raises(NotANumber, match=f"x\\[0\\]: {value}"):
            f(np.array([value]))
        assert f(np.array([1.0])).tolist() == [0.0]


def test_arrays_on_devices_are_looked_at_as_well() -> None:
    f = arrayjit.jit(lambda x: np.sqrt(x) + 1, check="nan")
    with pytest.raises(NotANumber, match=r"x\[1\]: -4.0"):
        f(arrayjit.asarray(np.array([1.0, -4.0]), device="llvm")).numpy()


def test_checks_are_statements_of_the_program_that_everybody_can_read() -> None:
    lowered = arrayjit.jit(lambda x: np.log(x), check=("nan",)).lower(np.ones(3))
    assert "-> check('nan')" in lowered.as_text("assignments")
    assert "journal" in lowered.as_text("loops")
    plain = arrayjit.jit(lambda x: np.log(x), check=()).lower(np.ones(3))
    assert "journal" not in plain.as_text("llvm")


def test_the_environment_names_checks_for_functions_that_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARRAYJIT_CHECK", "nan, bounds")
    by_default, without = arrayjit.jit(lambda x: np.log(x)), arrayjit.jit(lambda x: np.log(x), check=())
    monkeypatch.delenv("ARRAYJIT_CHECK")
    with pytest.raises(NotANumber):
        by_default(np.array([-1.0]))
    assert np.isnan(without(np.array([-1.0]))[0])
    monkeypatch.setenv("ARRAYJIT_CHECK", "nans")
    with pytest.raises(SettingError, match="ARRAYJIT_CHECK has 'nans'"):
        arrayjit.jit(lambda x: x)


def test_a_check_that_is_none() -> None:
    with pytest.raises(SettingError, match="check has 'uninit'") as raised:
        arrayjit.jit(lambda x: x, check={"nan", "uninit"})
    assert "bounds, nan, overflow" in str(raised.value)
    with pytest.raises(SettingError, match="check is True"):
        arrayjit.jit(lambda x: x, check=True)


def test_a_profile_keeps_the_journal_where_it_is_looked_for() -> None:
    kernel = arrayjit.jit(lambda x: np.log(x), check="nan").lower(np.ones(3)).build.optimized.kernel
    assert journal_of(kernel.params) is not None
    assert journal_of(timed(kernel).kernel.params) is journal_of(kernel.params)


@arrayjit.jit(check={"nan"})
def pickled(x: Any) -> Any:
    return np.log(x)


def test_checks_go_with_a_pickled_function() -> None:
    again = pickle.loads(pickle.dumps(pickled))
    with pytest.raises(NotANumber):
        again(np.array([-1.0]))


@np.errstate(divide="raise")
def decorated(x: Any) -> Any:
    return 1 / x


def within(x: Any) -> Any:
    with np.errstate(all="ignore", divide="raise"):
        return 1 / x


def told(x: Any) -> Any:
    np.seterr(divide="call")
    return x.astype(int) // 2


@pytest.mark.parametrize("function", [decorated, within, told])
def test_errors_that_the_user_is_to_be_told_of_are_refused(function: Callable[..., Any]) -> None:
    before = np.geterr()
    jitted = arrayjit.jit(function)
    for _ in range(2):
        with pytest.raises(
            arrayjit.UnsupportedError, match=r"np\.errstate\(divide='(raise|call)'\)"
        ) as error:
            jitted(np.zeros(3))
        assert error.value.loc is not None
        assert error.value.loc.file == __file__
        assert np.geterr() == before


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_what_makes_no_such_error_is_not_refused() -> None:
    def program(x: Any) -> Any:
        with np.errstate(all="raise"):
            y = x[::-1].copy()
            y[0] = 5.0
            first = np.arange(3) + len(x)
        with np.errstate(all="ignore"):
            y = y / x
        with np.errstate(divide="warn", over="ignore"):
            return np.log(y), first

    given = np.array([0.0, -1.0, 2.0])
    with np.errstate(all="ignore"):
        expected = program(given)
    with np.errstate(all="raise"):
        for got, wanted in zip(arrayjit.jit(program)(given), expected, strict=True):
            np.testing.assert_array_equal(got, wanted)
