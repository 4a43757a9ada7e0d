"""The targets that emit LLVM IR: what the hardware can do, and a Kernel as text (`llvm_module`)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ..ir.code import Caps
from ..late import Late
from ..settings import debugger_wanted, num_threads
from .host import Cpu
from .host_target import HostTarget

if TYPE_CHECKING:
    from ..ir.loops import Kernel
    from . import llvm_module
else:
    llvm_module = Late("arrayjit.targets.llvm_module")

__all__ = ["LlvmTarget", "ParallelLlvmTarget"]


class LlvmTarget(HostTarget):
    """Emits LLVM IR for one core."""

    language = "llvm"

    def __init__(self, name: str, cpu: str = "") -> None:
        super().__init__(name, cpu)
        self._attributes = _attributes(self._cpu, is_host=not self.cpu)

    def text(self, kernel: Kernel, symbol: str) -> str:
        features, has_lines = self._cpu.features, debugger_wanted()
        return llvm_module.module(kernel, symbol, self._attributes, features, has_lines=has_lines)


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
