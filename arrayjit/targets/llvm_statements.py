"""Statements of a Kernel as the blocks of one LLVM function: values, locals and branches.

Locals stay in registers: where a branch may change one, a phi joins its values. Loops are printed by `Body`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial, reduce

from typing_extensions import assert_never

from ..errors import CompilerBug
from ..ir.conditions import BEYOND
from ..ir.dtype import BOOL, I64, DType
from ..ir.expr import Apply, Cast, Const, Expr, Gather, Index, Load, Local, Variable
from ..ir.index import Symbol
from ..ir.loops import (
    Bind,
    Define,
    Fill,
    For,
    If,
    Kernel,
    Raise,
    Stay,
    Stmt,
    Store,
    Update,
    While,
    walk_statements,
)
from ..ir.ops import Op
from ..ir.walk import bottom_up, locals_read
from .bodies import ADD, changes, counted, is_count, updated
from .failures import raises
from .llvm_alike import Nests
from .llvm_appended import COUNTS, appended, count_of
from .llvm_chunks import Chunk, cut
from .llvm_extremes import greatest, lost
from .llvm_interleaved import Item, side_by_side
from .llvm_loops import Exit, Print, aside, is_short
from .llvm_masked import adding_nothing
from .llvm_memory import Edge, Lanes, Memory
from .llvm_text import Operand, Value, Writer, constant
from .llvm_values import any_lane, apply, cast, combined, divided_count, either, mask_lanes, select

__all__ = ["Statements"]


class Statements(ABC):
    """Prints the statements of one Kernel, but for its loops. Symbols and parameters are bound by the
    caller."""

    def __init__(self, writer: Writer, memory: Memory, kernel: Kernel, nests: Nests) -> None:
        self._writer = writer
        self._memory = memory
        self._nests = nests
        self._lanes = Lanes()
        self._values: dict[Variable, Value] = {}
        self._mutable = updated(kernel.body)
        self._accumulating: frozenset[Variable] = frozenset()
        self._in_order: frozenset[Variable] = frozenset()
        self._of_rows = False
        self._lost: dict[DType, Variable] = {}
        self._met: dict[Value, None] = {}
        self._bypassing = False
        self._edge: Edge | None = None
        self._loaded: dict[int, Value] = {}
        self._exit: Exit | None = None
        self._status = {id(stmt): number for number, stmt in enumerate(raises(kernel), 1)}

    @abstractmethod
    def _repeated(self, stmt: For | While | Fill) -> None:
        """A statement that is a loop."""

    @abstractmethod
    def _loop(
        self, symbol: Symbol, lo: Operand, hi: Operand, step: int, changed: tuple[Variable, ...], body: Print
    ) -> None:
        """A body for each value of a symbol."""

    @abstractmethod
    def _chunk(self, body: Chunk) -> None:
        """Statements that define nothing for those that follow, as a function of their own."""

    def statements(self, body: tuple[Stmt, ...]) -> None:
        if self._lanes.count > 1:
            self._items(side_by_side(body, self._lanes))
            self._look_for_nan()
        else:
            for part in cut(body):
                self._chunk(part) if isinstance(part, tuple) else self._statement(part)

    def _statement(self, stmt: Stmt) -> None:
        with self._writer.origin.at(stmt):
            match stmt:
                case Store(tensor=tensor, index=index, value=value, accum=None):
                    bypass, edge = (self._bypassing, self._edge) if stmt.bypass else (False, None)
                    self._memory.store(tensor, index, self._value(value), self._lanes, bypass, edge)
                case Define(variable=variable, value=value):
                    self._define(variable, self._value(value))
                case Update():
                    self._update(stmt)
                case Bind(symbol=symbol, value=value):
                    self._bind(symbol, self._value(value))
                case For() | While() | Fill():
                    self._repeated(stmt)
                case If(body=(Bind() as bind, *stores, Update() as update)) if self._lanes.count > 1:
                    self._append(stmt.condition, bind, stores, update)
                case If():
                    self._if(stmt)
                case Raise() | Stay():
                    self._way_out(stmt)
                case _:
                    aside(stmt, self._writer, self._memory, self._lanes)

    def _items(self, items: Iterable[Item]) -> None:
        """Statements, and stores to neighbours in one."""
        for item in items:
            if isinstance(item, tuple):
                parts = [self._value(store.value) for store in item]
                self._memory.store_groups(item[0].tensor, item[0].index, parts, self._lanes)
            else:
                self._statement(item)

    # Expressions

    def _value(self, expr: Expr) -> Value:
        return bottom_up(expr, self._node)

    def _node(self, node: Expr, args: tuple[Value, ...]) -> Value:
        match node:
            case Const(value=value, dtype=dtype):
                return constant(value, dtype)
            case Load() if id(node) in self._loaded:
                return self._loaded[id(node)]
            case Load(tensor=tensor, index=index):
                return self._memory.load(tensor, index, self._lanes)
            case Gather():
                return self._memory.gather(node, args, self._lanes)
            case Local(variable=variable):
                if variable in self._accumulating:
                    raise CompilerBug(f"{variable} is read while lanes accumulate it", stage="targets/llvm")
                return self._values[variable]
            case Index(value=position):
                return self._memory.index(position, self._lanes)
            case Apply() if is_count(node):
                return divided_count(self._writer, args)
            case Apply(op=op, dtype=dtype):
                return apply(self._writer, op, args, dtype)
            case Cast(dtype=dtype):
                return cast(self._writer, args[0], dtype)
            case _:
                assert_never(node)

    def _condition(self, expr: Expr) -> str:
        value = self._value(expr)
        if value.dtype is not BOOL or value.lanes > 1:
            raise CompilerBug("a branch on what differs from lane to lane", stage="targets/llvm")
        return value.text

    # Locals

    def _bind(self, symbol: Symbol, value: Value) -> None:
        if value.lanes > 1:
            raise CompilerBug(f"the number bound to {symbol} differs from lane to lane", stage="targets/llvm")
        self._memory.symbols[symbol] = int(value.text) if value.is_literal else value.text

    def _define(self, variable: Variable, value: Value) -> None:
        if variable in self._mutable:
            value = self._writer.widen(value, self._lanes.count)
        self._values[variable] = value

    def _update(self, update: Update) -> None:
        variable, accum = update.variable, update.accum
        condition = counted(update) if variable in self._in_order and self._lanes.present is None else None
        if condition is not None and COUNTS in self._writer.features:
            self._count(variable, condition)
            return
        new = old = self._values[variable]
        product = update.value.args if update.contract and isinstance(update.value, Apply) else None
        operands = [self._value(expr) for expr in product or (update.value,)]
        if accum is None:
            (new,) = operands
        elif accum in BEYOND and variable.dtype in self._lost:
            new = self._chosen(accum, old, operands[0])
        else:
            lanes = self._lanes.count if variable in self._in_order else 0
            if lanes and self._lanes.present is not None:
                operands = adding_nothing(self._writer, accum, operands, self._lanes)
            new = combined(self._writer, accum, old, operands, lanes, not self._of_rows)
        if new.lanes > old.lanes:
            raise CompilerBug(f"lanes assign different values to {variable}", stage="targets/llvm")
        self._values[variable] = self._writer.widen(new, old.lanes)

    def _count(self, count: Variable, condition: Expr) -> None:
        """The number of lanes in which a condition holds is added at once."""
        mask = self._writer.widen(self._value(condition), self._lanes.count)
        lanes = Value(count_of(self._writer, mask.text, mask.lanes), I64)
        args = (self._values[count], cast(self._writer, lanes, count.dtype))
        self._values[count] = apply(self._writer, ADD, args, count.dtype)

    def _chosen(self, op: Op, old: Value, value: Value) -> Value:
        """An extreme that takes no notice of NaN, which is looked for later."""
        value = self._writer.widen(value, old.lanes)
        self._met[value] = None
        return greatest(self._writer, op, old, value)

    def _look_for_nan(self) -> None:
        for dtype, nans in self._lost.items():
            if values := [value for value in self._met if value.dtype is dtype]:
                self._values[nans] = lost(self._writer, self._values[nans], values)
        self._met.clear()

    # Branches

    def _if(self, stmt: If) -> None:
        condition = self._value(stmt.condition)
        if condition.lanes > 1:
            self._if_any(stmt, condition)
            return
        then, orelse = partial(self.statements, stmt.body), partial(self.statements, stmt.orelse)
        self._guarded(condition.text, changes(stmt.body + stmt.orelse), then, orelse, stmt.seldom)

    def _if_any(self, stmt: If, condition: Value) -> None:
        """A branch inside a vector loop, seldom taken: when the condition holds in any lane. If it is short,
        all lanes take it, and the others keep what they had; else those lanes one by one."""
        plain = all(isinstance(inner, (Define, Update, If)) for inner in walk_statements(stmt.body))
        if stmt.orelse or not plain:
            raise CompilerBug("a branch on what differs from lane to lane", stage="targets/llvm")
        count, changed = condition.lanes, changes(stmt.body)
        read = set(locals_read(walk_statements(stmt.body)))
        inputs = [v for v in self._values if v in read and v not in changed and self._values[v].lanes > 1]
        lane = Symbol("lane")

        def one() -> None:
            number, whole = self._memory.symbols[lane], dict(self._values)
            for variable in (*inputs, *changed):
                self._values[variable] = self._writer.lane(whole[variable], number)
            holds = self._writer.lane(condition, number)
            self._guarded(holds.text, changed, partial(self.statements, stmt.body))
            for variable in inputs:
                self._values[variable] = whole[variable]
            for variable in changed:
                self._values[variable] = self._writer.with_lane(
                    whole[variable], number, self._values[variable]
                )

        def one_by_one() -> None:
            lanes, self._lanes = self._lanes, Lanes()
            self._loop(lane, 0, count, 1, changed, one)
            self._lanes = lanes

        def together() -> None:
            before = [self._values[variable] for variable in changed]
            self.statements(stmt.body)
            for variable, old in zip(changed, before, strict=True):
                self._values[variable] = select(self._writer, condition.text, self._values[variable], old)

        branch = together if is_short(stmt.body) else one_by_one
        dtypes = [variable.dtype for variable in changed]
        self._guarded(self._any_lane(stmt.condition, condition, dtypes), changed, branch, seldom=True)

    def _any_lane(self, condition: Expr, value: Value, dtypes: Sequence[DType]) -> str:
        """Whether a condition about such dtypes, which has that value, holds in any lane. Where masks have
        registers of their own, each register of what is compared gives one, and to pack them takes longer
        than to combine them: so what the condition asks is asked register by register."""
        writer, lanes = self._writer, mask_lanes(self._writer, dtypes)
        if not isinstance(condition, Apply) or not 0 < lanes < value.lanes:
            return any_lane(writer, value, dtypes)

        def of_part(node: Expr, args: tuple[Value, ...], start: int) -> Value:
            found = self._node(node, args)
            is_whole = found.lanes == value.lanes
            return writer.shuffle(found, range(start, start + lanes)) if is_whole else found

        starts = range(0, value.lanes, lanes)
        parts = [bottom_up(condition, partial(of_part, start=start)) for start in starts]
        return any_lane(writer, reduce(partial(either, writer), parts), dtypes)

    def _append(self, condition: Expr, bind: Bind, stores: Iterable[Stmt], update: Update) -> None:
        """The lanes for which a condition holds, stored side by side from a number on, which they add to."""
        self._bind(bind.symbol, self._value(bind.value))
        values = [(store, self._value(store.value)) for store in stores if isinstance(store, Store)]
        count = appended(self._writer, self._memory, self._lanes, self._value(condition), values)
        number = self._values[update.variable]
        self._values[update.variable] = replace(number, text=self._writer.pure(f"add {number}, {count}"))

    def _way_out(self, stmt: Raise | Stay) -> None:
        """Out of the function, or out of the loop, if it is printed as one, when no lane is to stay."""
        writer, stay = self._writer, self._writer.fresh("stay")
        if isinstance(stmt, Raise):
            fail = writer.fresh("fail")
            writer.branch(self._condition(stmt.condition), fail, stay, seldom=True)
            writer.start(fail)
            writer.emit(f"ret i32 {self._status[id(stmt)]}")
            writer.start(stay)
        elif self._exit is not None:
            dtypes = [variable.dtype for variable in self._exit.changed]
            holds = any_lane(writer, self._value(stmt.condition), dtypes)
            self._exit.values[writer.block] = [self._values[variable] for variable in self._exit.changed]
            writer.branch(holds, stay, self._exit.label)
            writer.start(stay)

    def _guarded(
        self,
        condition: str | bool,
        changed: tuple[Variable, ...],
        then: Print,
        orelse: Print = lambda: None,
        seldom: bool = False,
    ) -> None:
        """`if condition: then() else: orelse()`, where both together may change `changed`."""
        if isinstance(condition, bool):
            (then if condition else orelse)()
            return
        writer = self._writer
        yes, no, join = writer.fresh("then"), writer.fresh("else"), writer.fresh("join")
        before = {variable: self._values[variable] for variable in changed}
        writer.branch(condition, yes, no, seldom)
        ends = []
        for label, branch in ((yes, then), (no, orelse)):
            self._values.update(before)
            writer.start(label)
            with writer.scope():
                branch()
            ends.append((writer.block, {variable: self._values[variable] for variable in changed}))
            writer.jump(join)
        writer.start(join)
        for variable in changed:
            self._values[variable] = writer.phi({block: after[variable] for block, after in ends})
