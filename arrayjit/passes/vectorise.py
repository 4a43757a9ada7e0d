"""vectorise: of each nest, the one parallel loop that pays most is taken `lanes` at a time.

    for i in parallel(0, 100):                  for i in parallel(0, 100):
        acc = f32(0.0)                              acc = f32(0.0)
        for j in parallel(0, 1024):         ->      for j in vector(0, 1024, lanes=64):
            acc = add(acc, x[i, j])                     acc = add(acc, x[i, j])
        s[i] = acc                                  s[i] = acc

The loop may be the innermost, or an outer one over inner loops that become sequential (column sums, the
columns of a matrix product). The choice is by estimated cost: an access with unit stride is one vector
access, any other is one access per lane.

Lanes follow from the body alone, never from the machine, because they are part of what an accumulating
loop means. A light body that accumulates gets 256 bytes (four 64-byte registers, so that additions
overlap), other bodies 64 or 128 bytes of the widest element. Nothing but the lane order of accumulating
loops changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ..ir.code import Caps
from ..ir.expr import Apply, Cast, Const, Expr, Gather, Index, Load, Local, dtype_of
from ..ir.index import Affine, Symbol
from ..ir.loops import (
    Barrier,
    Comment,
    Define,
    Fill,
    For,
    If,
    Kernel,
    LoopKind,
    Raise,
    Stmt,
    Store,
    Update,
    walk_statements,
)
from ..ir.tensor import Tensor
from ..ir.walk import expressions, kept, rewrite_bodies, walk
from .strides import stride
from .tails import may_repeat

__all__ = ["MIN_LANES", "vectorise"]

MIN_LANES = 4
MAX_LANES = 64
REGISTER_BYTES = 64
LIGHT_COST = 6.0
UNKNOWN_TRIPS = 256
LATENCY = 8.0
"""What an addition that waits for the one before it costs at least."""


def vectorise(kernel: Kernel, caps: Caps) -> Kernel:
    """At most one loop on each path from the root made a vector loop."""
    body = kept(kernel.body, [_best(stmt)[1] for stmt in kernel.body])
    return kernel if body is kernel.body else replace(kernel, body=body)


def _best(stmt: Stmt) -> tuple[float, Stmt]:
    """The cheapest form of a statement, with its cost."""
    if not isinstance(stmt, (For, If)):
        return _cost((stmt,), None, 1), stmt
    cost = 0.0

    def best_body(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        nonlocal cost
        parts = [_best(child) for child in body]
        cost += sum(part for part, _ in parts)
        return kept(body, [new for _, new in parts])

    new = rewrite_bodies(stmt, best_body)
    if isinstance(stmt, If):
        return cost, new
    count = UNKNOWN_TRIPS if stmt.trips is None else stmt.trips
    found = _as_vector(stmt, count)
    cost = 1.0 + count * cost
    return found if found is not None and found[0] < cost else (cost, new)


def _as_vector(loop: For, count: int) -> tuple[float, Stmt] | None:
    """The loop as a vector loop at its best number of lanes, or None where that is not possible."""
    if loop.kind is not LoopKind.PARALLEL or loop.step != 1 or count < MIN_LANES:
        return None
    facts = _Facts.of(loop)
    if facts is None:
        return None
    scalar, repeats = _cost(loop.body, None, 1), may_repeat(loop.body)
    lanes, options = facts.lanes, []
    while lanes >= MIN_LANES:
        if lanes <= count:
            once, rest = _cost(loop.body, loop.symbol, lanes), count % lanes * scalar
            if facts.accumulates:
                once, rest = max(once, LATENCY), rest / 4 + 2.0 * lanes.bit_length()
            elif rest and repeats:
                rest = once
            options.append((count // lanes * once + rest, -lanes))
        lanes //= 2
    cost, negated = min(options)
    body = tuple(_in_order(stmt) for stmt in loop.body)
    return cost, replace(loop, kind=LoopKind.VECTOR, lanes=-negated, body=body)


def _in_order(stmt: Stmt) -> Stmt:
    """The parallel loops inside a vector loop made sequential."""
    if not isinstance(stmt, For):
        return stmt
    kind = LoopKind.SEQUENTIAL if stmt.kind is LoopKind.PARALLEL else stmt.kind
    return replace(stmt, kind=kind, body=tuple(_in_order(child) for child in stmt.body))


@dataclass(frozen=True, slots=True)
class _Facts:
    """What bounds a loop's lanes: the most it should have, and whether it accumulates."""

    lanes: int
    accumulates: bool

    @staticmethod
    def of(loop: For) -> _Facts | None:
        """None when the loop cannot be a vector loop."""
        inside = list(walk_statements(loop.body))
        if not all(_allowed(stmt, loop.symbol) for stmt in inside):
            return None
        own = {stmt.variable for stmt in inside if isinstance(stmt, Define)}
        outer = [stmt for stmt in inside if isinstance(stmt, Update) and stmt.variable not in own]
        if any(stmt.accum is None or stmt.accum.identity is None for stmt in outer):
            return None
        light = sum(_static_cost(stmt) for stmt in inside) <= LIGHT_COST
        recurrent = any(isinstance(stmt, Update) for stmt in inside)
        registers = (4 if recurrent else 2) if light else 1
        widest = max((size for stmt in inside for size in _sizes(stmt)), default=8)
        return _Facts(max(MIN_LANES, min(MAX_LANES, registers * REGISTER_BYTES // widest)), bool(outer))


def _allowed(stmt: Stmt, symbol: Symbol) -> bool:
    """May the statement stand in a vector loop over `symbol`?"""
    match stmt:
        case For(lo=lo, hi=hi, kind=kind):
            uniform = not lo.coefficient(symbol) and not hi.coefficient(symbol)
            return uniform and kind in (LoopKind.PARALLEL, LoopKind.SEQUENTIAL, LoopKind.UNROLLED)
        case Store(tensor=tensor, index=index):
            # A cell that every lane writes is scratch memory of one iteration: lanes would collide.
            return stride(tensor, index, symbol) != 0
        case Define() | Update() | Comment():
            return True
        case Fill() | If() | Raise() | Barrier():
            return False


def _static_cost(stmt: Stmt) -> float:
    nodes = (node for expr in expressions(stmt) for node in walk(expr))
    cost = sum(node.op.cost for node in nodes if isinstance(node, Apply))
    accumulates = isinstance(stmt, Update) and stmt.accum is not None and not stmt.contract
    return cost + (1.0 if accumulates else 0.0)


def _sizes(stmt: Stmt) -> Iterator[int]:
    """Item sizes of the values that a statement reads and writes."""
    match stmt:
        case Store(tensor=tensor):
            yield tensor.dtype.itemsize
        case Define(variable=variable) | Update(variable=variable):
            yield variable.dtype.itemsize
        case _:
            pass
    for expr in expressions(stmt):
        for node in walk(expr):
            if isinstance(node, (Load, Gather, Apply)):
                yield dtype_of(node).itemsize


def _cost(body: tuple[Stmt, ...], symbol: Symbol | None, lanes: int) -> float:
    """Estimated cost of one pass through a body, `lanes` iterations of `symbol` at a time."""
    total = 0.0
    for stmt in body:
        if isinstance(stmt, For):
            trips = UNKNOWN_TRIPS if stmt.trips is None else stmt.trips
            total += 1.0 + trips * _cost(stmt.body, symbol, lanes)
            continue
        for expr in expressions(stmt):
            total += sum(_node_cost(node, symbol, lanes) for node in walk(expr))
        if isinstance(stmt, Store):
            total += _access_cost(stmt.tensor, stmt.index, symbol, lanes)
        elif isinstance(stmt, Update) and stmt.accum is not None:
            total += stmt.accum.cost * _registers(stmt.variable.dtype.itemsize, lanes)
        elif isinstance(stmt, If):
            total += _cost(stmt.body, symbol, lanes) + _cost(stmt.orelse, symbol, lanes)
    return total


def _node_cost(node: Expr, symbol: Symbol | None, lanes: int) -> float:
    match node:
        case Apply(op=op, args=args, dtype=dtype):
            scalar_only = any(spelling.startswith("libm") for spelling in op.llvm.values())
            sizes = (dtype_of(arg).itemsize for arg in args)
            return op.cost * (lanes if scalar_only else _registers(max(sizes, default=dtype.itemsize), lanes))
        case Load(tensor=tensor, index=index):
            return _access_cost(tensor, index, symbol, lanes)
        case Gather():
            return float(lanes)
        case Cast(dtype=dtype):
            return _registers(dtype.itemsize, lanes)
        case Const() | Local() | Index():
            return 0.0


def _access_cost(tensor: Tensor, index: tuple[Affine, ...], symbol: Symbol | None, lanes: int) -> float:
    step = 0 if symbol is None else stride(tensor, index, symbol)
    if step == 0:
        return 1.0
    return _registers(tensor.dtype.itemsize, lanes) if step in (1, -1) else float(lanes)


def _registers(itemsize: int, lanes: int) -> float:
    return max(1.0, itemsize * lanes / REGISTER_BYTES)
