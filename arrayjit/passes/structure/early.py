"""early: what may stop a program is asked together, before what would be for nothing if it does.

    check(0 <= p[i] < 9, ...)   for i in n              q[i] = cast(v[i], i64)   for i in n
    t[i] = x.at(p[i])   for i in n                      check(0 <= p[i] < 9, ...)   for i in n
    q[i] = cast(v[i], i64)   for i in n         ->      check(0 <= q[i] < 9, ...)   for i in n
    check(0 <= q[i] < 9, ...)   for i in n              t[i] = x.at(p[i])   for i in n
    y[i] = t[i] + x.at(q[i])   for i in n               y[i] = t[i] + x.at(q[i])   for i in n

Nothing that follows a check may be done before it has come out for all positions, and so each check parts the
loops before it from those behind, which then hand on arrays. Checks that stand together part them once, and
are made in one loop: `lower` raises exceptions behind all of them, in the order of before. A check goes in
front of what only makes arrays of the program's own, which nobody sees after an exception, and takes with it
what computes its positions, if that looks nothing up but what is looked up anyway, before the first of these
checks has come out. It goes as far as to another check, or stays where it is: what is computed in front of it
may well be computed in one loop with it.

    q[i] = mul(v[i], 2.0)   for i in n                  t[()] = power(b[()], 9.0)
    t[()] = power(b[()], 9.0)                   ->      check(less(t[()], inf), ...)
    check(less(t[()], inf), ...)                        q[i] = mul(v[i], 2.0)   for i in n
    y[i] = add(q[i], t[()])   for i in n                y[i] = add(q[i], t[()])   for i in n

A check of a number goes with the numbers that it asks for to the front of arrays, which it would part.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from ...frozen import frozen
from ...ir.assign import (
    Assign,
    Bind,
    Branch,
    Check,
    Computation,
    Loop,
    Note,
    Statement,
    assigned,
    expressions,
    rewrite_bodies,
    statements,
)
from ...ir.code import Caps
from ...ir.expr import Apply, Const, Expr, Gather, Index, Load, dtype_of
from ...ir.index import Affine, Symbol, symbols_of
from ...ir.ops import divides_integers
from ...ir.tensor import Tensor
from ...ir.walk import kept, storages_read, substitute, symbols_read, transform, walk
from ..analysis.access import Range, visible
from ..analysis.costs import cost_of_nodes
from ..analysis.inside import exists, is_inside
from ..analysis.trips import at_points, enter
from .again import asked, names_of_axes

__all__ = ["REACH", "early", "is_defined", "looked_up"]

Body = tuple[Statement, ...]
Lookups = dict[Hashable, frozenset[Tensor]]
"""What is looked up, and the storages that its positions are read from."""

FEW = 16
"""So few positions are looked at where they are."""

REACH = 64
"""So many statements are looked at before a check, or behind it: each takes a bounded number of steps."""

LIGHT = 12.0
"""What a check may compute again, in additions: to store it and to read it back takes as long."""


def early(computation: Computation, caps: Caps) -> Computation:
    """The computation with checks beside those before them."""
    if not any(isinstance(statement, Check) for statement in statements(computation.body)):
        return computation
    body = _Bodies(visible(computation.params), {}).body(computation.body)
    return computation if body is computation.body else replace(computation, body=body)


def asks_nothing_first(statement: Assign | Check, ranges: dict[Symbol, Range], known: Lookups) -> bool:
    """May it be computed whatever checks before it say? Its positions are known to lie in arrays, or to be
    looked up before these checks, too, and it divides by nothing that may be zero."""
    return is_defined(statement, ranges) and _lookups(statement, ranges).keys() <= known.keys()


def is_defined(statement: Assign | Check, ranges: dict[Symbol, Range]) -> bool:
    """Can all be computed that stands in it, wherever its positions are found that are looked up?"""
    inside = at_points(statement.loops, ranges)
    return all(_is_harmless(node, inside) for expr in expressions(statement) for node in walk(expr))


def looked_up(body: Iterable[Statement], ranges: dict[Symbol, Range]) -> Lookups:
    """What the statements of a body surely look up, by positions that are the same at its end."""
    known: Lookups = {}
    for statement in body:
        if isinstance(statement, (Assign, Check)):
            known.update(_lookups(statement, ranges))
        known = _unchanged(known, (statement,))
    return known


def _unchanged(known: Lookups, body: Iterable[Statement]) -> Lookups:
    """The lookups by positions that a body does not change."""
    written = assigned(tuple(body))
    return {key: read for key, read in known.items() if written.isdisjoint(read)}


def _lookups(statement: Assign | Check, ranges: dict[Symbol, Range]) -> Lookups:
    """In which arrays it looks up, for how many points, by which positions along the axes where not the loops
    alone tell that they lie inside; and what these are read from."""
    gathers = [node for expr in expressions(statement) for node in walk(expr) if isinstance(node, Gather)]
    if not gathers:
        return {}
    inside, names = at_points(statement.loops, ranges), names_of_axes(statement)
    extents = tuple(extent for _, extent in statement.loops)

    def key(gather: Gather) -> Hashable:
        pairs = zip(gather.index, gather.tensor.shape, strict=True)
        open_ones = tuple(
            None if _lies(at, extent, inside) else substitute(at, names) for at, extent in pairs
        )
        return gather.tensor, extents, open_ones

    return {key(gather): frozenset(storages_read(gather.index)) for gather in gathers}


def _lies(position: Expr, extent: Affine, ranges: dict[Symbol, Range]) -> bool:
    return isinstance(position, Index) and is_inside(position.value, extent, ranges)


def _is_harmless(node: Expr, ranges: dict[Symbol, Range]) -> bool:
    match node:
        case Load(tensor=tensor, index=index):
            return exists(tensor, index, ranges)
        case Apply(op=op, args=(arg, divisor), dtype=dtype) if divides_integers(op, dtype):
            is_defined = op.definition((dtype_of(arg), dtype_of(divisor))) is not None
            return is_defined or (isinstance(divisor, Const) and divisor.value > 0)
        case _:
            return True


@frozen
class _Found:
    """A check that may be made earlier, `makers` of what it asks, and which of them go with it: it computes
    itself what the others make."""

    check: Check
    makers: Sequence[Assign]
    taken: Sequence[Assign] = ()

    def is_for_more(self, behind: Body) -> bool:
        """Is what it computes itself also needed behind it? From in front of it, that would come through
        memory."""
        return not self.taken and not _read(behind).isdisjoint(assigned(tuple(self.makers)))


@frozen
class _Bodies:
    """Bodies on the way through a computation: what the caller has `seen`, and the symbols of loops."""

    seen: frozenset[Tensor]
    ranges: dict[Symbol, Range]

    def body(self, body: Body) -> Body:
        out: list[Statement] = []
        first = last = 0
        for number, statement in enumerate(body):
            if isinstance(statement, Loop):
                enter(statement, self.ranges)
            statement = rewrite_bodies(statement, self.body)
            is_near = isinstance(statement, Check) and len(out) - last <= REACH
            found = self.moved(statement, out, first, last) if is_near else None
            if found is not None and _asks_again(found.check, out[max(first, last - REACH) : last]):
                continue
            if found is not None and (first < last or not found.check.loops):
                rest = [each for each in out[last:] if not _is_one(each, found.taken)]
                out[first:] = [*found.taken, *out[first:last], found.check, *rest]
                first, last = first + len(found.taken), len(out) - len(rest)
            elif found is not None and found.is_for_more(body[number + 1 : number + REACH]):
                first = next(place for place in range(last, len(out)) if _is_one(out[place], found.makers))
                out.insert(first, found.check)
                last = first + 1
            else:
                out.append(statement)
                if isinstance(statement, Check):
                    first, last = len(out) - 1, len(out)
                elif not self.may_wait(statement):
                    first = last = len(out)
        return kept(body, out)

    def may_wait(self, statement: Statement) -> bool:
        """Is it as good as not done, if an exception follows? Then it may as well come behind that."""
        inside = list(statements((statement,)))
        plain = all(isinstance(each, (Assign, Bind, Branch, Loop, Note)) for each in inside)
        return plain and self.seen.isdisjoint(assigned((statement,)))

    def moved(self, check: Statement, out: Sequence[Statement], first: int, last: int) -> _Found | None:
        """How a check may go to those from `first` to `last`."""
        asked_before, between = out[max(0, first - REACH) : first + 1], out[last:]
        known = _unchanged(looked_up(asked_before, self.ranges), between) if first < last else {}
        return self.found(check, out[first:last], between, known)

    def found(
        self, check: Statement, before: Sequence[Statement], between: Sequence[Statement], known: Lookups
    ) -> _Found | None:
        """How a check may go from behind the statements between to those before, where something is `known`
        to be looked up; None if it may not."""
        if not isinstance(check, Check):
            return None
        if not asks_nothing_first(check, self.ranges, known):
            return None
        if check.loops and _is_short(check):
            return None
        read, makers, rest = set(_read((check,))), list[Assign](), list[Statement]()
        for statement in reversed(between):
            if read.isdisjoint(assigned((statement,))):
                rest.append(statement)
            elif isinstance(statement, Assign) and self.may_move(statement, known):
                makers.append(statement)
                read |= _read((statement,))
            else:
                return None
        bound = {each.symbol for each in rest if isinstance(each, Bind)}
        symbols = {symbol for maker in makers for symbol in _symbols(maker)} | set(_symbols(check))
        if not bound.isdisjoint(symbols) or not read.isdisjoint(assigned(tuple(rest))):
            return None
        if not check.loops and not (_are_numbers(makers) and _are_parted(rest)):
            return None
        again = _computed(check, makers) if check.loops else None
        if again is not None and asks_nothing_first(again, self.ranges, known):
            return _Found(again, makers)
        makers.reverse()
        made = assigned(tuple(makers))
        are_free = made.isdisjoint(_read((*before, *_in_front(makers, between))))
        return _Found(check, makers, makers) if are_free else None

    def may_move(self, statement: Assign, known: Lookups) -> bool:
        """Does it compute cells of an array of the program's own, and look up for them only what is known?"""
        is_own = statement.into.storage not in self.seen
        return is_own and statement.accum is None and asks_nothing_first(statement, self.ranges, known)


def _is_short(check: Check) -> bool:
    """Does it ask for few positions, or for none of an array?"""
    extents = [extent for _, extent in check.loops]
    return all(extent.is_constant for extent in extents) and math.prod(e.offset for e in extents) <= FEW


def _are_numbers(makers: Sequence[Assign]) -> bool:
    """Do they compute a number each?"""
    return not any(maker.loops for maker in makers)


def _are_parted(rest: Sequence[Statement]) -> bool:
    """Are arrays computed, which a check behind them would keep apart from what follows?"""
    return any(isinstance(each, Assign) and each.loops for each in rest)


def _computed(check: Check, makers: Sequence[Assign]) -> Check | None:
    """A check that computes itself what others make, the last of them first; None if that is much, or if one
    does not make all of an array, or it asks for that in another shape."""
    condition = check.condition
    for maker in makers:
        shape = tuple(extent for _, extent in maker.loops)
        if maker.index != maker.point or shape != maker.into.shape:
            return None
        condition = transform(condition, partial(_made, maker=maker))
        if cost_of_nodes(walk(condition)) > LIGHT:
            return None
    again = replace(check, condition=condition)
    return again if _read((again,)).isdisjoint(assigned(tuple(makers))) else None


def _made(node: Expr, maker: Assign) -> Expr:
    """What a statement stores, in the place of a cell of that."""
    if not isinstance(node, Load) or node.tensor is not maker.into:
        return node
    at = {symbol: position for (symbol, _), position in zip(maker.loops, node.index, strict=True)}
    return substitute(maker.value, at)


def _in_front(moved: Sequence[Statement], between: Sequence[Statement]) -> Sequence[Statement]:
    """The statements before the last one that is moved, and not moved themselves."""
    places = [place for place, each in enumerate(between) if _is_one(each, moved)]
    return [each for place, each in enumerate(between[: max(places, default=0)]) if place not in places]


def _asks_again(check: Check, others: Sequence[Statement]) -> bool:
    """Is it one of the others, whatever its loops are called?"""
    return any(isinstance(other, Check) and asked(other) == asked(check) for other in others)


def _is_one(statement: Statement, of: Sequence[Statement]) -> bool:
    return any(statement is one for one in of)


def _read(body: Iterable[Statement]) -> set[Tensor]:
    """The storages that statements read."""
    inside = statements(tuple(body))
    return {storage for statement in inside for storage in storages_read(expressions(statement))}


def _symbols(statement: Assign | Check) -> Iterator[Symbol]:
    """The symbols that a statement depends on, and its own."""
    for expr in expressions(statement):
        yield from symbols_read(expr)
    yield from symbols_of(extent for _, extent in statement.loops)
    if isinstance(statement, Assign):
        yield from symbols_of(statement.index)
