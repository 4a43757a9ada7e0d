"""pieces: what reads an array put together from parts of others reads these, piece by piece.

    r[i + 1] = x[i]          for i in 99                y[0] = add(x[0], x[99])
    r[0] = x[99]                                ->      y[i + 1] = add(x[i + 1], x[i])      for i in 99
    y[i] = add(x[i], r[i])   for i in 100

That is what becomes of `np.roll`, `np.concatenate` and `np.pad` around a stencil. The statements that go over
the points of the readers, cell by cell, are cut along with them, so that `fuse` still finds them together;
a temporary that only they use becomes one of each piece. What overwrites the cells that another piece still
reads stays behind them all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import field, replace
from itertools import combinations, pairwise, product
from math import prod
from typing import Union

from ...frozen import frozen, slotted
from ...ir.assign import (
    Assign,
    Bind,
    Computation,
    Statement,
    assigned,
    expressions,
    rewrite_bodies,
    statements,
)
from ...ir.code import Caps
from ...ir.expr import Const, Expr, Index, Load
from ...ir.index import Affine, Symbol
from ...ir.tensor import Tensor
from ...ir.walk import kept, substitute, transform
from ..analysis.access import Ranges, given, loads
from ..analysis.boxes import Box, holds, meet, reached, written

__all__ = ["pieces"]

MAX_PIECES = 9
"""A plane and its edges: each piece is code of its own."""

MAX_STATEMENTS = 400
"""What all pieces together may come to."""

MAX_ROUNDS = 16
"""So often one body is gone through for another group of readers."""

MIN_CELLS = 64
"""So many cells a piece shall have on average."""

Interval = tuple[int, int]
"""First position and the one after the last."""

Cell = tuple[Affine, ...]

Mention = tuple[Tensor, Union[Cell, None]]


def pieces(computation: Computation, caps: Caps) -> Computation:
    """The computation without the arrays that are only parts of others."""
    seen = _Seen()
    mentions = (tensor.storage for stmt in computation.body for tensor, _ in seen.mentioned(stmt))
    cutting = _Cutting(given(computation.params), Counter(mentions), seen)
    body = cutting.body(computation.body)
    return computation if body is computation.body else replace(computation, body=body)


@frozen
class _Part:
    """A statement that makes a box of an array out of another's cells, or of a number."""

    stmt: Assign
    at: int
    box: Box

    def value(self, index: Cell) -> Expr:
        """That of a cell in the box."""
        values = {}
        for position, own in zip(index, self.stmt.index, strict=True):
            for symbol in own.symbols:
                values[symbol] = position - own.offset
        return substitute(self.stmt.value, values)


@slotted
class _Seen:
    """What statements mention, each of which many rounds look at."""

    known: dict[int, tuple[Statement, list[Mention]]] = field(default_factory=dict)

    def mentioned(self, stmt: Statement) -> list[Mention]:
        """Each cell, or array, that a statement and those in it read or write; what it writes first."""
        found = self.known.get(id(stmt))
        if found is None:
            found = self.known[id(stmt)] = stmt, list(_mentioned(stmt))
        return found[1]

    def reads(self, stmt: Statement, tensors: Container[Tensor]) -> list[Tensor]:
        """Which of some tensors a statement mentions, unless it only writes them."""
        mentioned = self.mentioned(stmt)
        return [t for t, _ in (mentioned[1:] if isinstance(stmt, Assign) else mentioned) if t in tensors]


@slotted
class _Cutting:
    """The arrays of the caller's, how often each array is mentioned, and where."""

    given: frozenset[Tensor]
    mentions: Counter[Tensor]
    seen: _Seen

    def body(self, body: tuple[Statement, ...]) -> tuple[Statement, ...]:
        new = tuple(rewrite_bodies(stmt, self.body) for stmt in body)
        refused: set[Tensor] = set()
        parts = self.parts(new)
        for _ in range(MAX_ROUNDS):
            first = next((stmt for stmt in new if self.seen.reads(stmt, parts)), None)
            if first is None:
                break
            assert isinstance(first, Assign)
            group = _group(new, first, parts, self.seen)
            asked = {
                tensor for member in (first, *group.members) for tensor in self.seen.reads(member, parts)
            }
            missed = asked.intersection(t for stmt in group.others for t in self.seen.reads(stmt, asked))
            cut = None if missed else self.cut(group, {t: parts[t] for t in asked})
            if cut is None:
                refused |= missed or asked
                parts = {t: found for t, found in parts.items() if t not in refused}
                continue
            gone = {id(part.stmt) for t in asked for part in parts[t]}
            before = (stmt for stmt in group.before if id(stmt) not in gone)
            new = (*before, *cut, *group.after)
            self.mentions.subtract(
                t.storage for member in group.members for t, _ in self.seen.mentioned(member)
            )
            self.mentions.update(t.storage for member in cut for t, _ in self.seen.mentioned(member))
            parts = {t: found for t, found in self.parts(new).items() if t not in refused}
        return kept(body, new)

    def parts(self, body: Sequence[Statement]) -> dict[Tensor, list[_Part]]:
        """The temporaries that statements of a body make of parts and later ones read, each cell as it was
        when it was copied."""
        found: dict[Tensor, list[_Part]] = {}
        for at, stmt in enumerate(body):
            if isinstance(stmt, Assign) and self.is_plain(stmt.into) and self.mentions[stmt.into] > 2:
                box = _copied_box(stmt)
                if box is not None:
                    found.setdefault(stmt.into, []).append(_Part(stmt, at, box))
        found = {tensor: parts for tensor, parts in found.items() if 1 < len(parts) <= MAX_PIECES}
        readers: dict[Tensor, list[int]] = {tensor: [] for tensor in found}
        writes: dict[Tensor, list[int]] = {}
        for at, stmt in enumerate(body if found else ()):
            for tensor in dict.fromkeys(self.seen.reads(stmt, found)):
                readers[tensor].append(at)
            for tensor in assigned((stmt,)):
                writes.setdefault(tensor, []).append(at)

        def lasts(parts: Sequence[_Part], seen: Sequence[int]) -> bool:
            """Are the parts made before they are read, and not changed where they come from until then?"""
            sources = {source.storage for part in parts for source, _ in loads(part.stmt.value)}
            changes = (at for source in sources for at in writes.get(source, ()))
            return parts[-1].at < seen[0] and not any(parts[0].at < at < seen[-1] for at in changes)

        return {
            tensor: parts
            for tensor, parts in found.items()
            if self.may_go(tensor, parts, [body[at] for at in readers[tensor]])
            and lasts(parts, readers[tensor])
        }

    def is_plain(self, tensor: Tensor) -> bool:
        """Is it a temporary of known size that has its own shape and memory?"""
        free = tensor not in self.given and tensor.wish is None
        whole = tensor.base is None and tensor.strides is None
        return free and whole and tensor.has_fixed_shape

    def may_go(self, tensor: Tensor, parts: Sequence[_Part], readers: Sequence[Statement]) -> bool:
        """Is each cell made once, and read by nothing but assignments to other arrays?"""
        if not readers or any(meet(a.box, b.box) for a, b in combinations(parts, 2)):
            return False
        if any(not isinstance(stmt, Assign) or stmt.into.storage is tensor for stmt in readers):
            return False
        seen = (
            m for stmt in readers for m in self.seen.mentioned(stmt) if m[0] is tensor and m[1] is not None
        )
        return sum(1 for _ in seen) + len(parts) == self.mentions[tensor]

    def cut(self, group: _Group, parts: Mapping[Tensor, Sequence[_Part]]) -> list[Statement] | None:
        """The members piece by piece; None where they are better left as they are."""
        points = _points(group.members, parts)
        if points is None or not group.members:
            return None
        boxes = list(product(*(tuple(pairwise(sorted(edges))) for edges in points)))
        cells = prod(max(edges) for edges in points)
        if len(boxes) > MAX_PIECES or cells < MIN_CELLS * len(boxes):
            return None
        if len(boxes) * len(group.members) > MAX_STATEMENTS:
            return None
        own = self.of_members(group.members)
        out: list[Statement] = []
        for box in boxes:
            shape = tuple(Affine.of(hi - lo) for lo, hi in box)
            copies = {tensor: Tensor(tensor.label, shape, tensor.dtype) for tensor in own}
            for member in group.members:
                made = _member_in(member, box, parts, copies)
                if made is None:
                    return None
                out.append(made)
        return out

    def of_members(self, members: Sequence[Assign]) -> list[Tensor]:
        """The temporaries that nothing but the members uses, each cell by the point of its own."""
        uses: Counter[Tensor] = Counter()
        for member in members:
            points = member.point
            uses.update(t for t, index in self.seen.mentioned(member) if index == points)
        return [t for t in uses if self.is_plain(t) and uses[t] == self.mentions[t]]


@slotted
class _Group:
    """Statements that go over the same points, cell by cell, and the others before and after them. A member
    reads what members write at its own point only (`near`), other things anywhere (`far`)."""

    parts: Mapping[Tensor, Sequence[_Part]]
    shape: tuple[Affine, ...]
    seen: _Seen
    before: list[Statement] = field(default_factory=list)
    members: list[Assign] = field(default_factory=list)
    after: Sequence[Statement] = ()
    written: set[Tensor] = field(default_factory=set)
    near: set[Tensor] = field(default_factory=set)
    far: set[Tensor] = field(default_factory=set)

    @property
    def others(self) -> tuple[Statement, ...]:
        return (*self.before, *self.after)

    def takes(self, stmt: Statement) -> bool:
        """Make a statement a member, if it may be one."""
        if not isinstance(stmt, Assign) or stmt.accum is not None or stmt.into in self.parts:
            return False
        points = stmt.point
        if tuple(extent for _, extent in stmt.loops) != self.shape or stmt.index != points:
            return False
        near: set[Tensor] = set()
        far: set[Tensor] = set()
        for tensor, index in loads(stmt.value):
            if tensor in self.parts:
                far.update(t.storage for part in self.parts[tensor] for t, _ in loads(part.stmt.value))
            elif index == points and tensor.base is None:
                near.add(tensor)
            else:
                far.add(tensor.storage)
        target = stmt.into.storage
        if stmt.into is not target or far & (self.written | {target}) or target in self.far:
            return False
        self.near |= near
        self.far |= far
        self.written.add(target)
        self.members.append(stmt)
        return True

    def lets_pass(self, stmt: Statement) -> bool:
        """Put a statement before the members, if they have nothing to do with it."""
        if not isinstance(stmt, (Assign, Bind)):
            return False
        writes = assigned((stmt,))
        reads = {tensor.storage for tensor, _ in self.seen.mentioned(stmt)}
        if reads & self.written or writes & (self.near | self.far):
            return False
        self.before.append(stmt)
        return True


def _group(
    body: Sequence[Statement], first: Assign, parts: Mapping[Tensor, Sequence[_Part]], seen: _Seen
) -> _Group:
    """The statements that may be cut along with the first reader."""
    shape = tuple(extent for _, extent in first.loops)
    group = _Group(parts, shape, seen)
    for number, stmt in enumerate(body):
        if group.takes(stmt) or group.lets_pass(stmt):
            continue
        if first in group.members:
            group.after = body[number:]
            return group
        group = _Group(parts, shape, seen, list(body[: number + 1]))
    return group


def _mentioned(stmt: Statement) -> Iterator[Mention]:
    for inner in statements((stmt,)):
        if isinstance(inner, Assign):
            yield inner.into, inner.index
        for expr in expressions(inner):
            yield from loads(expr)


def _copied_box(stmt: Assign) -> Box | None:
    """Where a statement puts cells of another array as they are, or a number; None if it does something
    else."""
    if not isinstance(stmt.value, (Const, Load)):
        return None
    alone = all(tensor.storage is not stmt.into for tensor, _ in loads(stmt.value))
    return written(stmt) if alone else None


def _points(members: Sequence[Assign], parts: Mapping[Tensor, Sequence[_Part]]) -> list[set[int]] | None:
    """For each loop of the members where it is to be cut, its ends included; None where parts are read in
    another way than along the loops."""
    extents = [extent for _, extent in members[0].loops] if members else []
    if not all(extent.is_constant for extent in extents):
        return None
    edges = [{0, extent.constant} for extent in extents]
    for member in members:
        axes = {symbol: axis for axis, (symbol, _) in enumerate(member.loops)}
        for tensor, index in loads(member.value):
            if tensor not in parts:
                continue
            for dimension, position in enumerate(index or ()):
                if not position.terms:
                    continue
                ((factor, symbol), *more) = position.terms
                if more or factor != 1 or symbol not in axes:
                    return None
                end = extents[axes[symbol]].constant
                spans = [part.box[dimension] for part in parts[tensor]]
                ends = (edge - position.offset for span in spans for edge in (span.start, span.stop))
                edges[axes[symbol]].update(edge for edge in ends if 0 < edge < end)
    return edges


def _member_in(
    member: Assign,
    box: Sequence[Interval],
    parts: Mapping[Tensor, Sequence[_Part]],
    copies: Mapping[Tensor, Tensor],
) -> Assign | None:
    """A member in a box of its points; None if it reads a cell there that is in no part."""
    fresh = [Symbol(symbol.hint) for symbol, _ in member.loops]
    loops = tuple((symbol, Affine.of(hi - lo)) for symbol, (lo, hi) in zip(fresh, box, strict=True))
    ranges = {symbol: (0, hi - lo - 1) for symbol, (lo, hi) in zip(fresh, box, strict=True)}
    points = tuple(Affine.of(symbol) for symbol in fresh)
    inside = zip(member.loops, points, box, strict=True)
    values = {symbol: point + lo for (symbol, _), point, (lo, _) in inside}
    missing = False

    def there(node: Expr) -> Expr:
        nonlocal missing
        match node:
            case Load(tensor=tensor) if tensor in copies:
                return Load(copies[tensor], points)
            case Load(tensor=tensor, index=index):
                index = tuple(position.substitute(values) for position in index)
                if tensor not in parts:
                    return Load(tensor, index)
                part = next((part for part in parts[tensor] if _holds(part.box, index, ranges)), None)
                missing |= part is None
                return node if part is None else part.value(index)
            case Index(value=number):
                return Index(number.substitute(values))
            case _:
                return node

    value = transform(member.value, there)
    if missing:
        return None
    if member.into in copies:
        return replace(member, loops=loops, into=copies[member.into], index=points, value=value)
    index = tuple(position.substitute(values) for position in member.index)
    return replace(member, loops=loops, index=index, value=value)


def _holds(box: Box, index: Cell, ranges: Ranges) -> bool:
    """Are all cells at an index in the box?"""
    seen = reached(index, ranges)
    return seen is not None and holds(box, seen)
