"""Where the nodes of a program live: what the program does with them refines their memory modes."""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import LinkError, Location
from ..frozen import slotted
from .modes import Mode
from .nodes import Node
from .steps import Step
from .values import Bits, Number

__all__ = ["Use", "decide", "uses_of"]


@slotted
class Use:
    """What a program does with a node: where it reads it before it has written all of it, whether it writes
    it, reads it after the last write, or only ever stores constants in it."""

    read_first: Location | None = None
    written: bool = False
    read_last: bool = False
    constant: bool = True
    simple: bool = True


def uses_of(steps: Sequence[Step]) -> dict[Node, Use]:
    """The nodes of a program in order of first use."""
    found: dict[Node, Use] = {}
    whole: set[Node] = set()

    def read(node: Node, loc: Location) -> None:
        use = found.setdefault(node, Use())
        use.read_last = True
        if node not in whole and use.read_first is None:
            use.read_first = loc

    for step in steps:
        for node in step.reads():
            read(node, step.loc)
        for target in step.targets:
            if step.keeps(target):
                read(target.node, step.loc)
            use = found.setdefault(target.node, Use())
            use.written, use.read_last = True, False
            use.simple = use.simple and step.is_simple(target)
            use.constant = use.constant and all(
                isinstance(part.value, (Number, Bits)) for part in target.pieces
            )
            whole.add(target.node)
    return found


def decide(node: Node, use: Use, program: str) -> None:
    """Refine the node's mode by its use. Raises LinkError where that contradicts what is decided."""
    if node.known(Mode.VIRTUAL):
        return
    if node.known(Mode.LOCAL):
        if use.read_first is not None or not use.written:
            raise LinkError(
                f"{program!r} reads {node.name}, which is local, before it has written all of it",
                loc=use.read_first,
                details=tuple(map(str, node.provenance)),
                fix="make it materialized before the program that computes it, or fill it first",
            )
        return
    found = _stored(node, use, program)
    if found is not None:
        node.conclude(*found)
    node.settle()


def _stored(node: Node, use: Use, program: str) -> tuple[Mode, str] | None:
    """The mode that a node takes by its use, with the reason; None where its size decides."""
    if not use.written:
        return Mode.MATERIALIZED, f"{program!r} reads it and does not write it"
    if use.read_first is not None:
        return Mode.MATERIALIZED, f"{program!r} reads it before it writes it"
    if node.known(Mode.MATERIALIZED):
        return None
    constant = node.mode is Mode.EFFECTIVELY_CONSTANT or (node.size == 1 and use.constant and use.read_last)
    if node.excludes(Mode.VIRTUAL):
        return None if use.read_last else (Mode.MATERIALIZED, f"{program!r} writes it for others to read")
    if constant and use.simple:
        return Mode.VIRTUAL, f"{program!r} stores constants in it"
    if use.read_last and node.mode is Mode.UNDECIDED:
        return Mode.LOCAL, f"it is a temporary of {program!r}"
    return Mode.MATERIALIZED, f"{program!r} writes it for others to read"
