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
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import field, replace

from ...frozen import slotted
from ...ir.code import Caps
from ...ir.expr import Load
from ...ir.index import Affine, Symbol, symbols_of
from ...ir.loops import For, Kernel, LoopKind, Place, PlaceKind, Stmt, Store, walk_statements
from ...ir.tensor import Tensor
from ...ir.walk import rewrite_loops, transform_statements
from ..analysis.strides import affine_accesses, parallel_nest, stride
from ..analysis.work import REGISTER_BYTES

__all__ = ["pack"]

REUSE = 8
"""How often an operand must be read for a copy to pay."""

SPREAD = 64
"""The cells of a register must lie among so many for a copy to pay: on Zen 5, distances of float64 points
take 0.4 of the time from 8 coordinates on, and as long as before with fewer; those of float32 points take 0.6
from 4 on."""


def pack(kernel: Kernel, caps: Caps) -> Kernel:
    """Every such operand read in the order in which it lies."""
    packing = _Packing(caps.stack_bytes - kernel.stack_bytes)
    body = rewrite_loops(kernel.body, packing.nest)
    notes = tuple(f"pack: {tensor.label}: {place.reason}" for tensor, place in packing.placement.items())
    return kernel.with_body(body, notes, packing.placement)


@slotted
class _Packing:
    """What is found out on the way: how much of the stack is left, and which tensors lie where."""

    stack_left: int
    placement: dict[Tensor, Place] = field(default_factory=dict)

    def nest(self, outermost: For) -> Sequence[Stmt] | None:
        loops = parallel_nest(outermost)
        found = _across(loops) if len(loops) > 1 else None
        return None if found is None else self._packed(loops, *found)

    def _packed(self, loops: Sequence[For], terms: For, load: Load) -> Sequence[Stmt]:
        """A nest that reads `load` from a copy, made outside of as many of its loops as possible. The loops
        around the copy share it, and so must take turns."""
        columns = loops[-1]
        shape = (terms.hi - terms.lo, columns.hi - columns.lo)
        copy = Tensor(f"{load.tensor.label}_packed", shape, load.tensor.dtype)
        kind = PlaceKind.ARENA
        if copy.nbytes <= self.stack_left:
            kind = PlaceKind.STACK
            self.stack_left -= copy.nbytes
        self.placement[copy] = Place(kind, f"{load.tensor.label} is read across memory in every row")
        k, j = Symbol(terms.symbol.hint), Symbol(columns.symbol.hint)
        values = {terms.symbol: terms.lo + k, columns.symbol: columns.lo + j}
        source = Load(load.tensor, tuple(position.substitute(values) for position in load.index))
        fill = Store(copy, (Affine.of(k), Affine.of(j)), source)
        rows = For(j, Affine.of(0), shape[1], (fill,), LoopKind.PARALLEL)
        copying = For(k, Affine.of(0), shape[0], (rows,), LoopKind.PARALLEL)
        here = (Affine.of(terms.symbol) - terms.lo, Affine.of(columns.symbol) - columns.lo)
        reading = _replaced(loops[-1].body, load, Load(copy, here))
        depth = _depth(loops, load)
        body: tuple[Stmt, ...] = reading
        for level in range(len(loops) - 1, -1, -1):
            turn = LoopKind.SEQUENTIAL if level < depth else LoopKind.PARALLEL
            body = (replace(loops[level], body=body, kind=turn),)
            if level == depth:
                body = (copying, *body)
        return body


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


def _replaced(body: tuple[Stmt, ...], old: Load, new: Load) -> tuple[Stmt, ...]:
    return transform_statements(body, lambda node: new if node == old else node)
