"""Virtual nodes: computed where they are read, in this program and in later ones, or refused."""

from __future__ import annotations

import re

import numpy as np
import pytest
from by_hand import TARGETS, outcome, text

from arrayjit.assignments import (
    Mode,
    Node,
    OptimizationContext,
    Program,
    accumulate,
    assign,
    axes,
    axis,
    concat,
    fill,
    merge,
    number,
    program,
    reduce,
    static,
)
from arrayjit.compile import build
from arrayjit.errors import LinkError, UnsupportedError

i, j, k = axes("i j k")


def nodes(*names: str, extent: int = 4) -> list[Node]:
    return [Node(name, extent) for name in names]


def virtual(name: str, *shape: int) -> Node:
    return Node(name, shape or (4,), mode=Mode.VIRTUAL)


def stored(found: Program, name: str) -> bool:
    """Whether an array of this name is left when the program has become loops."""
    loops = build(found.computation, "sync_llvm").as_text("loops")
    return re.search(rf"\b{name}\d*\[", loops) is not None


def refusal(found: Program) -> str:
    messages = []
    for target in TARGETS:
        with pytest.raises(UnsupportedError) as caught:
            build(found.computation, target)
        messages.append(str(caught.value))
    assert len(set(messages)) == 1
    return messages[0]


# ---- in one program ----------------------------------------------------------------------------------


def test_VI_8_a_virtual_node_is_computed_where_it_is_read() -> None:
    x, y, z, t = *nodes("x", "y", "z"), virtual("t")
    found = program(
        assign(t[...], np.exp(np.sin(x[...])) + x[...]),
        assign(y[i], t[i]),
        assign(z[i], t[3 - i] * t[0]),
        name="f",
    )
    assert "t: virtual[f64, 4]" in text(found)
    assert not stored(found, "t")
    a = np.arange(4.0)
    value = np.exp(np.sin(a)) + a
    result = outcome(found, {x: a})
    np.testing.assert_allclose(result[y], value)
    np.testing.assert_allclose(result[z], value[::-1] * value[0])


def test_VI_8_an_axis_may_be_written_from_its_end() -> None:
    x, y, t = Node("x", (4, 3)), Node("y", (3, 4)), virtual("t", 3, 4)
    found = program(assign(t[2 - j, i], np.exp(x[i, j])), assign(y[...], t[...] + t[0, ...]), name="f")
    assert not stored(found, "t")
    a = np.random.default_rng(0).random((4, 3))
    flipped = np.exp(a[:, ::-1].T)
    np.testing.assert_allclose(outcome(found, {x: a})[y], flipped + flipped[0])


def test_VI_3_it_is_the_value_that_it_has_at_that_place() -> None:
    x, y, z, t = *nodes("x", "y", "z"), virtual("t")
    found = program(
        assign(t[...], x[...] * 2),
        assign(y[...], t[...]),
        accumulate("subtract", t[...], 1.0),
        assign(z[...], t[...]),
        name="f",
    )
    assert not stored(found, "t")
    result = outcome(found, {x: [1, 2, 3, 4]})
    np.testing.assert_array_equal(result[y], [2, 4, 6, 8])
    np.testing.assert_array_equal(result[z], [1, 3, 5, 7])


def test_VI_8_virtual_nodes_of_virtual_nodes() -> None:
    x, y, t, u = *nodes("x", "y"), virtual("t"), virtual("u", 4, 4)
    found = program(
        assign(t[...], x[...] + 1),
        assign(u[i, j], t[i] * t[j]),
        reduce("add", y[i], u[i, j] * t[j]),
        name="f",
    )
    assert not stored(found, "t")
    assert not stored(found, "u")
    a = np.arange(4.0)
    np.testing.assert_allclose(outcome(found, {x: a})[y], np.outer(a + 1, a + 1) @ (a + 1))


def test_VI_8_factors_of_a_product_may_be_virtual() -> None:
    x, w, y, t = Node("x", (3, 4)), Node("w", (4, 2)), Node("y", (3, 2)), virtual("t", 4, 2)
    found = program(assign(t[...], w[...] * 3), reduce("add", y[i, j], x[i, k] * t[k, j]), name="f")
    a, b = np.random.default_rng(0).random((3, 4)), np.random.default_rng(1).random((4, 2))
    np.testing.assert_allclose(outcome(found, {x: a, w: b})[y], a @ (b * 3))


def test_VI_14_a_virtual_node_that_nobody_reads_costs_nothing() -> None:
    x, y, t = *nodes("x", "y"), virtual("t")
    found = program(assign(t[...], x[...] * 2), assign(y[...], x[...]), name="f")
    assert not stored(found, "t")
    np.testing.assert_array_equal(outcome(found, {x: [1, 2, 3, 4]})[y], [1, 2, 3, 4])


def test_WK_2_a_reader_may_overwrite_what_it_is_computed_from() -> None:
    x, t, n = Node("x", 4), virtual("t"), axis("n", 3)
    found = program(assign(t[...], x[...] * 2), assign(x[n], t[n + 1]), name="f")
    assert not stored(found, "t")
    np.testing.assert_array_equal(outcome(found, {x: [1, 2, 3, 4]})[x], [4, 6, 8, 4])


@pytest.mark.parametrize("mode", [Mode.LOCAL, Mode.NEVER_VIRTUAL])
def test_TN_3_what_is_not_to_be_virtual_is_stored(mode: Mode) -> None:
    x, y, t = nodes("x", "y", "t")
    t.refine(mode)
    statements = assign(t[...], x[...] * 0.5), assign(y[i], t[i] + t[3 - i])
    found = program(*statements, name="f")
    assert stored(found, "t")
    np.testing.assert_array_equal(outcome(found, {x: [1, 2, 3, 4]})[y], [2.5, 2.5, 2.5, 2.5])
    free = Node("free", 4)
    undecided = program(assign(free[...], x[...] * 0.5), assign(y[i], free[i] + free[3 - i]), name="f")
    assert not stored(undecided, "free")


# ---- promises that cannot be kept --------------------------------------------------------------------


def test_VI_12_a_reduction_is_stored() -> None:
    x, y, t = Node("x", (4, 3)), Node("y", 4), virtual("t")
    message = refusal(program(reduce("add", t[i], x[i, j]), assign(y[i], t[i]), name="f"))
    assert "t is virtual and cannot be computed where it is read: its cells combine several values" in message
    assert "virtual: asked for" in message
    assert message.count("test_assign_virtual.py") == 2


def test_VI_7_what_is_made_in_parts_is_stored() -> None:
    x, y, t = *nodes("x", "y"), virtual("t")
    parts = concat(axis("n", 2), axis("m", 2))
    halves = assign(t[parts], x[parts])
    message = refusal(program(halves, assign(y[i], t[i]), name="f"))
    assert "several statements write it" in message


def test_VI_5_what_is_not_counted_through_by_one_symbol_an_axis_is_stored() -> None:
    x, y, t = Node("x", (2, 2)), Node("y", 4), virtual("t")
    message = refusal(program(assign(t[2 * i + j], x[i, j]), assign(y[i], t[i]), name="f"))
    assert "does not write it from the first cell on, one for each point" in message


def test_WK_2_what_it_is_computed_from_is_not_written_in_between() -> None:
    x, y, t = *nodes("x", "y"), virtual("t")
    found = program(assign(t[...], x[...] * 2), assign(x[...], x[...] + 1), assign(y[...], t[...]), name="f")
    assert "x, which it is computed from, is written before it is read" in refusal(found)


def test_WK_2_nor_in_the_loop_that_reads_it() -> None:
    x, y, t = *nodes("x", "y"), virtual("t")
    found = program(
        assign(t[...], x[...] * 2), accumulate("power", x[0], t[i]), assign(y[...], x[...]), name="f"
    )
    assert "x, which it is computed from, is written" in refusal(found)


# ---- from program to program -------------------------------------------------------------------------


def test_LL_10_a_later_program_computes_it_again() -> None:
    x, y, z, t = *nodes("x", "y", "z"), virtual("t")
    first = program(assign(t[...], x[...] * 2), assign(y[...], t[...]), name="first")
    second = program(assign(z[...], t[...] + 1), name="second", optimization=first.optimization)
    assert second.inputs == {x}
    assert list(second.nodes) == [x, z]
    np.testing.assert_array_equal(outcome(second, {x: [1, 2, 3, 4]})[z], [3, 5, 7, 9])


def test_LL_10_with_all_that_it_is_made_of() -> None:
    x, y, t, u, v = *nodes("x", "y"), virtual("t"), virtual("u"), virtual("v")
    first = program(
        assign(t[...], x[...] * 2),
        assign(u[...], t[...] + 1),
        accumulate("multiply", u[...], t[...]),
        assign(v[...], u[...] - t[...]),
        name="first",
    )
    second = program(assign(y[...], v[...]), name="second", optimization=first.optimization)
    a = np.arange(4.0)
    np.testing.assert_array_equal(outcome(second, {x: a})[y], (2 * a + 1) * 2 * a - 2 * a)


def test_LL_10_through_programs_that_do_not_know_it() -> None:
    x, y, z, t = *nodes("x", "y", "z"), virtual("t")
    first = program(assign(t[...], x[...] * 2), name="first")
    between = program(fill(z, 0), name="between", optimization=first.optimization)
    last = program(assign(y[...], t[...]), name="last", optimization=between.optimization)
    np.testing.assert_array_equal(outcome(last, {x: [1, 2, 3, 4]})[y], [2, 4, 6, 8])


def test_LL_10_only_the_virtual_part_of_a_statement_is_computed_again() -> None:
    x, y, kept, t = Node("x", 8), Node("y", 4), Node("kept", 4, mode=Mode.MATERIALIZED), virtual("t")
    first = program(assign([t[i], kept[j]], x[concat(i, j)] * 2), name="first")
    second = program(assign(y[...], t[...]), name="second", optimization=first.optimization)
    assert kept not in second.nodes
    np.testing.assert_array_equal(outcome(second, {x: np.arange(8)})[y], [0, 2, 4, 6])


def test_LL_10_a_definition_that_nobody_handed_on() -> None:
    x, y, t = *nodes("x", "y"), virtual("t")
    program(assign(t[...], x[...] * 2), assign(y[...], t[...]), name="first")
    with pytest.raises(LinkError) as caught:
        program(assign(y[...], t[...]), name="second")
    assert "t is virtual, and no earlier program is known that defines it" in str(caught.value)
    assert "virtual: asked for" in str(caught.value)


@pytest.mark.parametrize("again", [False, True])
def test_WK_2_a_definition_is_stale_once_its_inputs_are_written(again: bool) -> None:
    x, y, t = *nodes("x", "y"), virtual("t")
    first = program(assign(t[...], x[...] * 2), name="first")
    change = program(accumulate("add", x[...], 1.0), name="change", optimization=first.optimization)
    if again:
        change = program(assign(t[...], x[...] * 2), name="again", optimization=change.optimization)
        last = program(assign(y[...], t[...]), name="last", optimization=change.optimization)
        np.testing.assert_array_equal(outcome(last, {x: [1, 2, 3, 4]})[y], [2, 4, 6, 8])
        return
    with pytest.raises(LinkError) as caught:
        program(assign(y[...], t[...]), name="last", optimization=change.optimization)
    assert "t is virtual and cannot be computed again: 'change' writes x" in str(caught.value)
    assert "materialize it" in str(caught.value)


def test_WK_2_also_where_the_same_program_writes_them() -> None:
    x, y, t = *nodes("x", "y"), virtual("t")
    first = program(assign(t[...], x[...] * 2), assign(x[...], t[...]), name="first")
    with pytest.raises(LinkError, match="'first' writes x"):
        program(assign(y[...], t[...]), name="second", optimization=first.optimization)


def test_WK_2_also_where_a_virtual_node_is_given_another_value() -> None:
    x, y, t, u = *nodes("x", "y"), virtual("t"), virtual("u")
    first = program(
        assign(t[...], x[...]), assign(u[...], t[...] + 1), assign(t[...], x[...] * 2), name="first"
    )
    with pytest.raises(LinkError, match="u is virtual and cannot be computed again: 'first' writes t"):
        program(assign(y[...], u[...]), name="second", optimization=first.optimization)


def test_WK_2_what_differs_from_launch_to_launch_is_not_computed_again() -> None:
    step = static("step", 0, 4)
    for value, reason in (
        (lambda x: x[step] * 2, "it is computed from the static symbol step"),
        (lambda x: number(step), "it is computed from the static symbol step"),
        (lambda x: merge(x, 1)[...], "it is computed from merge buffer 1"),
    ):
        x, y, t = *nodes("x", "y"), virtual("t")
        first = program(assign(t[...], value(x)), assign(y[...], t[...]), name="first")
        with pytest.raises(LinkError, match=reason):
            program(assign(y[...], t[...]), name="second", optimization=first.optimization)


def test_WK_6_an_optimization_context_is_a_value() -> None:
    x, y, t = *nodes("x", "y"), virtual("t")
    first = program(assign(t[...], x[...] * 2), name="first")
    program(assign(t[...], x[...] * 3), name="one", optimization=first.optimization)
    program(accumulate("add", x[...], 1.0), name="other", optimization=first.optimization)
    last = program(assign(y[...], t[...]), name="last", optimization=first.optimization)
    np.testing.assert_array_equal(outcome(last, {x: [1, 2, 3, 4]})[y], [2, 4, 6, 8])
    assert OptimizationContext().definitions == {}
    assert list(first.optimization.definitions) == [t]


def test_EZ_5_virtual_and_stored_is_a_contradiction() -> None:
    x, y, t = *nodes("x", "y"), virtual("t")
    program(assign(t[...], x[...] * 2), assign(y[...], t[...]), name="first")
    with pytest.raises(LinkError, match="t is virtual and cannot be materialized"):
        t.refine(Mode.MATERIALIZED)
    with pytest.raises(LinkError, match="its values arrive in merge buffer 0"):
        program(assign(y[...], merge(t)[...]), name="second")
