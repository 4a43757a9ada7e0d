"""Mistakes: the error's class (ours, and the one that NumPy raises), the user's line, and a fix."""

from __future__ import annotations

import contextlib
import inspect
import math
import operator
from collections import Counter
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

import numpy as np
import pytest
from harness import assert_same, trace_and_interpret

from arrayjit.errors import (
    MAX_LINES,
    ConcretizationError,
    DivisionByZero,
    DTypeError,
    IndexOutOfRange,
    IntegerOverflow,
    LeakedArrayError,
    NotAnArray,
    NumberError,
    ReadOnlyError,
    ShapeError,
    UnsupportedError,
    UserError,
)


def branch(x: Any) -> Any:
    if x[0] > 0:
        return x
    return -x


def divide_in_place(n: Any) -> Any:
    n /= 2.5
    return n


def shift_in_place(x: Any) -> Any:
    x += [[1.0, 2.0, 3.0]] * 2


def wrong_part(x: Any) -> None:
    x[1:] = x


def converted(x: Any) -> Any:
    kind = np.float32
    return kind(x)


CYTHON: dict[str, Any] = {}
"""What code that was compiled from a file in Cython would define."""
exec(compile("def chosen(x): raise TypeError('No matching signature found')", "fast.pyx", "exec"), CYTHON)


class Tagged(np.ndarray):
    """A subclass of ndarray."""


Mistake = tuple[Callable[..., Any], type[UserError], type[Exception], str]

MISTAKES: list[Mistake] = [
    (branch, ConcretizationError, TypeError, "a traced value is true"),
    (lambda x: x if x.shape and x[0] else 1, ConcretizationError, TypeError, "a traced value is true"),
    (lambda x: max(x, x + 1), ShapeError, ValueError, "use np.maximum"),
    (lambda x: 1.0 in x, ConcretizationError, TypeError, "a traced value is true"),
    (lambda x: float(x), DTypeError, TypeError, "only 0-dimensional arrays can be converted"),
    (lambda x: int(x), DTypeError, TypeError, "only 0-dimensional arrays can be converted"),
    (lambda x: complex(x), DTypeError, TypeError, "only 0-dimensional arrays can be converted"),
    (lambda x: [1, 2][x.astype(int)], DTypeError, TypeError, "only integer scalar arrays"),
    (lambda x: {x: 1}, DTypeError, TypeError, "unhashable type: 'numpy.ndarray'"),
    (lambda x: f"{x:.3f}", DTypeError, TypeError, "unsupported format string"),
    (lambda x: round(x), DTypeError, TypeError, "np.round"),
    (lambda x: math.sqrt(x), DTypeError, TypeError, "np.sqrt"),
    (lambda x: [1, 2][x.astype(int)[0]], ConcretizationError, TypeError, "np.array(items)[i]"),
    (lambda x: x[: x.astype(int)[1]], ConcretizationError, TypeError, "the shape of a view that is a result"),
    (lambda x: {x[0]: 1}, ConcretizationError, TypeError, "keep the values in an array"),
    (lambda x: f"{x[0]:.3f}", ConcretizationError, TypeError, "as text"),
    (lambda x: x.tobytes(), ConcretizationError, TypeError, "as a NumPy array"),
    (lambda x: x * [1.0, 2.0], ShapeError, ValueError, "broadcast together with shapes (3,) (2,)"),
    (lambda x: x[:2] * x, ShapeError, ValueError, "(2,) (3,)"),
    (lambda x: np.add(x, x, out=x[:2]), ShapeError, ValueError, "non-broadcastable output operand"),
    (shift_in_place, ShapeError, ValueError, "non-broadcastable output operand with shape (3,)"),
    (wrong_part, ShapeError, ValueError, "could not broadcast input array from shape (3,) into shape (2,)"),
    (lambda x: x[::0], ShapeError, ValueError, "slice step cannot be zero"),
    (lambda x: np.arange(0, 3, 0), DivisionByZero, ZeroDivisionError, "a step that is not 0"),
    (lambda x: np.arange(0, 3, np.int64(0)), ShapeError, ValueError, "Maximum allowed size exceeded"),
    (lambda x: np.arange(1e300), ShapeError, ValueError, "Maximum allowed size exceeded"),
    (lambda x: np.arange(0, -math.inf), ShapeError, ValueError, "Maximum allowed size exceeded"),
    (lambda x: np.arange(math.nan), ShapeError, ValueError, "arange: cannot compute length"),
    (lambda x: x * [x, x[:2]], ShapeError, ValueError, "differ in shape"),
    (lambda x: x.astype(int) ** -1, NumberError, ValueError, "negative integer powers"),
    (lambda x: x[3], IndexOutOfRange, IndexError, "index 3 is out of bounds for axis 0 with size 3"),
    (lambda x: x[-4], IndexOutOfRange, IndexError, "index -4 is out of bounds"),
    (lambda x: x[0, 0], IndexOutOfRange, IndexError, "too many indices for array"),
    (lambda x: x[..., 0, ...], IndexOutOfRange, IndexError, "single ellipsis"),
    (lambda x: x[1.5], IndexOutOfRange, IndexError, "only integers, slices"),
    (lambda x: x["a"], IndexOutOfRange, IndexError, "only integers, slices"),
    (lambda x: x[x], IndexOutOfRange, IndexError, "only integers, slices"),
    (lambda x: x[[0, 5]], IndexOutOfRange, IndexError, "index 5 is out of bounds"),
    (lambda x: x[[[0, 1], [1, 2]], [0, 1, 2]], IndexOutOfRange, IndexError, "too many indices"),
    (lambda x: x[None, :][[0, 0], [0, 1, 2]], IndexOutOfRange, IndexError, "shape mismatch"),
    (lambda x: x[[True, False]], IndexOutOfRange, IndexError, "boolean index did not match"),
    (lambda x: x[x[:2] > 0], IndexOutOfRange, IndexError, "boolean index did not match"),
    (lambda x: x.astype(int).__iadd__(1.5), DTypeError, TypeError, "same_kind"),
    (lambda x: np.add(x, 1, out=x.astype(int)), DTypeError, TypeError, "Cannot cast ufunc 'add' output"),
    (lambda x: x.astype(int).astype("f4", casting="safe"), DTypeError, TypeError, "to the rule 'safe'"),
    (lambda x: x.__setitem__(0, 1j), DTypeError, TypeError, "complex"),
    (lambda x: x.__iadd__(1j), DTypeError, TypeError, "same_kind"),
    (lambda x: (x + 1j) % 2, DTypeError, TypeError, "remainder of complex128"),
    (lambda x: x + "a", DTypeError, TypeError, "a str cannot take part"),
    (lambda x: x + None, DTypeError, TypeError, "a NoneType cannot take part"),
    (lambda x: x + np.array(["a"]), DTypeError, TypeError, "<U1 is not supported"),
    (lambda x: x << 1, DTypeError, TypeError, "left_shift of float64"),
    (lambda x: np.add(x, 1, where=x), DTypeError, TypeError, "must be bool"),
    (lambda x: x.astype("g"), DTypeError, TypeError, "longdouble"),
    (lambda x: x.astype(">f4"), DTypeError, TypeError, "result.astype('>f4')"),
    (lambda x: np.zeros(3, ">i2"), DTypeError, TypeError, "byte order of the machine"),
    (lambda x: np.array([1, 2], ">i2"), DTypeError, TypeError, "byte order of the machine"),
    (lambda x: x.view(">i8"), DTypeError, TypeError, "byte order of the machine"),
    (lambda x: len(x[0, ...]), DTypeError, TypeError, "len() of unsized object"),
    (lambda x: list(x[0, ...]), DTypeError, TypeError, "iteration over a 0-d array"),
    (lambda x: x.astype("u1") + 300, IntegerOverflow, OverflowError, "300 out of bounds for uint8"),
    (lambda x: x.astype("i8") + 2**63, IntegerOverflow, OverflowError, "out of bounds for int64"),
    (lambda x: np.linalg.eig(x), UnsupportedError, TypeError, "np.linalg.eig is not supported"),
    (lambda x: np.linalg.eigvals(x), UnsupportedError, NotImplementedError, "np.linalg.eigvals"),
    (lambda x: x.byteswap(), UnsupportedError, TypeError, "ndarray.byteswap"),
    (lambda x: setattr(x, "shape", (3, 1)), UnsupportedError, TypeError, "x.reshape"),
    (lambda x: setattr(x, "dtype", "i8"), UnsupportedError, TypeError, "x.view(dtype)"),
    (lambda x: memoryview(x), UnsupportedError, TypeError, "a bytes-like object is required, not 'numpy"),
    (lambda x: np.frombuffer(x), UnsupportedError, TypeError, "a bytes-like object is required, not 'numpy"),
    (lambda x: ", ".join(x), UnsupportedError, TypeError, "expected str instance, numpy.ndarray found"),
    (lambda x: np.ogrid[0 : float(x[0])], ConcretizationError, TypeError, "as a float"),
    (lambda x: CYTHON["chosen"](x), UnsupportedError, TypeError, "does not take it: No matching signature"),
    (converted, NotAnArray, TypeError, "fix: write np.asarray(x).astype(kind)"),
    (lambda x: round(x[0] + 1j), DTypeError, TypeError, "doesn't define __round__ method"),
    (lambda x: x[True, 0], UnsupportedError, TypeError, "single bool"),
    (lambda x: x[0].__setitem__(..., 1), DTypeError, TypeError, "item assignment"),
    (lambda x: setattr(x, "imag", 1), DTypeError, TypeError, "does not have imaginary part to set"),
    (lambda x: np.add(x, np.arange(3), casting="no"), DTypeError, TypeError, "casting rule 'no'"),
    (lambda x: np.isnat(x), UnsupportedError, TypeError, "ufunc isnat"),
    (lambda x: x.sort(axis=None), DTypeError, TypeError, "'NoneType' object cannot be interpreted"),
    (lambda x: x.partition(1, axis=None), DTypeError, TypeError, "'NoneType' object cannot be interpreted"),
    (lambda x: x.item(), ShapeError, ValueError, "size 1"),
    (lambda x: operator.delitem(x, 0), ShapeError, ValueError, "np.delete"),
]  # fmt: skip


@pytest.mark.parametrize(("function", "ours", "numpys", "words"), MISTAKES)
def test_mistakes(
    function: Callable[..., Any], ours: type[UserError], numpys: type[Exception], words: str
) -> None:
    x = np.arange(3.0)
    with pytest.raises(ours) as caught:
        trace_and_interpret(function, x)
    error = caught.value
    assert isinstance(error, numpys)
    text = str(error)
    assert words in text
    assert len(text.splitlines()) <= MAX_LINES
    lines, first = inspect.getsourcelines(function)
    assert error.loc is not None
    assert error.loc.file == __file__
    assert first <= error.loc.line < first + len(lines)
    assert_same(x, np.arange(3.0))


def hides_a_condition(x: Any) -> Any:
    with contextlib.suppress(TypeError):
        return x if x[0] > 0 else -x
    return x


def hides_what_is_unsupported(x: Any) -> Any:
    try:
        return hides_a_condition(np.linalg.eigvals(x))
    except Exception:
        return x


@pytest.mark.parametrize("function", [hides_a_condition, hides_what_is_unsupported])
def test_code_that_catches_what_numpy_does_not_raise_is_not_compiled(function: Callable[..., Any]) -> None:
    with pytest.raises((ConcretizationError, UnsupportedError), match=f"{function.__name__} catches this"):
        trace_and_interpret(function, np.arange(3.0))


def alone(x: Any) -> Any:
    try:
        return x.item()
    except ValueError:
        return x + x[:1]


def number_or_sum(x: Any) -> Any:
    try:
        return float(x)
    except TypeError:
        return x.sum()


def counted(x: Any) -> Any:
    try:
        return {x: 1}[x]
    except TypeError:
        return x[0]


def written(x: Any) -> Any:
    try:
        x[0][...] = 1
    except TypeError:
        return x + 1
    return x


def fitting(x: Any) -> Any:
    try:
        return x + x[:2]
    except ValueError:
        return x[0] + float(x[1])


def catches_one_after_the_other(x: Any) -> Any:
    uses: list[Callable[[], Any]] = [
        lambda: x.item(), lambda: float(x), lambda: int(x), lambda: complex(x), lambda: {x: 1}, lambda: x[9],
        lambda: operator.delitem(x, 0), lambda: bool(x), lambda: x.reshape(2, 2), lambda: x @ x[:2],
    ]  # fmt: skip
    raised = []
    for use in uses:
        try:
            use()
        except (TypeError, ValueError, IndexError) as error:
            raised.append([kind for kind in (TypeError, ValueError, IndexError) if isinstance(error, kind)])
    return x * sum(10**place * len(str(kinds)) for place, kinds in enumerate(raised))


@pytest.mark.parametrize(
    "function", [alone, number_or_sum, counted, written, fitting, catches_one_after_the_other]
)
def test_code_may_catch_what_numpy_raises(function: Callable[..., Any]) -> None:
    x = np.arange(3.0)
    assert_same(trace_and_interpret(function, x), function(x))


BAD_ARGUMENTS: list[tuple[Any, type[UserError], str]] = [
    (np.array(["a"]), DTypeError, "argument x: dtype <U1 is not supported"),
    (np.array([None]), DTypeError, "argument x: dtype object is not supported"),
    (np.ones(2, np.clongdouble), DTypeError, "argument x: dtype"),
    (np.array(["2020-01-01"], "M8[D]"), DTypeError, "argument x: dtype datetime64[D]"),
    (np.zeros(2, [("a", "f4")]), DTypeError, "argument x"),
    (np.longdouble(1), DTypeError, "argument x: dtype"),
    ([np.ones(2), np.ones(2, np.longdouble)], DTypeError, "argument x_1"),
    (np.ma.array([1.0]), UnsupportedError, "argument x is a MaskedArray"),
    (np.ones(2).view(Tagged), UnsupportedError, "argument x is a Tagged"),
]


@pytest.mark.parametrize(("argument", "ours", "words"), BAD_ARGUMENTS)
def test_arguments_that_are_not_taken(argument: Any, ours: type[UserError], words: str) -> None:
    with pytest.raises(ours) as caught:
        trace_and_interpret(lambda x: x, argument)
    assert words in str(caught.value)
    assert caught.value.fix


def test_arguments_that_may_not_be_written() -> None:
    def write(x: np.ndarray) -> None:
        x[0] = 1

    def add(x: np.ndarray) -> None:
        x += 1

    def copy_where(x: np.ndarray) -> None:
        np.copyto(x, 1, where=x > 0)

    read_only = np.arange(3.0)
    read_only.flags.writeable = False
    with pytest.raises(ReadOnlyError, match="assignment destination is read-only"):
        trace_and_interpret(copy_where, read_only)
    with pytest.raises(ReadOnlyError, match="assignment destination is read-only"):
        trace_and_interpret(write, read_only)
    with pytest.raises(ValueError, match="output array is read-only"):
        trace_and_interpret(add, read_only)
    overlapping_itself = np.lib.stride_tricks.as_strided(np.arange(5.0), (3, 3), (8, 8))
    with pytest.raises(UnsupportedError, match="share memory with one another"):
        trace_and_interpret(add, overlapping_itself)


def test_shared_memory_of_two_dtypes_may_only_be_read() -> None:
    def write(x: np.ndarray, y: np.ndarray) -> None:
        x += 1

    memory = np.arange(4.0)
    bits = memory.view("i8")
    assert_same(trace_and_interpret(lambda x, y: (x * 2, y + 1), memory, bits), (memory * 2, bits + 1))
    with pytest.raises(UnsupportedError, match="shares memory with another argument"):
        trace_and_interpret(write, memory, bits)


def test_exceptions_of_the_users_code_pass_through() -> None:
    def program(x: np.ndarray) -> None:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        trace_and_interpret(program, np.arange(3.0))
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'y'"):
        trace_and_interpret(lambda x, y: x, np.arange(3.0))
    with pytest.raises(AttributeError, match="'ndarray' object has no attribute 'foo'"):
        trace_and_interpret(lambda x: x.foo, np.arange(3.0))


def test_the_line_is_the_user_s_where_a_module_of_python_s_needs_a_number() -> None:
    def program(x: Any) -> Any:
        return Counter(x.tolist())

    with pytest.raises(ConcretizationError) as caught:
        trace_and_interpret(program, np.arange(3))
    assert caught.value.loc is not None
    assert caught.value.loc.file == __file__


def test_after_an_error_the_next_trace_is_clean() -> None:
    with pytest.raises(ConcretizationError):
        trace_and_interpret(branch, np.arange(3.0))
    assert_same(trace_and_interpret(lambda x: x + 1, np.arange(3.0)), np.arange(3.0) + 1)


def test_a_symbolic_array_says_what_it_is() -> None:
    class Seen(Exception):
        pass

    def program(image: np.ndarray, steps: int) -> np.ndarray:
        raise Seen(repr(image), f"{steps}", str(image[0, 0]), repr(image + 1))

    with pytest.raises(Seen) as seen:
        trace_and_interpret(program, np.ones((2, 3), "f4"), 3)
    assert list(seen.value.args) == [
        "<traced float32 array image of shape (2, 3)>",
        "3",
        "<traced float32 scalar>",
        "<traced float32 array of shape (2, 3)>",
    ]


@pytest.mark.parametrize(
    "program",
    [
        lambda x: str(x[0]),
        lambda x: (x, {f"at {x[0]}": 1}),
        lambda x: [x.sum(), repr(x)],
    ],
)
def test_the_text_of_a_traced_value_is_no_result(program: Callable[..., Any]) -> None:
    with pytest.raises(ConcretizationError, match="the text of a value that is known only when it runs"):
        trace_and_interpret(program, np.ones(3))


def test_an_index_out_of_range_at_run_time() -> None:
    def pick(x: np.ndarray, index: np.ndarray) -> np.ndarray:
        return x[index]

    with pytest.raises(IndexError, match="out of bounds for axis 0 with size 3"):
        trace_and_interpret(pick, np.arange(3.0), np.array([0, 3]))


def test_a_leaked_array_names_itself() -> None:
    queue: SimpleQueue[Any] = SimpleQueue()
    keep = queue.put  # the trace does not look into it

    def program(x: np.ndarray) -> None:
        keep(x)

    trace_and_interpret(program, np.arange(3.0))
    kept = [queue.get()]
    with pytest.raises(LeakedArrayError, match="outside the jitted function"):
        np.sin(kept[0])
    with pytest.raises(LeakedArrayError, match="of another call"):
        trace_and_interpret(lambda x: x + kept[0], np.arange(3.0))
