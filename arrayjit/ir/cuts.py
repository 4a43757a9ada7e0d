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

from .expr import Variable
from .loops import Define, For, If, LoopKind, Prefetch, Stmt, Store, Update, walk_statements
from .walk import locals_read

__all__ = ["handed_on", "may_be_cut", "parts_of"]


def may_be_cut(loop: For) -> bool:
    """Whether parts of a vector loop's body may be done for different vectors, and so at its cuts: it has
    nothing but locals of its own, requests for cells, stores in the last part and what is seldom needed. Its
    iterations are independent: what one reads no other one writes."""
    edges = (0, *loop.cuts, len(loop.body))
    own = {stmt.variable for stmt in loop.body if isinstance(stmt, Define)}
    return (
        loop.kind is LoopKind.VECTOR
        and loop.step == 1
        and all(low < high for low, high in pairwise(edges))
        and all(_is_plain(stmt, own) for stmt in loop.body)
        and not any(isinstance(stmt, Store) for stmt in loop.body[: edges[-2]])
    )


def _is_plain(stmt: Stmt, own: set[Variable]) -> bool:
    match stmt:
        case If(seldom=True, body=body, orelse=()):
            inside = list(walk_statements(body))
            changed = {inner.variable for inner in inside if isinstance(inner, Update)}
            own = own | {inner.variable for inner in inside if isinstance(inner, Define)}
            return all(isinstance(inner, (Define, If, Update)) for inner in inside) and changed <= own
        case Store(accum=accum, bypass=bypass):
            return accum is None and not bypass
        case _:
            return isinstance(stmt, (Define, Prefetch))


def parts_of(loop: For) -> list[tuple[Stmt, ...]]:
    """The body between its cuts."""
    edges = (0, *loop.cuts, len(loop.body))
    return [loop.body[low:high] for low, high in pairwise(edges)]


def handed_on(parts: Sequence[Sequence[Stmt]]) -> list[list[Variable]]:
    """For each part the locals of parts before it that it or a later one needs."""
    found: list[list[Variable]] = []
    for number in range(len(parts)):
        before = (stmt for part in parts[:number] for stmt in part)
        later = tuple(stmt for part in parts[number:] for stmt in part)
        inside = list(walk_statements(later))
        needed = {*locals_read(inside), *(stmt.variable for stmt in inside if isinstance(stmt, Update))}
        made = (stmt.variable for stmt in before if isinstance(stmt, Define))
        found.append([variable for variable in made if variable in needed])
    return found
