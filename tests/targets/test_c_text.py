"""What the C targets print: text that a programmer can read, and that means what the IR means."""

from __future__ import annotations

import re

import numpy as np
import pytest
from handmade import at, call, f64, launch, link, loop, put, run, tensor_like, vector

import arrayjit
from arrayjit.backends import backend
from arrayjit.errors import CompilerBug, UnsupportedError
from arrayjit.ir.assign import ArrayParam
from arrayjit.ir.dtype import BF16, BOOL, DTYPES, F32, F64, I64, DType
from arrayjit.ir.expr import Cast, Const, Index, Local, Variable, constant
from arrayjit.ir.index import Affine, Symbol
from arrayjit.ir.loops import Comment, Define, For, If, Kernel, LoopKind, Prefetch, Stay, Store, Update
from arrayjit.ir.ops import op
from arrayjit.ir.tensor import Tensor
from arrayjit.targets.c import CTarget


def text_of(function, *args):
    return arrayjit.jit(function, target="sync_c").lower(*args).as_text("c")


def test_the_text_has_the_user_s_names_and_lines() -> None:
    def smoothed(image, weight):
        return image[1:-1] * weight + image[2:]

    text = text_of(smoothed, np.ones(9), 2.0)
    assert "const double *restrict image, const double *restrict weight" in text
    assert re.search(rf"// .*{re.escape(__file__)}:\d+", text)
    assert "image[i + 1]" in text
    assert "weight[0]" in text
    assert "int32_t smoothed_kernel(void *const *table)" in text


def test_names_that_mean_something_in_c_are_others_there() -> None:
    def sin(double, NAN, fmaf, arena, größe, t_to_t, restrict):  # noqa: N803
        return np.fmin(double * NAN, fmaf) + arena - größe * t_to_t + restrict

    x = np.linspace(0, 1, 40)
    np.testing.assert_array_equal(arrayjit.jit(sin, target="sync_c")(*[x] * 7), sin(*[x] * 7))
    np.testing.assert_array_equal(arrayjit.jit(lambda x: x + x, target="sync_c")(x), x + x)


def test_as_text_has_the_language_of_the_target() -> None:
    lowered = arrayjit.jit(lambda x: x + 1).on("sync_c").lower(np.ones(3))
    assert "ret" in lowered.as_text("asm")
    with pytest.raises(UnsupportedError, match=r"no stage 'llvm'\n.*c, asm, or lower for target llvm"):
        lowered.as_text("llvm")
    with pytest.raises(UnsupportedError, match=r"no stage 'c'\n.*llvm, asm, or lower for target c"):
        arrayjit.jit(lambda x: x + 1).on("sync_llvm").lower(np.ones(3)).as_text("c")


def test_a_selection_reads_both_sides_before_it_chooses() -> None:
    """As the IR means it; GCC 12 reads the wrong lanes of a side that it reads under a mask."""

    def shortest(lengths, before):
        for k in range(len(lengths)):
            around = lengths[:, k, None] + lengths[None, k]
            before = np.where(around < lengths, before[:, k, None], before)
            lengths = np.minimum(lengths, around)
        return lengths, before

    lengths = np.random.default_rng(0).random((7, 7))
    before = np.arange(49).reshape(7, 7)
    assert not re.search(r"\?.*\[.*;", text_of(shortest, lengths, before))
    for got, wanted in zip(
        arrayjit.jit(shortest, target="sync_c")(lengths, before), shortest(lengths, before), strict=True
    ):
        np.testing.assert_array_equal(got, wanted)


def test_a_position_stays_where_the_number_that_it_was_made_of_goes_on():
    def steps(x):
        before, found = len(x) - 1, np.zeros(3)
        for i in range(len(x)):
            found += (x[before] < x[i]) * x[before]
            before = i
        return found

    x = np.random.default_rng(0).random(12)
    np.testing.assert_array_equal(arrayjit.jit(steps, target="sync_c")(x), steps(x))


@pytest.mark.parametrize("target", ["c", "llvm"])
def test_a_shared_loop_takes_a_number_as_what_it_is_whatever_blocks_before_called_so(target):
    """A position of an earlier block may have had the name of the float that the loop divides by."""

    def solved(a, b):
        return np.linalg.solve(a, b), np.linalg.inv(a)

    generator = np.random.default_rng(0)
    a, b = generator.random((6, 6)) + 6 * np.eye(6), generator.random((6, 2))
    for got, wanted in zip(arrayjit.jit(solved, target=target)(a, b), solved(a, b), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.int64, np.uint64, np.int32, np.uint16])
def test_numbers_are_squared_from_iteration_to_iteration(dtype):
    """GCC 12 multiplies vectors of the first value, from `-O3` on where processors have such a product."""

    def squares(x, y):
        a, b = dtype(3), dtype(3)
        for _ in range(150):
            a = a * a
        for k in range(len(x)):
            b = (b * y[k]) * (b * y[k])
        return a, b

    y = np.arange(1, 33).astype(dtype) * dtype(2) + dtype(1)
    with np.errstate(over="ignore"):
        assert arrayjit.jit(squares, target="sync_c")(y, y) == squares(y, y)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
@pytest.mark.parametrize("columns", [2, 3, 4, 5, 7, 8])
def test_rows_of_few_cells_that_are_handed_on_are_taken_one_after_the_other(columns, dtype):
    """GCC 12 makes vectors of them once it has written their cells out."""

    def handed_on(x):
        first, second = np.zeros_like(x), np.zeros_like(x)
        for i in range(3, len(x) - 1):
            first[i] = x[i] - x[i + 1]
            x[i] = first[i - 1]
            second[i - 1] = x[i - 1] - x[i]
            x[i - 1] = second[i - 2]
        return first, second, x

    x = (np.random.default_rng(0).standard_normal((16, columns)) * 9).astype(dtype)
    results = zip(arrayjit.jit(handed_on, target="sync_c")(x.copy()), handed_on(x.copy()), strict=True)
    for got, wanted in results:
        np.testing.assert_array_equal(got, wanted)


def test_a_straight_vector_loop_is_a_plain_loop_and_others_are_loops_over_lanes() -> None:
    assert "lane" not in text_of(lambda x: np.sqrt(x) + 1, np.ones(100))
    assert re.search(r"lane < \d+;", text_of(np.sum, np.ones(1000)))


NUMBERS = [
    0.0,
    -0.0,
    1.0,
    0.1,
    -0.5,
    1e-300,
    5e-324,
    1e300,
    3.0e38,
    16777217.0,
    np.pi,
    np.inf,
    -np.inf,
    np.nan,
]


def test_what_stands_apart_is_a_function_that_is_written_once() -> None:
    text = text_of(lambda x: (np.sin(x), np.cos(x)), np.ones(9))
    assert len(re.findall(r"^static .*raw_far_sine_f64_i64\(double \w+, int64_t \w+\) \{", text, re.M)) == 1
    assert len(re.findall(r"= raw_far_sine_f64_i64\(", text)) == 2


def test_powers_that_are_not_everyday_are_one_function_of_all_lines_with_powers() -> None:
    text = text_of(lambda x, y: (x**y, y**x), np.ones(9), np.ones(9))
    assert len(re.findall(r"^static .*raw_unusual_power_f64_f64\(.*\) \{", text, re.M)) == 1
    assert len(re.findall(r"= raw_unusual_power_f64_f64\(", text)) == 2


@pytest.mark.parametrize("dtype", [F32, F64], ids=str)
def test_what_stands_apart_names_nothing_that_it_does_not_use(dtype: DType) -> None:
    """Compilers warn of it."""
    text = text_of(lambda x: (np.sin(x), np.cos(x), np.tan(x)), np.ones(9, dtype.numpy))
    for function in re.split(r"^static ", text, flags=re.M):
        words = re.findall(r"\w+", function)
        assert [name for name in re.findall(r"const \w+ (\w+) = ", function) if words.count(name) == 1] == []


def test_constants_are_exact() -> None:
    wanted, body, writes = [], [], []
    for dtype in DTYPES:
        info = np.iinfo(dtype.name) if dtype.is_integer else None
        # Of a bfloat16 NumPy's assertions do not know that it is NaN.
        floats = NUMBERS[:-1] if dtype is BF16 else NUMBERS
        numbers = floats if dtype.is_float else [True, False] if info is None else [info.min, 0, 7, info.max]
        with np.errstate(over="ignore"):
            wanted.append(np.array(numbers, dtype.numpy))
        tensor = Tensor.of("out", (len(numbers),), dtype)
        body += [put(tensor, n, value=constant(number, dtype)) for n, number in enumerate(numbers)]
        writes.append((tensor, np.zeros(len(numbers), dtype.numpy)))
    run(body, writes=writes)
    for (_, got), expected in zip(writes, wanted, strict=True):
        assert got.tobytes() == expected.tobytes()


FLOATS = [
    *(0.0, -0.0, 0.5, -1.5, 127.0, -129.0, 255.9, 256.5, 70000.0, 2.0**31 - 1, 2.0**31, -(2.0**31) - 1),
    *(2.0**32 + 7, -3e9, 2.0**53 + 1, 2.0**63, -(2.0**63), 5e18, 1e19, 1.9e19, 2.0**64, 1e30, np.inf, np.nan),
]


@pytest.mark.parametrize("lanes", [1, 8])
def test_conversions_are_those_of_llvm(lanes) -> None:
    """All of them in one kernel; `test_llvm_values` compares LLVM's with NumPy's."""
    kinds = [dtype for dtype in DTYPES if not dtype.is_small]
    reads, writes, body = [], [], []
    for source in kinds:
        with np.errstate(all="ignore"):
            values = np.array(FLOATS).astype(source.numpy)
        x = Tensor.of("x", values.shape, source)
        reads.append((x, values))
        for target in kinds:
            out, i = Tensor.of("out", values.shape, target), Symbol("i")
            writes.append((out, np.zeros(values.shape, target.numpy)))
            body.append(vector(i, len(values), put(out, i, value=Cast(at(x, i), target)), lanes=lanes))
    params = [ArrayParam(tensor, "read") for tensor, _ in reads]
    params += [ArrayParam(tensor, "write") for tensor, _ in writes]
    kernel = Kernel("casts", tuple(params), tuple(body))
    found = []
    for target in ("sync_c", "sync_llvm"):
        results = [array.copy() for _, array in writes]
        launch(kernel, target, [*(array for _, array in reads), *results])
        found.append(results)
    for through_c, through_llvm in zip(*found, strict=True):
        np.testing.assert_array_equal(through_c, through_llvm)


def test_an_index_wraps_around() -> None:
    out, i = Tensor.of("out", (3, 3), I64), Symbol("i")
    values = [Affine.of(i) * 2**62 + 2**62, 5 - Affine.of(i), Affine.of(i) * -3]
    body = loop(i, 3, *(put(out, i, n, value=Index(value)) for n, value in enumerate(values)))
    result = np.zeros((3, 3), np.int64)
    run([body], writes=[(out, result)])
    assert result[:, 0].tolist() == [2**62, -(2**63), -(2**62)]


def test_a_byte_that_is_neither_0_nor_1_is_true() -> None:
    mask, out, i = Tensor.of("mask", (40,), BOOL), Tensor.of("out", (40,), BOOL), Symbol("i")
    kernel = Kernel(
        "masks",
        (ArrayParam(mask, "read"), ArrayParam(out, "write")),
        (vector(i, 40, put(out, i, value=call("bitwise_and", at(mask, i), Const(True, BOOL)))),),
    )
    values, result = np.arange(40, dtype=np.uint8), np.zeros(40, np.uint8)
    launch(kernel, "sync_c", [values, result])
    assert result.tolist() == [0] + [1] * 39


def test_deep_and_shared_expressions_stay_short() -> None:
    x, out, i = f64("x", 5), f64("out", 5), Symbol("i")
    value = at(x, i)
    for _ in range(200):
        value = call("multiply", value, value)
    kernel = Kernel(
        "deep", (ArrayParam(x, "read"), ArrayParam(out, "write")), (loop(i, 5, put(out, i, value=value)),)
    )
    assert len(CTarget("sync_c").emit(kernel).payload) < 20_000
    result = np.zeros(5)
    launch(kernel, "sync_c", [np.array([0.0, 1, -1, 0.5, 2]), result])
    assert result.tolist() == [0, 1, 1, 0, np.inf]


@pytest.mark.parametrize("size", [0, 7, 8, 30])
def test_what_crosses_from_region_to_region_is_kept_for_each_lane(size) -> None:
    """A branch that some lanes take, between computations that all do."""
    source = np.linspace(-2, 3, size)
    x, out, i, total = f64("x", size), f64("out", size), Symbol("i"), Variable("total", F64)
    root, chosen, beyond = Variable("root", F64), Variable("chosen", F64), Variable("beyond", BOOL)
    body = vector(
        i,
        size,
        Define(root, call("multiply", at(x, i), at(x, i))),
        Define(chosen, Local(root)),
        Define(beyond, call("less", Const(1.0, F64), at(x, i))),
        If(Local(beyond), (Update(chosen, call("sqrt", Local(root))),)),
        Update(total, Local(chosen), op("add")),
        put(out, i, value=call("add", Local(chosen), Local(root))),
        lanes=8,
    )
    sums, result = f64("sums"), np.zeros(size)
    run(
        [Define(total, Const(0.0, F64)), body, put(sums, value=Local(total))],
        [(x, source)],
        [(out, result), (sums, np.zeros(()))],
    )
    squares = source * source
    np.testing.assert_array_equal(result, np.where(source > 1, np.sqrt(squares), squares) + squares)


def test_a_prefetch_reads_nothing() -> None:
    x, out, i = tensor_like("x", np.ones(64, np.float32)), Tensor.of("out", (64,), F32), Symbol("i")
    ahead = Prefetch(x, (Affine.of(i) + 10**6,)), Prefetch(x, (Affine.of(i) + 10**7,), 2)
    body = vector(i, 64, *ahead, put(out, i, value=at(x, i)), lanes=32)
    result = np.zeros(64, np.float32)
    run([body], [(x, np.ones(64, np.float32))], [(out, result)])
    kernel = Kernel("ahead", (ArrayParam(x, "read"), ArrayParam(out, "write")), (body,))
    asked = [line for line in CTarget("sync_c").emit(kernel).payload.splitlines() if "PREFETCH(x +" in line]
    assert [line.rpartition(", ")[2] for line in asked] == ["1);", "1);", "2);", "2);"]
    text = backend("sync_llvm").target.emit(kernel).payload
    assert [text.count(f"i32 0, i32 {locality}, i32 1)") for locality in (3, 2)] == [2, 2]


def test_comments_cannot_end_themselves() -> None:
    out = f64("out")
    result = np.zeros(())
    run([Comment("first\nint x; \\"), put(out, value=Const(1.0, F64))], writes=[(out, result)])
    assert result == 1


def test_bounds_that_differ_from_lane_to_lane_are_refused() -> None:
    x, i, j = f64("x", 9, 9), Symbol("i"), Symbol("j")
    inner = loop(j, Affine.of(i), put(x, i, j, value=Const(0.0, F64)))
    kernel = Kernel("ragged", (ArrayParam(x, "update"),), (vector(i, 9, inner),))
    with pytest.raises(CompilerBug, match="differs from lane to lane"):
        link(kernel, "sync_c")


def test_a_loop_of_lanes_is_left_when_none_is_to_stay() -> None:
    x, i, k = f64("x", 8), Symbol("i"), Symbol("k")
    value, going = Variable("value", F64), Variable("going", BOOL)
    body = vector(
        i,
        8,
        Define(value, at(x, i)),
        loop(
            k,
            10**9,
            Define(going, call("less", Local(value), Const(100.0, F64))),
            Stay(Local(going)),
            Update(value, call("where", Local(going), call("add", Local(value), Local(value)), Local(value))),
        ),
        Store(x, (Affine.of(i),), Local(value)),
        lanes=8,
    )
    numbers = np.arange(1.0, 9)
    launch(Kernel("doubled", (ArrayParam(x, "update"),), (body,)), "sync_c", [numbers])
    assert numbers.tolist() == [128, 128, 192, 128, 160, 192, 112, 128]


@pytest.mark.parametrize("kind", [LoopKind.GRID, LoopKind.BLOCK])
def test_loops_of_a_gpu_are_refused(kind) -> None:
    x, i = f64("x", 9), Symbol("i")
    body = For(i, Affine.of(0), Affine.of(9), (put(x, i, value=Const(0.0, F64)),), kind)
    with pytest.raises(CompilerBug, match=f"a {kind.value} loop"):
        link(Kernel("gpu", (ArrayParam(x, "update"),), (body,)), "sync_c")
