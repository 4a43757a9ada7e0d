"""regroup: what waits for the step before is compared last, and chosen by last.

    for j in sequential(0, 200):                    for j in sequential(0, 200):
        a = add(above[j + 1], 1)                        a = add(above[j + 1], 1)
        b = add(before, 1)                              b = add(before, 1)
        c = add(above[j], cost[j])                      c = add(above[j], cost[j])
        t = less(b, a)                      ->          t = less(a, c)
        u = where(t, b, a)                              u = where(t, a, c)
        v = less(c, u)                                  v = less(b, u)
        w = where(v, c, u)                              w = where(v, b, u)
        before = w                                      before = w

The least of three is found in two steps, and in one once the other two are known: distances of two words
take 0.6 of the time. Integers have the same extreme in any order; floats, which may be NaN or zeros of either
sign, stay as they are.

    t = greater(v, e)                       t = greater(v, e)
    k = where(t, a, b)                      p = add(multiply(a, e), multiply(subtract(1, a), v))
    p = multiply(k, e)              ->      q = add(multiply(b, e), multiply(subtract(1, b), v))
    q = multiply(subtract(1, k), v)         r = where(t, p, q)
    r = add(p, q)                           e = r
    e = r

A factor that a condition chooses which waits is applied both ways beside the comparison, where that ends
sooner: steps that follow rises and falls by two factors take two thirds of the time. Of a single operation
compilers would make the choice of factors again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ...frozen import frozen
from ...ir.code import Caps, Pipes
from ...ir.dtype import BOOL
from ...ir.expr import Apply, Const, Expr, Local, Variable
from ...ir.loops import Define, For, Kernel, LoopKind, Stmt, Update, walk_statements
from ...ir.ops import OPS, Op
from ...ir.walk import (
    bottom_up,
    locals_defined,
    locals_read,
    locals_updated,
    nodes_in,
    rewrite_loops,
    transform,
)
from ..analysis.latency import ready
from ..analysis.values import stays

__all__ = ["regroup"]

LESS = {OPS["less"], OPS["less_equal"]}
GREATER = {OPS["greater"], OPS["greater_equal"]}
ARITHMETIC = {OPS[name] for name in ("add", "subtract", "multiply", "fma", "negative")}

MOST_DONE_TWICE = 8
"""So many operations are done both ways at most."""

GAINED = 2
"""So many cycles sooner the step must be over: what is chosen last lies in another register first."""


def regroup(kernel: Kernel, caps: Caps) -> Kernel:
    """The steps of every loop in order, each extreme with what waits in its last place."""
    notes: list[str] = []
    loops = [stmt for stmt in walk_statements(kernel.body) if isinstance(stmt, For)]
    wide = (loop for loop in loops if loop.kind is not LoopKind.SEQUENTIAL or loop.lanes > 1)
    beside = {stmt.symbol for loop in wide for stmt in walk_statements(loop.body) if isinstance(stmt, For)}

    def regrouped(loop: For) -> Sequence[Stmt] | None:
        if loop.kind is not LoopKind.SEQUENTIAL or loop.lanes > 1:
            return None
        body = compared = _regrouped(loop.body)
        if loop.symbol not in beside:
            body = _chosen_last(compared, caps.pipes)
        if compared is not loop.body:
            notes.append(
                f"regroup: what waits for the step before is compared last in loop {loop.symbol.hint}"
            )
        if body is not compared:
            notes.append(f"regroup: both factors are applied before one is chosen in loop {loop.symbol.hint}")
        return None if body is loop.body else [replace(loop, body=body)]

    return kernel.with_body(rewrite_loops(kernel.body, regrouped), notes)


@frozen
class _Extreme:
    """The lesser or the greater of two numbers, chosen by a `test` that stands in a local."""

    value: Define
    test: Define
    op: Op
    pair: tuple[Expr, Expr]

    @staticmethod
    def of(stmt: Stmt, defined: Mapping[Variable, Define]) -> _Extreme | None:
        match stmt:
            case Define(
                variable=Variable(dtype=dtype),
                value=Apply(op=op, args=(Local(variable=chosen), one, other)),
            ) if op is OPS["where"] and dtype.is_integer:
                test = defined.get(chosen)
            case _:
                return None
        if test is None or not isinstance(test.value, Apply) or test.value.op not in LESS | GREATER:
            return None
        if test.value.args not in ((one, other), (other, one)):
            return None
        is_least = (test.value.op in LESS) == (test.value.args == (one, other))
        return _Extreme(stmt, test, OPS["less" if is_least else "greater"], (one, other))

    def after(self, defined: Mapping[Variable, Define]) -> Iterator[tuple[_Extreme, Expr]]:
        """Which of the two is such an extreme of others, and the other one."""
        one, other = self.pair
        for value, rest in ((one, other), (other, one)):
            if isinstance(value, Local) and value.variable in defined:
                first = _Extreme.of(defined[value.variable], defined)
                if first is not None and first.op is self.op:
                    yield first, rest


def _regrouped(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """A body in which what waits for the step before comes last."""
    carried = locals_updated(body) - locals_defined(body)
    if not carried:
        return body
    defined = {stmt.variable: stmt for stmt in body if isinstance(stmt, Define)}
    waiting = _waiting(body, carried)
    times = Counter(locals_read(walk_statements(body)))
    for at, stmt in enumerate(body):
        last = _Extreme.of(stmt, defined)
        if last is None:
            continue
        for first, rest in last.after(defined):
            late = [one for one in first.pair if _waits(one, waiting)]
            between = body[body.index(first.test) : at]
            alone = (times[first.value.variable], times[first.test.variable], times[last.test.variable])
            if alone != (2, 1, 1) or len(late) != 1 or _waits(rest, waiting):
                continue
            if not _may_move(between, (*first.pair, rest)):
                continue
            gone = (first.value, first.test, last.test)
            before = [one for one in body[:at] if one not in gone]
            return _regrouped((*before, *_in_turn(first, last, late[0], rest), *body[at + 1 :]))
    return body


def _in_turn(first: _Extreme, last: _Extreme, late: Expr, rest: Expr) -> Iterator[Define]:
    """What does not wait is compared, and then what does with that."""
    early = first.pair[1] if first.pair[0] == late else first.pair[0]
    dtype = last.value.variable.dtype
    known = Local(first.value.variable)
    yield replace(first.test, value=Apply(last.op, (early, rest), BOOL))
    yield replace(first.value, value=Apply(OPS["where"], (Local(first.test.variable), early, rest), dtype))
    yield replace(last.test, value=Apply(last.op, (late, known), BOOL))
    yield replace(last.value, value=Apply(OPS["where"], (Local(last.test.variable), late, known), dtype))


def _waiting(body: Sequence[Stmt], carried: set[Variable]) -> set[Variable]:
    """The locals that are computed from what the step before hands on."""
    waiting = set(carried)
    for stmt in body:
        if isinstance(stmt, Define) and not waiting.isdisjoint(locals_read((stmt,))):
            waiting.add(stmt.variable)
    return waiting


def _waits(value: Expr, waiting: set[Variable]) -> bool:
    return isinstance(value, Local) and value.variable in waiting


def _may_move(between: Sequence[Stmt], values: Sequence[Expr]) -> bool:
    """Are these values the same after those statements?"""
    changed = locals_updated(walk_statements(tuple(between)))
    return all(stays(value, changed) for value in values)


def _chosen_last(body: tuple[Stmt, ...], pipes: Pipes) -> tuple[Stmt, ...]:
    """A body in which what waits chooses among results, where it chose among factors."""
    updated = locals_updated(walk_statements(body))
    carried = locals_updated(body) - locals_defined(body)
    waiting = _waiting(body, carried) if carried else set()
    for stmt in body:
        match stmt:
            case Define(
                variable=Variable(dtype=dtype) as chosen,
                value=Apply(op=op, args=(Local(variable=test), one, other)),
            ) if op is OPS["where"] and dtype.is_float and test in waiting and test not in updated:
                steps = _steps(body, chosen)
            case _:
                continue
        if not steps or not all(stays(each, waiting | updated) for each in (one, other)):
            continue
        new = _both_ways(body, stmt, steps, Local(test), (one, other))
        if _waited(new, carried, pipes) + GAINED <= _waited(body, carried, pipes) and _is_free(
            new, carried, pipes
        ):
            return _chosen_last(new, pipes)
    return body


def _steps(body: Sequence[Stmt], chosen: Variable) -> tuple[Define, ...]:
    """What is computed of a number: operations of which the others read the last one's result alone."""
    known, found = {chosen}, list[Define]()
    for stmt in body:
        match stmt:
            case Define(value=Apply(op=op, args=args)) if op in ARITHMETIC:
                if not all(isinstance(arg, (Local, Const)) for arg in args):
                    continue
                if known.isdisjoint(locals_read((stmt,))):
                    continue
            case _:
                continue
        found.append(stmt)
        known.add(stmt.variable)
        if len(found) > MOST_DONE_TWICE:
            break
        others = [one for one in body if one not in found]
        if known.intersection(locals_read(walk_statements(others))) == {stmt.variable}:
            return tuple(found) if sum(chosen in set(locals_read((step,))) for step in found) > 1 else ()
    return ()


def _both_ways(
    body: tuple[Stmt, ...], choice: Define, steps: Sequence[Define], test: Local, values: tuple[Expr, Expr]
) -> tuple[Stmt, ...]:
    """The body with the steps done for each of two values, and the last one's result chosen."""
    known: list[dict[Variable, Expr]] = [{choice.variable: value} for value in values]
    new: list[Stmt] = []
    for stmt in body:
        if stmt is choice:
            continue
        if not isinstance(stmt, Define) or stmt not in steps:
            new.append(stmt)
            continue
        dtype = stmt.variable.dtype
        for there in known:
            copy = Variable(stmt.variable.hint, dtype)
            new.append(Define(copy, _with(stmt.value, there)))
            there[stmt.variable] = Local(copy)
        if stmt is steps[-1]:
            results = tuple(there[stmt.variable] for there in known)
            new.append(Define(stmt.variable, Apply(OPS["where"], (test, *results), dtype)))
    return tuple(new)


def _with(value: Expr, known: Mapping[Variable, Expr]) -> Expr:
    def rule(node: Expr) -> Expr:
        return known.get(node.variable, node) if isinstance(node, Local) else node

    return transform(value, rule)


def _waited(body: Sequence[Stmt], carried: set[Variable], pipes: Pipes) -> int:
    """For how many cycles a step waits for the one before: what does not wait is there."""
    there = dict.fromkeys(carried, 0)

    def when(node: Expr, operands: tuple[int, ...]) -> int:
        if isinstance(node, Local):
            return there.get(node.variable, -1)
        waits = tuple(operand for operand in operands if operand >= 0)
        return ready(node, waits, pipes) if waits else -1

    longest = 0
    for stmt in body:
        if isinstance(stmt, (Define, Update)):
            end = bottom_up(stmt.value, when)
            if isinstance(stmt, Define):
                there[stmt.variable] = end
            longest = max(longest, end)
    return longest


def _is_free(body: tuple[Stmt, ...], carried: set[Variable], pipes: Pipes) -> bool:
    """Is there time for all operations while a step waits?"""
    operations = sum(isinstance(node, Apply) for node in nodes_in(walk_statements(body)))
    return operations <= _waited(body, carried, pipes) * pipes.at_once
