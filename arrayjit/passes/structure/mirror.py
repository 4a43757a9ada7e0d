"""mirror: an array that is combined with its own reverse is gone through from both ends.

    for i in parallel(0, 101):                  for i in parallel(0, 50):
        t[i] = multiply(c, a[100 - i])              front = a[i]
    for i in parallel(0, 101):          ->          back = a[100 - i]
        a[i] = add(a[i], t[i])                      t0 = multiply(c, back)
                                                    t1 = multiply(c, front)
                                                    a[i] = add(front, t0)
                                                    a[100 - i] = add(back, t1)
                                                t2 = multiply(c, a[50])
                                                a[50] = add(a[50], t2)

The first nest keeps what the second one needs of cells that it overwrites, and of these iteration `i` and
iteration `100 - i` overwrite only one another's. So two of them that are done together need no array
in between: they read all that both need, then store. In a nest of several loops, such as one that turns a
picture upside down, the inner loops may run the other way as well. Some iterations at one end may have no
partner: nobody overwrites what they read, or reads what they overwrite.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import field, replace

from ...frozen import frozen, slotted
from ...ir.code import Caps
from ...ir.expr import Expr, Load, Local, Variable
from ...ir.index import Affine, Symbol
from ...ir.loops import Comment, Define, For, Kernel, LoopKind, Stmt, Store, nested, written_in
from ...ir.tensor import Tensor
from ...ir.walk import kept, rewrite_bodies, rewrite_expressions, transform
from ..analysis.access import Range, Ranges, distances, given, reads, region
from ..analysis.copies import copy_body, unless_once
from ..analysis.strides import parallel_nest
from ..analysis.trips import blocks, enter
from ..analysis.uses import counts

__all__ = ["mirror"]

ZERO = Affine.of(0)

Cell = tuple[Tensor, tuple[Affine, ...]]


def mirror(kernel: Kernel, caps: Caps) -> Kernel:
    """The kernel without arrays that only keep the reverse of another one while that is overwritten."""
    mirroring = _Mirroring(kernel)
    body = mirroring.body(kernel.body)
    return kernel.with_body(body, mirroring.notes)


@slotted
class _Mirroring:
    """What is known on the way through a kernel."""

    kernel: Kernel
    ranges: dict[Symbol, Range] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def body(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        out: list[Stmt] = []
        for stmt in body:
            if isinstance(stmt, For):
                enter(stmt, self.ranges)
            update = _Update.of(out[-1], stmt, self.ranges) if out else None
            if update is None or not self.is_all(update):
                out.append(rewrite_bodies(stmt, self.body))
                continue
            out[-1:] = copy_body(tuple(update.from_both_ends()), {}, {})
            self.notes += (f"mirror: {tensor.label} is changed from both ends" for tensor in update.changed)
        return kept(body, out)

    def is_all(self, update: _Update) -> bool:
        """Are there no other uses of what is in between?"""
        here, everywhere = counts((*update.makes, *update.takes)), counts(self.kernel.body)
        return update.made.isdisjoint(given(self.kernel.params)) and all(
            here[storage] == everywhere[storage] for storage in update.made
        )


@frozen
class _Update:
    """Loops; what an iteration makes first, and what it does with that then; and what the values of a loop's
    symbol add up to in two iterations of which one changes what the other one reads. Where nothing is told
    of a loop, it stands at the same place in both."""

    loops: tuple[For, ...]
    makes: tuple[Stmt, ...]
    takes: tuple[Stmt, ...]
    sums: Mapping[Symbol, Affine]

    @staticmethod
    def of(first: Stmt, second: Stmt, ranges: dict[Symbol, Range]) -> _Update | None:
        """Two nests that are an update of arrays by their own reverse."""
        before, after = parallel_nest(first), parallel_nest(second)
        if (
            not after
            or len(before) != len(after)
            or not all(map(_is_plain, (before[-1].body, after[-1].body)))
        ):
            return None
        for loop in after:
            enter(loop, ranges)
        makes, takes = _together(before, after), after[-1].body
        if makes is None or not _hands_on(makes, takes):
            return None
        sums = _sums(makes, takes, [loop.symbol for loop in after], ranges)
        update = None if sums is None else _Update(tuple(after), makes, takes, sums)
        return update if update is not None and update.has_partners(ranges) else None

    @property
    def made(self) -> frozenset[Tensor]:
        """The arrays in between."""
        return frozenset(stmt.tensor.storage for stmt in self.makes if isinstance(stmt, Store))

    @property
    def changed(self) -> tuple[Tensor, ...]:
        """The arrays that are overwritten."""
        return tuple(stmt.tensor for stmt in self.takes if isinstance(stmt, Store))

    def has_partners(self, ranges: Ranges) -> bool:
        """Have iterations partners, and is it known which of them? In inner loops all of them must."""
        if self.loops[0].symbol not in self.sums:
            return False
        alone = [self.alone(loop) for loop in self.loops]
        room = (self.loops[0].hi - self.loops[0].lo).bounds(ranges)
        return (
            all(count.is_constant for count in alone)
            and not any(count.constant for count in alone[1:])
            and room is not None
            and room[0] >= abs(alone[0].constant)
        )

    def alone(self, loop: For) -> Affine:
        """How many of the last iterations have no partner; of the first ones, where that is negative."""
        ends = loop.lo + loop.hi - 1
        return ends - self.sums.get(loop.symbol, ends)

    def from_both_ends(self) -> Iterator[Stmt]:
        """The iterations without a partner, then the others."""
        outer, *inner = self.loops
        alone = self.alone(outer).constant
        lo, hi = outer.lo + max(-alone, 0), outer.hi - max(alone, 0)
        once = nested(inner, _in_locals(self.makes, self.takes))
        yield from _unless_never(replace(outer, hi=lo, body=once))
        yield from _unless_never(replace(outer, lo=hi, body=once))
        yield from self.pairs((replace(outer, lo=lo, hi=hi), *inner))

    def pairs(self, loops: Sequence[For]) -> Iterator[Stmt]:
        """Two iterations of the first loop at a time, from both ends; then the one in the middle, in which
        those of the next loop meet."""
        if not loops:
            yield from _in_locals(self.makes, self.takes)
            return
        outer, *inner = loops
        rest = tuple(self.pairs(inner))
        if outer.symbol not in self.sums:
            yield replace(outer, body=rest)
            return
        counted, count = blocks(outer, 2)
        step = Symbol(outer.symbol.hint)
        front = {outer.symbol: outer.lo + step}
        turned = [loop.symbol for loop in loops if loop.symbol in self.sums]
        back = {symbol: self.sums[symbol] - front.get(symbol, Affine.of(symbol)) for symbol in turned}
        both = nested(inner, self.two(front, back))
        yield from counted
        yield from _unless_never(For(step, ZERO, count, both, LoopKind.PARALLEL))
        middle = replace(outer, lo=outer.lo + count, hi=outer.hi - count, body=rest)
        yield from _unless_never(replace(middle, kind=LoopKind.SEQUENTIAL))

    def two(self, front: Mapping[Symbol, Affine], back: Mapping[Symbol, Affine]) -> tuple[Stmt, ...]:
        """Two iterations, which read all that they change before they do."""
        makes, takes = (
            (*copy_body(body, front, {}), *copy_body(body, back, {})) for body in (self.makes, self.takes)
        )
        return _in_locals(makes, takes)


def _is_plain(body: tuple[Stmt, ...]) -> bool:
    return all(isinstance(stmt, (Comment, Define, Store)) for stmt in body)


def _together(before: Sequence[For], after: Sequence[For]) -> tuple[Stmt, ...] | None:
    """The body of the first nest over the symbols of the second one, if both go through the same box."""
    symbols: dict[Symbol, Affine] = {}
    for one, other in zip(before, after, strict=True):
        inside = {loop.symbol for loop in (*before, *after)}.intersection((*one.bound_by, *other.bound_by))
        if inside or not one.step == other.step == 1 or one.hi - one.lo != other.hi - other.lo:
            return None
        symbols[one.symbol] = one.lo - other.lo + other.symbol
    return copy_body(before[-1].body, symbols, {})


def _hands_on(makes: Sequence[Stmt], takes: Sequence[Stmt]) -> bool:
    """Does an iteration of the first body store for itself and for the same one of the second body alone? And
    does this one read nothing that it has overwritten?"""
    made: dict[Tensor, Cell] = {}
    found: set[Tensor] = set()
    for stmt in makes:
        for cell in reads(stmt):
            found.add(cell[0].storage)
            if made.get(cell[0].storage, cell) != cell:
                return False
        if isinstance(stmt, Store):
            if stmt.tensor.storage in found:
                return False
            found.add(stmt.tensor.storage)
            made[stmt.tensor.storage] = stmt.tensor, stmt.index
    changed: set[Tensor] = set()
    for stmt in takes:
        for cell in reads(stmt):
            if cell[0].storage in changed or made.get(cell[0].storage, cell) != cell:
                return False
        if isinstance(stmt, Store):
            changed.add(stmt.tensor.storage)
    return made.keys().isdisjoint(changed)


def _sums(
    makes: Sequence[Stmt], takes: Sequence[Stmt], symbols: Sequence[Symbol], ranges: Ranges
) -> Mapping[Symbol, Affine] | None:
    """What the symbols add up to where one iteration overwrites what another one reads; None if that is not
    known, or not everywhere the same."""
    found: Mapping[Symbol, Affine] = {}
    read = [cell for stmt in makes for cell in reads(stmt)]
    for write in takes:
        for tensor, index in read:
            if not isinstance(write, Store) or tensor.storage is not write.tensor.storage:
                continue
            places = region(write.tensor, write.index, {}), region(tensor, index, {})
            apart = distances(*places, symbols, ranges) or {}
            moving = [symbol for symbol, distance in apart.items() if distance != (0, 0)]
            if not moving:
                continue
            if tensor is not write.tensor or index is None:
                return None
            sums = {symbol: _sum(symbol, write.index, index, symbols) for symbol in moving}
            if None in sums.values() or (found and sums != found):
                return None
            found = {symbol: total for symbol, total in sums.items() if total is not None}
    return found


def _sum(
    symbol: Symbol, write: Sequence[Affine], read: Sequence[Affine], symbols: Collection[Symbol]
) -> Affine | None:
    """What the symbol adds up to in two iterations that meet; None if it does not count upwards along an axis
    in one of them and downwards in the other."""
    for one, other in zip(write, read, strict=True):
        factor = one.coefficient(symbol)
        total = (other - one) * factor + symbol * 2
        if abs(factor) == 1 and not any(map(total.coefficient, symbols)):
            return total
    return None


def _unless_never(loop: For) -> tuple[Stmt, ...]:
    return () if loop.trips == 0 else unless_once(loop)


def _in_locals(makes: Sequence[Stmt], takes: Sequence[Stmt]) -> tuple[Stmt, ...]:
    """The statements of both, after all that these read of what they overwrite; what is made is in locals."""
    changed = written_in(takes)
    values: dict[Cell, Variable] = {}
    out: list[Stmt] = []

    def define(cell: Cell, value: Expr) -> None:
        values[cell] = Variable(cell[0].label, cell[0].dtype)
        out.append(Define(values[cell], value))

    def read(node: Expr) -> Expr:
        known = values.get((node.tensor, node.index)) if isinstance(node, Load) else None
        return node if known is None else Local(known)

    for stmt in (*makes, *takes):
        for tensor, index in reads(stmt):
            if tensor.storage in changed and index is not None and (tensor, index) not in values:
                define((tensor, index), Load(tensor, index))
    for stmt in (*makes, *takes):
        stmt = rewrite_expressions(stmt, lambda expr: transform(expr, read))
        if isinstance(stmt, Store) and stmt.tensor.storage not in changed:
            define((stmt.tensor, stmt.index), stmt.value)
        else:
            out.append(stmt)
    return tuple(out)
