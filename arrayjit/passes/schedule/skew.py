"""skew: rows of a recurrence are taken a few at once, each a step behind the row before it.

    for i in sequential(1, 201):                for b in sequential(0, 50):
        for j in sequential(1, 181):                ...
            x[i, j] = minimum(x[i - 1, j],          for j in sequential(4, 181):
                              x[i, j - 1])  ->          x[4*b + 1, j] = minimum(x[4*b, j], ...)
                                                        x[4*b + 2, j - 1] = minimum(x[4*b + 1, j - 1], ...)
                                                        x[4*b + 3, j - 2] = ...
                                                        x[4*b + 4, j - 3] = ...
                                                    ...

In a table where each cell needs the one to its left, a row is one chain of operations that wait for one
another. Neighbouring rows are chains as well, and the processor works on several while each waits. A cell
still comes after all that it needs: where that is in an earlier row, it lies at most as many columns ahead as
the rows are apart, times the shift. The first rows of a block begin alone, and the last ones end so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from ...frozen import frozen
from ...ir.expr import Apply, Expr, Load, Local, Variable
from ...ir.index import Affine, Symbol
from ...ir.loops import Bind, Comment, Define, For, LoopKind, Stmt, Store, Update
from ...ir.ops import OPS
from ...ir.walk import children, locals_defined
from ..analysis.access import Distance, Range, Ranges, effects
from ..analysis.carriers import meetings
from ..analysis.copies import Copying, unless_once
from ..analysis.loopwise import Site, loopwise
from ..analysis.repeats import weight
from ..analysis.trips import enter

__all__ = ["skew"]

ROWS = (8, 4)
"""How many rows are taken at once, the more of them if there are registers for what they hand on."""

REGISTERS = 4
"""So many of them are left for each row, at least."""

GENERAL = 3
"""How many rows of integers are taken at once whose cells follow from their neighbours in a moment: general
registers are half as many, and some of them hold addresses."""

MOMENT = 3
"""So many operations are one, if none of them takes longer than a cycle."""

QUICK = frozenset(
    OPS[name]
    for name in (
        "add", "subtract", "negative", "minimum", "maximum", "where",
        "equal", "not_equal", "less", "less_equal", "greater", "greater_equal",
        "logical_and", "logical_or", "logical_not", "bitwise_and", "bitwise_or", "bitwise_xor",
    )
)  # fmt: skip
"""Operations on integers that do not."""

HEAVY = 24
"""Operations of a cell beyond which one row keeps the processor busy."""

LONG = 8
"""A row has so many cells for each one in which rows begin or end alone."""

SHIFTS = (1, 2)
"""By how many cells a row may be behind the one before it."""


@loopwise
def skew(rows: For, site: Site) -> Iterable[Stmt] | None:
    """Every such recurrence with a few rows at once."""
    if not _is_plain_loop(rows):
        return None
    counts = [count for count in ROWS if REGISTERS * count <= site.caps.registers]
    for count in [GENERAL] if _is_quick(rows) else counts:
        table = _Table.of(rows, site.ranges, count)
        if table is not None:
            hint = rows.symbol.hint
            site.notes.append(
                f"skew: {count} rows of {hint} at once, each {table.shift} behind the one before"
            )
            return table.skewed()
    return None


@frozen
class _Table:
    """A loop over rows, of which so many are taken at once: what is defined before the columns of each, the
    loop over these, and by how many cells a row must be behind."""

    rows: For
    before: tuple[Bind | Define, ...]
    columns: For
    shift: int
    count: int

    @staticmethod
    def of(rows: For, ranges: dict[Symbol, Range], count: int) -> _Table | None:
        """None where rows cannot be taken at once, or need not be."""
        if (rows.trips or 0) < count:
            return None
        *before, columns = rows.body
        definitions = tuple(stmt for stmt in before if isinstance(stmt, (Bind, Define)))
        if not isinstance(columns, For) or not _is_plain_loop(columns) or len(definitions) < len(before):
            return None
        enter(columns, ranges)
        if (columns.trips or 0) < LONG * count or not _is_plain_body(columns.body):
            return None
        shift = _shift(rows, columns, ranges, count)
        if shift is None or (columns.trips or 0) < LONG * shift * count:
            return None
        return _Table(rows, definitions, columns, shift, count)

    def skewed(self) -> Iterator[Stmt]:
        """Blocks of rows, then the rows that are left."""
        rows = self.rows
        assert rows.trips is not None
        blocks, left = divmod(rows.trips, self.count)
        block = Symbol(rows.symbol.hint)
        body = tuple(self.block(rows.lo + Affine.of(block) * self.count))
        yield from unless_once(For(block, Affine.of(0), Affine.of(blocks), body))
        if left:
            yield from unless_once(replace(rows, lo=rows.hi - left))

    def block(self, first: Affine) -> Iterator[Stmt]:
        copies = [Copying({self.rows.symbol: first + n}, {}) for n in range(self.count)]
        for copy in copies:
            yield from copy.body(self.before)
        behind = [n * self.shift for n in range(self.count)]
        lo, hi = self.columns.lo, self.columns.hi
        for copy, late in zip(copies[:-1], behind, strict=False):
            yield from unless_once(self.span([copy], [0], lo, lo + (behind[-1] - late)))
        yield self.span(copies, behind, lo + behind[-1], hi)
        for copy, late in zip(copies[1:], behind[1:], strict=True):
            yield from unless_once(self.span([copy], [0], hi - late, hi))

    def span(self, copies: Sequence[Copying], behind: Sequence[int], lo: Affine, hi: Affine) -> For:
        """The columns from `lo` to `hi` of some rows, of each so many cells before."""
        column = Symbol(self.columns.symbol.hint)
        body: list[Stmt] = []
        for copy, late in zip(copies, behind, strict=True):
            values = {**copy.symbols, self.columns.symbol: column - late}
            body += Copying(values, copy.variables).body(self.columns.body)
        return replace(self.columns, symbol=column, lo=lo, hi=hi, body=tuple(body))


def _is_quick(rows: For) -> bool:
    """Does a cell of integers follow in a moment from the one beside it?"""
    *_, columns = rows.body
    if not isinstance(columns, For):
        return False
    stores = [stmt for stmt in columns.body if isinstance(stmt, Store)]
    before = {columns.symbol: Affine.of(columns.symbol) - 1}
    beside = {
        Load(stmt.tensor, tuple(position.substitute(before) for position in stmt.index)) for stmt in stores
    }
    steps: dict[Variable, int] = {}

    def since(expr: Expr) -> int | None:
        """How many operations an expression is behind those cells; None of one that needs none of them."""
        if isinstance(expr, Local):
            return steps.get(expr.variable)
        if isinstance(expr, Load):
            return 0 if expr in beside else None
        behind = [each for each in map(since, children(expr)) if each is not None]
        if not behind or not isinstance(expr, Apply):
            return max(behind, default=None)
        return max(behind) + (1 if expr.op in QUICK else MOMENT + 1)

    for stmt in columns.body:
        if isinstance(stmt, (Define, Update)) and (behind := since(stmt.value)) is not None:
            steps[stmt.variable] = behind
    waits = [since(stmt.value) or 0 for stmt in stores]
    return bool(stores) and max(waits) <= MOMENT and all(stmt.tensor.dtype.is_integer for stmt in stores)


def _is_plain_loop(loop: For) -> bool:
    return loop.kind is LoopKind.SEQUENTIAL and loop.step == 1


def _is_plain_body(body: tuple[Stmt, ...]) -> bool:
    """Does a body only store cells and set locals of its own, and is it light?"""
    own = locals_defined(body)
    return weight(body) <= HEAVY and all(
        isinstance(stmt, (Bind, Comment, Define, Store))
        or (isinstance(stmt, Update) and stmt.variable in own)
        for stmt in body
    )


def _shift(rows: For, columns: For, ranges: Ranges, count: int) -> int | None:
    """By how many cells a row must be behind the one before; None where that does not help: because of what
    rows need, or because the cells of a row do not wait for one another."""
    if rows.symbol in columns.bound_by:
        return None
    pairs = list(_meetings(rows, columns, ranges))
    if not any(down == (0, 0) and along != (0, 0) for down, along in pairs):
        return None
    for shift in SHIFTS:
        if all(_stays(down, along, shift, count) for down, along in pairs):
            return shift
    return None


def _meetings(rows: For, columns: For, ranges: Ranges) -> Iterator[tuple[Distance, Distance]]:
    """How many rows and columns apart iterations are that meet in a cell, the one that writes it counted from
    the other one."""
    found = effects(rows.body[:-1], ranges)
    found.add(effects(columns.body, ranges))
    for touched in (found.writes, found.reads):
        for apart in meetings(found.writes, touched, (rows.symbol, columns.symbol), ranges):
            yield apart[rows.symbol], apart[columns.symbol]


def _stays(down: Distance, along: Distance, shift: int, count: int) -> bool:
    """Does what comes first still do so, of two iterations of a block of rows that are so far apart?"""
    for rows, columns in ((down, along), ((-down[1], -down[0]), (-along[1], -along[0]))):
        fewest = max(rows[0], 1)
        if fewest <= min(rows[1], count - 1) and columns[0] + shift * fewest < 0:
            return False
    return True
