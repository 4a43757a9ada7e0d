"""CUDA's mathematical functions as NVRTC compiles them, with the errors that NVIDIA documents.

They are also the widest selection of instructions that a compiler makes of ordinary programs.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

Run = Callable[..., None]
Reference = Callable[..., np.ndarray]


def of_python(function: Callable[..., float]) -> Reference:
    return np.vectorize(function, otypes=[np.float64])


ONE: dict[str, tuple[Reference, float, float, float, float]] = {
    # name: reference, range, ULP of float32, ULP of float64
    "exp": (np.exp, -80, 80, 2, 1),
    "exp2": (np.exp2, -120, 120, 2, 1),
    "exp10": (lambda x: np.power(x.dtype.type(10), x), -30, 30, 2, 1),
    "expm1": (np.expm1, -5, 5, 1, 1),
    "log": (np.log, 1e-30, 1e30, 1, 1),
    "log2": (np.log2, 1e-30, 1e30, 1, 1),
    "log10": (np.log10, 1e-30, 1e30, 2, 1),
    "log1p": (np.log1p, -0.9, 10, 1, 1),
    "sqrt": (np.sqrt, 0, 1e30, 0, 0),
    "rsqrt": (lambda x: 1 / np.sqrt(x), 1e-30, 1e30, 2, 1),
    "cbrt": (np.cbrt, -1e30, 1e30, 1, 1),
    "sin": (np.sin, -1e6, 1e6, 2, 2),
    "cos": (np.cos, -1e6, 1e6, 2, 2),
    "tan": (np.tan, -1e6, 1e6, 4, 2),
    "asin": (np.arcsin, -1, 1, 2, 2),
    "acos": (np.arccos, -1, 1, 2, 2),
    "atan": (np.arctan, -1e3, 1e3, 2, 2),
    "sinh": (np.sinh, -20, 20, 3, 2),
    "cosh": (np.cosh, -20, 20, 2, 1),
    "tanh": (np.tanh, -10, 10, 2, 2),
    "asinh": (np.arcsinh, -1e3, 1e3, 3, 3),
    "acosh": (np.arccosh, 1, 1e3, 4, 3),
    "atanh": (np.arctanh, -0.999, 0.999, 3, 2),
    "erf": (of_python(math.erf), -4, 4, 2, 2),
    "erfc": (of_python(math.erfc), -4, 8, 4, 5),
    "tgamma": (of_python(math.gamma), 0.1, 30, 5, 10),
    "lgamma": (of_python(math.lgamma), 3, 1e3, 6, 4),
    "floor": (np.floor, -1e9, 1e9, 0, 0),
    "ceil": (np.ceil, -1e9, 1e9, 0, 0),
    "trunc": (np.trunc, -1e9, 1e9, 0, 0),
    "rint": (np.rint, -1e5, 1e5, 0, 0),
    "fabs": (np.abs, -1e9, 1e9, 0, 0),
}
TWO: dict[str, tuple[Reference, float, float, float, float]] = {
    "pow": (np.power, 0.01, 20, 4, 2),
    "atan2": (np.arctan2, -5, 5, 3, 2),
    "hypot": (np.hypot, -1e3, 1e3, 3, 2),
    "fmod": (np.fmod, -1e3, 1e3, 0, 0),
    "fmax": (np.fmax, -1, 1, 0, 0),
    "copysign": (np.copysign, -1, 1, 0, 0),
    "nextafter": (np.nextafter, -1, 1, 0, 0),
}


def program(kind: str) -> str:
    """A kernel for each function."""
    suffix = "f" if kind == "float" else ""
    one = [
        f'extern "C" __global__ void {name}_(const {kind}* x, {kind}* y, int n) {{'
        f" int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = {name}{suffix}(x[i]); }}"
        for name in ONE
    ]
    two = [
        f'extern "C" __global__ void {name}_(const {kind}* x, const {kind}* z, {kind}* y, int n) {{'
        f" int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = {name}{suffix}(x[i], z[i]); }}"
        for name in TWO
    ]
    return "\n".join([*one, *two])


def draw(low: float, high: float, dtype: type, seed: int) -> np.ndarray:
    """Numbers of the range, of all sizes if it spans many."""
    rng = np.random.default_rng(seed)
    linear = rng.uniform(low, high, 120)
    if high / max(abs(low), 1e-300) > 1e10:
        linear[::2] = np.exp(rng.uniform(np.log(max(low, 1e-300)), np.log(high), 60))
    return np.array([low, high, *linear]).astype(dtype)


@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
@pytest.mark.parametrize("kind", ["float", "double"])
@pytest.mark.parametrize("name", [*ONE, *TWO])
def test_error_in_units_of_the_last_place(run: Run, name: str, kind: str, arch: str) -> None:
    dtype, wide = (np.float32, np.float64) if kind == "float" else (np.float64, np.longdouble)
    reference, low, high, *allowed = {**ONE, **TWO}[name]
    operands = [draw(low, high, dtype, seed) for seed in range(1 if name in ONE else 2)]
    result = np.empty_like(operands[0])
    run(program(kind), f"{name}_", 2, 64, *operands, result, np.int32(result.size), arch=arch)
    if name == "nextafter":
        expected = np.nextafter(*operands)
    else:
        expected = reference(*(each.astype(wide) for each in operands))
    near = expected.astype(dtype)
    units = np.abs((result.astype(wide) - expected) / np.spacing(np.abs(near)))
    # half a unit of rounding is not in NVIDIA's figures for exact functions; the reference is off by less
    assert np.max(units) <= allowed[kind == "double"] + 0.51, (name, float(np.max(units)))


@pytest.mark.parametrize("kind", ["float", "double"])
def test_special_values(run: Run, kind: str) -> None:
    dtype = np.float32 if kind == "float" else np.float64
    x = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0], dtype)
    for name in ("exp", "log", "sin", "tanh", "sqrt", "atan", "expm1", "log1p", "erf", "cbrt", "asin"):
        result = np.empty_like(x)
        run(program(kind), f"{name}_", 1, 64, x, result, np.int32(x.size))
        with np.errstate(all="ignore"):
            expected = ONE[name][0](x)
        np.testing.assert_allclose(result, expected, rtol=1e-6, err_msg=name)
        np.testing.assert_array_equal(np.signbit(result)[expected == 0], np.signbit(expected)[expected == 0])


def test_fast_mathematics(run: Run) -> None:
    source = """extern "C" __global__ void k(const float* x, float* y) {
        int i = threadIdx.x;
        y[i] = expf(x[i]) + __sinf(x[i]) / sqrtf(x[i]);
        y[i] += __fdividef(1.0f, x[i]) + __powf(x[i], 1.5f) + rsqrtf(x[i]);
    }"""
    x = np.linspace(0.1, 3, 64).astype(np.float32)
    y = np.empty_like(x)
    run(source, "k", 1, 64, x, y, options=("--use_fast_math",))
    wide = x.astype(np.float64)
    expected = np.exp(wide) + np.sin(wide) / np.sqrt(wide) + 1 / wide + wide**1.5 + 1 / np.sqrt(wide)
    np.testing.assert_allclose(y, expected, rtol=2e-6)


ROUNDED = {
    "add": ("__fadd_{0}(a, b)", "__dadd_{0}(a, b)"),
    "mul": ("__fmul_{0}(a, b)", "__dmul_{0}(a, b)"),
    "div": ("__fdiv_{0}(a, b)", "__ddiv_{0}(a, b)"),
    "fma": ("__fmaf_{0}(a, b, a)", "__fma_{0}(a, b, a)"),
    "root": ("__fsqrt_{0}(fabsf(a))", "__dsqrt_{0}(fabs(a))"),
}


@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
@pytest.mark.parametrize("kind", ["float", "double"])
def test_rounding_intrinsics_bracket_the_exact_result(run: Run, kind: str, arch: str) -> None:
    """Down, to nearest, up: neighbours, in this order; towards zero is the one of smaller size."""
    dtype = np.float32 if kind == "float" else np.float64
    rng = np.random.default_rng(9)
    a, b = (rng.standard_normal(64).astype(dtype) for _ in range(2))
    bodies = [
        f'extern "C" __global__ void {name}_(const {kind}* x, const {kind}* z, {kind}* y) {{'
        f" int i = threadIdx.x; {kind} a = x[i], b = z[i];"
        + "".join(
            f" y[{64 * at} + i] = {spellings[kind == 'double'].format(mode)};"
            for at, mode in enumerate(("rd", "rn", "ru", "rz"))
        )
        + "}"
        for name, spellings in ROUNDED.items()
    ]
    for name in ROUNDED:
        y = np.empty((4, 64), dtype)
        run("\n".join(bodies), f"{name}_", 1, 64, a, b, y, arch=arch)
        down, near, up, cut = y
        assert ((up == down) | (up == np.nextafter(down, dtype(np.inf)))).all()
        assert (down < up).any()
        assert ((near == down) | (near == up)).all()
        np.testing.assert_array_equal(cut, np.where(up <= 0, up, down))
