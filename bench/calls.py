"""What does a call cost? `python bench/calls.py [--calls N] [--endurance N]` beside NumPy, Numba and JAX.

Statements on arrays of 16 float32, in turn, in one process; a number is the median over rounds of the mean of
so many runs, in processor time of the calling thread (JAX may use others, which is in its favour), and so is
the share of NumPy's time. Nanoseconds have to be kept in the best round, since whatever else runs can only
add to them. Peers that are not installed are left out. Then what it costs to compile a new small function in
a process that has compiled others, without files. `--endurance` makes so many calls and shows what they
changed: references to what they work on, and the process's memory.
"""

from __future__ import annotations

import argparse
import gc
import os
import statistics
import sys
import time
import timeit
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import arrayjit

ROUNDS = 25
WARM = 100
NEW = 12
COLD_MILLISECONDS = 40
UNCERTAIN = 5
"""References to `None` come and go with everything that runs."""
NAMES = ("arrayjit", "numpy", "numba", "jax")

Call = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Task:
    """The statement that NumPy runs, and the call `f(...)` of a function that does the same. It may take
    `most` of NumPy's time, and `nanoseconds` at most."""

    numpy: str
    call: str
    function: Call
    peers: tuple[str, ...] = ("numba", "jax")
    most: float | None = None
    nanoseconds: float | None = None


def added(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a + b


def added_into(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> np.ndarray:
    np.add(a, b, out)
    return out


def scaled(a: np.ndarray, factor: float) -> np.ndarray:
    return a * factor


def total(a: np.ndarray) -> Any:
    return a.sum()


def ends(leaves: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    first, *_, last = leaves.values()
    return first + last, first - last


def hypotenuse(number: float) -> Call:
    return lambda a, b: np.sqrt(a * a + b * b) * number


TASKS = (
    Task("a + b", "f(a, b)", added, most=0.5),
    Task("np.add(a, b, out)", "f(a, b, out)", added_into, ("numba",), most=0.35),
    Task("a * 2.5", "f(a, 2.5)", scaled),
    Task("a.sum()", "f(a)", total),
    Task("ends(leaves)", "f(leaves)", ends, (), nanoseconds=1000),
)


def arguments() -> dict[str, Any]:
    return {
        "a": np.arange(16, dtype=np.float32),
        "b": np.ones(16, np.float32),
        "out": np.empty(16, np.float32),
        "leaves": {f"weight{n}": np.full(16, n, np.float32) for n in range(20)},
    }


def timers(task: Task) -> dict[str, timeit.Timer]:
    """The statement in each of the ways that are here."""
    made: dict[str, Call] = {"arrayjit": arrayjit.jit(task.function)}
    if "numba" in task.peers and find_spec("numba"):
        made["numba"] = import_module("numba").njit(task.function)
    if "jax" in task.peers and find_spec("jax"):
        jitted = import_module("jax").jit(task.function)
        made["jax"] = lambda *given: jitted(*given).block_until_ready()
    known = {**arguments(), "np": np, "ends": ends}
    found = {
        name: timeit.Timer(task.call, "pass", time.thread_time, {**known, "f": f}) for name, f in made.items()
    }
    return {**found, "numpy": timeit.Timer(task.numpy, "pass", time.thread_time, known)}


def nanoseconds(task: Task, count: int) -> dict[str, list[float]]:
    """By way, one for each round."""
    ways = timers(task)
    times: dict[str, list[float]] = {name: [] for name in ways}
    for timer in ways.values():
        timer.timeit(WARM)
    for _ in range(ROUNDS):
        for name, timer in ways.items():
            times[name].append(timer.timeit(count) / count * 1e9)
    return times


def table(count: int) -> bool:
    """Print the times; whether all are as they should be."""
    is_fine = True
    print(f"{'nanoseconds':20}" + "".join(f"{name:>10}" for name in NAMES) + f"{'of numpy':>10}  at most")
    for task in TASKS:
        found = nanoseconds(task, count)
        pairs = zip(found["arrayjit"], found["numpy"], strict=True)
        share = statistics.median(ours / theirs for ours, theirs in pairs)
        middle = {name: statistics.median(times) for name, times in found.items()}
        cells = "".join(f"{middle[name]:10.0f}" if name in middle else f"{'-':>10}" for name in NAMES)
        limits = [f"{task.most}"] if task.most else [f"{task.nanoseconds:.0f} ns"] if task.nanoseconds else []
        print(f"{task.numpy:20}{cells}{share:10.2f}  {''.join(limits)}")
        is_fine &= task.most is None or share <= task.most
        is_fine &= task.nanoseconds is None or min(found["arrayjit"]) <= task.nanoseconds
    return is_fine


def cold() -> bool:
    """Print what the first call of a new small function costs; whether that is little."""
    given = arguments()
    took = []
    for number in range(NEW):
        f = arrayjit.jit(hypotenuse(float(number)))
        start = time.thread_time()
        f(given["a"], given["b"])
        took.append((time.thread_time() - start) * 1e3)
    print(
        f"compiled in {statistics.median(took[1:]):.1f} ms, at best {min(took[1:]):.1f}: "
        f"np.sqrt(a * a + b * b) * number, at most {COLD_MILLISECONDS}"
    )
    return min(took[1:]) <= COLD_MILLISECONDS


def resident_kilobytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4


def endurance(count: int) -> bool:
    """Print what so many calls changed; whether that is nothing."""
    known = arguments()
    functions = [arrayjit.jit(task.function) for task in TASKS]
    ways = [
        timeit.Timer(task.call, globals={**known, "f": f}) for task, f in zip(TASKS, functions, strict=True)
    ]
    watched = [*functions, *known.values(), *known["leaves"].values(), known["a"].dtype, None, float]

    def references(each: int) -> list[int]:
        for timer in ways:
            timer.timeit(each)
        gc.collect()
        return [sys.getrefcount(part) for part in watched]

    before, memory = references(10_000), resident_kilobytes()
    after = references(count // len(ways))
    drift = max(abs(new - old) for new, old in zip(after, before, strict=True))
    grown = resident_kilobytes() - memory
    print(f"{count:,} calls: references to one object {drift:+d}, memory {grown:+d} KiB")
    return drift <= UNCERTAIN and grown < 1024


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=3000)
    parser.add_argument("--endurance", type=int, default=0)
    options = parser.parse_args()
    os.environ["ARRAYJIT_CACHE_BYTES"] = "0"
    is_fine = table(options.calls) & cold()
    if options.endurance:
        is_fine &= endurance(options.endurance)
    return 0 if is_fine else 1


if __name__ == "__main__":
    sys.exit(main())
