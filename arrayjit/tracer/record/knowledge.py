"""The numbers of small arrays that are known while tracing: constants, and what follows from them alone.

So NumPy's functions may compute what conditions and extents ask for: `np.array(x.shape) // 2`. Sums of floats
are not followed, since compiled code adds up in another order than NumPy.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping

import numpy as np
from numpy.typing import NDArray

from ...frozen import frozen
from ...ir.assign import Assign
from ...ir.evaluation import converted
from ...ir.expr import Apply, Cast, Const, Expr, Index, Load
from ...ir.index import Affine, Symbol, affine
from ...ir.tensor import Tensor
from ...ir.walk import walk
from .view import View

__all__ = ["Held", "Knowledge"]

_MOST_POINTS = 16
"""What takes more points is data, not sizes: it is not followed, and loops over it stay loops."""

_CHOOSING = ("fmax", "fmin", "maximum", "minimum")
"""Ops whose accumulation gives the same floats in any order."""

_Numbers = NDArray[np.generic]
_Places = Mapping[Symbol, NDArray[np.int64]]


@frozen
class Held:
    """What a tensor holds. If that follows from something, from which other tensors, and how many tensors had
    been made before."""

    numbers: _Numbers
    sources: frozenset[Tensor] = frozenset()
    made: int | None = None


class Knowledge:
    """What tensors hold until they are written again, and whose numbers have decided something.

    `begun` tells how many tensors had been made when the body began that is being recorded. What follows from
    constants is known in the body that made it: loops that are recorded inside may write it, and need not be
    unrolled for that.
    """

    def __init__(self, begun: Callable[[], int]) -> None:
        self.held: dict[Tensor, Held] = {}
        self._begun = begun
        self._asked: set[Tensor] = set()

    def _get(self, storage: Tensor) -> Held | None:
        held = self.held.get(storage)
        return held if held is None or held.made is None or held.made >= self._begun() else None

    def know(self, tensor: Tensor, numbers: _Numbers) -> None:
        """Note that the tensor holds these numbers until it is written again."""
        self.held[tensor] = Held(numbers)

    def of(self, view: View) -> _Numbers | None:
        """The numbers that a view shows; None where they are not known."""
        held = self._get(view.tensor.storage)
        if held is None or not view.is_fixed() or view.tensor.dtype.numpy != held.numbers.dtype:
            return None
        self._asked.update((view.tensor.storage, *held.sources))
        shape = tuple(extent.constant for extent in view.shape)
        places = dict(zip(view.axes, np.indices(shape, sparse=True), strict=True))
        numbers = held.numbers.reshape(-1) if view.tensor.base is not None else held.numbers
        return np.broadcast_to(numbers[_position(view.index, places)], shape)

    def written(self, storage: Tensor, is_own: bool) -> Held | None:
        """The tensor is written: what it held. Unless it is the body's own that is being recorded, this may
        run again, so that neither what follows from it is known any more."""
        self._asked.discard(storage)
        if not is_own and self.held:
            self.held = {other: held for other, held in self.held.items() if storage not in held.sources}
        return self.held.pop(storage, None)

    def restore(self, held: Mapping[Tensor, Held], written: Collection[Tensor]) -> None:
        """What was known once, but of what was written since and of what follows from it."""
        self.held = {
            tensor: known
            for tensor, known in held.items()
            if tensor not in written and known.sources.isdisjoint(written)
        }

    def has_decided(self, storage: Tensor) -> bool:
        """Whether numbers of the tensor have decided something since it was written last."""
        return storage in self._asked

    def end(self, begun: int) -> None:
        """Forget what followed in a body."""
        self.held = {
            tensor: held for tensor, held in self.held.items() if held.made is None or held.made < begun
        }

    def follow(self, assign: Assign, before: Held | None, made: int) -> None:
        """Know what an assignment makes of known numbers. It writes all cells of a tensor, or some of those
        `before`."""
        storage, target = assign.into.storage, assign.into
        if (before is None and not _is_whole(assign)) or target.is_real_form or not _is_small(assign):
            return
        accum = assign.accum
        if accum is not None and target.dtype.is_inexact and accum.name not in _CHOOSING:
            return
        parts = [assign.value] if assign.initial is None else [assign.value, assign.initial]
        sources = self._sources([*map(Index, assign.index), *parts], {symbol for symbol, _ in assign.loops})
        if sources is None:
            return
        if before is not None:
            numbers, sources = before.numbers.copy(), sources | before.sources
        else:
            numbers = np.empty([extent.constant for extent in storage.shape], storage.dtype.numpy)
        with np.errstate(all="ignore"):
            self._assign(assign, numbers.reshape(-1) if target.base is not None else numbers)
        self.held[storage] = Held(numbers, sources - {storage}, made)

    def _sources(self, parts: list[Expr], loops: set[Symbol]) -> frozenset[Tensor] | None:
        """The tensors that the expressions follow from; None where something is not known."""
        found: set[Tensor] = set()
        for node in (node for part in parts for node in walk(part)):
            match node:
                case Index(value=value) if loops.issuperset(value.symbols):
                    pass
                case Load(tensor=tensor, index=index) if not tensor.is_real_form:
                    held = self._get(tensor.storage)
                    if held is None or not all(loops.issuperset(part.symbols) for part in index):
                        return None
                    found.update((tensor.storage, *held.sources))
                case Const() | Apply() | Cast():
                    pass
                case _:
                    return None
        return frozenset(found)

    def _assign(self, assign: Assign, cells: _Numbers) -> None:
        places = _places(assign.loops)
        where = _position(assign.index, places)
        values = self._value(assign.value, places)
        if assign.accum is None:
            cells[where] = values
            return
        if assign.initial is not None:
            first = _places(assign.cell_loops)
            cells[_position(assign.index, first)] = self._value(assign.initial, first)
        points = np.broadcast_arrays(values, *where, *places.values())
        for value, *place in zip(*(point.reshape(-1) for point in points[: 1 + len(where)]), strict=True):
            cells[tuple(place)] = assign.accum.ref(cells[tuple(place)], value)

    def _value(self, expr: Expr, places: _Places) -> _Numbers:
        match expr:
            case Const(value=number, dtype=dtype):
                return np.array(number, dtype.numpy)
            case Index(value=value):
                return np.asarray(_at(value, places), np.int64)
            case Load(tensor=tensor, index=index):
                numbers = self.held[tensor.storage].numbers
                numbers = numbers.reshape(-1) if tensor.base is not None else numbers
                return np.asarray(numbers[_position(index, places)])
            case Cast(arg=arg, dtype=dtype):
                return converted(self._value(arg, places), dtype)
            case Apply(op=op, args=args, dtype=dtype):
                return np.asarray(op.ref(*(self._value(arg, places) for arg in args)), dtype.numpy)
            case _:
                raise AssertionError(expr)


def _is_whole(assign: Assign) -> bool:
    """Whether it writes its tensor cell for cell."""
    loops = assign.cell_loops
    return assign.index == affine(symbol for symbol, _ in loops) and assign.into.shape == tuple(
        extent for _, extent in loops
    )


def _is_small(assign: Assign) -> bool:
    extents = [extent for _, extent in assign.loops]
    if not all(extent.is_constant for extent in (*extents, *assign.into.shape)):
        return False
    return math.prod(extent.constant for extent in extents) <= _MOST_POINTS


def _places(loops: tuple[tuple[Symbol, Affine], ...]) -> dict[Symbol, NDArray[np.int64]]:
    grid = np.indices([extent.constant for _, extent in loops], np.int64)
    return {symbol: part for (symbol, _), part in zip(loops, grid, strict=True)}


def _position(index: tuple[Affine, ...], places: _Places) -> tuple[NDArray[np.int64] | int, ...]:
    return tuple(_at(part, places) for part in index)


def _at(value: Affine, places: _Places) -> NDArray[np.int64] | int:
    return value.offset + sum(factor * places[symbol] for factor, symbol in value.terms)
