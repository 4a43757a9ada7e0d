"""How many registers hold values at once.

for i in vector(0, 64, lanes=8, cuts=(2,)):     a turn: x[i + 8], its square; the root, the store for i
    a = x[i]
    b = multiply(a, a)                    ->    a, b of one vector are handed on, and live until the root
    c = sqrt(b)                                 and the sum, beside those of the next: four registers
    y[i] = add(a, c)

What a part hands on takes registers from turn to turn, beside what its own operations do. Constants, and
small tables of them, get what is left, and are read from memory where nothing is.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from ...ir.cuts import alternating, handed_on, parts_of
from ...ir.dtype import BOOL
from ...ir.expr import Apply, Const, Variable
from ...ir.loops import Define, For, Stmt, walk_statements
from ...ir.walk import locals_read, nodes_in
from .work import REGISTER_BYTES

__all__ = ["most_registers", "registers_of_constants"]

MOST_REGISTERS = 2
"""That one instruction takes its results from."""


def most_registers(loop: For) -> int:
    """The most vector registers that hold values at once, while the parts of a vector loop take turns."""
    parts = parts_of(loop)
    order, handed = alternating(parts), handed_on(parts)
    end = len(order)
    spans = {(number, variable): (0, 0) for number, some in enumerate(handed) for variable in some}
    for at, (number, stmt) in enumerate(order):
        for variable in locals_read((stmt,)):
            if (number, variable) in spans:
                spans[number, variable] = spans[number, variable][0], at
        if isinstance(stmt, Define):
            spans[number, stmt.variable] = at, at
    for number, some in enumerate(handed[1:]):
        spans |= {(number, variable): (spans[number, variable][0], end) for variable in some}
    changes = [0] * (end + 1)
    for (_, variable), (first, last) in spans.items():
        changes[first] += _registers(variable, loop.lanes)
        changes[last] -= _registers(variable, loop.lanes)
    return max(accumulate(changes))


def registers_of_constants(body: Sequence[Stmt]) -> int:
    """How many registers hold the constants and the tables of a body, but for tables that stay in memory."""
    every = list(nodes_in(walk_statements(tuple(body))))
    numbers = {(node.value, node.dtype) for node in every if isinstance(node, Const)}
    chosen = {
        (node.op.name, node.dtype): node for node in every if isinstance(node, Apply) and node.op.tables
    }
    sizes = [len(node.op.tables[dtype]) * dtype.itemsize for (_, dtype), node in chosen.items()]
    tables = (-(-size // REGISTER_BYTES) for size in sizes if size <= MOST_REGISTERS * REGISTER_BYTES)
    return len(numbers) + sum(tables)


def _registers(variable: Variable, lanes: int) -> int:
    """Masks have registers of their own."""
    return 0 if variable.dtype is BOOL else max(1, lanes * variable.dtype.itemsize // REGISTER_BYTES)
