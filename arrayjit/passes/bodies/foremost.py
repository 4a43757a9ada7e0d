"""foremost: where an extreme stands first is found together with it.

    m = -inf                                        m = -inf
    for j in sequential(0, 12):                     q = 0
        m = reduce(maximum, m, x[j, i])             for j in sequential(0, 12):
    y[i] = m                                            t = x[j, i]
    p = 12                                              q = where(not (t <= m) and m == m, j, q)
    for j in sequential(0, 12):             ->          m = reduce(maximum, m, t)
        hit = x[j, i] == m or x[j, i] != x[j, i]    y[i] = m
        p = reduce(minimum, p, where(hit, j, 12))   p = q
    z[i] = p                                        z[i] = p

The cells are read once, and a position is kept in as many bits as a cell, so that lanes need not change their
width. A cell that is larger than all before it, or the first NaN, comes first of those that are the extreme;
if none is larger than what the accumulation starts from, that is the first cell. Cells that are stored while
the extreme is found, only to be searched, need not be stored then.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain

from ...frozen import frozen
from ...ir.code import Caps
from ...ir.conditions import both, compare, one_of, opposite
from ...ir.dtype import BOOL, I32, I64
from ...ir.expr import Apply, Cast, Const, Expr, Index, Load, Local, Variable, constant
from ...ir.index import Affine, symbols_of
from ...ir.loops import (
    Comment,
    Define,
    For,
    Kernel,
    LoopKind,
    Stmt,
    Store,
    Update,
    walk_statements,
    written,
    written_in,
)
from ...ir.ops import OPS, Op
from ...ir.walk import (
    expressions,
    kept,
    locals_read,
    locals_updated,
    rewrite_bodies,
    storages_read,
    substitute,
    walk,
)
from ..analysis.access import reads
from ..analysis.repeats import HEAVY, weight
from ..analysis.values import Values, values_of, written_out

__all__ = ["NOT_BEYOND", "beyond", "cell_and_extreme", "foremost", "start_of", "starts_from_all"]

NOT_BEYOND = {OPS["maximum"]: OPS["less_equal"], OPS["minimum"]: OPS["greater_equal"]}
"""Whether a value is not beyond an extreme."""


def foremost(kernel: Kernel, caps: Caps) -> Kernel:
    """Every such pair of loops as one."""
    notes: list[str] = []

    def visit(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        out = list(kept(body, [rewrite_bodies(stmt, visit) for stmt in body]))
        for at in range(len(out) - 1, -1, -1):
            searches = list(_searches(out[at]))
            found = _found_together(searches, out[:at]) if searches else None
            if found is not None:
                out[: at + 1] = found
                notes.extend(f"foremost: {one.place.hint} is found with the extreme" for one in searches)
        return kept(body, out)

    found = kernel.with_body(visit(kernel.body), notes)
    return _without_unread(found) if found is not kernel else kernel


def _without_unread(kernel: Kernel) -> Kernel:
    """The kernel without cells that were stored for a search alone."""
    inside = list(walk_statements(kernel.body))
    read = {tensor.storage for stmt in inside for tensor, _ in reads(stmt)}
    unread = written_in(stmt for stmt in inside if isinstance(stmt, Store)) & kernel.placement.keys() - read

    def visit(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        left = [stmt for stmt in body if written(stmt) not in unread]
        return kept(body, [rewrite_bodies(stmt, visit) for stmt in left])

    placement = {tensor: place for tensor, place in kernel.placement.items() if tensor not in unread}
    return replace(kernel, body=visit(kernel.body), placement=placement) if unread else kernel


def beyond(accum: Op, cell: Local, extreme: Local) -> Expr:
    """Does a cell take the place of the extreme before it? The first NaN does, and nothing after it."""
    is_beyond = opposite(Apply(NOT_BEYOND[accum], (cell, extreme), BOOL))
    return (
        both(is_beyond, compare("equal", extreme, extreme)) if extreme.variable.dtype.is_float else is_beyond
    )


@frozen
class _Search:
    """What a loop looks for: the first position `place` at which `cell` is what `extreme` has, or is NaN."""

    loop: For
    place: Variable
    cell: Expr
    extreme: Variable


def _searches(loop: Stmt) -> Iterator[_Search]:
    """All that a loop does; nothing if it does anything else."""
    if not isinstance(loop, For) or not _is_in_order(loop) or (values := values_of(loop.body)) is None:
        return
    found = [_search(loop, stmt, values) for stmt in loop.body if isinstance(stmt, Update)]
    searches = [one for one in found if one is not None]
    if len(searches) == len(found):
        yield from searches


def _search(loop: For, update: Update, values: Values) -> _Search | None:
    match written_out(update.value, values):
        case Apply(op=op, args=(hit, Cast(arg=Index(value=at)), Const())) if op is OPS["where"]:
            pair = cell_and_extreme(hit)
            is_first = update.accum is OPS["minimum"] and at == Affine.of(loop.symbol)
            return _Search(loop, update.variable, *pair) if pair is not None and is_first else None
        case _:
            return None


def _is_in_order(loop: For) -> bool:
    return loop.kind is LoopKind.SEQUENTIAL and bool(loop.trips) and weight(loop.body) <= HEAVY


def cell_and_extreme(hit: Expr) -> tuple[Expr, Variable] | None:
    """What is compared with an extreme in a variable: for floats, it may be NaN instead."""
    match hit:
        case Apply(op=op, args=(equal, Apply(op=differs, args=(one, other)))) if op is OPS["logical_or"]:
            pair = cell_and_extreme(equal)
            is_nan = differs is OPS["not_equal"] and one == other
            return pair if pair is not None and is_nan and pair[0] == one else None
        case Apply(op=op, args=(cell, Local(variable=extreme))) if op is OPS["equal"]:
            return cell, extreme
        case _:
            return None


def _found_together(searches: Sequence[_Search], before: Sequence[Stmt]) -> list[Stmt] | None:
    """All of `before`, with the positions found in the last loop; None if that does not find the extremes, or
    the cells may have changed since."""
    at = next((at for at in range(len(before) - 1, -1, -1) if isinstance(before[at], For)), None)
    between = [] if at is None else list(before[at + 1 :])
    known = values_of([stmt for stmt in between if not isinstance(stmt, Store)])
    if at is None or known is None or any(isinstance(stmt, Update) for stmt in between):
        return None
    loop, ahead = before[at], before[:at]
    written = written_in(between)
    if not isinstance(loop, For) or not _is_same_way(loop, searches[0].loop):
        return None
    steps: dict[Variable, _Step] = {}
    for search in searches:
        extreme = written_out(Local(search.extreme), known)
        step = _step(search, loop, extreme)
        if step is None or not step.starts(ahead, between):
            return None
        if not written.isdisjoint(storages_read((search.cell,))):
            return None
        if steps.setdefault(step.update.variable, step) is not step:
            return None
    places = {search.place for search in searches}
    body = chain.from_iterable(_with_position(stmt, steps) for stmt in loop.body)
    return [
        *_without(places, ahead),
        *(Define(step.place, constant(loop.lo.constant, step.place.dtype)) for step in steps.values()),
        replace(loop, body=tuple(body)),
        *_without(places, between),
        *(step.told() for step in steps.values()),
    ]


def _is_same_way(one: For, other: For) -> bool:
    return _is_in_order(one) and one.lo.is_constant and one.bounds == other.bounds and one.step == 1


@frozen
class _Step:
    """What finds an extreme in a loop, and with it the `place` for a search."""

    search: _Search
    loop: For
    update: Update
    place: Variable

    def starts(self, ahead: Sequence[Stmt], between: Sequence[Stmt]) -> bool:
        """Is the extreme one of the cells, so that there is a position?"""
        is_one = starts_from_all(self.update, ahead)
        nowhere = start_of(self.search.place, (*ahead, *between))
        return is_one and nowhere is not None and nowhere.value >= self.loop.hi.constant - 1

    def both(self) -> Iterator[Stmt]:
        """The step for the position, and the one for the extreme."""
        assert self.update.accum is not None
        dtype, symbol = self.update.variable.dtype, self.loop.symbol
        cell, extreme = Local(Variable("t", dtype)), Local(self.update.variable)
        is_beyond = beyond(self.update.accum, cell, extreme)
        here = Cast(Index(Affine.of(symbol)), self.place.dtype)
        yield Define(cell.variable, self.update.value)
        yield Update(self.place, one_of(is_beyond, here, Local(self.place)))
        yield replace(self.update, value=cell)

    def told(self) -> Define:
        """The position, as it was searched for."""
        wanted, place = self.search.place, Local(self.place)
        return Define(wanted, place if self.place.dtype is wanted.dtype else Cast(place, wanted.dtype))


def _step(search: _Search, loop: For, extreme: Expr) -> _Step | None:
    """The step of a loop that finds the extreme of a search; None if there is none."""
    updates = [stmt for stmt in loop.body if isinstance(stmt, Update) and Local(stmt.variable) == extreme]
    cell = substitute(search.cell, {search.loop.symbol: Affine.of(loop.symbol)})
    if len(updates) != 1 or updates[0].accum not in NOT_BEYOND:
        return None
    if not _is_of(updates[0], cell, loop) and not _is_of_stored(updates[0], cell, loop):
        return None
    is_near = loop.hi.constant <= 1 << 31
    dtype = I32 if updates[0].variable.dtype.itemsize < 8 and is_near else I64
    return _Step(search, loop, updates[0], Variable(search.place.hint, dtype))


def _is_of(update: Update, cell: Expr, loop: For) -> bool:
    """Is an extreme that of such a cell, in a loop that does nothing but accumulate?"""
    values = values_of(loop.body)
    return values is not None and written_out(update.value, values) == cell


def _is_of_stored(update: Update, cell: Expr, loop: For) -> bool:
    """Is an extreme that of a local which each iteration stores in such a cell of its own?"""
    inside = list(walk_statements(loop.body))
    if not isinstance(cell, Load) or not isinstance(update.value, Local):
        return False
    if not all(isinstance(stmt, (Comment, Define, For, Store, Update)) for stmt in inside):
        return False
    is_touched = update.variable in locals_read(inside) or inside.count(update) > 1
    stores = [stmt for stmt in inside if isinstance(stmt, Store) and written(stmt) is cell.tensor.storage]
    if is_touched or cell.tensor is not cell.tensor.storage or len(stores) != 1:
        return False
    (store,) = stores
    is_same = (store.tensor, store.index, store.value) == (cell.tensor, cell.index, update.value)
    if not is_same or store.accum is not None or loop.symbol not in symbols_of(cell.index):
        return False
    first, last = sorted(at for at, stmt in enumerate(loop.body) if stmt is store or stmt is update)
    between = walk_statements(loop.body[first + 1 : last])
    return update.value.variable not in locals_updated(between)


def _with_position(stmt: Stmt, steps: Mapping[Variable, _Step]) -> Iterator[Stmt]:
    """A statement of the loop, with what finds the position if it finds an extreme."""
    step = steps.get(stmt.variable) if isinstance(stmt, Update) else None
    if step is None:
        yield stmt
    else:
        yield from step.both()


def starts_from_all(update: Update, ahead: Sequence[Stmt]) -> bool:
    """Does what an extreme starts from leave all cells in question?"""
    dtype, accum = update.variable.dtype, update.accum
    identity = accum.identity(dtype) if accum is not None and accum.identity is not None else None
    start = start_of(update.variable, ahead)
    return start is not None and start.value == identity


def start_of(variable: Variable, body: Sequence[Stmt]) -> Const | None:
    """The constant that a variable begins with; None if it is set to anything else, or used."""
    start: Const | None = None
    for stmt in body:
        match stmt:
            case Define(variable=other, value=Const() as value) if other is variable:
                start = value
            case _:
                for inner in walk_statements((stmt,)):
                    is_set = isinstance(inner, (Define, Update)) and inner.variable is variable
                    if is_set or any(_mentions(value, (variable,)) for value in expressions(inner)):
                        return None
    return start


def _mentions(value: Expr, variables: Collection[Variable]) -> bool:
    return any(isinstance(node, Local) and node.variable in variables for node in walk(value))


def _without(variables: Collection[Variable], body: Sequence[Stmt]) -> Iterator[Stmt]:
    return (stmt for stmt in body if not (isinstance(stmt, Define) and stmt.variable in variables))
