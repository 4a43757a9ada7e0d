"""Vector loops in parts, each part for another vector: the same cells, wherever a loop starts and ends."""

from __future__ import annotations

import numpy as np
import pytest
from handmade import at, call, f64, put, run, static, vector

from arrayjit.ir.code import Caps, Pipes
from arrayjit.ir.dtype import F64, from_numpy
from arrayjit.ir.expr import Const, Local, Variable
from arrayjit.ir.index import Affine, Symbol
from arrayjit.ir.loops import Define, If, Update
from arrayjit.ir.tensor import Tensor
from arrayjit.passes.manager import optimize
from arrayjit.tracer.calls.function import trace_function


def number(value):
    return Const(value, F64)


def chain(x, i):
    """Statements of which each needs the one before, what the last one gives, and what an early one does."""
    a, b, c, d = (Variable(name, F64) for name in "abcd")
    body = (
        Define(a, at(x, i)),
        Define(b, call("multiply", Local(a), Local(a))),
        Define(c, call("sqrt", Local(b))),
        If(call("less", Local(b), number(4.0)), (Update(c, call("negative", Local(b))),), seldom=True),
        Define(d, call("add", Local(c), Local(a))),
    )
    return body, call("divide", Local(d), number(3.0)), Local(a)


@pytest.mark.parametrize("cuts", [(1,), (2,), (5,), (1, 3), (2, 4), (1, 2, 4)], ids=str)
@pytest.mark.parametrize("aligned", [None, 64])
@pytest.mark.parametrize("cells", [0, 1, 7, 8, 9, 16, 23, 24, 40, 61])
def test_every_cut_and_length(cuts, aligned, cells):
    n, i = static("n"), Symbol("i")
    x, out, first = (Tensor(label, (Affine.of(n),), F64) for label in ("x", "out", "first"))
    body, last, early = chain(x, i)
    loop = vector(
        i, n, *body, put(out, i, value=last), put(first, i, value=early), cuts=cuts, aligned=aligned
    )
    values = np.random.default_rng(cells).uniform(1, 9, cells)
    results = np.full((2, cells + 9), -1.0)
    run(
        (loop,),
        reads=[(x, values)],
        writes=[(out, results[0]), (first, results[1])],
        bindings=[(n, cells)],
    )
    np.testing.assert_array_equal(results[1, :cells], values)
    assert (results[:, cells:] == -1).all()


@pytest.mark.parametrize("lanes", [4, 8, 32])
def test_lengths_that_are_known_and_cells_that_are_read_and_written(lanes):
    for cells in (lanes, 2 * lanes, 3 * lanes, 5 * lanes, 5 * lanes + 3):
        x, i = f64("x", cells), Symbol("i")
        body, last, _ = chain(x, i)
        values = np.random.default_rng(lanes).uniform(1, 9, cells)
        run((vector(i, cells, *body, put(x, i, value=last), cuts=(2, 5), lanes=lanes),), writes=[(x, values)])


def test_pairs_are_stored_together():
    pairs, i = Tensor.of("pairs", (40, 2), from_numpy(np.dtype(np.float64))), Symbol("i")
    x = f64("x", 40, 2)
    a, b = Variable("a", F64), Variable("b", F64)
    body = (
        Define(a, at(x, i, 0)),
        Define(b, call("multiply", at(x, i, 1), Local(a))),
        put(pairs, i, 0, value=call("sqrt", Local(a))),
        put(pairs, i, 1, value=Local(b)),
    )
    values = np.random.default_rng(1).uniform(1, 9, (40, 2))
    run((vector(i, 40, *body, cuts=(1, 2)),), reads=[(x, values)], writes=[(pairs, np.zeros((40, 2)))])


def with_a_call(x, y, i):
    """Statements of which one is done by a call where what comes before is out of a range."""
    a, b, c, d = (Variable(name, F64) for name in "abcd")
    body = (
        Define(a, at(x, i)),
        Define(b, call("multiply", Local(a), at(y, i))),
        Define(c, call("add", Local(b), Local(a))),
        If(
            call("less", number(4.0), Local(b)),
            (Update(c, call("raw_unusual_power", Local(a), at(y, i))),),
            seldom=True,
        ),
        Define(d, call("subtract", Local(c), at(y, i))),
    )
    return body, call("maximum", Local(d), number(-3.0))


SELDOM = [[], [0], [1, 30], [40], [8, 9, 10], [47, 60], [60], range(61)]
"""Which of 61 lanes need what seldom one does: in the first, last, neighbouring vectors, in the tail."""


@pytest.mark.parametrize("places", SELDOM, ids=str)
@pytest.mark.parametrize("cuts", [(1,), (3,), (4,), (1, 3), (2, 4), (1, 2, 4)], ids=str)
@pytest.mark.parametrize("aligned", [None, 64])
def test_what_is_seldom_needed_is_done_wherever_it_is(cuts, aligned, places):
    cells, i = 61, Symbol("i")
    x, y, out = (f64(name, cells) for name in ("x", "y", "out"))
    body, last = with_a_call(x, y, i)
    loop = vector(i, cells, *body, put(out, i, value=last), cuts=cuts, aligned=aligned)
    values = np.random.default_rng(3).uniform(0.5, 1.5, (2, cells))
    values[0, list(places)] = 7.0
    run((loop,), reads=[(x, values[0]), (y, values[1])], writes=[(out, np.full(cells, -1.0))])


@pytest.mark.parametrize("places", SELDOM, ids=str)
@pytest.mark.parametrize("cuts", [(1,), (4,), (1, 3), (1, 2, 4)], ids=str)
def test_nothing_is_done_twice_to_cells_that_are_read_and_written(cuts, places):
    cells, i = 61, Symbol("i")
    x, y = f64("x", cells), f64("y", cells)
    body, last = with_a_call(x, y, i)
    values = np.random.default_rng(4).uniform(0.5, 1.5, (2, cells))
    values[0, list(places)] = 7.0
    loop = vector(i, cells, *body, put(x, i, value=last), cuts=cuts)
    run((loop,), reads=[(y, values[1])], writes=[(x, values[0])])


@pytest.mark.parametrize(("multiplying", "is_cut"), [(2, True), (1, False)])
def test_results_past_the_caches_are_cut_where_they_take_longer_than_memory(multiplying, is_cut):
    def unit(x):
        return 0.5 * x * (1 + np.tanh(0.8 * (x + 0.04 * x * x * x)))

    def hyperbolic(x):
        return np.tanh(x)

    pipes = Pipes(at_once=4, multiplying=multiplying, added=2, divides_apart=True, ahead=190)
    caps = Caps(64, 32, l3_bytes=1 << 16, pipes=pipes)
    for program, is_long in ((unit, True), (hyperbolic, False)):
        notes = optimize(trace_function(program, (np.ones(1 << 16, "f4"),), {}).computation, caps).notes
        assert any(note.startswith("bypass") for note in notes)
        assert any(note.startswith("overlap") for note in notes) == (is_long and is_cut)


def corners(x):
    """Sums of many products, which wait for little but cells."""
    a = (x[1:-1, 2:] - x[1:-1, :-2]) * 0.5
    b = (x[2:, 1:-1] - x[:-2, 1:-1]) * 0.5

    def box(y):
        rows = [y[i : i - 2 or None, j : j - 2 or None] for i in range(3) for j in range(3)]
        return sum(rows[1:], rows[0]) / 9.0

    u, v, w = box(a * a), box(b * b), box(a * b)
    return u * v - w * w - 0.05 * (u + v) ** 2


@pytest.mark.parametrize(
    ("program", "shape", "is_cut", "otherwise"),
    [
        (np.arcsinh, (96,), True, False),
        (np.arcsinh, (40,), False, False),
        (np.arcsinh, (800,), True, True),
        (np.expm1, (96,), False, False),
        (np.expm1, (256,), True, False),
        (corners, (400, 400), False, False),
    ],
)
def test_few_vectors_are_cut_where_turns_make_up_for_the_first_ones(program, shape, is_cut, otherwise):
    computation = trace_function(lambda x: program(x), (np.ones(shape),), {}).computation
    here = Pipes(at_once=4, multiplying=2, added=2, divides_apart=True, ahead=190)
    for pipes, expected in ((here, is_cut), (Pipes(), otherwise)):
        notes = optimize(computation, Caps(64, 32, pipes=pipes)).notes
        assert any(note.startswith("overlap") for note in notes) == expected
