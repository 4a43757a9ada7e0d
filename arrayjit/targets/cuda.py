"""The target that emits CUDA C: what GPUs can do, by architecture, and a Kernel as a program
(`cuda_module`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ..errors import SettingError
from ..ir.code import Caps, Code, GpuCaps
from ..late import Late
from ..settings import gpu_wanted

if TYPE_CHECKING:
    from ..ir.loops import Kernel
    from . import cuda_module, failures
else:
    cuda_module, failures = Late("arrayjit.targets.cuda_module"), Late("arrayjit.targets.failures")

__all__ = ["ARCHITECTURES", "DEFAULT_ARCHITECTURE", "CudaTarget"]

ARCHITECTURES: Mapping[str, GpuCaps] = {
    "sm_80": GpuCaps(processors=108, tensor_cores=True),
    "sm_90": GpuCaps(processors=132, tensor_cores=True),
    "sm_100": GpuCaps(processors=148, tensor_cores=True),
}
"""By name: A100, H100 and H200, B200 (NVIDIA's tuning guides)."""

DEFAULT_ARCHITECTURE = "sm_90"


class CudaTarget:
    """Emits CUDA C, planned for `arch`, a row of the table; by default for what `ARRAYJIT_GPU` names. Raises
    SettingError for one that is in no row."""

    def __init__(self, name: str, arch: str = "") -> None:
        arch = arch or gpu_wanted() or DEFAULT_ARCHITECTURE
        if arch not in ARCHITECTURES:
            known = ", ".join(ARCHITECTURES)
            raise SettingError(
                f"target {name!r} knows no architecture {arch!r}", fix=f"choose one of {known}"
            )
        self.name = name
        self.arch = self.cpu = arch
        self.language = "cuda"

    def caps(self) -> Caps:
        return Caps(gpu=ARCHITECTURES[self.arch])

    def emit(self, kernel: Kernel) -> Code:
        means = failures.failures_of(kernel)
        payload = cuda_module.program(kernel, self.arch)
        return Code(self.name, kernel.name, payload, kernel.params, kernel.arena_bytes, means)
