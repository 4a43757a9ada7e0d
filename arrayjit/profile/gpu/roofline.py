"""The roofline of a GPU: operations per second, and bytes per second from its memory.

Measured once for each kind of GPU and kept in a file, as that of the processor is. What the second cache
holds may come faster than from memory.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict

from ...cache import key_for, recall, remember
from ...frozen import frozen
from ...runtime.cuda.api import GpuInfo
from ...runtime.device import Device
from ..roofline import Level
from .machine import Effort, GpuLimits, limits

__all__ = ["GpuRoofline", "roofline"]

_KIND = "gpu-roofline"
_FORMAT = 1
"""Another one when something else is measured."""

_PART = 8
"""Of the device's memory, which is what a copy takes at most."""


@frozen
class GpuRoofline:
    """The limits of a GPU. `levels` has its memory."""

    gpu: str
    limits: GpuLimits

    @property
    def levels(self) -> tuple[Level, ...]:
        return (Level("memory", 0, self.limits.copy),)

    @property
    def peaks(self) -> Mapping[str, float]:
        """Operations per second by what they are done with."""
        return {name: rate for name, rate in asdict(self.limits).items() if name != "copy"}

    def peak(self, kind: str) -> float:
        """Floating-point operations per second of a dtype, or of "tensor" and a dtype; types smaller than
        float32 compute as that does. Tensor cores take float32s half as fast as small floats (NVIDIA's data
        sheets of A100, H100 and B200)."""
        if kind == "tensor float32":
            return self.limits.tensor / 2
        if kind.startswith("tensor"):
            return self.limits.tensor
        return self.limits.float64 if kind == "float64" else self.limits.float32

    def level(self, nbytes: int) -> Level:
        """Memory, whatever is done there."""
        return self.levels[0]

    def seconds(self, flops: Mapping[str, float], nbytes: float, footprint: int = 0) -> float:
        """The least time for so many operations, by kind, and so many bytes from and to memory, however many
        of these are the same."""
        arithmetic = sum(count / self.peak(kind) for kind, count in flops.items())
        return max(arithmetic, nbytes / self.limits.copy)


_known: dict[str, GpuRoofline] = {}


def roofline(device: Device, info: GpuInfo, *, again: bool = False) -> GpuRoofline:
    """A GPU's: measured in a second, or as it was measured earlier for one of its kind, by this process or
    another. `again` measures anyway."""
    key = key_for(_FORMAT, info.name, info.arch, info.version, info.multiprocessors, info.memory_bytes)
    if again or key not in _known:
        found = None if again else _recalled(key)
        if found is None:
            nbytes = min(Effort().nbytes, info.memory_bytes // _PART // 16 * 16)
            found = GpuRoofline(info.name, limits(device, info, Effort(nbytes=nbytes)))
            remember(_KIND, key, json.dumps(asdict(found)).encode())
        _known[key] = found
    return _known[key]


def _recalled(key: str) -> GpuRoofline | None:
    """What an earlier process measured; None if there is nothing that makes sense here."""
    content = recall(_KIND, key)
    if content is None:
        return None
    try:
        found = json.loads(content)
        return GpuRoofline(str(found["gpu"]), GpuLimits(**found["limits"]))
    except (KeyError, TypeError, ValueError):
        return None
