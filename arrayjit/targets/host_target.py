"""What the targets for the CPU that is here have in common."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from ..ir.code import Caps, Code
from ..late import Late
from ..settings import cpu_wanted
from .host import cpu_named, host_caps, host_cpu

if TYPE_CHECKING:
    from ..ir.loops import Kernel
    from . import failures
else:
    failures = Late("arrayjit.targets.failures")

__all__ = ["HostTarget"]


class HostTarget:
    """Emits `text` for one core of the host's CPU, or of `cpu`, a row of the table in `host`. By default the
    setting decides. Raises SettingError for a CPU that is in no row."""

    def __init__(self, name: str, cpu: str = "") -> None:
        self.name = name
        self.cpu = cpu or cpu_wanted()
        self._cpu = cpu_named(self.cpu) if self.cpu else host_cpu()

    def caps(self) -> Caps:
        return host_caps(self._cpu)

    def fitted(self, properties: Mapping[str, str | int]) -> HostTarget:
        return self

    def text(self, kernel: Kernel, symbol: str) -> str:
        """The code that defines a function of that name."""
        raise NotImplementedError

    def emit(self, kernel: Kernel) -> Code:
        means = failures.failures_of(kernel)
        code = Code(self.name, kernel.name, None, kernel.params, kernel.arena_bytes, means)
        return replace(code, payload=self.text(kernel, code.symbol), needs=self._cpu.features)
