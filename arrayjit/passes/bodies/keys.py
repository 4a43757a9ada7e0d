"""Which round of a loop an iteration counts in, where a mask leaves it one at most.

    labels[i] == k + c                     the number of the round, as it is
    borders[k] <= x[i] < borders[k + 1]    the last round that does not start beyond `x[i]`

The second form needs borders that rise, which the program looks at when it runs. Of such borders the last
that is not beyond a value is first guessed, as if all were equally far apart, and looked for by halves where
that was wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Union

import numpy as np

from ...frozen import frozen
from ...ir.conditions import both, one_of, opposite
from ...ir.dtype import BOOL, F64, I32, I64, DType, Kind
from ...ir.expr import Apply, Cast, Const, Expr, Gather, Index, Load, Local, Variable, constant, dtype_of
from ...ir.index import Affine, Symbol
from ...ir.loops import Define, For, LoopKind, Stmt, Store, Update
from ...ir.ops import OPS, Op
from ...ir.tensor import Tensor
from ...ir.walk import substitute
from ..analysis.access import mentioned

__all__ = ["Between", "Key", "Labels", "key_of"]

NOT_MORE = OPS["less_equal"]

TURNED = {
    OPS["greater_equal"]: OPS["less_equal"],
    OPS["greater"]: OPS["less"],
    OPS["less_equal"]: OPS["less_equal"],
    OPS["less"]: OPS["less"],
}
"""How a comparison reads with the smaller number first."""


@frozen
class Labels:
    """An iteration counts in the round whose number, and `offset` more, is its `label`."""

    masks: tuple[Expr, ...]
    label: Expr
    offset: int

    @property
    def tables(self) -> tuple[Tensor, ...]:
        return ()

    def prepared(self, rounds: For) -> Iterator[Stmt]:
        yield from ()

    @property
    def condition(self) -> Variable | None:
        return None

    def number(self, rounds: For, into: Variable) -> Iterator[Stmt]:
        """Makes `into` the number of the round in which an iteration counts, from 1; 0 where in none."""
        assert rounds.trips is not None
        number, zero, one = Variable("number", I64), constant(0, I64), constant(1, I64)
        first = constant(rounds.lo.constant + self.offset, I64)
        yield Define(number, _apply("subtract", Cast(self.label, I64), first))
        is_below = _test(OPS["less"], Local(number), constant(rounds.trips, I64))
        is_round = both(_test(NOT_MORE, zero, Local(number)), is_below)
        yield Define(into, one_of(is_round, _apply("add", Local(number), one), zero))


@frozen
class Between:
    """An iteration counts in the round in which `value` lies from `low` to `high`, which are those of round
    `symbol`. Both tests have the smaller number first, and one border at most is itself between them.

    `lows` and `highs` are tables of them, from 1. Beside the rounds stand two more intervals, for all that is
    less and all that is more, and after these the greatest number, as far as halving reaches. The tables are
    of use where the condition `rises` holds."""

    masks: tuple[Expr, ...]
    value: Expr
    symbol: Symbol
    low: Expr
    from_low: Op
    high: Expr
    to_high: Op
    lows: Tensor
    highs: Tensor
    rises: Variable

    @property
    def tables(self) -> tuple[Tensor, ...]:
        return self.lows, self.highs

    @property
    def condition(self) -> Variable | None:
        return self.rises

    def prepared(self, rounds: For) -> Iterator[Stmt]:
        """Fills the tables and finds out the condition."""
        count, size = rounds.trips, self.lows.shape[0].constant
        assert count is not None
        turn, beyond, gap = Symbol("k"), Symbol("k"), Symbol("k")
        here, now = (Affine.of(turn) + 1,), {self.symbol: rounds.lo + Affine.of(turn)}
        least, greatest = _ends(self.lows.dtype)
        stores = (
            Store(self.lows, here, substitute(self.low, now)),
            Store(self.highs, here, substitute(self.high, now)),
        )
        yield _independent(turn, 0, count, stores)
        yield Store(self.lows, (Affine.of(0),), least)
        yield Store(self.highs, (Affine.of(0),), Load(self.lows, (Affine.of(1),)))
        yield Store(self.lows, (Affine.of(count + 1),), Load(self.highs, (Affine.of(count),)))
        yield Store(self.highs, (Affine.of(count + 1),), greatest)
        yield _independent(beyond, count + 2, size, (Store(self.lows, (Affine.of(beyond),), greatest),))
        low, after = Load(self.lows, (Affine.of(gap),)), Load(self.lows, (Affine.of(gap) + 1,))
        high = Load(self.highs, (Affine.of(gap),))
        rises = both(_test(NOT_MORE, low, after), _test(NOT_MORE, high, after))
        yield Define(self.rises, Const(True, BOOL))
        yield _independent(gap, 1, count + 1, (Update(self.rises, rises, OPS["logical_and"]),))

    def number(self, rounds: For, into: Variable) -> Iterator[Stmt]:
        """Makes `into` the number of the round in which an iteration counts, from 1; that of another interval
        where in none."""
        assert rounds.trips is not None
        value, guess, low = (
            Variable("value", dtype_of(self.value)),
            Variable("guess", I64),
            Variable("low", I64),
        )
        yield Define(value, self.value)
        yield Define(guess, self.guessed(Local(value), rounds.trips))
        found: Expr = constant(0, I64)
        for step in reversed(range((rounds.trips + 1).bit_length())):
            last, there = Variable("t", I64), Variable("t", I64)
            yield Define(last, found)
            yield Define(there, _apply("add", Local(last), constant(1 << step, I64)))
            found = one_of(self.reaches(Local(there), value), Local(there), Local(last))
        yield Define(low, _apply("minimum", found, constant(rounds.trips + 1, I64)))
        halved = one_of(self.keeps_below(Local(low), value), Local(low), constant(0, I64))
        is_right = both(self.reaches(Local(guess), value), self.keeps_below(Local(guess), value))
        is_wrong = opposite(is_right)
        yield Define(into, Apply(OPS["rarely"], (is_wrong, halved, Local(guess)), I64))

    def reaches(self, at: Expr, value: Variable) -> Expr:
        """Is the value not below this interval?"""
        return _test(self.from_low, Gather(self.lows, (at,)), Local(value))

    def keeps_below(self, at: Expr, value: Variable) -> Expr:
        """Is the value not beyond this interval?"""
        return _test(self.to_high, Local(value), Gather(self.highs, (at,)))

    def guessed(self, value: Expr, count: int) -> Expr:
        """In which interval a value lies, if the lows are equally far apart."""
        first, last = (Cast(Load(self.lows, (Affine.of(at),)), F64) for at in (1, count))
        scale = _apply("divide", constant(count - 1, F64), _apply("subtract", last, first))
        ahead = _apply("multiply", _apply("subtract", Cast(value, F64), first), scale)
        place = _apply("fmax", _apply("add", ahead, constant(1, F64)), constant(0, F64))
        return Cast(Cast(_apply("fmin", place, constant(count + 1, F64)), I32), I64)


Key = Union[Labels, Between]


@frozen
class _Border:
    """A mask that compares a value with a border."""

    mask: Expr
    test: Op
    border: Expr
    value: Expr
    is_low: bool

    @staticmethod
    def of(mask: Expr, rounds: For, along: Sequence[Symbol]) -> Iterator[_Border]:
        match mask:
            case Apply(op=op, args=(one, other)) if op in TURNED:
                less, more = (one, other) if op is TURNED[op] else (other, one)
                for border, value in ((less, more), (more, less)):
                    is_value = _is_of(value, along) and not _is_of(value, (rounds.symbol,))
                    if is_value and not _is_of(border, along):
                        yield _Border(mask, TURNED[op], border, value, border is less)
            case _:
                pass


def key_of(masks: Sequence[Expr], rounds: For, along: Sequence[Symbol]) -> Key | None:
    """By which of some masks, all of which have to hold, an iteration of the loops `along` counts in one of
    the rounds at most; None if by none."""
    for mask in masks:
        match mask:
            case Apply(op=op, args=(one, other)) if op is OPS["equal"]:
                for label, number in ((one, other), (other, one)):
                    offset = _offset(number, rounds)
                    if offset is not None and _is_label(label, rounds, along):
                        return Labels((mask,), label, offset)
            case _:
                pass
    borders = [border for mask in masks for border in _Border.of(mask, rounds, along)]
    pairs = ((low, high) for low in borders for high in borders if low.is_low > high.is_low)
    found = (_between(low, high, rounds) for low, high in pairs if low.value == high.value)
    return next((key for key in found if key is not None), None)


def _between(low: _Border, high: _Border, rounds: For) -> Between | None:
    """The key of these borders; None where both are between themselves, or differ in type."""
    assert rounds.trips is not None
    dtype = dtype_of(low.border)
    if low.test is high.test is NOT_MORE or dtype is not dtype_of(high.border):
        return None
    size, count = Affine.of((1 << (rounds.trips + 1).bit_length()) + 1), Affine.of(rounds.trips + 2)
    return Between(
        (low.mask, high.mask),
        low.value,
        rounds.symbol,
        low.border,
        low.test,
        high.border,
        high.test,
        Tensor("lows", (size,), dtype),
        Tensor("highs", (count,), dtype),
        Variable("rises", BOOL),
    )


def _offset(number: Expr, rounds: For) -> int | None:
    """What a number is beyond that of the round; None if it is something else."""
    dtype = dtype_of(number)
    while isinstance(number, Cast):
        dtype, number = min(dtype, dtype_of(number.arg), key=lambda one: one.bits), number.arg
    if not isinstance(number, Index) or not dtype.is_integer:
        return None
    offset = number.value - Affine.of(rounds.symbol)
    ends = (number.value.substitute({rounds.symbol: end}) for end in (rounds.lo, rounds.hi))
    if not offset.is_constant:
        return None
    least, greatest = (int(end.value) for end in _ends(dtype))
    return offset.constant if all(least <= end.constant <= greatest for end in ends) else None


def _is_label(label: Expr, rounds: For, along: Sequence[Symbol]) -> bool:
    return dtype_of(label).is_integer and _is_of(label, along) and not _is_of(label, (rounds.symbol,))


def _is_of(value: Expr, symbols: Sequence[Symbol]) -> bool:
    """Does a value depend on one of the symbols?"""
    return not set(mentioned((Define(Variable("t", dtype_of(value)), value),))).isdisjoint(symbols)


def _ends(dtype: DType) -> tuple[Const, Const]:
    if dtype.is_float:
        return constant(-np.inf, dtype), constant(np.inf, dtype)
    least = 0 if dtype.kind is Kind.UINT else -1 << dtype.bits - 1
    return Const(least, dtype), Const(least + (1 << dtype.bits) - 1, dtype)


def _independent(symbol: Symbol, lo: int, hi: int, body: tuple[Stmt, ...]) -> For:
    return For(symbol, Affine.of(lo), Affine.of(hi), body, LoopKind.PARALLEL)


def _apply(name: str, *operands: Expr) -> Apply:
    return Apply(OPS[name], operands, dtype_of(operands[0]))


def _test(op: Op, one: Expr, other: Expr) -> Apply:
    return Apply(op, (one, other), BOOL)
