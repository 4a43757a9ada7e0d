"""overlap: where a vector is one long chain, its end goes on beside the start of the next ones.

    for i in vector(0, 800, lanes=8):           for i in vector(0, 800, lanes=8, cuts=(3, 5)):
        a = x[i]                                    a = x[i]
        b = fma(a, a, 0.5)                          b = fma(a, a, 0.5)
        c = fma(b, a, 0.25)                         c = fma(b, a, 0.25)
        d = fma(c, b, 0.125)              ->        d = fma(c, b, 0.125)
        e = fma(d, c, a)                            e = fma(d, c, a)
        f = fma(e, d, b)                            f = fma(e, d, b)
        y[i] = f                                    y[i] = f

(and dozens of operations more, in more parts). A processor looks some hundred operations ahead. Where a
vector takes more of them, and most wait for another, the next vector comes into sight when this one ends, and
meanwhile little is done. The target prints what is between the cuts alternately, each part for another
vector: the price of an option takes 0.65 to 0.75 of the time so, sines of float64s 0.88, powers 0.93. Parts
take about as long as one another, and are cut where few values are handed on; their statements are in the
order in which they may start.

Four parts, or three, of vectors as they are or half as long: what they keep in registers, and constants,
should fit there, or be read within the time that the operations take. Where a processor begins four
operations in a cycle (Zen 5) it waits for the chains of the parts: of more ways to cut, the one is taken in
which these are short and hand on little. The price of an option takes 0.72 of the time with it, powers 0.85,
inverse hyperbolic sines 0.83, and what is too short to be cut elsewhere, as a sigmoid, 0.86. Few vectors
are cut as well there, if their turns make up for those in which the first ones begin: rows of twelve vectors
of inverse hyperbolic sines take 0.61, 128 searches among 1000 cells 0.64.

What is seldom needed is done outside of the turns, and takes no registers in them: whether it is, is asked as
soon as that can be told. Bodies with other calls, which take all registers, stay whole. So do all where
registers are few.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import accumulate, product

from ...frozen import frozen, replace
from ...ir.boundaries import lying_alike
from ...ir.code import Caps, Pipes
from ...ir.cuts import handed_on, may_be_cut, parts_of
from ...ir.dtype import F64
from ...ir.expr import Apply, Expr, Gather, Load, Variable
from ...ir.loops import Define, For, If, Stmt, Store, bypasses, walk_statements
from ...ir.ops import is_of_library
from ...ir.tensor import Tensor
from ...ir.walk import bottom_up, expressions, locals_read, locals_updated, nodes_in, variables
from ..analysis.access import Ranges
from ..analysis.latency import SLOW, busy, ready
from ..analysis.loopwise import Site, loopwise
from ..analysis.pressure import most_registers, registers_of_constants
from ..analysis.trips import about
from ..analysis.work import REGISTER_BYTES, UNKNOWN_TRIPS

__all__ = ["overlap"]

PARTS = (4, 3)
"""So many vectors at a time, the number that is preferred first."""

MORE_PARTS = (4, 3, 5)
"""The same where four operations are begun in a cycle."""

REGISTERS = 32
"""Of a processor that can keep the values of several vectors."""

CROWDED = 1.25
"""So much longer may constants take that are read from memory, one in a cycle, than all operations."""

READ = 0.55
"""Cycles in which such a processor reads a register from a cache beside what it computes."""

UNDER_WAY, WAITING = 448, 54
"""So many operations such a processor has under way, and so many of them wait for others: no further one
comes into sight until there is room."""

WORTH = 0.8
"""Of the time that vectors take one after the other, turns take so much there at most. Corners of pictures,
sums of products that wait for little, would take 1.1."""

TURNS = 1.5
"""So many turns it has under way at once."""

HANDED = 0.4
"""So many values for each operation it hands on while it computes; each more takes a cycle."""

STREAMED = 6.0
"""Cycles in which such a processor moves a register from memory or to it: only what takes longer is cut where
results go past the caches. Gaussian error linear units of large arrays take 0.8 of the time so, hyperbolic
tangents of float64s 0.85; logarithms would take 1.1."""

FEW, FEWEST = 32, 3
"""Vectors that do not make up for those which are begun in vain; and where four operations are begun in a
cycle, as far as a turn does not take that much less than a vector that is done whole."""

BEGUN = 2.0
"""What the turns take in which the first vectors begin, for each part that is not yet at work: half a turn,
and as much again and more where the loop is not one of many that go on beside one another."""

EVEN, EVENER = 30.0, 60.0
"""Values for which a cut may be moved by the whole body; and where parts should be more alike."""

BRANCHED = 4
"""What a branch takes of everything."""


@loopwise
def overlap(loop: For, site: Site) -> Sequence[Stmt] | None:
    """Every vector loop that is one long chain in parts, if there are registers for them."""
    if site.caps.registers < REGISTERS:
        return None
    vectors = _vectors(loop, site.ranges)
    few = FEWEST if site.caps.pipes.multiplying > 1 else FEW
    if not may_be_cut(loop) or vectors <= few or any(map(_calls, _nodes(_usual(loop.body)))):
        return None
    chain = _Chain.of(loop.body, site.caps)
    waits = chain.waits() and not (bypasses(loop.body) and chain.waits_for_memory())
    cut = chain.cut(loop, vectors) if waits else None
    if cut is None:
        return None
    handed = sum(map(len, handed_on(parts_of(cut))))
    site.notes.append(
        f"overlap: loop {loop.symbol.hint} goes on with {len(cut.cuts) + 1} vectors of {cut.lanes} "
        f"at a time, which hand on {handed} values"
    )
    return (cut,)


def _vectors(loop: For, ranges: Ranges) -> int:
    count = about(loop, ranges)
    return UNKNOWN_TRIPS if count is None else count // loop.lanes


def _operations(body: Sequence[Stmt]) -> int:
    return sum(isinstance(node, (Apply, Load, Gather)) for node in _nodes(_usual(body)))


def _size(stmt: Stmt) -> int:
    return stmt.variable.dtype.itemsize if isinstance(stmt, Define) else 1


def _is_still_aligned(loop: For) -> bool:
    return loop.aligned is None or bool(lying_alike(loop, loop.aligned))


def _usual(body: Sequence[Stmt]) -> list[Stmt]:
    return [stmt for stmt in body if not isinstance(stmt, If)]


def _nodes(body: Sequence[Stmt]) -> Sequence[Expr]:
    """What statements compute, and those inside them."""
    return nodes_in(walk_statements(tuple(body)))


def _calls(node: Expr) -> bool:
    return isinstance(node, Apply) and (node.op.apart or is_of_library(node.op))


Way = tuple[int, tuple[int, ...]]
"""Into how many parts a body is cut, and in which of them each statement is; what is stored is behind all."""


@frozen
class _Chain:
    """The statements of a body: which of them each one stands behind, after how many cycles its result is
    there (`latencies`), and the body's end (`heights`), and how long it keeps a unit that multiplies;
    `seldom` has the branches, each with what its condition needs."""

    body: tuple[Stmt, ...]
    caps: Caps
    after: tuple[frozenset[int], ...]
    latencies: tuple[int, ...]
    heights: tuple[int, ...]
    busy: tuple[int, ...]
    seldom: Mapping[int, frozenset[int]]

    @staticmethod
    def of(body: tuple[Stmt, ...], caps: Caps) -> _Chain:
        after = _needed(body)
        latencies = tuple(_latency(stmt, caps.pipes) for stmt in body)
        heights = list(latencies)
        for place in reversed(range(len(body))):
            for before in after[place]:
                heights[before] = max(heights[before], latencies[before] + heights[place])
        busy = tuple(_busy(stmt, caps.pipes) for stmt in body)
        return _Chain(body, caps, after, latencies, tuple(heights), busy, _deciding(body, after))

    def waits(self) -> bool:
        """Does it take longer until all operations have come into sight than they keep the units busy?"""
        if self.caps.pipes.multiplying > 1:
            return WORTH * self._in_sight() > self._cycles()
        return self._in_sight() > self._cycles() + BRANCHED * len(self.seldom)

    def waits_for_memory(self) -> bool:
        """Does what one register reads, and stores past the caches, take longer to come and go? Where there
        are branches, as in powers, nothing was seen to be gained."""
        accesses = sum(isinstance(node, (Load, Gather)) for node in _nodes(_usual(self.body)))
        stores = sum(isinstance(stmt, Store) for stmt in self.body)
        long = self._in_sight() >= STREAMED * (accesses + stores)
        return self.caps.pipes.multiplying == 1 or bool(self.seldom) or not long

    def _in_sight(self) -> float:
        """After how many cycles the operations of one register have all come into sight. Where four begin in
        a cycle, those that wait, each from when it comes until it may start, need room: the time is what they
        wait together, over the room, and the longer it is, the less they wait."""
        together = max(self.heights) * _operations(self.body)
        if self.caps.pipes.multiplying == 1:
            return together / self.caps.pipes.ahead
        comes, starts, count = list[int](), list[int](), 0
        numbers = [_operations((stmt,)) for stmt in self.body]
        for place, befores in enumerate(self.after):
            starts.append(max((starts[before] + self.latencies[before] for before in befores), default=0))
            comes.append(count)
            count += numbers[place]
        cycles = 0.0
        while True:
            late = [place for place, start in enumerate(starts) if start * count > cycles * comes[place]]
            waited = sum(numbers[place] * starts[place] for place in late)
            longer = waited / (WAITING + sum(numbers[place] * comes[place] / count for place in late))
            if longer <= cycles:
                return max(cycles, together / UNDER_WAY)
            cycles = longer

    def _cycles(self) -> float:
        """For how many the operations of one register keep the units busy."""
        pipes = self.caps.pipes
        dividing = sum(_dividing(node, self.caps) for node in _nodes(_usual(self.body)))
        return max(sum(self.busy) / pipes.multiplying, _operations(self.body) / pipes.at_once, dividing)

    def cut(self, loop: For, vectors: int) -> For | None:
        """The loop in parts, its vectors as they are or half as long: where the units wait least for what no
        register is left for."""
        wide = loop.lanes * max(map(_size, self.body), default=1) > REGISTER_BYTES
        some = (loop, replace(loop, lanes=loop.lanes // 2)) if wide else (loop,)
        times = self._times()
        handed = self._handed(times)
        if self.caps.pipes.multiplying > 1:
            numbers = product(MORE_PARTS, (EVEN, EVENER))
            every = dict.fromkeys(self.way(count, even, times, handed) for count, even in numbers)
            return self._shortest(some, every, times, vectors)
        ways = [self.way(count, EVEN, times, handed) for count in PARTS]
        cuts = [self.in_parts(one, way, times) for one in some for way in ways]
        found = [cut for cut in cuts if may_be_cut(cut) and _is_still_aligned(cut)]
        constants, cycles = registers_of_constants(_usual(self.body)), self._cycles()

        def waiting(cut: For) -> float:
            return max(cycles, constants + most_registers(cut) - REGISTERS)

        best = min(found, key=waiting, default=None)
        return best if best is not None and waiting(best) <= CROWDED * cycles else None

    def _shortest(
        self, some: Sequence[For], ways: Iterable[Way], times: Sequence[int], vectors: int
    ) -> For | None:
        """The cut whose turns take least for each register, where four operations are begun in a cycle: a
        turn waits for the longest chain of a part, for what no register is left for, and for values to be
        moved on to the next part."""
        cycles, operations = self._cycles(), _operations(self.body)
        constants = registers_of_constants(_usual(self.body))
        widest = max(map(_size, self.body))
        best: For | None = None
        shortest = math.inf
        for way in ways:
            chain = self._longest_of_parts(way) / TURNS
            whole = self.in_parts(some[0], way, times)
            if not may_be_cut(whole):
                continue
            beyond = max(0.0, sum(map(len, handed_on(parts_of(whole)))) - HANDED * operations)
            for one in some:
                cut = replace(whole, lanes=one.lanes)
                registers = max(1, cut.lanes * widest // REGISTER_BYTES)
                turn = round(max(cycles, chain / registers) + beyond, 2)
                if turn >= shortest or not _is_still_aligned(cut):
                    continue
                reading = READ * (constants + most_registers(cut) - REGISTERS)
                turn = max(turn, round(reading / registers + beyond, 2))
                if turn < shortest:
                    best, shortest = cut, turn
        if best is None or vectors > FEW:
            return best
        turns = vectors * some[0].lanes / best.lanes
        return best if (turns + BEGUN * len(best.cuts)) * shortest < turns * self._in_sight() else None

    def _longest_of_parts(self, way: Way) -> int:
        """The cycles of the longest chain within a part."""
        count, parts = way
        ends: list[int] = []
        for place, befores in enumerate(self.after):
            here = min(parts[place], count - 1)
            begun = (ends[before] for before in befores if min(parts[before], count - 1) == here)
            ends.append(max(begun, default=0) + self.latencies[place])
        return max(ends)

    def way(self, count: int, even: float, times: Sequence[int], handed: Sequence[int]) -> Way:
        """To cut where few values are `handed` on, which is a matter of time as well."""
        end = len(handed)
        cuts = [
            min(range(1, end), key=lambda at: handed[at] + even * abs(at / end - number / count))
            for number in range(1, count)
        ]
        parts = [sum(cut <= time for cut in cuts) for time in times]
        for place, befores in enumerate(self.after):
            if isinstance(self.body[place], Store):
                parts[place] = count
            parts[place] = max([parts[place], *(parts[before] for before in befores)])
        return count, tuple(parts)

    def in_parts(self, loop: For, way: Way, times: Sequence[int]) -> For:
        count, parts = way
        order = sorted(range(len(times)), key=lambda place: (parts[place], times[place], place))
        starts = tuple(sum(part < number for part in parts) for number in range(1, count))
        return replace(loop, body=tuple(self.body[place] for place in order), cuts=starts)

    def _handed(self, times: Sequence[int]) -> list[int]:
        """For each time how many values that are there before it are needed from then on."""
        last = list(times)
        for place, befores in enumerate(self.after):
            if place not in self.seldom:
                for before in befores:
                    last[before] = max(last[before], times[place])
        changes = [0] * (max(times) + 2)
        for place, time in enumerate(times):
            if place not in self.seldom:
                changes[time + 1] += 1
                changes[last[place] + 1] -= 1
        return list(accumulate(changes[:-1]))

    def _times(self) -> list[int]:
        """When each statement may start, if a unit that multiplies begins one operation in a cycle, the
        longest chains first; what does not need it starts when it has to."""
        times, taken = [0] * len(self.body), Counter[int]()
        for place in sorted(range(len(self.body)), key=lambda place: (-self.heights[place], place)):
            time = max((times[before] + self.latencies[before] for before in self.after[place]), default=0)
            while self.busy[place] and taken[time] >= self.caps.pipes.multiplying:
                time += 1
            taken.update(range(time, time + self.busy[place]))
            times[place] = time
        latest = [max(times)] * len(times)
        for place in reversed(range(len(times))):
            if not self.busy[place] and latest[place] < max(times):
                times[place] = max(times[place], latest[place])
            for before in self.after[place]:
                early = before in self.seldom.get(place, ())
                last = times[before] if early else times[place] - self.latencies[before]
                latest[before] = min(latest[before], last)
        return times


def _needed(body: Sequence[Stmt]) -> tuple[frozenset[int], ...]:
    """For each statement those before it that it must not change places with: they write what it reads or
    writes, or read what it writes."""
    writers: dict[Variable | Tensor, set[int]] = {}
    readers: dict[Variable | Tensor, set[int]] = {}
    found: list[frozenset[int]] = []
    for place, stmt in enumerate(body):
        writes, reads = _written(stmt), _read(stmt)
        after = {before for each in reads | writes for before in writers.get(each, ())}
        after |= {before for each in writes for before in readers.get(each, ())}
        found.append(frozenset(after))
        for each in writes:
            writers.setdefault(each, set()).add(place)
        for each in reads:
            readers.setdefault(each, set()).add(place)
    return tuple(found)


def _deciding(body: Sequence[Stmt], after: Sequence[frozenset[int]]) -> dict[int, frozenset[int]]:
    """For each branch what its condition needs."""
    found = dict[int, frozenset[int]]()
    for place, stmt in enumerate(body):
        if isinstance(stmt, If):
            read = set(variables(stmt.condition))
            found[place] = frozenset(before for before in after[place] if _written(body[before]) & read)
    return found


def _written(stmt: Stmt) -> set[Variable | Tensor]:
    """Locals and arrays."""
    match stmt:
        case Define(variable=variable):
            return {variable}
        case Store(tensor=tensor):
            return {tensor.storage}
        case _:
            return {*locals_updated(walk_statements((stmt,)))}


def _read(stmt: Stmt) -> set[Variable | Tensor]:
    cells = {node.tensor.storage for node in _nodes((stmt,)) if isinstance(node, (Load, Gather))}
    return {*cells, *locals_read(walk_statements((stmt,)))}


def _latency(stmt: Stmt, pipes: Pipes) -> int:
    if isinstance(stmt, If):
        return 0
    there = partial(ready, pipes=pipes)
    return max((bottom_up(expr, there) for expr in expressions(stmt)), default=0)


def _busy(stmt: Stmt, pipes: Pipes) -> int:
    return 0 if isinstance(stmt, If) else sum(busy(node, pipes) for node in _nodes((stmt,)))


def _dividing(node: Expr, caps: Caps) -> float:
    """For how many cycles a divider beside the rest does nothing else: roots take twice as long."""
    match node:
        case Apply(op=op, dtype=dtype) if caps.pipes.divides_apart and op.name in SLOW:
            additions = caps.pipes.at_once - caps.pipes.multiplying
            return caps.divisions[dtype is F64] / additions * (2 if op.name == "sqrt" else 1)
        case _:
            return 0.0
