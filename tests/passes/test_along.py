"""Sums down columns that are formed on the way of the rows before, where two threads share each block, and
where cells are added as soon as they are made."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from pass_programs import inputs

from arrayjit.ir.code import Ahead, Caps
from arrayjit.ir.interp import run
from arrayjit.ir.loops import For, LoopKind, Store, walk_statements
from arrayjit.passes.manager import optimize
from arrayjit.tracer.calls.function import trace_function

BLOCK, COLUMNS = 16, 256
"""Rows that two threads share at once, and columns of an array of float64."""
ONE = Caps(l2_bytes=36 * 1024)
BESIDE = replace(ONE, ahead=Ahead(rows=True))
TWO = Caps(threads=2, thread_work=64, l2_bytes=32 * 1024, l3_bytes=8 * BLOCK * COLUMNS * 8)


def normal_product(a, x):
    return (a @ x) @ a


def changed_rows(a, x):
    a += np.outer(np.arange(len(a)), x)
    return np.ones(len(a)) @ a


def blocks_of(kernel):
    """The loop over blocks, which are taken in order."""
    (blocks,) = (stmt for stmt in kernel.body if isinstance(stmt, For) and stmt.kind is LoopKind.SEQUENTIAL)
    return blocks


def traced(program, rows, columns=COLUMNS):
    random = np.random.default_rng(8)
    return trace_function(program, (random.random((rows, columns)), random.random(columns)), {}).computation


@pytest.mark.parametrize(("program", "block"), [(normal_product, BLOCK), (changed_rows, 8)])
@pytest.mark.parametrize("rest", [0, 5])
def test_blocks_are_larger_for_two_threads_that_only_read_them(program, block, rest):
    computation = traced(program, 4 * block + rest)
    found = set()
    for caps, height in (ONE, 8), (TWO, block):
        kernel = optimize(computation, caps, verify=True).kernel
        assert blocks_of(kernel).trips == (4 * block + rest) // height
        arrays = inputs(computation)
        run(kernel, arrays)
        found.add(tuple(array.tobytes() for array in arrays.values()))
    assert len(found) == 1


def test_they_share_the_rows_of_a_block_and_then_its_columns():
    kernel = optimize(traced(normal_product, 4 * BLOCK), TWO, verify=True).kernel
    loops = (stmt for stmt in walk_statements(blocks_of(kernel).body) if isinstance(stmt, For))
    assert [loop.symbol.hint for loop in loops if loop.grain is not None] == ["i", "strip"]


def changed_twice(a, x):
    a -= x
    a *= x[: len(a), None]
    return x[: len(a)] @ a


def changed_behind(a, x):
    a[:, :-1] += x[:-1]
    return x[: len(a)] @ a[:, 1:]


def changed_by_much(a, x):
    np.exp(a, out=a)
    return x[: len(a)] @ a


def changed_by_the_first(a, x):
    for row in a:
        first = row[0]
        for n in range(len(row)):
            row[n] -= first
    return x[: len(a)] @ a


def changed_by_another(a, x):
    b = a * x
    return x[: len(a)] @ b, b


@pytest.mark.parametrize(
    ("program", "at_once"),
    [
        (changed_rows, True),
        (changed_twice, True),
        (changed_behind, False),
        (changed_by_much, False),
        (changed_by_the_first, False),
        (changed_by_another, False),
    ],
)
def test_cells_that_change_are_added_as_soon_as_they_are_made(program, at_once):
    computation = traced(program, 19, COLUMNS + 1)
    found = set()
    for caps, beside in (ONE, False), (BESIDE, at_once):
        kernel = optimize(computation, caps, verify=True).kernel
        inside = walk_statements(blocks_of(kernel).body)
        rows = (stmt for stmt in inside if isinstance(stmt, For) and stmt.trips == 8)
        adding = [any(isinstance(stmt, Store) for stmt in loop.body) for loop in rows]
        assert (True in adding) == beside
        arrays = inputs(computation)
        run(kernel, arrays)
        found.add(tuple(array.tobytes() for array in arrays.values()))
    assert len(found) == 1


def test_short_rows_stay_by_themselves():
    kernel = optimize(traced(changed_rows, 40), replace(BESIDE, l3_bytes=1 << 15), verify=True).kernel
    assert len(blocks_of(kernel).body) == 2
