"""Products of complex matrices with their own adjoints, as real ones of which one half is the other.

    y[i, j] = sum of x[i, k] * conjugate(x[j, k])

                    ->    r[i, j] = sum of x[i, k, p] * x[j, k, p]
                          s[i, j] = sum of x[i, k].imag * x[j, k].real
                          y[i, j].real = r[i, j]
                          y[i, j].imag = s[i, j] - s[j, i]

Real parts are the same on both sides of the diagonal (`symmetric` forms one half of them), imaginary parts
differ in sign: half of the sums that any other product needs. A product with the own transpose needs no more:

    y[i, j] = sum of x[i, k] * x[j, k]

                    ->    r[i, j] = sum of x[i, k].real * x[j, k].real
                          t[i, j] = sum of x[i, k].imag * x[j, k].imag
                          s[i, j] = sum of x[i, k].imag * x[j, k].real
                          y[i, j].real = r[i, j] - t[i, j]
                          y[i, j].imag = s[i, j] + s[j, i]
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import prod

from ...frozen import frozen
from ...ir.assign import Assign
from ...ir.expr import Expr, Load, constant
from ...ir.index import Affine, Symbol
from ...ir.tensor import Tensor
from ...ir.walk import substitute, symbols_read
from ..analysis.strides import stride
from .real_products import Loops, Matrix, Pair, RealProduct, apply

__all__ = ["hermitian_product"]

FEW = 8
"""So many rows at least are worth two products instead of one, and at most so many times the terms of a sum:
of fewer terms, sums take less time than what is done with them."""

MANY = 64
"""So many rows, and as many terms at least, are worth three products of parts that lie apart: 100 x 100 take
0.75 of the time of one product, 96 x 4000 0.6, 30 x 1000 up to 1.4 times as long."""


def hermitian_product(
    assign: Assign,
    factor: Expr,
    other: Expr,
    matrix: Matrix | None,
    pair: Callable[[Expr], Pair],
    is_conjugate: bool,
) -> RealProduct | None:
    """The sums of products of a factor with another one, or with its conjugate; None where that is not the
    same matrix. `matrix` is where the factor lies if its parts are neighbours, `pair` gives those of an
    expression."""
    cells = assign.cell_loops
    rows = [loop for loop in cells if loop[0] not in symbols_read(other)]
    columns = [loop for loop in cells if loop[0] not in symbols_read(factor)]
    if len(rows) != 1 or len(columns) != 1 or not all(extent.is_constant for _, extent in assign.loops):
        return None
    ((row, extent),), ((column, across),) = rows, columns
    forming = _Forming(assign, cells, {row: Affine.of(column), column: Affine.of(row)})
    terms = prod(extent.constant for symbol, extent in assign.loops if symbol not in dict(cells))
    fewest, most = (FEW, FEW * terms) if is_conjugate else (MANY, terms)
    if extent != across or not fewest <= extent.constant <= most or forming.turned(factor) != other:
        return None
    real, imaginary = pair(factor)
    crossed = forming.sums(imaginary, real)
    cell = Load(crossed.into, forming.at)
    across_both = apply("subtract" if is_conjugate else "add", cell, forming.turned(cell))
    both = forming.along(matrix) if is_conjugate else None
    if both is not None:
        return RealProduct((both, crossed), (Load(both.into, forming.at), across_both))
    same = [forming.sums(part, part) for part in (real, imaginary)]
    together = apply("add" if is_conjugate else "subtract", *(Load(sums.into, forming.at) for sums in same))
    return RealProduct((*same, crossed), (together, across_both))


@frozen
class _Forming:
    """A product of a matrix with itself, for each of its `cells`; what `swap` makes of a row is a column."""

    assign: Assign
    cells: Loops
    swap: dict[Symbol, Affine]

    @property
    def at(self) -> tuple[Affine, ...]:
        """Where the sums of a cell are."""
        return tuple(Affine.of(symbol) for symbol, _ in self.cells)

    def turned(self, value: Expr) -> Expr:
        """What a column has where a row has `value`."""
        return substitute(value, self.swap)

    def along(self, matrix: Matrix | None) -> Assign | None:
        """The sums of products of both parts, one after the other, if terms lie in memory so."""
        if matrix is None:
            return None
        terms = (symbol for symbol, _ in self.assign.loops if symbol not in dict(self.cells))
        if all(stride(matrix.tensor, matrix.index, symbol) != 2 for symbol in terms):
            return None
        part = Symbol("p")
        cell = Load(matrix.tensor, (*matrix.index[:-1], matrix.index[-1] + part))
        return self.sums(cell, cell, (part, Affine.of(2)))

    def sums(self, one: Expr, other: Expr, *more: tuple[Symbol, Affine]) -> Assign:
        """The sums of what a row has times what a column has, where a row has `other`."""
        dtype = self.assign.into.dtype.part
        into = Tensor(f"{self.assign.into.label}_sum", tuple(extent for _, extent in self.cells), dtype)
        value, start = apply("multiply", one, self.turned(other)), constant(0.0, dtype)
        loops = (*self.assign.loops, *more)
        return replace(self.assign, loops=loops, into=into, index=self.at, value=value, initial=start)
