"""What lanes do together: shuffles, votes, matches, reductions, barriers; and where threads go apart."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

Run = Callable[..., None]
Compute = Callable[..., np.ndarray]

LANES = np.arange(32)
ALL = "0xffffffff"


def shuffled(mode: str, by: int, width: int) -> tuple[np.ndarray, np.ndarray]:
    """From which lane each one reads, and whether that is inside its segment, as the PTX manual has it."""
    first = LANES // width * width
    last = first if mode == "up" else first + width - 1
    source = {"up": LANES - by, "down": LANES + by, "bfly": LANES ^ by, "idx": first + by % width}[mode]
    valid = source >= last if mode == "up" else source <= last
    return np.where(valid, source, LANES), valid


@pytest.mark.parametrize("width", [32, 16, 8, 2])
@pytest.mark.parametrize("mode", ["up", "down", "bfly", "idx"])
def test_shuffles(run_ptx: Run, mode: str, width: int) -> None:
    for by in (0, 1, 3, 7, 16, 31):
        values, valid = np.zeros(64, np.uint32), np.zeros(64, np.uint32)
        limit = (32 - width) << 8 | (0 if mode == "up" else 31)
        body = f"""
        add.u32 %r2, %r1, 1000;
        shfl.sync.{mode}.b32 %r3|%p1, %r2, {by}, {limit}, {ALL};
        selp.u32 %r4, 1, 0, %p1;
        mad.wide.u32 %rd3, %r1, 4, %rd1; st.global.u32 [%rd3], %r3;
        mad.wide.u32 %rd4, %r1, 4, %rd2; st.global.u32 [%rd4], %r4;"""
        run_ptx(body, 64, values, valid)
        source, inside = shuffled(mode, by, width)
        np.testing.assert_array_equal(values, np.concatenate([1000 + source, 1032 + source]))
        np.testing.assert_array_equal(valid, np.concatenate([inside, inside]))


@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_shuffles_of_cuda(run: Run, arch: str) -> None:
    source = """extern "C" __global__ void k(const double* x, double* y) {
        double v = x[threadIdx.x];
        for (int o = 16; o; o >>= 1) v += __shfl_down_sync(0xffffffffu, v, o);
        y[threadIdx.x] = __shfl_sync(0xffffffffu, v, 0) + __shfl_up_sync(0xffffffffu, x[threadIdx.x], 2, 8);
    }"""
    x, y = np.arange(64.0), np.zeros(64)
    run(source, "k", 1, 64, x, y, arch=arch)
    up = np.where(np.arange(64) % 8 < 2, x, x - 2)
    np.testing.assert_array_equal(y, np.repeat([x[:32].sum(), x[32:].sum()], 32) + up)


def lanes(text: str, run_ptx: Run, block: int = 64, setup: str = "") -> np.ndarray:
    """What `text` leaves in %r3 for each thread."""
    values = np.zeros(block, np.uint32)
    body = f"{setup} {text} mad.wide.u32 %rd3, %r1, 4, %rd1; st.global.u32 [%rd3], %r3;"
    run_ptx(body, block, values)
    return values


def test_votes(run_ptx: Run) -> None:
    odd = "and.b32 %r2, %r1, 1; setp.ne.u32 %p1, %r2, 0;"
    first = "setp.lt.u32 %p1, %r1, 32;"
    ballot = lanes(f"vote.sync.ballot.b32 %r3, %p1, {ALL};", run_ptx, setup=odd)
    np.testing.assert_array_equal(ballot, 0xAAAAAAAA)
    for mode, wanted in (("all", [1, 0]), ("any", [1, 0]), ("uni", [1, 1])):
        text = f"vote.sync.{mode}.pred %p2, %p1, {ALL}; selp.u32 %r3, 1, 0, %p2;"
        np.testing.assert_array_equal(lanes(text, run_ptx, setup=first), np.repeat(wanted, 32))
    for mode, value in (("all", 0), ("any", 1), ("uni", 0)):
        text = f"vote.sync.{mode}.pred %p2, %p1, {ALL}; selp.u32 %r3, 1, 0, %p2;"
        np.testing.assert_array_equal(lanes(text, run_ptx, setup=odd), value)


def test_matches(run_ptx: Run) -> None:
    third = "rem.u32 %r2, %r1, 3;"
    shown = lanes(f"match.any.sync.b32 %r3, %r2, {ALL};", run_ptx, 32, third)
    wanted = [sum(1 << other for other in LANES if other % 3 == lane % 3) for lane in LANES]
    np.testing.assert_array_equal(shown, wanted)
    text = f"match.all.sync.b32 %r3|%p1, %r2, {ALL}; @!p1 add.u32 %r3, %r3, 5;".replace("!p1", "!%p1")
    np.testing.assert_array_equal(lanes(text, run_ptx, 32, third), 5)
    np.testing.assert_array_equal(lanes(text, run_ptx, 32, "mov.u32 %r2, 9;"), 0xFFFFFFFF)


@pytest.mark.parametrize(
    ("mode", "function"),
    [
        ("add.u32", np.add),
        ("min.s32", np.minimum),
        ("max.u32", np.maximum),
        ("and.b32", np.bitwise_and),
        ("or.b32", np.bitwise_or),
        ("xor.b32", np.bitwise_xor),
    ],
)
def test_reductions_of_a_warp(run_ptx: Run, mode: str, function: np.ufunc) -> None:
    setup = "mad.lo.u32 %r2, %r1, 2654435761, 12345;"
    shown = lanes(f"redux.sync.{mode} %r3, %r2, {ALL};", run_ptx, setup=setup)
    values = (np.arange(64, dtype=np.uint32) * np.uint32(2654435761) + np.uint32(12345)).reshape(2, 32)
    values = values.view(np.int32 if "s32" in mode else np.uint32)
    wanted = np.repeat(function.reduce(values, axis=1, dtype=values.dtype).view(np.uint32), 32)
    np.testing.assert_array_equal(shown, wanted)


def test_parts_of_warps(run_ptx: Run) -> None:
    """Each half does its own, in another branch."""
    text = """
    mov.u32 %r3, 0;
    setp.lt.u32 %p1, %r1, 16;
    @%p1 bra low;
    redux.sync.add.u32 %r3, %r1, 0xffff0000;
    bra.uni done;
    low: redux.sync.add.u32 %r3, %r1, 0x0000ffff; activemask.b32 %r4; add.u32 %r3, %r3, %r4;
    done: bar.warp.sync 0xffffffff;"""
    shown = lanes(text, run_ptx, 32)
    np.testing.assert_array_equal(shown, np.repeat([LANES[:16].sum() + 0xFFFF, LANES[16:].sum()], 16))


def test_a_leader_is_elected(run_ptx: Run) -> None:
    text = "elect.sync %r3|%p1, 0xffffffff; @%p1 add.u32 %r3, %r3, 7;"
    np.testing.assert_array_equal(lanes(text, run_ptx, 32), np.where(LANES == 0, 7, 0))


def test_lanes_that_come_late_are_waited_for(run_ptx: Run) -> None:
    """Loops of different length, whose exit lies before them, still meet at the shuffle."""
    text = """
    mov.u32 %r2, 0;
    bra.uni test;
    out: shfl.sync.idx.b32 %r3, %r2, 31, 31, 0xffffffff;
    bra.uni done;
    test: setp.ge.u32 %p1, %r2, %r1; @%p1 bra out;
    add.u32 %r2, %r2, 1; bra.uni test;
    done:"""
    np.testing.assert_array_equal(lanes(text, run_ptx, 64), np.repeat([31, 63], 32))


def test_named_barriers_with_counts(run_ptx: Run) -> None:
    """Warp 0 makes what warp 1 takes; warp 2 has a barrier of its own."""
    x = np.zeros(96, np.uint32)
    body = """
    .shared .align 4 .b32 box[32];
    shr.u32 %r2, %r1, 5; and.b32 %r3, %r1, 31; mov.u32 %r4, box; mad.lo.u32 %r5, %r3, 4, %r4;
    mov.u32 %r6, 5;
    setp.eq.u32 %p1, %r2, 1; @%p1 bra taker;
    setp.eq.u32 %p2, %r2, 2; @%p2 bra own;
    add.u32 %r7, %r1, 100; st.shared.u32 [%r5], %r7;
    bar.arrive 1, 64;
    bra.uni done;
    taker: bar.sync 1, 64; ld.shared.u32 %r6, [%r5]; bra.uni done;
    own: bar.sync 2, 32; mov.u32 %r6, 9;
    done: mad.wide.u32 %rd2, %r1, 4, %rd1; st.global.u32 [%rd2], %r6;"""
    run_ptx(body, 96, x)
    np.testing.assert_array_equal(x, np.concatenate([np.full(32, 5), 100 + LANES, np.full(32, 9)]))


@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_barriers_that_count(run: Run, arch: str) -> None:
    source = """extern "C" __global__ void k(int* y) {
        int t = threadIdx.x, b = blockIdx.x;
        int n = __syncthreads_count(t % 3 == b);
        int all = __syncthreads_and(t < 96), any = __syncthreads_or(t == 96 + b);
        y[b * blockDim.x + t] = n * 4 + (all != 0) * 2 + (any != 0);
    }"""
    y = np.zeros((2, 96), np.int32)
    run(source, "k", 2, 96, y, arch=arch)
    np.testing.assert_array_equal(y, np.full((2, 96), 32 * 4 + 2))


def test_blocks_of_any_shape(run: Run) -> None:
    """Coordinates, partial warps, more blocks than run at once."""
    source = """extern "C" __global__ void k(int* y) {
        int t = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
        int b = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
        __shared__ int s[42];
        s[t] = b * 42 + t;
        __syncthreads();
        y[b * 42 + t] = s[41 - t];
    }"""
    y = np.zeros((7 * 11 * 5, 42), np.int32)
    run(source, "k", (7, 11, 5), (7, 3, 2), y)
    np.testing.assert_array_equal(y, np.arange(y.size).reshape(y.shape)[:, ::-1])


def test_branches_by_table(run_ptx: Run) -> None:
    x = np.zeros(64, np.uint32)
    body = """
    and.b32 %r2, %r1, 3;
    cases: .branchtargets c0, c1, c2, c3;
    brx.idx %r2, cases;
    c0: mov.u32 %r3, 10; bra.uni done;
    c1: mov.u32 %r3, 11; bra.uni done;
    c2: mov.u32 %r3, 12; exit;
    c3: mov.u32 %r3, 13;
    done: mad.wide.u32 %rd2, %r1, 4, %rd1; st.global.u32 [%rd2], %r3;"""
    run_ptx(body, 64, x)
    np.testing.assert_array_equal(x, np.tile([10, 11, 0, 13], 16))


@pytest.mark.parametrize("arch", ["sm_80", "sm_90", "sm_100"])
def test_switches_loops_and_calls(run: Run, arch: str) -> None:
    source = """
    __device__ __noinline__ int collatz(int n) {
        int steps = 0;
        while (n != 1) { n = n & 1 ? 3 * n + 1 : n / 2; steps++; }
        return steps;
    }
    __device__ __noinline__ double twice(double x, int way) {
        if (way < 0) return -collatz(7) * x;
        return collatz(way + 1) + 2 * x;
    }
    extern "C" __global__ void k(const int* x, double* y) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        double v = 0;
        switch (x[i]) {
            case 0: v = twice(i, -1); break;
            case 1: v = twice(i, i); break;
            case 2: v = 7 / (i + 1); break;
            case 3: for (int j = 0; j < i; j++) { if (j == 20) break; if (j & 1) continue; v += j; } break;
            case 4: return;
            case 5: v = i % 7 + i / 7; break;
            default: v = -1;
        }
        y[i] = v;
    }"""
    x = (np.arange(96) % 7).astype(np.int32)
    y = np.full(96, 0.5)

    def collatz(n: int) -> int:
        steps = 0
        while n != 1:
            n, steps = 3 * n + 1 if n & 1 else n // 2, steps + 1
        return steps

    cases = (
        lambda i: -collatz(7) * i,
        lambda i: collatz(i + 1) + 2 * i,
        lambda i: 7 // (i + 1),
        lambda i: sum(range(0, min(i, 20), 2)),
        lambda i: 0.5,
        lambda i: i % 7 + i // 7,
        lambda i: -1,
    )
    run(source, "k", 3, 32, x, y, arch=arch)
    np.testing.assert_array_equal(y, [cases[x[i]](i) for i in range(96)])


def test_scopes_hide_names(run_ptx: Run) -> None:
    x = np.zeros(4, np.uint32)
    body = """
    mov.u32 %r2, 1;
    {
        .reg .b32 %r2; .reg .pred p;
        mov.u32 %r2, 50; setp.eq.u32 p, %r1, 2; @p bra skip; add.u32 %r2, %r2, 1;
        skip: mov.u32 %r3, %r2;
    }
    { .reg .pred p; setp.eq.u32 p, %r1, 3; @!p bra skip; add.u32 %r3, %r3, 100; skip: }
    add.u32 %r3, %r3, %r2;
    mad.wide.u32 %rd2, %r1, 4, %rd1; st.global.u32 [%rd2], %r3;"""
    run_ptx(body, 4, x)
    np.testing.assert_array_equal(x, [52, 52, 51, 152])


def test_special_registers(run_ptx: Run) -> None:
    x = np.zeros((2, 64, 8), np.uint32)
    names = (
        "%laneid",
        "%warpid",
        "%ntid.x",
        "%nctaid.x",
        "%lanemask_lt",
        "%lanemask_ge",
        "%ctaid.x",
        "%lanemask_eq",
    )
    stores = "".join(
        f"mov.u32 %r3, {name}; st.global.u32 [%rd2+{4 * at}], %r3;" for at, name in enumerate(names)
    )
    body = f"mov.u32 %r2, %ctaid.x; mad.lo.u32 %r2, %r2, 64, %r1; mad.wide.u32 %rd2, %r2, 32, %rd1; {stores}"
    run_ptx(body, 64, x, grid=2)
    thread = np.arange(64)
    lane = thread % 32
    for block in (0, 1):
        wanted = [lane, thread // 32, 64, 2, (1 << lane) - 1, (1 << 32) - (1 << lane), block, 1 << lane]
        for at, values in enumerate(wanted):
            np.testing.assert_array_equal(x[block, :, at], values, err_msg=names[at])


def test_clocks_go_on(run_ptx: Run) -> None:
    x = np.zeros(2, np.uint64)
    run_ptx(
        """mov.u64 %rd2, %clock64; st.global.u64 [%rd1], %rd2; bar.sync 0;
        mov.u64 %rd3, %clock64; st.global.u64 [%rd1+8], %rd3;""",
        1,
        x,
    )
    assert x[0] < x[1]
