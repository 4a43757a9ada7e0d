"""Random computations of loops, branches and bound numbers: triangular and backward loops, extents that may
be nothing or less, values that iterations hand on, temporaries that are made anew or kept.

Every float is a small whole number, so that sums are exact in any order; integers wrap around.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

import numpy as np

from arrayjit.ir.assign import (
    ArrayParam,
    Assign,
    Bind,
    Branch,
    Check,
    Computation,
    IndexParam,
    Loop,
    Statement,
    While,
)
from arrayjit.ir.dtype import BOOL, F64, I64, DType
from arrayjit.ir.expr import Apply, Cast, Const, Expr, Index, Load
from arrayjit.ir.index import Affine, Symbol, SymbolKind, affine
from arrayjit.ir.ops import op
from arrayjit.ir.tensor import Tensor

__all__ = ["arguments", "random_computation"]

ZERO = Affine.of(0)
LIMIT = 16
"""Floats are cut down to less than this when they are stored."""


@dataclass(frozen=True)
class Number:
    """An affine expression with its least and greatest value."""

    value: Affine
    low: int
    high: int


@dataclass(frozen=True)
class Span:
    """A loop over `extent` cells of an axis from `start` on; all of them lie between `low` and `high`."""

    symbol: Symbol
    start: Affine
    extent: Affine
    low: int
    high: int


def random_computation(random: Random) -> Computation:
    """One program; its parameters are all updated."""
    return _Writer(random, random.choice([5, 8, 13, 20, 45])).computation()


def arguments(computation: Computation, seed: int = 0) -> tuple[dict[Tensor, np.ndarray], dict[Symbol, int]]:
    """An array for every tensor that the caller passes, a number for every symbol."""
    random = np.random.default_rng(seed)
    arrays: dict[Tensor, np.ndarray] = {}
    numbers: dict[Symbol, int] = {}
    for param in computation.params:
        match param:
            case ArrayParam(tensor=tensor):
                shape = tuple(extent.constant for extent in tensor.shape)
                arrays[tensor] = np.asarray(random.integers(0, LIMIT, shape)).astype(tensor.dtype.numpy)
            case IndexParam(symbol=symbol):
                numbers[symbol] = int(random.integers(symbol.lower or 0, symbol.upper))
    return arrays, numbers


class _Writer:
    def __init__(self, random: Random, size: int) -> None:
        self.random = random
        self.size = size
        self.tensors: list[Tensor] = []
        self.numbers: list[Number] = []
        self.spans: list[tuple[Affine, Affine, int, int]] = []
        self.room = 12

    def computation(self) -> Computation:
        self.tensors = [
            self.tensor("a", I64, 1),
            self.tensor("b", F64, 1),
            self.tensor("c", I64, 2),
            self.tensor("d", F64, 2),
            self.tensor("e", I64, 0),
            self.tensor("f", F64, 0),
        ]
        count = Symbol("n", SymbolKind.STATIC, 0, self.size + 1)
        self.numbers = [Number(Affine.of(count), 0, self.size)]
        params = (*(ArrayParam(tensor, "update") for tensor in self.tensors), IndexParam(count))
        return Computation("random", params, tuple(self.body(3)))

    def tensor(self, label: str, dtype: DType, rank: int) -> Tensor:
        return Tensor.of(label, (self.size,) * rank, dtype)

    # statements

    def body(self, depth: int) -> list[Statement]:
        """A few statements; what they bind and make is gone after them."""
        outside = self.tensors, self.numbers, self.spans
        out: list[Statement] = []
        for _ in range(self.random.randint(2, 5)):
            out += self.statement(depth)
        self.tensors, self.numbers, self.spans = outside
        return out

    def statement(self, depth: int) -> list[Statement]:
        self.room -= 1
        choice = self.random.randrange(15) if depth and self.room > 0 else self.random.randrange(9)
        match choice:
            case 0:
                return self.elementwise(self.any_tensor())
            case 1:
                return self.reduction(self.any_tensor())
            case 2:
                return self.temporary()
            case 3 | 4:
                return self.chain()
            case 5:
                return [self.bind()]
            case 6:
                return [self.check()] if not self.random.randrange(4) else self.product()
            case 7 | 8:
                return [self.sweep()]
            case 9 | 10 | 11:
                return [self.loop(depth)]
            case 12 | 13:
                orelse = self.body(depth - 1) if self.random.randrange(2) else []
                return [Branch(self.condition(), tuple(self.body(depth - 1)), tuple(orelse))]
            case _:
                return self.repetition(depth)

    def any_tensor(self) -> Tensor:
        """Rather one that was made a short while ago."""
        return self.random.choice(self.tensors[-3:] if self.random.randrange(2) else self.tensors)

    def temporary(self) -> list[Statement]:
        tensor = self.tensor("t", self.random.choice([I64, F64]), self.random.choice([0, 0, 1, 2]))
        spans = [self.whole() for _ in range(tensor.rank)]
        made = self.assign(tensor, spans, affine(span.symbol for span in spans))
        self.tensors = [*self.tensors, tensor]
        return [made]

    def elementwise(self, into: Tensor) -> list[Statement]:
        spans, index = self.target(into)
        return [self.assign(into, spans, index)]

    def chain(self) -> list[Statement]:
        """Assignments over the same cells, with what may stand between them."""
        rank = self.random.randrange(3)
        pattern = [self.whole() if self.random.randrange(2) else self.span() for _ in range(rank)]
        out: list[Statement] = []
        for _ in range(self.random.randint(2, 4)):
            spans = [Span(Symbol("k"), span.start, span.extent, span.low, span.high) for span in pattern]
            index = tuple(span.start + span.symbol for span in spans)
            fitting = [tensor for tensor in self.tensors if tensor.rank == rank]
            made = not fitting or self.random.randrange(2)
            if made and all(span.extent == Affine.of(self.size) for span in spans):
                fitting = [self.tensor("t", self.random.choice([I64, F64]), rank)]
            into = self.random.choice(fitting) if fitting else None
            if into is not None:
                out.append(self.assign(into, spans, index))
                self.tensors = [*(t for t in self.tensors if t is not into), into]
            if not self.random.randrange(4):
                out.append(self.bind())
        return out

    def assign(self, into: Tensor, spans: list[Span], index: tuple[Affine, ...]) -> Assign:
        return Assign(_loops(spans), into, index, _kept_small(self.expr(into.dtype, 2, spans)))

    def reduction(self, into: Tensor) -> list[Statement]:
        spans, index = self.target(into)
        reduced = [self.span() for _ in range(self.random.randint(1, 2))]
        value = self.expr(into.dtype, 1, spans + reduced)
        accum = op(self.random.choice(["add", "maximum", "minimum"]))
        initial = self.expr(into.dtype, 0, spans) if self.random.randrange(3) else None
        loops = _loops(spans + reduced)
        return [Assign(loops, into, index, value, accum, initial), self.wrapped(into)]

    def product(self) -> list[Statement]:
        """A product of matrices or vectors by fused multiply-adds."""
        into = self.random.choice([tensor for tensor in self.tensors if tensor.dtype is F64])
        spans, index = self.target(into)
        reduced = [self.span()]
        pair = (self.load(F64, spans + reduced), self.load(F64, spans + reduced))
        value = Apply(op("multiply"), pair, F64)
        initial = Const(0.0, F64) if self.random.randrange(2) else None
        loops = _loops(spans + reduced)
        return [Assign(loops, into, index, value, op("add"), initial, contract=True), self.wrapped(into)]

    def wrapped(self, into: Tensor) -> Assign:
        spans = [self.whole() for _ in range(into.rank)]
        index = affine(span.symbol for span in spans)
        return Assign(_loops(spans), into, index, _kept_small(Load(into, index)))

    def bind(self) -> Bind:
        top = self.random.choice([self.size, self.size + 1])
        declared = (0, top) if self.random.randrange(2) else (None, None)
        symbol = Symbol("s", SymbolKind.LOOP, *declared)
        value = Apply(op("remainder"), (self.load(I64, []), Const(top, I64)), I64)
        self.numbers = [*self.numbers, Number(Affine.of(symbol), 0, top - 1)]
        return Bind(symbol, value)

    def check(self) -> Check:
        spans = [self.span()] if self.random.randrange(2) else []
        holds = Apply(op("less"), (self.load(F64, spans), Const(float(LIMIT - 1), F64)), BOOL)
        return Check(_loops(spans), holds, "ValueError", "too large")

    def condition(self) -> Expr:
        """What holds about as often as not."""
        row = op(self.random.choice(["less", "greater_equal"]))
        return Apply(row, (self.load(F64, []), Const(float(LIMIT // 2), F64)), BOOL)

    def sweep(self) -> Loop:
        """A loop whose iterations read and write the cells of those before and after them."""
        known = self.random.choice([n for n in self.numbers if n.low >= 0 and n.high <= self.size])
        extent = self.random.choice([Affine.of(self.size), known.value]) - 2
        span = Span(Symbol("i"), Affine.of(1), extent, 1, self.size - 1)
        ends = self.random.choice([(ZERO, extent, 1), (ZERO, extent, 1), (extent - 1, Affine.of(-1), -1)])
        outside = self.numbers, self.tensors, self.spans
        numbers = [tensor for tensor in self.tensors if not tensor.rank]
        self.tensors = [*numbers, *self.random.sample([t for t in self.tensors if t.rank], 2)]
        body: list[Statement] = []
        for _ in range(self.random.randint(1, 4)):
            into = self.any_tensor()
            index = tuple(self.near(span) for _ in range(into.rank))
            accum = None if self.random.randrange(4) else op("maximum")
            body.append(Assign((), into, index, _kept_small(self.expr(into.dtype, 2, [span])), accum))
            if not self.random.randrange(8):
                body.append(self.random.choice([self.bind, self.check])())
        self.numbers, self.tensors, self.spans = outside
        return Loop(span.symbol, *ends, tuple(body))

    def loop(self, depth: int) -> Loop:
        symbol = Symbol("i")
        step = self.random.choice([1, 1, 1, 2, -1, -1, -3])
        ends = [self.number(), self.number()]
        if self.random.randrange(3):
            ends.sort(key=lambda number: number.high, reverse=step < 0)
        lo, hi = ends
        if self.random.randrange(3):
            hi = Number(lo.value + (3 if step > 0 else -3), lo.low - 3, lo.high + 3)
        least, greatest = (lo.low, hi.high - 1) if step > 0 else (hi.low + 1, lo.high)
        outside = self.numbers, self.tensors
        self.numbers = [*self.numbers, Number(Affine.of(symbol), min(least, greatest), max(least, greatest))]
        first = self.first_turn(symbol, lo.value) if not self.random.randrange(3) else []
        body = (*first, *self.body(depth - 1))
        self.numbers, self.tensors = outside
        return Loop(symbol, lo.value, hi.value, step, body)

    def first_turn(self, symbol: Symbol, lo: Affine) -> list[Statement]:
        """A temporary that the first iteration of a loop makes and the others find."""
        tensor = self.tensor("kept", self.random.choice([I64, F64]), self.random.randrange(3))
        spans = [self.whole() for _ in range(tensor.rank)]
        made = self.assign(tensor, spans, affine(span.symbol for span in spans))
        is_first = Apply(op("equal"), (Index(Affine.of(symbol)), Index(lo)), BOOL)
        self.tensors = [*self.tensors, tensor]
        return [Branch(is_first, (made,))]

    def repetition(self, depth: int) -> list[Statement]:
        """A while loop that counts how often it has run, in a cell that nothing else writes."""
        turns = Tensor.of("turns", (), I64)
        start = Assign((), turns, (), Const(0, I64))
        now = Load(turns, ())
        more = Apply(op("less"), (now, Const(self.random.randint(0, 3), I64)), BOOL)
        go_on = Apply(op("logical_and"), (more, self.condition()), BOOL) if self.random.randrange(2) else more
        outside = self.tensors, self.numbers, self.spans
        test: list[Statement] = []
        if self.random.randrange(2):
            test += self.statement(0)
            go_on = Apply(op("logical_and"), (more, self.condition()), BOOL)
        body = self.body(depth - 1)
        self.tensors, self.numbers, self.spans = outside
        count = Assign((), turns, (), Apply(op("add"), (now, Const(1, I64)), I64))
        return [start, While(tuple(test), go_on, (*body, count))]

    # positions

    def number(self) -> Number:
        """A bound of a loop."""
        if self.random.randrange(3):
            known = self.random.choice(self.numbers)
            shift = self.random.randint(-1, 1)
            return Number(known.value + shift, known.low + shift, known.high + shift)
        value = self.random.randint(0, self.size)
        return Number(Affine.of(value), value, value)

    def position(self) -> Affine:
        """A cell of an axis."""
        last = self.size - 1
        fitting = [n for n in self.numbers if n.low >= 0 and n.high <= last]
        if not fitting or not self.random.randrange(3):
            return Affine.of(self.random.choice([0, 0, 1, last]))
        number = self.random.choice(fitting)
        return self.random.choice([number.value, number.value, last - number.value])

    def whole(self) -> Span:
        return Span(Symbol("j"), ZERO, Affine.of(self.size), 0, self.size)

    def span(self) -> Span:
        """Cells of an axis, perhaps none; the same as those of another loop as often as not."""
        if self.spans and self.random.randrange(2):
            return Span(Symbol("j"), *self.random.choice(self.spans))
        size = self.size
        fitting = [n for n in self.numbers if n.low >= 0 and n.high <= size]
        options = [(ZERO, Affine.of(size), 0, size), (Affine.of(1), Affine.of(size - 2), 1, size - 1)]
        low = self.random.randint(0, size - 1)
        options.append((Affine.of(low), Affine.of(self.random.randint(-1, size - low)), low, size))
        for n in fitting:
            options += [
                (ZERO, n.value, 0, n.high),
                (ZERO, n.value - 2, 0, n.high - 2),
                (n.value, size - n.value, n.low, size),
                (n.value + 1, size - 1 - n.value, n.low + 1, size),
            ]
        if len(fitting) > 1:
            one, other = self.random.sample(fitting, 2)
            options.append((one.value, other.value - one.value, one.low, other.high))
        self.spans = [*self.spans, self.random.choice(options)]
        return Span(Symbol("j"), *self.spans[-1])

    def target(self, into: Tensor) -> tuple[list[Span], tuple[Affine, ...]]:
        """Where an assignment goes: loops over cells of some axes."""
        spans: list[Span] = []
        index: list[Affine] = []
        for _ in range(into.rank):
            if self.random.randrange(4):
                span = self.span()
                spans.append(span)
                index.append(self.along(span, False))
            else:
                index.append(self.position())
        if self.random.randrange(2):
            spans.reverse()
        return spans, tuple(index)

    def along(self, span: Span, may_shift: bool) -> Affine:
        """The cell of an axis that belongs to an iteration."""
        forward = span.start + span.symbol
        options = [forward, forward, span.start + span.extent - 1 - span.symbol]
        if may_shift:
            options += [forward + d for d in (-1, 1) if span.low + d >= 0 and span.high + d <= self.size]
        return self.random.choice(options)

    def near(self, span: Span) -> Affine:
        """The cell that belongs to an iteration, one beside it, or any."""
        return self.along(span, True) if self.random.randrange(4) else self.position()

    # expressions

    def expr(self, dtype: DType, depth: int, spans: Sequence[Span]) -> Expr:
        choice = self.random.randrange(5) if depth else self.random.randrange(3)
        if choice < 2:
            return self.load(dtype, spans)
        if choice == 2:
            if dtype is I64 and self.random.randrange(2):
                return Index(self.random.choice([self.position(), *(span.start for span in spans)]))
            return Const(dtype.numpy.type(self.random.randint(0, 5)).item(), dtype)
        pair = (self.expr(dtype, depth - 1, spans), self.expr(dtype, depth - 1, spans))
        if choice == 3:
            return Apply(op("where"), (Apply(op("less"), pair, BOOL), *pair[::-1]), dtype)
        return Apply(op(self.random.choice(["add", "subtract", "multiply", "maximum"])), pair, dtype)

    def load(self, dtype: DType, spans: Sequence[Span]) -> Expr:
        tensor = self.any_tensor()
        if not spans and self.random.randrange(3):
            tensor = self.random.choice([tensor for tensor in self.tensors if not tensor.rank])
        index = tuple(
            self.near(self.random.choice(spans)) if spans else self.position() for _ in range(tensor.rank)
        )
        load = Load(tensor, index)
        if tensor.dtype is dtype:
            return load
        return Cast(load if dtype is I64 else _masked(load), dtype)


def _loops(spans: Sequence[Span]) -> tuple[tuple[Symbol, Affine], ...]:
    return tuple((span.symbol, span.extent) for span in spans)


def _masked(value: Expr) -> Expr:
    return Apply(op("bitwise_and"), (value, Const(LIMIT - 1, I64)), I64)


def _kept_small(value: Expr) -> Expr:
    if isinstance(value, (Apply, Load)) and _is_float(value):
        return Apply(op("remainder"), (value, Const(float(LIMIT), F64)), F64)
    return value


def _is_float(value: Apply | Load) -> bool:
    return (value.dtype if isinstance(value, Apply) else value.tensor.dtype) is F64
