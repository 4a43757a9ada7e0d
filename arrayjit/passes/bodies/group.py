"""group: where an iteration counts in one round at most, a round meets those that count in it, and no others.

                                                    for i in parallel(0, 9000):
                                                        group[i] = (the round that x[i] is a label of, from 1)
                                                    (first[b + 1] = where group b begins)
    for k in parallel(0, 50):                       for i in sequential(0, 9000):
        s = 0.0                                         b = group[i]
        for i in parallel(0, 9000):                     ys[first[b + 1]] = y[i]
            t = x[i] == k                  ->           first[b + 1] = first[b + 1] + 1
            s = add(s, where(t, y[i], -0.0))        for k in parallel(0, 50):
        z[k] = s                                        s = 0.0
                                                        for j in parallel(first[k + 1], first[k + 2]):
                                                            s = add(s, ys[j])
                                                        z[k] = s

What accumulates is then added up in the order in which the mask selects it. The mask is a comparison of a
label with the number of the round, or of a value with borders that rise from round to round: `keys`. Whether
borders rise shows when the program runs; where they do not, the loop is as it was. Sums of groups, histograms
with weights, profiles over rings are such loops. The iterations are put in order by counting them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from itertools import chain

from ...frozen import frozen
from ...ir.dtype import BOOL, I32, I64, DType, named
from ...ir.expr import (
    Apply,
    Cast,
    Const,
    Expr,
    Gather,
    Index,
    Load,
    Local,
    Variable,
    constant,
    dtype_of,
    neutral,
)
from ...ir.index import Affine, Symbol
from ...ir.loops import (
    Bind,
    Define,
    For,
    If,
    Kernel,
    LoopKind,
    Place,
    PlaceKind,
    Stmt,
    Store,
    Update,
    nested,
    walk_statements,
)
from ...ir.ops import OPS
from ...ir.tensor import Tensor
from ...ir.walk import (
    locals_defined,
    locals_read,
    nodes_in,
    rewrite_bodies,
    rewrite_expressions,
    substitute,
    substitute_statements,
    transform,
    transform_statements,
)
from ..analysis.access import effects, loads, mentioned
from ..analysis.copies import copy_body
from ..analysis.loopwise import Site, loopwise
from ..analysis.repeats import HEAVY, weight
from ..analysis.uses import uses_of_temporaries
from ..analysis.values import Values, definitions, values_of, written_out
from .keys import Key, key_of
from .selections import Selection, selection_of, starts_at_zero

__all__ = ["group"]

ROUNDS = 32
"""Fewer rounds are through sooner than the groups are found,"""

SELECTING = 8
"""but for those that select positions, one after the other."""

ITERATIONS = 512, 1 << 31
"""Fewer are through sooner as well; and the numbers of more take more than 32 bits."""

NUMBERS = named("u8"), named("u16"), named("u32")
"""What may hold the number of a group, the first that is large enough: caches that it is read from twice also
hold what is put in order."""

ANDS = OPS["logical_and"], OPS["bitwise_and"]
TRUE = Const(True, BOOL)
_Symbols = dict[tuple[tuple[Affine, Affine], ...], tuple[Symbol, ...]]
REASON = "which iterations count in which round"


@loopwise
def group(loop: For, site: Site) -> Iterable[Stmt] | None:
    """Every such loop with groups of iterations. Not inside loops whose iterations are independent: they
    would have to share the groups."""
    found = _grouped(loop, site.kernel)
    if found is None:
        return None if loop.kind is LoopKind.SEQUENTIAL else (loop,)
    site.placement.update(dict.fromkeys(found.tables, Place(PlaceKind.ARENA, REASON)))
    site.notes.append(f"group: a round of {found.rounds.symbol.hint} meets what counts in it")
    return found.statements()


@frozen
class _Nest:
    """Loops inside of a round that only accumulate, or select, whose iterations change nothing unless all
    `masks` hold. These are written out, over `symbols` instead of the loops' own."""

    loops: tuple[For, ...]
    symbols: tuple[Symbol, ...]
    values: Values
    masks: tuple[Expr, ...]
    selection: Selection | None = None

    def among(self, masks: Sequence[Expr]) -> tuple[Stmt, ...]:
        """What is done for an iteration, over `symbols`, where these masks hold."""
        names = {loop.symbol: Affine.of(one) for loop, one in zip(self.loops, self.symbols, strict=True)}
        known: set[Variable] = set()

        def node(expr: Expr) -> Expr:
            match expr:
                case Local(variable=variable) if variable in known:
                    return TRUE
                case Apply(dtype=dtype) if (
                    dtype is BOOL and substitute(self.written_out(expr), names) in masks
                ):
                    return TRUE
                case Apply():
                    return _known(expr)
                case _:
                    return expr

        body: list[Stmt] = []
        for stmt in self.loops[-1].body:
            stmt = rewrite_expressions(stmt, lambda value: transform(value, node))
            if isinstance(stmt, Define) and stmt.value == TRUE:
                known.add(stmt.variable)
            else:
                body.append(stmt)
        return substitute_statements(tuple(body), names)

    def written_out(self, value: Expr) -> Expr:
        return written_out(value, self.values)


@frozen
class _Grouped:
    """A loop over `rounds`, and the bodies of those nests in it that meet only what counts in a round, by the
    identity of their outermost loops; `loops` are like theirs, over the symbols of the key. `number` has the
    group of each iteration: those of the rounds count from 1, and are between two that count in no round. The
    `columns` have what is read for an iteration, by groups; `first` has where a group begins."""

    rounds: For
    bodies: Mapping[int, tuple[Stmt, ...]]
    key: Key
    loops: tuple[For, ...]
    number: Tensor
    columns: Mapping[Expr, Tensor]
    first: Tensor

    @property
    def tables(self) -> tuple[Tensor, ...]:
        return self.number, *self.columns.values(), self.first, *self.key.tables

    def statements(self) -> tuple[Stmt, ...]:
        """What stands for the loop."""
        start, stop = (self.symbol(name, self.number.size + 1) for name in ("start", "stop"))
        placed = (self.placed(),) if self.columns else ()
        own = Affine.of(self.rounds.symbol) - self.rounds.lo + (1 if placed else 2)
        binds = Bind(start, Load(self.first, (own,))), Bind(stop, Load(self.first, (own + 1,)))

        def inner(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
            return tuple(chain.from_iterable(map(within, body)))

        def within(stmt: Stmt) -> Iterator[Stmt]:
            found = self.bodies.get(id(stmt))
            if found is None:
                yield rewrite_bodies(stmt, inner)
            else:
                yield from self.met(found, Affine.of(start), Affine.of(stop))

        rounds = replace(self.rounds, body=(*binds, *inner(self.rounds.body)))
        fast = copy_body((self.numbered(), *self.counted(), *placed, rounds), {}, {})
        condition = self.key.condition
        if condition is None:
            return fast
        return *self.key.prepared(self.rounds), If(Local(condition), fast, (self.rounds,))

    def met(self, body: tuple[Stmt, ...], start: Affine, stop: Affine) -> Iterator[Stmt]:
        """What is done for all iterations from one place in the columns to another. They are counted without
        looking at them."""
        place = Symbol("j")
        here = (Affine.of(place),)
        numbers = {
            loop.symbol: Cast(Load(column, here), I64)
            for loop in self.loops
            if (column := self.columns.get(Index(Affine.of(loop.symbol)))) is not None
        }

        def node(expr: Expr) -> Expr:
            column = self.columns.get(expr) if isinstance(expr, Load) else None
            return _gathered(expr, numbers) if column is None else Load(column, here)

        counts = [stmt for stmt in body if isinstance(stmt, Update) and _counts(stmt)]
        rest = tuple(stmt for stmt in body if stmt not in counts)
        for count in counts:
            yield replace(count, value=Cast(Index(stop - start), count.variable.dtype))
        if any(isinstance(stmt, Update) for stmt in rest):
            selects = any(isinstance(stmt, Store) for stmt in rest)
            kind = LoopKind.SEQUENTIAL if selects else LoopKind.PARALLEL
            yield For(place, start, stop, transform_statements(rest, node), kind)

    def numbered(self) -> Stmt:
        """Finds the group of each iteration."""
        into = Variable("group", I64)
        store = Store(self.number, self.here, Cast(Local(into), self.number.dtype))
        return self.over((*self.key.number(self.rounds, into), store), LoopKind.PARALLEL)

    def counted(self) -> tuple[Stmt, ...]:
        """Counts what is in each group, two cells further on, and adds the counts up: the cell of `first`
        after a group's own is then where it begins."""
        end = self.first.shape[0]
        group, clear, along = self.symbol("b", end.constant - 2), Symbol("b"), Symbol("b")
        zero = Store(self.first, (Affine.of(clear),), constant(0, I64))
        count = (self.group(group), self.raised(Affine.of(group) + 2, constant(1, I64)))
        before = Load(self.first, (Affine.of(along) - 1,))
        return (
            For(clear, Affine.of(0), end, (zero,), LoopKind.PARALLEL),
            self.over(count, LoopKind.SEQUENTIAL),
            For(along, Affine.of(1), end, (self.raised(Affine.of(along), before),)),
        )

    def placed(self) -> Stmt:
        """Fills the columns: what is read for an iteration goes where the next of its group belongs. The
        cells of `first` grow to where the next group begins."""
        group = self.symbol("b", self.first.shape[0].constant - 2)
        place, after = self.symbol("p", self.number.size), Affine.of(group) + 1
        puts = tuple(
            Store(column, (Affine.of(place),), value if isinstance(value, Load) else Cast(value, I32))
            for value, column in self.columns.items()
        )
        found = Bind(place, Load(self.first, (after,)))
        body: tuple[Stmt, ...] = (self.group(group), found, *puts, self.raised(after, constant(1, I64)))
        return self.over(body, LoopKind.SEQUENTIAL)

    @property
    def here(self) -> tuple[Affine, ...]:
        return tuple(Affine.of(loop.symbol) - loop.lo for loop in self.loops)

    def group(self, symbol: Symbol) -> Bind:
        return Bind(symbol, Cast(Load(self.number, self.here), I64))

    def over(self, body: tuple[Stmt, ...], kind: LoopKind) -> Stmt:
        """Loops over all iterations."""
        return nested(self.loops, body, kind)[0]

    def raised(self, at: Affine, value: Expr) -> Store:
        """Adds to a cell of `first`."""
        return Store(self.first, (at,), Apply(OPS["add"], (Load(self.first, (at,)), value), I64))

    @staticmethod
    def symbol(hint: str, end: int) -> Symbol:
        return Symbol(hint, lower=0, upper=end)


def _known(value: Apply) -> Expr:
    """The same without conditions that are true."""
    if value.op is OPS["where"] and value.args[0] == TRUE:
        return value.args[1]
    if value.op not in ANDS or TRUE not in value.args:
        return value
    return next((part for part in value.args if part != TRUE), TRUE)


def _counts(update: Update) -> bool:
    """Does an update add one?"""
    is_one = update.value == Cast(TRUE, update.variable.dtype)
    return is_one and update.accum is OPS["add"] and update.variable.dtype.is_integer


def _gathered(node: Expr, numbers: Mapping[Symbol, Expr]) -> Expr:
    """A node with numbers that are computed instead of symbols."""
    match node:
        case Load(tensor=tensor, index=index) if any(one in numbers for at in index for one in at.symbols):
            return Gather(tensor, tuple(_computed(at, numbers) for at in index))
        case Index(value=value):
            return _computed(value, numbers)
        case _:
            return node


def _computed(position: Affine, numbers: Mapping[Symbol, Expr]) -> Expr:
    still = Affine(tuple(term for term in position.terms if term[1] not in numbers), position.offset)
    parts = [
        numbers[one] if factor == 1 else Apply(OPS["multiply"], (constant(factor, I64), numbers[one]), I64)
        for factor, one in position.terms
        if one in numbers
    ]
    if still != Affine.of(0) or not parts:
        parts.append(Index(still))
    return reduce(lambda one, other: Apply(OPS["add"], (one, other), I64), parts)


def _grouped(rounds: For, kernel: Kernel) -> _Grouped | None:
    """A loop with a key of groups, if it has enough rounds for that; None if it has no such key."""
    if rounds.step != 1 or not rounds.lo.is_constant or (rounds.trips or 0) < SELECTING:
        return None
    found = list(_nests(rounds.body, definitions(rounds.body), _never_below_zero(rounds.body), {}))
    nests = [nest for nest in found if nest.selection is None or _may_skip(nest, found, rounds, kernel)]
    enough = SELECTING if any(nest.selection is not None for nest in nests) else ROUNDS
    if rounds.trips is None or rounds.trips < enough:
        return None
    for first in nests:
        key = key_of(first.masks, rounds, first.symbols)
        if key is not None and _stands_before(key, rounds):
            return _with_key(key, rounds, first, nests)
    return None


def _may_skip(nest: _Nest, others: Sequence[_Nest], rounds: For, kernel: Kernel) -> bool:
    """Does nobody look at what a nest that selects would not write, if it met only what it selects?"""
    assert nest.selection is not None
    counts = {
        update.variable
        for other in others
        if other.symbols == nest.symbols and other.masks == nest.masks
        for update in other.loops[-1].body
        if isinstance(update, Update) and _adds_condition(update, other)
    }
    counts = {count for count in counts if starts_at_zero(count, rounds.body)}
    uses = uses_of_temporaries(kernel).get(nest.selection.store.tensor.storage)
    return uses is not None and nest.selection.is_read_as_far(rounds, counts, uses)


def _adds_condition(update: Update, nest: _Nest) -> bool:
    """Does an update add one at most, and only where the masks of its nest hold?"""
    match nest.written_out(update.value):
        case Cast(arg=condition) if dtype_of(condition) is BOOL:
            return update.accum is OPS["add"]
        case _:
            return False


def _with_key(key: Key, rounds: For, first: _Nest, nests: Sequence[_Nest]) -> _Grouped | None:
    """The loop with groups by a key; None if it is too long to be there twice."""
    if key.condition is not None and weight(rounds.body) > HEAVY:
        return None
    bodies = {
        id(nest.loops[0]): nest.among(key.masks)
        for nest in nests
        if nest.symbols == first.symbols and all(mask in nest.masks for mask in key.masks)
    }
    numbers = next(dtype for dtype in NUMBERS if (rounds.trips or 0) + 2 <= 1 << dtype.bits)
    number = Tensor("group", tuple(loop.hi - loop.lo for loop in first.loops), numbers)
    size = (Affine.of(number.size),)
    read = _read(chain.from_iterable(bodies.values()), rounds, first.symbols)
    columns: dict[Expr, Tensor] = {value: Tensor(_name(value), size, _type(value)) for value in read}
    loops = tuple(replace(loop, symbol=one) for loop, one in zip(first.loops, first.symbols, strict=True))
    begins = Tensor("first", (Affine.of((rounds.trips or 0) + 4),), I64)
    return _Grouped(rounds, bodies, key, loops, number, columns, begins)


def _read(body: Iterable[Stmt], rounds: For, symbols: Sequence[Symbol]) -> Iterator[Load | Index]:
    """What statements need for an iteration of the loops over some symbols: cells that are its own whatever
    the round, and else its numbers."""
    written = effects(rounds.body, {}).writes
    for node in nodes_in(body):
        match node:
            case Load(tensor=tensor, index=positions) if tensor.storage not in written:
                used = {one for position in positions for one in position.symbols}
                if used and used.issubset(symbols):
                    yield node
                    continue
            case Load(index=positions):
                used = {one for position in positions for one in position.symbols}
            case Index(value=position):
                used = set(position.symbols)
            case _:
                continue
        yield from (Index(Affine.of(one)) for one in symbols if one in used)


def _name(value: Load | Index) -> str:
    return value.tensor.label if isinstance(value, Load) else "order"


def _type(value: Load | Index) -> DType:
    return value.tensor.dtype if isinstance(value, Load) else I32


def _stands_before(key: Key, rounds: For) -> bool:
    """May what the key compares be computed before the loop?"""
    masks = tuple(Define(Variable("t", BOOL), mask) for mask in key.masks)
    inside = list(walk_statements(rounds.body))
    own = {stmt.symbol for stmt in inside if isinstance(stmt, (For, Bind))}
    made = {stmt.variable for stmt in inside if isinstance(stmt, (Define, Update))}
    written = effects(rounds.body, {}).writes
    return (
        own.isdisjoint(mentioned(masks))
        and made.isdisjoint(locals_read(masks))
        and all(tensor.storage not in written for mask in key.masks for tensor, _ in loads(mask))
    )


def _nests(
    body: tuple[Stmt, ...], defined: Mapping[Variable, Define], sums: frozenset[Variable], symbols: _Symbols
) -> Iterator[_Nest]:
    """The nests of a body, outside of loops that are none; `defined` is what a round defines, `sums` what
    zeros of either sign add nothing to, `symbols` those for loops with the same ends."""
    for stmt in body:
        if isinstance(stmt, For):
            loops, selection = _perfect(stmt), selection_of(stmt)
            nest = None if loops is None else _nest(loops, defined, sums, symbols)
            if selection is not None:
                nest = _selecting(selection, defined, symbols)
            if nest is not None:
                yield nest
            else:
                yield from _nests(stmt.body, defined, sums, symbols)


def _perfect(loop: For) -> tuple[For, ...] | None:
    """Loops that have nothing but one another, and are independent."""
    loops: list[For] = []
    body: tuple[Stmt, ...] = (loop,)
    while len(body) == 1 and isinstance(inner := body[0], For):
        if (
            inner.kind is not LoopKind.PARALLEL
            or inner.step != 1
            or not inner.lo.is_constant
            or not inner.trips
        ):
            return None
        loops.append(inner)
        body = inner.body
    return tuple(loops) if math.prod(one.trips or 0 for one in loops) in range(*ITERATIONS) else None


def _nest(
    loops: tuple[For, ...], defined: Mapping[Variable, Define], sums: frozenset[Variable], symbols: _Symbols
) -> _Nest | None:
    body = loops[-1].body
    updates = [stmt for stmt in body if isinstance(stmt, Update)]
    if not updates or not all(_may_be_masked(update) for update in updates):
        return None
    values = values_of((*_needed(body, defined), *body))
    if values is None:
        return None
    ends = tuple((loop.lo, loop.hi) for loop in loops)
    names = symbols.setdefault(ends, tuple(Symbol(loop.symbol.hint) for loop in loops))
    renamed = {loop.symbol: Affine.of(name) for loop, name in zip(loops, names, strict=True)}
    found = [_masks(update, values, update.variable in sums) for update in updates]
    masks = [mask for mask in found[0] if all(mask in others for others in found)]
    return _Nest(loops, names, values, tuple(substitute(mask, renamed) for mask in masks)) if masks else None


def _selecting(selection: Selection, defined: Mapping[Variable, Define], symbols: _Symbols) -> _Nest | None:
    loop = selection.loop
    values = values_of(_needed(loop.body, defined))
    if values is None or loop.trips not in range(*ITERATIONS):
        return None
    (name,) = symbols.setdefault(((loop.lo, loop.hi),), (Symbol(loop.symbol.hint),))
    masks = _conjuncts(written_out(selection.condition, values))
    renamed = {loop.symbol: Affine.of(name)}
    return _Nest((loop,), (name,), values, tuple(substitute(mask, renamed) for mask in masks), selection)


def _needed(body: Sequence[Stmt], defined: Mapping[Variable, Define]) -> Sequence[Define]:
    """The definitions around a body that it needs, in order."""
    own = locals_defined(body)
    needed: set[Variable] = set()
    pending = list(locals_read(body))
    while pending:
        variable = pending.pop()
        if variable in defined and variable not in needed | own:
            needed.add(variable)
            pending += locals_read((defined[variable],))
    return [stmt for variable, stmt in defined.items() if variable in needed]


def _may_be_masked(update: Update) -> bool:
    """Is it worth while to write out what an update adds?"""
    match update.value:
        case Local() | Cast():
            return True
        case Apply(op=op):
            return op is OPS["where"]
        case _:
            return False


def _masks(update: Update, values: Values, is_sum: bool) -> list[Expr]:
    """All of these hold wherever an update changes a variable; `is_sum` says that zeros of either sign add
    nothing to it."""
    value = written_out(update.value, values)
    assert update.accum is not None
    nothing = [neutral(update.accum, update.variable.dtype)]
    if is_sum:
        nothing.append(constant(0, update.variable.dtype))
    match value:
        case Apply(op=op, args=(condition, _, Const() as other)) if op is OPS["where"] and other in nothing:
            return list(_conjuncts(condition))
        case Cast(arg=condition) if dtype_of(condition) is BOOL and update.accum is OPS["add"]:
            return list(_conjuncts(condition))
        case _:
            return []


def _conjuncts(condition: Expr) -> Iterator[Expr]:
    match condition:
        case Apply(op=op, args=(one, other)) if op in ANDS:
            yield from _conjuncts(one)
            yield from _conjuncts(other)
        case _:
            yield condition


def _never_below_zero(body: tuple[Stmt, ...]) -> frozenset[Variable]:
    """Variables that start at zero, to which all else is added: they never are -0.0."""
    inside = list(walk_statements(body))
    starts = (stmt for stmt in inside if isinstance(stmt, Define))
    zeros = {stmt.variable for stmt in starts if stmt.value == constant(0, stmt.variable.dtype)}
    updates = (stmt for stmt in inside if isinstance(stmt, Update))
    return frozenset(zeros - {stmt.variable for stmt in updates if stmt.accum is not OPS["add"]})
