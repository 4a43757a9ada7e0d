"""How many rows of a table are taken at once."""

from __future__ import annotations

import pytest

from arrayjit.ir.code import Caps
from arrayjit.ir.parse import parse
from arrayjit.passes.schedule.skew import skew

TABLE = """
def f(x: update[f64, {rows}, {columns}]):
    for i in sequential(1, {rows}):
        for j in sequential(1, {columns}):
            x[i, j] = minimum[f64](x[i - 1, j], x[i, j - 1])
"""


@pytest.mark.parametrize(
    ("rows", "columns", "registers", "at_once"),
    [(30, 100, 32, 8), (30, 100, 16, 4), (30, 50, 32, 4), (7, 100, 32, 4), (3, 100, 32, 0), (30, 20, 32, 0)],
    ids=["long", "few registers", "short", "few rows", "fewer rows", "shorter"],
)
def test_as_many_rows_as_there_are_registers_for_and_are_worth_it(rows, columns, registers, at_once):
    kernel = skew(parse(TABLE.format(rows=rows, columns=columns)), Caps(registers=registers))
    assert len(kernel.notes) == (at_once > 0)
    assert all(f"skew: {at_once} rows of i at once" in note for note in kernel.notes)


@pytest.mark.parametrize(
    ("value", "at_once"),
    [
        ("maximum[i64](x[i - 1, j], add[i64](x[i, j - 1], i64(1)))", 3),
        ("multiply[i64](x[i - 1, j], x[i, j - 1])", 8),
        ("add[i64](multiply[i64](x[i - 1, j], i64(3)), x[i, j - 1])", 3),
        ("cast(sqrt[f64](cast(x[i, j - 1], f64)), i64)", 8),
        ("maximum[i64](add[i64](add[i64](add[i64](x[i, j - 1], x[i - 1, j]), i64(1)), i64(2)), i64(3))", 8),
    ],
    ids=["a moment", "products", "products beside it", "floats", "a long way"],
)
def test_few_rows_of_integers_that_take_a_moment_each(value: str, at_once: int) -> None:
    table = TABLE.format(rows=30, columns=100).replace("f64", "i64")
    kernel = skew(parse(table.replace("minimum[i64](x[i - 1, j], x[i, j - 1])", value)), Caps(registers=32))
    (note,) = kernel.notes
    assert f"skew: {at_once} rows of i at once" in note
