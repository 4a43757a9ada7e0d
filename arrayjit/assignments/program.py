"""From statements to a Computation.

    i, j, k = axes("i j k")
    matmul = program(reduce("add", c[i, j], a[i, k] * b[k, j]), name="matmul")

Nodes that live in the context become parameters: `read` where the program does not write them, `write` where
it writes all of them first, else `update`. Merge buffers and static symbols follow. All other nodes are
temporaries, a fresh one each time that a node is written as a whole: a virtual node is the expression that
it was last given.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field

from ..errors import InvalidProgram, LinkError
from ..frozen import frozen_by_identity, slotted
from ..ir.assign import ArrayParam, Computation, IndexParam, Note, Param
from ..ir.assign import Statement as Assignment
from ..ir.expr import Const, Load, dtype_of
from ..ir.index import affine
from ..ir.tensor import Tensor, Wish
from .deciding import decide, uses_of
from .elements import is_weak, neutral, typed, typed_as
from .emission import Emission, everywhere
from .here import here
from .modes import Mode
from .nodes import Cell, Node, all_or_nothing
from .recomputation import OptimizationContext
from .statements import Statement, name_of, sequence
from .steps import Step, Target, in_order

__all__ = ["Program", "program"]


@frozen_by_identity
class Program:
    """A program written by hand, ready to be compiled.

    `nodes` are those in the context, with the parameters that they are; `inputs` those whose values are read
    or partly kept, `outputs` those that are written; `embedded` those that the program makes, so that the
    context need not have them before. `merges` has the node of each merge buffer. `optimization` is for
    the next program.
    """

    name: str
    computation: Computation
    nodes: Mapping[Node, ArrayParam]
    embedded: frozenset[Node]
    merges: Mapping[int, Node]
    optimization: OptimizationContext

    @property
    def prior(self) -> frozenset[Tensor]:
        """What the context that the program is linked into must have already."""
        return frozenset(node.tensor for node in self.nodes if node not in self.embedded)

    @property
    def inputs(self) -> frozenset[Node]:
        return frozenset(node for node, param in self.nodes.items() if param.access != "write")

    @property
    def outputs(self) -> frozenset[Node]:
        return frozenset(node for node, param in self.nodes.items() if param.access != "read")


def program(
    *statements: Statement,
    name: str = "",
    optimization: OptimizationContext | None = None,
    embedded: Iterable[Node] = (),
) -> Program:
    """The statements as one program. Decides where its nodes live.

    `name` is otherwise that of the comments. `optimization` is that of the program before this one, for
    virtual nodes that it computed. `embedded` are nodes that are new here though the program reads them
    first, such as sums that start from zeroed memory.
    """
    whole = sequence(*statements)
    name = re.sub(r"\W", "_", name) or name_of(whole)
    if not name:
        raise InvalidProgram(
            "the program has no name",
            loc=here(),
            fix="give one, program(..., name='step'), or put the statements in a block with a comment",
        )
    given = optimization or OptimizationContext()
    written = [part if isinstance(part, Note) else Step.of(part) for part in in_order(whole)]
    own = [part for part in written if isinstance(part, Step)]
    earlier = given.steps_for(_recomputed(own), here())
    touched = {cell.node for step in (*earlier, *own) for cell in step.operands()}
    touched.update(target.node for step in (*earlier, *own) for target in step.targets)
    with all_or_nothing(touched):
        return _built(name, earlier, written, frozenset(embedded), given)


def _built(
    name: str,
    earlier: Sequence[Step],
    written: Sequence[Step | Note],
    embedded: frozenset[Node],
    given: OptimizationContext,
) -> Program:
    """The program that begins with steps of earlier ones, its nodes decided."""
    own = [part for part in written if isinstance(part, Step)]
    steps = [*earlier, *own]
    _settle_dtypes(steps)
    merges = _merges(steps)
    uses = uses_of(steps)
    for node, use in uses.items():
        decide(node, use, name)
    building = _Building({slot: _merge_tensor(node) for slot, node in merges.items()})
    body = tuple(building.statements([*earlier, *written]))
    nodes = {
        node: ArrayParam(
            node.tensor, "read" if not use.written else "write" if use.read_first is None else "update"
        )
        for node, use in uses.items()
        if node.mode is Mode.ON_DEVICE
    }
    return Program(
        name,
        Computation(name, (*nodes.values(), *_other_params(merges, building.merges, steps)), body),
        nodes,
        embedded.union(node for node, param in nodes.items() if param.access == "write"),
        merges,
        given.after(own, name),
    )


def _recomputed(steps: Iterable[Step]) -> list[Node]:
    """The virtual nodes that are read before the program writes them."""
    uses = uses_of(tuple(steps))
    return [n for n, use in uses.items() if n.known(Mode.VIRTUAL) and (use.read_first or not use.written)]


def _settle_dtypes(steps: Sequence[Step]) -> None:
    """Nodes that are read get their element types, others are told what is put into them."""

    def read(cell: Cell) -> Load:
        return Load(Tensor.of(cell.node.name, (), cell.node.dtype), ())

    for step in steps:
        for cell in step.operands():
            _ = cell.node.dtype
        for part in step.pieces:
            node = part.target.node
            if not node.has_dtype and not is_weak(part.value):
                node.infer_dtype(dtype_of(typed(part.value, read, part.loc)))
    for step in steps:
        for target in step.targets:
            _ = target.node.dtype


def _merges(steps: Iterable[Step]) -> dict[int, Node]:
    """Whose values each merge buffer holds."""
    found: dict[int, Node] = {}
    for step in steps:
        for cell in step.operands():
            if cell.slot is None:
                continue
            known = found.setdefault(cell.slot, cell.node)
            if known is not cell.node:
                raise LinkError(
                    f"merge buffer {cell.slot} is read as {known.name} and as {cell.node.name}",
                    loc=step.loc,
                    fix=f"read one of them from another buffer: merge({cell.node.name}, {cell.slot + 1})",
                )
    for slot, node in found.items():
        node.conclude(Mode.MATERIALIZED, f"its values arrive in merge buffer {slot}")
    return found


def _merge_tensor(node: Node) -> Tensor:
    return Tensor.of(f"{node.name}_merge", node.shape, node.dtype)


def _other_params(
    merges: Mapping[int, Node], tensors: Mapping[int, Tensor], steps: Iterable[Step]
) -> Iterator[Param]:
    for slot, node in merges.items():
        yield ArrayParam(tensors[slot], "merge", node.tensor, slot)
    for symbol in dict.fromkeys(symbol for step in steps for symbol in step.symbols()):
        yield IndexParam(symbol)


@slotted
class _Building:
    """The statements of the IR; `held` has the tensor that each temporary is in at present."""

    merges: Mapping[int, Tensor]
    held: dict[Node, Tensor] = field(default_factory=dict)

    def statements(self, written: Iterable[Step | Note]) -> Iterator[Assignment]:
        for part in written:
            if isinstance(part, Note):
                yield part
            else:
                yield from self.step(part)

    def step(self, step: Step) -> Iterator[Assignment]:
        before = {node: self.tensor(node) for node in step.reads()}
        onto = {target.node: self.tensor(target.node) for target in step.targets if step.keeps(target)}
        for target in step.targets:
            node = target.node
            if _makes_anew(step, target):
                self.held[node] = _temporary(node)
            elif step.is_exposed(target):
                aside = Tensor.of(f"{node.name}_before", node.shape, node.dtype)
                yield everywhere(aside, before[node], step.loc)
                before[node] = aside
        for target in step.targets:
            into, start = self.tensor(target.node), _start(step, target)
            if start is not None and step.fills(target):
                yield everywhere(into, start, step.loc)

        def read(cell: Cell) -> Load:
            tensor = before[cell.node] if cell.slot is None else self.merges[cell.slot]
            return Load(tensor, cell.index)

        for target in step.targets:
            into = self.tensor(target.node)
            held = onto.get(target.node, into)
            for part in target.pieces:
                start = _start(step, target) if target.disjoint else None
                value = typed_as(part.value, into.dtype, read, part.loc)
                yield from Emission(part, into, held, value, step.op, start).statements()

    def tensor(self, node: Node) -> Tensor:
        """What holds the node's values at this place."""
        return node.tensor if node.mode is Mode.ON_DEVICE else self.held[node]


def _makes_anew(step: Step, target: Target) -> bool:
    """Whether the target is a temporary that the step makes as a whole."""
    anew = not step.keeps(target) or step.is_simple(target)
    return target.node.mode is not Mode.ON_DEVICE and anew


def _temporary(node: Node) -> Tensor:
    """Memory, or none, for the values that a node has for a while."""
    wish = None
    if node.mode is Mode.VIRTUAL:
        wish = Wish("virtual", str(node.provenance[-1]))
    elif node.wanted.refines(Mode.NEVER_VIRTUAL):
        wish = Wish("local", str(node.provenance[-1]))
    return Tensor(node.name, affine(node.shape), node.dtype, wish=wish)


def _start(step: Step, target: Target) -> Const | None:
    """What the target's cells start from, where the step says so."""
    return neutral(step.op, target.node.dtype, step.loc) if step.op is not None and step.fresh else None
