"""overwrite: rows of an array that a loop stores anew, one after the other, are not filled before.

    x[i, j] = b[i, j]    for i, j in 50, 80                 x[0, j] = b[0, j]    for j in 80
    for k in range(1, 49):                                  x[49, j] = b[49, j]  for j in 80
        x[k, j] = b[k, j] + x[k - 1, j]  for j in 80   ->   for k in range(1, 49):
                                                                x[k, j] = b[k, j] + x[k - 1, j]  for j in 80

So do solvers of tridiagonal systems and filters along an axis, which begin with a copy of what they are given
or with zeros. What fills a row must not be seen by anyone: the loop may read rows that it has stored, and
those that it leaves as they are. An exception would leave the array to the caller, so nothing may raise one.

    x[i, j] = b[j, i]    for i, j in 50, 80                 x[i, j] = b[j, i]    for i, j in 50, 80
    for k in range(1, 49):                                  for k in range(1, 49):
        x[k, j] = b[j, k] + x[k - 1, j]  for j in 80   ->       x[k, j] = x[k, j] + x[k - 1, j]  for j in 80

A copy in which neighbours are others, as of a matrix that is turned, is read in the place of what was copied:
there each number of a row would be in another line. Heat in a plate, implicit in both directions by turns,
takes 0.88 of the time by both.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from operator import eq

from ...frozen import frozen
from ...ir.assign import (
    Assign,
    Check,
    Computation,
    Loop,
    Statement,
    expressions,
    rewrite_bodies,
    rewrite_expressions,
    statements,
)
from ...ir.code import Caps
from ...ir.expr import Expr, Load
from ...ir.index import Affine, Symbol
from ...ir.tensor import Tensor
from ...ir.walk import kept, substitute, transform
from ..analysis.access import loads, visible
from ..analysis.boxes import Box, common, holds, own_ranges, reached, written

__all__ = ["overwrite"]

FAR = 64
"""Through so many statements at most a filled array is followed."""


def overwrite(computation: Computation, caps: Caps) -> Computation:
    """The computation in which no rows are filled that loops overwrite at once."""
    seen = visible(computation.params)

    def inside(body: tuple[Statement, ...]) -> tuple[Statement, ...]:
        out = [rewrite_bodies(statement, inside) for statement in body]
        at = 0
        while at < len(out):
            filling = _Filling.of(out[at])
            if filling is not None and filling.into.storage not in seen:
                out[at : at + 1 + FAR] = filling.followed(out[at + 1 : at + 1 + FAR])
            at += 1
        return kept(body, out)

    body = inside(computation.body)
    return computation if body is computation.body else replace(computation, body=body)


@frozen
class _Filling:
    """A statement that stores a box of cells, by rows."""

    statement: Assign
    box: Box

    @staticmethod
    def of(statement: Statement) -> _Filling | None:
        if not isinstance(statement, Assign) or len(statement.loops) < 2 or statement.into.base is not None:
            return None
        box = written(statement)
        return None if box is None or not all(box) else _Filling(statement, box)

    @property
    def into(self) -> Tensor:
        return self.statement.into

    def followed(self, rest: Sequence[Statement]) -> list[Statement]:
        """The statement and those after it, of which a loop may store rows anew."""
        for at, statement in enumerate(rest):
            if any(isinstance(inner, Check) for inner in statements((statement,))):
                break
            storing = _Storing.of(statement, self) if isinstance(statement, Loop) else None
            if storing is not None:
                turned = self.turned(rest[:at], storing)
                if turned is None:
                    return [*self.beside(storing), *rest]
                return [self.statement, *rest[:at], turned, *rest[at + 1 :]]
            if any(tensor.storage is self.into.storage for tensor, _ in _accesses(statement)):
                break
        return [self.statement, *rest]

    def beside(self, storing: _Storing) -> Iterator[Assign]:
        """What is filled on both sides of the rows that the loop stores."""
        filled = self.box[storing.axis]
        again = common(filled, storing.rows)
        if not again:
            yield self.statement
        elif again.start > filled.start:
            yield _part(self.statement, storing.axis, range(filled.start, again.start))
        if again and again.stop < filled.stop:
            yield _part(self.statement, storing.axis, range(again.stop, filled.stop))

    def turned(self, between: Sequence[Statement], storing: _Storing) -> Loop | None:
        """The loop, which reads the copy; None unless neighbours are others in what was copied."""
        source = self.statement.value
        if not isinstance(source, Load) or not _turns(self.statement.index, source.index):
            return None
        if any(tensor.storage is source.tensor.storage for tensor in _stored((*between, storing.loop))):
            return None
        until = [self.from_copy(statement, source, storing) for statement in storing.until]
        if all(map(eq, until, storing.until)):
            return None
        return replace(storing.loop, body=(*until, *storing.loop.body[len(until) :]))

    def from_copy(self, statement: Statement, source: Load, storing: _Storing) -> Statement:
        """A statement that reads the row which is stored next from the copy."""
        ranges = {storing.loop.symbol: storing.numbers, **own_ranges(statement)}

        def copied(node: Expr) -> Expr:
            if not isinstance(node, Load) or node.tensor is not source.tensor:
                return node
            values = {
                symbol: position - own.offset
                for position, own in zip(node.index, source.index, strict=True)
                for symbol in own.symbols
            }
            index = tuple(position.substitute(values) for position in self.statement.index)
            is_same = node.index == tuple(position.substitute(values) for position in source.index)
            cells = reached(index, ranges)
            is_copied = cells is not None and holds(self.box, cells) and index[storing.axis] == storing.row
            return Load(self.into, index) if is_same and is_copied else node

        return rewrite_expressions(statement, lambda expr: transform(expr, copied))


@frozen
class _Storing:
    """A loop in which the statement at a place stores the rows of a filling, along an axis, one after the
    other, from and to these `numbers` of the loop."""

    loop: Loop
    at: int
    axis: int
    row: Affine
    numbers: tuple[int, int]

    @property
    def rows(self) -> range:
        low, high = (number + self.row.offset for number in self.numbers)
        return range(low, high + 1)

    @property
    def until(self) -> tuple[Statement, ...]:
        """The statements of an iteration up to that one."""
        return self.loop.body[: self.at + 1]

    @staticmethod
    def of(loop: Loop, filling: _Filling) -> _Storing | None:
        """None if rows of the filling are looked at."""
        if not loop.lo.is_constant or not loop.hi.is_constant or abs(loop.step) != 1:
            return None
        numbers = range(loop.lo.offset, loop.hi.offset, loop.step)
        for at, statement in enumerate(loop.body if numbers else ()):
            axis = _axis(statement, loop.symbol, filling)
            if axis is not None and isinstance(statement, Assign):
                ends = min(numbers), max(numbers)
                storing = _Storing(loop, at, axis, statement.index[axis], ends)
                return storing if storing.looks_behind(filling.into) else None
        return None

    def looks_behind(self, into: Tensor) -> bool:
        """Does the loop look only at rows that it has stored, or never does, but for those that it stores?"""
        return all(
            tensor is into and index is not None and self.is_stored(index[self.axis], at)
            for at, outer in enumerate(self.loop.body)
            for tensor, index in _accesses(outer, but=self.loop.body[self.at])
            if tensor.storage is into.storage
        )

    def is_stored(self, place: Affine, at: int) -> bool:
        """Has a row been stored, where the statement at a place looks at it, or is it never?"""
        if place.is_constant:
            return place.offset not in self.rows
        behind = (self.row - place) * self.loop.step
        return behind.is_constant and (behind.offset > 0 or (behind.offset == 0 and at > self.at))


def _axis(statement: Statement, symbol: Symbol, filling: _Filling) -> int | None:
    """Along which axis a statement stores all of that row of a filling which a symbol means."""
    if not isinstance(statement, Assign) or statement.into is not filling.into:
        return None
    axes = [n for n, place in enumerate(statement.index) if symbol in place.symbols]
    if len(axes) != 1 or statement.index[axes[0]] != Affine.of(symbol) + statement.index[axes[0]].offset:
        return None
    (axis,) = axes
    row = written(
        replace(statement, index=tuple(at.substitute({symbol: Affine.of(0)}) for at in statement.index))
    )
    rest = None if row is None else row[:axis] + row[axis + 1 :]
    return axis if rest is not None and holds(rest, filling.box[:axis] + filling.box[axis + 1 :]) else None


def _accesses(
    statement: Statement, but: Statement | None = None
) -> Iterator[tuple[Tensor, tuple[Affine, ...] | None]]:
    """What a statement and those inside read and store, but for what one of them stores."""
    for inner in statements((statement,)):
        for expr in expressions(inner):
            yield from loads(expr)
        if isinstance(inner, Assign) and inner is not but:
            yield inner.into, inner.index


def _stored(body: tuple[Statement, ...]) -> Iterator[Tensor]:
    return (inner.into for inner in statements(body) if isinstance(inner, Assign))


def _part(statement: Assign, axis: int, part: range) -> Assign:
    """The statement, for these positions alone along an axis of what it stores."""
    (moving,), first = statement.index[axis].symbols, part.start - statement.index[axis].offset
    new = {symbol: Symbol(symbol.hint) for symbol, _ in statement.loops}
    values = {symbol: Affine.of(own) for symbol, own in new.items()}
    values[moving] = values[moving] + first if len(part) > 1 else Affine.of(first)
    loops = tuple(
        (new[symbol], Affine.of(len(part)) if symbol is moving else extent)
        for symbol, extent in statement.loops
        if symbol is not moving or len(part) > 1
    )
    index = tuple(position.substitute(values) for position in statement.index)
    return replace(statement, loops=loops, index=index, value=substitute(statement.value, values))


def _turns(index: Sequence[Affine], source: Sequence[Affine]) -> bool:
    """Is a copy one of single cells in which neighbours are others?"""
    to, taken = ([position.terms for position in at if position.terms] for at in (index, source))
    return to[-1:] != taken[-1:] and all(len(terms) == 1 and terms[0][0] == 1 for terms in taken)
