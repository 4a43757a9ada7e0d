"""The targets that emit C11: what the hardware can do, and a Kernel as text (`c_module`)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ..ir.code import Caps
from ..late import Late
from ..settings import num_threads
from .host_target import HostTarget

if TYPE_CHECKING:
    from ..ir.loops import Kernel
    from . import c_module
else:
    c_module = Late("arrayjit.targets.c_module")

__all__ = ["CTarget", "ParallelCTarget"]


class CTarget(HostTarget):
    """Emits C11 for one core."""

    language = "c"

    def caps(self) -> Caps:
        return replace(super().caps(), packed=(), transposes=False, small_floats=())  # C has no word for them

    def text(self, kernel: Kernel, symbol: str) -> str:
        return c_module.module(kernel, symbol)


class ParallelCTarget(CTarget):
    """Emits C11 for all cores that the process may use."""

    def caps(self) -> Caps:
        return replace(super().caps(), threads=num_threads())
