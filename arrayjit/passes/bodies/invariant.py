"""invariant: what inner loops compute anew for each iteration of an outer one is computed before it.

                                                for j in parallel(0, 40):
                                                    table[j] = cosh(b[j])
    for i in parallel(0, 900):                  for i in parallel(0, 900):
        for j in parallel(0, 40):       ->          for j in parallel(0, 40):
            y[i, j] = multiply(a[i], cosh(b[j]))        y[i, j] = multiply(a[i], table[j])

It is `hoist` for values that loops inside tell apart: they lie side by side in a table, which stays in the
first cache. It pays for functions that take long, and what is read from a table is that value, bit for bit. A
program that computes its numbers in loops over what they depend on has them so, and `invert` may have moved
such a loop inside of the cells that each of its steps was about. Derivatives of a layer by its weights take
0.22 of the time, cosines in three loops 0.1, Kepler's equation on a grid 0.88.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field

from ...frozen import frozen, slotted
from ...ir.code import Caps
from ...ir.expr import Apply, Cast, Const, Expr, Gather, Index, Load, Local, Variable, dtype_of
from ...ir.index import Affine, Symbol, symbols_of
from ...ir.loops import (
    Define,
    For,
    If,
    Kernel,
    LoopKind,
    Place,
    PlaceKind,
    Stmt,
    Store,
    While,
    walk_statements,
)
from ...ir.ops import OPS
from ...ir.tensor import Tensor
from ...ir.walk import (
    applies,
    bottom_up,
    children,
    kept,
    locals_read,
    locals_updated,
    nodes_in,
    rebuild,
    rewrite_bodies,
    rewrite_expressions,
    rewrite_loops,
    substitute,
    walk,
)
from ..analysis.access import Range
from ..analysis.changes import Changes
from ..analysis.inside import exists
from ..analysis.trips import enter
from ..analysis.values import written_out

__all__ = ["invariant"]

COSTLY = 15.0
"""Additions that an op takes at least that is worth a look into memory."""

LONG = frozenset(op for op in OPS.values() if op.cost >= COSTLY)

OFTEN = 4
"""So many times a value of a table would be computed otherwise."""

WORTH = 4096
"""So many additions less are worth a loop,"""

SHARE = 64
"""if they are one of so many of the loop that does without them."""

MANY = 256
"""How often a loop is taken to run of which nothing is known."""

LARGE = 64
"""Nodes of an expression that a table may hold."""

NEAR = 16 * 1024
"""Bytes of a table that stay in any first cache beside what the loops go through. The lanes of a loop, and
with them the order of its sums, follow from what it reads: so it is the same for all machines."""

REASON = "inner loops look up what they would compute again"


def invariant(kernel: Kernel, caps: Caps) -> Kernel:
    """Every such value in a table."""
    if not applies(kernel.body, LONG):
        return kernel
    making = _Making()
    return kernel.with_body(making.body(kernel.body), making.notes, making.placement)


@slotted
class _Making:
    """Where the tables lie that are made, and the values of loops' symbols."""

    placement: dict[Tensor, Place] = field(default_factory=dict)
    ranges: dict[Symbol, Range] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def body(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """A body with tables before the outermost loops for which they stay the same. None are made where
        threads may share iterations."""
        return rewrite_loops(body, self.outermost)

    def outermost(self, loop: For) -> Sequence[Stmt]:
        enter(loop, self.ranges)
        if not applies((loop,), LONG):
            return [loop]
        nest = _Nest.of(loop, self.ranges)
        new = rewrite_bodies(loop, nest.body)
        if loop.kind is LoopKind.SEQUENTIAL:
            new = rewrite_bodies(new, self.body)
        return [*self.body(tuple(self.filled(nest.tables))), new]

    def filled(self, tables: Sequence[_Table]) -> Iterator[Stmt]:
        """The loops that fill tables."""
        for table in tables:
            self.placement[table.tensor] = Place(PlaceKind.ARENA, REASON)
            self.notes.append(f"invariant: {table.tensor} has what loops inside would compute again")
            fresh = {loop.symbol: Affine.of(Symbol(loop.symbol.hint)) for loop in table.loops}
            index = tuple(fresh[loop.symbol] - loop.lo for loop in table.loops)
            body: tuple[Stmt, ...] = (Store(table.tensor, index, substitute(table.value, fresh)),)
            for loop in reversed(table.loops):
                (symbol,) = fresh[loop.symbol].symbols
                body = (For(symbol, loop.lo, loop.hi, body, LoopKind.PARALLEL),)
            yield from body


@frozen
class _Table:
    """A value for each iteration of loops."""

    tensor: Tensor
    loops: tuple[For, ...]
    value: Expr

    def load(self) -> Load:
        return Load(self.tensor, tuple(Affine.of(loop.symbol) - loop.lo for loop in self.loops))


@frozen
class _Found:
    """Of which loops' symbols a value is made, beside what stays the same; how long its longest operation
    takes, and how many nodes it has, written out."""

    symbols: frozenset[Symbol] = frozenset()
    cost: float = 0.0
    nodes: int = 1


@slotted
class _Nest:
    """A loop before which tables are made, what it `changes`, the locals it has `updated`, and what a table
    must save to be worth it. Of its inner loops, what is `found` of their locals, and these `values` written
    out."""

    loop: For
    ranges: dict[Symbol, Range]
    changes: Changes
    updated: set[Variable]
    worth: float
    inner: dict[Symbol, For] = field(default_factory=dict)
    found: dict[Variable, _Found] = field(default_factory=dict)
    values: dict[Variable, Expr] = field(default_factory=dict)
    tables: list[_Table] = field(default_factory=list)

    @staticmethod
    def of(loop: For, ranges: dict[Symbol, Range]) -> _Nest:
        updated = locals_updated(walk_statements(loop.body))
        return _Nest(loop, ranges, Changes.by(loop), updated, max(WORTH, _work((loop,)) / SHARE))

    def body(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """The loop's body with tables read."""
        return self.definitions(self.statements(body, ()), (), set())

    def statements(self, body: tuple[Stmt, ...], around: tuple[For, ...]) -> tuple[Stmt, ...]:
        return kept(body, [self.statement(stmt, around) for stmt in body])

    def statement(self, stmt: Stmt, around: tuple[For, ...]) -> Stmt:
        """A statement in the loops `around` that looks up what no definition has."""
        match stmt:
            case For():
                enter(stmt, self.ranges)
                self.inner[stmt.symbol] = stmt
                return rewrite_bodies(stmt, lambda body: self.statements(body, (*around, stmt)))
            case If() | While():
                return stmt
            case Define(variable=variable, value=value) if variable not in self.updated:
                found = bottom_up(value, self.made_of)
                if found is not None:
                    self.found[variable], self.values[variable] = found, written_out(value, self.values)
                    return stmt
            case _:
                pass
        return rewrite_expressions(stmt, lambda expr: self.with_tables(expr, around))

    def definitions(
        self, body: tuple[Stmt, ...], around: tuple[For, ...], needed: set[Variable]
    ) -> tuple[Stmt, ...]:
        """A body whose definitions look up what they define, as far as it is needed after them: tables hold
        what only leads to that."""
        out = [self.definition(stmt, around, needed) for stmt in reversed(body)]
        return kept(body, out[::-1])

    def definition(self, stmt: Stmt, around: tuple[For, ...], needed: set[Variable]) -> Stmt:
        if isinstance(stmt, For):
            return rewrite_bodies(stmt, lambda body: self.definitions(body, (*around, stmt), needed))
        if isinstance(stmt, Define) and stmt.variable in self.found:
            if stmt.variable not in needed:
                return stmt
            found = self.found[stmt.variable]
            table = self.table(self.values[stmt.variable], found, around)
            if table is not None:
                return Define(stmt.variable, table.load())
        needed.update(locals_read(walk_statements((stmt,))))
        return stmt

    def with_tables(self, value: Expr, around: tuple[For, ...]) -> Expr:
        """An expression with all that may be looked up."""
        if not any(map(_cost, walk(value))):
            return value
        found = bottom_up(value, self.made_of)
        table = self.table(written_out(value, self.values), found, around) if found is not None else None
        if table is not None:
            return table.load()
        return rebuild(value, tuple(self.with_tables(child, around) for child in children(value)))

    def table(self, value: Expr, found: _Found, around: tuple[For, ...]) -> _Table | None:
        """The table of a value that loops around tell apart; None if it is not worth one."""
        own = tuple(loop for loop in around if loop.symbol in found.symbols)
        if not own or found.cost < COSTLY or found.nodes > LARGE:
            return None
        if len(own) < len(found.symbols) or not all(_is_plain(loop) for loop in own):
            return None
        last = around.index(own[-1]) + 1
        cells, again = _runs(own), _runs((self.loop, *around[:last]))
        is_near = cells * dtype_of(value).itemsize <= NEAR
        is_often = again >= OFTEN * cells and (again - cells) * found.cost >= self.worth
        if not (is_near and is_often and found.cost >= _inside(own[-1])):
            return None
        for known in self.tables:
            if known.value == value and known.loops == own:
                return known
        shape = tuple(Affine.of(_runs((loop,))) for loop in own)
        table = _Table(Tensor("table", shape, dtype_of(value)), own, value)
        self.tables.append(table)
        return table

    def made_of(self, node: Expr, operands: Sequence[_Found | None]) -> _Found | None:
        """What a node is made of, given that of its operands; None if the loop may change it."""
        match node:
            case Const():
                return _Found()
            case Local(variable=variable):
                return self.found.get(variable) if variable in self.changes.locals else _Found()
            case Index(value=position):
                return self.of_symbols(position.symbols)
            case Load(tensor=tensor, index=index):
                stays = tensor.storage not in self.changes.storages and exists(tensor, index, self.ranges)
                return self.of_symbols(symbols_of(index)) if stays else None
            case Gather():
                return None
            case Apply() | Cast():
                parts = [part for part in operands if part is not None]
                nodes = 1 + sum(part.nodes for part in parts)
                if len(parts) < len(operands) or nodes > LARGE:
                    return None
                symbols = frozenset[Symbol]().union(*(part.symbols for part in parts))
                return _Found(symbols, max([_cost(node), *(part.cost for part in parts)]), nodes)

    def of_symbols(self, symbols: Iterable[Symbol]) -> _Found | None:
        """What is made of symbols: None if they are bound in the loop otherwise than by inner loops."""
        own = frozenset(self.changes.symbols.intersection(symbols))
        return _Found(own) if own <= self.inner.keys() else None


def _runs(loops: Sequence[For]) -> int:
    return math.prod(MANY if loop.trips is None else loop.trips for loop in loops)


def _inside(loop: For) -> int:
    """How often loops in a loop run in one of its iterations."""
    inner = (stmt for stmt in loop.body if isinstance(stmt, For))
    return sum(_runs((one,)) * max(1, _inside(one)) for one in inner)


def _work(body: Sequence[Stmt]) -> float:
    """About how many additions the loops of a body are, those in branches aside."""
    own = sum(map(_cost, nodes_in(body)), 0.0)
    return own + sum(_runs((stmt,)) * _work(stmt.body) for stmt in body if isinstance(stmt, For))


def _is_plain(loop: For) -> bool:
    """Is it a loop of a known number of iterations, whatever is around it?"""
    return loop.step == 1 and loop.lo.is_constant and loop.hi.is_constant


_DIVISIONS = {OPS[name] for name in ("floor_divide", "remainder", "raw_divide", "raw_remainder")}


def _cost(node: Expr) -> float:
    """How long an operation takes; powers and integer divisions by constants are written out otherwise."""
    match node:
        case Apply(op=op, args=(_, Const())) if op in _DIVISIONS or op is OPS["power"]:
            return 0.0
        case Apply(op=op):
            return op.cost
        case _:
            return 0.0
