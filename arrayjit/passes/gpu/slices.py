"""Slices of a product's factors, on their way from memory to what the threads of a block share.

    held[t, i, l] = x[128*m + 32*w + ..., 16*s + ...]       bring: 16 bytes at once, along memory
    rows[p, k, r] = held[t, i, l]                           put: neighbours along rows or columns side by side

A *slice* is `depth` terms of all the rows, or columns, of a tile. Who uses it reads `slices[buffer, term,
row]`; there is room behind each term, so that what a warp stores or reads at once is in different banks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field

from ...frozen import frozen, slotted
from ...ir.conditions import both, compare
from ...ir.dtype import I64
from ...ir.expr import Apply, Const, Expr, Index, Load, constant
from ...ir.index import Affine, Symbol, affine
from ...ir.loops import Bind, For, If, LoopKind, Stmt, Store
from ...ir.ops import OPS
from ...ir.tensor import Tensor
from ...ir.walk import substitute, substitute_statements
from ..analysis.access import loads
from ..analysis.copies import unless_once
from ..analysis.strides import stride
from ..products.products import Sum

__all__ = [
    "BUFFERS",
    "MOST_LANES",
    "WARP",
    "Factor",
    "Numbers",
    "Tile",
    "all_of",
    "block",
    "less",
    "unrolled",
]

WARP = 32

MOST_LANES = 4
"""Neighbours that a thread reads or writes at once."""

BUFFERS = 2
"""Slices in the memory of a block: the one that is worked on, and the next."""

ZERO = Affine.of(0)


@frozen
class Tile:
    """What a block computes: `rows` x `columns` sums, by slices of `depth` terms; a thread has `high` x
    `wide` of them."""

    rows: int
    columns: int
    depth: int
    high: int
    wide: int

    @property
    def threads(self) -> int:
        """Of a block."""
        return self.rows * self.columns // (self.high * self.wide)

    def shared_bytes(self, itemsize: int, access_bytes: int) -> int:
        """What both factors take of a block's memory, for elements of so many bytes."""
        side = (self.rows + self.columns) * itemsize + 2 * access_bytes
        return BUFFERS * self.depth * side

    def __str__(self) -> str:
        return f"{self.rows} x {self.columns}"


@slotted
class Numbers:
    """Numbers that follow from a thread's number by division, and the statements that tell them."""

    binds: list[Stmt] = field(default_factory=list)

    def split(self, value: Affine, most: int, by: int) -> tuple[Affine, Affine]:
        """Quotient and remainder of a number below `most`."""
        if most <= by:
            return ZERO, value
        if by == 1:
            return value, ZERO
        quotient = Symbol("q", lower=0, upper=-(-most // by))
        self.binds.append(Bind(quotient, Apply(OPS["raw_divide"], (Index(value), Const(by, I64)), I64)))
        return Affine.of(quotient), value - Affine.of(quotient) * by


@frozen
class _Spot:
    """The first cell that a thread brings, as its place along the side and its term, and how far the next one
    is away in both; `binds` tell what they are."""

    binds: tuple[Stmt, ...]
    along: Affine
    term: Affine
    step: tuple[int, int]

    def cell(self, number: Symbol, lane: Symbol | None, across: bool) -> tuple[Affine, Affine]:
        """The place along the side and the term of one lane of cell `number`."""
        along = self.along + Affine.of(number) * self.step[0]
        term = self.term + Affine.of(number) * self.step[1]
        if lane is None:
            return along, term
        return (along, term + lane) if across else (along + lane, term)


@frozen
class Factor:
    """A factor of the products of a tile, and how a slice of it comes to the memory of a block, `lanes` cells
    at once: over what threads have `held`, to one of the buffers of `slices`. Its cells belong to the
    iterations of `side` from number `first` on; `across`: in memory they lie along the terms. Of `together`
    terms, that are gone through before anything else is done, some may not exist."""

    total: Sum
    value: Expr
    side: For
    first: Affine
    size: int
    tile: Tile
    together: int
    lanes: int
    across: bool
    held: Tensor
    slices: Tensor

    @staticmethod
    def of(
        total: Sum,
        value: Expr,
        side: For,
        first: Affine,
        size: int,
        tile: Tile,
        access_bytes: int,
        together: int,
    ) -> Factor:
        """One factor of a sum."""
        across = _lies_along(value, total.terms[-1].symbol) and not _lies_along(value, side.symbol)
        lanes = _lanes(total, value, side, across, access_bytes)
        while lanes > 1 and size * tile.depth < lanes * tile.threads:
            lanes //= 2
        each = size * tile.depth // (lanes * tile.threads)
        dtype = total.variable.dtype
        width = size + max(1, access_bytes // dtype.itemsize)
        held = Tensor(f"{side.symbol.hint}_held", affine((tile.threads, each, lanes)), dtype)
        slices = Tensor(f"{side.symbol.hint}_slices", affine((BUFFERS, tile.depth, width)), dtype)
        return Factor(total, value, side, first, size, tile, together, lanes, across, held, slices)

    def spot(self, thread: Symbol) -> _Spot:
        """What a thread brings. Where memory lies along the terms, a warp takes few of each of 16 rows, whose
        stores meet in no bank."""
        numbers, threads = Numbers(), self.tile.threads
        if not self.across:
            chunks = self.size // self.lanes
            term, chunk = numbers.split(Affine.of(thread), threads, chunks)
            return _Spot(tuple(numbers.binds), chunk * self.lanes, term, (0, threads // chunks))
        chunks = self.tile.depth // self.lanes
        near = min(WARP // min(chunks, 2 if self.lanes > 1 else 16), threads // chunks)
        rest, low = numbers.split(Affine.of(thread), threads, near)
        high, chunk = numbers.split(rest, threads // near, chunks)
        return _Spot(tuple(numbers.binds), high * near + low, chunk * self.lanes, (threads // chunks, 0))

    def bring(self, thread: Symbol, start: Affine) -> tuple[Stmt, ...]:
        """The cells of the slice whose first term is `start`, from memory to the registers of a thread."""
        spot, number, lane = self.spot(thread), Symbol("i"), Symbol("l")
        first, at = spot.cell(number, None, self.across)
        guards = []
        if self.count % self.size:
            guards.append(less(self.first + first, self.count))
        if self.total.depth % self.together:
            guards.append(less(start + at, self.total.depth))
        along, term = spot.cell(number, lane, self.across)
        cell = (Affine.of(thread), Affine.of(number), Affine.of(lane))
        binds, values = _terms(self.total.terms, start + term)
        values[self.side.symbol] = self.side.lo + self.first + along
        load = (*binds, Store(self.held, cell, substitute(self.value, values)))
        body = self.each(lane, load, LoopKind.VECTOR)
        if guards:
            zero = Store(self.held, cell, constant(0, self.held.dtype))
            body = (If(all_of(guards), body, self.each(lane, (zero,), LoopKind.UNROLLED)),)
        return (*spot.binds, *self.all(number, body))

    def put(self, thread: Symbol, buffer: Affine) -> tuple[Stmt, ...]:
        """What was brought, from the registers of a thread to a buffer."""
        spot, number, lane = self.spot(thread), Symbol("i"), Symbol("l")
        along, term = spot.cell(number, lane, self.across)
        held = Load(self.held, (Affine.of(thread), Affine.of(number), Affine.of(lane)))
        store = Store(self.slices, (buffer, term, along), held)
        kind = LoopKind.UNROLLED if self.across else LoopKind.VECTOR
        return (*spot.binds, *self.all(number, self.each(lane, (store,), kind)))

    @property
    def count(self) -> int:
        """Of all iterations of its side."""
        count = self.side.trips
        assert count is not None
        return count

    def all(self, number: Symbol, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """Everything that a thread brings of a slice."""
        return unless_once(unrolled(number, self.held.shape[1].constant, body))

    def each(self, lane: Symbol, body: tuple[Stmt, ...], kind: LoopKind) -> tuple[Stmt, ...]:
        """The lanes of a cell."""
        own = Symbol(lane.hint)
        body = substitute_statements(body, {lane: Affine.of(own)})
        lanes = self.lanes if kind is LoopKind.VECTOR else 1
        return unless_once(For(own, ZERO, Affine.of(self.lanes), body, kind, lanes=lanes))


def _lies_along(value: Expr, symbol: Symbol) -> bool:
    """Does any of what an expression reads move by one cell with the symbol?"""
    return any(
        index is not None and stride(tensor, index, symbol) in (1, -1) for tensor, index in loads(value)
    )


def _lanes(total: Sum, value: Expr, side: For, across: bool, access_bytes: int) -> int:
    """How many neighbours a thread reads at once: so many that none is left over, and that rows start
    where as many may be read."""
    if across and len(total.terms) > 1:
        return 1
    symbol = total.terms[-1].symbol if across else side.symbol
    found = [(tensor, index) for tensor, index in loads(value)
             if index is not None and stride(tensor, index, symbol) == 1]  # fmt: skip
    if not found:
        return 1
    size = max(tensor.dtype.itemsize for tensor, _ in found)
    lanes = min(MOST_LANES, access_bytes // size)
    steps = [total.depth if across else side.trips or 1]
    for tensor, index in found:
        try:
            steps += [c for c, moving in tensor.linear(index).terms if moving is not symbol]
        except ValueError:
            return 1
    while any(step % lanes for step in steps):
        lanes //= 2
    return lanes


def _terms(terms: Sequence[For], number: Affine) -> tuple[list[Stmt], dict[Symbol, Affine]]:
    """What the symbols of the loops over terms are for term `number`, after what tells them."""
    numbers, values = Numbers(), dict[Symbol, Affine]()
    most = 1
    for loop in terms:
        most *= loop.trips or 0
    for loop in terms[:-1]:
        inner = most // (loop.trips or 1)
        place, number = numbers.split(number, most, inner)
        values[loop.symbol], most = loop.lo + place, inner
    values[terms[-1].symbol] = terms[-1].lo + number
    return numbers.binds, values


def block(threads: int, inside: Callable[[Symbol], tuple[Stmt, ...]]) -> For:
    """What each thread of a block does, as the number of the thread says."""
    thread = Symbol("t", lower=0, upper=threads)
    return For(thread, ZERO, Affine.of(threads), inside(thread), LoopKind.BLOCK, lanes=threads)


def unrolled(symbol: Symbol, count: int, body: tuple[Stmt, ...]) -> For:
    """A body so many times, one after the other."""
    return For(symbol, ZERO, Affine.of(count), body, LoopKind.UNROLLED)


def less(value: Affine, most: int) -> Expr:
    """Is a position less than a number?"""
    return compare("less", Index(value), Const(most, I64))


def all_of(conditions: Sequence[Expr]) -> Expr:
    """Do all conditions hold?"""
    first, *others = conditions
    for other in others:
        first = both(first, other)
    return first
