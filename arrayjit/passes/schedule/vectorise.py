"""vectorise: of each nest, the one parallel loop that pays most is taken `lanes` at a time.

    for i in parallel(0, 100):                  for i in parallel(0, 100):
        acc = f32(0.0)                              acc = f32(0.0)
        for j in parallel(0, 1024):         ->      for j in vector(0, 1024, lanes=64):
            acc = add(acc, x[i, j])                     acc = add(acc, x[i, j])
        s[i] = acc                                  s[i] = acc

The loop may be the innermost, or an outer one over inner loops that become sequential (column sums, the
columns of a matrix product), or a sequential one that may go in lockstep (`x[i] = x[i + 1]`). The choice is
by estimated cost: an access with unit stride is one vector access, a store with a short one is a few, and any
other is one access per lane. A cell at a computed place has unit stride where all lanes compute the same row,
as in the sum of chosen rows, `x[k].sum(axis=1)`: its columns go side by side.

Lanes follow from the body and its trip count, never from the machine: they are part of what an accumulating
loop means, unless it goes in lockstep. A light body that accumulates gets 256 bytes (four 64-byte registers,
so that additions overlap), 128 if it has several sums of integers or looks for two extremes among what it
reads, 64 if it has several other sums; other bodies 64 or 128 bytes of the widest element: 128 if they are
light, in lockstep, or deep and read few cells, since of a long chain of arithmetic a processor overlaps few
iterations by itself, and many values run out of registers. It is the work in the innermost loops that counts,
and of many integers the width in which `cascade` adds them up. A row of a matrix-vector product gets 64:
`jam` overlaps it with other rows.
Nothing but the lane order of accumulating loops changes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import field
from functools import cache, partial
from itertools import chain

from typing_extensions import assert_never

from ...frozen import frozen, replace, slotted
from ...ir.code import Caps
from ...ir.conditions import BEYOND
from ...ir.dtype import DType
from ...ir.expr import Apply, Cast, Const, Expr, Gather, Index, Load, Local, Variable, dtype_of
from ...ir.index import Affine, Symbol, SymbolKind
from ...ir.loops import (
    Barrier,
    Bind,
    Comment,
    Copy,
    Define,
    Fill,
    For,
    If,
    Kernel,
    Lap,
    LoopKind,
    Multiply,
    Prefetch,
    Raise,
    Stay,
    Stmt,
    Store,
    Update,
    While,
    walk_statements,
)
from ...ir.ops import OPS, Op, is_of_library
from ...ir.tensor import GROUPS, Tensor
from ...ir.walk import children, expressions, kept, nodes_in, outer_updates, rewrite_bodies, walk
from ..analysis.access import Range, Ranges, loads
from ..analysis.accounts import seen_loops
from ..analysis.chosen import choosing, row_along
from ..analysis.lockstep import lockstep
from ..analysis.repeats import may_repeat
from ..analysis.strides import LINE, stride
from ..analysis.trips import about, enter
from ..analysis.work import REGISTER_BYTES, UNKNOWN_TRIPS
from .cascade import CHAIN, narrow_sums

__all__ = ["explain_vectorise", "vectorise"]

RARELY = OPS["rarely"]
EXTREMES = {OPS["maximum"], OPS["minimum"]}
MIN_LANES = 4
MAX_LANES = 64
LIGHT_COST = 6.0
DEEP_COST = 18.0, 70.0
"""The work of bodies in which an iteration is one long chain and has few values at a time: an elementary
function or two."""
FEW_CELLS = 8
"""A body that reads more has many values at a time."""
OUTER_GAIN = 0.7
"""A vector loop inside stays unless this one costs less than so much of it: it can still be jammed."""
FAR = 4.0
"""What it costs to read a cell of a cache line that the next lane does not touch."""

NEAR = 4
"""So many lanes or more that lie in one register are worth a store under a mask."""

LATENCY = 2.0
"""What it costs to wait for the value before, in an accumulation; in order, for each lane."""

TURN = 1.0
"""What it costs to go round a loop once more. Several registers at a time also keep a divider busy."""


def vectorise(kernel: Kernel, caps: Caps) -> Kernel:
    """At most one loop on each path from the root made a vector loop."""
    ranges: dict[Symbol, Range] = {}
    register = caps.vector_bytes
    news = (_best(stmt, False, ranges, register)[1] for stmt in kernel.body)
    return kernel.with_body(kept(kernel.body, list(chain.from_iterable(news))))


def explain_vectorise(before: Kernel, after: Kernel, caps: Caps) -> Iterator[str]:
    """Why innermost loops that stand in no vector loop are none themselves."""
    ranges: dict[Symbol, Range] = {}
    for seen in seen_loops(after.body, ranges):
        lanes = max(loop.lanes for loop in (*seen.around, seen.loop))
        is_innermost = not any(isinstance(inner, For) for inner in walk_statements(seen.loop.body))
        if is_innermost and lanes == 1 and seen.loop.kind is not LoopKind.UNROLLED:
            yield f"vectorise: {seen} is not in vectors: {_refusal(seen.loop, ranges)}"


def _refusal(loop: For, ranges: Ranges) -> str:
    """Why an innermost loop is no vector loop."""
    count = _trips(loop, ranges)
    if count < MIN_LANES:
        return f"it runs {count} times at most"
    obstacle = next(filter(None, (_obstacle(stmt, loop.symbol) for stmt in loop.body)), "")
    if obstacle:
        return obstacle
    if loop.kind is LoopKind.SEQUENTIAL and lockstep(loop, ranges) is None:
        return "an iteration needs what an earlier one made"
    if loop.step != 1:
        return "it does not count by ones"
    if loop.kind is LoopKind.PARALLEL and _Facts.of(loop, False) is None:
        return "an iteration hands a value on to the next"
    return "that would cost more than it saves"


def _best(
    stmt: Stmt, in_rows: bool, ranges: dict[Symbol, Range], register: int
) -> tuple[float, Sequence[Stmt]]:
    """The cheapest form of a statement, with its cost; `in_rows` says that it is in a parallel loop,
    `register` how many bytes a register has."""
    if not isinstance(stmt, (For, If, While)):
        return _Tally.of((stmt,), None, ranges).cost(1), [stmt]
    cost = 0.0
    if isinstance(stmt, For) and stmt.kind is LoopKind.VECTOR:
        return cost, [stmt]  # what it costs is of no interest: no loop around it can be one as well
    rows = isinstance(stmt, For) and stmt.kind is LoopKind.PARALLEL

    def best_body(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        nonlocal cost
        parts = [_best(child, rows, ranges, register) for child in body]
        cost += sum(part for part, _ in parts)
        return kept(body, [new for _, news in parts for new in news])

    if not isinstance(stmt, For):
        new = rewrite_bodies(stmt, best_body)
        return cost, [new]
    enter(stmt, ranges)
    tally = cache(partial(_Tally.of, stmt.body, stmt.symbol, ranges))
    if any(isinstance(child, (For, If, While)) for child in stmt.body):
        new = rewrite_bodies(stmt, best_body)
    else:
        new, cost = stmt, tally().cost(1)
    count = _trips(stmt, ranges)
    found = _side_by_side(stmt, count, tally, in_rows, ranges, register)
    cost = 1.0 + count * cost
    enough = cost if new is stmt else cost * OUTER_GAIN
    return found if found is not None and found[0] < enough else (cost, [new])


def _side_by_side(
    loop: For, count: int, tally: Callable[[], _Tally], in_rows: bool, ranges: Ranges, register: int
) -> tuple[float, Sequence[Stmt]] | None:
    """The loop with iterations side by side, if they may be."""
    if loop.kind is LoopKind.PARALLEL:
        found = _as_vector(loop, LoopKind.VECTOR, count, tally, in_rows)
        return None if found is None else (found[0], [found[1]])
    parts = lockstep(loop, ranges) if loop.kind is LoopKind.SEQUENTIAL else None
    if parts is None:
        return None
    before, inner, after = parts
    found = _as_vector(inner, LoopKind.LOCKSTEP, count, tally, in_rows, register)
    return None if found is None else (found[0], [*before, found[1], *after])


def _as_vector(
    loop: For,
    kind: LoopKind,
    count: int,
    tallied: Callable[[], _Tally],
    in_rows: bool,
    register: int = REGISTER_BYTES,
) -> tuple[float, Stmt] | None:
    """The loop as a vector loop at its best number of lanes, or None where that is not possible."""
    if loop.step != 1 or count < MIN_LANES:
        return None
    facts = _Facts.of(loop, in_rows)
    if facts is None:
        return None
    tally, repeats = tallied(), may_repeat(loop.body, facts.sums, loop.symbol)
    lanes, options = facts.lanes, []
    while lanes >= MIN_LANES:
        if lanes <= count:
            once = tally.cost(lanes, register)
            if loop.trips is None:
                rest = _tail(lanes, tally)
            else:
                rest = min(count % lanes * tally.cost(1), once if repeats else math.inf)
            if kind is LoopKind.LOCKSTEP:
                once += TURN + (lanes - 1) * LATENCY * len(facts.sums)
            fold = 2.0 * lanes.bit_length() if facts.sums else 0.0
            options.append((count // lanes * once + rest + fold, -lanes))
        lanes //= 2
    cost, negated = min(options)
    body = tuple(_in_order(stmt) for stmt in loop.body)
    return cost, replace(loop, kind=kind, lanes=-negated, body=body)


def _tail(lanes: int, tally: _Tally) -> float:
    """What is left of the vectors of a loop whose length is not known: half of one, in narrower vectors as
    far as these are worth while."""
    narrow = lanes // 4
    if narrow < MIN_LANES:
        return lanes / 2 * tally.cost(1)
    return 2 * tally.cost(narrow) + narrow / 2 * tally.cost(1)


def _trips(loop: For, ranges: Ranges) -> int:
    count = _whole_slice(loop, ranges) or about(loop, ranges)
    return UNKNOWN_TRIPS if count is None else count


def _whole_slice(loop: For, ranges: Ranges) -> int | None:
    """The most cells that a loop goes through from a computed place of a long axis on, as it mostly does: at
    the ends of the axis alone it has fewer."""
    end = loop.hi.symbol
    if loop.lo != Affine.of(0) or end is None or end in ranges or end.upper is None:
        return None
    if end.kind is not SymbolKind.LOOP:
        return None
    exprs = chain.from_iterable(map(expressions, walk_statements(loop.body)))
    for tensor, index in chain.from_iterable(map(loads, exprs)):
        for at, extent in zip(index or (), tensor.shape, strict=False):
            start = (at - loop.symbol).symbol
            is_found = start is not None and start not in ranges
            if is_found and extent.is_constant and extent.constant >= 2 * end.upper:
                return end.upper - 1
    return None


def _in_order(stmt: Stmt) -> Stmt:
    """The parallel loops inside a vector loop made sequential."""
    if not isinstance(stmt, For):
        return stmt
    kind = LoopKind.SEQUENTIAL if stmt.kind is LoopKind.PARALLEL else stmt.kind
    return replace(stmt, kind=kind, body=tuple(_in_order(child) for child in stmt.body))


@frozen
class _Facts:
    """What bounds a loop's lanes: the most it should have, and the locals outside that it adds up in."""

    lanes: int
    sums: frozenset[Variable]

    @staticmethod
    def of(loop: For, in_rows: bool) -> _Facts | None:
        """None when the loop cannot be a vector loop."""
        inside = list(walk_statements(loop.body))
        if any(_obstacle(stmt, loop.symbol) for stmt in inside):
            return None
        outer = outer_updates(inside)
        if any(stmt.accum is None or stmt.accum.identity is None for stmt in outer):
            return None
        aside = choosing(loop.body, loop.symbol)
        weights = {id(stmt): _weight(stmt, aside) for stmt in inside}
        sums = frozenset(stmt.variable for stmt in outer)
        hot = list(_innermost(loop.body)) or inside
        cost = sum(weights[id(stmt)][0] for stmt in hot)
        recurrent = any(isinstance(stmt, Update) for stmt in inside)
        usual = sum(weights[id(stmt)][0] for stmt in _usually_done(loop.body))
        cells = {cell for stmt in hot for expr in expressions(stmt) for cell in loads(expr)}
        light, few = cost <= LIGHT_COST, not recurrent and len(cells) <= FEW_CELLS
        deep = (few and DEEP_COST[0] <= usual <= DEEP_COST[1]) or loop.kind is LoopKind.SEQUENTIAL
        # To go round the loop takes as long as to add integers, which wait for nothing else.
        counts = not any(variable.dtype.is_inexact for variable in sums)
        few_extremes = len(sums) == 2 and _are_read(outer, cost)
        together = 4 if len(sums) < 2 else 2 if counts or few_extremes else 1
        registers = (together if recurrent else 2) if light else 2 if deep else 1
        if in_rows and outer and all(stmt.contract for stmt in outer):
            registers = 1
        narrow = narrow_sums(loop)
        widest = max(size for _, size in weights.values()) or REGISTER_BYTES // 8
        if narrow is not None and (loop.trips is None or loop.trips >= CHAIN * MAX_LANES):
            widest = narrow[0].itemsize
        return _Facts(max(MIN_LANES, min(MAX_LANES, registers * REGISTER_BYTES // widest)), sums)


def _are_read(outer: Sequence[Update], cost: float) -> bool:
    """Are extremes formed of what is but read, by a body of that cost? Sums keep their number of lanes, which
    has a meaning."""
    return all(stmt.accum in BEYOND for stmt in outer) and cost <= len(outer)


def _usually_done(body: tuple[Stmt, ...]) -> Iterator[Stmt]:
    """The statements of a body without those that are seldom needed."""
    needed: set[Variable] = set()
    for stmt in reversed(list(walk_statements(body))):
        if not isinstance(stmt, Define) or stmt.variable in needed:
            yield stmt
            for expr in expressions(stmt):
                seldom = isinstance(expr, Apply) and expr.op is RARELY
                parts = (children(expr)[0], children(expr)[2]) if seldom else (expr,)
                nodes = (node for part in parts for node in walk(part))
                needed.update(node.variable for node in nodes if isinstance(node, Local))


def _innermost(body: tuple[Stmt, ...]) -> Iterator[Stmt]:
    """The statements that stand in loops without loops in them."""
    for stmt in body:
        if isinstance(stmt, For):
            inner = list(_innermost(stmt.body))
            yield from inner or stmt.body


def _obstacle(stmt: Stmt, symbol: Symbol) -> str:
    """Why the statement cannot stand in a vector loop over `symbol`; empty if it can."""
    match stmt:
        case For(lo=lo, hi=hi, kind=kind):
            if lo.coefficient(symbol) or hi.coefficient(symbol):
                return "how often a loop inside runs differs from iteration to iteration"
            if kind not in (LoopKind.PARALLEL, LoopKind.SEQUENTIAL, LoopKind.UNROLLED):
                return f"a loop inside is a {kind.value} loop"
            return ""
        case Store(tensor=tensor, index=index):
            # A cell that every lane writes is scratch memory of one iteration: lanes would collide.
            return (
                ""
                if stride(tensor, index, symbol) != 0
                else f"every iteration writes a cell of {tensor.label}"
            )
        case Define() | Update() | Comment():
            return ""
        case Bind(symbol=bound):
            return f"each iteration computes {bound.hint}, by which it finds memory"
        case If() | While():
            return "what it does depends on a condition"
        case Raise():
            return "it may end with an exception"
        case Fill() | Stay() | Copy() | Multiply() | Prefetch() | Lap() | Barrier():
            return "it has a statement that is for whole loops"
    assert_never(stmt)


def _weight(stmt: Stmt, aside: Collection[int]) -> tuple[float, int]:
    """The arithmetic of a statement's own expressions, and the widest item it reads, computes or writes, but
    for what is `aside`."""
    cost, widest = 0.0, 0
    if id(stmt) in aside:
        return cost, widest
    match stmt:
        case Store(tensor=tensor):
            widest = tensor.dtype.itemsize
        case Define(variable=variable):
            widest = variable.dtype.itemsize
        case Update(variable=variable, accum=accum, contract=contract):
            widest = variable.dtype.itemsize
            cost = 0.0 if accum is None or contract else 1.0
        case _:
            pass
    for node in nodes_in((stmt,)):
        if id(node) in aside:
            continue
        if isinstance(node, Apply):
            cost += node.op.cost
        if isinstance(node, (Load, Gather, Apply)):
            widest = max(widest, dtype_of(node).itemsize)
    return cost, widest


@slotted
class _Tally:
    """What one pass through a body costs, for any number of lanes of one symbol: work done once, work
    done for each lane, and work by vector registers, keyed by item size."""

    symbol: Symbol | None
    ranges: dict[Symbol, Range]
    body: tuple[Stmt, ...] = ()
    once: float = 0.0
    per_lane: float = 0.0
    by_size: dict[int, float] = field(default_factory=dict)

    @staticmethod
    def of(body: tuple[Stmt, ...], symbol: Symbol | None, ranges: dict[Symbol, Range]) -> _Tally:
        tally = _Tally(symbol, ranges, body)
        tally._body(body, 1.0)
        return tally

    def cost(self, lanes: int, register: int = REGISTER_BYTES) -> float:
        registers = (work * max(1.0, size * lanes / register) for size, work in self.by_size.items())
        return self.once + self.per_lane * lanes + sum(registers)

    def _body(self, body: tuple[Stmt, ...], times: float) -> None:
        for stmt in body:
            for node in nodes_in((stmt,)):
                self._node(node, times)
            match stmt:
                case Store(tensor=tensor, index=index):
                    self._write(tensor, index, times)
                case Update(variable=variable, accum=Op(cost=cost), contract=contract):
                    self.once += LATENCY * times
                    self._registers(variable.dtype, 0.0 if contract else cost * times)
                case Update():
                    self.once += LATENCY * times
                case For(body=inner):
                    enter(stmt, self.ranges)
                    self.once += times
                    self._body(inner, times * _trips(stmt, self.ranges))
                case If(body=inner, orelse=other) | While(test=inner, body=other):
                    self._body((*inner, *other), times)
                case _:
                    pass

    def _node(self, node: Expr, times: float) -> None:
        match node:
            case Apply(op=op, args=args, dtype=dtype):
                if is_of_library(op):
                    self.per_lane += op.cost * times
                else:
                    widest = max((dtype_of(arg) for arg in args), key=lambda d: d.bits, default=dtype)
                    self._registers(widest, op.cost * times)
            case Load(tensor=tensor, index=index):
                self._access(tensor, index, times)
            case Gather(tensor=tensor):
                row = None if self.symbol is None else row_along(node, self.symbol, self.body)
                if row is None:
                    self.per_lane += times
                else:
                    self._access(tensor, row, times)
            case Cast(dtype=dtype):
                self._registers(dtype, times)
            case Const() | Local() | Index():
                pass

    def _access(self, tensor: Tensor, index: tuple[Affine, ...], times: float) -> None:
        step = 0 if self.symbol is None else stride(tensor, index, self.symbol)
        if step == 0:
            self.once += times
        elif step in (1, -1) or (step in GROUPS and tensor.part_of(index, step) is not None):
            self._registers(tensor.dtype, times)
        else:
            is_near = step is not None and abs(step) < LINE
            self.per_lane += times if is_near else times * FAR

    def _write(self, tensor: Tensor, index: tuple[Affine, ...], times: float) -> None:
        """Lanes that are close to one another are stored in whole registers, under masks."""
        step = 0 if self.symbol is None else stride(tensor, index, self.symbol) or 0
        if step > 1 and step * tensor.dtype.itemsize * NEAR <= REGISTER_BYTES:
            self._registers(tensor.dtype, step * times)
        else:
            self._access(tensor, index, times)

    def _registers(self, dtype: DType, work: float) -> None:
        self.by_size[dtype.itemsize] = self.by_size.get(dtype.itemsize, 0.0) + work
