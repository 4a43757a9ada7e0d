"""foresee: while a row that a position chose is worked on, the one of a later position is brought near.

    for i in parallel(0, 6000):                       for i in parallel(0, 6000):
        t = p[i]                                          later = minimum(i + 16, 5999)
        n = t                                             u = p[later]
        s = 0.0                                           m = u
        for j in vector(0, 64, lanes=32):    ->           t = p[i]
            s = reduce(add, s, x[n, j])                   n = t
        y[i] = s                                          s = 0.0
                                                          for j in vector(0, 64, lanes=32):
                                                              prefetch(x[m, j])
                                                              s = reduce(add, s, x[n, j])
                                                          y[i] = s

The hardware does not see which row comes next, and the processor only sees a few of them at once: the lines
of each are waited for. The positions are known, so that rows of an array which the second cache does not hold
are asked for some kilobytes of rows before they are worked on. Where that was seen to gain (Zen 5), sums and
distances of rows that an array chooses take 0.75 to 0.9 of the time from the last cache, 0.6 to 0.85 from
memory, copies 0.85 to 1 and 0.5 to 0.9, exponentials 0.7 to 0.95 and 0.2 to 0.5. Rows of one line come as
soon without it. Long rows, of which the first cache does not hold several, ask for what they need themselves
(`prefetch`). A position is read again, with all that makes a number of it, so nothing of this may change in
the loop.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from ...frozen import frozen
from ...ir.code import Caps
from ...ir.index import Affine, Symbol, symbols_of
from ...ir.loops import Bind, Define, For, LoopKind, Prefetch, Stmt, walk_statements, written_in
from ...ir.tensor import Tensor
from ...ir.walk import expressions, locals_read, locals_updated, storages_read, symbols_read
from ..analysis.copies import Copying
from ..analysis.leading import Cell, chosen_bytes
from ..analysis.loopwise import Site, loopwise
from ..analysis.strides import affine_accesses
from ..analysis.trips import lesser

__all__ = ["foresee"]

PARTS = 4
"""Rows of more than so many times what is asked ahead ask for what they need themselves; and there are so
many times as many rows as lie between the one that is asked for and the one that is read."""

SOONER = 2
"""Times what loops ask ahead otherwise are the rows in between: half as many take up to 1.3 times as long."""


@loopwise
def foresee(loop: For, site: Site) -> Sequence[For] | None:
    """Every loop with rows brought near that later positions choose."""
    rows = _Rows.of(loop, site.caps) if site.caps.ahead.chosen else None
    if rows is None:
        return None
    names = ", ".join(dict.fromkeys(tensor.label for tensor, _ in rows.cells))
    site.notes.append(
        f"foresee: rows of {names} are fetched {rows.ahead:,} positions of {loop.symbol.hint} ahead"
    )
    return (rows.asked(),)


@frozen
class _Rows:
    """A loop, cells of rows which its positions choose, the statements that find these positions, and how
    many iterations ahead they are asked for."""

    loop: For
    cells: tuple[Cell, ...]
    finding: tuple[Define | Bind, ...]
    ahead: int

    @staticmethod
    def of(loop: For, caps: Caps) -> _Rows | None:
        if loop.kind not in (LoopKind.PARALLEL, LoopKind.SEQUENTIAL) or loop.step != 1:
            return None
        if loop.trips is None or not loop.lo.is_constant:
            return None
        bound = frozenset(stmt.symbol for stmt in loop.body if isinstance(stmt, Bind))
        if not bound:
            return None
        cells = {cell: size for cell in _read(loop) if (size := _chosen(cell, bound, caps))}
        finding = _finding(loop, {symbol for _, index in cells for symbol in bound & set(symbols_of(index))})
        if not cells or finding is None:
            return None
        rows = {(tensor, bound & set(symbols_of(index))): size for (tensor, index), size in cells.items()}
        ahead = max(1, SOONER * caps.ahead.further // sum(rows.values()))
        return _Rows(loop, tuple(cells), finding, ahead) if loop.trips >= PARTS * ahead else None

    def asked(self) -> For:
        """The loop, which asks for them."""
        loop, later = self.loop, Symbol("later", lower=self.loop.lo.constant, upper=self.loop.hi.constant)
        bind = Bind(later, lesser(Affine.of(loop.symbol) + self.ahead, loop.hi - 1))
        copy = Copying({loop.symbol: Affine.of(later)}, {})
        found = copy.body(self.finding)
        moved = {stmt.symbol: copy.symbols[stmt.symbol] for stmt in self.finding if isinstance(stmt, Bind)}
        asks = {cell: Prefetch(cell[0], tuple(at.substitute(moved) for at in cell[1])) for cell in self.cells}

        def asking(body: tuple[Stmt, ...], vector: Symbol | None) -> tuple[Stmt, ...]:
            inside = (
                replace(stmt, body=asking(stmt.body, _lanes(stmt, vector))) if isinstance(stmt, For) else stmt
                for stmt in body
            )
            asked = (asks[cell] for cell in _neighbours(body, vector) if cell in asks)
            return (*dict.fromkeys(asked), *inside)

        return replace(loop, body=(bind, *found, *asking(loop.body, None)))


def _lanes(loop: For, vector: Symbol | None) -> Symbol | None:
    """The symbol with lanes inside a loop, if it has one around it."""
    return loop.symbol if loop.kind is LoopKind.VECTOR else vector


def _neighbours(body: tuple[Stmt, ...], vector: Symbol | None) -> Iterator[Cell]:
    """The cells that a body reads, not in the loops inside, which are those of a row beside one another."""
    inside = {stmt.symbol for stmt in body if isinstance(stmt, Bind)}
    straight = tuple(stmt for stmt in body if not isinstance(stmt, For)) if vector is not None else ()
    for tensor, index, is_store in affine_accesses(straight):
        is_along = vector is not None and bool(index) and index[-1].coefficient(vector) == 1
        if is_along and not is_store and inside.isdisjoint(symbols_of(index)):
            yield tensor, index


def _read(loop: For, vector: Symbol | None = None) -> Iterator[Cell]:
    """The cells that a loop and those inside read in vectors."""
    yield from _neighbours(loop.body, vector := _lanes(loop, vector))
    for stmt in loop.body:
        if isinstance(stmt, For):
            yield from _read(stmt, vector)


def _chosen(cell: Cell, bound: Collection[Symbol], caps: Caps) -> int | None:
    """The bytes of the row that a position has chosen, if it has more than a line, is not long and not found
    in the second cache."""
    size = chosen_bytes(*cell, bound) if _is_large(cell[0], caps) else None
    is_worth_it = size is not None and caps.line_bytes < size <= PARTS * caps.ahead.further
    return size if is_worth_it else None


def _is_large(tensor: Tensor, caps: Caps) -> bool:
    return tensor.has_fixed_shape and tensor.strides is None and tensor.nbytes > caps.l2_bytes


def _finding(loop: For, symbols: set[Symbol]) -> tuple[Define | Bind, ...] | None:
    """The statements of a loop that find the values of symbols; None if one of them may find another one when
    it runs again, or if these values are the same in every iteration."""
    inside = walk_statements(loop.body)
    changing = locals_updated(inside)
    written = written_in(inside)
    names: set[object] = set(symbols)
    found: list[Define | Bind] = []
    changes = False
    for stmt in reversed(loop.body):
        if not isinstance(stmt, (Define, Bind)) or _name(stmt) not in names:
            continue
        read = {*locals_read((stmt,)), *(s for value in expressions(stmt) for s in symbols_read(value))}
        if not changing.isdisjoint(read) or not written.isdisjoint(storages_read(expressions(stmt))):
            return None
        changes |= loop.symbol in read
        names |= read
        found.append(stmt)
    return tuple(reversed(found)) if changes else None


def _name(stmt: Stmt) -> object:
    return stmt.symbol if isinstance(stmt, Bind) else stmt.variable if isinstance(stmt, Define) else None
