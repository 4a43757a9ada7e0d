"""Products of complex matrices as products of real ones, of which one factor stays as it lies in memory.

The parts of a complex number are neighbours there, so that the rows of the matrix are real ones of twice the
length. They meet the other factor's numbers as columns of reals, two for each of its columns:

    y[i] = sum of x[i, k] * w[k]    ->    u[k, 0] = w[k].real       v[k, 0] = w[k].imag
                                          u[k, 1] = -w[k].imag      v[k, 1] = w[k].real
                                          y[i].real = sum of x[i, k, p] * u[k, p]
                                          y[i].imag = sum of x[i, k, p] * v[k, p]

Where it is the result that lies along the rows, there are sums for each part of the other factor:

    y[j] = sum of w[k] * x[k, j]    ->    s[j, q] = sum of w[k].real * x[k, j, q]
                                          t[j, q] = sum of w[k].imag * x[k, j, q]
                                          y[j].real = s[j, 0] - t[j, 1]
                                          y[j].imag = s[j, 1] + t[j, 0]
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import prod

from ...frozen import frozen
from ...ir.assign import Assign
from ...ir.expr import Apply, Expr, Load, constant, dtype_of
from ...ir.index import Affine, Extent, Symbol, symbols_of
from ...ir.ops import OPS
from ...ir.tensor import Tensor
from ...ir.walk import symbols_read
from ..analysis.strides import stride

__all__ = ["Loops", "Matrix", "Pair", "RealProduct", "apply", "real_product"]

Pair = tuple[Expr, Expr]
Loops = tuple[tuple[Symbol, Affine], ...]

TWO = Affine.of(2)

SHORT = 4
"""Columns of complex numbers in a row, at least, of many matrices whose reals are stored beside others. Of
2 x 2 and 3 x 3 matrices they would be stored lane by lane, which takes 1.15 times as long."""


@frozen
class Matrix:
    """A factor in memory: where the real part of a number is, before its imaginary part."""

    tensor: Tensor
    index: tuple[Affine, ...]
    is_conjugate: bool = False


@frozen
class RealProduct:
    """The statements that form the sums, and then the parts of the result; None where they have formed it."""

    statements: tuple[Assign, ...]
    parts: Pair | None


def real_product(
    assign: Assign,
    matrix: Matrix,
    factor: Expr,
    other: Expr,
    pair: Callable[[Expr], Pair],
    result: Matrix | None,
) -> RealProduct | None:
    """The sums of products of a matrix, which is the one factor, with the other factor. None where the matrix
    has no rows of its own, where the result does not lie along the columns of the other one, and where it is
    not known how large a copy of that is. `pair` gives the parts of an expression, `result` is where the sums
    may be formed, if they may."""
    mine, theirs = set(symbols_read(factor)), set(symbols_read(other))
    if not all(extent.is_constant for symbol, extent in assign.loops if symbol in theirs):
        return None
    cells = set(symbols_of(assign.index))
    rows, columns = (mine - theirs) & cells, (theirs - mine) & cells
    if not rows or (columns and not columns & set(assign.index[-1].symbols)):
        return None
    loops = tuple(loop for loop in assign.loops if loop[0] in theirs)
    forming = _Forming(assign, matrix, pair(other), loops, result)
    along = {symbol for symbol in mine if stride(matrix.tensor, matrix.index, symbol) == 2}
    if columns:
        return forming.by_columns()
    return forming.by_rows() if along.isdisjoint(cells) else forming.along_rows()


@frozen
class _Forming:
    """A product of a matrix with the numbers that `pair` are the parts of, one for each point of `loops`."""

    assign: Assign
    matrix: Matrix
    pair: Pair
    loops: Loops
    result: Matrix | None

    @property
    def columns(self) -> tuple[Pair, Pair]:
        """What the parts of the matrix's numbers meet in the sums of real and in those of imaginary parts."""
        real, imaginary = self.pair
        if self.matrix.is_conjugate:
            return (real, imaginary), (imaginary, _negated(real))
        return (real, _negated(imaginary)), (imaginary, real)

    def by_columns(self) -> RealProduct:
        """The rows of the matrix with two columns of reals for each column of the other factor. Those for one
        of many matrices lie together, unless their rows are short."""
        cells, each = self.assign.cell_loops, set(symbols_of(self.matrix.index))
        part, half = Symbol("p"), Symbol("q")
        shared = tuple(loop for loop in self.loops if loop not in cells)
        own = tuple(loop for loop in self.loops if loop in cells)
        many = tuple(loop for loop in own if loop[0] in each)
        alone = tuple(loop for loop in own if loop not in many)
        if prod(extent.offset for _, extent in alone) >= SHORT:
            own = alone
        else:
            many = ()
        columns = self.temporary("factor", (*_extents((*many, *shared)), TWO, *_extents(own), TWO))

        def at(first: Extent, second: Extent) -> tuple[Affine, ...]:
            return (*_positions((*many, *shared)), Affine.of(first), *_positions(own), Affine.of(second))

        filled = [
            self.stored((*many, *shared, *own), columns, at(first, second), value)
            for second, values in enumerate(self.columns)
            for first, value in enumerate(values)
        ]
        loops, factor = (*cells, (half, TWO), *self.terms, (part, TWO)), Load(columns, at(part, half))
        if self.result is not None:
            index = (*self.result.index[:-1], self.result.index[-1] + half)
            return RealProduct((*filled, self.summed(loops, self.result.tensor, index, factor, part)), None)
        total = self.temporary("sum", (*self.assign.into.shape, TWO))
        index = (*self.assign.index, Affine.of(half))
        summed = self.summed(loops, total, index, factor, part)
        real, imaginary = (Load(total, (*self.assign.index, Affine.of(number))) for number in (0, 1))
        return RealProduct((*filled, summed), (real, imaginary))

    def by_rows(self) -> RealProduct:
        """The rows of the matrix with two real vectors that are twice as long."""
        cells, part = self.assign.cell_loops, Symbol("p")
        filled: list[Assign] = []
        summed: list[Assign] = []
        for values in self.columns:
            column = self.temporary("factor", (*_extents(self.loops), TWO))
            at = _positions(self.loops)
            filled += [
                self.stored(self.loops, column, (*at, Affine.of(n)), value) for n, value in enumerate(values)
            ]
            total = self.temporary("sum", self.assign.into.shape)
            loops = (*cells, *self.terms, (part, TWO))
            factor = Load(column, (*at, Affine.of(part)))
            summed.append(self.summed(loops, total, self.assign.index, factor, part))
        real, imaginary = (Load(sums.into, self.assign.index) for sums in summed)
        return RealProduct((*filled, *summed), (real, imaginary))

    def along_rows(self) -> RealProduct:
        """The rows of the matrix, twice as long, with a real vector for each part of the other factor."""
        cells, half = self.assign.cell_loops, Symbol("q")
        filled: list[Assign] = []
        summed: list[Assign] = []
        for value in self.pair:
            vector = self.temporary("factor", _extents(self.loops))
            filled.append(self.stored(self.loops, vector, _positions(self.loops), value))
            total = self.temporary("sum", (*self.assign.into.shape, TWO))
            loops = (*cells, (half, TWO), *self.terms)
            index = (*self.assign.index, Affine.of(half))
            summed.append(self.summed(loops, total, index, Load(vector, _positions(self.loops)), half))
        (rr, ri), (ir, ii) = (
            [Load(sums.into, (*self.assign.index, Affine.of(part))) for part in (0, 1)] for sums in summed
        )
        if self.matrix.is_conjugate:
            return RealProduct((*filled, *summed), (apply("add", rr, ii), apply("subtract", ir, ri)))
        return RealProduct((*filled, *summed), (apply("subtract", rr, ii), apply("add", ri, ir)))

    @property
    def terms(self) -> Loops:
        """The loops over what is added up."""
        cells = self.assign.cell_loops
        return tuple(loop for loop in self.assign.loops if loop not in cells)

    def temporary(self, name: str, shape: tuple[Affine, ...]) -> Tensor:
        return Tensor(f"{self.assign.into.label}_{name}", shape, self.assign.into.dtype.part)

    def stored(self, loops: Loops, into: Tensor, index: tuple[Affine, ...], value: Expr) -> Assign:
        return Assign(loops, into, index, value, loc=self.assign.loc)

    def summed(
        self, loops: Loops, total: Tensor, index: tuple[Affine, ...], factor: Load, part: Symbol
    ) -> Assign:
        """The sums of a part of the matrix times a real factor."""
        cell = Load(self.matrix.tensor, (*self.matrix.index[:-1], self.matrix.index[-1] + part))
        product, start = apply("multiply", cell, factor), constant(0.0, total.dtype)
        return replace(self.assign, loops=loops, into=total, index=index, value=product, initial=start)


def _extents(loops: Loops) -> tuple[Affine, ...]:
    return tuple(extent for _, extent in loops)


def _positions(loops: Loops) -> tuple[Affine, ...]:
    return tuple(Affine.of(symbol) for symbol, _ in loops)


def apply(name: str, *args: Expr) -> Apply:
    return Apply(OPS[name], args, dtype_of(args[0]))


def _negated(value: Expr) -> Expr:
    return apply("negative", value)
