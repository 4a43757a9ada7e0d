"""What a GPU can do at best, measured: fused multiply-adds in registers, products of matrices by tensor
cores, bytes from memory to memory.

A program of one kernel for each is run as any other, and its launches are timed by events.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...frozen import frozen
from ...ir.code import Code
from ...ir.dtype import F32
from ...ir.index import Affine
from ...ir.launches import Blocks, DeviceProgram, Launch, Number, Pointer
from ...ir.params import ArrayParam
from ...ir.tensor import Tensor
from ...runtime.cuda.api import GpuInfo
from ...runtime.device import Device
from ...runtime.memory import Purpose
from .submitted import submitted, timed_launches

__all__ = ["Effort", "GpuLimits", "limits"]

THREADS = 256
BLOCKS = 8
"""Of so many threads fill a multiprocessor."""

SUMS = 8
"""Of each thread, which hide the latency of one another's additions."""

SOURCE = """
__device__ __forceinline__ float fused(float a, float b, float c) { return __fmaf_rn(a, b, c); }
__device__ __forceinline__ double fused(double a, double b, double c) { return __fma_rn(a, b, c); }

template <class T> __device__ __forceinline__ void multiply_add(T *out, const T *in, long long turns) {
  const T a = in[0];
  T s[SUMS];
#pragma unroll
  for (int k = 0; k < SUMS; k++) s[k] = a * k;
#pragma unroll 8
  for (long long i = 0; i < turns; i++)
#pragma unroll
    for (int k = 0; k < SUMS; k++) s[k] = fused(s[k], a, a);
  T total = s[0];
#pragma unroll
  for (int k = 1; k < SUMS; k++) total += s[k];
  out[blockIdx.x * THREADS + threadIdx.x] = total;
}

extern "C" __global__ void __launch_bounds__(THREADS)
float32(float *out, const float *in, long long turns) {
  multiply_add(out, in, turns);
}
extern "C" __global__ void __launch_bounds__(THREADS)
float64(double *out, const double *in, long long turns) {
  multiply_add(out, in, turns);
}
extern "C" __global__ void __launch_bounds__(THREADS)
tensor(float *out, const unsigned *in, long long turns) {
  const unsigned a = in[0];
  float s[SUMS][4] = {};
#pragma unroll 4
  for (long long i = 0; i < turns; i++)
#pragma unroll
    for (int k = 0; k < SUMS; k++)
      asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                   "{%0, %1, %2, %3}, {%4, %4, %4, %4}, {%4, %4}, {%0, %1, %2, %3};"
                   : "+f"(s[k][0]), "+f"(s[k][1]), "+f"(s[k][2]), "+f"(s[k][3]) : "r"(a));
  float total = 0;
#pragma unroll
  for (int k = 0; k < SUMS; k++) total += s[k][0] + s[k][1] + s[k][2] + s[k][3];
  out[blockIdx.x * THREADS + threadIdx.x] = total;
}
extern "C" __global__ void __launch_bounds__(THREADS)
copy(float4 *out, const float4 *in, long long count) {
  const long long step = gridDim.x * (long long)THREADS;
  for (long long i = blockIdx.x * (long long)THREADS + threadIdx.x; i < count; i += step) out[i] = in[i];
}
"""

PRODUCT = 16 * 8 * 16
"""Multiplications, and as many additions, of a warp at once."""

WARP = 32


@frozen
class GpuLimits:
    """Floating-point operations per second, where a fused multiply-add is two, `tensor` those of float16 with
    float32 sums; and bytes per second of a copy, read and written."""

    float32: float
    float64: float
    tensor: float
    copy: float


@frozen
class Effort:
    """Turns of the loops of arithmetic, the bytes that are copied, and how often each kernel is run."""

    turns: int = 10_000
    nbytes: int = 512 << 20
    rounds: int = 20


def limits(device: Device, info: GpuInfo, effort: Effort) -> GpuLimits:
    """The best of some rounds. Raises DeviceError where the device fails, OutOfMemory where it is full."""
    threads = info.multiprocessors * BLOCKS * THREADS
    nbytes = max(effort.nbytes, threads * 8)
    out, source = (
        device.alloc_buffer(nbytes, Purpose.WORKSPACE, "measuring the GPU's limits") for _ in range(2)
    )
    procedure = device.load(_code(device.driver.name, info, effort.turns, nbytes))
    pointers = (out.address, source.address)
    kernels = procedure.executable.kernels  # type: ignore[attr-defined]
    best: dict[str, float] = {}
    for _ in range(effort.rounds):
        launches = submitted(
            device, lambda lane: timed_launches(lane, lambda: procedure.launch(pointers)), "limits"
        )
        for launch in launches:
            name = kernels[launch.number].name
            best[name] = min(best.get(name, launch.seconds), launch.seconds)
    work: Mapping[str, float] = {
        "float32": 2 * SUMS * effort.turns * threads,
        "float64": 2 * SUMS * effort.turns * threads,
        "tensor": 2 * PRODUCT * SUMS * effort.turns * threads / WARP,
        "copy": 2 * (nbytes // 16 * 16),
    }
    return GpuLimits(**{name: amount / best[name] for name, amount in work.items()})


def _code(target: str, info: GpuInfo, turns: int, nbytes: int) -> Code:
    """A launch of each kernel."""
    blocks = (Blocks(Affine.of(info.multiprocessors * BLOCKS)),)
    counts = {"float32": turns, "float64": turns, "tensor": turns, "copy": nbytes // 16}
    plan = tuple(
        Launch(name, blocks, (THREADS,), (Pointer(0), Pointer(1), Number(Affine.of(count))))
        for name, count in counts.items()
    )
    constants = f"enum {{ THREADS = {THREADS}, SUMS = {SUMS} }};\n"
    out, source = (Tensor.of(name, (nbytes // 4,), F32) for name in ("out", "source"))
    params = (ArrayParam(out, "write"), ArrayParam(source, "read"))
    return Code(target, "limits", DeviceProgram(constants + SOURCE, info.arch, plan), params)
