"""What the interpreter finds: mistakes planted in kernels, each with its exception, its place and thread."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import pytest

from arrayjit.runtime.ptx import GlobalMemory, Loaded, faults, parse

Run = Callable[..., None]

ARCHITECTURES = ("sm_80", "sm_90")


def source(name: str, right: str = "", wrong: str = "", occurrence: int = 0) -> str:
    """A kernel of tests/ptx/sources in which one piece is replaced."""
    text = (Path(__file__).parent / "sources" / f"{name}.cu").read_text()
    pieces = text.split(right) if right else [text]
    assert len(pieces) > occurrence + 1, f"{right!r} is not in {name}"
    return right.join(pieces[: occurrence + 1]) + wrong + right.join(pieces[occurrence + 1 :])


def run_softmax(run: Run, text: str, arch: str) -> None:
    x = np.ones((3, 300), np.float32)
    run(text, "softmax", 3, 128, x, np.empty_like(x), np.int32(300), arch=arch)


def run_product(run: Run, text: str, arch: str) -> None:
    a, b, c = (np.ones(shape, np.float32) for shape in ((40, 20), (20, 40), (40, 40)))
    run(text, "product", (2, 2), 64, a, b, c, *map(np.int32, (40, 40, 20)), arch=arch)


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("barrier", range(4))
def test_each_missing_barrier_of_the_softmax(run: Run, barrier: int, arch: str) -> None:
    with pytest.raises((faults.SharedRace, faults.UninitialisedRead)) as caught:
        run_softmax(run, source("softmax", "__syncthreads();", "", barrier), arch)
    assert "shared array" in str(caught.value)


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("barrier", range(2))
def test_each_missing_barrier_of_the_product(run: Run, barrier: int, arch: str) -> None:
    with pytest.raises((faults.SharedRace, faults.UninitialisedRead)):
        run_product(run, source("product", "__syncthreads();", "", barrier), arch)


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize(
    ("right", "wrong", "error"),
    [
        ("if (r < M && c < N)", "if (r < M)", faults.Race),
        ("C[r * N + c] =", "C[r * N + c + 2] =", faults.BadAddress),
        ("C[r * N + c] =", "C[r * N + c / 8] =", faults.Race),
        ("int r = e >> 3, c = e & 7;", "int r = e >> 3, c = (e & 7) + 1;", faults.BadAddress),
        (
            "for (int e = threadIdx.x; e < 256; e += 64) {",
            "for (int e = threadIdx.x; e < 192; e += 64) {",
            faults.UninitialisedRead,
        ),
    ],
)
def test_wrong_indices_of_the_product(run: Run, right: str, wrong: str, error: type, arch: str) -> None:
    with pytest.raises(error):
        run_product(run, source("product", right, wrong), arch)


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize(
    ("right", "wrong", "error"),
    [
        ('"n"(1)', '"n"(2)', faults.UnfinishedCopy),
        ("__syncthreads();", "", (faults.UnfinishedCopy, faults.SharedRace)),
        ('asm volatile("cp.async.commit_group;");', "", faults.UnfinishedCopy),
    ],
)
def test_faults_of_asynchronous_copies(run: Run, right: str, wrong: str, error: type, arch: str) -> None:
    a, b, c = np.ones((64, 64), np.uint16), np.ones((64, 64), np.uint16), np.zeros((64, 64), np.float32)
    sizes = map(np.int32, (64, 64, 64))
    with pytest.raises(error):
        run(
            source("tensor_product", right, wrong),
            "product",
            1,
            128,
            a,
            b,
            c,
            *sizes,
            arch=arch,
            shared_bytes=2 * (2 * 64 * 40 + 2 * 32 * 72),
        )


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_an_unaligned_vector(run: Run, arch: str) -> None:
    text = source("gelu", "((const float4*)x)[k]", "((const float4*)(x + 1))[k]")
    x = np.ones(1024, np.float32)
    with pytest.raises(faults.Misaligned, match=r"16 bytes at .*, which is no multiple of 16"):
        run(text, "gelu4", 1, 256, x, np.empty_like(x), np.int32(1020), arch=arch)


SMALL = {
    "two threads store to one cell": ("x[t / 2] = t;", faults.DoubleStore),
    "two threads store to one cell, one after the other": (
        "if (t < 32) x[t] = 1; else x[t - 32] = 2;",
        faults.DoubleStore,
    ),
    "blocks store to one cell": ("x[t] = blockIdx.x;", faults.DoubleStore),
    "blocks change what others read": ("x[blockIdx.x * 64 + t] += x[t];", faults.GlobalRace),
    "a block reads what another wrote": (
        "if (blockIdx.x) x[t] = 1; else x[t + 64] = x[t];",
        faults.GlobalRace,
    ),
    "a sum is read without a barrier": ("atomicAdd(x, 1); if (t == 63) x[1] = x[0];", faults.GlobalRace),
    "half a warp at a barrier": ("if (t < 16) __syncthreads(); x[t] = 1;", faults.DivergentBarrier),
    "some warps at a barrier": ("if (t < 32) __syncthreads(); x[t] = 1;", faults.DivergentBarrier),
    "ended threads at a barrier": ("if (t > 40) return; __syncthreads();", faults.DivergentBarrier),
    "different barriers": (
        "if (t & 1) { __syncthreads(); x[0] = 1; } else { __syncthreads(); x[1] = 1; }",
        faults.DivergentBarrier,
    ),
    "a warp without a barrier of its own": (
        "__shared__ int s[64]; s[t] = 1; x[t] = s[t ^ 1];",
        faults.SharedRace,
    ),
    "uninitialised shared memory": (
        "__shared__ int s[64]; if (t < 60) s[t] = 1; __syncthreads(); x[t] = s[63 - t];",
        faults.UninitialisedRead,
    ),
    "beyond a shared array, into the next": (
        "__shared__ int s[64]; __shared__ int u[64]; u[t] = 2; s[t] = 1; __syncthreads(); "
        "x[t] = s[t + n] + u[t];",
        faults.BadAddress,
    ),
    "beyond global memory": ("x[t * n] = 1;", faults.BadAddress),
    "below global memory": ("x[t - n] = 1;", faults.BadAddress),
    "through no pointer": ("*(int*)(long long)(n - 33) = 1;", faults.BadAddress),
    "an odd address": ("*(int*)((char*)x + 4 * t + n / 16) = 1;", faults.Misaligned),
    "a shuffle that half a warp reaches": (
        "int v = t; if (t & 1) v = __shfl_xor_sync(0xffffffffu, v, 2); __syncthreads(); x[t] = v;",
        faults.InactiveLane,
    ),
    "a shuffle from a lane that has ended": (
        "if ((t & 31) > 20) return; x[t] = __shfl_down_sync(0xffffffffu, n, 1);",
        faults.InactiveLane,
    ),
    "a lane that the mask leaves out": ("x[t] = __shfl_sync(0xffffu, n, 0);", faults.InactiveLane),
    "a loop without an end": ("while (*(volatile int*)x != 7) { } x[1] = 1;", faults.Unending),
    "a trap": ("if (t == 40) __trap();", faults.Trapped),
    "an assertion": ('if (t == 40) __assertfail("n < 0", "k.cu", 1, "k", 1);', faults.Trapped),
}


def kernels(bodies: Iterable[str], prelude: str = "") -> str:
    """Kernels `k0`, `k1`, ... of an array and a number, compiled at once."""
    texts = (
        f'extern "C" __global__ void k{number}(int* x, int n) {{ int t = threadIdx.x; {body} }}'
        for number, body in enumerate(bodies)
    )
    return "\n".join([prelude, *texts])


@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
@pytest.mark.parametrize("name", SMALL)
def test_planted_mistakes(run: Run, name: str, arch: str) -> None:
    text = kernels(body for body, _ in SMALL.values())
    error = SMALL[name][1]
    grid = 2 if "block" in name else 1
    with pytest.raises(error) as caught:
        run(
            text,
            f"k{[*SMALL].index(name)}",
            grid,
            64,
            np.zeros(128, np.int32),
            np.int32(33),
            arch=arch,
            budget=5000,
        )
    found = caught.value
    assert isinstance(found, faults.Fault)
    assert type(found) is error
    assert found.place is not None
    assert found.place.line > 0
    assert found.place.thread is not None
    assert found.place.text in str(found)


def test_constant_memory_cannot_be_stored_to(run_ptx: Run) -> None:
    with pytest.raises(faults.BadAddress, match=r"'fixed' of 16 bytes .* is constant"):
        run_ptx("mov.u64 %rd2, fixed; st.global.u32 [%rd2], 1;", 1, scope=".const .align 4 .b8 fixed[16];")


def test_a_branch_beyond_its_table(run_ptx: Run) -> None:
    body = "cases: .branchtargets one, two; brx.idx %r1, cases; one: exit; two:"
    run_ptx(body, 2)
    with pytest.raises(faults.BadAddress, match=r"not below 2(.|\n)*thread \(2, 0, 0\)"):
        run_ptx(body, 3)


def test_a_fault_names_the_thread_the_instruction_and_the_array(run: Run) -> None:
    text = """extern "C" __global__ void k(int* x) {
        if (blockIdx.y == 1 && threadIdx.z == 2) x[1000 + threadIdx.x] = 5;
    }"""
    with pytest.raises(faults.BadAddress) as caught:
        run(text, "k", (3, 2), (4, 1, 3), np.zeros(8, np.int32))
    shown = str(caught.value)
    assert "4 bytes at 0x1" in shown
    assert "cannot be written: that is byte 4000 of the allocation 'argument 0' of 32 bytes" in shown
    assert "by thread (0, 0, 2) of block (0, 1, 0): st.global.u32 [" in shown
    assert shown.startswith("arrayjit bug in kernel k: ")


def test_a_fault_names_the_line_of_the_source_where_the_text_tells(run: Run) -> None:
    text = 'extern "C" __global__ void k(int* x) {\n\n  x[threadIdx.x * 5] = 5;\n}'
    with pytest.raises(faults.BadAddress, match=r"\(line 3 of the CUDA source\)"):
        run(text, "k", 1, 32, np.zeros(8, np.int32), options=("-lineinfo",))


def test_a_race_names_the_other_thread(run: Run) -> None:
    text = 'extern "C" __global__ void k(int* x) { x[blockIdx.x == 2 ? 1 : blockIdx.x] = 5; }'
    with pytest.raises(faults.DoubleStore, match=r"what thread \(0, 0, 0\) of block \(2, 0, 0\) writes"):
        run(text, "k", 3, 1, np.zeros(8, np.int32))


def test_memory_that_was_released(compile_ptx: Callable[..., str]) -> None:
    ptx = compile_ptx('extern "C" __global__ void k(float* x) { x[threadIdx.x] += 1.0f; }')
    memory = GlobalMemory()
    loaded = Loaded(parse(ptx), memory)
    address = memory.allocate(128, "x")
    arguments = np.uint64(address).tobytes()
    loaded.launch("k", (1, 1, 1), (32, 1, 1), 0, arguments)
    assert np.isnan(memory.view(address, 128).view(np.float32)).all(), "fresh memory is poison"
    memory.free(address)
    with pytest.raises(faults.UseAfterFree, match=r"'x' of 128 bytes .* was released"):
        loaded.launch("k", (1, 1, 1), (32, 1, 1), 0, arguments)


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ("frobnicate.b32 %r2, %r1;", "'frobnicate' is not an instruction that the interpreter knows"),
        ("wgmma.fence.sync.aligned;", "'wgmma'"),
        ("add.wrong.u32 %r2, %r1, 1;", r"\.wrong"),
        ("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%r2, %r3}, {%r4}, {%r5}, {%r6, %r7};", "m8n8k16"),
        ("ld.global.v3.u32 {%r2, %r3, %r4}, [%rd1];", r"\.v3"),
        ("add.u32 %r2, %r1;", "line"),
        ("add.u32 %r2, %r1, %r99;", "'%r99' is not defined"),
        ("bra nowhere;", "'nowhere' is not defined"),
        ("add.u64 %rd2, %r1, 1;", "too small"),
        ("mov.u32 %tid.x, 1;", "cannot be written"),
        ("add.u32 %r2, %r1, 1", "is not followed by operands"),
        ("add.u32 %r2, %r1, §;", "begins nothing in PTX"),
        (".reg .b7 %q;", "a type that is not simulated"),
        ("{ add.u32 %r2, %r1, 1;", "does not end"),
    ],
)
def test_text_that_is_not_understood_is_refused_with_its_line(run_ptx: Run, body: str, error: str) -> None:
    with pytest.raises((faults.UnknownInstruction, faults.InvalidPtx), match=error) as caught:
        run_ptx(body, 1, np.zeros(4, np.uint32))
    assert "line " in str(caught.value)


@pytest.mark.parametrize(
    ("grid", "block", "shared_bytes", "arguments", "error"),
    [
        ((1, 1, 1), (2048, 1, 1), 0, 8, r"blocks \(2048, 1, 1\) are not within"),
        ((1, 1, 1), (64, 32, 1), 0, 8, "a block has 2048 threads"),
        ((0, 1, 1), (32, 1, 1), 0, 8, r"grid \(0, 1, 1\)"),
        ((1, 70000, 1), (32, 1, 1), 0, 8, "grid"),
        ((1, 1, 1), (32, 1, 1), 300_000, 8, "bytes of shared memory"),
        ((1, 1, 1), (32, 1, 1), 0, 12, "arguments are 12 bytes and have to be 8"),
        ((1, 1, 1), (128, 1, 1), 0, 8, "compiled for at most 64"),
    ],
)
def test_launches_that_hardware_refuses(
    compile_ptx: Callable[..., str],
    grid: tuple[int, int, int],
    block: tuple[int, int, int],
    shared_bytes: int,
    arguments: int,
    error: str,
) -> None:
    ptx = compile_ptx('extern "C" __global__ void __launch_bounds__(64) k(int* x) { x[0] = 1; }')
    loaded = Loaded(parse(ptx), GlobalMemory())
    with pytest.raises(faults.BadLaunch, match=error):
        loaded.launch("k", grid, block, shared_bytes, bytes(arguments))
    with pytest.raises(faults.BadLaunch, match="no kernel 'other'; it has k"):
        loaded.launch("other", (1, 1, 1), (1, 1, 1), 0, b"")


RIGHT = {
    "a warp that synchronises itself": "__shared__ int s[64]; s[t] = 1; __syncwarp(); x[t] = s[t ^ 1];",
    "the last block sums": """
        __shared__ int last;
        part[blockIdx.x * 64 + t] = t;
        __threadfence();
        __syncthreads();
        if (t == 0) last = atomicAdd(&count, 1) == gridDim.x - 1;
        __syncthreads();
        if (last) { __threadfence(); x[t] = part[t] + part[64 + t]; }""",
    "global memory behind a barrier": "part[t] = 1; __syncthreads(); x[t] = part[63 - t];",
    "bytes of blocks side by side": "((char*)x)[blockIdx.x * 64 + t] = 1;",
    "a loop over tiles": """
        __shared__ int s[64];
        for (int i = 0; i < n; i++) {
            s[t] = i;
            __syncthreads();
            x[t] = s[63 - t];
            __syncthreads();
        }""",
    "parts of a sum that few lanes read": """
        __shared__ int s[32];
        int v = t;
        for (int o = 16; o; o >>= 1) v += __shfl_xor_sync(0xffffffffu, v, o);
        if ((t & 31) == 0) s[t >> 5] = v;
        __syncthreads();
        if (t < 32) {
            int w = t < blockDim.x >> 5 ? s[t] : 0;
            for (int o = 16; o; o >>= 1) w += __shfl_xor_sync(0xffffffffu, w, o);
            if (t == 0) x[0] = w;
        }""",
}


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("name", RIGHT)
def test_what_is_right_is_not_found_fault_with(run: Run, name: str, arch: str) -> None:
    text = kernels(RIGHT.values(), "__device__ int count; __device__ int part[128];")
    grid = 2 if "block" in name else 1
    run(text, f"k{[*RIGHT].index(name)}", grid, 64, np.zeros(128, np.int32), np.int32(33), arch=arch)
