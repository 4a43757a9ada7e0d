"""What this machine can do at best, measured: fused multiply-adds in registers, bytes from and to memory and
each cache.

The loops are written in LLVM's language, as wide as the host's vectors, and run on some threads at once.
"""

from __future__ import annotations

import ctypes
import platform
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path

import llvmlite
import llvmlite.binding as llvm
import numpy as np

from ..frozen import frozen
from ..runtime.machine_code import loaded, process_address
from ..runtime.objects import Image
from ..targets.host import host_cpu

__all__ = ["Limits", "best_of", "cached_rate", "clock", "description", "limits"]

ACCUMULATORS = 12
"""As many sums as hide the latency of an addition and still fit into 16 registers."""
TURNS = 400_000
"""Of the loop of arithmetic: a millisecond, which often passes without an interruption."""
MEGABYTES = 128
"""Of each array that the memory loops go through: several times the last cache."""
CACHED_BYTES = 32 << 20
"""How much a loop over a cache reads in one go: about a millisecond again."""
ROUNDS = {"arithmetic": 50, "memory": 7, "cache": 20}

PEAK = """
define void @fma_{element}(i64 %turns, ptr %factors, ptr %out) #0 {{
entry:
  %a = load {vector}, ptr %factors, align 4
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%next, %loop]
{phis}
{sums}
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %turns
  br i1 %more, label %loop, label %end
end:
{stores}
  ret void
}}
"""

FUSED = "declare {vector} @llvm.fma.{mangled}({vector}, {vector}, {vector})"
"""Declares the instruction; other CPUs multiply, then add."""

MEMORY = """
define void @{name}(ptr %a, ptr %b, ptr %c, i64 %elements, i64 %turns) #0 {{
entry:
  br label %turn
turn:
  %t = phi i64 [0, %entry], [%following, %end]
  br label %loop
loop:
  %i = phi i64 [0, %turn], [%next, %loop]
{phis}
{body}
  %next = add i64 %i, {step}
  %more = icmp ult i64 %next, %elements
  br i1 %more, label %loop, label %end
end:
{stores}
  %following = add i64 %t, 1
  %again = icmp ult i64 %following, %turns
  br i1 %again, label %turn, label %leave
leave:
  ret void
}}
"""

MOVED = {"read": 1, "triad": 3, "streamed": 3}
"""Arrays that each memory loop goes through."""


@frozen
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
    """The greatest of each."""
    return Limits(*(max(getattr(one, name) for one in measured) for name in asdict(measured[0])))


def limits(threads: int, turns: int = TURNS, megabytes: int = MEGABYTES) -> Limits:
    """Of the better ones among some rounds, on so many threads."""
    image = _compiled()
    arrays = [_aligned(megabytes << 20) for _ in range(3)]
    with ThreadPoolExecutor(threads) as pool:
        rates = [
            2
            * ACCUMULATORS
            * lanes
            * turns
            * threads
            / _best(pool, threads, _arithmetic(image, f"fma_{element}", turns), "arithmetic")
            for element, lanes in _lanes().items()
        ]
        for name, moved in MOVED.items():
            run = _traffic(image, name, arrays, threads)
            rates.append(moved * arrays[0].nbytes / _best(pool, threads, run, "memory"))
    return Limits(*rates)


def cached_rate(threads: int, nbytes: int, amount: int = CACHED_BYTES) -> float:
    """Bytes per second where each thread goes through so many bytes of its own again and again: the better of
    a loop that reads and one that reads and writes."""
    image = _compiled()
    rates = []
    with ThreadPoolExecutor(threads) as pool:
        for name in ("read", "triad"):
            moved = MOVED[name]
            arrays = [_aligned(max(nbytes // moved, 1024) * threads) for _ in range(3)]
            turns = max(1, amount // nbytes)
            run = _traffic(image, name, arrays, threads, turns)
            part = arrays[0].size // threads // 64 * 64
            rates.append(moved * part * 8 * turns * threads / _best(pool, threads, run, "cache"))
    return max(rates)


def _best(pool: ThreadPoolExecutor, threads: int, run: Callable[[int], None], kind: str) -> float:
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


def _arithmetic(image: Image, name: str, turns: int) -> Callable[[int], None]:
    function = _native(image, name, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)
    factors, out = np.full(32, 0.5), np.zeros(32 * ACCUMULATORS)
    return lambda _: function(turns, factors.ctypes.data, out.ctypes.data)


def _traffic(
    image: Image, name: str, arrays: list[np.ndarray], threads: int, turns: int = 1
) -> Callable[[int], None]:
    """Each thread has its part of the arrays."""
    function = _native(image, name, *[ctypes.c_void_p] * 3, ctypes.c_int64, ctypes.c_int64)
    part = arrays[0].size // threads // 64 * 64

    def run(thread: int) -> None:
        function(*(array[thread * part :].ctypes.data for array in arrays), part, turns)

    return run


def _aligned(size: int) -> np.ndarray:
    """Numbers that begin where a cache line does."""
    raw = np.ones(size // 8 + 8)
    return raw[-raw.ctypes.data // 8 % 8 :][: size // 8]


def _lanes() -> dict[str, int]:
    """How many numbers of each type a register holds."""
    width = host_cpu().caps.vector_bytes
    return {"float": width // 4, "double": width // 8}


def _compiled() -> Image:
    """All loops for this processor, with registers as wide as it has."""
    lanes = _lanes()
    width = f'"prefer-vector-width"="{8 * host_cpu().caps.vector_bytes}"'
    functions = [*(_peak(element, count) for element, count in lanes.items()), *_memory(lanes["double"])]
    text = "\n".join((*functions, "!0 = !{i32 1}", f"attributes #0 = {{ nounwind {width} }}"))
    return loaded(text, "the machine's limits", process_address)


def _native(image: Image, name: str, *kinds: type) -> Callable[..., None]:
    call = ctypes.CFUNCTYPE(None, *kinds)(image.addresses[name])

    def function(*args: int) -> None:
        call(*args)
        assert image.memory is not None

    return function


def _peak(element: str, lanes: int) -> str:
    """A loop of independent fused multiply-adds."""
    vector = f"<{lanes} x {element}>"
    mangled = f"v{lanes}f{32 if element == 'float' else 64}"
    numbers, is_fused = range(ACCUMULATORS), host_cpu().caps.fma
    if is_fused:
        call = f"call {vector} @llvm.fma.{mangled}({vector} %s{{k}}, {vector} %a, {vector} %a)"
        sums = [f"  %t{k} = {call.format(k=k)}" for k in numbers]
    else:
        sums = [f"  %m{k} = fmul {vector} %s{k}, %a\n  %t{k} = fadd {vector} %m{k}, %a" for k in numbers]
    loop = PEAK.format(
        vector=vector,
        element=element,
        phis="\n".join(f"  %s{k} = phi {vector} [%a, %entry], [%t{k}, %loop]" for k in numbers),
        sums="\n".join(sums),
        stores="\n".join(_stored(f"%t{k}", vector, k) for k in numbers),
    )
    return f"{FUSED.format(vector=vector, mangled=mangled)}\n{loop}" if is_fused else loop


def _memory(lanes: int) -> tuple[str, str, str]:
    """Loops that read `b`; that make `a = b + 3 c`; and that make it past the caches."""
    vector = f"<{lanes} x double>"
    unrolled = range(8)
    step = lanes * len(unrolled)
    reads = "\n".join(f"{_loaded('b', k, lanes)}\n  %t{k} = fadd {vector} %s{k}, %b{k}" for k in unrolled)
    sums = "\n".join(f"  %s{k} = phi {vector} [zeroinitializer, %turn], [%t{k}, %loop]" for k in unrolled)
    ends = "\n".join(_stored(f"%t{k}", vector, k, "%a") for k in unrolled)
    read = MEMORY.format(name="read", phis=sums, body=reads, step=step, stores=ends)

    def triad(name: str, hint: str) -> str:
        three = ", ".join(["double 3.0"] * lanes)
        body = "\n".join(
            f"{_loaded('b', k, lanes)}\n{_loaded('c', k, lanes)}\n"
            f"  %m{k} = fmul {vector} %c{k}, <{three}>\n  %r{k} = fadd {vector} %m{k}, %b{k}\n"
            f"{_address('a', k, lanes)}\n  store {vector} %r{k}, ptr %pa{k}, align {lanes * 8}{hint}"
            for k in unrolled
        )
        return MEMORY.format(name=name, phis="", body=body, step=step, stores="")

    return read, triad("triad", ""), triad("streamed", ", !nontemporal !0")


def _address(array: str, k: int, lanes: int) -> str:
    place = f"  %o{array}{k} = add i64 %i, {k * lanes}\n"
    return f"{place}  %p{array}{k} = getelementptr double, ptr %{array}, i64 %o{array}{k}"


def _loaded(array: str, k: int, lanes: int) -> str:
    vector = f"<{lanes} x double>"
    return f"{_address(array, k, lanes)}\n  %{array}{k} = load {vector}, ptr %p{array}{k}, align {lanes * 8}"


def _stored(value: str, vector: str, k: int, array: str = "%out") -> str:
    pointer = f"  %e{k} = getelementptr {vector}, ptr {array}, i64 {k}\n"
    return f"{pointer}  store {vector} {value}, ptr %e{k}, align 4"


def description() -> str:
    """The processor and the versions, in words."""
    known = Path("/proc/cpuinfo")
    lines = known.read_text().splitlines() if known.exists() else []
    model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
    versions = f"Python {platform.python_version()}, NumPy {np.__version__}, llvmlite {llvmlite.__version__}"
    return f"{model or platform.machine()} ({llvm.get_host_cpu_name()}); {versions}"
