"""The meaning of both IRs, in plain NumPy.

`run` executes a Kernel and `run_computation` a Computation on the arrays of their parameters, in place.
Every target is compared with the first, lowering and everything after it with the second. Temporaries
start from poison (NaN, the least integer), so that reading a cell before it is written shows.

Parallel loops run all at once: the symbol becomes an array of its values on an axis of its own, in front of
those of the enclosing loops, and NumPy's broadcasting does the rest. Loops that carry a value from one
iteration to the next run one iteration at a time; accumulating vector loops take `lanes` iterations at a
time, exactly as `loops.py` defines them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from typing_extensions import assert_never

from .assign import Assign, Check, Computation, Loop, Note, Statement
from .dtype import BOOL, DType
from .expr import Apply, Cast, Const, Expr, Gather, Index, Load, Local, Variable, dtype_of
from .index import Affine, Symbol
from .loops import (
    Barrier,
    Comment,
    Define,
    Fill,
    For,
    If,
    Kernel,
    LoopKind,
    Raise,
    Stmt,
    Store,
    Update,
    walk_statements,
)
from .ops import OPS, Op
from .tensor import Tensor

__all__ = ["KernelRaise", "run", "run_computation"]

Value = Any  # a NumPy scalar, or an array over the axes of the active parallel loops


class KernelRaise(Exception):
    """The program left with an exception; `cause` is the statement that did."""

    def __init__(self, cause: Raise | Check) -> None:
        super().__init__(f"{cause.exception}: {cause.message}")
        self.cause = cause


def run(
    kernel: Kernel, arrays: Mapping[Tensor, np.ndarray], bindings: Mapping[Symbol, int] | None = None
) -> None:
    """Execute a kernel. Raises KernelRaise, and IndexError for a cell outside its tensor."""
    state = _State(_Memory(arrays, bindings or {}), dict(bindings or {}))
    with np.errstate(all="ignore"):
        _execute(kernel.body, state)


def run_computation(
    computation: Computation,
    arrays: Mapping[Tensor, np.ndarray],
    bindings: Mapping[Symbol, int] | None = None,
) -> None:
    """Execute a computation: each assignment reads its whole right side, then stores."""
    state = _State(_Memory(arrays, bindings or {}), dict(bindings or {}))
    with np.errstate(all="ignore"):
        _perform(computation.body, state)


@dataclass(slots=True)
class _Cells:
    """Memory of a tensor: cell 0 of a flat tensor is `array[origin]`."""

    array: np.ndarray
    origin: int = 0


class _Memory:
    """The arrays of tensors; temporaries are made at their first use."""

    def __init__(self, arrays: Mapping[Tensor, np.ndarray], bindings: Mapping[Symbol, int]) -> None:
        self._cells = {tensor: _Cells(array) for tensor, array in arrays.items()}
        self._bindings = bindings

    def __getitem__(self, tensor: Tensor) -> _Cells:
        cells = self._cells.get(tensor)
        if cells is None:
            cells = self._poisoned(tensor) if tensor.base is None else _flat(self[tensor.base].array)
            self._cells[tensor] = cells
        return cells

    def _poisoned(self, tensor: Tensor) -> _Cells:
        shape = tuple(extent.evaluate(self._bindings) for extent in tensor.shape)
        return _Cells(np.full(shape, _poison(tensor.dtype), tensor.dtype.numpy))


def _poison(dtype: DType) -> Any:
    if dtype.is_float:
        return np.nan
    return True if dtype is BOOL else np.iinfo(dtype.name).max


def _flat(array: np.ndarray) -> _Cells:
    if array.flags.c_contiguous:
        return _Cells(array.reshape(-1))
    low, high = np.lib.array_utils.byte_bounds(array)
    first = array.__array_interface__["data"][0]
    below = (first - low) // array.itemsize
    corner = array[tuple(slice(0, 1) if step >= 0 else slice(-1, None) for step in array.strides)]
    whole = np.lib.stride_tricks.as_strided(corner, ((high - low) // array.itemsize,), (array.itemsize,))
    return _Cells(whole, below)


@dataclass(slots=True)
class _State:
    """What is in force at a statement. `depth` counts the axes of active parallel loops, `mask` tells
    which of their iterations are active (None: all)."""

    memory: _Memory
    symbols: dict[Symbol, Any]
    variables: dict[Variable, Value] = field(default_factory=dict)
    depth: int = 0
    mask: np.ndarray | None = None

    def index(self, position: Affine) -> Any:
        total: Any = position.offset
        for coefficient, symbol in position.terms:
            total = total + coefficient * self.symbols[symbol]
        return total

    def cells(self, tensor: Tensor, index: tuple[Any, ...]) -> tuple[np.ndarray, tuple[Any, ...]]:
        """The array and the checked positions in it."""
        cells = self.memory[tensor]
        checked = []
        for position, extent in zip(index, cells.array.shape, strict=True):
            place = position + cells.origin
            if self.mask is not None:
                place = np.where(self.mask, place, 0)
            if np.size(place) and not (np.min(place) >= 0 and np.max(place) < extent):
                raise IndexError(f"{tensor} is accessed at {position}, outside 0..{extent - 1}")
            checked.append(place)
        return cells.array, tuple(checked)


def _evaluate(expr: Expr, state: _State) -> Value:
    match expr:
        case Const(value=value, dtype=dtype):
            return dtype.numpy.type(value)
        case Load(tensor=tensor, index=index):
            array, place = state.cells(tensor, tuple(state.index(part) for part in index))
            return array[place]
        case Gather(tensor=tensor, index=parts):
            array, place = state.cells(tensor, tuple(_evaluate(part, state) for part in parts))
            return array[place]
        case Local(variable=variable):
            return state.variables[variable]
        case Index(value=value):
            return np.int64(0) + state.index(value)
        case Apply(op=op, args=args, dtype=dtype):
            return _apply(op, dtype, *(_evaluate(arg, state) for arg in args))
        case Cast(arg=arg, dtype=dtype):
            return np.asarray(_evaluate(arg, state)).astype(dtype.numpy)[()]
        case _:
            assert_never(expr)


def _apply(op: Op, dtype: DType, *args: Value) -> Value:
    result = op.ref(*args)
    if isinstance(result, tuple):
        result = result[op.output]
    return np.asarray(result).astype(dtype.numpy, copy=False)[()]


def _accumulated(stmt: Update | Assign, accum: Op, held: Value, state: _State) -> Value:
    """The held value combined with the statement's value."""
    value = stmt.value
    dtype = dtype_of(value)
    if not stmt.contract:
        return _apply(accum, dtype, held, _evaluate(value, state))
    assert isinstance(value, Apply)
    x, y = (_evaluate(arg, state) for arg in value.args)
    return _apply(OPS["fma"], dtype, x, y, held)


def _execute(body: tuple[Stmt, ...], state: _State) -> None:
    for stmt in body:
        match stmt:
            case For():
                _loop(stmt, state)
            case Store(tensor=tensor, index=index, value=value):
                place = tuple(state.index(part) for part in index)
                _store(tensor, place, _evaluate(value, state), state)
            case Fill(tensor=tensor, value=value):
                state.memory[tensor].array[...] = _evaluate(value, state)
            case Define(variable=variable, value=value):
                state.variables[variable] = _evaluate(value, state)
            case Update():
                _update(stmt, state)
            case If():
                _branch(stmt, state)
            case Raise(condition=condition):
                if np.any(_evaluate(condition, state) & (True if state.mask is None else state.mask)):
                    raise KernelRaise(stmt)
            case Barrier() | Comment():
                pass
            case _:
                assert_never(stmt)


def _store(tensor: Tensor, place: tuple[Any, ...], value: Value, state: _State) -> None:
    array, place = state.cells(tensor, place)
    if state.mask is None:
        array[place] = value
        return
    *positions, new, active = np.broadcast_arrays(*place, value, state.mask)
    array[tuple(position[active] for position in positions)] = new[active]


def _update(stmt: Update, state: _State) -> None:
    held = state.variables[stmt.variable]
    accum = stmt.accum
    new = _evaluate(stmt.value, state) if accum is None else _accumulated(stmt, accum, held, state)
    state.variables[stmt.variable] = new if state.mask is None else np.where(state.mask, new, held)


def _branch(stmt: If, state: _State) -> None:
    condition = np.asarray(_evaluate(stmt.condition, state))
    if condition.ndim == 0 and state.mask is None:
        _execute(stmt.body if condition else stmt.orelse, state)
        return
    outer = state.mask
    for active, body in ((condition, stmt.body), (~condition, stmt.orelse)):
        state.mask = active if outer is None else active & outer
        if body and state.mask.any():
            _execute(body, state)
    state.mask = outer


def _loop(loop: For, state: _State) -> None:
    lo, hi = state.index(loop.lo), state.index(loop.hi)
    carried = _carried(loop)
    if np.ndim(lo) or np.ndim(hi):
        _ragged(loop, lo, hi, state)
    elif loop.kind is LoopKind.VECTOR and carried:
        _in_lanes(loop, range(lo, hi, loop.step), carried, state)
    elif loop.kind in (LoopKind.SEQUENTIAL, LoopKind.UNROLLED) or carried:
        _in_order(loop, range(lo, hi, loop.step), state)
    elif range(lo, hi, loop.step):
        _at_once(loop, np.arange(lo, hi, loop.step), state)


def _carried(loop: For) -> dict[Variable, Op]:
    """The variables from outside that the body accumulates into, with the op."""
    inner = list(walk_statements(loop.body))
    own = {stmt.variable for stmt in inner if isinstance(stmt, Define)}
    updates = (stmt for stmt in inner if isinstance(stmt, Update) and stmt.variable not in own)
    return {stmt.variable: stmt.accum or OPS["add"] for stmt in updates}


def _in_order(loop: For, values: range, state: _State) -> None:
    for value in values:
        state.symbols[loop.symbol] = value
        _execute(loop.body, state)


def _at_once(loop: For, values: np.ndarray, state: _State) -> None:
    state.symbols[loop.symbol] = values.reshape(-1, *(1,) * state.depth)
    state.depth += 1
    _execute(loop.body, state)
    state.depth -= 1


def _ragged(loop: For, lo: Any, hi: Any, state: _State) -> None:
    """Bounds that differ between iterations of the enclosing loops: in order, over the widest range."""
    outer = state.mask
    low, high = int(np.min(lo)), int(np.max(hi))
    for value in range(low, high):
        active = (lo <= value) & (value < hi) & ((value - lo) % loop.step == 0)
        state.mask = active if outer is None else active & outer
        if state.mask.any():
            state.symbols[loop.symbol] = value
            _execute(loop.body, state)
    state.mask = outer


def _in_lanes(loop: For, values: range, carried: dict[Variable, Op], state: _State) -> None:
    whole = len(values) - len(values) % loop.lanes
    if whole:
        before = {variable: state.variables[variable] for variable in carried}
        for variable, op in carried.items():
            assert op.identity is not None
            shape = (
                loop.lanes,
                *(1,) * (state.depth - np.ndim(before[variable])),
                *np.shape(before[variable]),
            )
            state.variables[variable] = np.full(shape, op.identity(variable.dtype), variable.dtype.numpy)
        for start in range(0, whole, loop.lanes):
            _at_once(loop, np.array(values[start : start + loop.lanes]), state)
        for variable, op in carried.items():
            folded = _folded(state.variables[variable], op, variable.dtype)
            state.variables[variable] = _apply(op, variable.dtype, before[variable], folded)
    _in_order(loop, values[whole:], state)


def _folded(partial: np.ndarray, op: Op, dtype: DType) -> Value:
    while len(partial) > 1:
        half = len(partial) // 2
        partial = np.asarray(_apply(op, dtype, partial[:half], partial[half:]))
    return partial[0]


def _perform(body: tuple[Statement, ...], state: _State) -> None:
    for statement in body:
        match statement:
            case Assign():
                _assign(statement, state)
            case Check(loops=loops, condition=condition):
                _spread(loops, state)
                if _extents(loops, state).count(0) == 0 and not np.all(_evaluate(condition, state)):
                    raise KernelRaise(statement)
            case Loop(symbol=symbol, lo=lo, hi=hi, step=step, body=inner):
                for value in range(state.index(lo), state.index(hi), step):
                    state.symbols[symbol] = value
                    _perform(inner, state)
            case Note():
                pass
            case _:
                assert_never(statement)


def _extents(loops: tuple[tuple[Symbol, Affine], ...], state: _State) -> tuple[int, ...]:
    return tuple(int(state.index(extent)) for _, extent in loops)


def _spread(loops: tuple[tuple[Symbol, Affine], ...], state: _State) -> None:
    """Give each symbol its values on an axis of its own, the first loop's axis first."""
    for axis, (symbol, extent) in enumerate(loops):
        after = len(loops) - axis - 1
        state.symbols[symbol] = np.arange(int(state.index(extent))).reshape(-1, *(1,) * after)


def _assign(assign: Assign, state: _State) -> None:
    extents = _extents(assign.loops, state)
    used = {symbol for position in assign.index for symbol in position.symbols}
    over = [entry for entry in assign.loops if entry[0] not in used]
    kept = [entry for entry in assign.loops if entry[0] in used]
    if assign.accum is None or not over:
        if 0 not in extents:
            _assign_cells(assign, extents, state)
        return
    _reduce(assign, assign.accum, tuple(over), tuple(kept), state)


def _assign_cells(assign: Assign, extents: tuple[int, ...], state: _State) -> None:
    _spread(assign.loops, state)
    value = np.array(np.broadcast_to(_evaluate(assign.value, state), extents))
    array, place = state.cells(assign.into, tuple(state.index(part) for part in assign.index))
    if assign.accum is None:
        array[place] = value
        return
    places = np.broadcast_arrays(*place, np.empty(extents))[:-1]
    if assign.initial is not None:
        array[place] = _evaluate(assign.initial, state)
    for point in np.ndindex(extents):
        cell = tuple(position[point] for position in places)
        array[cell] = _apply(assign.accum, assign.into.dtype, array[cell], value[point])


def _reduce(
    assign: Assign,
    accum: Op,
    over: tuple[tuple[Symbol, Affine], ...],
    kept: tuple[tuple[Symbol, Affine], ...],
    state: _State,
) -> None:
    """Combine the points of the reduced loops in row-major order, all output cells at once."""
    extents = _extents(kept, state)
    if 0 in extents:
        return
    _spread(kept, state)
    array, place = state.cells(assign.into, tuple(state.index(part) for part in assign.index))
    held = array[place] if assign.initial is None else _evaluate(assign.initial, state)
    held = np.array(np.broadcast_to(held, extents))
    for point in np.ndindex(_extents(over, state)):
        state.symbols.update(zip((symbol for symbol, _ in over), point, strict=True))
        held = _accumulated(assign, accum, held, state)
    array[place] = held
