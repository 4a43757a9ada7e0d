"""moved: arrays of bools that are moved and never looked at are arrays of bytes.

    def f(x: read[bool, 8, 4], t: write[bool, 4, 8]):       def f(x: read[u8, 8, 4], t: write[u8, 4, 8]):
        t[i, j] = x[j, i]                           ->          t[i, j] = x[j, i]

A bool is a byte in memory and a lane of a mask in registers. Who only moves one packs it there for nothing,
lane by lane where cells are not neighbours. Bytes are transposed, gathered and put side by side as any cells:
bools that are turned, taken in steps or chosen take 0.05 to 0.6 of the time.

An array is moved if all that is read of it is stored as it is, or as one of two values, in arrays that are
moved. What else is stored there is 0 or 1. Single bools are left, and those that are themselves or another
value: loops that make them find out whether any is, or all are.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ...ir.assign import (
    ArrayParam,
    Assign,
    Computation,
    Param,
    Statement,
    expressions,
    rewrite_bodies,
    statements,
)
from ...ir.code import Caps
from ...ir.dtype import BOOL, named
from ...ir.expr import Apply, Cast, Const, Expr, Gather, Load, constant
from ...ir.ops import OPS
from ...ir.tensor import Tensor
from ...ir.walk import kept, walk

__all__ = ["moved"]

BYTE = named("u8")
CHOICES = (OPS["where"], OPS["rarely"])


def moved(computation: Computation, caps: Caps) -> Computation:
    """The computation with bytes for bools that are only moved."""
    storages = _only_moved(computation)
    if not storages:
        return computation
    bytewise = _Bytes(storages)
    params = tuple(bytewise.param(param) for param in computation.params)
    return replace(computation, params=params, body=bytewise.body(computation.body))


def _only_moved(computation: Computation) -> set[Tensor]:
    """The storages of bools that are moved and not looked at."""
    moves: set[tuple[Tensor, Tensor]] = set()
    seen = {
        param.tensor
        for param in computation.params
        if isinstance(param, ArrayParam) and param.access in ("merge", "journal")
    }
    for statement in statements(computation.body):
        looked_at: Iterable[Expr] = expressions(statement)
        match statement:
            case Assign(accum=None, into=into, value=value) if into.dtype is BOOL and into.shape:
                cells, looked_at = _chosen(value)
                sources = {cell.tensor.storage for cell in cells}
                if into.storage in sources and not isinstance(value, Load):
                    seen.add(into.storage)
                moves.update((source, into.storage) for source in sources)
            case Assign(into=into):
                seen.add(into.storage)
            case _:
                pass
        seen.update(tensor.storage for expr in looked_at for tensor in _read(expr))
    sources_of: dict[Tensor, list[Tensor]] = {}
    for source, into in moves:
        sources_of.setdefault(into, []).append(source)
    pending = list(seen)
    while pending:
        more = [source for source in sources_of.get(pending.pop(), ()) if source not in seen]
        seen.update(more)
        pending += more
    return {storage for move in moves for storage in move if not seen.intersection(move)}


def _chosen(value: Expr) -> tuple[list[Load | Gather], list[Expr]]:
    """The cells one of which a bool is, and what else is looked at for it."""
    cells: list[Load | Gather] = []
    others: list[Expr] = []
    pending = [value]
    met: set[int] = set()
    while pending:
        node = pending.pop()
        if id(node) in met:
            continue
        met.add(id(node))
        match node:
            case Load():
                cells.append(node)
            case Gather(index=index):
                cells.append(node)
                others.extend(index)
            case Apply(op=op, args=(condition, yes, no)) if op in CHOICES:
                others.append(condition)
                pending += (yes, no)
            case _:
                others.append(node)
    return cells, others


def _read(expr: Expr) -> Iterable[Tensor]:
    return (node.tensor for node in walk(expr) if isinstance(node, (Load, Gather)))


class _Bytes:
    """What stands for each tensor in these storages."""

    def __init__(self, storages: set[Tensor]) -> None:
        self._storages = storages
        self._made: dict[Tensor, Tensor] = {}
        self._choices: dict[int, Expr] = {}

    def _of(self, tensor: Tensor) -> Tensor:
        if tensor.storage not in self._storages:
            return tensor
        if tensor not in self._made:
            base = tensor.base and self._of(tensor.base)
            self._made[tensor] = replace(tensor, dtype=BYTE, base=base)
        return self._made[tensor]

    def param(self, param: Param) -> Param:
        return replace(param, tensor=self._of(param.tensor)) if isinstance(param, ArrayParam) else param

    def body(self, body: tuple[Statement, ...]) -> tuple[Statement, ...]:
        return kept(body, [self._statement(statement) for statement in body])

    def _statement(self, statement: Statement) -> Statement:
        if isinstance(statement, Assign) and statement.into.storage in self._storages:
            return replace(statement, into=self._of(statement.into), value=self._byte(statement.value))
        return rewrite_bodies(statement, self.body)

    def _byte(self, value: Expr) -> Expr:
        """A bool as it lies in memory."""
        match value:
            case Load(tensor=tensor, index=index) if tensor.storage in self._storages:
                return Load(self._of(tensor), index)
            case Gather(tensor=tensor, index=index) if tensor.storage in self._storages:
                return Gather(self._of(tensor), index)
            case Apply(op=op, args=(condition, yes, no)) if op in CHOICES:
                if id(value) not in self._choices:
                    both = self._byte(yes), self._byte(no)
                    self._choices[id(value)] = Apply(op, (condition, *both), BYTE)
                return self._choices[id(value)]
            case Const(value=known):
                return constant(int(known), BYTE)
            case _:
                return Cast(value, BYTE)
