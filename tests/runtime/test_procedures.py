"""Section 19 of the seeds (rows SE), and what else is about code before it is linked."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hardware import HOSTS, TARGETS
from small_programs import N, cells, code, incremented, stamped, summed, vector

import arrayjit
from arrayjit.compile import STAGES, build
from arrayjit.devices import Purpose, compile
from arrayjit.errors import CompilerBug, DeviceError
from arrayjit.ir.assign import ArrayParam, Assign, Computation, IndexParam
from arrayjit.ir.dtype import F32, F64
from arrayjit.ir.expr import Apply, Load
from arrayjit.ir.index import Affine, Symbol
from arrayjit.ir.loops import Kernel
from arrayjit.ir.ops import op
from arrayjit.ir.tensor import Tensor
from arrayjit.passes.manager import Optimized


@pytest.mark.parametrize("target", TARGETS)
def test_LL_11_CS_9_a_computation_becomes_loops_then_better_loops_then_code(target):
    built = build(summed(vector("out"), vector("x")), target)
    assert isinstance(built.optimized, Optimized)
    assert isinstance(built.optimized.loops, Kernel)
    assert isinstance(built.optimized.kernel, Kernel)
    assert built.code.target == target
    assert set(built.seconds) > {"lower", "emit"}
    for stage in STAGES[:3]:
        assert "summed" in built.as_text(stage)


def test_CS_2_SA_5_parameters_keep_their_order(machine):
    x, y, out = vector("x"), vector("y"), vector("out")
    step, stamp = stamped(out)
    assert [param.tensor for param in code(machine, summed(out, y, x)).params] == [y, x, out]
    array, number = code(machine, stamp).params
    assert isinstance(array, ArrayParam)
    assert isinstance(number, IndexParam)
    assert number.symbol is step


def test_CC_2_small_floats_are_rounded_after_each_step_in_float32(target):
    x = np.array([0.1, 2049, 60000, 6e-8, -0.0, np.inf], np.float16)
    program = arrayjit.jit(lambda x: (x * x + x, x + np.float16(1)))
    with np.errstate(over="ignore"):
        exact = program.__wrapped__(x)
    for result, wanted in zip(program(x, target=target), exact, strict=True):
        np.testing.assert_array_equal(result, wanted, strict=True)


def test_SE_1_a_procedure_has_a_name_its_parameters_and_the_time_of_each_phase(machine, device):
    made = code(machine, incremented(vector("x"), name="grown"))
    procedure = device.load(made)
    assert procedure.name == "grown"
    assert procedure.params == made.params
    assert all(seconds >= 0 for seconds in procedure.executable.seconds.values())


def test_SE_2_the_first_error_ends_the_compilation(machine, monkeypatch):
    def broken(kernel):
        raise KeyError("emitter")

    monkeypatch.setattr(type(machine.target), "emit", lambda self, kernel: broken(kernel))
    with pytest.raises(CompilerBug, match=r"the emitter of .*KeyError"):
        compile(machine, incremented(vector("x")), shared=True)


@pytest.mark.parametrize("target", HOSTS)
def test_SE_4_a_procedure_runs_on_whatever_arrays_it_is_given(machine, device):
    x, y, out = vector("x"), vector("y"), vector("out")
    procedure = device.load(code(machine, summed(out, x, y)))
    for scale in (1.0, 2.0):
        left, right, result = np.full(N, scale), np.arange(N) * scale, np.empty(N)
        procedure.launch([array.ctypes.data for array in (left, right, result)])
        np.testing.assert_array_equal(result, left + right)


@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (5,), (2, 3)])
def test_SE_5_buffers_of_any_shape_are_filled_and_read(device, shape):
    array = np.random.default_rng(0).random(shape).astype(np.float32)
    tensor = Tensor.of("x", shape, F32)
    assert tensor.nbytes == array.nbytes
    buffer = device.alloc_buffer(array.nbytes, Purpose.WORKING)
    device.upload(buffer, array)
    result = np.full(shape, np.nan, np.float32)
    device.download(buffer, result).sync()
    np.testing.assert_array_equal(result, array)


def test_SE_6_a_backend_is_an_emitter_and_a_driver(machine, target):
    made = machine.target.emit(build(incremented(vector("x")), target).optimized.kernel)
    assert made.target == machine.driver.name == target
    assert machine.driver.load(made).seconds is not None


def test_SA_21_an_error_says_on_which_stream_and_in_which_task_it_happened(device):
    def task():
        raise KeyError("nothing")

    def work():
        device.stream.submit(task, "a task of mine")
        device.await_()

    with pytest.raises(DeviceError, match=f"(?s)KeyError.*{device.name}.*'a task of mine'"):
        work()


def test_WK_12_temporaries_that_are_never_alive_together_share_bytes(target):
    """Each link of the chain is read backwards, so that it cannot be computed in place."""
    size = 100_000
    x, out = vector("x", size), vector("out", size)
    links = [vector(f"t{number}", size) for number in range(6)]
    chain = [x, *links, out]
    body = tuple(
        statement
        for source, into in pairwise(chain)
        for statement in (cells(into, source, 1.0), reversed_sum(into))
    )
    params = (ArrayParam(x, "read"), ArrayParam(out, "write"))
    kernel = build(Computation("chain", params, body), target).optimized.kernel
    assert 0 < kernel.arena_bytes <= 3 * 8 * size


def reversed_sum(tensor):
    """`tensor = tensor + tensor[::-1]`, which needs all of it before any of it is written."""
    i = Symbol("i")
    at, mirrored = Affine.of(i), tensor.shape[0] - 1 - Affine.of(i)
    value = Apply(op("add"), (Load(tensor, (at,)), Load(tensor, (mirrored,))), F64)
    return Assign(((i, tensor.shape[0]),), tensor, (at,), value)
