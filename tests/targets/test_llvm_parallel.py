"""What LLVM and C targets promise of loops that threads may share: on any pool, the bits of one thread."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest
from shuffled import Shuffled

from arrayjit.backends import backend, fresh_backend
from arrayjit.errors import InvalidProgram
from arrayjit.ir.assign import ArrayParam
from arrayjit.ir.code import Caps
from arrayjit.ir.interp import run as interpret
from arrayjit.ir.parse import parse
from arrayjit.ir.verify import verify_kernel
from arrayjit.passes.manager import optimize
from arrayjit.runtime.c import CDriver
from arrayjit.runtime.cpu import CpuDriver
from arrayjit.runtime.threads import ThreadPool
from arrayjit.targets.c import CTarget
from arrayjit.targets.llvm import LlvmTarget, ParallelLlvmTarget
from arrayjit.tracer.calls.function import trace_function

SIZES = (0, 1, 15, 16, 17, 31, 97, 1000)


@pytest.fixture(scope="module")
def pools():
    pools = [ThreadPool(threads) for threads in (2, 3, 8)]
    yield pools
    for pool in pools:
        pool.close()


def executables(kernel):
    """By way of LLVM, and of C."""
    verify_kernel(kernel)
    yield CpuDriver("sync_llvm").load(LlvmTarget("sync_llvm").emit(kernel))
    yield CDriver("sync_c").load(CTarget("sync_c").emit(kernel))


def arguments(kernel, numbers):
    """An array for each parameter, with room for rows as they were left."""
    generator = np.random.default_rng(7)
    arrays = []
    for param in kernel.params:
        if isinstance(param, ArrayParam):
            shape = tuple(extent.evaluate(numbers) for extent in param.tensor.shape)
            arrays.append((1 + 8 * generator.random(shape)).astype(param.tensor.dtype.numpy))
    return arrays


def launched(kernel, loaded, bindings, pool):
    """The bytes that a launch leaves in each array."""
    symbols = [param.symbol for param in kernel.params if not isinstance(param, ArrayParam)]
    arrays = arguments(kernel, dict(zip(symbols, bindings, strict=True)))
    workspace = np.full(kernel.arena_bytes + 64, 0xFF, np.uint8)
    place = workspace.ctypes.data
    status = loaded.launch([array.ctypes.data for array in arrays], bindings, place + -place % 64, pool)
    assert status == 0
    return [array.tobytes() for array in arrays]


def interpreted(kernel, bindings):
    symbols = [param.symbol for param in kernel.params if not isinstance(param, ArrayParam)]
    numbers = dict(zip(symbols, bindings, strict=True))
    arrays = arguments(kernel, numbers)
    tensors = [param.tensor for param in kernel.params if isinstance(param, ArrayParam)]
    interpret(kernel, dict(zip(tensors, arrays, strict=True)), numbers)
    return [array.tobytes() for array in arrays]


def check(text, pools, *bindings):
    """The kernel leaves the same without a pool, on every pool, and in every order of its parts. What was
    shared in any order: iterations, grain and scratch memory of each time."""
    kernel = parse(text)
    wanted = interpreted(kernel, bindings)
    calls = []
    for loaded in executables(kernel):
        assert launched(kernel, loaded, bindings, 0) == wanted
        for pool in pools:
            for _ in range(3):
                assert launched(kernel, loaded, bindings, pool.address) == wanted
        shuffled = Shuffled()
        assert launched(kernel, loaded, bindings, shuffled.address) == wanted
        calls.append(shuffled.calls)
    assert calls[0] == calls[1]
    return calls[0]


@pytest.mark.parametrize("size", SIZES)
def test_whole_vectors_are_shared_by_the_vector(pools, size):
    whole = size // 16 * 16
    text = f"""
def f(x: read[f32, {size}], y: update[f32, {size}]):
    for i in vector(0, {whole}, lanes=16, grain=32):
        y[i] = sqrt[f32](x[i])
"""
    assert check(text, pools) == ([(whole // 16, 2, 0)] if whole >= 64 else [])


@pytest.mark.parametrize("size", SIZES)
def test_of_other_vector_loops_the_last_part_does_what_is_left(pools, size):
    text = """
def f(n: index[0, 2000], x: read[f32, 1000], y: update[f32, 1000]):
    for i in vector(0, n, lanes=16, grain=32):
        y[i] = sqrt[f32](x[i])
"""
    vectors = -(-size // 16)
    assert check(text, pools, size) == ([(vectors, 2, 0)] if vectors >= 4 else [])


@pytest.mark.parametrize(("lo", "hi", "step"), [(3, 50, 1), (3, 50, 7), (49, 2, -1), (49, 2, -5), (9, 9, 1)])
def test_any_bounds_and_steps(pools, lo, hi, step):
    text = f"""
def f(x: read[f64, 50], y: update[f64, 50]):
    for i in parallel({lo}, {hi}, {step}, grain=2):
        y[i] = add[f64](x[i], y[i])
"""
    trips = len(range(lo, hi, step))
    assert check(text, pools) == ([(trips, 2, 0)] if trips else [])


def test_a_grain_may_be_computed(pools):
    text = """
def f(n: index[0, 2000], x: read[f32, 1000], y: update[f32, 1000]):
    g: index[1, 100] = add[i64](raw_divide[i64](index(n), i64(90)), i64(1))
    for i in vector(0, n, lanes=16, grain=16*g):
        y[i] = sqrt[f32](x[i])
"""
    assert check(text, pools, 1000) == [(63, 12, 0)]


def test_locals_are_no_arguments_of_a_shared_loop(pools):
    """Hundreds of them would be stored for the call once more, and read from the stack."""
    numbers = range(20)
    lines = "\n".join(f"    t{n}: f64 = add[f64](d[{n}], f64(1.0))" for n in numbers)
    value = "x[i]"
    for n in numbers:
        value = f"multiply[f64]({value}, t{n})"
    text = f"""
def f(x: read[f64, 640], d: read[f64, 20], y: write[f64, 640]):
{lines}
    for i in vector(0, 640, lanes=8, grain=64):
        y[i] = {value}
"""
    check(text, pools)
    emitted = str(LlvmTarget("sync_llvm").emit(parse(text)).payload)
    (heads,) = re.findall(r'@"shared\d+\.body"\((.*?)\) ', emitted)
    kinds = [head.split()[0] for head in heads.split(", ")]
    assert kinds == ["ptr"] * 3 + ["i64"] * 2 + ["ptr"]


def test_a_loop_sees_what_is_around_it(pools):
    text = """
def f(n: index[1, 9], x: read[f64, 40, 20], y: update[f64, 3, 40, 20], m: read[i32, 40]):
    arena(1280)
    t: temporary[f64, 20] = place('stack', 0, 'made before')
    u: temporary[f64, 40, 2] = place('arena', 0, 'made before')
    half: f32 = f32(0.5)
    for j in sequential(0, 20):
        t[j] = add[f64](x[n, j], f64(1.0))
    for k in sequential(0, 3):
        flag: bool = less[bool](x[k, 0], f64(4.0))
        big: i64 = index(k + n)
        small: i8 = cast(m[k], i8)
        for i in parallel(0, 40):
            u[i, 1] = multiply[f64](x[i, k], f64(3.0))
        if flag:
            for i1 in parallel(0, 40, grain=3):
                for j1 in vector(0, 20, lanes=4):
                    y[k, i1, j1] = add[f64](t[j1], add[f64](u[i1, 1], cast(half, f64)))
        else:
            for i2 in parallel(0, 40, grain=7):
                q: f64 = cast(add[i64](big, cast(small, i64)), f64)
                for j2 in sequential(0, n):
                    q = reduce(add, q, x[i2, j2])
                y[k, i2, n] = where[f64](flag, f64(0.0), q)
"""
    calls = check(text, pools, 5)
    assert len(calls) == 3
    assert {trips for trips, _, _ in calls} == {40}


def test_scratch_memory_is_made_anew_by_each_iteration(pools):
    text = """
def f(x: read[f32, 33, 50], y: write[f32, 33, 50]):
    arena(576)
    a: temporary[f32, 4] = place('arena', 0, 'made before')
    t: temporary[f32, 50] = place('scratch', 0, 'each thread its own')
    u: temporary[f32, 50] = place('scratch', 256, 'each thread its own')
    for k in sequential(0, 4):
        a[k] = add[f32](x[k, k], f32(1.0))
    for i in parallel(0, 33, grain=1):
        for j in vector(0, 50, lanes=16):
            t[j] = add[f32](x[i, j], a[2])
        for j1 in vector(0, 50, lanes=16):
            u[j1] = sqrt[f32](t[49 - j1])
        for j2 in vector(0, 50, lanes=16):
            y[i, j2] = divide[f32](t[j2], u[49 - j2])
"""
    assert check(text, pools) == [(33, 1, 512)]


def test_a_body_of_very_many_stores(pools):
    stores = "\n".join(f"        y[i, {n}] = add[f64](x[i, {n}], f64({n}.0))" for n in range(100))
    text = f"""
def f(x: read[f64, 50, 100], y: write[f64, 50, 100]):
    for i in parallel(0, 50, grain=5):
{stores}
"""
    assert check(text, pools) == [(50, 5, 0)]


def test_loops_of_one_function_are_shared_one_after_another(pools):
    text = """
def f(x: update[f64, 64], y: update[f64, 64]):
    for k in sequential(0, 50):
        for i in parallel(0, 64, grain=4):
            y[i] = add[f64](x[i], f64(1.0))
        for i1 in parallel(0, 64, grain=4):
            x[i1] = multiply[f64](y[-1*i1 + 63], f64(0.5))
"""
    assert check(text, pools) == [(64, 4, 0)] * 100


def test_a_kernel_without_such_loops_has_nothing_to_do_with_pools():
    kernel = parse("""
def f(x: update[f64, 64]):
    for i in parallel(0, 64):
        x[i] = add[f64](x[i], f64(1.0))
""")
    assert "pool" not in LlvmTarget("llvm").emit(kernel).payload


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("for i in sequential(0, 64, grain=4):\n        x[i] = f64(1.0)", "not to be shared"),
        (
            "for i in parallel(0, 8, grain=4):\n        for j in parallel(0, 8, grain=4):\n"
            "            x[8*i + j] = f64(1.0)",
            "inside another",
        ),
        (
            "s: f64 = f64(0.0)\n    for i in vector(0, 64, lanes=4, grain=4):\n"
            "        s = reduce(add, s, x[i])\n    x[0] = s",
            "of outside is updated",
        ),
        (
            "for i in parallel(0, 64, grain=4):\n"
            "        raise_(less[bool](x[i], f64(0.0)), 'ValueError', 'no')\n"
            "        x[i] = f64(1.0)",
            "a Raise stands inside",
        ),
    ],
)
def test_what_may_not_be_shared_is_refused(body, words):
    kernel = parse(f"def f(x: update[f64, 64]):\n    {body}\n")
    with pytest.raises(InvalidProgram, match=words):
        verify_kernel(kernel)


# ---- the passes and the pool together ------------------------------------------------------------------


def softmax(x, y):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    y[:] = e / e.sum(axis=1, keepdims=True)


def product(x, y):
    y[:, : y.shape[0]] = x @ x.T


def diffusion(x, y):
    for _ in range(5):
        x[1:-1, 1:-1] = 0.25 * (x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:])
    y[:] = x.sum() + x.sum(axis=0)


def running(x, y):
    y[:] = np.cumsum(x, axis=1)[::-1]


def downward(x, y):
    y[:] = np.cumsum(x, axis=0) + np.maximum.accumulate(x[::-1, ::-1], axis=0)


def filtered(x, y):
    for k in range(2, x.shape[0]):
        for j in range(2):
            y[k, 3:] = 0.5 * y[k - 1, 3:] - 0.25 * y[k - 2, 3:] + x[k, :-3] * (j + 1)


def rows(x, y):
    for i in range(x.shape[0]):
        t = np.sqrt(x[i]) + i
        y[i] = t[::-1] / t.max()


def columns(x, y):
    y[0] = (np.tanh(x) ** 2.5)[:, :, None].sum(axis=(0, 2))


def alike(x, y):
    t = np.exp(-((x[1:, 1:] - x[:-1, :-1]) ** 2))
    y[1:, 1:] = t / (1 + t)
    y[0, 0] = y[1:, 1:].mean()
    y[0, 1:] = y[1:, 1:].max()


@pytest.mark.parametrize(
    "program", [softmax, product, diffusion, running, downward, filtered, rows, columns, alike]
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_bits_are_the_same_for_any_number_of_threads(pools, program, dtype):
    x = np.random.default_rng(3).random((41, 67)).astype(dtype)
    traced = trace_function(program, (x, np.empty_like(x)), {})
    found = []
    for caps in (Caps(), Caps(threads=4, thread_work=1)):
        kernel = optimize(traced.computation, caps, verify=True).kernel
        for loaded in executables(kernel):
            found += [launched(kernel, loaded, (), pool) for pool in (0, *(pool.address for pool in pools))]
            found.append(launched(kernel, loaded, (), Shuffled().address))
    assert all(other == found[0] for other in found)


def test_what_is_computed_for_a_sum_is_shared():
    x = np.ones((41, 67))
    computation = trace_function(alike, (x, x.copy()), {}).computation
    alone, several = (optimize(computation, caps).kernel for caps in (Caps(), Caps(threads=4, thread_work=1)))
    assert not any("_terms" in tensor.label for tensor in alone.placement)
    assert any("_terms" in tensor.label for tensor in several.placement)
    assert "threads: loop i of 40 is shared, 1 at least for each thread" in several.notes


ZEROS = np.where(np.arange(20_011) % 3 == 1, -0.0, 0.0)
NANS = ZEROS.view(np.int64) + np.where(
    np.arange(20_011) % 5000 == 4999, 0x7FF8_0000_0000_0000 + np.arange(20_011), 0
)
NUMBERS = np.random.default_rng(4).integers(-(2**62), 2**62, 20_011)


@pytest.mark.parametrize(
    ("reduce", "numbers"),
    [
        *itertools.product(
            [np.max, np.min, np.nanmax, np.sum, np.any, np.all], [ZEROS, -ZEROS, NANS.view(np.float64)]
        ),
        *itertools.product([np.max, np.min, np.sum, np.prod, np.any, np.all], [NUMBERS, NUMBERS > 0]),
    ],
    ids=lambda value: value.__name__ if callable(value) else str(value.dtype),
)
def test_what_has_the_same_bits_in_any_parts(pools, reduce, numbers):
    def program(x, y):
        y[0] = reduce(x)

    y = np.zeros(1, reduce(numbers).dtype)
    computation = trace_function(program, (numbers, y), {}).computation
    found, shared = set(), Shuffled()
    for caps in (Caps(), Caps(threads=2, thread_work=1)):
        kernel = optimize(computation, caps, verify=True).kernel
        workspace = np.empty(kernel.arena_bytes + 64, np.uint8)
        place = workspace.ctypes.data
        addresses = (0, shared.address, *(pool.address for pool in pools))
        for loaded, pool in itertools.product(executables(kernel), addresses):
            loaded.launch([numbers.ctypes.data, y.ctypes.data], [], place + -place % 64, pool)
            found.add(y.tobytes())
    assert len(found) == 1
    assert shared.calls != []


def test_positions_that_are_found_and_checked_have_the_same_bits(pools):
    def program(x, table, y):
        y[:] = table[np.argmin(x, axis=1)]

    x, table = np.random.default_rng(6).normal(size=(61, 300)), np.arange(280.0)
    x[:, 280:] = 9
    y = np.empty(len(x))
    computation = trace_function(program, (x, table, y), {}).computation
    shared = Shuffled()
    kernel = optimize(computation, Caps(threads=2, thread_work=1), verify=True).kernel
    assert any("threads combine" in place.reason for place in kernel.placement.values())
    workspace = np.empty(kernel.arena_bytes + 64, np.uint8)
    place = workspace.ctypes.data
    addresses = (0, shared.address, *(pool.address for pool in pools))
    for loaded, pool in itertools.product(executables(kernel), addresses):
        y[:] = 0
        loaded.launch([array.ctypes.data for array in (x, table, y)], [], place + -place % 64, pool)
        assert (y == x.argmin(axis=1)).all()
    assert shared.calls != []


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_long_scans_have_the_same_bits_for_any_number_of_threads(pools, dtype):
    def program(x, y):
        y[:] = np.cumsum(x)

    x = np.random.default_rng(5).normal(size=70_003).astype(dtype)
    computation = trace_function(program, (x, np.empty_like(x)), {}).computation
    found, shared = set(), Shuffled()
    for caps in (Caps(), Caps(threads=2, thread_work=1), Caps(threads=4, thread_work=1)):
        kernel = optimize(computation, caps, verify=True).kernel
        workspace, y = np.empty(kernel.arena_bytes + 64, np.uint8), np.empty_like(x)
        place = workspace.ctypes.data
        addresses = (0, shared.address, *(pool.address for pool in pools))
        for loaded, pool in itertools.product(executables(kernel), addresses):
            y[:] = 0
            loaded.launch([x.ctypes.data, y.ctypes.data], [], place + -place % 64, pool)
            found.add(y.tobytes())
    assert len(found) == 1
    assert shared.calls != []


def test_the_target_of_all_cores_has_a_pool_for_each_device(monkeypatch):
    monkeypatch.setenv("ARRAYJIT_NUM_THREADS", "4")
    assert ParallelLlvmTarget("llvm").caps().threads == 4
    assert backend("sync_llvm").target.caps().threads == 1
    one, two = (fresh_backend("llvm", devices=devices).driver for devices in (1, 2))
    addresses = [one.threads(0), one.threads(0, 9), one.threads(0, 3), two.threads(0), two.threads(1)]
    assert addresses[0] == addresses[1]
    assert len(set(addresses)) == 4
    assert [pool.threads for pool in one._pools.values()] == [4, 3]
    assert [pool.threads for pool in two._pools.values()] == [2, 2]
    assert one.threads(0, 1) == 0
