"""What is linear over the field of two elements: bits that are exclusive ors of bits that there were before.

Shifts, masks, exclusive ors and conversions between integers make such values of such values. So does
anything at all of a value that is 0 or one other, where it makes 0 of 0: `33800 * (c & 1)`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...frozen import frozen
from ...ir.dtype import BOOL
from ...ir.expr import Apply, Cast, Const, Expr, Gather, Index, Load, Local, Variable, constant, dtype_of
from ...ir.index import Symbol
from ...ir.loops import Comment, Define, For, LoopKind, Stmt, Update
from ...ir.ops import OPS
from ...ir.walk import outer_updates
from .rules import fold

__all__ = ["Followed", "changed"]

XOR, AND, WHERE = OPS["bitwise_xor"], OPS["bitwise_and"], OPS["where"]
SHIFTS = OPS["raw_left_shift"], OPS["raw_right_shift"]


@frozen
class _Linear:
    """A linear value, or the exclusive or of one and a constant. Values with the same `root` differ in the
    constant alone. `is_offset` if it may be other than 0 where all bits are 0, `is_switch` if it takes at
    most two values."""

    root: object
    is_offset: bool = False
    is_switch: bool = False


_NOTHING = object()
"""The root of constants."""


def changed(body: Sequence[Stmt]) -> set[Variable]:
    """The variables of outside that a body, apart from loops in it, sets."""
    return {update.variable for update in outer_updates(body)}


class Followed:
    """A body on the way through it, in which variables are linear in the bits of `sofar`, from which it
    starts, and of `inputs`: cells of one byte."""

    def __init__(self, sofar: Variable) -> None:
        self.values: dict[Variable, _Linear] = {sofar: _Linear(object())}
        self.inputs: dict[Load, _Linear] = {}
        self.inner: set[Symbol] = set()

    def is_linear(self, body: Sequence[Stmt]) -> bool:
        """Does it nothing but make linear values of such?"""
        return all(self.statement(stmt) for stmt in body) and self.are_linear(changed(body))

    def are_linear(self, variables: set[Variable]) -> bool:
        return all(variable in self.values and not self.values[variable].is_offset for variable in variables)

    def statement(self, stmt: Stmt) -> bool:
        match stmt:
            case Comment():
                return True
            case Define(variable=variable, value=value) | Update(variable=variable, value=value, accum=None):
                made = self.value(value)
            case Update(variable=variable, value=value, accum=accum) if accum is XOR:
                made = self.value(Apply(XOR, (Local(variable), value), variable.dtype))
            case For(kind=LoopKind.SEQUENTIAL | LoopKind.UNROLLED, symbol=symbol, body=body) if stmt.trips:
                handed_on = changed(body)
                self.inner.add(symbol)
                is_linear = self.are_linear(handed_on)
                self.values |= {variable: _Linear(object()) for variable in handed_on}
                return is_linear and self.is_linear(body)
            case _:
                return False
        if made is not None:
            self.values[variable] = made
        return made is not None

    def value(self, expr: Expr) -> _Linear | None:
        """What an integer or a truth value is; None if it is not known to be linear."""
        match expr:
            case Const(value=value, dtype=dtype):
                return None if dtype.is_inexact else _Linear(_NOTHING, value != 0, True)
            case Local(variable=variable):
                return self.values.get(variable)
            case Load(tensor=tensor, index=index):
                is_byte = tensor.dtype.is_integer and tensor.dtype.itemsize == 1
                is_fixed = not any(symbol in self.inner for position in index for symbol in position.symbols)
                return self.inputs.setdefault(expr, _Linear(object())) if is_byte and is_fixed else None
            case Cast(arg=arg, dtype=dtype):
                return None if dtype.is_inexact else self.converted(self.value(arg), dtype is BOOL)
            case Apply(dtype=dtype):
                return None if dtype.is_inexact else self.applied(expr)
            case Gather() | Index():
                return None

    def converted(self, arg: _Linear | None, to_truth: bool) -> _Linear | None:
        if arg is None or (to_truth and (arg.is_offset or not arg.is_switch)):
            return None
        return _Linear(object(), arg.is_offset, arg.is_switch)

    def applied(self, expr: Apply) -> _Linear | None:
        known = [self.value(arg) for arg in expr.args]
        args = [arg for arg in known if arg is not None]
        if len(args) < len(known):
            return None
        if (switched := _switched(expr, args)) is not None:
            return switched
        match expr.op, expr.args:
            case op, _ if op is XOR:
                return _either(*args)
            case op, (_, Const(value=int(mask))) | (Const(value=int(mask)), _) if op is AND:
                is_bit = (mask & (1 << expr.dtype.bits) - 1).bit_count() == 1
                return _Linear(object(), args[isinstance(expr.args[0], Const)].is_offset, is_bit)
            case op, (_, Const(value=int(count))) if op in SHIFTS and 0 <= count < expr.dtype.bits:
                return _Linear(object(), args[0].is_offset)
            case op, _ if op is WHERE:
                return _chosen(*args)
            case _:
                return None


def _switched(expr: Apply, args: Sequence[_Linear]) -> _Linear | None:
    """What an op makes of constants and of one value that is 0 or another."""
    switches = [arg for one, arg in zip(expr.args, args, strict=True) if not isinstance(one, Const)]
    if not all(arg.is_switch and not arg.is_offset and arg.root is switches[0].root for arg in switches):
        return None
    at_zero = tuple(arg if isinstance(arg, Const) else constant(0, dtype_of(arg)) for arg in expr.args)
    made = fold(replace(expr, args=at_zero))
    return _Linear(object(), bool(made.value), True) if isinstance(made, Const) else None


def _either(one: _Linear, other: _Linear) -> _Linear:
    """Their exclusive or."""
    is_offset = one.is_offset or other.is_offset
    if other.root is _NOTHING:
        return _Linear(one.root, is_offset, one.is_switch)
    return _Linear(other.root if one.root is _NOTHING else object(), is_offset)


def _chosen(condition: _Linear, then: _Linear, otherwise: _Linear) -> _Linear | None:
    """One of two values, which must differ in a constant alone, by a bit."""
    if then.root is not otherwise.root:
        return None
    return _Linear(object(), then.is_offset if condition.is_offset else otherwise.is_offset)
