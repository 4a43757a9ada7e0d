"""lag: a nest that overwrites what the nest before it still reads follows it one row behind.

    for i in parallel(0, 99):                       for j in parallel(0, 99):
        for j in parallel(0, 99):                       even[j] = add(a[0, j], a[2, j])
            t[i, j] = add(a[i, j], a[i + 2, j])     for i in sequential(0, 49):
    for i in parallel(0, 99):                           for j in parallel(0, 99):
        for j in parallel(0, 99):                           odd[j] = add(a[2*i + 1, j], a[2*i + 3, j])
            a[i + 1, j] = t[i, j]                       for j in parallel(0, 99):
                                            ->              a[2*i + 1, j] = even[j]
                                                        for j in parallel(0, 99):
                                                            even[j] = add(a[2*i + 2, j], a[2*i + 4, j])
                                                        for j in parallel(0, 99):
                                                            a[2*i + 2, j] = odd[j]
                                                    for j in parallel(0, 99):
                                                        a[99, j] = even[j]

That is what a stencil in place becomes: NumPy computes all of it before it stores any. Of the temporary two
rows are left, which stay in the nearest cache, and the array goes through memory once: three quarters of the
time. The rows are taken in order, so that threads cannot share them: of two threads that wait for memory, one
is enough, and nests that do little are left to one anyway.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field

from ...frozen import replace, slotted
from ...ir.code import Caps
from ...ir.index import Affine, Symbol
from ...ir.loops import (
    For,
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
from ...ir.walk import expressions, kept, rewrite_bodies, rewrite_cells, substitute_statements
from ..analysis.access import Effects, Range, effects, loads
from ..analysis.carriers import meetings
from ..analysis.copies import copy_body, in_steps
from ..analysis.handed import threads_for
from ..analysis.trips import enter
from ..analysis.uses import Use, uses_of_temporaries
from ..products.products import product_of

__all__ = ["THREADS", "contracts", "lag"]

THREADS = 2
"""With more threads than these, memory gives all of them more than one of them can take."""


def lag(kernel: Kernel, caps: Caps) -> Kernel:
    """The kernel with every nest that may follow a row behind doing so."""
    lagging = _Lagging(caps, lambda: uses_of_temporaries(kernel), dict(kernel.placement))
    body = lagging.body(kernel.body)
    if body is kernel.body:
        return kernel
    return replace(kernel, body=body, placement=lagging.placement, notes=(*kernel.notes, *lagging.notes))


@slotted
class _Lagging:
    """What is found out on the way through a kernel; `around` is what the outermost loop around does,
    `ranges` are those of the loops."""

    caps: Caps
    uses: Callable[[], Mapping[Tensor, Sequence[Use]]]
    placement: dict[Tensor, Place]
    around: tuple[Stmt, ...] = ()
    ranges: dict[Symbol, Range] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def body(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """Not inside loops whose iterations are independent: they would have to share the two rows."""
        out: list[Stmt] = []
        for stmt in body:
            joined = self.joined(out[-1], stmt) if out else None
            if joined is not None:
                out[-1:] = joined
                continue
            if isinstance(stmt, For):
                enter(stmt, self.ranges)
            if not isinstance(stmt, For) or stmt.kind is LoopKind.SEQUENTIAL:
                around = self.around or (stmt.body if isinstance(stmt, For) else ())
                stmt = rewrite_bodies(stmt, replace(self, around=around).body)
            out.append(stmt)
        return kept(body, out)

    def joined(self, first: Stmt, second: Stmt) -> Sequence[Stmt] | None:
        """The two nests as one; None where they are to stay apart."""
        if not (isinstance(first, For) and isinstance(second, For)) or first.trips != second.trips:
            return None
        if any(loop.kind is not LoopKind.PARALLEL or loop.step != 1 for loop in (first, second)):
            return None
        rows = self.made_by(first)
        if first.trips is None or first.trips < 3 or rows is None:
            return None
        if contracts(first) or contracts(second):
            return None
        follower = substitute_statements(second.body, {second.symbol: second.lo - first.lo + first.symbol})
        enter(first, self.ranges)
        makes, takes = effects(first.body, self.ranges), effects(follower, self.ranges)
        if not self.hands_on(rows, first, follower) or not self.pays(rows, (first, second)):
            return None
        if not self.follows(first.symbol, makes, takes, rows):
            return None
        return self.in_rows(first, follower, rows)

    def made_by(self, first: For) -> Tensor | None:
        """The temporary that is all that an iteration makes."""
        made = written_in(walk_statements(first.body))
        rows = made.pop() if len(made) == 1 else None
        place = None if rows is None else self.placement.get(rows)
        if rows is None or place is None or place.kind is not PlaceKind.ARENA:
            return None
        return rows if rows.rank > 1 and rows.strides is None and rows.has_fixed_shape else None

    def hands_on(self, rows: Tensor, first: For, follower: tuple[Stmt, ...]) -> bool:
        """Does the same iteration of the follower take that temporary?"""
        stores = [stmt for stmt in walk_statements(first.body) if isinstance(stmt, Store)]
        cells = [stmt.index if stmt.tensor is rows else None for stmt in stores]
        for stmt in walk_statements(follower):
            for tensor, index in (load for expr in expressions(stmt) for load in loads(expr)):
                if tensor.storage is rows:
                    cells.append(index if tensor is rows else None)
        if len(cells) != len(self.uses()[rows]) or None in cells:
            return False
        row = stores[0].index[0]
        alike = all(
            index is not None
            and index[0] == row
            and not any(position.coefficient(first.symbol) for position in index[1:])
            for index in cells
        )
        return alike and row.coefficient(first.symbol) == 1 and len(row.terms) == 1

    def pays(self, rows: Tensor, nests: Sequence[For]) -> bool:
        """Is the temporary larger than the cache that two rows of it stay in? Nests that threads would share
        are better left to them, up to the size of their common cache."""
        near = 2 * rows.nbytes // rows.shape[0].constant
        is_shared = threads_for(nests, self.around, self.ranges, self.caps) > 1
        if (is_shared and self.caps.threads > THREADS) or near > self.caps.l2_bytes // 2:
            return False
        return rows.nbytes > (self.caps.l3_bytes if is_shared else self.caps.l1_bytes)

    def follows(self, symbol: Symbol, makes: Effects, takes: Effects, rows: Tensor) -> bool:
        """Does an iteration read nothing that the follower has overwritten, if that is one behind, and are
        the rows all that the follower needs of it?"""
        if makes.leaves or takes.leaves or makes.updates or takes.updates or rows in makes.reads:
            return False
        overwritten = meetings(makes.reads, takes.writes, (symbol,), self.ranges)
        return rows not in takes.writes and all(apart[symbol][1] <= 1 for apart in overwritten)

    def in_rows(self, first: For, follower: tuple[Stmt, ...], rows: Tensor) -> Sequence[Stmt]:
        """The first row, then each row before what takes the one before it, then what takes the last row."""
        even, odd = (Tensor(rows.label, rows.shape[1:], rows.dtype) for _ in range(2))
        small = 2 * odd.nbytes <= self.caps.stack_bytes
        place = Place(PlaceKind.STACK if small else PlaceKind.ARENA, "two rows are left of it")
        del self.placement[rows]
        self.placement |= {even: place, odd: place}
        self.notes.append(f"lag: {rows}: what takes it follows one row behind what makes it")

        def made(at: Affine, into: Tensor) -> tuple[Stmt, ...]:
            return _renamed(copy_body(first.body, {first.symbol: at}, {}), rows, into)

        def taken(at: Affine, out_of: Tensor) -> tuple[Stmt, ...]:
            return _renamed(copy_body(follower, {first.symbol: at}, {}), rows, out_of)

        here = Affine.of(first.symbol)
        steps = tuple((*made(here, to), *taken(here - 1, of)) for of, to in ((even, odd), (odd, even)))
        others = replace(first, lo=first.lo + 1, body=steps[0], kind=LoopKind.SEQUENTIAL)
        last = even if first.trips is not None and first.trips % 2 else odd
        return (*made(first.lo, even), *in_steps(others, steps), *taken(first.hi - 1, last))


def contracts(loop: For) -> bool:
    """Is it a product of matrices? Rows of these are not taken one by one."""
    fused = any(isinstance(stmt, Update) and stmt.contract for stmt in walk_statements(loop.body))
    return fused or product_of(loop) is not None


def _renamed(body: tuple[Stmt, ...], rows: Tensor, row: Tensor) -> tuple[Stmt, ...]:
    """The body with one row in place of the rows."""
    return rewrite_cells(body, lambda tensor, index: (row, index[1:]) if tensor is rows else (tensor, index))
