"""Products of float16 and bfloat16 matrices by tensor cores are NumPy's: sums in float32, rounded once. Those
of float32 are NumPy's of rounded factors, where that is asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from ml_dtypes import bfloat16, finfo

import arrayjit
from arrayjit.ir.code import Caps, GpuCaps
from arrayjit.targets.cuda import CudaTarget
from arrayjit.targets.interp import InterpTarget

FACTORS = (np.float16, bfloat16, np.float32)
each_factor = pytest.mark.parametrize("factor", FACTORS, ids=lambda dtype: dtype.__name__)

FEW, MANY = GpuCaps(processors=1, tensor_cores=True), GpuCaps(processors=132, tensor_cores=True)
"""For few processors tiles are large."""


@pytest.fixture(autouse=True)
def verified(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARRAYJIT_VERIFY", "1")
    monkeypatch.setenv("ARRAYJIT_CACHE_BYTES", "0")


def draw(small: Any, *shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(small)


def plain(x, w):
    return x @ w


def left_turned(x, w):
    return x.T @ w


def right_turned(x, w):
    return x @ w.T


def both_turned(x, w):
    return x.T @ w.T


def gelu(x, w, b):
    y = (x @ w).astype(np.float32) + b
    return (0.5 * y * (1 + np.tanh(0.7978845608 * (y + 0.044715 * y * y * y)))).astype(x.dtype)


def residual(x, w, b):
    return np.matmul(x, w).astype(np.float32) * 2 + b


def across(x, w):
    return np.matmul(x, w.swapaxes(1, 2)).swapaxes(0, 1)


def in_a_loop(x, w):
    for _ in range(2):
        x = np.tanh(x @ w).astype(x.dtype)
    return x


def of_parts(x, w):
    return x[1:, 8:] @ w[:-8, 3:]


PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...]]] = {
    "one fragment": (plain, ((16, 16), (16, 16))),
    "less than a tile": (plain, ((31, 17), (17, 33))),
    "whole tiles": (plain, ((64, 96), (96, 64))),
    "more than a tile": (plain, ((33, 65), (65, 31))),
    "odd columns": (plain, ((130, 97), (97, 65))),
    "many slices": (plain, ((32, 330), (330, 32))),
    "left turned": (left_turned, ((70, 129), (70, 40))),
    "right turned": (right_turned, ((40, 70), (129, 70))),
    "both turned": (both_turned, ((70, 40), (34, 70))),
    "batched": (plain, ((3, 40, 36), (3, 36, 20))),
    "broadcast": (plain, ((3, 40, 36), (36, 20))),
    "across memory": (across, ((2, 20, 40), (2, 17, 40))),
    "parts": (of_parts, ((41, 48), (48, 40))),
    "bias and gelu": (gelu, ((50, 40), (40, 34), (34,))),
    "residual": (residual, ((40, 64), (64, 40), (40, 40))),
    "in a loop": (in_a_loop, ((20, 40), (40, 40))),
}


def as_tf32(factor: np.ndarray) -> np.ndarray:
    """Of float32s the nearest with 11 significant bits, of two the one farther from zero."""
    if factor.dtype != np.float32:
        return factor
    fraction, exponent = np.frexp(factor)
    return np.ldexp(np.copysign(np.floor(np.abs(fraction) * 2**11 + 0.5), fraction) / 2**11, exponent)


def assert_close(function: Callable[..., Any], arguments: list[np.ndarray], got: np.ndarray) -> None:
    """Equal but for the order of the terms of float32 sums, which may round a small float the other way, or a
    factor of the next product of float32."""
    wanted = function(*map(as_tf32, arguments[:2]), *arguments[2:])
    assert got.dtype == wanted.dtype
    depth = max(arguments[0].shape)
    eps = float(finfo(arguments[0].dtype).eps) if wanted.dtype.itemsize == 2 else 2.0**-22
    if function is in_a_loop and wanted.dtype == np.float32:
        eps = 2.0**-11
    again = 4 * eps if function in (gelu, in_a_loop) else 0.0
    np.testing.assert_allclose(
        got.astype(np.float64), wanted.astype(np.float64), rtol=2 * eps, atol=depth**2 * 2.0**-23 + again
    )


def arguments_of(name: str, factor: Any) -> tuple[Callable[..., Any], list[np.ndarray]]:
    """Factors of a dtype; what is added is float32."""
    function, shapes = PROGRAMS[name]
    scale = 0.25 if function is in_a_loop else 1.0
    factors = [(draw(np.float32, *shape) * scale).astype(factor) for shape in shapes[:2]]
    return function, [*factors, *(draw(np.float32, *shape) for shape in shapes[2:])]


@each_factor
@pytest.mark.parametrize("gpu", [FEW, MANY], ids=["large tiles", "small tiles"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_schedule_is_numpys(
    name: str, gpu: GpuCaps, factor: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(InterpTarget, "caps", lambda self: Caps(gpu=gpu))
    function, arguments = arguments_of(name, factor)
    jitted = arrayjit.jit(function, target="interp", fast="tf32")
    assert "multiply_matrices(" in jitted.lower(*arguments).as_text("optimized")
    assert_close(function, arguments, jitted(*arguments))


SIMULATED = ("less than a tile", "both turned", "batched", "bias and gelu", "in a loop")


@each_factor
@pytest.mark.parametrize("name", SIMULATED)
def test_a_simulated_gpu_has_numpys_results(name: str, factor: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = FEW if name == "less than a tile" else MANY
    monkeypatch.setattr(CudaTarget, "caps", lambda self: Caps(gpu=gpu))
    function, arguments = arguments_of(name, factor)
    got = arrayjit.jit(function, target="cuda-sim", fast="tf32")(*arguments)
    assert_close(function, arguments, got.numpy())


TIE = 1 + 2.0**-11
ROUNDED = {
    TIE: 1 + 2.0**-10,
    -TIE: -1 - 2.0**-10,
    TIE - 2.0**-23: 1.0,
    TIE + 2.0**-23: 1 + 2.0**-10,
    1 + 2.0**-10: 1 + 2.0**-10,
    2 - 2.0**-23: 2.0,
    2.0**-130: 2.0**-130,
    float(np.finfo(np.float32).max): np.inf,
    np.inf: np.inf,
    -np.inf: -np.inf,
}
"""Float32s, and what tensor cores make of them."""


@pytest.mark.parametrize("target", ["interp", "cuda-sim"])
@pytest.mark.parametrize("side", ["left", "right"])
def test_factors_are_rounded_to_the_nearest(side: str, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in (InterpTarget, CudaTarget):
        monkeypatch.setattr(kind, "caps", lambda self: Caps(gpu=MANY))
    x = np.zeros((20, 16), np.float32)
    x[: len(ROUNDED), 0] = list(ROUNDED)
    x[len(ROUNDED), 0] = np.nan
    one = np.zeros((16, 20), np.float32)
    one[0] = 1
    wanted = np.zeros((20, 20), np.float32)
    wanted[: len(ROUNDED)] = np.array(list(ROUNDED.values()), np.float32)[:, None]
    wanted[len(ROUNDED)] = np.nan
    factors, wanted = ((x, one), wanted) if side == "left" else ((one.T.copy(), x.T.copy()), wanted.T)
    np.testing.assert_array_equal(arrayjit.jit(plain, target=target, fast="tf32")(*factors), wanted)


@pytest.mark.parametrize("target", ["llvm", "cuda-sim"])
def test_float32_keeps_its_bits_where_nobody_asks(target: str) -> None:
    """And so it does on targets that are no GPU whatever is asked for."""
    x = np.full((32, 32), TIE, np.float32)
    one = np.eye(32, dtype=np.float32)
    fast = "tf32" if target == "llvm" else ""
    np.testing.assert_array_equal(arrayjit.jit(plain, target=target, fast=fast)(x, one), x)
    if target == "cuda-sim":
        said = str(arrayjit.jit(plain, target=target).explain(x, one))
        assert (
            'float32 factors keep all their bits, of which tensor cores need fewer: jit(fast="tf32")' in said
        )


NOT_FOR_TENSOR_CORES = {
    "float32": (plain, np.float32, ((64, 64), (64, 64))),
    "a vector": (plain, np.float16, ((64, 64), (64,))),
    "few rows": (plain, np.float16, ((8, 64), (64, 64))),
    "few terms": (plain, np.float16, ((64, 8), (8, 64))),
}


@pytest.mark.parametrize("name", NOT_FOR_TENSOR_CORES)
def test_other_products_are_formed_in_other_ways(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(InterpTarget, "caps", lambda self: Caps(gpu=MANY))
    function, dtype, shapes = NOT_FOR_TENSOR_CORES[name]
    arguments = [draw(dtype, *shape) for shape in shapes]
    jitted = arrayjit.jit(function, target="interp")
    assert "multiply_matrices(" not in jitted.lower(*arguments).as_text("optimized")
    np.testing.assert_allclose(jitted(*arguments), function(*arguments), rtol=2e-3, atol=2e-2)


def test_a_gpu_without_them_uses_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(InterpTarget, "caps", lambda self: Caps(gpu=GpuCaps()))
    x = draw(np.float16, 64, 64)
    assert "multiply_matrices(" not in arrayjit.jit(plain, target="interp").lower(x, x).as_text("optimized")


def test_nan_and_infinity_stay_in_their_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(InterpTarget, "caps", lambda self: Caps(gpu=MANY))
    x, w = draw(np.float16, 40, 33), np.abs(draw(np.float16, 33, 40)) + np.float16(1)
    x[3, 32], x[5, 0] = np.nan, np.inf
    got = arrayjit.jit(plain, target="interp")(x, w)
    np.testing.assert_array_equal(np.isnan(got).all(axis=1), np.arange(40) == 3)
    np.testing.assert_array_equal(np.isposinf(got).all(axis=1), np.arange(40) == 5)
