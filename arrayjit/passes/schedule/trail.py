"""trail: what finishes a row is done beside the work on the next one.

    for i in sequential(0, 1000):                   last = 1.0
        s = 0.0                                     fill(t, 1.0)
        for j in vector(0, 800, lanes=16):          for i in sequential(0, 1000):
            e = exp(x[i, j])                            p = i & 1
            t[j] = e                                    before = max(i - 1, 0)
            s = reduce(add, s, e)                       s = 0.0
        for k in vector(0, 800, lanes=16):  ->          for j in vector(0, 800, lanes=16):
            y[i, k] = divide(t[k], s)                       e = exp(x[i, j])
                                                            y[before, j] = divide(t[1 - p, j], last)
                                                            t[p, j] = e
                                                            s = reduce(add, s, e)
                                                        last = s
                                                    for k in vector(0, 800, lanes=16):
                                                        y[999, k] = divide(t[1, k], last)

A loop that does little but load, divide and store waits for these, and one that computes much hardly does:
beside each other they take little longer than the second alone. So a row is finished within the busiest loop
of the next one: of the temporaries that it is finished from there are two, in turn, and of its numbers there
are copies. With the first row nothing is finished, but stored to where the second one stores then. That needs
results that nothing else in the loop touches. Sums keep their lanes, and so their order. Softmax takes
0.75 to 0.9 of the time; where the busiest loop only adds up, as in the norm of a layer, that is so as long as
the results stay in the second cache, and beyond it each such loop goes along memory alone. But rows that two
loops have added up, one waiting for the other, take 0.56 to 0.95 of the time in the last cache as well, where
processors see far ahead and the first cache has room for two rows (Zen 5).

Processors take a load for one of what was just stored if the last twelve bits of the addresses are alike: the
two temporaries lie half a page apart, and what is stored stands behind the first load of the loop, which
would often find its line so otherwise.

Results that no cache could hold until they are read go past the caches, as they would in a loop of their own
(`bypass`): softmax of large arrays takes 0.65 to 0.95 of the time then. Rows of them that are not whole lines
are left alone, since a loop of their own starts where a line does: softmax of 16384 x 1000 float32 takes 0.55
of the time.

Rows now go in order. Where threads may share them they do so in blocks, each with a first and a last row of
its own; not where the last cache does not hold the arrays: threads that wait for memory together wait for
nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import field, replace

from ...frozen import frozen, slotted
from ...ir.code import Caps
from ...ir.dtype import I64
from ...ir.expr import Apply, Const, Gather, Index, Load, Local, Variable, constant, dtype_of
from ...ir.index import Affine, Symbol
from ...ir.loops import (
    Bind,
    Define,
    Fill,
    For,
    Kernel,
    LoopKind,
    Place,
    PlaceKind,
    Raise,
    Stay,
    Stmt,
    Store,
    Update,
    walk_statements,
)
from ...ir.ops import OPS, divides_integers
from ...ir.tensor import Tensor
from ...ir.walk import (
    expressions,
    locals_defined,
    locals_read,
    nodes_in,
    rewrite_cells,
    rewrite_loops,
    symbols_read,
)
from ..analysis.access import Range, effects
from ..analysis.copies import copy_body, unless_once
from ..analysis.costs import cost_of_nodes
from ..analysis.handed import threads_for
from ..analysis.private import is_private
from ..analysis.strides import affine_accesses, stride
from ..analysis.trips import enter, greater, lesser
from ..analysis.uses import counts
from .bypass import bypass

__all__ = ["trail"]

LEAST_ROWS = 8
"""Fewer rows are not worth the first one and the last."""

BLOCK, BLOCKS = 32, 4
"""The most rows of a block, and the blocks for each thread at least, where threads share them."""

CELLS = 128
"""The end of a shorter row is over before anything has to be waited for."""

HEAVY = 16.0
"""What a cell takes of a loop that computes much, in additions, at least."""

LIGHT = 14.0
"""What a cell takes of one that does little, at most."""

PART = 4
"""Temporaries take such a part of the second cache at most."""

SEEN = 128
"""Operations behind one that waits; a processor that sees so many ends a row while it adds up the next."""

KEPT = 3
"""Arrays that take more than one of so many parts of the last cache are not all found there."""

PAGE = 4096
"""Bytes after which addresses look alike."""

ZERO = Affine.of(0)


def trail(kernel: Kernel, caps: Caps) -> Kernel:
    """The kernel with rows finished beside the work on the next ones."""
    trailing = _Trailing(caps, kernel)
    body = rewrite_loops(kernel.body, trailing.loop)
    if body is kernel.body:
        return kernel
    placement = dict(trailing.placed(tensor, place) for tensor, place in kernel.placement.items())
    return replace(kernel, body=body, placement=placement, notes=(*kernel.notes, *trailing.notes))


@frozen
class _Rows:
    """A loop over rows: `busy` is the loop in it that computes most, `last` the one that finishes a row, from
    the temporaries `made` and the numbers `found`."""

    loop: For
    busy: For
    last: For
    made: Sequence[Tensor]
    found: Sequence[Variable]


@slotted
class _Trailing:
    """What is found out on the way through a kernel: `doubled` says what temporaries become."""

    caps: Caps
    kernel: Kernel
    ranges: dict[Symbol, Range] = field(default_factory=dict)
    doubled: dict[Tensor, Tensor] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def loop(self, loop: For) -> Sequence[Stmt] | None:
        enter(loop, self.ranges)
        size = self.block(loop)
        rows = self.rows(loop) if size >= LEAST_ROWS else None
        rows = rows and self.past_caches(rows)
        if rows is None:
            return None
        last, busy = rows.last.symbol.hint, rows.busy.symbol.hint
        self.notes.append(
            f"trail: loop {last} for a row of {loop.symbol.hint} goes beside loop {busy} of the next"
        )
        self.doubled |= {tensor: _doubled(tensor) for tensor in rows.made}
        return _Writer(rows, self.doubled, size).blocks()

    def past_caches(self, rows: _Rows) -> _Rows | None:
        """The same with results stored past the caches which no cache could hold; nothing if a row of them
        does not start where a line does: a loop of its own starts there."""
        alone = bypass(self.kernel.with_body((rows.loop,), ()), self.caps)
        loops = (stmt for stmt in walk_statements(alone.body) if isinstance(stmt, For))
        (last,) = (loop for loop in loops if loop.symbol == rows.last.symbol)
        for store in (stmt for stmt in last.body if isinstance(stmt, Store) and stmt.bypass):
            row = stride(store.tensor, store.index, rows.loop.symbol)
            if row is None or row * store.tensor.dtype.itemsize % self.caps.line_bytes:
                return None
        self.notes += alone.notes[len(self.kernel.notes) :]
        return replace(rows, last=last)

    def placed(self, tensor: Tensor, place: Place) -> tuple[Tensor, Place]:
        """What becomes of a temporary, and where that is."""
        both = self.doubled.get(tensor)
        if both is None:
            return tensor, place
        fits = both.nbytes <= self.caps.stack_bytes
        return both, place if fits else replace(place, kind=PlaceKind.ARENA)

    def block(self, loop: For) -> int:
        """How many rows go in order at least, all of them if one thread takes them anyway; none where threads
        wait for memory, and for nothing else."""
        if loop.kind not in (LoopKind.SEQUENTIAL, LoopKind.PARALLEL) or loop.step != 1 or loop.trips is None:
            return 0
        threads = threads_for((loop,), (), self.ranges, self.caps)
        if threads > 1 and _bytes((loop,)) > self.caps.l3_bytes:
            return 0
        return loop.trips if threads == 1 else min(BLOCK, loop.trips // (BLOCKS * threads))

    def rows(self, loop: For) -> _Rows | None:
        """The parts of a loop over rows, if it pays to take them beside one another."""
        *others, last = loop.body
        if not isinstance(last, For) or not _only_stores(last) or _cost(last) > LIGHT:
            return None
        alike = [stmt for stmt in others if isinstance(stmt, For) and _is_beside(stmt, last)]
        if not alike or not self.may_wait(loop, last):
            return None
        busy = max(alike, key=_cost)
        is_found = self.stays_near(last) or (len(alike) > 1 and self.finds_rows(loop, busy, last))
        if _cost(busy) < HEAVY and not is_found:
            return None
        made, found = self.made(loop, last), _found(others, last)
        return None if made is None or found is None else _Rows(loop, busy, last, made, found)

    def may_wait(self, loop: For, last: For) -> bool:
        """Does nothing else in the loop touch what its last part stores, or leave it?"""
        rest, own = effects(loop.body[:-1], self.ranges), effects((last,), self.ranges)
        if rest.leaves or own.leaves or rest.updates or own.updates:
            return False
        if any(isinstance(stmt, (Raise, Stay)) for stmt in walk_statements(loop.body)):
            return False
        return all(own.writes.keys().isdisjoint(touched) for touched in (rest.reads, rest.writes, own.reads))

    def stays_near(self, last: For) -> bool:
        """Does the second cache hold all results?"""
        return _bytes((last,), stored=True) <= self.caps.l2_bytes

    def finds_rows(self, loop: For, busy: For, last: For) -> bool:
        """Does the last cache surely hold all that a loop goes through, and half of the first one the rows
        that two of its parts do, on a processor that sees the sums of a row end before the next one's?"""
        if self.caps.pipes.ahead < SEEN or KEPT * _bytes((loop,)) > self.caps.l3_bytes:
            return False
        rows = [tensor for part in (busy, last) for tensor in {cell[0] for cell in affine_accesses((part,))}]
        return 2 * (last.trips or 0) * sum(tensor.dtype.itemsize for tensor in rows) <= self.caps.l1_bytes

    def made(self, loop: For, last: For) -> Sequence[Tensor] | None:
        """The temporaries of a row that its last part reads; None where it reads something else that the loop
        writes."""
        rest, own = effects(loop.body[:-1], self.ranges), effects((last,), self.ranges)
        made = [tensor for tensor in own.reads if tensor in rest.writes]
        inside, everywhere = counts(loop.body), counts(self.kernel.body)
        for tensor in made:
            place = self.kernel.placement.get(tensor)
            if place is None or place.kind not in (PlaceKind.STACK, PlaceKind.ARENA):
                return None
            if (
                tensor.strides is not None
                or not tensor.has_fixed_shape
                or inside[tensor] != everywhere[tensor]
            ):
                return None
            if _cells(tensor, loop.body) != inside[tensor] or not is_private(tensor, loop.body):
                return None
        return made if 2 * PART * sum(tensor.nbytes for tensor in made) <= self.caps.l2_bytes else None


def _bytes(body: tuple[Stmt, ...], stored: bool = False) -> float:
    """What the arrays have that a body reaches, or stores to: any number if that is not known."""
    found = {tensor.storage for tensor, _, is_store in affine_accesses(body) if is_store or not stored}
    return sum(tensor.nbytes if tensor.has_fixed_shape else math.inf for tensor in found)


def _is_beside(loop: For, last: For) -> bool:
    """Can a loop take what the last one does between what it does itself?"""
    plain = all(isinstance(stmt, (Define, Update, Store)) for stmt in loop.body)
    return (
        loop.kind is LoopKind.VECTOR and loop.bounds == last.bounds and plain and (loop.trips or 0) >= CELLS
    )


def _only_stores(loop: For) -> bool:
    """Does a vector loop compute nothing that fails for any numbers, and store it where no number tells?"""
    plain = all(isinstance(stmt, (Define, Store)) for stmt in loop.body)
    fails = any(
        isinstance(node, Gather) or (isinstance(node, Apply) and divides_integers(node.op, dtype_of(node)))
        for node in nodes_in(loop.body)
    )
    return loop.kind is LoopKind.VECTOR and plain and not fails


def _cost(loop: For) -> float:
    return cost_of_nodes(nodes_in(loop.body))


def _found(others: Sequence[Stmt], last: For) -> Sequence[Variable] | None:
    """The numbers of a row that its last part reads; None where these are positions."""
    bound = {stmt.symbol for stmt in others if isinstance(stmt, Bind)}
    positions = {symbol for stmt in last.body for expr in expressions(stmt) for symbol in symbols_read(expr)}
    reached = {symbol for _, index, _ in affine_accesses((last,)) for at in index for symbol in at.symbols}
    if not bound.isdisjoint(positions | reached):
        return None
    defined = locals_defined(others)
    return [variable for variable in dict.fromkeys(locals_read(last.body)) if variable in defined]


def _cells(tensor: Tensor, body: tuple[Stmt, ...]) -> int:
    """How often a body reads or writes one cell of a tensor, by its own shape."""
    found = 0

    def seen(used: Tensor, index: tuple[Affine, ...]) -> tuple[Tensor, tuple[Affine, ...]]:
        nonlocal found
        found += used is tensor
        return used, index

    rewrite_cells(body, seen)
    return found


def _doubled(tensor: Tensor) -> Tensor:
    """Two of a temporary, rows of it half a page apart but for whole pages."""
    shape = tensor.shape
    if tensor.rank == 1:
        pages = -(-(tensor.nbytes - PAGE // 2) // PAGE)
        shape = (Affine.of((pages * PAGE + PAGE // 2) // tensor.dtype.itemsize),)
    return Tensor(tensor.label, (Affine.of(2), *shape), tensor.dtype)


@frozen
class _Writer:
    """Writes rows that go beside one another, `size` of them in a block."""

    rows: _Rows
    doubled: Mapping[Tensor, Tensor]
    size: int

    def blocks(self) -> Sequence[Stmt]:
        """All rows."""
        loop, block = self.rows.loop, Symbol("b")
        trips, first, many = Affine.of(loop.trips or 0), Affine.of(block) * self.size, Affine.of(self.size)
        count, left = divmod(trips.constant, self.size)
        bound: tuple[Stmt, ...] = ()
        if left:
            here = Symbol("rows", lower=left, upper=self.size + 1)
            bound, many = (Bind(here, lesser(many, trips - first)),), Affine.of(here)
        body = (*bound, *self.block(loop.lo + first, many))
        return unless_once(For(block, ZERO, Affine.of(count + (left > 0)), body, loop.kind))

    def block(self, start: Affine, many: Affine) -> Sequence[Stmt]:
        """So many rows from a first one on."""
        rows, row, end = self.rows, Symbol(self.rows.loop.symbol.hint), _turn()
        copies = {variable: Variable("last", variable.dtype) for variable in rows.found}
        symbol = Symbol(rows.last.symbol.hint)
        final = self.finished(start + many - 1, Affine.of(end), symbol, copies)
        return (
            *(Define(copy, constant(1, copy.dtype)) for copy in copies.values()),
            *(Fill(self.doubled[tensor], constant(1, tensor.dtype)) for tensor in rows.made),
            For(row, ZERO, many, self.row(start, Affine.of(row), copies)),
            *self.told(end, many - 1),
            replace(rows.last, symbol=symbol, body=final),
        )

    def row(self, start: Affine, number: Affine, copies: Mapping[Variable, Variable]) -> tuple[Stmt, ...]:
        """What is done for a row, and for the one before it: `copies` are its numbers."""
        rows, turn, before = self.rows, _turn(), Symbol("before", lower=0, upper=self.size)
        beside = self.finished(start + before, 1 - Affine.of(turn), rows.busy.symbol, copies)
        busy = replace(rows.busy, body=_among(rows.busy.body, beside))
        work = tuple(busy if stmt is rows.busy else stmt for stmt in rows.loop.body[:-1])
        numbers = (Update(copy, Local(variable)) for variable, copy in copies.items())
        return (
            *self.told(turn, number),
            Bind(before, greater(number - 1, ZERO)),
            *copy_body(
                (*self.in_turn(work, Affine.of(turn)), *numbers), {rows.loop.symbol: start + number}, {}
            ),
        )

    def told(self, turn: Symbol, row: Affine) -> Sequence[Stmt]:
        """Tells which of two a row takes, if there are any."""
        parity = Apply(OPS["bitwise_and"], (Index(row), Const(1, I64)), I64)
        return (Bind(turn, parity),) if self.rows.made else ()

    def finished(
        self, row: Affine, turn: Affine, cell: Symbol, copies: Mapping[Variable, Variable]
    ) -> tuple[Stmt, ...]:
        """What finishes a cell of a row."""
        symbols = {self.rows.loop.symbol: row, self.rows.last.symbol: Affine.of(cell)}
        return self.in_turn(copy_body(self.rows.last.body, symbols, copies), turn)

    def in_turn(self, body: tuple[Stmt, ...], turn: Affine) -> tuple[Stmt, ...]:
        """A body with one of the two in place of each temporary."""

        def cell(tensor: Tensor, index: tuple[Affine, ...]) -> tuple[Tensor, tuple[Affine, ...]]:
            return (self.doubled[tensor], (turn, *index)) if tensor in self.rows.made else (tensor, index)

        return rewrite_cells(body, cell)


def _turn() -> Symbol:
    """Which of two."""
    return Symbol("p", lower=0, upper=2)


def _among(body: tuple[Stmt, ...], beside: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """The statements of a body, with others behind the first one that loads anything."""
    loading = (
        place for place, stmt in enumerate(body) if any(isinstance(n, Load) for n in nodes_in((stmt,)))
    )
    behind = next(loading, -1) + 1
    return *body[:behind], *beside, *body[behind:]
