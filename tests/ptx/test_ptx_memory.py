"""Loads, stores, atomics and asynchronous copies: global, shared, local, constant and generic addresses."""

from __future__ import annotations

from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest

from arrayjit.runtime.ptx import Fault, GlobalMemory, Loaded, parse
from arrayjit.runtime.ptx.faults import BadAddress, UseAfterFree

Run = Callable[..., None]


@pytest.mark.parametrize("arch", ["sm_80", "sm_90", "sm_100"])
@pytest.mark.parametrize(
    ("c_type", "dtype", "lanes"),
    [
        ("signed char", np.int8, 1),
        ("unsigned char", np.uint8, 1),
        ("short", np.int16, 1),
        ("char2", np.int8, 2),
        ("uchar4", np.uint8, 4),
        ("ushort4", np.uint16, 4),
        ("int2", np.int32, 2),
        ("float4", np.float32, 4),
        ("double2", np.float64, 2),
        ("longlong2", np.int64, 2),
    ],
)
def test_elements_of_every_size_are_moved(run: Run, c_type: str, dtype: type, lanes: int, arch: str) -> None:
    source = f"""extern "C" __global__ void k(const {c_type}* x, {c_type}* y) {{
        __shared__ {c_type} s[64];
        {c_type} l[2];
        l[threadIdx.x & 1] = x[threadIdx.x];
        s[threadIdx.x] = l[threadIdx.x & 1];
        __syncthreads();
        y[threadIdx.x] = s[63 - threadIdx.x];
    }}"""
    x = np.random.default_rng(0).integers(0, 255, 64 * lanes * np.dtype(dtype).itemsize, np.uint8).view(dtype)
    y = np.zeros_like(x)
    run(source, "k", 1, 64, x, y, arch=arch)
    np.testing.assert_array_equal(y.reshape(64, lanes).tobytes(), x.reshape(64, lanes)[::-1].tobytes())


@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_variables_of_the_module(run: Run, arch: str) -> None:
    source = """
    __constant__ float table[4] = {1.5f, -2.5f, 3.5f, 0.0f};
    __device__ int counts[2] = {7, 9};
    __device__ const float* where = table;
    extern "C" __global__ void k(float* y) {
        y[threadIdx.x] = table[threadIdx.x] + where[3 - threadIdx.x] + counts[threadIdx.x & 1];
    }"""
    y = np.zeros(4, np.float32)
    run(source, "k", 1, 4, y, arch=arch)
    table = np.float32([1.5, -2.5, 3.5, 0])
    np.testing.assert_array_equal(y, table + table[::-1] + np.float32([7, 9, 7, 9]))


def test_variables_keep_their_values_between_launches() -> None:
    ptx = """.version 8.0
    .target sm_80
    .address_size 64
    .visible .global .align 4 .u32 total = 5;
    .visible .entry k() {
        .reg .b32 %r<3>;
        ld.global.u32 %r1, [total]; add.u32 %r1, %r1, 1; st.global.u32 [total], %r1;
        ret;
    }
    """
    memory = GlobalMemory()
    loaded = Loaded(parse(ptx), memory)
    address, nbytes = loaded.address("total")
    for _ in range(3):
        loaded.launch("k", (1, 1, 1), (1, 1, 1), 0, b"")
    assert memory.view(address, nbytes).view(np.uint32)[0] == 8
    loaded.unload()
    with pytest.raises(UseAfterFree):
        memory.view(address, nbytes)


def test_generic_addresses_lead_to_every_space(run: Run) -> None:
    source = """
    __device__ __noinline__ void put(int* p, int v) { *p = v; }
    extern "C" __global__ void k(int* y, int* kinds) {
        __shared__ int s[32];
        int l[4] = {0, 0, 0, 0};
        int t = threadIdx.x;
        int* chosen = t % 3 == 0 ? &y[t] : t % 3 == 1 ? &s[t] : &l[t & 3];
        put(chosen, 100 + t);
        __syncthreads();
        if (t % 3 == 1) y[t] = s[t];
        if (t % 3 == 2) y[t] = l[t & 3];
        kinds[t] = __isGlobal(chosen) | __isShared(chosen) << 1 | __isLocal(chosen) << 2;
    }"""
    y, kinds = np.zeros(32, np.int32), np.zeros(32, np.int32)
    run(source, "k", 1, 32, y, kinds)
    np.testing.assert_array_equal(y, 100 + np.arange(32))
    np.testing.assert_array_equal(kinds, 1 << np.arange(32) % 3)


def test_structures_are_arguments(compile_ptx: Callable[..., str]) -> None:
    source = """struct Pair { char first; double second; int rest[3]; };
    extern "C" __global__ void k(double* y, char c, Pair p, int i) {
        y[threadIdx.x] = c + p.first + p.second + p.rest[i + threadIdx.x];
    }"""
    module = parse(compile_ptx(source))
    memory = GlobalMemory()
    address = memory.allocate(16)
    pair = np.zeros(1, np.dtype([("first", "i1"), ("second", "f8"), ("rest", "i4", 3)], align=True))
    pair["first"], pair["second"], pair["rest"] = 3, 0.5, [10, 20, 30]
    arguments = bytearray(module.functions["k"].argument_bytes)
    assert [each.offset for each in module.functions["k"].parameters] == [0, 8, 16, 48]
    arguments[0:8] = np.uint64(address).tobytes()
    arguments[8] = 1
    arguments[16:48] = pair.tobytes()
    arguments[48:52] = np.int32(1).tobytes()
    Loaded(module, memory).launch("k", (1, 1, 1), (2, 1, 1), 0, bytes(arguments))
    np.testing.assert_array_equal(memory.view(address, 16).view(np.float64), [24.5, 34.5])


ATOMICS = {
    "atomicAdd": (
        lambda x: np.sum(x, dtype=np.asarray(x).dtype),
        ("int", "unsigned", "unsigned long long", "float", "double"),
    ),
    "atomicMin": (np.min, ("int", "unsigned", "long long", "unsigned long long")),
    "atomicMax": (np.max, ("int", "unsigned", "long long", "unsigned long long")),
    "atomicAnd": (np.bitwise_and.reduce, ("int", "unsigned long long")),
    "atomicOr": (np.bitwise_or.reduce, ("int", "unsigned long long")),
    "atomicXor": (np.bitwise_xor.reduce, ("int", "unsigned long long")),
}
C_TYPES = {
    "int": np.int32,
    "unsigned": np.uint32,
    "long long": np.int64,
    "unsigned long long": np.uint64,
    "float": np.float32,
    "double": np.float64,
}


@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
@pytest.mark.parametrize("name", ATOMICS)
def test_atomics_on_global_and_shared_memory(run: Run, name: str, arch: str) -> None:
    function, types = ATOMICS[name]
    source = "".join(
        f"""extern "C" __global__ void k{number}(const {each}* x, {each}* y, {each}* old, {each}* part) {{
            __shared__ {each} s[2];
            if (threadIdx.x < 2) s[threadIdx.x] = part[threadIdx.x];
            __syncthreads();
            int i = blockIdx.x * blockDim.x + threadIdx.x;
            {name}(&s[threadIdx.x & 1], x[i]);
            old[i] = {name}(y, x[i]);
            __syncthreads();
            if (threadIdx.x < 2) {name}(&part[2 + threadIdx.x], s[threadIdx.x]);
        }}"""
        for number, each in enumerate(types)
    )
    for number, each in enumerate(types):
        dtype = C_TYPES[each]
        x = np.random.default_rng(4).integers(1, 1000, 96).astype(dtype)
        start = np.array([x[0]], dtype)
        y, old, part = start.copy(), np.zeros_like(x), np.repeat(start, 4)
        run(source, f"k{number}", 3, 32, x, y, old, part, arch=arch)
        assert y[0] == function(np.concatenate([start, x]))
        assert old[0] == start[0]
        assert (
            np.array([function(np.array(each)) for each in zip(old, x, strict=True)], dtype)
            == [*old[1:], y[0]]
        ).all()
        for half in (0, 1):
            own = [
                function(np.concatenate([start, x[32 * block + half : 32 * block + 32 : 2]]))
                for block in range(3)
            ]
            assert part[2 + half] == function(np.concatenate([start, np.array(own, dtype)]))


def test_loops_of_compare_and_swap(run: Run) -> None:
    source = """extern "C" __global__ void k(const float* x, float* y) {
        unsigned* place = (unsigned*)y;
        unsigned old = *(volatile unsigned*)place, seen;
        do {
            seen = old;
            old = atomicCAS(place, seen, __float_as_uint(__uint_as_float(seen) * x[threadIdx.x]));
        } while (old != seen);
        unsigned short* half = (unsigned short*)(y + 1);
        atomicCAS(half + (threadIdx.x & 1), (unsigned short)7, (unsigned short)(100 + (threadIdx.x & 1)));
        atomicExch((int*)y + 2, 41);
        atomicInc((unsigned*)y + 3, 9u);
        atomicDec((unsigned*)y + 4, 9u);
    }"""
    x = np.float32(np.linspace(0.9, 1.1, 40))
    y = np.zeros(5, np.float32)
    y[0] = 1
    y[1:2].view(np.uint16)[:] = 7, 6
    run(source, "k", 1, 40, x, y)
    np.testing.assert_allclose(y[0], x.prod(dtype=np.float64), rtol=1e-5)
    np.testing.assert_array_equal(y[1:2].view(np.uint16), [100, 6])
    np.testing.assert_array_equal(y[2:].view(np.int32), [41, 0, 0])


@pytest.mark.parametrize(("kind", "dtype"), [("f16x2", np.float16), ("bf16x2", ml_dtypes.bfloat16)])
def test_atomic_sums_of_short_floats(run_ptx: Run, kind: str, dtype: type) -> None:
    body = f"""mad.wide.u32 %rd3, %r1, 4, %rd1; ld.global.b32 %r2, [%rd3];
    red.global.add.noftz.{kind} [%rd2], %r2;"""
    x = (np.arange(64) % 4).astype(dtype)
    y = np.zeros(2, dtype)
    run_ptx(body, 32, x.view(np.uint32), y.view(np.uint32))
    np.testing.assert_array_equal(y.astype(np.float32), [32, 64])


def test_atomics_on_vectors(run_ptx: Run) -> None:
    x = np.zeros(4, np.float32)
    run_ptx("red.global.add.v4.f32 [%rd1], {0f3F800000, 0f40000000, 0f40400000, 0f00000000};", 8, x)
    np.testing.assert_array_equal(x, [8, 16, 24, 0])


def test_wide_vectors(run_ptx: Run) -> None:
    registers = ", ".join(f"%f{number}" for number in range(8))
    x = np.arange(16, dtype=np.float32)
    y = np.zeros_like(x)
    body = f"""mad.wide.u32 %rd3, %r1, 32, %rd1; mad.wide.u32 %rd4, %r1, 32, %rd2;
    ld.global.v8.f32 {{{registers}}}, [%rd3]; st.global.v8.f32 [%rd4], {{{registers}}};"""
    run_ptx(body, 2, x, y)
    np.testing.assert_array_equal(x, y)


def test_hints_to_caches_change_nothing(run_ptx: Run) -> None:
    x, y = np.arange(32, dtype=np.int32), np.zeros(32, np.int32)
    body = """mad.wide.u32 %rd3, %r1, 4, %rd1; mad.wide.u32 %rd4, %r1, 4, %rd2;
    prefetch.global.L2 [%rd3]; prefetchu.L1 [%rd3]; discard.global.L2 [%rd4], 128;
    ldu.global.s32 %r3, [%rd3];
    createpolicy.fractional.L2::evict_last.b64 %rd5, 1.0;
    ld.global.L2::cache_hint.s32 %r4, [%rd3], %rd5;
    ld.global.nc.L1::no_allocate.L2::128B.s32 %r2, [%rd3];
    st.global.cs.s32 [%rd4], %r2;
    nanosleep.u32 20;"""
    run_ptx(body, 32, x, y)
    np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("size", [4, 8, 16])
def test_asynchronous_copies(run_ptx: Run, size: int) -> None:
    x = np.arange(32 * size, dtype=np.uint8)
    y = np.zeros_like(x)
    body = f"""
    mad.wide.u32 %rd3, %r1, {size}, %rd1; mad.wide.u32 %rd4, %r1, {size}, %rd2;
    mov.u32 %r2, tile; mad.lo.u32 %r3, %r1, {size}, %r2;
    cp.async.ca.shared.global [%r3], [%rd3], {size};
    cp.async.commit_group;
    cp.async.wait_group 0;
    bar.sync 0;
    xor.b32 %r4, %r1, 31; mad.lo.u32 %r5, %r4, {size}, %r2;
    ld.shared.b32 %r6, [%r5]; st.global.b32 [%rd4], %r6;"""
    run_ptx(body, 32, x, y, scope=f".shared .align 16 .b8 tile[{32 * size}];")
    np.testing.assert_array_equal(y.reshape(32, size)[:, :4], x.reshape(32, size)[::-1, :4])


def test_copies_shorter_than_their_place_are_filled_with_zeros(run_ptx: Run) -> None:
    x, y = np.arange(1, 33, dtype=np.int32), np.zeros(32, np.int32)
    body = """
    .shared .align 16 .b8 tile[128];
    shl.b32 %r2, %r1, 4; cvt.u64.u32 %rd3, %r2; add.u64 %rd4, %rd3, %rd1; add.u64 %rd5, %rd3, %rd2;
    mov.u32 %r3, tile; add.u32 %r3, %r3, %r2;
    cp.async.cg.shared.global [%r3], [%rd4], 16, %r1;
    cp.async.wait_all;
    ld.shared.v4.b32 {%r4, %r5, %r6, %r7}, [%r3];
    st.global.v4.b32 [%rd5], {%r4, %r5, %r6, %r7};"""
    run_ptx(body, 8, x, y)
    wanted = x.view(np.uint8).reshape(8, 16).copy()
    for thread in range(8):
        wanted[thread, thread:] = 0
    np.testing.assert_array_equal(y.view(np.uint8).reshape(8, 16), wanted)


def test_allocations_are_poisoned_and_never_reused() -> None:
    memory = GlobalMemory()
    first = memory.allocate(100, "x")
    view = memory.view(first, 100)
    assert first % 256 == 0
    assert (view == 0xFF).all()
    view[:] = 0
    memory.free(first)
    assert (view == 0xFF).all()
    assert memory.allocate(100) != first
    for address, error, text in (
        (first, UseAfterFree, "was released"),
        (first + 50, UseAfterFree, "'x'"),
        (first - 8, BadAddress, "no allocation is there"),
    ):
        with pytest.raises(error, match=text):
            memory.view(address, 4)
    with pytest.raises(UseAfterFree):
        memory.free(first)
    with pytest.raises(BadAddress, match="byte 97 of the allocation 'y' of 99 bytes"):
        memory.view(memory.allocate(99, "y") + 97, 4)


def test_devices_can_share_an_address_space() -> None:
    first, second = GlobalMemory(), GlobalMemory(1 << 40)
    assert first.allocate(64) < 1 << 40 <= second.allocate(64)
    with pytest.raises(ValueError, match="begins at"):
        GlobalMemory(16)


def test_nothing_is_there_at_zero(run_ptx: Run) -> None:
    with pytest.raises(BadAddress, match="no allocation"):
        run_ptx("mov.u64 %rd1, 0; ld.global.u32 %r2, [%rd1];", 1)
    with pytest.raises(Fault, match="no allocation"):
        run_ptx("mov.u64 %rd1, 0; ld.u32 %r2, [%rd1+4];", 1)
