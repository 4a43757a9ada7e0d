"""The words in which passes tell what they did and what not: loops by the user's lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ...errors import Location
from ...frozen import frozen
from ...ir.index import Symbol
from ...ir.loops import Fill, For, If, LoopKind, Raise, Stmt, Store, While, walk_statements
from .access import Range
from .trips import enter

__all__ = ["Seen", "locations", "nests_of", "seen_loops", "vanished"]


@frozen
class Seen:
    """A loop, the loops around it from the outermost in, and the user's line that it is for."""

    loop: For
    around: tuple[For, ...]
    loc: Location | None

    def __str__(self) -> str:
        count = "" if self.loop.trips is None else f" of {self.loop.trips}"
        return f"loop {self.loop.symbol.hint}{count}" + (f" at {self.loc}" if self.loc else "")


def locations(body: Iterable[Stmt]) -> tuple[Location, ...]:
    """The user's lines that statements stand for, in their order."""
    found = (
        stmt.loc
        for stmt in walk_statements(tuple(body))
        if isinstance(stmt, (Store, Fill, Raise)) and stmt.loc
    )
    return tuple(dict.fromkeys(found))


def seen_loops(
    body: tuple[Stmt, ...],
    ranges: dict[Symbol, Range],
    around: tuple[For, ...] = (),
    loc: Location | None = None,
) -> Iterator[Seen]:
    """Every loop of a body, outer before inner. `ranges` gets the values of their symbols."""
    for stmt in body:
        match stmt:
            case For():
                enter(stmt, ranges)
                here = next(iter(locations(stmt.body)), loc)
                yield Seen(stmt, around, here)
                yield from seen_loops(stmt.body, ranges, (*around, stmt), here)
            case If(body=inner, orelse=other) | While(test=inner, body=other):
                yield from seen_loops((*inner, *other), ranges, around, loc)
            case _:
                pass


def nests_of(body: tuple[Stmt, ...]) -> Iterator[tuple[tuple[Stmt, ...], Stmt]]:
    """The nests of a program: loops and statements that stand in none but those of the user's that go on in
    order, each with what it stands in."""
    for stmt in body:
        yield from _inside(stmt)


def _inside(stmt: Stmt) -> Iterator[tuple[tuple[Stmt, ...], Stmt]]:
    match stmt:
        case For(body=inner, kind=LoopKind.SEQUENTIAL) if any(isinstance(one, For) for one in inner):
            pass
        case If(body=inner, orelse=other) | While(test=inner, body=other):
            inner = (*inner, *other)
        case _:
            yield (), stmt
            return
    for outside, nest in nests_of(inner):
        yield (stmt, *outside), nest


def vanished(before: tuple[Stmt, ...], after: tuple[Stmt, ...]) -> Iterator[For]:
    """The loops of which no iterations are left as such."""
    left = {stmt.symbol for stmt in walk_statements(after) if isinstance(stmt, For)}
    for stmt in walk_statements(before):
        if isinstance(stmt, For) and stmt.symbol not in left:
            yield stmt
