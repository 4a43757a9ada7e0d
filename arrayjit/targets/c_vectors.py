"""Vector loops in C, which the compiler makes vectors of.

    #pragma GCC ivdep                                       a straight body: a plain loop
    for (int64_t i = 0; i < n; ++i) {
        out[i] = x[i] + y[i];
    }

    for (int64_t i = 0; i < whole; i += 8) {                else blocks of as many iterations as lanes
        double sum[8];
        for (int64_t lane = 0; lane < 8; ++lane) {          a region
            sum[lane] = 0.0;
        }
        for (int64_t k = 0; k < m; ++k) {                   a loop, the same for all lanes
            for (int64_t lane = 0; lane < 8; ++lane) {
                sum[lane] = sum[lane] + x[k * n + i + lane];
            }
        }
    }

and what is left behind the blocks one by one. What lanes accumulate into a local from outside is folded
behind the blocks, as `ir/loops` says.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING

from ..errors import CompilerBug
from ..ir.dtype import BOOL
from ..ir.expr import Expr, Index, Variable
from ..ir.index import Affine, Symbol, symbols_of
from ..ir.loops import Bind, Define, For, If, LoopKind, Prefetch, Stay, Stmt, While, walk_statements
from ..ir.ops import Op
from .bodies import accumulation, changes, fills_lanes
from .c_lanes import in_region, is_straight, lanes_of, mentions
from .c_text import Operand, Value, added, multiplied
from .c_values import apply, identity

if TYPE_CHECKING:
    from .c_body import Body

__all__ = ["vector_loop"]

_INDEPENDENT = "#pragma GCC ivdep"
LINE_BYTES = 64


def vector_loop(body: Body, loop: For) -> None:
    """Print a vector loop."""
    changed = changes(loop.body)
    if loop.lanes == 1 or (not changed and all(map(is_straight, loop.body))):
        body.counted(loop, body.inside, "" if changed else _INDEPENDENT)
        return
    memory = body.memory
    lo, hi = memory.affine(loop.lo), memory.affine(loop.hi)
    end = hi if fills_lanes(loop) else _end_of_blocks(body, loop, lo, hi)
    if lo != end:
        _blocks(body, loop, lo, end, changed)
    if hi != end:
        rest = Symbol("rest")
        memory.symbols[rest] = end
        left = tuple(stmt for stmt in loop.body if not isinstance(stmt, Prefetch))
        lo_left = Affine.of(end if isinstance(end, int) else rest)
        body.counted(replace(loop, lo=lo_left, body=left), body.inside, _INDEPENDENT)


def _end_of_blocks(body: Body, loop: For, lo: Operand, hi: Operand) -> Operand:
    """Where the blocks end and the remainder begins."""
    step, size = loop.step, loop.step * loop.lanes
    if loop.trips is not None:
        return body.writer.number(added(lo, loop.trips // loop.lanes * size), "rest")
    first, last = _factor(lo), _factor(hi)
    upwards = f"{last} - {first}" if step > 0 else f"{first} - {last}"
    rounded = added(upwards, abs(step) - 1)
    sign = ">" if step > 0 else "<"
    whole = f"({last} {sign} {first} ? ({rounded}) / {abs(size)} * {size} : 0)"
    return body.writer.number(added(whole, lo), "rest")


def _factor(operand: Operand) -> str:
    return str(operand) if str(operand).isidentifier() else f"({operand})"


def _blocks(body: Body, loop: For, lo: Operand, end: Operand, changed: tuple[Variable, ...]) -> None:
    """The whole blocks. What they accumulate starts from neutral elements, one for each lane."""
    writer = body.writer
    certain = isinstance(lo, int) and isinstance(end, int)
    guard = "" if certain else f"if ({lo} {'<' if loop.step > 0 else '>'} {end})"
    totals = {variable: body.values[variable] for variable in changed}
    with writer.block(guard) if changed else nullcontext():
        block = _Block(body, loop)
        for variable in changed:
            block.declare(variable)
            neutral = identity(writer, accumulation(variable, loop.body), variable.dtype)
            with block.each_lane():
                writer.emit(f"{body.values[variable].text} = {neutral.text};")
        block.repeat(lo, end)
        for variable, total in totals.items():
            block.fold(variable, accumulation(variable, loop.body), total)
        body.arrays -= block.lanes.crossing
    body.values.update(totals)


class _Block:
    """Prints bodies for as many iterations as there are lanes."""

    def __init__(self, body: Body, loop: For) -> None:
        self.lanes = lanes_of(loop)
        self._start = Symbol(f"{loop.symbol.hint}0")
        self._body = body
        self._writer = body.writer
        self._loop = loop
        self._lane = body.writer.fresh("lane")

    def __call__(self, body: tuple[Stmt, ...], *, leaves: bool = False) -> None:
        around, self._body.leaves_loop = self._body.leaves_loop, leaves
        run: list[Stmt] = []
        for stmt in body:
            if isinstance(stmt, Define) and stmt.variable not in self.lanes.varying:
                self._body.statement(stmt)
            elif isinstance(stmt, Prefetch):
                self._prefetch(stmt)
            elif in_region(stmt):
                run.append(stmt)
            else:
                self._region(run)
                run = []
                self._cut(stmt)
        self._region(run)
        self._body.leaves_loop = around

    def repeat(self, lo: Operand, end: Operand) -> None:
        """Block after block."""
        body, size = self._body, self._loop.step * self._loop.lanes
        if isinstance(lo, int) and end == lo + size:
            body.memory.symbols[self._start] = lo
            with body.writer.block():
                self(self._loop.body)
        else:
            with body.loop(self._start, lo, end, size):
                self(self._loop.body, leaves=True)

    def declare(self, variable: Variable) -> None:
        """An array for a local, with a cell for each lane."""
        name = self._writer.fresh(variable.hint)
        kind = self._writer.dialect.types[self.lanes.mask if variable.dtype is BOOL else variable.dtype]
        self._writer.emit(f"{kind} {name}[{self._loop.lanes}];")
        self._body.values[variable] = Value(f"{name}[{self._lane}]", variable.dtype)
        self._body.arrays.add(variable)

    def fold(self, variable: Variable, op: Op, total: Value) -> None:
        """The cells of an array combined, lane `l` with lane `l + width / 2`, and then onto the local."""
        writer, cell = self._writer, self._body.values[variable]
        name = cell.text.partition("[")[0]
        if self._loop.lanes > 2:
            with (
                writer.block(f"for (int64_t half = {self._loop.lanes // 2}; half > 0; half /= 2)"),
                self.each_lane("half"),
            ):
                other = replace(cell, text=f"{name}[{self._lane} + half]")
                writer.emit(f"{cell.text} = {apply(writer, op, (cell, other), cell.dtype).text};")
            last = replace(cell, text=f"{name}[0]")
        else:
            pair = tuple(replace(cell, text=f"{name}[{lane}]") for lane in range(2))
            last = writer.let(apply(writer, op, pair, cell.dtype))
        writer.emit(f"{total.text} = {apply(writer, op, (total, last), total.dtype).text};")

    @contextmanager
    def each_lane(self, count: Operand = 0) -> Iterator[None]:
        """What is printed inside is done for each lane."""
        self._writer.emit(_INDEPENDENT)
        lane = self._lane
        with self._writer.block(f"for (int64_t {lane} = 0; {lane} < {count or self._loop.lanes}; ++{lane})"):
            yield

    def _region(self, run: Sequence[Stmt]) -> None:
        if not run:
            return
        for stmt in walk_statements(tuple(run)):
            if isinstance(stmt, Define) and stmt.variable in self.lanes.crossing:
                self.declare(stmt.variable)
        with self._iterations(tuple(run)):
            self._body.statements(tuple(run))

    @contextmanager
    def _iterations(self, body: tuple[Stmt, ...]) -> Iterator[None]:
        """As `each_lane`, with the loop's symbol where the body needs it."""
        memory, loop = self._body.memory, self._loop
        with self.each_lane():
            if mentions(body, loop.symbol):
                position = added(memory.symbols[self._start], multiplied(self._lane, loop.step))
                memory.symbols[loop.symbol] = self._writer.number(position, loop.symbol.hint)
            yield

    def _cut(self, stmt: Stmt) -> None:
        """A statement between regions."""
        match stmt:
            case For(lo=lo, hi=hi, grain=None) if stmt.kind is not LoopKind.VECTOR or stmt.lanes == 1:
                self._uniform(Index(lo))
                self._uniform(Index(hi))
                is_known = stmt.kind is LoopKind.UNROLLED and lo.is_constant and hi.is_constant
                (self._body.unrolled if is_known else self._body.counted)(stmt, self)
            case While(condition=condition):
                self._uniform(condition)
                self._body.repeat(stmt, self)
            case If(condition=condition) if self.lanes.differs(condition):
                with self._writer.block(f"if ({self._any(condition)})"), self._iterations((stmt,)):
                    self._body.branch(stmt, self._body.inside)
            case If():
                self._body.branch(stmt, self)
            case Stay(condition=condition):
                if self._body.leaves_loop:
                    self._writer.emit(f"if (!{self._any(condition)}) break;")
            case Bind(value=value):
                self._uniform(value)
                self._body.statement(stmt)
            case _:
                raise CompilerBug(f"{type(stmt).__name__} in a vector loop", stage="targets/c")

    def _uniform(self, value: Expr) -> None:
        if self.lanes.differs(value):
            raise CompilerBug("a branch or a bound that differs from lane to lane", stage="targets/c")

    def _prefetch(self, stmt: Prefetch) -> None:
        """What all lanes will read, line by line."""
        memory, tensor = self._body.memory, stmt.tensor
        memory.symbols[self._loop.symbol] = memory.symbols[self._start]
        line = max(1, LINE_BYTES // tensor.dtype.itemsize)
        is_one = self._loop.symbol not in symbols_of(stmt.index)
        for cells in range(0, 1 if is_one else self._loop.lanes, line):
            memory.prefetch(tensor, stmt.index, stmt.cache, cells)

    def _any(self, condition: Expr) -> str:
        """Whether the condition holds in any lane."""
        name = self._writer.fresh("any")
        self._writer.emit(f"{self._writer.dialect.types[self.lanes.mask]} {name} = 0;")
        with self._iterations((Stay(condition),)):
            self._writer.emit(f"{name} |= {self._body.value(condition).text};")
        return name
