"""Jitted functions in pickles: by name, as functions are, or by value where functions are taken so.

Python's own pickler takes a function by its name. cloudpickle, which joblib and dask use, takes by value what
other processes may not find: functions of the script that runs, and those that were made in others.
"""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

__all__ = ["is_taken_by_value"]


def is_taken_by_value(jitted: Any, function: Any, caller: FrameType) -> bool:
    """Whether the pickler whose frame is `caller` should have `jitted`, made from `function`, by value: it
    has a way of its own with functions, and no name that other processes know leads to this one."""
    pickler = type(caller.f_locals.get("self"))
    return hasattr(pickler, "reducer_override") and not _is_found_by_name(jitted, function)


def _is_found_by_name(jitted: Any, function: Any) -> bool:
    module = getattr(function, "__module__", "__main__")
    found: Any = None if module == "__main__" else sys.modules.get(module)
    for part in getattr(function, "__qualname__", "").split("."):
        found = getattr(found, part, None)
    return found is jitted
