"""hoist: what does not change in a loop is computed before it.

    for i in parallel(0, 8):                    for i in parallel(0, 8):
        for j in parallel(0, 100):        ->        t0 = sqrt(m[i])
            y[i, j] = multiply(x[i, j],             for j in parallel(0, 100):
                               sqrt(m[i]))              y[i, j] = multiply(x[i, j], t0)

Every value goes as far out as the symbols, locals and storages that it needs allow. A load leaves a loop
only if nothing in the loop writes its storage, and only if it would have run anyway or its cell surely
exists. Arithmetic is total, so it may run where it did not before. A number that is bound moves if it may be
any: of others a check before it may be what keeps them in their range.
"""

from __future__ import annotations

from dataclasses import replace

from ...ir.code import Caps
from ...ir.expr import Const, Expr, Index, Local, Variable, dtype_of
from ...ir.loops import Bind, Define, For, If, Kernel, LoopKind, Stmt, While
from ...ir.walk import children, kept, rebuild, rewrite_bodies, rewrite_expressions
from ..analysis.levels import Levels
from ..analysis.trips import enter

__all__ = ["hoist"]


def hoist(kernel: Kernel, caps: Caps) -> Kernel:
    """Every value computed in the outermost loop that it varies in."""
    return kernel.with_body(_Hoisting(kernel.body).body(kernel.body))


class _Hoisting:
    """A walk with what is to be done `before` each loop around the present statement."""

    def __init__(self, body: tuple[Stmt, ...]) -> None:
        self.levels = Levels(body)
        self.before: list[list[Stmt]] = []

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
                case Bind():
                    out.extend(self._binding(stmt))
                case If():
                    stmt = rewrite_expressions(stmt, self._settled)
                    outside, self.levels.certain = self.levels.certain, self.levels.innermost
                    out.append(rewrite_bodies(stmt, self.body))
                    self.levels.certain = outside
                case Define(variable=variable) if variable not in self.levels.changing:
                    out.extend(self._definition(stmt))
                case Define(variable=variable):
                    self.levels.locals[variable] = self.levels.innermost
                    out.append(rewrite_expressions(stmt, self._settled))
                case _:
                    out.append(rewrite_expressions(stmt, self._settled) if self.before else stmt)
        return kept(body, out)

    def _loop(self, loop: For) -> list[Stmt]:
        span = (loop.hi - loop.lo).bounds(self.levels.ranges)
        runs = span is not None and (span[0] > 0 if loop.step > 0 else span[1] < 0)
        outside = self._enter(loop, runs)
        new = rewrite_bodies(loop, self.body)
        return [*self._leave(outside), new]

    def _while(self, loop: While) -> list[Stmt]:
        outside = self._enter(loop, False)
        test, condition, body = self.body(loop.test), self._settled(loop.condition), self.body(loop.body)
        same = test is loop.test and condition is loop.condition and body is loop.body
        return [*self._leave(outside), loop if same else While(test, condition, body)]

    def _enter(self, loop: For | While, runs: bool) -> int:
        """Go into a loop that surely `runs` or not: what was certain outside of it."""
        levels, outside = self.levels, self.levels.certain
        levels.enter(loop)
        if not runs or levels.around[-1].raises:
            levels.certain = levels.innermost
        self.before.append([])
        return outside

    def _leave(self, certain: int) -> list[Stmt]:
        """What is to be done before the loop that is left."""
        self.levels.around.pop()
        self.levels.certain = certain
        return self.before.pop()

    def _launch(self, grid: For) -> For:
        """A grid: nothing leaves it, for the host computes nothing."""
        outside, self.before = self.before, []
        enter(grid, self.levels.ranges)
        with self.levels.apart():
            new = self.body(grid.body)
        self.before = outside
        return grid if new is grid.body else replace(grid, body=new)

    def _definition(self, stmt: Define) -> list[Stmt]:
        """A definition moves as a whole, if it can."""
        self.levels.known.clear()
        level = self.levels.of(stmt.value)
        self.levels.locals[stmt.variable] = level
        if level == self.levels.innermost:
            return [rewrite_expressions(stmt, self._settled)]
        value = self._at(stmt.value, level)
        self.before[level].append(stmt if value is stmt.value else Define(stmt.variable, value))
        return []

    def _binding(self, stmt: Bind) -> list[Stmt]:
        """A number that loops have as a bound, or positions, moves if nothing is promised of it."""
        self.levels.known.clear()
        is_any = stmt.symbol.lower is None and stmt.symbol.upper is None
        level = self.levels.of(stmt.value) if is_any else self.levels.innermost
        self.levels.symbols[stmt.symbol] = level
        if level == self.levels.innermost:
            return [rewrite_expressions(stmt, self._settled)]
        self.before[level].append(replace(stmt, value=self._at(stmt.value, level)))
        return []

    def _settled(self, expr: Expr) -> Expr:
        """An expression of the present statement with its invariant parts moved out."""
        self.levels.known.clear()
        return self._at(expr, self.levels.innermost)

    def _at(self, expr: Expr, level: int) -> Expr:
        """An expression that is to stand at `level`, its parts that can go further out moved there."""
        if not level or isinstance(expr, (Const, Local, Index)):
            return expr
        own = self.levels.of(expr)
        if own == level:
            return rebuild(expr, tuple(self._at(child, level) for child in children(expr)))
        value = self._at(expr, own)
        variable = Variable("t", dtype_of(value))
        self.levels.locals[variable] = own
        self.before[own].append(Define(variable, value))
        return Local(variable)
