"""The table of passes and the manager that runs it."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace

import pytest
from pass_programs import CAPS, Program, agrees, inputs
from work import calls_in

from arrayjit.errors import CompilerBug
from arrayjit.ir.code import Caps, GpuCaps
from arrayjit.ir.dtype import F64
from arrayjit.ir.expr import Variable, constant
from arrayjit.ir.interp import run, run_computation
from arrayjit.ir.loops import Update
from arrayjit.ir.text import print_kernel
from arrayjit.passes import manager
from arrayjit.passes.manager import optimize
from arrayjit.passes.pipeline import LOWERING, ON_ASSIGNMENTS, ON_LOOPS
from arrayjit.passes.table import Hardware, Pass

TABLE: tuple[Pass, ...] = (*ON_ASSIGNMENTS, LOWERING, *ON_LOOPS)


def chain(length: int):
    """`length` elementwise operations, each reading the one before."""
    p = Program()
    x = p.argument("x", 40, 50)
    y = x
    for number in range(length - 1):
        y = y + x if number % 2 else y * 0.5
    p.result(y)
    return p.done()


def small():
    p = Program()
    x = p.argument("x", 8, 9)
    e = p.apply("sqrt", x - x.max(1) + 2.0)
    p.result(e / e.max(1))
    return p.done()


@pytest.mark.parametrize("position", range(len(TABLE)), ids=[row.name for row in TABLE])
def test_each_row_comes_after_what_it_needs_and_says_why(position):
    row = TABLE[position]
    assert set(row.after) <= {earlier.name for earlier in TABLE[:position]}
    assert row.why or row is LOWERING
    *_, folder, module = row.run.__module__.split(".")
    assert module == row.name
    assert (folder == "gpu") == (row.on == (Hardware.GPU,))


def test_those_for_gpus_are_imported_when_they_first_run():
    text = """
import sys
import numpy as np
import arrayjit
arrayjit.jit(lambda x: np.exp(x) @ x)(np.ones((40, 40)))
print([name for name in sys.modules if name.startswith("arrayjit.passes.gpu")])
from arrayjit.passes.pipeline import ON_LOOPS
print([row.run.__name__ for row in ON_LOOPS if row.name == "offload"])
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "ARRAYJIT_CACHE_BYTES": "0"}
    ran = subprocess.run([sys.executable, "-c", text], env=environment, stdout=subprocess.PIPE, text=True)
    assert ran.stdout.splitlines() == ["[]", "['offload']"]


def test_names_are_unique():
    assert len({row.name for row in TABLE}) == len(TABLE)


@pytest.mark.parametrize("row", ON_LOOPS, ids=[row.name for row in ON_LOOPS])
def test_a_pass_with_nothing_left_to_do_returns_its_argument(row):
    p = Program()
    p.store(p.argument("x", 1, access="write"), 1.0)
    kernel = LOWERING.run(p.done(), CAPS)
    assert row.run(kernel, CAPS) is kernel


def test_every_stage_is_kept_timed_and_verified():
    computation = small()
    optimized = optimize(computation, CAPS, verify=True)
    assert set(optimized.seconds) == {row.name for row in TABLE if row.suits(CAPS)}
    assert agrees(computation, optimized.computation)
    assert agrees(computation, optimized.loops)
    assert agrees(computation, optimized.kernel)
    assert optimized.notes == optimized.kernel.notes


def test_a_gpu_has_passes_of_its_own():
    computation = small()
    gpu = Caps(gpu=GpuCaps())
    optimized = optimize(computation, gpu, verify=True)
    assert set(optimized.seconds) == {row.name for row in TABLE if row.suits(gpu)}
    assert {"offload", "house", "barriers"} <= set(optimized.seconds)
    assert {"vectorise", "threads", "prefetch"}.isdisjoint(optimized.seconds)
    assert agrees(computation, optimized.kernel)


class Dumped(dict[str, str]):
    """Dumps by name."""

    def keep(self, stage: str, text: str) -> str:
        self[stage] = text
        return stage


def test_every_stage_is_dumped_under_its_name():
    dumped = Dumped()
    optimized = optimize(small(), CAPS, dump=dumped.keep)
    assert list(dumped) == [row.name for row in TABLE if row.suits(CAPS)]
    assert dumped["lifetimes"] == print_kernel(optimized.kernel)


def test_a_failing_pass_is_named_and_leaves_a_reproducer(monkeypatch):
    def broken(kernel, caps):
        raise KeyError("lost")

    dumped = Dumped()
    monkeypatch.setattr(manager, "ON_LOOPS", (Pass(broken),))
    with pytest.raises(CompilerBug, match=r"arrayjit bug in broken: KeyError: 'lost'") as failure:
        optimize(small(), CAPS, dump=dumped.keep)
    assert failure.value.stage == "broken"
    assert dumped[failure.value.reproducer].startswith(dumped["lower"])


def test_the_verifier_blames_the_pass_that_broke_the_program(monkeypatch):
    def forgetful(kernel, caps):
        return replace(kernel, body=(Update(Variable("lost", F64), constant(1.0, F64)),))

    monkeypatch.setattr(manager, "ON_LOOPS", (Pass(forgetful),))
    with pytest.raises(CompilerBug, match="in forgetful"):
        optimize(small(), CAPS, verify=True)


def test_sums_agree_with_the_record_up_to_the_documented_order():
    p = Program()
    x = p.argument("x", 30, 70)
    p.result(x.sum(1) + x.sum(0))
    computation = p.done()
    expected, actual = inputs(computation), inputs(computation)
    run_computation(computation, expected)
    run(optimize(computation, CAPS, verify=True).kernel, actual)
    for tensor, array in expected.items():
        assert abs(actual[tensor] / array - 1).max() < 1e-14


def test_a_thousand_operations_are_one_loop_and_take_linear_time():
    def calls(length: int) -> int:
        computation = chain(length)
        kernel = optimize(computation, CAPS).kernel
        assert len(kernel.body) <= 2
        assert not kernel.placement
        return calls_in(lambda: optimize(computation, CAPS))

    assert calls(1000) < 11 * calls(100)
