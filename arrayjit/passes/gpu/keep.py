"""keep: a block of a GPU reads a row once, 16 bytes at a time, and its threads keep what they need again.

    for i in grid(0, 4096):                   for i in grid(0, 4096):
        m = -inf                                  m = -inf
        for j in block(0, 512, lanes=512):        for t in block(0, 128, lanes=128):
            m = maximum(m, x[i, j])                   for v in vector(0, 4, lanes=4):
        for j in block(0, 512, lanes=512):  ->            k[t, v] = x[i, 4*t + v]
            y[i, j] = subtract(x[i, j], m)                m = maximum(m, k[t, v])
                                                  for t in block(0, 128, lanes=128):
                                                      for v in vector(0, 4, lanes=4):
                                                          y[i, 4*t + v] = subtract(k[t, v], m)

In all loops of one extent over a row a thread has the same cells. What two such loops read from one place,
and temporaries of which each iteration writes and reads one cell, become the threads' own. Rows that are too
long for that are still taken 16 bytes at a time, where memory lies along them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import field, replace

from ...frozen import frozen, slotted
from ...ir.code import Caps, GpuCaps
from ...ir.conditions import compare
from ...ir.dtype import I64
from ...ir.expr import Const, Expr, Index, Load
from ...ir.index import Affine, Symbol, affine
from ...ir.loops import (
    Bind,
    Define,
    For,
    If,
    Kernel,
    LoopKind,
    Place,
    PlaceKind,
    Stmt,
    Store,
    Update,
    walk_statements,
    written_in,
)
from ...ir.tensor import Tensor
from ...ir.walk import expressions, nodes_in, rewrite_bodies, rewrite_loops, transform_statements
from ..analysis.access import loads
from ..analysis.copies import copy_body
from ..analysis.strides import affine_accesses, neighbours, stride
from ..analysis.uses import counts
from .blockwise import MOST_THREADS

__all__ = ["keep"]

CELLS = 8
"""So many cells of a row are worth a thread."""

OWN_BYTES = 256
"""What a thread keeps at most: half of its registers."""

ZERO = Affine.of(0)

Cell = tuple[Tensor, tuple[Affine, ...]]


def keep(kernel: Kernel, caps: Caps) -> Kernel:
    """The kernel with rows in the registers of the threads that work on them."""
    gpu = caps.gpu
    if gpu is None:
        return kernel
    scratch = set(kernel.placed(PlaceKind.SCRATCH))
    placement = dict(kernel.placement)
    notes: list[str] = []

    def keeping(grid: For) -> Sequence[Stmt] | None:
        if grid.kind is not LoopKind.GRID:
            return None
        row = _row_of(grid)
        plan = None if row is None else _planned(row, _own(row, grid, scratch), gpu)
        if row is None or plan is None:
            return (grid,)
        own: dict[Cell, Tensor] = {}
        for tensor, index in plan.own:
            if tensor in scratch:
                placement.pop(tensor, None)
            own[tensor, index] = Tensor(tensor.label, affine((plan.threads, plan.cells)), tensor.dtype)
        placement.update((tensor, Place(PlaceKind.SCRATCH, "a row")) for tensor in own.values())
        notes.append(f"keep: loop {grid.symbol.hint}: {plan}")
        return (_Rewriting(row, plan, own, scratch).statement(grid),)

    body = rewrite_loops(kernel.body, keeping)
    if body is kernel.body:
        return kernel
    return replace(kernel, body=body, placement=placement, notes=(*kernel.notes, *notes))


# what there is


@frozen
class _Row:
    """The body `old` as `new`, where all loops of one extent have the symbol `along`: the phases."""

    old: tuple[Stmt, ...]
    new: tuple[Stmt, ...]
    along: Symbol
    extent: int

    @property
    def phases(self) -> list[For]:
        return [stmt for stmt in self.new if self.is_phase(stmt) and isinstance(stmt, For)]

    def is_phase(self, stmt: Stmt) -> bool:
        return isinstance(stmt, For) and stmt.symbol is self.along


def _row_of(grid: For) -> _Row | None:
    """The row that the threads of a block work on."""
    bodies = [body for body in _bodies(grid.body) if any(map(_extent, body))]
    if grid.lanes != 1 or len(bodies) != 1:
        return None
    (body,) = bodies
    extents = Counter(extent for extent in map(_extent, body) if extent)
    extent = max(extents, key=lambda extent: (extents[extent], extent))
    along = Symbol("j", lower=0, upper=extent)

    def renamed(stmt: Stmt) -> Stmt:
        if not isinstance(stmt, For) or _extent(stmt) != extent:
            return stmt
        return replace(stmt, symbol=along, body=copy_body(stmt.body, {stmt.symbol: Affine.of(along)}, {}))

    return _Row(body, tuple(map(renamed, body)), along, extent)


def _bodies(body: tuple[Stmt, ...]) -> Iterator[tuple[Stmt, ...]]:
    """A body and those in it."""
    inside: list[tuple[Stmt, ...]] = []

    def note(inner: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        inside.append(inner)
        return inner

    yield body
    for stmt in body:
        rewrite_bodies(stmt, note)
    for inner in inside:
        yield from _bodies(inner)


def _extent(stmt: Stmt) -> int:
    """How many iterations a block takes from 0 on, if it is a known number of several; else 0."""
    if not isinstance(stmt, For) or stmt.kind is not LoopKind.BLOCK or stmt.lo != ZERO or stmt.step != 1:
        return 0
    return stmt.trips if stmt.trips and stmt.trips > 1 else 0


# what threads can keep


def _own(row: _Row, grid: For, scratch: Set[Tensor]) -> tuple[Cell, ...]:
    """The temporaries that an iteration makes for itself, and what several phases read from one place."""
    reads: dict[Cell, list[int]] = {}
    cells: dict[Tensor, list[tuple[Affine, ...]]] = {}
    own = {symbol for phase in row.phases for symbol in _introduced(phase)}
    for number, stmt in enumerate(row.new):
        if row.is_phase(stmt):
            for tensor, index, is_store in affine_accesses((stmt,)):
                if tensor in scratch:
                    cells.setdefault(tensor, []).append(index)
                elif not is_store and _is_one(tensor, index, row.along, own):
                    reads.setdefault((tensor, index), []).append(number)
    everywhere = counts((grid,))
    made = [
        (tensor, indices[0])
        for tensor, indices in cells.items()
        if len(set(indices)) == 1
        and len(indices) == everywhere[tensor]
        and _is_one(tensor, indices[0], row.along, own)
    ]
    read = [
        cell for cell, numbers in reads.items() if numbers[0] < numbers[-1] and _stays(row, cell, numbers)
    ]
    return (*made, *read)


def _introduced(phase: For) -> Iterator[Symbol]:
    """The symbols that come up within a phase."""
    for stmt in walk_statements(phase.body):
        if isinstance(stmt, (For, Bind)):
            yield stmt.symbol


def _is_one(tensor: Tensor, index: tuple[Affine, ...], along: Symbol, own: Set[Symbol]) -> bool:
    """Is it one cell in each iteration, and another one in each?"""
    known = not any(symbol in own for position in index for symbol in position.symbols)
    return known and bool(stride(tensor, index, along))


def _stays(row: _Row, cell: Cell, numbers: list[int]) -> bool:
    """Does every phase with these numbers find the same value there, which the first one reads anyway?"""
    tensor, index = cell
    storage = tensor.storage
    first, last = row.new[numbers[0]], row.new[numbers[-1]]
    assert isinstance(first, For)
    assert isinstance(last, For)
    if not any(isinstance(node, Load) and (node.tensor, node.index) == cell for node in nodes_in(first.body)):
        return False
    if storage in _written(row.new[: numbers[-1]]):
        return False
    writes = [
        index
        for tensor, index, is_store in affine_accesses((last,))
        if is_store and tensor.storage is storage
    ]
    return all(one == index for one in writes) and _reads_first(last, storage)


def _written(body: tuple[Stmt, ...]) -> set[Tensor]:
    return written_in(walk_statements(body))


def _reads_first(phase: For, storage: Tensor) -> bool:
    """Does an iteration read from a storage only before it writes there?"""
    written = False
    for stmt in phase.body:
        inside = list(walk_statements((stmt,)))
        reads = any(
            tensor.storage is storage
            for one in inside
            for expr in expressions(one)
            for tensor, _ in loads(expr)
        )
        writes = storage in _written((stmt,))
        if reads and (written or (writes and not isinstance(stmt, Store))):
            return False
        written = written or writes
    return True


# how threads take it


@frozen
class _Plan:
    """Neighbours are taken `wide` by so many threads, each of which keeps `cells` of what is its `own`."""

    extent: int
    threads: int
    wide: int
    cells: int
    own: tuple[Cell, ...]

    def __str__(self) -> str:
        how = f"{self.threads} threads take a row of {self.extent} by {self.wide}"
        what = ", ".join(tensor.label for tensor, _ in self.own)
        return how + (f" and keep {what}" if what else "")


def _planned(row: _Row, own: tuple[Cell, ...], gpu: GpuCaps) -> _Plan | None:
    """How threads take the row; None if it stays as it is."""
    if row.extent < gpu.warp:
        return None
    if own:
        plan = _shared_out(row, own, gpu)
        if plan.cells * sum(tensor.dtype.itemsize for tensor, _ in own) <= OWN_BYTES:
            return plan
    plan = _shared_out(row, (), gpu)
    return plan if plan.wide > 1 else None


def _shared_out(row: _Row, own: tuple[Cell, ...], gpu: GpuCaps) -> _Plan:
    """The row by as many threads as have enough to do."""
    wide = _wide(row, own, gpu)
    vectors = row.extent // wide
    threads = gpu.warp
    while threads < min(vectors, MOST_THREADS) and threads * CELLS < row.extent:
        threads *= 2
    return _Plan(row.extent, threads, wide, -(-vectors // threads) * wide, own)


def _wide(row: _Row, own: tuple[Cell, ...], gpu: GpuCaps) -> int:
    """How many neighbours a thread can read and write at once."""
    registers = {tensor.storage for tensor, _ in own}
    for phase in row.phases:
        if not _is_plain(phase.body):
            return 1
        if not all(_reads_first(phase, storage) for storage in _written((phase,)) - registers):
            return 1
    cells = ((tensor, index) for phase in row.phases for tensor, index, _ in affine_accesses((phase,)))
    wide = neighbours(cells, row.along, gpu.access_bytes)
    while row.extent % wide or (wide > 1 and row.extent < wide * gpu.warp):
        wide //= 2
    return wide


def _is_plain(body: tuple[Stmt, ...]) -> bool:
    """Nothing but scalars, some of them on conditions, and stores."""
    return all(
        isinstance(stmt, (Define, Update))
        or (isinstance(stmt, Store) and stmt.accum is None)
        or (
            isinstance(stmt, If)
            and not stmt.orelse
            and all(isinstance(inner, (Define, Update)) for inner in stmt.body)
        )
        for stmt in body
    )


# what becomes of it


@slotted
class _Rewriting:
    """`own` are the tensors that the threads have in place of cells, which are temporaries if they are of
    `scratch`; `read` has those of others that have been read."""

    row: _Row
    plan: _Plan
    own: Mapping[Cell, Tensor]
    scratch: Set[Tensor]
    number: Symbol = field(default_factory=lambda: Symbol("c"))
    read: set[Cell] = field(default_factory=set)

    def statement(self, stmt: Stmt) -> Stmt:
        if isinstance(stmt, For) and stmt.kind is LoopKind.BLOCK:
            return self.phase(stmt) if self.row.is_phase(stmt) else replace(stmt, lanes=self.plan.threads)
        return rewrite_bodies(stmt, self.body)

    def body(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        return tuple(self.statement(stmt) for stmt in (self.row.new if body is self.row.old else body))

    def phase(self, loop: For) -> For:
        """A loop over the row, shared out to the threads."""
        plan = self.plan
        vectors = plan.extent // plan.wide
        if not self.own:
            number = Symbol(loop.symbol.hint, lower=0, upper=vectors)
            body = self.neighbours(loop.body, number * plan.wide, ZERO)
            return replace(loop, symbol=number, hi=Affine.of(vectors), body=body, lanes=plan.threads)
        thread = Symbol("t", lower=0, upper=plan.threads)
        inside = tuple(self.kept(loop.body, thread))
        turns, left = divmod(vectors, plan.threads)
        first, far = thread * plan.wide, plan.threads * plan.wide
        body = self.neighbours(inside, first, ZERO) if turns == 1 else ()
        if turns > 1:
            turn = Symbol("u", lower=0, upper=turns)
            again = self.neighbours(inside, first + turn * far, turn * plan.wide)
            body = (For(turn, ZERO, Affine.of(turns), again, LoopKind.UNROLLED),)
        if left:
            has = compare("less", Index(Affine.of(thread)), Const(left, I64))
            last = self.neighbours(inside, first + turns * far, Affine.of(turns * plan.wide))
            body = (*body, If(has, last))
        return replace(loop, symbol=thread, hi=Affine.of(plan.threads), body=body, lanes=plan.threads)

    def neighbours(self, body: tuple[Stmt, ...], first: Affine, number: Affine) -> tuple[Stmt, ...]:
        """The iterations from `first` on that a thread takes at once; it keeps them at `number`."""
        if self.plan.wide == 1:
            return copy_body(body, {self.row.along: first, self.number: number}, {})
        lane = Symbol("v", lower=0, upper=self.plan.wide)
        inside = copy_body(body, {self.row.along: first + lane, self.number: number + lane}, {})
        return (For(lane, ZERO, Affine.of(self.plan.wide), inside, LoopKind.VECTOR, lanes=self.plan.wide),)

    def kept(self, body: tuple[Stmt, ...], thread: Symbol) -> Iterator[Stmt]:
        """A body with what the thread keeps in place of memory."""
        index = (Affine.of(thread), Affine.of(self.number))

        def node(expr: Expr) -> Expr:
            if isinstance(expr, Load) and (expr.tensor, expr.index) in self.own:
                return Load(self.own[expr.tensor, expr.index], index)
            return expr

        def stored(stmt: Stmt) -> Stmt:
            if not isinstance(stmt, Store) or stmt.tensor not in self.scratch:
                return stmt
            own = self.own.get((stmt.tensor, stmt.index))
            return replace(stmt, tensor=own, index=index) if own is not None else stmt

        for tensor, place in self.loaded(body):
            yield Store(self.own[tensor, place], index, Load(tensor, place))
        yield from transform_statements(body, node, stored)

    def loaded(self, body: tuple[Stmt, ...]) -> Iterator[Cell]:
        """What a phase is the first to read of what all keep."""
        for tensor, index, _ in affine_accesses(body):
            cell = tensor, index
            if cell in self.own and tensor not in self.scratch and cell not in self.read:
                self.read.add(cell)
                yield cell
