"""Programs: what they read, write and bring along, and where their nodes come to live."""

from __future__ import annotations

import numpy as np
import pytest
from by_hand import outcome, text

from arrayjit.assignments import (
    Mode,
    Node,
    Program,
    accumulate,
    apply,
    assign,
    axes,
    fill,
    merge,
    program,
    reduce,
    static,
)
from arrayjit.assignments.nodes import LOCAL_BYTES
from arrayjit.errors import DTypeError, LinkError

i, j, k = axes("i j k")


def nodes(*names: str, extent: int = 3) -> list[Node]:
    return [Node(name, extent) for name in names]


def access(found: Program, node: Node) -> str | None:
    param = found.nodes.get(node)
    return None if param is None else param.access


# ---- what programs know of themselves ----------------------------------------------------------------


def test_AS_7_a_program_brings_what_it_writes_first() -> None:
    x, y, z = nodes("x", "y", "z")
    found = program(assign(y[...], x[...] * 2), accumulate("add", z[...], x[...]), name="f")
    assert found.embedded == {y}
    assert program(accumulate("add", z[...], x[...]), name="f", embedded=[z]).embedded == {z}


def test_AS_8_nodes_that_live_in_the_context() -> None:
    x, t, y, table = *nodes("x", "t", "y"), Node("table", (4, 3))
    row = table.at(static("step", 0, 4))
    found = program(assign(t[...], x[...] * 2), assign(y[...], t[...] + row[...]), name="f")
    assert list(found.nodes) == [x, table, y]
    assert [param.tensor for param in found.computation.params[:3]] == [x.tensor, table.tensor, y.tensor]


def test_AS_9_what_is_written_and_not_read_later_is_an_output() -> None:
    x, t, y, z = nodes("x", "t", "y", "z")
    found = program(
        assign(t[...], x[...] * 2), assign(y[...], t[...]), assign(z[...], t[...] + y[...]), name="f"
    )
    assert found.outputs == {z}
    assert (t.mode, y.mode, z.mode) == (Mode.LOCAL, Mode.LOCAL, Mode.ON_DEVICE)
    assert y.provenance[0].why == "it is a temporary of 'f'"


def test_LL_12_inputs_and_outputs() -> None:
    x, y, z, total = *nodes("x", "y", "z"), Node("total")
    found = program(
        assign(y[...], x[...]), accumulate("add", z[...], y[...]), reduce("add", total[()], z[i]), name="f"
    )
    assert found.inputs == {x, z}
    assert found.outputs == {z, total}
    assert (access(found, x), access(found, z), access(found, total)) == ("read", "update", "write")


def test_LL_12_a_merge_buffer_is_no_input_of_the_context() -> None:
    grad, y = nodes("grad", "y")
    found = program(assign(y[...], merge(grad)[...]), name="f")
    assert found.inputs == frozenset()
    assert found.merges == {0: grad}
    assert grad.mode is Mode.MATERIALIZED


@pytest.mark.parametrize("op", ["add", "subtract", "maximum"])
def test_WK_19_an_accumulator_is_an_input(op: str) -> None:
    x, y = nodes("x", "y")
    found = program(accumulate(op, y[...], x[...]), name="f")
    assert access(found, y) == "update"
    assert found.inputs == {x, y}
    again = program(assign(y[...], y[...] + x[...]), name="f")
    assert access(again, y) == "update"


def test_WK_19_what_keeps_some_of_its_cells_is_an_input() -> None:
    x, y = Node("x", 3), Node("y", 5)
    found = program(assign(y[i + 1], x[i]), name="f")
    assert access(found, y) == "update"
    np.testing.assert_array_equal(outcome(found, {x: [7, 8, 9], y: 1})[y], [1, 7, 8, 9, 1])


# ---- modes by use ------------------------------------------------------------------------------------


def test_LL_8_what_is_never_written_is_materialized() -> None:
    x, y = nodes("x", "y")
    program(assign(y[...], x[...]), name="f")
    assert x.provenance[0].mode is Mode.MATERIALIZED


def test_LL_8_what_is_read_before_it_is_written_is_materialized() -> None:
    x, y = nodes("x", "y")
    found = program(assign(y[...], x[...]), assign(x[...], y[...] + 1), name="f")
    assert x.provenance[0].why == "'f' reads it before it writes it"
    assert access(found, x) == "update"


def test_LL_8_a_constant_scalar_that_is_read_is_virtual() -> None:
    rate, x, y = Node("rate"), Node("x", 3), Node("y", 3)
    found = program(fill(rate, 0.1), assign(y[...], x[...] * rate[()]), name="f")
    assert rate.mode is Mode.VIRTUAL
    np.testing.assert_array_equal(outcome(found, {x: [1, 2, 3]})[y], np.array([1, 2, 3]) * 0.1)


def test_LL_8_a_local_node_is_not_read_by_another_program() -> None:
    x, t, y = nodes("x", "t", "y")
    program(assign(t[...], x[...] * 2), assign(y[...], t[...]), name="first")
    with pytest.raises(LinkError) as caught:
        program(assign(y[...], t[...] + 1), name="second")
    message = str(caught.value)
    assert "'second' reads t, which is local, before it has written all of it" in message
    assert "local: it is a temporary of 'first'" in message
    assert "make it materialized before the program that computes it" in message
    assert "assign(y[...], t[...] + 1)" in message


def test_LL_8_materializing_earlier_helps_and_later_is_too_late() -> None:
    x, t, y = nodes("x", "t", "y")
    t.refine(Mode.MATERIALIZED)
    first = program(assign(t[...], x[...] * 2), assign(y[...], t[...]), name="first")
    assert access(first, t) == "write"
    assert access(program(assign(y[...], t[...] + 1), name="second"), t) == "read"
    late, z = nodes("late", "z")
    program(assign(late[...], x[...]), assign(z[...], late[...]), name="third")
    with pytest.raises(LinkError, match="late is local and cannot be materialized"):
        late.refine(Mode.MATERIALIZED)


def test_LL_8_a_program_that_is_built_again_is_the_same() -> None:
    x, t, y = nodes("x", "t", "y")
    statements = assign(t[...], x[...] * 2), assign(y[...], t[...])
    assert text(program(*statements, name="f")) == text(program(*statements, name="f"))


@pytest.mark.parametrize("mode", [Mode.NEVER_VIRTUAL, Mode.DEVICE_ONLY])
def test_TN_6_what_must_be_stored_is_local_if_it_is_small(mode: Mode) -> None:
    for extent, kept in ((8, False), (LOCAL_BYTES // 8 + 1, True)):
        x, t, y = nodes("x", "t", "y", extent=extent)
        t.refine(mode)
        found = program(assign(t[...], x[...] * 2), assign(y[...], t[...] + 1), name="f")
        assert (t in found.nodes) is kept
        assert t.mode is (Mode.ON_DEVICE if kept else Mode.LOCAL)


@pytest.mark.parametrize("mode", [Mode.NEVER_VIRTUAL, Mode.DEVICE_ONLY, Mode.MATERIALIZED, Mode.ON_DEVICE])
def test_TN_3_an_output_that_must_be_stored_is_in_the_context(mode: Mode) -> None:
    x, y = nodes("x", "y")
    y.refine(mode)
    assert access(program(assign(y[...], x[...]), name="f"), y) == "write"
    assert y.mode is Mode.ON_DEVICE


def test_TN_3_a_constant_that_nobody_writes_is_data_and_one_that_is_written_is_virtual() -> None:
    table, rate, x, y = nodes("table", "rate", "x", "y")
    table.refine(Mode.EFFECTIVELY_CONSTANT)
    rate.refine(Mode.EFFECTIVELY_CONSTANT)
    first = program(fill(rate, 0.5), assign(y[...], x[...] * rate[...] + table[...]), name="first")
    assert (table.mode, rate.mode) == (Mode.ON_DEVICE, Mode.VIRTUAL)
    second = program(assign(y[...], rate[...]), name="second", optimization=first.optimization)
    np.testing.assert_array_equal(outcome(second, {})[y], [0.5, 0.5, 0.5])


def test_TN_3_a_constant_that_takes_several_statements_is_stored() -> None:
    rate, y = nodes("rate", "y")
    rate.refine(Mode.EFFECTIVELY_CONSTANT)
    found = program(fill(rate, 0.5), assign(rate[0], 1.0), assign(y[...], rate[...]), name="f")
    assert rate.mode is Mode.ON_DEVICE
    np.testing.assert_array_equal(outcome(found, {})[y], [1, 0.5, 0.5])


@pytest.mark.parametrize(
    "statement", [lambda t, x: assign(t[0], x[0]), lambda t, x: accumulate("add", t[i], x[i])]
)
def test_EZ_6_a_local_node_is_written_before_it_is_read(statement: object) -> None:
    x, t, y = nodes("x", "t", "y")
    t.refine(Mode.LOCAL)
    with pytest.raises(LinkError, match="before it has written all of it"):
        program(statement(t, x), assign(y[...], t[...]), name="f")  # type: ignore[operator]


def test_EZ_6_a_local_node_that_is_filled_first() -> None:
    x, t, y = nodes("x", "t", "y")
    t.refine(Mode.LOCAL)
    found = program(
        fill(t, 0), assign(t[0], x[1]), accumulate("add", t[...], x[...]), assign(y[...], t[...]), name="f"
    )
    assert "t: local[f64, 3]" in text(found)
    np.testing.assert_array_equal(outcome(found, {x: [1, 2, 3]})[y], [3, 2, 3])


def test_EZ_9_accumulating_without_a_neutral_start_adds_to_what_is_there() -> None:
    x, y = Node("x", (3, 2)), Node("y", 3)
    found = program(accumulate("add", y[i], x[i, j]), name="f")
    np.testing.assert_array_equal(
        outcome(found, {x: [[1, 2], [3, 4], [5, 6]], y: [10, 20, 30]})[y], [13, 27, 41]
    )


def test_a_temporary_that_is_made_twice_is_two() -> None:
    x, t, y, z = nodes("x", "t", "y", "z")
    found = program(
        assign(t[...], x[...] * 2),
        assign(y[...], t[...]),
        assign(t[...], t[...] + 1),
        assign(z[...], t[...] * y[...]),
        name="f",
    )
    assert "t1: temporary[f64, 3]" in text(found)
    result = outcome(found, {x: [1, 2, 3]})
    np.testing.assert_array_equal(result[z], [6, 20, 42])


def test_EZ_5_a_program_that_is_refused_decides_nothing() -> None:
    x, t, y = nodes("x", "t", "y")
    statements = assign(t[...], x[...]), assign(y[...], t[...] + 1)
    with pytest.raises(DTypeError, match="cannot accumulate in float64"):
        program(*statements, accumulate("logical_and", y[...], x[...]), name="wrong")
    assert [node.mode for node in (x, t, y)] == [Mode.UNDECIDED] * 3
    assert not any(node.provenance for node in (x, t, y))
    x.set_dtype("f4")
    t.refine(Mode.MATERIALIZED)
    found = program(*statements, name="right")
    assert text(found).startswith("def right(x: read[f32, 3], t: write[f32, 3], y: write[f32, 3]):")


# ---- whole programs ----------------------------------------------------------------------------------


def test_a_step_of_training_is_written_down() -> None:
    batch, inner, outer = 4, 3, 2
    x, y = Node("x", (batch, inner)), Node("y", (batch, outer))
    w, rate = Node("w", (inner, outer)), Node("rate")
    out, error, grad, loss = (
        Node("out", (batch, outer)),
        Node("error", (batch, outer)),
        Node(("w", "grad"), (inner, outer)),
        Node("loss"),
    )
    b, n, m = axes("b n m")
    found = program(
        reduce("add", out[b, m], x[b, n] * w[n, m]),
        assign(error[...], np.tanh(out[...]) - y[...]),
        reduce("add", loss[()], error[b, m] * error[b, m]),
        reduce("add", grad[n, m], x[b, n] * (error[b, m] * apply("relu_gate", out[b, m], 1.0))),
        accumulate("subtract", w[...], grad[...] * rate[()]),
        name="step",
    )
    numbers = np.random.default_rng(1)
    a, target, weights = numbers.random((4, 3)), numbers.random((4, 2)), numbers.random((3, 2))
    result = outcome(found, {x: a, y: target, w: weights, rate: 0.1})
    made = a @ weights
    missed = np.tanh(made) - target
    np.testing.assert_allclose(result[loss], (missed**2).sum())
    np.testing.assert_allclose(result[w], weights - 0.1 * (a.T @ (missed * (made > 0))))
    assert found.inputs == {x, y, w, rate}
    assert found.outputs == {loss, w}
