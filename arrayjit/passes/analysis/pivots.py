"""Steps that change a matrix by one of its rows and columns, those of a pivot.

    for k in sequential(0, 199):
        for i in parallel(0, 199 - k):                                         `Changes`
            a[i + k + 1, k] = a[i + k + 1, k] / a[k, k]                        `before` a row's columns
            for j in parallel(0, 199 - k):
                a[i + k + 1, j + k + 1] -= a[i + k + 1, k] * a[k, j + k + 1]

The pivot of step `k` stands at `k`, or at a fixed distance from there. All that steps read or change of such
a matrix, but for the cells that are changed one by one, is in the pivot's row or in its column.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, combinations, pairwise

from ...frozen import frozen
from ...ir.index import Affine
from ...ir.loops import Bind, Comment, Define, For, LoopKind, Stmt, Store, Update, walk_statements
from ...ir.tensor import Tensor
from ...ir.walk import locals_defined, locals_used
from .copies import copy_body
from .strides import affine_accesses, gathered, stride

__all__ = ["Changes", "Pivoting", "Span", "pivoting"]

Span = tuple[Affine, Affine]
"""Positions along an axis from the first up to the second."""

Cell = tuple[Tensor, tuple[Affine, ...]]


@frozen
class Positions:
    """Where an update changes an axis in one step: `starts` and `ends` say how far from the pivot, where that
    moves with it; else they are None, and the ends stay outside of what pivots pass."""

    lo: Affine
    hi: Affine
    starts: int | None
    ends: int | None

    def within(self, pivot: Affine, panel: Span) -> Span:
        """Those of a step in the panel of its group."""
        first, end = panel
        return (
            first if self.starts is None else pivot + self.starts,
            end if self.ends is None else pivot + self.ends,
        )

    @property
    def sides(self) -> set[str]:
        """Where it changes anything in all steps of a group."""
        return {side for side, end in (("before", self.starts), ("behind", self.ends)) if end is None}

    def beside(self, panel: Span) -> list[Span]:
        """The positions there, on either side of a panel."""
        spans = {"before": (self.lo, panel[0]), "behind": (panel[1], self.hi)}
        return [span for side, span in spans.items() if side in self.sides]


@frozen
class Changes:
    """A nest that changes cells of matrices, all at `index`, over `rows` and `columns`: what a row does
    `before` its columns and `after` them."""

    rows: For
    columns: For
    before: tuple[Stmt, ...]
    after: tuple[Stmt, ...]
    index: tuple[Affine, ...]

    @property
    def tensors(self) -> list[Tensor]:
        """The matrices."""
        return [stmt.tensor for stmt in self.columns.body if isinstance(stmt, Store)]

    def spans(self) -> tuple[Span, Span]:
        """Which rows and columns of the matrices it goes through."""
        shifts = (at - loop.symbol for at, loop in zip(self.index, (self.rows, self.columns), strict=True))
        row, column = shifts
        return (self.rows.lo + row, self.rows.hi + row), (self.columns.lo + column, self.columns.hi + column)

    def others(self) -> Iterator[Cell]:
        """What it reaches beside the cells that it changes one by one."""
        tensors = self.tensors
        for tensor, index, _ in affine_accesses((*self.before, *self.after)):
            yield tensor, index
        for tensor, index, _ in affine_accesses(self.columns.body):
            if tensor not in tensors or index != self.index:
                yield tensor, index


@frozen
class Located:
    """Changes, and which rows and columns they concern."""

    changes: Changes
    rows: Positions
    columns: Positions

    def meets(self, other: Located) -> bool:
        """Do both change the same cells, beside the rows and columns of pivots?"""
        mine, theirs = set(self.changes.tensors), set(other.changes.tensors)
        pairs = (self.rows, other.rows), (self.columns, other.columns)
        return not mine.isdisjoint(theirs) and all(one.sides & two.sides for one, two in pairs)


@frozen
class Pivoting:
    """Steps of this kind: where the pivot of a step is, and the changes, by where they stand in the body."""

    loop: For
    pivot: Affine
    changes: dict[int, Located]


def pivoting(loop: For) -> Pivoting | None:
    """The steps that a loop takes, if they are such."""
    if loop.kind is not LoopKind.SEQUENTIAL or abs(loop.step) != 1:
        return None
    loop = replace(loop, body=tuple(chain.from_iterable(map(_distributed, loop.body))))
    found = {at: changes for at, stmt in enumerate(loop.body) if (changes := _changes(stmt)) is not None}
    if not found or not all(
        isinstance(stmt, (Bind, Comment, Define, For, Store, Update)) for stmt in walk_statements(loop.body)
    ):
        return None
    changed = {tensor for changes in found.values() for tensor in changes.tensors}
    storages = {tensor.storage for tensor in changed}
    rest = tuple(stmt for at, stmt in enumerate(loop.body) if at not in found)
    reached = [(tensor, index) for tensor, index, _ in affine_accesses(rest)]
    reached += chain.from_iterable(changes.others() for changes in found.values())
    if any(tensor.storage in storages and tensor not in changed for tensor, _ in reached):
        return None
    if not storages.isdisjoint(gathered(loop.body)):
        return None
    places = [index for tensor, index in reached if tensor in changed]
    for distance in sorted({at - loop.symbol for index in places for at in index}, key=lambda at: at.offset):
        pivot = distance + loop.symbol
        if distance.is_constant and all(pivot in index for index in places):
            return _around(loop, pivot, found)
    return None


def _distributed(stmt: Stmt) -> Sequence[Stmt]:
    """A parallel loop as several, with one loop in each, unless they hand on locals."""
    if not isinstance(stmt, For) or stmt.kind is not LoopKind.PARALLEL:
        return (stmt,)
    ends = [at + 1 for at, inner in enumerate(stmt.body) if isinstance(inner, For)]
    cuts = [0, *ends[:-1], len(stmt.body)]
    bodies = [stmt.body[start:end] for start, end in pairwise(cuts)]
    for at, body in enumerate(bodies):
        made = locals_defined(body)
        if not made.isdisjoint(locals_used(chain.from_iterable(bodies[at + 1 :]))):
            return (stmt,)
    first = replace(stmt, body=bodies[0])
    copies = (copy_body((replace(stmt, body=body),), {}, {}) for body in bodies[1:])
    return first, *chain.from_iterable(copies)


def _changes(rows: Stmt) -> Changes | None:
    """The changes that a nest makes, if that is what it does."""
    if not isinstance(rows, For) or rows.kind is not LoopKind.PARALLEL or rows.step != 1:
        return None
    inner = [at for at, stmt in enumerate(rows.body) if isinstance(stmt, For)]
    if len(inner) != 1:
        return None
    columns, before, after = rows.body[inner[0]], rows.body[: inner[0]], rows.body[inner[0] + 1 :]
    if not isinstance(columns, For) or columns.kind is not LoopKind.PARALLEL or columns.step != 1:
        return None
    body = columns.body
    if rows.symbol in columns.bound_by or not all(
        isinstance(stmt, (Comment, Define, Store)) for stmt in (*before, *body, *after)
    ):
        return None
    stores = [stmt for stmt in body if isinstance(stmt, Store)]
    indices = {store.index for store in stores}
    if len(indices) != 1 or len({store.tensor.storage for store in stores}) != len(stores):
        return None
    (index,) = indices
    symbols = rows.symbol, columns.symbol
    if len(index) != 2 or any(
        at.coefficient(symbol) != 1 or at.coefficient(other)
        for at, symbol, other in zip(index, symbols, reversed(symbols), strict=True)
    ):
        return None
    if any(stride(store.tensor, index, columns.symbol) != 1 or store.accum for store in stores):
        return None
    return Changes(rows, columns, before, after, index)


def _around(loop: For, pivot: Affine, found: Mapping[int, Changes]) -> Pivoting | None:
    """The steps with this pivot, if it tells which rows and columns they change, each cell once."""
    located: dict[int, Located] = {}
    for at, changes in found.items():
        rows, columns = (_positions(span, pivot, loop) for span in changes.spans())
        if rows is None or columns is None:
            return None
        located[at] = Located(changes, rows, columns)
    if any(one.meets(other) for one, other in combinations(located.values(), 2)):
        return None
    return Pivoting(loop, pivot, located)


def _positions(span: Span, pivot: Affine, loop: For) -> Positions | None:
    """Positions as the pivot tells them; None if it does not."""
    ends: list[int | None] = []
    for end in span:
        apart = end - pivot
        if apart.is_constant and apart.offset in (0, 1):
            ends.append(apart.offset)
        elif loop.symbol in end.symbols:
            return None
        else:
            ends.append(None)
    first, last = (pivot.substitute({loop.symbol: at}) for at in (loop.lo, loop.hi - loop.step))
    room = [at - span[0] for at in (first, last) if ends[0] is None]
    room += [span[1] - 1 - at for at in (first, last) if ends[1] is None]
    known = [least[0] for one in room if (least := one.bounds({})) is not None]
    if len(known) < len(room) or any(least < 0 for least in known):
        return None
    return Positions(*span, *ends)
