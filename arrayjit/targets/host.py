"""What the CPU that this process runs on can do."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import llvmlite.binding as llvm

from ..ir.code import Caps

__all__ = ["host_caps"]

_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
_UNITS = {"K": 1024, "M": 1024 * 1024}


@lru_cache(maxsize=1)
def host_caps() -> Caps:
    """The host's vector width, cache sizes and fused multiply-add."""
    features = llvm.get_host_cpu_features()
    vector_bytes = 64 if features.get("avx512f") else 32 if features.get("avx2") else 16
    default = Caps()
    return Caps(
        vector_bytes=vector_bytes,
        l1_bytes=_cache_bytes(1) or default.l1_bytes,
        l2_bytes=_cache_bytes(2) or default.l2_bytes,
        fma=bool(features.get("fma") or features.get("neon")),
    )


def _cache_bytes(level: int) -> int | None:
    """The size of a core's data cache, where Linux tells it."""
    for folder in sorted(_CACHES.glob("index*")):
        kind = (folder / "type").read_text().strip()
        if kind != "Instruction" and (folder / "level").read_text().strip() == str(level):
            size = (folder / "size").read_text().strip()
            return int(size.rstrip("KM")) * _UNITS.get(size[-1], 1)
    return None
