"""lower: assignments become loop nests over scalars; every nest keeps NumPy's meaning by itself.

    s[i] = add(x[i, j])   for i in 8, j in 4        for i in parallel(0, 8):
                                                        s0 = 0.0
                                                        for j in parallel(0, 4):
                                                            s0 += x[i, j]
                                                        s[i] = s0

NumPy reads the whole right side before it writes. Where the right side reads other cells of the memory
being written, the loops run in a direction in which every read comes before the write of its cell, or
else the value goes through a temporary, which is noted with the user's line.

Afterwards no symbol is introduced twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from enum import Enum
from typing import TypeVar

from ...errors import UnsupportedError
from ...frozen import replace, slotted
from ...ir.assign import Assign, Bind, Branch, Check, Computation, Loop, Note, Statement, While
from ...ir.code import Caps
from ...ir.conditions import opposite
from ...ir.dtype import BOOL
from ...ir.expr import Const, Expr, Load, Local, Variable
from ...ir.index import Affine, Symbol
from ...ir.loops import Comment, Define, For, If, Kernel, LoopKind, Raise, Stmt, Store, Update
from ...ir.loops import While as WhileStmt
from ...ir.ops import op
from ...ir.tensor import Tensor
from ...ir.walk import substitute
from ..analysis.access import Distance, Range, Ranges, distances, is_injective, loads, loop_range, region
from ..analysis.trips import at_points
from .early import REACH, is_defined, looked_up

__all__ = ["lower"]

Loops = tuple[tuple[Symbol, Affine], ...]
Values = Mapping[Symbol, Affine]
Distances = Mapping[Symbol, Distance]

_Looping = TypeVar("_Looping", Assign, Check)

ZERO = Affine.of(0)


class Direction(Enum):
    """In which order the iterations of a loop must be taken."""

    FREE = "free"
    FORWARD = "forward"
    BACKWARD = "backward"


def lower(computation: Computation, caps: Caps) -> Kernel:
    """The computation as one kernel, one loop nest per assignment, nothing optimised."""
    lowering = _Lowering()
    body = tuple(lowering.body(computation.body))
    return Kernel(
        computation.name, computation.params, body, notes=tuple(lowering.notes), logged=computation.logged
    )


@slotted
class _Lowering:
    """`values` replace the symbols that loops and bound numbers have in the computation, `ranges` are those
    of the loops."""

    notes: list[str] = field(default_factory=list)
    taken: set[Symbol] = field(default_factory=set)
    values: dict[Symbol, Affine] = field(default_factory=dict)
    ranges: dict[Symbol, Range] = field(default_factory=dict)

    def body(self, body: tuple[Statement, ...]) -> Iterator[Stmt]:
        raises: list[Raise] = []
        for at, statement in enumerate(body):
            if isinstance(statement, Check):
                start = at - len(raises)
                yield from self.check(statement, raises, body[max(0, start - REACH) : start + 1])
                continue
            yield from raises
            raises.clear()
            match statement:
                case Assign():
                    yield from self.assign(self.own_loops(statement, self.values), self.ranges)
                case Bind(symbol=symbol, value=value):
                    value = substitute(value, self.values)
                    yield Bind(self.introduced(symbol), value, statement.loc)
                case Loop():
                    yield self.loop(statement)
                case Branch(condition=condition, body=inner, orelse=other):
                    condition = substitute(condition, self.values)
                    yield If(condition, tuple(self.body(inner)), tuple(self.body(other)))
                case While(test=test, condition=condition, body=inner):
                    first = tuple(self.body(test))
                    yield WhileStmt(first, substitute(condition, self.values), tuple(self.body(inner)))
                case Note(text=text):
                    yield Comment(text)
        yield from raises

    def check(self, check: Check, raises: list[Raise], before: Sequence[Statement]) -> Iterator[Stmt]:
        """All conditions first, then one jump out of the kernel, so that the loops can be vectorised. Where
        checks stand together, jumps wait for later conditions that may be asked whatever comes out before:
        then their loops become one. What is looked up before, up to the first of them, they may look up."""
        own = self.own_loops(check, self.values)
        if raises and not (is_defined(own, self.ranges) and self.are_known(check, before)):
            yield from raises
            raises.clear()
        holds: Expr = own.condition
        if own.loops:
            every = Variable("ok", BOOL)
            yield Define(every, Const(True, BOOL))
            yield from _nested(own.loops, (Update(every, own.condition, op("logical_and")),))
            holds = Local(every)
        raises.append(Raise(opposite(holds), own.exception, own.message, own.loc))

    def are_known(self, check: Check, before: Sequence[Statement]) -> bool:
        """Is all that it looks up also looked up before?"""
        asked = looked_up((check,), self.ranges)
        return not asked or asked.keys() <= looked_up(before, self.ranges).keys()

    def loop(self, loop: Loop) -> For:
        lo, hi = loop.lo.substitute(self.values), loop.hi.substitute(self.values)
        symbol = self.introduced(loop.symbol)
        known = loop_range(lo, hi, loop.step, self.ranges)
        if known is not None:
            self.ranges[symbol] = known
        return For(symbol, lo, hi, tuple(self.body(loop.body)), step=loop.step)

    def introduced(self, symbol: Symbol) -> Symbol:
        """What stands for a symbol from here to where it goes out of scope."""
        own = self.fresh(symbol)
        if own is not symbol:
            self.values[symbol] = Affine.of(own)
        return own

    def fresh(self, symbol: Symbol) -> Symbol:
        """The symbol, or another one if it is taken."""
        if symbol in self.taken:
            symbol = Symbol(symbol.hint, symbol.kind, symbol.lower, symbol.upper)
        self.taken.add(symbol)
        return symbol

    def own_loops(self, statement: _Looping, values: Values) -> _Looping:
        """The statement over symbols of its own, without loops of one iteration."""
        known = dict(values)
        loops: list[tuple[Symbol, Affine]] = []
        for symbol, extent in statement.loops:
            if extent.is_constant and extent.offset == 1:
                known[symbol] = ZERO
                continue
            own = self.fresh(symbol)
            if own is not symbol:
                known[symbol] = Affine.of(own)
            loops.append((own, extent.substitute(values)))
        return _substituted(replace(statement, loops=tuple(loops)), known)

    def assign(self, stmt: Assign, ranges: Ranges) -> Iterator[Stmt]:
        if stmt.accum is None and any(extent.is_constant and extent.offset <= 0 for _, extent in stmt.loops):
            return
        ranges = at_points(stmt.loops, ranges)
        outer, inner = (stmt.loops, ()) if stmt.accum is None else (stmt.cell_loops, stmt.reduced_loops)
        hazards = _hazards(stmt, outer, inner, ranges)
        if stmt.accum is not None and not _reached_once(stmt.index, outer, ranges):
            yield from self.scatter(stmt, hazards)
        elif (directions := _directions(outer, hazards)) is None:
            yield from self.through_temporary(stmt, outer, ranges)
        else:
            yield from _nest(_reversed(stmt, outer, directions), outer, inner, directions)

    def through_temporary(self, stmt: Assign, outer: Loops, ranges: Ranges) -> Iterator[Stmt]:
        """Compute all of the value before the first cell is written."""
        shape = tuple(_most(stmt, symbol, extent, ranges) for symbol, extent in outer)
        temporary = Tensor(f"{stmt.into.label}_value", shape, stmt.into.dtype)
        index = tuple(Affine.of(symbol) for symbol, _ in outer)
        where = f"{stmt.loc}: " if stmt.loc else ""
        self.notes.append(
            f"lower: {where}the new value of {stmt.into.label} is computed aside and then copied, "
            "because it reads other cells of the memory that it overwrites"
        )
        initial = stmt.initial
        if stmt.accum is not None and initial is None:
            initial = Load(stmt.into, stmt.index)
        yield from self.assign(replace(stmt, into=temporary, index=index, initial=initial), ranges)
        copy = Assign(outer, stmt.into, stmt.index, Load(temporary, index), loc=stmt.loc)
        yield from self.assign(self.own_loops(copy, {}), ranges)

    def scatter(self, stmt: Assign, hazards: Sequence[Distances]) -> Iterator[Stmt]:
        """Accumulate cell by cell in memory: several points of the outer loops reach one cell."""
        assert stmt.accum is not None
        if hazards:
            raise UnsupportedError(
                f"{stmt.into.label} is accumulated into cells that the added value reads",
                loc=stmt.loc,
                fix="take a copy of the array first and read from the copy",
            )
        if stmt.initial is not None:
            start = self.own_loops(Assign(stmt.loops, stmt.into, stmt.index, stmt.initial), {})
            yield from _nested(start.loops, _store(start, start.value), LoopKind.SEQUENTIAL)
        accumulator = Variable(stmt.into.label, stmt.into.dtype)
        yield from _nested(
            stmt.loops,
            (
                Define(accumulator, Load(stmt.into, stmt.index)),
                Update(accumulator, stmt.value, stmt.accum, stmt.contract),
                *_store(stmt, Local(accumulator)),
            ),
            LoopKind.SEQUENTIAL,
        )


def _substituted(statement: _Looping, values: Values) -> _Looping:
    if not values:
        return statement
    match statement:
        case Assign(index=index, value=value, initial=initial):
            return replace(
                statement,
                index=tuple(position.substitute(values) for position in index),
                value=substitute(value, values),
                initial=None if initial is None else substitute(initial, values),
            )
        case Check(condition=condition):
            return replace(statement, condition=substitute(condition, values))


def _reached_once(index: tuple[Affine, ...], loops: Loops, ranges: Ranges) -> bool:
    """Whether each point of `loops` has a cell of its own."""
    symbols = {symbol for symbol, _ in loops}
    found: set[Symbol] = set()
    for position in index:
        terms = [(symbol, factor) for factor, symbol in position.terms if symbol in symbols]
        if is_injective(terms, ranges):
            found.update(symbol for symbol, _ in terms)
    return found == symbols


def _hazards(stmt: Assign, outer: Loops, inner: Loops, ranges: Ranges) -> list[Distances]:
    """For each read of memory that the statement writes: by how many iterations the write of a cell
    follows its read, per outer loop."""
    aligned = [symbol for symbol, _ in outer]
    reduced = {symbol: ranges.get(symbol) for symbol, _ in inner}
    written = region(stmt.into, stmt.index, reduced)
    found: list[Distances] = []
    for expr in (stmt.value, *(() if stmt.initial is None else (stmt.initial,))):
        for tensor, index in loads(expr):
            if tensor.storage is not stmt.into.storage:
                continue
            distance = distances(written, region(tensor, index, reduced), aligned, ranges)
            if distance is not None and any(span != (0, 0) for span in distance.values()):
                found.append(distance)
    return found


def _directions(outer: Loops, hazards: Sequence[Distances]) -> tuple[Direction, ...] | None:
    """A direction for each loop such that no cell is written before it is read; None if there is none."""
    chosen: list[Direction] = []
    pending = hazards
    for symbol, _ in outer:
        if all(hazard[symbol] == (0, 0) for hazard in pending):
            chosen.append(Direction.FREE)
        elif all(hazard[symbol][0] >= 0 for hazard in pending):
            chosen.append(Direction.FORWARD)
        elif all(hazard[symbol][1] <= 0 for hazard in pending):
            chosen.append(Direction.BACKWARD)
        else:
            return None
        pending = [hazard for hazard in pending if hazard[symbol][0] <= 0 <= hazard[symbol][1]]
    return tuple(chosen)


def _reversed(stmt: Assign, outer: Loops, directions: tuple[Direction, ...]) -> Assign:
    """The statement with its backward loops counting down."""
    return _substituted(
        stmt,
        {
            symbol: extent - symbol - 1
            for (symbol, extent), direction in zip(outer, directions, strict=True)
            if direction is Direction.BACKWARD
        },
    )


def _nest(stmt: Assign, outer: Loops, inner: Loops, directions: tuple[Direction, ...]) -> Iterator[Stmt]:
    body: tuple[Stmt, ...]
    if stmt.accum is None:
        body = _store(stmt, stmt.value)
    else:
        accumulator = Variable(stmt.into.label, stmt.into.dtype)
        update = Update(accumulator, stmt.value, stmt.accum, stmt.contract)
        # Each step of a small float is rounded, so that one follows the other.
        kind = LoopKind.SEQUENTIAL if accumulator.dtype.is_small else LoopKind.PARALLEL
        body = (
            Define(accumulator, Load(stmt.into, stmt.index) if stmt.initial is None else stmt.initial),
            *_nested(inner, (update,), kind),
            *_store(stmt, Local(accumulator)),
        )
    kinds = tuple(LoopKind.PARALLEL if way is Direction.FREE else LoopKind.SEQUENTIAL for way in directions)
    for (symbol, extent), kind in zip(reversed(outer), reversed(kinds), strict=True):
        body = (For(symbol, ZERO, extent, body, kind),)
    yield from body


def _nested(loops: Loops, body: tuple[Stmt, ...], kind: LoopKind = LoopKind.PARALLEL) -> tuple[Stmt, ...]:
    for symbol, extent in reversed(loops):
        body = (For(symbol, ZERO, extent, body, kind),)
    return body


def _store(stmt: Assign, value: Expr) -> tuple[Stmt, ...]:
    return (Store(stmt.into, stmt.index, value, stmt.loc, regroup=stmt.regroup),)


def _most(stmt: Assign, symbol: Symbol, extent: Affine, ranges: Ranges) -> Affine:
    """The extent of an outer loop, or where it is not a constant the most that it can be: each iteration
    reaches a cell of its own."""
    if extent.is_constant:
        return extent
    known = extent.bounds(ranges)
    limits = [] if known is None else [max(known[1], 0)]
    for position, size in zip(stmt.index, stmt.into.shape, strict=True):
        step = position.coefficient(symbol)
        if step and size.is_constant:
            limits.append((size.offset - 1) // abs(step) + 1)
    assert limits, f"extent {extent} has no upper bound"
    return Affine.of(min(limits))
