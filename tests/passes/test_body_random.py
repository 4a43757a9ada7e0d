"""Random loop nests mean the same before and after each of the body passes, bit for bit.

Sums here are of integers, whose order does not show; those of floats are in test_body_sums.py.
"""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arrayjit.ir.assign import ArrayParam
from arrayjit.ir.code import Caps
from arrayjit.ir.dtype import BOOL, F32, I32, DType
from arrayjit.ir.expr import Apply, Cast, Const, Expr, Index, Load, Local, Variable, constant
from arrayjit.ir.index import Affine, Symbol
from arrayjit.ir.interp import run
from arrayjit.ir.loops import Define, For, Kernel, LoopKind, Stmt, Store, Update
from arrayjit.ir.ops import op
from arrayjit.ir.tensor import Tensor
from arrayjit.ir.text import print_kernel
from arrayjit.ir.verify import verify_kernel
from arrayjit.passes.bodies.carry import carry
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

PASSES = (expand, simplify, order, collapse, pack, tile, hoist, share, vectorise, carry, cascade, jam, tails)
FLOAT_OPS = ("add", "subtract", "multiply", "divide", "maximum", "square", "negative", "absolute")
INT_OPS = ("add", "subtract", "multiply", "floor_divide", "maximum", "square", "negative", "left_shift")
SHAPE = (6, 10)


class Writer:
    """Writes one random kernel over a few arrays, which every nest may read and write."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.tensors = [
            Tensor.of(name, SHAPE, dtype) for name, dtype in zip("abkn", (F32, F32, I32, I32), strict=True)
        ]
        self.locals: list[Variable] = []
        self.written: list[Tensor] = []
        self.reach = 0
        """How many iterations ago cells may have been written that a nest reads."""

    def kernel(self) -> Kernel:
        body = [self.nest() for _ in range(self.random.randint(1, 3))]
        return Kernel("random", tuple(ArrayParam(t, "update") for t in self.tensors), tuple(body))

    def nest(self) -> Stmt:
        i, j = Symbol("i"), Symbol("j")
        self.written = self.random.sample(self.tensors, self.random.randint(1, 2))
        self.reach = 0
        choice = self.random.randrange(4)
        if choice == 0:
            return self.reduction(i, j)
        if choice == 1:
            return self.recurrence(i, j)
        body = (*self.definitions(i, j), *self.stores(i, j))
        loops = [(i, SHAPE[0]), (j, SHAPE[1])]
        self.random.shuffle(loops)
        return self.loop(*loops[0], self.loop(*loops[1], *body))

    def loop(self, symbol: Symbol, extent: int, *body: Stmt) -> For:
        return For(symbol, Affine.of(0), Affine.of(extent), body, LoopKind.PARALLEL)

    def reduction(self, i: Symbol, j: Symbol) -> Stmt:
        self.locals = []
        acc = Variable("acc", I32)
        accum = op(self.random.choice(["add", "maximum", "multiply"]))
        into = self.random.choice(self.tensors[2:])
        self.written = [into]
        inner = self.loop(
            j, SHAPE[1], *self.definitions(i, j), Update(acc, self.expr(I32, 2, i, j, False), accum)
        )
        position = (Affine.of(i), Affine.of(self.random.randrange(SHAPE[1])))
        return self.loop(i, SHAPE[0], Define(acc, Const(7, I32)), inner, Store(into, position, Local(acc)))

    def recurrence(self, i: Symbol, j: Symbol) -> Stmt:
        self.locals = []
        self.reach = 1
        last = Variable("last", F32)
        inner_locals = [last]
        lines = self.definitions(i, j)
        self.locals += inner_locals
        inner = (*lines, *self.stores(i, j), Update(last, self.expr(F32, 2, i, j)))
        loop = For(j, Affine.of(self.reach), Affine.of(SHAPE[1]), inner)
        return self.loop(i, SHAPE[0], Define(last, Const(0.0, F32)), loop)

    def definitions(self, i: Symbol, j: Symbol) -> list[Stmt]:
        self.locals = []
        lines: list[Stmt] = []
        for _ in range(self.random.randint(0, 4)):
            variable = Variable("v", self.random.choice([F32, I32]))
            lines.append(Define(variable, self.expr(variable.dtype, 3, i, j, False)))
            self.locals.append(variable)
        return lines

    def stores(self, i: Symbol, j: Symbol) -> list[Stmt]:
        cell = (Affine.of(i), Affine.of(j))
        return [Store(t, cell, self.expr(t.dtype, 3, i, j)) for t in self.written]

    def expr(self, dtype: DType, depth: int, i: Symbol, j: Symbol, own: bool = True) -> Expr:
        """`own`: may read the cells that the same nest writes, at the same position."""
        kind = self.random.randrange(8) if depth else self.random.randrange(4)
        if kind < 2:
            return self.load(dtype, i, j, own)
        if kind == 2:
            number = self.random.choice([0, -0.0, 1, 2, 0.5, -1] if dtype is F32 else [0, 1, 2, -1, 31])
            return constant(number, dtype)
        if kind == 3:
            known = [v for v in self.locals if v.dtype is dtype]
            return Local(self.random.choice(known)) if known else self.load(dtype, i, j, own)
        if kind == 4:
            inner = self.expr(I32 if dtype is F32 else F32, 0, i, j, own)
            return Cast(inner, dtype) if dtype is F32 else Cast(Index(Affine.of(j) * 2 + i), dtype)
        if kind == 5:
            pair = [self.expr(dtype, depth - 1, i, j, own) for _ in range(2)]
            return Apply(op("where"), (Apply(op("less"), tuple(pair), BOOL), *pair), dtype)
        row = op(self.random.choice(FLOAT_OPS if dtype is F32 else INT_OPS))
        return Apply(row, tuple(self.expr(dtype, depth - 1, i, j, own) for _ in range(row.arity)), dtype)

    def load(self, dtype: DType, i: Symbol, j: Symbol, own: bool) -> Expr:
        tensor = self.random.choice([t for t in self.tensors if t.dtype is dtype])
        here = (Affine.of(i), Affine.of(j))
        if tensor in self.written:
            before = (here[0], here[1] - self.random.randint(0, self.reach))
            return Load(tensor, before) if own else constant(3, dtype)
        row = self.random.choice([here[0], here[0], Affine.of(2), SHAPE[0] - 1 - here[0]])
        column = self.random.choice([here[1], here[1], Affine.of(3), SHAPE[1] - 1 - here[1]])
        return Load(tensor, (row, column))


def outcome(kernel: Kernel) -> list[bytes]:
    """Every array's bits afterwards, any NaN as one."""
    random = np.random.default_rng(0)
    arrays = {}
    for param in kernel.params:
        assert isinstance(param, ArrayParam)
        values = random.integers(-3, 4, SHAPE).astype(param.tensor.dtype.numpy)
        arrays[param.tensor] = values * np.float32(0.3) if param.tensor.dtype is F32 else values
    run(kernel, arrays)
    return [np.where(a != a, a.dtype.type(0) / 1 + 99, a).tobytes() for a in arrays.values()]


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32))
def test_no_pass_changes_a_bit(seed: int) -> None:
    kernel = Writer(Random(seed)).kernel()
    verify_kernel(kernel)
    expected = outcome(kernel)
    for step in PASSES:
        before, kernel = kernel, step(kernel, Caps())
        if kernel is before:
            continue
        verify_kernel(kernel)
        assert outcome(kernel) == expected, f"{step.__name__}\n{print_kernel(before)}\n{print_kernel(kernel)}"


@pytest.mark.parametrize("step", PASSES, ids=lambda step: step.__name__)
def test_each_pass_changes_something_and_says_so(step) -> None:
    changed = 0
    for seed in range(40):
        kernel = Writer(Random(seed)).kernel()
        for earlier in PASSES[: PASSES.index(step)]:
            kernel = earlier(kernel, Caps())
        after = step(kernel, Caps())
        assert (print_kernel(after) == print_kernel(kernel)) == (after is kernel)
        changed += after is not kernel
    assert changed or step in (cascade, jam, pack, tile)
