"""interior: what a nest makes for the inside of an array is taken there and then by the nest that reads it.

    for j in parallel(0, 100):                      for i in parallel(0, 98):
        t[0, j] = 0.0                                   for j in parallel(0, 100):
        t[99, j] = 0.0                                      t0 = sqrt(x[i, j])
    for i in parallel(0, 98):               ->              y[i + 1, j] = add(x[i + 1, j], t0)
        for j in parallel(0, 100):                  for j in parallel(0, 100):
            t[i + 1, j] = sqrt(x[i, j])                 y[0, j] = add(x[0, j], 0.0)
    for i in parallel(0, 100):                          y[99, j] = add(x[99, j], 0.0)
        for j in parallel(0, 100):
            y[i, j] = add(x[i, j], t[i, j])

That is what becomes of a stencil whose result starts as `np.zeros_like`: the loops of its two nests have
different ends, so that `fuse` leaves them apart, and the temporary goes through the caches. Around the inside
the reader takes the number there; where that is not one number, it still reads the temporary, of which only
those cells are left.

Arrays that took turns (`swap`) are told apart by then: a step that reads neighbours in one of them and
changes the other is one nest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, pairwise

from ...frozen import frozen
from ...ir.code import Caps
from ...ir.expr import Const, Expr, Load, Local, Variable
from ...ir.index import Affine, Symbol
from ...ir.loops import Define, Fill, For, Kernel, Stmt, Store, walk_statements, written_in
from ...ir.tensor import Tensor
from ...ir.walk import kept, rewrite_bodies, rewrite_expressions, transform
from ..analysis.access import reads
from ..analysis.boxes import Box, common, size, without
from ..analysis.copies import copy_body, unless_once
from ..analysis.strides import parallel_nest

__all__ = ["interior"]

FEWEST = 1024
"""So many cells inside are worth loops of their own around them."""

MOST = 4
"""Of so many cells of a reader, one may lie around the inside."""

LARGE = 100
"""A reader with more statements is not written out for each side."""

Cell = tuple[Affine, ...]


def interior(kernel: Kernel, caps: Caps) -> Kernel:
    """The kernel with such nests joined."""
    pairs = _pairs(kernel)
    if not any(pair.may_be_one for pair in pairs):
        return kernel
    joining = _Joining.of(kernel, pairs)
    taken = {tensor.label for pair in pairs if pair.may_be_one for tensor in pair.made}
    notes = (f"interior: {label} is taken where it is made" for label in sorted(taken))
    joined = kernel.with_body(joining.body(kernel.body), notes)
    left = written_in(walk_statements(joined.body))
    gone = joining.numbers.keys() - left
    return replace(joined, placement={t: place for t, place in joined.placement.items() if t not in gone})


@frozen
class _Joining:
    """The pairs by their loops, and the temporaries that hold one number around the inside, of which nothing
    else is left."""

    makers: Mapping[int, _Pair]
    takers: Mapping[int, _Pair]
    numbers: Mapping[Tensor, Const]

    @staticmethod
    def of(kernel: Kernel, pairs: Sequence[_Pair]) -> _Joining:
        inside = {id(store) for pair in pairs for store in pair.maker.stores}
        values: dict[Tensor, set[Expr]] = {t: set() for p in pairs if p.may_be_one for t in p.made}
        for stmt in walk_statements(kernel.body):
            if isinstance(stmt, (Store, Fill)) and stmt.tensor.storage in values and id(stmt) not in inside:
                values[stmt.tensor.storage].add(stmt.value)
        known = ((tensor, found.pop()) for tensor, found in values.items() if len(found) == 1)
        numbers = {tensor: value for tensor, value in known if isinstance(value, Const)}
        used = [pair for pair in pairs if pair.may_be_one or not numbers.keys().isdisjoint(pair.made)]
        makers = {id(pair.maker.loops[0]): pair for pair in used}
        return _Joining(makers, {id(pair.taker.loops[0]): pair for pair in used}, numbers)

    def body(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """The pairs joined, and no stores of numbers that are known."""
        out: list[Stmt] = []
        for stmt in body:
            if id(stmt) in self.makers:
                out += () if self.makers[id(stmt)].may_be_one else (stmt,)
            elif id(stmt) in self.takers:
                out += self.takers[id(stmt)].parts(self.numbers)
            elif not isinstance(stmt, (Store, Fill)) or stmt.tensor.storage not in self.numbers:
                inner = rewrite_bodies(stmt, self.body)
                out += () if isinstance(inner, For) and not inner.body else (inner,)
        return kept(body, out)


@frozen
class _Nest:
    """Independent loops of known ends that only define locals and store; `cells` are its iterations."""

    loops: tuple[For, ...]
    cells: Box

    @staticmethod
    def of(stmt: Stmt) -> _Nest | None:
        loops = tuple(parallel_nest(stmt))
        if not loops or len(loops[-1].body) > LARGE:
            return None
        for inner in loops[-1].body:
            if not isinstance(inner, Define) and not (isinstance(inner, Store) and inner.accum is None):
                return None
        if not all(loop.step == 1 and loop.lo.is_constant and loop.hi.is_constant for loop in loops):
            return None
        return _Nest(loops, tuple(range(loop.lo.constant, loop.hi.constant) for loop in loops))

    @property
    def body(self) -> tuple[Stmt, ...]:
        return self.loops[-1].body

    @property
    def point(self) -> Cell:
        return tuple(Affine.of(loop.symbol) for loop in self.loops)

    @property
    def stores(self) -> Iterator[Store]:
        return (stmt for stmt in self.body if isinstance(stmt, Store))

    @property
    def reads(self) -> Iterator[tuple[Tensor, Cell | None]]:
        return chain.from_iterable(map(reads, self.body))


@frozen
class _Pair:
    """A nest that makes temporaries, and the next one, which reads each of these at its own point alone; the
    cell lies so far from the point of the maker (`there`), and so far from that of the taker (`here`)."""

    maker: _Nest
    taker: _Nest
    made: tuple[Tensor, ...]
    there: tuple[int, ...]
    here: tuple[int, ...]

    @staticmethod
    def of(first: Stmt, second: Stmt, kernel: Kernel) -> _Pair | None:
        maker, taker = _Nest.of(first), _Nest.of(second)
        if maker is None or taker is None or len(maker.loops) != len(taker.loops):
            return None
        made = tuple(store.tensor for store in maker.stores)
        if len(set(made)) < len(made) or any(tensor not in kernel.placement for tensor in made):
            return None
        written = {_offset(store.index, maker.point) for store in maker.stores}
        read = {
            _offset(index, taker.point) if tensor in made else None
            for tensor, index in taker.reads
            if tensor.storage in made
        }
        if len(written) != 1 or len(read) != 1:
            return None
        (there,), (here,) = written, read
        if there is None or here is None:
            return None
        return _Pair(maker, taker, made, there, here)

    @property
    def apart(self) -> tuple[int, ...]:
        """How far the point that takes a cell is from the one that makes it."""
        return tuple(there - here for there, here in zip(self.there, self.here, strict=True))

    @property
    def box(self) -> Box:
        """The cells that are made."""
        return _moved(self.maker.cells, self.there)

    @property
    def inside(self) -> Box:
        """The points of the taker for which the maker makes something."""
        return _moved(self.maker.cells, self.apart)

    @property
    def is_inside(self) -> bool:
        """Does the taker take all that is made, and do little else?"""
        whole, inside = self.taker.cells, self.inside
        if tuple(map(common, whole, inside)) != inside or size(inside) < FEWEST:
            return False
        return MOST * (size(whole) - size(inside)) <= size(whole)

    @property
    def may_be_one(self) -> bool:
        """Does the maker read nothing that it makes, and of what the taker overwrites only the cells of
        the same point?"""
        there = self.at_makers
        cells = {
            (store.tensor, tuple(at.substitute(there) for at in store.index)) for store in self.taker.stores
        }
        changed = {store.tensor.storage for store in self.taker.stores}
        if not changed.isdisjoint(self.made):
            return False
        return all(
            tensor.storage not in self.made and (tensor.storage not in changed or (tensor, index) in cells)
            for tensor, index in self.maker.reads
        )

    @property
    def at_makers(self) -> Mapping[Symbol, Affine]:
        """The taker's point in terms of the maker's."""
        pairs = zip(self.taker.loops, self.maker.point, self.apart, strict=True)
        return {loop.symbol: at + apart for loop, at, apart in pairs}

    def parts(self, numbers: Mapping[Tensor, Const]) -> Iterator[Stmt]:
        """The taker for the inside, with the maker if they may be one nest; then around it, sides of one
        shape together."""
        if self.may_be_one:
            yield from self.joined()
        else:
            yield from self.over((self.inside,), {})
        sides: dict[tuple[int, ...], list[Box]] = {}
        for box in without(self.taker.cells, self.inside):
            sides.setdefault(tuple(map(len, box)), []).append(box)
        for boxes in sides.values():
            yield from self.over(boxes, numbers)

    def joined(self) -> tuple[Stmt, ...]:
        local = {tensor: Variable(tensor.label, tensor.dtype) for tensor in self.made}
        body: list[Stmt] = [
            Define(local[stmt.tensor], stmt.value) if isinstance(stmt, Store) else stmt
            for stmt in self.maker.body
        ]
        taking = copy_body(self.taker.body, self.at_makers, {})
        body += _instead(taking, {tensor: Local(variable) for tensor, variable in local.items()})
        symbols = [loop.symbol for loop in self.maker.loops]
        return _over(self.maker.cells, self.maker.loops, symbols, tuple(body))

    def over(self, boxes: Sequence[Box], numbers: Mapping[Tensor, Const]) -> tuple[Stmt, ...]:
        """The taker for some boxes of one shape, where temporaries hold these numbers."""
        loops, first = self.taker.loops, boxes[0]
        symbols = [Symbol(loop.symbol.hint) for loop in loops]
        body: list[Stmt] = []
        for box in boxes:
            ends = zip(loops, symbols, box, first, strict=True)
            values = {
                loop.symbol: Affine.of(symbol) + (span.start - start.start)
                for loop, symbol, span, start in ends
            }
            body += _instead(copy_body(self.taker.body, values, {}), numbers)
        return _over(first, loops, symbols, tuple(body))


def _over(
    cells: Box, loops: Sequence[For], symbols: Sequence[Symbol], body: tuple[Stmt, ...]
) -> tuple[Stmt, ...]:
    """Such loops over these cells, with another body; those that run once are left out."""
    for loop, symbol, span in zip(loops[::-1], symbols[::-1], cells[::-1], strict=True):
        lo, hi = Affine.of(span.start), Affine.of(span.stop)
        body = unless_once(replace(loop, symbol=symbol, lo=lo, hi=hi, body=body))
    return body


def _instead(body: Sequence[Stmt], values: Mapping[Tensor, Expr]) -> Iterator[Stmt]:
    """The statements with the cells of these temporaries known."""

    def value(node: Expr) -> Expr:
        return values.get(node.tensor, node) if isinstance(node, Load) else node

    return (rewrite_expressions(stmt, lambda expr: transform(expr, value)) for stmt in body)


def _moved(box: Box, apart: Sequence[int]) -> Box:
    return tuple(range(span.start + by, span.stop + by) for span, by in zip(box, apart, strict=True))


def _offset(index: Cell | None, point: Cell) -> tuple[int, ...] | None:
    """How far a cell is from that at a point; None if that is not always the same."""
    if index is None or len(index) != len(point):
        return None
    apart = [position - at for position, at in zip(index, point, strict=True)]
    return tuple(step.constant for step in apart) if all(step.is_constant for step in apart) else None


def _pairs(kernel: Kernel) -> list[_Pair]:
    """The pairs whose temporaries are read by takers of pairs alone: right behind a nest that makes the same
    cells anew."""
    bodies = [kernel.body, *(stmt.body for stmt in walk_statements(kernel.body) if isinstance(stmt, For))]
    found: list[_Pair] = []
    for first, second in chain.from_iterable(map(pairwise, bodies)):
        is_taken = bool(found) and found[-1].taker.loops[0] is first
        pair = None if is_taken else _Pair.of(first, second, kernel)
        found += () if pair is None or not pair.is_inside else (pair,)
    everywhere = _readings(walk_statements(kernel.body)) if found else Counter[Tensor]()
    boxes: dict[Tensor, set[Box]] = {}
    for pair in found:
        for tensor in pair.made:
            boxes.setdefault(tensor, set()).add(pair.box)
    left = [pair for pair in found if all(len(boxes[tensor]) == 1 for tensor in pair.made)]
    while True:
        behind = _readings(chain.from_iterable(pair.taker.body for pair in left))
        found, left = left, [p for p in left if all(behind[t] == everywhere[t] for t in p.made)]
        if len(left) == len(found):
            return left


def _readings(stmts: Iterable[Stmt]) -> Counter[Tensor]:
    """How often each storage is read."""
    return Counter(tensor.storage for stmt in stmts for tensor, _ in reads(stmt))
