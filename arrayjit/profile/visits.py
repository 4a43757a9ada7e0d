"""How often each statement of a kernel runs, and at which values of its indices.

Loops whose iterations are alike multiply; those on whose index the number of other iterations depends are
taken apart into points, all of them at once, in NumPy. What only data decides (the turns of `while`, the
branches of `if`, extents that are computed) is known within bounds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..frozen import frozen_by_identity
from ..ir.expr import Apply, Cast, Const, Expr, Gather, Index, Load, Local, Variable
from ..ir.index import Affine, Symbol
from ..ir.loops import Bind, Define, For, If, Stay, Stmt, Update, While, walk_statements
from ..ir.tensor import Tensor
from ..ir.walk import expressions, locals_defined, locals_updated, walk

__all__ = ["MOST_POINTS", "Array", "Loop", "Space", "Visit", "visits"]

Array = np.ndarray[Any, Any]

MOST_POINTS = 1 << 22
"""Into so many points loops are taken apart; beyond, only bounds are known."""

FAR = 1 << 40
"""Stands for what has no bound."""


@frozen_by_identity
class Span:
    """Numbers at each point, within bounds."""

    low: Array
    high: Array

    @property
    def is_exact(self) -> bool:
        return self.low is self.high or bool((self.low == self.high).all())

    def at(self, points: Array) -> Span:
        low = self.low[points]
        return Span(low, low if self.low is self.high else self.high[points])


@frozen_by_identity
class Loop:
    """A loop around a statement, which was not taken apart: its first index and its trips at each point."""

    symbol: Symbol
    first: Span
    trips: Span
    step: int


@frozen_by_identity
class Space:
    """Where a statement runs. At each of the points the symbols of `values` have a value, the locals of
    `known` too, and the statement runs between `low` and `high` times: the `loops` around it, multiplied."""

    low: Array
    high: Array
    values: Mapping[Symbol, Span]
    known: Mapping[Variable, Array]
    loops: tuple[Loop, ...]

    @property
    def points(self) -> int:
        return len(self.low)

    @property
    def runs(self) -> tuple[float, float]:
        """How often the statement runs, at least and at most."""
        return float(self.low.sum()), float(self.high.sum())

    def span(self, value: Affine) -> Span:
        """An affine expression at each point."""
        low = high = np.full(self.points, value.offset, np.int64)
        for coefficient, symbol in value.terms:
            known = self.values.get(symbol) or self.declared(symbol)
            ends = (known.low, known.high) if coefficient > 0 else (known.high, known.low)
            is_exact = low is high and known.low is known.high
            low = low + coefficient * ends[0]
            high = low if is_exact else high + coefficient * ends[1]
        if low is high:
            return Span(low, low)
        return Span(np.clip(low, -FAR, FAR), np.clip(high, -FAR, FAR))

    def declared(self, symbol: Symbol) -> Span:
        """What is known of a symbol in any case."""
        low = -FAR if symbol.lower is None else symbol.lower
        high = FAR if symbol.upper is None else symbol.upper - 1
        return Span(np.full(self.points, low), np.full(self.points, high))

    def taken_apart(self, first: Array, trips: Array, step: int, symbol: Symbol) -> Space:
        """The points of all iterations of a loop."""
        points = np.repeat(np.arange(self.points), trips)
        starts = np.repeat(np.cumsum(trips) - trips, trips)
        number = first[points] + step * (np.arange(len(points)) - starts)
        values = {other: span.at(points) for other, span in self.values.items()}
        return Space(
            self.low[points],
            self.high[points],
            {**values, symbol: Span(number, number)},
            {variable: value[points] for variable, value in self.known.items()},
            tuple(
                Loop(loop.symbol, loop.first.at(points), loop.trips.at(points), loop.step)
                for loop in self.loops
            ),
        )


@frozen_by_identity
class Visit:
    """A statement and where it runs. With `lanes` it is an update whose lanes, so many, a vector loop
    combines at its end, where that runs for whole vectors."""

    stmt: Stmt
    space: Space
    lanes: int = 0


def visits(
    body: Sequence[Stmt], numbers: Mapping[Tensor, int], whole: Sequence[Stmt] | None = None
) -> Iterator[Visit]:
    """Every statement of a body in program order, outer before inner. `numbers` are the values of parameters
    of no dimensions, as far as they are known; `whole` the kernel's body, where this is a part of it."""
    return _Walk(whole or body, numbers).body(body, start())


def start() -> Space:
    """Of what runs once."""
    once = np.ones(1)
    return Space(once, once, {}, {}, ())


class _Walk:
    """One way through a kernel."""

    def __init__(self, whole: Sequence[Stmt], numbers: Mapping[Tensor, int]) -> None:
        self._numbers = numbers
        self._data = _computed_from_data(whole, numbers)
        self._decisive = _decisive(whole, self._data, numbers)

    def body(self, body: Sequence[Stmt], space: Space) -> Iterator[Visit]:
        for stmt in body:
            yield Visit(stmt, space)
            match stmt:
                case For():
                    yield from self._loop(stmt, space)
                case If(condition=condition, body=inner, orelse=other):
                    chosen = self._exact(condition, space)
                    yield from self.body(inner, _where(space, chosen))
                    yield from self.body(other, _where(space, None if chosen is None else ~chosen))
                case While(test=test, body=inner):
                    endless = np.where(space.high > 0, np.inf, 0.0)
                    yield from self.body(test, replace(space, high=endless))
                    yield from self.body(inner, replace(space, low=0 * space.low, high=endless))
                case Stay():
                    space = replace(space, low=0 * space.low)
                case Bind(symbol=symbol, value=value):
                    space = replace(space, values={**space.values, symbol: self._bound(symbol, value, space)})
                case Define(variable=variable, value=value) if variable in self._decisive:
                    found = self._exact(value, space)
                    if found is not None:
                        space = replace(space, known={**space.known, variable: found})
                case _:
                    pass

    def _bound(self, symbol: Symbol, value: Expr, space: Space) -> Span:
        found = self._exact(value, space)
        if found is None:
            return space.declared(symbol)
        number = found.astype(np.int64)
        return Span(number, number)

    def _loop(self, loop: For, space: Space) -> Iterator[Visit]:
        first, last = space.span(loop.lo), space.span(loop.hi)
        if loop.step < 0:
            least, most = _trips(last.high, first.low, -loop.step), _trips(last.low, first.high, -loop.step)
        else:
            least, most = _trips(first.high, last.low, loop.step), _trips(first.low, last.high, loop.step)
        is_exact = first.is_exact and last.is_exact
        for update in _folded(loop):
            full = replace(
                space, low=space.low * (least >= loop.lanes), high=space.high * (most >= loop.lanes)
            )
            yield Visit(update, full, loop.lanes)
        if loop.symbol in self._decisive and is_exact and float(most.sum()) <= MOST_POINTS:
            yield from self.body(loop.body, space.taken_apart(first.low, most, loop.step, loop.symbol))
            return
        may_end = any(isinstance(stmt, Stay) for stmt in loop.body)
        trips = Span(most, most) if is_exact else Span(least, most)
        beyond = loop.step * (np.maximum(most, 1) - 1)
        ends = (first.low, first.high + beyond) if loop.step > 0 else (first.low + beyond, first.high)
        inside = Space(
            _product(space.low, np.minimum(least, 1) if may_end else least),
            _product(space.high, np.where(most >= FAR, np.inf, most)),
            {**space.values, loop.symbol: Span(*ends)},
            space.known,
            (*space.loops, Loop(loop.symbol, first, trips, loop.step)),
        )
        yield from self.body(loop.body, inside)

    def _exact(self, expr: Expr, space: Space) -> Array | None:
        """The value of an expression at each point; None where it is not known."""
        match expr:
            case Const(value=value, dtype=dtype):
                return np.full(space.points, value, dtype.numpy)
            case Index(value=value):
                span = space.span(value)
                return span.low if span.is_exact else None
            case Local(variable=variable):
                return space.known.get(variable)
            case Load(tensor=tensor) if tensor in self._numbers:
                return np.full(space.points, self._numbers[tensor], tensor.dtype.numpy)
            case Apply(op=op, args=args, dtype=dtype):
                parts = [self._exact(arg, space) for arg in args]
                if any(part is None for part in parts):
                    return None
                with np.errstate(all="ignore"):
                    result: Array = np.asarray(op.ref(*parts)).astype(dtype.numpy)
                return result
            case Cast(arg=arg, dtype=dtype):
                found = self._exact(arg, space)
                return None if found is None else np.asarray(found, dtype.numpy)
            case Load() | Gather():
                return None


def _trips(first: Array, last: Array, step: int) -> Array:
    trips: Array = np.clip(-((first - last) // step), 0, FAR)
    return trips


def _where(space: Space, chosen: Array | None) -> Space:
    """The points at which a condition holds; anywhere where that is not known."""
    if chosen is None:
        return replace(space, low=0 * space.low)
    return replace(space, low=space.low * chosen, high=np.where(chosen, space.high, 0.0))


def _product(times: Array, trips: Array) -> Array:
    """No trips of an endless loop are none."""
    with np.errstate(invalid="ignore"):
        return np.where((times == 0) | (trips == 0), 0.0, times * trips)


def _folded(loop: For) -> Iterator[Update]:
    """What the lanes of a vector loop accumulate in locals of outside, each once."""
    if loop.lanes == 1 or loop.kind.value != "vector":
        return
    inner = locals_defined(walk_statements(loop.body))
    for stmt in walk_statements(loop.body):
        if isinstance(stmt, Update) and stmt.accum is not None and stmt.variable not in inner:
            inner.add(stmt.variable)
            yield stmt


def _computed_from_data(body: Sequence[Stmt], numbers: Mapping[Tensor, int]) -> set[Variable]:
    """The locals that the values in arrays decide, or that change."""
    found = locals_updated(walk_statements(tuple(body)))
    for stmt in walk_statements(tuple(body)):
        if isinstance(stmt, Define) and _is_data(stmt.value, found, numbers):
            found.add(stmt.variable)
    return found


def _is_data(expr: Expr, data: set[Variable], numbers: Mapping[Tensor, int]) -> bool:
    return any(
        isinstance(node, Gather)
        or (isinstance(node, Load) and node.tensor not in numbers)
        or (isinstance(node, Local) and node.variable in data)
        for node in walk(expr)
    )


def _decisive(
    body: Sequence[Stmt], data: set[Variable], numbers: Mapping[Tensor, int]
) -> set[Symbol | Variable]:
    """The symbols and locals whose values decide how often something runs, and can be known."""
    found: set[Symbol | Variable] = set()
    for stmt in reversed(list(walk_statements(tuple(body)))):
        match stmt:
            case For(lo=lo, hi=hi):
                found.update(lo.symbols, hi.symbols)
            case If() | Bind():
                pass
            case Define(variable=variable) if variable in found:
                pass
            case _:
                continue
        for expr in expressions(stmt):
            if not _is_data(expr, data, numbers):
                found.update(_mentioned(expr))
    return found


def _mentioned(expr: Expr) -> Iterator[Symbol | Variable]:
    for node in walk(expr):
        if isinstance(node, Index):
            yield from node.value.symbols
        elif isinstance(node, Local):
            yield node.variable
