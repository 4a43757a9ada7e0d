"""What a target hands to the runtime, and what a pass may ask about the hardware: plain data, so that
`passes`, `targets` and `runtime` need not know one another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .assign import Param

__all__ = ["Caps", "Code", "Failure"]


@dataclass(frozen=True, slots=True)
class Caps:
    """What the hardware can do, as far as passes care. Sizes are in bytes."""

    vector_bytes: int = 32
    l1_bytes: int = 32 * 1024
    l2_bytes: int = 1024 * 1024
    stack_bytes: int = 16 * 1024
    fma: bool = True


@dataclass(frozen=True, slots=True)
class Failure:
    """What a kernel's status means: status `k` is entry `k - 1` of `Code.failures`."""

    exception: str
    message: str
    file: str
    line: int


@dataclass(frozen=True, slots=True)
class Code:
    """Emitted code of one routine.

    `payload` belongs to the driver of `target` (LLVM IR text, a Kernel for `interp`). `params` are in the
    order of the native call's pointer table; the workspace, if any, follows them.
    """

    target: str
    name: str
    payload: Any
    params: tuple[Param, ...]
    arena_bytes: int = 0
    failures: tuple[Failure, ...] = ()

    @property
    def symbol(self) -> str:
        """The name of the native function. The suffix keeps it apart from library functions: a user may
        well call a function `sin`."""
        return f"{self.name}_kernel"
