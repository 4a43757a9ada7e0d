"""What later programs need in order to compute virtual nodes of earlier ones again.

An `OptimizationContext` is a value: a program is given one and yields another. It has the steps that define
each virtual node. Once something that they read is written, the node is stale: computing it again would
give other numbers than it had.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from types import MappingProxyType

from ..errors import LinkError, Location
from ..frozen import frozen
from .modes import Mode
from .nodes import Node
from .steps import Step, Target

__all__ = ["Definition", "OptimizationContext"]


@frozen
class Definition:
    """The steps that define a node, and the other nodes that they read; `stale` says why it can't be computed
    again."""

    steps: tuple[Step, ...]
    reads: frozenset[Node]
    stale: str = ""


@frozen
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
            before = [one for one in definition.reads if one.known(Mode.VIRTUAL) and one not in found]
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
        readers: dict[Node, set[Node]] = {}
        for node, definition in known.items():
            for read in definition.reads:
                readers.setdefault(read, set()).add(node)
        for step in steps:
            for target in step.targets:
                node = target.node
                for reader in readers.pop(node, ()):
                    if node in known[reader].reads and not known[reader].stale:
                        reason = f"{program!r} writes {node.name} ({step.loc})"
                        known[reader] = replace(known[reader], stale=reason)
                if node.known(Mode.VIRTUAL):
                    known[node] = _defined(replace(step, targets=(target,)), target, known.get(node))
                    for read in known[node].reads:
                        readers.setdefault(read, set()).add(node)
        return OptimizationContext(MappingProxyType(known))


def _defined(step: Step, target: Target, before: Definition | None) -> Definition:
    """The definition of a node that a step writes; part of it is what it was before if the step uses that."""
    node = target.node
    earlier = (
        before
        if before is not None and (step.keeps(target) or node in step.reads())
        else Definition((), frozenset())
    )
    changing = step.changing()
    stale = earlier.stale or (f"it is computed from {changing}" if changing else "")
    return Definition((*earlier.steps, step), earlier.reads.union(step.reads()) - {node}, stale)
