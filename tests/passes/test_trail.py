"""Rows whose results go past the caches, and whether the next one finishes them."""

from __future__ import annotations

import numpy as np
import pytest

from arrayjit.ir.code import Caps, Pipes
from arrayjit.ir.interp import run
from arrayjit.ir.parse import parse
from arrayjit.ir.text import print_kernel
from arrayjit.ir.verify import verify_kernel
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


STANDARD = """
def f(x: read[f64, 20, 130], y: write[f64, 20, 130]):
    for i in parallel(0, 20):
        s: f64 = f64(0.0)
        for j in vector(0, 130, lanes=8):
            s = reduce(add, s, x[i, j])
        q: f64 = f64(0.0)
        for k in vector(0, 130, lanes=8):
            q = reduce(add, q, multiply[f64](subtract[f64](x[i, k], s), subtract[f64](x[i, k], s)))
        for l in vector(0, 130, lanes=8):
            y[i, l] = divide[f64](subtract[f64](x[i, l], s), q)
"""
"""Rows of 1,040 bytes, in two arrays of 20,800."""

FAR = Pipes(ahead=190)


@pytest.mark.parametrize(
    ("l1_bytes", "l3_bytes", "pipes", "is_beside"),
    [
        (8 << 10, 1 << 17, FAR, True),
        (6 << 10, 1 << 17, FAR, False),  # the first cache has no room for what two parts go through
        (8 << 10, 120_000, FAR, False),  # some comes from memory
        (8 << 10, 1 << 17, Pipes(), False),  # the processor does not see so far
    ],
)
def test_rows_that_were_added_up_twice_are_finished_by_the_next_one_in_the_last_cache(
    l1_bytes, l3_bytes, pipes, is_beside
):
    before = parse(STANDARD)
    after = trail(before, Caps(l1_bytes=l1_bytes, l2_bytes=1 << 14, l3_bytes=l3_bytes, pipes=pipes))
    verify_kernel(after)
    assert (after is not before) == is_beside
    x, results = np.random.default_rng(3).standard_normal((20, 130)), []
    for kernel in (before, after):
        y = np.empty_like(x)
        run(kernel, dict(zip((param.tensor for param in kernel.params), (x, y), strict=True)))
        results.append(y)
    assert results[0].tobytes() == results[1].tobytes()
