"""What a row of the table of passes says."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum
from typing import Generic, TypeVar, Union

from ..frozen import frozen
from ..ir.code import Caps
from ..late import Late

__all__ = ["BOTH", "CPU", "GPU", "Hardware", "Pass"]

Before = TypeVar("Before")
After = TypeVar("After")


class Hardware(Enum):
    """What a pass is for."""

    CPU = "cpu"
    GPU = "gpu"


BOTH = (Hardware.CPU, Hardware.GPU)
CPU = (Hardware.CPU,)
GPU = (Hardware.GPU,)


@frozen
class Pass(Generic[Before, After]):
    """One row. `step` is the function, or the name of the one in `gpu/`."""

    step: Union[Callable[[Before, Caps], After], str]
    after: tuple[str, ...] = ()
    why: str = ""
    explained: Callable[[Before, After, Caps], Iterable[str]] | None = None
    on: tuple[Hardware, ...] = CPU
    optional: bool = False

    def suits(self, caps: Caps) -> bool:
        """Is it for such hardware?"""
        return (Hardware.CPU if caps.gpu is None else Hardware.GPU) in self.on

    @property
    def name(self) -> str:
        return self.step if isinstance(self.step, str) else self.step.__name__

    @property
    def run(self) -> Callable[[Before, Caps], After]:
        if not isinstance(self.step, str):
            return self.step
        found: Callable[[Before, Caps], After] = getattr(Late(f"{__package__}.gpu.{self.step}"), self.step)
        return found
