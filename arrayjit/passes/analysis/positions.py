"""Arrays of positions: whether one is negative or too large shows in the sign of one number."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from ...frozen import frozen
from ...ir.conditions import compare
from ...ir.dtype import I64, DType, Kind, named
from ...ir.expr import Apply, Cast, Const, Expr, Index, Load, Local, Variable, dtype_of
from ...ir.index import Affine, Symbol
from ...ir.loops import Define, For, Stmt, Update, nested
from ...ir.ops import OPS
from ...ir.tensor import Tensor
from ...ir.walk import substitute
from .copies import copy_body

__all__ = ["ZERO", "Positions", "are_negative", "outside", "tested", "tested_outside"]

ZERO = Const(0, I64)
U64 = named("u64")


@frozen
class Positions:
    """What one element of an array of positions is, as an int64, and the loops over all of them, outermost
    first."""

    loops: tuple[For, ...]
    value: Load | Cast

    @staticmethod
    def of(value: Expr, loops: tuple[For, ...]) -> Positions | None:
        """None where the value is no element of an array."""
        match value:
            case Load() | Cast(arg=Load()):
                return Positions(loops, value)
            case _:
                return None

    @property
    def load(self) -> Load:
        load = self.value.arg if isinstance(self.value, Cast) else self.value
        assert isinstance(load, Load)
        return load

    def include(self, other: Positions) -> bool:
        """Is each of the others one of these? They are all that an array has, or the same, whatever the loops
        call them."""
        if self._are_all() and self._cells() == other._cells():
            return True
        mine, theirs = self.own(), other.own()
        if len(mine) != len(theirs):
            return False
        names: dict[Symbol, Affine] = {}
        for one, two in zip(mine, theirs, strict=True):
            ends = two.lo.substitute(names), two.hi.substitute(names)
            if one.bounds != (*ends, two.step):
                return False
            names[two.symbol] = Affine.of(one.symbol)
        return self.value == substitute(other.value, names)

    def own(self) -> tuple[For, ...]:
        """The loops that lead from one position to another."""
        index = self.load.index
        return tuple(loop for loop in self.loops if any(at.coefficient(loop.symbol) for at in index))

    def _are_all(self) -> bool:
        """Do the loops go through a whole array, axis by axis?"""
        load, own = self.load, {loop.symbol: loop for loop in self.own()}
        loops = [own.pop(at.symbol, None) if at.symbol else None for at in load.index]
        return all(
            loop is not None and loop.bounds == (Affine.of(0), extent, 1) and at == Affine.of(loop.symbol)
            for loop, at, extent in zip(loops, load.index, load.tensor.shape, strict=True)
        )

    def _cells(self) -> tuple[Tensor, DType, DType]:
        """The memory that they are in, as what they lie there, and as what they are used."""
        return self.load.tensor.storage, self.load.tensor.dtype, dtype_of(self.value)

    def signs(self, last: Expr) -> Variable:
        """A local for the signs of positions up to `last`: as wide as they lie in memory, where that has room
        for it. Of int32s a register then holds twice as many as of what they count as."""
        dtype = self.load.tensor.dtype
        match last:
            case Const(value=int(number)) if dtype.kind is Kind.INT and number < 1 << dtype.bits - 1:
                return Variable("signs", dtype)
            case _:
                return Variable("signs", I64)

    def told(self, loops: Sequence[For], last: Expr, signs: Variable) -> tuple[Stmt, ...]:
        """Makes `signs`: negative if a position that the loops lead to is negative, or larger than `last`."""
        one = Variable("t", I64)
        body: tuple[Stmt, ...] = (Define(one, self.value), self.sign(Local(one), last, signs))
        return Define(signs, Const(0, signs.dtype)), *copy_body(nested(loops, body), {}, {})

    def sign(self, one: Local, last: Expr, signs: Variable) -> Update:
        """Makes `signs` negative if one of them, which a local holds, is negative or larger than `last`."""
        dtype, at = signs.dtype, one if signs.dtype is I64 else self.load
        last = Const(last.value, dtype) if isinstance(last, Const) else last
        rest = Apply(OPS["subtract"], (last, at), dtype)
        return Update(signs, Apply(OPS["bitwise_or"], (at, rest), dtype), OPS["bitwise_or"])


def tested(condition: Expr) -> Affine | None:
    """The number that must not be negative, if that is what an exception is raised on."""
    match condition:
        case Apply(op=no, args=(Apply(op=is_from, args=(Index(value=value), zero)),)):
            is_test = no is OPS["logical_not"] and is_from is OPS["greater_equal"] and zero == ZERO
            return value if is_test else None
        case _:
            return None


def outside(number: Affine, most: int) -> Expr:
    """Whether a number is not from 0 to `most`: without its sign a negative one is larger than that."""
    return compare("greater", Cast(Index(number), U64), Const(most, U64))


def tested_outside(condition: Expr) -> tuple[Affine, int] | None:
    """The number and the most that it may be, if `outside` is what a condition asks."""
    match condition:
        case Apply(op=op, args=(Cast(arg=Index(value=number), dtype=dtype), Const(value=most))):
            return (number, int(most)) if op is OPS["greater"] and dtype is U64 else None
        case _:
            return None


def are_negative(numbers: Sequence[Expr]) -> Expr:
    """Is one of them?"""
    wide = (number if dtype_of(number) is I64 else Cast(number, I64) for number in numbers)
    return compare("less", reduce(_either, wide), ZERO)


def _either(one: Expr, other: Expr) -> Expr:
    return Apply(OPS["bitwise_or"], (one, other), I64)
