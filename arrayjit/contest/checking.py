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

__all__ = ["difference", "reference", "tried", "verdict"]

Array = npt.NDArray[Any]


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
    return np.array_equal(one, other, equal_nan=one.dtype.kind in "fc")


def tried(
    task: Task,
    entry: Entry,
    arguments: Arguments,
    written: tuple[int, ...],
    wanted: list[Array],
    now: Clock,
) -> tuple[Time, Callable[..., Any]]:
    """The first call: its time, or what is wrong with it; and what is called from then on."""
    placed = entry.place(arguments)
    begin = now()
    try:
        call = entry.start(*placed)
        returned = call(*placed)
    except Exception as refusal:
        lines = str(refusal).strip().splitlines()
        return Time(error=f"{type(refusal).__name__}: {lines[0] if lines else ''}"), refused
    first = now() - begin
    after = () if entry.pure else (np.asarray(placed[k]) for k in written)
    apart = distance([*leaves(returned), *after], wanted)
    if apart <= task.tolerance:
        return Time(first, difference=apart), call
    return Time(first, error=f"differs by {apart:.0e}, more than {task.tolerance:g}"), call


def refused(*arguments: Any) -> Any:
    raise AssertionError("an entry that has failed is not called again")


def leaves(returned: Any) -> Iterator[Array]:
    """The arrays and numbers that a call returns, copied, since a next call may use their memory."""
    if isinstance(returned, Mapping):
        returned = tuple(returned.values())
    if isinstance(returned, (tuple, list)):
        for part in returned:
            yield from leaves(part)
    elif returned is not None:
        yield np.array(returned)


def distance(got: list[Array], wanted: list[Array]) -> float:
    """How far results are from NumPy's, whatever their dtypes."""
    if len(got) != len(wanted):
        return math.inf
    return difference(tuple(map(np.ndarray.astype, got, (one.dtype for one in wanted))), tuple(wanted))


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
    apart = ~((ours == theirs) | (np.isnan(ours) & np.isnan(theirs)))
    if not apart.any():
        return 0.0
    largest = np.max(np.abs(theirs), where=np.isfinite(theirs), initial=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        worst = np.max(np.abs(ours[apart] - theirs[apart])) / largest
    return float(worst) if np.isfinite(worst) else math.inf
