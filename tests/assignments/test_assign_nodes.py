"""Nodes: identity, names, element types that are settled late, slices."""

from __future__ import annotations

import gc

import numpy as np
import pytest
from by_hand import outcome, text

from arrayjit.assignments import Mode, Node, accumulate, assign, fill, live_nodes, program, reduce, static
from arrayjit.errors import DTypeError, IndexOutOfRange, LinkError, ShapeError
from arrayjit.ir.dtype import F32, F64, I32, named


def test_TN_1_a_node_is_itself_and_holds_no_data() -> None:
    one, other = Node("x", (2, 3)), Node("x", (2, 3))
    assert one != other
    assert one.id < other.id
    assert (one.shape, one.size) == ((2, 3), 6)
    assert one.tensor is one.tensor
    assert one.tensor is not other.tensor
    assert repr(one) == "x: f64[2, 3], undecided"


def test_TN_1_a_shape_may_be_one_number_or_empty_and_never_negative() -> None:
    assert Node("x", 3).shape == (3,)
    assert Node("x").shape == ()
    with pytest.raises(ShapeError, match="x cannot have the shape"):
        Node("x", -1)


def test_TN_2_nodes_are_found_while_they_live() -> None:
    node = Node("kept", 3)
    number = node.id
    assert node in live_nodes()
    assert [found.id for found in live_nodes()] == sorted(found.id for found in live_nodes())
    del node
    gc.collect()
    assert number not in {found.id for found in live_nodes()}


def test_TN_8_an_element_type_is_what_the_user_says() -> None:
    node = Node("x", 3, np.float32)
    node.infer_dtype(F64)
    assert node.dtype is F32
    for dtype in ("i4", np.int32, np.dtype("i4"), I32):
        assert Node("x", 3, dtype).dtype is I32


def test_TN_8_or_else_what_is_inferred_promoted() -> None:
    node = Node("x", 3)
    node.infer_dtype(named("i16"))
    node.infer_dtype(named("f32"))
    assert node.dtype is F32
    node = Node("x", 3)
    node.infer_dtype(F64)
    node.set_dtype("f4")
    assert node.dtype is F32


def test_TN_8_or_else_float64() -> None:
    assert Node("x", 3).dtype is F64


def test_TN_8_what_has_been_asked_for_stays() -> None:
    node = Node("x", 3)
    assert node.tensor.dtype is F64
    node.set_dtype("f8")
    with pytest.raises(DTypeError, match="x is float64 already and cannot become float32"):
        node.set_dtype("f4")
    inferred = Node("y", 3)
    assert inferred.dtype is F64
    with pytest.raises(DTypeError, match="y is float64 already and cannot become"):
        inferred.infer_dtype(named("f32"))


def test_TN_8_programs_infer_from_what_is_put_in() -> None:
    x, y = Node("x", 3, "f4"), Node("y", 3, "i2")
    total, half, copy = Node("total", 3), Node("half", 3), Node("copy", 3)
    found = program(
        fill(total, 0),
        accumulate("add", total[...], x[...] + y[...]),
        assign(half[...], y[...] / 2),
        assign(copy[...], total[...]),
        name="f",
    )
    assert [node.dtype.short for node in (total, half, copy)] == ["f32", "f64", "f32"]
    result = outcome(found, {x: [1, 2, 3], y: [4, 5, 6]})
    np.testing.assert_array_equal(result[copy], np.array([5, 7, 9], "f4"))
    np.testing.assert_array_equal(result[half], [2, 2.5, 3])


def test_TN_8_values_are_converted_to_what_was_said() -> None:
    x, y = Node("x", 3, "f8"), Node("y", 3, "i4")
    result = outcome(program(assign(y[...], x[...] * 2), name="f"), {x: [1.2, -1.7, 3]})
    np.testing.assert_array_equal(result[y], np.array([2, -3, 6], "i4"))


def test_TN_10_a_node_like_an_array() -> None:
    array = np.zeros((2, 3), np.int16)
    node = Node("x", array.shape, array.dtype, Mode.MATERIALIZED)
    assert repr(node.tensor) == "x: i16[2, 3]"
    assert node.mode is Mode.MATERIALIZED


def test_TN_11_names_are_made_of_labels() -> None:
    assert Node("x").name == "x"
    assert Node(("w", "grad")).name == "w_grad"
    assert Node(("relu", "relu")).name == "relu"
    nameless = Node(())
    assert nameless.name == f"n{nameless.id}"


def test_TN_11_the_text_tells_equal_names_apart_and_starts_none_with_a_digit() -> None:
    one, other, third = Node("w", 3), Node("w", 3), Node("3d", 3)
    found = program(assign(third[...], one[...] + other[...]), name="f")
    assert text(found).startswith("def f(w: read[f64, 3], w1: read[f64, 3], _3d: write[f64, 3]):")


def test_TN_9_AS_15_a_slice_is_the_memory_of_its_parent() -> None:
    table, step = Node("table", (4, 3)), static("step", 0, 4)
    row, total = table.at(step), Node("total")
    found = program(accumulate("multiply", row[...], 10.0), reduce("add", total[()], row[...]), name="scale")
    assert list(found.nodes) == [table, total]
    assert table.mode is Mode.ON_DEVICE
    before = np.arange(12.0).reshape(4, 3)
    for number in range(4):
        expected = before.copy()
        expected[number] *= 10
        result = outcome(found, {table: before}, {step: number})
        np.testing.assert_array_equal(result[table], expected)
        assert result[total] == expected[number].sum()


def test_TN_9_a_slice_of_a_slice() -> None:
    cube, i, j = Node("cube", (2, 3, 4)), static("i", 0, 2), static("j", 1, 3)
    line, y = cube.at(i).at(j), Node("y", 4)
    before = np.arange(24.0).reshape(2, 3, 4)
    result = outcome(program(assign(y[...], line[...]), name="f"), {cube: before}, {i: 1, j: 2})
    np.testing.assert_array_equal(result[y], before[1, 2])


def test_TN_9_a_slice_has_no_tensor_and_no_dtype_of_its_own() -> None:
    table = Node("table", (4, 3), "f4")
    row = table.at(static("step", 0, 4))
    assert row.dtype is F32
    with pytest.raises(LinkError, match="table_at_step is a slice of table and has no memory of its own"):
        _ = row.tensor
    with pytest.raises(LinkError, match="use table, and take the part at step"):
        row.refine(Mode.LOCAL)


@pytest.mark.parametrize(("lower", "upper"), [(None, None), (0, None), (-1, 3), (0, 5)])
def test_TN_9_a_slice_lies_within_its_parent(lower: int | None, upper: int | None) -> None:
    with pytest.raises(IndexOutOfRange, match=r"no static symbol within the 4 slices of table"):
        Node("table", (4, 3)).at(static("step", lower, upper))


@pytest.mark.parametrize("mode", [Mode.VIRTUAL, Mode.LOCAL])
def test_TN_9_only_what_is_stored_in_a_context_has_slices(mode: Mode) -> None:
    table = Node("table", (4, 3), mode=mode)
    with pytest.raises(LinkError, match="a slice of it is taken"):
        table.at(static("step", 0, 4))
