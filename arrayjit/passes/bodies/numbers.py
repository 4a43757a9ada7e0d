"""numbers: extremes and where they stand are found among numbers first, and again if there was a NaN.

    for i in vector(0, 16, lanes=8):            ok = True
        m = -inf                                for i in vector(0, 16, lanes=8):
        p = 0                                       m = -inf
        for j in sequential(0, 12):                 p = 0
            t = x[j, i]                             known = True
            p = where(not (t <= m)                  for j in unrolled(0, 12):
                      and m == m, j, p)                 t = x[j, i]
            m = reduce(maximum, m, t)   ->              p = where(t > m, j, p)
        y[i] = m                                        m = where(m > t, m, t)
        z[i] = p                                        known = reduce(logical_and, known, t == t)
                                                    y[i] = m
                                                    z[i] = p
                                                    ok = reduce(logical_and, ok, known)
                                                if seldom(ok == False):
                                                    for i in vector(0, 16, lanes=8):
                                                        ...

Among numbers a choice is one operation, as processors have it, and each step waits for that alone. What a NaN
is compared with would be lost so; then all of the loop is done again as it was, which it must allow. A short
loop over the cells is written out, so that positions are constants. Viterbi's algorithm takes half the time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence, Set
from dataclasses import replace
from functools import reduce
from itertools import pairwise

from ...frozen import frozen
from ...ir.conditions import BEYOND, both, compare, is_compared, one_of
from ...ir.dtype import BOOL, I32, I64
from ...ir.expr import Apply, Cast, Const, Expr, Index, Local, Variable, constant
from ...ir.index import Affine, Symbol
from ...ir.loops import Define, For, If, LoopKind, Stmt, Update, walk_statements
from ...ir.ops import OPS
from ..analysis.copies import copy_body, unless_once
from ..analysis.loopwise import Site, loopwise
from ..analysis.repeats import may_repeat
from .foremost import beyond

__all__ = ["numbers"]

TRUE, FALSE = constant(True, BOOL), constant(False, BOOL)

SHORT = 16
"""The most cells for which a loop is written out."""

TURN = 8
"""How many cells of a longer loop are looked at in one turn."""


@loopwise
def numbers(loop: For, site: Site) -> Sequence[Stmt] | None:
    """Every vector loop that finds where extremes stand, without a thought of NaN."""
    found = _among_numbers(loop) if loop.kind is LoopKind.VECTOR else None
    if found is not None:
        site.notes.append("numbers: extremes are found again where there is a NaN")
    return found


def _among_numbers(loop: For) -> Sequence[Stmt] | None:
    """The loop, and again if a cell was NaN; None if it does not find where extremes stand."""
    started = _started(loop.body)
    searches = [_Search.of(stmt, started) for stmt in loop.body]
    if not any(searches) or not may_repeat(loop.body, (), loop.symbol):
        return None
    ok, body, conditions = Variable("ok", BOOL), list[Stmt](), list[Expr]()
    for stmt, search in zip(loop.body, searches, strict=True):
        if search is None:
            body.append(stmt)
        else:
            lines, condition = search.among_numbers()
            body += lines
            conditions.append(condition)
    told = Update(ok, reduce(both, conditions), OPS["logical_and"])
    fast = replace(loop, body=(*body, told), aligned=None, cuts=())
    place = Symbol(loop.symbol.hint)
    again = replace(loop, symbol=place, body=copy_body(loop.body, {loop.symbol: Affine.of(place)}, {}))
    is_lost = compare("equal", Local(ok), FALSE)
    return Define(ok, TRUE), fast, If(is_lost, (again,), seldom=True)


def _started(body: tuple[Stmt, ...]) -> set[Variable]:
    """What a body starts with a number and changes by one statement: before that, it is no NaN."""
    inside = list(walk_statements(body))
    changes = Counter(stmt.variable for stmt in inside if isinstance(stmt, Update))
    return {
        stmt.variable
        for stmt in body
        if isinstance(stmt, Define)
        and isinstance(stmt.value, Const)
        and stmt.value.value == stmt.value.value
        and changes[stmt.variable] == 1
    }


@frozen
class _Search:
    """A loop of so many `cells` that finds where extremes of floats stand; its `body` finds them among
    numbers and says whether all are `known` to be such."""

    loop: For
    cells: int
    body: tuple[Stmt, ...]
    known: Variable

    @staticmethod
    def of(loop: Stmt, started: Set[Variable]) -> _Search | None:
        """None if the statement is not such a loop, or does not find extremes that have just `started`."""
        if not isinstance(loop, For) or loop.kind is not LoopKind.SEQUENTIAL or loop.step != 1:
            return None
        body, known = list(loop.body), Variable("known", BOOL)
        for at, (first, then) in enumerate(pairwise(loop.body)):
            if not isinstance(first, Update) or not isinstance(then, Update):
                continue
            if then.variable in started and _is_search(first, then):
                body[at : at + 2] = _chosen(first, then)
                body.append(Update(known, compare("equal", then.value, then.value), OPS["logical_and"]))
        is_one = loop.trips and len(body) > len(loop.body)
        return _Search(loop, loop.trips or 0, tuple(body), known) if is_one else None

    def among_numbers(self) -> tuple[Sequence[Stmt], Expr]:
        """The loop, and what holds after it if it saw numbers alone."""
        loop = self.loop
        if self.cells <= SHORT:
            return self.turn(loop.lo, self.cells), Local(self.known)
        lost = Variable("lost", I32 if self.body_bytes < 8 else I64)
        told = Update(lost, one_of(Local(self.known), Local(lost), constant(1, lost.dtype)))
        turns, left = divmod(self.cells, TURN)
        number = Symbol(loop.symbol.hint)
        turn = *self.turn(loop.lo + Affine.of(number) * TURN, TURN), told
        last = copy_body((*self.turn(loop.hi - left, left), told), {}, {}) if left else ()
        several = For(number, Affine.of(0), Affine.of(turns), turn)
        none = constant(0, lost.dtype)
        return (Define(lost, none), *unless_once(several), *last), compare("equal", Local(lost), none)

    @property
    def body_bytes(self) -> int:
        """How wide what the loop compares is."""
        return max(stmt.variable.dtype.itemsize for stmt in self.body if isinstance(stmt, Update))

    def turn(self, lo: Affine, count: int) -> tuple[Stmt, ...]:
        """So many of its cells, written out."""
        place = Symbol(self.loop.symbol.hint)
        body = copy_body(self.body, {self.loop.symbol: Affine.of(place)}, {})
        return Define(self.known, TRUE), For(place, lo, lo + count, body, LoopKind.UNROLLED)


def _is_search(place: Update, extreme: Update) -> bool:
    """Do two statements keep the position of an extreme, and the extreme?"""
    if place.accum is not None or extreme.accum not in BEYOND or not extreme.variable.dtype.is_float:
        return False
    match place.value:
        case Apply(op=op, args=(condition, Cast(arg=Index()), Local(variable=kept_as))):
            is_choice = op is OPS["where"] and kept_as is place.variable
            cell, best = extreme.value, Local(extreme.variable)
            return is_choice and isinstance(cell, Local) and condition == beyond(extreme.accum, cell, best)
        case _:
            return False


def _chosen(place: Update, extreme: Update) -> Iterator[Update]:
    """The same among numbers, of which equal ones are taken as `maximum` takes them: zeros have signs."""
    assert isinstance(place.value, Apply)
    assert extreme.accum is not None
    cell, best, word = extreme.value, Local(extreme.variable), BEYOND[extreme.accum]
    _, here, before = place.value.args
    yield replace(place, value=one_of(compare(word, cell, best), here, before))
    if is_compared(extreme.accum, extreme.variable.dtype):
        extreme = replace(extreme, value=one_of(compare(word, best, cell), best, cell), accum=None)
    yield extreme
