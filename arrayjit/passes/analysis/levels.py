"""The *level* of a value: how many of the loops around it, from the outermost one on, it must stay inside of.

    for i in parallel(0, 8):
        for j in parallel(0, 100):
            y[i, j] = multiply(x[i, j], sqrt(m[i]))

Here `x[i, j]` is of level 2 and `sqrt(m[i])` of level 1; a constant is of level 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ...frozen import slotted
from ...ir.expr import Apply, Cast, Const, Expr, Gather, Index, Load, Local, Variable
from ...ir.index import Affine, Symbol
from ...ir.loops import For, Raise, Stmt, While, walk_statements, written_in
from ...ir.tensor import Tensor
from ...ir.walk import children, locals_updated
from .access import Range
from .inside import exists
from .trips import enter

__all__ = ["Levels"]


@slotted
class _Changes:
    """What a loop changes: storages and locals. Does it raise exceptions?"""

    stores: set[Tensor]
    updates: set[Variable]
    raises: bool

    @staticmethod
    def of(loop: For | While) -> _Changes:
        inside = list(walk_statements((*loop.test, *loop.body) if isinstance(loop, While) else loop.body))
        raises = any(isinstance(stmt, Raise) for stmt in inside)
        return _Changes(written_in(inside), locals_updated(inside), raises)


class Levels:
    """What a walk over a body knows of the loops `around` the present statement, the `symbols` bound so far,
    their `ranges`, and the `locals` defined so far: those levels are of what defines them. The present
    statement is `certain` to run once within so many loops. `known` are the levels of operations in the
    present expression, each of which is looked at once however many are around it: whoever comes to another
    expression clears it."""

    def __init__(self, body: tuple[Stmt, ...]) -> None:
        self.changing = locals_updated(walk_statements(body))
        self.around: list[_Changes] = []
        self.symbols: dict[Symbol, int] = {}
        self.ranges: dict[Symbol, Range] = {}
        self.locals: dict[Variable, int] = {}
        self.certain = 0
        self.known: dict[int, int] = {}

    @property
    def innermost(self) -> int:
        """The level of what each iteration of each loop changes."""
        return len(self.around)

    def enter(self, loop: For | While) -> None:
        """From here on within the loop, which `around` has until the walk takes it away."""
        self.around.append(_Changes.of(loop))
        if isinstance(loop, For):
            enter(loop, self.ranges)
            self.symbols[loop.symbol] = self.innermost

    @contextmanager
    def apart(self) -> Iterator[None]:
        """Within, levels are counted from here on."""
        outside = self.around, self.symbols, self.certain
        self.around, self.symbols, self.certain = [], {}, 0
        yield
        self.around, self.symbols, self.certain = outside

    def of(self, value: Expr) -> int:
        """The level at which a value can be computed: a cell that may not exist is not read where the present
        statement may not run."""
        match value:
            case Const():
                return 0
            case Index(value=position):
                return self.of_positions((position,))
            case Local(variable=variable):
                level = self.locals.get(variable, -1)
                if level < 0:
                    return self.innermost
                if variable not in self.changing:
                    return level
                return max(level, _inside_the_last([variable in loop.updates for loop in self.around]))
            case Load(tensor=tensor, index=index):
                level = max(self.of_positions(index), self.of_memory(tensor))
                is_there = level >= self.certain or exists(tensor, index, self.ranges)
                return level if is_there else self.certain
            case Gather(tensor=tensor, index=operands):
                return max(self.of_memory(tensor), self.certain, *map(self.of, operands))
            case Apply() | Cast():
                level = self.known.get(id(value), -1)
                if level < 0:
                    level = max(map(self.of, children(value)), default=0)
                    self.known[id(value)] = level
                return level

    def in_each(self, value: Expr) -> int:
        """The level of a value that each iteration of the loops around computes."""
        self.certain = self.innermost
        self.known.clear()
        return self.of(value)

    def of_positions(self, positions: tuple[Affine, ...]) -> int:
        """The level below every loop whose symbol the positions mention."""
        found = [self.symbols.get(symbol, 0) for position in positions for _, symbol in position.terms]
        return max(found, default=0)

    def of_memory(self, tensor: Tensor) -> int:
        storage = tensor.storage
        return _inside_the_last([storage in loop.stores for loop in self.around])


def _inside_the_last(holds: list[bool]) -> int:
    """The level inside the innermost of the loops for which something holds."""
    level = len(holds)
    while level and not holds[level - 1]:
        level -= 1
    return level
