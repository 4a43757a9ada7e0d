"""inline: a cheap or badly placed value is computed where it is read instead of being stored.

    t[i] = multiply(0.5, x[i])      for i in 8      ->      y[i] = add(multiply(0.5, x[i]),
    y[i] = add(t[i], t[i + 1])      for i in 7                         multiply(0.5, x[i + 1]))   for i in 7

A producer may be inlined if it is the only write of its temporary, covers it or those first cells of it that
the reader goes over, is no reduction, and nothing that it reads is written between it and the reader. It *is*
inlined if it is almost free (constants, ranges, a cell read elsewhere), or if its reader needs cells that a
common loop cannot give it (shifted, transposed, the first few) and the value is cheap, with what is made for
it alone, compared with what storing it costs, or not computed more often than before. What a reader takes
from a cache (`sections`) is stored if others read what it is made of. Readers in step with the producer are
left to `fuse`, unless one before them computes the neighbours of their cells and the temporary is large: then
nobody needs it. A copy that some reader needs is read by all. One that is changed later is not read before
that: what a program then overwrites in place need not have been copied (`margins`). Products take expressions
only if they read each cell once, as those with a vector do; of a vector that several products read, parts of
a conjugate and the like; what is stored for a product is read by others that would read more cells otherwise.
A place that a loop goes to next takes a few operations altogether: before the loop, vectors compute it.
Wishes go before all that: a temporary to be virtual is inlined or refused, one to be local stays.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import partial
from itertools import count
from typing import TypeVar

from ...errors import UnsupportedError
from ...frozen import frozen, frozen_by_identity, replace, slotted
from ...ir.assign import (
    Assign,
    Bind,
    Branch,
    Check,
    Computation,
    Loop,
    Note,
    Statement,
    While,
    assigned,
    expressions,
    rewrite_bodies,
    statements,
)
from ...ir.code import Caps
from ...ir.expr import Expr, Gather, Load, dtype_of
from ...ir.index import Affine, Symbol
from ...ir.tensor import Tensor
from ...ir.walk import substitute, transform, walk
from ..analysis.access import given, loads
from ..analysis.costs import cost_of, scalar_cost, size_of
from ..analysis.points import Reader, depends, extents_of, is_permutation, loop_order
from ..analysis.strides import run_length
from ..analysis.trips import falls_into_parts

__all__ = ["CHEAP_COST", "CHEAP_LOADS", "MAX_NODES", "explain_inline", "inline"]

CHEAP_COST = 4.0
CHEAP_LOADS = 3
MAX_NODES = 48
"""Nodes of an expression after inlining."""

LIGHT_COST = 1.0
"""What takes no longer than to read it back may be computed by each product that reads it."""

FAR_COST = 16.0
FAR_LOADS = 10
FAR_NODES = 200
"""The same where the temporary is too large for the second cache: to store a value and to read it back
takes as long as so many operations."""

MOVED = 4
"""A statement that reads or makes sections of a temporary moves about so many times as much."""

ONE = Affine.of(1)

Body = tuple[Statement, ...]

Scope = tuple[int, int]
"""A body in a statement: which statement, and which side of a branch. A test is part of its loop's body."""

_Site = tuple["_Read", int, tuple[Scope, ...]]
"""Where a temporary is read: by which statement, its number, and what it stands in."""

_Reader = TypeVar("_Reader", Assign, Bind, Branch, Check, While)


def inline(computation: Computation, caps: Caps) -> Computation:
    """The computation with fewer temporaries."""
    inlining = _Inlining(given(computation.params), caps)
    body = inlining.run(computation)
    if not inlining.inlined and not inlining.unread:
        return computation
    return replace(computation, body=tuple(inlining.remaining(body)))


def explain_inline(before: Computation, after: Computation, caps: Caps) -> Iterator[str]:
    """Which temporaries are computed where they are read, and why others are not."""
    inlining = _Inlining(given(before.params), caps)
    inlining.run(before)
    left = assigned(after.body)
    written = {one.into: one for one in statements(before.body) if isinstance(one, Assign)}
    for tensor, assign in written.items():
        if tensor.storage in inlining.given or tensor.storage not in inlining.sites:
            continue
        place = f" (at {assign.loc})" if assign.loc else ""
        if tensor.storage not in left:
            yield f"inline: {tensor}{place} is computed where it is read"
        else:
            yield f"inline: {tensor}{place} is stored: {inlining.refusal(tensor)}"


@frozen_by_identity
class _Read:
    """A statement with the indices at which it reads each storage, None for one that no expression can
    replace; `size` is the number of nodes of its expressions."""

    stmt: Reader
    indices: Mapping[Tensor, Sequence[tuple[Affine, ...] | None]]
    size: int

    @staticmethod
    def of(stmt: Reader) -> _Read:
        indices: dict[Tensor, list[tuple[Affine, ...] | None]] = {}
        size = 0
        for expr in expressions(stmt):
            for node in walk(expr):
                size += 1
                if type(node) is Load:
                    storage = node.tensor.storage
                    indices.setdefault(storage, []).append(node.index if node.tensor is storage else None)
                elif type(node) is Gather:
                    indices.setdefault(node.tensor.storage, []).append(None)
        return _Read(stmt, indices, size)


@frozen
class _Producer:
    """An assignment that may be inlined; `reads` are the storages that its value is computed from, `axes` has
    the loop symbol of each axis of its temporary, `written` how many cells it writes along those of which
    that are not all. With `again` it is a copy, to an array that others write later."""

    tensor: Tensor
    value: Expr
    reads: tuple[Tensor, ...]
    axes: tuple[Symbol | None, ...]
    written: Mapping[int, Affine]
    at: int
    around: tuple[Scope, ...]
    again: bool = False

    def at_index(self, index: tuple[Affine, ...]) -> Expr:
        """The value of the cell at `index`."""
        pairs = zip(self.axes, index, strict=True)
        return substitute(self.value, {symbol: position for symbol, position in pairs if symbol is not None})


@slotted
class _Inlining:
    """Readers are numbered in program order; `ends` is the last number in each loop; `stored` says why an
    assignment is no producer; `unread` are arrays that a reader does not read before they are changed;
    `shifted` are large temporaries of which a reader computes neighbours itself; `reads` are those of the
    statements that were looked at, by identity."""

    given: frozenset[Tensor]
    caps: Caps
    writes: dict[Tensor, list[int]] = field(default_factory=dict)
    readers: dict[Tensor, set[int]] = field(default_factory=dict)
    sites: dict[Tensor, list[_Site]] = field(default_factory=dict)
    ends: dict[int, int] = field(default_factory=dict)
    producers: dict[Tensor, _Producer] = field(default_factory=dict)
    copies: dict[Tensor, _Producer] = field(default_factory=dict)
    stored: dict[Tensor, str] = field(default_factory=dict)
    inlined: set[Tensor] = field(default_factory=set)
    unread: set[Tensor] = field(default_factory=set)
    shifted: set[Tensor] = field(default_factory=set)
    reads: dict[int, _Read] = field(default_factory=dict)

    def run(self, computation: Computation) -> Body:
        """The statements with what is inlined in them."""
        self.survey(computation.body, (), 0)
        self.inlined.update(tensor for tensor in self.writes if _wishes(tensor, "virtual"))
        return self.body(computation.body, (), count())

    def refusal(self, tensor: Tensor) -> str:
        """Why a temporary is still there."""
        producer = self.producers.get(tensor)
        if producer is None:
            return self.stored.get(tensor, "it is wished to be local")
        obstacles = (self.obstacle(producer, *site) for site in self.sites.get(tensor, ()))
        return next(filter(None, obstacles), "to join loops, or to store it, costs less than to repeat it")

    def survey(self, body: Body, around: tuple[Scope, ...], number: int) -> int:
        """Note who reads and writes what; returns the number after the last."""
        for statement in body:
            inside = (*around, (id(statement), 0))
            match statement:
                case Loop(body=inner):
                    number = self.survey(inner, inside, number)
                    self.ends[id(statement)] = number - 1
                case While(test=test, body=inner):
                    number = self.note(statement, inside, self.survey(test, inside, number))
                    number = self.survey(inner, inside, number)
                    self.ends[id(statement)] = number - 1
                case Branch(body=inner, orelse=other):
                    number = self.survey(inner, inside, self.note(statement, around, number))
                    number = self.survey(other, (*around, (id(statement), 1)), number)
                case Assign() | Bind() | Check():
                    number = self.note(statement, around, number)
                case Note():
                    pass
        return number

    def note(self, reader: Reader, around: tuple[Scope, ...], number: int) -> int:
        read = self.read_by(reader)
        for storage in read.indices:
            self.readers.setdefault(storage, set()).add(number)
            self.sites.setdefault(storage, []).append((read, number, around))
        if isinstance(reader, Assign):
            self.writes.setdefault(reader.into.storage, []).append(number)
        return number + 1

    def read_by(self, stmt: Reader) -> _Read:
        """What a statement reads."""
        read = self.reads.get(id(stmt))
        if read is None:
            read = self.reads[id(stmt)] = _Read.of(stmt)
        return read

    def body(self, body: Body, around: tuple[Scope, ...], numbers: Iterator[int]) -> Body:
        return tuple(self.statement(statement, around, numbers) for statement in body)

    def statement(self, statement: Statement, around: tuple[Scope, ...], numbers: Iterator[int]) -> Statement:
        inside = (*around, (id(statement), 0))
        match statement:
            case Loop(body=inner):
                return replace(statement, body=self.body(inner, inside, numbers))
            case While(test=test, body=inner):
                test = self.body(test, inside, numbers)
                loop = self.reader(statement, next(numbers), inside)
                return replace(loop, test=test, body=self.body(inner, inside, numbers))
            case Branch(body=inner, orelse=other):
                branch = self.reader(statement, next(numbers), around)
                inner = self.body(inner, inside, numbers)
                other = self.body(other, (*around, (id(statement), 1)), numbers)
                return replace(branch, body=inner, orelse=other)
            case Assign():
                number = next(numbers)
                assign = self.reader(statement, number, around)
                self.offer(assign, number, around)
                return assign
            case Bind():
                return self.reader(statement, next(numbers), around)
            case Check():
                return self.reader(statement, next(numbers), around)
            case Note():
                return statement

    def offer(self, stmt: Assign, number: int, around: tuple[Scope, ...]) -> None:
        """Make an assignment a producer, if its form allows."""
        storage = stmt.into
        if _wishes(storage, "local"):
            return
        axes, reads = _axes(stmt), tuple(self.read_by(stmt).indices)
        if axes is not None and _is_copy(stmt) and len(self.writes[storage]) > 1:
            written = _written(stmt, axes)
            self.copies[storage] = _Producer(storage, stmt.value, reads, axes, written, number, around, True)
        if storage in self.given:
            return
        if len(self.writes[storage.storage]) > 1:
            self.stored[storage] = "several statements write it"
        elif stmt.accum is not None:
            self.stored[storage] = "its cells combine several values"
        elif storage in reads:
            self.stored[storage] = "it is computed from what it holds"
        elif axes is None:
            self.stored[storage] = (
                "its statement does not write it from the first cell on, one for each point"
            )
        else:
            producer = _Producer(storage, stmt.value, reads, axes, _written(stmt, axes), number, around)
            if isinstance(stmt.value, Load) and not _wishes(storage, "virtual") and self.must_stay(producer):
                self.stored[storage] = "it is a copy of what changes before it is read"
            else:
                self.producers[storage] = producer

    def must_stay(self, producer: _Producer) -> bool:
        """Whether a reader needs the temporary, whatever is done for the others."""
        return any(
            number <= producer.at or self.obstacle(producer, read, number, around)
            for read, number, around in self.sites.get(producer.tensor, ())
        )

    def reader(self, stmt: _Reader, number: int, around: tuple[Scope, ...]) -> _Reader:
        """A statement with all producers inlined that should be."""
        refused: set[Tensor] = set()
        while True:
            read = self.read_by(stmt)
            for tensor in read.indices:
                if tensor in self.stored and _wishes(tensor, "virtual"):
                    raise _broken_wish(tensor, self.stored[tensor], stmt)
                known = self.producers.get(tensor) or self.copies.get(tensor)
                producer = None if tensor in refused else known
                if producer is not None and self.is_wanted(producer, read, number, around):
                    stmt = _with_values(stmt, partial(_inlined, producer))
                    self.moved(producer, number)
                    break
                refused.add(tensor)
            else:
                return stmt

    def is_wanted(self, producer: _Producer, read: _Read, number: int, around: tuple[Scope, ...]) -> bool:
        """Whether a reader computes the producer's value itself."""
        obstacle = self.obstacle(producer, read, number, around)
        if _wishes(producer.tensor, "virtual"):
            if obstacle:
                raise _broken_wish(producer.tensor, obstacle, read.stmt)
            return True
        if obstacle or not self.keeps_cells(producer, read, around):
            return False
        if producer.again:
            return True
        extra = around[len(producer.around) :]
        return self.should(producer, read, is_repeated=any(scope in self.ends for scope, _ in extra))

    def moved(self, producer: _Producer, number: int) -> None:
        """Statement `number` now reads what the producer reads instead of reading its temporary."""
        (self.unread if producer.again else self.inlined).add(producer.tensor)
        self.readers[producer.tensor].discard(number)
        for storage in producer.reads:
            self.readers[storage].add(number)
            if not self.readers[producer.tensor] and not producer.again:
                self.readers[storage].discard(producer.at)

    def obstacle(self, producer: _Producer, read: _Read, number: int, around: tuple[Scope, ...]) -> str:
        """Why the producer's value is not the same where the reader stands; empty if it is."""
        if None in read.indices[producer.tensor]:
            return "it is read at an index that is computed at run time, or in another shape"
        if not _reads_within(producer, read):
            return "it is read where its statement may write nothing"
        if around[: len(producer.around)] != producer.around:
            return "it is computed in a loop or a branch and read outside"
        extra = around[len(producer.around) :]
        last = next((self.ends[scope] for scope, _ in extra if scope in self.ends), number - 1)
        for storage in producer.reads:
            if self.is_written(storage, producer.at, last):
                return f"{storage.label}, which it is computed from, is written before it is read"
        if producer.again and self.is_written(producer.tensor, producer.at, max(last, number)):
            return "it is written again before it is read"
        return ""

    def keeps_cells(self, producer: _Producer, read: _Read, around: tuple[Scope, ...]) -> bool:
        """Whether a reader that overwrites what the producer reads does so cell by cell, in place."""
        stmt = read.stmt
        if not isinstance(stmt, Assign) or stmt.into.storage not in producer.reads:
            return True
        return around == producer.around and all(
            (tensor, index) == (stmt.into, stmt.index)
            for position in read.indices[producer.tensor]
            if position is not None
            for tensor, index in loads(producer.at_index(position))
            if tensor.storage is stmt.into.storage
        )

    def is_written(self, storage: Tensor, after: int, last: int) -> bool:
        """Whether a statement numbered `after + 1` to `last` writes the storage."""
        writes = self.writes.get(storage, [])
        return bisect_right(writes, after) < bisect_right(writes, last)

    def should(self, producer: _Producer, read: _Read, *, is_repeated: bool) -> bool:
        """Whether reading the temporary costs more than computing the value again; `is_repeated` says that
        the reader stands in a loop and the producer before it."""
        stmt = read.stmt
        indices = [index for index in read.indices[producer.tensor] if index is not None]
        grown = read.size + len(indices) * (size_of(producer.value) - 1)
        order = loop_order(stmt)
        each_once = len(set(indices)) == 1 and not is_repeated and is_permutation(indices[0], order)
        once = each_once and len(self.readers[producer.tensor]) == 1
        if isinstance(stmt, Assign) and stmt.contract:
            return (once or (each_once and _is_light(producer))) and grown <= MAX_NODES
        far = _reach(producer) > self.caps.l2_bytes and not self.is_near(producer, indices, order)
        if grown > (FAR_NODES if far else MAX_NODES):
            return False
        cost = (scalar_cost if isinstance(stmt, Bind) else cost_of)(producer.value)
        reads = list(loads(producer.value))
        own = {symbol for symbol in producer.axes if symbol is not None}
        is_free = isinstance(producer.value, Load) if not own else cost <= CHEAP_COST
        if is_free and not any(depends(index, own) for _, index in reads):
            return True
        if _is_double(producer) and not is_repeated:
            return True
        in_step = producer.tensor not in self.shifted and all(_in_step(producer, i, order) for i in indices)
        if in_step and (_goes_over_all(producer, read) or self.is_gone_over(producer)):
            return False
        if isinstance(stmt, Bind) and is_repeated and cost_of(stmt.value) + self.whole(producer) > CHEAP_COST:
            return False
        if each_once and len(reads) > 1 and self.is_factor(producer):
            return False
        most = (FAR_COST, FAR_LOADS) if far else (CHEAP_COST, CHEAP_LOADS)
        if not once and (cost > most[0] or len(reads) > most[1]):
            return False
        if not once and not far and self.whole(producer, beside=True) > CHEAP_COST:
            return False
        if far and any(position.terms and position.offset for index in indices for position in index):
            self.shifted.add(producer.tensor)
        return True

    def is_gone_over(self, producer: _Producer) -> bool:
        """Whether a reader in step with it, which is not itself computed where it is read, goes over all."""
        for read, number, _ in self.sites[producer.tensor]:
            if number in self.readers[producer.tensor] and _goes_over_all(producer, read):
                made = self.producers.get(read.stmt.into) if isinstance(read.stmt, Assign) else None
                if made is None or made.at != number or self.is_gone_over(made):
                    return True
        return False

    def is_near(self, producer: _Producer, indices: Sequence[Sequence[Affine]], order: list[Symbol]) -> bool:
        """Whether a reader finds sections of a temporary in a cache (`sections`), since it goes through it by
        runs of cells, and others go through what it is computed from anyway."""
        run = run_length(indices, order[0]) if order and self.caps.gpu is None else 0
        least = MOVED * producer.tensor.nbytes // self.caps.l2_bytes
        if not run or not falls_into_parts(producer.tensor.shape[0].offset // run, least):
            return False
        made: list[_Producer | None] = [producer]
        for last in filter(None, made):
            made += [self.producers.get(read) for read in last.reads if len(self.readers[read]) == 1]
        return None not in made

    def whole(self, producer: _Producer, *, beside: bool = False) -> float:
        """The cost of a value and of what is made for it alone, as far as that matters: no part of a long
        chain is left to a loop. What is looked up is so in a loop as fast as elsewhere. `beside` leaves out
        what is made less often: only the rest would be computed as often as the value."""
        cost, made = (cost_of if beside else scalar_cost)(producer.value), [producer]
        if any(isinstance(node, Gather) for node in walk(producer.value)):
            return cost
        while made and cost <= CHEAP_COST:
            last = made.pop()
            for tensor, index in loads(last.value):
                before = self.producers.get(tensor)
                is_alone = before is not None and len(self.readers[tensor]) == 1
                if before and is_alone and (not beside or _is_beside(before, last, index)):
                    cost += cost_of(before.value)
                    made.append(before)
        return cost

    def is_factor(self, producer: _Producer) -> bool:
        """Whether a product reads a temporary, which is stored for it then."""
        sites = self.sites.get(producer.tensor, ())
        return any(isinstance(read.stmt, Assign) and read.stmt.contract for read, _, _ in sites)

    def remaining(self, body: Body) -> Iterator[Statement]:
        """The statements without those that made what nobody reads any more."""
        for statement in body:
            match statement:
                case Assign(into=into) if into in self.inlined and not self.readers.get(into):
                    pass
                case _:
                    yield rewrite_bodies(statement, lambda body: tuple(self.remaining(body)))


def _is_beside(before: _Producer, producer: _Producer, index: tuple[Affine, ...] | None) -> bool:
    """Whether what a producer reads is made in the same body, cell by cell as often as what it makes."""
    own = [symbol for symbol in producer.axes if symbol is not None]
    return before.around == producer.around and index is not None and is_permutation(index, own)


def _is_double(producer: _Producer) -> bool:
    """Is a temporary a copy of a whole array, cell by cell?"""
    match producer.value:
        case Load(tensor=tensor, index=index):
            own = tuple(Affine.of(symbol) for symbol in producer.axes if symbol is not None)
            return tensor.strides is None and tensor.shape == producer.tensor.shape and index == own
        case _:
            return False


def _wishes(tensor: Tensor, kind: str) -> bool:
    return tensor.wish is not None and tensor.wish.kind == kind


def _broken_wish(tensor: Tensor, reason: str, stmt: Reader) -> UnsupportedError:
    """A virtual tensor that has to be stored."""
    assert tensor.wish is not None
    return UnsupportedError(
        f"{tensor.label} is virtual and cannot be computed where it is read: {reason}",
        loc=stmt.loc,
        details=(tensor.wish.why,) if tensor.wish.why else (),
        fix="let it be local or materialized, or undecided",
    )


def _is_copy(stmt: Assign) -> bool:
    """Does it take each cell from the same place of another array?"""
    match stmt:
        case Assign(into=into, index=there, value=Load(tensor=tensor, index=here), accum=None):
            return here == there and tensor.strides is None and tensor.storage is not into.storage
        case _:
            return False


def _is_light(producer: _Producer) -> bool:
    """Is it, of a vector, a cell or one simple operation on it, such as a part of a conjugate?"""
    is_vector = sum(symbol is not None for symbol in producer.axes) == 1
    return is_vector and cost_of(producer.value) <= LIGHT_COST and len(list(loads(producer.value))) == 1


def _axes(stmt: Assign) -> tuple[Symbol | None, ...] | None:
    """The loop symbol of each axis (None for an axis of one cell), if the assignment writes the first cells
    of its tensor, each once."""
    tensor = stmt.into
    if tensor.base is not None or tensor.strides is not None:
        return None
    extents = dict(stmt.loops)
    axes: list[Symbol | None] = []
    for position, extent in zip(stmt.index, tensor.shape, strict=True):
        symbol = position.symbol
        if symbol is not None and symbol in extents:
            axes.append(symbol)
            del extents[symbol]
        elif extent == ONE and position == Affine.of(0):
            axes.append(None)
        else:
            return None
    return None if extents else tuple(axes)


def _written(stmt: Assign, axes: Sequence[Symbol | None]) -> dict[int, Affine]:
    """How many cells an assignment writes along the axes of which it does not write all."""
    extents: dict[Symbol | None, Affine] = {**dict(stmt.loops), None: ONE}
    written = ((axis, extents[symbol]) for axis, symbol in enumerate(axes))
    return {axis: extent for axis, extent in written if extent != stmt.into.shape[axis]}


def _reads_within(producer: _Producer, read: _Read) -> bool:
    """Whether a reader goes over as many cells as the producer writes, where these are not all."""
    if not producer.written:
        return True
    extents = extents_of(read.stmt)
    return all(
        index is not None and (symbol := index[axis].symbol) is not None and extents.get(symbol) == extent
        for axis, extent in producer.written.items()
        for index in read.indices[producer.tensor]
    )


def _with_values(stmt: _Reader, change: Callable[[Expr], Expr]) -> _Reader:
    match stmt:
        case Assign(value=value, initial=initial):
            return replace(stmt, value=change(value), initial=None if initial is None else change(initial))
        case Bind(value=value):
            return replace(stmt, value=change(value))
        case Branch() | Check() | While():
            return replace(stmt, condition=change(stmt.condition))


def _inlined(producer: _Producer, expr: Expr) -> Expr:
    def rule(node: Expr) -> Expr:
        if isinstance(node, Load) and node.tensor is producer.tensor:
            return producer.at_index(node.index)
        return node

    return transform(expr, rule)


def _reach(producer: _Producer) -> int:
    """How far the cells of a temporary are from where they are read back, in bytes; 0 if only the run knows.
    What is as large as it and computed with it is in the way, as numbers are for a mask."""
    tensor = producer.tensor
    if not tensor.has_fixed_shape:
        return 0
    sizes = (dtype_of(node).itemsize for node in walk(producer.value))
    return tensor.nbytes // tensor.dtype.itemsize * max(tensor.dtype.itemsize, *sizes)


def _in_step(producer: _Producer, index: tuple[Affine, ...], order: Sequence[Symbol]) -> bool:
    """Whether a common nest of loops can make each cell right before it is read."""
    moving = [index[axis].symbol for axis in _long_axes(producer)]
    return moving == list(order[: len(moving)])


def _goes_over_all(producer: _Producer, read: _Read) -> bool:
    """Whether a reader in step goes over as many cells as are made, along the axis of the outermost loop."""
    order, extents = loop_order(read.stmt), extents_of(read.stmt)
    return any(
        index is not None
        and _in_step(producer, index, order)
        and all(
            extents[symbol] == producer.written.get(axis, producer.tensor.shape[axis])
            for axis, symbol in zip(_long_axes(producer)[:1], order[:1], strict=False)
        )
        for index in read.indices[producer.tensor]
    )


def _long_axes(producer: _Producer) -> list[int]:
    """The axes of more than one cell."""
    return [axis for axis, extent in enumerate(producer.tensor.shape) if extent != ONE]
