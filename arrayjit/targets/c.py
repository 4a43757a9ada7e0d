"""The targets that emit C11: what the hardware can do, and a Kernel as text (`c_module`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from ..ir.code import Caps, Code
from ..late import Late
from ..settings import cpu_wanted, num_threads
from .host import cpu_named, host_caps, host_cpu

if TYPE_CHECKING:
    from ..ir.loops import Kernel
    from . import c_module, failures
else:
    failures, c_module = Late("arrayjit.targets.failures"), Late("arrayjit.targets.c_module")

__all__ = ["CTarget", "ParallelCTarget"]


class CTarget:
    """Emits C11 for one core: of the host's CPU, or of `cpu`, a row of the table in `host`. By default the
    setting decides. Raises SettingError for a CPU that is in no row."""

    language = "c"

    def __init__(self, name: str, cpu: str = "") -> None:
        self.name = name
        self.cpu = cpu or cpu_wanted()
        self._cpu = cpu_named(self.cpu) if self.cpu else host_cpu()

    def caps(self) -> Caps:
        caps = host_caps(self._cpu)
        return replace(caps, packed=(), transposes=False, small_floats=())  # C has no word for them

    def fitted(self, properties: Mapping[str, str | int]) -> CTarget:
        return self

    def emit(self, kernel: Kernel) -> Code:
        means = failures.failures_of(kernel)
        code = Code(self.name, kernel.name, None, kernel.params, kernel.arena_bytes, means)
        return replace(code, payload=c_module.module(kernel, code.symbol), needs=self._cpu.features)


class ParallelCTarget(CTarget):
    """Emits C11 for all cores that the process may use."""

    def caps(self) -> Caps:
        return replace(super().caps(), threads=num_threads())
