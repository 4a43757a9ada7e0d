"""Tuning: of several schedules of a program, the one that is fastest on this machine with these arguments.

The search starts from the schedule that the passes choose themselves and changes one thing at a time: leaves
out a pass, or has the passes plan for other sizes than the machine's. A change stays if code with it computes
the same bits in clearly less time, the two timed in turn. What fails, or computes anything else, is dropped.
In the end the winner meets the default once more, and has to win again. The choice is remembered.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, fields, replace
from importlib.metadata import version

import numpy as np

from .cache import key_for, recall, remember
from .compile import Build, build
from .errors import UserError
from .frozen import frozen
from .ir.code import DEFAULT_SCHEDULE, Caps, Schedule
from .ir.journal import given
from .ir.text import print_kernel
from .ir.verify import verify_kernel
from .passes.pipeline import ON_LOOPS, OPTIONAL
from .runtime.procedure import Procedure
from .trials import Trials

__all__ = ["tuned"]

GAIN = 1.03
"""So many times as fast as what is there a schedule must be to replace it."""

HOPELESS = 0.9
"""What is only so fast in the first few runs is not timed any longer."""

FIRST_ROUNDS, ROUNDS, LAST_ROUNDS = 1, 7, 15

SIZES = (
    ("threads", 0),
    ("thread_work", 8.0),
    ("thread_work", 0.25),
    ("l2_bytes", 0.25),
    ("l2_bytes", 4.0),
    ("l1_bytes", 0.25),
    ("l1_bytes", 4.0),
    ("l3_bytes", 0.125),
    ("l3_bytes", 16.0),
    ("vector_bytes", 0.5),
    ("vector_bytes", 2.0),
    ("registers", 0.5),
    ("registers", 2.0),
    ("stack_bytes", 0.0),
    ("stack_bytes", 8.0),
)
"""By what factor each size of the machine is changed; it stays at least 1."""


@frozen
class Outcome:
    """What a search found: the schedule, what was tried, how long it might take, and whether it was done."""

    schedule: Schedule
    notes: tuple[str, ...]
    seconds: float
    finished: bool

    def is_enough(self, seconds: float) -> bool:
        """Would a search of so many seconds find no more?"""
        return self.finished or self.seconds >= seconds


_learnt: dict[str, Outcome] = {}
"""By this process, which may have nowhere to keep files."""


def tuned(default: Build, seconds: float, arrays: Sequence[np.ndarray] | None = None) -> Build:
    """The program with the schedule that is fastest on these arrays, as far as can be found out in so many
    seconds, or as it was found earlier; the default where that raises an exception. Without arrays, there is
    no search."""
    if not isinstance(default.code.payload, str):
        return _noted(default, (f"tune: target {default.backend.name} has one schedule only",))
    key = _key(default)
    outcome = _recalled(key)
    if arrays is not None and (outcome is None or not outcome.is_enough(seconds)):
        try:
            outcome = _search(default, arrays, seconds)
        except UserError:
            return default
        _learnt[key] = outcome
        remember("schedules", key, json.dumps(asdict(outcome)).encode())
    if outcome is None:
        return _noted(default, ("tune: the first call on NumPy arrays tries schedules",))
    chosen = default if outcome.schedule == DEFAULT_SCHEDULE else _built(default, outcome.schedule)
    return _noted(chosen, outcome.notes)


def _search(default: Build, arrays: Sequence[np.ndarray], seconds: float) -> Outcome:
    """Try schedules. Raises what the default raises."""
    start = time.perf_counter()
    search = _Search(default, Trials(given(default.code.params), arrays), start + seconds)
    finished = search.run()
    schedule, gain = search.winner()
    spent = time.perf_counter() - start
    kept = f"tune: {schedule} is kept" + (f", {gain:.2f} times as fast as the default" if gain else "")
    tried = f"; {len(search.seen)} programs compared in {spent:.1f} s"
    return Outcome(schedule, (kept + tried, *search.notes), seconds, finished)


class _Search:
    """From the default, one change after another."""

    def __init__(self, default: Build, trials: Trials, deadline: float) -> None:
        self._default = default
        self._trials = trials
        self._deadline = deadline
        self._first = self._best = default.load()
        self._schedule = DEFAULT_SCHEDULE
        self._wanted = trials.outcome(self._first)
        self.seen = {default.code.payload}
        self.notes: list[str] = []

    def run(self) -> bool:
        """Try every change, again and again while one of them helps; whether there was time for that."""
        caps = self._default.backend.target.caps()
        helped = True
        while helped:
            helped = False
            for schedule in _changed(self._schedule, caps):
                if time.perf_counter() > self._deadline:
                    return False
                helped |= self._try(schedule)
        return True

    def winner(self) -> tuple[Schedule, float]:
        """The schedule and its gain over the default, measured once more; the default and 0 if none has."""
        if self._best is self._first:
            return DEFAULT_SCHEDULE, 0.0
        gain = min(self._trials.compare(self._first, self._best, LAST_ROUNDS))
        return (self._schedule, gain) if gain > GAIN else (DEFAULT_SCHEDULE, 0.0)

    def _try(self, schedule: Schedule) -> bool:
        """Make a schedule the best one if it is. Whatever is wrong with it is its own fault."""
        try:
            candidate = _built(self._default, schedule)
            if candidate.code.payload in self.seen:
                return False
            self.seen.add(candidate.code.payload)
            verify_kernel(candidate.optimized.kernel)
            procedure = candidate.load()
            if self._trials.outcome(procedure) != self._wanted:
                self.notes.append(f"tune: {schedule}: other results, dropped")
                return False
            gain = self._gain(procedure)
        except Exception as error:
            self.notes.append(f"tune: {schedule}: {type(error).__name__}, dropped")
            return False
        self.notes.append(f"tune: {schedule}: {gain:.2f} times as fast as the best until then")
        if gain > GAIN:
            self._best, self._schedule = procedure, schedule
        return gain > GAIN

    def _gain(self, procedure: Procedure) -> float:
        shortest, _ = self._trials.compare(self._best, procedure, FIRST_ROUNDS)
        if shortest < HOPELESS:
            return shortest
        return min(self._trials.compare(self._best, procedure, ROUNDS))


def _changed(schedule: Schedule, caps: Caps) -> Iterator[Schedule]:
    """The schedules that differ in one thing."""
    for name in sorted(OPTIONAL):
        if name in schedule.without:
            yield replace(schedule, without=tuple(other for other in schedule.without if other != name))
        else:
            yield replace(schedule, without=(*schedule.without, name))
    sizes = dict(schedule.sizes)
    for name, factor in SIZES:
        size = max(1, int(getattr(caps, name) * factor))
        if size != sizes.get(name, getattr(caps, name)):
            yield replace(schedule, sizes=tuple({**sizes, name: size}.items()))


def _built(default: Build, schedule: Schedule) -> Build:
    code = default.code
    return build(
        default.computation, default.backend.name, threads=code.threads, schedule=schedule, opt=code.opt
    )


def _noted(program: Build, notes: Sequence[str]) -> Build:
    return replace(program, remarks=(*program.remarks, *notes))


def _key(default: Build) -> str:
    """What a choice depends on: the program as lowered, what is known of the machine, and who compiles."""
    backend = default.backend
    machine = sorted(backend.get_device(0).static_properties.items())
    compiler = (*(step.name for step in ON_LOOPS), version("llvmlite"))
    program = print_kernel(default.optimized.loops)
    return key_for(program, backend.target.caps(), default.code.threads, default.code.opt, machine, compiler)


def _recalled(key: str) -> Outcome | None:
    """The outcome of an earlier search; None if there is none that makes sense here."""
    if key in _learnt:
        return _learnt[key]
    content = recall("schedules", key)
    if content is None:
        return None
    try:
        found = json.loads(content)
        schedule = Schedule(
            tuple(map(str, found["schedule"]["without"])),
            tuple((str(name), int(size)) for name, size in found["schedule"]["sizes"]),
        )
        notes = tuple(map(str, found["notes"]))
        outcome = Outcome(schedule, notes, float(found["seconds"]), bool(found["finished"]))
    except (KeyError, TypeError, ValueError):
        return None
    known = {field.name for field in fields(Caps)}
    return outcome if all(name in known for name, _ in schedule.sizes) else None
