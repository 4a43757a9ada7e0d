"""Conversions and calls of the LLVM target."""

from __future__ import annotations

import re

import numpy as np
import pytest
from handmade import at, call, elementwise, put, run, vector

from arrayjit import jit
from arrayjit.errors import CompilerBug
from arrayjit.ir.assign import ArrayParam
from arrayjit.ir.dtype import BOOL, DTYPES, F32, F64, I64, Kind, named
from arrayjit.ir.expr import Apply, Cast, Const, Index, Local, Variable
from arrayjit.ir.index import Affine, Symbol
from arrayjit.ir.loops import Bind, Define, Kernel
from arrayjit.ir.ops import Op
from arrayjit.ir.tensor import Tensor
from arrayjit.processor import features
from arrayjit.targets.llvm import LlvmTarget

FLOATS = [
    *(0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 1.5, -1.5, 127.0, 128.0, -128.0, -129.0, 255.9, 256.5, 300.0, 70000.0),
    *(2.0**24 + 1, 2.0**31 - 1, 2.0**31, -(2.0**31), -(2.0**31) - 1, 2.0**32, 2.0**32 + 7, 3e9, -3e9),
    *(2.0**53 + 1, 2.0**63, 2.0**63 + 4096, -(2.0**63), 2.0**64, 5e18, 1e19, 1.9e19, 1e30, -1e30, 1e300),
    *(5e-324, 1e-45, 3.4028235e38, 3.5e38, np.inf, -np.inf, np.nan),
]


def edge_values(dtype):
    if dtype is BOOL:
        return np.array([False, True] * 9)
    if dtype.is_float:
        with np.errstate(over="ignore"):
            return np.array(FLOATS).astype(dtype.numpy)
    info = np.iinfo(dtype.name)
    near = [
        0,
        1,
        2,
        100,
        127,
        info.max // 2,
        info.max // 2 + 1,
        info.max - 1,
        info.max,
        info.min,
        info.min + 1,
    ]
    return np.array([*near, *(n for n in (2**24 + 1, 2**53 + 1, 2**62 + 1) if n < info.max)], dtype.numpy)


def by_element(values, dtype):
    """`astype` of each element alone: for float to uint32, NumPy's contiguous loops give another answer
    for numbers out of range than its scalars and strided loops do."""
    return np.array([value.astype(dtype) for value in values], dtype)


@pytest.mark.parametrize("source", DTYPES, ids=repr)
@pytest.mark.parametrize("target", DTYPES, ids=repr)
@pytest.mark.parametrize("lanes", [1, 8, 32])
def test_cast_is_astype_for_every_value(source, target, lanes):
    values = edge_values(source)
    with np.errstate(all="ignore"):
        expected = by_element(values, target.numpy)
    result = elementwise(lambda x: Cast(x, target), values, lanes=lanes)
    if target.is_small:  # of bfloat16 NumPy's assertions do not know what is no number
        result, expected = result.astype(np.float64), expected.astype(np.float64)
    np.testing.assert_array_equal(result, expected)
    if target.is_float:
        np.testing.assert_array_equal(np.signbit(result), np.signbit(expected))


@pytest.mark.parametrize("dtype", DTYPES, ids=repr)
def test_constants_keep_every_bit(dtype):
    for value in edge_values(dtype):
        literal = Const(value.item(), dtype)
        like = np.zeros(9, dtype.numpy)
        result = elementwise(lambda x, literal=literal: call("where", Const(True, BOOL), literal, x), like)
        assert result.tobytes() == np.full(9, value).tobytes()


@pytest.mark.parametrize("dtype", [F32, F64], ids=repr)
def test_library_functions_are_called_lane_by_lane(dtype):
    values = np.linspace(0, 3, 13).astype(dtype.numpy)
    library = Op("library", 1, np.cbrt, llvm={Kind.FLOAT: "libm cbrt"})
    result = elementwise(lambda x: Apply(library, (x,), dtype), values)
    np.testing.assert_allclose(result, np.cbrt(values), rtol=4 * np.finfo(dtype.name).eps)


def test_a_function_that_is_not_there_is_named():
    nowhere = Op("nowhere", 1, np.exp, llvm={Kind.FLOAT: "libm no_such_function_anywhere"})
    with pytest.raises(CompilerBug, match="no_such_function_anywhere"):
        elementwise(lambda x: Apply(nowhere, (x,), F64), np.zeros(4))


def test_an_op_without_a_spelling_is_named():
    silent = Op("silent", 1, np.exp)
    with pytest.raises(CompilerBug, match="silent"):
        elementwise(lambda x: Apply(silent, (x,), F64), np.zeros(4))


def test_arithmetic_is_not_contracted_or_reordered():
    rng = np.random.default_rng(9)
    a, b, c = (rng.normal(size=1001).astype(np.float32) for _ in range(3))
    result = elementwise(lambda x, y, z: call("add", call("multiply", x, y), z), a, b, c)
    assert result.tobytes() == (a * b + c).tobytes()


def test_unsigned_and_narrow_integers_wrap():
    a = np.array([250, 255, 3, 0, 7, 200, 100, 1, 2], np.uint8)
    b = np.array([10, 255, 5, 1, 7, 100, 200, 2, 255], np.uint8)
    for name in ("add", "subtract", "multiply", "less", "maximum"):
        assert named("u8").numpy == a.dtype
        np.testing.assert_array_equal(
            elementwise(lambda x, y, name=name: call(name, x, y), a, b), getattr(np, name)(a, b)
        )


@pytest.mark.parametrize("target", [F32, F64, named("i32"), named("u64"), named("i8")], ids=repr)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int16])
def test_conditions_that_are_made_of_several_become_numbers(target, dtype):
    x = np.arange(-9, 10).astype(dtype)
    low, high = np.full_like(x, -3), np.full_like(x, 5)

    def between(x, low, high):
        return Cast(call("bitwise_and", call("less_equal", low, x), call("less", x, high)), target)

    np.testing.assert_array_equal(
        elementwise(between, x, low, high), ((low <= x) & (x < high)).astype(target.numpy), strict=True
    )


def waves(x, y):
    """Two loops, of other lengths, and a part that is left over."""
    return np.sin(x) * np.cos(x), np.cos(y)


def far_numbers(length, seed):
    random = np.random.default_rng(seed)
    return np.where(random.random(length) < 0.2, 1e15, 1.0) * random.standard_normal(length)


def test_what_stands_apart_is_written_once_for_scalars_and_once_for_small_vectors():
    text = jit(waves, target="llvm").lower(far_numbers(1027, 1), far_numbers(501, 2)).as_text("llvm")
    functions = re.findall(r'^define internal .*@"(raw_far_sine[^"]*)"', text, re.MULTILINE)
    assert len(functions) == len(set(functions))
    assert set(functions) <= {"raw_far_sine.f64.i64", "raw_far_sine.v4f64.v4i64"}
    assert "raw_far_sine.v4f64.v4i64" in functions
    assert len(re.findall(r"call .*@\"raw_far_sine", text)) > len(functions)


@pytest.mark.parametrize("length", [1, 3, 8, 13, 1027])
def test_calls_among_lanes_that_need_none_leave_the_others_as_they_are(length):
    x, y = far_numbers(length, 3), far_numbers(length, 4)
    got = jit(waves, target="llvm")(x, y)
    for one, other in zip(got, jit(waves, target="interp")(x, y), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("between", [np.int64, np.int32])
def test_products_keep_their_signs_however_far_they_are_shifted_down_to_16_bits(between):
    """LLVM 22 has the upper 16 of 32 bits, and zeros before them (llvm/llvm-project#218844)."""

    def high(x, y):
        product = x.astype(np.int64) * y
        return [(product >> count).astype(between).astype(np.int16) for count in (16, 17, 20, 31, 32, 40, 60)]

    x, y = np.arange(-32, 32, dtype=np.int16) * 1000, np.arange(64) * 7
    for factor in (np.int64(-30001), y.astype(np.int8)):
        for result, wanted in zip(jit(high)(x, factor), high(x, factor), strict=True):
            np.testing.assert_array_equal(result, wanted)


def test_a_choice_of_numbers_is_no_branch():
    """LLVM makes branches of some, and wrong guesses at random numbers take several times as long."""

    def highest(gains):
        best = np.zeros(len(gains) + 1, np.int64)
        for i in range(len(gains)):
            best[i + 1] = max(0, best[i] + gains[i])
        return best

    gains = np.random.default_rng(3).integers(-9, 10, 500)
    lowered = jit(highest).lower(gains, threads=1)
    choices = re.findall(r"= select i1 .*", lowered.as_text("llvm"))
    assert any("i64" in choice for choice in choices)
    assert all(choice.endswith(", !unpredictable !2") for choice in choices if " i64 " in choice)
    np.testing.assert_array_equal(jit(highest)(gains), highest(gains))


@pytest.mark.parametrize(
    ("cpu", "calls"),
    [
        ("avx512", ("<16 x i32> @llvm.x86.avx512.mask.cvttps2dq.512", 2)),
        ("avx2", ("<8 x i32> @llvm.x86.avx.cvtt.ps2dq.256", 4)),
    ],
)
def test_vectors_are_cut_off_by_one_instruction_where_there_is_one(cpu: str, calls: tuple[str, int]) -> None:
    x, out, i = Tensor.of("x", (64,), F32), Tensor.of("out", (64,), named("u8")), Symbol("i")
    body = (vector(i, 64, put(out, i, value=Cast(at(x, i), out.dtype)), lanes=32),)
    kernel = Kernel("cut_off", (ArrayParam(x, "read"), ArrayParam(out, "write")), body)
    text = str(LlvmTarget("sync_llvm", cpu).emit(kernel).payload)
    assert text.count(f"call {calls[0]}") == calls[1]
    assert "fcmp" not in text


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("bound", [0.0, -0.0, 1.5, -2.0, np.inf, np.nan])
@pytest.mark.parametrize("extreme", [np.maximum, np.minimum])
def test_extremes_with_a_known_number_are_those_with_an_array(extreme, bound, dtype) -> None:
    x = np.array([0.0, -0.0, 1.0, -1.0, 1.5, 2.0, -2.0, -3.0, np.inf, -np.inf, np.nan, -np.nan] * 5).astype(
        dtype
    )
    known = jit(lambda x: extreme(x, dtype(bound)))(x)
    asked = jit(lambda x, y: extreme(x, y))(x, np.full_like(x, bound))
    assert known.tobytes() == asked.tobytes()


def _of_edges(dtype, count):
    """The ends of a type and what is near, with one another, and any others."""
    info, random = np.iinfo(dtype), np.random.default_rng(7)
    most = min(info.max, 2**53)
    edges = [0, 1, 2, 3, 7, info.max, info.max - 1, info.max // 2, info.min, info.min + 1, most - 1, most]
    edges = np.array([*edges, *(-n for n in (1, most - 1, most) if info.min)], dtype)
    x, y = random.integers(info.min, info.max, (2, count), dtype)
    return np.concatenate([np.repeat(edges, len(edges)), x]), np.concatenate([np.tile(edges, len(edges)), y])


def _compare_divided(x, y):
    """Quotients and remainders with NumPy's; the text that LLVM is given."""
    divided = jit(lambda x, y: (x // y, x % y), target="sync_llvm")
    with np.errstate(all="ignore"):
        for found, right in zip(divided(x, y), (x // y, x % y), strict=True):
            np.testing.assert_array_equal(found, right)
    return divided.lower(x, y).as_text("llvm")


@pytest.mark.parametrize("name", ["i8", "i16", "i32", "u8", "u16", "u32"])
def test_integers_in_vectors_are_divided_as_floats_are(name):
    x, y = _of_edges(named(name).numpy, 4000)
    kind = "float" if x.itemsize < 4 else "double"
    assert re.search(rf"fdiv <\d+ x {kind}>", _compare_divided(x, y))


@pytest.mark.parametrize("name", ["i8", "u8"])
def test_all_bytes_are_divided_as_floats_are(name):
    every = np.arange(256).astype(np.uint8).view(named(name).numpy)
    _compare_divided(np.repeat(every, 256), np.tile(every, 256))


@pytest.mark.parametrize("dtype", [np.int64, np.uint64])
def test_integers_of_64_bits_are_divided_as_floats_where_they_fit(dtype):
    x, y = _of_edges(dtype, 4000)
    text = _compare_divided(x, y)
    if "avx512dq" in features():
        assert re.search(r"fdiv <\d+ x double>", text)
    random = np.random.default_rng(8)
    for bits in (3, 27, 40):
        y = random.integers(1, 2**bits, 4000, dtype)
        multiple = random.integers(1, 2**53 // y, 4000, dtype) * y
        _compare_divided(multiple, y)
        _compare_divided(multiple - dtype(1), y)


@pytest.mark.parametrize("cuts", [(), (1,)], ids=str)
def test_no_branch_comes_between_vectors_that_take_turns(cuts):
    i, a = Symbol("i"), Variable("a", named("i64"))
    x, y, z = (Tensor.of(label, (64,), a.dtype) for label in "xyz")
    quotient = put(z, i, value=call("raw_divide", Local(a), at(y, i)))
    params = (ArrayParam(x, "read"), ArrayParam(y, "read"), ArrayParam(z, "write"))
    kernel = Kernel("quotients", params, (vector(i, 64, Define(a, at(x, i)), quotient, cuts=cuts),))
    text = str(LlvmTarget("sync_llvm", "avx512").emit(kernel).payload)
    assert ("fdiv <8 x double>" in text) is (not cuts)


def test_counts_are_divided_without_a_sign():
    """By a power of two in one step: what is not known to be a count takes three."""
    given, n, some = Tensor.of("given", (2,), I64), Symbol("n", lower=0, upper=100), Symbol("some")
    body = (
        Bind(n, at(given, 0)),
        Bind(some, at(given, 1)),
        put(given, 0, value=call("raw_divide", Index(Affine.of(n)), Const(8, I64))),
        put(given, 1, value=call("raw_divide", Index(Affine.of(some)), Const(8, I64))),
    )
    text = LlvmTarget("sync_llvm").emit(Kernel("halves", (ArrayParam(given, "update"),), body)).payload
    assert text.count("udiv") == text.count("sdiv") == 1
    array = np.array([99, -99])
    run(body, [], [(given, array)])
    np.testing.assert_array_equal(array, [12, -12])
