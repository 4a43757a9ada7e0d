"""What passes do for a statement does not depend on how long the program is that it stands in."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import pairwise

import pytest
from work import calls_in

from arrayjit.ir.assign import ArrayParam
from arrayjit.ir.code import Caps
from arrayjit.ir.dtype import F64
from arrayjit.ir.expr import Apply, Const, Load
from arrayjit.ir.index import Affine, Symbol
from arrayjit.ir.loops import For, Kernel, LoopKind, Place, PlaceKind, Stmt, Store
from arrayjit.ir.ops import op
from arrayjit.ir.tensor import Tensor
from arrayjit.passes.analysis.access import Range, effects
from arrayjit.passes.analysis.cells import Cells
from arrayjit.passes.bodies.once import once
from arrayjit.passes.bodies.totals import totals
from arrayjit.passes.schedule.bypass import bypass

ONE = Const(1.0, F64)


class LookedUp(Mapping[Symbol, Range]):
    """The ranges of a program, which nobody may go through."""

    def __init__(self, known: Mapping[Symbol, Range]) -> None:
        self.known = known

    def __getitem__(self, symbol: Symbol) -> Range:
        return self.known[symbol]

    def __iter__(self) -> Iterator[Symbol]:
        raise AssertionError("gone through")

    def __len__(self) -> int:
        return len(self.known)


def recurrence(x: Tensor, hi: Affine, k: Symbol) -> For:
    """x[k + 1] = x[k] + 1"""
    value = Apply(op("add"), (Load(x, (Affine.of(k),)), ONE), F64)
    return For(k, Affine.of(0), hi, (Store(x, (k + 1,), value),), LoopKind.SEQUENTIAL)


def test_the_ranges_of_a_program_are_not_copied_for_a_loop_in_it() -> None:
    n, k = Symbol("n"), Symbol("k")
    x = Tensor.of("x", (9,), F64)
    loop, ranges = recurrence(x, Affine.of(n), k), LookedUp({n: (0, 7)})
    (written,) = effects((loop,), ranges).writes[x]
    assert [(span.base.offset, span.low, span.high) for span in written.spans if span] == [(1, 0, 6)]
    cells = Cells(loop, ranges)
    assert cells.meet(Load(x, (Affine.of(k),)), x, (k + 1,))
    assert not cells.meet(Load(x, (Affine.of(k),)), x, (k + 8,))


def scalars(count: int) -> Kernel:
    """As many scalars, each made of the one before."""
    cells = [Tensor.of(f"x{number}", (), F64) for number in range(count + 1)]
    body = [Store(new, (), Apply(op("add"), (Load(old, ()), ONE), F64)) for old, new in pairwise(cells)]
    return Kernel("scalars", tuple(ArrayParam(cell, "update") for cell in cells), tuple(body))


def sums(count: int) -> Kernel:
    """As many sums, each into a temporary that its loop starts with."""
    body: list[Stmt] = []
    placement: dict[Tensor, Place] = {}
    for number in range(count):
        k, total = Symbol("k"), Tensor.of(f"t{number}", (), F64)
        value = Apply(op("add"), (Load(total, ()), ONE), F64)
        placement[total] = Place(PlaceKind.ARENA, "a sum")
        body += (For(k, Affine.of(0), Affine.of(99), (Store(total, (), value),), LoopKind.SEQUENTIAL),)
    return replace(Kernel("sums", (), tuple(body)), placement=placement)


@pytest.mark.parametrize(
    ("step", "program"), [(once, scalars), (totals, sums)], ids=lambda each: each.__name__
)
def test_four_times_the_statements_are_four_times_the_work(
    step: Callable[[Kernel, Caps], Kernel], program: Callable[[int], Kernel]
) -> None:
    short, long = program(50), program(200)
    few, many = calls_in(lambda: step(short, Caps())), calls_in(lambda: step(long, Caps()))
    assert few > 50
    assert many < 4.4 * few


def test_a_loop_that_moves_little_is_not_looked_through(monkeypatch: pytest.MonkeyPatch) -> None:
    """Though all of them together have more memory than the last cache."""
    monkeypatch.setattr(sys.modules[bypass.__module__], "rare", None)
    body, params = [], []
    for number in range(40):
        x, i = Tensor.of(f"x{number}", (4096,), F64), Symbol("i")
        store = Store(x, (Affine.of(i),), ONE)
        body.append(For(i, Affine.of(0), Affine.of(4096), (store,), LoopKind.VECTOR, lanes=8))
        params.append(ArrayParam(x, "write"))
    kernel = Kernel("small", tuple(params), tuple(body))
    assert bypass(kernel, replace(Caps(), l3_bytes=1 << 20)) is kernel
