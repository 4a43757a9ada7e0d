"""Merge buffers: how one context hands a tensor's values to code of another.

A stream has merge buffers, numbered from 0. A transfer fills one, in the order of the stream's work: with a
copy of the source, or, streaming, with nothing but the place of the source's own buffer. Code that was linked
to read it does so when it runs. What a merge buffer holds is checked when code is linked, against what
the context's own transfers will have put there, and again when it is scheduled.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum

from ..errors import MergeMismatch
from ..ir.tensor import Tensor
from .life import Life
from .stream import Buffer

__all__ = ["Held", "MergeBuffers", "MergeUse", "check_merges"]


class MergeUse(Enum):
    """Where a transfer goes."""

    NO = "no"  # into the tensor's own buffer
    COPY = "copy"  # into the merge buffer
    STREAMING = "streaming"  # nowhere: the merge buffer is the source's own buffer


@dataclass(frozen=True, eq=False)
class Held:
    """What a merge buffer holds. `check` raises DeviceError when that must not be used any more. The slabs of
    `life`, if it is the buffer of a context, stay for as long as this is held."""

    tensor: Tensor
    buffer: Buffer
    check: Callable[[], None]
    life: Life | None = None

    def __post_init__(self) -> None:
        if self.life is not None:
            weakref.finalize(self, self.life.end).atexit = False


class MergeBuffers:
    """The merge buffers of a stream, as they will be when the work submitted so far is done."""

    def __init__(self, allocate: Callable[[int], Buffer]) -> None:
        self.held: dict[int, Held] = {}
        self._allocate = allocate
        self._own: dict[int, Buffer] = {}

    def room(self, slot: int, nbytes: int) -> Buffer:
        """The buffer for copies into a slot. One that has become too small stays with the work that was
        submitted for it."""
        buffer = self._own.get(slot)
        if buffer is None or buffer.nbytes < nbytes:
            buffer = self._own[slot] = self._allocate(nbytes)
        return buffer

    def take(self, routine: str, stream: str, wanted: Mapping[int, Tensor]) -> tuple[Held, ...]:
        """What a routine reads that is scheduled now. Raises MergeMismatch if it is something else."""
        there = {slot: held.tensor for slot, held in self.held.items()}
        check_merges(routine, stream, wanted, there, "holds")
        taken = tuple(self.held[slot] for slot in wanted)
        for held in taken:
            held.check()
        return taken


def check_merges(
    routine: str, stream: str, wanted: Mapping[int, Tensor], there: Mapping[int, Tensor], verb: str
) -> None:
    """Raises MergeMismatch, which names both tensors, where a merge buffer is not what a routine reads."""
    for slot, tensor in wanted.items():
        found = there.get(slot)
        if found is not tensor:
            raise MergeMismatch(
                f"{routine!r} reads {tensor.label} from merge buffer {slot} of {stream}, "
                f"which {verb} {'nothing' if found is None else found.label}",
                fix="transfer the tensor into the merge buffer first, and link into the transfer's context",
            )
