"""Whether an iteration of a loop finds in a temporary only what it has itself put there.

    for i in sequential(0, 8):
        for j in parallel(0, 96):
            t[j] = exp(x[i, j])
        for j in parallel(84, 100):             t is private: each iteration writes t[0 .. 99],
            t[j] = exp(x[i, j])                 then reads within
        for j in parallel(0, 100):
            y[i, j] = divide(t[j], s)

Then every thread may have a `t` of its own. What is written for sure is kept as boxes: per dimension a
progression of positions, `first + step * n + ...` with a term for each loop around the store. A read must lie
in one box; the ends of both are affine expressions, so extents need not be numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field

from ...frozen import frozen, slotted
from ...ir.index import Affine, Symbol
from ...ir.loops import Fill, For, If, Kernel, LoopKind, Stmt, Store, While, walk_statements
from ...ir.tensor import Tensor
from .access import Ranges, reads
from .carriers import carriers
from .strides import affine_accesses, gathered
from .uses import counts

__all__ = ["is_private", "private_to"]

FEW = 4
"""Loops with so few iterations are taken apart."""

MAX_BOXES = 32

ZERO = Affine.of(0)


def is_private(tensor: Tensor, body: Sequence[Stmt]) -> bool:
    """Does a body read of the storage `tensor` only cells that it has written before? Boxes are parts of the
    view that it reads; of the flat one, if it reads several, in which cells of the storage's own shape have
    their place."""
    every = (view for stmt in walk_statements(tuple(body)) for view, _ in reads(stmt))
    views = [view for view in every if view.storage is tensor]
    try:
        _Walk(next((view for view in views if view.rank == 1), views[0] if views else tensor)).body(body)
    except _Foreign:
        return False
    return True


def private_to(loop: For, kernel: Kernel, ranges: Ranges) -> tuple[Tensor, ...] | None:
    """The temporaries that each iteration of a loop makes for itself, of which it goes to known cells in
    their own shape; None if one disturbs another by more than these."""
    if loop.kind is LoopKind.PARALLEL:
        return ()
    own = carriers(loop, ranges)
    if own is None:
        return None
    inside, everywhere = counts(loop.body), counts(kernel.body) if own else {}
    for tensor in own:
        is_temporary = tensor in kernel.placement and inside[tensor] == everywhere[tensor]
        if not (is_temporary and tensor.has_fixed_shape and is_private(tensor, loop.body)):
            return None
    reached = dict.fromkeys(view for view, _, _ in affine_accesses(loop.body) if view.storage in own)
    is_plain = own.isdisjoint(gathered(loop.body)) and own.issuperset(reached)
    return tuple(reached) if is_plain else None


class _Foreign(Exception):
    """A read of what may come from elsewhere."""


@frozen
class _Line:
    """The positions `first + sum(step * n for step, count in terms for n in range(count))`."""

    first: Affine
    terms: tuple[tuple[int, Affine], ...] = ()

    def ends(self) -> tuple[Affine, Affine] | None:
        """The first and the last position, if all those between belong to the line as well."""
        first, length = self.first, Affine.of(1)
        for step, count in sorted(self.terms, key=lambda term: abs(term[0])):
            room = length.bounds({})
            fits = room is not None and abs(step) <= room[0]
            if not fits or not (_is_at_least(count, 1) or length == Affine.of(abs(step))):
                return None
            first += (count - 1) * min(step, 0)
            length += (count - 1) * abs(step)
        return first, first + length - 1

    def mentions(self, symbol: Symbol) -> bool:
        return any(symbol in value.symbols for value in (self.first, *(count for _, count in self.terms)))

    def substitute(self, values: Mapping[Symbol, Affine]) -> _Line:
        terms = tuple((step, count.substitute(values)) for step, count in self.terms)
        return _Line(self.first.substitute(values), terms)


Box = tuple[_Line, ...]


@slotted
class _Walk:
    """On the way through a body: the loops around this place, and what is written for sure by now, seen from
    outside all of them, from inside the first, and so on."""

    tensor: Tensor
    loops: list[For] = field(default_factory=list)
    boxes: list[list[Box]] = field(default_factory=lambda: [[]])

    def body(self, body: Sequence[Stmt]) -> None:
        for stmt in body:
            match stmt:
                case While(test=test, body=inner):
                    known = list(self.boxes[-1])
                    self.body(test)
                    self.reads(stmt)
                    self.body(inner)
                    self.boxes[-1] = known
                case If(body=inner, orelse=other):
                    self.reads(stmt)
                    for branch in (inner, other):
                        known = list(self.boxes[-1])
                        self.body(branch)
                        self.boxes[-1] = known
                case For():
                    self.loop(stmt)
                case Store(tensor=tensor, index=index):
                    self.reads(stmt)
                    place = self.place(tensor, index)
                    if place is not None:
                        self.write(tuple(_Line(position) for position in place))
                case Fill(tensor=tensor):
                    self.reads(stmt)
                    if tensor is self.tensor:
                        self.write(_whole(tensor))
                case _:
                    self.reads(stmt)

    def place(self, tensor: Tensor, index: tuple[Affine, ...]) -> tuple[Affine, ...] | None:
        """The index of another tensor's cell in the view that is read, if it has one there."""
        view = self.tensor
        if tensor is view:
            return index
        is_flat = view.base is tensor and view.rank == 1 and view.dtype is tensor.dtype
        return (tensor.linear(index),) if is_flat and tensor.has_fixed_shape else None

    def loop(self, loop: For) -> None:
        self.loops.append(loop)
        self.boxes.append([])
        self.body(loop.body)
        self.loops.pop()
        for box in self.boxes.pop():
            for outside in _left(loop, box):
                self.write(outside)

    def write(self, box: Box) -> None:
        """Add a box to those of this level; one that continues another makes it longer, and it may then
        continue a third."""
        boxes = self.boxes[-1]
        for number, other in enumerate(boxes):
            joined = _joined(other, box) or _joined(box, other)
            if joined is not None:
                del boxes[number]
                self.write(joined)
                return
        if len(boxes) < MAX_BOXES:
            boxes.append(box)

    def reads(self, stmt: Stmt) -> None:
        for tensor, index in reads(stmt):
            place = None if index is None else self.place(tensor, index)
            if tensor.storage is self.tensor.storage and not self.is_known(place):
                raise _Foreign

    def is_known(self, index: Sequence[Affine] | None) -> bool:
        """Are the cells at an index, or all if it is known only at run time, or in another view, written by
        now? They are where all are, whatever is known of the index."""
        whole = _all(self.tensor)
        if any(_covers(box, whole) for boxes in self.boxes for box in boxes):
            return True
        spans = [(position, position) for position in index] if index is not None else whole
        for level in range(len(self.loops), -1, -1):
            if any(_covers(box, spans) for box in self.boxes[level]):
                return True
            if level:
                spans = [_widened(span, self.loops[level - 1]) for span in spans]
        return False


def _left(loop: For, box: Box) -> Iterator[Box]:
    """What a box of one iteration is after all of them."""
    symbol, trips = loop.symbol, loop.trips
    if trips is not None and trips <= FEW:
        for value in range(trips):
            now = {symbol: loop.lo + value * loop.step}
            yield tuple(line.substitute(now) for line in box)
        return
    count = loop.hi - loop.lo if trips is None else Affine.of(trips)
    moving = [line for line in box if line.mentions(symbol)]
    if trips is None and loop.step != 1:
        return
    if not moving:
        if _is_at_least(count, 1):
            yield box
    elif len(moving) == 1 and not any(size.coefficient(symbol) for _, size in moving[0].terms):
        step = moving[0].first.coefficient(symbol) * loop.step
        started = moving[0].substitute({symbol: loop.lo})
        longer = _Line(started.first, (*started.terms, (step, count)))
        yield tuple(longer if line is moving[0] else line for line in box)


def _joined(one: Box, other: Box) -> Box | None:
    """Two boxes as one, if they differ along one dimension and one goes on where the other ends."""
    differing = [axis for axis, (a, b) in enumerate(zip(one, other, strict=True)) if a != b]
    if not differing:
        return one
    if len(differing) > 1:
        return None
    (axis,) = differing
    mine, theirs = one[axis].ends(), other[axis].ends()
    if mine is None and theirs is None:
        longer = _continued(one[axis], other[axis])
        return None if longer is None else (*one[:axis], longer, *one[axis + 1 :])
    if mine is None or theirs is None:
        return None
    gaps = (theirs[0] - mine[0], mine[1] + 1 - theirs[0], theirs[1] - mine[1])
    if not all(_is_at_least(gap, 0) for gap in gaps):
        return None
    line = _Line(mine[0], ((1, theirs[1] + 1 - mine[0]),))
    return (*one[:axis], line, *one[axis + 1 :])


def _continued(one: _Line, other: _Line) -> _Line | None:
    """Two lines with gaps as one, if the other is the next in a progression of equal ones."""
    step = other.first - one.first
    if not step.is_constant:
        return None
    if one.terms == other.terms:
        return _Line(one.first, (*one.terms, (step.constant, Affine.of(2))))
    *terms, (apart, count) = one.terms or ((0, ZERO),)
    goes_on = tuple(terms) == other.terms and step == count * apart
    return _Line(one.first, (*terms, (apart, count + 1))) if goes_on else None


def _covers(box: Box, spans: Sequence[tuple[Affine, Affine]]) -> bool:
    for line, (first, last) in zip(box, spans, strict=True):
        ends = line.ends()
        if ends is None or not _is_at_least(first - ends[0], 0) or not _is_at_least(ends[1] - last, 0):
            return False
    return True


def _widened(span: tuple[Affine, Affine], loop: For) -> tuple[Affine, Affine]:
    """The positions of all iterations from those of one."""
    ends = (loop.lo, loop.hi - 1) if loop.step > 0 else (loop.hi + 1, loop.lo)

    def reached(position: Affine, end: int) -> Affine:
        grows = position.coefficient(loop.symbol) > 0
        return position.substitute({loop.symbol: ends[end if grows else 1 - end]})

    return reached(span[0], 0), reached(span[1], 1)


def _whole(tensor: Tensor) -> Box:
    return tuple(_Line(ZERO, ((1, extent),)) for extent in tensor.shape)


def _all(tensor: Tensor) -> list[tuple[Affine, Affine]]:
    return [(ZERO, extent - 1) for extent in tensor.shape]


def _is_at_least(value: Affine, least: int) -> bool:
    known = value.bounds({})
    return known is not None and known[0] >= least
