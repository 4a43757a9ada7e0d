"""The rules of docs/loops.md: loops whose bodies ask on which side of a number their index lies, or for a
rest of it, are recorded once for each answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from rolling import assert_like_numpy, length

import arrayjit
from arrayjit.errors import UnsupportedError
from arrayjit.tracer.record.retrace import Decisions, Retrace

x40 = np.cos(np.arange(40.0))
grid = np.sin(np.arange(20.0 * 23)).reshape(20, 23)
square = np.cos(np.arange(400.0)).reshape(20, 20)

# ---- sides -------------------------------------------------------------------------------------------


def a_first_iteration(x: Any) -> Any:
    total = 0.0
    for i in range(len(x)):
        if i == 0:
            x[0] = 7.0
        total = total * 0.5 + x[i]
    return total


def ends(x: Any) -> Any:
    """The trapezoidal rule."""
    total = 0.0
    for i in range(len(x)):
        weight = 0.5 if i in (0, len(x) - 1) else 1.0
        total += weight * x[i]
    return total


def previous(x: Any) -> None:
    for i in range(len(x)):
        if i:
            x[i] += x[i - 1]


def both_sides(x: Any) -> None:
    for i in range(len(x) - 1, -1, -1):
        if 3 <= i < len(x) - 3:
            x[i] = x[i - 3] - x[i + 3]
        elif not i > 2:
            x[i] *= 2


def by_steps(x: Any) -> None:
    for i in range(1, len(x), 3):
        x[i] = x[i - 1] if i > 20 else 2 * x[i]


def counted(x: Any) -> Any:
    total = 0.0
    for n, (one, other) in enumerate(zip(x, x[::-1], strict=True), 5):
        if 2 * n <= 31:
            total += one * other
    return total


def left_in_the_middle(x: Any) -> Any:
    for i in range(len(x)):
        if i == 6:
            break
        x[i] *= 2
    return i


def returned(x: Any) -> Any:
    for i in range(len(x)):
        x[i] *= 2
        if i > 5:
            return x[i]
    return None


def gone_on(x: Any) -> Any:
    for i in range(len(x)):
        if i == 5:
            continue
        x[i] += 1
    else:
        x *= 2
    return i


def with_lists(x: Any) -> Any:
    steps = []
    last = 0.0
    for i in range(len(x)):
        if i > 0:
            steps.append(x[i] - last)
        last = x[i]
    return np.array(steps)


SIDES = [
    a_first_iteration,
    ends,
    previous,
    both_sides,
    by_steps,
    counted,
    left_in_the_middle,
    returned,
    gone_on,
]


@pytest.mark.parametrize("program", [*SIDES, with_lists])
def test_an_index_on_one_side_of_a_number_is_as_in_numpy(program: Callable[[Any], Any]) -> None:
    assert_like_numpy(program, (x40,), (x40[:13],), (x40[:9],), (x40[:2],))


@pytest.mark.parametrize("program", SIDES)
def test_a_loop_that_turns_is_kept(program: Callable[[Any], Any]) -> None:
    assert length(program, np.ones(62)) == length(program, np.ones(998))


# ---- sides of other indices --------------------------------------------------------------------------


def triangles(a: Any) -> None:
    for i in range(len(a)):
        for j in range(a.shape[1]):
            if i == j:
                a[i, j] = 1.0
            elif i > j:
                a[i, j] += a[i - 1, j]
            else:
                a[i, j] -= 2.0


def borders(a: Any) -> Any:
    b = np.empty_like(a)
    n, m = a.shape
    for i in range(n):
        for j in range(m):
            if i == 0 or j == 0 or i == n - 1 or j == m - 1:
                b[i, j] = 0.0
            else:
                b[i, j] = a[i - 1, j] + a[i + 1, j] - a[i, j - 1] * a[i, j + 1]
    return b


def beyond_the_end(a: Any) -> None:
    for i in range(len(a)):
        for j in range(a.shape[1] - 1, -1, -1):
            if j <= i + 3 and j >= i - 2:
                a[i, j] *= 2


def bands(a: Any) -> None:
    for i in range(len(a)):
        for j in range(a.shape[1]):
            if abs(i - j) <= 2:
                a[i, j] = 0.0


def diagonals(a: Any) -> Any:
    """All products of two sides of a convolution."""
    total = np.zeros(a.shape[1] * 2)
    for i in range(2 * a.shape[1]):
        for j in range(a.shape[1]):
            if 0 <= i - j < a.shape[1]:
                total[i] += a[0, j] * a[1, i - j]
    return total


def three_deep(a: Any) -> Any:
    n = len(a)
    b = np.zeros((n, n))
    for k in range(n):
        for i in range(n):
            if i != k:
                for j in range(n):
                    if j != k and j != i:
                        b[i, j] = np.minimum(b[i, j] + 1, a[i, k] - a[k, j])
    return b


def asked_by_a_function(a: Any) -> None:
    def weight(i: Any, j: Any) -> float:
        return 1.5 if i < j else 0.5

    for i in range(len(a)):
        for j in range(a.shape[1]):
            a[i, j] *= weight(i, j)


def steeper(a: Any) -> Any:
    total = 0.0
    for i in range(len(a)):
        for j in range(a.shape[1]):
            if 2 * j > i + 3:
                continue
            total = total * 0.5 + a[i, j]
    return total


def multiples(a: Any) -> None:
    for i in range(len(a)):
        for j in range(a.shape[1] - 1, -1, -1):
            if 2 * j == i:
                a[i, j] = 5.0
            elif 3 * j < i:
                a[i, j] += a[i, 3 * j]
            elif i - 2 * j >= -4:
                a[i, j] *= 2


def by_twos(a: Any) -> None:
    for i in range(len(a)):
        for j in range(1, a.shape[1], 2):
            if j >= i:
                a[i, j] += a[j, i]
            else:
                a[i, j] -= 1


def taps(a: Any) -> Any:
    """A convolution whose edges are left out."""
    n, total = a.shape[1], np.zeros(a.shape[1])
    for i in range(n):
        for j in range(15):
            at = i + j - 7
            if at < 0 or at >= n:
                continue
            total[i] += a[0, at] * (j + 1)
    return total


NESTED = [
    taps,
    triangles,
    borders,
    beyond_the_end,
    bands,
    diagonals,
    three_deep,
    asked_by_a_function,
    steeper,
    multiples,
    by_twos,
]


@pytest.mark.parametrize("program", NESTED)
def test_an_index_on_one_side_of_another_is_as_in_numpy(program: Callable[[Any], Any]) -> None:
    assert_like_numpy(program, (square,), (square[:9, :9],), (square[:13, :13],))


@pytest.mark.parametrize("program", NESTED)
def test_nested_loops_that_turn_are_kept(program: Callable[[Any], Any]) -> None:
    assert length(program, np.ones((40, 40))) == length(program, np.ones((300, 300)))


# ---- rests -------------------------------------------------------------------------------------------


def parities(x: Any) -> Any:
    total = 0.0
    for i in range(len(x)):
        if i % 2 == 0:
            total += x[i]
        else:
            total -= 2 * x[i]
    return total


def thirds(x: Any) -> None:
    for i in range(len(x) - 1, 1, -1):
        if i % 3:
            x[i] += x[i - 1] * (i % 3)


def one_in_four(x: Any) -> Any:
    total = 0.0
    for n, value in enumerate(x):
        if n % 4 == 3:
            total += value
    return total


def red_and_black(x: Any) -> Any:
    a = np.outer(x, x[:7])
    for colour in range(2):
        for i in range(1, len(a) - 1):
            for j in range(1, 6):
                if (i + j) % 2 == colour:
                    a[i, j] = 0.25 * (a[i - 1, j] + a[i + 1, j] + a[i, j - 1] + a[i, j + 1])
    return a


def one_in_twelve(x: Any) -> Any:
    x, years = x.copy(), []
    for n in range(len(x)):
        x[n] += x[n - 1]
        if n % 12 == 11:
            years.append(x[n] * 2)
    return x, years


def blocks(x: Any) -> Any:
    a = np.outer(x, x40[:34])
    for i in range(len(a)):
        for j in range(34):
            if j % 9 == 2 or i % 12 == 5:
                a[i, j] = a[i - 1, j - 1]
    return a


RESTS = [parities, thirds, one_in_four, red_and_black, one_in_twelve, blocks]


@pytest.mark.parametrize("program", RESTS)
def test_rests_of_indices_are_as_in_numpy(program: Callable[[Any], Any]) -> None:
    assert_like_numpy(program, (x40,), (x40[:15],), (x40[:11],))


@pytest.mark.parametrize("program", RESTS)
def test_loops_with_rests_of_indices_are_kept(program: Callable[[Any], Any]) -> None:
    assert length(program, np.ones(62)) == length(program, np.ones(998))


def test_rests_of_larger_numbers_keep_loops_that_are_longer() -> None:
    """Others are unrolled, which writes their bodies out less often."""

    def program(x: Any, each: int) -> Any:
        total, frames = 0.0, []
        for k in range(len(x)):
            total = total * 0.5 + x[k]
            if k % each == 0:
                frames.append(total)
        return frames

    for count, each, is_kept in ((300, 10, True), (301, 100, True), (199, 100, False), (600, 129, False)):
        told = str(arrayjit.jit(program).explain(np.ones(count), each))
        assert (f"{each} iterations are recorded together" in told) == is_kept
    for each in (9, 10, 40):
        assert_like_numpy(program, *((np.arange(n) * 0.7, each) for n in (31, 47, 121)))


# ---- arguments and numbers out of arrays -------------------------------------------------------------


def test_arguments_beside_indices_are_compiled_in() -> None:
    def program(x: Any, k: int, n: int) -> None:
        for i in range(n):
            if i < k or i == n - 1:
                x[i] *= 3

    jitted = assert_like_numpy(program, (x40, 20, 40), (x40, 0, 12), (x40, 20, 40), (x40, 50, 30))
    assert jitted.stats().compiles == 6
    assert length(program, np.ones(40), 20, 40) == length(program, np.ones(900), 200, 900)


def test_how_many_iterations_are_left_of_some_in_a_row_is_compiled_in() -> None:
    def program(x: Any, n: int) -> Any:
        total = x[0]
        for i in range(1, n):
            total += (1.0 if i % 2 == 0 else -1.0) / i
        return total

    jitted = assert_like_numpy(program, (x40, 10), (x40, 1000), (x40, 11), (x40, 5001))
    assert jitted.stats().compiles == 4


def test_bounds_read_from_arrays_may_end_before_the_turn() -> None:
    def program(x: Any, counts: Any) -> Any:
        total = 0.0
        for n in range(len(counts)):
            for j in range(counts[n]):
                if j > 2:
                    total += x[j]
                else:
                    total -= 1
        return total

    assert_like_numpy(program, (x40, np.array([5, 2, 9, 0])), (x40, np.array([3, 0, 0, 40])))


def test_what_a_name_is_after_a_loop_that_turns_is_compiled_in_where_arguments_tell() -> None:
    def program(x: Any, k: int) -> Any:
        last, scale = -0.5, 1.0
        for i in range(k, len(x)):
            if i < 3:
                scale *= 2
            last = x[i] * scale
        return last

    assert_like_numpy(program, *((x40, k) for k in (40, 0, 39, 3, 2, 41)))


def test_rests_where_only_the_run_shows_how_many_iterations_there_are() -> None:
    def by_counts(x: Any, counts: Any) -> Any:
        total = 0.0
        for n in range(len(counts)):
            for j in range(1, counts[n]):
                total = total + (x[j] if j % 3 == 1 else -1.0) * (j + 1)
        return total

    def above_the_diagonal(a: Any) -> Any:
        for i in range(len(a)):
            for j in range(a.shape[1]):
                if j > i and (i + j) % 2:
                    a[i, j] = -a[j, i]
        return a

    assert_like_numpy(by_counts, (x40, np.array([5, 2, 9, 0, 1, 3, 40])))
    for n in (9, 20):
        assert_like_numpy(above_the_diagonal, (square[:n, :n],))


def last_by_side_and_rest(x: Any, k: int) -> Any:
    for i in range(k):
        if i > 0:
            x[i] -= 1
        last = i
        if i % 2 == 0:
            last = 7
    return last


def steps_by_side_and_rest(x: Any, k: int) -> Any:
    total = 0.0
    for i in range(k):
        if i == 0:
            before = x[i]
        total += before
        before = x[i] if i % 2 else x[i] * 2
    return total


def last_by_rest(x: Any, k: Any) -> Any:
    for i in range(k[0]):
        last = 7 if i % 3 == 0 else i
    return last


def one_in_three(x: Any, k: Any) -> Any:
    for i in range(1, k[0]):
        if i % 3 == 0:
            last = x[i]
        else:
            x[i] = 1
    return last


def views_by_rest(x: Any, k: Any) -> Any:
    for i in range(k[0]):
        if i % 3 == 0:
            part = x[:2]
        elif i % 3 == 1:
            x[i] += 4
        else:
            part = x[:2]
    return part.sum()


def steps_from_an_array(x: Any, k: Any) -> Any:
    total = x[0]
    for i in range(k[0]):
        if i == 0:
            before = x[i]
        total += x[i] - before
        before = x[i]
    return total


@pytest.mark.parametrize("count", range(8))
@pytest.mark.parametrize(
    "program",
    [
        last_by_side_and_rest, steps_by_side_and_rest, last_by_rest, one_in_three, views_by_rest,
        steps_from_an_array,
    ],
)  # fmt: skip
def test_a_name_is_bound_if_any_stretch_binds_it(program: Callable[..., Any], count: int) -> None:
    k = count if program in (last_by_side_and_rest, steps_by_side_and_rest) else np.array([count])
    try:
        program(x40.copy(), k)
    except UnboundLocalError:
        with pytest.raises(UnboundLocalError):
            arrayjit.jit(program)(x40.copy(), k)
    else:
        assert_like_numpy(program, (x40, k))


# ---- what is raised ----------------------------------------------------------------------------------


def test_what_a_stretch_raises_is_raised_where_it_runs() -> None:
    def program(a: Any, most: int) -> Any:
        for i in range(len(a)):
            for j in range(a.shape[1]):
                if i + j >= most:
                    raise ValueError("too far")
                a[i, j] += 1
        return a

    small = grid[:5, :5]
    assert_like_numpy(program, (small, 20))
    with pytest.raises(ValueError, match="too far"):
        arrayjit.jit(program)(small.copy(), 8)


def test_explain_tells_of_stretches_and_rests() -> None:
    def program(x: Any) -> None:
        for i in range(len(x)):
            if i > 3:
                x[i] = 0
        for i in range(len(x)):
            if i % 2:
                x[i] = 1

    told = arrayjit.jit(program).explain(x40)
    assert "recorded in stretches, because line" in told
    assert "2 iterations are recorded together, because line" in told


def test_a_loop_that_turns_too_often_is_unrolled() -> None:
    def program(x: Any) -> None:
        for i in range(len(x)):
            if i in (3, 5, 7, 9, 11):
                x[i] = 0

    assert_like_numpy(program, (x40,))
    with pytest.raises(UnsupportedError, match="at most 1024"):
        arrayjit.jit(program)(np.ones(1025))


def diffused(image: Any) -> None:
    """What is lost by rounding goes to the right and to the row below."""
    for y in range(image.shape[0]):
        for x in range(image.shape[1]):
            lost = image[y, x] - np.round(image[y, x])
            image[y, x] -= lost
            if x + 1 < image.shape[1]:
                image[y, x + 1] += 0.5 * lost
            if y + 1 < image.shape[0]:
                if x > 0:
                    image[y + 1, x - 1] += 0.2 * lost
                image[y + 1, x] += 0.3 * lost


def test_few_iterations_of_nested_loops_are_not_all_written_out() -> None:
    assert_like_numpy(diffused, (9 * grid[:14, :15],))
    few, more = (length(diffused, grid[:n, :n]) for n in (15, 19))
    assert few < 6 * more
    assert_like_numpy(diffused, (9 * grid[:5, :6],))
    assert length(diffused, grid[:5, :6]) > length(diffused, grid[:4, :6])


def interpolated(x: Any, y: Any, at: Any) -> Any:
    """The polynomial through points, at other points (Lagrange)."""
    value = np.zeros_like(at)
    for i in range(len(x)):
        basis = np.ones_like(at)
        for j in range(len(x)):
            if i != j:
                basis *= (at - x[j]) / (x[i] - x[j])
        value += y[i] * basis
    return value


def test_few_iterations_that_one_condition_compares_are_written_out_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given: list[Retrace] = []
    decided = Decisions.with_more

    def noted(decisions: Decisions, more: Retrace) -> Decisions:
        given.append(more)
        return decided(decisions, more)

    monkeypatch.setattr(Decisions, "with_more", noted)
    length(interpolated, np.linspace(-1, 1, 12), x40[:12], np.linspace(-1, 1, 9))
    assert [len(more.unroll) for more in given] == [2]
    assert_like_numpy(interpolated, (np.linspace(-1, 1, 12), x40[:12], np.linspace(-1, 1, 9)))
