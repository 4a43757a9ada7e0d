"""trapezoid: rows of a triangle of sums are computed several at once, as far as all of them go.

    for i in parallel(0, 300):                       for i in parallel(0, 100):
        for j in vector(0, 350, lanes=16):               for j in vector(0, 350, lanes=16):
            s = 0.0                                          s = 0.0
            for k in sequential(0, i):                       s1 = 0.0
                s = add(s, a[i, k] * b[k, j])                s2 = 0.0
            y[i, j] = s                                      for k in sequential(0, 3*i):
                                                                 t = b[k, j]
                                              ->                 s = add(s, a[3*i, k] * t)
                                                                 s1 = add(s1, a[3*i + 1, k] * t)
                                                                 s2 = add(s2, a[3*i + 2, k] * t)
                                                             y[3*i, j] = s
                                                             for k in sequential(3*i, 3*i + 1):
                                                                 s1 = add(s1, a[3*i + 1, k] * b[k, j])
                                                             y[3*i + 1, j] = s1
                                                             ...

`jam` does so with rows of one length. Here a few rows make a rectangle, whose terms they share, and a small
triangle, which each goes through by itself: behind the rectangle where rows become longer, before it where
they become shorter. So every sum takes its terms in the order of before.

Rows may also follow from one another, as those of a triangular system do:

    x[i, j] = divide(subtract(b[i, j], s), l[i, i])      with s of  l[i, k] * x[k, j]  for k < i

What a group of rows needs of those before it is in its rectangle. And rows may be steps that change cells
in memory (`down`): at each cell the steps of a group take turns, and it is read and stored once for all.

The limit is what as many operations take in a product of whole matrices. With float64 on Zen 5, 300 rows and
350 columns, products with a triangle reach 0.75 of that speed, triangular systems 0.9, updates of the rows
before 0.8: 0.26 to 0.35 of the time of row after row. A product with a symmetric matrix of which half is
stored, which is two of these in one, takes 0.24 of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain

from ...frozen import frozen
from ...ir.code import Caps
from ...ir.index import Affine, Symbol
from ...ir.loops import Define, For, Kernel, LoopKind, Stmt, Store, Update, walk_statements, written_in
from ...ir.tensor import Tensor
from ...ir.walk import locals_defined, locals_read, locals_updated, rewrite_loops
from ..analysis.copies import Copying, unless_once
from ..analysis.strides import affine_accesses, gathered, has_own_axis, stride
from ..analysis.trips import blocks
from ..bodies.once import once
from ..bodies.share import share

__all__ = ["trapezoid"]

MOST_LANES = 64

MOST_ROWS = 12
"""At once: each is a stream of its own."""

SHARED = 4
"""Registers for what all rows share, and for what is on its way into a sum."""

MOST_STATEMENTS = 16
"""Of a term, and of what a row does before and after its terms."""

GROUPS = 4
"""So many groups of rows at least there are: of fewer the small triangles are most."""

ORDERED = (LoopKind.SEQUENTIAL, LoopKind.PARALLEL)


@frozen
class _Triangle:
    """Rows of sums whose terms are a loop that goes one further, or starts one later, with each row.
    `before` stands beside the loop over columns, which is inside of that over rows or, if `is_down`, outside;
    `first` and `last` stand before and behind the terms. Terms are numbered so that they are the same in all
    rows: `slant` times the row more than in `terms`."""

    rows: For
    columns: For
    is_down: bool
    before: tuple[Stmt, ...]
    first: tuple[Stmt, ...]
    terms: For
    last: tuple[Stmt, ...]
    slant: int
    grows: bool

    @property
    def lo(self) -> Affine:
        """The first term of a row."""
        return self.terms.lo + Affine.of(self.rows.symbol) * self.slant

    @property
    def hi(self) -> Affine:
        """The end of its terms."""
        return self.terms.hi + Affine.of(self.rows.symbol) * self.slant

    @property
    def has_corners(self) -> bool:
        """Do rows differ in their terms?"""
        return self.rows.symbol in (*self.lo.symbols, *self.hi.symbols)

    @property
    def body(self) -> tuple[Stmt, ...]:
        """All that a row does."""
        return (*self.before, *self.first, self.terms, *self.last)

    def same(self, index: Sequence[Affine]) -> tuple[Affine, ...]:
        """Positions in a term, with the terms numbered alike in all rows."""
        term = Affine.of(self.terms.symbol) - Affine.of(self.rows.symbol) * self.slant
        return tuple(position.substitute({self.terms.symbol: term}) for position in index)


def trapezoid(kernel: Kernel, caps: Caps) -> Kernel:
    """Every such triangle with its rows in groups."""
    notes: list[str] = []

    def grouped(loop: For) -> Sequence[Stmt] | None:
        triangle = _triangle(loop)
        count = 0 if triangle is None else _rows_at_once(triangle, caps)
        if triangle is None or count < 2 or not _may_group(triangle):
            return None
        notes.append(f"trapezoid: {count} rows of {triangle.rows.symbol.hint} at once share their terms")
        return _in_groups(triangle, count, caps)

    body = rewrite_loops(kernel.body, grouped)
    return kernel if body is kernel.body else share(once(kernel.with_body(body, notes), caps), caps)


def _triangle(loop: For) -> _Triangle | None:
    """The triangle that a loop goes through, if it does."""
    match loop:
        case For(kind=LoopKind.VECTOR, body=(For() as rows,)):
            columns, body = loop, rows.body
            before: tuple[Stmt, ...] = ()
        case For(body=(*outside, For(kind=LoopKind.VECTOR) as columns)):
            rows, before, body = loop, tuple(outside), columns.body
        case _:
            return None
    inner = [at for at, stmt in enumerate(body) if isinstance(stmt, For)]
    if len(inner) != 1 or rows.kind not in ORDERED or rows.step != 1:
        return None
    terms = body[inner[0]]
    first, last = body[: inner[0]], body[inner[0] + 1 :]
    row = rows.symbol
    if not isinstance(terms, For) or terms.kind not in ORDERED or terms.step != 1:
        return None
    if row in columns.bound_by:
        return None
    slants = terms.lo.coefficient(row), terms.hi.coefficient(row)
    if slants not in ((0, 0), (0, 1), (1, 0), (0, -1), (-1, 0)):
        return None
    slant = 1 if -1 in slants else 0
    grows = slants in ((0, 0), (0, 1), (-1, 0))
    triangle = _Triangle(rows, columns, columns is loop, before, first, terms, last, slant, grows)
    return triangle if _is_plain(triangle) else None


def _is_plain(triangle: _Triangle) -> bool:
    """Does it consist of definitions, sums of its own and stores, few enough, and do its terms read something
    that is the same in all rows but not in all columns?"""
    parts = triangle.first, triangle.terms.body, triangle.last
    own = locals_defined((*triangle.before, *triangle.first))
    return (
        all(isinstance(stmt, Define) for stmt in (*triangle.before, *triangle.first))
        and all(isinstance(stmt, (Define, Update, Store)) for part in parts for stmt in part)
        and all(len(part) <= MOST_STATEMENTS for part in parts)
        and all(
            stmt.variable in own or stmt.variable in locals_defined(part)
            for part in parts
            for stmt in part
            if isinstance(stmt, Update)
        )
        and any(
            stride(tensor, triangle.same(index), triangle.rows.symbol) == 0
            and stride(tensor, index, triangle.columns.symbol) == 1
            for tensor, index, stores in affine_accesses(triangle.terms.body)
            if not stores
        )
        and (_is_long_enough(triangle) if triangle.has_corners else _repeats_cells(triangle))
    )


def _repeats_cells(triangle: _Triangle) -> bool:
    """Do steps go through the same cells again and again?"""
    return triangle.rows.kind is LoopKind.SEQUENTIAL and any(
        isinstance(stmt, Store) for stmt in triangle.terms.body
    )


def _is_long_enough(triangle: _Triangle) -> bool:
    """Has no row less than no terms?"""
    rows = triangle.rows
    shortest = rows.lo if triangle.grows else rows.hi - 1
    least = (triangle.hi - triangle.lo).substitute({rows.symbol: shortest}).bounds({})
    return least is not None and least[0] >= 0


def _rows_at_once(triangle: _Triangle, caps: Caps) -> int:
    """How many rows keep what their terms need in registers: two for each number that differs by column, one
    for each that does not and is used again. Rows that take turns at a cell need the latter one by one."""
    body = triangle.terms.body
    read = Counter(locals_read(body))
    changed = locals_updated(body)
    held = (changed | read.keys()) & locals_defined(triangle.first)
    again = {variable for variable in locals_defined(body) if read[variable] > 1}
    room, each = caps.registers - SHARED, 2 * len(held)
    if triangle.has_corners:
        each += len(again)
    else:
        room -= 2 * len(again)
    most = min(MOST_ROWS, room // max(1, each))
    trips = triangle.rows.trips
    if trips is None:
        return most
    most = min(most, trips // GROUPS if triangle.has_corners else trips)
    return -(-trips // -(-trips // most)) if most else 0


def _may_group(triangle: _Triangle) -> bool:
    """Whether the rectangle may come before what earlier rows of a group end with, and a column of several
    rows before the next column."""
    if triangle.rows.kind is LoopKind.PARALLEL:
        return True
    rows, columns, body = triangle.rows, triangle.columns, triangle.body
    written = written_in(walk_statements(body))
    changing = {rows.symbol, triangle.terms.symbol}
    return written.isdisjoint(gathered(body)) and all(
        _follows(triangle, storage)
        and (triangle.is_down or has_own_axis(columns.symbol, storage, body, changing))
        for storage in written
    )


def _follows(triangle: _Triangle, storage: Tensor) -> bool:
    """Whether the terms of a row, if the row reaches cells of its own beside them, reach only such of rows
    before it, where rows become longer, and otherwise only read such of itself and rows behind it. Stored
    cells of terms are those of one term each. One axis tells."""
    beside = (*triangle.before, *triangle.first, *triangle.last)
    own = [item for item in affine_accesses(beside) if item[0].storage is storage]
    others = [item for item in affine_accesses(triangle.terms.body) if item[0].storage is storage]
    tensor = (*own, *others)[0][0]
    if any(item[0] is not tensor for item in (*own, *others)):
        return False
    row, term = Affine.of(triangle.rows.symbol), Affine.of(triangle.terms.symbol)
    moving = {triangle.rows.symbol, triangle.terms.symbol}
    end = (triangle.hi if triangle.grows else triangle.lo) - row
    stores = any(is_stored for _, _, is_stored in others)

    def tells(axis: int, sign: int) -> bool:
        here = {index[axis] * sign - row for _, index, _ in own}
        there = {triangle.same(index)[axis] * sign - term for _, index, _ in others}
        if not all(moving.isdisjoint(at.symbols) for at in (*here, *there)) or (stores and len(there) > 1):
            return False
        if len(here) != 1 or (stores and not triangle.grows):
            return not here
        (mine,) = here
        apart = [mine - at - end if triangle.grows else at + end - mine for at in there]
        return all(one.is_constant and one.constant >= 0 for one in apart)

    return any(tells(axis, sign) for axis in range(tensor.rank) for sign in (1, -1))


def _in_groups(triangle: _Triangle, count: int, caps: Caps) -> Sequence[Stmt]:
    """The triangle with `count` rows at once, then what is left of them."""
    rows, columns = triangle.rows, _columns(triangle, caps)
    binds, whole = blocks(rows, count)
    group, row = Symbol(rows.symbol.hint), Symbol(rows.symbol.hint)
    goes_down = triangle.is_down or not _is_near(triangle, caps)

    def together(start: Affine, number: int) -> tuple[Stmt, ...]:
        column = columns.symbol if goes_down else Symbol(columns.symbol.hint)
        here = {columns.symbol: Affine.of(column)}
        copies = [Copying({rows.symbol: start + n, **here}, {}) for n in range(number)]
        before = tuple(copy.statement(stmt) for stmt in triangle.before for copy in copies)
        body = _group(triangle, copies, start)
        return (*before, *(body if goes_down else (replace(columns, symbol=column, body=body),)))

    kind = LoopKind.SEQUENTIAL if goes_down else rows.kind
    main = For(group, Affine.of(0), whole, together(rows.lo + Affine.of(group) * count, count), kind)
    start = rows.lo + whole * count
    if rows.trips is None:
        rest: tuple[Stmt, ...] = (For(row, start, rows.hi, together(Affine.of(row), 1), kind),)
    else:
        left = rows.trips % count
        rest = together(start, left) if left else ()
    body = (*binds, *unless_once(main), *rest)
    return (replace(columns, body=body),) if goes_down else body


def _group(triangle: _Triangle, copies: Sequence[Copying], start: Affine) -> tuple[Stmt, ...]:
    """The rows of these copies, of which the first is `start`."""
    rows, terms = triangle.rows, triangle.terms
    at = [start + n for n in range(len(copies))]
    los, his = ([end.substitute({rows.symbol: row}) for row in at] for end in (triangle.lo, triangle.hi))

    def part(numbers: Iterable[int], lo: Affine, hi: Affine) -> tuple[Stmt, ...]:
        symbol = Symbol(terms.symbol.hint)
        body: list[Stmt] = []
        for n in numbers:
            copies[n].symbols[terms.symbol] = Affine.of(symbol) - at[n] * triangle.slant
            body += copies[n].body(terms.body)
        return () if lo == hi else (replace(terms, symbol=symbol, lo=lo, hi=hi, body=tuple(body)),)

    first = [copy.statement(stmt) for stmt in triangle.first for copy in copies]
    every = range(len(copies))
    if triangle.grows:
        shared = part(every, los[0], his[0])
        ends = [(*part([n], his[0], his[n]), *copies[n].body(triangle.last)) for n in every]
        return (*first, *shared, *chain(*ends))
    starts = [part([n], los[n], los[-1]) for n in every]
    shared = part(every, los[-1], his[-1])
    return (*first, *chain(*starts), *shared, *chain(*(copy.body(triangle.last) for copy in copies)))


def _columns(triangle: _Triangle, caps: Caps) -> For:
    """The loop over columns, two registers of them at a time."""
    columns = triangle.columns
    lanes = min(MOST_LANES, 2 * caps.vector_bytes // max(map(_size, triangle.terms.body)))
    while columns.trips is not None and lanes > columns.trips:
        lanes //= 2
    return replace(columns, lanes=lanes)


def _size(stmt: Stmt) -> int:
    """The bytes of a number that a statement makes."""
    match stmt:
        case Define(variable=variable) | Update(variable=variable):
            return variable.dtype.itemsize
        case Store(tensor=tensor):
            return tensor.dtype.itemsize
        case _:
            return 1


def _is_near(triangle: _Triangle, caps: Caps) -> bool:
    """Does the second cache hold what all rows read by column?"""
    shared = {
        tensor
        for tensor, index, stores in affine_accesses(triangle.terms.body)
        if not stores
        and stride(tensor, triangle.same(index), triangle.rows.symbol) == 0
        and stride(tensor, index, triangle.columns.symbol) != 0
    }
    return all(tensor.has_fixed_shape for tensor in shared) and (
        sum(tensor.nbytes for tensor in shared) <= caps.l2_bytes
    )
