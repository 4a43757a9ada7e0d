"""Jitted functions in pickles: by name, as functions are, or by value where functions are taken so.

Python's own pickler takes a function by its name. Where that leads to the plain function, as after
`fast = jit(slow)`, it takes this one, and what `jit` was told. cloudpickle, which joblib and dask use, takes
by value what other processes may not find: functions of the script that runs, and those that were made in
others.
"""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

__all__ = ["is_made_from_named", "is_taken_by_value"]


def is_taken_by_value(jitted: Any, function: Any, caller: FrameType) -> bool:
    """Whether the pickler whose frame is `caller` should have `jitted`, made from `function`, by value: it
    has a way of its own with functions, and no name that other processes know leads to this one."""
    pickler = type(caller.f_locals.get("self"))
    if not hasattr(pickler, "reducer_override"):
        return False
    return _module_of(function) == "__main__" or _found_by_name(function) is not jitted


def is_made_from_named(function: Any) -> bool:
    """Whether the name of the plain function leads to it, not to what was made from it."""
    return _found_by_name(function) is function


def _module_of(function: Any) -> str:
    return getattr(function, "__module__", None) or "__main__"


def _found_by_name(function: Any) -> Any:
    found: Any = sys.modules.get(_module_of(function))
    for part in getattr(function, "__qualname__", "").split("."):
        found = getattr(found, part, None)
    return found
