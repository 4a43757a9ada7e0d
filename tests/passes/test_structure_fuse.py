"""inline, fuse and place together: how many loops, arrays, loads and stores are left of NumPy code."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pass_programs import (
    Program,
    View,
    agrees,
    count_loads,
    count_loops,
    count_stores,
    run_passes,
    temporaries,
)

from arrayjit.ir.index import Affine
from arrayjit.ir.loops import Define, For, LoopKind, PlaceKind, walk_statements
from arrayjit.passes.analysis.access import distances
from arrayjit.passes.structure.fuse import MAX_REGIONS, MAX_STREAMS, fuse
from arrayjit.passes.structure.inline import inline
from arrayjit.passes.structure.lifetimes import lifetimes
from arrayjit.passes.structure.lower import lower
from arrayjit.passes.structure.place import place
from arrayjit.passes.structure.prune import prune

STRUCTURE = (inline, lower, prune, fuse, place, lifetimes)


def structured(program: Program):
    """The program after all passes on its structure, checked against the record it was made from."""
    computation = program.done()
    kernel = run_passes(computation, *STRUCTURE)
    assert agrees(computation, kernel)
    return kernel


def shape(kernel) -> tuple[int, int, int]:
    """Loops, loads and stores in the text of a kernel."""
    return count_loops(kernel), count_loads(kernel), count_stores(kernel)


def softmax(p: Program, x: View, axis: int) -> View:
    e = p.apply("exp", x - x.max(axis))
    return e / e.sum(axis)


def test_elementwise_arithmetic_is_one_loop_without_an_array():
    p = Program()
    a, b, c = (p.argument(label, 100) for label in "abc")
    p.result(a * b + c * a - b)
    kernel = structured(p)
    assert shape(kernel) == (1, 5, 1)
    assert temporaries(kernel) == {}


def test_a_softmax_over_rows_is_one_loop_over_rows_holding_a_row():
    p = Program()
    p.result(softmax(p, p.argument("x", 12, 30), axis=1))
    kernel = structured(p)
    assert [type(stmt) for stmt in kernel.body] == [For]
    assert shape(kernel) == (4, 4, 2)
    assert temporaries(kernel) == {"t": (30,)}
    assert {place.kind for place in kernel.placement.values()} == {PlaceKind.STACK}


def test_a_row_shared_by_iterations_makes_their_loop_sequential():
    p = Program()
    p.result(softmax(p, p.argument("x", 12, 30), axis=1))
    loops = [stmt for stmt in walk_statements(structured(p).body) if isinstance(stmt, For)]
    assert [loop.kind is LoopKind.SEQUENTIAL for loop in loops] == [True, False, False, False]


def test_a_layer_norm_is_one_loop_over_rows():
    p = Program()
    x, gain, bias = p.argument("x", 12, 30), p.argument("g", 30), p.argument("b", 30)
    d = x - x.sum(1) / 30.0
    variance = (d * d).sum(1) / 30.0
    p.result(d / p.apply("sqrt", variance + 1e-5) * gain + bias)
    kernel = structured(p)
    assert len([stmt for stmt in kernel.body if isinstance(stmt, For)]) == 1
    assert count_loops(kernel) == 4
    assert temporaries(kernel) == {"t": (30,)}


def test_three_jacobi_steps_in_place_are_two_nests_each_and_share_one_array():
    p = Program()
    x = p.argument("x", 12, 14, access="update")
    inner = slice(1, -1)
    for _ in range(3):
        around = x[:-2, inner] + x[2:, inner] + x[inner, :-2] + x[inner, 2:]
        x[inner, inner] = around * 0.25
    kernel = structured(p)
    assert len(kernel.body) == 6
    assert shape(kernel) == (12, 15, 6)
    assert [place.offset for place in kernel.placement.values()] == [0, 0, 0] or kernel.arena_bytes == 0


def test_scalars_that_one_nest_makes_for_the_next_are_variables():
    p = Program()
    x = p.argument("x", 6, 7)
    p.result(x / p.apply("sqrt", (x * x).sum()))
    kernel = structured(p)
    assert temporaries(kernel) == {}
    assert count_loops(kernel) == 4
    assert sum(isinstance(stmt, Define) for stmt in kernel.body) == 3


def test_statistics_over_columns_take_no_array_of_full_size():
    p = Program()
    x = p.argument("x", 9, 8)
    d = x - x.sum(0) / 9.0
    p.result(d / p.apply("sqrt", (d * d).sum(0) / 9.0))
    kernel = structured(p)
    assert set(temporaries(kernel).values()) == {(1, 8)}


def test_the_epilogue_of_a_matrix_product_joins_it_but_a_second_product_does_not():
    p = Program()
    x, w, v = p.argument("x", 6, 7), p.argument("w", 7, 6), p.argument("v", 6, 6)
    hidden = p.apply("maximum", p.matmul(x, w) + 1.0, 0.0)
    p.result(p.matmul(hidden, v))
    kernel = structured(p)
    assert len(kernel.body) == 2
    assert count_loops(kernel) == 6
    assert temporaries(kernel) == {"t": (6, 6)}


def test_a_transposed_value_is_computed_where_it_is_read():
    p = Program()
    x = p.argument("x", 6, 7)
    p.result(p.apply("exp", x).T * 2.0)
    kernel = structured(p)
    assert count_loops(kernel) == 2
    assert temporaries(kernel) == {}


def test_sums_over_rows_and_over_columns_stay_apart_even_of_a_square():
    p = Program()
    x = p.argument("x", 6, 6)
    p.result(x.sum(0) + x.sum(1).T)
    bands = [stmt for stmt in structured(p).body if isinstance(stmt, For)]
    assert len(bands) == 2


def test_loops_over_other_ranges_stay_apart():
    p = Program()
    x = p.argument("x", 9)
    p.result(p.apply("exp", x)[1:] + p.apply("exp", x)[:-1])
    kernel = structured(p)
    assert len(kernel.body) == 2
    assert count_loops(kernel) == 2


def test_a_write_between_two_reads_keeps_them_apart():
    p = Program()
    x, y = p.argument("x", 9, access="update"), p.argument("y", 9)
    before = p.apply("exp", x)
    x[1:] = y[:-1]
    p.result(before + p.apply("exp", x))
    assert len(structured(p).body) == 3


def test_what_one_iteration_leaves_for_another_keeps_loops_apart():
    p = Program()
    x, y = p.argument("x", 9, access="update"), p.argument("y", 9, access="update")
    y[:8] = p.apply("exp", x[:8])
    x[:8] = y[1:]
    kernel = structured(p)
    assert len(kernel.body) == 2


def test_nothing_moves_across_a_check():
    p = Program()
    x, y = p.argument("x", 9), p.argument("y", 9, access="update")
    p.store(y, x)
    p.check_positive(x)
    y[:] = y * 2.0
    kernel = structured(p)
    assert [stmt.symbol.hint for stmt in kernel.body if isinstance(stmt, For)] == ["i", "i"]


def test_a_nest_goes_through_a_bounded_number_of_arrays():
    p = Program()
    for number in range(2 * MAX_STREAMS):
        p.store(p.argument(f"x{number}", 5, access="update"), 1.0)
    assert len(structured(p).body) == 2


def test_a_nest_is_compared_at_a_bounded_number_of_places_of_an_array(monkeypatch):
    def comparisons(rows: int) -> int:
        p = Program()
        x = p.argument("x", rows, 5, access="update")
        for row in range(1, rows):
            x[row] = x[row] + x[row - 1] * 0.5
        done = []
        monkeypatch.setattr(
            "arrayjit.passes.structure.fuse.distances", lambda *args: done.append(args) or distances(*args)
        )
        structured(p)
        return len(done)

    assert comparisons(4 * MAX_REGIONS) < 2.5 * comparisons(2 * MAX_REGIONS)


def test_a_temporary_that_a_user_loop_carries_stays_an_array():
    p = Program()
    state = p.temporary((7,), "state")
    p.store(state, p.argument("x", 7))
    with p.loop(0, 4):
        p.store(state, p.apply("sqrt", state))
    p.result(state)
    kernel = structured(p)
    assert temporaries(kernel) == {"state": (7,)}


def test_a_temporary_within_a_user_loop_vanishes():
    p = Program()
    x = p.argument("x", 7, access="update")
    with p.loop(0, 4):
        x[:] = p.apply("sqrt", x) + x
    kernel = structured(p)
    assert temporaries(kernel) == {}
    assert count_loops(kernel) == 2


def test_every_decision_is_noted():
    p = Program()
    p.result(softmax(p, p.argument("x", 12, 30), axis=1))
    kernel = structured(p)
    assert any(
        "is in the stack: each iteration of i makes and uses its part" in note for note in kernel.notes
    )
    assert sum("is a variable" in note for note in kernel.notes) == 4


def test_temporaries_that_do_not_live_together_share_bytes():
    p = Program()
    x = p.argument("x", 64, 64, access="update")
    for _ in range(4):
        x[:] = p.apply("exp", x)[::-1] * 0.001
    kernel = structured(p)
    assert len(kernel.placement) == 4
    assert kernel.arena_bytes == 2 * 64 * 64 * 8


def test_dead_code_is_removed():
    p = Program()
    x = p.argument("x", 9)
    unused = p.apply("exp", x)
    unused.sum()
    p.result(x)
    assert shape(structured(p)) == (1, 1, 1)


@st.composite
def statements(draw, p: Program, values: list[View], outputs: list[View]) -> None:
    """One random statement: an operation, a reduction, or a write into a window of an array."""
    operand = st.sampled_from(values)
    kind = draw(st.sampled_from(["apply", "apply", "apply", "sum", "write", "copy", "matmul"]))
    one = draw(operand)
    if kind == "sum":
        values.append(one.sum(draw(st.sampled_from([0, 1, None]))))
    elif kind == "matmul":
        values.append(p.matmul(full(p, one), full(p, draw(operand))))
    elif kind == "copy":
        values.append(one.T)
    elif kind == "write":
        target = draw(st.sampled_from(outputs))
        lo, width = draw(st.integers(0, 2)), draw(st.integers(1, 4))
        shift = draw(st.integers(0, 2))
        source = one if one.shape != (SIZE, SIZE) else one[shift : shift + width]
        target[lo : lo + width] = source if source.shape[0] in (1, width) else 1.0
    else:
        values.append(p.apply(draw(st.sampled_from(["add", "multiply", "minimum"])), one, draw(operand)))


SIZE = 6


def full(p: Program, value: View) -> View:
    return value if value.shape == (SIZE, SIZE) else p.apply("add", p.whole(p.params[0].tensor), value)


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_any_program_keeps_its_meaning_bit_for_bit(data):
    p = Program()
    x = p.argument("x", SIZE, SIZE, access="update")
    y = p.argument("y", SIZE, SIZE, access="update")
    values = [x, y, p.argument("r", 1, SIZE), p.argument("c", SIZE, 1)]
    for _ in range(data.draw(st.integers(1, 8))):
        if data.draw(st.integers(0, 4)) == 0:
            with p.loop(0, 2):
                known = len(values)
                for _ in range(data.draw(st.integers(1, 4))):
                    data.draw(statements(p, values, [x, y]))
                del values[known:]
        else:
            data.draw(statements(p, values, [x, y]))
    p.result(full(p, values[-1]))
    structured(p)


@pytest.mark.parametrize("index", [Affine.of(0), Affine.of(3)])
def test_a_whole_array_written_from_one_of_its_rows(index):
    p = Program()
    x = p.argument("x", 6, 5, access="update")
    with p.loop(0, 3):
        x[:] = x[index] * 0.5
    structured(p)
