"""What is timed: a task is a computation, an entry how one of the compilers does it, a suite many tasks."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..frozen import frozen, frozen_by_identity
from ..profile.machine import clock

__all__ = [
    "OURS",
    "Arguments",
    "Choice",
    "Clock",
    "Entry",
    "Peer",
    "Suite",
    "Task",
]

OURS = "arrayjit"

Arguments = tuple[Any, ...]
Clock = Callable[[], float]


@frozen_by_identity
class Task:
    """What is computed: `function` is the program in plain NumPy, `make` draws its arguments, the same ones
    at every call.

    `program` is the one that arrayjit compiles, where it had to be changed for that. A result may differ
    from NumPy's by `tolerance`, a fraction of its largest number. What an `idempotent` program has written
    may be its arguments again. Only `peers` have an entry, if they are named. With a `target` everything is
    computed there, on arguments in its memory, else by the processor.
    """

    suite: str
    name: str
    size: str
    dtype: str
    function: Callable[..., Any]
    make: Callable[[], Arguments]
    tolerance: float
    program: Callable[..., Any] | None = None
    idempotent: bool = False
    peers: tuple[str, ...] = ()
    target: str = ""

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What tells it from all others."""
        return self.suite, self.name, self.size, self.dtype


@frozen_by_identity
class Entry:
    """How a compiler does a task: `start(*arguments)` makes what is called, and has time for buffers.

    `place` makes arguments of the compiler's own from NumPy's, untimed. A `pure` entry does not write to its
    arguments, but returns what has become of those that the task writes to, after what else it returns.
    One that adds the numbers of an array one after another, `in_order`, may differ by what that costs.
    `fetch` makes an array of NumPy's own of each array and number that the entry has returned or written.
    """

    start: Callable[..., Callable[..., Any]]
    place: Callable[[Arguments], Arguments] = copy.deepcopy
    pure: bool = False
    in_order: bool = False
    fetch: Callable[[Any], Any] = np.array


Peer = Callable[[Task, tuple[int, ...]], "Entry | None"]
"""The entry of a compiler in a task, if it has one; the task writes to those of its arguments."""


@frozen
class Choice:
    """Which tasks of a suite: the dtypes and sizes that are named, or the suite's own; `quick` for a few, and
    `tiny` ones for a target that is simulated."""

    dtypes: tuple[str, ...] = ()
    sizes: tuple[str, ...] = ()
    quick: bool = False
    tiny: bool = False


@frozen_by_identity
class Suite:
    """Many tasks: `what` says what is timed, in a sentence. `clock` is for so many threads. Suites about
    something else than loops are not `threaded`: they are timed on one thread, and what their loops do is
    not counted. `targets` are where they can be timed: "" is the processor."""

    name: str
    what: str
    tasks: Callable[[Choice], Iterator[Task]]
    threaded: bool = True
    clock: Callable[[int], Clock] = clock
    targets: tuple[str, ...] = ("",)
