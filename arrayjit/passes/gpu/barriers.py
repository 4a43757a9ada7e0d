"""barriers: threads of a block wait for one another where one needs what another has stored.

    for j in block(0, 1000, lanes=256):         for j in block(0, 1000, lanes=256):
        t[j] = exp(x[j])                            t[j] = exp(x[j])
    for j in block(0, 1000, lanes=256):   ->    barrier()
        y[j] = t[999 - j]                       for j in block(0, 1000, lanes=256):
                                                    y[j] = t[999 - j]

A barrier stands before the first statement that meets, in memory, what other threads have done since the last
one: reads what they wrote, writes what they read or wrote. A thread takes the same iterations of loops with
the same bounds, so what an iteration has made for itself needs none. A loop that forms a sum of all threads
ends with a barrier as it is. What the end of a loop leaves is waited for by its next iteration.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace

from ...frozen import frozen, slotted
from ...ir.code import Caps
from ...ir.index import Affine, Symbol
from ...ir.loops import (
    Barrier,
    Bind,
    For,
    If,
    Kernel,
    LoopKind,
    Multiply,
    PlaceKind,
    Stmt,
    While,
    walk_statements,
)
from ...ir.tensor import Tensor
from ...ir.walk import expressions, kept, rewrite_bodies, rewrite_loops
from ..analysis.access import Effects, Range, Region, distances, effects, loads, region
from ..analysis.trips import enter
from .crossing import block_threads
from .nests import accumulated

__all__ = ["barriers"]

PRIVATE = (PlaceKind.STACK, PlaceKind.OWN)
"""Where no thread finds what another has stored."""


def barriers(kernel: Kernel, caps: Caps) -> Kernel:
    """The kernel with the barriers that its blocks need."""
    if caps.gpu is None:
        return kernel
    private = frozenset(tensor for tensor, place in kernel.placement.items() if place.kind in PRIVATE)

    def waiting(loop: For) -> Sequence[Stmt] | None:
        if loop.kind is not LoopKind.GRID:
            return None
        are_several = block_threads(loop) > 1 and loop.lanes == 1
        return (rewrite_bodies(loop, _Block(private).body) if are_several else loop,)

    return kernel.with_body(rewrite_loops(kernel.body, waiting))


@frozen
class _Deed:
    """What threads have done to memory; `loop` was dealt out to them, or all did the same if it is None."""

    effects: Effects
    loop: For | None


@slotted
class _Block:
    """`done` is what the threads have done since they last waited for one another."""

    private: frozenset[Tensor]
    ranges: dict[Symbol, Range] = field(default_factory=dict)
    done: list[_Deed] = field(default_factory=list)

    def body(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        out: list[Stmt] = []
        for stmt in body:
            self.statement(stmt, out)
        return kept(body, out)

    def statement(self, stmt: Stmt, out: list[Stmt]) -> None:
        match stmt:
            case Barrier():
                self.done.clear()
            case For(kind=LoopKind.BLOCK, body=body):
                enter(stmt, self.ranges)
                self.deed(_Deed(effects(body, self.ranges), stmt), out)
                if accumulated(stmt):
                    self.done.clear()
            case For():
                enter(stmt, self.ranges)
                stmt = self.repeated(stmt, (stmt.symbol,))
            case While():
                stmt = self.repeated(stmt, ())
            case Multiply():
                self.deed(_Deed(effects((stmt,), self.ranges), None), out)
            case If(body=body, orelse=orelse):
                self.reads(stmt, out)
                before = list(self.done)
                first = self.body(body)
                after, self.done = self.done, before
                second = self.body(orelse)
                self.done = _either(after, self.done)
                if first is not body or second is not orelse:
                    stmt = replace(stmt, body=first, orelse=second)
            case _:
                self.reads(stmt, out)
        out.append(stmt)

    def reads(self, stmt: Stmt, out: list[Stmt]) -> None:
        """What every thread reads for an expression of a statement."""
        found = Effects()
        for expr in expressions(stmt):
            for tensor, index in loads(expr):
                found.reads.setdefault(tensor.storage, {})[region(tensor, index, {})] = None
        self.deed(_Deed(found, None), out)

    def deed(self, deed: _Deed, out: list[Stmt]) -> None:
        """The threads do something, after a barrier if it meets what they have done."""
        if any(self.meet(earlier, deed) for earlier in self.done):
            out.append(Barrier())
            self.done.clear()
        self.done = _either(self.done, [deed])

    def repeated(self, loop: For | While, own: tuple[Symbol, ...]) -> For | While:
        """A loop that all threads take together: an iteration also follows the one before."""
        bound = {stmt.symbol for stmt in walk_statements((loop,)) if isinstance(stmt, Bind)}
        changing = {symbol: self.ranges.get(symbol) for symbol in (*own, *bound)}
        before = list(self.done)
        after: list[_Deed] = []
        while True:
            self.done = _either(before, after)
            new = self.once(loop)
            left = [_widened(deed, changing) for deed in self.done]
            if new is loop and all(deed in after for deed in left):
                self.done = left if isinstance(loop, For) and loop.trips else _either(before, left)
                return loop
            loop, after = new, left if new is not loop else _either(after, left)

    def once(self, loop: For | While) -> For | While:
        """One iteration."""
        match loop:
            case For(body=body):
                new = self.body(body)
                return loop if new is body else replace(loop, body=new)
            case While(test=test, body=body):
                tested: list[Stmt] = []
                for stmt in test:
                    self.statement(stmt, tested)
                self.reads(loop, tested)
                first, new = kept(test, tested), self.body(body)
                return loop if first is test and new is body else replace(loop, test=first, body=new)

    def meet(self, one: _Deed, other: _Deed) -> bool:
        """Does a thread touch what another one has touched, and one of them writes it?"""
        pairs = (
            (one.effects.writes, other.effects.writes),
            (one.effects.writes, other.effects.reads),
            (one.effects.reads, other.effects.writes),
        )
        return any(
            self.apart(first, one.loop, second, other.loop)
            for mine, theirs in pairs
            for storage in mine.keys() & theirs.keys() - self.private
            for first in mine[storage]
            for second in theirs[storage]
        )

    def apart(self, first: Region, one: For | None, second: Region, other: For | None) -> bool:
        """Do two regions meet in different threads?"""
        if one is not None and other is not None and _same_iterations(one, other):
            second = second.renamed({other.symbol: Affine.of(one.symbol)})
            found = distances(first, second, (one.symbol,), self.ranges)
            return found is not None and found[one.symbol] != (0, 0)
        for loop in (one, other):
            if loop is not None:
                everywhere = {loop.symbol: self.ranges.get(loop.symbol)}
                first, second = first.without(everywhere), second.without(everywhere)
        return distances(first, second, (), self.ranges) is not None


def _either(some: list[_Deed], others: list[_Deed]) -> list[_Deed]:
    """What is in one list or the other, once: conditions and loops meet the same deeds on every way."""
    return [*some, *(deed for deed in others if deed not in some)]


def _same_iterations(one: For, other: For) -> bool:
    """Does each thread take the same iterations of both loops?"""
    return one.bounds == other.bounds


def _widened(deed: _Deed, changing: Mapping[Symbol, Range | None]) -> _Deed:
    """What has been done in any iteration."""
    loop = deed.loop
    if loop is not None and any(symbol in changing for end in (loop.lo, loop.hi) for symbol in end.symbols):
        return _Deed(deed.effects.without({**changing, loop.symbol: None}), None)
    return _Deed(deed.effects.without(changing), loop)
