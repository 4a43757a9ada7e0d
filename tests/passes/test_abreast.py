"""What `abreast` promises for any triangle: the bits of rows that go one after the other."""

from __future__ import annotations

import numpy as np
import pytest

from arrayjit.ir.assign import ArrayParam
from arrayjit.ir.code import Caps
from arrayjit.ir.interp import run
from arrayjit.ir.parse import parse
from arrayjit.ir.verify import verify_kernel
from arrayjit.passes.schedule.abreast import abreast


def triangle(rows: int, start: int, more: int) -> str:
    """Rows from `start` on, each with `more` steps beside those up to the diagonal."""
    return f"""
def f(a: update[f64, {start + rows}, {start + rows}], b: read[f64, {start + rows}, {start + rows}]):
    for k in sequential({start}, {start + rows}):
        for i in sequential(0, k + {more}):
            p: f64 = f64(0.0)
            for j in parallel(0, i + 1):
                p = reduce(add, p, multiply[f64](a[k, j], b[i, j]), fused=True)
            a[k, i] = subtract[f64](a[k, i], p)
        a[k, k] = divide[f64](a[k, k], f64(3.0))
"""


def solved(rows: int, start: int, more: int) -> str:
    """Rows that sum up what is known from the rows before."""
    size = start + rows
    return f"""
def f(a: read[f64, {size}, {size}], b: read[f64, {size}], x: update[f64, {size}], y: update[f64, {size}]):
    for k in sequential({start}, {size}):
        p: f64 = b[k]
        q: f64 = f64(0.0)
        for i in parallel(0, k + {more}):
            p = reduce(add, p, multiply[f64](a[k, i], x[i]), fused=True)
            q = reduce(add, q, x[i])
        x[k] = divide[f64](p, f64(7.0))
        y[k] = add[f64](q, x[k])
"""


def outcome(kernel):
    generator = np.random.default_rng(5)
    arrays = {
        param.tensor: generator.standard_normal([extent.constant for extent in param.tensor.shape])
        for param in kernel.params
        if isinstance(param, ArrayParam)
    }
    run(kernel, arrays)
    return [array.tobytes() for array in arrays.values()]


@pytest.mark.parametrize("program", [triangle, solved])
@pytest.mark.parametrize("rows", [8, 9, 11, 12, 21])
@pytest.mark.parametrize(("start", "more"), [(0, 0), (3, -3), (5, -2)])
def test_the_bits_are_those_of_rows_one_after_the_other(program, rows, start, more):
    before = parse(program(rows, start, more))
    after = abreast(before, Caps())
    verify_kernel(after)
    assert after.notes == ("abreast: 4 rows of k go side by side",)
    assert outcome(after) == outcome(before)


@pytest.mark.parametrize("rows", [8, 9, 11, 12, 21])
def test_a_row_may_have_a_step_more_than_its_number(rows):
    before = parse(triangle(rows, 0, 1))
    after = abreast(before, Caps())
    verify_kernel(after)
    assert after is not before
    assert outcome(after) == outcome(before)


def test_a_sum_over_the_rows_own_cell_is_not_divided():
    before = parse(solved(12, 0, 1))
    assert abreast(before, Caps()) is before


@pytest.mark.parametrize(("rows", "start", "more"), [(7, 0, 0), (12, 0, -1)])
def test_few_rows_and_rows_without_a_first_step_stay(rows, start, more):
    before = parse(triangle(rows, start, more))
    assert abreast(before, Caps()) is before
