"""Runs the passes of the table over a computation: timed, optionally verified and dumped after each.

A pass that fails is our fault: the failure becomes a `CompilerBug` that names the pass, and when dumps
are on, the program that it was given is written next to them as a reproducer.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any, TypeVar, Union

from ..errors import CompilerBug, UnsupportedError, is_ours
from ..frozen import frozen, slotted
from ..ir.assign import Computation
from ..ir.code import DEFAULT_SCHEDULE, Caps, Schedule
from ..ir.loops import Kernel
from ..ir.text import print_computation, print_kernel
from ..ir.verify import verify_computation, verify_kernel
from ..timeline import note
from .pipeline import LOWERING, ON_ASSIGNMENTS, ON_LOOPS, OPTIONAL
from .table import Pass

__all__ = ["Dump", "Optimized", "Program", "Watch", "optimize"]

Program = Union[Computation, Kernel]
Dump = Callable[[str, str], str]
"""Keeps the text of a stage, given with the stage's name, and says where."""

Watch = Callable[[Pass[Any, Any], Program, Program, Caps], None]
"""Is shown each pass, the program before and after it, and what it knows of the machine."""

Before = TypeVar("Before", Computation, Kernel)
After = TypeVar("After", Computation, Kernel)


@frozen
class Optimized:
    """A computation on its way through the passes: after those on assignments, right after lowering
    (`loops`), and at the end (`kernel`). `seconds` has each pass's time, `notes` the decisions."""

    computation: Computation
    loops: Kernel
    kernel: Kernel
    seconds: Mapping[str, float]
    notes: tuple[str, ...]


def optimize(
    computation: Computation,
    caps: Caps,
    schedule: Schedule = DEFAULT_SCHEDULE,
    *,
    verify: bool = False,
    dump: Dump | None = None,
    watch: Watch | None = None,
) -> Optimized:
    """Run every pass but those that the schedule leaves out. Raises CompilerBug."""
    caps = schedule.seen_on(caps)
    run = _Run(caps, verify, dump, watch)
    left_out = OPTIONAL.intersection(schedule.without)
    for on_assignments in ON_ASSIGNMENTS:
        if on_assignments.name not in left_out and on_assignments.suits(caps):
            computation = run.apply(on_assignments, computation)
    loops = run.apply(LOWERING, computation)
    kernel = loops
    for on_loops in ON_LOOPS:
        if on_loops.name not in left_out and on_loops.suits(caps):
            kernel = run.apply(on_loops, kernel)
    return Optimized(computation, loops, kernel, run.seconds, kernel.notes)


@slotted
class _Run:
    """One way through the passes, each timed, and verified or dumped if somebody wants that."""

    caps: Caps
    verify: bool
    dump: Dump | None
    watch: Watch | None
    seconds: dict[str, float] = field(default_factory=dict)

    def apply(self, step: Pass[Before, After], program: Before) -> After:
        start = time.perf_counter()
        try:
            result = step.run(program, self.caps)
            self.seconds[step.name] = self.seconds.get(step.name, 0.0) + time.perf_counter() - start
            note(step.name, "pass", start)
            if self.verify and result is not program:
                _verify(result)
        except Exception as error:
            if isinstance(error, UnsupportedError) or not is_ours(error):
                raise
            raise self.bug(step.name, program, error) from error
        if self.dump is not None:
            self.dump(step.name, _text(result))
        if self.watch is not None:
            self.watch(step, program, result, self.caps)
        return result

    def bug(self, name: str, program: Program, error: Exception) -> CompilerBug:
        """The failure of the pass `name` on `program`; its reproducer is among the dumps."""
        reproducer = ""
        if self.dump is not None:
            text = f"{_text(program)}\n# {_commented(traceback.format_exc())}\n"
            reproducer = self.dump(f"{name}-failed", text)
        return CompilerBug(f"{type(error).__name__}: {error}", stage=name, reproducer=reproducer)


def _verify(program: Program) -> None:
    match program:
        case Computation():
            verify_computation(program)
        case Kernel():
            verify_kernel(program)


def _text(program: Program) -> str:
    match program:
        case Computation():
            return print_computation(program)
        case Kernel():
            return print_kernel(program)


def _commented(text: str) -> str:
    return text.strip().replace("\n", "\n# ")
