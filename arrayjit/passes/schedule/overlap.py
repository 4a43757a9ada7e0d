"""overlap: where a vector is one long chain, its end goes on beside the start of the next ones.

    for i in vector(0, 800, lanes=8):           for i in vector(0, 800, lanes=8, cuts=(3, 5)):
        a = x[i]                                    a = x[i]
        b = fma(a, a, 0.5)                          b = fma(a, a, 0.5)
        c = fma(b, a, 0.25)                         c = fma(b, a, 0.25)
        d = fma(c, b, 0.125)              ->        d = fma(c, b, 0.125)
        e = fma(d, c, a)                            e = fma(d, c, a)
        f = fma(e, d, b)                            f = fma(e, d, b)
        y[i] = f                                    y[i] = f

(and dozens of operations more). A processor looks some hundred operations ahead. Where a vector takes more of
them, and most wait for another, the next vector comes into sight when this one ends, and meanwhile little is
done. The target prints what is between the cuts alternately, each part for another vector: the price of an
option takes 0.7 to 0.77 of the time so, error functions of float64s 0.87. Parts take about as long as one
another, and are cut where few values are handed on; their statements are in the order in which they may
start.

Branches keep what is handed on out of registers, and calls all of it: bodies with calls stay whole. So do all
where registers are few.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ...frozen import frozen
from ...ir.code import Caps
from ...ir.cuts import handed_on, may_be_cut, parts_of
from ...ir.expr import Apply, Cast, Expr, Gather, Load, Variable, dtype_of
from ...ir.index import Symbol
from ...ir.loops import Define, For, If, Kernel, Stmt, Store, Update, walk_statements
from ...ir.ops import is_of_library
from ...ir.tensor import Tensor
from ...ir.walk import bottom_up, expressions, locals_read, rewrite_loops, walk
from ..analysis.access import Range, Ranges
from ..analysis.trips import about, enter
from ..analysis.work import REGISTER_BYTES, UNKNOWN_TRIPS

__all__ = ["overlap"]

PARTS = 3

REGISTERS = 32
"""Of a processor that can keep the values of several vectors."""

HANDED = 24
"""The most registers that are handed on."""

WINDOW = 135
"""So many operations a processor looks ahead."""

FEW = 32
"""Vectors that do not make up for those which are begun in vain."""

EVEN = 30.0
"""Values for which a cut may be moved by the whole body."""

AT_ONCE = 2
"""So many operations are begun in a cycle, one of which multiplies."""

SLOW = {"divide": (13, 9), "sqrt": (20, 12)}
"""After how many cycles the result is there, and for how many nothing else is multiplied."""

MULTIPLIES = frozenset(("multiply", "fma"))

LOADED, LOOKED_UP, COMPUTED, BRANCHED = 8, 6, 4, 4
"""After how many cycles a result is there; what a branch takes of everything."""


def overlap(kernel: Kernel, caps: Caps) -> Kernel:
    """Every vector loop that is one long chain in parts, if there are registers for them."""
    ranges: dict[Symbol, Range] = {}
    notes: list[str] = []

    def cutting(loop: For) -> Sequence[Stmt] | None:
        enter(loop, ranges)
        if not may_be_cut(loop) or not _is_long(loop, ranges) or any(map(_calls, _nodes(loop.body))):
            return None
        chain = _Chain.of(loop.body)
        cut = chain.in_parts(loop) if chain.waits() else loop
        handed = [variable for part in handed_on(parts_of(cut)) for variable in part]
        registers = sum(max(1, loop.lanes * one.dtype.itemsize // REGISTER_BYTES) for one in handed)
        if not cut.cuts or not may_be_cut(cut) or registers > HANDED:
            return None
        notes.append(
            f"overlap: loop {loop.symbol.hint} goes on with {PARTS} vectors at a time, "
            f"which hand on {len(handed)} values"
        )
        return (cut,)

    if caps.registers < REGISTERS:
        return kernel
    return kernel.with_body(rewrite_loops(kernel.body, cutting), notes)


def _is_long(loop: For, ranges: Ranges) -> bool:
    count = about(loop, ranges)
    return (UNKNOWN_TRIPS if count is None else count // loop.lanes) > FEW


def _nodes(body: Sequence[Stmt]) -> Iterator[Expr]:
    """What statements compute, and those inside them."""
    inside = (expr for stmt in walk_statements(tuple(body)) for expr in expressions(stmt))
    return (node for expr in inside for node in walk(expr))


def _calls(node: Expr) -> bool:
    return isinstance(node, Apply) and (node.op.apart or is_of_library(node.op))


@frozen
class _Chain:
    """The statements of a body: which of them each one stands behind, after how many cycles its result is
    there (`latencies`), and the body's end (`heights`), and how long it keeps the unit that multiplies."""

    body: tuple[Stmt, ...]
    after: tuple[frozenset[int], ...]
    latencies: tuple[int, ...]
    heights: tuple[int, ...]
    busy: tuple[int, ...]

    @staticmethod
    def of(body: tuple[Stmt, ...]) -> _Chain:
        after = _needed(body)
        latencies = tuple(map(_latency, body))
        heights = list(latencies)
        for place in reversed(range(len(body))):
            for before in after[place]:
                heights[before] = max(heights[before], latencies[before] + heights[place])
        return _Chain(body, after, latencies, tuple(heights), tuple(map(_busy, body)))

    def waits(self) -> bool:
        """Does it take longer until all operations have come into sight than they keep the units busy?"""
        usual = [stmt for stmt in self.body if not isinstance(stmt, If)]
        operations = sum(isinstance(node, (Apply, Load, Gather)) for node in _nodes(usual))
        units = max(sum(self.busy), operations / AT_ONCE) + BRANCHED * (len(self.body) - len(usual))
        return max(self.heights) * operations > WINDOW * units

    def in_parts(self, loop: For) -> For:
        """The loop cut where few values are handed on, which is a matter of time as well."""
        times = self._times()
        end = max(times) + 1
        cuts = [
            min(range(1, end), key=lambda at: self._handed(times, at) + EVEN * abs(at / end - number / PARTS))
            for number in range(1, PARTS)
        ]
        parts = [sum(cut <= time for cut in cuts) for time in times]
        for place, befores in enumerate(self.after):
            parts[place] = max([parts[place], *(parts[before] for before in befores)])
            if isinstance(self.body[place], Store):
                parts[place] = PARTS - 1
        order = sorted(range(len(times)), key=lambda place: (parts[place], times[place], place))
        starts = tuple(sum(part < number for part in parts) for number in range(1, PARTS))
        return replace(loop, body=tuple(self.body[place] for place in order), cuts=starts)

    def _handed(self, times: Sequence[int], cut: int) -> int:
        """How many values that are there before a time are needed after it."""
        late = (befores for place, befores in enumerate(self.after) if times[place] >= cut)
        return len({before for befores in late for before in befores if times[before] < cut})

    def _times(self) -> list[int]:
        """When each statement may start, if the unit that multiplies begins one operation in a cycle, the
        longest chains first; what does not need it starts when it has to."""
        times, taken = [0] * len(self.body), set[int]()
        for place in sorted(range(len(self.body)), key=lambda place: (-self.heights[place], place)):
            time = max((times[before] + self.latencies[before] for before in self.after[place]), default=0)
            while self.busy[place] and time in taken:
                time += 1
            taken.update(range(time, time + self.busy[place]))
            times[place] = time
        latest = [max(times)] * len(times)
        for place in reversed(range(len(times))):
            if not self.busy[place] and latest[place] < max(times):
                times[place] = max(times[place], latest[place])
            for before in self.after[place]:
                latest[before] = min(latest[before], times[place] - self.latencies[before])
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


def _written(stmt: Stmt) -> set[Variable | Tensor]:
    """Locals and arrays."""
    match stmt:
        case Define(variable=variable):
            return {variable}
        case Store(tensor=tensor):
            return {tensor.storage}
        case _:
            return {inner.variable for inner in walk_statements((stmt,)) if isinstance(inner, Update)}


def _read(stmt: Stmt) -> set[Variable | Tensor]:
    cells = {node.tensor.storage for node in _nodes((stmt,)) if isinstance(node, (Load, Gather))}
    return {*cells, *locals_read(walk_statements((stmt,)))}


def _latency(stmt: Stmt) -> int:
    if isinstance(stmt, If):
        return BRANCHED
    return max((bottom_up(expr, _ready) for expr in expressions(stmt)), default=0)


def _ready(node: Expr, operands: tuple[int, ...]) -> int:
    """When a value is there whose operands are."""
    start = max(operands, default=0)
    match node:
        case Load() | Gather():
            return start + LOADED
        case Apply(op=op) if op.tables:
            return start + LOOKED_UP
        case Apply(op=op) if op.name in SLOW:
            return start + SLOW[op.name][0]
        case Apply(op=op, args=args) if dtype_of(args[0]).is_float and op.cost >= 1:
            return start + COMPUTED
        case Apply() | Cast():
            return start + 1
        case _:
            return start


def _busy(stmt: Stmt) -> int:
    return 0 if isinstance(stmt, If) else sum(map(_multiplying, _nodes((stmt,))))


def _multiplying(node: Expr) -> int:
    match node:
        case Apply(op=op) if op.name in SLOW:
            return SLOW[op.name][1]
        case Apply(op=op, dtype=dtype):
            return int(dtype.is_float and op.name in MULTIPLIES)
        case _:
            return 0
