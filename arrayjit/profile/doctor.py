"""Is this machine set up well? What `python -m arrayjit doctor` prints.

Findings of three kinds: facts, advice (something that is missing or slows programs down), and problems, with
which arrayjit does not do what it should.
"""

from __future__ import annotations

import os
import platform
import re
import shlex
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

import llvmlite.binding as llvm
import numpy as np

from .. import __version__, cache, processor, settings
from ..api import jit
from ..backends import BACKENDS
from ..errors import BackendUnavailable, UserError
from ..frozen import frozen
from ..runtime.c_compiler import c_compiler
from ..targets.host import host_caps, host_cpu
from .machine import description
from .report import rate
from .roofline import Roofline, kept, roofline

__all__ = ["Finding", "Kind", "findings", "report"]

SYSTEM = Path("/")
"""Where the system's files are: a test has others."""

PACKAGES: Mapping[str, Sequence[str]] = {
    "cuda": ("cuda-python", "nvidia-cuda-nvrtc-cu12"),
    "demo": ("pillow", "rich", "scikit-learn"),
    "report": ("matplotlib", "rich"),
    "bench": ("numba", "jax", "numexpr", "scipy", "pytest-benchmark"),
}
"""Optional packages by the extra that installs them."""

UNFAIR: Mapping[str, str] = {
    **dict.fromkeys(settings.MISLEADING, "NumPy's products may run code for another machine: unset it"),
    "OMP_NUM_THREADS": "it limits the threads of NumPy's libraries; arrayjit's are ARRAYJIT_NUM_THREADS",
    "OPENBLAS_NUM_THREADS": "it limits the threads of NumPy's products, which comparisons should know",
    "MKL_NUM_THREADS": "it limits the threads of NumPy's products, which comparisons should know",
    "NPY_DISABLE_CPU_FEATURES": "NumPy does without instructions that this CPU has: unset it",
}
"""Variables of the environment that make comparisons unfair, and what they do."""

SETTINGS = (
    "ARRAYJIT_CACHE_BYTES",
    "ARRAYJIT_CACHE_DIR",
    "ARRAYJIT_CHECK",
    "ARRAYJIT_CPU",
    "ARRAYJIT_DUMP",
    "ARRAYJIT_ENTRY",
    "ARRAYJIT_GDB",
    "ARRAYJIT_GPU",
    "ARRAYJIT_LOG_COMPILES",
    "ARRAYJIT_NUM_THREADS",
    "ARRAYJIT_PERF_MAP",
    "ARRAYJIT_TARGET",
    "ARRAYJIT_TRACEBACK",
    "ARRAYJIT_VERIFY",
)
"""Variables that `settings` reads."""

BUSY = 0.5
"""Of the cores; with more in use by others, times say little."""


class Kind(Enum):
    FACT = " "
    ADVICE = "*"
    PROBLEM = "!"


@frozen
class Finding:
    """One line of the report; `fix` says what to do about it."""

    topic: str
    text: str
    kind: Kind = Kind.FACT
    fix: str = ""


def report(*, limits: bool = False) -> tuple[str, int]:
    """All findings as text, and the exit status: 1 if there is a problem. With `limits` the machine's are
    measured now."""
    found = list(findings(limits=limits))
    width = max(len(one.topic) for one in found)
    lines, topic = [], ""
    for one in found:
        name = "" if one.topic == topic else one.topic
        topic = one.topic
        lines.append(f"{one.kind.value} {name.ljust(width)}  {one.text}")
        if one.fix:
            lines.append(f"  {' ' * width}    fix: {one.fix}")
    counts = {kind: sum(one.kind is kind for one in found) for kind in Kind}
    problems, advice = counts[Kind.PROBLEM], counts[Kind.ADVICE]
    lines += ["", f"{_counted(problems, 'problem')} (!), {_counted(advice, 'piece')} of advice (*)"]
    return "\n".join(lines), 1 if problems else 0


def findings(only: str = "", *, limits: bool = False) -> Iterator[Finding]:
    """What is found, topic by topic, or about one topic only. One that cannot be looked into is a problem of
    its own."""
    topics: Mapping[str, Callable[[], Iterator[Finding]]] = {
        "CPU": _cpu,
        "cores": _cores,
        "memory": _memory,
        "versions": _versions,
        "packages": _packages,
        "targets": _targets,
        "C compiler": _compiler,
        "GPU": _gpus,
        "cache": _cache,
        "environment": _environment,
        "limits": lambda: _limits(limits),
    }
    for topic, look in topics.items():
        if only not in ("", topic):
            continue
        try:
            yield from look()
        except UserError as error:
            yield Finding(topic, error.what, Kind.PROBLEM, error.fix)
        except Exception as error:
            yield Finding(topic, f"{type(error).__name__}: {error}", Kind.PROBLEM, "report it as a bug")


def _cpu() -> Iterator[Finding]:
    cpu, caps = host_cpu(), host_caps(host_cpu())
    yield Finding("CPU", description().partition(";")[0])
    yield Finding(
        "CPU", f"code for {cpu.name}: vectors of {cpu.caps.vector_bytes} bytes, {cpu.caps.registers} of them"
    )
    known = sorted(processor.features().intersection(_TELLING))
    yield Finding("CPU", f"features: {', '.join(known) or 'none that matter'}")
    if not cpu.caps.fma:
        yield Finding("CPU", "no fused multiply-add: matrix products call a function for each", Kind.ADVICE)
    sizes = ", ".join(
        f"{level} {_bytes(getattr(caps, f'{level.lower()}_bytes'))}" for level in ("L1", "L2", "L3")
    )
    yield Finding("CPU", f"caches: {sizes}")
    if settings.cpu_wanted():
        yield Finding("CPU", f"ARRAYJIT_CPU makes code for {settings.cpu_wanted()}", Kind.ADVICE)


_TELLING = ("sse4_2", "avx", "avx2", "fma", "f16c", "bmi2", "avx512f", "avx512bw", "avx512dq", "avx512vl",
            "avx512_bf16", "avx512_fp16", "amx_tile", "neon", "sve")  # fmt: skip


def _cores() -> Iterator[Finding]:
    there, used = os.cpu_count() or 1, settings.num_threads()
    affinity = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else there
    yield Finding("cores", f"{there} there, {affinity} for this process, {used} threads for kernels")
    if used < affinity and not settings.variables().get("ARRAYJIT_NUM_THREADS"):
        yield Finding("cores", f"control groups grant {used} of them", Kind.ADVICE)
    if used > affinity:
        yield Finding(
            "cores", f"{used} threads share {affinity} cores", Kind.ADVICE, "unset ARRAYJIT_NUM_THREADS"
        )
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    if load > BUSY * there:
        yield Finding(
            "cores", f"{load:.1f} tasks wanted them of late: times measured now mean little", Kind.ADVICE
        )


def _memory() -> Iterator[Finding]:
    told = SYSTEM / "proc/meminfo"
    if told.exists():
        rows = dict(re.findall(r"^(\w+):\s+(\d+) kB", told.read_text(), re.MULTILINE))
        total, free = (int(rows.get(name, 0)) << 10 for name in ("MemTotal", "MemAvailable"))
        yield Finding("memory", f"{_bytes(total)}, of which {_bytes(free)} are available")
    for place in ("sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory/memory.limit_in_bytes"):
        limit = SYSTEM / place
        words = limit.read_text().strip() if limit.exists() else "max"
        if words.isdecimal() and int(words) < 1 << 60:
            yield Finding("memory", f"a control group limits it to {_bytes(int(words))}")
    pages = SYSTEM / "sys/kernel/mm/transparent_hugepage/enabled"
    if pages.exists() and "[never]" in pages.read_text():
        yield Finding(
            "memory",
            "huge pages are off: first writes to large arrays take longer",
            Kind.ADVICE,
            f"echo madvise > /{pages.relative_to(SYSTEM)}, as administrator",
        )


def _versions() -> Iterator[Finding]:
    llvm_version = ".".join(map(str, llvm.llvm_version_info))
    yield Finding("versions", platform.platform())
    yield Finding(
        "versions",
        f"arrayjit {__version__}, Python {platform.python_version()} ({sys.implementation.name}), "
        f"NumPy {np.__version__}, llvmlite {_version('llvmlite')} (LLVM {llvm_version})",
    )
    if sys.implementation.name != "cpython" or settings.entry_wanted() != "native":
        yield Finding(
            "versions", "calls go through Python, which takes about two microseconds more", Kind.ADVICE
        )


def _packages() -> Iterator[Finding]:
    for extra, names in PACKAGES.items():
        there = [f"{name} {_version(name)}" for name in names if _version(name)]
        missing = [name for name in names if not _version(name)]
        text = ", ".join(there) or "nothing of it"
        if missing:
            text += f"; not here: {', '.join(missing)}"
        fix = f"for {extra}: pip install 'arrayjit[{extra}]'" if missing else ""
        yield Finding("packages", f"{extra}: {text}", Kind.ADVICE if missing else Kind.FACT, fix)


def _targets() -> Iterator[Finding]:
    """Each target computes something."""
    x = np.arange(5.0)
    for name in BACKENDS:
        try:
            result = np.asarray(jit(_affine).on(name)(x))
        except BackendUnavailable as error:
            yield Finding("targets", f"{name}: {error.what}", Kind.ADVICE, error.fix)
            continue
        except Exception as error:
            text = str(error).splitlines()[0] if str(error) else ""
            yield Finding(
                "targets", f"{name}: {type(error).__name__}: {text}", Kind.PROBLEM, "report it as a bug"
            )
            continue
        if np.array_equal(result, _affine(x)):
            yield Finding("targets", f"{name} works")
        else:
            yield Finding("targets", f"{name} computes wrong numbers", Kind.PROBLEM, "report it as a bug")


def _affine(x: np.ndarray) -> np.ndarray:
    result: np.ndarray = 2.0 * x + 1.0
    return result


def _compiler() -> Iterator[Finding]:
    try:
        found = c_compiler()
    except BackendUnavailable as error:
        yield Finding("C compiler", error.what, Kind.ADVICE, error.fix)
        return
    told = found.version.splitlines()[0] if found.version else "it does not say its version"
    yield Finding("C compiler", f"{shlex.join(found.command)}: {told}")


def _gpus() -> Iterator[Finding]:
    """NVIDIA's, by the driver's own files."""
    driver, cards = SYSTEM / "proc/driver/nvidia/version", SYSTEM / "proc/driver/nvidia/gpus"
    if not driver.exists():
        yield Finding("GPU", "no NVIDIA driver is loaded")
        return
    yield Finding("GPU", driver.read_text().splitlines()[0].strip())
    for card in sorted(cards.glob("*/information")):
        model = re.search(r"^Model:\s*(.+)$", card.read_text(), re.MULTILINE)
        yield Finding("GPU", f"{card.parent.name}: {model[1] if model else 'unknown model'}")
    if find_spec("cuda") is None:
        yield Finding("GPU", "it is not used", Kind.ADVICE, "pip install 'arrayjit[cuda]'")


def _cache() -> Iterator[Finding]:
    if not settings.cache_bytes():
        yield Finding("cache", "ARRAYJIT_CACHE_BYTES is 0: every process compiles again", Kind.ADVICE)
        return
    found = cache.contents()
    count = sum(found.entries.values())
    room = f"{_bytes(found.nbytes)} of {_bytes(settings.cache_bytes())}"
    yield Finding("cache", f"{found.folder}: {_counted(count, 'entry', 'entries')}, {room}")
    try:
        found.folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=found.folder) as file:
            file.write(b"arrayjit")
    except OSError as error:
        yield Finding(
            "cache",
            f"nothing can be kept there: {error.strerror or error}",
            Kind.PROBLEM,
            "set ARRAYJIT_CACHE_DIR to a folder that can be written, or ARRAYJIT_CACHE_BYTES=0",
        )


def _environment() -> Iterator[Finding]:
    given = settings.variables()
    for name, meaning in UNFAIR.items():
        if given.get(name):
            yield Finding("environment", f"{name}={given[name]}", Kind.ADVICE, meaning)
    for name in sorted(name for name in given if name.startswith("ARRAYJIT_")):
        if name in SETTINGS:
            yield Finding("environment", f"{name}={given[name]}")
        else:
            fix = f"arrayjit knows {', '.join(SETTINGS)}"
            yield Finding("environment", f"{name} means nothing", Kind.ADVICE, fix)
    for read in (settings.cache_bytes, settings.num_threads, settings.entry_wanted, settings.cpu_wanted):
        read()


def _limits(measure: bool) -> Iterator[Finding]:
    """What the machine can do, as far as it is known."""
    for threads in sorted({1, settings.num_threads()}):
        found = roofline(threads, again=True) if measure else kept(threads)
        if found is not None:
            yield Finding("limits", _told(found))
    if not measure and kept(1) is None:
        yield Finding("limits", "not measured yet: the first profile does it, or doctor --limits")


def _told(found: Roofline) -> str:
    single, double = (rate(found.peak(name), "FLOP/s") for name in ("float32", "float64"))
    levels = ", ".join(f"{level.name} {rate(level.rate, 'B/s')}" for level in found.levels)
    return f"{_counted(found.threads, 'thread')}: {single} in float32, {double} in float64; {levels}"


def _version(package: str) -> str:
    """ "" for one that is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _bytes(count: int) -> str:
    for unit, scale in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= scale:
            return f"{count / scale:.3g} {unit}"
    return f"{count} bytes"


def _counted(number: int, noun: str, plural: str = "") -> str:
    return f"{number} {noun if number == 1 else plural or noun + 's'}"
