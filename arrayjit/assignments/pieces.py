"""A statement taken apart: `...` written out, slices redirected to their parents, concatenations split.

    assign(c[concat(i, j)], [a[i], b[j]])     ->     c[i] = a[i]        for i in 3
                                                     c[j + 3] = b[j]    for j in 2

Mistakes in shapes and positions are found here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from itertools import product
from types import EllipsisType

import numpy as np

from ..errors import IndexOutOfRange, InvalidProgram, Location, ShapeError
from ..frozen import frozen, frozen_by_identity, slotted
from ..ir.index import Affine, Symbol, SymbolKind
from .nodes import Cell, Concat, Position
from .projections import Loops, Projection
from .statements import Accumulate
from .values import Embedded, Value, rebuilt, walk

__all__ = ["Piece", "Region", "cells", "pieces"]

ZERO = Affine.of(0)

Region = tuple[tuple[int, int], ...]
"""The first position and the extent along each axis."""


@frozen_by_identity
class Piece:
    """`target = value` for every point of `loops`; the target's cells lie in `region`, which has the
    first position and the extent along each axis. All indices are affine, and no node is a slice."""

    target: Cell
    value: Value
    loops: Loops
    region: Region
    loc: Location

    @property
    def projection(self) -> Projection:
        return Projection(self.loops, self.target.index)


def cells(value: Value) -> Iterator[Cell]:
    """The cells that a value reads."""
    return (part for part in walk(value) if isinstance(part, Cell))


def pieces(statement: Accumulate) -> tuple[Piece, ...]:
    """The assignments that a statement consists of, in order."""
    written = _Written.out(statement)
    groups = tuple(dict.fromkeys(p for cell in written.cells() for p in cell.key if isinstance(p, Concat)))
    extents = _Extents(statement.loc)
    extents.infer(written.cells(), groups)
    found: list[Piece] = []
    for choice in product(*(group.symbols for group in groups)):
        chosen = dict(zip(groups, choice, strict=True))
        found.extend(_component(written, chosen, extents, statement.loc))
    return tuple(found)


@frozen
class _Written:
    """Targets and values of a statement, all positions explicit, slices redirected."""

    targets: tuple[Cell, ...]
    values: tuple[Value, ...]

    @staticmethod
    def out(statement: Accumulate) -> _Written:
        every = [*statement.targets, *(cell for value in statement.values for cell in cells(value))]
        rests = [_rest(cell) for cell in every if ... in cell.key]
        try:
            joint = np.broadcast_shapes(*rests)
        except ValueError:
            joint = None
        for cell in statement.targets:
            if joint is None or (... in cell.key and _rest(cell) != joint):
                raise ShapeError(
                    f"{cell} cannot take values of other shapes",
                    loc=statement.loc,
                    details=tuple(f"{one}: {list(one.node.shape)}" for one in every),
                    fix="write the axes out with indices",
                )
        symbols = tuple(Symbol(f"e{number}") for number in range(len(joint or ())))

        def leaf(part: Value) -> Value:
            return _redirected(_explicit(part, symbols)) if isinstance(part, Cell) else part

        targets = tuple(_redirected(_explicit(cell, symbols)) for cell in statement.targets)
        return _Written(targets, tuple(rebuilt(value, leaf) for value in statement.values))

    def cells(self) -> list[Cell]:
        return [*self.targets, *(cell for value in self.values for cell in cells(value))]


def _rest(cell: Cell) -> tuple[int, ...]:
    """The extents of the axes that `...` stands for."""
    before = cell.key.index(...)
    return cell.node.shape[before : before + len(cell.node.shape) - len(cell.key) + 1]


def _explicit(cell: Cell, symbols: tuple[Symbol, ...]) -> Cell:
    if ... not in cell.key:
        return cell
    rest, before = _rest(cell), cell.key.index(...)
    own = symbols[len(symbols) - len(rest) :]
    among = [symbol if extent != 1 else ZERO for symbol, extent in zip(own, rest, strict=True)]
    return Cell(cell.node, (*cell.key[:before], *among, *cell.key[before + 1 :]), cell.slot)


def _redirected(cell: Cell) -> Cell:
    """The same cell of the node that owns the memory."""
    while cell.node.alias is not None:
        parent, symbol = cell.node.alias
        cell = Cell(parent, (symbol, *cell.key), cell.slot)
    return cell


def _positions(cell: Cell) -> tuple[Position, ...]:
    return tuple(position for position in cell.key if not isinstance(position, EllipsisType))


@slotted
class _Extents:
    """The extent of each loop symbol."""

    loc: Location
    known: dict[Symbol, int] = field(default_factory=dict)
    seen: dict[Symbol, Cell] = field(default_factory=dict)

    def infer(self, every: list[Cell], groups: tuple[Concat, ...]) -> None:
        for cell in every:
            for position, extent in zip(_positions(cell), cell.node.shape, strict=True):
                if not isinstance(position, Concat):
                    alone = Affine.of(position).symbol
                    if alone is not None and alone.kind is SymbolKind.LOOP:
                        self.note(alone, extent, cell)
        for group in groups:
            for symbol in group.symbols:
                if symbol.upper is not None:
                    self.known[symbol] = symbol.upper
        for cell in every:
            for position, extent in zip(_positions(cell), cell.node.shape, strict=True):
                if isinstance(position, Concat):
                    self.fit(position, extent, cell)

    def note(self, symbol: Symbol, extent: int, cell: Cell) -> None:
        if symbol.upper is not None:
            extent = symbol.upper
        known = self.known.setdefault(symbol, extent)
        first = self.seen.setdefault(symbol, cell)
        if known != extent:
            raise ShapeError(
                f"{symbol.hint} runs over {known} positions in {first} and over {extent} in {cell}",
                loc=self.loc,
                details=tuple(f"{one}: {list(one.node.shape)}" for one in (first, cell)),
                fix=f"give it an extent, axis({symbol.hint!r}, {min(known, extent)}), or use two symbols",
            )

    def fit(self, group: Concat, extent: int, cell: Cell) -> None:
        """The parts of an axis make up the axis; of one part the extent may be what is left."""
        missing = [symbol for symbol in group.symbols if symbol not in self.known]
        total = sum(self.known.get(symbol, 0) for symbol in group.symbols)
        if len(missing) == 1 and total <= extent:
            self.known[missing[0]] = extent - total
        elif missing or total != extent:
            raise ShapeError(
                f"the parts of an axis of {cell} have {total} positions, the axis has {extent}",
                loc=self.loc,
                fix="concatenate symbols whose extents add up to the axis, given with axis(name, extent)",
            )

    def of(self, symbol: Symbol) -> int:
        extent = self.known.get(symbol, symbol.upper)
        if extent is None:
            raise ShapeError(
                f"the extent of {symbol.hint} is not known: it never stands alone on an axis",
                loc=self.loc,
                fix=f"give it: axis({symbol.hint!r}, extent)",
            )
        return extent


def _component(
    written: _Written, chosen: Mapping[Concat, Symbol], extents: _Extents, loc: Location
) -> Iterator[Piece]:
    """The piece for one part of every concatenated axis, if it has a target and a value."""
    dropped = {symbol for group, kept in chosen.items() for symbol in group.symbols if symbol is not kept}
    targets = [cell for cell in written.targets if not dropped.intersection(_own_symbols(cell))]
    values = [value for value in written.values if not dropped.intersection(_value_symbols(value))]
    if not targets or not values:
        return
    if len(targets) > 1 or len(values) > 1:
        part = ", ".join(symbol.hint for symbol in chosen.values()) or "every point"
        many = targets if len(targets) > 1 else values
        what = "targets" if len(targets) > 1 else "values"
        raise InvalidProgram(
            f"{len(many)} {what} are there for {part}",
            loc=loc,
            fix="index each of them with another part of a concatenated axis: assign(c[concat(i, j)], "
            "[a[i], b[j]])",
        )
    offsets = {
        group: sum(extents.of(symbol) for symbol in group.symbols[: group.symbols.index(kept)])
        for group, kept in chosen.items()
    }

    def plain(cell: Cell) -> Cell:
        index = tuple(
            Affine.of(chosen[position]) + offsets[position]
            if isinstance(position, Concat)
            else Affine.of(position)
            for position in _positions(cell)
        )
        return Cell(cell.node, index, cell.slot)

    target = plain(targets[0])
    value = rebuilt(values[0], lambda part: plain(part) if isinstance(part, Cell) else part)
    region = tuple(
        (offsets[position], extents.of(chosen[position])) if isinstance(position, Concat) else (0, extent)
        for position, extent in zip(_positions(targets[0]), target.node.shape, strict=True)
    )
    symbols = dict.fromkeys([*_own_symbols(target), *_value_symbols(value)])
    loops = tuple((s, extents.of(s)) for s in symbols if s.kind is SymbolKind.LOOP)
    if all(extent > 0 for _, extent in loops):
        for cell in (target, *cells(value)):
            _check_inside(cell, loops, loc)
    yield Piece(target, value, loops, region, loc)


def _own_symbols(cell: Cell) -> list[Symbol]:
    """The symbols of a cell's positions; those of a concatenation are there for every part."""
    return [
        symbol
        for position in _positions(cell)
        if not isinstance(position, Concat)
        for symbol in Affine.of(position).symbols
    ]


def _value_symbols(value: Value) -> list[Symbol]:
    found: list[Symbol] = []
    for part in walk(value):
        if isinstance(part, Cell):
            found.extend(_own_symbols(part))
        elif isinstance(part, Embedded):
            found.extend(part.index.symbols)
    return found


def _check_inside(cell: Cell, loops: Loops, loc: Location) -> None:
    ranges = {symbol: (0, extent - 1) for symbol, extent in loops}
    for position, extent in zip(cell.index, cell.node.shape, strict=True):
        ends = position.bounds(ranges)
        if ends is None:
            raise IndexOutOfRange(
                f"nothing says that {position} stays inside an axis of {cell.node.name}",
                loc=loc,
                fix="give the static symbol a range: static(name, lower, upper)",
            )
        if ends[0] < 0 or ends[1] >= extent:
            raise IndexOutOfRange(
                f"{cell} is indexed from {ends[0]} to {ends[1]} along an axis of {extent}",
                loc=loc,
                fix="give the symbol fewer positions: axis(name, extent)",
            )
