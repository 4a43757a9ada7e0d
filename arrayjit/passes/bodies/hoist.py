"""hoist: what does not change in a loop is computed before it.

    for i in parallel(0, 8):                    for i in parallel(0, 8):
        for j in parallel(0, 100):        ->        t0 = sqrt(m[i])
            y[i, j] = multiply(x[i, j],             for j in parallel(0, 100):
                               sqrt(m[i]))              y[i, j] = multiply(x[i, j], t0)

Every value goes as far out as the symbols, locals and storages that it needs allow. A load leaves a loop
only if nothing in the loop writes its storage, and only if it would have run anyway or its cell surely
exists. Arithmetic is total, so it may run where it did not before. A number that is bound stays where it is:
a check before it may be what keeps it in its range.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field, replace

from ...frozen import slotted
from ...ir.code import Caps
from ...ir.expr import Apply, Cast, Const, Expr, Gather, Index, Load, Local, Variable, dtype_of
from ...ir.index import Affine, Symbol
from ...ir.loops import (
    Bind,
    Define,
    For,
    If,
    Kernel,
    LoopKind,
    Raise,
    Stmt,
    Update,
    While,
    walk_statements,
    written,
)
from ...ir.tensor import Tensor
from ...ir.walk import children, kept, rebuild, rewrite_bodies, rewrite_expressions
from ..analysis.access import Range, exists, loop_range

__all__ = ["hoist"]


def hoist(kernel: Kernel, caps: Caps) -> Kernel:
    """Every value computed in the outermost loop that it varies in."""
    return kernel.with_body(_Hoisting(kernel.body).body(kernel.body))


@slotted
class _Frame:
    """A loop around the present statement: what its body changes, whether all of it surely runs, the
    branches around it, and the definitions to put before it."""

    stores: set[Tensor]
    updates: set[Variable]
    runs: bool
    branches: int
    before: list[Stmt] = field(default_factory=list)

    @staticmethod
    def around(body: tuple[Stmt, ...], runs: bool, branches: int) -> _Frame:
        inside = list(walk_statements(body))
        stores = {tensor for tensor in map(written, inside) if tensor is not None}
        updates = {stmt.variable for stmt in inside if isinstance(stmt, Update)}
        leaves = any(isinstance(stmt, Raise) for stmt in inside)
        return _Frame(stores, updates, runs and not leaves, branches)


class _Hoisting:
    """A walk with the loops around the present statement. The *level* of a value is the number of those
    loops that it must stay inside of; `found` are those of the operations in the present expression, each of
    which is asked for once however many are around it."""

    def __init__(self, body: tuple[Stmt, ...]) -> None:
        self.changing = {stmt.variable for stmt in walk_statements(body) if isinstance(stmt, Update)}
        self.levels: dict[Variable, int] = {}
        self.depths: dict[Symbol, int] = {}
        self.ranges: dict[Symbol, Range] = {}
        self.frames: list[_Frame] = []
        self.found: dict[int, int] = {}
        self.branches = 0

    def body(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        out: list[Stmt] = []
        for stmt in body:
            match stmt:
                case For(kind=LoopKind.GRID):
                    out.append(self._launch(stmt))
                case For():
                    out.extend(self._loop(stmt))
                case While():
                    out.extend(self._while(stmt))
                case Bind(symbol=symbol):
                    self.depths[symbol] = len(self.frames)
                    out.append(rewrite_expressions(stmt, self._settled))
                case If():
                    stmt = rewrite_expressions(stmt, self._settled)
                    self.branches += 1
                    out.append(rewrite_bodies(stmt, self.body))
                    self.branches -= 1
                case Define(variable=variable) if variable not in self.changing:
                    out.extend(self._definition(stmt))
                case Define(variable=variable):
                    self.levels[variable] = len(self.frames)
                    out.append(rewrite_expressions(stmt, self._settled))
                case _:
                    out.append(rewrite_expressions(stmt, self._settled) if self.frames else stmt)
        return kept(body, out)

    def _loop(self, loop: For) -> list[Stmt]:
        frame = self._frame(loop)
        self.frames.append(frame)
        self.depths[loop.symbol] = len(self.frames)
        new = rewrite_bodies(loop, self.body)
        self.frames.pop()
        return [*frame.before, new]

    def _launch(self, grid: For) -> For:
        """A grid: nothing leaves it, for the host computes nothing."""
        frames, self.frames = self.frames, []
        depths, self.depths = self.depths, {}
        known = loop_range(grid.lo, grid.hi, grid.step, self.ranges)
        if known is not None:
            self.ranges[grid.symbol] = known
        new = self.body(grid.body)
        self.frames, self.depths = frames, depths
        return grid if new is grid.body else replace(grid, body=new)

    def _while(self, loop: While) -> list[Stmt]:
        frame = _Frame.around((*loop.test, *loop.body), False, self.branches)
        self.frames.append(frame)
        test, condition, body = self.body(loop.test), self._settled(loop.condition), self.body(loop.body)
        self.frames.pop()
        same = test is loop.test and condition is loop.condition and body is loop.body
        return [*frame.before, loop if same else While(test, condition, body)]

    def _frame(self, loop: For) -> _Frame:
        span = (loop.hi - loop.lo).bounds(self.ranges)
        runs = span is not None and (span[0] > 0 if loop.step > 0 else span[1] < 0)
        known = loop_range(loop.lo, loop.hi, loop.step, self.ranges)
        if known is not None:
            self.ranges[loop.symbol] = known
        return _Frame.around(loop.body, runs, self.branches)

    def _definition(self, stmt: Define) -> list[Stmt]:
        """A definition moves as a whole, if it can."""
        self.found = {}
        level = self._level(stmt.value)
        self.levels[stmt.variable] = level
        if level == len(self.frames):
            return [rewrite_expressions(stmt, self._settled)]
        value = self._at(stmt.value, level)
        self.frames[level].before.append(stmt if value is stmt.value else Define(stmt.variable, value))
        return []

    def _settled(self, expr: Expr) -> Expr:
        """An expression of the present statement with its invariant parts moved out."""
        self.found = {}
        return self._at(expr, len(self.frames))

    def _at(self, expr: Expr, level: int) -> Expr:
        """An expression that is to stand at `level`, its parts that can go further out moved there."""
        if not level or isinstance(expr, (Const, Local, Index)):
            return expr
        own = self._level(expr)
        if own == level:
            return rebuild(expr, tuple(self._at(child, level) for child in children(expr)))
        value = self._at(expr, own)
        variable = Variable("t", dtype_of(value))
        self.levels[variable] = own
        self.frames[own].before.append(Define(variable, value))
        return Local(variable)

    def _level(self, expr: Expr) -> int:
        match expr:
            case Const():
                return 0
            case Index(value=value):
                return self._innermost((value,))
            case Local(variable=variable):
                level = self.levels[variable]
                if variable in self.changing:
                    level = max(level, self._last(lambda frame: variable in frame.updates))
                return level
            case Load(tensor=tensor, index=index):
                level = max(self._innermost(index), self._last(lambda frame: tensor.storage in frame.stores))
                certain = self._certain()
                return level if level >= certain or exists(tensor, index, self.ranges) else certain
            case Gather(tensor=tensor, index=operands):
                level = self._last(lambda frame: tensor.storage in frame.stores)
                return max(level, self._certain(), *(self._level(child) for child in operands))
            case Apply() | Cast():
                level = self.found.get(id(expr), -1)
                if level < 0:
                    level = self.found[id(expr)] = max(map(self._level, children(expr)), default=0)
                return level

    def _innermost(self, positions: tuple[Affine, ...]) -> int:
        """The level below every loop whose symbol the positions mention."""
        return max((self.depths.get(s, 0) for position in positions for s in position.symbols), default=0)

    def _last(self, holds: Callable[[_Frame], bool]) -> int:
        """The level inside the innermost loop for which something holds."""
        return max((n + 1 for n, frame in enumerate(self.frames) if holds(frame)), default=0)

    def _certain(self) -> int:
        """The outermost level at which the present statement surely runs."""
        return self._last(lambda frame: not frame.runs or frame.branches != self.branches)
