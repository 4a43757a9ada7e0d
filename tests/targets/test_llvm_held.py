"""Integers that loops choose among in vector registers: in which loops they are, and what they are."""

from __future__ import annotations

import numpy as np
import pytest

from arrayjit import jit
from arrayjit.ir.parse import parse
from arrayjit.targets.llvm import LlvmTarget

CHOICES = """
        {n}1: i64 = where[i64](greater[bool](x[{row}, j], {n}), x[{row}, j], {n})
        x[{row}, j] = {n}1
"""


def is_held(rows, more="", cpu="avx512"):
    """Whether a loop that chooses in so many rows, and does more, hands on parts of vector registers."""
    names = "abcd"[:rows]
    first = "".join(f"    {n}: i64 = x[{row}, 0]\n" for row, n in enumerate(names))
    choices = "".join(CHOICES.format(n=n, row=row) for row, n in enumerate(names))
    last = "".join(f"        {n} = {n}1\n" for n in names)
    text = f"def f(x: update[i64, 5, 40]):\n{first}    for j in sequential(1, 40):\n{choices}{more}{last}"
    return "phi <2 x i64>" in LlvmTarget("sync_llvm", cpu).emit(parse(text)).payload


def test_rows_side_by_side_are_held():
    assert is_held(3)
    assert is_held(4, "        x[4, j] = add[i64](d1, i64(1))\n")


def test_what_waits_for_itself_is_not():
    assert not is_held(1)
    assert not is_held(2)
    next_step = "        a = a1\n        x[4, j] = where[i64](greater[bool](x[4, j], a), x[4, j], a)\n"
    assert not is_held(3, next_step)


@pytest.mark.parametrize(
    "more",
    [
        "        x[4, j] = multiply[i64](a1, a1)\n",
        "        n: index[0, 40] = bitwise_and[i64](a1, i64(7))\n        x[4, j] = x[4, n]\n",
        "        x[4, j] = cast(cast(a1, f64), i64)\n",
        "        if greater[bool](a1, i64(5)):\n            x[4, j] = i64(3)\n",
    ],
    ids=["products", "positions", "conversions", "branches"],
)
def test_what_other_registers_are_for_keeps_all_there(more):
    assert not is_held(4, more)


def test_only_processors_that_take_the_greater_at_once_hold_them():
    assert not is_held(4, cpu="avx2")


@pytest.mark.parametrize("rows", [3, 9, 21])
def test_alignments_are_numpys(rows):
    def align(first, second, gap):
        best = np.zeros((len(first) + 1, len(second) + 1), np.int64)
        for i in range(1, len(first) + 1):
            for j in range(1, len(second) + 1):
                same = best[i - 1, j - 1] + np.where(first[i - 1] == second[j - 1], 3, -2)
                best[i, j] = max(0, max(same, max(best[i - 1, j], best[i, j - 1]) - gap))
        return best

    rng = np.random.default_rng(rows)
    first, second = rng.integers(0, 4, rows), rng.integers(0, 4, 90)
    for gap in (2, -(2**61)):
        with np.errstate(over="ignore"):
            expected = align(first, second, np.int64(gap))
        np.testing.assert_array_equal(jit(align)(first, second, np.int64(gap)), expected)
