"""lifetimes: temporaries in the arena get offsets; two that are never alive together share bytes.

    t (800 bytes) used by statements 0-1, u (400 bytes) by 1-2, v (800 bytes) by 2-3
        ->  t at 0, u at 832, v at 0, arena of 1232 bytes

Statements are numbered outer before inner, in program order. A temporary is alive from the first to the
last statement that uses it, as the innermost body around all its uses sees them; but throughout the
outermost loop if a value may pass from one iteration to another, and on GPUs if it is the condition of a
loop, which all kernels of that may look at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from ...frozen import replace, slotted
from ...ir.code import Caps
from ...ir.expr import Load
from ...ir.loops import Kernel, LoopKind, Place, PlaceKind, While, walk_statements
from ...ir.tensor import Tensor
from ..analysis.uses import Path, Use, common_path, makes_anew, uses_of_temporaries

__all__ = ["ALIGNMENT", "lifetimes"]

ALIGNMENT = 64
"""Bytes: a cache line, and the widest vector."""

Life = tuple[int, int]


def lifetimes(kernel: Kernel, caps: Caps) -> Kernel:
    """The kernel with its arena laid out, and the scratch memory of the threads."""
    kinds = (PlaceKind.ARENA, PlaceKind.SCRATCH)
    if not any(place.kind in kinds for place in kernel.placement.values()):
        return kernel
    uses = uses_of_temporaries(kernel)
    conditions = _conditions(kernel) if caps.gpu else frozenset()
    placement = {tensor: place for tensor, place in kernel.placement.items() if tensor in uses}
    alive = {
        tensor: _life(uses[tensor], place, tensor in conditions)
        for tensor, place in placement.items()
        if place.kind in kinds
    }
    layouts = {kind: _Layout() for kind in kinds}
    for tensor, life in sorted(alive.items(), key=lambda item: item[1][0]):
        layout = layouts[placement[tensor].kind]
        placement[tensor] = replace(placement[tensor], offset=layout.allocate(tensor.nbytes, life))
    arena, scratch = (layouts[kind].size for kind in kinds)
    size = _rounded(arena) + _rounded(scratch) if scratch else arena
    if placement == kernel.placement and size == kernel.arena_bytes:
        return kernel
    note = f"lifetimes: temporaries in the workspace: {len(alive)}, which share {size} bytes"
    return replace(kernel, placement=placement, arena_bytes=size, notes=(*kernel.notes, note))


def _conditions(kernel: Kernel) -> frozenset[Tensor]:
    """Cells that decide whether loops of the host go on: all kernels of these may look at them."""
    loops = (stmt for stmt in walk_statements(kernel.body) if isinstance(stmt, While))
    return frozenset(loop.condition.tensor for loop in loops if isinstance(loop.condition, Load))


def _life(uses: Sequence[Use], place: Place, is_condition: bool) -> Life:
    common = common_path(use.path for use in uses)
    if common and (is_condition or not _restarts(uses, common, place)):
        return common[0].first, common[0].last
    first, last = _seen_from(uses[0], common), _seen_from(uses[-1], common)
    return first[0], last[1]


def _restarts(uses: Sequence[Use], common: Path, place: Place) -> bool:
    """Whether an iteration of the loops around all uses is over with the tensor before the next starts; a
    thread takes one after the other."""
    loops = [frame.loop for frame in common if frame.loop is not None]
    if place.kind is PlaceKind.SCRATCH:
        loops = [loop for loop in loops if loop.grain is None]
    in_order = all(loop.kind is LoopKind.SEQUENTIAL for loop in loops)
    one_shape = all(use.tensor is use.tensor.storage for use in uses)
    return in_order and one_shape and makes_anew(uses, common, range(uses[0].tensor.rank))


def _seen_from(use: Use, common: Path) -> Life:
    """The numbers of the statement of the common body that holds a use."""
    if len(use.path) == len(common):
        return use.at, use.at
    frame = use.path[len(common)]
    return frame.first, frame.last


@slotted
class _Layout:
    """Blocks by offset; each allocation takes the first gap between the blocks that are alive."""

    size: int = 0
    blocks: list[tuple[int, int, int]] = field(default_factory=list)

    def allocate(self, size: int, life: Life) -> int:
        """An offset for `size` bytes; calls come in order of the first statement of `life`."""
        self.blocks = [block for block in self.blocks if block[2] >= life[0]]
        rounded = _rounded(max(size, 1))
        offset = 0
        for start, end, _ in self.blocks:
            if start - offset >= rounded:
                break
            offset = max(offset, end)
        self.blocks.append((offset, offset + rounded, life[1]))
        self.blocks.sort()
        self.size = max(self.size, offset + size)
        return offset


def _rounded(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT
