"""Symbols, indices and projections."""

from __future__ import annotations

import numpy as np
import pytest
from by_hand import outcome, text

from arrayjit.assignments import (
    Node,
    accumulate,
    assign,
    axes,
    axis,
    concat,
    fill,
    fill_range,
    number,
    program,
    reduce,
    static,
)
from arrayjit.assignments.projections import Projection
from arrayjit.errors import IndexOutOfRange, ShapeError
from arrayjit.ir.assign import IndexParam
from arrayjit.ir.index import Affine, affine

i, j, k = axes("i j k")


def says(extents: tuple[int, ...], *positions: object) -> Projection:
    loops = tuple(zip((i, j, k), extents, strict=False))
    return Projection(loops, affine(positions))  # type: ignore[arg-type]


def test_IX_1_symbols_are_told_apart_whatever_their_names() -> None:
    one, other = axis("i"), axis("i")
    x, y = Node("x", (2, 3)), Node("y", (3, 2))
    found = program(assign(y[other, one], x[one, other]), name="f")
    assert "for i, i1 in each(3, 2):" in text(found)
    before = np.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(outcome(found, {x: before})[y], before.T)


def test_IX_2_a_static_symbol_is_a_parameter_with_its_range() -> None:
    step, x, y = static("step", 0, 4), Node("x", 4), Node("y")
    found = program(assign(y[()], x[step] * number(step)), name="f")
    assert found.computation.params[-1] == IndexParam(step)
    assert "step: index[0, 4]" in text(found)
    for value in range(4):
        assert outcome(found, {x: [1, 2, 3, 4]}, {step: value})[y] == (value + 1) * value


def test_IX_2_a_static_symbol_that_is_only_a_number_needs_no_range() -> None:
    step, y = static("step"), Node("y", 2, "i8")
    found = program(fill(y, number(step * 3 + 1)), name="f")
    np.testing.assert_array_equal(outcome(found, {}, {step: -5})[y], [-14, -14])


@pytest.mark.parametrize(("lower", "upper"), [(None, None), (0, None), (None, 3), (0, 5), (-1, 3)])
def test_IX_2_a_static_symbol_in_an_index_has_a_range_that_fits(lower: int | None, upper: int | None) -> None:
    x, y = Node("x", 4), Node("y")
    with pytest.raises(IndexOutOfRange, match=r"stays inside an axis of x|is indexed from"):
        program(assign(y[()], x[static("step", lower, upper)]), name="f")


def test_IX_4_fixed_iterated_and_affine_positions() -> None:
    x, y = Node("x", (3, 9)), Node("y", (4, 2))
    i, k = axis("i", 3), axis("k", 2)
    found = program(accumulate("add", y[i + 1, 1], x[2, 2 * i + 3 * k]), name="f")
    before, held = np.arange(27.0).reshape(3, 9), np.ones((4, 2))
    held_after = held.copy()
    for a in range(3):
        for b in range(2):
            held_after[a + 1, 1] += before[2, 2 * a + 3 * b]
    np.testing.assert_array_equal(outcome(found, {x: before, y: held})[y], held_after)


def test_IX_4_a_convolution() -> None:
    x, w, y = Node("x", 9), Node("w", 3), Node("y", 4)
    i, k = axes("i k")
    found = program(reduce("add", y[i], x[2 * i + k] * w[k]), name="f")
    signal, weights = np.arange(9.0), np.array([1.0, 10.0, 100.0])
    np.testing.assert_array_equal(
        outcome(found, {x: signal, w: weights})[y], [signal[2 * n : 2 * n + 3] @ weights for n in range(4)]
    )


def test_IX_5_loops_run_over_the_axes_that_their_symbols_stand_on() -> None:
    x, y = Node("x", (2, 5)), Node("y", (5,))
    found = program(reduce("maximum", y[j], x[i, j]), name="f")
    assert "for j, i in each(5, 2):" in text(found)


def test_IX_5_axes_of_other_extents_do_not_fit() -> None:
    with pytest.raises(ShapeError) as caught:
        program(assign(Node("y", 4)[i], Node("x", 5)[i]), name="f")
    assert "i runs over 4 positions in y[i] and over 5 in x[i]" in str(caught.value)
    assert "x[i]: [5]" in str(caught.value)
    assert "axis('i', 4)" in str(caught.value)


def test_IX_5_an_extent_that_nothing_tells_is_asked_for() -> None:
    with pytest.raises(ShapeError, match="the extent of k is not known"):
        program(assign(Node("y", 4)[i], Node("x", 9)[2 * i + k - i]), name="f")


def test_IX_5_positions_stay_inside() -> None:
    i = axis("i", 4)
    with pytest.raises(IndexOutOfRange, match=r"x\[i \+ 1\] is indexed from 1 to 4 along an axis of 4"):
        program(assign(Node("y", 4)[i], Node("x", 4)[i + 1]), name="f")


def test_IX_6_loops_of_one_iteration_and_of_none() -> None:
    x, y = Node("x", (1, 3)), Node("y", 3)
    before = np.array([[1.0, 2.0, 3.0]])
    np.testing.assert_array_equal(
        outcome(program(assign(y[j], x[i, j]), name="f"), {x: before})[y], before[0]
    )
    empty, total = Node("empty", (3, 0)), Node("total", 3)
    found = program(reduce("add", total[i], empty[i, j]), name="f")
    np.testing.assert_array_equal(outcome(found, {})[total], np.zeros(3))


@pytest.mark.parametrize(
    ("projection", "block", "expected"),
    [
        (says((4,), i), [4], True),
        (says((3,), i), [4], False),
        (says((4,), 3 - i), [4], True),
        (says((4,), 0), [1], True),
        (says((4,), 0), [4], False),
        (says((4, 4), i, j), [4, 4], True),
        (says((4, 4), i, i), [4, 4], False),
        (says((2, 4), 4 * i + j), [8], True),
        (says((2, 3), 4 * i + j), [8], False),
        (says((3, 3), 2 * i + j), [7], True),
        (says((3, 2), i + j), [4], True),
        (says((4,), 2 * i), [7], False),
        (says((4, 0), i), [4], False),
        (says((0,), i), [0], True),
    ],
)
def test_IX_7_is_every_cell_reached(projection: Projection, block: list[int], expected: bool) -> None:
    assert projection.is_surjective([(0, extent) for extent in block]) is expected


def test_IX_7_a_part_of_an_axis_is_reached() -> None:
    assert says((3,), i + 2).is_surjective([(2, 3)])
    assert not says((3,), i + 2).is_surjective([(1, 3)])


@pytest.mark.parametrize(
    ("projection", "expected"),
    [
        (says((4, 4), i, j), True),
        (says((4, 4), i), False),
        (says((4, 1), i), True),
        (says((4, 0), i), True),
        (says((3, 4), 4 * i + j), True),
        (says((3, 4), 3 * i + j), False),
        (says((3, 4), i + 3 * j), True),
        (says((3, 4), -4 * i + j), True),
        (says((3, 4), i + j, j), True),
        (says((3, 4), i + j, i + 2 * j), False),
        (says((3, 4, 2), i + j, j + k, k), True),
        (says((3, 4), i, i), False),
    ],
)
def test_IX_8_has_every_point_a_cell_of_its_own(projection: Projection, expected: bool) -> None:
    assert projection.is_injective() is expected


def test_IX_9_the_parts_of_a_concatenation_share_no_cells() -> None:
    a, b, c = Node("a", 3), Node("b", 2), Node("c", 5)
    found = program(reduce("add", c[concat(i, j)], [a[i], b[j]]), name="f")
    assert "c: write[f64, 5]" in text(found)
    assert "reduce" not in text(found)
    np.testing.assert_array_equal(outcome(found, {a: [1, 2, 3], b: [4, 5]})[c], [1, 2, 3, 4, 5])


def test_IX_10_dots_stand_for_all_axes_in_order() -> None:
    x, row, y = Node("x", (2, 3)), Node("row", 3), Node("y", (2, 3))
    column = Node("column", (2, 1))
    found = program(assign(y[...], x[...] * row[...] + column[...]), name="f")
    arrays = {
        x: np.arange(6.0).reshape(2, 3),
        row: np.array([1.0, 2.0, 3.0]),
        column: np.array([[5.0], [7.0]]),
    }
    np.testing.assert_array_equal(outcome(found, arrays)[y], arrays[x] * arrays[row] + arrays[column])


def test_IX_10_dots_stand_for_the_axes_left_out() -> None:
    x, y, total = Node("x", (4, 2, 3)), Node("y", (2, 3)), Node("total")
    found = program(reduce("add", y[...], x[i, ...]), reduce("add", total[()], x[..., 2]), name="f")
    before = np.arange(24.0).reshape(4, 2, 3)
    result = outcome(found, {x: before})
    np.testing.assert_array_equal(result[y], before.sum(axis=0))
    assert result[total] == before[..., 2].sum()


@pytest.mark.parametrize(("target", "operand"), [((3,), (2, 3)), ((1, 3), (2, 3)), ((2, 4), (2, 3))])
def test_IX_10_a_target_is_as_large_as_its_value(target: tuple[int, ...], operand: tuple[int, ...]) -> None:
    with pytest.raises(ShapeError, match=r"y\[\.\.\.\] cannot take values of other shapes"):
        program(assign(Node("y", target)[...], Node("x", operand)[...]), name="f")


def test_IX_11_offsets_are_row_major() -> None:
    y = Node("y", (2, 3, 4), "i8")
    np.testing.assert_array_equal(
        outcome(program(fill_range(y), name="f"), {})[y], np.arange(24).reshape(2, 3, 4)
    )


def test_IX_12_extents_are_known_and_may_be_embedded() -> None:
    x, y = Node("x", (5, 7)), Node("y")
    assert outcome(program(fill(y, x.shape[1]), name="f"), {})[y] == 7


def test_IX_13_cells_are_printed_as_they_are_written() -> None:
    x = Node("x", (9, 9))
    assert repr(x[i, 2 * j + 1]) == "x[i, 2*j + 1]"
    assert repr(x[concat(i, j), ...]) == "x[i ^ j, ...]"
    assert repr(Node("s")[()]) == "s[()]"


@pytest.mark.parametrize("key", [1.5, "i", slice(None), None, (0, 1, 2), (0,), (..., ..., 0)])
def test_an_index_has_a_position_for_each_axis(key: object) -> None:
    with pytest.raises(IndexOutOfRange, match=r"no position in x|x has 2 axes and is indexed with"):
        Node("x", (3, 3))[key]


def test_symbols_are_numbers_to_count_with() -> None:
    assert i + 1 == 1 + i == Affine.of(i) + 1
    assert i - j == -j + i
    assert 3 - i == -(i - 3)
    assert 2 * i == i * 2 == i + i
