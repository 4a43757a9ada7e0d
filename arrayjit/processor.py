"""The processor of this machine: what it is and what it can do, as LLVM calls it.

Linux tells both; elsewhere LLVM is asked, which takes much longer to load than anything else here.
"""

from __future__ import annotations

import platform
import sys
from functools import cache
from typing import TYPE_CHECKING

from .late import Late

if TYPE_CHECKING:
    import llvmlite.binding as llvm
else:
    llvm = Late("llvmlite.binding")

__all__ = ["features", "identity", "is_arm"]

_CPUINFO = "/proc/cpuinfo"
_ENOUGH = 16 << 10
"""Bytes that hold the first processor; the system takes its time to tell about each."""

_MODEL = ("vendor_id", "cpu family", "model", "stepping", "CPU implementer", "CPU variant", "CPU part")
_X86 = "flags", {"avx512_fp16": "avx512fp16", "avx512_vp2intersect": "avx512vp2intersect"}
_ARM = "Features", {"asimd": "neon"}
_FEATURES = {"x86_64": _X86, "aarch64": _ARM}
"""By machine, where features stand and what is called differently there. Those of another machine are told
where this one is emulated."""


def is_arm() -> bool:
    """Whether this is ARM64, on which NumPy gives what that processor's instructions give where they differ
    from x86's: integers of floats that do not fit, and extremes of zeros."""
    return platform.machine() in ("aarch64", "arm64")


@cache
def features() -> frozenset[str]:
    """What code for this processor may use. Of x86 and ARM, what LLVM and Linux call by the same name, and
    `neon`; elsewhere all that LLVM knows."""
    told = _told()
    key, names = _FEATURES.get(platform.machine(), ("", {}))
    if key in told:
        return frozenset(names.get(word, word) for word in told[key].split())
    return frozenset(name for name, there in llvm.get_host_cpu_features().items() if there)


@cache
def identity() -> str:
    """The same only for processors that run the same code."""
    told = _told()
    model = [told[key] for key in _MODEL if key in told] or [llvm.get_host_cpu_name()]
    return " ".join((*model, *sorted(features())))


@cache
def _told() -> dict[str, str]:
    """What the system says of the first processor."""
    if sys.platform != "linux":
        return {}
    try:
        with open(_CPUINFO, "rb", buffering=0) as file:
            text = file.read(_ENOUGH).decode(errors="replace")
    except OSError:
        return {}
    lines = (line.partition(":") for line in text.partition("\n\n")[0].splitlines())
    return {key.strip(): value.strip() for key, _, value in lines}
