"""What statements change, and which values they leave as they are.

Of a value that a loop leaves, each iteration computes the same, and so can the code before the loop, even if
there are no iterations.
"""

from __future__ import annotations

from ...frozen import slotted
from ...ir.expr import Apply, Cast, Const, Expr, Gather, Index, Load, Local, Variable
from ...ir.index import Symbol, symbols_of
from ...ir.loops import Bind, For, Stmt, walk_statements, written_in
from ...ir.tensor import Tensor
from ...ir.walk import locals_defined, locals_updated
from .access import Ranges
from .inside import exists

__all__ = ["Changes"]


@slotted
class Changes:
    """The symbols that statements bind, the locals that they define or update, and the storages that they
    write."""

    symbols: set[Symbol]
    locals: set[Variable]
    storages: set[Tensor]

    @staticmethod
    def by(*stmts: Stmt) -> Changes:
        inside = walk_statements(stmts)
        symbols = {stmt.symbol for stmt in inside if isinstance(stmt, (Bind, For))}
        return Changes(symbols, locals_defined(inside) | locals_updated(inside), written_in(inside))

    def leave(self, node: Expr, ranges: Ranges) -> bool:
        """Is a node of an expression, whatever its operands are, the same without these statements? A cell is
        if it surely exists, but for one that is found by a position computed at run time."""
        match node:
            case Const() | Cast() | Apply():
                return True
            case Index(value=number):
                return self.symbols.isdisjoint(number.symbols)
            case Local(variable=variable):
                return variable not in self.locals
            case Load(tensor=tensor, index=index):
                is_same = tensor.storage not in self.storages and self.symbols.isdisjoint(symbols_of(index))
                return is_same and exists(tensor, index, ranges)
            case Gather():
                return False
