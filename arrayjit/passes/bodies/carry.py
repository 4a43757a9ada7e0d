"""carry: what the iteration before has stored is still at hand.

    for k in sequential(1, 100):                    c = x[0]
        x[k] = add(x[k - 1], y[k])                  for k in sequential(1, 100):
                                        ->              t = add(c, y[k])
                                                        x[k] = t
                                                        c = t

Read back from memory it would make each iteration wait for the store of the one before. The same goes for
what was stored two iterations ago, and for a cell that every iteration reads and then writes. What the next
iteration writes anew, and nothing else reads, is written once, after the last, if its cell exists even where
the loop does not run. The first value is read before the loop; where its cell may not exist, since the loop
may not run, the nearest one that does is read. No other store of the loop may meet the cell, but for one that
it overwrites at once, and one that takes its place once it was read:

    for k in sequential(0, 99):                     c = x[0]
        b = x[k + 1]                                for k in sequential(0, 99):
        a = x[k]                        ->              b = x[k + 1]
        x[k] = minimum(a, b)                            x[k] = minimum(c, b)
        x[k + 1] = maximum(a, b)                        c = maximum(c, b)
                                                    x[99] = c
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace

from ...frozen import frozen
from ...ir.code import Caps
from ...ir.expr import Expr, Load, Local, Variable
from ...ir.index import Affine, Symbol
from ...ir.loops import (
    Barrier,
    Bind,
    Comment,
    Define,
    For,
    Kernel,
    Lap,
    LoopKind,
    Raise,
    Stay,
    Stmt,
    Store,
    Update,
    go_in_order,
    walk_statements,
    written,
)
from ...ir.tensor import Tensor
from ...ir.walk import (
    expressions,
    locals_updated,
    nodes_in,
    rewrite_expressions,
    rewrite_loops,
    transform,
)
from ..analysis.access import Range, Ranges, loads, reads
from ..analysis.cells import Cells
from ..analysis.inside import exists, is_inside
from ..analysis.trips import between, enter
from ..analysis.values import stays

__all__ = ["carry"]

_PLAIN = (Bind, Comment, Define, Raise, Store, Update)


@frozen
class _Handed:
    """What the store at a position of a body hands on: a later iteration reads it as `load`, the first one
    finds `first` there; `carried` has either. It takes over what `source` had in the iteration before; where
    there is none, what is stored."""

    position: int
    load: Load
    first: Load
    carried: Variable
    source: Variable | None = None


def carry(kernel: Kernel, caps: Caps) -> Kernel:
    """Every value that one iteration stores for the next one also kept in a local: what a loop reads before
    its first iteration, and stores after its last one, the loop around it may keep as well."""
    if not go_in_order(kernel.body):
        return kernel
    notes: list[str] = []
    body, carried = kernel.body, _body(kernel.body, notes)
    while carried is not body:
        body, carried = carried, _body(carried, notes)
    return kernel.with_body(body, notes)


def _body(body: tuple[Stmt, ...], notes: list[str]) -> tuple[Stmt, ...]:
    """A body in which the loops that may do so keep what they hand on."""
    ranges: dict[Symbol, Range] = {}
    in_lanes: set[Symbol] = set()

    def carrying(loop: For) -> Sequence[Stmt] | None:
        enter(loop, ranges)
        if loop.kind in (LoopKind.VECTOR, LoopKind.LOCKSTEP):
            in_lanes.add(loop.symbol)
        stored = {stmt.tensor.storage for stmt in loop.body if isinstance(stmt, Store)}
        is_plain = loop.kind is LoopKind.SEQUENTIAL and all(_is_plain(stmt, stored) for stmt in loop.body)
        return _carrying(loop, ranges, in_lanes, notes) if is_plain else None

    return rewrite_loops(body, carrying)


def _is_plain(stmt: Stmt, stored: Set[Tensor]) -> bool:
    """Is all that it does with what the body has stored in sight? A loop in it that writes nothing, and reads
    other arrays, does nothing with it."""
    if not isinstance(stmt, For):
        return isinstance(stmt, _PLAIN)
    inside = walk_statements((stmt,))
    if any(isinstance(inner, (Barrier, Lap, Raise, Stay)) or written(inner) is not None for inner in inside):
        return False
    return stored.isdisjoint(tensor.storage for inner in inside for tensor, _ in reads(inner))


def _carrying(loop: For, ranges: Ranges, in_lanes: Container[Symbol], notes: list[str]) -> list[Stmt]:
    """The loop, after the first values of the locals that it hands on."""
    span = ((loop.hi - loop.lo) * loop.step).bounds(ranges)
    runs = span is not None and span[0] > 0 and not any(isinstance(stmt, Raise) for stmt in loop.body)
    cells = Cells(loop, ranges)
    handed = list(_handed(loop, cells, lambda one: runs or _is_near_a_cell(one, ranges, in_lanes)))
    if not handed:
        return [loop]
    notes += (
        f"carry: {one.carried.hint} stays in a register from one {loop.symbol.hint} to the next"
        for one in handed
    )
    before = [line for one in handed for line in _first(one, not runs, ranges)]
    ends_at_hi = abs(loop.step) == 1 and span is not None and span[0] >= 0
    last = [
        one
        for one in handed
        if (runs or exists(one.first.tensor, one.first.index, ranges))
        and _is_for_last(one, loop.body, cells, ends_at_hi)
    ]
    body = tuple(_handing_on(loop.body, handed, {one.position for one in last}))
    behind = [_moved(one.load, {loop.symbol: loop.hi}) for one in last]
    after = [
        Store(load.tensor, load.index, Local(one.carried)) for load, one in zip(behind, last, strict=True)
    ]
    return [*before, replace(loop, body=body), *after]


def _is_near_a_cell(load: Load, ranges: Ranges, in_lanes: Container[Symbol]) -> bool:
    """Is there a nearest cell to read where the place itself may not exist? Lanes have none of their own."""
    return all(
        is_inside(position, extent, ranges)
        or (
            extent.is_constant
            and extent.constant > 0
            and not any(symbol in in_lanes for symbol in position.symbols)
        )
        for position, extent in zip(load.index, load.tensor.shape, strict=True)
    )


def _first(one: _Handed, nearest: bool, ranges: Ranges) -> Iterator[Stmt]:
    """The first value of what is carried, or that of the cell `nearest` to its place, which is another one
    only if the loop does not run."""
    place = list(one.first.index)
    for axis, extent in enumerate(one.first.tensor.shape if nearest else ()):
        if not is_inside(place[axis], extent, ranges):
            near = Symbol("n", lower=0, upper=extent.constant)
            yield from between(near, place[axis], Affine.of(0), extent - 1)
            place[axis] = Affine.of(near)
    yield Define(one.carried, replace(one.first, index=tuple(place)))


def _is_for_last(one: _Handed, body: Sequence[Stmt], cells: Cells, ends_at_hi: bool) -> bool:
    """Whether only the value of the last iteration is ever read from a cell, as the next writes it anew: the
    same one in all, or where the loop would go on."""
    store = body[one.position]
    if not isinstance(store, Store) or not (store.index == one.load.index or ends_at_hi):
        return False
    if any(isinstance(stmt, Raise) for stmt in body) or not any(_goes_to(stmt, one.load) for stmt in body):
        return False
    return not any(
        (index != store.index or position > one.position)
        and (index != one.load.index or index == store.index)
        and cells.meet(one.load, tensor, index)
        for position, stmt in enumerate(body)
        for expr in expressions(stmt)
        for tensor, index in loads(expr)
    )


def _goes_to(stmt: Stmt, cell: Load) -> bool:
    """Does a statement store in the cell, which it does not read for that?"""
    return isinstance(stmt, Store) and stmt.accum is None and _moved(stmt, {}) == cell


def _handed(loop: For, cells: Cells, may_be_read: Callable[[Load], bool]) -> Iterator[_Handed]:
    """The stores whose cells a later iteration reads, up to two further on, and no other store meets, neither
    them nor what is read before the loop, but for one that takes their place; if that iteration writes the
    cells, before it does."""
    stores = [(position, stmt) for position, stmt in enumerate(loop.body) if isinstance(stmt, Store)]
    read, last = _reads(loop.body)
    for position, stmt in enumerate(loop.body):
        if not isinstance(stmt, Store) or stmt.accum is not None or not cells.is_known(stmt.index):
            continue
        earlier = [_moved(stmt, {loop.symbol: loop.symbol - n * loop.step}) for n in (1, 2)]
        if earlier[0].index == stmt.index:
            wanted = earlier[:1] if read.get(earlier[0], position + 1) <= position else []
        else:
            wanted = earlier[:2] if earlier[1] in read else earlier[:1] if earlier[0] in read else []
        firsts = [_moved(load, {loop.symbol: loop.lo}) for load in wanted]
        if not wanted or not all(map(may_be_read, firsts)):
            continue
        replaced = wanted[0] if wanted == earlier[:1] and wanted[0].index != stmt.index else None
        cell = Load(stmt.tensor, stmt.index)
        if any(
            cells.meet(met, other.tensor, other.index)
            for met in (cell, *wanted)
            for at, other in stores
            if at != position
            and not (replaced and _goes_to(other, replaced) and last[replaced] <= at)
            and not (wanted[0] != cell and at < position and _goes_to(other, cell))
        ):
            continue
        source = None
        for load, first in zip(wanted, firsts, strict=True):
            carried = Variable(stmt.tensor.label, stmt.tensor.dtype)
            yield _Handed(position, load, first, carried, source)
            source = carried


def _reads(body: Iterable[Stmt]) -> tuple[dict[Load, int], dict[Load, int]]:
    """Where each cell is read first, and where last."""
    first: dict[Load, int] = {}
    last: dict[Load, int] = {}
    for position, stmt in enumerate(body):
        for node in nodes_in((stmt,)):
            if isinstance(node, Load):
                first.setdefault(node, position)
                last[node] = position
    return first, last


def _moved(cell: Store | Load, values: Mapping[Symbol, Affine]) -> Load:
    """The cell for other values of its symbols."""
    return Load(cell.tensor, tuple(part.substitute(values) for part in cell.index))


def _handing_on(body: Sequence[Stmt], handed: Sequence[_Handed], left: Container[int]) -> Iterator[Stmt]:
    """The body with the locals in place of the loads, and what is stored put into them at the end; without
    the stores that are left for later."""
    known = {one.load: one.carried for one in handed}
    stored = {one.position: one for one in handed if one.source is None}
    changing = locals_updated(body) | set(known.values())
    after = [Update(one.carried, Local(one.source)) for one in handed if one.source is not None]

    def rule(node: Expr) -> Expr:
        return Local(known[node]) if isinstance(node, Load) and node in known else node

    for position, stmt in enumerate(body):
        stmt = rewrite_expressions(stmt, lambda expr: transform(expr, rule))
        if isinstance(stmt, Store) and position in stored:
            one, value = stored[position], stmt.value
            if not stays(value, changing):
                held = Variable("t", one.carried.dtype)
                yield Define(held, value)
                value = Local(held)
                stmt = replace(stmt, value=value)
            after.append(Update(one.carried, value))
            if one.load.index == stmt.index:
                del known[one.load]
        if position not in left:
            yield stmt
    yield from after
