"""ring: of a temporary that each step makes anew, row by row, the few rows are left that are still read.

    for k in sequential(0, 100):                    for k in sequential(0, 100):
        for j in vector(0, 256, lanes=8):               for j in vector(0, 256, lanes=8):
            t[0, j] = x[0, j]                               near[0, j] = x[0, j]
        for i in sequential(1, 256):                    for i in sequential(1, 256):
            for j in vector(0, 256, lanes=8):  ->           row = i & 1
                t[i, j] = x[i, j]                           before = (i - 1) & 1
            for j in vector(0, 256, lanes=8):               for j in vector(0, 256, lanes=8):
                x[i, j] = add(t[i - 1, j],                      near[row, j] = x[i, j]
                              t[i, j])                      for j in vector(0, 256, lanes=8):
                                                                x[i, j] = add(near[before, j], near[row, j])

Such are the grids between two steps that go through memory together (`sweep`). A row's place is its number
modulo a power of two: no row comes to a place before all that read the one there have done so. What is read
after the last step is made whole by that step, which stands behind the loop: each step makes the same cells
then. Where steps go twice through an array that does not fit in a cache, or that just fits, they take 0.75
to 0.95 of the time. Threads that share steps by slabs keep whole grids.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import field, replace
from itertools import chain

from ...frozen import frozen, slotted
from ...ir.code import Caps
from ...ir.dtype import I64
from ...ir.expr import Apply, Index, constant
from ...ir.index import Affine, Symbol
from ...ir.loops import (
    Bind,
    For,
    Kernel,
    LoopKind,
    Place,
    Prefetch,
    Stmt,
    Store,
    go_in_order,
    walk_statements,
)
from ...ir.ops import OPS
from ...ir.tensor import Tensor
from ...ir.walk import kept, rewrite_bodies, rewrite_cells, substitute_statements
from ..analysis.access import mentioned
from ..analysis.copies import copy_body, unless_once
from ..analysis.private import is_private
from ..analysis.strides import affine_accesses
from ..analysis.trips import greater
from ..analysis.uses import counts

__all__ = ["ring"]

PART = 4
"""The rows that are left are such a part of all at most."""


def ring(kernel: Kernel, caps: Caps) -> Kernel:
    """The kernel with few rows of what steps make anew."""
    if not go_in_order(kernel.body):
        return kernel
    ringing = _Ringing(kernel, caps, counts(kernel.body))
    return kernel.with_body(ringing.body(kernel.body), ringing.notes, ringing.placement)


@slotted
class _Ringing:
    """What is found out on the way through a kernel, and how often it uses storages."""

    kernel: Kernel
    caps: Caps
    uses: Counter[Tensor]
    placement: dict[Tensor, Place] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def body(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        return kept(body, [new for stmt in body for new in self.statement(stmt)])

    def statement(self, stmt: Stmt) -> Sequence[Stmt]:
        if not isinstance(stmt, For):
            return (rewrite_bodies(stmt, self.body),)
        if stmt.kind is not LoopKind.SEQUENTIAL:
            return (stmt,)
        has_rows = any(isinstance(one, For) and one.kind is LoopKind.SEQUENTIAL for one in stmt.body)
        may_repeat = (stmt.trips is None and stmt.step == 1) or (stmt.trips or 0) > 1
        found = self.rings(stmt) if has_rows and may_repeat else {}
        return self.steps(stmt, found) if found else (rewrite_bodies(stmt, self.body),)

    def steps(self, steps: For, found: Mapping[Tensor, int]) -> Sequence[Stmt]:
        """A loop over steps with so many rows of some temporaries; its last step by itself if anything else
        uses one of these."""
        inside, body = counts(steps.body), steps.body
        for tensor, rows in found.items():
            near = Tensor("near", (Affine.of(rows), *tensor.shape[1:]), tensor.dtype)
            self.placement[near] = Place(self.kernel.placement[tensor].kind, "rows that are still read")
            self.notes.append(f"ring: {rows} rows of {tensor.label} are left, which the next ones still read")
            body = tuple(_in_ring(stmt, tensor, near) for stmt in body)
        if all(inside[tensor] == self.uses[tensor] for tensor in found):
            return (replace(steps, body=body),)
        return _whole_at_last(steps, body)

    def rings(self, steps: For) -> dict[Tensor, int]:
        """The temporaries of which few rows are needed at a time, and how many."""
        large = [
            tensor
            for tensor in self.kernel.placement
            if tensor.rank > 1 and tensor.has_fixed_shape and tensor.nbytes > self.caps.l1_bytes
        ]
        if not large:
            return {}
        inside, accesses = counts(steps.body), Counter(view for view, _, _ in affine_accesses(steps.body))
        asked = {stmt.tensor.storage for stmt in walk_statements(steps.body) if isinstance(stmt, Prefetch)}
        rows_in = [_rows_in(stmt) for stmt in steps.body]
        found: dict[Tensor, int] = {}
        for tensor in large:
            if tensor not in inside or tensor in asked:
                continue
            if inside[tensor] == accesses[tensor]:
                both = zip(steps.body, rows_in, strict=True)
                rows = _rows_at_once(tensor, [(stmt, own[tensor]) for stmt, own in both if tensor in own])
                if rows is None or PART * rows > tensor.shape[0].constant:
                    continue
                if inside[tensor] == self.uses[tensor] or _makes_the_same_cells(tensor, steps):
                    found[tensor] = rows
        return found


def _rows_in(stmt: Stmt) -> dict[Tensor, set[Affine]]:
    """The rows of tensors that a statement touches."""
    found: dict[Tensor, set[Affine]] = {}
    for tensor, index, _ in affine_accesses((stmt,)):
        if index:
            found.setdefault(tensor, set()).add(index[0])
    return found


@frozen
class _Rows:
    """The rows of a tensor that a statement of a step touches: `first` to `last`; those of a loop that takes
    them in order are that many ahead of its symbol, for each iteration from `start` to `end`."""

    first: int
    last: int
    start: int = 0
    end: int = 0

    @staticmethod
    def of(stmt: Stmt, rows: Collection[Affine]) -> _Rows | None:
        """None where that is not known."""
        if not isinstance(stmt, For) or not any(stmt.symbol in row.symbols for row in rows):
            return _Rows.among(rows)
        if stmt.kind not in (LoopKind.SEQUENTIAL, LoopKind.PARALLEL) or stmt.step != 1:
            return None
        found = _Rows.among([row - Affine.of(stmt.symbol) for row in rows])
        if found is None or not stmt.trips or not stmt.lo.is_constant:
            return None
        start, end = stmt.lo.constant, stmt.lo.constant + stmt.trips - 1
        if stmt.kind is LoopKind.PARALLEL:
            return _Rows(start + found.first, end + found.last)
        return replace(found, start=start, end=end)

    @staticmethod
    def among(rows: Collection[Affine]) -> _Rows | None:
        numbers = [row.constant for row in rows if row.is_constant]
        return _Rows(min(numbers), max(numbers)) if len(numbers) == len(rows) else None


def _rows_at_once(tensor: Tensor, touching: Sequence[tuple[Stmt, Collection[Affine]]]) -> int | None:
    """A power of two: no row is touched when another one so many rows later has been. None where that is not
    known, where not one loop goes over rows, and where steps read what they have not made before."""
    last, most = -1, 1
    loops: list[int] = []
    for at, (stmt, found) in enumerate(touching):
        rows = _Rows.of(stmt, found)
        if rows is None:
            return None
        if rows.end > rows.start:
            loops.append(at)
            if last > rows.start + rows.last:
                return None
        most = max(most, rows.last + 1 - rows.first, last + 1 - (rows.start + rows.first))
        last = max(last, rows.end + rows.last)
    if len(loops) != 1:
        return None
    count, body = 1 << (most - 1).bit_length(), tuple(stmt for stmt, _ in touching)
    return count if _is_made_anew(tensor, body, loops[0], count) else None


def _is_made_anew(tensor: Tensor, body: tuple[Stmt, ...], at: int, rows: int) -> bool:
    """Does each step read of a tensor only what it has made: before the loop over rows, which is statement
    `at`, or in so many iterations before? All iterations but the first ones do as any one does."""
    before, over, after = body[:at], body[at], body[at + 1 :]
    assert isinstance(over, For)
    inside = tuple(stmt for stmt in over.body if tensor in _rows_in(stmt))
    makes, row = _stores(tensor, inside), over.symbol
    firsts = range(min(rows, over.trips or 0))

    def made(first: Affine, count: int) -> Iterator[Stmt]:
        for number in range(count):
            yield from substitute_statements(makes, {row: first + number})

    begins = [substitute_statements(inside, {row: over.lo + number}) for number in firsts]
    return (
        is_private(tensor, (*before, *chain.from_iterable(begins)))
        and is_private(tensor, (*made(Affine.of(row) - rows, rows), *inside))
        and is_private(tensor, (*made(over.hi - len(firsts), len(firsts)), *after))
    )


def _makes_the_same_cells(tensor: Tensor, steps: For) -> bool:
    """Does the last step make anew all that any of them does?"""
    every = tuple(walk_statements(steps.body))
    found = _stores(tensor, steps.body)
    own = {steps.symbol} | {stmt.symbol for stmt in every if isinstance(stmt, Bind)}
    surely, all_of_them = (
        sum(isinstance(stmt, Store) and stmt.tensor is tensor for stmt in body)
        for body in (walk_statements(found), every)
    )
    return surely == all_of_them and own.isdisjoint(mentioned(found))


def _stores(tensor: Tensor, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """What a body surely stores to a tensor, without a value."""
    found: list[Stmt] = []
    for stmt in body:
        match stmt:
            case For():
                found.append(replace(stmt, body=_stores(tensor, stmt.body)))
            case Store() if stmt.tensor is tensor:
                found.append(replace(stmt, value=constant(0, tensor.dtype)))
            case _:
                pass
    return tuple(found)


def _whole_at_last(steps: For, body: tuple[Stmt, ...]) -> Sequence[Stmt]:
    """A loop over steps that have another body; the last one, if there is any, is as it was."""
    last, symbol = steps.hi - steps.step, Symbol(steps.symbol.hint)
    if steps.trips:
        whole = copy_body(steps.body, {steps.symbol: last}, {})
        return *unless_once(replace(steps, hi=last, body=body)), *whole
    end = Symbol("last")
    whole = copy_body(steps.body, {steps.symbol: Affine.of(symbol)}, {})
    return (
        Bind(end, greater(steps.lo, last)),
        replace(steps, hi=Affine.of(end), body=body),
        replace(steps, symbol=symbol, lo=Affine.of(end), body=whole),
    )


def _in_ring(stmt: Stmt, tensor: Tensor, near: Tensor) -> Stmt:
    """A statement of a step that finds a row of a tensor at its number modulo the rows of `near`."""
    rows = near.shape[0].constant
    places: dict[Affine, Symbol] = {}

    def cell(view: Tensor, index: tuple[Affine, ...]) -> tuple[Tensor, tuple[Affine, ...]]:
        if view is not tensor:
            return view, index
        row, *rest = index
        if row.is_constant or rows == 1:
            return near, (Affine.of(row.constant % rows if row.is_constant else 0), *rest)
        place = places.setdefault(row, Symbol("row", lower=0, upper=rows))
        return near, (Affine.of(place), *rest)

    (new,) = rewrite_cells((stmt,), cell)
    if not isinstance(new, For) or not places:
        return new
    mask = constant(rows - 1, I64)
    binds = (Bind(place, Apply(OPS["bitwise_and"], (Index(row), mask), I64)) for row, place in places.items())
    return replace(new, body=(*binds, *new.body))
