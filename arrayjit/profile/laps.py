"""A kernel that measures its own parts.

    t[i] = ...   for i in vector(0, 1000)             lap(times, 0)
    for k in sequential(0, n):                 ->     t[i] = ...   for i in vector(0, 1000)
        u[i] = ...   for i in vector(0, 1000)         lap(times, 1)
        v[i] = ...   for i in vector(0, 1000)         for k in sequential(0, n):
                                                          u[i] = ...   for i in vector(0, 1000)
                                                          lap(times, 2)
                                                          v[i] = ...   for i in vector(0, 1000)
                                                          lap(times, 3)

A part is what stands beside others, at the top or in a loop that is long enough for a clock: neighbours that
write the same arrays and locals are one, such as a loop over whole vectors and one over what they leave.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from ..frozen import frozen_by_identity
from ..ir.dtype import I64
from ..ir.expr import Variable
from ..ir.journal import given
from ..ir.loops import (
    Define,
    Fill,
    For,
    If,
    Kernel,
    Lap,
    LoopKind,
    PlaceKind,
    Stmt,
    Store,
    Update,
    While,
    walk_statements,
)
from ..ir.params import ArrayParam
from ..ir.tensor import Tensor
from ..ir.walk import locals_read
from .operations import counted
from .visits import Visit, visits

__all__ = ["Part", "Timed", "timed"]

ENOUGH = 20_000
"""The operations of an iteration that is measured part by part: they take microseconds, of which a clock
takes a hundredth."""

MOST = 1000
"""Parts of a kernel; what follows them is one more."""

_LOOPS = (For, While, If, Fill)

Written = frozenset[Tensor | Variable]


@frozen_by_identity
class Part:
    """Statements before the lap of this number."""

    number: int
    body: tuple[Stmt, ...]


@frozen_by_identity
class Timed:
    """A kernel with one parameter more, the last that is passed: to its cells 1, 2, ... it adds the
    nanoseconds of its parts."""

    kernel: Kernel
    times: Tensor
    parts: tuple[Part, ...]


def timed(kernel: Kernel, numbers: Mapping[Tensor, int] | None = None) -> Timed:
    """The kernel with a clock; `numbers` are the values of integer parameters, by which some loops are
    long."""
    times = Tensor.of("times", (MOST + 2,), I64)
    clock = _Clock(kernel, times, numbers or {})
    body = (Lap(times, 0), *clock.laps(kernel.body))
    passed = given(kernel.params)
    params = (*passed, ArrayParam(times, "update"), *kernel.params[len(passed) :])
    return Timed(replace(kernel, params=params, body=body), times, tuple(clock.parts))


class _Clock:
    """Parts of one kernel, in program order."""

    def __init__(self, kernel: Kernel, times: Tensor, numbers: Mapping[Tensor, int]) -> None:
        self.parts: list[Part] = []
        self._times = times
        self._kernel = kernel
        self._numbers = numbers
        self._counts = _counts(visits(kernel.body, numbers))
        self._private = set(kernel.placed(PlaceKind.SCRATCH))

    def laps(self, body: Sequence[Stmt]) -> tuple[Stmt, ...]:
        """The body with a lap after each part."""
        out: list[Stmt] = []
        for group in self._groups(body):
            apart = self._apart(group)
            if apart is not None:
                out += apart
                continue
            out += [*group, Lap(self._times, self._number(group))]
        return tuple(out)

    def _number(self, group: tuple[Stmt, ...]) -> int:
        """That of a new part, or of the last one, which has all for which there is no cell."""
        if len(self.parts) > MOST:
            last = self.parts.pop()
            group = (*last.body, *group)
        self.parts.append(Part(len(self.parts) + 1, group))
        return len(self.parts)

    def _apart(self, group: tuple[Stmt, ...]) -> tuple[Stmt, ...] | None:
        """A group whose only loop has laps in its body; None for one that is measured as a whole."""
        loops = [stmt for stmt in group if isinstance(stmt, _LOOPS)]
        inner = self._inside(loops[0]) if len(loops) == 1 else None
        return None if inner is None else tuple(inner if stmt is loops[0] else stmt for stmt in group)

    def _inside(self, stmt: Stmt) -> Stmt | None:
        """A loop with laps in its body; None for one that is measured as a whole."""
        if not self._opens(stmt):
            return None
        match stmt:
            case For(body=body):
                return replace(stmt, body=self.laps(body))
            case While(test=test, body=body):
                return replace(stmt, test=self.laps(test), body=self.laps(body))
            case _:
                return None

    def _opens(self, stmt: Stmt) -> bool:
        """Whether a loop is measured inside: one of several parts that takes long each time."""
        match stmt:
            case For(kind=LoopKind.SEQUENTIAL | LoopKind.PARALLEL, grain=None, body=body):
                return self._is_long(body) and len(self._groups(body)) > 1
            case While(test=test, body=body):
                return self._is_long((*test, *body))
            case _:
                return False

    def _is_long(self, body: tuple[Stmt, ...]) -> bool:
        """Whether an iteration takes much longer than a clock, or nobody knows."""
        work, runs = self._counts
        times = max((runs[id(stmt)] for stmt in body), default=0.0)
        if math.isinf(times):
            work, runs = _counts(visits(body, self._numbers, self._kernel.body))
            times = max(runs[id(stmt)] for stmt in body)
        total = sum(work[id(stmt)] for stmt in walk_statements(body))
        return times > 0 and not total / times < ENOUGH

    def _groups(self, body: Sequence[Stmt]) -> list[tuple[Stmt, ...]]:
        """Statements that are measured together: each loop with what stands before it, what is seldom done
        after it, and neighbours that write the same."""
        groups: list[tuple[Stmt, ...]] = []
        rest: tuple[Stmt, ...] = ()
        last: Written | None = None
        read = {
            variable: place
            for place, stmt in enumerate(body)
            for variable in locals_read(walk_statements((stmt,)))
        }
        for place, stmt in enumerate(body):
            rest = (*rest, stmt)
            match body[place + 1 : place + 2]:
                case [If(seldom=True)]:
                    continue
            loops = [part for part in rest if isinstance(part, _LOOPS)]
            written = self._written(rest, {variable for variable, end in read.items() if end > place})
            if loops and written:
                opens = len(loops) == 1 and self._opens(loops[0])
                if written == last and not opens:
                    groups[-1] = (*groups[-1], *rest)
                else:
                    groups.append(rest)
                rest, last = (), None if opens else written
        if rest and groups:
            groups[-1] = (*groups[-1], *rest)
        elif rest:
            groups.append(rest)
        return groups

    def _written(self, body: tuple[Stmt, ...], read: Collection[Variable]) -> Written:
        """What a group leaves to others: arrays, but for each thread's own, and locals from before a loop, if
        they are `read` after the group."""
        found: set[Tensor | Variable] = set()
        own: set[Tensor | Variable] = set(self._private)
        outermost = set(map(id, body))
        for stmt in walk_statements(body):
            match stmt:
                case Store(tensor=tensor) | Fill(tensor=tensor):
                    found.add(tensor.storage)
                case Update(variable=variable):
                    found.add(variable)
                case Define(variable=variable) if id(stmt) not in outermost or variable not in read:
                    own.add(variable)
                case _:
                    pass
        return frozenset(found - own)


def _counts(seen: Iterable[Visit]) -> tuple[Mapping[int, float], Mapping[int, float]]:
    """The operations of each statement in all its runs, and these runs, by the statement's identity; where
    data decides, the middle."""
    work: dict[int, float] = {}
    runs: dict[int, float] = {}
    for visit in seen:
        name, times = id(visit.stmt), sum(visit.space.runs) / 2
        amount = sum(count for (kind, _), count in counted(visit).items() if not kind.startswith("bytes"))
        work[name] = work.get(name, 0.0) + (times * amount if amount else 0.0)
        runs[name] = max(runs.get(name, 0.0), times)
    return work, runs
