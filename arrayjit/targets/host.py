"""CPUs that code can be made for, by table, and what is known of the one that this process runs on."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from .. import processor
from ..errors import SettingError
from ..frozen import frozen
from ..ir.code import Ahead, Caps, Pipes
from ..ir.dtype import F16

__all__ = ["CPUS", "Cpu", "cpu_named", "host_caps", "host_cpu"]


@frozen
class Cpu:
    """A kind of CPU: the features that it must have, as LLVM calls them, and what passes may know of all CPUs
    of that kind, whose caches have different sizes."""

    name: str
    features: tuple[str, ...]
    caps: Caps


_AVX512 = ("avx512f", "avx512bw", "avx512dq", "avx512vl", "avx2", "fma", "f16c", "bmi2")
_AVX512_CAPS = Caps(64, 32, fma=True, packed=(4, 8), small_floats=(F16,))
_ZEN5_CAPS = replace(
    _AVX512_CAPS,
    ahead=Ahead(further=4096, one=1024, second=False, rows=True, beyond=4096, chosen=True),
    pipes=Pipes(at_once=4, multiplying=2, added=2, divides_apart=True, ahead=190),
    pads=True,
    ends_masked=True,
    transposes=True,
)

CPUS = (
    Cpu("avx512fp16", ("avx512fp16", *_AVX512), replace(_AVX512_CAPS, divisions=(16.0, 32.0))),
    Cpu("zen5", ("sse4a", "avx512vp2intersect", *_AVX512), _ZEN5_CAPS),
    Cpu("avx512", _AVX512, _AVX512_CAPS),
    Cpu("avx2", ("avx2", "fma", "f16c", "bmi2"), Caps(32, 16, fma=True, small_floats=(F16,))),
    Cpu("avx", ("avx",), Caps(32, 16, fma=False)),
    Cpu("sse2", ("sse2",), Caps(16, 16, fma=False)),
    Cpu("neon", ("neon",), Caps(16, 32, fma=True)),
    Cpu("generic", (), Caps(16, 16, fma=False)),
)
"""The best ones first; any CPU is the last one at least."""

_LEVELS = ("l1_bytes", "l2_bytes", "l3_bytes")

SHARE = 16
"""A processor finds so many times its second cache in the last one at most. Virtual machines are told the
size of a whole cache, which dozens of processors share that they do not see: where two are told 300 MB,
arrays of 24 MB are copied as slowly as those that only memory holds."""


@cache
def host_cpu() -> Cpu:
    """The first row that this CPU has all features of."""
    return next(cpu for cpu in CPUS if processor.features().issuperset(cpu.features))


def cpu_named(name: str) -> Cpu:
    """A row of the table. Raises SettingError for a name that is in none."""
    for cpu in CPUS:
        if cpu.name == name.lower():
            return cpu
    raise SettingError(f"no CPU is called {name!r}", fix=f"name one of {', '.join(cpu.name for cpu in CPUS)}")


def host_caps(cpu: Cpu) -> Caps:
    """What passes may know about this machine, if its CPU were such a one."""
    sizes: dict[str, Any] = dict(_caches())
    return replace(cpu.caps, **sizes)


@cache
def _caches() -> dict[str, int]:
    """The sizes of a core's data caches and of their lines, as far as the system tells them."""
    read = _READERS.get(sys.platform)
    found = {} if read is None else {name: size for name, size in read().items() if size > 0}
    if "l2_bytes" in found:
        near, last = found["l2_bytes"], found.get("l3_bytes", found["l2_bytes"])
        found["l3_bytes"] = min(last, SHARE * near * (os.cpu_count() or 1))
    return found


def _linux_caches(root: Path = Path("/sys/devices/system/cpu/cpu0/cache")) -> dict[str, int]:
    found = {}
    names = ("type", "level", "size", "coherency_line_size")
    for folder in sorted(root.glob("index*")):
        files = [folder / name for name in names]
        if not all(file.exists() for file in files):
            continue
        kind, level, size, line = (file.read_text().strip() for file in files)
        if kind != "Instruction" and int(level) <= len(_LEVELS):
            number = size.rstrip("KMG")
            found[_LEVELS[int(level) - 1]] = int(number) << 10 * " KMG".find(size[len(number) :] or " ")
            found["line_bytes"] = int(line)
    return found


def _macos_caches() -> dict[str, int]:
    ask = ctypes.CDLL(None).sysctlbyname
    names = {**{name: f"hw.{name[:2]}cachesize" for name in _LEVELS}, "line_bytes": "hw.cachelinesize"}
    names["l1_bytes"] = "hw.l1dcachesize"
    found = {}
    for name, key in names.items():
        value, length = ctypes.c_int64(0), ctypes.c_size_t(8)
        ask(key.encode(), ctypes.byref(value), ctypes.byref(length), None, ctypes.c_size_t(0))
        found[name] = value.value
    return found


_READERS: dict[str, Callable[[], dict[str, int]]] = {"linux": _linux_caches, "darwin": _macos_caches}
