"""Floating-point instructions, rounded exactly once in every mode, against rational arithmetic."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
"""The references overflow and make NaN as the kernels do."""

Compute = Callable[..., np.ndarray]

MODES = ("rn", "rz", "rm", "rp")
FORMATS = {"f16": (np.float16, 11, -14), "f32": (np.float32, 24, -126), "f64": (np.float64, 53, -1022)}
BFLOAT = (ml_dtypes.bfloat16, 8, -126)


def samples(dtype: type, count: int = 160) -> np.ndarray:
    """Zeros, infinities, NaN, the extremes, subnormals, and random bit patterns of moderate size."""
    limits = ml_dtypes.finfo(dtype)
    tiny, least, most = (float(each) for each in (limits.tiny, limits.smallest_subnormal, limits.max))
    known = [
        0.0,
        -0.0,
        math.inf,
        -math.inf,
        math.nan,
        1.0,
        -1.0,
        1.5,
        3.0,
        most,
        -most,
        tiny,
        -tiny,
        least,
        -least,
    ]
    rng = np.random.default_rng(3)
    drawn = rng.standard_normal(count) * np.exp2(rng.integers(-6, 6, count))
    near = tiny * rng.uniform(-2, 2, 12)
    return np.concatenate([known, near, drawn]).astype(dtype)


def rounded(exact: Fraction, digits: int, lowest: int, mode: str) -> Fraction:
    """A rational number with so many binary digits, or fewer below the lowest exponent; not bounded above."""
    if exact == 0:
        return exact
    size = abs(exact)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    exponent -= size < Fraction(2) ** exponent
    unit = Fraction(2) ** (max(exponent, lowest) - digits + 1)
    scaled = exact / unit
    whole = {"rn": round, "rz": math.trunc, "rm": math.floor, "rp": math.ceil}[mode](scaled)
    return whole * unit


def bounded(value: Fraction, dtype: type, mode: str) -> float:
    """What a format gives for a rounded number: it may be too large."""
    most = float(ml_dtypes.finfo(dtype).max)
    if abs(value) > most:
        keeps = mode == "rz" or mode == ("rp" if value < 0 else "rm")
        return (-1 if value < 0 else 1) * (most if keeps else math.inf)
    return float(value)


def check(
    compute: Compute,
    text: str,
    dtype: type,
    format_: tuple[type, int, int],
    function: Callable[..., Fraction],
    mode: str,
    *operands: np.ndarray,
) -> None:
    """Every finite result is the exact one, rounded once. The signs of zeros are not looked at here."""
    shown = compute(text, dtype, *operands).astype(np.float64)
    checked = 0
    for row, result in zip(zip(*operands, strict=True), shown, strict=True):
        values = [float(each) for each in row]
        try:
            exact = function(*map(Fraction, values))
        except (ValueError, OverflowError, ZeroDivisionError):
            continue
        wanted = bounded(rounded(exact, *format_[1:], mode), format_[0], mode)
        assert abs(result) == abs(wanted), (text, values, float(result), wanted)
        assert wanted == 0 or math.copysign(1, result) == math.copysign(1, wanted)
        checked += 1
    assert checked > 100


BINARY: dict[str, Callable[[Fraction, Fraction], Fraction]] = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ["f32", "f64"])
@pytest.mark.parametrize("name", [*BINARY, "div"])
def test_two_operands_in_every_mode(compute: Compute, name: str, kind: str, mode: str) -> None:
    dtype = FORMATS[kind][0]
    x = samples(dtype)
    function = BINARY.get(name, lambda x, y: x / y)
    for y in (np.roll(x, 1), np.roll(x, 7)):
        check(compute, f"{name}.{mode}.{kind} d, a, b;", dtype, FORMATS[kind], function, mode, x, y)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_roots_and_reciprocals(compute: Compute, kind: str, mode: str) -> None:
    dtype, digits, lowest = FORMATS[kind]
    x = np.abs(samples(dtype))
    check(compute, f"rcp.{mode}.{kind} d, a;", dtype, FORMATS[kind], lambda x: 1 / x, mode, x)
    shown = compute(f"sqrt.{mode}.{kind} d, a;", dtype, x).astype(np.float64)
    for value, root in zip(x.astype(np.float64), shown, strict=True):
        if math.isfinite(value) and value > 0:
            # enough digits that rounding them does not go wrong, and the last one tells that there are more
            scaled = Fraction(value) * Fraction(4) ** 1200
            digits_of_root = math.isqrt(math.floor(scaled))
            exact = Fraction(2 * digits_of_root + (digits_of_root**2 != scaled), 2) / Fraction(2) ** 1200
            assert root == float(rounded(exact, digits, lowest, mode)), (value, root)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_fused_operations_round_once(compute: Compute, kind: str, mode: str) -> None:
    dtype = FORMATS[kind][0]
    x = samples(dtype)
    operands = [(x, np.roll(x, 1), np.roll(x, 5))]
    product = x.astype(np.float64) * np.roll(x, 1)
    operands.append((x, np.roll(x, 1), (-product).astype(dtype)))  # sums that cancel
    one = np.exp2(-np.arange(12, 12 + x.size) % 40).astype(dtype)
    operands.append((1 + one, 1 - one, np.roll(one, 3)))  # sums in the middle of two numbers
    for each in operands:
        check(
            compute,
            f"fma.{mode}.{kind} d, a, b, c;",
            dtype,
            FORMATS[kind],
            lambda x, y, z: x * y + z,
            mode,
            *each,
        )


def test_fused_operations_are_not_rounded_twice(compute: Compute) -> None:
    """1 + 2**-24 is in the middle of two float32s; what is far below decides, and is lost in float64."""
    just = 1 + 2.0**-23
    x = np.float32([2.0**-24 * just, 2.0**-24 / just, 2.0**-24])
    y = np.float32([just, just, 1])
    exact = [
        Fraction(float(p)) * Fraction(float(q)) - Fraction(1, 1 << 24) for p, q in zip(x, y, strict=True)
    ]
    assert [np.sign(float(each)) for each in exact] == [1, -1, 0]
    z = np.float32([1, 1, 1])
    shown = compute("fma.rn.f32 d, a, b, c;", np.float32, x, y, z)
    np.testing.assert_array_equal(shown, np.float32([just, 1, 1]))
    tiny = np.float32([2.0**-100])
    middle = np.float32([1 + 2.0**-12]), np.float32([1 + 2.0**-12])
    above = compute("fma.rn.f32 d, a, b, c;", np.float32, *middle, tiny)
    below = compute("fma.rn.f32 d, a, b, c;", np.float32, *middle, -tiny)
    assert above[0] == np.float32(1 + 2.0**-11 + 2.0**-23)
    assert below[0] == np.float32(1 + 2.0**-11)


def test_short_floats(compute: Compute) -> None:
    for kind, format_ in (("f16", FORMATS["f16"]), ("bf16", BFLOAT)):
        x = samples(format_[0])
        y, z = np.roll(x, 1), np.roll(x, 5)
        for name, function in BINARY.items():
            check(compute, f"{name}.rn.{kind} d, a, b;", format_[0], format_, function, "rn", x, y)
        check(
            compute,
            f"fma.rn.{kind} d, a, b, c;",
            format_[0],
            format_,
            lambda x, y, z: x * y + z,
            "rn",
            x,
            y,
            z,
        )


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_pairs_of_short_floats(compute: Compute, dtype: type) -> None:
    kind = "f16x2" if dtype == np.float16 else "bf16x2"
    x = np.resize(samples(dtype), 128)
    y = np.roll(x, 1)
    shown = compute(f"add.rn.{kind} d, a, b;", np.uint32, x.view(np.uint32), y.view(np.uint32)).view(dtype)
    np.testing.assert_array_equal(shown.astype(np.float32), (x + y).astype(np.float32))
    shown = compute(f"max.{kind} d, a, b;", np.uint32, x.view(np.uint32), y.view(np.uint32)).view(dtype)
    np.testing.assert_array_equal(shown.astype(np.float32), np.fmax(x, y).astype(np.float32))


def test_signs_of_zeros(compute: Compute) -> None:
    x, y = np.float32([0.0, -0.0, 1.0, -0.0]), np.float32([-0.0, -0.0, -1.0, 0.0])
    signs = {mode: np.signbit(compute(f"add.{mode}.f32 d, a, b;", np.float32, x, y)) for mode in MODES}
    np.testing.assert_array_equal(signs["rn"], [False, True, False, False])
    np.testing.assert_array_equal(signs["rm"], [True, True, True, True])
    product = np.signbit(compute("mul.rn.f32 d, a, b;", np.float32, x, y))
    np.testing.assert_array_equal(product, [True, False, True, True])
    for name, wanted in (("min", [True, True, True, True]), ("max", [False, True, False, False])):
        shown = compute(f"{name}.f32 d, a, b;", np.float32, x, y)
        np.testing.assert_array_equal(np.signbit(shown), wanted)


def test_extremes_and_nan(compute: Compute) -> None:
    x = np.float32([1, np.nan, np.nan, -np.inf])
    y = np.float32([np.nan, 2, np.nan, np.nan])
    np.testing.assert_array_equal(
        compute("min.f32 d, a, b;", np.float32, x, y), np.float32([1, 2, np.nan, -np.inf])
    )
    assert np.isnan(compute("max.NaN.f32 d, a, b;", np.float32, x, y)).all()
    three = compute("max.f32 d, a, b, c;", np.float32, x, y, np.float32([0, 3, 4, 5]))
    np.testing.assert_array_equal(three, [1, 3, 4, 5])


def test_flushing_and_saturation(compute: Compute) -> None:
    x = np.float32([1e-40, -1e-40, 1e-38 * 2, 3.0, -2.0, np.nan, 0.25])
    flushed = np.where(np.abs(x) < np.finfo(np.float32).tiny, np.copysign(np.float32(0), x), x)
    np.testing.assert_array_equal(compute("add.ftz.f32 d, a, 0f00000000;", np.float32, x), flushed)
    np.testing.assert_array_equal(compute("mul.f32 d, a, 0f3F800000;", np.float32, x), x)
    tiny = np.full(7, np.finfo(np.float32).tiny)
    halves = compute("mul.ftz.f32 d, a, 0f3F000000;", np.float32, tiny)
    np.testing.assert_array_equal(halves, np.zeros(7))
    clamped = compute("add.sat.f32 d, a, 0f00000000;", np.float32, x)
    np.testing.assert_array_equal(clamped, np.nan_to_num(np.clip(x, 0, 1), nan=0))
    relu = compute("fma.rn.relu.f16 d, a, b, c;", np.float16, *np.float16([[-2.0, 2.0], [1, 1], [0, 0]]))
    np.testing.assert_array_equal(relu, [0, 2])


def test_signs(compute: Compute) -> None:
    for kind, (dtype, *_) in FORMATS.items():
        x = samples(dtype)
        np.testing.assert_array_equal(compute(f"neg.{kind} d, a;", dtype, x), -x)
        np.testing.assert_array_equal(compute(f"abs.{kind} d, a;", dtype, x), np.abs(x))
        if kind != "f16":
            shown = compute(f"copysign.{kind} d, a, b;", dtype, np.roll(x, 1), x)
            np.testing.assert_array_equal(np.signbit(shown), np.signbit(np.roll(x, 1)))
            np.testing.assert_array_equal(np.abs(shown), np.abs(x))
    x = samples(ml_dtypes.bfloat16)
    shown = compute("neg.bf16 d, a;", ml_dtypes.bfloat16, x)
    np.testing.assert_array_equal(shown.astype(np.float32), -x.astype(np.float32))


APPROXIMATED: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "ex2.approx.f32": np.exp2,
    "lg2.approx.f32": np.log2,
    "sin.approx.f32": np.sin,
    "cos.approx.f32": np.cos,
    "tanh.approx.f32": np.tanh,
    "rsqrt.approx.f32": lambda x: 1 / np.sqrt(x),
    "rcp.approx.f32": lambda x: 1 / x,
    "sqrt.approx.f32": np.sqrt,
    "ex2.approx.ftz.f32": np.exp2,
    "lg2.approx.ftz.f32": np.log2,
    "rcp.approx.ftz.f32": lambda x: 1 / x,
}


@pytest.mark.parametrize("name", APPROXIMATED)
def test_approximations_are_rounded_once(compute: Compute, name: str) -> None:
    x = np.float32(np.linspace(0.01, 9.7, 128))
    with np.errstate(all="ignore"):
        expected = APPROXIMATED[name](x.astype(np.float64)).astype(np.float32)
    np.testing.assert_array_equal(compute(f"{name} d, a;", np.float32, x), expected)


def test_approximations_of_float64_are_short(compute: Compute) -> None:
    x = np.linspace(0.01, 9.7, 128)
    for name, function in (
        ("rcp.approx.ftz.f64", lambda x: 1 / x),
        ("rsqrt.approx.ftz.f64", lambda x: 1 / np.sqrt(x)),
    ):
        shown = compute(f"{name} d, a;", np.float64, x)
        assert (shown.view(np.uint64) & np.uint64(0xFFFFFFFF) == 0).all()
        np.testing.assert_allclose(shown, function(x), rtol=2e-6)


def test_approximate_division(compute: Compute) -> None:
    x, y = samples(np.float32), np.roll(samples(np.float32), 1)
    with np.errstate(all="ignore"):
        expected = x / y
    np.testing.assert_array_equal(compute("div.full.f32 d, a, b;", np.float32, x, y), expected)
    np.testing.assert_array_equal(compute("div.approx.f32 d, a, b;", np.float32, x, y), expected)
