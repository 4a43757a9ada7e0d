"""Views, writes in place and aliasing mean what they mean in NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from harness import assert_like_numpy, trace_and_interpret
from hypothesis import given, settings
from hypothesis import strategies as st
from refusing import assert_raises_like_numpy


def grid(*shape: int, dtype: str = "f8") -> np.ndarray:
    return np.arange(np.prod(shape), dtype=dtype).reshape(shape)


READS: dict[str, Callable[[np.ndarray], Any]] = {
    "integer": lambda x: (x[1], x[-1, 2], x[1][0]),
    "slice": lambda x: (x[1:], x[:-1], x[:, 1:3], x[5:], x[:0]),
    "step": lambda x: (x[::2], x[:, ::-1], x[::-2, 3:0:-2]),
    "ellipsis": lambda x: (x[...], x[..., 0], x[0, ...], x[0, 0, ...]),
    "newaxis": lambda x: (x[None], x[:, None, 1], x[0, None]),
    "view of a view": lambda x: x[1:][::-1, 1:].T[1],
    "whole": lambda x: x[()],
    "integer list": lambda x: (x[[0, -1, 1]], x[[[0], [1]]], x[[]]),
    "two lists": lambda x: x[[0, 1, 2], [3, 2, -4]],
    "list and slice": lambda x: x[1:, [0, 0]],
    "bool list": lambda x: x[[True, False, True]],
    "iteration": lambda x: [row + 1 for row in x],
    "unpacking": lambda x: tuple(cell for row in x for cell in row[:1]),
}


@pytest.mark.parametrize("read", READS.values(), ids=READS)
@pytest.mark.parametrize("dtype", ["f8", "i4", "u1", "?"])
def test_reading_by_index(read: Callable[[np.ndarray], Any], dtype: str) -> None:
    assert_like_numpy(read, lambda: (grid(3, 4, dtype="i8").astype(dtype),))


@pytest.mark.parametrize(
    "key",
    [
        lambda i: (i,),
        lambda i: (slice(None), i),
        lambda i: (0, slice(None), i),
        lambda i: (i, slice(None), i),
        lambda i: (None, i, 1),
        lambda i: (slice(1, None), i, i.T),
    ],
)
def test_reading_by_integer_arrays(key: Callable[[Any], Any]) -> None:
    assert_like_numpy(lambda x, i: x[key(i)], lambda: (grid(3, 3, 3), np.array([[0, -1], [2, 1]])))


def writes(x: np.ndarray) -> Any:
    x[0] = 7
    x[1:, 1] = x[0, 1:3]
    x[:, 0] = x[2, 0] = 5
    x[x > 6] = -1
    x[...] += x[::-1]
    x[1:] = x[:-1]
    x[:, ::2] *= 2
    row = x[1]
    row += 1
    row[:] = x[2]
    last = x[2, 3]
    last += 100
    return row, last


def shifted(x: np.ndarray) -> np.ndarray:
    x[1:] += x[:-1]
    return x


def workspace(x: np.ndarray) -> np.ndarray:
    before = x.copy()
    sums = x + before
    x[:] = 0
    return sums - x + before


def chained(x: np.ndarray) -> Any:
    y = x[1:, 0] = x[0, 1:3] = x[2, 2:] * 2
    return y


def outputs(x: np.ndarray) -> Any:
    np.add(x, 1, out=x, where=x > 3)
    y = np.multiply(x[0], x[1], out=x[2])
    fraction, exponent = np.frexp(x)
    quotient, rest = np.divmod(x, 3, out=(x, fraction))
    return y, exponent, quotient is x, rest is fraction, fraction


def rebinding(x: np.ndarray) -> Any:
    y = x
    x = x + 1
    y -= x
    total = x[0, 0]
    total -= 3
    return x, y, total


def scattered(x: np.ndarray) -> Any:
    x[[0, 2]] = x[[2, 0]]
    x[[0, 0, 1], [1, 1, -1]] = [5, 6, 7]
    x[[True, False, True], 1:3] = x[1, 1:3] * 10
    x[[[0], [1]], [0, 3]] += 100
    x[:, [0, 1]] = x[:, [1, 0]]
    return x


PROGRAMS = [scattered, writes, shifted, workspace, chained, outputs, rebinding]
LAYOUTS: dict[str, Callable[[], np.ndarray]] = {
    "C order": lambda: grid(3, 4),
    "Fortran order": lambda: np.asfortranarray(grid(3, 4)),
    "strided": lambda: grid(6, 8)[::2, 1::2],
    "reversed": lambda: grid(3, 4)[::-1, ::-1],
    "byte-swapped": lambda: grid(3, 4).astype(">f8"),
    "byte-swapped and strided": lambda: grid(3, 8).astype(">f8")[:, ::2],
    "unaligned": lambda: np.frombuffer(bytearray(97), "f8", 12, 1).reshape(3, 4),
}


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_writing_in_place(program: Callable[..., Any], layout: Callable[[], np.ndarray]) -> None:
    assert_like_numpy(program, lambda: (layout(),))


def overlapping(kind: str) -> tuple[np.ndarray, np.ndarray]:
    x = grid(12)
    return {
        "the same array": lambda: (x, x),
        "equal views": lambda: (x[2:8], x[2:8]),
        "shifted": lambda: (x[1:], x[:-1]),
        "reversed": lambda: (x, x[::-1]),
        "interleaved": lambda: (x[::2], x[1::2]),
        "crossing steps": lambda: (x[:4], x[:12:3]),
        "transposed": lambda: (x[:9].reshape(3, 3), x[:9].reshape(3, 3).T),
        "apart": lambda: (x, grid(12)),
    }[kind]()


@pytest.mark.parametrize(
    "kind",
    [
        "the same array",
        "equal views",
        "shifted",
        "reversed",
        "interleaved",
        "crossing steps",
        "transposed",
        "apart",
    ],
)
def test_arguments_that_share_memory(kind: str) -> None:
    def both_written(a: np.ndarray, b: np.ndarray) -> Any:
        a += b
        b[1:] -= a[:-1]
        return a[::-1], b, a + b

    assert_like_numpy(both_written, lambda: overlapping(kind))


def test_the_same_object_passed_twice_is_one_object() -> None:
    x = grid(3)
    a, b, same = trace_and_interpret(lambda a, b: (a, b, a is b), x, x)
    assert a is x
    assert b is x
    assert same is True


def test_results_that_share_memory() -> None:
    def views(x: np.ndarray) -> Any:
        y = x * 2
        return y, y[1:], y.T, x[0], x

    assert_like_numpy(views, lambda: (grid(3, 3),))


def test_read_only_arguments_are_read() -> None:
    x = grid(4)
    x.flags.writeable = False
    assert_like_numpy(lambda x: (x + 1, x[1:]), lambda: (x,))


def test_a_broadcast_argument_is_read() -> None:
    assert_like_numpy(lambda x: x * x, lambda: (np.broadcast_to(grid(3), (2, 3)),))


@pytest.mark.parametrize("shape", [(), (0,), (1,), (0, 3), (1, 1), (2, 0, 2)])
def test_empty_and_small_shapes(shape: tuple[int, ...]) -> None:
    def program(x: np.ndarray) -> Any:
        y = x + 1
        x *= 2
        x[...] = x - y
        return y, x

    assert_like_numpy(program, lambda: (grid(*shape),))


def slices(size: int) -> st.SearchStrategy[slice]:
    bound = st.none() | st.integers(-size - 1, size + 1)
    return st.builds(slice, bound, bound, st.sampled_from([None, 1, 2, -1, -2]))


steps = st.tuples(
    st.sampled_from(["slice", "transpose", "add", "assign", "copy", "sum", "row"]),
    st.integers(0, 5),
    st.integers(0, 5),
    slices(4),
    slices(3),
)


def run_steps(x: np.ndarray, y: np.ndarray, program: list[Any]) -> Any:
    """A program over a growing list of arrays that view one another."""
    known = [x, y]
    for name, left, right, rows, columns in program:
        a, b = known[left % len(known)], known[right % len(known)]
        match name:
            case "slice":
                known.append(a[rows, columns])
            case "transpose":
                known.append(a.T)
            case "copy":
                known.append(a.copy())
            case "sum" if a.shape == b.shape:
                known.append(a + b)
            case "add" if a.shape == b.shape:
                a += b
            case "assign" if a.shape == b.shape:
                a[rows] = b[rows]
            case "row" if len(a) > 1:
                a[1:] -= a[:-1]
            case _:
                pass
    return known


@settings(max_examples=60, deadline=None)
@given(st.lists(steps, max_size=8), st.sampled_from(["apart", "same", "transposed", "shifted"]))
def test_random_programs_of_views_and_writes(program: list[Any], arguments: str) -> None:
    def make() -> tuple[np.ndarray, np.ndarray]:
        x = grid(4, 3)
        memory = grid(5, 3)
        return {
            "apart": lambda: (x, grid(4, 3)),
            "same": lambda: (x, x),
            "transposed": lambda: (grid(4, 4)[:, :3], grid(4, 4).T[:, :3]),
            "shifted": lambda: (memory[1:], memory[:-1]),
        }[arguments]()

    assert_like_numpy(lambda x, y: run_steps(x, y, program), make)


@pytest.mark.parametrize(
    "number",
    [
        *(np.int16(-200), np.uint8(200), np.int64(2**40 + 3), np.uint64(2**63 + 1)),
        *(
            np.float64(-128.9),
            np.float16(300),
            np.float32(2**31),
            np.float64(-(2.0**63)),
            np.float64(2.0**63),
        ),
        *(np.float64(np.inf), np.float32(np.nan)),
    ],
    ids=repr,
)
@pytest.mark.parametrize("dtype", ["u1", "i1", "u4", "i4", "u8", "i8"])
@pytest.mark.parametrize(
    "key", [1, np.array(1), slice(2), [0, 2], [True, False, True], slice(0, 0)], ids=repr
)
def test_storing_numbers_of_other_dtypes(number: Any, dtype: str, key: Any) -> None:
    """Cells and slices of integers with a sign refuse what does not fit, others take its lowest bits."""

    def stored(x: np.ndarray, numbers: np.ndarray) -> np.ndarray:
        x[key] = numbers[0]
        return x

    def make() -> tuple[np.ndarray, np.ndarray]:
        return np.arange(3).astype(dtype), np.array([number])

    try:
        stored(*make())
    except (OverflowError, ValueError) as refused:
        words = "NaN" if np.isnan(number) else rf"out of bounds for {np.dtype(dtype).name}"
        with pytest.raises(type(refused), match=words):
            trace_and_interpret(stored, *make())
    else:
        assert_like_numpy(stored, make)


LISTS: dict[str, Any] = {
    "large": lambda x, v: [300, 1],
    "infinite": lambda x, v: [1.5, np.inf],
    "no number": lambda x, v: (np.nan, 1),
    "negative": lambda x, v: [1, -1],
    "complex": lambda x, v: [1j, 2],
    "traced": lambda x, v: [v[0], 3],
    "fit": lambda x, v: [2.75, 1],
}
WRITES: dict[str, Any] = {
    "slice": lambda x, values: x.__setitem__(slice(1, 3), values),
    "positions": lambda x, values: x.__setitem__([3, 0], values),
    "mask": lambda x, values: x.__setitem__(x > 1, values),
    "place": lambda x, values: np.place(x, x > 1, values),
    "put": lambda x, values: np.put(x, [1, 2], values),
    "putmask": lambda x, values: np.putmask(x, x > 1, values),
    "put along": lambda x, values: np.put_along_axis(x, np.array([1, 2]), values, 0),
    "insert": lambda x, values: np.insert(x, [1, 2], values),
    "insert one": lambda x, values: np.insert(x, 1, values[0]),
}


@pytest.mark.parametrize("dtype", ["u1", "i1", "i8"])
@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
@pytest.mark.parametrize("values", LISTS.values(), ids=LISTS)
def test_numbers_in_lists_must_fit(values: Any, write: Any, dtype: str) -> None:
    """NumPy makes arrays of lists in the dtype of the array that takes them."""

    def stored(x: np.ndarray, v: np.ndarray) -> Any:
        return write(x, values(x, v)), x

    def make() -> tuple[np.ndarray, np.ndarray]:
        return np.arange(4).astype(dtype), np.array([-1e300])

    try:
        with np.errstate(all="ignore"):
            stored(*make())
    except (OverflowError, ValueError, TypeError) as refused:
        with pytest.raises(type(refused)):
            trace_and_interpret(stored, *make())
    else:
        assert_like_numpy(stored, make)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", ["u2", "i1", "f4", "c8"])
@pytest.mark.parametrize("value", [-2, 300, np.inf, 1j, [-1, 300, 2.5, 1j], np.float64(-2.5)], ids=repr)
def test_parts_are_written_as_arrays_are_converted(dtype: str, value: Any) -> None:
    """Until NumPy 2.4, unlike cells and slices, which numbers must fit."""

    def written(x: np.ndarray) -> np.ndarray:
        x.real = value
        x.real += x.real
        return x

    try:
        written(np.arange(4).astype(dtype))
    except (OverflowError, TypeError) as refused:
        with pytest.raises(type(refused)):
            trace_and_interpret(written, np.arange(4).astype(dtype))
    else:
        assert_like_numpy(written, lambda: (np.arange(4).astype(dtype),))


@pytest.mark.filterwarnings("ignore:Conversion of an array")
@pytest.mark.parametrize(
    "value", [np.ones(1), np.ones((1, 1)), [1], [[1.0]], (1,), ([1],), [[[2]]], [np.ones(1)], np.ones(2)]
)
@pytest.mark.parametrize("dtype", ["f8", "i4", "c16", "?"])
@pytest.mark.parametrize(
    "key", [(1, 2), (np.array(1), 2), (1, 2, ...), (1, None, 2), 0, (slice(2, 3), 1), ([1], [2])]
)
def test_parts_take_what_has_more_axes_where_they_do_in_numpy(value: Any, dtype: str, key: Any) -> None:
    def assigned(x: np.ndarray, value: Any) -> None:
        x[key] = value

    try:
        assigned(np.zeros((3, 4), dtype), value)
    except (TypeError, ValueError) as error:
        words = "" if np.size(value) > 1 else str(error).rstrip(".")
        assert_raises_like_numpy(assigned, words, np.zeros((3, 4), dtype), value)
    else:
        assert_like_numpy(assigned, lambda: (np.zeros((3, 4), dtype), value))
