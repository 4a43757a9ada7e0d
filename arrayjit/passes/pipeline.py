"""THE table of passes, in the order in which they run.

A pass is a pure function in a file of its name; adding one is adding a row. `after` names the passes that
must have run and `why` says what would go wrong otherwise. A pass that changes nothing returns the very
object it was given.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from ..ir.assign import Computation
from ..ir.code import Caps
from ..ir.loops import Kernel
from .expand import expand
from .lower import lower
from .simplify import simplify
from .vectorise import vectorise

__all__ = ["LOWERING", "ON_ASSIGNMENTS", "ON_LOOPS", "Pass"]

Before = TypeVar("Before")
After = TypeVar("After")


@dataclass(frozen=True, slots=True)
class Pass(Generic[Before, After]):
    """One row."""

    run: Callable[[Before, Caps], After]
    after: tuple[str, ...] = ()
    why: str = ""

    @property
    def name(self) -> str:
        return self.run.__name__


ON_ASSIGNMENTS: tuple[Pass[Computation, Computation], ...] = ()

LOWERING: Pass[Computation, Kernel] = Pass(lower)

ON_LOOPS: tuple[Pass[Kernel, Kernel], ...] = (
    Pass(expand, after=("lower",), why="targets know primitive ops only"),
    Pass(simplify, after=("expand",), why="definitions leave constants to fold"),
    Pass(vectorise, after=("simplify",), why="it weighs what is left of the body"),
)
