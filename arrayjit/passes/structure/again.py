"""again: a reduction that has been done already is a copy, and a check that has been made is left out.

    m[i] = reduce(maximum, x[j, i], -inf)           m[i] = reduce(maximum, x[j, i], -inf)
    p[i] = reduce(minimum, where(x[j, i] == m[i], j, 12), 12)
    n[i] = reduce(maximum, x[j, i], -inf)   ->      p[i] = ...
                                                    n[i] = m[i]

One line asks for the position of an extreme and the next one for the extreme, or one for a mean and the next
for a standard deviation. Nothing that the reduction reads, nor its result, may have been written in between.
Copies are inlined. What `x[rows, p] -= 1` reads it writes at the same positions: they are looked at once.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace

from ...frozen import frozen
from ...ir.assign import (
    Assign,
    Check,
    Computation,
    Statement,
    assigned,
    expressions,
    rewrite_bodies,
    statements,
)
from ...ir.code import Caps
from ...ir.expr import Load
from ...ir.index import Affine, Symbol
from ...ir.tensor import Tensor
from ...ir.walk import kept, storages_read, substitute

__all__ = ["again", "asked", "names_of_axes"]

Body = tuple[Statement, ...]

_AXES = [Symbol("i") for _ in range(64)]
"""What loops are called where reductions are compared."""


def again(computation: Computation, caps: Caps) -> Computation:
    """The computation without reductions and checks that were there before, in the same body."""
    if sum(isinstance(each, Check) or _is_reduction(each) for each in statements(computation.body)) < 2:
        return computation
    body = _once(computation.body)
    return computation if body is computation.body else replace(computation, body=body)


def _is_reduction(statement: Statement) -> bool:
    return isinstance(statement, Assign) and statement.accum is not None and statement.initial is not None


@frozen
class _Reduction:
    """One that was done: `what` says of what, for the loops `_AXES`, by which its result is indexed with
    `index`; `read` are the storages that it reads."""

    what: Hashable
    into: Tensor
    index: tuple[Affine, ...]
    read: frozenset[Tensor]

    @property
    def touched(self) -> tuple[Tensor, ...]:
        """The storages that must stay as they are for the result to be this one."""
        return (*self.read, self.into.storage)

    @staticmethod
    def of(statement: Statement) -> _Reduction | None:
        """None for other statements, and where a cell of the result is not one of the loops that are left."""
        if not isinstance(statement, Assign) or not _is_reduction(statement):
            return None
        loops = {symbol for symbol, _ in statement.loops}
        moving = [position for position in statement.index if not loops.isdisjoint(position.symbols)]
        axes = {position.symbol for position in moving}
        if None in axes or len(axes) < len(moving) or len(loops) > len(_AXES):
            return None
        index = tuple(position.substitute(names_of_axes(statement)) for position in statement.index)
        left = tuple(symbol in axes for symbol, _ in statement.loops)
        what = asked(statement), left, statement.accum, statement.contract, statement.into.dtype
        return _Reduction(what, statement.into, index, frozenset(storages_read(expressions(statement))))

    def copied(self, other: Assign) -> Assign:
        """The same one done again, as a copy."""
        names = {name: Affine.of(symbol) for (symbol, _), name in zip(other.loops, _AXES, strict=False)}
        result = Load(self.into, tuple(position.substitute(names) for position in self.index))
        loops = tuple(pair for pair in other.loops if any(at.coefficient(pair[0]) for at in other.index))
        return Assign(loops, other.into, other.index, result, loc=other.loc)


def names_of_axes(statement: Assign | Check) -> dict[Symbol, Affine]:
    """What the loops of a statement are called where it is compared with others."""
    return {symbol: Affine.of(name) for (symbol, _), name in zip(statement.loops, _AXES, strict=False)}


def asked(statement: Assign | Check) -> Hashable:
    """For how many cells, and what of each, for the loops `_AXES`."""
    names = names_of_axes(statement)
    extents = tuple(extent for _, extent in statement.loops)
    return extents, tuple(substitute(value, names) for value in expressions(statement))


def _once(body: Body) -> Body:
    done: dict[Hashable, tuple[int, _Reduction]] = {}
    made: dict[Hashable, int] = {}
    written: dict[Tensor, int] = {}

    def known(what: Hashable) -> _Reduction | None:
        """The reduction that was done, unless something of it was written since."""
        since, one = done.get(what, (0, None))
        lasts = one is not None and all(written.get(tensor, 0) <= since for tensor in one.touched)
        return one if lasts else None

    out: list[Statement] = []
    for now, statement in enumerate(body, 1):
        if isinstance(statement, Check):
            since = made.setdefault(asked(statement), now)
            read = storages_read(expressions(statement))
            if since < now and all(written.get(tensor, 0) <= since for tensor in read):
                continue
            made[asked(statement)] = now
        statement = rewrite_bodies(statement, _once)
        found = _Reduction.of(statement)
        before = None if found is None else known(found.what)
        if before is not None and isinstance(statement, Assign):
            statement = before.copied(statement)
        out.append(statement)
        here = assigned((statement,))
        written.update(dict.fromkeys(here, now))
        if found is not None and found.read.isdisjoint(here) and known(found.what) is None:
            done[found.what] = now, found
    return kept(body, out)
