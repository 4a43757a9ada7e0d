"""snapshot: what an update needs of rows and columns that it overwrites is copied before.

    for i in parallel(0, 200):                          for i in parallel(0, 200):
        for j in parallel(0, 200):                          p_before[i] = p[i, k]
            t[i, j] = multiply(p[i, k], p[k, j])        for j in parallel(0, 200):
    for i in parallel(0, 200):                              p_before1[j] = p[k, j]
        for j in parallel(0, 200):                  ->  for i in parallel(0, 200):
            p[i, j] = minimum(p[i, j], t[i, j])             for j in parallel(0, 200):
                                                                t[i, j] = multiply(p_before[i], p_before1[j])
                                                        for i in parallel(0, 200):
                                                            for j in parallel(0, 200):
                                                                p[i, j] = minimum(p[i, j], t[i, j])

The first nest keeps an array for the second one, since this one overwrites what other iterations of the
first one read. If those read the same few cells again and again, to keep these is enough: `fuse` joins the
nests then, and the array is gone. Nests that stand one after another are looked at together, so that several
arrays may be updated at once. Steps of Floyd and Warshall's, of Gauss and Jordan's, and rows that are changed
by multiples of one another (`a[i] -= a[i, k] * a[k]`) are such updates: they take 0.4 to 0.8 of the time.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import field
from functools import cache

from ...frozen import frozen, slotted
from ...ir.code import Caps
from ...ir.expr import Expr, Load
from ...ir.index import Affine, Symbol, symbols_of
from ...ir.loops import Comment, Define, For, Kernel, Stmt, Store, nested, written_in
from ...ir.tensor import Tensor
from ...ir.walk import kept, rewrite_bodies, substitute_statements, transform_statements
from ..analysis.access import Range, Ranges, distances, given, reads, region
from ..analysis.copies import copy_body
from ..analysis.strides import affine_accesses, parallel_nest
from ..analysis.trips import enter
from ..analysis.uses import counts

__all__ = ["snapshot"]

EACH = 8
"""A cell that is copied, perhaps of a column, costs as much as to store and load so many of an array: vectors
of what was just copied wait for it, too."""

Cell = tuple[Tensor, tuple[Affine, ...]]


def snapshot(kernel: Kernel, caps: Caps) -> Kernel:
    """The kernel with copies of the cells that keep nests apart, where these are few."""
    finding = _Finding(given(kernel.params), cache(lambda: counts(kernel.body)))
    return kernel.with_body(finding.body(kernel.body), finding.notes)


@frozen
class _Nest:
    """Parallel loops around statements that compute and store."""

    stmt: Stmt
    loops: Sequence[For]
    body: tuple[Stmt, ...]

    @staticmethod
    def of(stmt: Stmt) -> _Nest | None:
        loops = parallel_nest(stmt)
        inside = {loop.symbol for loop in loops}
        if not loops or not all(isinstance(inner, (Comment, Define, Store)) for inner in loops[-1].body):
            return None
        is_box = all(inside.isdisjoint(loop.bound_by) for loop in loops)
        return _Nest(stmt, loops, loops[-1].body) if is_box else None

    def is_like(self, other: _Nest) -> bool:
        """Has another nest the same loops?"""
        return [loop.bounds for loop in self.loops] == [loop.bounds for loop in other.loops]

    def alike(self, other: _Nest) -> _Nest:
        """Another nest that is like it, over the same symbols."""
        pairs = zip(other.loops, self.loops, strict=True)
        names = {loop.symbol: Affine.of(own.symbol) for loop, own in pairs}
        return _Nest(other.stmt, self.loops, substitute_statements(other.body, names))

    def cells(self, *, stored: bool) -> list[Cell]:
        """Those that it stores, or loads."""
        found = affine_accesses(self.body)
        return list(dict.fromkeys((tensor, index) for tensor, index, stores in found if stores == stored))


@frozen
class _Copy:
    """Where a cell that several iterations read is kept, and the loops in which it differs."""

    tensor: Tensor
    index: tuple[Affine, ...]
    loops: Sequence[For]


@slotted
class _Finding:
    """What is known on the way through a kernel: the caller's arrays, how often each is used, and the values
    of symbols."""

    given: frozenset[Tensor]
    uses: Callable[[], Counter[Tensor]]
    ranges: dict[Symbol, Range] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def body(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        out: list[Stmt] = []
        run: list[_Nest] = []
        for stmt in body:
            nest = _Nest.of(stmt)
            if nest is None or (run and not run[0].is_like(nest)):
                out += self.copied(run)
                run = []
            if nest is not None:
                run.append(nest)
                continue
            if isinstance(stmt, For):
                enter(stmt, self.ranges)
            out.append(rewrite_bodies(stmt, self.body))
        return kept(body, [*out, *self.copied(run)])

    def copied(self, run: Sequence[_Nest]) -> Sequence[Stmt]:
        """Nests with the same loops, after copies of the cells that keep them apart."""
        for loop in run[0].loops if run else ():
            enter(loop, self.ranges)
        if len(run) < 2 or not _overwrite_what_others_read(run):
            return [nest.stmt for nest in run]
        run = [run[0], *(run[0].alike(nest) for nest in run[1:])]
        late = _too_late(run, self.ranges)
        copies = {cell: _copied(cell, run[0].loops) for at in late for cell in late[at]}
        known = {cell: copy for cell, copy in copies.items() if copy is not None}
        if not known or len(known) < len(copies) or not all(self.hands_on(run, at) for at in late):
            return [nest.stmt for nest in run]
        if _are_many(known.values(), run[0].loops, len(late)):
            return [nest.stmt for nest in run]

        def read(node: Expr) -> Expr:
            copy = known.get((node.tensor, node.index)) if isinstance(node, Load) else None
            return node if copy is None else Load(copy.tensor, copy.index)

        self.notes += (f"snapshot: cells of {cell[0].label} are copied before an update" for cell in known)
        out = [
            stmt
            for cell, copy in known.items()
            for stmt in nested(copy.loops, (Store(copy.tensor, copy.index, Load(*cell)),))
        ]
        for at, nest in enumerate(run):
            body = transform_statements(nest.body, read)
            out += nested(nest.loops, body) if at in late else (nest.stmt,)
        return copy_body(tuple(out), {}, {})

    def hands_on(self, run: Sequence[_Nest], at: int) -> bool:
        """Does a nest make arrays only for those after it?"""
        made = {tensor.storage for tensor, _ in run[at].cells(stored=True)}
        taken = {tensor.storage for nest in run[at + 1 :] for tensor, _ in nest.cells(stored=False)}
        if not made or not made <= taken or not made.isdisjoint(self.given):
            return False
        here, everywhere = counts(stmt for nest in run for stmt in nest.body), self.uses()
        return all(here[storage] == everywhere[storage] for storage in made)


def _are_many(copies: Iterable[_Copy], loops: Sequence[For], arrays: int) -> bool:
    """Are so many cells copied that to keep so many arrays costs less, as far as is known?"""
    copied, cells = sum(_iterations(copy.loops) or 0 for copy in copies), _iterations(loops)
    return cells is not None and copied * EACH > cells * arrays


def _iterations(loops: Sequence[For]) -> int | None:
    trips = [loop.trips for loop in loops if loop.trips is not None]
    return math.prod(trips) if len(trips) == len(loops) else None


def _overwrite_what_others_read(run: Sequence[_Nest]) -> bool:
    """Does a nest store to an array that one before it reads?"""
    seen: set[Tensor] = set()
    for nest in run:
        if not seen.isdisjoint(written_in(nest.body)):
            return True
        seen.update(tensor.storage for stmt in nest.body for tensor, _ in reads(stmt))
    return False


def _too_late(run: Sequence[_Nest], ranges: Ranges) -> dict[int, list[Cell]]:
    """For each nest, what it reads and other iterations of a later nest overwrite, which is the first to."""
    late: dict[int, list[Cell]] = {}
    seen: dict[Tensor, dict[tuple[int, Cell], None]] = {}
    overwritten: set[Tensor] = set()
    for at, nest in enumerate(run):
        stores = nest.cells(stored=True)
        for cell in stores:
            storage = cell[0].storage
            for earlier, read in list(seen.get(storage, ())):
                if _meet_elsewhere(read, cell, [loop.symbol for loop in nest.loops], ranges):
                    late.setdefault(earlier, []).append(read)
                    del seen[storage][earlier, read]
        overwritten.update(tensor.storage for tensor, _ in stores)
        for tensor, index in nest.cells(stored=False):
            if tensor.storage not in overwritten:
                seen.setdefault(tensor.storage, {})[at, (tensor, index)] = None
    return late


def _meet_elsewhere(one: Cell, other: Cell, symbols: Sequence[Symbol], ranges: Ranges) -> bool:
    """May two cells be the same one in different iterations?"""
    apart = distances(region(*one, {}), region(*other, {}), symbols, ranges) or {}
    return any(distance != (0, 0) for distance in apart.values())


def _copied(cell: Cell, loops: Sequence[For]) -> _Copy | None:
    """A place for all such cells; None if they are as many as the iterations, or no axis tells how many."""
    tensor, index = cell
    moving = [loop for loop in loops if loop.symbol in symbols_of(index)]
    if len(moving) == len(loops):
        return None
    extents: list[Affine] = []
    for loop in moving:
        others = {other.symbol for other in moving if other is not loop}
        axes = [
            axis
            for axis, position in enumerate(index)
            if position.coefficient(loop.symbol) and others.isdisjoint(position.symbols)
        ]
        if not axes or loop.step != 1:
            return None
        extents.append(tensor.shape[axes[0]])
    place = tuple(Affine.of(loop.symbol) - loop.lo for loop in moving)
    return _Copy(Tensor(f"{tensor.label}_before", tuple(extents), tensor.dtype), place, moving)
