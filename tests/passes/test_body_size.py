"""Programs of ten thousand statements pass through every body pass."""

from __future__ import annotations

import pytest

from arrayjit.ir.assign import ArrayParam
from arrayjit.ir.code import Caps
from arrayjit.ir.dtype import F32
from arrayjit.ir.expr import Apply, Const, Expr, Load, Local, Variable
from arrayjit.ir.index import Affine, Symbol
from arrayjit.ir.loops import Define, For, Kernel, LoopKind, Stmt, Store, walk_statements
from arrayjit.ir.ops import op
from arrayjit.ir.tensor import Tensor
from arrayjit.passes.bodies.expand import expand
from arrayjit.passes.bodies.hoist import hoist
from arrayjit.passes.bodies.share import share
from arrayjit.passes.bodies.simplify import simplify
from arrayjit.passes.schedule.cascade import cascade
from arrayjit.passes.schedule.collapse import collapse
from arrayjit.passes.schedule.jam import jam
from arrayjit.passes.schedule.order import order
from arrayjit.passes.schedule.pack import pack
from arrayjit.passes.schedule.tails import tails
from arrayjit.passes.schedule.tile import tile
from arrayjit.passes.schedule.vectorise import vectorise

COUNT = 10_000
PASSES = (expand, simplify, order, collapse, pack, tile, hoist, share, vectorise, cascade, jam, tails)


def one_long_body() -> Kernel:
    """A chain of additions, one local each, in one loop."""
    i = Symbol("i")
    x, y = Tensor.of("x", (1000,), F32), Tensor.of("y", (1000,), F32)
    value: Expr = Load(x, (Affine.of(i),))
    body: list[Stmt] = []
    for _ in range(COUNT):
        local = Variable("t", F32)
        body.append(Define(local, Apply(op("square"), (value,), F32)))
        value = Local(local)
    body.append(Store(y, (Affine.of(i),), value))
    loop = For(i, Affine.of(0), Affine.of(1000), tuple(body), LoopKind.PARALLEL)
    return Kernel("long", (ArrayParam(x, "read"), ArrayParam(y, "write")), (loop,))


def many_loops() -> Kernel:
    """As many loops, each over the cells that the one before wrote."""
    x = Tensor.of("x", (1000,), F32)
    body = []
    for _ in range(COUNT):
        i = Symbol("i")
        value = Apply(op("add"), (Load(x, (Affine.of(i),)), Const(1.0, F32)), F32)
        store = Store(x, (Affine.of(i),), value)
        body.append(For(i, Affine.of(0), Affine.of(1000), (store,), LoopKind.PARALLEL))
    return Kernel("many", (ArrayParam(x, "update"),), tuple(body))


@pytest.mark.parametrize("make", [one_long_body, many_loops], ids=lambda make: make.__name__)
def test_ten_thousand_statements_pass(make) -> None:
    kernel = make()
    for step in PASSES:
        kernel = step(kernel, Caps())
    loops = [stmt for stmt in walk_statements(kernel.body) if isinstance(stmt, For)]
    innermost = [loop for loop in loops if not any(isinstance(stmt, For) for stmt in loop.body)]
    assert all(loop.kind is LoopKind.VECTOR for loop in innermost)
    assert COUNT <= sum(1 for _ in walk_statements(kernel.body)) <= 2 * COUNT + 10
