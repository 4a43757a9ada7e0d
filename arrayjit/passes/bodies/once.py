"""once: what an iteration has written it does not read back, nor does it write a cell that it overwrites.

    for i in parallel(0, 300):                      for i in parallel(0, 300):
        s[i] = 0.0                                      v = 0.0
        v = s[i]                            ->          for k in sequential(0, 11):
        for k in sequential(0, 11):                         v = add(v, x[i + k])
            v = add(v, x[i + k])                        s[i] = v
        s[i] = v                                        y[i] = sqrt(v)
        y[i] = sqrt(s[i])

Sums that started in memory leave this behind when they have moved to a register. A body that reads nothing it
writes may be repeated, which `tails` makes use of.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import field, replace

from ...frozen import slotted
from ...ir.code import Caps
from ...ir.expr import Const, Expr, Load, Local, Variable, dtype_of
from ...ir.index import Affine
from ...ir.loops import (
    Copy,
    Define,
    For,
    If,
    Kernel,
    Multiply,
    Raise,
    Stay,
    Stmt,
    Store,
    Update,
    While,
    walk_statements,
    written_in,
)
from ...ir.tensor import Tensor
from ...ir.walk import kept, nodes_in, rewrite_bodies, rewrite_expressions, transform
from ..analysis.access import reads

__all__ = ["once"]

Cell = tuple[Tensor, tuple[Affine, ...]]


def once(kernel: Kernel, caps: Caps) -> Kernel:
    """Cells read from registers and written once where that is possible."""
    return kernel.with_body(_body(kernel.body))


def _body(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    if not _come_back(body):
        return kept(body, [rewrite_bodies(stmt, _body) for stmt in body])
    passage = _Passage(Counter(cell for stmt in body for cell in _cells(stmt)))
    for stmt in body:
        passage.statement(stmt)
    return kept(body, [stmt for stmt in passage.out if stmt is not None])


def _come_back(body: tuple[Stmt, ...]) -> bool:
    """Does a body itself store to an array that it stores to before, or reads?"""
    stored = [stmt.tensor.storage for stmt in body if type(stmt) is Store]
    if not stored:
        return False
    read = {node.tensor.storage for node in nodes_in(body) if type(node) is Load}
    return len(set(stored)) < len(stored) or not read.isdisjoint(stored)


@slotted
class _Passage:
    """On the way through a body: how often it `still` reads each cell, `values` that cells are known to have,
    and where in `out` the `last` store to a cell stands that nothing has read from since; both by storage, as
    a long body goes through many. `holding` says of which storages a local may be a value."""

    still: Counter[Cell]
    out: list[Stmt | None] = field(default_factory=list)
    values: dict[Tensor, dict[Cell, Expr]] = field(default_factory=dict)
    last: dict[Tensor, dict[Cell, int]] = field(default_factory=dict)
    holding: dict[Variable, set[Tensor]] = field(default_factory=dict)

    def statement(self, stmt: Stmt) -> None:
        """Take over a statement, with what is known put in and what it makes needless left out."""
        self.still.subtract(_cells(stmt))
        if not isinstance(stmt, While):
            stmt = rewrite_expressions(stmt, lambda expr: transform(expr, self.value))
        if isinstance(stmt, (For, If, While)):
            stmt = rewrite_bodies(stmt, _body)
        for inner in walk_statements((stmt,)):
            self.reads(inner)
        for inner in walk_statements((stmt,)):
            self.changes(inner)
        if isinstance(stmt, Store) and stmt.accum is None:
            cell, storage = (stmt.tensor, stmt.index), stmt.tensor.storage
            last = self.last.setdefault(storage, {})
            if cell in last:
                self.out[last[cell]] = None
            if self.still[cell]:
                stmt = self.named(stmt)
                self.values.setdefault(storage, {})[cell] = stmt.value
                if isinstance(stmt.value, Local):
                    self.holding.setdefault(stmt.value.variable, set()).add(storage)
            last[cell] = len(self.out)
        self.out.append(stmt)

    def named(self, store: Store) -> Store:
        """The store, of a value that can be read again."""
        if isinstance(store.value, (Const, Local)):
            return store
        variable = Variable("t", dtype_of(store.value))
        self.out.append(Define(variable, store.value))
        return replace(store, value=Local(variable))

    def value(self, expr: Expr) -> Expr:
        if not isinstance(expr, Load):
            return expr
        return self.values.get(expr.tensor.storage, {}).get((expr.tensor, expr.index), expr)

    def reads(self, stmt: Stmt) -> None:
        """Stores to what a statement reads are needed; all are if it may leave."""
        read = {tensor.storage for tensor, _ in reads(stmt)}
        match stmt:
            case Copy(source=tensor):
                read.add(tensor.storage)
            case Multiply(total=total, left=left):
                read |= {total.storage, left.storage}
            case _:
                pass
        if isinstance(stmt, (Raise, Stay)):
            self.last.clear()
        for storage in read:
            self.last.pop(storage, None)

    def changes(self, stmt: Stmt) -> None:
        """Forget the values of cells that a statement may write, and those in a variable that it sets."""
        for storage in written_in((stmt,)):
            self.values.pop(storage, None)
        if isinstance(stmt, Update):
            for storage in self.holding.pop(stmt.variable, ()):
                known = self.values.get(storage, {}).items()
                self.values[storage] = {at: value for at, value in known if value != Local(stmt.variable)}


def _cells(stmt: Stmt) -> Iterator[Cell]:
    """The cells that a statement reads itself, each as often as it does."""
    return ((node.tensor, node.index) for node in nodes_in((stmt,)) if isinstance(node, Load))
