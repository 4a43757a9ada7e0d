"""The iterations of a program that the interpreter takes together, and the values they hold."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Union

import numpy as np
from numpy.typing import NDArray

from ..errors import CompilerBug
from .expr import Variable
from .index import Affine, Symbol

__all__ = ["Array", "Frame", "Number", "Step", "accumulate", "spread"]

Array = NDArray[Any]
Number = Union[int, NDArray[np.int64]]  # an integer for all iterations, or one for each
Step = Callable[..., Any]  # combines one more value onto each cell


class Frame:
    """Iterations alive together. `origin[k]` is the iteration of `parent` that iteration `k` belongs to;
    None when they are the same ones. `values` are the variables defined here."""

    __slots__ = ("lanes", "origin", "parent", "symbols", "values")

    def __init__(self, parent: Frame | None, origin: NDArray[np.int64] | None, lanes: int) -> None:
        self.parent = parent
        self.origin = origin
        self.lanes = lanes
        self.symbols: dict[Symbol, Number] = {}
        self.values: dict[Variable, Array] = {}

    @staticmethod
    def root(bindings: Mapping[Symbol, int]) -> Frame:
        """The one iteration that a program starts with."""
        frame = Frame(None, None, 1)
        frame.symbols.update(bindings)
        return frame

    def same(self) -> Frame:
        """A scope for the same iterations."""
        return Frame(self, None, self.lanes)

    def chosen(self, origin: NDArray[np.int64]) -> Frame:
        """A scope for iterations each of which belongs to one of this frame's."""
        return Frame(self, origin, len(origin))

    def symbol(self, symbol: Symbol) -> Number:
        found = self.symbols.get(symbol)
        if found is None:
            if self.parent is None:
                raise CompilerBug(f"symbol {symbol} has no value", stage="interp")
            found = self.parent.symbol(symbol)
            if isinstance(found, np.ndarray) and self.origin is not None:
                found = found[self.origin]
            self.symbols[symbol] = found
        return found

    def affine(self, value: Affine) -> Number:
        total: Number = value.offset
        for coefficient, symbol in value.terms:
            total = total + coefficient * self.symbol(symbol)
        return total

    def read(self, variable: Variable) -> Array:
        frame, positions = self._owner(variable)
        return _take(frame.values[variable], positions)

    def write(self, variable: Variable, value: Array) -> None:
        frame, positions = self._owner(variable)
        if positions is None:
            frame.values[variable] = value
        else:
            cells = spread(frame.values[variable], frame.lanes)
            cells[positions] = value
            frame.values[variable] = cells

    def combine(self, variable: Variable, step: Step, operands: Sequence[Array]) -> None:
        """Combine operands onto the variable; iterations that share one follow in order."""
        frame, positions = self._owner(variable)
        start = frame.values[variable]
        if positions is None:
            frame.values[variable] = np.asarray(step(start, *operands))
        else:
            each = [spread(operand, self.lanes) for operand in operands]
            cells = accumulate(step, spread(start, frame.lanes), positions, each)
            frame.values[variable] = cells if frame.lanes > 1 else cells.reshape(())

    def _owner(self, variable: Variable) -> tuple[Frame, NDArray[np.int64] | None]:
        """The frame that holds a variable, and which of its iterations ours belong to."""
        frame: Frame = self
        positions: NDArray[np.int64] | None = None
        while variable not in frame.values:
            if frame.origin is not None:
                positions = frame.origin if positions is None else frame.origin[positions]
            if frame.parent is None:
                raise CompilerBug(f"variable {variable.hint} has no value", stage="interp")
            frame = frame.parent
        return frame, positions


def _take(value: Array, positions: NDArray[np.int64] | None) -> Array:
    return value if positions is None or value.ndim == 0 else np.asarray(value[positions])


def spread(value: Array, lanes: int) -> Array:
    """One number for each of `lanes` iterations, in an array of its own."""
    return np.array(np.broadcast_to(value, (lanes,)))


def accumulate(step: Step, start: Array, positions: NDArray[np.int64], operands: Sequence[Array]) -> Array:
    """`start` with `operands[...][k]` combined onto cell `positions[k]`, in order of `k`."""
    order = np.argsort(positions, kind="stable")
    counts = np.bincount(positions, minlength=len(start))
    first = np.cumsum(counts) - counts
    most = int(counts.max(initial=0))
    if isinstance(step, np.ufunc) and len(start) * most == len(positions):
        columns = operands[0][order].reshape(len(start), most)
        rows = np.concatenate([start[:, None], columns], axis=1)
        folded: Array = step.accumulate(rows, axis=1, dtype=start.dtype)[:, -1]
        return folded
    cells: Array = start.copy()
    for turn in range(most):
        reached = np.flatnonzero(counts > turn)
        chosen = order[first[reached] + turn]
        cells[reached] = step(cells[reached], *(operand[chosen] for operand in operands))
    return cells
