"""whereabouts: of a long row it is kept in which part its extreme stands, and only that is searched.

    m = inf                                         m = inf
    for j in parallel(0, 8192):                     part = 0
        m = reduce(minimum, m, x[i, j])             for k in sequential(0, 32):
    p = 8191                                            t = inf
    for j in parallel(0, 8192):                         for j in parallel(0, 256):
        hit = x[i, j] == m or x[i, j] != x[i, j]            t = reduce(minimum, t, x[i, 256*k + j])
        p = reduce(minimum, p, where(hit, j, 8191))     part = where(not (t >= m) and m == m, k, part)
                                            ->          m = reduce(minimum, m, t)
                                                    start = 256*part
                                                    p = 8191
                                                    for j in parallel(0, 256):
                                                        hit = x[i, start + j] == m or ...
                                                        p = reduce(minimum, p, where(hit, start + j, 8191))

The row is read once instead of twice: positions of 8000 float64 cells take 0.45 of the time, of 1024 cells
0.67. What fills no part is searched in the last part of as many cells, of which those of the part before are
known not to have the extreme. Rows across memory go side by side; `foremost` finds positions on their way.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ...frozen import frozen
from ...ir.code import Caps
from ...ir.conditions import compare, one_of
from ...ir.dtype import I64
from ...ir.expr import Apply, Cast, Const, Expr, Gather, Index, Load, Local, Variable, constant
from ...ir.index import Affine, Symbol
from ...ir.loops import Bind, Define, For, Kernel, LoopKind, Stmt, Store, Update, walk_statements
from ...ir.ops import OPS
from ...ir.walk import kept, rewrite_bodies, substitute, walk
from ..analysis.copies import copy_body
from ..analysis.strides import stride
from ..analysis.values import Values, values_of, written_out
from .foremost import NOT_BEYOND, beyond, cell_and_extreme, start_of, starts_from_all

__all__ = ["whereabouts"]

PART = 256
"""Cells of a part."""

LONG = 4 * 1024
"""The bytes of a row from which on parts pay."""


LEAST = OPS["minimum"]


def whereabouts(kernel: Kernel, caps: Caps) -> Kernel:
    """Every such pair of loops, the second one over a part."""
    if not any(isinstance(stmt, Update) and stmt.accum is LEAST for stmt in walk_statements(kernel.body)):
        return kernel
    notes: list[str] = []

    def visit(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        out = list(kept(body, [rewrite_bodies(stmt, visit) for stmt in body]))
        for at in range(len(out) - 1, 0, -1):
            row = _row(out, at)
            if row is not None:
                notes.append(
                    f"whereabouts: {row.place.hint} is searched in one part of {row.loop.symbol.hint}"
                )
                out[at : at + 1] = row.searched()
                out[row.at : row.at + 1] = row.by_parts()
        return kept(body, out)

    return kernel.with_body(visit(kernel.body), notes)


@frozen
class _Row:
    """The loop, statement `at` of a body, that finds the extreme of what `extreme` accumulates, and the
    `search` for its place; the number of the `part` in which it stands."""

    at: int
    loop: For
    extreme: Update
    search: For
    place: Variable
    part: Variable

    def by_parts(self) -> Iterator[Stmt]:
        """What finds the extreme, and its part."""
        parts, rest = divmod(self.loop.hi.constant, PART)
        number = Symbol("part")
        yield Define(self.part, constant(0, I64))
        yield For(number, Affine.of(0), Affine.of(parts), tuple(self.one(Affine.of(number), PART)))
        if rest:
            yield from self.one(Affine.of(parts), rest)

    def one(self, number: Affine, cells: int) -> Iterator[Stmt]:
        """What looks through one part."""
        total, accum = self.extreme.variable, self.extreme.accum
        assert accum is not None
        assert accum.identity is not None
        own = Variable(total.hint, total.dtype)
        inner = self.over(number * PART, cells, self.loop)
        steps = (replace(stmt, variable=own) if isinstance(stmt, Update) else stmt for stmt in inner.body)
        yield Define(own, constant(accum.identity(total.dtype), total.dtype))
        yield replace(inner, body=tuple(steps))
        is_first = beyond(accum, Local(own), Local(total))
        yield Update(self.part, one_of(is_first, Index(number), Local(self.part)))
        yield Update(total, Local(own), accum)

    def searched(self) -> tuple[Stmt, ...]:
        """The search in the part."""
        last = self.loop.hi.constant - PART
        first: Expr = Apply(OPS["multiply"], (Local(self.part), constant(PART, I64)), I64)
        if last % PART:
            end = constant(last, I64)
            first = one_of(compare("less", first, end), first, end)
        start = Symbol("start", lower=0, upper=last + 1)
        return Bind(start, first), self.over(Affine.of(start), PART, self.search)

    @staticmethod
    def over(start: Affine, cells: int, loop: For) -> For:
        """Some iterations of a loop."""
        here = Symbol(loop.symbol.hint)
        body = copy_body(loop.body, {loop.symbol: start + here}, {})
        return replace(loop, symbol=here, lo=Affine.of(0), hi=Affine.of(cells), body=body)


def _row(body: Sequence[Stmt], at: int) -> _Row | None:
    """The row that statement `at` of a body searches; None if that is not long, or may have changed since its
    extreme was found, or if this may be none of its cells."""
    search, before = body[at], next((k for k in range(at - 1, -1, -1) if isinstance(body[k], For)), at)
    loop = body[before]
    if not isinstance(search, For) or not isinstance(loop, For) or loop is search:
        return None
    between, wanted, found = body[before + 1 : at], _step(search), _step(loop)
    known = values_of([stmt for stmt in between if not isinstance(stmt, Store)])
    ends = search.lo, search.hi, search.step, search.kind
    if wanted is None or found is None or known is None or ends != (loop.lo, loop.hi, loop.step, loop.kind):
        return None
    (place, value), (extreme, its_cell) = wanted, found
    cell = substitute(its_cell, {loop.symbol: Affine.of(search.symbol)})
    stored = {stmt.tensor.storage for stmt in between if isinstance(stmt, Store)}
    nowhere = start_of(place.variable, body[:at])
    if (
        not _is_along_memory(search, cell, extreme.variable.dtype.itemsize)
        or not _is_search(search, value, cell, extreme, known)
        or not starts_from_all(extreme, body[:before])
        or place.accum is not LEAST
        or nowhere is None
        or nowhere.value < search.hi.constant - 1
        or any(isinstance(stmt, Update) for stmt in between)
        or any(node.tensor.storage in stored for node in walk(cell) if isinstance(node, Load))
    ):
        return None
    return _Row(before, loop, extreme, search, place.variable, Variable("part", I64))


def _step(loop: For) -> tuple[Update, Expr] | None:
    """What a loop accumulates, if it is one value and all that it does, and of what."""
    values = values_of(loop.body)
    steps = [stmt for stmt in loop.body if isinstance(stmt, Update)]
    return None if values is None or len(steps) != 1 else (steps[0], written_out(steps[0].value, values))


def _is_along_memory(loop: For, cell: Expr, size: int) -> bool:
    """Does a loop go through a long row of neighbours?"""
    if loop.kind is not LoopKind.PARALLEL or loop.step != 1 or loop.lo != Affine.of(0):
        return False
    if loop.trips is None or loop.trips < 2 * PART or loop.trips * size < LONG:
        return False
    loads = [node for node in walk(cell) if isinstance(node, Load)]
    steps = {stride(node.tensor, node.index, loop.symbol) for node in loads}
    return 1 in steps and steps <= {0, 1} and not any(isinstance(node, Gather) for node in walk(cell))


def _is_search(loop: For, value: Expr, cell: Expr, extreme: Update, known: Values) -> bool:
    """Is a value the position of a cell that is the extreme, or else a constant?"""
    match value:
        case Apply(op=op, args=(hit, Cast(arg=Index(value=at)), Const())) if op is OPS["where"]:
            pair = cell_and_extreme(hit)
            if pair is None or at != Affine.of(loop.symbol) or extreme.accum not in NOT_BEYOND:
                return False
            return pair[0] == cell and written_out(Local(pair[1]), known) == Local(extreme.variable)
        case _:
            return False
