"""Symbols and affine expressions: every extent, bound, stride and index of both IRs.

An `Affine` is `offset + sum(coefficient * symbol)`. A constant is the expression with no symbols, so
nothing that handles extents may assume an `int`. Symbols are loop indices, *static symbols* (integers
chosen at each launch) and *dimension symbols* (array sizes). They compare by identity; names are given
at print time, in order of use.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from itertools import count
from typing import Union

from ..frozen import frozen

__all__ = ["Affine", "Extent", "Symbol", "SymbolKind", "affine", "row_major_strides", "symbols_of"]


class SymbolKind(Enum):
    LOOP = "loop"
    STATIC = "static"
    DIMENSION = "dim"


# Gives affine expressions one normal form (terms in order of creation); never printed or stored.
_creation_order = count()


class Symbol:
    """An integer unknown. `lower` and `upper` (exclusive) are its range, where one is known."""

    __slots__ = ("__weakref__", "hint", "kind", "lower", "order", "upper")

    def __init__(
        self,
        hint: str,
        kind: SymbolKind = SymbolKind.LOOP,
        lower: int | None = None,
        upper: int | None = None,
    ) -> None:
        self.hint = hint
        self.kind = kind
        self.lower = lower
        self.upper = upper
        self.order = next(_creation_order)

    def __add__(self, other: Extent) -> Affine:
        return Affine.of(self) + other

    __radd__ = __add__

    def __neg__(self) -> Affine:
        return Affine.of(self) * -1

    def __sub__(self, other: Extent) -> Affine:
        return Affine.of(self) - other

    def __rsub__(self, other: Extent) -> Affine:
        return Affine.of(other) - self

    def __mul__(self, factor: int) -> Affine:
        return Affine.of(self) * factor

    __rmul__ = __mul__

    def __repr__(self) -> str:
        return f"{self.hint}#{self.order}"


@frozen
class Affine:
    """`offset + sum(coefficient * symbol)`; terms have nonzero coefficients, in creation order."""

    terms: tuple[tuple[int, Symbol], ...]
    offset: int

    @staticmethod
    def of(value: Extent) -> Affine:
        if type(value) is int:
            return _NUMBERS.get(value) or Affine((), value)
        if isinstance(value, Affine):
            return value
        if isinstance(value, Symbol):
            return Affine(((1, value),), 0)
        return Affine((), int(value))

    @staticmethod
    def total(parts: Iterable[tuple[Affine, int]]) -> Affine:
        """The sum of so many times each value."""
        offset, sums = 0, dict[Symbol, int]()
        for value, times in parts:
            offset += value.offset * times
            for coefficient, symbol in value.terms:
                sums[symbol] = sums.get(symbol, 0) + coefficient * times
        return _sum(sums, offset)

    @property
    def is_constant(self) -> bool:
        return not self.terms

    @property
    def constant(self) -> int:
        """The value of an expression without symbols. Raises ValueError otherwise."""
        if self.terms:
            raise ValueError(f"{self} is not a constant")
        return self.offset

    @property
    def symbol(self) -> Symbol | None:
        """The symbol, if this is exactly one symbol and nothing else."""
        if self.offset == 0 and len(self.terms) == 1 and self.terms[0][0] == 1:
            return self.terms[0][1]
        return None

    @property
    def symbols(self) -> tuple[Symbol, ...]:
        return tuple([symbol for _, symbol in self.terms])

    def coefficient(self, symbol: Symbol) -> int:
        for coefficient, candidate in self.terms:
            if candidate is symbol:
                return coefficient
        return 0

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if type(other) is not Affine:
            return NotImplemented
        return self.offset == other.offset and self.terms == other.terms

    def __hash__(self) -> int:
        return hash((self.terms, self.offset))

    def __add__(self, other: Extent) -> Affine:
        if type(other) is int:
            return Affine(self.terms, self.offset + other) if other else self
        right = other if type(other) is Affine else Affine.of(other)
        own, more = self.terms, right.terms
        if not more:
            return Affine(own, self.offset + right.offset) if right.offset else self
        if not own:
            return Affine(more, self.offset + right.offset) if self.offset else right
        if own[-1][1].order < more[0][1].order:
            return Affine(own + more, self.offset + right.offset)
        if more[-1][1].order < own[0][1].order:
            return Affine(more + own, self.offset + right.offset)
        sums: dict[Symbol, int] = {symbol: coefficient for coefficient, symbol in own}
        for coefficient, symbol in more:
            sums[symbol] = sums.get(symbol, 0) + coefficient
        return _sum(sums, self.offset + right.offset)

    __radd__ = __add__

    def __neg__(self) -> Affine:
        return self * -1

    def __sub__(self, other: Extent) -> Affine:
        if type(other) is int:
            return Affine(self.terms, self.offset - other) if other else self
        right = other if type(other) is Affine else Affine.of(other)
        if not right.terms:
            return Affine(self.terms, self.offset - right.offset) if right.offset else self
        return self + right * -1

    def __rsub__(self, other: Extent) -> Affine:
        return Affine.of(other) - self

    def __mul__(self, factor: int) -> Affine:
        if factor == 1:
            return self
        if not self.terms:
            return Affine((), self.offset * factor)
        if factor == 0:
            return Affine((), 0)
        return Affine(tuple([(c * factor, s) for c, s in self.terms]), self.offset * factor)

    __rmul__ = __mul__

    def substitute(self, values: Mapping[Symbol, Affine]) -> Affine:
        """This expression with each symbol in `values` replaced."""
        if len(self.terms) == 1:
            ((coefficient, symbol),) = self.terms
            value = values.get(symbol)
            return self if value is None else value * coefficient + self.offset
        for _, symbol in self.terms:
            if symbol in values:
                break
        else:
            return self
        offset, sums = self.offset, dict[Symbol, int]()
        for coefficient, symbol in self.terms:
            value = values.get(symbol)
            if value is None:
                sums[symbol] = sums.get(symbol, 0) + coefficient
                continue
            offset += value.offset * coefficient
            for factor, part in value.terms:
                sums[part] = sums.get(part, 0) + factor * coefficient
        return _sum(sums, offset)

    def evaluate(self, values: Mapping[Symbol, int]) -> int:
        """The number, given every symbol's. Raises KeyError for a symbol without a value."""
        return self.offset + sum(c * values[s] for c, s in self.terms)

    def bounds(self, ranges: Mapping[Symbol, tuple[int, int]]) -> tuple[int, int] | None:
        """Smallest and largest value (both reached when symbols are independent), each symbol running
        over `ranges[s]` = (first, last), both inclusive, or else over its own declared range.
        None when a symbol has no known range."""
        low = high = self.offset
        for coefficient, symbol in self.terms:
            known = ranges.get(symbol)
            if known is None:
                if symbol.lower is None or symbol.upper is None:
                    return None
                known = (symbol.lower, symbol.upper - 1)
            first, last = coefficient * known[0], coefficient * known[1]
            low += first if first < last else last
            high += last if first < last else first
        return low, high

    def __str__(self) -> str:
        pairs = [(c, s.hint if abs(c) == 1 else f"{abs(c)}*{s.hint}") for c, s in self.terms]
        if self.offset or not pairs:
            pairs.append((self.offset, str(abs(self.offset))))
        text = "".join(f" {'-' if factor < 0 else '+'} {term}" for factor, term in pairs)
        return text[3:] if text[1] == "+" else f"-{text[3:]}"


def _sum(coefficients: Mapping[Symbol, int], offset: int) -> Affine:
    """An expression of such terms, in any order, of which some are perhaps 0."""
    terms = [(coefficient, symbol) for symbol, coefficient in coefficients.items() if coefficient]
    return Affine(tuple(sorted(terms, key=_created) if len(terms) > 1 else terms), offset)


def _created(term: tuple[int, Symbol]) -> int:
    return term[1].order


# Most of the numbers that programs are full of: extents, strides and steps that are not made again and again.
_NUMBERS = {value: Affine((), value) for value in range(-8, 65)}

Extent = Union[int, Symbol, Affine]


def affine(values: Iterable[Extent]) -> tuple[Affine, ...]:
    """A shape or an index tuple as affine expressions; the same object where it is one."""
    if type(values) is tuple and all([type(value) is Affine for value in values]):
        return values
    return tuple([value if type(value) is Affine else Affine.of(value) for value in values])


def row_major_strides(shape: tuple[Affine, ...]) -> tuple[Affine, ...]:
    """Strides of a C-ordered array in elements.

    A stride is a product of extents, so all extents but the first, and all but one of the others,
    must be constants for it to be affine. Raises ValueError otherwise.
    """
    strides = [Affine.of(1)]
    for extent in reversed(shape[1:]):
        step = strides[-1]
        strides.append(extent * step.offset if step.is_constant else step * extent.constant)
    return tuple(reversed(strides[: len(shape)]))


def symbols_of(values: Iterable[Affine]) -> Iterator[Symbol]:
    """The symbols that values depend on, each as often as they name it."""
    return (symbol for value in values for symbol in value.symbols)
