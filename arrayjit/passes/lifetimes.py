"""Temporaries in the arena get offsets; two that are never alive together share bytes.

    t (800 bytes) used by statements 0-1, u (400 bytes) by 1-2, v (800 bytes) by 2-3
        ->  t at 0, u at 832, v at 0, arena of 1232 bytes

Statements are numbered outer before inner, in program order. A temporary is alive from the first to the
last statement that uses it, as the innermost body around all its uses sees them; but throughout the
outermost loop if a value may pass from one iteration to another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from ..ir.code import Caps
from ..ir.loops import Kernel, LoopKind, PlaceKind
from .uses import Path, Use, common_path, makes_anew, uses_of_temporaries

__all__ = ["ALIGNMENT", "lifetimes"]

ALIGNMENT = 64
"""Bytes: a cache line, and the widest vector."""

Life = tuple[int, int]


def lifetimes(kernel: Kernel, caps: Caps) -> Kernel:
    """The kernel with its arena laid out."""
    arena = [tensor for tensor, place in kernel.placement.items() if place.kind is PlaceKind.ARENA]
    if not arena:
        return kernel
    uses = uses_of_temporaries(kernel)
    alive = {tensor: _life(uses[tensor]) for tensor in arena if tensor in uses}
    layout = _Layout()
    placement = {tensor: place for tensor, place in kernel.placement.items() if tensor in uses}
    for tensor, life in sorted(alive.items(), key=lambda item: item[1][0]):
        placement[tensor] = replace(placement[tensor], offset=layout.allocate(tensor.nbytes, life))
    if placement == kernel.placement and layout.size == kernel.arena_bytes:
        return kernel
    note = f"lifetimes: temporaries in the arena: {len(alive)}, which share {layout.size} bytes"
    return replace(kernel, placement=placement, arena_bytes=layout.size, notes=(*kernel.notes, note))


def _life(uses: Sequence[Use]) -> Life:
    common = common_path(use.path for use in uses)
    if common and not _restarts(uses, common):
        return common[0].first, common[0].last
    first, last = _seen_from(uses[0], common), _seen_from(uses[-1], common)
    return first[0], last[1]


def _restarts(uses: Sequence[Use], common: Path) -> bool:
    """Whether an iteration of the loops around all uses is over with the tensor before the next starts."""
    in_order = all(frame.loop is None or frame.loop.kind is LoopKind.SEQUENTIAL for frame in common)
    one_shape = all(use.tensor is use.tensor.storage for use in uses)
    return in_order and one_shape and makes_anew(uses, common, range(uses[0].tensor.rank))


def _seen_from(use: Use, common: Path) -> Life:
    """The numbers of the statement of the common body that holds a use."""
    if len(use.path) == len(common):
        return use.at, use.at
    frame = use.path[len(common)]
    return frame.first, frame.last


@dataclass(slots=True)
class _Layout:
    """Blocks by offset; each allocation takes the first gap between the blocks that are alive."""

    size: int = 0
    blocks: list[tuple[int, int, int]] = field(default_factory=list)

    def allocate(self, size: int, life: Life) -> int:
        """An offset for `size` bytes; calls come in order of the first statement of `life`."""
        self.blocks = [block for block in self.blocks if block[2] >= life[0]]
        rounded = -(-max(size, 1) // ALIGNMENT) * ALIGNMENT
        offset = 0
        for start, end, _ in self.blocks:
            if start - offset >= rounded:
                break
            offset = max(offset, end)
        self.blocks.append((offset, offset + rounded, life[1]))
        self.blocks.sort()
        self.size = max(self.size, offset + size)
        return offset
