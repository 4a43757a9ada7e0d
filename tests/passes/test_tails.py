"""Which vectors start on boundaries of memory, by how wide they are."""

from __future__ import annotations

from arrayjit.ir.boundaries import lying_alike
from arrayjit.ir.code import Caps
from arrayjit.ir.parse import parse
from arrayjit.ir.text import print_kernel
from arrayjit.passes.schedule.tails import tails

LINES = Caps(vector_bytes=64)
FIVE_POINTS = """
def f(x: read[f64, 9, 300], y: write[f64, 9, 300]):
    for i in parallel(1, 8):
        for j in vector(1, 299, lanes=16):
            t: f64 = add[f64](x[i - 1, j], x[i + 1, j])
            y[i, j] = add[f64](add[f64](add[f64](t, x[i, j - 1]), x[i, j]), x[i, j + 1])
"""


def test_a_third_of_a_stencil_is_enough_for_vectors_that_fill_lines():
    assert "aligned=64" in print_kernel(tails(parse(FIVE_POINTS), LINES))


IN_PLACE = """
def f(x: update[f64, 9, 304]):
    for i in sequential(1, 8):
        for j in vector(1, 303, lanes=8):
            x[i, j] = add[f64](add[f64](x[i - 1, j], x[i, j]), x[i, j + 1])
"""


def test_what_may_not_be_repeated_goes_under_masks_at_the_ends():
    assert "vector(1, 303, lanes=8, aligned=64, masked=True)" in print_kernel(tails(parse(IN_PLACE), LINES))


def test_processors_with_narrower_vectors_have_no_masks():
    kernel = parse(IN_PLACE)
    assert tails(kernel, Caps(vector_bytes=32)) is kernel


def test_short_rows_start_anywhere():
    kernel = parse(IN_PLACE.replace("303", "90"))
    assert tails(kernel, LINES) is kernel


def test_sums_are_not_formed_under_masks():
    kernel = parse(
        """
def f(x: update[f64, 304]):
    total: f64 = f64(0.0)
    for j in vector(0, 304, lanes=8):
        total = reduce(add, total, x[j])
        x[j] = add[f64](x[j], x[j])
    x[0] = total
"""
    )
    assert tails(kernel, LINES) is kernel


def test_more_of_it_start_anywhere():
    further = FIVE_POINTS.replace("x[i + 1, j]", "add[f64](x[i + 1, j], x[i + 1, j + 1])")
    assert "aligned" not in print_kernel(tails(parse(further), LINES))


def test_what_is_stored_has_to_lie_on_boundaries():
    aside = FIVE_POINTS.replace("y: write[f64, 9, 300]", "y: write[f64, 9, 301]")
    assert "aligned" not in print_kernel(tails(parse(aside), LINES))


MOVED = """
def f(x: read[f64, 9, 301], y: write[f64, 9, 300]):
    for i in parallel(0, 9):
        for j in vector(0, 300, lanes=16):
            y[i, j] = x[i, j + 1]
"""


def test_little_work_waits_for_stores_across_lines():
    pairs = """
def f(x: read[f64, 9, 600], y: write[f64, 9, 300]):
    for i in parallel(0, 9):
        for j in vector(0, 300, lanes=16):
            y[i, j] = add[f64](x[i, 2*j], x[i, 2*j + 1])
"""
    for text in (MOVED, pairs):
        assert "aligned=64" in print_kernel(tails(parse(text), LINES))
        assert "aligned" not in print_kernel(tails(parse(text), Caps(vector_bytes=32)))


def test_much_work_does_not():
    work = "x[i, j + 1]"
    for _ in range(9):
        work = f"sqrt[f64]({work})"
    assert "aligned" not in print_kernel(tails(parse(MOVED.replace("x[i, j + 1]", work)), LINES))


def test_vectors_start_where_what_is_stored_has_boundaries():
    """Three cells that are read lie alike; the one that is stored lies otherwise."""
    kernel = parse(
        """
def f(x: read[f64, 3, 304], y: update[f64, 301]):
    for j in vector(0, 300, lanes=16):
        y[j + 1] = add[f64](add[f64](x[0, j], x[1, j]), x[2, j])
"""
    )
    (loop,) = tails(kernel, LINES).body
    assert [tensor.label for tensor, _ in lying_alike(loop, 64)] == ["y"]


def test_locals_that_change_within_an_iteration_are_in_no_ones_way():
    changing = FIVE_POINTS.replace(
        "            y[i, j] = add[f64](add[f64](add[f64](t, x[i, j - 1]), x[i, j]), x[i, j + 1])",
        "            t = add[f64](t, add[f64](x[i, j - 1], x[i, j]))\n"
        "            y[i, j] = add[f64](t, x[i, j + 1])",
    )
    assert changing != FIVE_POINTS
    assert "aligned=64" in print_kernel(tails(parse(changing), LINES))


def test_cells_whose_place_only_the_run_knows_do_not_decide():
    kernel = parse(
        """
def f(x: read[f64, 301], n: index[2, 16], y: update[f64, 3, n, 301]):
    for j in vector(0, 300, lanes=16):
        y[2, 1, j] = add[f64](x[j], x[j + 1])
"""
    )
    (loop,) = tails(kernel, LINES).body
    assert [tensor.label for tensor, _ in lying_alike(loop, 64)] == ["x"]
