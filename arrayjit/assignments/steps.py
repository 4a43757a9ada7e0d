"""The steps of a program, with what each reads and what it does to each of its targets."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from ..errors import Location
from ..frozen import frozen_by_identity
from ..ir.assign import Note
from ..ir.index import Symbol, SymbolKind
from ..ir.ops import Op
from .emission import Sharing
from .nodes import Cell, Node
from .pieces import Piece, cells, pieces
from .statements import Accumulate, Block, Series, Statement
from .values import Embedded, walk

__all__ = ["Step", "Target", "in_order"]


@frozen_by_identity
class Target:
    """A node that a step writes, and the pieces that do it. `covers`: they reach every cell; `disjoint`: no
    two of them reach the same."""

    node: Node
    pieces: tuple[Piece, ...]
    covers: bool
    disjoint: bool

    @staticmethod
    def of(node: Node, parts: tuple[Piece, ...]) -> Target:
        regions = {part.region for part in parts}
        reached = all(part.projection.is_surjective(part.region) for part in parts)
        return Target(
            node,
            parts,
            covers=reached and sum(prod(extent for _, extent in region) for region in regions) == node.size,
            disjoint=len(regions) == len(parts),
        )


@frozen_by_identity
class Step:
    """An assignment of the program."""

    op: Op | None
    fresh: bool
    targets: tuple[Target, ...]
    loc: Location

    @staticmethod
    def of(statement: Accumulate) -> Step:
        parts = pieces(statement)
        nodes = dict.fromkeys(part.target.node for part in parts)
        targets = tuple(
            Target.of(node, tuple(part for part in parts if part.target.node is node)) for node in nodes
        )
        return Step(statement.op, statement.fresh, targets, statement.loc)

    @property
    def pieces(self) -> tuple[Piece, ...]:
        return tuple(part for target in self.targets for part in target.pieces)

    def operands(self) -> Iterator[Cell]:
        """The cells that the values read."""
        return (cell for part in self.pieces for cell in cells(part.value))

    def reads(self) -> dict[Node, None]:
        """The nodes among the operands."""
        return dict.fromkeys(cell.node for cell in self.operands() if cell.slot is None)

    def changing(self) -> str:
        """What of the values differs from launch to launch: a merge buffer, a static symbol; or ""."""
        for cell in self.operands():
            if cell.slot is not None:
                return f"merge buffer {cell.slot}"
        for symbol in self.symbols():
            return f"the static symbol {symbol.hint}"
        return ""

    def symbols(self) -> dict[Symbol, None]:
        """The static symbols, in order of use."""
        found: dict[Symbol, None] = {}
        for part in self.pieces:
            indices = [part.target.index]
            for inner in walk(part.value):
                if isinstance(inner, Cell):
                    indices.append(inner.index)
                elif isinstance(inner, Embedded):
                    indices.append((inner.index,))
            every = (symbol for index in indices for position in index for symbol in position.symbols)
            found.update(dict.fromkeys(symbol for symbol in every if symbol.kind is SymbolKind.STATIC))
        return found

    def keeps(self, target: Target) -> bool:
        """Whether some of what the target held before can be seen afterwards."""
        return not self.fresh and (self.op is not None or not target.covers)

    def fills(self, target: Target) -> bool:
        """Whether the neutral element must be stored before anything is combined with it."""
        ordered = any(Sharing.of(part.projection).is_ordered(self.op) for part in target.pieces)
        return self.op is not None and self.fresh and not (target.covers and target.disjoint and not ordered)

    def is_simple(self, target: Target) -> bool:
        """Whether one plain assignment makes the whole target."""
        (first, *others) = target.pieces
        return target.covers and not others and Sharing.of(first.projection).is_plain(self.op)

    def is_exposed(self, target: Target) -> bool:
        """Whether the target is written before all of the value is read."""
        found = [Sharing.of(part.projection) for part in self.pieces]
        at_once = len(found) == 1 and found[0].apart and not found[0].is_ordered(self.op)
        return target.node in self.reads() and (self.fills(target) or not at_once)


def in_order(statement: Statement) -> Iterator[Accumulate | Note]:
    """The assignments and comments of a statement."""
    match statement:
        case Accumulate():
            yield statement
        case Block(text=text, body=body):
            yield Note(text)
            yield from in_order(body)
        case Series(body=parts):
            for part in parts:
                yield from in_order(part)
