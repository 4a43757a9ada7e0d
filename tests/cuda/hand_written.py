"""Programs for GPUs, written by hand: what an emitter would make, with every kind of step and argument."""

from __future__ import annotations

from arrayjit.errors import Location
from arrayjit.ir.code import Code, Failure
from arrayjit.ir.dtype import F64
from arrayjit.ir.index import Affine, Symbol, SymbolKind
from arrayjit.ir.launches import (
    Argument,
    Blocks,
    DeviceProgram,
    Launch,
    Number,
    Pointer,
    Repeat,
    RepeatWhile,
    StatusWord,
    Step,
    Workspace,
)
from arrayjit.ir.params import ArrayParam, IndexParam, Param
from arrayjit.ir.tensor import Tensor

SIZE = 1000

SOURCE = r"""
// at model.py:11
extern "C" __global__ void scale(double *x, long long n) {
  long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  if (i < n) x[i] *= 2.0;
}
// at model.py:12
extern "C" __global__ void add(const double *x, double *y, long long n) {
  long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  if (i < n) y[i] += x[i];
}
// at model.py:13
extern "C" __global__ void check(const double *x, long long n, long long *status, long long limit) {
  for (long long i = 0; i < n && !*status; i++)
    if (x[i] >= (double)limit) *status = 1;
}
// at model.py:14
extern "C" __global__ void grow(double *x, const long long *status, long long by) {
  if (!*status) x[0] += (double)by;
}
// at model.py:15
extern "C" __global__ void below(const double *x, unsigned char *flag, long long limit) {
  *flag = x[0] < (double)limit;
}
"""

x = Tensor.of("x", (SIZE,), F64)
y = Tensor.of("y", (SIZE,), F64)
n = Symbol("n", SymbolKind.STATIC, 0, 1 << 20)
_ONE = (Blocks(Affine.of(1)),)


def number(value: int | Symbol | Affine) -> Number:
    return Number(Affine.of(value))


def launch(kernel: str, cells: int | Symbol | Affine, *arguments: Argument) -> Launch:
    """A launch with a thread for each cell, at line 11 and so on."""
    line = 11 + ("scale", "add", "check", "grow", "below").index(kernel)
    return Launch(kernel, (Blocks(Affine.of(cells), 256),), (256,), arguments, loc=Location("model.py", line))


def once(kernel: str, *arguments: Argument) -> Launch:
    return Launch(kernel, _ONE, (1,), arguments)


def code(target: str, name: str, params: tuple[Param, ...], *plan: Step, arena_bytes: int = 0) -> Code:
    failures = (Failure("IndexError", "a number is too large", "model.py", 13),)
    return Code(target, name, DeviceProgram(SOURCE, "sm_90", plan), params, arena_bytes, failures)


def doubled(target: str, times: int = 1) -> Code:
    """`x *= 2`, so many times."""
    step = launch("scale", SIZE, Pointer(0), number(SIZE))
    return code(target, "doubled", (ArrayParam(x, "update"),), *[step] * times)


def doubled_part(target: str) -> Code:
    """`x[:n] *= 2`"""
    params = ArrayParam(x, "update"), IndexParam(n)
    return code(target, "doubled_part", params, launch("scale", n, Pointer(0), number(n)))


def added(target: str) -> Code:
    """`y += x`"""
    params = ArrayParam(x, "read"), ArrayParam(y, "update")
    return code(target, "added", params, launch("add", SIZE, Pointer(0), Pointer(1), number(SIZE)))


def joined(target: str) -> Code:
    """`x += y`, where `y` is in merge buffer 0."""
    merged = Tensor.of("merged", (SIZE,), F64)
    params = ArrayParam(merged, "merge", y), ArrayParam(x, "update")
    return code(target, "joined", params, launch("add", SIZE, Pointer(0), Pointer(1), number(SIZE)))


def summed(target: str) -> Code:
    """`for i in range(1, n, 2): x[0] += i + 10`"""
    i = Symbol("i")
    body = once("grow", Pointer(0), StatusWord(), number(i + 10))
    repeat = Repeat(i, Affine.of(1), Affine.of(n), (body,), 2)
    return code(target, "summed", (ArrayParam(x, "update"), IndexParam(n)), repeat)


def grown(target: str) -> Code:
    """`while x[0] < n: x[0] += 7`"""
    loop = RepeatWhile(
        (once("below", Pointer(0), Workspace(128), number(n)),),
        Workspace(128),
        (once("grow", Pointer(0), StatusWord(), number(7)),),
    )
    params = ArrayParam(x, "update"), IndexParam(n)
    return code(target, "grown", params, loop, arena_bytes=256)


def checked(target: str) -> Code:
    """Raises where a number of `x` is `n` or larger; then `x[0] += 1`."""
    params = ArrayParam(x, "update"), IndexParam(n)
    return code(
        target,
        "checked",
        params,
        once("check", Pointer(0), number(SIZE), StatusWord(), number(n)),
        once("grow", Pointer(0), StatusWord(), number(1)),
    )


def stopped_loop(target: str) -> Code:
    """`while True`, until a number of `x` is `n` or larger: then it raises."""
    loop = RepeatWhile(
        (once("below", Pointer(0), Workspace(), number(1 << 40)),),
        Workspace(),
        (
            once("grow", Pointer(0), StatusWord(), number(1)),
            once("check", Pointer(0), number(1), StatusWord(), number(n)),
        ),
    )
    params = ArrayParam(x, "update"), IndexParam(n)
    return code(target, "stopped_loop", params, loop, arena_bytes=64)
