"""Over which points a statement evaluates its expressions, and in which order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Union

from ...ir.assign import Assign, Bind, Branch, Check, While
from ...ir.index import Affine, Symbol

__all__ = ["Reader", "depends", "extents_of", "is_permutation", "loop_order"]

Reader = Union[Assign, Bind, Branch, Check, While]
"""What evaluates expressions: its own, not those of the statements in it."""

ONE = Affine.of(1)


def extents_of(stmt: Reader) -> dict[Symbol, Affine]:
    """How far each loop of a statement goes; there are none around a single value."""
    return dict(stmt.loops) if isinstance(stmt, (Assign, Check)) else {}


def loop_order(stmt: Reader) -> list[Symbol]:
    """The loops that lowering makes, from the outermost in."""
    loops = [symbol for symbol, extent in extents_of(stmt).items() if extent != ONE]
    if not isinstance(stmt, Assign) or stmt.accum is None:
        return loops
    written = {symbol for position in stmt.index for symbol in position.symbols}
    return [s for s in loops if s in written] + [s for s in loops if s not in written]


def is_permutation(index: tuple[Affine, ...], order: Sequence[Symbol]) -> bool:
    """Whether each iteration reads another cell, so that nothing is computed twice."""
    symbols = [position.symbol for position in index if position.terms]
    return len(symbols) == len(order) and set(symbols) == set(order)


def depends(index: tuple[Affine, ...] | None, symbols: set[Symbol]) -> bool:
    """Whether it is told by some of the symbols which cell is meant, as it may be if only the run knows."""
    return index is None or any(symbol in symbols for position in index for symbol in position.symbols)
