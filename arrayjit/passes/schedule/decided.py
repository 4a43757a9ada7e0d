"""decided: loops that only find out whether something holds end when that is known.

                                                for b in sequential(0, 61):
    for i in vector(0, 1000000, lanes=64):          for i in vector(0, 16384, lanes=64):
        any = logical_or(any, x[i])         ->          any = logical_or(any, x[i + 16384*b])
                                                    stay(not any)
                                                for i in vector(999424, 1000000, lanes=64):
                                                    any = logical_or(any, x[i])

    for i in parallel(0, 195):                  for i in sequential(0, 195):
        ...                                         ...
        p = minimum(p, where(t, i, 195))    ->      p = minimum(p, where(t, i, 195))
                                                    stay(i < p)

Whether any cell holds is known from the first one that does, and whether all do from the first that does not:
what a loop would add to that changes nothing. Nor do places behind the first one. It is asked after so many
vectors that asking costs nothing where it is in vain. Loops so long that threads would share them are left to
these.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import reduce

from ...ir.conditions import compare, either, opposite
from ...ir.dtype import BOOL
from ...ir.expr import Apply, Cast, Const, Expr, Index, Local, Variable
from ...ir.index import Affine, Symbol
from ...ir.loops import Comment, Define, For, LoopKind, Stay, Stmt, Update, walk_statements
from ...ir.ops import OPS, Op
from ...ir.walk import locals_read
from ..analysis.copies import copy_body
from ..analysis.loopwise import Site, loopwise
from .cascade import accumulated

__all__ = ["decided"]

VECTORS = 64
"""After so many it is asked."""

TRUE, FALSE = ("logical_or", "bitwise_or", "maximum"), ("logical_and", "bitwise_and", "minimum")
"""Of bools, the accumulations that such a cell decides."""


@loopwise
def decided(loop: For, site: Site) -> Iterable[Stmt] | None:
    """Every such loop in blocks, left after the one that decides."""
    most = None if site.caps.threads == 1 else 2 * site.caps.thread_work
    first = _first(loop) if site.caps.threads == 1 else None
    if first is not None:
        site.notes.append(f"decided: {loop.symbol.hint} ends with the first that is looked for")
        return (first,)
    vectors = (loop.trips or 0) // loop.lanes
    if vectors < 2 * VECTORS or (most is not None and vectors >= most):
        return None
    open_while = _open(loop)
    if open_while is None:
        return None
    site.notes.append(f"decided: {loop.symbol.hint} ends when what it finds out is known")
    return _in_blocks(loop, open_while)


def _open(loop: For) -> Expr | None:
    """What holds as long as a vector loop, which does nothing else, may find out something."""
    if loop.kind is not LoopKind.VECTOR or loop.step != 1:
        return None
    if not all(isinstance(stmt, (Comment, Define, Update)) for stmt in loop.body):
        return None
    found = accumulated(loop)
    updates = [stmt for stmt in loop.body if isinstance(stmt, Update)]
    if not found or len(updates) != len(found) or not found.keys().isdisjoint(locals_read(loop.body)):
        return None
    conditions = [_undecided(variable, op) for variable, op in found.items()]
    known = [condition for condition in conditions if condition is not None]
    return reduce(either, known) if len(known) == len(conditions) else None


def _first(loop: For) -> For | None:
    """A loop over vector loops that finds the first place where something holds, ended there."""
    if loop.kind not in (LoopKind.PARALLEL, LoopKind.SEQUENTIAL) or loop.step != 1 or not loop.hi.is_constant:
        return None
    match loop.body:
        case (*others, Update(variable=place, value=value, accum=op)) if op is OPS["minimum"]:
            pass
        case _:
            return None
    match value:
        case Apply(op=chosen, args=(_, Cast(arg=Index(value=at)), Const(value=nowhere))):
            pass
        case _:
            return None
    is_place = chosen is OPS["where"] and at == Affine.of(loop.symbol) and nowhere >= loop.hi.offset - 1
    has_vectors = any(isinstance(stmt, For) and stmt.kind is LoopKind.VECTOR for stmt in others)
    outer = accumulated(replace(loop, body=tuple(others)))
    if not is_place or not has_vectors or outer or not _only_locals(others):
        return None
    behind = compare("less", Cast(Index(at), place.dtype), Local(place))
    return replace(loop, kind=LoopKind.SEQUENTIAL, grain=None, body=(*loop.body, Stay(behind)))


def _only_locals(body: Iterable[Stmt]) -> bool:
    return all(isinstance(stmt, (Comment, Define, Update, For)) for stmt in walk_statements(tuple(body)))


def _undecided(variable: Variable, op: Op) -> Expr | None:
    """What holds while a local may still change, if something decides it."""
    if variable.dtype is not BOOL or op.name not in TRUE + FALSE:
        return None
    return opposite(Local(variable)) if op.name in TRUE else Local(variable)


def _in_blocks(loop: For, open_while: Expr) -> Iterable[Stmt]:
    assert loop.trips is not None
    block, inside, length = Symbol("b"), Symbol(loop.symbol.hint), VECTORS * loop.lanes
    blocks, left = divmod(loop.trips, length)
    body = copy_body(loop.body, {loop.symbol: loop.lo + length * Affine.of(block) + Affine.of(inside)}, {})
    part = replace(loop, symbol=inside, lo=Affine.of(0), hi=Affine.of(length), body=body)
    yield For(block, Affine.of(0), Affine.of(blocks), (part, Stay(open_while)))
    if left:
        yield replace(loop, lo=loop.lo + blocks * length)
