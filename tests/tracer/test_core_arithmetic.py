"""Operators and ufuncs: dtypes by NEP 50, Python scalars as Python, `out`, `where`, `dtype`."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from harness import assert_like_numpy, assert_same, trace_and_interpret

import arrayjit
from arrayjit.errors import ConcretizationError, UserError

jit_in_numpy = functools.partial(arrayjit.jit, target="interp")

DTYPES = ["?", "i1", "i4", "i8", "u1", "u8", "f4", "f8"]
BINARY = [
    "add", "sub", "mul", "truediv", "floordiv", "mod", "and_", "or_", "xor", "lshift", "rshift",
    "lt", "le", "gt", "ge", "eq", "ne",
]  # fmt: skip


def values(dtype: str) -> np.ndarray:
    return np.array([0, 1, 2, 3, 100], dtype)


def like_numpy_or_refused(function: Callable[..., Any], make: Callable[[], tuple[Any, ...]]) -> None:
    """NumPy's result; where NumPy has none, or one of a dtype without a row, an error of ours that is
    also NumPy's."""
    with np.errstate(all="ignore"):
        try:
            wanted = function(*make())
        except (TypeError, OverflowError) as error:
            with pytest.raises(type(error) if type(error) is OverflowError else TypeError) as caught:
                trace_and_interpret(function, *make())
            assert isinstance(caught.value, (UserError, OverflowError))
            return
    if wanted.dtype == np.float16:
        with pytest.raises(TypeError, match="float16") as refused:
            trace_and_interpret(function, *make())
        assert isinstance(refused.value, UserError)
        return
    assert_like_numpy(function, make)


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("left", DTYPES)
def test_operators_on_arrays_of_any_dtypes(name: str, left: str) -> None:
    apply = getattr(operator, name)
    for right in DTYPES:
        like_numpy_or_refused(apply, lambda right=right: (values(left), values(right)[::-1]))


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "scalar", [True, 2, -1, 300, 2.5, np.float32(1.5), np.int64(3), np.uint8(4)], ids=repr
)
def test_operators_on_arrays_and_scalars(name: str, dtype: str, scalar: Any) -> None:
    """A scalar counts the same as an argument and as a number in the code, on either side."""
    apply = getattr(operator, name)
    like_numpy_or_refused(apply, lambda: (values(dtype), scalar))
    like_numpy_or_refused(apply, lambda: (scalar, values(dtype)))
    like_numpy_or_refused(lambda x: apply(x, scalar), lambda: (values(dtype),))
    like_numpy_or_refused(lambda x: apply(scalar, x), lambda: (values(dtype),))


def test_nothing_is_equal_to_none() -> None:
    def compared(x: np.ndarray) -> Any:
        return x == None, x != None, x[0] == None, x.sum() != None, x[:0] == None, x.reshape(1, -1) != None  # noqa: E711

    for dtype in ("f8", "c8", "?"):
        assert_like_numpy(compared, lambda dtype=dtype: (np.arange(3).astype(dtype),))  # type: ignore[misc]
    with pytest.raises(TypeError, match="NoneType"):
        trace_and_interpret(lambda x: x + None, np.arange(3.0))


@pytest.mark.parametrize("name", BINARY)
def test_operators_on_python_scalars_follow_python(name: str) -> None:
    apply = getattr(operator, name)
    for left in (True, 7, -7, 3, 2.5, -0.5):
        for right in (True, 2, -2, 3, 2.5, -1.5):
            try:
                wanted = apply(left, right)
            except (TypeError, ValueError) as error:
                with pytest.raises(type(error)):
                    trace_and_interpret(apply, left, right)
                continue
            for got in (
                trace_and_interpret(apply, left, right),
                trace_and_interpret(lambda a, b=right: apply(a, b), left),
                trace_and_interpret(lambda b, a=left: apply(a, b), right),
            ):
                assert type(got) is type(wanted)
                assert got == wanted


@pytest.mark.parametrize("name", ["neg", "pos", "abs", "invert"])
def test_unary_operators(name: str) -> None:
    apply = getattr(operator, name)
    for dtype in DTYPES:
        like_numpy_or_refused(apply, lambda dtype=dtype: (values(dtype),))
    for scalar in (True, -3):
        got = trace_and_interpret(apply, scalar)
        assert type(got) is int
        assert got == apply(int(scalar))


PYTHON_FAILURES: list[tuple[Callable[..., Any], tuple[Any, ...], type[Exception]]] = [
    (lambda a, b: a / b, (1, 0), ZeroDivisionError),
    (lambda a, b: a // b, (1.0, 0.0), ZeroDivisionError),
    (lambda a, b: a % b, (1, 0), ZeroDivisionError),
    (lambda a: 0.0**a, (-1.0,), ZeroDivisionError),
    (lambda a, b: a << b, (1, -1), ValueError),
    (lambda a, b: a * b, (2**40, 2**40), OverflowError),
    (lambda a, b: a + b, (2**62, 2**62), OverflowError),
    (lambda a, b: a << b, (1, 70), OverflowError),
    (lambda a, b: a**b, (10, 30), OverflowError),
    (lambda a, b: a**b, (10.0, 400.0), OverflowError),
    (lambda a: a + 1, (2**70,), OverflowError),
    (lambda x, n: x + n, (np.ones(3, "u1"), 300), OverflowError),
    (lambda x, n: x**n, (np.ones(3, "i4"), -1), ValueError),
    (lambda x, n: x**n, (np.ones(3, "i4"), np.array([1, 2, -1])), ValueError),
]


@pytest.mark.parametrize(("function", "args", "exception"), PYTHON_FAILURES)
def test_what_python_refuses_at_run_time(
    function: Callable[..., Any], args: tuple[Any, ...], exception: type[Exception]
) -> None:
    with pytest.raises(exception):
        trace_and_interpret(function, *args)


def test_powers_of_python_scalars() -> None:
    def powers(n: int, x: float) -> Any:
        return n**2, n**0, n**-1, x**2, x**0.5, 2**n, n**x, n**2.0

    assert_same(trace_and_interpret(powers, 3, 2.5), powers(3, 2.5))


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "u1"])
def test_powers_of_arrays(dtype: str) -> None:
    def powers(x: np.ndarray) -> Any:
        y = x.copy()
        y **= 2
        return x**2, x**1, x**0, x**3, x[1] ** 2, y, np.power(x, 2)

    assert_like_numpy(powers, lambda: (np.array([0, 1, 2, 3], dtype),))
    if dtype[0] == "f":
        short_cuts = np.array([-0.0, -1.0, -np.inf, np.nan, 4.0], dtype)
        assert_like_numpy(lambda x: (x**-1, x**0.5, x**2), lambda: (short_cuts,))


def test_ufuncs_take_out_where_and_dtype() -> None:
    def program(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> Any:
        a = np.add(x, y, dtype="f4")
        b = np.add(x, 1, out=z)
        c = np.multiply(x, y, where=x > 1, out=y)
        np.subtract(x, [1, 2, 3], z, where=[True, False, True])
        return a, b is z, c is y, np.divide(x, 3, dtype=np.float32), np.less(x, 2)

    make: Callable[[], tuple[Any, ...]] = lambda: (np.arange(3), np.arange(3) + 5, np.zeros((2, 3)))  # noqa: E731
    assert_like_numpy(program, make)


def test_broadcasting() -> None:
    def program(x: np.ndarray, y: np.ndarray, s: np.ndarray) -> Any:
        x += y
        return x * y, y - s, s * 2, x[:, None] + x[None], x * [1, 2, 3], np.hypot([[1.0], [2.0]], y)

    assert_like_numpy(program, lambda: (np.ones((2, 3)), np.arange(3.0), np.array(4.0)))


def test_lists_of_traced_values_are_stacked() -> None:
    def program(x: np.ndarray, n: int) -> Any:
        row = np.zeros(n)
        row[:] = range(n)
        return x * [n, x[0], 3], x - [x, x[::-1], [1, 2, 3]], row, x + range(3)

    assert_like_numpy(program, lambda: (np.arange(3.0), 5))


@pytest.mark.parametrize("number", [5, 300, 2.5])
@pytest.mark.parametrize("dtype", ["u1", "f4"])
def test_python_numbers_that_numpy_makes_arrays_of_are_not_weak(number: float, dtype: str) -> None:
    def program(x: np.ndarray, n: Any) -> Any:
        joined = np.append(x, n), np.append(n, x)
        return (*joined, np.dot(x, n), np.inner(n, x), np.dot(n, n), np.multiply.outer(x, n))

    assert_like_numpy(program, lambda: (np.array([1, 2, 3], dtype), number))


@pytest.mark.parametrize("number", [2**63, 2**64 - 1])
@pytest.mark.parametrize("dtype", ["u8", "i8", "f8", "u1"])
def test_large_ints_have_no_sign_where_they_stand_alone(number: int, dtype: str) -> None:
    def program(x: np.ndarray) -> Any:
        y = np.array([1, 2], "u8")
        np.put(y, [0], number)
        np.add.at(y, [1], number)
        stacked = np.array([x[0], number]), np.array([[x[0], number], [1, 2]])
        return (*stacked, np.append(x, number), np.full(2, number), np.full_like(y, number), y)

    assert_like_numpy(program, lambda: (np.array([1, 2, 3], dtype),))


def test_conversions() -> None:
    def program(x: np.ndarray) -> Any:
        y = x.copy()
        y.fill(7)
        same = x.astype(x.dtype, copy=False) is x
        return (
            x.astype("u1"),
            x.astype(np.float32),
            x.astype(bool),
            x.astype(x.dtype),
            same,
            y,
            x[0].astype("f4"),
        )

    for dtype in ("i4", "f8", "?"):
        assert_like_numpy(program, lambda dtype=dtype: (np.array([0, 1, 100], dtype),))


def test_items_are_python_scalars() -> None:
    def program(x: np.ndarray) -> Any:
        return x.item(1), x[0].item(), x.item(1) * 2, x[1:2].item()

    for dtype in ("f4", "i2", "?"):
        x = np.array([1, 0], dtype)
        got, wanted = trace_and_interpret(program, x), program(x)
        assert got == wanted
        assert list(map(type, got)) == list(map(type, wanted))


def test_bits_of_integers_are_counted() -> None:
    def program(x: np.ndarray) -> Any:
        total = 0
        for i in range(len(x)):
            total += i.bit_count() * x[i].bit_count()
        return x[0].bit_count(), x[1].bit_count() + 1, x[0].item().bit_count(), total

    for dtype in ("i8", "i4", "u1", "i1"):
        x = np.array([np.iinfo(dtype).min, np.iinfo(dtype).max, 5, 3], dtype)
        got, wanted = trace_and_interpret(program, x), program(x)
        assert got == wanted
        assert list(map(type, got)) == list(map(type, wanted))
    with pytest.raises(AttributeError, match="bit_count"):
        trace_and_interpret(lambda x: x.bit_count(), np.arange(3))


def test_attributes_are_concrete() -> None:
    def program(x: np.ndarray) -> Any:
        assert isinstance(x, np.ndarray)
        assert isinstance(x[0, 0], np.float32)
        assert isinstance(x[0, 0], np.floating)
        return [0] * x.shape[0], x.ndim, x.size, len(x), x.itemsize, x.nbytes, x.dtype.name, x.T.shape

    assert_like_numpy(program, lambda: (np.ones((2, 3), "f4"),))


def test_python_scalars_look_like_python_scalars() -> None:
    def program(n: int, x: float, flag: bool) -> Any:
        return isinstance(n, int), isinstance(x, float), isinstance(flag, bool), isinstance(n, float)

    assert trace_and_interpret(program, 1, 2.0, True) == (True, True, True, False)


class Vector:
    """Answers numbers on its left, as users' vectors, quaternions and polynomials do."""

    def __init__(self, parts: Any) -> None:
        self.parts = parts

    def __rmul__(self, factor: Any) -> Any:
        return self.parts * factor

    def __rsub__(self, number: Any) -> Any:
        return number - self.parts

    def __gt__(self, number: Any) -> Any:
        return self.parts > number

    def __eq__(self, number: Any) -> Any:
        return self.parts == number

    __hash__ = None  # type: ignore[assignment]


class Operator(Vector):
    """Answers arrays too."""

    __array_ufunc__ = None

    def __rmatmul__(self, array: Any) -> Any:
        return array @ self.parts


def test_numbers_repeat_sequences() -> None:
    def program(n: int, b: bool, x: Any) -> Any:
        rows = [[0] * n for _ in range(n)]
        return np.array(rows), [x] * n, n * (1, n), len("ab" * n), [2.5] * b, [None] * n, (0,) * (n - 1)

    assert_same(jit_in_numpy(program)(3, True, np.arange(2.0)), program(3, True, np.arange(2.0)))
    for refused in (lambda x: x[0] * [1], lambda x: [1] * float(x[0]), lambda x: len(x) / 2 * "a"):
        with pytest.raises(TypeError, match="can't multiply sequence by non-int"):
            trace_and_interpret(refused, np.ones(3))


def test_objects_answer_numbers_and_arrays() -> None:
    def program(x: Any, n: int, f: float) -> Any:
        v, a = Vector(x), Operator(x)
        return n * v, f - v, x[0] * v, n < v, f == v, x * a, x @ a, x[1] * a

    arguments = (np.arange(4.0), 3, 2.0)
    assert_same(jit_in_numpy(program)(*arguments), program(*arguments))


def test_numbers_and_what_is_no_number() -> None:
    def equal(n: int, f: float) -> Any:
        return n == "a", n != None, f in [None, "f", 2.5], n == [3]  # noqa: E711

    assert jit_in_numpy(equal)(3, 2.5) == equal(3, 2.5)
    for refused in (lambda n: n - [1], lambda n: (1,) - n, lambda n: n < "a", lambda n: n | {1}):
        with pytest.raises(TypeError, match="unsupported operand types for"):
            jit_in_numpy(refused)(3)


def test_python_numbers_have_their_text_and_methods() -> None:
    def program(x: Any, n: int, f: float) -> Any:
        named = {f"k{n}": x, str(n): x + 1, "%s" % n: x + 2, f"{f!r} {[n]}": x}  # noqa: UP031
        return named, n.bit_length(), f.is_integer(), pow(n, 2, 5)

    arguments = (np.arange(3.0), 3, 2.5)
    jitted = jit_in_numpy(program)
    assert_same(jitted(*arguments), program(*arguments))
    assert_same(jitted(np.arange(3.0), 4, 2.0), program(np.arange(3.0), 4, 2.0))
    with pytest.raises(ConcretizationError, match="as text"):
        jit_in_numpy(lambda x: f"{float(x.sum())}")(np.ones(3))


def test_augmented_assignment_of_scalars_rebinds() -> None:
    def program(n: int, x: np.ndarray) -> Any:
        m = n
        n += 1
        s = x[0]
        t = s
        s *= 2
        return m, n, s, t, x

    x = np.array([3.0, 4.0])
    m, n, s, t, same = trace_and_interpret(program, 5, x)
    assert (m, n, s, t) == (5, 6, 6.0, 3.0)
    assert same is x


def set_item(x: np.ndarray, n: Any) -> None:
    x[0] = n


def set_masked(x: np.ndarray, n: Any) -> None:
    x[x == 0] = n


NUMBERS_INTO_ARRAYS: dict[str, Callable[[np.ndarray, Any], Any]] = {
    "item": set_item,
    "mask": set_masked,
    "full": lambda x, n: np.full(3, n, dtype=x.dtype),
    "array": lambda x, n: np.array([n, 1], dtype=x.dtype),
    "where": lambda x, n: np.where(x == 0, n, x),
    "clip": lambda x, n: x.clip(n),
    "clip below": lambda x, n: x.clip(None, n),
}


@pytest.mark.parametrize("dtype", ["i1", "u1", "i4", "i8", "u8", "f4", "?"])
@pytest.mark.parametrize("write", NUMBERS_INTO_ARRAYS.values(), ids=NUMBERS_INTO_ARRAYS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_python_numbers_fit_the_array_that_takes_them(dtype: str, write: Callable[..., Any]) -> None:
    for number in (5, 300, -1, 2**40, -(2**63), 3.7, -0.5, 300.5, -128.5, 1e20, np.inf, -np.inf, np.nan):
        calls: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
            (write, (number,)),
            (functools.partial(write, n=number), ()),
        ]
        for function, rest in calls:
            try:
                write(np.zeros(3, dtype), number)
            except (ValueError, OverflowError) as error:
                with pytest.raises(type(error)):
                    trace_and_interpret(function, np.zeros(3, dtype), *rest)
            else:
                assert_like_numpy(function, lambda rest=rest: (np.zeros(3, dtype), *rest))


ANY = [
    np.array([1.5, -2.0, 0.0]),
    np.array([1, 2, 0]),
    np.array([1.5, 2.5, 3.5], "f4"),
    np.array([True, False, True]),
]
CASTING: dict[str, Callable[..., Any]] = {
    "one operand": lambda x, y, **options: np.sqrt(np.abs(x), **options),
    "two operands": lambda x, y, **options: np.add(x, y, **options),
    "a Python number": lambda x, y, **options: np.multiply(x, 2, **options),
    "two results": lambda x, y, **options: np.divmod(x, np.abs(y) + 1, **options),
    "powers": lambda x, y, **options: np.power(x, np.abs(y), **options),
    "powers in floats": lambda x, y, **options: np.float_power(np.abs(x), y, **options),
    "powers of complex numbers": lambda x, y, **options: np.float_power(np.abs(x) + 1j, 2, **options),
    "into an array": lambda x, y, **options: np.subtract(np.abs(x), y > 0, out=np.zeros(3, "f4"), **options),
}


@pytest.mark.parametrize("function", CASTING.values(), ids=CASTING)
@pytest.mark.parametrize("rule", ["no", "safe", "same_kind", "unsafe"])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_operands_are_converted_by_the_rule_that_is_asked_for(
    rule: str, function: Callable[..., Any]
) -> None:
    for dtype in (None, np.float32, np.int16):
        asked = functools.partial(function, casting=rule, dtype=dtype)
        for left in ANY:
            for right in ANY:
                try:
                    asked(left, right)
                except TypeError:
                    with pytest.raises(TypeError) as caught:
                        jit_in_numpy(asked)(left, right)
                    assert isinstance(caught.value, UserError)
                else:
                    got, wanted = jit_in_numpy(asked)(left, right), asked(left, right)
                    for ours, theirs in zip(np.atleast_1d(got), np.atleast_1d(wanted), strict=True):
                        np.testing.assert_allclose(ours, theirs, rtol=1e-6, strict=True)


def test_exponents_are_not_negative_where_a_mask_holds() -> None:
    def function(x: np.ndarray, n: np.ndarray) -> Any:
        return np.power(x, n, where=n >= 0, out=np.zeros_like(x)), np.power(2, n, where=n > 0, out=x.copy())

    x, n = np.array([2, 3, 5, 7]), np.array([-1, 0, 2, -3])
    assert_like_numpy(function, lambda: (x, n))
    for power in (
        lambda x, n: np.power(x, n, where=n < 0),
        lambda x, n: np.power(x, -1, where=n < 0),
        lambda x, n: np.power(x, n * 1.0, dtype=int, casting="unsafe"),
    ):
        with pytest.raises(ValueError, match="negative integer powers"):
            jit_in_numpy(power)(x, n)
