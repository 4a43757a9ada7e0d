"""Steps that go back through their rows: the bits are those of steps that do not."""

from __future__ import annotations

import numpy as np
import pytest

import arrayjit
from arrayjit.ir.code import Caps, Schedule
from arrayjit.ir.interp import run
from arrayjit.passes.manager import optimize
from arrayjit.tracer.calls.function import trace_function

SMALL = Caps(l1_bytes=2048)
SHARED = Caps(l1_bytes=512, l2_bytes=1024, threads=2, thread_work=64)


def powers(a, x):
    for _ in range(7):
        y = a @ x
        x = y / np.abs(y).max()
    return x


def network(a, x):
    states = np.empty((9, len(x)))
    for t in range(9):
        x = np.tanh(a @ x + t)
        states[t] = x
    return states


def until(a, x):
    def step(x):
        return 0.9 * (a @ x) / np.abs(a).sum()

    return arrayjit.while_loop(lambda x: np.abs(x).max() > 1e-9, step, x)


@pytest.mark.parametrize("caps", [SMALL, SHARED])
@pytest.mark.parametrize("size", [24, 33, 50])
@pytest.mark.parametrize("program", [powers, network, until])
def test_rows_in_both_orders_have_the_same_bits(program, size, caps):
    random = np.random.default_rng(3)
    arguments = random.standard_normal((size, size)), random.standard_normal(size)
    computation = trace_function(program, arguments, {}).computation
    results = []
    for without in ((), ("alternate",)):
        kernel = optimize(computation, caps, Schedule(without), verify=True).kernel
        assert any(note.startswith("alternate") for note in kernel.notes) == (not without)
        assert any(note.startswith("threads") for note in kernel.notes) == (caps.threads > 1)
        arrays = dict(zip(("a", "x"), arguments, strict=True))
        cells = {
            param.tensor: arrays.get(
                param.tensor.label, np.zeros([one.constant for one in param.tensor.shape])
            )
            for param in kernel.params
        }
        run(kernel, cells, {})
        results.append([array.copy() for tensor, array in cells.items() if tensor.label not in arrays])
    for one, other in zip(*results, strict=True):
        np.testing.assert_array_equal(one, other)
        assert one.any()


@pytest.mark.parametrize("caps", [Caps(), Caps(l1_bytes=2048, l3_bytes=4096)])
def test_matrices_that_the_first_cache_holds_or_none_are_read_in_one_order(caps):
    arguments = np.ones((24, 24)), np.ones(24)
    kernel = optimize(trace_function(powers, arguments, {}).computation, caps, verify=True).kernel
    assert not any(note.startswith("alternate") for note in kernel.notes)
