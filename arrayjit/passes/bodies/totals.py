"""totals: loops of the user's that count, add up or compare whole numbers may go in any order.

    for k in sequential(0, 1000):                   s = c[()]
        for l in sequential(0, 1000):               for k in parallel(0, 1000):
            t = less(x[k, l], 1.0)                      for l in parallel(0, 1000):
            t1 = add(c[()], 2)              ->              t = less(x[k, l], 1.0)
            t2 = where(t, t1, c[()])                        s = reduce(add, s, where(t, 2, 0))
            c[()] = t2                              c[()] = s

Whole numbers wrap, so that sums of them have the same bits in any order, and so have extremes and bits that
are combined; float64s have if they count (`counts`). What a step does to a total, in a local or in a cell of
memory, is found by writing out the value that the total gets: a choice between two values of it is the total
with one of two numbers, of which one may be the neutral element; a choice by a comparison with a number is an
extreme. Of floats only zeros tell in which order they were compared: `extremes` looks at them once more. In
innermost loops in which nothing could be raised from the start, `parallel` has done so for locals that get no
choices. Where the order matters, an innermost loop that chose its totals by branches has choices among values
all the same: which branch is taken is guessed wrongly as often as not, and the totals are locals.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial

from ...frozen import frozen, slotted
from ...ir.code import Caps
from ...ir.conditions import one_of
from ...ir.dtype import BOOL, F64
from ...ir.expr import Apply, Cast, Const, Expr, Load, Local, Variable, constant, neutral
from ...ir.index import Affine, Symbol
from ...ir.loops import (
    Bind,
    Comment,
    Define,
    For,
    If,
    Kernel,
    LoopKind,
    Stmt,
    Store,
    Update,
    go_in_order,
    walk_statements,
    written,
)
from ...ir.ops import OPS, Op
from ...ir.tensor import Tensor
from ...ir.walk import (
    locals_updated,
    locals_used,
    outer_updates,
    rewrite_expressions,
    rewrite_loops,
    transform,
    walk,
)
from ..analysis.access import Range, Ranges, loads, reads
from ..analysis.carriers import carriers, upwards
from ..analysis.counts import counted, stands_behind
from ..analysis.inside import are_apart, exists
from ..analysis.trips import enter
from ..analysis.uses import counts
from ..analysis.values import LONG, written_out
from .branches import without_branches
from .extremes import EXTREMES, Zeros, places_apart

__all__ = ["Steps", "in_locals", "own_cells", "totals"]

WHERE, ADD, SUBTRACT = OPS["where"], OPS["add"], OPS["subtract"]
AND, OR, NOT = OPS["logical_and"], OPS["logical_or"], OPS["logical_not"]
BOTH = AND, OPS["bitwise_and"]
GREATEST, LEAST = OPS["maximum"], OPS["minimum"]
LARGER = OPS["greater"], OPS["greater_equal"]
SMALLER = OPS["less"], OPS["less_equal"]

MANY = 32
"""So many iterations are worth what is done beside them for an extreme of floats."""


def totals(kernel: Kernel, caps: Caps) -> Kernel:
    """Every loop that accumulates, and does nothing else that an order matters for, a parallel one."""
    if not go_in_order(kernel.body):
        return kernel
    ranges: dict[Symbol, Range] = {}
    notes: list[str] = []
    everywhere = cache(lambda: counts(kernel.body))
    places = cache(lambda: stands_behind(kernel.body))

    def rule(loop: For) -> Iterable[Stmt] | None:
        enter(loop, ranges)
        if loop.kind is not LoopKind.SEQUENTIAL:
            return None
        own = partial(_own, loop, everywhere, kernel.placement)
        return _in_any_order(loop, ranges, notes, own, lambda: places().get(loop.symbol, ()))

    return kernel.with_body(rewrite_loops(kernel.body, rule), notes)


def _own(loop: For, everywhere: Callable[[], Counter[Tensor]], temporaries: Container[Tensor]) -> set[Tensor]:
    """The temporaries that are used in a loop alone."""
    inside = counts((loop,))
    return {each for each, times in inside.items() if each in temporaries and times == everywhere()[each]}


def _in_any_order(
    loop: For,
    ranges: dict[Symbol, Range],
    notes: list[str],
    own: Callable[[], set[Tensor]],
    before: Callable[[], tuple[Stmt, ...]],
) -> list[Stmt] | None:
    """The loop as a parallel one that accumulates in locals, between what reads and what stores them, or with
    choices for branches; None where it is neither."""
    flat = _plain(loop, ranges)
    if flat is None:
        return None
    body, carried = _with_cells_in_locals(loop, flat, ranges, own)
    cells: dict[Variable, Load] = {total: cell for cell, total in carried.items()}

    def in_integers(total: Variable, steps: For) -> tuple[Variable, For] | None:
        return counted(total, cells.get(total, Local(total)), steps, before(), ranges)

    found = _accumulated(loop, body, ranges, notes, in_integers)
    chooses = any(isinstance(stmt, If) for stmt in loop.body)
    if found is None and (not chooses or any(isinstance(stmt, For) for stmt in flat)):
        return None
    return [
        *(Define(total, cell) for cell, total in carried.items()),
        *((replace(loop, body=body),) if found is None else found),
        *(Store(cell.tensor, cell.index, Local(total)) for cell, total in carried.items()),
    ]


def _with_cells_in_locals(
    loop: For, flat: tuple[Stmt, ...], ranges: Ranges, own: Callable[[], set[Tensor]]
) -> tuple[tuple[Stmt, ...], dict[Load, Variable]]:
    """A body with locals for the cells that the loop keeps to itself, and which of them it carries."""
    inside = list(walk_statements(flat))
    cells: dict[Load, Variable] = {
        cell: Variable(cell.tensor.label, cell.tensor.dtype) for cell in own_cells(loop, inside, ranges)
    }
    body, carried = tuple(in_locals(flat, cells)), dict(cells)
    for cell, variable in cells.items():
        made_anew = _made_anew(body, variable) if cell.tensor in own() else None
        if made_anew is not None:
            body = made_anew
            del carried[cell]
    return body, carried


def _accumulated(
    loop: For,
    body: tuple[Stmt, ...],
    ranges: dict[Symbol, Range],
    notes: list[str],
    in_integers: Callable[[Variable, For], tuple[Variable, For] | None],
) -> list[Stmt] | None:
    """A loop with that body as a parallel one; None where its order matters."""
    body, sought = places_apart(_named_once(body), loop)
    sums = dict.fromkeys(update.variable for update in outer_updates(list(walk_statements(body))))
    if not sums:
        return None
    in_order = body
    ops: dict[Variable, Op] = {}
    counts: dict[Variable, Variable] = {}
    for total in sums:
        steps = Steps(total)
        found = steps.body(steps.without_copies(body))
        if found is None:
            return None
        body = found
        if total.dtype.is_float and steps.op is ADD:
            counting = in_integers(total, replace(loop, body=body))
            if counting is None:
                return None
            counts[total], body = counting[0], counting[1].body
        elif steps.op is not None:
            ops[total] = steps.op
    zeros = Zeros.of(loop, in_order, ops)
    is_short = loop.trips is not None and loop.trips < MANY
    if zeros is not None and (is_short or not zeros.can_be_looked_at):
        return None
    new = _parallel(replace(loop, body=body), ranges, frozenset((*sums, *counts.values())))
    if new is None:
        return None
    notes += (f"totals: {total.hint} is accumulated in any order" for total in sums)
    starts = [Variable("start", one.extreme.dtype) for one in sought]
    return [
        *(Define(start, Local(one.extreme)) for one, start in zip(sought, starts, strict=True)),
        *(zeros.before() if zeros else ()),
        *(Define(count, constant(0, count.dtype)) for count in counts.values()),
        new,
        *(Update(total, Cast(Local(count), total.dtype), ADD) for total, count in counts.items()),
        *(zeros.after() if zeros else ()),
        *(stmt for one, start in zip(sought, starts, strict=True) for stmt in one.search(loop, start)),
    ]


def _plain(loop: For, ranges: dict[Symbol, Range]) -> tuple[Stmt, ...] | None:
    """The body of a nest of nothing but computations, with choices for branches."""
    for inner in walk_statements(loop.body):
        if isinstance(inner, For):
            enter(inner, ranges)
    body = without_branches(loop.body, ranges)
    if body is None:
        return None
    is_plain = all(
        isinstance(stmt, (Bind, Comment, Define, For, Store, Update)) for stmt in walk_statements(body)
    )
    return body if is_plain else None


def _parallel(loop: For, ranges: dict[Symbol, Range], sums: frozenset[Variable]) -> For | None:
    """The loop, and those in it, as parallel ones; None where its iterations disturb one another."""
    enter(loop, ranges)
    body = []
    for stmt in loop.body:
        is_open = isinstance(stmt, For) and stmt.kind is LoopKind.SEQUENTIAL
        inner = _parallel(stmt, ranges, sums) if isinstance(stmt, For) and is_open else None
        body.append(stmt if inner is None else inner)
    return upwards(replace(loop, body=tuple(body))) if carriers(loop, ranges, sums) == frozenset() else None


# Cells


def own_cells(loop: For, inside: Sequence[Stmt], ranges: Ranges) -> Iterator[Load]:
    """The cells that an iteration reads and writes, apart from all others of their arrays that it touches."""
    touched: dict[Tensor, set[tuple[Tensor, tuple[Affine, ...] | None, bool]]] = {}
    for stmt in inside:
        for tensor, index in reads(stmt):
            touched.setdefault(tensor.storage, set()).add((tensor, index, False))
        if isinstance(stmt, Store):
            touched.setdefault(stmt.tensor.storage, set()).add((stmt.tensor, stmt.index, bool(stmt.accum)))
    bound = {stmt.symbol for stmt in (loop, *inside) if isinstance(stmt, (Bind, For))}
    read = {(tensor, index) for stmt in inside for tensor, index in reads(stmt)}
    stores = dict.fromkeys((stmt.tensor, stmt.index) for stmt in inside if isinstance(stmt, Store))
    for tensor, index in stores:
        symbols = {symbol for position in index for symbol in position.symbols}
        is_alone = (tensor, index) in read and all(
            access == (tensor, index, False) or _are_apart(tensor, index, *access[:2], ranges)
            for access in touched[tensor.storage]
        )
        is_there = bool(loop.trips) or exists(tensor, index, ranges)
        if is_alone and is_there and symbols.isdisjoint(bound):
            yield Load(tensor, index)


def _are_apart(
    tensor: Tensor, index: tuple[Affine, ...], of: Tensor, other: tuple[Affine, ...] | None, ranges: Ranges
) -> bool:
    """Is a cell of an array another one than an access reaches?"""
    return tensor is of and other is not None and are_apart(index, other, ranges)


def in_locals(
    body: Iterable[Stmt],
    places: Mapping[Load, Variable] | Mapping[Local, Variable] | Mapping[Load | Local, Variable],
) -> Iterator[Stmt]:
    """A body with other locals in place of cells and locals."""

    found: dict[Expr, Variable] = dict(places.items())

    def rule(node: Expr) -> Expr:
        return Local(found[node]) if isinstance(node, (Load, Local)) and node in found else node

    for stmt in body:
        stmt = rewrite_expressions(stmt, lambda expr: transform(expr, rule))
        match stmt:
            case For():
                yield replace(stmt, body=tuple(in_locals(stmt.body, places)))
            case Store(tensor=tensor, index=index, value=value) if Load(tensor, index) in found:
                yield Update(found[Load(tensor, index)], value)
            case Update(variable=variable) if Local(variable) in found:
                yield replace(stmt, variable=found[Local(variable)])
            case _:
                yield stmt


def _made_anew(body: tuple[Stmt, ...], variable: Variable) -> tuple[Stmt, ...] | None:
    """A body that defines a local, if that gets its one value before it is read."""
    for at, stmt in enumerate(body):
        before, after = body[:at], body[at + 1 :]
        match stmt:
            case Update(variable=updated, value=value, accum=None) if updated is variable:
                again = (other.variable for other in walk_statements(after) if isinstance(other, Update))
                is_first = _is_free(value, (variable,)) and variable not in locals_used(before)
                return (
                    (*before, Define(variable, value), *after) if is_first and variable not in again else None
                )
            case For() if variable in locals_used((stmt,)):
                inner = _made_anew(stmt.body, variable)
                is_apart = variable not in locals_used((*before, *after))
                return (
                    (*before, replace(stmt, body=inner), *after) if inner is not None and is_apart else None
                )
            case _:
                pass
    return None


def _named_once(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """A body in which equal values have one name, as far as nothing is changed between them."""
    changed = locals_updated(walk_statements(body))
    names: dict[Expr, Variable] = {}
    others: dict[Local, Variable] = {}
    out: list[Stmt] = []
    for old in body:
        (stmt,) = in_locals((old,), others) if others else (old,)
        match stmt:
            case Define(variable=variable, value=value) if variable not in changed:
                if value in names:
                    others[Local(variable)] = names[value]
                    continue
                names[value] = variable
            case For():
                stmt = replace(stmt, body=_named_once(stmt.body))
            case _:
                pass
        if not isinstance(stmt, (Define, Comment)):
            changes = _Changes.by((stmt,))
            names = {value: name for value, name in names.items() if changes.leave(value)}
        out.append(stmt)
    return tuple(out)


# Steps


@slotted
class Steps:
    """The steps of a nest that accumulate in one `total`, all by one op."""

    total: Variable
    op: Op | None = None

    def without_copies(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """A body in which the total is not copied to a local, to be accumulated there and put back."""
        body = tuple(
            replace(stmt, body=self.without_copies(stmt.body)) if isinstance(stmt, For) else stmt
            for stmt in body
        )
        for at, stmt in enumerate(body):
            if not isinstance(stmt, Define) or stmt.value != Local(self.total):
                continue
            copy, back = stmt.variable, Update(self.total, Local(stmt.variable))
            end = next((end for end, other in enumerate(body) if other == back), at)
            between, after = body[at + 1 : end], body[end + 1 :]
            if end > at and self.total not in locals_used(between) and copy not in locals_used(after):
                there = in_locals(between, {Local(copy): self.total})
                return self.without_copies((*body[:at], *there, *after))
        return body

    def body(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...] | None:
        """A body whose steps accumulate, each where the total got its value; None if there is more to it."""
        out: list[Stmt] = []
        made: dict[Variable, Expr] = {}  # what depends on the total, written out
        past: set[Variable] = set()  # what depends on a total of before
        new: Stmt | None
        since: list[Stmt] = []  # what stands after the first of what depends on it
        for stmt in body:
            used = locals_used((stmt,))
            is_apart = self.total not in used and used.isdisjoint(made)
            if not used.isdisjoint(past):
                return None
            match stmt:
                case Define(variable=variable, value=value) if not is_apart:
                    made[variable] = written_out(value, made)
                    if sum(1 for _ in walk(made[variable])) > LONG:
                        return None
                    continue
                case Update(variable=variable, value=value) if variable is self.total:
                    new = self._step(stmt, made)
                    if new is None or not _is_still(new.value, since):
                        return None
                    past |= {name for name in made if value != Local(name)}
                    made, since = {name: Local(variable) for name in made if value == Local(name)}, []
                case For() if not is_apart and used.isdisjoint(made):
                    inner = self.body(stmt.body)
                    if inner is None:
                        return None
                    past |= set(made)
                    made, since, new = {}, [], replace(stmt, body=inner)
                case _ if is_apart:
                    since += [stmt] if made else []
                    new = stmt
                case _:
                    return None
            out.append(new)
        return tuple(out)

    def _step(self, update: Update, made: Mapping[Variable, Expr]) -> Update | None:
        """An update as a step that accumulates."""
        if update.accum is None:
            found = _as_step(self.total, written_out(update.value, made))
        else:
            is_step = _is_exact(update.accum, self.total) and not update.contract
            found = (
                (update.accum, update.value)
                if is_step and _is_free(update.value, (self.total, *made))
                else None
            )
        if found is None or self.op not in (None, found[0]):
            return None
        self.op = found[0]
        return Update(self.total, found[1], self.op)


def _is_free(value: Expr, variables: Collection[Variable]) -> bool:
    return not any(isinstance(node, Local) and node.variable in variables for node in walk(value))


def _is_still(value: Expr, since: Iterable[Stmt]) -> bool:
    """Has nothing that a value reads been changed by these statements?"""
    return _Changes.by(since).leave(value)


@frozen
class _Changes:
    """What statements change."""

    variables: frozenset[Variable]
    storages: frozenset[Tensor | None]

    @staticmethod
    def by(stmts: Iterable[Stmt]) -> _Changes:
        inside = list(walk_statements(tuple(stmts)))
        variables = frozenset(locals_updated(inside))
        return _Changes(variables, frozenset(map(written, inside)))

    def leave(self, value: Expr) -> bool:
        """Whether nothing that a value reads is changed."""
        return _is_free(value, self.variables) and not any(
            tensor.storage in self.storages for tensor, _ in loads(value)
        )


# Values


Step = tuple[Op, Expr]
"""An op, and what it combines the total with."""


def _as_step(total: Variable, value: Expr) -> Step | None:
    """The value that a total gets, as a step; None if it is none, or nothing but the total."""
    match value:
        case Apply(op=op, args=(condition, one, other)) if op is WHERE:
            return _chosen(total, condition, one, other)
        case Apply(op=op, args=(one, other), dtype=dtype) if dtype is total.dtype:
            if op is SUBTRACT and dtype.is_integer and _is_free(other, (total,)):
                negative = Apply(SUBTRACT, (constant(0, dtype), other), dtype)
                return _combined(total, ADD, one, negative)
            if not _is_exact(op, total):
                return None
            first, second = (other, one) if _is_free(one, (total,)) else (one, other)
            return _combined(total, op, first, second) if _is_free(second, (total,)) else None
        case _:
            return None


def _is_exact(op: Op, total: Variable) -> bool:
    """Does the total have the same bits in whatever order the op combines it? A float64 has if it counts."""
    may_count = op is ADD and total.dtype is F64
    is_exact = may_count or not total.dtype.is_inexact
    return op.associative and op.commutative and op.identity is not None and is_exact


def _combined(total: Variable, op: Op, value: Expr, added: Expr) -> Step | None:
    """What the total was made before, combined with one more."""
    if value == Local(total):
        return op, added
    before = _as_step(total, value)
    return None if before is None or before[0] is not op else (op, Apply(op, (before[1], added), total.dtype))


def _chosen(total: Variable, condition: Expr, one: Expr, other: Expr) -> Step | None:
    """A choice between two values of the total."""
    if not _is_free(condition, (total,)):
        return _among_some(total, condition, one, other) or _extreme(total, condition, one, other)
    if total.dtype is BOOL and one == Local(total) and isinstance(other, Const):
        return _chosen(total, Apply(NOT, (condition,), BOOL), other, one)
    if total.dtype is BOOL and other == Local(total) and isinstance(one, Const):
        return (OR, condition) if one.value else (AND, Apply(NOT, (condition,), BOOL))
    steps = [None if value == Local(total) else _as_step(total, value) for value in (one, other)]
    ops = {step[0] for step in steps if step is not None}
    if len(ops) != 1 or any(
        s is None and value != Local(total) for s, value in zip(steps, (one, other), strict=True)
    ):
        return None
    (op,) = ops
    then, otherwise = (neutral(op, total.dtype) if step is None else step[1] for step in steps)
    return op, one_of(condition, then, otherwise)


def _among_some(total: Variable, condition: Expr, one: Expr, other: Expr) -> Step | None:
    """A choice between two values of the total where something else holds as well."""
    match condition:
        case Apply(op=op, args=(left, right)) if op in BOTH and condition.dtype is BOOL:
            apart, test = (left, right) if _is_free(left, (total,)) else (right, left)
            if _is_free(apart, (total,)):
                return _chosen(total, apart, one_of(test, one, other), other)
            return None
        case _:
            return None


def _extreme(total: Variable, condition: Expr, one: Expr, other: Expr) -> Step | None:
    """The total or another number, whichever a comparison of the two chooses; of floats the total, where one
    of them is none."""
    is_float = total.dtype.is_float and not total.dtype.is_small  # which `expand` takes for other numbers
    is_known = total.dtype.is_integer or (is_float and other == Local(total))
    match condition:
        case Apply(op=op, args=(left, right)) if is_known and {left, right} == {one, other}:
            is_greatest = op in LARGER if left == one else op in SMALLER
            is_least = op in SMALLER if left == one else op in LARGER
            value = other if one == Local(total) else one
            is_one = Local(total) in (one, other) and _is_free(value, (total,))
            greatest, least = EXTREMES if total.dtype.is_float else (GREATEST, LEAST)
            accum = greatest if is_greatest else least if is_least else None
            return (accum, value) if accum is not None and is_one else None
        case _:
            return None
