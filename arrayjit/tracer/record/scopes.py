"""The bodies, one within the other, that a trace records, and points of the record to go back to."""

from __future__ import annotations

from dataclasses import field

from ...frozen import frozen, slotted
from ...ir.assign import Statement
from ...ir.expr import Expr
from ...ir.index import Affine, Symbol
from ...ir.tensor import Tensor
from .knowledge import Held

__all__ = ["Mark", "Scope"]


@slotted
class Scope:
    """The body that is being recorded, and the numbers that symbols were bound to in it. `fresh` is how many
    tensors had been made before."""

    statements: list[Statement] = field(default_factory=list)
    bound: dict[Expr, Affine] = field(default_factory=dict)
    symbols: list[Symbol] = field(default_factory=list)
    fresh: int = 0


@frozen
class Mark:
    """What a trace knew at some point, to go back to."""

    depth: int
    written: frozenset[Tensor]
    known: dict[Tensor, Held]
    fresh: int
    rewritten: int
    perhaps_written: int
    notes: int
