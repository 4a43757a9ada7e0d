"""A program twice as long takes twice the work to compile, counted in calls of functions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pytest
from work import calls_in

from arrayjit import jit
from arrayjit.ir.assign import Computation
from arrayjit.ir.code import Caps
from arrayjit.ir.dtype import BOOL, F64
from arrayjit.ir.expr import Apply, Expr, Load, Local, Variable, constant
from arrayjit.ir.index import Affine, Symbol, affine
from arrayjit.ir.loops import Define, For, Kernel, LoopKind, Place, PlaceKind, Stmt, Store, Update
from arrayjit.ir.ops import op
from arrayjit.ir.params import ArrayParam
from arrayjit.ir.tensor import Tensor
from arrayjit.passes.bodies.hoist import hoist
from arrayjit.passes.bodies.regroup import regroup
from arrayjit.passes.bodies.settle import settle
from arrayjit.passes.bodies.steady import steady
from arrayjit.passes.schedule.threads import threads
from arrayjit.passes.structure.directly import directly
from arrayjit.passes.structure.forward import forward
from arrayjit.passes.structure.fuse import fuse
from arrayjit.passes.structure.within import within
from arrayjit.tracer.calls.function import trace_function

Program = Callable[..., Any]


@dataclass
class Belief:
    mean: np.ndarray
    spread: np.ndarray


def estimates(start: Any, moves: Any, seen: Any) -> Any:
    """Steps of a filter, which a list that grows at its front keeps from being a loop."""
    belief, out = Belief(start[0], start), []
    for number in seen:
        spread = moves @ belief.spread @ moves.T + 0.01
        gain = spread @ np.linalg.inv(spread + 0.1)
        belief = Belief(belief.mean + gain @ (number - belief.mean), spread - gain @ spread)
        out.insert(0, belief.mean)
    return np.stack(out)


def halves(values: Any) -> Any:
    """Parts of parts, put together again."""
    if len(values) == 1:
        return values
    even, odd = halves(values[::2]), halves(values[1::2])
    turned = np.exp(np.arange(len(odd)) / len(values)) * odd
    return np.concatenate([even + turned, even - turned])


def of_filter(length: int) -> tuple[Program, tuple[Any, ...]]:
    return estimates, (np.eye(3), np.eye(3) + 0.1, np.ones((length, 3)))


def of_halves(length: int) -> tuple[Program, tuple[Any, ...]]:
    return halves, (np.linspace(1, 2, length),)


def deep_expression(depth: int) -> Kernel:
    """A value of so many operations, each on the one before, in a loop."""
    symbol, cells = Symbol("i"), Tensor.of("x", (8,), F64)
    cell: Expr = Load(cells, (Affine.of(symbol),))
    value = cell
    for _ in range(depth):
        value = Apply(op("add"), (value, cell), F64)
    loop = For(symbol, Affine.of(0), Affine.of(8), (Store(cells, (Affine.of(symbol),), value),))
    return Kernel("deep", (ArrayParam(cells, "update"),), (loop,))


def deep_nest(depth: int) -> Kernel:
    """A cell that is stored in so many loops."""
    symbols, cells = [Symbol("i") for _ in range(depth)], Tensor.of("x", (2,) * depth, F64)
    body: tuple[Stmt, ...] = (Store(cells, affine(symbols), constant(1.0, F64)),)
    for symbol in reversed(symbols):
        body = (For(symbol, Affine.of(0), Affine.of(2), body),)
    return Kernel("deep", (ArrayParam(cells, "write"),), body)


def clipped(count: int) -> Computation:
    """So many positions that are known to lie in a table."""

    def program(table: Any, at: Any) -> Any:
        positions = [np.minimum(np.maximum(at + number, 0), 9) for number in offsets]
        return [table[position] for position in positions]

    offsets = [np.int64(number) for number in range(count)]
    return trace_function(program, (np.arange(10.0), np.arange(5)), {}).computation


def copies(count: int) -> Computation:
    """An array that is copied into so many rows of another one."""

    def program(values: Any) -> Any:
        rows = np.zeros((count, len(values)))
        for number in numbers:
            rows[number] = values
        return rows

    numbers = list(range(count))
    return trace_function(program, (np.arange(10.0),), {}).computation


def copied_sums(count: int) -> Kernel:
    """So many running sums that are copied into rows of an array."""
    rows, body = Tensor.of("rows", (count, 8), F64), list[Stmt]()
    for number in range(count):
        sums, k, i = Tensor.of("sums", (8,), F64), Symbol("k"), Symbol("i")
        before, own = Load(sums, (k - 1,)), Load(sums, (Affine.of(i),))
        body += (
            Store(sums, (Affine.of(0),), constant(1.0, F64)),
            For(k, Affine.of(1), Affine.of(8), (Store(sums, (Affine.of(k),), before),)),
            For(i, Affine.of(0), Affine.of(8), (Store(rows, affine((number, i)), own),), LoopKind.PARALLEL),
        )
    return Kernel("sums", (ArrayParam(rows, "write"),), tuple(body))


def stages(count: int) -> Kernel:
    """Rows that go through so many temporaries, each made of the one before."""
    rows, k = Tensor.of("rows", (900, 8), F64), Symbol("k")
    body, placement, last = list[Stmt](), dict[Tensor, Place](), Load(rows, affine((k, 0)))
    for _ in range(count):
        made, i = Tensor.of("made", (8,), F64), Symbol("i")
        value = Apply(op("floor"), (last,), F64)
        body.append(For(i, Affine.of(0), Affine.of(8), (Store(made, affine((i,)), value),)))
        placement[made], last = Place(PlaceKind.ARENA, "a row"), Load(made, affine((0,)))
    body.append(Store(rows, affine((k, 0)), last))
    loop = For(k, Affine.of(0), Affine.of(900), tuple(body))
    return Kernel("stages", (ArrayParam(rows, "update"),), (loop,), placement)


def chosen_factor(count: int) -> Kernel:
    """A loop that chooses a factor, which is used again after so many operations on the product."""
    cells, x, test = Tensor.of("x", (1,), F64), Variable("x", F64), Variable("test", BOOL)
    factor, i = Variable("factor", F64), Symbol("i")
    choice = Apply(op("where"), (Local(test), constant(2.0, F64), constant(3.0, F64)), F64)
    body: list[Stmt] = [
        Define(test, Apply(op("less"), (Local(x), constant(1.0, F64)), BOOL)),
        Define(factor, choice),
        Define(Variable("product", F64), Apply(op("multiply"), (Local(x), Local(factor)), F64)),
    ]
    for _ in range(count):
        body.append(Define(Variable("t", F64), Apply(op("floor"), (Local(x),), F64)))
    body.append(Update(x, Apply(op("floor"), (Local(factor),), F64)))
    loop = For(i, Affine.of(0), Affine.of(8), tuple(body))
    ends = (Define(x, constant(1.0, F64)), loop, Store(cells, (Affine.of(0),), Local(x)))
    return Kernel("chosen", (ArrayParam(cells, "write"),), ends)


def unsettled(conditions: int) -> Kernel:
    """A loop whose steps all change a number, and have so many conditions on it."""
    cells, x, i = Tensor.of("x", (1,), F64), Variable("x", F64), Symbol("i")
    body: list[Stmt] = []
    value = Local(x)
    for _ in range(50):
        body.append(Define(Variable("t", F64), Apply(op("floor"), (value,), F64)))
        value = Local(body[-1].variable)
    for number in range(conditions):
        test = Apply(op("less"), (value, constant(float(number), F64)), BOOL)
        body.append(Define(Variable("test", BOOL), test))
    body.append(Update(x, Apply(op("add"), (value, constant(1.0, F64)), F64)))
    loop = For(i, Affine.of(0), Affine.of(8), tuple(body))
    ends = (Define(x, constant(1.0, F64)), loop, Store(cells, (Affine.of(0),), Local(x)))
    return Kernel("unsettled", (ArrayParam(cells, "write"),), ends)


def compilation(program: Program, args: tuple[Any, ...]) -> int:
    """How many calls of functions it takes to compile a program."""
    function = jit(program, target="llvm")
    return calls_in(lambda: function.lower(*args).as_text("llvm"))


@pytest.mark.parametrize(("make", "length"), [(of_filter, 3), (of_halves, 8)])
def test_twice_the_program_takes_twice_the_work(make: Any, length: int) -> None:
    once, twice, four_times = (compilation(*make(length * factor)) for factor in (1, 2, 4))
    assert four_times - twice < 2.4 * (twice - once)


@pytest.mark.parametrize(
    ("step", "make"),
    [
        (within, clipped),
        (directly, copied_sums),
        (regroup, chosen_factor),
        (steady, stages),
        (threads, stages),
    ],
)
def test_twice_the_statements_take_twice_the_work(step: Any, make: Callable[[int], Any]) -> None:
    caps = Caps(threads=2)
    once, twice, four_times = (calls_in(partial(step, make(15 * factor), caps)) for factor in (1, 2, 4))
    assert four_times - twice < 2.4 * (twice - once)


def test_copies_that_nothing_overwrites_are_not_followed() -> None:
    count = 60
    assert calls_in(partial(forward, copies(count), Caps())) < 300 * count


def test_what_changes_in_every_step_is_simplified_once_for_all_conditions() -> None:
    one, many = (calls_in(partial(settle, unsettled(count), Caps())) for count in (1, 8))
    assert many < 3 * one


@pytest.mark.parametrize(("step", "make"), [(hoist, deep_expression), (fuse, deep_nest)])
def test_twice_the_depth_takes_twice_the_work(step: Any, make: Callable[[int], Kernel]) -> None:
    once, twice, four_times = (calls_in(partial(step, make(8 * factor), Caps())) for factor in (1, 2, 4))
    assert four_times - twice < 2.4 * (twice - once)
