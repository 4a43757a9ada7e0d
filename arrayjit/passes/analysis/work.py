"""About how much work a body is, in additions of one register each.

Loops multiply. Where they run a number of times that is known only at run time, the work is a polynomial of
these numbers: `{(): 12.0, (n,): 3.5, (n, m): 40.0}`.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from ...ir.dtype import I64
from ...ir.expr import Apply, Const, Expr, Gather, Index, Load, dtype_of
from ...ir.index import Affine, Symbol
from ...ir.loops import Bind, Fill, For, If, Kernel, LoopKind, Stmt, Store, While, walk_statements
from ...ir.ops import OPS, is_of_library
from ...ir.tensor import Tensor
from ...ir.walk import nodes_in, rewrite_loops
from .access import Ranges
from .strides import stride
from .trips import about, enter

__all__ = [
    "PARTS",
    "REGISTER_BYTES",
    "UNKNOWN_TRIPS",
    "Work",
    "as_expression",
    "in_vectors",
    "is_short",
    "work",
]

Work = Mapping[tuple[Affine, ...], float]

REGISTER_BYTES = 64
"""Of the widest registers that any machine has: how many lanes a loop has does not depend on the machine."""

UNKNOWN_TRIPS = 256
"""How often a loop is taken to run of which nothing is known before."""

SHORT = 10_000
"""What is short, in additions of one register each: about 5 microseconds of them."""

PARTS = 64
"""Of an addition: what a lane does is a small part of one."""

ONCE = Affine.of(1)


def is_short(kernel: Kernel) -> bool:
    """Whether the kernel does little, for certain."""
    if any(isinstance(stmt, While) for stmt in walk_statements(kernel.body)):
        return False
    total = 0.0
    for stmt in kernel.body:
        known = work((stmt,), frozenset(), {})
        total += known.get((), 0.0)
        if total > SHORT or any(known.keys() - {()}):
            return False
    return True


def in_vectors(nest: For, ranges: Ranges) -> Work:
    """The work of a nest whose innermost loops will go in vectors."""

    def vectors(loop: For) -> Sequence[Stmt] | None:
        inside = any(isinstance(stmt, For) for stmt in walk_statements(loop.body))
        return None if inside else (replace(loop, kind=LoopKind.VECTOR, lanes=REGISTER_BYTES),)

    own = {stmt.symbol for stmt in walk_statements((nest,)) if isinstance(stmt, (For, Bind))}
    return work(rewrite_loops((nest,), vectors), own, ranges)


def work(body: Sequence[Stmt], own: Collection[Symbol], ranges: Ranges, vector: For | None = None) -> Work:
    """The work of one run of a body in the vector loop `vector`, as a polynomial of numbers that are not the
    symbols `own`."""
    total: dict[tuple[Affine, ...], float] = {}
    around = dict(ranges)

    def add(part: Work, times: Affine) -> None:
        for factors, amount in part.items():
            key = factors if times.is_constant else (*factors, times)
            total[key] = total.get(key, 0.0) + amount * (times.offset if times.is_constant else 1)

    for stmt in body:
        add({(): _cost(stmt, vector)}, ONCE)
        match stmt:
            case For(body=inner):
                lanes = stmt if stmt.kind in (LoopKind.VECTOR, LoopKind.LOCKSTEP) else vector
                enter(stmt, around)
                add(work(inner, own, around, lanes), _trips(stmt, own, ranges))
            case If() if vector is not None:
                pass  # it holds what is seldom needed
            case If(body=(For(kind=LoopKind.VECTOR),), seldom=True):
                pass  # and it what is seldom done again
            case If(body=inner, orelse=other):
                add(work((*inner, *other), own, ranges, vector), ONCE)
            case While(test=test, body=inner):
                add(work((*test, *inner), own, ranges, vector), Affine.of(UNKNOWN_TRIPS))
            case _:
                pass
    return total


def as_expression(work: Work) -> Expr:
    """`PARTS` times the polynomial as an int64, rounded up."""
    terms = [
        _combined("multiply", (Const(math.ceil(PARTS * amount), I64), *map(Index, factors)))
        for factors, amount in work.items()
        if amount
    ]
    return _combined("add", terms)


def _combined(name: str, numbers: Sequence[Expr]) -> Expr:
    total, *others = numbers
    for number in others:
        total = Apply(OPS[name], (total, number), I64)
    return total


def _trips(loop: For, own: Collection[Symbol], ranges: Ranges) -> Affine:
    if loop.trips is not None:
        return Affine.of(loop.trips)
    span = loop.hi - loop.lo
    if loop.step == 1 and not any(symbol in own for symbol in span.symbols):
        return span
    count = about(loop, ranges)
    return Affine.of(UNKNOWN_TRIPS if count is None else count)


def _cost(stmt: Stmt, vector: For | None) -> float:
    """The work of a statement without what is nested in it, for one lane."""
    cost = sum(_node_cost(node, vector) for node in nodes_in((stmt,)))
    match stmt:
        case Store(tensor=tensor, index=index, accum=accum):
            accesses = 1 if accum is None else 2
            return cost + accesses * _access_cost(tensor, index, vector) + (accum.cost if accum else 0.0)
        case Fill(tensor=tensor) if tensor.has_fixed_shape:
            return cost + tensor.nbytes / REGISTER_BYTES
        case _:
            return cost


def _node_cost(node: Expr, vector: For | None) -> float:
    match node:
        case Apply(op=op, args=args):
            if is_of_library(op):
                return op.cost
            return op.cost * _share(max(dtype_of(arg).itemsize for arg in args), vector)
        case Load(tensor=tensor, index=index):
            return _access_cost(tensor, index, vector)
        case Gather():
            return 1.0
        case _:
            return 0.0


def _access_cost(tensor: Tensor, index: tuple[Affine, ...], vector: For | None) -> float:
    step = 0 if vector is None else stride(tensor, index, vector.symbol)
    if step == 0:
        return 1.0 if vector is None else 1.0 / vector.lanes
    return _share(tensor.dtype.itemsize, vector) if step in (1, -1) else 1.0


def _share(itemsize: int, vector: For | None) -> float:
    """A lane's part of an instruction on items of a size."""
    return 1.0 if vector is None else max(1.0 / vector.lanes, itemsize / REGISTER_BYTES)
