"""How many blocks of a kernel fit on a multiprocessor, and what they run out of.

The numbers are those of the table "Technical Specifications per Compute Capability" of NVIDIA's CUDA C++
Programming Guide, the rules those of its occupancy calculator (`cuda_occupancy.h`): registers are handed out
to warps in units of 256, from four parts of the register file, shared memory to blocks in units of 128 bytes,
of which the system keeps 1 KiB for itself.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...frozen import frozen

__all__ = ["LIMITS", "Occupancy", "SharedOut", "occupancy"]

WARP = 32
REGISTERS = 64 * 1024
"""Of a multiprocessor, of any of the table."""
REGISTER_UNIT, PARTS = 256, 4
SHARED_UNIT, RESERVED = 128, 1024
"""Bytes."""


@frozen
class SharedOut:
    """What the blocks on a multiprocessor share out: so many warps, blocks, and bytes of shared memory."""

    warps: int
    blocks: int
    shared_bytes: int


LIMITS: Mapping[str, SharedOut] = {
    "sm_80": SharedOut(64, 32, 164 * 1024),
    "sm_86": SharedOut(48, 16, 100 * 1024),
    "sm_89": SharedOut(48, 24, 100 * 1024),
    "sm_90": SharedOut(64, 32, 228 * 1024),
    "sm_100": SharedOut(64, 32, 228 * 1024),
    "sm_103": SharedOut(64, 32, 228 * 1024),
    "sm_120": SharedOut(48, 24, 100 * 1024),
    "sm_121": SharedOut(48, 24, 100 * 1024),
}
"""By compute capability: A100; RTX 30; RTX 40; H100 and H200; B200; B300; RTX 50; GB10."""


@frozen
class Occupancy:
    """So many blocks of a kernel fit on a multiprocessor, their warps of all that it has room for, because of
    `limit`: "warps", "blocks", "registers" or "shared memory"."""

    blocks: int
    warps: int
    most_warps: int
    limit: str

    @property
    def fraction(self) -> float:
        return self.warps / self.most_warps

    def waves(self, blocks: int, multiprocessors: int) -> float:
        """How many times a GPU of so many multiprocessors has to be filled for a grid of so many blocks."""
        return blocks / (self.blocks * multiprocessors) if self.blocks else 0.0


def occupancy(arch: str, threads: int, registers: int, shared_bytes: int) -> Occupancy | None:
    """Of a kernel whose blocks have so many threads, of so many registers each, and so many bytes of shared
    memory together; None for an architecture that is in no row."""
    limits = LIMITS.get(arch)
    if limits is None:
        return None
    warps = _units(threads, WARP)
    of_a_warp = _units(registers * WARP, REGISTER_UNIT) * REGISTER_UNIT
    shared = _units(shared_bytes + RESERVED, SHARED_UNIT) * SHARED_UNIT
    room = {
        "warps": limits.warps // warps,
        "blocks": limits.blocks,
        "registers": REGISTERS // PARTS // of_a_warp * PARTS // warps if registers else limits.blocks,
        "shared memory": limits.shared_bytes // shared,
    }
    limit = min(room, key=room.__getitem__)
    return Occupancy(room[limit], room[limit] * warps, limits.warps, limit)


def _units(amount: int, unit: int) -> int:
    return -(-amount // unit)
