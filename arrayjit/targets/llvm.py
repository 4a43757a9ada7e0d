"""The targets that emit LLVM IR: what the hardware can do, and a Kernel as text (`llvm_module`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from ..ir.code import Caps, Code
from ..late import Late
from ..settings import cpu_wanted, debugger_wanted, num_threads
from .host import Cpu, cpu_named, host_caps, host_cpu

if TYPE_CHECKING:
    from ..ir.loops import Kernel
    from . import failures, llvm_module
else:
    failures, llvm_module = Late("arrayjit.targets.failures"), Late("arrayjit.targets.llvm_module")

__all__ = ["LlvmTarget", "ParallelLlvmTarget"]


class LlvmTarget:
    """Emits LLVM IR for one core: of the host's CPU, or of `cpu`, a row of the table in `host`. By default
    the setting decides. Raises SettingError for a CPU that is in no row."""

    language = "llvm"

    def __init__(self, name: str, cpu: str = "") -> None:
        self.name = name
        self.cpu = cpu or cpu_wanted()
        self._cpu = cpu_named(self.cpu) if self.cpu else host_cpu()
        self._attributes = _attributes(self._cpu, is_host=not self.cpu)

    def caps(self) -> Caps:
        return host_caps(self._cpu)

    def fitted(self, properties: Mapping[str, str | int]) -> LlvmTarget:
        return self

    def emit(self, kernel: Kernel) -> Code:
        means = failures.failures_of(kernel)
        code = Code(self.name, kernel.name, None, kernel.params, kernel.arena_bytes, means)
        features = self._cpu.features
        text = llvm_module.module(
            kernel, code.symbol, self._attributes, features, has_lines=debugger_wanted()
        )
        return replace(code, payload=text, needs=features)


class ParallelLlvmTarget(LlvmTarget):
    """Emits LLVM IR for all cores that the process may use."""

    def caps(self) -> Caps:
        return replace(super().caps(), threads=num_threads())


FRAMES = '"frame-pointer"="all"'
"""A register points to a function's frame and walks through no array: Intel's processors with AMX are slow to
load from where that register points, perhaps since they take it for the stack. Products took 1.1 to 1.25
times as long where it went through their rows. One register fewer slowed no kernel of the benchmarks."""


def _attributes(cpu: Cpu, is_host: bool) -> str:
    """Of every function. For the host itself the driver adds all that it can do, otherwise there is only what
    the row has."""
    always = f'nounwind {FRAMES} "prefer-vector-width"="{8 * cpu.caps.vector_bytes}"'
    if is_host:
        return always
    features = ",".join(f"+{feature}" for feature in cpu.features)
    return f'{always} "target-cpu"="generic" "target-features"="{features}"'
