"""What later programs need in order to compute virtual nodes of earlier ones again.

An `OptimizationContext` is a value: a program is given one and yields another. It has the steps that define
each virtual node. Once something that they read is written, the node is stale: computing it again would
give other numbers than it had.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from ..errors import LinkError, Location
from .modes import Mode
from .nodes import Node
from .steps import Step

__all__ = ["Definition", "OptimizationContext"]


@dataclass(frozen=True, slots=True)
class Definition:
    """The steps that define a node, with the program they are from; `stale` says what has changed since."""

    steps: tuple[Step, ...]
    program: str
    stale: str = ""

    def reads(self, own: Node) -> set[Node]:
        return {node for step in self.steps for node in step.reads()} - {own}


@dataclass(frozen=True, slots=True)
class OptimizationContext:
    """The definitions of virtual nodes."""

    definitions: Mapping[Node, Definition] = field(default_factory=lambda: MappingProxyType({}))

    def steps_for(self, needed: Iterable[Node], loc: Location) -> list[Step]:
        """The steps that define the nodes, those first that others read."""
        found: dict[Node, tuple[Step, ...]] = {}
        pending = list(needed)[::-1]
        while pending:
            node = pending[-1]
            if node in found:
                pending.pop()
                continue
            definition = self._definition(node, loc)
            before = [one for one in definition.reads(node) if one.known(Mode.VIRTUAL) and one not in found]
            if before:
                pending.extend(before)
            else:
                found[pending.pop()] = definition.steps
        return [step for steps in found.values() for step in steps]

    def _definition(self, node: Node, loc: Location) -> Definition:
        definition = self.definitions.get(node)
        if definition is None:
            raise LinkError(
                f"{node.name} is virtual, and no earlier program is known that defines it",
                loc=loc,
                details=tuple(map(str, node.provenance)),
                fix="give program(...) the `optimization` of the program that computes it, or materialize it",
            )
        if definition.stale:
            raise LinkError(
                f"{node.name} is virtual and cannot be computed again: {definition.stale}",
                loc=loc,
                details=tuple(map(str, node.provenance)),
                fix="materialize it before the program that computes it",
            )
        return definition

    def after(self, steps: Iterable[Step], program: str) -> OptimizationContext:
        """What is known once these steps of a program have run."""
        known = dict(self.definitions)
        for step in steps:
            for target in step.targets:
                node = target.node
                for other, definition in known.items():
                    if node in definition.reads(other) and not definition.stale:
                        known[other] = replace(
                            definition, stale=f"{program!r} writes {node.name} ({step.loc})"
                        )
                if node.known(Mode.VIRTUAL):
                    own = replace(step, targets=(target,))
                    before = known[node].steps if step.keeps(target) or node in step.reads() else ()
                    changing = own.changing()
                    stale = f"it is computed from {changing}" if changing else ""
                    known[node] = Definition((*before, own), program, stale)
        return OptimizationContext(MappingProxyType(known))
