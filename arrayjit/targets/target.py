"""What every target is: something that turns a Kernel into Code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from ..ir.code import Caps, Code

if TYPE_CHECKING:
    from ..ir.loops import Kernel

__all__ = ["Target"]


class Target(Protocol):
    """An emitter. `name` is the row of the table of backends that its code belongs to, `cpu` the CPU that it
    was asked to emit for, "" for the one that is here. `language` is what code is text of, "" for none."""

    name: str
    cpu: str
    language: str

    def caps(self) -> Caps:
        """What the hardware that the code is for can do."""

    def fitted(self, properties: Mapping[str, str | int]) -> Target:
        """The emitter that plans for a device with these static properties, unless it was told what to plan
        for. Raises BackendUnavailable for a device that its code cannot run on."""

    def emit(self, kernel: Kernel) -> Code: ...
