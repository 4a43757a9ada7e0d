"""Objects of the user's classes as loops take them apart.

    y = State(x, 0.0)                        y.x, y.t are carried,
    for _ in range(100):             =>      and y is a new State of them
        y = step(y)                          in each iteration

Such an object is its attributes, as a dataclass is its fields, if Python alone says how it lies in memory
and its attributes do not lead back to it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

from ..record.state import attributes_of
from ..record.tree import Opened, Static, layout_of
from ..record.tree import opened as opened_container

__all__ = ["opened"]

_DEEPEST = 8
"""Objects that hold objects, more than so many in each other, stay whole, as linked lists do."""


def opened(value: Any) -> Opened:
    """How a value is taken apart that a loop hands on."""
    inner = opened_container(value)
    if not isinstance(inner, Static):
        return inner
    held = _parts(value)
    return (type(value), tuple(held), tuple(held.values())) if held and _ends(held.values(), 1) else inner


def _parts(value: Any) -> dict[str, Any]:
    """The attributes of an object of a class of the user's; none of anything else."""
    kind = type(value)
    home = kind.__module__.partition(".")[0]
    if layout_of(kind) is not object or hasattr(kind, "__next__") or isinstance(value, type):
        return {}
    return {} if home == __name__.partition(".")[0] or home in _LIBRARY else attributes_of(value)


_LIBRARY = sys.stdlib_module_names - {"__main__"}


def _ends(parts: Iterable[Any], depth: int) -> bool:
    """Whether no object in these lies deeper than `_DEEPEST`, as one that leads back to itself would."""
    for part in parts:
        inner = opened_container(part)
        inside = _parts(part).values() if isinstance(inner, Static) else inner[2]
        if inside and (depth == _DEEPEST or not _ends(inside, depth + 1)):
            return False
    return True
