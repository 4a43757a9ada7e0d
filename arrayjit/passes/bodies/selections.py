"""Loops that put what a mask selects in a row, one after the other.

    reached = 0
    for i in sequential(0, 9000):
        n = reached
        selected[n] = i
        reached = reached + cast(x[i] == k)

Each iteration writes a cell; where the mask does not hold, the next one writes it again. If nobody looks at
the cell after the last that was selected, iterations for which the mask does not hold can be left out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from ...frozen import frozen
from ...ir.dtype import BOOL
from ...ir.expr import Apply, Cast, Const, Expr, Local, Variable, dtype_of
from ...ir.index import Affine
from ...ir.loops import Bind, Define, For, LoopKind, Stmt, Store, Update, walk_statements
from ...ir.ops import OPS
from ..analysis.uses import Use
from ..analysis.values import definitions

__all__ = ["Selection", "selection_of", "starts_at_zero"]


@frozen
class Selection:
    """A loop that writes `store` where the condition holds, and counts in `reached`."""

    loop: For
    store: Store
    reached: Variable
    condition: Expr

    def is_read_as_far(self, rounds: For, counts: Collection[Variable], uses: Sequence[Use]) -> bool:
        """Does a round look only at what it has selected? `counts` count what this selects, and perhaps not
        all of it yet; `uses` are all uses of the cells."""
        if not starts_at_zero(self.reached, rounds.body):
            return False
        known = definitions(rounds.body)
        ends: set[Affine] = set()
        for stmt in walk_statements(rounds.body):
            if isinstance(stmt, Bind):
                value = stmt.value
                while isinstance(value, Local) and value.variable in known:
                    value = known[value.variable].value
                if isinstance(value, Local) and value.variable in counts:
                    ends.add(Affine.of(stmt.symbol))
        written = [use.at for use in uses if use.stmt is self.store]
        return all(use.writes or (use.at > max(written) and _is_below(use, ends)) for use in uses)


def selection_of(loop: For) -> Selection | None:
    """What a loop selects; None if it does anything else."""
    if loop.kind is not LoopKind.SEQUENTIAL or loop.step != 1 or not loop.lo.is_constant or not loop.trips:
        return None
    match loop.body:
        case (
            Bind(symbol=place, value=Local(variable=reached)),
            Store(index=(index,), accum=None) as store,
            Update(
                variable=variable,
                value=Apply(op=op, args=(Local(variable=before), Cast(arg=condition))),
                accum=None,
            ),
        ) if op is OPS["add"] and variable is before is reached and index == Affine.of(place):
            return Selection(loop, store, reached, condition) if dtype_of(condition) is BOOL else None
        case _:
            return None


def starts_at_zero(variable: Variable, body: Iterable[Stmt]) -> bool:
    """Is a variable zero when its only update in a body begins?"""
    inside = list(walk_statements(tuple(body)))
    starts = [stmt.value for stmt in inside if isinstance(stmt, Define) and stmt.variable is variable]
    updates = [stmt for stmt in inside if isinstance(stmt, Update) and stmt.variable is variable]
    return starts == [Const(0, variable.dtype)] and len(updates) == 1


def _is_below(use: Use, ends: Collection[Affine]) -> bool:
    """Is a cell looked at by a loop that goes from the first to one of the ends?"""
    loops = [frame.loop for frame in use.path if frame.loop is not None]
    return any(
        use.index == (Affine.of(loop.symbol),)
        and loop.lo == Affine.of(0)
        and loop.hi in ends
        and loop.step == 1
        for loop in loops
    )
