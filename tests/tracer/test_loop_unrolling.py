"""The rules of docs/loops.md: when loops are unrolled, and what integers may be."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from rolling import TARGETS, assert_like_numpy, assert_unrolled, length

import arrayjit
from arrayjit.errors import ConcretizationError, UnsupportedError

x10 = np.arange(10.0) - 3
square = np.arange(36.0).reshape(6, 6)

# ---- when a loop is unrolled -------------------------------------------------------------------------

factors = [1.0, 2.0, 0.5]
named = {0: 3.0, 1: -1.0, 2: 0.0}


def list_index(x: Any) -> None:
    for i in range(len(x)):
        x[i] *= factors[i % 3]


def dict_key(x: Any) -> None:
    for i in range(len(x)):
        x[i] += named[i % 3]


def text(x: Any) -> None:
    for i in range(len(x)):
        x[i] += len(f"{'*' * i}")


def shape(x: Any) -> Any:
    total = 0.0
    for i in range(1, len(x)):
        total = total + np.outer(x[:i], x).reshape(len(x), i)[i].sum()
    return total


@pytest.mark.parametrize("program", [list_index, dict_key, text, shape])
def test_a_loop_is_unrolled_where_its_index_is_needed(program: Callable[[Any], Any]) -> None:
    assert_unrolled(program)
    assert_like_numpy(program, (x10,))


def test_only_the_loop_whose_index_is_needed_is_unrolled() -> None:
    def program(m: Any) -> None:
        for i in range(6):
            for j in range(len(m)):
                m[j] += factors[i % 3]

    assert length(program, np.ones((9, 9))) == length(program, np.ones((50, 50)))
    assert_like_numpy(program, (square,))


def test_starting_again_is_not_seen() -> None:
    class Scale:
        def __init__(self) -> None:
            self.history = [1.0]

    def program(x: Any) -> Any:
        scale = Scale()
        for _ in range(2):
            scale.history.append(2.0)
        for i in range(len(x)):
            x[i] *= scale.history[i % 2]
        return len(scale.history)

    assert_like_numpy(program, (x10,))


def broken_off(x: Any) -> Any:
    for i in range(len(x)):
        if factors[i % 3] < 1 and i > 6:
            break
        x[i] *= 2
    return i


def skipped(x: Any) -> Any:
    for i in range(len(x)):
        if factors[i % 3] == 2.0:
            continue
        x[i] *= 2
    return i


def returned(x: Any) -> Any:
    for i in range(len(x)):
        x[i] *= 2
        if 2**i > 60:
            return x[i]
    return None


@pytest.mark.parametrize("program", [broken_off, skipped, returned])
def test_leaving_a_loop_unrolls_it(program: Callable[[Any], Any]) -> None:
    assert_like_numpy(program, (x10,), (x10[:5],))


def test_else_runs_unless_the_loop_was_left() -> None:
    def program(x: Any) -> Any:
        for i in range(len(x)):
            x[i] += 1
        else:
            x *= 2
        for i in range(len(x)):
            if i == 5:
                break
        else:
            x *= 3
        return x[::2]

    assert_like_numpy(program, (x10,), (x10[:5],))


def appended_and_counted(x: Any) -> Any:
    parts = []
    for i in range(len(x)):
        parts.append(x[i] * 2)
        parts = list(parts)
    return np.stack(parts)


def keys_added(x: Any) -> Any:
    found = {}
    for i in range(len(x)):
        found[i] = x[i] * 2
    return found[5], len(found)


@pytest.mark.parametrize("program", [appended_and_counted, keys_added])
def test_containers_that_grow_unroll_the_loop(program: Callable[[Any], Any]) -> None:
    assert_unrolled(program)
    assert_like_numpy(program, (x10,))


def test_an_iterator_that_the_body_advances_unrolls_it() -> None:
    def from_a_generator(x: Any) -> Any:
        squares = (n * n for n in range(100))
        for i in range(len(x)):
            x[i] += next(squares)

    def from_another_array(x: Any) -> Any:
        backward = iter(x[::-1].copy())
        for i in range(len(x)):
            x[i] -= next(backward)

    for program in (from_a_generator, from_another_array):
        assert_like_numpy(program, (x10,))


def test_too_many_iterations_to_unroll() -> None:
    assert_like_numpy(list_index, (np.ones(1024),))
    with pytest.raises(UnsupportedError, match="at most 1024") as caught:
        arrayjit.jit(list_index)(np.ones(1025))
    assert "factors[i % 3]" in str(caught.value)
    assert "fix:" in str(caught.value)


def test_unrolling_compiles_the_bound_in() -> None:
    def program(x: Any, k: int) -> Any:
        for i in range(k):
            x[i] *= factors[i % 3]
        return x[0]

    jitted = assert_like_numpy(program, (x10, 6), (x10, 0), (x10, 6), (x10, 7))
    assert jitted.stats().compiles == 3 * len(TARGETS)


def test_a_bound_read_from_an_array_cannot_be_unrolled() -> None:
    def program(x: Any, ends: Any) -> None:
        for i in range(ends[0]):
            x[i] *= factors[i % 3]

    with pytest.raises(ConcretizationError) as caught:
        arrayjit.jit(program)(x10.copy(), np.array([5]))
    assert "fix:" in str(caught.value)


# ---- integers ----------------------------------------------------------------------------------------


def test_bounds_do_not_compile_again() -> None:
    def program(x: Any, k: int) -> Any:
        total = 0.5 * x[0]
        for i in range(k):
            total = total + x[i]
        for i in range(k, len(x)):
            x[i - k] += total
        return total, x[k:].sum(), x[:k][::-1] @ x[:k], x[k - 1]

    jitted = assert_like_numpy(program, *((x10, k) for k in (3, 0, 1, 9, 10)))
    assert jitted.stats().compiles == len(TARGETS)


def test_a_needed_number_is_compiled_in() -> None:
    def indexed(x: Any, k: int) -> Any:
        return x * factors[k]

    def branched(x: Any, k: int) -> Any:
        return x if k > 1 else -x

    def sized(x: Any, k: int) -> Any:
        return np.zeros(k) + x[0]

    def named(x: Any, k: int) -> Any:
        return {f"{k}": x + 1}

    def repeated(x: Any, k: int) -> Any:
        return np.array([1.0] * k)

    for program in (indexed, branched, sized, named, repeated):
        jitted = assert_like_numpy(program, (x10, 1), (x10, 2), (x10, 1))
        assert jitted.stats().compiles == 2 * len(TARGETS)
        assert "k" in jitted.stats().reasons[1].reason


def test_bounds_and_indices_read_from_arrays() -> None:
    def rows(data: Any, starts: Any, columns: Any, x: Any) -> Any:
        y = np.zeros(len(starts) - 1)
        for i in range(len(starts) - 1):
            y[i] = data[starts[i] : starts[i + 1]] @ x[columns[starts[i] : starts[i + 1]]]
            for j in range(starts[i], starts[i + 1]):
                y[i] += data[j] * x[columns[j]]
        return y

    starts = np.array([0, 2, 2, 5, 6, 7, 9])
    columns = np.array([1, 3, -1, 0, 2, 2, 5, 4, 0])
    jitted = assert_like_numpy(rows, (x10[:9], starts, columns, x10[1:7]))
    with pytest.raises(IndexError, match="out of bounds"):
        jitted(x10[:9], starts, columns + 4, x10[1:7])


def test_ints_of_64_bits() -> None:
    def doubled(x: Any, k: int) -> Any:
        n = 1
        for _ in range(k):
            n = n * 2
        return x + n

    jitted = assert_like_numpy(doubled, (x10, 62), (x10, 5))
    with pytest.raises(OverflowError, match="64 bits"):
        jitted(x10, 64)

    def counted(k: int) -> int:
        n = 7
        for _ in range(k):
            n -= 8
        return n

    jitted = arrayjit.jit(counted)
    assert jitted(2**60) == 7 - 2**63
    assert jitted(-1) == 7
    with pytest.raises(OverflowError, match="64 bits"):
        jitted(2**60 + 1)


def test_positions_in_rows_that_arguments_tell() -> None:
    def flat(x: Any, rows: int, columns: int, start: int) -> Any:
        y = np.zeros_like(x)
        for i in range(rows):
            for j in range(columns):
                y[start + i * columns + j] = 2 * x[start + i * columns + j] + 1
        return y

    cells = np.arange(120.0)
    sizes = [
        (10, 12, 0),
        (3, 40, 0),
        (2, 30, 60),
        (4, 10, -40),
        (3, 20, -20),
        (0, 7, 500),
        (7, 0, 500),
        (9, 9, -5),
    ]
    jitted = assert_like_numpy(flat, *((cells, *each) for each in sizes))
    for rows, columns, start in ((10, 13, 0), (1, 10, 111), (1, 10, -121)):
        with pytest.raises(IndexError, match="out of bounds"):
            jitted(cells, rows, columns, start)
    for rows, columns, start in ((1, 3, 2**63 - 2), (3, 2**62, -(2**63)), (2, 2**63 - 1, 0)):
        with pytest.raises((IndexError, OverflowError)):
            jitted(cells, rows, columns, start)


def test_positions_in_columns_that_arguments_tell() -> None:
    def flat(x: Any, rows: int, columns: int, start: int) -> Any:
        y = np.zeros_like(x)
        for i in range(3):
            for j in range(columns):
                y[start + j * rows + i] += x[i * columns + (j - start)]
        return y

    cells = np.arange(120.0)
    sizes = [(3, 40, 0), (10, 12, 0), (-3, 20, 80), (-2, 15, -5), (0, 9, 7), (1, 0, 500), (2, 20, -60)]
    jitted = assert_like_numpy(flat, *((cells, *each) for each in sizes))
    for rows, columns, start in ((14, 10, 0), (-14, 10, 0), (3, 40, 10), (2, 9, -100)):
        with pytest.raises(IndexError, match="out of bounds"):
            jitted(cells, rows, columns, start)
    for rows, columns, start in ((2**62, 9, 0), (2**60, 17, 0), (-(2**63), 3, 1)):
        with pytest.raises((IndexError, OverflowError)):
            jitted(cells, rows, columns, start)


def test_mistakes_are_found_in_loops_that_may_not_run() -> None:
    def program(x: Any, counts: Any) -> Any:
        for _ in range(counts[0]):
            x[:3] = x[:4]
        return x

    def bounded(x: Any, k: int) -> Any:
        for _ in range(k):
            x[:3] = x[:4]
        return x

    assert program(x10, [0]) is x10
    with pytest.raises(ValueError, match="broadcast"):
        arrayjit.jit(program)(x10, np.array([0]))
    assert_like_numpy(bounded, (x10, 0))


def test_an_index_is_out_of_range_where_the_loop_runs() -> None:
    def beyond(x: Any, counts: Any) -> Any:
        for _ in range(counts[0]):
            x[len(x)] = 0
        return x

    def some(x: Any, counts: Any) -> Any:
        total = x.sum()
        for _ in range(counts[0]):
            total += x[[1, -11, 2]].sum()
        return total

    for program in (beyond, some):
        jitted = assert_like_numpy(program, (x10, np.array([0])))
        with pytest.raises(IndexError, match=r"index (10|-11) is out of bounds for axis 0 with size 10"):
            jitted(x10, np.array([1]))


def test_a_try_sees_what_tracing_finds() -> None:
    def at(x: Any, k: int) -> Any:
        try:
            return x[k]
        except IndexError:
            return -1.0

    def beyond(x: Any) -> Any:
        return at(x, len(x))

    assert_like_numpy(beyond, (x10,))
    assert at(x10, 10) == -1.0
    with pytest.raises(IndexError, match="out of bounds"):
        arrayjit.jit(at)(x10, 10)


# ---- what became of a loop ---------------------------------------------------------------------------


def test_explain_says_what_became_of_a_loop() -> None:
    def program(x: Any) -> Any:
        total = x[0]
        for i in range(1, len(x)):
            total = total * 2 + x[i]
        for _ in range(3):
            total = total / 2
        for i in range(6):
            total = total + factors[i % 3]
        return total

    kept, short, unrolled = (
        line for line in arrayjit.jit(program).explain(x10).splitlines() if line.startswith(__file__)
    )
    assert "one loop of 9 iterations; carries total" in kept
    assert "unrolled, since 3 iterations are few" in short
    assert re.search(r"unrolled, because line \d+ needs a loop index", unrolled)
