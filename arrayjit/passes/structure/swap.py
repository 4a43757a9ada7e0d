"""swap: two arrays take turns, where a step would begin or end by copying one to the other.

    for k in sequential(0, 50):                     for h in sequential(0, 25):
        for i in parallel(0, 100):                      b[0] = a[0]
            b[i] = a[i]                                 b[99] = a[99]
        for i in parallel(0, 98):           ->          for i in parallel(0, 98):
            a[i + 1] = add(b[i], b[i + 2])                  b[i + 1] = add(a[i], a[i + 2])
                                                        a[0] = b[0]
                                                        a[99] = b[99]
                                                        for i in parallel(0, 98):
                                                            a[i + 1] = add(b[i], b[i + 2])

Two steps make one iteration; in the first of them, what follows the copy calls each array by the name of the
other. After both of them every cell holds what it would hold, so nothing outside of the loop changes. Either
the next nest that touches the source of the copy overwrites nearly all of it, and only the cells around these
are still copied; or it is a temporary of which each step makes all before it copies it; or the nest itself
gives each cell of the source a new value. That one is stored where the copy would be:

    for i in parallel(0, 100):                      for i in parallel(0, 100):
        before[i] = now[i]                  ->          before[i] = add(t[i], 1.0)
        now[i] = add(t[i], 1.0)

So do arrays of which each step copies only a part, as where an array becomes smaller, if no more than that
part is read after it:

    for k in sequential(0, 50):                     for h in sequential(0, 25):
        for i in parallel(0, -k + 99):                  for i in parallel(0, -2*h + 99):
            b[i] = add(a[i], a[i + 1])      ->              b[i] = add(a[i], a[i + 1])
        for i in parallel(0, -k + 99):                  for i in parallel(0, -2*h + 98):
            a[i] = b[i]                                     a[i] = add(b[i], b[i + 1])

Where the number of steps is odd, or not known, one may be left, which is taken as before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import TypeGuard

from ...frozen import frozen, slotted
from ...ir.code import Caps
from ...ir.expr import Expr, Gather, Load
from ...ir.index import Affine, Symbol
from ...ir.loops import (
    Comment,
    Define,
    Fill,
    For,
    Kernel,
    LoopKind,
    Raise,
    Stmt,
    Store,
    go_in_order,
    nested,
    touched,
    walk_statements,
)
from ...ir.tensor import Tensor
from ...ir.walk import (
    kept,
    rewrite_loops_inside_out,
    substitute_statements,
    transform_statements,
)
from ..analysis.access import given, reads, visible
from ..analysis.boxes import Box, size, without
from ..analysis.copies import in_steps, unless_once
from ..analysis.private import is_private
from ..analysis.strides import parallel_nest
from ..analysis.uses import counts

__all__ = ["swap"]

MOST = 4
"""Of so many cells of an array, one may still be copied."""

LARGE = 256
"""The most statements of a step: they are written twice."""


def swap(kernel: Kernel, caps: Caps) -> Kernel:
    """The kernel without copies that arrays in turns do without."""
    if not go_in_order(kernel.body):
        return kernel
    swapping = _Swapping(visible(kernel.params), counts(kernel.body), given(kernel.params))
    body = swapping.parts(swapping.body(kernel.body))
    return kernel.with_body(body, swapping.notes)


@frozen
class _Copied:
    """A nest that copies whole arrays: each array with the one that it becomes a copy of; and what is left to
    do if it gives the sources new values as well: it stores these instead of the copies."""

    pairs: tuple[tuple[Tensor, Tensor], ...]
    instead: Stmt | None = None

    @property
    def names(self) -> dict[Tensor, Tensor]:
        """Each array by the name of the other."""
        there = dict(self.pairs)
        return there | {source: into for into, source in self.pairs}


@slotted
class _Swapping:
    """The caller sees the arrays `shown` even when the kernel is left by an exception; `uses` are those of
    the whole kernel, `given` its parameters."""

    shown: frozenset[Tensor]
    uses: Counter[Tensor]
    given: frozenset[Tensor]
    notes: list[str] = field(default_factory=list)

    def body(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        return rewrite_loops_inside_out(body, lambda loop: self.in_turns(loop) if _is_time(loop) else None)

    def parts(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """The kernel's body with its steps two by two where each copies the part of an array that is read
        after it."""
        out: list[Stmt] = []
        for at, stmt in enumerate(body):
            out += self.part_in_turns(stmt, body[at + 1 :]) if _is_time(stmt) else [stmt]
        return kept(body, out)

    def part_in_turns(self, loop: For, following: tuple[Stmt, ...]) -> Sequence[Stmt]:
        """A loop over steps, two of them an iteration if none has to copy its part."""
        if loop.trips in (0, 1) or len(list(walk_statements(loop.body))) > LARGE:
            return [loop]
        for at, stmt in enumerate(loop.body):
            nest = parallel_nest(stmt)
            copy = nest[-1].body if nest else (stmt,)
            pair = _cell_of(copy[0]) if len(copy) == 1 else None
            if pair is not None and self.is_all_that_is_read(loop, at, following, *pair):
                into, source = pair
                self.notes.append(f"swap: {into} and {source} take turns")
                before, after, names = loop.body[:at], loop.body[at + 1 :], {into: source, source: into}
                return in_steps(loop, ((*before, *_named(after, names)), (*_named(before, names), *after)))
        return [loop]

    def is_all_that_is_read(
        self, loop: For, at: int, following: tuple[Stmt, ...], into: Tensor, source: Tensor
    ) -> bool:
        """Does a step copy all that is read of an array after it, out of a temporary that it made before?
        Only the copy may write to that array."""
        before, copied, after = loop.body[:at], loop.body[at], loop.body[at + 1 :]
        both = {into, source}
        if not self.given.isdisjoint(both) or not _has_room(into, source):
            return False
        if any(tensor.storage in both and tensor not in both for tensor in _touched(loop.body)):
            return False
        stored = [stmt.tensor for stmt in walk_statements(loop.body) if isinstance(stmt, (Store, Fill))]
        if stored.count(into) > 1 or source in _touched(after) or not self.is_made_anew(source, loop.body):
            return False
        earlier, last = ({loop.symbol: value - 1} for value in (Affine.of(loop.symbol), loop.hi))
        return (
            is_private(into, (copied, *after))
            and is_private(into, (*substitute_statements((copied,), earlier), *before))
            and is_private(into, (*substitute_statements((copied,), last), *following))
        )

    def in_turns(self, loop: For) -> Sequence[Stmt]:
        """A loop over steps, two of them an iteration if a copy can be left out so."""
        if loop.trips in (0, 1) or len(list(walk_statements(loop.body))) > LARGE:
            return [loop]
        for at, stmt in enumerate(loop.body):
            copied = _copied(stmt)
            rest = self.rest(loop.body, at, copied) if copied is not None else None
            if copied is not None and rest is not None:
                self.notes += [f"swap: {into} and {source} take turns" for into, source in copied.pairs]
                before, after, names = loop.body[:at], loop.body[at + 1 :], copied.names
                first = (*before, *rest, *_named(after, names))
                return in_steps(loop, (first, (*_named((*before, *rest), names), *after)))
        return [loop]

    def rest(self, body: tuple[Stmt, ...], at: int, copied: _Copied) -> tuple[Stmt, ...] | None:
        """The copy of those cells that still have to be copied; None where that does not pay, or it matters
        which array is which."""
        both = copied.names
        if len(both) != 2 * len(copied.pairs):
            return None
        if any(isinstance(stmt, Raise) for stmt in walk_statements(body)) and not self.shown.isdisjoint(both):
            return None
        if any(tensor.storage in both and tensor not in both for tensor in _touched(body)):
            return None
        if copied.instead is not None:
            return (copied.instead,)
        out: list[Stmt] = []
        for into, source in copied.pairs:
            around = () if self.is_made_anew(source, body) else _around(source, body[at + 1 :])
            if around is None:
                return None
            for box in around:
                out.append(_copy(into, source, box))
        return tuple(out)

    def is_made_anew(self, source: Tensor, body: tuple[Stmt, ...]) -> bool:
        """Does each step make all of a temporary before it copies it, the only time that it is read?"""
        inside = walk_statements(body)
        read = sum(tensor is source for stmt in inside for tensor, _ in reads(stmt))
        return read == 1 and counts(body)[source] == self.uses[source] and is_private(source, body)


def _is_time(stmt: Stmt) -> TypeGuard[For]:
    return isinstance(stmt, For) and stmt.kind is LoopKind.SEQUENTIAL and stmt.step == 1


def _has_room(into: Tensor, source: Tensor) -> bool:
    """Does an array have all cells that another one has?"""
    beyond = [one - other for one, other in zip(into.shape, source.shape, strict=True)]
    return all(more.is_constant and more.constant >= 0 for more in beyond)


def _copied(stmt: Stmt) -> _Copied | None:
    """The statement as a nest that copies whole arrays and either does nothing else, or also gives all cells
    of their sources new values."""
    loops = parallel_nest(stmt)
    body = loops[-1].body if loops else (stmt,)
    found = dict(filter(None, map(_copy_of, body)))
    pairs = tuple(pair for pair in found.items() if pair[0] not in found.values())
    there = {source: into for into, source in pairs}
    copies = [inner for inner in body if isinstance(inner, Store) and inner.tensor in there.values()]
    if not pairs or not all(_fill(into, copies, loops) for into, _ in pairs):
        return None
    if all(_copy_of(inner) in pairs for inner in body):
        return _Copied(pairs)
    if not all(_gives_anew(body, *pair) for pair in pairs):
        return None
    instead = tuple(
        replace(inner, tensor=there.get(inner.tensor, inner.tensor)) if isinstance(inner, Store) else inner
        for inner in body
        if inner not in copies
    )
    return _Copied(pairs, *nested(loops, instead))


def _copy_of(stmt: Stmt) -> tuple[Tensor, Tensor] | None:
    """The array that a statement copies a cell to, and the one like it in whose same place it finds that."""
    pair = _cell_of(stmt)
    return pair if pair is not None and pair[0].shape == pair[1].shape else None


def _cell_of(stmt: Stmt) -> tuple[Tensor, Tensor] | None:
    """The same of arrays that may differ in their extents."""
    match stmt:
        case Store(tensor=into, index=to, value=Load(tensor=source, index=at), accum=None):
            plain = into.base is source.base is None and into.strides is source.strides is None
            alike = plain and into.dtype is source.dtype
            return (into, source) if alike and to == at and into is not source else None
        case _:
            return None


def _fill(into: Tensor, stores: Sequence[Store], loops: Sequence[For]) -> bool:
    """Do the stores to an array, within such loops, go to each of its cells once?"""
    boxes = [_stored(store, loops) for store in stores if store.tensor is into]
    if not into.has_fixed_shape:
        return False
    whole = tuple(range(extent.constant) for extent in into.shape)
    left = [whole]
    for box in boxes:
        if box is None:
            return False
        left = [part for one in left for part in without(one, box)]
    return not left and sum(size(box) for box in boxes if box is not None) == size(whole)


def _gives_anew(body: Sequence[Stmt], into: Tensor, source: Tensor) -> bool:
    """Does a body copy each cell of the source before it gives that a new value? What it copied it reads no
    more, nor the new value."""
    copied: set[tuple[Affine, ...]] = set()
    made: set[tuple[Affine, ...]] = set()
    for stmt in body:
        if not isinstance(stmt, (Comment, Define, Store)):
            return False
        is_copy = isinstance(stmt, Store) and stmt.tensor is into
        read = {tensor for tensor, _ in reads(stmt)}
        if (into in read and copied) or (source in read and made and not is_copy):
            return False
        if isinstance(stmt, Store) and is_copy:
            if _copy_of(stmt) != (into, source) or stmt.index in made:
                return False
            copied.add(stmt.index)
        elif isinstance(stmt, Store) and stmt.tensor is source:
            if stmt.accum is not None or stmt.index not in copied - made:
                return False
            made.add(stmt.index)
    return made == copied


def _around(source: Tensor, after: Sequence[Stmt]) -> Sequence[Box] | None:
    """What is left of an array when the nest that touches it next has overwritten nearly all of it, without
    reading any; None if there is no such nest."""
    for stmt in after:
        if all(tensor.storage is not source for tensor in _touched((stmt,))):
            continue
        read = (tensor for inner in walk_statements((stmt,)) for tensor, _ in reads(inner))
        box = None if any(tensor.storage is source for tensor in read) else _overwritten(stmt, source)
        if box is None:
            return None
        whole = tuple(range(extent.constant) for extent in source.shape)
        left = list(without(whole, box))
        return left if MOST * sum(map(size, left)) <= size(whole) else None
    return None


def _overwritten(stmt: Stmt, source: Tensor) -> Box | None:
    """The cells that a nest surely stores to, by its first store to the array; None if they are no box."""
    for store, loops in _stores(stmt, ()):
        if store.tensor is source:
            return _stored(store, loops)
    return None


def _stored(store: Store, loops: Sequence[For]) -> Box | None:
    """The cells that a store in such loops goes to; None if they are no box."""
    ranges = {loop.symbol: loop for loop in loops}
    if not all(loop.trips and loop.step == 1 and loop.lo.is_constant for loop in loops):
        return None
    box = [_span(position, ranges) for position in store.index]
    return tuple(span for span in box if span is not None) if None not in box else None


def _stores(stmt: Stmt, around: tuple[For, ...]) -> Iterator[tuple[Store, tuple[For, ...]]]:
    """What a statement surely stores, and the loops around each store."""
    match stmt:
        case Store():
            yield stmt, around
        case For(body=body):
            for inner in body:
                yield from _stores(inner, (*around, stmt))
        case _:
            pass


def _span(position: Affine, ranges: dict[Symbol, For]) -> range | None:
    """The positions along an axis; a loop is taken out of `ranges`, since no other axis may follow it."""
    if position.is_constant:
        return range(position.constant, position.constant + 1)
    (symbol, *others) = position.symbols
    loop = ranges.pop(symbol, None)
    if loop is None or others or position.coefficient(symbol) != 1:
        return None
    return range(loop.lo.constant + position.offset, loop.hi.constant + position.offset)


def _copy(into: Tensor, source: Tensor, box: Box) -> Stmt:
    """A nest that copies the cells of a box."""
    symbols = [Symbol(hint) for hint in "ijklmnop"[: len(box)]]
    index = tuple(map(Affine.of, symbols))
    body: tuple[Stmt, ...] = (Store(into, index, Load(source, index)),)
    for symbol, span in zip(reversed(symbols), reversed(box), strict=True):
        body = unless_once(For(symbol, Affine.of(span.start), Affine.of(span.stop), body, LoopKind.PARALLEL))
    (nest,) = body
    return nest


def _named(body: tuple[Stmt, ...], names: Mapping[Tensor, Tensor]) -> tuple[Stmt, ...]:
    """A body with arrays called by other names."""

    def node(node: Expr) -> Expr:
        match node:
            case Load(tensor=tensor) | Gather(tensor=tensor) if tensor in names:
                return replace(node, tensor=names[tensor])
            case _:
                return node

    def written(stmt: Stmt) -> Stmt:
        if isinstance(stmt, (Store, Fill)) and stmt.tensor in names:
            return replace(stmt, tensor=names[stmt.tensor])
        return stmt

    return transform_statements(body, node, written)


def _touched(body: tuple[Stmt, ...]) -> Iterator[Tensor]:
    """What a body reads or writes."""
    for stmt in walk_statements(body):
        yield from (tensor for tensor, _ in reads(stmt))
        yield from touched(stmt)
