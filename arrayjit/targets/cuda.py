"""The target that emits CUDA C: a Kernel as a program (`cuda_module`), planned for one model of GPUs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ..errors import BackendUnavailable, SettingError
from ..ir.code import Caps, Code
from ..ir.gpus import ARCHITECTURES, OLDEST, TENSOR_CORES, GpuModel, compute_capability
from ..late import Late
from ..settings import gpu_wanted

if TYPE_CHECKING:
    from ..ir.loops import Kernel
    from . import cuda_module, failures
else:
    cuda_module, failures = Late("arrayjit.targets.cuda_module"), Late("arrayjit.targets.failures")

__all__ = ["ARCHITECTURES", "DEFAULT_ARCHITECTURE", "CudaTarget"]

DEFAULT_ARCHITECTURE = "sm_90"


class CudaTarget:
    """Emits CUDA C, planned for the architecture `plan_for`, a row of the table, or for a `model`. If neither
    is given, that is the GPU that it is `fitted` to; until then, what `ARRAYJIT_GPU` names. Raises
    SettingError for an architecture that is in no row."""

    language = "cuda"

    def __init__(self, name: str, plan_for: str = "", *, model: GpuModel | None = None) -> None:
        self.name = name
        self.model = model or _row(name, plan_for or gpu_wanted() or DEFAULT_ARCHITECTURE)
        self.cpu = self.model.arch
        self._is_chosen = bool(plan_for)

    def caps(self) -> Caps:
        return self.model.caps()

    def fitted(self, properties: Mapping[str, str | int]) -> CudaTarget:
        arch = str(properties["arch"])
        if compute_capability(arch) < OLDEST:
            raise BackendUnavailable(
                f"{properties['gpu']} is of architecture {arch}, older than sm_{OLDEST}",
                fix="use another target, such as llvm, or hide the GPU by CUDA_VISIBLE_DEVICES",
            )
        processors, shared_bytes, l2_bytes = (
            int(properties[name]) for name in ("multiprocessors", "shared_bytes", "l2_bytes")
        )
        model = GpuModel(arch, processors, shared_bytes, l2_bytes)
        return self if self._is_chosen or model == self.model else CudaTarget(self.name, model=model)

    def emit(self, kernel: Kernel) -> Code:
        means = failures.failures_of(kernel)
        payload = cuda_module.program(kernel, self.model.arch)
        needs = (TENSOR_CORES,) if cuda_module.has_tensor_cores(kernel) else ()
        return Code(self.name, kernel.name, payload, kernel.params, kernel.arena_bytes, means, needs=needs)


def _row(name: str, arch: str) -> GpuModel:
    if arch not in ARCHITECTURES:
        known = ", ".join(ARCHITECTURES)
        raise SettingError(f"target {name!r} knows no architecture {arch!r}", fix=f"choose one of {known}")
    return ARCHITECTURES[arch]
