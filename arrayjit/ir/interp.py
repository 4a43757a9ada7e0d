"""The meaning of both IRs, in plain NumPy: the reference that every target is compared with.

`run` executes a Kernel, `run_computation` a Computation, on the parameters' arrays, in place.

Iterations that may be taken together are: a `Frame` is the list of those alive at one statement, in the
program's order, and every value is one number for all of them or an array with one number each. A loop
whose iterations are not visibly independent runs one iteration at a time. Temporaries start out filled
with NaN or an extreme integer, so that reading before writing shows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from typing_extensions import assert_never

from ..errors import CompilerBug
from .assign import Assign, Bind, Branch, Check, Computation, Loop, Note, Statement, While
from .evaluation import Evaluation, converted
from .expr import Apply, Cast, Const, Expr, Gather, Index, Load, Local, Variable
from .frame import Array, Frame, Number, Step, accumulate, spread
from .index import Affine, Symbol
from .loops import (
    Barrier,
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
    walk_statements,
)
from .loops import While as WhileStmt
from .matrices import multiplied
from .memory import Memory
from .ops import Op, op
from .tensor import Tensor
from .walk import locals_read, outer_updates

__all__ = ["KernelRaise", "run", "run_computation"]

MAX_LANES = 1 << 20  # iterations taken together: bounds the memory of a run
EVALUATION = Evaluation()
_IN_ORDER = (LoopKind.SEQUENTIAL, LoopKind.UNROLLED, LoopKind.LOCKSTEP)


class KernelRaise(Exception):
    """The program left through `stmt`, a Raise or a Check."""

    def __init__(self, stmt: Raise | Check) -> None:
        super().__init__(f"{stmt.exception}: {stmt.message}")
        self.stmt = stmt


def run(kernel: Kernel, arrays: Mapping[Tensor, Array], bindings: Mapping[Symbol, int] | None = None) -> None:
    """Execute a kernel on its parameters' arrays, in place. `bindings` has every static and dimension
    symbol. Raises KernelRaise."""
    memory = Memory(kernel, arrays, bindings or {})
    with np.errstate(all="ignore"):
        _Interpreter(memory).body(kernel.body, Frame.root(bindings or {}))


def run_computation(
    computation: Computation, arrays: Mapping[Tensor, Array], bindings: Mapping[Symbol, int] | None = None
) -> None:
    """Execute a computation on its parameters' arrays, in place: what lowering must preserve. Every
    assignment evaluates its right side over the whole product space, then stores; points that reach one
    cell are combined in row-major order. Raises KernelRaise."""
    memory = Memory(None, arrays, bindings or {})
    with np.errstate(all="ignore"):
        _Interpreter(memory).statements(computation.body, Frame.root(bindings or {}))


# ---- what loops may do together ----------------------------------------------------------------------


def _outer_updates(loop: For | WhileStmt) -> list[Update]:
    """The updates in a loop of variables defined outside it."""
    return outer_updates(list(walk_statements((loop,))))


def _independent(loop: For) -> bool:
    """Whether taking all iterations together, statement by statement, visibly changes nothing: cells
    stored to differ, and a variable from outside is only accumulated onto, in one place, in order."""
    inside = list(walk_statements(loop.body))
    own = {loop.symbol}
    if loop.kind in (LoopKind.GRID, LoopKind.BLOCK):  # numbers made of an iteration's tell it from others
        own.update(stmt.symbol for stmt in loop.body if isinstance(stmt, Bind))
    for stmt in inside:
        if isinstance(stmt, (Fill, Multiply)):
            return False
        if isinstance(stmt, Store) and stmt.accum is not None:
            continue
        if isinstance(stmt, (Store, Copy)) and not any(s in own for p in stmt.index for s in p.symbols):
            return False
    updates = _outer_updates(loop)
    if not updates:
        return True
    if any(update.accum is None for update in updates):
        return False
    if max(Counter(update.variable for update in updates).values()) > 1:
        return False
    touched = {update.variable for update in updates}
    return touched.isdisjoint(locals_read(inside)) and all(
        isinstance(inner, For) and _together(inner)
        for inner in inside
        if isinstance(inner, (For, WhileStmt))
        and not touched.isdisjoint(u.variable for u in _outer_updates(inner))
    )


def _together(loop: For) -> bool:
    return loop.kind not in (*_IN_ORDER, LoopKind.VECTOR, LoopKind.BLOCK) and _independent(loop)


# ---- statements and expressions ----------------------------------------------------------------------


class _Interpreter:
    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._known_independent: dict[int, bool] = {}

    def value(self, expr: Expr, frame: Frame) -> Array:
        match expr:
            case Const(value=number, dtype=dtype):
                return np.array(number, dtype.numpy)
            case Load(tensor=tensor, index=index):
                return self._memory.load(tensor, [frame.affine(position) for position in index])
            case Gather(tensor=tensor, index=computed):
                return self._memory.load(tensor, [self.value(position, frame) for position in computed])
            case Local(variable=variable):
                return frame.read(variable)
            case Index(value=affine):
                return _as_int64(frame.affine(affine))
            case Apply(op=applied, args=args, dtype=dtype):
                values = [self.value(arg, frame) for arg in args]
                # What stands apart has the bits of its definition, which is what targets print.
                result = EVALUATION.op(applied.name, *values) if applied.apart else applied.ref(*values)
                result = np.asarray(result)
                if result.dtype != dtype.numpy:
                    raise CompilerBug(f"{applied} gives {result.dtype}, not {dtype.name}", stage="interp")
                return result
            case Cast(arg=arg, dtype=dtype):
                return converted(self.value(arg, frame), dtype)
            case _:
                assert_never(expr)

    def body(self, body: tuple[Stmt, ...], frame: Frame) -> None:
        for stmt in body:
            self._statement(stmt, frame)

    def _statement(self, stmt: Stmt, frame: Frame) -> None:
        match stmt:
            case Define(variable=variable, value=value):
                frame.values[variable] = self.value(value, frame)
            case Update():
                self._update(stmt, frame)
            case Bind():
                self._bind(stmt, frame)
            case Store() | Fill() | Copy() | Multiply():
                self._write(stmt, frame)
            case If(condition=condition, body=body, orelse=orelse):
                self._branch(self.value(condition, frame), body, orelse, frame)
            case Raise(condition=condition):
                if self.value(condition, frame).any():
                    raise KernelRaise(stmt)
            case For():
                self._loop(stmt, frame)
            case WhileStmt():
                self._while(stmt, frame)
            case Lap() | Stay() | Prefetch() | Barrier() | Comment():
                self._aside(stmt)
            case _:
                assert_never(stmt)

    def _aside(self, stmt: Lap | Stay | Prefetch | Barrier | Comment) -> None:
        """A statement that changes nothing of the program's."""
        if isinstance(stmt, Lap):
            self._memory.lap(stmt.times, stmt.number)

    def _write(self, stmt: Store | Fill | Copy | Multiply, frame: Frame) -> None:
        match stmt:
            case Store(tensor=tensor, index=index, value=value, accum=None):
                cells = [frame.affine(position) for position in index]
                self._memory.store(tensor, cells, self.value(value, frame))
            case Store(tensor=tensor, index=index, value=value, accum=Op() as accum):
                added = spread(self.value(value, frame), frame.lanes)
                self._combine(tensor, _cell(frame, index), accum.ref, (added,))
            case Fill(tensor=tensor, value=value):
                self._memory.fill(tensor, self.value(value, frame))
            case Copy():
                self._copy(stmt, frame)
            case Multiply(total=total):
                sums, left, right = (
                    self._memory.cells(tensor).array for tensor in (total, stmt.left, stmt.right)
                )
                stage = frame.affine(stmt.stage)
                left = left if stmt.owns_left else left[stage]
                sums[...] = multiplied(stmt, sums, left, right[stage])

    def _copy(self, copy: Copy, frame: Frame) -> None:
        """At once, as far as the program can tell."""
        count = spread(self.value(copy.count, frame), frame.lanes)
        into, source = _cell(frame, copy.index), _cell(frame, copy.at)
        for cell in range(copy.cells):
            exist = np.flatnonzero(count > cell)
            values = np.zeros(frame.lanes, copy.into.dtype.numpy)
            if exist.size:
                *before, last = (position[exist] for position in source)
                values[exist] = self._memory.load(copy.source, [*before, last + cell])
            *before, last = into
            self._memory.store(copy.into, [*before, last + cell], values)

    def _update(self, update: Update, frame: Frame) -> None:
        variable, value, accum = update.variable, update.value, update.accum
        if accum is None:
            frame.write(variable, self.value(value, frame))
        else:
            frame.combine(variable, *self._combination(accum, update.contract, value, frame))

    def _bind(self, bind: Bind, frame: Frame) -> None:
        symbol, value = bind.symbol, self.value(bind.value, frame)
        below = symbol.lower is not None and (value < symbol.lower).any()
        if below or (symbol.upper is not None and (value >= symbol.upper).any()):
            raise CompilerBug(f"a number bound to {symbol.hint} lies outside its range", stage="interp")
        frame.symbols[symbol] = value if value.ndim else int(value)

    def _branch(
        self, condition: Array, body: tuple[Stmt, ...], orelse: tuple[Stmt, ...], frame: Frame
    ) -> None:
        if condition.ndim == 0:
            self.body(body if condition else orelse, frame.same())
            return
        for chosen, branch in ((condition, body), (~condition, orelse)):
            alive = np.flatnonzero(chosen)
            if alive.size:
                self.body(branch, frame.chosen(alive))

    def _combination(
        self, accum: Op, contract: bool, value: Expr, frame: Frame
    ) -> tuple[Step, tuple[Array, ...]]:
        """How a value is combined onto a cell, and what with: two factors when contracted."""
        if not contract:
            return accum.ref, (self.value(value, frame),)
        if not isinstance(value, Apply) or len(value.args) != 2:
            raise CompilerBug("a contracted update needs a product", stage="interp")
        if value.dtype.is_complex:
            return accum.ref, (self.value(value, frame),)
        fma = op("fma").ref
        left, right = value.args
        return (lambda sofar, x, y: fma(x, y, sofar)), (self.value(left, frame), self.value(right, frame))

    # loops

    def _loop(self, loop: For, frame: Frame) -> None:
        span = frame.affine(loop.lo - loop.hi)
        count = np.maximum(0, -(span // loop.step))
        if count.ndim == 0 or (count.size and (count == count[0]).all()):
            self._even(loop, frame, int(count.max()))
        elif loop.kind in (LoopKind.VECTOR, LoopKind.BLOCK):
            for shared in np.unique(count):
                self._even(loop, frame.chosen(np.flatnonzero(count == shared)), int(shared))
        elif self._may_together(loop):
            origin = np.repeat(np.arange(frame.lanes), count)
            number = np.arange(len(origin)) - np.repeat(np.cumsum(count) - count, count)
            self._iterate(loop, frame.chosen(origin), number)
        else:
            for turn in range(int(count.max(initial=0))):
                self._iterate(loop, frame.chosen(np.flatnonzero(count > turn)), turn)

    def _even(self, loop: For, frame: Frame, count: int) -> None:
        """A loop with one number of iterations in every lane."""
        done = 0
        if loop.kind in (LoopKind.VECTOR, LoopKind.BLOCK) and _outer_updates(loop):
            done = count if loop.kind is LoopKind.BLOCK else count - count % loop.lanes
            if done:
                self._lanes(loop, frame, done)
        elif self._may_together(loop):
            size = max(1, MAX_LANES // max(1, frame.lanes))
            for first in range(0, count, size):
                origin, number = _grid(frame.lanes, first, min(first + size, count))
                self._iterate(loop, frame.chosen(origin), number)
            return
        for turn in range(done, count):
            self._iterate(loop, frame.same(), turn)

    def _lanes(self, loop: For, frame: Frame, count: int) -> None:
        """The whole vectors of an accumulating vector loop, or all of one that a block takes: partial values
        per lane, folded in half."""
        lanes = loop.lanes
        partials = frame.chosen(np.repeat(np.arange(frame.lanes), lanes))
        accumulated = {update.variable: update for update in _outer_updates(loop)}
        steps = {variable: _accumulator(update) for variable, update in accumulated.items()}
        for variable, accum in steps.items():
            partials.values[variable] = _identity(accum, variable, partials.lanes)
        size = max(lanes, MAX_LANES // max(1, frame.lanes) // lanes * lanes)
        size = size if self._may_together(loop) else lanes
        for first in range(0, count, size):
            origin, number = _grid(frame.lanes, first, min(first + size, count))
            self._iterate(loop, partials.chosen(origin * lanes + number % lanes), number)
        for variable, accum in steps.items():
            folded = spread(partials.values[variable], partials.lanes).reshape(frame.lanes, lanes)
            while folded.shape[1] > 1:
                half = folded.shape[1] // 2
                folded = np.asarray(accum.ref(folded[:, :half], folded[:, half:]))
            frame.combine(variable, accum.ref, (folded.reshape(-1 if frame.lanes > 1 else ()),))

    def _iterate(self, loop: For, frame: Frame, number: Number) -> None:
        """The loop's body in a frame whose iterations have these numbers, counted from 0."""
        frame.symbols[loop.symbol] = frame.affine(loop.lo) + number * loop.step
        self.body(loop.body, frame)

    def _may_together(self, loop: For) -> bool:
        known = self._known_independent.get(id(loop))
        if known is None:
            known = loop.kind not in _IN_ORDER and _independent(loop)
            self._known_independent[id(loop)] = known
        return known

    def _while(self, loop: WhileStmt, frame: Frame) -> None:
        """Iterations for which the condition no longer holds wait for the others."""
        going = np.arange(frame.lanes)
        while going.size:
            turn = frame.same() if going.size == frame.lanes else frame.chosen(going)
            self.body(loop.test, turn)
            holds = np.flatnonzero(np.broadcast_to(self.value(loop.condition, turn), going.shape))
            if holds.size:
                self.body(loop.body, turn.same() if holds.size == going.size else turn.chosen(holds))
            going = going[holds]

    # the assignment IR

    def statements(self, body: tuple[Statement, ...], frame: Frame) -> None:
        for statement in body:
            match statement:
                case Assign():
                    self._assign(statement, frame)
                case Check(loops=loops, condition=condition):
                    points = _points(frame, loops)
                    if points.lanes and not self.value(condition, points).all():
                        raise KernelRaise(statement)
                case Loop(symbol=symbol, lo=lo, hi=hi, step=step, body=inner):
                    for number in range(int(frame.affine(lo)), int(frame.affine(hi)), step):
                        once = frame.same()
                        once.symbols[symbol] = number
                        self.statements(inner, once)
                case Bind():
                    self._bind(statement, frame)
                case Branch(condition=condition, body=inner, orelse=orelse):
                    self.statements(inner if self.value(condition, frame) else orelse, frame.same())
                case While(test=test, condition=condition, body=inner):
                    once = frame.same()
                    self.statements(test, once)
                    while self.value(condition, once):
                        self.statements(inner, once)
                        once = frame.same()
                        self.statements(test, once)
                case Note():
                    pass
                case _:
                    assert_never(statement)

    def _assign(self, assign: Assign, frame: Frame) -> None:
        points = _points(frame, assign.loops)
        if assign.accum is not None:
            self._reduce(assign, assign.accum, points, frame)
        elif points.lanes:
            values = spread(self.value(assign.value, points), points.lanes)
            self._memory.store(assign.into, _cell(points, assign.index), values)

    def _reduce(self, assign: Assign, accum: Op, points: Frame, frame: Frame) -> None:
        if points.lanes:
            step, given = self._combination(accum, assign.contract, assign.value, points)
            operands = tuple(spread(operand, points.lanes) for operand in given)
        if assign.initial is not None:
            cells = _points(frame, assign.cell_loops)
            start = spread(self.value(assign.initial, cells), cells.lanes)
            self._memory.store(assign.into, _cell(cells, assign.index), start)
        if points.lanes:
            self._combine(assign.into, _cell(points, assign.index), step, operands)

    def _combine(
        self, tensor: Tensor, index: Sequence[NDArray[np.int64]], step: Step, operands: Sequence[Array]
    ) -> None:
        """Combine operands onto the cells that iterations reach; those that share one follow in order."""
        shape = self._memory.cells(tensor).array.shape
        _, first, positions = np.unique(_row_major(index, shape), return_index=True, return_inverse=True)
        reached = [position[first] for position in index]
        held = self._memory.load(tensor, reached)
        self._memory.store(tensor, reached, accumulate(step, held, positions.reshape(-1), operands))


def _accumulator(update: Update) -> Op:
    if update.accum is None:
        raise CompilerBug(f"a vector loop overwrites {update.variable.hint}", stage="interp")
    return update.accum


def _identity(accum: Op, variable: Variable, lanes: int) -> Array:
    if accum.identity is None:
        raise CompilerBug(f"{accum} has no identity to accumulate from", stage="interp")
    return np.full(lanes, accum.identity(variable.dtype), variable.dtype.numpy)


def _grid(lanes: int, first: int, last: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Iterations `first` to `last` of every lane: which lane each belongs to, and its number."""
    return np.repeat(np.arange(lanes), last - first), np.tile(np.arange(first, last), lanes)


def _points(frame: Frame, loops: tuple[tuple[Symbol, Affine], ...]) -> Frame:
    """The points of a product space, in row-major order."""
    shape = tuple(max(0, int(frame.affine(extent))) for _, extent in loops)
    total = int(np.prod(shape))
    points = frame.chosen(np.zeros(total, np.int64))
    for (symbol, _), position in zip(loops, np.indices(shape).reshape(len(shape), total), strict=True):
        points.symbols[symbol] = position
    return points


def _cell(points: Frame, index: tuple[Affine, ...]) -> list[NDArray[np.int64]]:
    """The cell that each point reaches; a tensor without axes has its cell at position 0."""
    positions: list[Number] = [points.affine(position) for position in index] or [0]
    return [np.array(np.broadcast_to(position, (points.lanes,)), np.int64) for position in positions]


def _as_int64(number: Number) -> Array:
    """The number in 64 bits, beyond which it wraps around."""
    if isinstance(number, int):
        number = (number + 2**63) % 2**64 - 2**63
    return np.asarray(number, np.int64)


def _row_major(index: Sequence[NDArray[np.int64]], shape: tuple[int, ...]) -> NDArray[np.int64]:
    number = np.zeros(len(index[0]), np.int64)
    for position, extent in zip(index, shape, strict=True):
        number = number * extent + position
    return number
