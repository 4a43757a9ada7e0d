"""through: what is looked up among rows or columns that were looked up themselves is found at once.

    t[i, j] = x.at(p[i], j)      for i in n, j in m         y[i, j] = x.at(p[i], q[j])   for i in n, j in k
    y[i, j] = t.at(i, q[j])      for i in n, j in k   ->

So programs choose rows and columns (`x[p][:, q]`), as pictures are resized. The copy in between is not made
where each of its cells is one of another array, found by the positions of its own cell alone: no more is
looked up than before. What is copied must not change until it is read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ...frozen import frozen
from ...ir.assign import (
    ArrayParam,
    Assign,
    Computation,
    Statement,
    assigned,
    rewrite_bodies,
    rewrite_expressions,
    statements,
)
from ...ir.code import Caps
from ...ir.expr import Expr, Gather, Index, Load
from ...ir.index import Affine, Symbol
from ...ir.tensor import Tensor
from ...ir.walk import kept, storages_read, substitute, transform, walk

__all__ = ["through"]


def through(computation: Computation, caps: Caps) -> Computation:
    """The computation without copies in which something is looked up."""
    given = frozenset(param.tensor for param in computation.params if isinstance(param, ArrayParam))
    writes = Counter(each.into.storage for each in statements(computation.body) if isinstance(each, Assign))
    once = {tensor for tensor, times in writes.items() if times == 1 and tensor not in given}
    body = _body(computation.body, once)
    return computation if body is computation.body else replace(computation, body=body)


def _body(body: tuple[Statement, ...], once: set[Tensor]) -> tuple[Statement, ...]:
    """A body in which nothing is looked up in copies that it makes; arrays are written `once`."""
    copies: dict[Tensor, _Copy] = {}
    out: list[Statement] = []
    for statement in body:
        statement = rewrite_bodies(_looking(statement, copies), lambda inner: _body(inner, once))
        changed = assigned((statement,))
        copies = {tensor: copy for tensor, copy in copies.items() if changed.isdisjoint(copy.reads)}
        copy = _Copy.of(statement) if isinstance(statement, Assign) and statement.into in once else None
        if copy is not None:
            copies[copy.into] = copy
        out.append(statement)
    return kept(body, out)


def _looking(statement: Statement, copies: Mapping[Tensor, _Copy]) -> Statement:
    """A statement that looks up in what was copied."""

    def rule(node: Expr) -> Expr:
        copy = copies.get(node.tensor) if isinstance(node, Gather) else None
        found = copy.at(node.index) if copy is not None and isinstance(node, Gather) else None
        return node if found is None else found

    if not copies:
        return statement
    return rewrite_expressions(statement, lambda expr: transform(expr, rule))


@frozen
class _Copy:
    """A statement that gives each cell of an array one of another array."""

    into: Tensor
    symbols: tuple[Symbol, ...]
    value: Gather

    @property
    def reads(self) -> set[Tensor]:
        return {*storages_read((self.value,)), self.into}

    @staticmethod
    def of(assign: Assign) -> _Copy | None:
        is_whole = (
            assign.accum is None and assign.index == assign.point and assign.into.storage is assign.into
        )
        if not is_whole or tuple(extent for _, extent in assign.loops) != assign.into.shape:
            return None
        value, symbols = assign.value, tuple(symbol for symbol, _ in assign.loops)
        if not isinstance(value, Gather) or value.tensor.dtype is not assign.into.dtype:
            return None
        return _Copy(assign.into, symbols, value)

    def at(self, index: Sequence[Expr]) -> Expr | None:
        """Where the cell at a position was copied from; None where more would have to be looked up."""
        values = dict(zip(self.symbols, index, strict=True))
        affine = {symbol: value.value for symbol, value in values.items() if isinstance(value, Index)}
        positions: list[Expr] = []
        for position in self.value.index:
            match position:
                case Index(value=value) if value.symbol in values and value.symbol not in affine:
                    positions.append(values[value.symbol])
                case _:
                    moved = _moved(position, affine, self.symbols)
                    if moved is None:
                        return None
                    positions.append(moved)
        return Gather(self.value.tensor, tuple(positions))


def _moved(position: Expr, affine: Mapping[Symbol, Affine], symbols: Sequence[Symbol]) -> Expr | None:
    """A position elsewhere; None if that depends on more than such indices."""
    moving = set(symbols)
    for node in walk(position):
        if isinstance(node, Gather):
            return None
        own = node.index if isinstance(node, Load) else (node.value,) if isinstance(node, Index) else ()
        if any(symbol in moving and symbol not in affine for each in own for symbol in each.symbols):
            return None
    return substitute(position, affine)
