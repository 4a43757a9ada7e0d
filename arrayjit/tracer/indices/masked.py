"""What an equal mask selected before: the same number of cells, and values known at the mask's own positions.

    m = a < 0; a[m] = -b[m]     ->      a[i] = where(m[i], -b[i], a[i])

Nothing has to be collected for that. It is so where the values were computed cell by cell, and where nothing
was written since of what they and the masks were computed from. All is read off the record, backwards.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...ir.assign import Assign, Statement, statements
from ...ir.expr import Expr, Gather, Index, Load
from ...ir.index import Affine, Symbol, affine
from ...ir.tensor import Tensor
from ...ir.walk import substitute, transform, walk
from ..record.selections import Selection
from ..record.trace import Body, Trace
from ..record.view import View

__all__ = ["before_selection", "equal_selection", "where_selected"]

FARTHEST = 100
"""How many statements are looked back at most, so that long programs take no longer for each."""

LARGEST = 1000
"""Of how many parts a value is at most. A step of a recurrence (`b, c = x * b - c, b`) has twice the parts of
the one before."""

_CELL = Affine.of(Symbol("k"))
"""Stands for the place of a value among those selected."""


def equal_selection(mask: View, trace: Trace) -> Selection | None:
    """The last selection by a mask that equals this one."""
    lookback = _Lookback(trace, mask, len(trace.statements))
    for _ in lookback.steps():
        for selection in lookback.masks:
            if lookback.is_equal(selection):
                return selection
    return None


def where_selected(values: View, mask: View, trace: Trace) -> Body | None:
    """The values where the mask holds, by positions of the mask, if they are one for each cell that an equal
    mask selects. None where that is not so or cannot be told.

    What they were computed from may have been written since. Then they are held in an array that is computed
    just before: in `x[m], y[m] = f(x[m], y[m]), g(x[m], y[m])` those of `g` before `x` is written.
    """
    if values.rank != 1 or values.index != affine(values.axes) or values.shape[0].is_constant:
        return None
    end: int | None = len(trace.statements)
    while end is not None:
        lookback = _Lookback(trace, mask, end)
        value = _followed_back(values, lookback)
        if value is not None:
            body = _at(value, lookback.symbols)
            return body if end == len(trace.statements) else _held(body, values, mask, trace, end)
        end = lookback.stale
    return None


def _followed_back(values: View, lookback: _Lookback) -> Expr | None:
    """The values at the position of the mask, by what an equal mask selected."""
    value: Expr = values.load((_CELL,))
    used: list[Selection] = []
    for statement in lookback.steps():
        for tensor in _followed(value) & _written_by(statement):
            selection = lookback.trace.selections.get(id(statement))
            if isinstance(statement, Assign):
                made = _made_by(statement, values.shape, (_CELL,))
            elif selection in lookback.masks:
                made = selection.values[tensor](lookback.position)
                used.append(selection)
            else:
                made = None
            if made is None or not lookback.stays(made):
                return None
            value = _replaced(value, tensor, made)
            if sum(1 for _ in walk(value)) > LARGEST:
                return None
        as_many = [s for s in lookback.masks if s.total == values.shape[0] and lookback.is_equal(s)]
        if as_many and not _followed(value) and all(map(lookback.is_equal, used)):
            return value
    return None


def _at(value: Expr, symbols: tuple[Symbol, ...]) -> Body:
    return lambda position: substitute(value, dict(zip(symbols, position, strict=True)))


def _held(body: Body, values: View, mask: View, trace: Trace, end: int) -> Body | None:
    """The values in an array that is computed at an earlier place of the record, if values and mask are now
    what they were there."""
    later = {tensor.storage for statement in trace.statements[end:] for tensor in _written_by(statement)}
    if not later.isdisjoint((values.tensor.storage, mask.tensor.storage)):
        return None
    held = trace.window(mask.shape, values.tensor.dtype, "held")
    trace.store(held, body)
    trace.statements.insert(end, trace.statements.pop())
    return held.load


def before_selection(values: View, trace: Trace) -> tuple[View, Body] | None:
    """The mask that selected what the values were computed from, and the values by positions of that mask, as
    `where_selected` finds them."""
    if values.rank != 1 or values.shape[0].is_constant:
        return None
    selections = reversed(trace.selections.values())
    mask = next((s.mask for s in selections if s.total == values.shape[0]), None)
    body = None if mask is None else where_selected(values, mask, trace)
    return None if mask is None or body is None else (mask, body)


class _Lookback:
    """The statements of the record before number `end`, from the latest one back.

    `mask` is the cell of the mask at `position`, `masks` are those of the selections that were met, each in
    terms of what nothing writes from there to the end. Where an expression was not, `stale` is the number of
    the first statement that writes what it reads.
    """

    def __init__(self, trace: Trace, mask: View, end: int) -> None:
        self.trace = trace
        self.symbols = tuple(Symbol("i") for _ in mask.shape)
        self.position = affine(self.symbols)
        self.mask: Expr = mask.load(self.symbols)
        self.masks: dict[Selection, Expr] = {}
        self.stale: int | None = None
        self._written: dict[Tensor, int] = {}
        self._shape = mask.shape
        self._end = end

    def steps(self) -> Iterator[Statement]:
        """Each statement, once what it says of the masks is known."""
        first = max(len(self.trace.statements) - FARTHEST, 0)
        for number in range(self._end - 1, first - 1, -1):
            statement = self.trace.statements[number]
            written = {tensor.storage for tensor in _written_by(statement)}
            is_last_to_write = written.isdisjoint(self._written)
            self._written.update(dict.fromkeys(written, number))
            if isinstance(statement, Assign) and is_last_to_write:
                self.mask = self._resolved(self.mask, statement)
                self.masks = {s: self._resolved(mask, statement) for s, mask in self.masks.items()}
            selection = self.trace.selections.get(id(statement))
            if selection is not None and selection.mask.shape == self._shape:
                mask = selection.mask.load(self.position)
                if self.stays(mask):
                    self.masks[selection] = mask
            yield statement

    def is_equal(self, selection: Selection) -> bool:
        return self.masks[selection] == self.mask

    def stays(self, expr: Expr) -> bool:
        """Whether an expression reads nothing that is written later, but for cells of what is selected."""
        number = _CELL.symbols[0]
        for node in walk(expr):
            match node:
                case Gather():
                    return False
                case Index(value=value) if number in value.symbols:
                    return False
                case Load(tensor=tensor, index=index) if index != (_CELL,):
                    self.stale = self._written.get(tensor.storage)
                    is_other = any(number in part.symbols for part in index)
                    if is_other or self.stale is not None or self.trace.is_gone(tensor.storage):
                        return False
                case _:
                    pass
        return True

    def _resolved(self, mask: Expr, assign: Assign) -> Expr:
        """A mask by what an assignment made it of, if that stays."""
        if not isinstance(mask, Load) or mask.tensor is not assign.into:
            return mask
        made = _made_by(assign, assign.into.shape, mask.index)
        return mask if made is None or not self.stays(made) else made


def _made_by(assign: Assign, shape: tuple[Affine, ...], index: tuple[Affine, ...]) -> Expr | None:
    """What an assignment of all cells of the shape, one by one, makes the cell at an index of."""
    symbols = [symbol for part in assign.index if (symbol := part.symbol) is not None]
    extents = dict(assign.loops)
    one_by_one = assign.accum is None and len(symbols) == len(assign.index) == len(extents)
    if not one_by_one or tuple(extents.get(symbol) for symbol in symbols) != shape:
        return None
    return substitute(assign.value, dict(zip(symbols, index, strict=True)))


def _replaced(value: Expr, tensor: Tensor, made: Expr) -> Expr:
    cell = Load(tensor, (_CELL,))
    return transform(value, lambda node: made if node == cell else node)


def _followed(value: Expr) -> set[Tensor]:
    """The tensors of which a value reads the cell."""
    return {node.tensor for node in walk(value) if isinstance(node, Load) and node.index == (_CELL,)}


def _written_by(statement: Statement) -> set[Tensor]:
    return {inner.into for inner in statements((statement,)) if isinstance(inner, Assign)}
