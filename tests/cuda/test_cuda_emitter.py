"""CUDA C of whole programs: what it says, and what NVIDIA's compiler makes of it for three architectures."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import arrayjit
from arrayjit.errors import SettingError
from arrayjit.ir.code import Caps, GpuCaps
from arrayjit.ir.dtype import DTYPES, DType
from arrayjit.ir.launches import DeviceProgram, Launch, Repeat, RepeatWhile, StatusWord, walk_steps
from arrayjit.passes.manager import optimize
from arrayjit.runtime.cuda import nvrtc
from arrayjit.runtime.cuda.sass import disassembled
from arrayjit.targets.cuda import ARCHITECTURES, CudaTarget

F32 = np.float32
SMALL, LARGE = np.ones(100, F32), np.ones((512, 1024), F32)


def program(function: Callable[..., Any], *arguments: Any, arch: str = "sm_90") -> DeviceProgram:
    target = CudaTarget("cuda", arch)
    computation = arrayjit.jit(function, target="interp").lower(*arguments).build.computation
    payload: DeviceProgram = target.emit(optimize(computation, target.caps(), verify=True).kernel).payload
    return payload


def softmax(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def layer_norm(x):
    return (x - x.mean(axis=1, keepdims=True)) / np.sqrt(x.var(axis=1, keepdims=True) + 1e-5)


def blur(x, steps):
    for _ in range(steps):
        x[1:-1, 1:-1] = 0.25 * (x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:])
    return x


def products(a, b):
    return np.maximum(a @ b.T, 0)


PROGRAMS = {
    "elementwise": (lambda x: np.exp(x) * 2 + x, LARGE),
    "transposed": (lambda x: x.T + 1, LARGE),
    "rows": (lambda x: x.sum(axis=1), LARGE),
    "columns": (lambda x: x.sum(axis=0), LARGE),
    "everything": (lambda x: (x * x).sum(), LARGE),
    "softmax": (softmax, LARGE),
    "layer norm": (layer_norm, LARGE),
    "products": (products, LARGE, LARGE),
    "steps": (blur, LARGE, 9),
    "scan": (lambda x: np.cumsum(x), SMALL),
    "gather": (lambda x, i: x[i], LARGE, np.arange(9)),
    "mathematics": (lambda x: np.arctan2(np.sin(x), np.log1p(np.tanh(x))) ** 0.7, LARGE.astype(float)),
}


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_is_compiled_without_spills(name: str, arch: str) -> None:
    function, *arguments = PROGRAMS[name]
    made = program(function, *arguments, arch=arch)
    usage = nvrtc.usage(nvrtc.compiled(made.source, arch, "program").log)
    assert set(usage) == {step.kernel for step in walk_steps(made.plan)}
    assert all(kernel.spilled_bytes == kernel.stack_bytes == 0 for kernel in usage.values())


def test_what_is_only_read_is_said_to_be() -> None:
    source = program(lambda x: x + 1, LARGE).source
    assert "const float *__restrict__ x" in source


def test_no_compiler_may_move_a_load_over_a_barrier() -> None:
    """Which it would, for a pointer that nobody else is said to write by."""
    source = program(lambda x: np.cumsum(np.sort(x)), SMALL).source
    assert "__syncthreads();" in source
    assert "*__restrict__" not in source.partition("__global__")[2].replace("const float *__restrict__", "")


def test_the_user_s_line_is_named() -> None:
    assert "// at " in program(softmax, LARGE).source
    assert "test_cuda_emitter.py" in program(softmax, LARGE).source


def test_a_name_of_a_file_may_have_line_breaks() -> None:
    code = compile("lambda x: x + 1", "a\nb.py", "eval")
    assert "// at a b.py:1\n" in program(eval(code), LARGE).source


@pytest.mark.parametrize(("rows", "kind"), [(1 << 14, "int"), (1 << 16, "int64_t")])
def test_cells_beyond_32_bits_are_counted_by_64(rows: int, kind: str) -> None:
    x, w = arrayjit.spec((rows, 1 << 16), "f4"), arrayjit.spec((1 << 16, 128), "f4")
    for made in (program(lambda x, w: x @ w, x, w), program(lambda x: x + 1, x)):
        counts = set(re.findall(r"const (\w+) \w+ = .*(?:blockIdx|threadIdx)", made.source))
        assert counts == {kind}


def test_a_loop_around_grids_is_the_host_s() -> None:
    def steps(x):
        for _ in range(9):
            x[1:] = x[1:] * 0.5 + x[:-1]
        return x

    (repeat,) = program(steps, np.ones(100_000, F32)).plan
    assert isinstance(repeat, Repeat)
    assert (repeat.lo.constant, repeat.hi.constant) == (0, 9)
    assert len(repeat.body) == 2


def test_a_loop_whose_end_the_gpu_knows_asks_it() -> None:
    plan = program(blur, LARGE, 9).plan
    assert any(isinstance(step, RepeatWhile) for step in plan)


def test_a_loop_around_little_runs_in_one_launch() -> None:
    (launch,) = program(blur, np.ones((20, 20), F32), 9).plan
    assert isinstance(launch, Launch)


def test_launches_of_what_may_fail_look_at_the_status_first() -> None:
    made = program(lambda x, i: x[i] * 2, LARGE, np.arange(900))
    assert all(StatusWord() in step.arguments for step in walk_steps(made.plan))
    assert made.source.count("if (*status) return;") == len(list(walk_steps(made.plan)))
    assert not program(softmax, LARGE).may_fail


def test_an_architecture_without_a_row_is_refused() -> None:
    with pytest.raises(SettingError, match=r"knows no architecture 'sm_10'\n.*choose one of sm_80, sm_90"):
        CudaTarget("cuda", "sm_10")


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_large_arrays_are_read_and_written_by_16_bytes(dtype: DType, arch: str) -> None:
    """Four cells, if these are less."""
    x = np.ones((512, 1024), dtype.numpy)
    made = program(lambda x, y: np.where(x > y, y, x), x, x.copy(), arch=arch)
    instructions = disassembled(nvrtc.compiled(made.source, arch, "program").cubin)
    width = {1: r"(?= )", 2: r"\.64", 4: r"\.128", 8: r"\.128"}[dtype.itemsize]
    assert len(re.findall(rf"LDG\.E(?:\.CONSTANT)?{width}", instructions)) == 2
    assert len(re.findall(rf"STG\.E{width}", instructions)) == 1


@pytest.mark.parametrize("dtype", ["f4", "f8", "i1", "?"])
@pytest.mark.parametrize("size", [64, 67])
@pytest.mark.parametrize("offset", [0, 1])
def test_neighbours_are_taken_at_once_wherever_they_lie(
    dtype: str, size: int, offset: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CudaTarget, "caps", lambda self: Caps(gpu=GpuCaps(busy_threads=8, wide=16)))

    def both(x, y):
        return x[offset:] & y[offset:] if x.dtype == bool else x[offset:] * y[offset:], x == y

    x = np.arange(size).astype(dtype)
    y = x[::-1].copy()
    lowered = arrayjit.jit(both, target="cuda-sim").lower(x, y)
    assert "load_" in lowered.as_text("cuda")
    for got, wanted in zip(arrayjit.jit(both, target="cuda-sim")(x, y), both(x, y), strict=True):
        np.testing.assert_array_equal(got.numpy(), wanted)


def test_a_sort_reads_nothing_that_was_never_written() -> None:
    x = np.random.default_rng(0).random(300)
    got = arrayjit.jit(lambda x: np.sort(x), target="cuda-sim")(x)
    np.testing.assert_array_equal(got.numpy(), np.sort(x))


def test_every_stage_can_be_read() -> None:
    lowered = arrayjit.jit(softmax, target="cuda-sim").lower(LARGE)
    assert "grid(" in lowered.as_text("optimized")
    assert "__global__" in lowered.as_text("cuda")
    assert ".visible .entry" in lowered.as_text("ptx")
    assert "EXIT" in lowered.as_text("sass")
    with pytest.raises(arrayjit.errors.UnsupportedError, match="cuda, ptx, sass, or lower for target llvm"):
        lowered.as_text("llvm")
