"""`a[mask] = values`, where the values were computed from what an equal mask selects: nothing is collected.

Each program is also compared with NumPy; those of the second table look alike, but must collect.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from refusing import assert_raises_like_numpy
from rolling import assert_like_numpy

import arrayjit

X = np.array([3.0, -1, 4, -1, 5, -9, 2, 6, -5])
Y = np.array([1.0, -2, -3, 4, -5, 6, 7, -8, 9])
Program = Callable[..., Any]

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy's, of empty means and the like


def test_a_recurrence_of_what_a_mask_selects_is_not_written_out() -> None:
    """Each step has the one before in it twice, so that 40 steps would be a million million parts."""

    def clenshaw(x: Any, y: Any) -> Any:
        m = x < 0
        now, before = y[m], 0 * y[m]
        for coefficient in [0.5, -0.25, 0.125, 1] * 10:
            now, before = y[m] * now / 16 - before + coefficient, now
        x[m] = now
        return x

    assert_like_numpy(clenshaw, (X, Y))


def collects(program: Program, *arguments: Any) -> bool:
    """Whether some loop of the optimised program goes one cell after another."""
    return "sequential" in arrayjit.jit(program).lower(*arguments).as_text("optimized")


def same_mask(x: Any, y: Any) -> Any:
    m = x < 0
    x[m] = y[m]
    return x


def equal_masks(x: Any, y: Any) -> Any:
    x[x < 0] = -x[x < 0] + y[x < 0]
    return x


def in_place(x: Any, y: Any) -> Any:
    x[x < 0] += 1
    x[y > 3] *= y[y > 3]
    return x


def through_names(x: Any, y: Any) -> Any:
    m = (x < 0) & (y > 0)
    chosen = y[m]
    root = np.sqrt(chosen)
    scaled = root * 2 + chosen
    x[m] = np.where(scaled > 5, scaled, 0)
    return x


def with_numbers_of_the_program(x: Any, y: Any) -> Any:
    m = x < 0
    x[m] = (x[m] - x.sum()) / y[0]
    return x


def views(x: Any, y: Any) -> Any:
    m = x[::2] > 0
    x[::2][m] = y[::2][m] - x[::2][m]
    return x


def of_other_dtypes(x: Any, y: Any) -> Any:
    m = x > 0
    z = np.zeros(x.shape, np.int32)
    z[m] = x.astype(np.int16)[m] * 3
    return z


def matrices(x: Any, y: Any) -> Any:
    a, b = x.reshape(3, 3).T, y.reshape(3, 3)
    a[b > 0] = b[b > 0] * a[b > 0]
    return x


@pytest.mark.parametrize(
    "program",
    [
        same_mask,
        equal_masks,
        in_place,
        through_names,
        with_numbers_of_the_program,
        views,
        of_other_dtypes,
        matrices,
    ],
)
def test_values_of_an_equal_mask_are_written_where_they_stand(program: Program) -> None:
    assert not collects(program, X, Y)
    assert_like_numpy(program, (X, Y), (Y, X), (X, X.copy()))


def mask_changed(x: Any, y: Any) -> Any:
    m = x < 0
    values = y[m]
    m[0], m[1] = True, False
    x[m] = values
    return x


def value_changed(x: Any, y: Any) -> Any:
    m = x < 0
    values = y[m]
    values[0] = 50
    x[m] = values
    return x


def other_mask_of_equal_count(x: Any, y: Any) -> Any:
    x[x < 0] = y[(x < 0)[::-1]]
    return x


def values_in_another_order(x: Any, y: Any) -> Any:
    m = x < 0
    x[m] = x[m][::-1] + y[m]
    return x


def sums_so_far(x: Any, y: Any) -> Any:
    m = x < 0
    x[m] = np.cumsum(y[m])
    return x


def places_of_values(x: Any, y: Any) -> Any:
    m = x < 0
    x[m] = y[m] * np.arange(y[m].size)
    return x


def gathered(x: Any, y: Any) -> Any:
    m = y > 0
    x[m] = x[y.astype(np.int64)[m] % 9]
    return x


def longer_mask(x: Any, y: Any) -> Any:
    m = x < 0
    m[5:] = False
    x[:7][m[:7]] = y[m]
    return x


@pytest.mark.parametrize(
    "program",
    [
        mask_changed,
        value_changed,
        other_mask_of_equal_count,
        values_in_another_order,
        sums_so_far,
        places_of_values,
        gathered,
        longer_mask,
    ],
)
def test_other_values_are_collected(program: Program) -> None:
    assert collects(program, X, Y)
    assert_like_numpy(program, (X, Y), (X, -Y))


def source_changed(x: Any, y: Any) -> Any:
    m = x < 0
    values = y[m]
    y[:] = 0
    x[m] = values
    return x


def operand_changed(x: Any, y: Any) -> Any:
    s = x[:1].copy()
    m = x < 0
    values = y[m] + s
    s[0] = 100
    x[m] = values
    return x


def both_at_once(x: Any, y: Any) -> Any:
    m = x < 4
    x[m], y[m] = x[m] * 2 - y[m], x[m] + y[m]
    return x, y


def three_at_once(x: Any, y: Any) -> Any:
    z = x + y
    m = z > 0
    x[m], y[m], z[m] = y[m] + z[m], z[m] + x[m], x[m] + y[m]
    return x, y, z


def swapped(x: Any, y: Any) -> Any:
    for _ in range(5):
        m = x < y
        x[m], y[m] = y[m], x[m] + 1
    return x, y


@pytest.mark.parametrize("program", [source_changed, operand_changed, both_at_once, three_at_once, swapped])
def test_values_are_held_before_what_they_were_computed_from_is_written(program: Program) -> None:
    assert "selected" not in arrayjit.jit(program).lower(X, Y).as_text("optimized")
    assert_like_numpy(program, (X, Y), (Y, X), (X, -Y))


def test_the_mask_may_change_before_values_are_held() -> None:
    def program(x: Any, y: Any) -> Any:
        m = x < 0
        values = y[m]
        y[:] = 0
        m[:] = x[::-1] < 0
        x[m] = values
        return x, y

    assert_like_numpy(program, (X, Y), (X, -Y))


def test_values_for_as_many_cells_as_another_mask_selects() -> None:
    def program(x: Any, y: Any) -> Any:
        x[x < 0] = np.full(y[y < 0].size, 7.0)
        return x

    assert_like_numpy(program, (X, Y), (-X, -Y))
    words = "cannot assign"
    assert_raises_like_numpy(lambda x, y: x.__setitem__(x < 0, np.full(y[y > 0].size, 7)), words, X, Y)
    assert_raises_like_numpy(lambda x, y: x.__setitem__(x < 0, y[y > 0]), words, X, Y)


def test_values_may_be_the_array_s_own_cells_elsewhere() -> None:
    def program(x: Any, y: Any) -> Any:
        m = y[1:] > 0
        x[1:][m] = x[:-1][m]
        return x

    assert_like_numpy(program, (X, Y), (X, -Y))


def test_equal_masks_are_counted_once() -> None:
    def program(x: Any, y: Any) -> Any:
        return (x[x > 0] * y[x > 0] + x[x > 0]).sum(), x[x > 0].mean()

    assert_like_numpy(program, (X, Y), (Y, X))
    text = arrayjit.jit(program).lower(X, Y).as_text("assignments")
    assert text.count("count[()] = ") == 1
    assert "broadcast" not in text


def test_a_mask_of_something_rewritten_is_counted_anew() -> None:
    def program(x: Any, y: Any) -> Any:
        before = x[x > 0].size
        x[:] = y
        return before, x[x > 0].size

    assert_like_numpy(program, (X, Y), (Y, X))


def _by_a_part(cells: Any) -> Any:
    mask = np.ones(cells.shape, bool)
    mask[1:] = cells[1:] != cells[:-1]
    return mask


def _in_a_loop(cells: Any) -> Any:
    mask = np.ones(cells.shape, bool)
    for place in range(len(cells)):
        mask[place] = cells[place] > 0
    return mask


def _where_chosen(cells: Any) -> Any:
    mask = np.zeros(cells.shape, bool)
    arrayjit.cond(cells[0] > 0, lambda: mask.fill(True), lambda: None)
    return mask


@pytest.mark.parametrize("masked", [_by_a_part, _in_a_loop, _where_chosen])
def test_masks_that_begin_alike_are_counted_each(masked: Any) -> None:
    """What is written into a part of a mask after it was made makes it another one."""

    def program(x: Any, y: Any) -> Any:
        return x[masked(x)], y[masked(y)], x[masked(x)] * 2

    assert_like_numpy(program, (X, Y), (Y, X), (np.sort(X), np.zeros(9)))


def test_what_is_only_counted_is_not_collected() -> None:
    assert not collects(lambda x: x[x > 0].size, X)
    assert not collects(lambda x: len(np.nonzero(x > 0)[0]), X)


@pytest.mark.parametrize(
    "program",
    [
        lambda x, y: x[x > 0].sum(),
        lambda x, y: (x[x > 0] * y[x > 0]).mean(),
        lambda x, y: np.abs(y[(x > 0) & (y > 0)]).max(),
        lambda x, y: x.reshape(3, 3).T[y.reshape(3, 3) > 0].std(),
        lambda x, y: (x[x > 0] > y[x > 0]).any(),
        lambda x, y: x[x > 100].mean(),
    ],
)
def test_reductions_of_a_selection_do_not_collect(program: Program) -> None:
    assert "selected" not in arrayjit.jit(program).lower(X, Y).as_text("optimized")
    assert_like_numpy(program, (X, Y), (Y, X))


def test_every_rule_has_its_test() -> None:
    here = Path(__file__).parent
    rules = re.split(r"^\d+\. ", (here.parents[1] / "docs" / "arrays.md").read_text(), flags=re.MULTILINE)[1:]
    quoted = [re.findall(r"`(test_\w+)`", rule) for rule in rules]
    assert all(quoted)
    texts = [file.read_text() for file in here.glob("test_arrays_*.py")]
    written = {name for text in texts for name in re.findall(r"def (test_\w+)", text)}
    assert {name for names in quoted for name in names} <= written
