"""Generators given to `any` and `all`, which ask no further than to the first item that decides.

Which of traced items that is, is known only when the compiled function runs. So all of them are asked, and an
item must do nothing besides: not write into arrays or containers, nor bind names.
"""

from __future__ import annotations

import dis
from collections.abc import Callable
from types import GeneratorType
from typing import Any

from ...errors import UnsupportedError
from ...ir.assign import Assign, statements
from ..loops.comprehensions import listed
from ..loops.places import Places
from ..loops.states import rebound
from ..record.scopes import Mark
from ..record.trace import Trace, current_trace

__all__ = ["asked"]

_BINDING = ("STORE_DEREF", "STORE_GLOBAL", "STORE_NAME")


def asked(
    generator: GeneratorType[Any, Any, Any], name: str, decides: Callable[[Any], bool | None]
) -> list[Any]:
    """The items that `name`, which is `any` or `all`, asks for: up to the first one of which it is known that
    it `decides`, which is None where it is not known whether."""
    frame = generator.gi_frame
    if frame is None:
        return []
    trace, code = current_trace(), generator.gi_code
    places = Places({name: value for name, value in frame.f_locals.items() if name != ".0"})
    before, mark, done = places.read(), trace.mark(), len(trace.statements)
    items = listed(generator, decides)
    if any(decides(item) is None for item in items[:-1]):
        changes = [f"changes {place}" for place in rebound(before, places.read())]
        if _writes(trace, mark, done):
            changes.append("writes into an array")
        if any(instruction.opname in _BINDING for instruction in dis.get_instructions(code)):
            changes.append("binds a name")
        if changes:
            raise UnsupportedError(
                f"a generator given to {name} {changes[0]}, and which of its items are asked for is known "
                "only when the compiled function runs",
                fix=f"do that in a loop of its own, and have {name} only ask",
            )
    return items


def _writes(trace: Trace, mark: Mark, done: int) -> bool:
    """Whether arrays from before the mark are written by the statements behind those that were done then."""
    made = statements(tuple(trace.statements[done:]))
    return any(isinstance(one, Assign) and not trace.is_new(one.into.storage, mark) for one in made)
