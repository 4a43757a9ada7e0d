"""altogether: positions in rows that follow one another are looked through for a few rows at once.

    for k in sequential(0, 512):                        for b in sequential(0, 512, 16):
        m = end[k + 1]                                      rows = 0
        n = end[k]                                          for k in vector(b, b + 16, lanes=8):
        a = where(n < 0, n + 9000, n)                           rows |= end[k + 1] - end[k] | ...
        ...                                                 signs = 0
        ok = True                                           if rows >= 0:
        for i in vector(0, c):                                  for i in vector(0, end[b + 16] - end[b]):
            t = p[a + i]                        ->                  t = p[end[b] + i]
            ok = and(ok, t >= -9 and t < 9)                         signs |= t | (8 - t)
        raise_(not ok, 'IndexError', ...)                   if (rows | signs) < 0:
        s = 0.0                                                 (the loop of before, from b to b + 16)
        for i in vector(0, c):                              else:
            t = p[a + i]                                        for k in sequential(b, b + 16):
            s += x.at(where(t < 0, t + 9, t))                       m = end[k + 1]
        y[k] = s                                                    n = end[k]
                                                                    s = 0.0
                                                                    for i in vector(0, m - n):
                                                                        s += x.at(p[n + i])
                                                                    y[k] = s

Rows of a sparse matrix and the neighbours of nodes in a graph are slices from `end[k]` to `end[k + 1]`, which
Python clips to the array, and whose positions are checked row by row. For short rows that takes as long as
what is done with them. Where one number tells that none of a few rows ends before it starts, nor lies outside
of the array, nothing is clipped; and the positions from the first start to the last end are those of all.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import reduce
from typing import Union

from ...frozen import frozen
from ...ir.code import Caps
from ...ir.conditions import compare
from ...ir.dtype import I64
from ...ir.expr import Apply, Const, Expr, Index, Local, Variable, dtype_of
from ...ir.index import Affine, Symbol
from ...ir.loops import (
    Bind,
    Define,
    For,
    If,
    Kernel,
    LoopKind,
    Raise,
    Stmt,
    Update,
    walk_statements,
    written_in,
)
from ...ir.ops import OPS
from ...ir.tensor import Tensor
from ...ir.walk import locals_read, locals_updated, rewrite_loops, storages_read, substitute
from ..analysis.copies import copy_body
from ..analysis.positions import ZERO, Positions, are_negative
from ..analysis.repeats import HEAVY, weight
from .certain import follow
from .facts import Facts
from .straight import Looked, Straightened

__all__ = ["altogether"]

FEWEST = 16
"""Of fewer rows none is worth to be written twice."""

TOGETHER = 16
"""So many rows are looked through at once: their positions are near when they are used."""

LONG = 24
"""Rows with more positions on average are looked through one by one where these come from far away: what has
come is used at once."""

NEAR = 4
"""Arrays as large as so many times the second cache are not far away."""

SHORT = 4
"""To look through no more positions for a row is not worth a second form."""

LANES = 8

Value = Union[Bind, Define]


def altogether(kernel: Kernel, caps: Caps) -> Kernel:
    """Every such loop in two forms, of which the positions of all its rows choose one."""
    has_no_use = LONG // caps.threads < SHORT
    if has_no_use or not any(isinstance(stmt, Raise) for stmt in walk_statements(kernel.body)):
        return kernel
    notes: list[str] = []

    def in_two_forms(loop: For) -> Iterable[Stmt] | None:
        for rows in _Rows.all_of(loop):
            straight = rows.straight()
            if straight is not None:
                hint = loop.symbol.hint
                notes.append(
                    f"altogether: positions in rows of the loop {hint} are looked through before them"
                )
                return rows.in_two_forms(straight, caps)
        return None

    return kernel.with_body(rewrite_loops(kernel.body, in_two_forms), notes)


@frozen
class _Rows:
    """A loop, each iteration of which has a `nest` that looks at positions by `checks`: perhaps at those
    from where one statement says to where another one does, which is where the next iteration starts."""

    loop: For
    nest: For
    checks: tuple[Looked, ...]
    start: Value
    end: Value

    @staticmethod
    def all_of(loop: For) -> Iterator[_Rows]:
        if loop.kind is not LoopKind.SEQUENTIAL or loop.step != 1 or (loop.trips or 0) < FEWEST:
            return
        written = written_in(walk_statements((loop,)))
        ends = [stmt for stmt in loop.body if isinstance(stmt, (Bind, Define)) and _goes_along(stmt, loop)]
        ends = [stmt for stmt in ends if _storage(stmt) not in written]
        for nest in loop.body if len(ends) > 1 else ():
            checks = tuple(Looked.all_of(nest)) if isinstance(nest, For) else ()
            if not isinstance(nest, For) or not _only_looks(nest, checks, written):
                continue
            for start in ends:
                following = substitute(start.value, {loop.symbol: Affine.of(loop.symbol) + 1})
                end = next((other for other in ends if other.value == following), None)
                if end is not None:
                    yield _Rows(loop, nest, checks, start, end)

    @property
    def extent(self) -> int:
        """How many positions there are."""
        return min(check.positions.load.tensor.shape[0].offset for check in self.checks)

    def straight(self) -> For | None:
        """The loop over rows that all lie within the array, one behind the other, and whose positions do so
        within their axes; None if the rows are others, or it is long."""
        facts = Facts.none({}, frozenset(locals_updated(walk_statements(self.loop.body))))
        straightened = Straightened(self.checks)
        body: list[Stmt] = []
        known: list[Expr] = []
        for stmt in self.loop.body:
            if stmt is self.nest:
                if len(known) < 2 or not self.is_row(facts):
                    return None
                continue
            body += follow(straightened.statement(stmt, ()), facts)
            if stmt is self.start or stmt is self.end:
                known.append(_number(stmt))
                facts.assume(facts.test(compare("greater_equal", known[-1], ZERO)).yes)
                facts.assume(facts.test(compare("less_equal", known[-1], Const(self.extent, I64))).yes)
                if len(known) == 2:
                    rises = compare("less_equal", _number(self.start), _number(self.end))
                    facts.assume(facts.test(rises).yes)
        new = _needed(body)
        return replace(self.loop, body=new) if weight(new) <= HEAVY else None

    def is_row(self, facts: Facts) -> bool:
        """Does the nest go through the row that starts and ends where the two say?"""
        start, end = facts.number(_number(self.start)), facts.number(_number(self.end))
        first = self.first.substitute(facts.numbers)
        return first == start and first + self.nest.hi.substitute(facts.numbers) == end

    @property
    def first(self) -> Affine:
        """The first position of a row."""
        return self.checks[0].positions.load.index[0] - self.nest.symbol

    def in_two_forms(self, straight: For, caps: Caps) -> Sequence[Stmt]:
        """The rows, a few at a time, in the form that their positions choose; all at once if threads share
        them, each of which then does less for a row, while one of them looks through all positions."""
        loop, trips, long = self.loop, self.loop.trips or 0, LONG // caps.threads
        if caps.threads > 1:
            return tuple(self.some(straight, loop.lo, loop.hi, long * trips))
        is_near = all(check.positions.load.tensor.nbytes <= NEAR * caps.l2_bytes for check in self.checks)
        most = None if is_near else long * TOGETHER
        block = Symbol("block")
        first, past = Affine.of(block), Affine.of(block) + TOGETHER
        if trips % TOGETHER == 0:
            body = tuple(self.some(straight, first, past, most))
        else:
            last = Symbol("last", lower=loop.lo.offset + 1 if loop.lo.is_constant else None)
            nearer = Apply(OPS["minimum"], (Index(past), Index(loop.hi)), I64)
            body = (Bind(last, nearer), *self.some(straight, first, Affine.of(last), most))
        return (For(block, loop.lo, loop.hi, body, step=TOGETHER),)

    def some(self, straight: For, lo: Affine, hi: Affine, most: int | None) -> Iterator[Stmt]:
        """What tells the signs of some rows, and of all positions in them, if the rows are good and have no
        more of them than that; and the choice."""
        rows = Variable("rows", I64)
        first, count = (Symbol(hint, lower=0, upper=self.extent + 1) for hint in ("first", "count"))
        start, end = (substitute(self.start.value, {self.loop.symbol: at}) for at in (lo, hi))
        signs = [check.signs for check in self.checks]
        yield Define(rows, ZERO)
        yield self.looked_through(rows, lo, hi)
        yield from (Define(one, Const(0, one.dtype)) for one in signs)
        cells = Apply(OPS["subtract"], (end, start), I64)
        if most is not None:
            yield Update(rows, Apply(OPS["subtract"], (Const(most, I64), cells), I64), OPS["bitwise_or"])
        looks = Bind(first, start), Bind(count, cells), self.with_signs(first, count)
        yield If(compare("greater_equal", Local(rows), ZERO), looks)
        as_before, as_they_are = (replace(form, lo=lo, hi=hi) for form in (self.loop, straight))
        negative = are_negative([Local(rows), *map(Local, signs)])
        yield If(negative, (as_before,), copy_body((as_they_are,), {}, {}))

    def looked_through(self, rows: Variable, lo: Affine, hi: Affine) -> For:
        """Makes `rows` negative if one of them lies outside of the array, or ends before it starts."""
        start, end = self.start.value, self.end.value
        one, other = Variable("t", I64), Variable("t", I64)
        signs: tuple[Expr, ...] = (
            Local(one),
            Local(other),
            Apply(OPS["subtract"], (Local(other), Local(one)), I64),
            Apply(OPS["subtract"], (Const(self.extent, I64), Local(other)), I64),
        )
        either = reduce(lambda left, right: Apply(OPS["bitwise_or"], (left, right), I64), signs)
        body = Define(one, start), Define(other, end), Update(rows, either, OPS["bitwise_or"])
        loop = replace(self.loop, lo=lo, hi=hi, body=body, kind=LoopKind.VECTOR, lanes=LANES)
        (copied,) = copy_body((loop,), {}, {})
        assert isinstance(copied, For)
        return copied

    def with_signs(self, first: Symbol, count: Symbol) -> For:
        """The nest over the positions of all rows, telling their signs."""
        along = {self.nest.symbol: Affine.of(first) + self.nest.symbol - self.first}
        body: list[Stmt] = []
        for check in self.checks:
            value = substitute(check.positions.value, along)
            positions = Positions.of(value, (self.nest,))
            assert positions is not None
            body.append(Define(check.one, value))
            body.append(positions.sign(Local(check.one), check.last, check.signs))
        (loop,) = copy_body((replace(self.nest, hi=Affine.of(count), body=tuple(body)),), {}, {})
        assert isinstance(loop, For)
        return loop


def _goes_along(stmt: Value, loop: For) -> bool:
    """Is its value an integer that lies in memory, for each iteration at another place?"""
    positions = Positions.of(stmt.value, (loop,))
    if positions is None or dtype_of(stmt.value) is not I64 or not positions.own():
        return False
    return {symbol for at in positions.load.index for symbol in at.symbols} <= {loop.symbol, *loop.bound_by}


def _storage(stmt: Value) -> Tensor:
    (storage,) = storages_read((stmt.value,))
    return storage


def _only_looks(nest: For, checks: Sequence[Looked], written: Collection[Tensor]) -> bool:
    """Does a nest nothing but make these checks, of positions that lie one after another in arrays which do
    not change?"""
    if nest.lo != Affine.of(0) or nest.step != 1 or not checks or len(nest.body) != 2 * len(checks):
        return False
    index = checks[0].positions.load.index
    if len(index) != 1 or index[0].coefficient(nest.symbol) != 1:
        return False
    return all(
        isinstance(check.last, Const)
        and check.positions.load.index == index
        and check.positions.load.tensor.shape[0].is_constant
        and check.positions.load.tensor.storage not in written
        for check in checks
    )


def _number(stmt: Value) -> Expr:
    """What a statement gives a name to."""
    return Index(Affine.of(stmt.symbol)) if isinstance(stmt, Bind) else Local(stmt.variable)


def _needed(body: Sequence[Stmt]) -> tuple[Stmt, ...]:
    """A body without locals that nothing in it reads."""
    read: set[Variable] = set()
    out: list[Stmt] = []
    for stmt in reversed(body):
        if not isinstance(stmt, Define) or stmt.variable in read:
            out.append(stmt)
            read.update(locals_read(walk_statements((stmt,))), locals_updated(walk_statements((stmt,))))
    return tuple(reversed(out))
