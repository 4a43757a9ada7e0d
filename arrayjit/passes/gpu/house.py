"""house: where temporaries live on a GPU.

    for i in grid(0, 64):
        for j in block(0, 1000, lanes=256):
            t[j] = exp(x[i, j])                 t is in memory that the threads of a block share
        ...
        for j in block(0, 1000, lanes=256):
            y[i, j] = divide(t[j], s)

What one iteration of one thread makes and uses is its own, and so is what a thread finds at its number, the
first index, and nowhere else. What the threads of a block hand to one another is
shared memory while there is room. A temporary that every block needs for itself, too large for that, gets an
axis more, and is in the arena, as is all that launches hand to one another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace

from ...frozen import frozen, slotted
from ...ir.code import Caps, GpuCaps
from ...ir.dtype import I64
from ...ir.expr import Apply, Expr, Gather, Index, Load
from ...ir.index import Affine
from ...ir.loops import For, Kernel, LoopKind, Place, PlaceKind, Stmt, Store, walk_statements
from ...ir.ops import op
from ...ir.tensor import Tensor
from ...ir.walk import transform_statements
from ..analysis.uses import Use, common_path, uses_of_temporaries
from .crossing import block_threads

__all__ = ["house"]

OWN_BYTES = 1024
"""What a thread may keep in an array of its own."""


def house(kernel: Kernel, caps: Caps) -> Kernel:
    """The kernel with its temporaries where a GPU finds them."""
    if caps.gpu is None or not kernel.placement:
        return kernel
    housing = _Housing(caps.gpu)
    for storage, uses in uses_of_temporaries(kernel).items():
        kind = kernel.placement[storage].kind
        if kind not in (PlaceKind.SHARED, PlaceKind.OWN):
            housing.decide(storage, uses, kind is PlaceKind.SCRATCH)
    placement = {**kernel.placement, **housing.placement}
    body = housing.body(kernel.body) if housing.wider else kernel.body
    for storage, wider in housing.wider.items():
        placement[wider.tensor] = placement.pop(storage)
    if body is kernel.body and placement == kernel.placement:
        return kernel
    return replace(kernel, body=body, placement=placement)


@frozen
class _Wider:
    """The tensor with an axis for the iterations of a grid, and its flat form, of which one has so many
    cells."""

    tensor: Tensor
    grid: For
    flat: Tensor
    cells: int

    @property
    def row(self) -> Affine:
        """The number of the grid's iteration, which has step 1."""
        return self.grid.symbol - self.grid.lo

    def cell(self, tensor: Tensor, index: tuple[Affine, ...]) -> tuple[Tensor, tuple[Affine, ...]]:
        if tensor.base is None:
            return self.tensor, (self.row, *index)
        return self.flat, (self.row * self.cells + index[0],)

    def gathered(self, tensor: Tensor, index: tuple[Expr, ...]) -> Gather:
        if tensor.base is None:
            return Gather(self.tensor, (Index(self.row), *index))
        return Gather(self.flat, (Apply(op("add"), (Index(self.row * self.cells), index[0]), I64),))


@slotted
class _Housing:
    """`left` is the shared memory that a grid has left."""

    gpu: GpuCaps
    left: dict[int, int] = field(default_factory=dict)
    placement: dict[Tensor, Place] = field(default_factory=dict)
    wider: dict[Tensor, _Wider] = field(default_factory=dict)

    def decide(self, storage: Tensor, uses: Sequence[Use], own: bool) -> None:
        """Where a temporary lives; `own`: every iteration of the grid around it makes it anew."""
        common = [frame.loop for frame in common_path(use.path for use in uses) if frame.loop is not None]
        grid = next((loop for loop in common if loop.kind is LoopKind.GRID), None)
        if grid is None:
            self.put(storage, PlaceKind.ARENA, "launches hand it to one another")
            return
        one = grid.trips == 1
        size = storage.nbytes if storage.has_fixed_shape else self.gpu.shared_bytes
        if not own and not one:
            self.put(storage, PlaceKind.ARENA, "each iteration of a grid has cells of its own")
        elif any(loop.kind is LoopKind.BLOCK and loop.trips == 1 for loop in common) and size <= OWN_BYTES:
            self.put(storage, PlaceKind.STACK, "one thread makes and uses it")
        elif _is_by_thread(storage, uses) and size <= OWN_BYTES * storage.shape[0].offset:
            self.put(storage, PlaceKind.OWN, "each thread makes and uses what has its number")
        elif block_threads(grid) == 1 or not _is_shared(grid):
            if size <= OWN_BYTES:
                self.put(storage, PlaceKind.STACK, "a thread makes and uses it")
            else:
                self.widen(storage, grid, "it is too large for a thread")
        elif self.takes(grid, size):
            self.put(storage, PlaceKind.SHARED, "the threads of a block make and use it")
        else:
            self.widen(storage, grid, "it is too large for the memory of a block")

    def widen(self, storage: Tensor, grid: For, why: str) -> None:
        """Put a temporary in the arena, once for each iteration of the grid."""
        self.put(storage, PlaceKind.ARENA, why)
        if grid.trips == 1:
            return
        count = grid.hi - grid.lo
        shape = (count, *storage.shape)
        wider = Tensor(storage.label, shape, storage.dtype)
        self.wider[storage] = _Wider(wider, grid, wider.flat_form(), storage.size)

    def put(self, storage: Tensor, kind: PlaceKind, reason: str) -> None:
        self.placement[storage] = Place(kind, reason)

    def takes(self, grid: For, size: int) -> bool:
        """Take so many bytes of a block's memory, if they are left."""
        left = self.left.get(id(grid), self.gpu.array_bytes)
        rounded = -(-size // self.gpu.access_bytes) * self.gpu.access_bytes
        if rounded > left:
            return False
        self.left[id(grid)] = left - rounded
        return True

    def body(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        return transform_statements(body, self.read, self.stored)

    def stored(self, stmt: Stmt) -> Stmt:
        if not isinstance(stmt, Store) or stmt.tensor.storage not in self.wider:
            return stmt
        tensor, index = self.wider[stmt.tensor.storage].cell(stmt.tensor, stmt.index)
        return replace(stmt, tensor=tensor, index=index)

    def read(self, expr: Expr) -> Expr:
        match expr:
            case Load(tensor=tensor, index=index) if tensor.storage in self.wider:
                return Load(*self.wider[tensor.storage].cell(tensor, index))
            case Gather(tensor=tensor, index=computed) if tensor.storage in self.wider:
                return self.wider[tensor.storage].gathered(tensor, computed)
            case _:
                return expr


def _is_by_thread(storage: Tensor, uses: Sequence[Use]) -> bool:
    """Does every thread of a block reach only the cells at its own number?"""
    for use in uses:
        threads = [frame.loop for frame in use.path if frame.loop and frame.loop.kind is LoopKind.BLOCK]
        if use.tensor is not storage or not use.index or len(threads) != 1:
            return False
        (loop,) = threads
        numbered = loop.lo == Affine.of(0) and loop.step == 1 and (loop.trips or loop.lanes + 1) <= loop.lanes
        if not numbered or use.index[0] != Affine.of(loop.symbol):
            return False
    return storage.shape[0].is_constant


def _is_shared(grid: For) -> bool:
    """Do the threads of a block take an iteration of the grid together?"""
    return any(isinstance(stmt, For) and stmt.kind is LoopKind.BLOCK for stmt in walk_statements(grid.body))
