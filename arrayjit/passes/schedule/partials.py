"""The parts of a long sum, each added up for itself, so that threads may share them.

    for l in vector(0, 64, lanes=64):               for q in parallel(0, 25):
        a = -0.0                                        for l in vector(0, 64, lanes=64):
        for i in sequential(0, 5):                          c = -0.0
            b = -0.0                                        ...
            for j in sequential(0, 5):                      parts[q, l] = c
                c = -0.0                     ->     for l in vector(0, 64, lanes=64):
                ...                                     a = -0.0
                b = add(b, c)                           for i in sequential(0, 5):
            a = add(a, b)                                   b = -0.0
        s = add(s, a)                                       for j in sequential(0, 5):
                                                                c = parts[5*i + j, l]
                                                                b = add(b, c)
                                                            a = add(a, b)
                                                        s = add(s, a)

`cascade` has made the tree; it is only cut. Every number is added to the same number as before.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from ...frozen import frozen
from ...ir.expr import Gather, Index, Load, Local
from ...ir.index import Affine, Symbol
from ...ir.loops import Define, For, LoopKind, Stmt, Store, Update, walk_statements, written_in
from ...ir.tensor import Tensor
from ...ir.walk import locals_defined, nodes_in
from ..analysis.copies import copy_body

__all__ = ["Parts", "parts_of"]


@frozen
class Parts:
    """A vector loop that adds up, in two: the `making` of parts, into `tensors`, and the `rest`."""

    making: For
    rest: For
    tensors: tuple[Tensor, ...]


def parts_of(vector: For, least: int) -> Parts | None:
    """A vector loop around a tree of sums, cut where that gives `least` parts; None if it has not so many."""
    if vector.trips is None or not vector.lo.is_constant or vector.step != 1:
        return None
    for position, stmt in enumerate(vector.body):
        nest = _nest(stmt, least) if isinstance(stmt, For) else []
        if nest and _is_alone(nest[-1], vector):
            return _cut(vector, position, nest)
    return None


def _nest(loop: For, least: int) -> list[For]:
    """The loops of a tree from the top down to where it has enough branches; none if it has not."""
    nest: list[For] = []
    inner: Stmt | None = loop
    while isinstance(inner, For) and _is_level(inner) and (not nest or _goes_straight(nest[-1], inner)):
        nest.append(inner)
        if math.prod(level.trips or 0 for level in nest) >= least:
            return nest
        loops = [stmt for stmt in inner.body if isinstance(stmt, For)]
        inner = loops[0] if len(loops) == 1 else None
    return []


def _is_level(loop: For) -> bool:
    """Does a loop do nothing but add up what it makes for itself?"""
    return (
        loop.kind is LoopKind.SEQUENTIAL
        and loop.step == 1
        and loop.trips is not None
        and loop.lo == Affine.of(0)
        and _sums(loop) > 0
        and all(isinstance(stmt, (Define, For, Update)) for stmt in walk_statements(loop.body))
    )


def _sums(loop: For) -> int:
    """How many statements at the end of a loop's body add up locals of its own."""
    own = locals_defined(loop.body)
    count = 0
    for stmt in reversed(loop.body):
        match stmt:
            case Update(variable=variable, value=Local(variable=part)) if part in own and variable not in own:
                count += 1
            case _:
                break
    return count


def _goes_straight(outer: For, inner: For) -> bool:
    """Does the inner loop leave off where its next round begins?"""
    positions = [
        position
        for node in nodes_in(walk_statements(inner.body))
        for position in (
            node.index if isinstance(node, Load) else (node.value,) if isinstance(node, Index) else ()
        )
    ]
    bounds = [
        end for stmt in walk_statements(inner.body) if isinstance(stmt, For) for end in (stmt.lo, stmt.hi)
    ]
    return all(
        value.coefficient(outer.symbol) == value.coefficient(inner.symbol) * (inner.trips or 0)
        for value in (*positions, *bounds)
    )


def _is_alone(leaf: For, vector: For) -> bool:
    """Does a loop need nothing of the vector loop around it but what it adds to at its end?"""
    body = leaf.body[: -_sums(leaf)]
    around = list(walk_statements(vector.body))
    inside = list(walk_statements(body))
    made = locals_defined(around)
    own = locals_defined(inside)
    written = written_in(around)
    for stmt in inside:
        if isinstance(stmt, Update) and stmt.variable not in own:
            return False
        for node in nodes_in((stmt,)):
            match node:
                case Local(variable=variable) if variable in made and variable not in own:
                    return False
                case Load(tensor=tensor) | Gather(tensor=tensor) if tensor.storage in written:
                    return False
                case _:
                    pass
    return True


def _cut(vector: For, position: int, nest: Sequence[For]) -> Parts:
    """The tree at a position of the loop's body, cut at the innermost loop of the nest."""
    leaf, at = nest[-1], -_sums(nest[-1])
    trips = [level.trips or 0 for level in nest]
    shape = (Affine.of(math.prod(trips)), Affine.of(vector.trips or 0))
    lane, number = Affine.of(vector.symbol) - vector.lo, Affine.of(0)
    for level, count in zip(nest, trips, strict=True):
        number = number * count + Affine.of(level.symbol)
    made = dict.fromkeys(
        stmt.value.variable
        for stmt in leaf.body[at:]
        if isinstance(stmt, Update) and isinstance(stmt.value, Local)
    )
    tensors = {variable: Tensor(f"{variable.hint}_parts", shape, variable.dtype) for variable in made}
    stores = [Store(tensor, (Affine.of(leaf.symbol), lane), Local(v)) for v, tensor in tensors.items()]
    loads = [Define(v, Load(tensor, (number, lane))) for v, tensor in tensors.items()]
    part, column = Symbol("part"), Symbol(vector.symbol.hint)
    symbols = {level.symbol: Affine.of(0) for level in nest}
    symbols |= {leaf.symbol: Affine.of(part), vector.symbol: Affine.of(column)}
    body = copy_body((*leaf.body[:at], *stores), symbols, {})
    lanes = replace(vector, symbol=column, body=body)
    making = For(part, Affine.of(0), shape[0], (lanes,), LoopKind.PARALLEL)
    old: For = leaf
    new = replace(leaf, body=(*loads, *leaf.body[at:]))
    for level in reversed(nest[:-1]):
        old, new = level, replace(level, body=tuple(new if stmt is old else stmt for stmt in level.body))
    rest = (*vector.body[:position], new, *vector.body[position + 1 :])
    return Parts(making, replace(vector, body=rest), tuple(tensors.values()))
