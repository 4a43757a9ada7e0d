"""Arrays of which the program reads a part of each row, and that take less to make in that part.

    order = np.argsort(x)       a first run records all of the order
    return x[order[:5]]         and its end shows that the first five places are all that is read

What is read is known when the run ends, so the trace starts again and records what makes that part. An array
is known by how many of the kind were made before it; one that is read otherwise then is made whole for good.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ...frozen import frozen_by_identity
from ...ir.assign import Assign, Check, Statement, expressions, statements
from ...ir.expr import Gather, Load
from ...ir.index import Affine, Symbol
from ...ir.tensor import Tensor
from ...ir.walk import walk
from .retrace import Retrace
from .trace import Trace
from .view import View

__all__ = ["Portion", "is_made_in_part", "made", "portion", "require_portions"]

Portion = tuple[int, int]
"""The places of a row from the first up to the second one."""


@frozen_by_identity
class _Made:
    """An array; the axis of its tensor that rows lie along, -1 where the tensor does not show it, and their
    extent; the statements that make it, and which these are; and whether to make a portion pays."""

    tensor: Tensor
    axis: int
    extent: int
    by: tuple[Statement, ...]
    own: frozenset[int]
    pays: Callable[[Portion], bool]


def portion(trace: Trace) -> Portion | None:
    """What to make of the next such array; None for all of it."""
    return trace.decisions.portions.get(len(trace.portions))


def made(trace: Trace, view: View, axis: int, start: int, pays: Callable[[Portion], bool]) -> None:
    """Note that the statements recorded in this body since it had `start` of them make an array, of which it
    may be enough to make a portion along an axis."""
    by = tuple(trace.statements[start:])
    places = [place for place, part in enumerate(view.index) if part == Affine.of(view.axes[axis])]
    along = places[0] if places and view.tensor is view.tensor.storage else -1
    ids = frozenset(id(statement) for statement in statements(by))
    trace.portions.append(_Made(view.tensor.storage, along, view.shape[axis].constant, by, ids, pays))


def is_made_in_part(trace: Trace, tensor: Tensor) -> bool:
    """Whether nothing is in some of the tensor's cells."""
    portions = trace.decisions.portions
    return any(
        each.tensor is tensor for n, each in enumerate(trace.portions) if _is_part(portions.get(n), each)
    )


def require_portions(trace: Trace, results: Sequence[View]) -> None:
    """Raise Retrace for the arrays that had better be made in part, and for those that must not be."""
    wanted: dict[int, Portion] = {}
    for number, each in enumerate(trace.portions):
        reached = _reached(each, trace, results)
        given = trace.decisions.portions.get(number)
        if given is None and reached is not None and _is_part(reached, each) and each.pays(reached):
            wanted[number] = reached
        elif _is_part(given, each) and not _holds(given, reached):
            wanted[number] = (0, each.extent)
    if wanted:
        raise Retrace(portions=wanted)


def _is_part(given: Portion | None, array: _Made) -> bool:
    return given is not None and given != (0, array.extent)


def _holds(given: Portion | None, reached: Portion | None) -> bool:
    """Whether a portion is all that is read; what nobody reads is None."""
    return reached is None or (given is not None and given[0] <= reached[0] and reached[1] <= given[1])


def _reached(array: _Made, trace: Trace, results: Sequence[View]) -> Portion | None:
    """The places of rows that are read; None if there are none."""
    whole = (0, array.extent)
    found: list[Portion] = []
    for view in (view for view in results if view.tensor.storage is array.tensor):
        extents = dict(zip(view.axes, view.shape, strict=True))
        found.append(_between(array, view.tensor, view.index, extents, trace) or whole)
    if len(found) > 1:
        return whole  # they show one another's cells
    for statement in statements(tuple(trace.statements)):
        if id(statement) in array.own:
            continue
        if isinstance(statement, Assign) and statement.into.storage is array.tensor:
            return whole
        found += (reach or whole for reach in _reads(array, statement, trace))
    if not found:
        return None
    return min(low for low, _ in found), max(high for _, high in found)


def _reads(array: _Made, statement: Statement, trace: Trace) -> Iterator[Portion | None]:
    extents = dict(statement.loops) if isinstance(statement, (Assign, Check)) else {}
    for expression in expressions(statement):
        for node in walk(expression):
            if isinstance(node, Load) and node.tensor.storage is array.tensor:
                yield _between(array, node.tensor, node.index, extents, trace)
            elif isinstance(node, Gather) and node.tensor.storage is array.tensor:
                yield None


def _between(
    array: _Made, tensor: Tensor, index: Sequence[Affine], extents: dict[Symbol, Affine], trace: Trace
) -> Portion | None:
    """Between which places of rows an index lies; None where that is not known."""
    if tensor is not array.tensor or array.axis < 0:
        return None
    low = high = index[array.axis]
    for coefficient, symbol in low.terms:
        if symbol in extents:
            last = extents[symbol] - 1
            low = low.substitute({symbol: last if coefficient < 0 else Affine.of(0)})
            high = high.substitute({symbol: Affine.of(0) if coefficient < 0 else last})
    least, most = trace.limits.least(low), trace.limits.most(high)
    if least is None or most is None or not 0 <= least <= most < array.extent:
        return None
    return least, most + 1
