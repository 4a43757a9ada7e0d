"""The threads of some blocks of a launch, as arrays: one lane a thread, one array a register.

The lanes of a block are padded to whole warps. Operations work on the active lanes, `lanes`, which is a slice
when all are active: reading a register then copies nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Any, Protocol

import numpy as np

from ...frozen import frozen
from .races import WARP, Clocks, first_stamps
from .types import Array

__all__ = ["SPECIAL", "Copy", "Piece", "Shape", "Space", "Threads", "Triple", "Use"]

Triple = tuple[int, int, int]

_AXES = "xyz"
SPECIAL = {
    **{f"%{name}.{axis}": 32 for name in ("tid", "ntid", "ctaid", "nctaid") for axis in _AXES},
    **{f"%cluster_{name}.{axis}": 32 for name in ("ctaid", "nctaid") for axis in _AXES},
    **{f"%{name}.{axis}": 32 for name in ("clusterid", "nclusterid") for axis in _AXES},
    **dict.fromkeys(("%laneid", "%warpid", "%nwarpid", "%smid", "%nsmid"), 32),
    **dict.fromkeys(("%cluster_ctarank", "%cluster_nctarank"), 32),
    **{f"%lanemask_{name}": 32 for name in ("eq", "lt", "le", "gt", "ge")},
    **dict.fromkeys(("%dynamic_smem_size", "%total_smem_size"), 32),
    "%gridid": 64,
}
"""Registers that the hardware fills: their numbers of bits."""


@frozen
class Shape:
    """The geometry of a launch."""

    grid: Triple
    block: Triple

    @property
    def blocks(self) -> int:
        return self.grid[0] * self.grid[1] * self.grid[2]

    @property
    def threads(self) -> int:
        """Of a block."""
        return self.block[0] * self.block[1] * self.block[2]

    @property
    def warps(self) -> int:
        """Of a block."""
        return -(-self.threads // WARP)

    def names(self, block: int, thread: int) -> tuple[Triple, Triple]:
        """The coordinates of a block and of a thread in it."""
        return _unravelled(block, self.grid), _unravelled(thread, self.block)


def _unravelled(number: Any, extents: Triple) -> Any:
    """The three coordinates of a number, or of an array of them."""
    return number % extents[0], number // extents[0] % extents[1], number // (extents[0] * extents[1])


class Use(Enum):
    """What an access does. Strong ones (volatile, relaxed, acquire, release) may meet one another."""

    READ = "read"
    STRONG_READ = "read strongly"
    WRITE = "written"
    STRONG_WRITE = "written strongly"
    ATOMIC = "changed atomically"

    @property
    def is_read(self) -> bool:
        return self in (Use.READ, Use.STRONG_READ)


Piece = tuple[Array, Array, slice | Array]
"""Part of a memory as rows of words; the rows of an access; which of the active lanes they are for."""


class Space(Protocol):
    """A memory that instructions reach."""

    def locate(self, threads: Threads, addresses: Array, nbytes: int, use: Use) -> Iterable[Piece]:
        """Where the `nbytes` at each active lane's address lie, once the access is checked and noted."""


@frozen
class Copy:
    """Copies that lanes have begun: where to, what, and the number of each lane's group."""

    lanes: Array
    offsets: Array
    values: Array
    groups: Array


class Threads:
    """Blocks `first` up to `first + blocks` of a launch, while they run."""

    def __init__(
        self,
        shape: Shape,
        first: int,
        blocks: int,
        registers: Sequence[Array],
        clocks: Clocks,
        spaces: Mapping[str, Space],
    ) -> None:
        self.shape = shape
        self.first = first
        self.blocks = blocks
        self.clocks = clocks
        self.spaces = spaces
        self.block_lanes = shape.warps * WARP
        self.size = blocks * self.block_lanes
        self.every = np.arange(self.size)
        self.block = self.every // self.block_lanes
        self.warp = self.every // WARP
        self.live = self.every % self.block_lanes < shape.threads
        self.registers = [each[: self.size] for each in registers]
        self.carry = np.zeros(self.size, bool)
        self.groups = np.zeros(self.size, np.int64)
        """How many groups of asynchronous copies each thread has closed."""
        self.copies: list[Copy] = []
        self.steps = 0
        self.lanes: slice | Array = slice(None)
        self.count = self.size
        self._bare_stamps = first_stamps(first, blocks, shape.warps)
        self.stamps = self._bare_stamps.copy()

    def select(self, lanes: Array) -> None:
        """Make these lanes the active ones, given in ascending order."""
        self.count = len(lanes)
        self.lanes = slice(None) if self.count == self.size else lanes

    @property
    def numbers(self) -> Array:
        """The active lanes, counted."""
        return self.every[self.lanes]

    def synchronised(self) -> None:
        """The clocks have moved."""
        self.stamps = self._bare_stamps | self.clocks.time[self.block]

    def fence(self) -> None:
        """The blocks of the active lanes have a fence."""
        self.clocks.fence(np.unique(self.block[self.lanes]))
        self.synchronised()

    def specials(self, dynamic_bytes: int, static_bytes: int) -> dict[str, Array | int]:
        """The values of the special registers, by lane where they differ."""
        within = self.every % self.block_lanes
        lane = within % WARP
        bit = np.uint64(1) << lane.astype(np.uint64)
        values: dict[str, Array | int] = {
            "%laneid": lane,
            "%warpid": within // WARP,
            "%nwarpid": self.shape.warps,
            "%lanemask_eq": bit,
            "%lanemask_lt": bit - 1,
            "%lanemask_le": bit * 2 - 1,
            "%lanemask_ge": (1 << 32) - bit,
            "%lanemask_gt": (1 << 32) - 2 * bit,
            "%smid": 0,
            "%nsmid": 1,
            "%gridid": 1,
            "%cluster_ctarank": 0,
            "%cluster_nctarank": 1,
            "%dynamic_smem_size": dynamic_bytes,
            "%total_smem_size": dynamic_bytes + static_bytes,
        }
        threads = _unravelled(within, self.shape.block)
        blocks = _unravelled(self.block + self.first, self.shape.grid)
        for number, axis in enumerate(_AXES):
            values[f"%tid.{axis}"] = threads[number]
            values[f"%ntid.{axis}"] = self.shape.block[number]
            values[f"%ctaid.{axis}"] = values[f"%clusterid.{axis}"] = blocks[number]
            values[f"%nctaid.{axis}"] = values[f"%nclusterid.{axis}"] = self.shape.grid[number]
            values[f"%cluster_ctaid.{axis}"] = 0
            values[f"%cluster_nctaid.{axis}"] = 1
        return values
