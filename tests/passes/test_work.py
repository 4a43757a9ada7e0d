"""What is thought to be work decides what threads share, and which nests keep to one thread."""

from __future__ import annotations

import pytest

from arrayjit.ir.code import Caps
from arrayjit.ir.loops import Kernel
from arrayjit.ir.parse import parse
from arrayjit.ir.text import print_kernel
from arrayjit.passes.schedule.lag import lag
from arrayjit.passes.schedule.sweep import sweep
from arrayjit.passes.schedule.threads import threads


def kernel(text: str) -> Kernel:
    program = parse(text)
    assert isinstance(program, Kernel)
    return program


IN_PLACE = """
def f(a: update[f64, 10, 10]):
    t: temporary[f64, 8, 8] = place('arena', 0, '')
    for i in parallel(0, 8):
        for j in parallel(0, 8):
            t[i, j] = add[f64](a[i, j + 1], a[i + 2, j + 1])
    for i1 in parallel(0, 8):
        for j1 in parallel(0, 8):
            a[i1 + 1, j1 + 1] = t[i1, j1]
"""

HANDED_ON = """
def f(a: read[f64, 12, 8], b: write[f64, 10, 8]):
    t: temporary[f64, 12, 8] = place('arena', 0, '')
    for i in parallel(0, 12):
        for j in parallel(0, 8):
            t[i, j] = sqrt[f64](a[i, j])
    for i1 in parallel(0, 10):
        for j1 in parallel(0, 8):
            b[i1, j1] = add[f64](t[i1, j1], t[i1 + 2, j1])
"""


@pytest.mark.parametrize("count", [2, 16])
@pytest.mark.parametrize(("step", "program"), [(lag, IN_PLACE), (sweep, HANDED_ON)])
def test_nests_that_threads_would_not_share_are_those_of_one_thread(step, program, count):
    before = kernel(program)
    alone = step(before, Caps(l1_bytes=256, stack_bytes=64))
    small = step(before, Caps(l1_bytes=256, stack_bytes=64, threads=count))
    assert alone is not before
    assert print_kernel(small) == print_kernel(alone)
    assert step(before, Caps(l1_bytes=256, stack_bytes=64, threads=count, thread_work=8)) is before


STEPS_IN_PLACE = """
def f(a: update[f64, 10, 10]):
    t: temporary[f64, 8, 8] = place('arena', 0, '')
    for k in sequential(0, 9):
        for i in parallel(0, 8):
            for j in parallel(0, 8):
                t[i, j] = add[f64](a[i, j + 1], a[i + 2, j + 1])
        for i1 in parallel(0, 8):
            for j1 in parallel(0, 8):
                a[i1 + 1, j1 + 1] = t[i1, j1]
"""

STEPS_HANDED_ON = """
def f(a: update[f64, 12, 8], b: update[f64, 10, 8]):
    t: temporary[f64, 12, 8] = place('arena', 0, '')
    for k in sequential(0, 9):
        for i in parallel(0, 12):
            for j in parallel(0, 8):
                t[i, j] = sqrt[f64](a[i, j])
        for i1 in parallel(0, 10):
            for j1 in parallel(0, 8):
                b[i1, j1] = add[f64](t[i1, j1], t[i1 + 2, j1])
"""

IN_ORDER = """        for i2 in sequential(1, 10):
            for j2 in parallel(0, 8):
                t[i2, j2] = add[f64](a[i2, j2], a[i2 - 1, j2])
                b[i2, j2] = add[f64](b[i2, j2], b[i2 - 1, j2])
"""


@pytest.mark.parametrize(
    ("step", "shared", "handed"),
    [
        # of the second the nest that takes `t` does too little
        (lag, (STEPS_IN_PLACE, 8), (STEPS_IN_PLACE, 9)),
        (sweep, (STEPS_HANDED_ON, 8), (STEPS_HANDED_ON + IN_ORDER, 8)),
    ],
)
def test_nor_would_they_share_what_comes_from_another_core_in_every_step(step, shared, handed):
    def by_two(program, enough):
        return step(program, Caps(l1_bytes=256, stack_bytes=64, threads=2, thread_work=enough))

    (text, enough), (steps, too_much) = shared, handed
    before = kernel(text)
    assert by_two(before, enough) is before
    before = kernel(steps)
    alone = step(before, Caps(l1_bytes=256, stack_bytes=64))
    assert alone is not before
    assert print_kernel(by_two(before, too_much)) == print_kernel(alone)


def test_rows_of_different_lengths_are_counted_by_their_mean():
    program = kernel(
        """
def f(a: update[f64, 40, 1000]):
    for i in parallel(0, 40):
        for k in sequential(0, 2):
            for j in vector(8*k, 8*k + 8, lanes=8):
                a[i, j] = sqrt[f64](a[i, j])
        for k1 in sequential(0, 2):
            for j1 in vector(8*k1, 16, lanes=8):
                a[i, j1] = sqrt[f64](a[i, j1])
"""
    )
    assert threads(program, Caps(threads=4, thread_work=4000)) is program
    assert "grain" in print_kernel(threads(program, Caps(threads=4, thread_work=400)))


def test_a_computed_grain_counts_parts_of_additions():
    program = kernel(
        """
def f(a: update[f64, 250, 250]):
    for k in sequential(0, 250):
        for i in parallel(0, 250 - k):
            for j in vector(0, 250 - k, lanes=8):
                a[i, j] = add[f64](a[i, j], a[k, j])
"""
    )
    text = print_kernel(threads(program, Caps(threads=2)))
    assert "multiply[i64](i64(32), index(-k + 250))" in text
    assert "raw_divide[i64](i64(1280000)" in text
