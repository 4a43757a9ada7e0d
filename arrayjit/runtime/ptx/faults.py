"""What a kernel can do wrong. Each fault names the kernel, the instruction, and the first thread that it met.

Operations raise a fault with the lane alone; `located` gives it the rest on its way out.
"""

from __future__ import annotations

from ...errors import CompilerBug
from ...frozen import frozen

__all__ = [
    "BadAddress",
    "BadLaunch",
    "DivergentBarrier",
    "DoubleStore",
    "Fault",
    "GlobalRace",
    "InactiveLane",
    "InvalidPtx",
    "Misaligned",
    "Place",
    "Race",
    "SharedRace",
    "Trapped",
    "Unending",
    "UnfinishedCopy",
    "UninitialisedRead",
    "UnknownInstruction",
    "UseAfterFree",
]


@frozen
class Place:
    """An instruction, and the thread that was at it."""

    kernel: str
    line: int
    text: str
    block: tuple[int, int, int] | None = None
    thread: tuple[int, int, int] | None = None

    def __str__(self) -> str:
        who = f" by thread {self.thread} of block {self.block}" if self.thread is not None else ""
        return f"line {self.line} of its PTX{who}: {self.text}"


class Fault(CompilerBug):
    """A mistake in a kernel. `place` is None until the interpreter has added it."""

    def __init__(self, what: str, *, lane: int | None = None, place: Place | None = None) -> None:
        super().__init__(
            what if place is None else f"{what}\n  at {place}",
            stage="" if place is None else f"kernel {place.kernel}",
        )
        self.what = what
        self.lane = lane
        self.place = place

    def located(self, place: Place) -> Fault:
        """The same fault with the place where it happened."""
        return type(self)(self.what, lane=self.lane, place=place)


class InvalidPtx(Fault):
    """Text that is no PTX, or names something that it does not define."""


class UnknownInstruction(Fault, NotImplementedError):
    """An instruction, or a form of one, that the interpreter does not know."""


class BadLaunch(Fault):
    """A launch that hardware would refuse: sizes, shared memory, arguments."""


class BadAddress(Fault):
    """An access outside every allocation or array."""


class UseAfterFree(BadAddress):
    """An access to memory that was given back."""


class Misaligned(Fault):
    """An address that is no multiple of the size of its access."""


class Race(Fault):
    """Two threads meet at a byte, one of them writes, and nothing orders them."""


class SharedRace(Race):
    """A race in shared memory: mostly a barrier that is missing."""


class GlobalRace(Race):
    """A race in global memory."""


class DoubleStore(Race):
    """Two threads write one byte, and nothing orders them."""


class DivergentBarrier(Fault):
    """A barrier that some of its threads do not reach, or threads of a block at different barriers."""


class InactiveLane(Fault):
    """A warp's operation that names a lane which does not take part, or reads one."""


class UninitialisedRead(Fault):
    """A read of shared memory that no thread has written."""


class UnfinishedCopy(Fault):
    """Shared memory touched while an asynchronous copy fills it, or a copy that was never waited for."""


class Unending(Fault):
    """More instructions than the launch was given."""


class Trapped(Fault):
    """`trap`, a failed assertion, or a function of the device's runtime that is not simulated."""
