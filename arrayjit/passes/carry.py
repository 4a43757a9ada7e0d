"""carry: what the iteration before has stored is still at hand.

    for k in sequential(1, 100):                    c = x[0]
        x[k] = add(x[k - 1], y[k])                  for k in sequential(1, 100):
                                        ->              t = add(c, y[k])
                                                        x[k] = t
                                                        c = t

Read back from memory it would make each iteration wait for the store of the one before. The same goes for
what was stored two iterations ago, and for a cell that every iteration reads and then writes; if nothing else
reads it, that is written once, after the last iteration. The first value is read before the loop, so its cell
must exist even if the loop does not run. No other store of the loop may meet the cell.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from ..frozen import frozen
from ..ir.code import Caps
from ..ir.expr import Const, Expr, Load, Local, Variable
from ..ir.index import Affine, Symbol
from ..ir.loops import Bind, Comment, Define, For, Kernel, LoopKind, Raise, Stmt, Store, Update
from ..ir.walk import expressions, kept, rewrite_bodies, rewrite_expressions, transform, walk
from .access import Range, Ranges, effects, exists, loads
from .cells import Cells
from .trips import enter

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
    """Every value that one iteration stores for the next one also kept in a local."""
    ranges: dict[Symbol, Range] = {}
    notes: list[str] = []

    def visit(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        out: list[Stmt] = []
        for stmt in body:
            if isinstance(stmt, For):
                enter(stmt, ranges)
                if stmt.kind is LoopKind.SEQUENTIAL and all(map(_is_plain, stmt.body)):
                    out.extend(_carrying(stmt, ranges, notes))
                    continue
            out.append(rewrite_bodies(stmt, visit))
        return kept(body, out)

    return kernel.with_body(visit(kernel.body), notes)


def _is_plain(stmt: Stmt) -> bool:
    """Is all that it reads and writes in sight? That of a loop over locals alone is nothing."""
    if not isinstance(stmt, For):
        return isinstance(stmt, _PLAIN)
    found = effects((stmt,), {})
    return not (found.reads or found.writes or found.leaves)


def _carrying(loop: For, ranges: Ranges, notes: list[str]) -> list[Stmt]:
    """The loop, after the first values of the locals that it hands on."""
    runs = bool(loop.trips) and not any(isinstance(stmt, Raise) for stmt in loop.body)
    cells = Cells(loop, ranges)
    handed = list(_handed(loop, cells, lambda one: runs or exists(one.tensor, one.index, ranges)))
    if not handed:
        return [loop]
    notes += (
        f"carry: {one.carried.hint} stays in a register from one {loop.symbol.hint} to the next"
        for one in handed
    )
    before = [Define(one.carried, one.first) for one in handed]
    last = [one for one in handed if _is_for_last(one, loop.body, cells)]
    body = tuple(_handing_on(loop.body, handed, {one.position for one in last}))
    after = [Store(one.load.tensor, one.load.index, Local(one.carried)) for one in last]
    return [*before, replace(loop, body=body), *after]


def _is_for_last(one: _Handed, body: Sequence[Stmt], cells: Cells) -> bool:
    """Whether only the value of the last iteration is ever read from the cell."""
    store = body[one.position]
    if not isinstance(store, Store) or store.index != one.load.index:
        return False
    if any(isinstance(stmt, Raise) for stmt in body):
        return False
    return not any(
        (index != store.index or position > one.position) and cells.meet(one.load, tensor, index)
        for position, stmt in enumerate(body)
        for expr in expressions(stmt)
        for tensor, index in loads(expr)
    )


def _handed(loop: For, cells: Cells, exists: Callable[[Load], bool]) -> Iterator[_Handed]:
    """The stores that no other one meets, and whose cells a later iteration reads, up to two further on; if
    that writes the same cells, before it does."""
    stores = [stmt for stmt in loop.body if isinstance(stmt, Store)]
    read = _first_reads(loop.body)
    for position, stmt in enumerate(loop.body):
        if not isinstance(stmt, Store) or stmt.accum is not None or not cells.is_known(stmt.index):
            continue
        earlier = [_moved(stmt, {loop.symbol: loop.symbol - n * loop.step}) for n in (1, 2)]
        if earlier[0].index == stmt.index:
            wanted = earlier[:1] if read.get(earlier[0], position + 1) <= position else []
        else:
            wanted = earlier[:2] if earlier[1] in read else earlier[:1] if earlier[0] in read else []
        firsts = [_moved(load, {loop.symbol: loop.lo}) for load in wanted]
        if not wanted or not all(map(exists, firsts)):
            continue
        if any(
            cells.meet(Load(stmt.tensor, stmt.index), other.tensor, other.index)
            for other in stores
            if other is not stmt
        ):
            continue
        source = None
        for load, first in zip(wanted, firsts, strict=True):
            carried = Variable(stmt.tensor.label, stmt.tensor.dtype)
            yield _Handed(position, load, first, carried, source)
            source = carried


def _first_reads(body: Iterable[Stmt]) -> dict[Load, int]:
    """Where each cell is read first."""
    found: dict[Load, int] = {}
    for position, stmt in enumerate(body):
        for expr in expressions(stmt):
            for node in walk(expr):
                if isinstance(node, Load):
                    found.setdefault(node, position)
    return found


def _moved(cell: Store | Load, values: Mapping[Symbol, Affine]) -> Load:
    """The cell for other values of its symbols."""
    return Load(cell.tensor, tuple(part.substitute(values) for part in cell.index))


def _handing_on(body: Sequence[Stmt], handed: Sequence[_Handed], left: Container[int]) -> Iterator[Stmt]:
    """The body with the locals in place of the loads, and what is stored put into them at the end; without
    the stores that are left for later."""
    known = {one.load: one.carried for one in handed}
    stored = {one.position: one for one in handed if one.source is None}
    changing = {stmt.variable for stmt in body if isinstance(stmt, Update)} | set(known.values())
    after = [Update(one.carried, Local(one.source)) for one in handed if one.source is not None]

    def rule(node: Expr) -> Expr:
        return Local(known[node]) if isinstance(node, Load) and node in known else node

    for position, stmt in enumerate(body):
        stmt = rewrite_expressions(stmt, lambda expr: transform(expr, rule))
        if isinstance(stmt, Store) and position in stored:
            one, value = stored[position], stmt.value
            if not _stays(value, changing):
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


def _stays(value: Expr, changing: set[Variable]) -> bool:
    """Is this a constant, or a local that keeps its value to the end of the body?"""
    return isinstance(value, Const) or (isinstance(value, Local) and value.variable not in changing)
