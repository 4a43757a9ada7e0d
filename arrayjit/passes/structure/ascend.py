"""ascend: triangles that are gone through from their last row on are counted upwards, and so are their sums.

    for i in sequential(299, -1, -1):                    for i in sequential(0, 300):
        for j in parallel(0, 350):                           for j in parallel(0, 350):
            s = 0.0                                              s = 0.0
            for k in parallel(0, 299 - i):         ->            for k in parallel(0, i):
                t = u[i, i + k + 1] * x[i + k + 1, j]                t = u[299 - i, 299 - k] * x[299 - k, j]
                s = reduce(add, s, t)                                s = reduce(add, s, t)
            x[i, j] = (b[i, j] - s) / u[i, i]                    x[299 - i, j] = ...

So back substitution for many right sides is forward substitution, of which a few rows go together
(`trapezoid`): the row that a sum would begin with is the one that is finished last. Sums of products are
turned, as their order is free; those that a program writes out are not. Nor is anything where no columns lie
along memory: vectors would be read backwards then. It is done on any machine, since on that depends in which
order sums are formed. With 300 rows and 350 columns of float64 it takes 0.3 of the time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...ir.index import Affine, Symbol
from ...ir.loops import Define, For, LoopKind, Stmt, Update
from ...ir.walk import substitute_statements
from ..analysis.loopwise import Site, loopwise
from ..analysis.strides import affine_accesses, stride

__all__ = ["ascend"]

ZERO = Affine.of(0)


@loopwise
def ascend(rows: For, site: Site) -> Sequence[Stmt] | None:
    """Every such triangle counted upwards."""
    if not _goes_down(rows):
        return None
    site.notes.append(
        f"ascend: rows of {rows.symbol.hint} are counted from the last one on, and their terms too"
    )
    row = Symbol(rows.symbol.hint)
    body = substitute_statements(rows.body, {rows.symbol: rows.lo - Affine.of(row)})
    turned = tuple(_with_terms_turned(stmt) if isinstance(stmt, For) else stmt for stmt in body)
    return (replace(rows, symbol=row, lo=ZERO, hi=rows.lo - rows.hi, step=1, body=turned),)


def _goes_down(rows: For) -> bool:
    """Are these rows, the last one first, of a triangle of sums for many columns that lie along memory?"""
    if rows.kind is not LoopKind.SEQUENTIAL or rows.step != -1:
        return False
    loops = [stmt for stmt in rows.body if isinstance(stmt, For)]
    if len(loops) != 1 or not all(isinstance(stmt, (Define, For)) for stmt in rows.body):
        return False
    (columns,) = loops
    terms = [stmt for stmt in columns.body if isinstance(stmt, For)]
    return (
        columns.kind is LoopKind.PARALLEL
        and rows.symbol not in columns.bound_by
        and len(terms) == 1
        and (terms[0].lo, terms[0].step, terms[0].hi.coefficient(rows.symbol)) == (ZERO, 1, -1)
        and all(isinstance(stmt, Update) and stmt.contract for stmt in terms[0].body)
        and any(
            stride(tensor, index, columns.symbol) == 1 and stride(tensor, index, terms[0].symbol) != 0
            for tensor, index, _ in affine_accesses(terms[0].body)
        )
    )


def _with_terms_turned(columns: For) -> For:
    """The columns with their sums formed from the last term on."""

    def turned(stmt: Stmt) -> Stmt:
        if not isinstance(stmt, For):
            return stmt
        term = Symbol(stmt.symbol.hint)
        from_last = {stmt.symbol: stmt.hi - 1 - Affine.of(term)}
        return replace(stmt, symbol=term, body=substitute_statements(stmt.body, from_last))

    return replace(columns, body=tuple(map(turned, columns.body)))
