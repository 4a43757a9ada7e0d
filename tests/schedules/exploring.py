"""One schedule on the lazy devices, from its seed; and what the checker says of it."""

from __future__ import annotations

from typing import Union

from budget import examples
from lazy import ORDERS, Explorer, LazyDriver
from walks import Walk

from arrayjit.runtime.device import Machine

__all__ = ["explore", "fault", "seeds"]

STEPS = 20


def explore(seed: int, *, faults: bool = False, removed: Union[int, None] = None) -> Explorer:
    """Run a schedule. Raises AssertionError for whatever is not as it must be."""
    orders = tuple(ORDERS.values())
    explorer = Explorer(seed, orders[seed % len(orders)], restlessness=seed % 3 * 0.3, removed=removed)
    machine = Machine(lambda: LazyDriver(explorer, capacity=4 if seed % 5 == 0 else 1000))
    walk = Walk(seed, machine, lambda program: program.lazy, explorer, faults)
    try:
        walk.run(STEPS)
    except AssertionError as error:
        raise type(error)("\n".join((str(error), f"schedule {seed}:", *walk.sides.log))) from error
    return explorer


def fault(seed: int, removed: Union[int, None] = None) -> str:
    """What is wrong with a schedule; "" if nothing is."""
    try:
        explore(seed, removed=removed)
    except AssertionError as error:
        return str(error)
    return ""


def seeds(count: int, chunk: int = 0) -> range:
    """The seeds of a chunk of so many schedules: always the same, unless the budget was raised."""
    budget = examples(count)
    first = chunk * budget.max_examples
    return range(first, first + budget.max_examples)
