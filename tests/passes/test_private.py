"""Which arrays an iteration makes for itself: what is written may be written in any order."""

from __future__ import annotations

import itertools

import pytest

from arrayjit.ir.loops import For, Kernel, Store, walk_statements
from arrayjit.ir.parse import parse
from arrayjit.passes.analysis.private import is_private

PARTS = ((0, 40), (40, 100), (100, 150))


def written(parts: tuple[tuple[int, int], ...], first: int) -> bool:
    """Is an array private that is written part by part, and read from a cell on?"""
    lines = ["def f(x: read[f64, 8, 150], y: write[f64, 8, 150]):", "    t: temporary[f64, 150]"]
    lines += ["    for k in sequential(0, 8):"]
    for low, high in parts:
        lines += [f"        for i in parallel({low}, {high}):", "            t[i] = x[k, i]"]
    lines += [f"        for i in parallel({first}, 150):", "            y[k, i] = t[i]"]
    kernel = parse("\n".join(lines) + "\n")
    assert isinstance(kernel, Kernel)
    (loop,) = kernel.body
    assert isinstance(loop, For)
    tensor = next(stmt.tensor for stmt in walk_statements(loop.body) if isinstance(stmt, Store))
    return is_private(tensor, loop.body)


@pytest.mark.parametrize("parts", list(itertools.permutations(PARTS)))
def test_parts_are_written_in_any_order(parts: tuple[tuple[int, int], ...]) -> None:
    assert written(parts, 0)
    for missing in range(3):
        some = parts[:missing] + parts[missing + 1 :]
        assert not written(some, 0)
        assert written(some, 40) == (PARTS[0] not in some)


@pytest.mark.parametrize(("rows", "is_whole"), [(8, True), (7, False)])
def test_who_writes_all_cells_may_read_any_by_any_view(rows: int, is_whole: bool) -> None:
    kernel = parse(f"""\
def f(x: read[f64, 9, 8, 4], p: read[i64, 9], y: write[f64, 9], z: write[f64, 9, 32]):
    t: temporary[f64, 8, 4]
    t1: temporary[f64, 32, flat(t)]
    for k in sequential(0, 9):
        for i in sequential(0, {rows}):
            for j in sequential(0, 4):
                t[i, j] = x[k, i, j]
        y[k] = t.at(p[k], i64(2))
        for j1 in sequential(0, {4 * rows}):
            z[k, j1] = t1[j1]
""")
    assert isinstance(kernel, Kernel)
    (loop,) = kernel.body
    assert isinstance(loop, For)
    tensor = next(stmt.tensor for stmt in walk_statements(loop.body) if isinstance(stmt, Store))
    assert is_private(tensor, loop.body) == is_whole
