"""lower: every assignment keeps NumPy's meaning, also when it reads the memory that it writes."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pass_programs import CAPS, Program, agrees, inputs

from arrayjit.ir.index import Affine
from arrayjit.ir.interp import KernelRaise, run
from arrayjit.ir.loops import For, LoopKind, Raise, walk_statements
from arrayjit.ir.verify import verify_kernel
from arrayjit.passes.structure.lower import lower


def lowered(program: Program):
    return lower(program.done(), CAPS)


def kinds(kernel) -> list[LoopKind]:
    return [stmt.kind for stmt in walk_statements(kernel.body) if isinstance(stmt, For)]


def copies(kernel) -> int:
    return sum("computed aside" in note for note in kernel.notes)


SEQUENTIAL, PARALLEL = LoopKind.SEQUENTIAL, LoopKind.PARALLEL


@pytest.mark.parametrize(
    ("into", "value", "expected"),
    [
        pytest.param(slice(0, 9), slice(0, 9), [PARALLEL, PARALLEL], id="same cells"),
        pytest.param(slice(0, 4), slice(5, 9), [PARALLEL, PARALLEL], id="disjoint ranges"),
        pytest.param(slice(0, 9, 2), slice(1, 10, 2), [PARALLEL, PARALLEL], id="even and odd rows"),
        pytest.param(slice(0, 9), slice(1, 10), [SEQUENTIAL, PARALLEL], id="reads ahead: forward"),
        pytest.param(slice(1, 10), slice(0, 9), [SEQUENTIAL, PARALLEL], id="reads behind: backward"),
    ],
)
def test_an_overlap_that_one_direction_resolves_needs_no_copy(into, value, expected):
    p = Program()
    x = p.argument("x", 10, 8, access="update")
    x[into] = x[value]
    kernel = lowered(p)
    assert kinds(kernel)[-2:] == expected
    assert copies(kernel) == 0
    assert agrees(p.done(), kernel)


def test_an_overlap_that_no_direction_resolves_is_computed_aside_and_noted_with_the_line():
    p = Program()
    x = p.argument("x", 8, 8, access="update")
    p.store(x, x.T)
    kernel = lowered(p)
    assert copies(kernel) == 1
    assert "program.py:1" in kernel.notes[0]
    assert agrees(p.done(), kernel)


def test_reading_a_fixed_row_that_is_also_written_needs_a_copy_but_not_when_it_is_outside():
    p = Program()
    x = p.argument("x", 8, 8, access="update")
    x[1:] = x[0]
    assert copies(lowered(p)) == 0
    x[:] = x[3]
    kernel = lowered(p)
    assert copies(kernel) == 1
    assert agrees(p.done(), kernel)


def test_a_flat_alias_is_the_same_memory():
    p = Program()
    x = p.argument("x", 4, 5, access="update")
    p.store(x.flat()[1:20], x.flat()[0:19])
    y = x[2]
    p.store(x.flat()[0:5], y)
    kernel = lowered(p)
    assert copies(kernel) == 0
    assert kinds(kernel) == [SEQUENTIAL, PARALLEL]
    assert agrees(p.done(), kernel)


@st.composite
def windows(draw, extent: int, length: int) -> slice:
    step = draw(st.sampled_from([1, 1, 1, 2, -1]))
    reach = (length - 1) * abs(step)
    start = draw(st.integers(0, extent - 1 - reach))
    if step > 0:
        return slice(start, start + reach + 1, step)
    return slice(start + reach, start - 1 if start else None, step)


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_any_overlapping_assignment_means_what_it_means_in_numpy(data):
    p = Program()
    x = p.argument("x", 9, 9, access="update")
    rows, columns = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 5))

    def view():
        window = x[data.draw(windows(9, rows)), data.draw(windows(9, columns))]
        flipped = x[data.draw(windows(9, columns)), data.draw(windows(9, rows))].T
        return data.draw(st.sampled_from([window, window, flipped]))

    p.combine("add", view(), view(), view())
    kernel = lowered(p)
    verify_kernel(kernel)
    assert agrees(p.done(), kernel)


def test_a_sum_may_overwrite_what_it_reads():
    p = Program()
    x = p.argument("x", 6, 6, access="update")
    total = x.sum(axis=1)
    (accumulation,) = p.body
    p.body = [replace(accumulation, into=x.tensor, index=(accumulation.index[0], Affine.of(2)))]
    assert total.shape == (6, 1)
    kernel = lowered(p)
    assert copies(kernel) == 0
    assert agrees(p.done(), kernel)
    p.body = [replace(p.body[0], index=(Affine.of(2), p.body[0].index[0]))]
    kernel = lowered(p)
    assert copies(kernel) == 1
    assert agrees(p.done(), kernel)


def test_an_accumulation_onto_what_the_cells_hold_starts_from_them():
    p = Program()
    x, y = p.argument("x", 4, 5), p.argument("y", 4, 1, access="update")
    x.sum(axis=1)
    p.body = [replace(p.body[0], into=y.tensor, initial=None)]
    assert agrees(p.done(), lowered(p))


def test_points_that_meet_in_one_cell_are_accumulated_there():
    p = Program()
    x, y = p.argument("x", 4, 5), p.argument("y", 8, access="update")
    x.sum()
    (i, _), (j, _) = p.body[0].loops
    p.body = [replace(p.body[0], into=y.tensor, index=(Affine.of(i) + j,), initial=None)]
    kernel = lowered(p)
    assert agrees(p.done(), kernel)
    assert kinds(kernel) == [SEQUENTIAL, SEQUENTIAL]


def test_loops_of_one_iteration_and_of_none_leave_no_loop():
    p = Program()
    x, y = p.argument("x", 1, 5), p.argument("y", 1, 5, access="write")
    p.store(y, x)
    p.store(y[:, 2:2], x[:, 2:2])
    kernel = lowered(p)
    assert kinds(kernel) == [PARALLEL]
    assert agrees(p.done(), kernel)


def test_an_empty_sum_is_its_initial_value():
    p = Program()
    p.result(p.argument("x", 3, 0).sum(axis=1))
    assert agrees(p.done(), lowered(p))


def test_no_two_loops_share_a_symbol():
    p = Program()
    x = p.argument("x", 4, 5, access="update")
    p.store(x, 1.0)
    p.body = p.body * 3
    kernel = lowered(p)
    symbols = [stmt.symbol for stmt in walk_statements(kernel.body) if isinstance(stmt, For)]
    assert len(set(symbols)) == len(symbols) == 6


def test_a_user_loop_stays_one_and_keeps_the_order():
    p = Program()
    x = p.argument("x", 6, 5, access="update")
    with p.loop(1, 6) as n:
        x[n] = x[Affine.of(n) - 1] + x[n]
    kernel = lowered(p)
    assert kinds(kernel) == [SEQUENTIAL, PARALLEL, PARALLEL]
    assert agrees(p.done(), kernel)


@pytest.mark.parametrize("positive", [True, False])
def test_a_check_looks_at_every_cell_and_raises_outside_the_loops(positive):
    p = Program()
    x = p.argument("x", 4, 5)
    p.check_positive(x)
    p.result(x)
    kernel = lowered(p)
    assert [type(stmt) for stmt in kernel.body][2] is Raise
    arrays = inputs(p.done())
    if positive:
        run(kernel, arrays)
        return
    arrays[x.tensor][3, 4] = -1.0
    with pytest.raises(KernelRaise, match="ValueError"):
        run(kernel, arrays)
