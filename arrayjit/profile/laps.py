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

from collections.abc import Sequence
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
from ..passes.work import work

__all__ = ["Part", "Timed", "timed"]

ENOUGH = 4000
"""The work of an iteration that is measured part by part, in additions of one register each: about two
microseconds of them, a hundredth of which a clock takes."""

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


def timed(kernel: Kernel) -> Timed:
    """The kernel with a clock."""
    times = Tensor.of("times", (MOST + 2,), I64)
    clock = _Clock(kernel, times)
    body = (Lap(times, 0), *clock.laps(kernel.body))
    passed = given(kernel.params)
    params = (*passed, ArrayParam(times, "update"), *kernel.params[len(passed) :])
    return Timed(replace(kernel, params=params, body=body), times, tuple(clock.parts))


class _Clock:
    """Parts of one kernel, in program order."""

    def __init__(self, kernel: Kernel, times: Tensor) -> None:
        self.parts: list[Part] = []
        self._times = times
        self._private = {
            tensor for tensor, place in kernel.placement.items() if place.kind is PlaceKind.SCRATCH
        }

    def laps(self, body: Sequence[Stmt]) -> tuple[Stmt, ...]:
        """The body with a lap after each part."""
        out: list[Stmt] = []
        for group in self._groups(body):
            apart = self._apart(group)
            if apart is not None:
                out += apart
                continue
            number = min(len(self.parts), MOST) + 1
            self.parts.append(Part(number, group))
            out += [*group, Lap(self._times, number)]
        return tuple(out)

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
                return _is_long(body) and len(self._groups(body)) > 1
            case While(test=test, body=body):
                return _is_long((*test, *body))
            case _:
                return False

    def _groups(self, body: Sequence[Stmt]) -> list[tuple[Stmt, ...]]:
        """Statements that are measured together: each loop with what stands before it, and with neighbours
        that write the same."""
        groups: list[tuple[Stmt, ...]] = []
        rest: tuple[Stmt, ...] = ()
        last: Written | None = None
        for stmt in body:
            rest = (*rest, stmt)
            written = self._written(rest)
            if isinstance(stmt, _LOOPS) and written:
                opens = self._opens(stmt)
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

    def _written(self, body: tuple[Stmt, ...]) -> Written:
        """What a group leaves to others: arrays, but for each thread's own, and locals from before a loop."""
        found: set[Tensor | Variable] = set()
        own: set[Tensor | Variable] = set(self._private)
        outermost = set(map(id, body))
        for stmt in walk_statements(body):
            match stmt:
                case Store(tensor=tensor) | Fill(tensor=tensor):
                    found.add(tensor.storage)
                case Update(variable=variable):
                    found.add(variable)
                case Define(variable=variable) if id(stmt) not in outermost:
                    own.add(variable)
                case _:
                    pass
        return frozenset(found - own)


def _is_long(body: Sequence[Stmt]) -> bool:
    """Whether an iteration takes much longer than a clock, or nobody knows."""
    found = work(body, frozenset(), {})
    return found.get((), 0.0) >= ENOUGH or any(found[key] for key in found if key)
