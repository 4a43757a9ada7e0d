"""relay: steps that wait for one another go along with those that take what they make.

    for k in sequential(1, 900):                        t[0] = subtract(x[0], y[0])
        y[k] = add(multiply(y[k - 1], 0.9), x[k])       z[0] = t[0]
    for i in parallel(0, 900):                          for k in sequential(1, 900):
        t[i] = subtract(x[i], y[i])             ->          y[k] = add(multiply(y[k - 1], 0.9), x[k])
    z[0] = t[0]                                             t[k] = subtract(x[k], y[k])
    for k in sequential(1, 900):                            z[k] = add(multiply(z[k - 1], 0.8), t[k])
        z[k] = add(multiply(z[k - 1], 0.8), t[k])

Each of the steps waits for the one before it, while the processor could do those of the other loop. What is
made for cells one by one between two such loops goes along; loops that start earlier make their first cells
before. No step may need what a later one makes, and what stood between the loops comes first. What steps
hand on stays in registers. (Steps that have nothing to do with one another go side by side anyway: `braid`.)
Moving averages of what moving averages differ by take half the time, three filters in a row 0.42.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import field, replace

from ...frozen import frozen, slotted
from ...ir.code import Caps
from ...ir.index import Affine, Symbol
from ...ir.loops import Comment, Define, For, Kernel, LoopKind, Stmt, Store, Update
from ...ir.tensor import Tensor
from ...ir.walk import kept, nodes_in, rewrite_bodies
from ..analysis.access import Effects, Range, effects, visible
from ..analysis.carriers import conflicts
from ..analysis.copies import copy_body, one_by_one
from ..analysis.costs import cost_of_nodes
from ..analysis.lockstep import lockstep
from ..analysis.trips import enter

__all__ = ["relay"]

FEWEST = 64
"""So many steps are worth it."""

HEAD = 2
"""So many cells may be made before."""

LIGHT = 8.0
"""Additions for a cell that may as well be made without vectors, while a step waits."""

HEAVY = 64.0
"""Additions of steps that have enough to do while they wait."""

NEAR = 64
"""So many statements are looked at for others that take what steps make."""

PLAIN = (Comment, Define, Store, Update)


def relay(kernel: Kernel, caps: Caps) -> Kernel:
    """Every such loop along with others."""
    relaying = _Relaying(visible(kernel.params))
    return kernel.with_body(relaying.body(kernel.body), relaying.notes)


@slotted
class _Relaying:
    """The caller sees the arrays `shown` even when the kernel is left by an exception; `ranges` are those of
    the loops around."""

    shown: Collection[Tensor]
    ranges: dict[Symbol, Range] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def body(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """A body with such loops joined. Rows that threads may share go several at a time instead."""
        out: list[Stmt] = []
        at = 0
        while at < len(body):
            stmt = body[at]
            team = self.team(body, at) if self.is_recurrence(stmt) else None
            if team is not None:
                self.notes.append(f"relay: steps of {len(team.loops)} loops go along with one another")
                out += team.joined()
                at += team.statements
                continue
            if isinstance(stmt, For):
                enter(stmt, self.ranges)
            is_shared = isinstance(stmt, For) and stmt.kind is LoopKind.PARALLEL
            out.append(stmt if is_shared else rewrite_bodies(stmt, self.body))
            at += 1
        return kept(body, out)

    def is_recurrence(self, stmt: Stmt) -> bool:
        """Is it a loop whose steps wait for one another, and do little else?"""
        if not isinstance(stmt, For) or stmt.kind is not LoopKind.SEQUENTIAL or not _is_plain(stmt):
            return False
        if _work(stmt) > HEAVY or stmt.trips is None or stmt.trips < FEWEST:
            return False
        if any(isinstance(inner, Store) and inner.regroup for inner in stmt.body):
            return False
        enter(stmt, self.ranges)
        return lockstep(stmt, self.ranges) is None

    def team(self, body: tuple[Stmt, ...], at: int) -> _Team | None:
        """The loop at a place with those that take what it makes, up to the last recurrence among them."""
        first = body[at]
        assert isinstance(first, For)
        team, found = _Team(first, self.ranges, self.shown), None
        for stmt in body[at : at + NEAR]:
            is_recurrence = self.is_recurrence(stmt)
            takes = team.takes(stmt)
            if isinstance(stmt, For) and (is_recurrence or (takes and _is_light(stmt))) and team.joins(stmt):
                if takes and (is_recurrence or found is not None):
                    found = replace(team, before=list(team.before), loops=list(team.loops))
            elif not team.lets_by((stmt,)):
                break
            else:
                team.before.append(stmt)
            team.statements += 1
            if found is not None and found.loops[-1] is stmt:
                found.statements = team.statements
        return found


@frozen
class _Member:
    """What a loop does in a step of the loop that it joins, and in all of those."""

    step: Effects
    all: Effects


@slotted
class _Team:
    """Loops that go along with the first of them, what comes `before` that, and from how many statements they
    were taken."""

    first: For
    ranges: dict[Symbol, Range]
    shown: Collection[Tensor]
    before: list[Stmt] = field(default_factory=list)
    loops: list[For] = field(default_factory=list)
    members: list[_Member] = field(default_factory=list)
    statements: int = 0

    def takes(self, stmt: Stmt) -> bool:
        """Does it read what the loops make?"""
        made = {storage for member in self.members for storage in member.all.writes}
        return not made.isdisjoint(effects((stmt,), self.ranges).reads)

    def joins(self, loop: For) -> bool:
        """Take another loop, if no step needs what a later one makes."""
        if not _is_plain(loop) or loop.hi != self.first.hi:
            return False
        head = self.first.lo.offset - loop.lo.offset
        if not 0 <= head <= HEAD or not self.lets_by(_head(loop, head)):
            return False
        rest = replace(loop, lo=self.first.lo)
        enter(loop, self.ranges)
        enter(self.first, self.ranges)
        step = effects(loop.body, self.ranges).renamed({loop.symbol: Affine.of(self.first.symbol)})
        if not all(self.is_in_order(member.step, step) for member in self.members):
            return False
        self.before += _head(loop, head)
        self.loops.append(loop)
        self.members.append(_Member(step, effects((rest,), self.ranges)))
        return True

    def is_in_order(self, one: Effects, other: Effects) -> bool:
        """Do steps of two loops meet in no cell that a later step of the first is about?"""
        if one.shares_variables(other):
            return False
        symbol = self.first.symbol
        return all(apart[symbol][1] <= 0 for apart in conflicts(one, other, (symbol,), self.ranges))

    def lets_by(self, body: Sequence[Stmt]) -> bool:
        """May statements come before all that the loops do together?"""
        own = effects(body, self.ranges)
        for member in self.members:
            if member.all.shares_variables(own):
                return False
            if own.leaves and not member.all.writes.keys().isdisjoint(self.shown):
                return False
            if any(True for _ in conflicts(member.all, own, (), self.ranges)):
                return False
        return True

    def joined(self) -> Sequence[Stmt]:
        symbol = Symbol(self.first.symbol.hint)
        bodies = [copy_body(loop.body, {loop.symbol: Affine.of(symbol)}, {}) for loop in self.loops]
        body = tuple(line for one in bodies for line in one)
        return *self.before, replace(self.first, symbol=symbol, body=body)


def _head(loop: For, cells: int) -> tuple[Stmt, ...]:
    """The first iterations of a loop."""
    return one_by_one(replace(loop, hi=loop.lo + cells))


def _is_plain(loop: For) -> bool:
    is_flat = all(isinstance(stmt, PLAIN) for stmt in loop.body)
    return is_flat and loop.step == 1 and loop.lo.is_constant and loop.hi.is_constant


def _is_light(loop: For) -> bool:
    return loop.kind is LoopKind.PARALLEL and _work(loop) <= LIGHT


def _work(loop: For) -> float:
    return cost_of_nodes(nodes_in(loop.body))
