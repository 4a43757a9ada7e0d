"""rare: what is seldom needed is computed only where it is.

    for i in vector(0, 96, lanes=8):            for i in vector(0, 96, lanes=8):
        t0 = multiply(x[i], x[i])                   t0 = multiply(x[i], x[i])
        t1 = sqrt(t0)                               t2 = t0
        t2 = rarely(less(9.0, x[i]), t1, t0)  ->    if seldom(less(9.0, x[i])):
        y[i] = t2                                       t1 = sqrt(t0)
                                                        t2 = t1
                                                    y[i] = t2

`rarely` is a `where` whose condition seldom holds. All that only its first choice needs moves into a branch,
which a vector loop takes when the condition holds in any lane. Choices by one condition share a branch, and
what they need together moves too: the sine and the cosine of one large angle. So do exceptions of which one
condition tells whether there are any (`alarms`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Sequence
from dataclasses import replace
from itertools import chain

from ...frozen import frozen
from ...ir.code import Caps
from ...ir.conditions import one_of
from ...ir.expr import Apply, Expr, Gather, Index, Load, Local, Variable, constant
from ...ir.loops import Define, If, Kernel, Raise, Stmt, Update, walk_statements, written_in
from ...ir.ops import OPS
from ...ir.tensor import Tensor
from ...ir.walk import applies, kept, locals_read, locals_updated, rewrite_bodies, variables, walk
from .alarms import with_alarms

__all__ = ["rare"]

RARELY = OPS["rarely"]


def rare(kernel: Kernel, caps: Caps) -> Kernel:
    """Every `rarely` whose first choice needs work made a branch."""
    raises = any(isinstance(stmt, Raise) for stmt in walk_statements(kernel.body))
    if not raises and not applies(kernel.body, (RARELY,)):
        return kernel
    changing = frozenset(locals_updated(walk_statements(kernel.body)))
    gathered = _gathered(kernel.body if caps.gpu else with_alarms(kernel.body), changing)
    reads = Counter(locals_read(walk_statements(gathered)))
    return kernel.with_body(_Mover(reads, changing).body(gathered))


@frozen
class _Choice:
    """What a definition chooses."""

    variable: Variable
    condition: Expr
    then: Expr
    otherwise: Expr

    @staticmethod
    def of(stmt: Stmt) -> _Choice | None:
        match stmt:
            case Define(variable=variable, value=Apply(op=op, args=(condition, then, otherwise))):
                return _Choice(variable, condition, then, otherwise) if op is RARELY else None
            case _:
                return None


def _gathered(body: tuple[Stmt, ...], changing: frozenset[Variable]) -> tuple[Stmt, ...]:
    """A body in which choices by one local stand together: what is seldom needed is chosen where the first of
    them is, and found there in the place of the others."""
    out = [rewrite_bodies(stmt, lambda inner: _gathered(inner, changing)) for stmt in body]
    firsts: dict[Variable, Variable] = {}
    for stmt in body:
        choice = _Choice.of(stmt)
        if choice is None or not isinstance(choice.condition, Local):
            continue
        first = firsts.setdefault(choice.condition.variable, choice.variable)
        if first is not choice.variable:
            _join(choice, first, out, changing)
    return kept(body, out)


def _join(choice: _Choice, first: Variable, out: list[Stmt], changing: frozenset[Variable]) -> None:
    """Move a choice to an earlier one, with what it needs, if that may stand there."""
    places = {stmt.variable: at for at, stmt in enumerate(out) if isinstance(stmt, Define)}
    start, end = places[first], places[choice.variable]
    needed = _needed(choice.then, out, start, end, changing)
    if needed is None:
        return
    seldom = Variable("t", choice.variable.dtype)
    dtype = seldom.dtype
    early = Define(seldom, Apply(RARELY, (choice.condition, choice.then, constant(0, dtype)), dtype))
    late = one_of(choice.condition, Local(seldom), choice.otherwise)
    others = [stmt for at, stmt in enumerate(out[start + 1 : end], start + 1) if at not in needed]
    moved = [out[at] for at in needed]
    out[start : end + 1] = [*moved, out[start], early, *others, Define(choice.variable, late)]


def _needed(
    value: Expr, body: Sequence[Stmt], start: int, end: int, changing: frozenset[Variable]
) -> list[int] | None:
    """The places from `start` to before `end` of the definitions that a value needs; None where they could
    not stand before `start`."""
    wanted = set(variables(value))
    found: list[int] = []
    for at in range(end - 1, start - 1, -1):
        stmt = body[at]
        if isinstance(stmt, Define) and stmt.variable in wanted:
            if at == start or not _is_pure(stmt.value, None):
                return None
            found.append(at)
            wanted.update(variables(stmt.value))
    return found[::-1] if changing.isdisjoint(wanted) else None


def _last_choices(body: Sequence[Stmt]) -> list[_Choice]:
    """The choices by one condition that a body ends with."""
    found: list[_Choice] = []
    for stmt in reversed(body):
        choice = _Choice.of(stmt)
        if choice is None or (found and choice.condition != found[0].condition):
            break
        found.append(choice)
    return found[::-1]


def _alarm(stmt: Stmt) -> If | None:
    """A branch in which nothing is done but raise exceptions."""
    match stmt:
        case If(seldom=True, body=body, orelse=()) if all(isinstance(inner, Raise) for inner in body):
            return stmt
        case _:
            return None


class _Mover:
    """`reads` counts the places that read each local of the kernel."""

    def __init__(self, reads: Counter[Variable], changing: frozenset[Variable]) -> None:
        self.reads = reads
        self.changing = changing

    def body(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """From the end: what moves stands before the choice that needs it, and may hold choices itself."""
        remaining, done = list(body), list[Stmt]()
        while remaining:
            if (alarm := _alarm(remaining[-1])) is not None:
                remaining.pop()
                moved = self._moved(
                    remaining, tuple(stmt.condition for stmt in alarm.body if isinstance(stmt, Raise))
                )
                done.append(replace(alarm, body=(*moved, *alarm.body)))
                continue
            group = _last_choices(remaining)
            before = remaining[: len(remaining) - len(group)]
            moved = self._moved(before, tuple(choice.then for choice in group)) if group else []
            if not moved:
                done.append(rewrite_bodies(remaining.pop(), self.body))
                continue
            remaining = before
            updates = (Update(choice.variable, choice.then) for choice in group)
            done.append(If(group[0].condition, self.body((*moved, *updates)), seldom=True))
            done += (Define(choice.variable, choice.otherwise) for choice in reversed(group))
        return kept(body, done[::-1])

    def _moved(self, before: list[Stmt], thens: tuple[Expr, ...]) -> list[Stmt]:
        """The definitions that only `thens` need, taken out of the statements before them. What is read at a
        place that loops lead to, or where any of these statements writes, and what reads a local that changes
        stays where it is."""
        needed = Counter(chain.from_iterable(map(variables, thens)))
        writes = _Writes(tuple(before))
        moved: list[Stmt] = []
        for position in reversed(range(len(before))):
            stmt = before[position]
            if isinstance(stmt, Define) and needed[stmt.variable] == self.reads[stmt.variable] > 0:
                read = list(variables(stmt.value))
                if _is_pure(stmt.value, writes) and self.changing.isdisjoint(read):
                    needed.update(read)
                    moved.append(before.pop(position))
        return moved[::-1]


class _Writes:
    """Where statements write, which is asked for lookups alone: most bodies have none."""

    def __init__(self, body: tuple[Stmt, ...]) -> None:
        self.body = body
        self.storages: Container[Tensor | None] | None = None

    def __contains__(self, storage: object) -> bool:
        if self.storages is None:
            self.storages = written_in(walk_statements(self.body))
        return storage in self.storages


def _is_pure(value: Expr, writes: Container[Tensor | None] | None) -> bool:
    """Whether a value follows from locals alone, and from lookups by them elsewhere than these `writes`; with
    None, from no lookups."""
    for node in walk(value):
        match node:
            case Load() | Index():
                return False
            case Gather(tensor=tensor) if writes is None or tensor.storage in writes:
                return False
            case _:
                pass
    return True
