"""peel: the one iteration that changes what all others read is taken out of a loop.

    for k in sequential(0, 200):                      for k in sequential(0, 200):
        for i in sequential(0, 200):                      for i in parallel(0, k):
            t = add(d[i, k], d[k, j])                         t = add(d[i, k], d[k, j])
            d[i, j] = minimum(d[i, j], t)                     d[i, j] = minimum(d[i, j], t)
                                                ->        t = add(d[k, k], d[k, j])
                                                          d[k, j] = minimum(d[k, j], t)
                                                          for i in parallel(0, 199 - k):
                                                              t = add(d[k + 1 + i, k], d[k, j])
                                                              d[k + 1 + i, j] = minimum(d[k + 1 + i, j], t)

Row `k` is changed by iteration `k`: those before it read it as it was, those behind it as it is then, and
beside that no iteration needs anything of another one. Shortest paths, eliminations and sweeps that loops
write out cell by cell or row by row are such: with `panels`, they take 0.25 to 0.5 of the time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...frozen import slotted
from ...ir.code import Caps
from ...ir.index import Affine, Symbol
from ...ir.loops import Comment, Define, For, Kernel, LoopKind, Stmt, Store, walk_statements
from ...ir.walk import kept, rewrite_bodies
from ..analysis.access import Range
from ..analysis.carriers import carriers
from ..analysis.changes import Changes
from ..analysis.copies import copy_body
from ..analysis.strides import affine_accesses
from ..analysis.trips import enter, from_its_end, from_zero

__all__ = ["peel"]

MOST_STATEMENTS = 12
"""In a loop, which there is three times then."""


def peel(kernel: Kernel, caps: Caps) -> Kernel:
    """The kernel without loops that are in order for one iteration's sake."""
    peeling = _Peeling({}, [])
    return kernel.with_body(peeling.body(kernel.body), peeling.notes)


@slotted
class _Peeling:
    """The values of the symbols around, and what was done."""

    ranges: dict[Symbol, Range]
    notes: list[str]

    def body(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        out: list[Stmt] = []
        for stmt in body:
            parts: tuple[Stmt, ...] = ()
            if isinstance(stmt, For):
                enter(stmt, self.ranges)
                parts = self.parts(stmt)
            out += self.body(parts) if parts else (rewrite_bodies(stmt, self.body),)
        return kept(body, out)

    def parts(self, loop: For) -> tuple[Stmt, ...]:
        """The loop in front of an iteration, that iteration, and the loop behind it; nothing if there is none
        such."""
        if loop.kind is not LoopKind.SEQUENTIAL or loop.step != 1 or not _is_plain(loop):
            return ()
        inner = Changes.by(*loop.body).symbols
        pivots = [pivot for pivot in dict.fromkeys(_pivots(loop)) if inner.isdisjoint(pivot.symbols)]
        if not pivots or carriers(loop, self.ranges) == frozenset():
            return ()
        for pivot in pivots:
            front, behind = ((pivot - loop.lo).bounds(self.ranges), (loop.hi - 1 - pivot).bounds(self.ranges))
            if front is None or behind is None or front[0] < 0 or behind[0] < 0:
                continue
            before, after = _copy(loop, loop.lo, pivot), from_zero(_copy(loop, pivot + 1, loop.hi))
            if self.is_free(from_its_end(before)) and self.is_free(after):
                self.notes.append(f"peel: iteration {pivot} of {loop.symbol.hint} goes by itself")
                return before, *copy_body(loop.body, {loop.symbol: pivot}, {}), after
        return ()

    def is_free(self, loop: For) -> bool:
        """Do iterations need nothing of one another?"""
        enter(loop, self.ranges)
        return carriers(loop, self.ranges) == frozenset()


def _is_plain(loop: For) -> bool:
    inside = list(walk_statements(loop.body))
    return len(inside) <= MOST_STATEMENTS and all(
        isinstance(stmt, (Comment, Define, For, Store)) for stmt in inside
    )


def _copy(loop: For, lo: Affine, hi: Affine) -> For:
    symbol = Symbol(loop.symbol.hint)
    return For(symbol, lo, hi, copy_body(loop.body, {loop.symbol: Affine.of(symbol)}, {}), loop.kind)


def _pivots(loop: For) -> Iterator[Affine]:
    """The iterations that change cells at places which others name too."""
    cells = list(affine_accesses(loop.body))
    for tensor, index, is_stored in cells:
        for other, place, _ in cells if is_stored else ():
            if other is tensor:
                yield from _meetings(loop.symbol, index, place)


def _meetings(symbol: Symbol, stored: Sequence[Affine], other: Sequence[Affine]) -> Iterator[Affine]:
    """Where an axis that the loop goes along in one of them stays in the other, at an outer loop's index."""
    for moving, staying in zip(stored, other, strict=True):
        if moving.coefficient(symbol) == 1 and staying.symbols and not staying.coefficient(symbol):
            yield staying - (moving - symbol)
