"""An exception in a loop whose iterations else need nothing of one another is raised after it, so that
threads may share the loop.

    for i in sequential(0, 1000):                   fails = False
        ...                                         for i in sequential(0, 1000):
        raise_(c, ...)                   ->             ...
        y[i] = ...                                      if c:
                                                            fails = logical_or(fails, True)
                                                        else:
                                                            y[i] = ...
                                                    raise_(fails, ...)

An iteration that raises does nothing more. Those after it run as well, so that the loop must write to nothing
which is seen after an exception. It has one Raise, so it does not matter which iteration comes first.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import replace

from ...ir.dtype import BOOL
from ...ir.expr import Const, Local, Variable
from ...ir.loops import Define, Fill, For, If, LoopKind, Raise, Store, Update, walk_statements
from ...ir.ops import OPS
from ...ir.tensor import Tensor

__all__ = ["stops_after"]


def stops_after(loop: For, seen: Container[Tensor]) -> tuple[Define, For, Raise] | None:
    """The loop between what makes the variable in which it notes that an iteration raises, and the Raise;
    None if it has not one Raise, which stands in its own body, or writes to storages in `seen`."""
    if loop.kind not in (LoopKind.SEQUENTIAL, LoopKind.PARALLEL):
        return None
    inside = list(walk_statements(loop.body))
    raises = [stmt for stmt in inside if isinstance(stmt, Raise)]
    place = next((place for place, stmt in enumerate(loop.body) if isinstance(stmt, Raise)), None)
    written = (stmt.tensor.storage for stmt in inside if isinstance(stmt, (Store, Fill)))
    if len(raises) != 1 or place is None or any(storage in seen for storage in written):
        return None
    (stop,) = raises
    fails = Variable("fails", BOOL)
    note = Update(fails, Const(True, BOOL), OPS["logical_or"])
    body = (*loop.body[:place], If(stop.condition, (note,), loop.body[place + 1 :], seldom=True))
    raised = replace(stop, condition=Local(fails))
    return Define(fails, Const(False, BOOL)), replace(loop, body=body), raised
