"""alternate: steps that read more rows than a cache holds go back through them every other time.

    for k in sequential(0, 1000):                   back = 0
        for i in parallel(0, 192):                  for k in sequential(0, 1000):
            s = 0.0                                     for i in parallel(0, 192):
            for j in vector(0, 48, lanes=8):  ->            r = where(back == 0, i, 191 - i)
                s = reduce(add, s, u[i, j] * h[j])          s = 0.0
            t[i] = s                                        for j in vector(0, 48, lanes=8):
        ...                                                     s = reduce(add, s, u[r, j] * h[j])
                                                            t[r] = s
                                                        ...
                                                        back = 1 - back

A cache keeps what was used last. Rows that are always taken in one order push each other out just before they
are needed again, and none is found there; on the way back the first ones are. Such are the products of one
matrix with a vector after the other: in power iterations, conjugate gradients, recurrent networks. With a
matrix of little more than the first or the second cache they take 0.7 of the time, of three times as much
0.85, of six times 0.95. The rows are independent, so their order changes nothing. What only memory holds is
read as it lies, which the hardware sees sooner; what threads share stays as it is, since each would find the
rows of another one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations

from ...ir.code import Caps
from ...ir.conditions import compare
from ...ir.dtype import I64
from ...ir.expr import Apply, Index, Local, Variable, constant
from ...ir.index import Affine, Symbol
from ...ir.loops import (
    Bind,
    Comment,
    Define,
    For,
    If,
    Kernel,
    LoopKind,
    Stmt,
    Store,
    Update,
    While,
    bypasses,
    walk_statements,
    written_in,
)
from ...ir.ops import OPS
from ...ir.tensor import Tensor
from ...ir.walk import kept, locals_defined, rewrite_bodies
from ..analysis.copies import copy_body
from ..analysis.strides import affine_accesses

__all__ = ["alternate"]

AGAIN = 4
"""Steps from which on it is worth it, where their number is known."""

ROWS = 4
"""Rows that are worth it."""


def alternate(kernel: Kernel, caps: Caps) -> Kernel:
    """Every such nest with its rows in both orders, in turns."""
    notes: list[str] = []

    def inside(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        return kept(body, [new for stmt in body for new in turned(stmt)])

    def turned(stmt: Stmt) -> Iterator[Stmt]:
        if not isinstance(stmt, For) or stmt.kind not in (LoopKind.VECTOR, LoopKind.LOCKSTEP):
            stmt = rewrite_bodies(stmt, inside)
        match stmt:
            case For(kind=LoopKind.SEQUENTIAL, body=body) if (stmt.trips or AGAIN) >= AGAIN:
                nests = _nests(body, body, {stmt.symbol}, caps)
            case While(test=test, body=body):
                nests = _nests(body, test + body, set(), caps)
            case _:
                nests = {}
        if not nests or not isinstance(stmt, (For, While)):
            yield stmt
            return
        notes.extend(
            f"alternate: rows {nest.symbol.hint} are taken in both orders, in turns"
            for nest in nests.values()
        )
        back = Variable("back", I64)
        other = Apply(OPS["subtract"], (constant(1, I64), Local(back)), I64)
        yield Define(back, constant(0, I64))
        body = tuple(_in_turns(nests[id(one)], back) if id(one) in nests else one for one in stmt.body)
        yield replace(stmt, body=(*body, Update(back, other)))

    return kernel.with_body(inside(kernel.body), notes)


def _nests(body: tuple[Stmt, ...], steps: tuple[Stmt, ...], own: set[Symbol], caps: Caps) -> dict[int, For]:
    """The nests of a body, which is all of the steps or their last part, whose rows are not all found in the
    first cache in the next step, by their identity; `own` are symbols that differ from step to step, beside
    those that the steps bind."""
    inside = list(walk_statements(steps))
    changing = own | {stmt.symbol for stmt in inside if isinstance(stmt, Bind)}
    stored = written_in(inside)
    nests = (stmt for stmt in body if isinstance(stmt, For) and _has_rows(stmt))
    return {
        id(nest): nest for nest in nests if caps.l1_bytes < _read(nest, changing, stored) <= caps.l3_bytes
    }


def _has_rows(nest: For) -> bool:
    """Is this a loop of independent rows, each with loops of its own, that one thread takes?"""
    if nest.kind is not LoopKind.PARALLEL or nest.grain is not None:
        return False
    if nest.step != 1 or not nest.lo.is_constant or (nest.trips or 0) < ROWS or bypasses(nest.body):
        return False
    inside = list(walk_statements(nest.body))
    if not any(isinstance(stmt, For) for stmt in nest.body):
        return False
    own = locals_defined(inside)
    return all(_is_free(stmt, own) for stmt in inside)


def _is_free(stmt: Stmt, own: set[Variable]) -> bool:
    """May a row do this in any order, with the same bits?"""
    match stmt:
        case Update(variable=variable):
            return variable in own
        case Store(accum=accum):
            return accum is None
        case _:
            return isinstance(stmt, (Define, Bind, For, If, Comment))


def _read(nest: For, changing: set[Symbol], stored: set[Tensor]) -> int:
    """The bytes of the arrays of which each row reads its own part, the same one in each step, if there are
    none of other arrays that are as many; what steps store to is written back on its way out of the cache, in
    whatever order. Of what a step has its own part of, that is little."""
    places: dict[Tensor, list[Affine]] = {}
    others: set[Tensor] = set()
    for tensor, index, _ in affine_accesses(nest.body):
        own = [position for position in index if position.coefficient(nest.symbol)]
        symbols = {symbol for position in index for symbol in position.symbols}
        is_known = all(extent.is_constant for extent in tensor.shape)
        if not own or not is_known or not symbols.isdisjoint(changing):
            continue
        if len(own) == 1 and tensor.storage not in stored:
            places.setdefault(tensor, []).extend(own)
        else:
            others.add(tensor)
    others.update(tensor for tensor, found in places.items() if not _are_apart(found, nest))
    read = sum(tensor.nbytes for tensor in places.keys() - others)
    return read if read > sum(tensor.nbytes for tensor in others) else 0


def _are_apart(positions: Sequence[Affine], nest: For) -> bool:
    """Do rows that have these positions share nothing? What neighbours share they find in the cache."""
    factors = {position.coefficient(nest.symbol) for position in positions}
    if len(factors) > 1 or any(len(position.symbols) > 1 for position in positions):
        return False
    step = abs(factors.pop())
    offsets = sorted({position.offset for position in positions})
    apart = [right - left for left, right in combinations(offsets, 2)]
    return not any(step <= distance < step * (nest.trips or 0) for distance in apart)


def _in_turns(nest: For, back: Variable) -> For:
    """A nest whose rows are taken in one order while `back` is zero, in the other else."""
    row = Symbol("r", lower=nest.lo.constant, upper=nest.hi.constant)
    first, last = Affine.of(nest.symbol), nest.lo + nest.hi - 1 - Affine.of(nest.symbol)
    ahead = compare("equal", Local(back), constant(0, I64))
    bind = Bind(row, Apply(OPS["where"], (ahead, Index(first), Index(last)), I64))
    return replace(nest, body=(bind, *copy_body(nest.body, {nest.symbol: Affine.of(row)}, {})))
