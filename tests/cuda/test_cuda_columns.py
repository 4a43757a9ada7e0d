"""Sums down columns on the simulated GPU: blocks of columns, whose rows threads share."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import arrayjit
from arrayjit.ir.code import Caps, GpuCaps
from arrayjit.passes.manager import optimize
from arrayjit.runtime.cuda import nvrtc
from arrayjit.runtime.cuda.sass import disassembled
from arrayjit.targets.cuda import ARCHITECTURES, CudaTarget

SIZES = [(0, 40), (40, 0), (1, 40), (40, 1), (8, 64), (64, 3), (127, 31), (128, 32), (129, 33), (1031, 5)]


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A GPU that is worth it for few columns."""
    gpu = GpuCaps(processors=2, busy_threads=64, wide=16, wide_again=16)
    monkeypatch.setattr(CudaTarget, "caps", lambda self: Caps(gpu=gpu))


def compared(function: Callable[..., Any], *arguments: Any, rtol: float = 0.0) -> str:
    """The loops of a function, which does what it does in NumPy."""
    jitted = arrayjit.jit(function, target="cuda-sim")
    got, wanted = jitted(*arguments).numpy(), function(*arguments)
    assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape)
    np.testing.assert_allclose(got, wanted, rtol=rtol)
    return jitted.lower(*arguments).as_text("optimized")


def drawn(*shape: int, dtype: str = "f4") -> np.ndarray:
    """Small integers, of which every sum is exact."""
    return np.random.default_rng(0).integers(1, 9, shape).astype(dtype)


def softmax(x):
    e = np.exp(x - x.max(axis=0))
    return e / e.sum(axis=0)


@pytest.mark.parametrize("shape", SIZES)
def test_any_number_of_rows_and_columns(shape: tuple[int, int]) -> None:
    compared(lambda x: x.sum(axis=0) + 1, drawn(*shape))


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i1", "u4", "i8", "?", "c8"])
def test_any_type(dtype: str) -> None:
    assert "shared" in compared(lambda x: x.sum(axis=0), drawn(61, 35, dtype=dtype))


@pytest.mark.parametrize("name", ["max", "min", "prod", "any", "all", "argmax", "argmin"])
def test_any_reduction(name: str) -> None:
    assert "shared" in compared(lambda x: getattr(x, name)(axis=0), drawn(61, 35, dtype="f8") % 3)


def test_columns_in_the_middle() -> None:
    assert "shared" in compared(lambda x: x.sum(axis=1), drawn(3, 61, 35))
    assert "shared" in compared(lambda x: x.max(axis=(0, 1)), drawn(3, 61, 35))


def test_columns_of_views() -> None:
    assert "shared" in compared(lambda x: x[::-1, ::-2].sum(axis=0), drawn(61, 35))
    assert "shared" in compared(lambda x: x[3:, 1:-1].sum(axis=0), drawn(61, 70)[:, ::2])


def test_columns_that_are_gone_through_again() -> None:
    assert "shared" in compared(lambda x: x.var(axis=0), drawn(61, 35, dtype="f8"), rtol=1e-14)
    assert "shared" in compared(softmax, drawn(61, 35, dtype="f8"), rtol=1e-14)


def test_a_vector_times_a_matrix() -> None:
    assert "shared" in compared(lambda v, w: v @ w, drawn(61), drawn(61, 35))


def test_rows_are_not_columns() -> None:
    assert "shared" not in compared(lambda x: x.sum(axis=1), drawn(35, 61))


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_a_thread_waits_for_many_rows_at_once(arch: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    target = CudaTarget("cuda", arch)
    lowered = arrayjit.jit(lambda x: x.sum(axis=0), target="interp").lower(np.ones((4096, 1000), np.float32))
    payload: Any = target.emit(optimize(lowered.build.computation, target.caps(), verify=True).kernel).payload
    made = nvrtc.compiled(payload.source, arch, "columns")
    usage = nvrtc.usage(made.log).values()
    assert all(kernel.spilled_bytes == kernel.stack_bytes == 0 for kernel in usage)
    assert len(re.findall(r"LDG\.E", disassembled(made.cubin))) > 16


def test_the_reason_is_told() -> None:
    told = arrayjit.jit(lambda x: x.sum(axis=0), target="cuda-sim").lower(drawn(1031, 5)).explain()
    assert re.search(
        r"a thread for each of 5 columns would go through 1031 rows alone, so blocks take columns", told
    )
