"""bypass: results that no cache could hold until they are read are written past the caches.

    for i in vector(0, 9000000, lanes=32):          for i in vector(0, 9000000, lanes=32):
        y[i] = add(x[i], 1.0)                 ->        y[i] = bypass(add(x[i], 1.0))

A cache fetches each line before it is written to, and pushes out another: traffic for nothing. That is so
of a store if the loops around it write every cell once and read none of these cells, and if they move more
bytes than the last cache has: what they wrote first is no longer there when they end. Rows must have some
lines: where one starts or ends within a line, its cells go one by one. Those of one or two bytes cannot: such
a line is fetched all the same, and the stores past the caches wait for it as long as thousands of bytes take
otherwise. And memory must be what such a loop waits for: long elementary functions take longer than their
argument and result. What is seldom needed (`rare`) is no work.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field, replace

from ...frozen import slotted
from ...ir.assign import ArrayParam
from ...ir.boundaries import ALONE
from ...ir.code import Caps
from ...ir.expr import Load
from ...ir.index import Symbol, symbols_of
from ...ir.loops import For, If, Kernel, LoopKind, Stmt, Store
from ...ir.tensor import Tensor
from ...ir.walk import kept, nodes_in, rewrite_bodies
from ..analysis.access import Effects, Range, Region, effects
from ..analysis.costs import cost_of_nodes
from ..analysis.repeats import may_repeat
from ..analysis.strides import stride
from ..analysis.trips import enter
from ..bodies.rare import rare

__all__ = ["bypass"]

LINES, MANY = 4, 56
"""Cache lines in a row, at least, unless all rows consist of whole ones, and where cells cannot be stored one
by one. Stencils, softmaxes and copies of rows of 4 to 50 lines take 0.6 to 0.85 of the time so; those of 2 or
3 would take up to 1.4 times as long."""
LIGHT_COST = 20.0
"""The work for each number that is read or written, in additions, at most. At 15, as tangents of float32s
have it, such loops take 0.8 of the time; at 20 it makes no difference."""


def bypass(kernel: Kernel, caps: Caps) -> Kernel:
    """The kernel with large results stored past the caches, if anything is large."""
    arrays = {param.tensor.storage for param in kernel.params if isinstance(param, ArrayParam)}
    if sum(map(_tensor_bytes, (*arrays, *kernel.placement))) <= caps.l3_bytes:
        return kernel
    choice = _Choice(kernel, caps)
    body = choice.body(kernel.body)
    return kernel.with_body(body, choice.notes)


@slotted
class _Choice:
    """`around` are the loops around a statement, outermost first, each with what it does."""

    kernel: Kernel
    caps: Caps
    around: list[tuple[For, Effects]] = field(default_factory=list)
    ranges: dict[Symbol, Range] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def body(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        return kept(body, [self.statement(stmt) for stmt in body])

    def statement(self, stmt: Stmt) -> Stmt:
        if not isinstance(stmt, For):
            return rewrite_bodies(stmt, self.body)
        found = effects((stmt,), self.ranges)
        if not self.around and _bytes(found) <= self.caps.l3_bytes:
            return stmt  # no loop in it moves more
        self.around.append((stmt, found))
        enter(stmt, self.ranges)
        if stmt.kind is not LoopKind.VECTOR:
            stmt = rewrite_bodies(stmt, self.body)
        elif may_repeat(stmt.body, (), stmt.symbol) and self.is_light(stmt):
            stmt = self.vector(stmt)
        self.around.pop()
        return stmt

    def is_light(self, loop: For) -> bool:
        """Whether a loop usually does little with what it reads and writes."""
        alone = replace(self.kernel, body=(loop,), placement={}, notes=())
        inside = list(_usually(rare(alone, self.caps).body))
        nodes = list(nodes_in(inside))
        work = cost_of_nodes(nodes)
        accesses = sum(isinstance(item, (Load, Store)) for item in (*nodes, *inside))
        return work <= LIGHT_COST * accesses

    def vector(self, loop: For) -> For:
        """The vector loop with its large results stored past the caches."""

        def inside(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
            return kept(body, [statement(stmt) for stmt in body])

        def statement(stmt: Stmt) -> Stmt:
            match stmt:
                case Store() if self.shall_bypass(stmt, loop):
                    return replace(stmt, bypass=True)
                case For(kind=LoopKind.UNROLLED):
                    return rewrite_bodies(stmt, inside)
                case _:
                    return stmt

        body = inside(loop.body)
        return loop if body is loop.body else replace(loop, body=body)

    def shall_bypass(self, store: Store, loop: For) -> bool:
        if stride(store.tensor, store.index, loop.symbol) != 1 or not self.writes_lines(store, loop):
            return False
        moved = self.moved(store)
        if moved <= self.caps.l3_bytes:
            return False
        self.notes.append(
            f"bypass: {store.tensor} is written past the caches, "
            f"since {moved:,} bytes are moved before it can be read"
        )
        return True

    def writes_lines(self, store: Store, loop: For) -> bool:
        """Is a row long, or does it consist of whole lines if the first row does?"""
        line, size = self.caps.line_bytes, store.tensor.dtype.itemsize
        row = (loop.trips or 0) * size
        if row >= (LINES if size in ALONE else MANY) * line:
            return True
        symbols = set(symbols_of(store.index)) - {loop.symbol}
        steps = [stride(store.tensor, store.index, symbol) for symbol in symbols]
        return row > 0 and all(step is not None and step * size % line == 0 for step in (*steps, row // size))

    def moved(self, store: Store) -> int:
        """The bytes that are moved by the outermost loop around the store that writes every cell once and
        reads none of them."""
        storage, moved = store.tensor.storage, 0
        for loop, found in reversed(self.around):
            if storage in found.reads or not any(at.coefficient(loop.symbol) for at in store.index):
                break
            moved = _bytes(found)
        return moved


def _usually(body: tuple[Stmt, ...]) -> Iterator[Stmt]:
    """The statements of a body, nested ones as well, but for those in branches."""
    for stmt in body:
        if not isinstance(stmt, If):
            yield stmt
        if isinstance(stmt, For):
            yield from _usually(stmt.body)


def _bytes(found: Effects) -> int:
    """The bytes of all cells that are read or written."""
    touched: dict[Tensor, int] = {}
    for regions in (found.reads, found.writes):
        for storage, items in regions.items():
            touched[storage] = max(touched.get(storage, 0), *map(_region_bytes, items))
    return sum(touched.values())


def _tensor_bytes(tensor: Tensor) -> int:
    return tensor.nbytes if tensor.has_fixed_shape else 0


def _region_bytes(region: Region) -> int:
    """The bytes of a region; none where they are known only at run time."""
    tensor = region.tensor
    if not tensor.has_fixed_shape:
        return 0
    cells = 1
    for span, extent in zip(region.spans, tensor.shape, strict=True):
        cells *= extent.offset if span is None else min(span.high - span.low + 1, extent.offset)
    return cells * tensor.dtype.itemsize
