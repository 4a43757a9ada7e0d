"""Branches as choices among values, where both sides may be computed: for loops that go in vectors then.

    if t:                                           u = add(c, 1)
        u = add(c, 1)                  ->           v = where(t, u, c)
        c = u                                       c = v

A branch stays that computes much, or what need not exist where it is not taken. A local that both sides gave
its first value is defined by the choice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations

from ...frozen import frozen
from ...ir.conditions import one_of
from ...ir.expr import Apply, Const, Expr, Gather, Load, Local, Variable, constant, dtype_of
from ...ir.loops import Comment, Define, For, If, Stmt, Store, Update
from ...ir.ops import OPS
from ...ir.walk import locals_used, rewrite_expressions, transform, variables, walk
from ..analysis.access import Ranges, loads
from ..analysis.costs import cost_of_nodes
from ..analysis.inside import are_apart, exists

__all__ = ["without_branches"]

ADD, SUBTRACT = OPS["add"], OPS["subtract"]

MOST = 16.0
"""The work of a branch that may be done for nothing."""

UNDEFINED = "raw_"
"""How the names of ops begin that are not defined for all values."""


def without_branches(body: tuple[Stmt, ...], ranges: Ranges, most: float = MOST) -> tuple[Stmt, ...] | None:
    """A body, and those of the loops in it, without branches; None if one must stay, as it does more than
    `most` or what need not exist."""
    out: list[Stmt] = []
    for stmt in body:
        match stmt:
            case For():
                inner = without_branches(stmt.body, ranges, most)
                if inner is None:
                    return None
                out.append(stmt if inner == stmt.body else replace(stmt, body=inner))
            case If():
                chosen = _chosen(stmt, ranges, most)
                if chosen is None:
                    return None
                out += chosen
            case _:
                out.append(stmt)
    return _at_once(out)


def _at_once(body: Sequence[Stmt]) -> tuple[Stmt, ...]:
    """A body in which no local is defined by a number that another takes the place of before it is read."""
    out: list[Stmt | None] = []
    unread: dict[Variable, int] = {}
    for stmt in body:
        match stmt:
            case Update(variable=variable, accum=None, value=value):
                if variable in unread.keys() - set(variables(value)):
                    out[unread.pop(variable)] = None
                    stmt = Define(variable, value)
            case _:
                pass
        for used in locals_used((stmt,)):
            unread.pop(used, None)
        if isinstance(stmt, Define):
            unread[stmt.variable] = len(out)
        out.append(stmt)
    return tuple(stmt for stmt in out if stmt is not None)


@frozen
class _Branch:
    """What a branch computes, and what the places that it changes have at its end."""

    steps: Sequence[Define]
    ends: dict[Expr, Expr]


def _chosen(stmt: If, ranges: Ranges, most: float) -> list[Stmt] | None:
    """A branch as choices among what either side leaves."""
    one, other = _branch(stmt.body, ranges, most), _branch(stmt.orelse, ranges, most)
    if one is None or other is None or not _are_one_or_apart((*one.ends, *other.ends), ranges):
        return None
    for place in one.ends.keys() ^ other.ends.keys():
        if isinstance(place, Load) and not _is_defined(place, ranges):
            return None
    made = {step.variable: step.value for step in (*one.steps, *other.steps)}
    choices: list[Stmt] = []
    results: list[Stmt] = []
    for place in dict.fromkeys((*one.ends, *other.ends)):
        then, otherwise = (branch.ends.get(place, place) for branch in (one, other))
        value = _choice(stmt.condition, then, otherwise, made)
        name = Variable("chosen", dtype_of(value))
        choices.append(Define(name, value))
        match place:
            case Load(tensor=tensor, index=index):
                results.append(Store(tensor, index, Local(name)))
            case Local(variable=variable):
                results.append(Update(variable, Local(name)))
    return [*one.steps, *other.steps, *choices, *results]


def _choice(condition: Expr, one: Expr, other: Expr, made: Mapping[Variable, Expr]) -> Expr:
    """One value or the other. Of two sums with the same number what is added is chosen, for which the number
    need not wait."""
    for first, step in _as_sums(one, made):
        for second, others in _as_sums(other, made):
            if first == second and step != others:
                return Apply(ADD, (first, one_of(condition, step, others)), dtype_of(one))
    return one_of(condition, one, other)


def _as_sums(value: Expr, made: Mapping[Variable, Expr]) -> Iterator[tuple[Expr, Expr]]:
    """The value as a number and what is added to it, with the same bits."""
    dtype = dtype_of(value)
    if not (dtype.is_integer or dtype.is_float):
        return
    match made.get(value.variable, value) if isinstance(value, Local) else value:
        case Apply(op=op, args=(number, step)) if op is ADD:
            yield number, step
        case Apply(op=op, args=(number, Const(value=step))) if op is SUBTRACT and step == step:
            yield number, constant(-step, dtype)
        case _:
            pass
    yield value, constant(-0.0 if dtype.is_float else 0, dtype)


def _are_one_or_apart(places: Sequence[Expr], ranges: Ranges) -> bool:
    """Are cells that are stored to the same or surely different ones?"""
    cells = [place for place in dict.fromkeys(places) if isinstance(place, Load)]
    return all(
        one.tensor.storage is not other.tensor.storage
        or (one.tensor is other.tensor and are_apart(one.index, other.index, ranges))
        for one, other in combinations(cells, 2)
    )


def _branch(body: Iterable[Stmt], ranges: Ranges, most: float) -> _Branch | None:
    """One side; None if it does more than to compute `most`, or if that may not exist otherwise."""
    steps: list[Define] = []
    ends: dict[Expr, Expr] = {}
    work = 0.0

    def known(node: Expr) -> Expr:
        return ends.get(node, node)

    flat = without_branches(tuple(body), ranges, most)
    for stmt in flat or ():
        if isinstance(stmt, Comment):
            continue
        stmt = rewrite_expressions(stmt, lambda expr: transform(expr, known))
        own = {step.variable for step in steps}
        stored = {place.tensor.storage for place in ends if isinstance(place, Load)}
        match stmt:
            case Define(value=value):
                steps.append(stmt)
            case Store(tensor=tensor, index=index, accum=None, value=value):
                ends[Load(tensor, index)] = value
            case Update(variable=variable, accum=None, value=value) if variable not in own:
                ends[Local(variable)] = value
            case _:
                return None
        work += cost_of_nodes(walk(value))
        if work > most or not all(_is_defined(node, ranges) for node in walk(value)):
            return None
        if any(tensor.storage in stored for tensor, _ in loads(value)):
            return None
    return None if flat is None else _Branch(steps, ends)


def _is_defined(node: Expr, ranges: Ranges) -> bool:
    """Has a node a value wherever its operands have?"""
    match node:
        case Load(tensor=tensor, index=index):
            return exists(tensor, index, ranges)
        case Apply(op=op):
            return not op.name.startswith(UNDEFINED)
        case Gather():
            return False
        case _:
            return True
