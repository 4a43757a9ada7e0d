"""Rows whose results go past the caches, and whether the next one finishes them."""

from __future__ import annotations

import pytest

from arrayjit.ir.code import Caps
from arrayjit.ir.parse import parse
from arrayjit.ir.text import print_kernel
from arrayjit.passes.schedule.trail import trail

ROWS = """
def f(x: read[f64, 200, {columns}], y: write[f64, 200, {columns}]):
    t: temporary[f64, {columns}] = place('stack', 0, '')
    for i in sequential(0, 200):
        s: f64 = f64(0.0)
        for j in vector(0, {columns}, lanes=8):
            e: f64 = exp[f64](x[i, j])
            t[j] = e
            s = reduce(add, s, e)
        for k in vector(0, {columns}, lanes=8):
            y[i, k] = divide[f64](t[k], s)
"""


@pytest.mark.parametrize(
    ("columns", "l3_bytes", "is_beside"),
    [
        (1024, 1 << 18, True),  # every row starts where a line does
        (1001, 1 << 18, False),  # else a loop of its own does
        (1001, 1 << 24, True),  # in caches rows may start anywhere
    ],
)
def test_results_past_the_caches_are_finished_by_the_next_row_if_rows_are_whole_lines(
    columns, l3_bytes, is_beside
):
    before = parse(ROWS.format(columns=columns))
    after = trail(before, Caps(l2_bytes=1 << 16, l3_bytes=l3_bytes))
    assert (after is not before) == is_beside
    assert ("bypass(" in print_kernel(after)) == (is_beside and l3_bytes == 1 << 18)
