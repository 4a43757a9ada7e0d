"""confine: products that a condition on their row and column chooses are formed where it holds alone.

    for i in parallel(0, 80):                           for i in parallel(0, 80):
        for j in parallel(0, 80):                           for j in parallel(0, i + 1):
            p = 0.0                                             p = 0.0
            for k in parallel(0, 64):                           for k in parallel(0, 64):
                p = fma(a[i, k], b[j, k], p)        ->              p = fma(a[i, k], b[j, k], p)
            c[i, j] = where(j <= i, p, -inf)                    c[i, j] = p
                                                        for i in parallel(0, 80):
                                                            for j in parallel(i + 1, 80):
                                                                c[i, j] = -inf

So are the scores of attention by those before, of which half are masked, and products of which a triangle is
taken. What else is stored must be a constant, and each row must be cut within its ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from ...frozen import frozen
from ...ir.expr import Apply, Const, Expr, Index, Load
from ...ir.index import Affine, Symbol
from ...ir.loops import Define, For, Stmt, Store, Update, nested, walk_statements
from ...ir.walk import nodes_in
from ..analysis.access import Range
from ..analysis.copies import copy_body
from ..analysis.loopwise import Site, loopwise
from ..analysis.strides import parallel_nest
from ..analysis.trips import enter

__all__ = ["confine"]


@loopwise
def confine(nest: For, site: Site) -> Iterable[Stmt] | None:
    """Every such nest as one over the cells that have products, and one over the others."""
    loops = parallel_nest(nest)
    chosen = _Chosen.of(loops[-1]) if len(loops) > 1 else None
    cut = None if chosen is None else _cut(chosen.holds, loops)
    if chosen is None or cut is None:
        return None
    site.notes.append(f"confine: {chosen.store.tensor.label} has products where its positions ask for them")
    columns, rest = loops[-1], (replace(chosen.store, value=chosen.otherwise),)
    before, after = replace(columns, hi=cut), replace(columns, lo=cut)
    first, second = (before, after) if chosen.holds.coefficient(columns.symbol) < 0 else (after, before)
    return (
        *nested((*loops[:-1], first), chosen.body),
        *copy_body(nested((*loops[:-1], second), rest), {}, {}),
    )


@frozen
class _Chosen:
    """What stores a product in a column or something else: the product is stored by `body` where `holds` is
    not negative, and `otherwise` by the `store` where it is."""

    holds: Affine
    body: tuple[Stmt, ...]
    otherwise: Expr
    store: Store

    @staticmethod
    def of(columns: For) -> _Chosen | None:
        *before, store = columns.body
        match store:
            case Store(value=Apply(op=op, args=(condition, value, Const() as other))) if op.name == "where":
                holds = _positions(condition)
            case _:
                return None
        inside = list(walk_statements(tuple(before)))
        sums = any(isinstance(stmt, Update) and stmt.contract for stmt in inside)
        pure = all(isinstance(stmt, (Define, For, Update)) for stmt in inside)
        storage = store.tensor.storage
        nodes = nodes_in(inside)
        again = any(isinstance(node, Load) and node.tensor.storage is storage for node in nodes)
        if holds is None or abs(holds.coefficient(columns.symbol)) != 1 or not sums or not pure or again:
            return None
        return _Chosen(holds, (*before, replace(store, value=value)), other, store)


def _positions(condition: Expr) -> Affine | None:
    """What is not negative where a comparison of positions holds."""
    match condition:
        case Apply(op=op, args=(Index(value=one), Index(value=other))):
            ends = {"less_equal": (one, other, 0), "less": (one, other, 1)}
            ends |= {"greater_equal": (other, one, 0), "greater": (other, one, 1)}
            if op.name in ends:
                low, high, apart = ends[op.name]
                return high - low - apart
    return None


def _cut(holds: Affine, loops: Sequence[For]) -> Affine | None:
    """The first column of a row from which on a condition holds, or no longer does; None where that may not
    lie within the row."""
    ranges: dict[Symbol, Range] = {}
    for loop in loops:
        enter(loop, ranges)
    columns = loops[-1]
    slope = holds.coefficient(columns.symbol)
    rest = holds - Affine.of(columns.symbol) * slope
    cut = rest + 1 if slope < 0 else -rest
    spans = [(cut - columns.lo).bounds(ranges), (columns.hi - cut).bounds(ranges)]
    return cut if all(span is not None and span[0] >= 0 for span in spans) else None
