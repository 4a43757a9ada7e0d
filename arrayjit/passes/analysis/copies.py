"""Copies of a body: loop symbols and locals of its own are fresh, others may be given new meanings. Loops
over all cells of an array, in which these may be copied."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain

from ...frozen import replace
from ...ir.expr import Expr, Index, Load, Local, Variable
from ...ir.index import Affine, Symbol
from ...ir.loops import Bind, Copy, Define, For, LoopKind, Multiply, Prefetch, Stmt, Store, Update, While
from ...ir.tensor import Tensor
from ...ir.walk import rewrite_bodies, rewrite_expressions, substitute_statements, transform
from .trips import blocks

__all__ = [
    "Copying",
    "copy_body",
    "each_cell",
    "in_steps",
    "in_turn",
    "interleaved",
    "merged",
    "one_by_one",
    "unless_once",
]


def copy_body(
    body: tuple[Stmt, ...], symbols: Mapping[Symbol, Affine], variables: Mapping[Variable, Variable]
) -> tuple[Stmt, ...]:
    """A body that may stand beside the original, with `symbols` and `variables` replaced."""
    return Copying(symbols, variables).body(body)


def each_cell(tensor: Tensor, statement: Callable[[tuple[Affine, ...]], Stmt]) -> Stmt:
    """A statement for each cell of a tensor, in any order."""
    symbols = [Symbol("i") for _ in tensor.shape]
    stmt = statement(tuple(map(Affine.of, symbols)))
    for symbol, extent in zip(reversed(symbols), reversed(tensor.shape), strict=True):
        stmt = For(symbol, Affine.of(0), extent, (stmt,), LoopKind.PARALLEL)
    return stmt


def one_by_one(loop: For) -> tuple[Stmt, ...]:
    """The iterations of a loop whose number is known, one after the other."""
    places = (loop.lo + number * loop.step for number in range(loop.trips or 0))
    return tuple(stmt for place in places for stmt in copy_body(loop.body, {loop.symbol: place}, {}))


def unless_once(loop: For) -> tuple[Stmt, ...]:
    """The loop; its body alone if that runs once."""
    return substitute_statements(loop.body, {loop.symbol: loop.lo}) if loop.trips == 1 else (loop,)


def in_steps(loop: For, steps: Sequence[tuple[Stmt, ...]]) -> tuple[Stmt, ...]:
    """The loop with several of its steps an iteration, which have these bodies; what is left of it, if that
    may be anything, is as it was."""
    counted, count = blocks(loop, len(steps))
    symbol, left = Symbol(loop.symbol.hint), Symbol(loop.symbol.hint)
    first = loop.lo + Affine.of(symbol) * (len(steps) * loop.step)
    bodies = (copy_body(body, {loop.symbol: first + n * loop.step}, {}) for n, body in enumerate(steps))
    several = For(symbol, Affine.of(0), count, tuple(chain.from_iterable(bodies)))
    rest = copy_body(loop.body, {loop.symbol: Affine.of(left)}, {})
    last = replace(loop, symbol=left, lo=loop.lo + count * (len(steps) * loop.step), body=rest)
    return *counted, *unless_once(several), *(() if last.trips == 0 else unless_once(last))


def in_turn(old: Stmt, new: Stmt) -> Stmt:
    """`new`; if it is a parallel loop whose body is no longer that of `old` since it uses memory of its own,
    its iterations take turns."""
    if new is old or not isinstance(new, For) or new.kind is not LoopKind.PARALLEL:
        return new
    return replace(new, kind=LoopKind.SEQUENTIAL)


def interleaved(
    body: tuple[Stmt, ...], row: Symbol, start: Affine, count: int, apart: Affine | int = 1
) -> tuple[Stmt, ...]:
    """`count` rows from `start` on, so far `apart`, each statement of one followed by that of the next."""
    return merged(body, [Copying({row: start + apart * n}, {}) for n in range(count)])


def merged(body: tuple[Stmt, ...], copies: Sequence[Copying]) -> tuple[Stmt, ...]:
    """Copies of a body, each statement of one followed by that of the next."""
    out: list[Stmt] = []
    for stmt in body:
        if isinstance(stmt, For):
            symbol = Symbol(stmt.symbol.hint)
            for copy in copies:
                copy.symbols[stmt.symbol] = Affine.of(symbol)
            lo, hi = (end.substitute(copies[0].symbols) for end in (stmt.lo, stmt.hi))
            out.append(replace(stmt, symbol=symbol, lo=lo, hi=hi, body=merged(stmt.body, copies)))
        else:
            out.extend(copy.statement(stmt) for copy in copies)
    return tuple(out)


class Copying:
    """One copy in the making: what its symbols and locals have become so far."""

    def __init__(self, symbols: Mapping[Symbol, Affine], variables: Mapping[Variable, Variable]) -> None:
        self.symbols = dict(symbols)
        self.variables = dict(variables)

    def body(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        return tuple(self.statement(stmt) for stmt in body)

    def statement(self, stmt: Stmt) -> Stmt:
        if isinstance(stmt, While):
            test = self.body(stmt.test)
            return While(test, transform(stmt.condition, self._node), self.body(stmt.body))
        stmt = rewrite_expressions(stmt, lambda expr: transform(expr, self._node))
        match stmt:
            case Define(variable=variable):
                self.variables[variable] = Variable(variable.hint, variable.dtype)
                return replace(stmt, variable=self.variables[variable])
            case Update(variable=variable):
                return replace(stmt, variable=self.variables.get(variable, variable))
            case Store(index=index) | Prefetch(index=index):
                return replace(stmt, index=self._index(index))
            case Copy(index=index, at=at):
                return replace(stmt, index=self._index(index), at=self._index(at))
            case Multiply(stage=stage):
                return replace(stmt, stage=stage.substitute(self.symbols))
            case Bind(symbol=symbol):
                bound = Symbol(symbol.hint, symbol.kind, symbol.lower, symbol.upper)
                self.symbols[symbol] = Affine.of(bound)
                return replace(stmt, symbol=bound)
            case For(symbol=symbol, lo=lo, hi=hi, grain=grain):
                new = Symbol(symbol.hint)
                lo, hi = lo.substitute(self.symbols), hi.substitute(self.symbols)
                grain = grain and grain.substitute(self.symbols)
                self.symbols[symbol] = Affine.of(new)
                return rewrite_bodies(replace(stmt, symbol=new, lo=lo, hi=hi, grain=grain), self.body)
            case _:
                return rewrite_bodies(stmt, self.body)

    def _node(self, node: Expr) -> Expr:
        match node:
            case Local(variable=variable):
                return Local(self.variables.get(variable, variable))
            case Load(tensor=tensor, index=index):
                return Load(tensor, self._index(index))
            case Index(value=value):
                return Index(value.substitute(self.symbols))
            case _:
                return node

    def _index(self, index: tuple[Affine, ...]) -> tuple[Affine, ...]:
        return tuple(position.substitute(self.symbols) for position in index)
