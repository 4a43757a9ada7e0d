"""Updates of arrays by their own reverse: every place where it may lie, and that results are NumPy's."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from pass_programs import CAPS

import arrayjit
from arrayjit.ir.interp import run
from arrayjit.ir.parse import parse
from arrayjit.ir.verify import verify_kernel
from arrayjit.passes.structure.mirror import mirror

LENGTH = 9

UPDATE = """
def f(a: update[f64, 9], b: read[f64, 9]):
    t: temporary[f64, 9]
    for i in parallel(0, {count}):
        t[i] = multiply[f64](b[i], {read})
    for i1 in parallel(0, {count}):
        {write} = subtract[f64]({write}, t[i1])
"""


@pytest.mark.parametrize(("up", "down"), [("{0} + {1}", "-{0} + {1}"), ("-{0} + {1}", "{0} + {1}")])
def test_the_reverse_may_lie_anywhere(up, down):
    a, b = np.random.default_rng(5).random((2, LENGTH))
    changed = 0
    for count in range(1, LENGTH + 1):
        starts = range(LENGTH - count + 1)
        for write, read in product(starts, starts):
            places = {"{0} + {1}": (write, read + count - 1), "-{0} + {1}": (write + count - 1, read)}[up]
            cells = up.format("i1", places[0]), down.format("i", places[1])
            text = UPDATE.format(count=count, write=f"a[{cells[0]}]", read=f"a[{cells[1]}]")
            kernel = parse(text)
            result = mirror(kernel, CAPS)
            verify_kernel(result)
            changed += result is not kernel
            outcomes = []
            for program in (kernel, result):
                arrays = [a.copy(), b]
                run(program, dict(zip((param.tensor for param in program.params), arrays, strict=True)), {})
                outcomes.append(arrays[0])
            np.testing.assert_array_equal(*outcomes)
    assert changed > LENGTH**2 // 2


def whole(x):
    x[:] = x[::-1]


def all_axes(x):
    x[1:] -= np.flip(x[:-1]) * 0.5


def last_axis(x):
    x[...] = x[..., ::-1] + 2 * x


def step_by_step(x):
    for k in range(1, len(x) + 1):
        x[:k] += 0.25 * x[:k][::-1]


def two_arrays(x):
    y = x + 1.0
    x[:], y[:] = 2 * y[::-1], x + x[::-1]
    return y


@pytest.mark.parametrize("shape", [(1,), (2,), (77,), (3, 4), (6, 35), (5, 2, 19)], ids=str)
@pytest.mark.parametrize("function", [whole, all_axes, last_axis, step_by_step, two_arrays])
@pytest.mark.parametrize("target", ["llvm", "sync_c"])
def test_results_are_those_of_numpy(function, shape, target):
    x = np.random.default_rng(6).random(shape)
    expected, actual = x.copy(), x.copy()
    result = function(expected)
    returned = arrayjit.jit(function, target=target)(actual)
    np.testing.assert_array_equal(actual, expected)
    if result is not None:
        np.testing.assert_array_equal(returned, result)


@pytest.mark.parametrize("function", [whole, all_axes, last_axis, step_by_step])
def test_there_is_no_array_in_between(function):
    optimized = arrayjit.jit(function).lower(np.ones((30, 40))).build.optimized
    assert any(note.startswith("mirror") for note in optimized.notes)
    assert not optimized.kernel.placement
