"""Bodies of vector loops in parts, each of which is done for another vector.

for i in vector(0, 64, lanes=8, cuts=(2,)):     two parts: the load and the square of one vector
    a = x[i]                                    may stand among the root and the store of the
    b = multiply(a, a)                    ->    one before it, which need nothing of it
    c = sqrt(b)
    y[i] = add(a, c)                            what the first part hands on: a, b
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TypeVar, Union

from .expr import Variable
from .loops import Define, For, If, LoopKind, Prefetch, Stmt, Store, Update, walk_statements
from .walk import locals_defined, locals_read, locals_updated, variables

__all__ = ["alternating", "handed_on", "may_be_cut", "parts_of"]


Item = TypeVar("Item", bound=Union[Stmt, tuple[Store, ...]])
"""A statement, or stores that are done together."""


def may_be_cut(loop: For) -> bool:
    """Whether parts of a vector loop's body may be done for different vectors, and so at its cuts: it has
    nothing but locals of its own, requests for cells, stores in the last part and what is seldom needed. Its
    iterations are independent: what one reads no other one writes."""
    edges = (0, *loop.cuts, len(loop.body))
    own = locals_defined(loop.body)
    return (
        loop.kind is LoopKind.VECTOR
        and loop.step == 1
        and all(low < high for low, high in pairwise(edges))
        and all(_is_plain(stmt, own) for stmt in loop.body)
        and not any(isinstance(stmt, Store) for stmt in loop.body[: edges[-2]])
        and not (loop.cuts and _is_behind_a_store(loop.body))
    )


def _is_behind_a_store(body: Sequence[Stmt]) -> bool:
    """Whether it turns out after something is stored that what is seldom needed is."""
    stores = [place for place, stmt in enumerate(body) if isinstance(stmt, Store)]
    return any(isinstance(stmt, If) for stmt in body[min(stores, default=len(body)) :])


def _is_plain(stmt: Stmt, own: set[Variable]) -> bool:
    match stmt:
        case If(seldom=True, body=body, orelse=()):
            inside = list(walk_statements(body))
            changed = locals_updated(inside)
            own = own | locals_defined(inside)
            return all(isinstance(inner, (Define, If, Update)) for inner in inside) and changed <= own
        case Store(accum=accum):
            return accum is None
        case _:
            return isinstance(stmt, (Define, Prefetch))


def parts_of(loop: For) -> list[tuple[Stmt, ...]]:
    """The body between its cuts, what is seldom needed as soon as it is known whether it is."""
    places = {stmt.variable: place for place, stmt in enumerate(loop.body) if isinstance(stmt, Define)}
    known, keys = -1, list[tuple[int, int]]()
    for place, stmt in enumerate(loop.body):
        if isinstance(stmt, If):
            known = max([known, *(places.get(variable, -1) for variable in variables(stmt.condition))])
            keys.append((known, place))
        else:
            keys.append((place, -1))
    order = sorted(range(len(keys)), key=keys.__getitem__)
    edges = (-1, *loop.cuts, len(loop.body))
    return [
        tuple(loop.body[place] for place in order if low <= keys[place][0] < high)
        for low, high in pairwise(edges)
    ]


def alternating(parts: Sequence[Sequence[Item]]) -> list[tuple[int, Item]]:
    """What all parts do in one turn, each with its part's number: evenly mixed, later parts first. What
    stores comes last, when it is known that no vector needs what is seldom needed."""
    placed = list[tuple[float, int, Item]]()
    for number, part in enumerate(parts):
        stores = (place for place, item in enumerate(part) if isinstance(item, (tuple, Store)))
        first = next(stores, len(part))
        for place, item in enumerate(part):
            placed.append((1.0 if place >= first else (place + 0.5) / len(part), -number, item))
    return [(-number, item) for _, number, item in sorted(placed, key=lambda item: item[:2])]


def handed_on(parts: Sequence[Sequence[Stmt]]) -> list[list[Variable]]:
    """For each part the locals of parts before it that it or a later one needs."""
    needed, later = set[Variable](), list[set[Variable]]()
    for part in reversed(parts):
        needed = needed.union(locals_read(tuple(part)))
        later.append(needed)
    made: list[Variable] = []
    found: list[list[Variable]] = []
    for part, wanted in zip(parts, reversed(later), strict=True):
        found.append([variable for variable in made if variable in wanted])
        made += (stmt.variable for stmt in part if isinstance(stmt, Define))
    return found
