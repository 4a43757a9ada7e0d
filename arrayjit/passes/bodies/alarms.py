"""Exceptions in a row of which one condition tells whether there are any.

    raise_(not (x == x), 'ValueError', ...)             n = cast(x, i64)
    raise_(not (x >= -2.0**63), 'OverflowError', ...)   if seldom(u64(n + 50) > 99):
    raise_(not (x < 2.0**63), 'OverflowError', ...)         raise_(not (x == x), ...)
    n = cast(x, i64)                                 ->     raise_(not (x >= -2.0**63), ...)
    raise_(u64(n + 50) > 99, 'IndexError', ...)             raise_(not (x < 2.0**63), ...)
    y[i] = z[n]                                             raise_(u64(n + 50) > 99, ...)
                                                        y[i] = z[n]

A float that no integer is like becomes the smallest one, which seldom lies within an axis. So where that is
looked at anyway, nothing has to be asked of the float; elsewhere the integer is compared with the smallest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce

from ...frozen import frozen
from ...ir.conditions import compare, either
from ...ir.dtype import I64
from ...ir.expr import Apply, Cast, Const, Expr, Gather, Load, Local, Variable, dtype_of
from ...ir.index import Symbol
from ...ir.loops import Bind, Comment, Define, If, Raise, Stmt
from ...ir.ops import OPS, divides_integers
from ...ir.walk import kept, rewrite_bodies, walk
from ..analysis.access import Range
from ..analysis.positions import tested, tested_outside

__all__ = ["doubted", "with_alarms"]

LEAST = -(2**63)


def with_alarms(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """A body in which such exceptions stand in a branch that is seldom taken."""
    out: list[Stmt] = []
    row = _Row.empty()
    for stmt in body:
        if row.takes(stmt):
            row.add(stmt)
        else:
            out += row.done()
            row = _Row.empty()
            out.append(rewrite_bodies(stmt, with_alarms))
    return kept(body, [*out, *row.done()])


def doubted(condition: Expr, known: Callable[[Expr], Expr]) -> Expr | None:
    """The float that is like no int64 where the condition holds, where locals are defined as `known` says."""
    match known(condition):
        case Apply(op=op, args=(holds, Const(value=False))) if op is OPS["equal"]:
            test = known(holds)
        case Apply(op=op, args=(holds,)) if op is OPS["logical_not"]:
            test = known(holds)
        case _:
            return None
    match test:
        case Apply(op=op, args=(number, other)) if op is OPS["equal"] and number == other:
            is_all = True
        case Apply(op=op, args=(number, Const(value=limit))):
            lowest = op is OPS["greater_equal"] and limit <= LEAST
            is_all = lowest or (op is OPS["less"] and limit >= -LEAST)
        case _:
            return None
    return number if is_all and dtype_of(number).is_float else None


@frozen
class _Row:
    """Successive statements, of which all but exceptions may be done whatever is raised: they change no
    memory, read none at a place that an exception guards, and divide no integers."""

    stmts: list[Stmt]
    values: dict[Variable, Expr]
    numbers: dict[Symbol, Expr]
    doubts: dict[Raise, Expr]
    """Exceptions for floats that no int64 is like, and these floats."""

    @staticmethod
    def empty() -> _Row:
        return _Row([], {}, {}, {})

    def takes(self, stmt: Stmt) -> bool:
        match stmt:
            case Raise() | Comment():
                return True
            case Bind(symbol=symbol, value=value):
                return symbol.lower is None and symbol.upper is None and self.is_free(value)
            case Define(value=value):
                return self.is_free(value)
            case _:
                return False

    def is_free(self, value: Expr) -> bool:
        """May it be computed whatever is raised?"""
        for node in walk(value):
            match node:
                case Gather():
                    return False
                case Load(index=index):
                    is_guarded = any(
                        isinstance(stmt, Raise) and stmt not in self.doubts for stmt in self.stmts
                    )
                    if is_guarded or any(not self.numbers.keys().isdisjoint(at.symbols) for at in index):
                        return False
                case Apply(op=op, args=(arg, *_)) if divides_integers(op, dtype_of(arg)):
                    return False
                case _:
                    pass
        return True

    def add(self, stmt: Stmt) -> None:
        self.stmts.append(stmt)
        match stmt:
            case Define(variable=variable, value=value):
                self.values[variable] = value
            case Bind(symbol=symbol, value=value):
                self.numbers[symbol] = value
            case Raise(condition=condition) if (number := doubted(condition, self.known)) is not None:
                self.doubts[stmt] = number
            case _:
                pass

    def known(self, value: Expr) -> Expr:
        """What a local is defined as in this row; else the value itself."""
        return self.values.get(value.variable, value) if isinstance(value, Local) else value

    def done(self) -> Sequence[Stmt]:
        """The statements, in which the exceptions stand together where that spares tests."""
        integers = {
            value.arg: variable
            for variable, value in self.values.items()
            if isinstance(value, Cast) and variable.dtype is I64
        }
        doubts = {stmt: integers[number] for stmt, number in self.doubts.items() if number in integers}
        if not doubts:
            return self.stmts
        raises = [stmt for stmt in self.stmts if isinstance(stmt, Raise)]
        others = [stmt for stmt in raises if stmt not in doubts]
        conditions: list[Expr] = [
            compare("equal", Local(integer), Const(LEAST, I64))
            for integer in dict.fromkeys(doubts.values())
            if not any(_holds(stmt.condition, self.least(integer)) for stmt in others)
        ]
        conditions += [stmt.condition for stmt in others]
        end = 1 + max(at for at, stmt in enumerate(self.stmts) if isinstance(stmt, (Define, Raise)))
        before = [stmt for stmt in self.stmts[:end] if not isinstance(stmt, Raise)]
        alarm = If(reduce(either, conditions), tuple(raises), seldom=True)
        return *before, alarm, *self.stmts[end:]

    def least(self, integer: Variable) -> Mapping[Symbol, Range]:
        """The symbols that have the integer's value, if that is the smallest."""
        return {symbol: (LEAST, LEAST) for symbol, value in self.numbers.items() if value == Local(integer)}


def _holds(condition: Expr, ranges: Mapping[Symbol, Range]) -> bool:
    """Is it certain that an index is found outside of an axis, if symbols have these values?"""
    number, most = tested_outside(condition) or (tested(condition), 0)
    known = None if number is None else number.bounds(ranges)
    return known is not None and known[0] >= LEAST and known[1] < 0 and known[0] + 2**64 > most
