"""append: what a condition selects is put side by side, a register at a time.

    for k in sequential(0, 1000):                   for k in sequential(0, 999, lanes=8):
        n = reached                                     t = x[k]
        t = x[k]                                        c = greater(t, 0.5)
        selected[n] = t                   ->            if c:
        c = greater(t, 0.5)                                 n = reached
        reached = add(reached, cast(c))                     selected[n] = t
                                                            reached = add(reached, 1)
                                                    n = reached
                                                    selected[n] = x[999]  ... as before

Every iteration stores, and the next one overwrites what was not selected: without a branch that nobody could
foresee. Where one instruction puts chosen lanes of a register side by side, those alone are stored. The last
iteration is done as before, since what it stores stays, selected or not. Selections take 0.3 to 0.5 of the
time where caches hold them. Nothing that is stored may be read in the loop, which must read neighbours.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field, replace

from ...frozen import slotted
from ...ir.code import Caps
from ...ir.dtype import BOOL, I64
from ...ir.expr import Apply, Cast, Const, Expr, Gather, Index, Load, Local, Variable, dtype_of
from ...ir.index import Affine, Symbol, symbols_of
from ...ir.loops import Bind, Comment, Define, For, If, Kernel, LoopKind, Stmt, Store, Update
from ...ir.ops import OPS, divides_integers, is_of_library
from ...ir.walk import expressions, rewrite_loops, walk
from ..analysis.copies import copy_body, unless_once
from ..analysis.strides import stride
from ..analysis.trips import greater

__all__ = ["append"]

LONG = 4
"""So many registers are worth it."""

ADD = OPS["add"]


def append(kernel: Kernel, caps: Caps) -> Kernel:
    """Every such loop with its selections a register at a time."""
    notes: list[str] = []

    def appending(loop: For) -> Iterable[Stmt] | None:
        if loop.kind in (LoopKind.VECTOR, LoopKind.LOCKSTEP):
            return (loop,)
        found = _Appending.of(loop, caps)
        if found is None:
            return None
        notes.append(
            f"append: loop {loop.symbol.hint} puts what it selects side by side, {found.lanes} at a time"
        )
        return found.loops()

    return kernel.with_body(rewrite_loops(kernel.body, appending), notes) if caps.packed else kernel


@slotted
class _Selection:
    """What is stored at a number of outside, which then grows by one if the condition holds."""

    bind: Bind
    number: Variable
    stores: list[Store] = field(default_factory=list)
    condition: Expr | None = None

    def branch(self) -> If:
        assert self.condition is not None
        more = Apply(ADD, (Local(self.number), Const(1, I64)), I64)
        return If(self.condition, (self.bind, *self.stores, Update(self.number, more)))


@slotted
class _Appending:
    """A loop that selects, taken apart: what its body defines, and its selections."""

    loop: For
    lanes: int
    defined: list[Stmt] = field(default_factory=list)
    selections: dict[Variable, _Selection] = field(default_factory=dict)

    @staticmethod
    def of(loop: For, caps: Caps) -> _Appending | None:
        if loop.kind is not LoopKind.SEQUENTIAL or loop.step != 1 or loop.lanes > 1:
            return None
        found = _Appending(loop, 1)
        if not all(map(found.takes, loop.body)) or not found.selections:
            return None
        lanes = found.in_registers(caps)
        if lanes is None or (loop.trips is not None and loop.trips < LONG * lanes):
            return None
        found.lanes = lanes
        return found

    def takes(self, stmt: Stmt) -> bool:
        """Whether a statement is part of such a loop; then it is sorted in."""
        match stmt:
            case Comment():
                return True
            case Define():
                self.defined.append(stmt)
                return True
            case Bind(value=Local(variable=number)) if number not in self.selections:
                self.selections[number] = _Selection(stmt, number)
                return True
            case Store(accum=None, bypass=False):
                return self.stores(stmt)
            case Update(variable=number, value=value, accum=None) if number in self.selections:
                selection = self.selections[number]
                if selection.condition is None:
                    selection.condition = _added_to(number, value)
                    return selection.condition is not None
        return False

    def stores(self, store: Store) -> bool:
        """Whether a store is of a selection: at its number in the last place, and at what the loop does not
        change in the others."""
        *before, last = store.index or (Affine.of(0),)
        for selection in self.selections.values():
            symbol = selection.bind.symbol
            if last.coefficient(symbol) == 1 and selection.condition is None:
                changing = {self.loop.symbol, *(other.bind.symbol for other in self.selections.values())}
                if changing.isdisjoint(symbols_of((*before, last - Affine.of(symbol)))):
                    selection.stores.append(store)
                    return stride(store.tensor, store.index, symbol) == 1
        return False

    def in_registers(self, caps: Caps) -> int | None:
        """How many lanes a register has for all that the loop computes; None if it cannot go in lanes."""
        stores = [store for selection in self.selections.values() for store in selection.stores]
        if not all(selection.stores and selection.condition for selection in self.selections.values()):
            return None
        stored = {store.tensor.storage for store in stores}
        if len(stored) < len(stores) or any(
            store.tensor.dtype.itemsize not in caps.packed for store in stores
        ):
            return None
        symbols = {selection.bind.symbol for selection in self.selections.values()}
        conditions = [selection.condition for selection in self.selections.values() if selection.condition]
        given = [expr for stmt in (*self.defined, *stores) for expr in expressions(stmt)]
        nodes = [node for expr in (*given, *conditions) for node in walk(expr)]
        for node in nodes:
            match node:
                case Load(tensor=tensor, index=index):
                    step = stride(tensor, index, self.loop.symbol)
                    if step not in (0, 1) or tensor.storage in stored or symbols & set(symbols_of(index)):
                        return None
                case Local(variable=variable) if variable in self.selections:
                    return None
                case Index(value=value) if symbols & set(value.symbols):
                    return None
                case Gather():
                    return None
                case Apply(op=op, dtype=dtype) if is_of_library(op) or divides_integers(op, dtype):
                    return None
        return caps.vector_bytes // max(dtype_of(node).itemsize for node in (*nodes, *given))

    def loops(self) -> tuple[Stmt, ...]:
        """All iterations but the last one, then that, if there is any."""
        loop = self.loop
        last: Affine = loop.hi - 1
        before: tuple[Stmt, ...] = ()
        if loop.trips is None:
            symbol = Symbol("last")
            before, last = (Bind(symbol, greater(last, loop.lo)),), Affine.of(symbol)
        branches = [selection.branch() for selection in self.selections.values()]
        appending = replace(loop, hi=last, body=(*self.defined, *branches), lanes=self.lanes)
        final = Symbol(loop.symbol.hint)
        body = copy_body(loop.body, {loop.symbol: Affine.of(final)}, {})
        return (*before, appending, *unless_once(For(final, last, loop.hi, body)))


def _added_to(number: Variable, value: Expr) -> Expr | None:
    """The condition that is counted, if a value is a number with one added where it holds."""
    match value:
        case Apply(op=op, args=(Local(variable=variable), Cast(arg=condition))) if op is ADD:
            return condition if variable is number and dtype_of(condition) is BOOL else None
        case _:
            return None
