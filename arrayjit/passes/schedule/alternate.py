"""alternate: steps that read more rows than a cache holds go back through them every other time.

    for k in sequential(0, 1000):                   back = 0
        for i in parallel(0, 192):                  for k in sequential(0, 1000):
            s = 0.0                                     for g in parallel(0, 8):
            for j in vector(0, 256, lanes=8): ->            first = where(back == 0, 24*g, 168 - 24*g)
                s = reduce(add, s, u[i, j] * h[j])          for i in parallel(first, first + 24):
            t[i] = s                                            s = 0.0
        ...                                                     for j in vector(0, 256, lanes=8):
                                                                    s = reduce(add, s, u[i, j] * h[j])
                                                                t[i] = s
                                                        ...
                                                        back = 1 - back

A cache keeps what was used last. Rows that are always taken in one order push each other out just before they
are needed again, and none is found there; on the way back the first ones are. Such are the products of one
matrix with a vector after the other: in power iterations, conjugate gradients, recurrent networks. With a
matrix of little more than the first or the second cache they take 0.7 of the time, of three times as much
0.85, of six times 0.95. The rows are independent, so their order changes nothing.

The way back is gone in groups of rows, each from its first row on: hardware that fetches ahead sees only what
goes up. Row by row, matrices of six times the first cache took up to 1.3 times as long as forwards on Zen 5;
in groups those of one to four times the second cache take 0.8 to 0.9 of the time that they took row by row
(conjugate gradients: 0.86). What only memory holds is read as it lies.

    for i in parallel(0, 192, grain=9):             for g in parallel(0, 16, grain=1):
        ...                                             share = g // 8
                                              ->        first = where(back == 0, 12*g, 12*(16*share + 7 - g))
                                                        for i in parallel(first, first + 12):
                                                            ...

Of rows that threads share, each goes back through its own share, whose end lies in its second cache: on two
threads, products with matrices of one to eight times both second caches take 0.8 to 0.95 of the time,
conjugate gradients 0.9. All groups in the other order, where each thread gets the rows of another, took up to
1.3 times as long, and shares that the second caches hold 1.1 times.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations

from ...frozen import frozen
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
from ..analysis.copies import copy_body, unless_once
from ..analysis.strides import affine_accesses
from ..analysis.trips import lesser

__all__ = ["alternate"]

AGAIN = 4
"""Steps from which on it is worth it, where their number is known."""

ROWS = 4
"""Rows that are worth it."""

NEAR, PARTS = 3, 8
"""A group of rows is one of so many parts of the cache that they do not all fit in, so that it keeps whole
groups, or of the rows, if those are more: of a matrix that is much larger than the cache little is kept,
and long ways up are worth more."""


@frozen
class _Groups:
    """`number` groups of `size` rows, the last of fewer perhaps, in as many `shares` as there are threads."""

    size: int
    number: int
    shares: int


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
            f"alternate: rows {nest.symbol.hint} are taken in both orders, in turns, {groups.size} at a time"
            for nest, groups in nests.values()
        )
        back = Variable("back", I64)
        other = Apply(OPS["subtract"], (constant(1, I64), Local(back)), I64)
        yield Define(back, constant(0, I64))
        body = tuple(_in_turns(*nests[id(one)], back) if id(one) in nests else one for one in stmt.body)
        yield replace(stmt, body=(*body, Update(back, other)))

    return kernel.with_body(inside(kernel.body), notes)


def _nests(
    body: tuple[Stmt, ...], steps: tuple[Stmt, ...], own: set[Symbol], caps: Caps
) -> dict[int, tuple[For, _Groups]]:
    """The nests of a body, which is all of the steps or their last part, whose rows are not all found in the
    first cache in the next step, or in the second ones of the threads that share them, and the groups of
    each, by their identity; `own` are symbols that differ from step to step, beside those that the steps
    bind."""
    inside = list(walk_statements(steps))
    changing = own | {stmt.symbol for stmt in inside if isinstance(stmt, Bind)}
    stored = written_in(inside)
    found = {}
    for nest in (stmt for stmt in body if isinstance(stmt, For) and _has_rows(stmt)):
        read = _read(nest, changing, stored)
        shares = 1 if nest.grain is None else caps.threads
        near = caps.l1_bytes if nest.grain is None else caps.l2_bytes * shares
        if near < read <= caps.l3_bytes:
            groups = _groups(nest, read, shares, caps)
            if groups is not None:
                found[id(nest)] = nest, groups
    return found


def _groups(nest: For, read: int, shares: int, caps: Caps) -> _Groups | None:
    """The groups of a nest that reads so many bytes, of so many rows that going up is worth it; as many in
    each share. None if shares have no two."""
    trips, each = nest.trips or 0, read // shares
    cache = caps.l1_bytes if each <= caps.l2_bytes else caps.l2_bytes
    size = max(1, max(cache // NEAR, each // PARTS) * trips // read)
    if shares == 1:
        return _Groups(size, -(-trips // size), 1)
    for number in range(-(-trips // (size * shares)) * shares, shares, -shares):
        size = -(-trips // number)
        if -(-trips // size) == number:
            return _Groups(size, number, shares)
    return None


def _has_rows(nest: For) -> bool:
    """Is this a loop of independent rows, each with loops of its own?"""
    if nest.kind is not LoopKind.PARALLEL or not (nest.grain is None or nest.grain.is_constant):
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
        if not own or not tensor.has_fixed_shape or not symbols.isdisjoint(changing):
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


def _in_turns(nest: For, groups: _Groups, back: Variable) -> For:
    """A nest whose groups of rows are taken in one order while `back` is zero, in the other else, in each
    share."""
    group, row, size = Symbol("g"), Symbol(nest.symbol.hint), groups.size
    each, binds, last = groups.number // groups.shares, list[Stmt](), Affine.of(groups.number - 1)
    if groups.shares > 1:
        share = Symbol("share", lower=0, upper=groups.shares)
        binds.append(Bind(share, _quotient(group, each)))
        last = Affine.of(share) * (2 * each) + (each - 1)
    here, other = (nest.lo + place * size for place in (Affine.of(group), last - Affine.of(group)))
    ahead = compare("equal", Local(back), constant(0, I64))
    first = Symbol("first", lower=nest.lo.constant, upper=nest.hi.constant)
    binds.append(Bind(first, Apply(OPS["where"], (ahead, Index(here), Index(other)), I64)))
    start, end = Affine.of(first), first + size
    if size * groups.number != nest.trips:
        last_row = Symbol("end", lower=nest.lo.constant, upper=nest.hi.constant + 1)
        binds.append(Bind(last_row, lesser(end, nest.hi)))
        end = Affine.of(last_row)
    body = copy_body(nest.body, {nest.symbol: Affine.of(row)}, {})
    rows = replace(nest, symbol=row, lo=start, hi=end, body=body, grain=None)
    grain = None if nest.grain is None else Affine.of(-(-nest.grain.offset // size))
    hi, inside = Affine.of(groups.number), (*binds, *unless_once(rows))
    return replace(nest, symbol=group, lo=Affine.of(0), hi=hi, body=inside, grain=grain)


def _quotient(symbol: Symbol, number: int) -> Apply:
    return Apply(OPS["raw_divide"], (Index(Affine.of(symbol)), constant(number, I64)), I64)
