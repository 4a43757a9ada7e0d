"""prefetch: while a row is worked on, the next one is brought near.

    for i in sequential(0, 4096):                   for i in sequential(0, 4096):
        for j in vector(0, 512, lanes=8):               for j in vector(0, 512, lanes=8):
            s = reduce(add, s, x[i, j])                     s = reduce(add, s, x[i, j])
        for k in vector(0, 512, lanes=8):   ->          for k in vector(0, 512, lanes=8):
            y[i, k] = divide(x[i, k], s)                    prefetch(x[i + 1, k])
                                                            y[i, k] = divide(x[i, k], s)

Where a row is gone through more than once, the first time waits for memory, and memory for all others, which
find the row in a cache: the hardware sees no further than what is asked for. So the busiest of the others
asks for the next row, line by line, which comes while it computes. That is done for arrays larger than the
second cache, in rows of which the first cache holds two. A loop that does little with a line is over before
the next one is there, and short rows need no help: the processor is ahead of itself by as much.

    for i in sequential(0, 4000):                   for i in sequential(0, 4000):
        s = 0.0                                         prefetch(x[i + 1, 0])
        for j in vector(0, i, lanes=8):       ->        prefetch(x[i + 1, 8])  ...
            s = reduce(add, s, x[i, j] * y[j])          s = 0.0
        y[i] = divide(s, x[i, i])                       for j in vector(0, i, lanes=8):  ...

Where rows are left before their end, as those of a triangle are, the hardware does not see where the next one
begins, and where they must be taken in order the processor is not ahead of itself: so the first lines of the
next row are asked for with the row before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from ..frozen import frozen
from ..ir.code import Caps
from ..ir.index import Affine, Symbol
from ..ir.loops import (
    Bind,
    Define,
    For,
    Kernel,
    LoopKind,
    Prefetch,
    Stmt,
    Store,
    Update,
    walk_statements,
)
from ..ir.tensor import Tensor
from ..ir.walk import kept, rewrite_bodies
from .access import Range
from .strides import affine_accesses
from .trips import enter
from .work import work

__all__ = ["prefetch"]

LINES = 16
"""Cache lines in a row, at least."""
BUSY = 4.0
"""The work for each line that is asked for, in additions of one register each, at least."""
BEGINNING = 8
"""Cache lines after which the hardware has seen where a row goes."""


def prefetch(kernel: Kernel, caps: Caps) -> Kernel:
    """The kernel with rows brought near while those before them are worked on."""
    ahead = _Ahead(caps)
    body = ahead.body(kernel.body)
    if body is kernel.body:
        return kernel
    return replace(kernel, body=body, notes=(*kernel.notes, *ahead.notes))


@frozen
class _Row:
    """Cells `tensor[place, ...]`."""

    tensor: Tensor
    place: tuple[Affine, ...]

    @property
    def nbytes(self) -> int:
        return self.tensor.shape[-1].offset * self.tensor.dtype.itemsize


@dataclass(slots=True)
class _Ahead:
    caps: Caps
    ranges: dict[Symbol, Range] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def body(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        return kept(body, [self.statement(stmt) for stmt in body])

    def statement(self, stmt: Stmt) -> Stmt:
        if not isinstance(stmt, For):
            return rewrite_bodies(stmt, self.body)
        enter(stmt, self.ranges)
        return self.rows(stmt) or self.beginnings(stmt) or rewrite_bodies(stmt, self.body)

    def rows(self, loop: For) -> For | None:
        """The loop with what its next iteration reads brought near, if it goes through rows several times."""
        passes = [stmt for stmt in loop.body if isinstance(stmt, For)]
        if len(passes) < 2 or loop.kind not in (LoopKind.SEQUENTIAL, LoopKind.PARALLEL):
            return None
        rows = self.rows_read(passes[0], loop)
        nbytes = sum(row.nbytes for row in rows)
        if not LINES * self.caps.line_bytes <= nbytes <= self.caps.l1_bytes // 2:
            return None
        busiest = max(passes[1:], key=self.work)
        asking = _asking(busiest, rows)
        if asking is busiest or self.work(busiest) < BUSY * nbytes / self.caps.line_bytes:
            return None
        names = ", ".join(dict.fromkeys(row.tensor.label for row in rows))
        self.notes.append(f"prefetch: while {busiest.symbol.hint} goes on, the next of {names} is fetched")
        return replace(loop, body=tuple(asking if stmt is busiest else stmt for stmt in loop.body))

    def beginnings(self, loop: For) -> For | None:
        """The loop with the first lines of the rows that its next iteration reads brought near, if it goes
        along rows to an end that is not theirs."""
        first = next((stmt for stmt in loop.body if isinstance(stmt, For)), None)
        if first is None or first.hi.is_constant or loop.kind is not LoopKind.SEQUENTIAL:
            return None
        asked: list[Stmt] = []
        for row in self.rows_read(first, loop):
            cells = row.tensor.shape[-1]
            places = (_along(cells, stmt, first.symbol) for stmt in first.body if not isinstance(stmt, For))
            along = next((place for place in places if place is not None), None)
            line = self.caps.line_bytes // row.tensor.dtype.itemsize
            if along is not None and cells.constant >= LINES * line:
                start = along.substitute({first.symbol: first.lo})
                start = start.substitute({loop.symbol: Affine.of(loop.symbol) + loop.step})
                ask = (Prefetch(row.tensor, (*row.place, start + line * k)) for k in range(BEGINNING))
                asked.extend(ask)
                self.notes.append(f"prefetch: the beginning of the next row of {row.tensor.label} is fetched")
        return replace(loop, body=(*asked, *loop.body)) if asked else None

    def work(self, loop: For) -> float:
        """What is known of it."""
        return work((loop,), (), self.ranges).get((), 0.0)

    def rows_read(self, first: For, around: For) -> list[_Row]:
        """The next rows of large arrays, of those that the first loop inside reads."""
        inside = {stmt.symbol for stmt in walk_statements((first,)) if isinstance(stmt, (For, Bind))}
        following = {around.symbol: Affine.of(around.symbol) + around.step}
        rows: dict[_Row, None] = {}
        for tensor, index, is_store in affine_accesses((first,)):
            place, along = index[:-1], index[-1:]
            moves = around.symbol in _symbols(place) and around.symbol not in _symbols(along)
            if moves and not is_store and inside.isdisjoint(_symbols(place)) and self.is_large(tensor):
                rows[_Row(tensor, tuple(position.substitute(following) for position in place))] = None
        return list(rows)

    def is_large(self, tensor: Tensor) -> bool:
        """Whether the second cache does not hold it, and its rows' cells are neighbours."""
        if not all(extent.is_constant for extent in tensor.shape) or tensor.nbytes <= self.caps.l2_bytes:
            return False
        return tensor.strides is None or tensor.strides[-1] == Affine.of(1)


def _asking(loop: For, rows: Sequence[_Row], vector: Symbol | None = None) -> For:
    """The loop, which at each step along rows, in lanes, asks for so much of the next ones."""
    vector = loop.symbol if loop.kind is LoopKind.VECTOR else vector
    body: list[Stmt] = []
    missing = list(rows)
    for stmt in loop.body:
        if isinstance(stmt, For):
            stmt = _asking(stmt, rows, vector)
        elif vector is not None and isinstance(stmt, (Define, Update, Store)):
            for row in tuple(missing):
                along = _along(row.tensor.shape[-1], stmt, vector)
                if along is not None:
                    body.append(Prefetch(row.tensor, (*row.place, along)))
                    missing.remove(row)
        body.append(stmt)
    new = kept(loop.body, body)
    return loop if new is loop.body else replace(loop, body=new)


def _along(extent: Affine, stmt: Stmt, vector: Symbol) -> Affine | None:
    """The cell of its row, of that extent, where a statement reads or writes neighbours."""
    for tensor, index, _ in affine_accesses((stmt,)):
        if index and tensor.shape[-1] == extent and index[-1].coefficient(vector) == 1:
            return index[-1]
    return None


def _symbols(index: tuple[Affine, ...]) -> set[Symbol]:
    return {symbol for position in index for symbol in position.symbols}
