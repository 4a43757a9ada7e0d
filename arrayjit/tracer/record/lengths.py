"""The lengths that a trace leaves open: how many rows arguments have that may be of any length."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from typing import Any

from ...ir.index import Affine, Symbol, SymbolKind
from .facts import Argument

__all__ = ["Lengths"]

_PREFIX = "length_of_"


class Lengths:
    """Symbols, each for a length that stands among the leaves of a call, behind those of its arguments."""

    def __init__(self) -> None:
        self._leaves: dict[Symbol, int] = {}

    def add(self, name: str, least: int, most: int, leaf: int) -> Symbol:
        """A symbol for the length of what has this name, a leaf of the call, from `least` to `most`."""
        symbol = Symbol(f"{_PREFIX}{name}", SymbolKind.STATIC, least, most + 1)
        self._leaves[symbol] = leaf
        return symbol

    def facts(self) -> set[Argument]:
        """What would compile the lengths in."""
        return set(map(Argument, self._leaves.values()))

    def as_in_python(self, text: str) -> str:
        """A message that is for every length, with `len(x)` for the length of x."""
        for symbol in self._leaves:
            text = re.sub(rf"\b{re.escape(symbol.hint)}\b", f"len({symbol.hint.removeprefix(_PREFIX)})", text)
        return text

    def as_numbers(self, text: str, leaves: Sequence[Any]) -> str:
        """A message about a call with these leaves, with its lengths, and sums of them and numbers."""
        for symbol, leaf in self._leaves.items():
            sums = rf"(?:\b(\d+)\*)?\b{re.escape(symbol.hint)}\b(?: ([+-]) (\d+)\b(?!\*))?"
            text = re.sub(sums, partial(_summed, leaves[leaf]), text)
        return text

    def terms(self, extent: Affine) -> tuple[tuple[int, int], ...] | None:
        """The coefficients and the leaves of the lengths that an extent consists of; None of one that is made
        of other numbers as well."""
        if any(symbol not in self._leaves for symbol in extent.symbols):
            return None
        return tuple((coefficient, self._leaves[symbol]) for coefficient, symbol in extent.terms)


def _summed(length: int, found: re.Match[str]) -> str:
    """The number of a multiple of a length, and what is added to it."""
    factor, sign, more = found.groups()
    return str(int(factor or 1) * length + int(f"{sign or ''}{more or 0}"))
