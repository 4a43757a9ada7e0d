"""Scans on a GPU: many threads accumulate together, with NumPy's results; loops keep their order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from test_cuda_emitter import program

import arrayjit
from arrayjit.ir.launches import walk_steps
from arrayjit.passes.gpu import scan
from arrayjit.runtime.cuda import nvrtc
from arrayjit.targets.cuda import ARCHITECTURES

SIZES = (0, 1, 2, 256, 257, 1023, 2047, 2048, 2049, 5003)


def drawn(shape: Any, dtype: str) -> np.ndarray:
    random = np.random.default_rng(0)
    return (
        random.integers(-9, 9, shape).astype(dtype)
        if dtype[0] == "i"
        else random.normal(size=shape).astype(dtype)
    )


EXACT: dict[str, tuple[Callable[[Any], Any], str]] = {
    "sums of integers": (lambda x: np.cumsum(x), "i8"),
    "sums of narrow integers": (lambda x: np.cumsum(x), "i2"),
    "products of integers": (lambda x: np.cumprod(x), "i8"),
    "greatest so far": (lambda x: np.maximum.accumulate(x), "f4"),
    "least so far": (lambda x: np.minimum.accumulate(x * 2), "f8"),
    "any so far": (lambda x: np.logical_or.accumulate(x > 8), "i4"),
    "parity so far": (lambda x: np.bitwise_xor.accumulate(x), "i4"),
}


@pytest.mark.parametrize("name", EXACT)
def test_what_has_one_result_is_numpy_s(name: str) -> None:
    function, dtype = EXACT[name]
    for size in SIZES:
        x = drawn(size, dtype)
        got = arrayjit.jit(function, target="cuda-sim")(x).numpy()
        np.testing.assert_array_equal(got, function(x), strict=True)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_floats_are_summed_within_numpy_s_error(dtype: str) -> None:
    for size in SIZES:
        x = drawn(size, dtype)
        got = arrayjit.jit(lambda x: np.cumsum(x), target="cuda-sim")(x).numpy()
        assert got.dtype == x.dtype
        bound = np.finfo(dtype).eps * np.cumsum(np.abs(x), dtype="f8") * 8
        assert (np.abs(got - np.cumsum(x, dtype="f8")) <= bound).all()


def test_infinities_and_nans_spread_as_in_numpy() -> None:
    x = np.ones(3000, np.float32)
    x[1000], x[2500] = np.inf, np.nan
    for function in (np.cumsum, np.maximum.accumulate):
        got = arrayjit.jit(lambda x, f=function: f(x), target="cuda-sim")(x).numpy()
        np.testing.assert_array_equal(got, function(x))


@pytest.mark.parametrize("shape", [(5, 700), (3, 4, 513), (2, 300, 7), (400, 40)])
def test_scans_along_any_axis(shape: tuple[int, ...]) -> None:
    x = drawn(shape, "i8")
    for axis in range(len(shape)):
        got = arrayjit.jit(lambda x, axis=axis: np.cumsum(x, axis=axis), target="cuda-sim")(x).numpy()
        np.testing.assert_array_equal(got, np.cumsum(x, axis=axis))


def test_a_long_array_is_taken_by_many_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan, "LONG", 2)
    for size in (2048, 4096, 4097, 10_000):
        x = drawn(size, "i4")
        got = arrayjit.jit(lambda x: np.cumsum(x), target="cuda-sim")(x).numpy()
        np.testing.assert_array_equal(got, np.cumsum(x))


def test_the_bits_are_the_same_in_every_run() -> None:
    x = drawn(5003, "f4")
    function = arrayjit.jit(lambda x: np.cumsum(x), target="cuda-sim")
    np.testing.assert_array_equal(function(x).numpy(), function(x).numpy())


def test_a_loop_of_the_user_s_keeps_its_order() -> None:
    def sums(x):
        y = np.empty_like(x)
        y[0] = x[0]
        for i in range(1, x.shape[0]):
            y[i] = y[i - 1] + x[i]
        return y

    x = drawn(700, "f4")
    np.testing.assert_array_equal(arrayjit.jit(sums, target="cuda-sim")(x).numpy(), sums(x))


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("shape", [(4096, 4096), (1 << 24,)])
def test_scans_are_compiled_without_spills(shape: tuple[int, ...], arch: str) -> None:
    made = program(lambda x: np.cumsum(x, axis=-1), np.broadcast_to(np.float32(1), shape).copy(), arch=arch)
    usage = nvrtc.usage(nvrtc.compiled(made.source, arch, "program").log)
    assert all(kernel.spilled_bytes == kernel.stack_bytes == 0 for kernel in usage.values())
    assert len(list(walk_steps(made.plan))) == (1 if len(shape) == 2 else 3)
