"""Random projections under every accumulator: what a program computes is what two Python loops do."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
import pytest
from by_hand import double_loop, outcome
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from arrayjit.assignments import Node, accumulate, assign, axis, program, reduce
from arrayjit.assignments.projections import Projection
from arrayjit.errors import DTypeError
from arrayjit.ir.dtype import F64, DType, named
from arrayjit.ir.index import Affine, Symbol
from arrayjit.ir.ops import OPS, Op
from arrayjit.ir.resolve import resolve

Terms = tuple[tuple[int, ...], int]
"""A position: one coefficient for each loop, and an offset."""


@dataclass(frozen=True)
class Map:
    """An index: positions over loops of these extents, shifted so that the least is not negative."""

    extents: tuple[int, ...]
    positions: tuple[Terms, ...]

    def ends(self, terms: Terms) -> tuple[int, int]:
        spans = [c * (extent - 1) for c, extent in zip(terms[0], self.extents, strict=True)]
        return sum(min(span, 0) for span in spans), sum(max(span, 0) for span in spans)

    def cell(self, *point: int) -> tuple[int, ...]:
        return tuple(
            sum(c * p for c, p in zip(terms[0], point, strict=True)) + terms[1] - self.ends(terms)[0]
            for terms in self.positions
        )

    def index(self, symbols: tuple[Symbol, ...]) -> tuple[Affine, ...]:
        return tuple(
            sum((s * c for c, s in zip(terms[0], symbols, strict=True)), Affine.of(0))
            + terms[1]
            - self.ends(terms)[0]
            for terms in self.positions
        )

    def shape(self, slack: int) -> tuple[int, ...]:
        return tuple(
            self.ends(terms)[1] - self.ends(terms)[0] + terms[1] + 1 + slack for terms in self.positions
        )


def maps(extents: tuple[int, ...], axes: int) -> st.SearchStrategy[Map]:
    coefficients = st.tuples(*[st.sampled_from([0, 0, 1, 1, -1, 2, 3]) for _ in extents])
    position = st.tuples(coefficients, st.integers(0, 1))
    return st.tuples(*[position] * axes).map(lambda positions: Map(extents, positions))


EXTENTS = st.lists(st.integers(1, 4), min_size=1, max_size=3).map(tuple)

NEUTRAL = {"subtract": 0, "divide": 1, "floor_divide": 1, "power": 1, "float_power": 1, "add": 0}
NEUTRAL |= {"relu_gate": 1, "satur01_gate": 0.5}


def accumulators(short: str) -> list[str]:
    """The ops of two operands that give what they take."""
    dtype = named(short)
    found = []
    for name, row in OPS.items():
        if row.arity == 2 and not name.startswith("raw_"):
            try:
                if resolve(row, (dtype, dtype)) == ((dtype, dtype), dtype):
                    found.append(name)
            except DTypeError:
                pass
    return found


def start(op: Op, short: str) -> float | None:
    known = NEUTRAL.get(op.name)
    return known if known is not None or op.identity is None else op.identity(named(short))


CASES = [(short, name) for short in ("f64", "i32", "bool") for name in accumulators(short)]


def in_order(symbols: tuple[Symbol, ...], *indices: tuple[Affine, ...]) -> list[int]:
    """Which loops there are, those first whose symbols appear first."""
    appear = dict.fromkeys(s for index in indices for position in index for s in position.symbols)
    return [symbols.index(symbol) for symbol in appear]


@dataclass(frozen=True)
class Points:
    """The points of the loops that a statement has, as points of all loops."""

    extents: tuple[int, ...]
    order: list[int]

    @property
    def counted(self) -> list[int]:
        return [self.extents[loop] for loop in self.order]

    def full(self, point: tuple[int, ...]) -> list[int]:
        found = [0] * len(self.extents)
        for loop, number in zip(self.order, point, strict=True):
            found[loop] = number
        return found


def drawn(data: st.DataObject, dtype: DType) -> tuple[Points, tuple[Symbol, ...], Map, Map, Map]:
    extents = data.draw(EXTENTS)
    axes = data.draw(st.integers(0, 2))
    into, first, second = (data.draw(maps(extents, count)) for count in (axes, 1, 2))
    symbols = tuple(axis(f"s{number}", extent) for number, extent in enumerate(extents))
    order = in_order(symbols, *(one.index(symbols) for one in (into, first, second)))
    return Points(extents, order), symbols, into, first, second


@pytest.mark.parametrize(("short", "name"), CASES)
@settings(max_examples=2, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(data=st.data())
def test_AS_12_OPS_10_an_accumulator_means_two_loops(short: str, name: str, data: st.DataObject) -> None:
    op, dtype = OPS[name], named(short)
    points, symbols, into, first, second = drawn(data, dtype)
    neutral = start(op, short) if data.draw(st.booleans()) else None
    a, b = Node("a", first.shape(0), dtype), Node("b", second.shape(0), dtype)
    c = Node("c", into.shape(data.draw(st.integers(0, 1))), dtype)
    numbers = np.random.default_rng(data.draw(st.integers(0, 9)))
    low = 0 if short == "bool" or "power" in name else -2
    x, y, z = (numbers.integers(low, 2, node.shape).astype(dtype.numpy) for node in (a, b, c))
    value = np.maximum(a[first.index(symbols)], b[second.index(symbols)])
    statement = (accumulate if neutral is None else reduce)(name, c[into.index(symbols)], value)
    found = outcome(program(statement, name="f"), {a: x, b: y, c: z})[c]

    def number(_: np.ndarray, *point: int) -> object:
        full = points.full(point)
        return np.maximum(x[first.cell(*full)], y[second.cell(*full)])

    expected = double_loop(z, points.counted, lambda *p: into.cell(*points.full(p)), number, op, neutral)
    np.testing.assert_allclose(found, expected, rtol=1e-9)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(data=st.data())
def test_AS_12_the_last_point_wins_and_all_is_read_before_it_is_written(data: st.DataObject) -> None:
    points, symbols, into, first, _ = drawn(data, F64)
    a, c = Node("a", first.shape(0)), Node("c", tuple(extent + 2 for extent in into.shape(0)))
    shift = data.draw(st.integers(0, 2))
    numbers = np.random.default_rng(data.draw(st.integers(0, 9)))
    x, z = numbers.random(a.shape), numbers.random(c.shape)
    index = into.index(symbols)
    order = in_order(symbols, index, first.index(symbols))
    points = Points(points.extents, order)
    statement = assign(c[index], a[first.index(symbols)] + c[tuple(p + shift for p in index)])
    found = outcome(program(statement, name="f"), {a: x, c: z})[c]

    def number(before: np.ndarray, *point: int) -> float:
        full = points.full(point)
        moved = tuple(position + shift for position in into.cell(*full))
        return float(x[first.cell(*full)] + before[moved])

    expected = double_loop(z, points.counted, lambda *p: into.cell(*points.full(p)), number)
    np.testing.assert_array_equal(found, expected)


@settings(max_examples=400, deadline=None, derandomize=True)
@given(data=st.data())
def test_IX_7_IX_8_what_is_said_of_a_projection_is_true(data: st.DataObject) -> None:
    extents = data.draw(EXTENTS)
    one = data.draw(maps(extents, data.draw(st.integers(0, 3))))
    symbols = tuple(axis(f"s{number}") for number in range(len(extents)))
    projection = Projection(tuple(zip(symbols, extents, strict=True)), one.index(symbols))
    reached = [one.cell(*point) for point in product(*map(range, extents))]
    shape = one.shape(data.draw(st.integers(0, 1)))
    if projection.is_injective():
        assert len(set(reached)) == len(reached)
    if projection.is_surjective([(0, extent) for extent in shape]):
        assert set(reached) == set(product(*map(range, shape)))
    if len(set(reached)) == len(reached) and len(extents) == 1:
        assert projection.is_injective(), "one loop is no hard case"
