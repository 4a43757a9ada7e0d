"""The places of the first cells of the order, in order, found without putting all in order.

    least[j] = min(x[j::side]) for j in range(side)      at least twice as many as are wanted
    bound = the one of `least` that comes last among as many as are wanted
    places = those of the cells that are no greater, in a row: mostly few more
    if there are too many of these:
        bound = the cell that is the last one wanted, found as in `selection`
        places = those of lesser cells, then those of equal ones, as many as are wanted in all
    ranks[i] = how many of x[places] come before x[places[i]]
    found[ranks] = places

Of equal cells those come first that stand first.
"""

from __future__ import annotations

from collections.abc import Callable

from ...ir.assign import Branch
from ...ir.conditions import both, compare, either, one_of
from ...ir.dtype import I64, DType
from ...ir.expr import Apply, Cast, Const, Expr, Index
from ...ir.index import Affine
from ...ir.ops import op
from ..indices.gathering import gather
from ..record.trace import Trace, current_trace, user_location
from ..record.view import View
from .selection import Search, last_key

__all__ = ["leading_places", "work_of_leading"]

_ZERO = Const(0, I64)
_MOST = 64
"""More cells are not put in order by comparing each with each."""
_GROUP = 32
"""Cells side by side: whole vectors of every machine."""


def work_of_leading(cells: int, wanted: int) -> float:
    """The cycles that it takes to find so many leading cells of a row, roughly."""
    if wanted > _MOST or cells < 2 * _beside(wanted):
        return float("inf")
    return 200 + 2 * cells + 45 * wanted + 2 * wanted * wanted


def leading_places(
    count: Affine, extent: int, dtype: DType, key: Callable[[Affine, Affine], Expr], wanted: int
) -> View:
    """For each of `count` rows of so many cells, whose keys of the type are `key(row, place)`, the places of
    as many as are wanted, in order."""
    trace = current_trace()
    found = trace.window((count, wanted), I64, "leading")
    with trace.loop(0, count) as row:
        cells = trace.compute((extent,), dtype, lambda at: key(row, at[0]), label="keys")
        places = trace.window((extent,), I64, "places")
        many = trace.compute((), I64, lambda _: _ZERO, label="many")
        _append(trace, cells, "less_equal", _bound(trace, cells, wanted), places, many)
        _leave_out(trace, cells, places, many, wanted)
        ranked = _ranked(trace, cells, places, many, _beside(wanted))
        trace.store(found.part(row), ranked.load)
    return found


def _beside(wanted: int) -> int:
    """In how many parts of a row the least cells are found side by side; more cells than that need not be
    ranked."""
    return -(-2 * wanted // _GROUP) * _GROUP


def _bound(trace: Trace, cells: View, wanted: int) -> View:
    """A key that at least as many cells as are wanted are not greater than, and few more: of the least keys,
    of which equal ones count once."""
    dtype, (extent,), side = cells.tensor.dtype, cells.shape, _beside(wanted)
    last = Const(last_key(dtype), dtype)

    def beside(at: tuple[Affine, ...]) -> Expr:
        return cells.load((at[1] * side + at[0],))

    def above(at: tuple[Affine, ...]) -> Expr:
        key = least.load(at)
        return one_of(compare("greater", key, bound.load(())), key, last)

    over = (extent.constant // side,)
    least = trace.compute((side,), dtype, beside, over=over, accum=op("minimum"), initial=last, label="least")
    bound = trace.compute(
        (), dtype, least.load, over=(side,), accum=op("minimum"), initial=last, label="bound"
    )
    with trace.loop(1, wanted):
        trace.store(bound, above, over=(side,), accum=op("minimum"), initial=last)
    return bound


def _append(trace: Trace, cells: View, name: str, bound: View, places: View, many: View) -> None:
    """Put the places of the cells that compare so with the bound behind those that are there."""
    (extent,) = cells.shape
    with trace.loop(0, extent) as at:
        place = trace.bind(many.load(()), 0, extent.constant)
        trace.store(places.remap((), (), (place,)), lambda _: Index(at))
        kept = Cast(compare(name, cells.load((at,)), bound.load(())), I64)
        trace.store(many, lambda _: Apply(op("add"), (many.load(()), kept), I64))


def _leave_out(trace: Trace, cells: View, places: View, many: View, wanted: int) -> None:
    """Where there are too many, find those that are wanted alone."""
    are_few = compare("less_equal", many.load(()), Const(_beside(wanted), I64))
    trace.begin()
    search = Search(trace, cells, Const(wanted - 1, I64))
    trace.store(many, lambda _: _ZERO)
    for name in ("less", "equal"):
        _append(trace, cells, name, search.key, places, many)
    trace.store(many, lambda _: Const(wanted, I64))
    trace.emit(Branch(are_few, (), trace.end(), user_location()))


def _ranked(trace: Trace, cells: View, places: View, number: View, most: int) -> View:
    """The places, `most` at most, where they belong in the order of their cells."""
    dtype = cells.tensor.dtype
    last = Const(last_key(dtype), dtype)
    many = trace.bind(number.load(()), 0, most + 1)
    those = trace.compute((most,), dtype, lambda _: last, label="candidates")
    with trace.loop(0, many) as at:
        trace.store(those.remap((), (), (at,)), lambda _: gather(cells, [places.load((at,))]))

    def is_before(at: tuple[Affine, ...]) -> Expr:
        own, key = those.load(at[:1]), those.load(at[1:])
        is_equal = both(compare("equal", key, own), compare("less", Index(at[1]), Index(at[0])))
        return Cast(either(compare("less", key, own), is_equal), I64)

    ranks = trace.compute(
        (most,), I64, is_before, over=(many,), accum=op("add"), initial=_ZERO, label="ranks"
    )
    ranked = trace.window((most,), I64, "ranked")
    with trace.loop(0, many) as at:
        target = ranked.remap((), (), (trace.bind(ranks.load((at,)), 0, most),))
        trace.store(target, lambda _: places.load((at,)))
    return ranked
