"""margins: of an array that a program fills first, only the cells that it does not overwrite are filled.

    for i in parallel(0, 201):                      for j in parallel(0, 181):
        for j in parallel(0, 181):                      y[0, j] = 0.0
            y[i, j] = 0.0                           for i in parallel(1, 201):
    for i in sequential(1, 201):            ->          y[i, 0] = 0.0
        for j in sequential(1, 181):                for i in sequential(1, 201):
            y[i, j] = add(y[i - 1, j],                  for j in sequential(1, 181):
                          y[i, j - 1])                      y[i, j] = add(y[i - 1, j], y[i, j - 1])

Tables start as `np.zeros` or `np.full`, which give their edges what the rule for a cell needs; then every
other cell is computed. What a later nest overwrites before anything reads it need not be there. A nest reads
a cell that it has overwritten if that lies before the cell that it writes, in the order of its loops.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Union

from ...frozen import frozen
from ...ir.code import Caps
from ...ir.index import Affine, Symbol
from ...ir.loops import (
    For,
    Kernel,
    LoopKind,
    Raise,
    Stay,
    Stmt,
    Store,
    While,
    walk_statements,
    written,
    written_in,
)
from ...ir.tensor import Tensor
from ...ir.walk import kept, rewrite_bodies
from ..analysis.access import Effects, Range, Region, effects, reads, region, visible
from ..analysis.boxes import Box, common, size, without
from ..analysis.copies import copy_body, unless_once
from ..analysis.trips import enter

__all__ = ["margins"]

FEWEST = 1024
"""So many cells of an array are worth loops over its edges."""

MOST = 4
"""An array with more edges than these is filled as a whole."""

Bounds = tuple[Union[range, None], ...]
"""Where cells may be at most: anywhere along an axis of None."""


def margins(kernel: Kernel, caps: Caps) -> Kernel:
    """Every such array filled where it is not overwritten."""
    shown = visible(kernel.params)
    notes: list[str] = []

    def visit(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        body = kept(body, [rewrite_bodies(stmt, visit) for stmt in body])
        fillings = _fillings(body)
        if not fillings:
            return body
        order, out = _Order(body), list[Stmt]()
        for at, stmt in enumerate(body):
            filling = fillings.get(at)
            edges = None if filling is None else _edges(filling, order.after(at, filling.store.tensor, shown))
            if filling is None or edges is None:
                out.append(stmt)
                continue
            out += (line for edge in edges for line in filling.over(edge))
            notes.append(f"margins: {filling.store.tensor.label} is filled where nothing overwrites it")
        return kept(body, out)

    return kernel.with_body(visit(kernel.body), notes)


@frozen
class _Nest:
    """Loops around a store, each along an axis of its own: together they write every cell of a box once."""

    loops: tuple[For, ...]
    axes: tuple[int, ...]
    store: Store
    box: Box

    @staticmethod
    def filling(stmt: Stmt) -> _Nest | None:
        """A statement that is such loops and nothing else, unless it reads the array."""
        loops: list[For] = []
        while isinstance(stmt, For) and len(stmt.body) == 1:
            loops.append(stmt)
            (stmt,) = stmt.body
        if not isinstance(stmt, Store) or any(tensor.storage is stmt.tensor for tensor, _ in reads(stmt)):
            return None
        nest = _Nest.around(stmt, loops)
        return nest if nest is not None and size(nest.box) >= FEWEST else None

    @staticmethod
    def around(store: Store, loops: Sequence[For]) -> _Nest | None:
        """None where the loops are others, or run a number of times that is not known."""
        tensor = store.tensor
        if tensor.storage is not tensor or tensor.strides is not None or store.accum is not None:
            return None
        axis_of, box = dict[Symbol, int](), list[range]()
        spans = {loop.symbol: _span(loop) for loop in loops}
        for axis, position in enumerate(store.index):
            match position.terms:
                case ():
                    span: range | None = range(1)
                case ((1, symbol),) if symbol not in axis_of:
                    span, axis_of[symbol] = spans.get(symbol), axis
                case _:
                    span = None
            if not span:
                return None
            box.append(range(span.start + position.offset, span.stop + position.offset))
        if len(axis_of) < len(loops):
            return None
        return _Nest(tuple(loops), tuple(axis_of[loop.symbol] for loop in loops), store, tuple(box))

    def over(self, edge: Box) -> tuple[Stmt, ...]:
        """The nest for some of its cells."""
        return self._part(copy_body(self.loops[:1], {}, {}), 0, edge)

    def _part(self, body: tuple[Stmt, ...], depth: int, edge: Box) -> tuple[Stmt, ...]:
        if depth == len(self.loops):
            return body
        (loop,) = body
        assert isinstance(loop, For)
        axis = self.axes[depth]
        shift = self.store.index[axis].offset
        lo, hi = Affine.of(edge[axis].start - shift), Affine.of(edge[axis].stop - shift)
        return unless_once(replace(loop, lo=lo, hi=hi, body=self._part(loop.body, depth + 1, edge)))

    def finds_written(self, index: tuple[Affine, ...]) -> bool:
        """Does a cell of the box that is read next to the store come from an earlier iteration?"""
        gaps = [here - there for here, there in zip(index, self.store.index, strict=True)]
        if not all(gap.is_constant for gap in gaps):
            return False
        moves = ((loop, gaps[axis].offset) for loop, axis in zip(self.loops, self.axes, strict=True))
        loop, gap = next((move for move in moves if move[1]), (None, 0))
        return loop is not None and loop.kind is LoopKind.SEQUENTIAL and gap < 0


@frozen
class _Use:
    """What a statement does to an array: the cells that it overwrites, each before it reads it, and where it
    may read others."""

    overwritten: Box | None
    read: frozenset[Bounds]


def _fillings(body: tuple[Stmt, ...]) -> dict[int, _Nest]:
    """The statements that fill arrays to which others store as well, by their places in the body."""
    stored = [written_in(walk_statements((stmt,))) for stmt in body]
    times = Counter(storage for storages in stored for storage in storages)
    found = {}
    for at, stmt in enumerate(body):
        again = any(times[storage] > 1 for storage in stored[at])
        nest = _Nest.filling(stmt) if again else None
        if nest is not None:
            found[at] = nest
    return found


class _Order:
    """The statements of a body; what one does is found out when it is asked for."""

    def __init__(self, body: tuple[Stmt, ...]) -> None:
        self.body = body
        self.touched: dict[int, tuple[set[Tensor], bool]] = {}
        self.known: dict[int, Effects] = {}
        self.uses: dict[tuple[int, Tensor], _Use] = {}

    def after(self, at: int, storage: Tensor, shown: Collection[Tensor]) -> Iterator[_Use]:
        """What statements do to an array after one of them. If the array is `shown` to the caller, what is in
        it matters where the kernel may be left."""
        for place in range(at + 1, len(self.body)):
            touched, leaves = self.touches(place)
            if leaves and storage in shown:
                return
            if storage in touched:
                yield self.use(place, storage)

    def touches(self, place: int) -> tuple[set[Tensor], bool]:
        """The storages that a statement reads or writes, and whether it may leave the kernel."""
        if place not in self.touched:
            inside = walk_statements((self.body[place],))
            storages = written_in(inside) | {tensor.storage for stmt in inside for tensor, _ in reads(stmt)}
            self.touched[place] = storages, any(isinstance(stmt, (Raise, Stay)) for stmt in inside)
        return self.touched[place]

    def effects(self, place: int) -> Effects:
        if place not in self.known:
            self.known[place] = effects((self.body[place],), {})
        return self.known[place]

    def use(self, place: int, storage: Tensor) -> _Use:
        use = self.uses.get((place, storage))
        if use is None:
            found = self.effects(place)
            box = _overwritten(self.body[place], storage) if storage in found.writes else None
            use = _Use(box, frozenset(map(_bounds, found.reads.get(storage, ()))))
            self.uses[place, storage] = use
        return use


def _edges(filling: _Nest, following: Iterable[_Use]) -> list[Box] | None:
    """The cells that must be filled, given what touches the array afterwards; None if these are most."""
    edges = [filling.box]
    read: set[Bounds] = set()
    for use in following:
        box = use.overwritten
        if box is not None and not any(_may_meet(box, bounds) for bounds in read):
            edges = [part for edge in edges for part in without(edge, box)]
        more = use.read - read
        if any(_covers(bounds, filling.box) for bounds in more):
            break
        read |= more
    is_little = 2 * sum(map(size, edges)) <= size(filling.box) and len(edges) <= MOST
    return edges if is_little else None


def _overwritten(stmt: Stmt, tensor: Tensor) -> Box | None:
    """The cells of an array that a statement writes, each before it is read, if there are such."""
    inside = list(walk_statements((stmt,)))
    stores = [line for line in inside if written(line) is tensor]
    if len(stores) > 1 or any(isinstance(line, (Stay, While)) for line in inside):
        return None
    (store,) = stores
    loops = _loops_around(store, stmt)
    nest = _Nest.around(store, loops) if loops is not None and isinstance(store, Store) else None
    if nest is None:
        return None
    ranges: dict[Symbol, Range] = {}
    for line in inside:
        if isinstance(line, For):
            enter(line, ranges)
        for source, index in reads(line):
            is_known = source is tensor and index is not None and nest.finds_written(index)
            meets = source.storage is tensor and _may_meet(nest.box, _bounds(region(source, index, ranges)))
            if meets and not is_known:
                return None
    return nest.box


def _loops_around(store: Stmt, stmt: Stmt) -> list[For] | None:
    """The loops of a statement around one in it, outermost first; None where it is in a branch."""
    loops: list[For] = []
    while stmt is not store:
        if not isinstance(stmt, For):
            return None
        loops.append(stmt)
        stmt = next(line for line in stmt.body if store in walk_statements((line,)))
    return loops


def _span(loop: For) -> range | None:
    """The values of a loop's symbol, one after the other; None where they are not known."""
    known = loop.step == 1 and loop.lo.is_constant and loop.hi.is_constant
    return range(loop.lo.offset, loop.hi.offset) if known else None


def _bounds(touched: Region) -> Bounds:
    if touched.tensor.storage is not touched.tensor:
        return (None,) * touched.tensor.storage.rank
    return tuple(
        range(span.base.offset + span.low, span.base.offset + span.high + 1)
        if span is not None and span.base.is_constant
        else None
        for span in touched.spans
    )


def _may_meet(box: Box, bounds: Bounds) -> bool:
    return all(other is None or common(one, other) for one, other in zip(box, bounds, strict=True))


def _covers(bounds: Bounds, box: Box) -> bool:
    return all(span is None or common(span, inner) == inner for span, inner in zip(bounds, box, strict=True))
