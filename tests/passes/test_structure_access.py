"""access: what it says about two accesses, against trying all iterations."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arrayjit.ir.dtype import F64
from arrayjit.ir.expr import constant
from arrayjit.ir.index import Affine, Symbol, affine
from arrayjit.ir.loops import For, Store
from arrayjit.ir.tensor import Tensor
from arrayjit.passes.analysis import carriers
from arrayjit.passes.analysis.access import distances, is_injective, loop_range, region

I, J, K = Symbol("i"), Symbol("j"), Symbol("k")  # noqa: E741
COUNTS = {I: 4, J: 3, K: 2}
RANGES = {symbol: (0, count - 1) for symbol, count in COUNTS.items()}
SHAPE = affine([50, 7])
WHOLE = Tensor("x", SHAPE, F64)
FLAT = Tensor("x", affine([350]), F64, base=WHOLE)


@st.composite
def positions(draw) -> Affine:
    total = Affine.of(draw(st.integers(-4, 8)))
    for symbol in (I, J, K):
        total = total + Affine.of(symbol) * draw(st.sampled_from([0, 0, 0, 1, 1, -1, 2, 3]))
    return total


accesses = st.one_of(
    st.tuples(st.just(WHOLE), st.tuples(positions(), positions())),
    st.tuples(st.just(FLAT), st.tuples(positions())),
)


def offset(tensor: Tensor, index: tuple[Affine, ...], values: dict[Symbol, int]):
    """The cell, by its index within one tensor and by its offset between a tensor and its flat form."""
    return tuple(position.evaluate(values) for position in index), tensor.linear(index).evaluate(values)


@given(accesses, accesses)
@settings(max_examples=200, deadline=None)
def test_all_iterations_that_meet_are_within_the_distances(one, other):
    inner = {K: RANGES[K]}
    found = distances(region(*one, inner), region(*other, inner), [I, J], RANGES)
    by_index = one[0] is other[0]
    points = [dict(zip(COUNTS, point, strict=True)) for point in product(*map(range, COUNTS.values()))]
    for p in points:
        for q in points:
            cells = offset(*one, p), offset(*other, q)
            meet = cells[0][0] == cells[1][0] if by_index else cells[0][1] == cells[1][1]
            if meet:
                assert found is not None
                assert all(found[s][0] <= p[s] - q[s] <= found[s][1] for s in (I, J))


@given(st.data(), st.integers(1, 4), st.integers(0, 3))
@settings(max_examples=300, deadline=None)
def test_what_positions_leave_out_narrows_the_distances(data, modulus, shift):
    """`n = (i + shift) % modulus`, and `k` goes in steps of two."""
    n, steps = Symbol("n"), range(0, 8, 2)
    inner = {n: (0, modulus - 1), K: (steps[0], steps[-1])}
    phases = {n: (I + shift, modulus), K: (Affine.of(0), 2)}
    numbers = st.sampled_from([0, 1, 2, -1, 3])
    one, other = (
        tuple(
            Affine.of(data.draw(st.integers(0, 4)))
            + sum((Affine.of(s) * data.draw(numbers) for s in (I, J, n, K)), Affine.of(0))
            for _ in SHAPE
        )
        for _ in range(2)
    )
    regions = (region(WHOLE, index, inner, phases) for index in (one, other))
    found = distances(*regions, [I, J], RANGES)

    def cells(index):
        for i, j in product(range(COUNTS[I]), range(COUNTS[J])):
            for k in steps:
                values = {I: i, J: j, n: (i + shift) % modulus, K: k}
                yield tuple(position.evaluate(values) for position in index), i, j

    for mine, theirs in product(cells(one), cells(other)):
        if mine[0] == theirs[0]:
            assert found is not None
            assert found[I][0] <= mine[1] - theirs[1] <= found[I][1]
            assert found[J][0] <= mine[2] - theirs[2] <= found[J][1]


@given(
    st.lists(st.tuples(st.sampled_from([I, J, K]), st.integers(1, 12)), max_size=3, unique_by=lambda t: t[0])
)
def test_an_injective_sum_takes_each_value_once(terms):
    if is_injective(terms, RANGES):
        points = product(*(range(COUNTS[symbol]) for symbol, _ in terms))
        values = [sum(c * v for (_, c), v in zip(terms, point, strict=True)) for point in points]
        assert len(set(values)) == len(values)


def test_equal_cells_meet_in_equal_iterations_only():
    cell = region(WHOLE, affine([I, J]), {})
    assert distances(cell, cell, [I, J], RANGES) == {I: (0, 0), J: (0, 0)}


def test_a_row_major_offset_is_known_as_well_as_the_cell():
    cell = region(FLAT, (Affine.of(I) * 3 + J,), {})
    assert distances(cell, cell, [I, J], RANGES) == {I: (0, 0), J: (0, 0)}


def test_a_shift_is_a_constant_distance():
    here = region(WHOLE, affine([I, J]), {})
    ahead = region(WHOLE, (Affine.of(I) + 1, Affine.of(J)), {})
    assert distances(here, ahead, [I, J], RANGES) == {I: (1, 1), J: (0, 0)}


def test_even_and_odd_never_meet():
    even = region(WHOLE, (Affine.of(I) * 2, Affine.of(J)), {})
    odd = region(WHOLE, (Affine.of(I) * 2 + 1, Affine.of(J)), {})
    assert distances(even, odd, [I, J], RANGES) is None


def test_cells_of_one_colour_are_not_beside_one_another():
    n = Symbol("n")
    row, between, colour = Affine.of(I), Affine.of(n) + J * 2, {n: (Affine.of(I), 2)}
    inside = {n: (0, 1), J: RANGES[J]}
    here, above, two_above = (region(WHOLE, (row - far, between), inside, colour) for far in range(3))
    assert distances(here, above, [I], RANGES) is None
    assert distances(here, two_above, [I], RANGES) == {I: (-2, -2)}


def test_cells_so_far_apart_meet_in_equal_iterations_only():
    cells = region(WHOLE, (I + K * 4, Affine.of(0)), {K: RANGES[K]})
    assert distances(cells, cells, [I], RANGES) == {I: (0, 0)}


def test_a_row_and_a_column_meet_on_the_diagonal():
    along = region(WHOLE, affine([0, J]), {})
    down = region(WHOLE, affine([J, 0]), {})
    assert distances(along, down, [J], RANGES) == {J: (0, 0)}


def test_what_moves_away_from_where_another_one_stays_never_meets_it():
    moving = region(WHOLE, (Affine.of(I) + 1, Affine.of(J)), {})
    staying = region(WHOLE, affine([0, 0]), {})
    assert distances(moving, staying, [I, J], RANGES) is None


@pytest.mark.parametrize("step", [-5, -4, -1, 1, 2, 3, 7])
def test_a_loop_s_symbol_goes_from_the_first_to_the_last_value_that_it_has(step):
    for lo, hi in product(range(-6, 7), repeat=2):
        values = range(lo, hi, step)
        if values:
            assert loop_range(Affine.of(lo), Affine.of(hi), step, {}) == (min(values), max(values))


@pytest.mark.parametrize("step", [-3, -1, 1, 2])
def test_where_a_loop_starts_or_ends_by_another_one_no_value_is_left_out(step):
    ends = Affine.of(I) * 3 - 2, Affine.of(J) + 1
    for lo, hi in (ends, ends[::-1], (ends[0], Affine.of(5)), (Affine.of(5), ends[0])):
        least, greatest = loop_range(lo, hi, step, RANGES)
        for i, j in product(range(COUNTS[I]), range(COUNTS[J])):
            first, end = (bound.evaluate({I: i, J: j}) for bound in (lo, hi))
            assert all(least <= value <= greatest for value in range(first, end, step))


def test_places_that_are_written_are_compared_once(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[object] = []
    monkeypatch.setattr(carriers, "distances", lambda one, other, *_: compared.append((one, other)))
    stores = tuple(Store(WHOLE, (Affine.of(I), Affine.of(column)), constant(1.0, F64)) for column in range(7))
    loop = For(I, Affine.of(0), Affine.of(4), stores)
    assert carriers.carriers(loop, {}) == frozenset()
    assert len(compared) == len({frozenset(pair) for pair in compared}) == 7 * 8 / 2
