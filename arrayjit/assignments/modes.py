"""Memory modes: what is decided about where a node's values live. Decisions only get finer.

    undecided -> effectively constant -> virtual | materialized
              -> never virtual -> device only -> local | on device
                               -> materialized -> on device

What two decisions have in common is the coarsest mode that refines both: a node that is device only and
materialized is on device; one that is never virtual cannot become virtual.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from functools import cache

from ..errors import Location
from ..frozen import frozen

__all__ = ["Decision", "Mode", "common"]


class Mode(Enum):
    """Where a node's values live."""

    UNDECIDED = "undecided"
    EFFECTIVELY_CONSTANT = "effectively constant"  # never changes: recomputed, or stored once
    VIRTUAL = "virtual"  # nowhere: computed again where it is read
    NEVER_VIRTUAL = "never virtual"  # stored, somewhere
    DEVICE_ONLY = "device only"  # stored, and no business of the host
    LOCAL = "local"  # stored while one call of a routine runs
    MATERIALIZED = "materialized"  # wanted in the context
    ON_DEVICE = "on device"  # in a buffer of the context

    def refines(self, other: Mode) -> bool:
        """Whether everything that `other` says is said by this mode too."""
        return self is other or any(self.refines(finer) for finer in _FINER[other])


_FINER: Mapping[Mode, tuple[Mode, ...]] = {
    Mode.UNDECIDED: (Mode.EFFECTIVELY_CONSTANT, Mode.NEVER_VIRTUAL),
    Mode.EFFECTIVELY_CONSTANT: (Mode.VIRTUAL, Mode.MATERIALIZED),
    Mode.NEVER_VIRTUAL: (Mode.DEVICE_ONLY, Mode.MATERIALIZED),
    Mode.DEVICE_ONLY: (Mode.LOCAL, Mode.ON_DEVICE),
    Mode.MATERIALIZED: (Mode.ON_DEVICE,),
    Mode.VIRTUAL: (),
    Mode.LOCAL: (),
    Mode.ON_DEVICE: (),
}


@cache
def common(one: Mode, other: Mode) -> Mode | None:
    """The coarsest mode that refines both; None when they contradict each other."""
    both = [mode for mode in Mode if mode.refines(one) and mode.refines(other)]
    return next((mode for mode in both if all(finer.refines(mode) for finer in both)), None)


@frozen
class Decision:
    """A step in the life of a node: the mode that was asked for, by whom, and where."""

    mode: Mode
    why: str
    loc: Location

    def __str__(self) -> str:
        return f"{self.mode.value}: {self.why} ({self.loc})"
