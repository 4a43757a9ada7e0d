"""The lengths that a trace leaves open: how many rows arguments have that may be of any length."""

from __future__ import annotations

from ...ir.index import Affine, Symbol, SymbolKind
from .facts import Argument

__all__ = ["Lengths"]


class Lengths:
    """Symbols, each for a length that stands among the leaves of a call, behind those of its arguments."""

    def __init__(self) -> None:
        self._leaves: dict[Symbol, int] = {}

    def add(self, label: str, least: int, most: int, leaf: int) -> Symbol:
        """A symbol for the length that is a leaf of the call, from `least` to `most`."""
        symbol = Symbol(label, SymbolKind.STATIC, least, most + 1)
        self._leaves[symbol] = leaf
        return symbol

    def facts(self) -> set[Argument]:
        """What would compile the lengths in."""
        return set(map(Argument, self._leaves.values()))

    def terms(self, extent: Affine) -> tuple[tuple[int, int], ...] | None:
        """The coefficients and the leaves of the lengths that an extent consists of; None of one that is made
        of other numbers as well."""
        if any(symbol not in self._leaves for symbol in extent.symbols):
            return None
        return tuple((coefficient, self._leaves[symbol]) for coefficient, symbol in extent.terms)
