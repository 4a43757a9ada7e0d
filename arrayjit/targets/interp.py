"""The reference target: the code is the Kernel itself."""

from __future__ import annotations

from collections.abc import Mapping

from ..ir.code import Caps, Code
from ..ir.loops import Kernel
from .failures import failures_of

__all__ = ["InterpTarget"]


class InterpTarget:
    """Emits nothing; the driver interprets the Kernel."""

    language = ""

    def __init__(self, name: str) -> None:
        self.name = name
        self.cpu = ""

    def caps(self) -> Caps:
        return Caps()

    def fitted(self, properties: Mapping[str, str | int]) -> InterpTarget:
        return self

    def emit(self, kernel: Kernel) -> Code:
        return Code(self.name, kernel.name, kernel, kernel.params, kernel.arena_bytes, failures_of(kernel))
