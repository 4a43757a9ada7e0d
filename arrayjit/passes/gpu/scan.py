"""scan: on a GPU many threads accumulate along an axis together.

    y[0] = x[0]                                    for g in grid(0, 1):
    for k in sequential(1, 1000):                      for t in block(0, 128, lanes=128):
        y[k] = add(y[k - 1], x[k])      ->                 own[t, ...] = sums of x[8*t], ..., x[8*t + 7]
                                                           parts[t] = own[t, 7]
                                                       ... parts[t] = parts[0] + ... + parts[t]
                                                       for t in block(0, 128, lanes=128):
                                                           y[8*t + ...] = add(parts[t - 1], own[t, ...])

A thread accumulates a few neighbours. The sums of the threads are then accumulated in steps in which each
takes in that of the thread 1, 2, 4, ... before it (Hillis and Steele, "Data parallel algorithms", 1986); and
what comes before its own is added to each of its sums. A block takes a row, tile by tile. A long array is
taken by many blocks, which first add up the part of each, so that all know what comes before theirs.

That is another order: the same bits for integers, extremes and logic, and floats where the program says that
their order is open. Where a step is a row itself, each column is left to a thread, which takes it in order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field, replace

from ...frozen import frozen, slotted
from ...ir.code import Caps, GpuCaps
from ...ir.conditions import compare
from ...ir.dtype import I64
from ...ir.expr import Const, Index, Load, Local, Variable
from ...ir.index import Affine, Symbol, affine
from ...ir.loops import Define, For, If, Kernel, LoopKind, Place, PlaceKind, Stmt, Store, Update
from ...ir.tensor import Tensor
from ...ir.walk import kept, substitute_statements, walk
from ..analysis.accumulations import Accumulation, accumulation
from ..analysis.strides import neighbours, parallel_nest
from .nests import Nest, flat

__all__ = ["scan"]

THREADS = 256

VECTORS = 2
"""A thread takes so many times what it can read at once."""

SHORT = 256
"""So few steps are left to one thread."""

LONG = 64
"""An array of so many tiles or more is worth several blocks."""

ZERO, ONE = Affine.of(0), Affine.of(1)

_Do = Callable[[Affine, Affine], tuple[Stmt, ...]]
_Otherwise = Callable[[Affine], tuple[Stmt, ...]]


def scan(kernel: Kernel, caps: Caps) -> Kernel:
    """The kernel with its scans in the hands of many threads."""
    if caps.gpu is None:
        return kernel
    work = _Scanning(caps.gpu)
    out: list[Stmt] = []
    for stmt in kernel.body:
        first = out[-1] if out else None
        found = _alone(first, stmt) or _row(stmt)
        if found is not None and found.extent > SHORT:
            del out[len(out) - (not found.nest) :]
            out.extend(work.grids(found))
            continue
        turned = _columns(first, stmt)
        if turned is not None:
            out[-1] = turned
            continue
        out.append(stmt)
    body = kept(kernel.body, out)
    return kernel.with_body(body, work.notes, work.placement)


# what there is


@frozen
class _Scan:
    """An accumulation of `extent` cells, from 0 on, in an iteration of `nest`."""

    nest: tuple[For, ...]
    extent: int
    steps: Accumulation


def _alone(first: Stmt | None, loop: Stmt) -> _Scan | None:
    return _scan_of((), first, loop)


def _row(stmt: Stmt) -> _Scan | None:
    """A scan in each iteration of a nest."""
    nest = parallel_nest(stmt)
    if not nest or len(nest[-1].body) != 2 or any(loop.step != 1 or not loop.trips for loop in nest):
        return None
    return _scan_of(tuple(nest), *nest[-1].body)


def _scan_of(nest: tuple[For, ...], first: Stmt | None, loop: Stmt, exact: bool = False) -> _Scan | None:
    """What a store and a loop over the cells after it come to; `exact` where the order will stay."""
    if not isinstance(first, Store) or not isinstance(loop, For) or not loop.trips or loop.lo != ONE:
        return None
    steps = accumulation(loop)
    if steps is None or first.tensor is not steps.into or not (exact or steps.is_free):
        return None
    if (first.index, first.value) != (steps.cell(ZERO), steps.value_at(ZERO)):
        return None
    return _Scan(nest, loop.trips + 1, steps)


def _in_order(loop: For) -> bool:
    """Does it go from 1 on, one by one?"""
    return loop.kind is LoopKind.SEQUENTIAL and loop.lo == ONE and loop.step == 1


def _columns(first: Stmt | None, loop: Stmt) -> Stmt | None:
    """First cells of columns and a loop over the rows after them, as columns."""
    if not isinstance(first, For) or not isinstance(loop, For) or not _in_order(loop) or len(loop.body) != 1:
        return None
    above, below = parallel_nest(first), parallel_nest(loop.body[0])
    bounds = [[one.bounds for one in nest] for nest in (above, below)]
    if not below or bounds[0] != bounds[1] or len(above[-1].body) != 1 or len(below[-1].body) != 1:
        return None
    symbols = {one.symbol: Affine.of(other.symbol) for one, other in zip(below, above, strict=True)}
    (start,), (step,) = above[-1].body, substitute_statements(below[-1].body, symbols)
    if _scan_of(tuple(above), start, replace(loop, body=(step,)), exact=True) is None:
        return None
    body: tuple[Stmt, ...] = (start, replace(loop, body=(step,)))
    for around in reversed(above):
        body = (replace(around, body=body),)
    return body[0]


# what becomes of it


@slotted
class _Scanning:
    gpu: GpuCaps
    placement: dict[Tensor, Place] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def grids(self, scan: _Scan) -> list[Stmt]:
        """The launches that make a scan."""
        tile = THREADS * self.cells(scan)
        tiles = -(-scan.extent // tile)
        if scan.nest or tiles < LONG:
            self.note(scan, f"a block accumulates {scan.extent} cells")
            return [self.rows(scan)]
        each = -(-tiles // (4 * self.gpu.processors))
        count = -(-tiles // each)
        self.note(scan, f"{count} blocks accumulate {scan.extent} cells")
        return self.parts(scan, each * tile, count)

    def cells(self, scan: _Scan) -> int:
        """How many a thread takes."""
        return VECTORS * self.gpu.access_bytes // scan.steps.into.dtype.itemsize

    def tiles(self, scan: _Scan, carry: Variable, lo: Affine, extent: int) -> tuple[Stmt, ...]:
        """So many cells from `lo` on, as far as there are, after what is in `carry`."""
        cells, threads = self.cells(scan), self.gpu.warp
        while threads < THREADS and threads * cells < extent:
            threads *= 2
        return _Tiles(scan, self.wide(scan), cells, threads, self.placement).all(carry, lo, extent)

    def note(self, scan: _Scan, text: str) -> None:
        self.notes.append(f"scan: {scan.steps.into.label}: {text}")

    def wide(self, scan: _Scan) -> int:
        """How many cells a thread can read and write at once."""
        steps = scan.steps
        cells = [(node.tensor, node.index) for node in walk(steps.value) if isinstance(node, Load)]
        return neighbours([*cells, (steps.into, steps.index)], steps.along, self.gpu.access_bytes)

    def rows(self, scan: _Scan) -> For:
        """A block for each row."""
        carry = Variable("carry", scan.steps.into.dtype)
        body = (Define(carry, scan.steps.identity), *self.tiles(scan, carry, ZERO, scan.extent))
        rows = flat(Nest(scan.nest, body)) if scan.nest else _once(body)
        return replace(rows, kind=LoopKind.GRID)

    def parts(self, scan: _Scan, each: int, count: int) -> list[Stmt]:
        """A block for each part, which has `each` cells."""
        steps, wide = scan.steps, self.wide(scan)
        dtype = steps.into.dtype
        sums, ahead = (Tensor(name, affine((count - 1,)), dtype) for name in ("sums", "ahead"))
        for tensor in (sums, ahead):
            self.placement[tensor] = Place(PlaceKind.ARENA, "blocks accumulate parts")
        part, number, lane = Symbol("p", lower=0, upper=count - 1), Symbol("j"), Symbol("v")
        total = Variable("total", dtype)
        place = part * each + number * wide + lane
        adding: Stmt = Update(total, steps.value_at(place), steps.accum)
        if wide > 1:
            adding = For(lane, ZERO, Affine.of(wide), (adding,), LoopKind.VECTOR, lanes=wide)
        else:
            adding = For(lane, ZERO, ONE, (adding,))
        vectors = Affine.of(each // wide)
        making = (
            Define(total, steps.identity),
            For(number, ZERO, vectors, (adding,), LoopKind.BLOCK, lanes=THREADS),
            _by_one((Store(sums, (Affine.of(part),), Local(total)),)),
        )
        first = For(part, ZERO, Affine.of(count - 1), making, LoopKind.GRID)
        along = Symbol("p")
        value = Load(sums, (Affine.of(along),))
        of_sums = replace(steps, along=along, into=ahead, index=(Affine.of(along),), value=value)
        over = replace(scan, extent=count - 1, steps=of_sums)
        block = Symbol("p", lower=0, upper=count)
        carry = Variable("carry", dtype)
        tiles = self.tiles(scan, carry, block * each, each)
        comes = compare("greater", Index(Affine.of(block)), Const(0, I64))
        before = If(comes, (Update(carry, Load(ahead, (block - 1,))),))
        body = (Define(carry, steps.identity), before, *tiles)
        last = For(block, ZERO, Affine.of(count), body, LoopKind.GRID)
        return [first, self.rows(over), last]


@slotted
class _Tiles:
    """Tiles of a scan, one after the other, by the threads of a block."""

    scan: _Scan
    wide: int
    cells: int
    threads: int
    placement: dict[Tensor, Place]

    @property
    def steps(self) -> Accumulation:
        return self.scan.steps

    def all(self, carry: Variable, lo: Affine, extent: int) -> tuple[Stmt, ...]:
        """So many cells from `lo` on, as far as there are; `carry` is what comes before."""
        tile = self.threads * self.cells
        count = -(-extent // tile)
        number = Symbol("tile", lower=0, upper=count)
        hi = None if lo.is_constant and extent % tile == 0 else Affine.of(self.scan.extent)
        return (For(number, ZERO, Affine.of(count), self.tile(carry, lo + number * tile, hi)),)

    def tensor(self, name: str, *shape: int) -> Tensor:
        made = Tensor(name, affine(shape), self.steps.into.dtype)
        self.placement[made] = Place(PlaceKind.SCRATCH, "threads accumulate together")
        return made

    def tile(self, carry: Variable, first: Affine, hi: Affine | None) -> tuple[Stmt, ...]:
        own = self.tensor("own", self.threads, self.cells)
        parts, others = self.tensor("parts", self.threads), self.tensor("others", self.threads)
        out: list[Stmt] = [self.begin(own, parts, first, hi)]
        distance = 1
        while distance < self.threads:
            out.append(self.step(parts, others, distance))
            parts, others, distance = others, parts, 2 * distance
        out.append(self.end(own, parts, carry, first, hi))
        total = Load(parts, affine((self.threads - 1,)))
        return (*out, Update(carry, self.steps.combined(Local(carry), total)))

    def begin(self, own: Tensor, parts: Tensor, first: Affine, hi: Affine | None) -> For:
        """Each thread reads its cells and accumulates them."""
        thread, sofar = Symbol("t", lower=0, upper=self.threads), Variable("sofar", own.dtype)

        def read(place: Affine, number: Affine) -> tuple[Stmt, ...]:
            return (Store(own, (Affine.of(thread), number), self.steps.value_at(place)),)

        def none(number: Affine) -> tuple[Stmt, ...]:
            return (Store(own, (Affine.of(thread), number), self.steps.identity),)

        number = Symbol("q", lower=1, upper=self.cells)
        cell = Load(own, (Affine.of(thread), Affine.of(number)))
        add = (
            Update(sofar, self.steps.combined(Local(sofar), cell)),
            Store(own, cell.index, Local(sofar)),
        )
        body = (
            self.each(thread, first, hi, read, none),
            Define(sofar, Load(own, (Affine.of(thread), ZERO))),
            For(number, ONE, Affine.of(self.cells), add, LoopKind.UNROLLED),
            Store(parts, (Affine.of(thread),), Local(sofar)),
        )
        return self.block(thread, body)

    def step(self, parts: Tensor, others: Tensor, distance: int) -> For:
        """Each thread takes in the sum of the one so far before it."""
        thread = Symbol("t", lower=0, upper=self.threads)
        here, there = (Load(parts, (position,)) for position in (Affine.of(thread), thread - distance))
        total = self.steps.combined(there, here)
        has = compare("greater_equal", Index(Affine.of(thread)), Const(distance, I64))
        store, plain = (Store(others, (Affine.of(thread),), value) for value in (total, here))
        return self.block(thread, (If(has, (store,), (plain,)),))

    def end(self, own: Tensor, parts: Tensor, carry: Variable, first: Affine, hi: Affine | None) -> For:
        """Each thread writes its cells, with all that comes before them."""
        thread, ahead = Symbol("t", lower=0, upper=self.threads), Variable("ahead", own.dtype)
        others = self.steps.combined(Local(carry), Load(parts, (thread - 1,)))
        has = compare("greater", Index(Affine.of(thread)), Const(0, I64))

        def write(place: Affine, number: Affine) -> tuple[Stmt, ...]:
            steps, cell = self.steps, Load(own, (Affine.of(thread), number))
            return (Store(steps.into, steps.cell(place), steps.combined(Local(ahead), cell), steps.loc),)

        body = (
            Define(ahead, Local(carry)),
            If(has, (Update(ahead, others),)),
            self.each(thread, first, hi, write, lambda number: ()),
        )
        return self.block(thread, body)

    def each(self, thread: Symbol, first: Affine, hi: Affine | None, do: _Do, otherwise: _Otherwise) -> Stmt:
        """What is done to the cells of a thread, as many at once as it can; `otherwise` from `hi` on."""
        turn, lane, rest = Symbol("u"), Symbol("v"), Symbol("v")
        wide = Affine.of(self.wide)
        start, number = first + thread * self.cells + turn * self.wide, turn * self.wide
        inside = do(start, number)
        if self.wide > 1:
            inside = (
                For(lane, ZERO, wide, do(start + lane, number + lane), LoopKind.VECTOR, lanes=self.wide),
            )
        if hi is not None:
            fits = compare("less", Index(start + rest), Index(hi))
            alone = If(fits, do(start + rest, number + rest), otherwise(number + rest))
            last = For(rest, ZERO, wide, (alone,), LoopKind.UNROLLED)
            all_fit = compare("less_equal", Index(start + self.wide), Index(hi))
            inside = (If(all_fit, inside, (last,)),) if self.wide > 1 else (last,)
        return For(turn, ZERO, Affine.of(self.cells // self.wide), inside, LoopKind.UNROLLED)

    def block(self, thread: Symbol, body: tuple[Stmt, ...]) -> For:
        return For(thread, ZERO, Affine.of(self.threads), body, LoopKind.BLOCK, lanes=self.threads)


def _by_one(body: tuple[Stmt, ...]) -> For:
    return For(Symbol("t", lower=0, upper=1), ZERO, ONE, body, LoopKind.BLOCK, lanes=THREADS)


def _once(body: tuple[Stmt, ...]) -> For:
    return For(Symbol("g", lower=0, upper=1), ZERO, ONE, body, LoopKind.GRID)
