"""Affine expressions are integer algebra: every operation agrees with evaluating first."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arrayjit.ir.dtype import F32
from arrayjit.ir.index import Affine, Symbol, SymbolKind, affine, row_major_strides
from arrayjit.ir.tensor import Tensor

SYMBOLS = [Symbol(hint) for hint in "ijkl"]
SMALL = st.integers(-20, 20)


@st.composite
def affines(draw: st.DrawFn) -> Affine:
    total = Affine.of(draw(SMALL))
    for symbol in draw(st.permutations(SYMBOLS)):
        total = total + Affine.of(symbol) * draw(st.sampled_from([0, 0, 1, -1, 3, -7]))
    return total


VALUES = st.fixed_dictionaries({symbol: SMALL for symbol in SYMBOLS})


@given(affines(), affines(), SMALL, VALUES)
def test_arithmetic(a: Affine, b: Affine, factor: int, values: dict[Symbol, int]) -> None:
    x, y = a.evaluate(values), b.evaluate(values)
    assert (a + b).evaluate(values) == x + y
    assert (a - b).evaluate(values) == x - y
    assert (-a).evaluate(values) == -x
    assert (factor - a).evaluate(values) == factor - x
    assert (factor * a).evaluate(values) == (a * factor).evaluate(values) == factor * x


@given(affines(), affines(), affines())
def test_equal_expressions_are_equal_objects(a: Affine, b: Affine, c: Affine) -> None:
    assert a + b == b + a
    assert (a + b) + c == a + (b + c)
    assert hash(a + b) == hash(b + a)
    assert a - a == Affine.of(0)
    assert all(coefficient for coefficient, _ in (a + b).terms)


@given(affines(), st.lists(affines(), min_size=4, max_size=4), VALUES)
def test_substitution(a: Affine, others: list[Affine], values: dict[Symbol, int]) -> None:
    for count in range(5):
        chosen = dict(zip(SYMBOLS[:count], others, strict=False))
        inner = {**values, **{symbol: other.evaluate(values) for symbol, other in chosen.items()}}
        assert a.substitute(chosen).evaluate(values) == a.evaluate(inner)


@given(affines(), st.lists(st.tuples(SMALL, st.integers(0, 4)), min_size=4, max_size=4))
def test_bounds_are_reached_and_not_passed(a: Affine, spans: list[tuple[int, int]]) -> None:
    ranges = {symbol: (first, first + more) for symbol, (first, more) in zip(SYMBOLS, spans, strict=True)}
    ends = [{}]
    for symbol, (first, last) in ranges.items():
        ends = [{**point, symbol: value} for point in ends for value in (first, last)]
    reached = [a.evaluate(point) for point in ends]
    assert a.bounds(ranges) == (min(reached), max(reached))


def test_a_symbol_brings_its_own_range_or_none_is_known() -> None:
    known = Symbol("n", SymbolKind.STATIC, 2, 5)
    assert (Affine.of(known) * -3 + 1).bounds({}) == (-11, -5)
    assert Affine.of(SYMBOLS[0]).bounds({}) is None


def test_constants_and_single_symbols_are_recognised() -> None:
    i = SYMBOLS[0]
    assert Affine.of(3).constant == 3
    assert Affine.of(i).symbol is i
    assert (Affine.of(i) + 1).symbol is None
    assert (Affine.of(i) * 2).symbol is None
    with pytest.raises(ValueError, match="is not a constant"):
        _ = Affine.of(i).constant


@given(st.lists(st.integers(0, 5), max_size=4), st.data())
def test_strides_count_the_cells_before(shape: list[int], data: st.DataObject) -> None:
    tensor = Tensor.of("x", tuple(shape), F32)
    index = [data.draw(st.integers(0, max(0, extent - 1))) for extent in shape]
    before = 0
    for position, extent in zip(index, shape, strict=True):
        before = before * extent + position
    assert tensor.linear(affine(index)).constant == before


def test_only_one_extent_of_a_stride_may_be_a_symbol() -> None:
    n = Symbol("n", SymbolKind.DIMENSION)
    assert row_major_strides(affine((n, 3, 4))) == affine((12, 4, 1))
    assert row_major_strides(affine((2, n, 4)))[0] == Affine.of(n) * 4
    with pytest.raises(ValueError, match="is not a constant"):
        row_major_strides(affine((2, n, n)))
