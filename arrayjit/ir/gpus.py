"""What plans for a GPU depend on: what one says of itself, and a table for where there is none to ask.

GpuModel("sm_90", processors=132, shared_bytes=232_448, l2_bytes=50 << 20).caps()
"""

from __future__ import annotations

from collections.abc import Mapping

from ..frozen import frozen
from .code import Caps, GpuCaps
from .dtype import BF16, F16

__all__ = ["ARCHITECTURES", "OLDEST", "TENSOR_CORES", "GpuModel", "compute_capability"]

OLDEST = 75
"""The compute capability, times ten, that kernels need."""

TENSOR_CORES = "sm_80"
"""The first architecture on which the kernels for tensor cores run, which copy without waiting."""

_STATIC_SHARED_BYTES = 48 * 1024
"""What a block may declare. More has to be asked for at the launch, and leaves room for fewer blocks."""


def compute_capability(arch: str) -> int:
    """Times ten: 90 of "sm_90" and of "sm_90a"."""
    return int(arch.removeprefix("sm_").rstrip("af"))


@frozen
class GpuModel:
    """`arch` is such as "sm_90". There are `processors`, each of which runs blocks; a block may have
    `shared_bytes` if it asks for them; `l2_bytes` are cached for all processors."""

    arch: str
    processors: int
    shared_bytes: int
    l2_bytes: int

    def caps(self) -> Caps:
        """What passes may know."""
        has_tensor_cores = compute_capability(self.arch) >= compute_capability(TENSOR_CORES)
        gpu = GpuCaps(
            shared_bytes=min(self.shared_bytes, _STATIC_SHARED_BYTES),
            processors=self.processors,
            tensor_cores=has_tensor_cores,
            small_floats=(F16, BF16) if has_tensor_cores else (F16,),
        )
        return Caps(l3_bytes=self.l2_bytes, gpu=gpu)


ARCHITECTURES: Mapping[str, GpuModel] = {
    model.arch: model
    for model in (
        GpuModel("sm_80", processors=108, shared_bytes=166_912, l2_bytes=40 << 20),
        GpuModel("sm_90", processors=132, shared_bytes=232_448, l2_bytes=50 << 20),
        GpuModel("sm_100", processors=148, shared_bytes=232_448, l2_bytes=126 << 20),
    )
}
"""By name: A100, H100 and H200, B200 (NVIDIA's tuning guides)."""
