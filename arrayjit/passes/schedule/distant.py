"""distant: steps that look back further than a vector reaches go in vectors.

    for k in sequential(2, 5001):               d = t
        m = k - t                               if d <= 0 or d >= 8:
        v = x[m] + 1                                span = d if 1 <= d <= 4999 else 4999
        x[k] = minimum(x[k], v)         ->          for s in sequential(0, (4998 + span) // span):
                                                        start = 2 + s * span
                                                        end = minimum(start + span, 5001)
                                                        for k in lockstep(start, end, lanes=16):
                                                            v = x[k - d] + 1
                                                            x[k] = minimum(x[k], v)
                                                elif d == 1:
                                                    for k in sequential(2, 5001):
                                                        v = x[k - 1] + 1
                                                        x[k] = minimum(x[k], v)
                                                else:
                                                    (the loop of before)

A step needs what the step `d` before it has made, so that spans of `d` steps may go side by side; all of them
if `d` is 0 or less, since then a step reads what a later one overwrites. How far steps look back is often a
number that is computed, such as the value of a coin or the length of an echo; it is asked for before the
loop. Where it is one or two, steps hand on what they make in registers (`carry`); where it is a few
registers, they go by `remainders` on CPUs that are quick under masks. Positions that a body computes from the
loop's symbol are written out: what vectors load are neighbours. Nothing is computed otherwise, so that all
forms have the same bits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace

from ...frozen import frozen, slotted
from ...ir.code import Caps
from ...ir.conditions import compare
from ...ir.dtype import BOOL, I64
from ...ir.expr import Apply, Const, Expr, Gather, Index, Load, Local, Variable, dtype_of
from ...ir.index import Affine, Symbol
from ...ir.loops import Bind, Comment, Define, For, If, LoopKind, Stmt, Store, Update
from ...ir.ops import OPS, is_of_library
from ...ir.tensor import Tensor
from ...ir.walk import locals_defined, locals_updated, nodes_in, substitute_statements
from ..analysis.access import Ranges, distances, region
from ..analysis.accounts import Seen, locations
from ..analysis.copies import copy_body
from ..analysis.loopwise import Site, loopwise
from ..analysis.repeats import HEAVY, weight
from ..analysis.strides import affine_accesses, stride
from ..analysis.trips import about, greater, lesser
from ..analysis.work import REGISTER_BYTES
from .remainders import Remainders

__all__ = ["distant"]

MAX_LANES = 64
REGISTERS = 2
"""Vectors have so many registers; a span fills at least one."""

ZERO = Affine.of(0)
MAX_ACCESSES = 16
"""Accesses of a body that are compared with one another; a body with more is not looked at."""

LONG = 2
"""So many vectors are worth a question before them."""

NEAR = (2, 1)
"""So few steps apart, values stay in registers."""

SIGNS = {"add": 1, "subtract": -1}
WITH_LANES = (LoopKind.VECTOR, LoopKind.LOCKSTEP, LoopKind.UNROLLED)


@loopwise
def distant(loop: For, site: Site) -> Iterable[Stmt] | None:
    """Every such loop in vectors, where its steps are far enough apart."""
    if loop.kind in WITH_LANES:
        return (loop,)
    found = _Steps.of(loop, site.ranges, site.caps)
    if found is None:
        return None
    seen = Seen(loop, (), next(iter(locations(loop.body)), None))
    site.notes.append(f"distant: {seen} goes side by side, as far as steps look back")
    return found.in_two_forms(loop)


@frozen
class _Steps:
    """A loop whose steps may go side by side, as many at once as it is far from one to those that need it:
    so many steps are they `apart`, once `numbers` are bound, or any number if that is not positive."""

    numbers: Sequence[Bind]
    apart: Affine
    loop: For
    remainders: Remainders | None

    @staticmethod
    def of(loop: For, ranges: Ranges, caps: Caps) -> _Steps | None:
        """None where steps cannot go side by side, or it would not pay."""
        if loop.kind is not LoopKind.SEQUENTIAL or abs(loop.step) != 1 or weight(loop.body) > HEAVY:
            return None
        if not any(isinstance(stmt, Store) for stmt in loop.body) or not _is_plain(loop.body):
            return None
        positions = _Positions(_upwards(loop))
        body = positions.written_out()
        if body is None:
            return None
        upwards = replace(positions.loop, body=body)
        lanes = _lanes(upwards)
        apart = _apart(upwards, ranges)
        trips = about(loop, ranges)
        if apart is None or not _are_neighbours(upwards) or (trips is not None and trips < LONG * lanes):
            return None
        steps = _least(apart)
        if steps is None or (steps.is_constant and 0 < steps.constant < lanes // REGISTERS):
            return None
        if steps == ZERO and not positions.symbols:
            return None
        side_by_side = replace(upwards, kind=LoopKind.LOCKSTEP, lanes=lanes)
        remainders = Remainders.of(side_by_side, steps, apart) if caps.ends_masked else None
        return _Steps(positions.numbers(), steps, side_by_side, remainders)

    def in_two_forms(self, loop: For) -> Iterator[Stmt]:
        """What tells how far back steps look, and the choice by that."""
        yield from self.numbers
        near = self.remainders
        if near is None:
            yield from self.by_distance(loop)
            return
        condition = near.condition()
        if condition is None:
            yield from near.statements()
        else:
            yield If(condition, (*near.statements(),), (*self.by_distance(loop),))

    def by_distance(self, loop: For) -> Iterator[Stmt]:
        """In spans, or as it was where steps look back less than a register."""
        if self.apart == ZERO:
            yield from copy_body((self.loop,), {}, {})
        elif self.apart.is_constant:
            yield from self.in_spans()
        else:
            yield If(self.is_far(), (*self.in_spans(),), self.near(loop))

    def near(self, loop: For) -> tuple[Stmt, ...]:
        """The loop by itself for each of the first distances, for which what steps hand on is known, or as it
        was."""
        form: tuple[Stmt, ...] = (loop,)
        ((sign, symbol),) = self.apart.terms
        for steps in NEAR:
            number = (steps - self.apart.offset) * sign
            one = replace(self.loop, kind=LoopKind.SEQUENTIAL, lanes=1)
            known = copy_body((one,), {symbol: Affine.of(number)}, {})
            if not _hands_on(known, steps):
                continue
            form = (If(compare("equal", Index(Affine.of(symbol)), Const(number, I64)), known, form),)
        return form

    def is_far(self) -> Expr:
        """Whether so many steps fill a register, or are not positive. Nothing is added to the number, which
        might be too large."""
        ((sign, symbol),) = self.apart.terms
        ends = (self.apart.offset * -sign, (self.apart.offset - self.loop.lanes // REGISTERS) * -sign)
        outside = [
            Apply(OPS[op], (Index(Affine.of(symbol)), Const(end, I64)), BOOL)
            for op, end in zip(("less_equal", "greater_equal"), sorted(ends), strict=True)
        ]
        return Apply(OPS["bitwise_or"], tuple(outside), BOOL)

    def in_spans(self) -> Iterator[Stmt]:
        """Spans of as many steps as are apart, or one of all. What a vector of a span loads is what one of
        the span before has stored: a processor hands that on before it is in memory, but not parts of two."""
        lo, hi, number = self.loop.lo, self.loop.hi, Symbol(self.loop.symbol.hint)
        size, spans, start, end = self.apart, Symbol("spans"), Symbol("start"), Symbol("end")
        if not size.is_constant:
            count, size = Symbol("steps", lower=1), Affine.of(Symbol("span", lower=1))
            yield Bind(count, greater(hi - lo, Affine.of(1)))
            yield Bind(size.symbols[0], self.within(Index(Affine.of(count))))
        yield Bind(spans, Apply(OPS["raw_divide"], (Index(hi - lo + size - 1), Index(size)), I64))
        before = Apply(OPS["multiply"], (Index(Affine.of(number)), Index(size)), I64)
        side_by_side = copy_body((replace(self.loop, lo=Affine.of(start), hi=Affine.of(end)),), {}, {})
        body = Bind(start, Apply(OPS["add"], (Index(lo), before), I64)), Bind(end, lesser(start + size, hi))
        yield For(number, ZERO, Affine.of(spans), (*body, *side_by_side))

    def within(self, steps: Expr) -> Expr:
        """How many steps make a span, of so many in all. What is too large for an int64 wraps around, which
        changes nothing: no step is taken then."""
        apart: Expr = Const(self.apart.offset, I64)
        for sign, symbol in self.apart.terms:
            apart = Apply(OPS["add" if sign > 0 else "subtract"], (apart, Index(Affine.of(symbol))), I64)
        none = Apply(OPS["less"], (apart, Const(1, I64)), BOOL)
        more = Apply(OPS["less"], (steps, apart), BOOL)
        return Apply(OPS["where"], (Apply(OPS["bitwise_or"], (none, more), BOOL), steps, apart), I64)


def _hands_on(form: tuple[Stmt, ...], steps: int) -> bool:
    """Whether a loop reads what it has stored so many steps before, from a cell that may exist at first."""
    (loop,) = form
    assert isinstance(loop, For)
    before, first = {loop.symbol: loop.symbol - steps}, {loop.symbol: loop.lo}
    accesses = list(affine_accesses(loop.body))
    made = {(tensor, _moved(index, before)) for tensor, index, is_store in accesses if is_store}
    return any(
        all(
            not (place.is_constant and extent.is_constant) or 0 <= place.constant < extent.constant
            for place, extent in zip(_moved(index, first), tensor.shape, strict=True)
        )
        for tensor, index, is_store in accesses
        if not is_store and (tensor, index) in made
    )


def _moved(index: tuple[Affine, ...], values: Mapping[Symbol, Affine]) -> tuple[Affine, ...]:
    return tuple(place.substitute(values) for place in index)


def _least(apart: Sequence[Affine]) -> Affine | None:
    """The least number of steps, of those that are positive; 0 where none is, None where nobody can tell."""
    unknown = [steps for steps in apart if not steps.is_constant]
    known = [steps for steps in apart if steps.is_constant and steps.constant > 0]
    if unknown:
        return unknown[0] if len(unknown) == 1 and not known else None
    return min(known, key=lambda steps: steps.constant, default=ZERO)


def _is_plain(body: tuple[Stmt, ...]) -> bool:
    """Does a body only store cells, and set locals of its own by arithmetic?"""
    own = locals_defined(body)
    plain = all(
        isinstance(stmt, (Bind, Comment, Define))
        or (isinstance(stmt, Store) and stmt.accum is None)
        or (isinstance(stmt, Update) and stmt.variable in own)
        for stmt in body
    )
    nodes = nodes_in(body)
    return plain and not any(
        isinstance(node, Gather) or (isinstance(node, Apply) and is_of_library(node.op)) for node in nodes
    )


def _upwards(loop: For) -> For:
    """The loop with a symbol that counts by ones."""
    if loop.step == 1:
        return loop
    steps = Symbol(loop.symbol.hint)
    body = substitute_statements(loop.body, {loop.symbol: loop.lo - Affine.of(steps)})
    return replace(loop, symbol=steps, lo=Affine.of(0), hi=loop.lo - loop.hi, step=1, body=body)


@slotted
class _Positions:
    """A loop whose positions are written out: the `symbols` that its body binds and the `locals` that it
    defines, as sums of other symbols; `binds` are symbols for integers of outside."""

    loop: For
    symbols: dict[Symbol, Affine] = field(default_factory=dict)
    locals: dict[Variable, Affine] = field(default_factory=dict)
    binds: dict[Variable, Bind] = field(default_factory=dict)

    def written_out(self) -> tuple[Stmt, ...] | None:
        """The body without what it binds; None where that is no sum."""
        own = locals_defined(self.loop.body)
        updated = locals_updated(self.loop.body)
        out: list[Stmt] = []
        for stmt in self.loop.body:
            match stmt:
                case Bind(symbol=symbol, value=value):
                    found = self.total(value, own)
                    if found is None:
                        return None
                    self.symbols[symbol] = found
                    continue
                case Define(variable=variable, value=value) if variable not in updated:
                    found = self.total(value, own) if isinstance(value, (Apply, Index)) else None
                    if found is not None:
                        self.locals[variable] = found
                case _:
                    pass
            out += substitute_statements((stmt,), self.symbols)
        return tuple(out)

    def numbers(self) -> tuple[Bind, ...]:
        """What is bound outside for positions."""
        needed = {symbol for position in self.symbols.values() for symbol in position.symbols}
        return tuple(bind for bind in self.binds.values() if bind.symbol in needed)

    def total(self, value: Expr, own: set[Variable]) -> Affine | None:
        """An integer as a sum of symbols, if it is one."""
        match value:
            case Const(value=int(number), dtype=dtype) if dtype is I64:
                return Affine.of(number)
            case Index(value=number):
                return number.substitute(self.symbols)
            case Local(variable=variable) if variable in own:
                return self.locals.get(variable)
            case Local(variable=variable) if variable.dtype is I64:
                bind = self.binds.setdefault(variable, Bind(Symbol(variable.hint), value))
                return Affine.of(bind.symbol)
            case Apply(op=op, args=(one, other), dtype=dtype) if dtype is I64 and op.name in SIGNS:
                left = self.total(one, own)
                right = None if left is None else self.total(other, own)
                return None if left is None or right is None else left + right * SIGNS[op.name]
            case _:
                return None


def _lanes(loop: For) -> int:
    """How many of the widest numbers fill the registers of a vector."""
    numbers = (node for node in nodes_in(loop.body) if not isinstance(node, (Const, Index)))
    sizes = [stmt.tensor.dtype.itemsize for stmt in loop.body if isinstance(stmt, Store)]
    return min(
        MAX_LANES,
        REGISTERS * REGISTER_BYTES // max(*sizes, *(dtype_of(node).itemsize for node in numbers), 1),
    )


def _are_neighbours(loop: For) -> bool:
    """Are the cells of successive steps neighbours, or one that is only read?"""
    moves = [
        (stride(tensor, index, loop.symbol), stored) for tensor, index, stored in affine_accesses(loop.body)
    ]
    return all(step in (1, -1) or (step == 0 and not stored) for step, stored in moves)


def _apart(loop: For, ranges: Ranges) -> list[Affine] | None:
    """How many steps before another one a step touches a cell that it must not touch after that one. In
    lockstep it does not if this is no number of steps that go side by side, and is so always if it is not
    positive. None where nothing is known of two accesses."""
    reads: list[_Access] = []
    writes: list[_Access] = []
    for at, stmt in enumerate(loop.body):
        nodes = nodes_in((stmt,))
        reads += (_Access(at, node.tensor, node.index) for node in nodes if isinstance(node, Load))
        if isinstance(stmt, Store):
            writes.append(_Access(at, stmt.tensor, stmt.index))
    if len(reads) + len(writes) > MAX_ACCESSES:
        return None
    found: dict[Affine, None] = {}
    for write in writes:
        for other in (*reads, *(later for later in writes if later.at > write.at)):
            if not write.meets(other, loop.symbol, ranges):
                continue
            behind = write.before(other, loop.symbol)
            if behind is None:
                return None
            # What stands later in the body comes after the write in all steps.
            found[behind * -1 if other.at > write.at else behind] = None
    return list(found)


@frozen
class _Access:
    """A cell that the statement of this number reads or writes."""

    at: int
    tensor: Tensor
    index: tuple[Affine, ...]

    def meets(self, other: _Access, symbol: Symbol, ranges: Ranges) -> bool:
        """May another access be to the same cell, in any step?"""
        if self.tensor.storage is not other.tensor.storage:
            return False
        mine, its = (region(access.tensor, access.index, {}) for access in (self, other))
        return distances(mine, its, (symbol,), ranges) is not None

    def before(self, other: _Access, symbol: Symbol) -> Affine | None:
        """How many steps earlier this one touches the cell that the other one does: a number, or one of
        outside with a number added; None where it is neither."""
        if self.tensor is not other.tensor:
            return None
        for mine, its in zip(self.index, other.index, strict=True):
            pace = mine.coefficient(symbol)
            if abs(pace) == 1 and pace == its.coefficient(symbol):
                steps = (mine - its) * pace
                return steps if steps.is_constant or [abs(c) for c, _ in steps.terms] == [1] else None
        return None
