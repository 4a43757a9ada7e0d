"""pack: an operand that sums read across memory is first laid out the way it is read.

    for i in parallel(0, 64):                           for k in parallel(0, 32):
        for j in parallel(0, 48):                           for j in parallel(0, 48):
            s = 0.0                                             b_packed[k, j] = b[j, k]
            for k in parallel(0, 32):           ->      for i in parallel(0, 64):
                t = subtract(a[i, k], b[j, k])              for j in parallel(0, 48):
                s = add(s, absolute(t))                         s = 0.0
            y[i, j] = s                                         for k in parallel(0, 32):
                                                                    t = subtract(a[i, k], b_packed[k, j])
                                                                    s = add(s, absolute(t))
                                                                y[i, j] = s

It pays where the operand is read again for every iteration of an outer loop, as for the distances of all rows
of one array from those of another: the copy is made once, and the loop over columns then reads neighbours.
What is a product `contract` has cut already.

So do sums whose terms go in order, if all that stands in their way to go side by side is how operands lie:

    for i in parallel(0, 80):                           (a_packed and b_packed as above)
        for j in parallel(0, i + 1):                    for i in parallel(0, 80):
            for k in sequential(0, 60):                     for j in parallel(0, i + 1):
                t = multiply(a[j, k], b[i, k])    ->            for k in sequential(0, 60):
                u = multiply(b[j, k], a[i, k])                      t = multiply(a_packed[k, j], b[i, k])
                c[i, j] = add(c[i, j], add(t, u))                   u = multiply(b_packed[k, j], a[i, k])
                                                                    c[i, j] = add(c[i, j], add(t, u))

A term waits for the one before it, and the next column does not: a symmetric update of a triangle by two
products takes 0.25 to 0.5 of the time, sums of float32 products 0.13, polynomials for each of some numbers
0.4 to 0.6.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import field, replace

from ...frozen import frozen, slotted
from ...ir.code import Caps
from ...ir.expr import Load
from ...ir.index import Affine, Symbol, symbols_of
from ...ir.loops import (
    Bind,
    Comment,
    Define,
    For,
    Kernel,
    LoopKind,
    Place,
    PlaceKind,
    Stmt,
    Store,
    Update,
    walk_statements,
    written_in,
)
from ...ir.tensor import Tensor
from ...ir.walk import kept, rewrite_bodies, rewrite_loops, transform_statements
from ..analysis.access import Range
from ..analysis.inside import is_inside
from ..analysis.strides import affine_accesses, gathered, parallel_nest, stride
from ..analysis.trips import about, enter
from ..analysis.work import REGISTER_BYTES

__all__ = ["pack"]

REUSE = 8
"""How often an operand must be read for a copy to pay."""

SPREAD = 64
"""The cells of a register must lie among so many for a copy to pay: on Zen 5, distances of float64 points
take 0.4 of the time from 8 coordinates on, and as long as before with fewer; those of float32 points take 0.6
from 4 on."""

SIMPLE = (Comment, Define, Store, Update)


def pack(kernel: Kernel, caps: Caps) -> Kernel:
    """Every such operand read in the order in which it lies."""
    packing = _Packing(caps.stack_bytes - kernel.stack_bytes, caps.l3_bytes // 4)
    body = packing.in_order(rewrite_loops(kernel.body, packing.nest))
    notes = tuple(f"pack: {tensor.label}: {place.reason}" for tensor, place in packing.placement.items())
    return kernel.with_body(body, notes, packing.placement)


@slotted
class _Packing:
    """What is found out on the way: how much of the stack is left, which tensors lie where, and the values of
    loops' symbols. A copy of so many bytes is still `near` when the next row comes."""

    stack_left: int
    near: int
    placement: dict[Tensor, Place] = field(default_factory=dict)
    ranges: dict[Symbol, Range] = field(default_factory=dict)

    def nest(self, outermost: For) -> Sequence[Stmt] | None:
        loops = parallel_nest(outermost)
        found = _across(loops) if len(loops) > 1 else None
        return None if found is None else self._packed(loops, *found)

    def _packed(self, loops: Sequence[For], terms: For, load: Load) -> Sequence[Stmt]:
        """A nest that reads `load` from a copy, made outside of as many of its loops as possible. The loops
        around the copy share it, and so must take turns."""
        columns = loops[-1]
        column = Symbol(columns.symbol.hint)
        index = tuple(at.substitute({columns.symbol: columns.lo + column}) for at in load.index)
        operand = _Operand(load, index, column, columns.hi - columns.lo, columns.symbol - columns.lo)
        copying, packed = self.copied(operand, terms)
        reading = _replaced(loops[-1].body, {load: packed})
        depth = _depth(loops, load)
        body: tuple[Stmt, ...] = reading
        for level in range(len(loops) - 1, -1, -1):
            turn = LoopKind.SEQUENTIAL if level < depth else LoopKind.PARALLEL
            body = (replace(loops[level], body=body, kind=turn),)
            if level == depth:
                body = (copying, *body)
        return body

    def copied(self, operand: _Operand, terms: For) -> tuple[For, Load]:
        """What copies an operand, and a load from the copy."""
        read, column = operand.load.tensor, operand.column
        shape = (terms.hi - terms.lo, operand.columns)
        copy = Tensor(f"{read.label}_packed", shape, read.dtype)
        kind = PlaceKind.ARENA
        if copy.nbytes <= self.stack_left:
            kind = PlaceKind.STACK
            self.stack_left -= copy.nbytes
        self.placement[copy] = Place(kind, f"{read.label} is read across memory in every row")
        k = Symbol(terms.symbol.hint)
        source = Load(read, tuple(at.substitute({terms.symbol: terms.lo + k}) for at in operand.index))
        fill = Store(copy, (Affine.of(k), Affine.of(column)), source)
        rows = For(column, Affine.of(0), shape[1], (fill,), LoopKind.PARALLEL)
        copying = For(k, Affine.of(0), shape[0], (rows,), LoopKind.PARALLEL)
        return copying, Load(copy, (Affine.of(terms.symbol) - terms.lo, operand.here))

    def in_order(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """A body in which sums in order read copies, made before the outermost loops that leave them as they
        are. None are made where threads may share iterations."""
        return kept(body, [line for stmt in body for line in self._with_copies(stmt)])

    def _with_copies(self, stmt: Stmt) -> Sequence[Stmt]:
        if not isinstance(stmt, For):
            return [rewrite_bodies(stmt, self.in_order)]
        enter(stmt, self.ranges)
        inside = list(walk_statements((stmt,)))
        symbols = {inner.symbol for inner in inside if isinstance(inner, (Bind, For))}
        rows = _Rows(symbols, written_in(inside))
        loop = self._rows(stmt, stmt.trips or 0, rows)
        return [
            *rows.before,
            rewrite_bodies(loop, self.in_order) if stmt.kind is LoopKind.SEQUENTIAL else loop,
        ]

    def _rows(self, loop: For, times: int, rows: _Rows) -> Stmt:
        """A loop that runs so many times altogether, with what columns in it read copied before all rows."""

        def inner(stmt: Stmt) -> Stmt:
            if not isinstance(stmt, For):
                return stmt
            enter(stmt, self.ranges)
            terms = _terms_in_order(stmt)
            if terms is None:
                return self._rows(stmt, times * (stmt.trips or 0), rows)
            enter(terms, self.ranges)
            loads = _far_operands(stmt, terms) if times >= REUSE else ()
            operands = [self._operand(stmt, terms, load, rows) for load in loads]
            packed: dict[Load, Load] = {}
            for operand in operands if None not in operands else ():
                assert operand is not None
                copying, packed[operand.load] = self.copied(operand, terms)
                rows.before.append(copying)
            return replace(stmt, body=_replaced(stmt.body, packed)) if packed else stmt

        return rewrite_bodies(loop, lambda body: kept(body, [inner(stmt) for stmt in body]))

    def _operand(self, columns: For, terms: For, load: Load, rows: _Rows) -> _Operand | None:
        """An operand that all rows read; None if a copy is not worth it. Columns may begin and end elsewhere
        in each row: all are copied that any row may read."""
        tensor, size = load.tensor, load.tensor.dtype.itemsize
        (axis, *more) = (n for n, at in enumerate(load.index) if columns.symbol in at.symbols)
        here = load.index[axis]
        others = [pair for n, pair in enumerate(zip(load.index, tensor.shape, strict=True)) if n != axis]
        own = rows.symbols.intersection(symbols_of(at for at, _ in others))
        stays = tensor.storage not in rows.written and own <= {terms.symbol}
        is_there = all(is_inside(at, extent, self.ranges) for at, extent in others)
        if more or here.coefficient(columns.symbol) != 1 or not tensor.shape[axis].is_constant:
            return None
        least, most = here.bounds(self.ranges) or (0, tensor.shape[axis].offset)
        first, last = max(least, 0), min(most, tensor.shape[axis].offset - 1)
        is_near = (terms.trips or 0) * (last + 1 - first) * size <= self.near
        is_long = (about(columns, self.ranges) or 0) * size >= REGISTER_BYTES
        if not (stays and is_there and is_near and is_long):
            return None
        column = Symbol(columns.symbol.hint)
        index = (*load.index[:axis], first + Affine.of(column), *load.index[axis + 1 :])
        return _Operand(load, index, column, Affine.of(last + 1 - first), here - first)


@frozen
class _Operand:
    """What is read, and where a copy has it from, by the column there: of how many `columns`, of which one is
    read `here`."""

    load: Load
    index: tuple[Affine, ...]
    column: Symbol
    columns: Affine
    here: Affine


@slotted
class _Rows:
    """A loop over rows: the symbols and storages that it changes, and the copies that are made before it."""

    symbols: set[Symbol]
    written: set[Tensor]
    before: list[Stmt] = field(default_factory=list)


def _terms_in_order(columns: For) -> For | None:
    """The loop over the terms of what columns add up in order, each for itself, and nothing else is done in
    loops."""
    loops = [stmt for stmt in columns.body if not isinstance(stmt, SIMPLE)]
    if columns.kind is not LoopKind.PARALLEL or columns.step != 1:
        return None
    match loops:
        case [For(kind=LoopKind.SEQUENTIAL, step=1, trips=int(), lo=Affine(terms=())) as terms]:
            pass
        case _:
            return None
    if not all(isinstance(stmt, SIMPLE) for stmt in terms.body) or gathered(columns.body):
        return None
    cells = (stmt.index for stmt in terms.body if isinstance(stmt, Store))
    return None if any(terms.symbol in symbols_of(index) for index in cells) else terms


def _far_operands(columns: For, terms: For) -> Sequence[Load]:
    """The operands that lie along the terms, if all else lies along the columns."""
    found: dict[Load, None] = {}
    for tensor, index, is_store in affine_accesses(columns.body):
        far, near = (stride(tensor, index, loop.symbol) for loop in (columns, terms))
        if far in (0, 1):
            continue
        if is_store or far is None or near not in (1, -1) or not _is_far(far, tensor):
            return ()
        found[Load(tensor, index)] = None
    return tuple(found)


def _across(loops: Sequence[For]) -> tuple[For, Load] | None:
    """The inner sum of a nest and the load in it that strides along the columns though it runs along the
    terms, if a copy of it would be read often enough."""
    columns = loops[-1]
    for terms in columns.body:
        if not isinstance(terms, For) or terms.kind is not LoopKind.PARALLEL or terms.step != 1:
            continue
        if any(isinstance(stmt, Store) for stmt in walk_statements(terms.body)):
            continue  # It fills a row, and goes along memory itself.
        for tensor, index, is_store in affine_accesses(terms.body):
            if not is_store and _pays(loops, terms, Load(tensor, index)):
                return terms, Load(tensor, index)
    return None


def _pays(loops: Sequence[For], terms: For, load: Load) -> bool:
    columns = loops[-1]
    if any(not loop.lo.is_constant or loop.trips is None for loop in (*loops, terms)):
        return False
    inner = {stmt.symbol for stmt in walk_statements(terms.body) if isinstance(stmt, For)}
    if any(symbol in inner for position in load.index for symbol in position.symbols):
        return False
    far, near = (stride(load.tensor, load.index, loop.symbol) for loop in (columns, terms))
    if far is None or near is None or abs(near) != 1 or not _is_far(far, load.tensor):
        return False
    stores = (stmt for stmt in walk_statements(columns.body) if isinstance(stmt, Store))
    if any(store.tensor.storage is load.tensor.storage for store in stores):
        return False
    return math.prod(loop.trips or 0 for loop in loops[_depth(loops, load) : -1]) >= REUSE


def _is_far(step: int, tensor: Tensor) -> bool:
    """Is it dearer to collect a register of cells that are so far apart than to read a copy?"""
    return abs(step) * REGISTER_BYTES >= SPREAD * tensor.dtype.itemsize


def _depth(loops: Sequence[For], load: Load) -> int:
    """How many loops of the nest, from outside, a copy of what `load` reads must stand in."""
    used = set(symbols_of(load.index))
    return max((n + 1 for n, loop in enumerate(loops[:-1]) if loop.symbol in used), default=0)


def _replaced(body: tuple[Stmt, ...], loads: Mapping[Load, Load]) -> tuple[Stmt, ...]:
    return transform_statements(body, lambda node: loads.get(node, node) if isinstance(node, Load) else node)
