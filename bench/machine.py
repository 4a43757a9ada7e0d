"""What this machine can do at best, measured: fused multiply-adds in registers, bytes from and to memory.

The loops are written in LLVM's language, as wide as the host's vectors, and run on some threads at once.
`python bench/machine.py [--threads N]` prints what they reach.
"""

from __future__ import annotations

import argparse
import ctypes
import platform
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import llvmlite
import llvmlite.binding as llvm
import numpy as np

from arrayjit.targets.host import host_cpu

__all__ = ["Limits", "best_of", "clock", "description", "limits"]

ACCUMULATORS = 12
"""As many sums as hide the latency of an addition and still fit into 16 registers."""
TURNS = 400_000
"""Of the loop of arithmetic: a millisecond, which often passes without an interruption."""
MEGABYTES = 128
"""Of each array that the memory loops go through: several times the last cache."""
ROUNDS = {"arithmetic": 50, "memory": 7}

PEAK = """
declare {vector} @llvm.fma.{mangled}({vector}, {vector}, {vector})

define void @fma_{element}(i64 %turns, ptr %factors, ptr %out) {{
entry:
  %a = load {vector}, ptr %factors, align 4
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%next, %loop]
{phis}
{fmas}
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %turns
  br i1 %more, label %loop, label %end
end:
{stores}
  ret void
}}
"""

MEMORY = """
define void @{name}(ptr %a, ptr %b, ptr %c, i64 %elements) {{
entry:
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%next, %loop]
{phis}
{body}
  %next = add i64 %i, {step}
  %more = icmp ult i64 %next, %elements
  br i1 %more, label %loop, label %end
end:
{stores}
  ret void
}}
"""


@dataclass(frozen=True, slots=True)
class Limits:
    """Floating-point operations and bytes per second; a fused multiply-add is two operations."""

    float32: float
    float64: float
    read: float
    triad: float
    streamed: float

    @property
    def memory(self) -> float:
        """Of a loop that reads and writes, in the better of both ways to write."""
        return max(self.triad, self.streamed)


def best_of(*measured: Limits) -> Limits:
    return Limits(*(max(getattr(one, name) for one in measured) for name in Limits.__slots__))


def limits(threads: int, turns: int = TURNS, megabytes: int = MEGABYTES) -> Limits:
    """Of the better ones among some rounds, on so many threads."""
    width = host_cpu().vector_bytes
    lanes = {"float": width // 4, "double": width // 8}
    engine = compiled(*(peak(element, count) for element, count in lanes.items()), *memory(lanes["double"]))
    arrays = [aligned(megabytes << 20) for _ in range(3)]
    with ThreadPoolExecutor(threads) as pool:
        rates = [
            2
            * ACCUMULATORS
            * count
            * turns
            * threads
            / best(pool, threads, arithmetic(engine, f"fma_{element}", turns), "arithmetic")
            for element, count in lanes.items()
        ]
        for name, moved in (("read", 1), ("triad", 3), ("streamed", 3)):
            run = traffic(engine, name, arrays, threads)
            rates.append(moved * arrays[0].nbytes / best(pool, threads, run, "memory"))
    return Limits(*rates)


def best(pool: ThreadPoolExecutor, threads: int, run: Callable[[int], None], kind: str) -> float:
    """The seconds in which so many threads have called `run` with their numbers, each once: the best of the
    rounds but for one in seven, since a machine that others share sometimes loses a part of the time."""
    now, times = clock(threads), []
    for _ in range(ROUNDS[kind]):
        start = now()
        list(pool.map(run, range(threads)))
        times.append(now() - start)
    return sorted(times)[len(times) // 7]


def clock(threads: int) -> Callable[[], float]:
    """What one thread does is measured by the time that the processor spends on it, so that other programs on
    the machine hardly count; what several do together by the time that passes."""
    return time.process_time if threads == 1 else time.perf_counter


def arithmetic(engine: llvm.ExecutionEngine, name: str, turns: int) -> Callable[[int], None]:
    function = native(engine, name, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)
    factors, out = np.full(32, 0.5), np.zeros(32 * ACCUMULATORS)
    return lambda _: function(turns, factors.ctypes.data, out.ctypes.data)


def traffic(
    engine: llvm.ExecutionEngine, name: str, arrays: list[np.ndarray], threads: int
) -> Callable[[int], None]:
    """Each thread has its part of the arrays."""
    function = native(engine, name, *[ctypes.c_void_p] * 3, ctypes.c_int64)
    part = arrays[0].size // threads // 1024 * 1024

    def run(thread: int) -> None:
        function(*(array[thread * part :].ctypes.data for array in arrays), part)

    return run


def aligned(size: int) -> np.ndarray:
    """Numbers that begin where a cache line does."""
    raw = np.ones(size // 8 + 8)
    return raw[-raw.ctypes.data // 8 % 8 :][: size // 8]


def compiled(*functions: str) -> llvm.ExecutionEngine:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=2
    )
    module = llvm.parse_assembly("\n".join(functions) + "\n!0 = !{i32 1}\n")
    module.verify()
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    return engine


def native(engine: llvm.ExecutionEngine, name: str, *kinds: type) -> Callable[..., None]:
    function = ctypes.CFUNCTYPE(None, *kinds)(engine.get_function_address(name))
    function.engine = engine
    return function


def peak(element: str, lanes: int) -> str:
    """A loop of independent fused multiply-adds."""
    vector = f"<{lanes} x {element}>"
    mangled = f"v{lanes}f{32 if element == 'float' else 64}"
    sums = range(ACCUMULATORS)
    return PEAK.format(
        vector=vector,
        mangled=mangled,
        element=element,
        phis="\n".join(f"  %s{k} = phi {vector} [%a, %entry], [%t{k}, %loop]" for k in sums),
        fmas="\n".join(
            f"  %t{k} = call {vector} @llvm.fma.{mangled}({vector} %s{k}, {vector} %a, {vector} %a)"
            for k in sums
        ),
        stores="\n".join(stored(f"%t{k}", vector, k) for k in sums),
    )


def memory(lanes: int) -> tuple[str, str, str]:
    """Loops that read `b`; that make `a = b + 3 c`; and that make it past the caches."""
    vector = f"<{lanes} x double>"
    unrolled = range(8)
    step = lanes * len(unrolled)
    reads = "\n".join(f"{loaded('b', k, lanes)}\n  %t{k} = fadd {vector} %s{k}, %b{k}" for k in unrolled)
    sums = "\n".join(f"  %s{k} = phi {vector} [zeroinitializer, %entry], [%t{k}, %loop]" for k in unrolled)
    ends = "\n".join(stored(f"%t{k}", vector, k, "%a") for k in unrolled)
    read = MEMORY.format(name="read", phis=sums, body=reads, step=step, stores=ends)

    def triad(name: str, hint: str) -> str:
        three = ", ".join(["double 3.0"] * lanes)
        body = "\n".join(
            f"{loaded('b', k, lanes)}\n{loaded('c', k, lanes)}\n"
            f"  %m{k} = fmul {vector} %c{k}, <{three}>\n  %r{k} = fadd {vector} %m{k}, %b{k}\n"
            f"{address('a', k, lanes)}\n  store {vector} %r{k}, ptr %pa{k}, align {lanes * 8}{hint}"
            for k in unrolled
        )
        return MEMORY.format(name=name, phis="", body=body, step=step, stores="")

    return read, triad("triad", ""), triad("streamed", ", !nontemporal !0")


def address(array: str, k: int, lanes: int) -> str:
    place = f"  %o{array}{k} = add i64 %i, {k * lanes}\n"
    return f"{place}  %p{array}{k} = getelementptr double, ptr %{array}, i64 %o{array}{k}"


def loaded(array: str, k: int, lanes: int) -> str:
    vector = f"<{lanes} x double>"
    return f"{address(array, k, lanes)}\n  %{array}{k} = load {vector}, ptr %p{array}{k}, align {lanes * 8}"


def stored(value: str, vector: str, k: int, array: str = "%out") -> str:
    pointer = f"  %e{k} = getelementptr {vector}, ptr {array}, i64 {k}\n"
    return f"{pointer}  store {vector} {value}, ptr %e{k}, align 4"


def description() -> str:
    """The processor and the versions, in words."""
    known = Path("/proc/cpuinfo")
    lines = known.read_text().splitlines() if known.exists() else []
    model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
    versions = f"Python {platform.python_version()}, NumPy {np.__version__}, llvmlite {llvmlite.__version__}"
    return f"{model or platform.machine()} ({llvm.get_host_cpu_name()}); {versions}"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--threads", type=int, default=1)
    measured = limits(parser.parse_args().threads)
    print(description())
    print(f"fused multiply-adds   {measured.float32 / 1e9:7.1f} GFLOP/s float32")
    print(f"                      {measured.float64 / 1e9:7.1f} GFLOP/s float64")
    print(f"reading memory        {measured.read / 1e9:7.1f} GB/s")
    print(f"triad, written back   {measured.triad / 1e9:7.1f} GB/s")
    print(f"triad, streamed       {measured.streamed / 1e9:7.1f} GB/s")


if __name__ == "__main__":
    main()
