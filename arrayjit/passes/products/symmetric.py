"""Products of an array with itself, of which the one half is the other.

    for i in parallel(0, 100):                      for i in parallel(0, 100):
        for j in parallel(0, 100):                      for j in parallel(i, 100):
            c = 0.0                                         c = 0.0
            for k in parallel(0, 5000):         ->          for k in parallel(0, 5000):
                c = fma(x[k, i], x[k, j], c)                    c = fma(x[k, i], x[k, j], c)
            y[i, j] = c / 4999.0                            y[i, j] = c / 4999.0
                                                            y[j, i] = c / 4999.0

Both cells are sums of the same products in the same order, so their bits are the same.
"""

from __future__ import annotations

from dataclasses import replace

from ...ir.expr import Const
from ...ir.index import Affine
from ...ir.loops import Define, Stmt, Store
from ...ir.walk import substitute, symbols_read
from .products import Product

__all__ = ["half"]


def half(product: Product) -> Product | None:
    """A product's cells from the diagonal on, each stored on both sides of it, if they are the same there."""
    rows, columns = product.rows, product.columns
    if product.within is not None or (rows.lo, rows.hi) != (columns.lo, columns.hi) or len(product.sums) > 1:
        return None
    (total,) = product.sums
    turned = substitute(total.left, {rows.symbol: Affine.of(columns.symbol)})
    if turned != total.right or not isinstance(total.start, Const):
        return None
    if not all(_is_alike(stmt, product) for stmt in product.epilogue):
        return None
    within = Affine.of(rows.symbol), columns.hi
    epilogue = tuple(twin for stmt in product.epilogue for twin in _twice(stmt, product))
    return replace(product, within=within, epilogue=epilogue)


def _is_alike(stmt: Stmt, product: Product) -> bool:
    """Does a statement find the same value on both sides of the diagonal?"""
    own = {product.rows.symbol, product.columns.symbol}
    return isinstance(stmt, (Define, Store)) and own.isdisjoint(symbols_read(stmt.value))


def _twice(stmt: Stmt, product: Product) -> tuple[Stmt, ...]:
    """A statement, and what it stores in the cell on the other side."""
    if not isinstance(stmt, Store):
        return (stmt,)
    row, column = product.rows.symbol, product.columns.symbol
    swap = {row: Affine.of(column), column: Affine.of(row)}
    return stmt, replace(stmt, index=tuple(position.substitute(swap) for position in stmt.index))
