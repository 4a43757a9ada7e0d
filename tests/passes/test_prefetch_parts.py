"""Loops along parts of rows ask for the same parts of later rows."""

from __future__ import annotations

import re

import pytest

from arrayjit.ir.code import Ahead, Caps
from arrayjit.ir.loops import Kernel
from arrayjit.ir.parse import parse
from arrayjit.ir.text import print_kernel
from arrayjit.ir.verify import verify_kernel
from arrayjit.passes.schedule.prefetch import prefetch

HEAVY = "divide[f64]({0}, sqrt[f64](add[f64]({0}, f64(1.0))))"
LIGHT = "multiply[f64]({0}, f64(2.0))"


def asked(text: str, rows: bool = True, l2: int = 1 << 15, l3: int = 1 << 18) -> list[str]:
    """What a program asks for, where asking for rows gains or not, in the words of its text."""
    program = parse(text)
    assert isinstance(program, Kernel)
    caps = Caps(64, 32, l1_bytes=4096, l2_bytes=l2, l3_bytes=l3, ahead=Ahead(4096, 1024, False, rows))
    kernel = prefetch(program, caps)
    verify_kernel(kernel)
    return re.findall(r"prefetch\((.*)\)", print_kernel(kernel))


def part(
    value: str, length: int = 128, row: int = 256, rows: int = 100, start: int = 40, lo: str = "0"
) -> str:
    """Of rows some columns, in vectors that fill lines; where a loop stores they are neighbours."""
    return f"""
def f(x: read[f64, {rows}, {row}], y: write[f64, {rows}, {row}]):
    for i in sequential(0, {rows}):
        for j in vector({lo}, {length}, lanes=8):
            y[i, j] = {value.format(f"x[i, j + {start}]")}
"""


@pytest.mark.parametrize("value", [HEAVY, LIGHT])
def test_parts_of_rows_are_asked_for_as_many_rows_later_as_lie_on_the_way(value):
    assert asked(part(value)) == ["x[i + 4, j + 40]", "y[i + 4, j]"]
    assert asked(part(value, length=512, row=700)) == ["x[i + 1, j + 40]", "y[i + 1, j]"]
    long = part(value, length=1536, row=2000, rows=10)
    assert asked(long) == ["x[i + 1, j + 40]", "y[i + 1, j]"]
    assert not any("i + 1" in cell for cell in asked(long.replace("1536", "2048").replace("2000", "3000")))
    assert asked(part(value), rows=False) == []
    assert asked(part(value), l3=1 << 22) == []


def test_whole_rows_that_are_light_are_left_to_the_hardware_though_their_last_vector_stands_apart():
    assert asked(part(LIGHT, length=120, row=136, start=4)) == []
    assert asked(part(HEAVY, length=120, row=140, start=4)) == ["x[i + 4, j + 4]", "y[i + 4, j]"]


def test_short_parts_are_not_asked_for_unless_more_is_done():
    assert asked(part(LIGHT, length=48, rows=400)) == []
    assert asked(part(HEAVY, length=48, rows=400)) == ["x[i + 10, j + 40]", "y[i + 10, j]"]
    assert asked(part(HEAVY, length=24, rows=400)) == []


def test_few_rows_are_over_before_what_is_asked_for_is_needed():
    assert asked(part(LIGHT, rows=100).replace("sequential(0, 100)", "sequential(0, 12)")) == []


def test_two_spans_of_a_row_are_one_part():
    text = part(HEAVY, lo="64*again", length=0).replace("64*again, 0", "64*again, 64*again + 64")
    lines = text.splitlines()
    lines[3:] = ["        for again in sequential(0, 2):", *(f"    {line}" for line in lines[3:])]
    assert asked("\n".join(lines)) == ["x[i + 4, j + 40]", "y[i + 4, j]"]


def test_rows_of_a_flat_form_are_as_far_apart_as_loops_step():
    def flat(step: int, second: str = "") -> str:
        return f"""
def f(x: read[f64, 40000], y: write[f64, 40000]):
    for i in sequential(0, 100):
        for j in vector(0, 128, lanes=8):
            y[{step}*i + j] = {HEAVY.format(f"x[{step}*i + j + 40]")}
"""

    assert asked(flat(200)) == ["x[200*i + j + 840]", "y[200*i + j + 800]"]
    assert asked(flat(400)) == ["x[400*i + j + 840]", "y[400*i + j + 800]"]


def test_diagonals_and_sums_of_parts_are_not_asked_for_by_rows():
    diagonal = (
        part(LIGHT)
        .replace("x[i, j + 40]", "x[i + j, j + 40]")
        .replace("x: read[f64, 100", "x: read[f64, 300")
    )
    assert asked(diagonal) == []
    total = """
def f(x: read[f64, 100, 256], r: write[f64]):
    s: f64 = f64(0.0)
    for i in sequential(0, 100):
        for j in vector(0, 128, lanes=8):
            s = reduce(add, s, x[i, j + 40])
    r[()] = s
"""
    assert asked(total) == ["x[i, j + 552]"]


def test_rows_that_are_stored_at_once_are_asked_for_at_once():
    text = """
def f(x: read[f64, 130, 256], y: write[f64, 128, 256]):
    for i in sequential(0, 64):
        for j in vector(0, 128, lanes=8):
            t: f64 = add[f64](x[2*i, j + 40], x[2*i + 1, j + 40])
            y[2*i, j] = t
            y[2*i + 1, j] = add[f64](t, x[2*i + 2, j + 40])
"""
    both = ["x[2*i + 6, j + 40]", "x[2*i + 5, j + 40]", "y[2*i + 5, j]", "y[2*i + 4, j]"]
    assert asked(text) == both


@pytest.mark.parametrize(
    ("rows", "found"),
    [(40, ["x[i + 2, j + 4, k + 40]"]), (100, ["x[i, j + 4, k + 40]", "x[i + 2, j + 4, k + 40]"])],
)
def test_only_the_last_of_planes_that_are_near_is_asked_for(rows, found):
    text = f"""
def f(x: read[f64, 22, {rows}, 256], y: write[f64, 20, {rows}, 256]):
    for i in sequential(0, 20):
        for j in sequential(0, {rows}):
            for k in vector(0, 128, lanes=8):
                y[i, j, k] = bypass(add[f64](x[i, j, k + 40], x[i + 2, j, k + 40]))
"""
    assert asked(text, l2=1 << 18, l3=1 << 19) == found


def test_rows_that_are_left_out_are_not_asked_for():
    text = """
def f(x: read[f64, 300, 192], y: write[f64, 100, 192]):
    for i in sequential(0, 100):
        for j in vector(0, 192, lanes=8):
            y[i, j] = multiply[f64](x[3*i, j], f64(2.0))
"""
    assert asked(text) == ["x[3*i + 6, j]", "y[i + 2, j]"]
