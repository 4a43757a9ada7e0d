"""Statements and loops of a Kernel as the lines of one C-like function.

Locals are variables of the language, bodies its blocks. Vector loops and those that threads share are printed
as the dialect says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from typing import Protocol, Union

from typing_extensions import assert_never

from ..errors import CompilerBug, Location
from ..ir.expr import Apply, Cast, Const, Expr, Gather, Index, Load, Local, Variable
from ..ir.index import Affine, Symbol
from ..ir.loops import (
    Barrier,
    Bind,
    Comment,
    Copy,
    Define,
    Fill,
    For,
    If,
    Kernel,
    Lap,
    LoopKind,
    Multiply,
    Prefetch,
    Raise,
    Stay,
    Stmt,
    Store,
    Update,
    While,
    walk_statements,
)
from ..ir.ops import OPS
from ..ir.tensor import Tensor
from ..ir.walk import bottom_up, children, locals_defined, locals_used
from .bodies import place, squared, updated
from .c_memory import Memory
from .c_text import Operand, Value, Writer, constant, multiplied
from .c_values import apply, cast, fma
from .failures import raises

__all__ = ["Accumulation", "Body", "Inside", "LoopPrinter", "TensorCores"]

LONG = 90
"""Characters of an expression that is cut in two."""


class Inside(Protocol):
    """Prints a body in braces, which `break` leaves or not."""

    def __call__(self, body: tuple[Stmt, ...], *, leaves: bool = False) -> None: ...


LoopPrinter = Callable[["Body", For], None]
TensorCores = Callable[["Body", Union[Copy, Multiply, Barrier]], None]
Accumulation = Callable[["Body", Store], None]


class Body:
    """Prints the statements of one Kernel. Symbols and parameters are bound by the caller.

    `loops` print the loops of the kinds which are not printed as plain ones, `share` those that threads may
    share; `tensor_cores` what is for these, and `accumulate` the stores that combine.

    `values` has the text of each local. A local of `arrays` has been declared already, with a cell for each
    lane of a vector loop. `leaves_loop` says whether `break` leaves the loop that the statement stands in.
    """

    def __init__(
        self,
        writer: Writer,
        memory: Memory,
        kernel: Kernel,
        loops: Mapping[LoopKind, LoopPrinter],
        share: LoopPrinter | None = None,
        tensor_cores: TensorCores | None = None,
        accumulate: Accumulation | None = None,
    ) -> None:
        self.writer = writer
        self.memory = memory
        self.kernel = kernel
        self.values: dict[Variable, Value] = {}
        self.arrays: set[Variable] = set()
        self._loops = loops
        self._share = share
        self._tensor_cores = tensor_cores
        self._accumulate = accumulate
        self._mutable = updated(kernel.body)
        self._changing: set[str] = set()
        self._squared = squared(kernel.body)
        self.leaves_loop = False
        self._loc: Location | None = None
        self._status = {id(stmt): number for number, stmt in enumerate(raises(kernel), 1)}

    def part(self) -> Body:
        """For a function that stands for a part of this one."""
        part = copy(self)
        part.writer = Writer(self.writer.dialect, beside=self.writer)
        part.memory = self.memory.part(part.writer)
        part.values = dict(self.values)
        part.leaves_loop = False
        return part

    def declarations(self, loop: For) -> dict[str, str]:
        """What such a function, of a loop, may use of this one: each name as it would declare it. Of blocks
        that have ended there are names that mean something else here; a local that is used is the latter."""
        kinds = self.writer.dialect.type
        used = locals_used(loop.body) - locals_defined(walk_statements(loop.body))
        found = {
            value.text: f"const {kinds(value.dtype)} {value.text}"
            for variable, value in self.values.items()
            if variable in used and value.text.isidentifier()
        }
        numbers = (number for number in self.memory.symbols.values() if isinstance(number, str))
        return {number: f"const int64_t {number}" for number in numbers} | found | self.memory.declarations

    def statements(self, body: tuple[Stmt, ...]) -> None:
        for stmt in body:
            self.statement(stmt)

    def statement(self, stmt: Stmt) -> None:
        self._locate(stmt)
        match stmt:
            case Store():
                self._store(stmt)
            case Define(variable=variable, value=value):
                self.define(variable, self.value(value))
            case Update():
                self._update(stmt)
            case Bind(symbol=symbol, value=value):
                self.memory.symbols[symbol] = self._kept(self.value(value).text, symbol.hint)
            case For():
                self._for(stmt)
            case While():
                self.repeat(stmt, self.inside)
            case If():
                self.branch(stmt, self.inside)
            case Raise() | Stay():
                self._way_out(stmt)
            case Fill():
                self._fill(stmt)
            case Copy() | Multiply():
                self._by_tensor_cores(stmt)
            case Prefetch() | Lap() | Comment() | Barrier():
                self._aside(stmt)
            case _:
                assert_never(stmt)

    def _store(self, store: Store) -> None:
        if store.accum is None:
            self.memory.store(store.tensor, store.index, self.value(store.value))
        elif self._accumulate is None:
            raise CompilerBug(f"{self.writer.dialect.name} has no stores that combine", stage="targets/c")
        else:
            self._accumulate(self, store)

    def _aside(self, stmt: Prefetch | Lap | Comment | Barrier) -> None:
        """A statement that changes nothing of the program's."""
        match stmt:
            case Prefetch(tensor=tensor, index=index, cache=cache):
                self.memory.prefetch(tensor, index, cache)
            case Lap(times=times, number=number):
                if not self.writer.dialect.lap:
                    raise CompilerBug(f"{self.writer.dialect.name} has no clock", stage="targets/c")
                function = self.writer.helper("measure_lap", self.writer.dialect.lap)
                self.writer.emit(f"{function}({self.memory.pointer(times)}, {number});")
            case Comment(text=text):
                self.writer.comment(text)
            case Barrier(pending=None):
                self.writer.emit(self.writer.dialect.barrier)
            case Barrier():
                self._by_tensor_cores(stmt)

    def _by_tensor_cores(self, stmt: Copy | Multiply | Barrier) -> None:
        if self._tensor_cores is None:
            raise CompilerBug(f"{self.writer.dialect.name} knows no tensor cores", stage="targets/c")
        self._tensor_cores(self, stmt)

    def _way_out(self, stmt: Raise | Stay) -> None:
        """Out of the function, or out of the loop, if it is printed as one."""
        if isinstance(stmt, Raise):
            leave = self.writer.dialect.leave(self._status[id(stmt)])
            self.writer.emit(f"if ({self.value(stmt.condition).text}) {leave}")
        elif self.leaves_loop:
            self.writer.emit(f"if (!({self.value(stmt.condition).text})) break;")

    def _locate(self, stmt: Stmt) -> None:
        """Name the user's line above what comes of it."""
        if not isinstance(stmt, (For, While, If, Store, Fill, Raise)):
            return
        found = {place(inner) for inner in walk_statements((stmt,))} - {None}
        if len(found) == 1 and found != {self._loc}:
            (self._loc,) = found
            self.writer.comment(str(self._loc))

    # Expressions

    def value(self, expr: Expr) -> Value:
        """The value of an expression, with names for parts that are used several times, chosen, or long."""
        named = _repeated(expr) | (_chosen(expr) if self.writer.dialect.reads_first else set())

        def written(node: Expr, args: tuple[Value, ...]) -> Value:
            value = self._node(node, args)
            is_named = node is not expr and (id(node) in named or len(value.text) > LONG)
            return self.writer.let(value) if is_named else value

        return bottom_up(expr, written)

    def _node(self, node: Expr, args: tuple[Value, ...]) -> Value:
        match node:
            case Const(value=value, dtype=dtype):
                return constant(self.writer.dialect, value, dtype)
            case Load(tensor=tensor, index=index):
                return self.memory.load(tensor, index)
            case Gather(tensor=tensor):
                return self.memory.gather(tensor, args)
            case Local(variable=variable):
                return self.values[variable]
            case Index(value=position):
                return self.memory.index(position)
            case Apply(op=op, dtype=dtype):
                return apply(self.writer, op, args, dtype)
            case Cast(dtype=dtype):
                return cast(self.writer, args[0], dtype)
            case _:
                assert_never(node)

    # Locals

    def define(self, variable: Variable, value: Value) -> None:
        """Declare a local, unless it has been."""
        if variable in self.arrays:
            self.writer.emit(f"{self.values[variable].text} = {value.text};")
            return
        name = self.writer.fresh(variable.hint)
        kind = self.writer.dialect.type(variable.dtype)
        const = "" if variable in self._mutable else "const "
        self.writer.emit(f"{const}{kind} {name} = {value.text};")
        self.values[variable] = Value(name, variable.dtype)
        if const == "":
            self._changing.add(name)

    def _kept(self, text: str, hint: str) -> Operand:
        """A number under a name that keeps it, which one of a local that changes would not."""
        if text not in self._changing:
            return self.writer.number(text, hint)
        name = self.writer.fresh(hint)
        self.writer.emit(f"const int64_t {name} = {text};")
        return name

    def _update(self, update: Update) -> None:
        old, accum = self.values[update.variable], update.accum
        if accum is None:
            new = self.value(update.value)
        elif update.contract and isinstance(update.value, Apply):
            left, right = map(self.value, update.value.args)
            new = fma(self.writer, left, right, old)
        else:
            new = apply(self.writer, accum, (old, self.value(update.value)), old.dtype)
        self.writer.emit(f"{old.text} = {new.text};")
        if update.variable in self._squared - self.arrays and self.writer.dialect.known_to_none:
            self.writer.emit(f"{self.writer.dialect.known_to_none}({old.text});")

    # Branches

    def branch(self, stmt: If, inside: Inside) -> None:
        """One body or the other."""
        with self.writer.block(f"if ({self.value(stmt.condition).text})"):
            inside(stmt.body)
        if stmt.orelse:
            with self.writer.block("else"):
                inside(stmt.orelse)

    def inside(self, body: tuple[Stmt, ...], *, leaves: bool = False) -> None:
        """A body in braces, which `break` leaves or not."""
        around, self.leaves_loop = self.leaves_loop, leaves
        self.statements(body)
        self.leaves_loop = around

    # Loops

    def _for(self, loop: For) -> None:
        printer = self._loops.get(loop.kind)
        if loop.grain is not None and self._share is not None:
            self._share(self, loop)
        elif printer is not None:
            printer(self, loop)
        elif loop.kind in (LoopKind.GRID, LoopKind.BLOCK):
            raise CompilerBug(f"a {loop.kind.value} loop in {self.writer.dialect.name}", stage="targets/c")
        elif loop.kind is LoopKind.UNROLLED and loop.lo.is_constant and loop.hi.is_constant:
            self.unrolled(loop, self.inside)
        else:
            self.counted(loop, self.inside)

    def unrolled(self, loop: For, inside: Inside) -> None:
        """The copies of the body."""
        for number in range(loop.lo.constant, loop.hi.constant, loop.step):
            self.memory.symbols[loop.symbol] = number
            with self.writer.block():
                inside(loop.body)

    def counted(self, loop: For, inside: Inside, remark: str = "") -> None:
        """One iteration after the other."""
        if loop.trips == 1:
            first = self.memory.affine(loop.lo)
            with self.writer.block():
                self.memory.symbols[loop.symbol] = self.writer.number(first, loop.symbol.hint)
                inside(loop.body)
            return
        if remark:
            self.writer.emit(remark)
        lo, hi = self.memory.affine(loop.lo), self.memory.affine(loop.hi)
        with self.loop(loop.symbol, lo, hi, loop.step):
            if loop.kind in (LoopKind.SEQUENTIAL, LoopKind.LOCKSTEP) and self.writer.dialect.in_order:
                self.writer.emit(self.writer.dialect.in_order)
            inside(loop.body, leaves=True)

    @contextmanager
    def loop(self, symbol: Symbol, lo: Operand, hi: Operand, step: int) -> Iterator[None]:
        """What is printed inside is the body of a loop, in which the symbol has a name."""
        with self.writer.scope():
            name = self.memory.symbols[symbol] = self.writer.fresh(symbol.hint)
            stride = f"++{name}" if step == 1 else f"--{name}" if step == -1 else f"{name} += {step}"
            sign = "<" if step > 0 else ">"
            with self.writer.block(f"for (int64_t {name} = {lo}; {name} {sign} {hi}; {stride})"):
                yield

    def repeat(self, loop: While, inside: Inside) -> None:
        """Test and body by turns."""
        with self.writer.block("for (;;)"):
            inside(loop.test)
            self.writer.emit(f"if (!({self.value(loop.condition).text})) break;")
            inside(loop.body, leaves=True)

    def _fill(self, fill: Fill) -> None:
        """Every cell of the tensor's flat form gets the value."""
        cells: Operand = 1
        for extent in fill.tensor.shape:
            cells = multiplied(cells, self.memory.affine(extent))
        cell, count = Symbol("cell"), Symbol("cells")
        self.memory.symbols[count] = cells if isinstance(cells, int) else f"({cells})"
        flat = Tensor(fill.tensor.label, (Affine.of(count),), fill.tensor.dtype, base=fill.tensor)
        value = self.value(fill.value)
        with self.loop(cell, 0, cells, 1):
            self.memory.store(flat, (Affine.of(cell),), value)


def _repeated(expr: Expr) -> set[int]:
    """The nodes, by their `id`, that are operands more than once and worth a name."""
    seen: set[int] = set()
    found: set[int] = set()
    pending = [expr]
    while pending:
        for child in children(pending.pop()):
            if id(child) not in seen:
                seen.add(id(child))
                pending.append(child)
            elif isinstance(child, (Apply, Cast, Gather)):
                found.add(id(child))
    return found


def _chosen(expr: Expr) -> set[int]:
    """The nodes, by their `id`, that read memory for a side of a selection."""
    found: set[int] = set()
    seen: set[tuple[int, bool]] = set()
    pending = [(expr, False)]
    while pending:
        node, is_chosen = pending.pop()
        if is_chosen and isinstance(node, (Load, Gather)):
            found.add(id(node))
        selects = isinstance(node, Apply) and node.op in (OPS["where"], OPS["rarely"])
        for position, child in enumerate(children(node)):
            step = (child, is_chosen or (selects and position > 0))
            if (id(child), step[1]) not in seen:
                seen.add((id(child), step[1]))
                pending.append(step)
    return found
