"""`cvt` between all pairs of types, comparisons, and choices by them."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
"""The references overflow and compare NaN as the kernels do."""

Compute = Callable[..., np.ndarray]

INTEGERS = {
    f"{sign}{bits}": np.dtype(f"{'i' if sign == 's' else 'u'}{bits // 8}")
    for sign in "us"
    for bits in (8, 16, 32, 64)
}
FLOATS = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64}
TO_WHOLE: dict[str, Callable[[float], int]] = {
    "rni": round,
    "rzi": math.trunc,
    "rmi": math.floor,
    "rpi": math.ceil,
}


def integers(dtype: np.dtype) -> np.ndarray:
    limits = np.iinfo(dtype)
    drawn = np.random.default_rng(1).integers(limits.min, limits.max, 80, dtype, endpoint=True)
    near = [min(1 << shift, limits.max) + step for shift in (11, 12, 24, 25, 53, 54) for step in (-1, 0)]
    return np.concatenate([np.array([limits.min, limits.max, 0, 1, 2, *near], dtype), drawn])


def floats(dtype: type) -> np.ndarray:
    most = float(ml_dtypes.finfo(dtype).max)
    known = [
        0.0,
        -0.0,
        0.5,
        1.5,
        -2.5,
        127.5,
        255.5,
        -129.0,
        32767.5,
        65535.5,
        2.0**31,
        -(2.0**31),
        2.0**32,
        2.0**63,
    ]
    known += [
        2.0**64,
        -(2.0**63),
        math.inf,
        -math.inf,
        most,
        -most,
        1e-30,
        float(ml_dtypes.finfo(dtype).tiny) / 4,
    ]
    drawn = np.random.default_rng(2).standard_normal(80) * np.exp2(np.arange(80) % 40)
    return np.concatenate([known, drawn]).astype(dtype)


@pytest.mark.parametrize("source", INTEGERS)
def test_integers_to_integers(compute: Compute, source: str) -> None:
    x = integers(INTEGERS[source])
    for target, dtype in INTEGERS.items():
        np.testing.assert_array_equal(compute(f"cvt.{target}.{source} d, a;", dtype, x), x.astype(dtype))
        limits = np.iinfo(dtype)
        clamped = [max(limits.min, min(limits.max, int(value))) for value in x]
        shown = compute(f"cvt.sat.{target}.{source} d, a;", dtype, x)
        np.testing.assert_array_equal(shown, np.array(clamped, dtype))


def nearest(value: Fraction, dtype: type, mode: str) -> float:
    """The float that a mode chooses, found among the neighbours of a first guess."""
    guess = np.dtype(dtype).type(float(value))
    while math.isinf(float(guess)):
        guess = np.nextafter(guess, np.dtype(dtype).type(0))
    around = [guess, *(np.nextafter(guess, np.dtype(dtype).type(way)) for way in (-math.inf, math.inf))]
    finite = [each for each in around if math.isfinite(float(each))]
    below = max((Fraction(float(each)) for each in finite if Fraction(float(each)) <= value), default=None)
    above = min((Fraction(float(each)) for each in finite if Fraction(float(each)) >= value), default=None)
    if below is None or above is None:
        inside = above if below is None else below
        assert inside is not None
        outward = mode == ("rm" if below is None else "rp")
        return math.copysign(math.inf, value.numerator) if outward else float(inside)
    if mode == "rn":
        return float(np.dtype(dtype).type(float(value))) if below != above else float(below)
    return float({"rm": below, "rp": above, "rz": below if value > 0 else above}[mode])


@pytest.mark.parametrize("mode", ["rn", "rz", "rm", "rp"])
@pytest.mark.parametrize("target", ["f32", "f64"])
def test_integers_to_floats(compute: Compute, target: str, mode: str) -> None:
    for source in ("u16", "s32", "u32", "s64", "u64"):
        x = integers(INTEGERS[source])
        shown = compute(f"cvt.{mode}.{target}.{source} d, a;", FLOATS[target], x)
        if mode == "rn":
            np.testing.assert_array_equal(shown, x.astype(FLOATS[target]))
        else:
            expected = [nearest(Fraction(int(value)), FLOATS[target], mode) for value in x]
            np.testing.assert_array_equal(shown.astype(np.float64), expected)


@pytest.mark.parametrize("mode", TO_WHOLE)
@pytest.mark.parametrize("source", ["f16", "f32", "f64"])
def test_floats_to_integers_are_clamped(compute: Compute, source: str, mode: str) -> None:
    x = floats(FLOATS[source])
    for target in ("s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64"):
        limits = np.iinfo(INTEGERS[target])
        expected = [
            (limits.max if value > 0 else limits.min)
            if math.isinf(value)
            else max(limits.min, min(limits.max, TO_WHOLE[mode](float(value))))
            for value in x
        ]
        shown = compute(f"cvt.{mode}.{target}.{source} d, a;", INTEGERS[target], x)
        np.testing.assert_array_equal(shown, np.array(expected, INTEGERS[target]), err_msg=target)


def test_nan_to_integers(compute: Compute) -> None:
    """Zero, but the most negative number's bits where a 64-bit type is involved."""
    single, double = np.float32([np.nan]), np.float64([np.nan])
    assert compute("cvt.rzi.s32.f32 d, a;", np.int32, single)[0] == 0
    assert compute("cvt.rzi.s64.f32 d, a;", np.int64, single)[0] == np.iinfo(np.int64).min
    assert compute("cvt.rzi.u64.f32 d, a;", np.uint64, single)[0] == 1 << 63
    assert compute("cvt.rzi.s32.f64 d, a;", np.int32, double)[0] == np.iinfo(np.int32).min
    assert compute("cvt.rzi.u32.f64 d, a;", np.uint32, double)[0] == 1 << 31


@pytest.mark.parametrize(("target", "source"), [(t, s) for t in FLOATS for s in FLOATS if t != s])
def test_floats_to_floats(compute: Compute, target: str, source: str) -> None:
    x = floats(FLOATS[source])
    shortens = ml_dtypes.finfo(FLOATS[target]).bits < ml_dtypes.finfo(FLOATS[source]).bits
    rounding = ".rn" if shortens or {target, source} == {"f16", "bf16"} else ""
    shown = compute(f"cvt{rounding}.{target}.{source} d, a;", FLOATS[target], x).astype(np.float64)
    if target == "bf16" and source == "f64":
        # through float32 would round twice: make its last bit odd where something is cut off
        single = x.astype(np.float32)
        cut = single.astype(np.float64) != x
        towards = np.where(np.abs(single) > np.abs(x), np.nextafter(single, np.float32(0)), single)
        x = np.where(cut, (towards.view(np.uint32) | 1).view(np.float32), single)
    np.testing.assert_array_equal(shown, x.astype(FLOATS[target]).astype(np.float64))


@pytest.mark.parametrize("mode", ["rz", "rm", "rp"])
def test_float64_to_float32_in_other_modes(compute: Compute, mode: str) -> None:
    x = np.concatenate([floats(np.float64)[:-80], np.random.default_rng(5).standard_normal(80)])
    x = x[np.isfinite(x)]
    expected = [nearest(Fraction(float(value)), np.float32, mode) for value in x]
    np.testing.assert_array_equal(
        compute(f"cvt.{mode}.f32.f64 d, a;", np.float32, x).astype(np.float64), expected
    )


@pytest.mark.parametrize(
    ("mode", "function"), [("rni", np.rint), ("rzi", np.trunc), ("rmi", np.floor), ("rpi", np.ceil)]
)
def test_whole_floats(compute: Compute, mode: str, function: np.ufunc) -> None:
    for kind in ("f32", "f64"):
        x = floats(FLOATS[kind])
        shown = compute(f"cvt.{mode}.{kind}.{kind} d, a;", FLOATS[kind], x)
        np.testing.assert_array_equal(shown, function(x))
        np.testing.assert_array_equal(np.signbit(shown), np.signbit(x))


def test_saturating_and_flushing_conversions(compute: Compute) -> None:
    x = np.float32([-1, 0.5, 2, np.nan, 1e-40])
    shown = compute("cvt.sat.f32.f32 d, a;", np.float32, x)
    np.testing.assert_array_equal(shown, np.float32([0, 0.5, 1, 0, 1e-40]))
    shown = compute("cvt.ftz.f32.f32 d, a;", np.float32, x)
    np.testing.assert_array_equal(shown, np.float32([-1, 0.5, 2, np.nan, 0]))
    assert compute("cvt.rn.satfinite.f16.f32 d, a;", np.float16, np.float32([1e9]))[0] == 65504
    shown = compute("cvt.rn.relu.bf16.f32 d, a;", np.uint16, np.float32([-3, 3]))
    np.testing.assert_array_equal(shown.view(ml_dtypes.bfloat16).astype(np.float32), [0, 3])


@pytest.mark.parametrize(("kind", "dtype"), [("f16x2", np.float16), ("bf16x2", ml_dtypes.bfloat16)])
def test_two_floats_into_a_register(compute: Compute, kind: str, dtype: type) -> None:
    x = floats(np.float32)
    y = np.roll(x, 1)
    shown = compute(f"cvt.rn.{kind}.f32 d, a, b;", np.uint32, x, y).view(dtype).reshape(-1, 2)
    np.testing.assert_array_equal(
        shown.astype(np.float32), np.stack([y, x], 1).astype(dtype).astype(np.float32)
    )


def test_tensor_floats_have_ten_bits_of_fraction(compute: Compute) -> None:
    x = np.float32([1 + 2.0**-11, 1 + 2.0**-11 - 2.0**-23, -1 - 3 * 2.0**-11, 3.0])
    shown = compute("cvt.rna.tf32.f32 d, a;", np.float32, x)
    np.testing.assert_array_equal(shown, np.float32([1 + 2.0**-10, 1, -1 - 2.0**-9, 3.0]))
    shown = compute("cvt.rn.tf32.f32 d, a;", np.float32, x)
    np.testing.assert_array_equal(shown, np.float32([1, 1, -1 - 2.0**-9, 3.0]))


def test_packed_integers(compute: Compute) -> None:
    x, y = np.int32([70000, -5, 300]), np.int32([-70000, 7, -300])
    shown = compute("cvt.pack.sat.s16.s32 d, a, b;", np.uint32, x, y).view(np.int16).reshape(-1, 2)
    np.testing.assert_array_equal(shown, [[-32768, 32767], [7, -5], [-300, 300]])
    rest = np.uint32([0x1234] * 3)
    shown = (
        compute("cvt.pack.sat.u8.s32.b32 d, a, b, c;", np.uint32, x, y, rest).view(np.uint8).reshape(-1, 4)
    )
    np.testing.assert_array_equal(shown[:, :2], [[0, 255], [7, 0], [0, 255]])
    np.testing.assert_array_equal(shown[:, 2:], [[0x34, 0x12]] * 3)


COMPARISONS = {name: getattr(operator, name) for name in ("eq", "ne", "lt", "le", "gt", "ge")}
VALUES = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 2.0])


@pytest.mark.parametrize("kind", ["f16", "f32", "f64"])
def test_comparisons_of_floats(compute: Compute, kind: str) -> None:
    x, y = (each.ravel().astype(FLOATS[kind]) for each in np.meshgrid(VALUES, VALUES))
    unordered = np.isnan(x) | np.isnan(y)
    expected = {name: function(x, y) & ~unordered for name, function in COMPARISONS.items()}
    expected |= {f"{name}u": function(x, y) | unordered for name, function in COMPARISONS.items()}
    expected |= {"nan": unordered, "num": ~unordered}
    for name, wanted in expected.items():
        text = f"setp.{name}.{kind} q, a, b; selp.b32 d, 1, 0, q;"
        np.testing.assert_array_equal(compute(text, np.uint32, x, y), wanted, err_msg=name)


@pytest.mark.parametrize("kind", ["u16", "s16", "u32", "s32", "u64", "s64"])
def test_comparisons_of_integers(compute: Compute, kind: str) -> None:
    x = integers(INTEGERS[kind])
    y = np.roll(x, 1)
    y[::3] = x[::3]
    names = dict(COMPARISONS)
    if kind[0] == "u":
        names |= {"lo": operator.lt, "ls": operator.le, "hi": operator.gt, "hs": operator.ge}
    for name, function in names.items():
        text = f"setp.{name}.{kind} q, a, b; selp.b32 d, 1, 0, q;"
        np.testing.assert_array_equal(compute(text, np.uint32, x, y), function(x, y), err_msg=name)


@pytest.mark.parametrize("combined", ["and", "or", "xor"])
def test_comparisons_with_a_predicate_and_their_opposites(compute: Compute, combined: str) -> None:
    x, y, z = np.int32([1, 1, 2, 2]), np.int32([1, 2, 1, 2]), np.int32([0, 1, 0, 1])
    text = (
        f"setp.ne.s32 s, c, 0; setp.eq.{combined}.s32 q|r, a, b, !s; selp.b32 d, 1, 0, q; @r or.b32 d, d, 2;"
    )
    function = getattr(operator, f"{combined}_" if combined != "xor" else "xor")
    wanted = function(x == y, z == 0).astype(np.uint32) | function(x != y, z == 0).astype(np.uint32) << 1
    np.testing.assert_array_equal(compute(text, np.uint32, x, y, z), wanted)


def test_comparisons_into_registers(compute: Compute) -> None:
    x, y = np.float32([1, 2, np.nan]), np.float32([2, 1, 1])
    np.testing.assert_array_equal(
        compute("set.lt.u32.f32 d, a, b;", np.uint32, x, y), np.uint32([0xFFFFFFFF, 0, 0])
    )
    np.testing.assert_array_equal(compute("set.ltu.f32.f32 d, a, b;", np.float32, x, y), [1, 0, 1])


def test_choices(compute: Compute) -> None:
    x, y, z = np.float32([1, 2, 3]), np.float32([4, 5, 6]), np.int32([-1, 0, 7])
    np.testing.assert_array_equal(compute("slct.f32.s32 d, a, b, c;", np.float32, x, y, z), [4, 2, 3])
    by = np.float32([-0.5, -0.0, np.nan])
    np.testing.assert_array_equal(compute("slct.u32.f32 d, a, b, c;", np.float32, x, y, by), [4, 2, 6])
    text = "setp.gt.s32 q, c, 0; selp.f32 d, a, b, q;"
    np.testing.assert_array_equal(compute(text, np.float32, x, y, z), [4, 5, 3])


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("finite", [1, 1, 1, 0, 0, 1]),
        ("infinite", [0, 0, 0, 1, 0, 0]),
        ("number", [1, 1, 1, 1, 0, 1]),
        ("notanumber", [0, 0, 0, 0, 1, 0]),
        ("normal", [0, 1, 0, 0, 0, 1]),
        ("subnormal", [0, 0, 1, 0, 0, 0]),
    ],
)
def test_classes_of_floats(compute: Compute, name: str, wanted: list[int]) -> None:
    x = np.array([0, -1, 1e-40, np.inf, np.nan, 7], np.float32)
    text = f"testp.{name}.f32 q, a; selp.b32 d, 1, 0, q;"
    np.testing.assert_array_equal(compute(text, np.uint32, x), wanted)
