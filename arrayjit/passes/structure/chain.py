"""chain: what one line computes cell by cell, and reads once, is one assignment.

    t[i] = subtract(x[i], y[i])     for i in 8
    u[i] = divide(t[i], w[i])       for i in 8    ->    z[i] = add(z[i], divide(subtract(x[i], y[i]), w[i]))
    z[i] = add(z[i], u[i])          for i in 8                                                    for i in 8

Each value of an expression has been traced into a temporary of its own, whose loops `fuse` would join one
by one, after all passes before it. Here a temporary that nothing reads but one later assignment of the same
line, cell by cell in loops of the same order, is put in its place, while the expression stays short and
nothing that it is computed from is written in between, or by that assignment itself. What is added up keeps
its form, and what has no loops its name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import field

from ...frozen import frozen, replace, slotted
from ...ir.assign import Assign, Computation, Statement, expressions, rewrite_bodies, statements
from ...ir.code import Caps
from ...ir.expr import Expr, Load
from ...ir.index import Affine
from ...ir.tensor import Tensor
from ...ir.walk import storages_read, substitute, transform, walk
from ..analysis.access import given

__all__ = ["chain"]

MAX_NODES = 16
"""Nodes of an expression that has taken in others: a longer one would hide what later passes look for."""


def chain(computation: Computation, caps: Caps) -> Computation:
    """The computation with fewer temporaries."""
    linking = _Linking(_read_once(computation))
    body = linking.body(computation.body)
    return replace(computation, body=body) if linking.has_linked else computation


def _read_once(computation: Computation) -> frozenset[Tensor]:
    """The temporaries that one statement writes, and that are read at one place."""
    reads: Counter[Tensor] = Counter()
    writes: Counter[Tensor] = Counter()
    for stmt in statements(computation.body):
        if isinstance(stmt, Assign):
            writes[stmt.into.storage] += 1
        reads.update(storages_read(expressions(stmt)))
    once = frozenset(tensor for tensor, number in writes.items() if number == reads[tensor] == 1)
    return once - given(computation.params)


@frozen
class _Value:
    """An assignment whose value may be taken in: the number of its statement in the body, the nodes of its
    expression, and the storages that this reads."""

    made: Assign
    number: int
    size: int
    reads: frozenset[Tensor]

    def at(self, index: tuple[Affine, ...]) -> Expr:
        """The value of a cell."""
        symbols = (symbol for symbol, _ in self.made.loops)
        return substitute(self.made.value, dict(zip(symbols, index, strict=True)))

    def is_in_step(self, reader: Assign) -> bool:
        """Whether an assignment of the same line goes over as many cells."""
        mine, theirs = ([extent for _, extent in each.loops] for each in (self.made, reader))
        return mine == theirs and self.made.loc == reader.loc


@slotted
class _Linking:
    """`once` are the temporaries that are read at one place."""

    once: frozenset[Tensor]
    has_linked: bool = field(default=False)

    def body(self, body: tuple[Statement, ...]) -> tuple[Statement, ...]:
        """A body, and the bodies in it, each with its own values."""
        values: dict[Tensor, _Value] = {}
        written: dict[Tensor, int] = {}
        out: dict[int, Statement] = {}
        for number, stmt in enumerate(body):
            if isinstance(stmt, Assign):
                taken = _taken(stmt, values, written)
                for value in taken.values():
                    del out[value.number]
                stmt = self.linked(stmt, taken)
                if stmt.into in self.once and stmt.into.wish is None and _is_plain(stmt):
                    size = sum(1 for _ in walk(stmt.value))
                    reads = frozenset(storages_read((stmt.value,)))
                    values[stmt.into] = _Value(stmt, number, size, reads)
            else:
                stmt = rewrite_bodies(stmt, self.body)
            for inner in statements((stmt,)):
                if isinstance(inner, Assign):
                    written[inner.into.storage] = number
            out[number] = stmt
        return tuple(out.values())

    def linked(self, stmt: Assign, taken: Mapping[Tensor, _Value]) -> Assign:
        """The assignment with values instead of temporaries."""
        if not taken:
            return stmt

        def rule(node: Expr) -> Expr:
            match node:
                case Load(tensor=tensor, index=index) if tensor in taken:
                    return taken[tensor].at(index)
                case _:
                    return node

        self.has_linked = True
        return replace(stmt, value=transform(stmt.value, rule))


def _is_plain(stmt: Assign) -> bool:
    """Does it write cell by cell, one for each point of its loops, in their order?"""
    cells = stmt.point
    return bool(cells) and stmt.accum is None and not stmt.regroup and stmt.index == cells


def _taken(
    stmt: Assign, values: Mapping[Tensor, _Value], written: Mapping[Tensor, int]
) -> dict[Tensor, _Value]:
    """The values that an assignment takes in, as many as fit; `written` has the last writer of each array."""
    found: dict[Tensor, _Value] = {}
    if stmt.accum is not None or stmt.regroup or not stmt.loops or not values:
        return found
    nodes = list(walk(stmt.value))
    size, cells = len(nodes), stmt.point
    for node in nodes:
        value = values.get(node.tensor) if isinstance(node, Load) and node.index == cells else None
        if value is None or not value.is_in_step(stmt) or size + value.size - 1 > MAX_NODES:
            continue
        is_kept = all(written.get(storage, -1) < value.number for storage in value.reads)
        if is_kept and stmt.into.storage not in value.reads:
            size += value.size - 1
            found[value.made.into] = value
    return found
