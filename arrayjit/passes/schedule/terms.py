"""What a loop adds up, noted term by term and added after it, so that threads may share the loop.

    for i in sequential(0, 1000):                   for i in sequential(0, 1000):
        for l in vector(0, 32, lanes=32):               for l in vector(0, 32, lanes=32):
            t = ...                                         t = ...
            s = add(s, t)                ->                 terms[i, l] = t
                                                    for i in sequential(0, 1000):
                                                        for l in vector(0, 32, lanes=32):
                                                            s = add(s, terms[i, l])

Every number is added to the same number as before.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import field, replace

from ...frozen import slotted
from ...ir.code import Caps
from ...ir.expr import Load, Variable
from ...ir.index import Affine, Symbol
from ...ir.loops import For, Stmt, Store, Update, walk_statements
from ...ir.tensor import Tensor
from ...ir.walk import locals_read
from ..analysis.access import Range
from ..analysis.carriers import carriers
from ..analysis.copies import copy_body
from ..analysis.private import is_private
from ..analysis.trips import enter
from ..analysis.work import work
from .partials import Parts

__all__ = ["terms_of"]

LITTLE = 1 / 16
"""Of the work, so much at most is left for one thread."""


def terms_of(loop: For, sums: Collection[Variable], caps: Caps) -> Parts | None:
    """A loop that adds to `sums` in two, the making of terms and their addition; None if threads would gain
    nothing by that."""
    if caps.threads == 1 or not _only_adds(loop, sums) or _work(loop) < 2 * caps.thread_work:
        return None
    noting = _Noting(frozenset(sums))
    making, rest = noting.loop(loop, ())
    if _work(rest) > LITTLE * _work(loop) or not _is_independent(making):
        return None
    (after,) = copy_body((rest,), {}, {})
    assert isinstance(after, For)
    return Parts(making, after, tuple(noting.tensors))


def _only_adds(loop: For, sums: Collection[Variable]) -> bool:
    """Does an iteration not look at the sums, and round a term before it is added?"""
    inside = list(walk_statements(loop.body))
    added = [stmt for stmt in inside if isinstance(stmt, Update) and stmt.variable in sums]
    is_rounded = all(stmt.accum is not None and not stmt.contract for stmt in added)
    return is_rounded and not set(sums).intersection(locals_read(inside))


def _work(loop: For) -> float:
    """What is known of it: numbers of the run count as one."""
    own = {stmt.symbol for stmt in walk_statements((loop,)) if isinstance(stmt, For)}
    return sum(work((loop,), own, {}).values())


def _is_independent(loop: For) -> bool:
    """Do iterations need nothing of one another, and add to no sum, but have memory of their own?"""
    ranges: dict[Symbol, Range] = {}
    enter(loop, ranges)
    found = carriers(loop, ranges)
    return found is not None and all(is_private(tensor, loop.body) for tensor in found)


@slotted
class _Noting:
    """The terms of `sums`: an array for each statement that adds one."""

    sums: frozenset[Variable]
    tensors: list[Tensor] = field(default_factory=list)

    def loop(self, loop: For, around: tuple[For, ...]) -> tuple[For, For]:
        """The loop noting its terms, and the loop that only adds them."""
        making: list[Stmt] = []
        rest: list[Stmt] = []
        around = (*around, loop)
        for stmt in loop.body:
            match stmt:
                case Update(variable=variable, value=value) if variable in self.sums:
                    shape = tuple(Affine.of(each.trips or 0) for each in around)
                    index = tuple(Affine.of(each.symbol) - each.lo for each in around)
                    tensor = Tensor(f"{variable.hint}_terms", shape, variable.dtype)
                    self.tensors.append(tensor)
                    making.append(Store(tensor, index, value))
                    rest.append(replace(stmt, value=Load(tensor, index)))
                case For(trips=int(), step=1) if self.are_in(stmt):
                    inner, after = self.loop(stmt, around)
                    making.append(inner)
                    rest.append(after)
                case _:
                    making.append(stmt)
        return replace(loop, body=tuple(making)), replace(loop, body=tuple(rest))

    def are_in(self, loop: For) -> bool:
        return any(
            isinstance(stmt, Update) and stmt.variable in self.sums for stmt in walk_statements(loop.body)
        )
