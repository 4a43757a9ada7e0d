"""Is what an entry computes what NumPy computes?"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from ..profile.machine import clock
from .results import Time
from .tasks import Arguments, Clock, Entry, Peer, Task

__all__ = ["added_in_order", "difference", "reference", "tried", "verdict"]

Array = npt.NDArray[Any]
CERTAINTY = 8
"""A sum of a hundred million numbers is further off than that with a probability of 3e-6."""
BLOCK = 1 << 16
"""So many numbers are compared at once: what that takes stays in the caches."""


def verdict(task: Task, peer: Peer) -> str:
    """What is wrong with a peer's version of a task, "" if nothing is."""
    arguments = task.make()
    wanted, written = reference(task, arguments)
    entry = peer(task, written)
    return (
        "there is none"
        if entry is None
        else tried(task, entry, arguments, written, wanted, clock(1))[0].error
    )


def reference(task: Task, arguments: Arguments) -> tuple[list[Array], tuple[int, ...]]:
    """NumPy's results, and which arguments the task writes to."""
    after = copy.deepcopy(arguments)
    with np.errstate(all="ignore"):
        returned = task.function(*after)
    arrays = [k for k, argument in enumerate(arguments) if isinstance(argument, np.ndarray)]
    written = tuple(k for k in arrays if not _equal(arguments[k], after[k]))
    return [*leaves(returned), *(np.asarray(after[k]) for k in written)], written


def _equal(one: Array, other: Array) -> bool:
    has_nan = one.dtype.kind in "fc"
    return np.array_equal(one, other) or (has_nan and np.array_equal(one, other, equal_nan=True))


def tried(
    task: Task,
    entry: Entry,
    arguments: Arguments,
    written: tuple[int, ...],
    wanted: list[Array],
    now: Clock,
) -> tuple[Time, Callable[..., Any]]:
    """The first call: its time, or what is wrong with it; and what is called from then on."""
    try:
        placed = entry.place(arguments)
        begin = now()
        call = entry.start(*placed)
        returned = call(*placed)
    except Exception as refusal:
        lines = str(refusal).strip().splitlines()
        return Time(error=f"{type(refusal).__name__}: {lines[0] if lines else ''}"), refused
    first = now() - begin
    after = () if entry.pure else (entry.fetch(placed[k]) for k in written)
    apart = distance([*leaves(returned, entry.fetch), *after], wanted)
    allowed = max(task.tolerance, rounding(arguments) if entry.in_order else 0.0)
    if apart <= allowed:
        return Time(first, difference=apart), call
    return Time(first, error=f"differs by {apart:.0e}, more than {allowed:.0e}"), call


def rounding(arguments: Arguments) -> float:
    """What adding all numbers of the largest argument one after another costs."""
    arrays = (each for each in arguments if isinstance(each, np.ndarray) and each.dtype.kind == "f")
    return max((added_in_order(array.size, array.dtype) for array in arrays), default=0.0)


def added_in_order(count: int, dtype: np.dtype[Any]) -> float:
    """By what fraction a sum of so many positive numbers may be off, if one after another is added to it.

    Each addition rounds by a unit roundoff at most, up or down: together by `CERTAINTY` times the square root
    of their number times as much, if they round independently (Higham and Mary, "A new approach to
    probabilistic rounding error analysis", SIAM Journal on Scientific Computing 41 (5), 2019). The bound of
    the worst case, their number times as much, would let anything pass as the sum of 2**24 float32.
    """
    return CERTAINTY * math.sqrt(count) * float(np.finfo(dtype).eps) / 2


def refused(*arguments: Any) -> Any:
    raise AssertionError("an entry that has failed is not called again")


def leaves(returned: Any, fetch: Callable[[Any], Array] = np.array) -> Iterator[Array]:
    """The arrays and numbers that a call returns, copied, since a next call may use their memory."""
    if isinstance(returned, Mapping):
        returned = tuple(returned.values())
    if isinstance(returned, (tuple, list)):
        for part in returned:
            yield from leaves(part, fetch)
    elif returned is not None:
        yield fetch(returned)


def distance(got: list[Array], wanted: list[Array]) -> float:
    """How far results are from NumPy's, whatever their dtypes."""
    if len(got) != len(wanted):
        return math.inf
    alike = tuple(one.astype(other.dtype, copy=False) for one, other in zip(got, wanted, strict=True))
    return difference(alike, tuple(wanted))


def difference(got: tuple[Any, ...], wanted: tuple[Any, ...]) -> float:
    """How far results are from those wanted, as a fraction of the largest number of each of those.

    Infinite where the types, the dtypes or the shapes differ, and where integers or what is not finite do.
    """
    if len(got) != len(wanted):
        return math.inf
    return max(map(_difference, got, wanted), default=0.0)


def _difference(got: Any, wanted: Any) -> float:
    ours, theirs = np.asarray(got), np.asarray(wanted)
    if type(got) is not type(wanted) or ours.dtype != theirs.dtype or ours.shape != theirs.shape:
        return math.inf
    if ours.dtype.kind not in "fc":
        return 0.0 if np.array_equal(ours, theirs) else math.inf
    worst = largest = 0.0
    ours, theirs = ours.reshape(-1), theirs.reshape(-1)
    for begin in range(0, ours.size, BLOCK):
        part = slice(begin, begin + BLOCK)
        apart, size = _apart(ours[part], theirs[part])
        worst, largest = max(worst, apart), max(largest, size)
    return (worst / largest if largest else math.inf) if worst else 0.0


def _apart(ours: Array, theirs: Array) -> tuple[float, float]:
    """How far the numbers are from those wanted, and the largest of those."""
    largest = float(np.max(np.abs(theirs), where=np.isfinite(theirs), initial=0))
    with np.errstate(invalid="ignore"):
        differences = np.abs(ours - theirs)
    worst = float(differences.max())
    if math.isfinite(worst):
        return worst, largest
    apart = ~((ours == theirs) | (np.isnan(ours) & np.isnan(theirs)))
    worst = float(np.max(differences, where=apart, initial=0))
    return (worst if math.isfinite(worst) else math.inf), largest
