"""How far ahead lines are asked for, by what a processor does with it."""

from __future__ import annotations

import re

import pytest

from arrayjit.ir.code import Ahead, Caps
from arrayjit.ir.loops import Kernel
from arrayjit.ir.parse import parse
from arrayjit.ir.text import print_kernel
from arrayjit.passes.schedule.prefetch import prefetch

QUARTERS = """
def f(x: read[f64, 8192], r: write[f64]):
    m: f64 = f64(0.0)
    for i in vector(0, 2048, lanes=8):
        m = reduce(maximum, m, x[i])
        m = reduce(maximum, m, x[i + 2048])
        m = reduce(maximum, m, x[i + 4096])
        m = reduce(maximum, m, x[i + 6144])
    r[()] = m
"""

STENCIL = """
def f(x: read[f64, 102, 102], y: write[f64, 100, 100]):
    for i in parallel(0, 100):
        for j in vector(0, 100, lanes=16):
            y[i, j] = bypass(add[f64](x[i, j + 1], x[i + 2, j + 1]))
"""

ONE_CACHE = Ahead(4096, 1024, second=False)


def asked(text: str, ahead: Ahead, l1: int, l3: int) -> list[str]:
    """What a program asks for, in the words of its text."""
    caps = Caps(l1_bytes=l1, l2_bytes=32 * 1024, l3_bytes=l3, ahead=ahead)
    program = parse(text)
    assert isinstance(program, Kernel)
    return re.findall(r"prefetch\((.*)\)", print_kernel(prefetch(program, caps)))


@pytest.mark.parametrize(
    ("ahead", "l3", "first"),
    [
        (Ahead(), 1 << 20, "x[i + 32]"),
        (Ahead(), 1 << 15, "x[i + 256], 2"),
        (ONE_CACHE, 1 << 20, "x[i + 128]"),
        (ONE_CACHE, 1 << 17, "x[i + 32]"),
        (ONE_CACHE, 1 << 15, "x[i + 128]"),
    ],
)
def test_how_far_extremes_ask_ahead_depends_on_where_their_array_is(ahead, l3, first):
    found = asked(QUARTERS, ahead, 4096, l3)
    assert len(found) == 4
    assert found[0] == first


@pytest.mark.parametrize(
    ("ahead", "l1", "near", "far"),
    [
        (Ahead(), 4096, "x[i + 2, j + 257]", "x[i + 2, j + 1025], 2"),
        (ONE_CACHE, 4096, "x[i + 2, j + 513]", "x[i + 2, j + 1025]"),
        (ONE_CACHE, 512, "x[i + 2, j + 513]", "x[i + 2, j + 1025], 2"),
    ],
)
def test_which_cache_a_row_that_is_read_again_comes_to(ahead, l1, near, far):
    assert asked(STENCIL, ahead, l1, 1 << 15) == [near, far]


ROWS = """
def f(x: read[f64, 400, 128], g: read[f64, 128], y: write[f64, 400, 128]):
    for i in sequential(0, 400):
        s: f64 = f64(0.0)
        for j in vector(0, 128, lanes=8):
            s = reduce(add, s, x[i, j])
        for k in vector(0, 128, lanes=8):
            y[i, k] = bypass(divide[f64](divide[f64](multiply[f64](x[i, k], g[k]), s), s))
"""


@pytest.mark.parametrize(
    ("beyond", "l1", "l3", "found"),
    [
        (0, 4096, 1 << 19, "x[i + 1, k]"),
        (512, 4096, 1 << 19, "x[i + 1, k + 64]"),
        (512, 4096, 1 << 22, "x[i + 1, k]"),
        (512, 1024, 1 << 19, "x[i + 1, k]"),
    ],
)
def test_rows_that_come_from_memory_and_fit_are_asked_for_beyond_the_next(beyond, l1, l3, found):
    assert asked(ROWS, Ahead(beyond=beyond), l1, l3) == [found]


LIGHT = """
def f(x: read[f64, 400, 128], y: write[f64, 400, 128]):
    for i in sequential(0, 400):
        s: f64 = f64(0.0)
        for j in vector(0, 128, lanes=8):
            s = reduce(add, s, x[i, j])
        for k in vector(0, 128, lanes=8):
            y[i, k] = subtract[f64](x[i, k], s)
"""

TWICE = """
def f(x: read[f64, 400, 128], y: write[f64, 400]):
    for i in sequential(0, 400):
        s: f64 = f64(0.0)
        for j in vector(0, 128, lanes=8):
            s = reduce(add, s, x[i, j])
        u: f64 = f64(0.0)
        for k in vector(0, 128, lanes=8):
            t: f64 = subtract[f64](x[i, k], s)
            u = reduce(add, u, multiply[f64](t, t))
        y[i] = u
"""


@pytest.mark.parametrize(
    ("text", "beyond", "further", "l3", "found"),
    [
        (LIGHT, 0, 2048, 1 << 19, "x[i, j + 256]"),
        (LIGHT, 512, 2048, 1 << 19, "x[i + 1, k + 64]"),
        (LIGHT, 512, 512, 1 << 22, "x[i, j + 64]"),
        (TWICE, 512, 2048, 1 << 19, "x[i + 1, k + 64]"),
        (TWICE, 512, 512, 1 << 22, "x[i + 1, k]"),
        (TWICE, 512, 2048, 1 << 22, "x[i, j + 256]"),
    ],
)
def test_what_adds_up_rows_asks_for_the_next_ones_however_little_it_does(text, beyond, further, l3, found):
    assert asked(text, Ahead(further=further, beyond=beyond), 4096, l3)[0] == found


SCALED = """
def f(x: read[f64, 400, 128], y: write[f64, 400, 128]):
    for i in sequential(0, 400):
        s: f64 = f64(0.0)
        for j in vector(0, 128, lanes=8):
            s = reduce(add, s, x[i, j])
        u: f64 = f64(0.0)
        for k in vector(0, 128, lanes=8):
            t: f64 = subtract[f64](x[i, k], s)
            u = reduce(add, u, multiply[f64](t, t))
        for m in vector(0, 128, lanes=8):
            y[i, m] = divide[f64](divide[f64](subtract[f64](x[i, m], s), u), u)
"""


@pytest.mark.parametrize(("beyond", "found"), [(0, "x[i + 1, m]"), (512, "x[i + 1, k]")])
def test_where_processors_ask_for_rows_that_do_little_sums_ask_before_loops_that_store(beyond, found):
    assert asked(SCALED, Ahead(beyond=beyond), 4096, 1 << 22) == [found]


CHOSEN = """
def f(x: read[f64, 400, 128], k: read[i64, 200], y: write[f64, 200]):
    for i in parallel(0, 200):
        n: index[0, 400] = k[i]
        s: f64 = f64(0.0)
        for j in vector(0, 128, lanes=8):
            s = reduce(add, s, x[n, j])
        y[i] = s
"""


@pytest.mark.parametrize(
    ("ahead", "found"),
    [
        (Ahead(further=2048), ["x[n, j + 256]"]),
        (Ahead(further=128, chosen=True), ["x[n, j + 16]"]),
        (Ahead(further=256, chosen=True), []),
    ],
)
def test_what_lies_behind_a_short_row_that_a_position_chose_is_not_asked_for(ahead, found):
    assert asked(CHOSEN, ahead, 4096, 1 << 19) == found
