"""Statements: what is computed, put and accumulated where."""

from __future__ import annotations

import numpy as np
import pytest
from by_hand import outcome, text

from arrayjit.assignments import (
    NOOP,
    Node,
    accumulate,
    apply,
    assign,
    axes,
    axis,
    block,
    concat,
    einsum,
    fill,
    fill_bits,
    fill_each,
    fill_range,
    is_noop,
    merge,
    name_of,
    number,
    program,
    reduce,
    sequence,
    static,
)
from arrayjit.assignments.statements import MAX_NUMBERS, accumulations
from arrayjit.errors import (
    ConcretizationError,
    DTypeError,
    IntegerOverflow,
    InvalidProgram,
    LinkError,
    ShapeError,
    UnsupportedError,
)
from arrayjit.ir.assign import Assign, Loop, Note

i, j, k = axes("i j k")
RNG = np.random.default_rng(0)


# ---- forms -------------------------------------------------------------------------------------------


def test_AS_1_statements_are_values_that_can_be_used_again() -> None:
    x, y = Node("x", 3), Node("y", 3)
    double = assign(y[...], y[...] + x[...])
    result = outcome(program(fill(y, 0), double, double, double, name="f"), {x: [1, 2, 3]})
    np.testing.assert_array_equal(result[y], [3, 6, 9])


def test_AS_11_sequences_are_flat_and_nothing_is_nothing() -> None:
    one, other = fill(Node("x", 3), 1), fill(Node("y", 3), 2)
    assert accumulations(sequence(one, sequence(NOOP, other), NOOP)) == (one, other)
    assert sequence(NOOP, one) is one
    assert is_noop(NOOP)
    assert is_noop(sequence(NOOP, block("nothing", NOOP)))
    assert not is_noop(one)
    assert program(NOOP, name="f").computation.body == ()


def test_AS_2_accumulating_onto_what_a_cell_holds() -> None:
    a, b, c = Node("a", (2, 3)), Node("b", (3, 4)), Node("c", (2, 4))
    x, y, z = RNG.random((2, 3)), RNG.random((3, 4)), RNG.random((2, 4))
    found = program(accumulate("add", c[i, j], a[i, k] * b[k, j]), name="f")
    np.testing.assert_allclose(outcome(found, {a: x, b: y, c: z})[c], z + x @ y)
    assert "c: update" in text(found)


def test_AS_2_reducing_from_the_neutral_element() -> None:
    a, b, c = Node("a", (2, 3)), Node("b", (3, 4)), Node("c", (2, 4))
    x, y = RNG.random((2, 3)), RNG.random((3, 4))
    found = program(reduce("add", c[i, j], a[i, k] * b[k, j]), name="f")
    np.testing.assert_allclose(outcome(found, {a: x, b: y})[c], x @ y)
    assert "c: write" in text(found)


def test_AS_2_values_are_nested_expressions() -> None:
    x, y, z = Node("x", 3), Node("y", 3), Node("z", 3, "bool")
    value = np.where(z[...], np.tanh(x[...]) * 2 - y[...] ** 2, apply("relu", -x[...]))
    a, b, c = np.array([0.5, -1.0, -2.0]), np.array([1.0, 2.0, 3.0]), np.array([True, True, False])
    found = program(assign(y[...], value), name="f")
    expected = np.where(c, np.tanh(a) * 2 - b**2, np.maximum(-a, 0))
    np.testing.assert_allclose(outcome(found, {x: a, y: b, z: c})[y], expected)


def test_AS_2_comparisons_are_values() -> None:
    label, hot = Node("label", 3, "i8"), Node("hot", (3, 4))
    found = program(assign(hot[i, j], number(j) == label[i]), name="f")
    np.testing.assert_array_equal(outcome(found, {label: [2, 0, 3]})[hot], np.eye(4)[[2, 0, 3]])


def test_AS_2_functions_with_two_results_give_two_values() -> None:
    x, q, r = Node("x", 3, "i8"), Node("q", 3, "i8"), Node("r", 3, "i8")
    quotient, rest = divmod(x[...], 3)
    result = outcome(program(assign(q[...], quotient), assign(r[...], rest), name="f"), {x: [7, -7, 9]})
    np.testing.assert_array_equal(result[q], [2, -3, 3])
    np.testing.assert_array_equal(result[r], [1, 2, 0])


def test_AS_2_numbers_take_the_dtype_of_their_neighbours_and_numpy_numbers_do_not() -> None:
    x, y = Node("x", 3, "f4"), Node("y", 3, "f4")
    assert "multiply[f32](x[e0], f32(2.5))" in text(program(assign(y[...], x[...] * 2.5), name="f"))
    wide = program(assign(y[...], x[...] * np.float64(2.5)), name="f")
    assert "cast(multiply[f64](cast(x[e0], f64), f64(2.5)), f32)" in text(wide)
    assert "cast(cast(x[e0], i32), f32)" in text(program(assign(y[...], x[...].astype("i4")), name="f"))


def test_AS_3_a_merge_buffer_is_an_operand() -> None:
    grad = Node("grad", (2, 3))
    found = program(accumulate("add", grad[...], merge(grad)[...] + merge(grad, 1)[...]), name="all_reduce")
    assert "grad_merge: merge('grad', 0)[f64, 2, 3]" in text(found)
    assert "grad_merge1: merge('grad', 1)[f64, 2, 3]" in text(found)
    assert found.merges == {0: grad, 1: grad}
    held, one, other = RNG.random((3, 2, 3))
    result = outcome(found, {grad: held}, merged={0: one, 1: other})
    np.testing.assert_array_equal(result[grad], held + (one + other))


def test_AS_3_a_merge_buffer_is_not_written() -> None:
    grad = Node("grad", 3)
    for statement in (assign, lambda *args: accumulate("add", *args), lambda *args: reduce("add", *args)):
        with pytest.raises(InvalidProgram, match="merge buffer 1 of grad is written"):
            statement(merge(grad, 1)[i], grad[i])


def test_AS_3_LL_9_a_merge_buffer_holds_the_values_of_one_node() -> None:
    one, other, y = Node("one", 3), Node("other", 3), Node("y", 3)
    with pytest.raises(LinkError) as caught:
        program(assign(y[...], merge(one)[...] + merge(other)[...]), name="f")
    assert "merge buffer 0 is read as one and as other" in str(caught.value)
    assert "merge(other, 1)" in str(caught.value)


# ---- concatenations ----------------------------------------------------------------------------------


def test_AS_4_AS_16_values_make_the_parts_of_an_axis() -> None:
    a, b, c = Node("a", (2, 3)), Node("b", (4, 3)), Node("c", (6, 3))
    found = program(assign(c[concat(i, j), k], [a[i, k], b[j, k] * 2]), name="f")
    assert "c[j + 2, k]" in text(found)
    x, y = RNG.random((2, 3)), RNG.random((4, 3))
    np.testing.assert_array_equal(outcome(found, {a: x, b: y})[c], np.concatenate([x, y * 2]))


def test_AS_4_block_matrices() -> None:
    a, d, m = Node("a", (2, 3)), Node("d", (4, 1)), Node("m", (6, 4))
    i, j, k, n = axes("i j k n")
    found = program(reduce("add", m[concat(i, j), concat(k, n)], [a[i, k], d[j, n]]), name="f")
    x, y = RNG.random((2, 3)), RNG.random((4, 1))
    expected = np.zeros((6, 4))
    expected[:2, :3], expected[2:, 3:] = x, y
    np.testing.assert_array_equal(outcome(found, {a: x, d: y})[m], expected)


def test_AS_4_parts_without_a_value_stay_as_they_are() -> None:
    a, c = Node("a", 2), Node("c", 5)
    found = program(assign(c[concat(i, j)], [a[i]]), name="f")
    assert "c: update" in text(found)
    np.testing.assert_array_equal(outcome(found, {a: [8, 9], c: 1})[c], [8, 9, 1, 1, 1])


def test_AS_4_parts_can_be_summed() -> None:
    c, total = Node("c", 5), Node("total")
    statement = reduce("add", total[()], c[concat(axis("i", 2), axis("j", 3))])
    assert outcome(program(statement, name="f"), {c: [1, 2, 3, 4, 5]})[total] == 15


def test_AS_4_a_part_has_one_value() -> None:
    a, b, c = Node("a", 2), Node("b", 2), Node("c", 5)
    with pytest.raises(InvalidProgram, match="2 values are there for i"):
        program(assign(c[concat(i, j)], [a[i], b[i]]), name="f")
    with pytest.raises(InvalidProgram, match="2 values are there for every point"):
        program(assign(a[i], [b[i], b[i]]), name="f")


def test_AS_4_what_is_in_no_part_of_the_target_is_there_for_every_part() -> None:
    a, c = Node("a", 2), Node("c", 5)
    found = program(accumulate("add", a[i], c[concat(axis("j", 2), axis("k", 3))]), name="f")
    np.testing.assert_array_equal(outcome(found, {a: [0.5, 1.5], c: [1, 2, 3, 4, 5]})[a], [15.5, 16.5])


@pytest.mark.parametrize("extents", [(2, 2), (3, 3), (5, 1)])
def test_AS_4_parts_make_up_the_axis(extents: tuple[int, int]) -> None:
    first, second = extents
    a, b, c = Node("a", first), Node("b", second), Node("c", 5)
    with pytest.raises(ShapeError, match="the axis has 5"):
        program(assign(c[concat(i, j)], [a[i], b[j]]), name="f")


def test_AS_5_an_axis_is_taken_apart_again() -> None:
    a, b, c = Node("a", (2, 3)), Node("b", (4, 3)), Node("c", (6, 3))
    found = program(assign([a[i, k], b[j, k]], c[concat(i, j), k]), name="f")
    assert "a: write" in text(found)
    assert "b: write" in text(found)
    x = RNG.random((6, 3))
    result = outcome(found, {c: x})
    np.testing.assert_array_equal(result[a], x[:2])
    np.testing.assert_array_equal(result[b], x[2:])


def test_AS_5_each_target_is_analysed_by_itself() -> None:
    a, b, c = Node("a", (2,)), Node("b", (4, 2)), Node("c", (6, 3))
    found = program(reduce("add", [a[i], b[j, 0]], c[concat(i, j), k]), name="f")
    x = RNG.random((6, 3))
    result = outcome(found, {c: x})
    np.testing.assert_allclose(result[a], x[:2].sum(axis=1))
    np.testing.assert_allclose(result[b], np.stack([x[2:].sum(axis=1), np.zeros(4)], axis=1))


def test_AS_5_all_parts_are_read_before_any_target_is_written() -> None:
    a, b = Node("a", 2), Node("b", 3)
    i, n, m = axis("i", 2), axis("n", 2), axis("m", 3)
    whole = Node("whole", 5)
    swapped = accumulate("add", [a[n], b[m]], whole[concat(n, m)] + a[i])
    result = outcome(program(swapped, name="f"), {a: [1.0, 2.0], b: [0.0, 0.0, 0.0], whole: [0, 0, 0, 0, 0]})
    np.testing.assert_array_equal(result[a], [4, 5])
    np.testing.assert_array_equal(result[b], [3, 3, 3])


def test_AS_5_a_part_has_one_target() -> None:
    a, b, c = Node("a", 2), Node("b", 2), Node("c", 4)
    with pytest.raises(InvalidProgram, match="2 targets are there for n"):
        program(assign([a[i], b[j]], c[concat(axis("n", 2), axis("m", 2))]), name="f")


# ---- what nodes are filled with ----------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["f4", "f8", "i1", "u8", "bool"])
def test_AS_6_AS_13_a_constant(dtype: str) -> None:
    x = Node("x", (2, 3), dtype)
    np.testing.assert_array_equal(outcome(program(fill(x, 1), name="f"), {})[x], np.ones((2, 3), dtype))


@pytest.mark.parametrize(
    ("dtype", "pattern"),
    [
        ("f8", 0x3FF8000000000000),
        ("f8", 0x8000000000000000),
        ("f4", 0x7F800000),
        ("f4", 0xFFC00001),
        ("i4", 0xFFFFFFFF),
        ("u1", -1),
        ("i8", -2),
    ],
)
def test_AS_6_a_constant_given_by_its_bits(dtype: str, pattern: int) -> None:
    x = Node("x", 2, dtype)
    found = outcome(program(fill_bits(x, pattern), name="f"), {})[x]
    size = np.dtype(dtype).itemsize
    assert found.tobytes() == (pattern % 2 ** (8 * size)).to_bytes(size, "little") * 2


def test_AS_6_bits_that_do_not_fit() -> None:
    with pytest.raises(IntegerOverflow, match="0x100 is no pattern of 8 bits of int8"):
        program(fill_bits(Node("x", 2, "i1"), 256), name="f")


def test_AS_6_a_list_of_constants() -> None:
    x = Node("x", (2, 2))
    found = program(fill_each(x, [1, 2.5, -3, 4]), name="f")
    np.testing.assert_array_equal(outcome(found, {})[x], [[1, 2.5], [-3, 4]])


def test_AS_6_long_lists_are_data() -> None:
    with pytest.raises(ShapeError, match="init_from_host"):
        fill_each(Node("x", MAX_NUMBERS + 1), range(MAX_NUMBERS + 1))
    with pytest.raises(ShapeError, match="x has 3 cells and is filled with 2 numbers"):
        fill_each(Node("x", 3), [1, 2])


def test_AS_6_a_range_over_offsets() -> None:
    x = Node("x", (2, 3), "f4")
    np.testing.assert_array_equal(
        outcome(program(fill_range(x), name="f"), {})[x], np.arange(6, dtype="f4").reshape(2, 3)
    )


def test_AS_6_AS_15_a_slice_is_copied_and_the_copy_vanishes() -> None:
    table, row, y = Node("table", (4, 3)), Node("row", 3), Node("y", 3)
    step = static("step", 0, 4)
    found = program(assign(row[...], table[step, ...]), assign(y[...], row[...] * 2), name="f")
    x = RNG.random((4, 3))
    np.testing.assert_array_equal(outcome(found, {table: x}, {step: 2})[y], x[2] * 2)


def test_AS_6_a_static_symbol_an_identity_and_an_extent() -> None:
    step, seed, size, now = static("step"), Node("seed", (), "i8"), Node("size"), Node("now", 2, "i4")
    found = program(fill(seed, seed.id), fill(size, now.shape[0]), fill(now, number(step)), name="f")
    result = outcome(found, {}, {step: 41})
    assert (result[seed], result[size], list(result[now])) == (seed.id, 2, [41, 41])


# ---- accumulation ------------------------------------------------------------------------------------


def test_AS_10_cells_that_no_point_reaches_hold_the_neutral_element() -> None:
    x = Node("x", 2)
    for op, neutral in {
        "add": 0.0,
        "multiply": 1.0,
        "maximum": -np.inf,
        "subtract": 0.0,
        "power": 1.0,
    }.items():
        y = Node("y", 5)
        found = outcome(program(reduce(op, y[2 * i], x[i]), name="f"), {x: [3.0, 4.0]})[y]
        assert list(found[[1, 3, 4]]) == [neutral] * 3
        assert not np.signbit(found[[1, 3, 4]][0]) or neutral < 0


def test_AS_12_a_pointwise_reduction_is_a_plain_assignment() -> None:
    x, y = Node("x", 3), Node("y", 3)
    (only,) = program(reduce("add", y[i], x[i]), name="f").computation.body
    assert isinstance(only, Assign)
    assert (only.accum, only.initial) == (None, None)


def test_AS_12_what_is_filled_first_is_filled_only_if_something_would_be_left() -> None:
    x, y, wide = Node("x", (3, 2)), Node("y", 3), Node("wide", 5)
    assert len(program(reduce("add", y[i], x[i, j]), name="f").computation.body) == 1
    assert len(program(reduce("add", wide[axis("i", 3)], x[0, j]), name="f").computation.body) == 2


def test_AS_12_ops_without_an_identity_run_in_order() -> None:
    x, y = Node("x", (2, 3)), Node("y", 2)
    found = program(accumulate("power", y[i], x[i, j]), name="f")
    (loop,) = found.computation.body
    assert isinstance(loop, Loop)
    assert isinstance(loop.body[0], Assign)
    assert len(loop.body[0].loops) == 1, "only what shares cells is in the loop"
    powers, base = np.array([[2.0, 1.0, 3.0], [0.5, 2.0, 1.0]]), np.array([3.0, 4.0])
    expected = ((base ** powers[:, 0]) ** powers[:, 1]) ** powers[:, 2]
    np.testing.assert_allclose(outcome(found, {x: powers, y: base})[y], expected)


def test_AS_12_a_statement_reads_all_before_it_writes() -> None:
    x = Node("x", 6)
    i = axis("i", 5)
    before = np.arange(6.0)
    shifted = outcome(program(assign(x[i + 1], x[i]), name="f"), {x: before})[x]
    np.testing.assert_array_equal(shifted, [0, 0, 1, 2, 3, 4])
    i, k = axis("i", 3), axis("k", 3)
    summed = outcome(program(accumulate("add", x[i + k], x[2 * i]), name="f"), {x: before})[x]
    expected = before.copy()
    for a in range(3):
        for b in range(3):
            expected[a + b] += before[2 * a]
    np.testing.assert_array_equal(summed, expected)


def test_AS_12_a_product_is_added_without_being_rounded_as_in_matmul() -> None:
    a, b, c = Node("a", 2), Node("b", 2), Node("c")
    found = program(reduce("add", c[()], a[i] * b[i]), name="f")
    assert "fused=True" in text(found)
    x = np.array([1.0, 1 + 2.0**-30])
    y = np.array([-1.0, 1 - 2.0**-30])
    assert outcome(found, {a: x, b: y})[c] == -(2.0**-60)


def test_OPS_10_an_op_accumulates_if_it_gives_what_it_takes() -> None:
    x, y = Node("x", 3, "i8"), Node("y", 3, "i8")
    with pytest.raises(DTypeError, match="divide of int64 gives float64 and cannot accumulate in int64"):
        program(accumulate("divide", y[...], x[...]), name="f")
    with pytest.raises(DTypeError, match="cannot accumulate"):
        program(reduce("logical_or", y[0], x[i]), name="f")
    with pytest.raises(UnsupportedError, match="negative does not accumulate"):
        accumulate("negative", y[...], x[...])
    with pytest.raises(UnsupportedError, match="frobnicate does not accumulate"):
        accumulate("frobnicate", y[...], x[...])


def test_OPS_9_an_op_without_a_neutral_element_accumulates_onto_something() -> None:
    x, y = Node("x", 3), Node("y")
    with pytest.raises(DTypeError, match="arctan2 has no neutral element to start from"):
        program(reduce("arctan2", y[()], x[i]), name="f")
    found = program(fill(y, 1), accumulate("arctan2", y[()], x[i]), name="f")
    expected = np.arctan2(np.arctan2(np.arctan2(1.0, 1.0), 2.0), 3.0)
    np.testing.assert_allclose(outcome(found, {x: [1, 2, 3]})[y], expected)


def test_einsum_is_a_notation_for_sums_of_products() -> None:
    a, b, c = Node("a", (2, 3, 4)), Node("b", (2, 4, 5)), Node("c", (5, 2))
    x, y = RNG.random((2, 3, 4)), RNG.random((2, 4, 5))
    found = program(einsum("nik,nkj->jn", c, a, b), name="f")
    np.testing.assert_allclose(outcome(found, {a: x, b: y})[c], np.einsum("nik,nkj->jn", x, y))
    for subscripts in ("ik,kj", "ik->k", ""):
        with pytest.raises(ShapeError, match="do not fit 2 operands"):
            einsum(subscripts, c, a, b)


# ---- names -------------------------------------------------------------------------------------------


def test_AS_18_comments_name_the_routine() -> None:
    x, y = fill(Node("x", 3), 1), fill(Node("y", 3), 2)
    assert name_of(block("set x", x)) == "set_x"
    assert name_of(sequence(block("set x", x), y)) == "set_x"
    assert name_of(sequence(block("set x to one", x), block("set y to one", y))) == "set_x_y_to_one"
    assert name_of(sequence(block("a", x), block("a", y))) == "a"
    assert name_of(block("outer", block("inner", x))) == "outer"
    assert name_of(sequence(x, y)) == ""


def test_AS_18_comments_are_in_the_program() -> None:
    x = Node("x", 3)
    found = program(block("outer", fill(x, 1), block("inner", fill(x, 2))))
    notes = [statement.text for statement in found.computation.body if isinstance(statement, Note)]
    assert notes == ["outer", "inner"]
    assert found.name == found.computation.name == "outer"
    assert program(block("outer", fill(x, 1)), name="my own name").name == "my_own_name"


def test_AS_18_a_program_has_a_name() -> None:
    with pytest.raises(InvalidProgram, match="the program has no name"):
        program(fill(Node("x", 3), 1))


def test_AS_19_a_program_is_printed_as_assignments() -> None:
    a, b, c = Node("a", (2, 3)), Node("b", (3, 4)), Node("c", (2, 4))
    assert text(program(block("matmul", reduce("add", c[i, j], a[i, k] * b[k, j])))) == (
        "def matmul(a: read[f64, 2, 3], b: read[f64, 3, 4], c: write[f64, 2, 4]):\n"
        "    note('matmul')\n"
        "    for i, j, k in each(2, 4, 3):\n"
        "        c[i, j] = reduce(add, multiply[f64](a[i, k], b[k, j]), f64(0.0), fused=True)\n"
    )


# ---- mistakes ----------------------------------------------------------------------------------------


def test_a_cell_has_no_truth_and_is_no_place_to_write_to() -> None:
    x, y = Node("x", 3), Node("y", 3)
    with pytest.raises(ConcretizationError, match="not known while the program is written"):
        bool(x[i] > 0)
    with pytest.raises(UnsupportedError, match="make a statement: assign"):
        y[i] = x[i]
    with pytest.raises(UnsupportedError, match=r"accumulate\('add', cell, value\)"):
        y[i] += x[i]


@pytest.mark.parametrize(
    "wrong",
    [
        lambda x: x @ x,
        lambda x: np.add.reduce(x),
        lambda x: np.sum(x),
        lambda x: np.add(x, 1, dtype="f4"),
        lambda x: apply("frobnicate", x),
    ],
)
def test_what_is_no_operation_on_cells_is_refused(wrong: object) -> None:
    with pytest.raises(UnsupportedError) as caught:
        wrong(Node("x", 3)[i])  # type: ignore[operator]
    assert "test_assign_statements.py" in str(caught.value)


@pytest.mark.parametrize("operand", [np.ones(3), "x", None, [1], 1j, i])
def test_operands_are_cells_and_numbers(operand: object) -> None:
    with pytest.raises(DTypeError, match="is no operand"):
        assign(Node("y", 3)[j], apply("add", Node("x", 3)[j], operand))


@pytest.mark.parametrize("wrong", [[], Node("x", 3), "comment", None])
def test_programs_are_made_of_statements(wrong: object) -> None:
    for make in (program, sequence, lambda one: block("b", one)):
        with pytest.raises(InvalidProgram, match=f"{type(wrong).__name__} is no statement"):
            make(wrong)  # type: ignore[operator]


def test_numbers_fit_their_dtype() -> None:
    x, y = Node("x", 3, "u1"), Node("y", 3, "u1")
    with pytest.raises(IntegerOverflow, match="uint8 does not hold 300"):
        program(assign(y[...], x[...] + 300), name="f")
    with pytest.raises(IntegerOverflow, match="uint8 does not hold -1"):
        program(fill(y, -1), name="f")


def test_a_mistake_names_the_statement_s_line() -> None:
    x, y = Node("x", 3), Node("y", 4)
    statement = assign(y[i], x[i])
    with pytest.raises(ShapeError) as caught:
        program(statement, name="f")
    assert "statement = assign(y[i], x[i])" in str(caught.value)
