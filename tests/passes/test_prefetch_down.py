"""Loops over a few rows ask for what comes later in each of them."""

from __future__ import annotations

import pytest

from arrayjit.ir.code import Ahead, Caps
from arrayjit.ir.loops import Prefetch, walk_statements
from arrayjit.ir.parse import parse
from arrayjit.ir.verify import verify_kernel
from arrayjit.passes.schedule.prefetch import prefetch


def sums(rows, columns, products=False, kind="sequential"):
    value = "multiply[f32](x[8*b + j, i], v[8*b + j])" if products else "x[8*b + j, i]"
    return parse(
        f"""
def f(x: read[f32, {rows}, {columns}], v: read[f32, {rows}], y: update[f32, {columns}]):
    for b in sequential(0, {rows // 8}):
        for i in vector(0, {columns}, lanes=16):
            s: f32 = y[i]
            for j in {kind}(0, 8):
                s = reduce(add, s, {value})
            y[i] = s
"""
    )


@pytest.mark.parametrize("products", [False, True])
@pytest.mark.parametrize(
    ("rows", "columns", "asks", "asked"),
    [
        (80, 2048, True, True),
        (80, 2048, False, False),
        (80, 512, True, False),  # half of the last cache holds them
        (800, 512, True, False),  # what comes later in a row is the next one
    ],
)
def test_sums_of_columns_of_large_arrays_ask_for_what_comes_later(rows, columns, asks, asked, products):
    caps = Caps(l1_bytes=4096, l2_bytes=1 << 15, l3_bytes=1 << 20, ahead=Ahead(rows=asks))
    kernel = prefetch(sums(rows, columns, products), caps)
    verify_kernel(kernel)
    found = [stmt for stmt in walk_statements(kernel.body) if isinstance(stmt, Prefetch)]
    assert [(stmt.tensor.label, stmt.cache) for stmt in found] == [("x", 1)] * asked
    assert all(stmt.index[-1].offset * 4 == 1024 for stmt in found)


def test_rows_that_are_written_out_are_left_to_the_hardware():
    caps = Caps(l1_bytes=4096, l2_bytes=1 << 15, l3_bytes=1 << 20, ahead=Ahead(rows=True))
    kernel = sums(80, 2048, kind="unrolled")
    assert prefetch(kernel, caps).body == kernel.body


def test_so_do_rows_that_change_before_they_are_added():
    caps = Caps(l1_bytes=4096, l2_bytes=1 << 15, l3_bytes=1 << 20, ahead=Ahead(rows=True))
    kernel = parse(
        """
def f(x: update[f32, 80, 2048], v: read[f32, 2048], y: update[f32, 2048]):
    for b in sequential(0, 10):
        for i in vector(0, 2048, lanes=16):
            s: f32 = y[i]
            for j in sequential(0, 8):
                t: f32 = add[f32](x[8*b + j, i], v[i])
                x[8*b + j, i] = t
                s = reduce(add, s, t)
            y[i] = s
"""
    )
    kernel = prefetch(kernel, caps)
    verify_kernel(kernel)
    found = [stmt for stmt in walk_statements(kernel.body) if isinstance(stmt, Prefetch)]
    assert [stmt.tensor.label for stmt in found] == ["x"]
