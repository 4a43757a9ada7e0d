"""rounds: what many rounds do that a program has written out is the body of a loop.

                                                     table[0] = f64(1.0)
                                                     table[1] = f64(4.0)
                                                     ...
    t0[()] = multiply(x[0], f64(1.0))                for round in range(0, 40):
    s0[()] = add(s[()], t0[()])                          t39[()] = multiply(x[round], table[round])
    t1[()] = multiply(x[1], f64(4.0))        ->          s39[()] = add(s[()], t39[()])
    s1[()] = add(s0[()], t1[()])                         s[()] = s39[()]
    ...

Loops that Python runs while it is traced, as their indices decide conditions or lists lose items in them,
leave their bodies one after the other: each takes as long to compile as a program of its own. Rounds may
differ in arrays and numbers that are looked up by the round then, in positions that go on by equal steps, and
in temporaries that nobody else uses; what a later round reads of an earlier one is handed on. They do the
same operations in the same order as before. Where no round adds anything up, all might do their part of a
cell in one loop: such rounds stay apart unless they hand on single cells.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import field, replace
from itertools import chain
from math import prod
from typing import NamedTuple, Union

from ...frozen import frozen, slotted
from ...ir.assign import Assign, Check, Computation, Loop, Statement, expressions, statements
from ...ir.code import Caps
from ...ir.dtype import I64
from ...ir.expr import Apply, Cast, Const, Expr, Gather, Index, Load
from ...ir.index import Affine, Symbol
from ...ir.ops import OPS
from ...ir.tensor import Tensor
from ...ir.walk import children, rebuild, walk
from ..analysis.access import given, loads

__all__ = ["rounds"]

LONG = 512
"""Fewer statements compile soon enough: they may be done together then, whatever round they are of."""

MANY = 16
"""Rounds that are worth a loop."""

LARGE = 64
"""Nodes of an expression, and cells of an array of which each round has another one."""

FAR = 8
"""Rounds through which a value is handed on at most."""

LEAST_WORK = 4
"""So many cells are computed at least for each that is handed on."""

_PERIODS = 8
"""Lengths of a round that are tried."""

_UNKNOWN = 1024
"""For an extent that only the run knows."""

_LOOKED_UP = frozenset(
    OPS[name]
    for name in (
        *("add", "subtract", "multiply", "minimum", "maximum", "where"),
        *("less", "less_equal", "greater", "greater_equal", "equal", "not_equal"),
    )
)
"""What takes no notice of whether an operand is known."""


def rounds(computation: Computation, caps: Caps) -> Computation:
    """The computation with loops for what is there for each of many rounds."""
    if len(computation.body) < LONG:
        return computation
    found = list(_Program.of(computation).rolled())
    return replace(computation, body=tuple(found)) if len(found) < len(computation.body) else computation


class _Place(NamedTuple):
    """A tensor that a statement mentions; `is_read` if in its expressions, as cells at known positions."""

    tensor: Tensor
    is_read: bool


_Part = Union[_Place, Affine, Const]
"""What may differ between rounds."""


class _Cells(NamedTuple):
    """What a tensor is in the loop: one of which the first positions are `row`."""

    tensor: Tensor
    row: tuple[Affine, ...] = ()


_New = Union[_Cells, Affine, Expr]


@frozen
class _Line:
    """A statement: what it says, and in that order the parts that rounds may have otherwise."""

    said: Hashable
    parts: tuple[_Part, ...]

    @staticmethod
    def of(statement: Statement) -> _Line:
        if not isinstance(statement, (Assign, Check)) or any(
            len(walk(expr)) > LARGE for expr in expressions(statement)
        ):
            return _Line(id(statement), ())
        reading = _Reading()
        reading.statement(statement)
        return _Line(tuple(reading.said), tuple(reading.parts))


@slotted
class _Reading:
    """What is read of a statement so far; its own symbols are numbered."""

    said: list[Hashable] = field(default_factory=list)
    parts: list[_Part] = field(default_factory=list)
    names: dict[Symbol, int] = field(default_factory=dict)

    def statement(self, statement: Assign | Check) -> None:
        for symbol, extent in statement.loops:
            self.names[symbol] = len(self.names)
            self.said += (symbol.lower, symbol.upper, *self.affine(extent))
        match statement:
            case Assign(into=into, index=index, accum=accum, initial=initial, contract=contract):
                self.said += (accum, contract, statement.regroup, initial is None)
                self.place(into, False)
                self.positions(index)
            case Check(exception=exception, message=message):
                self.said += (exception, message)
        for expr in expressions(statement):
            self.expression(expr, True)

    def expression(self, expr: Expr, is_looked_up: bool) -> None:
        self.said.append(type(expr).__name__)
        match expr:
            case Load(tensor=tensor, index=index):
                self.place(tensor, True)
                self.positions(index)
            case Index(value=value):
                self.positions((value,))
            case Const(dtype=dtype) if is_looked_up:
                self.said.append(dtype)
                self.parts.append(expr)
            case Const(value=value, dtype=dtype):
                self.said += (repr(value), dtype)
            case Gather(tensor=tensor):
                self.place(tensor, False)
            case Apply(op=op, dtype=dtype):
                self.said += (op, dtype)
            case Cast(dtype=dtype):
                self.said.append(dtype)
            case _:
                self.said.append(expr)
        for operand in children(expr):
            self.expression(operand, isinstance(expr, Apply) and expr.op in _LOOKED_UP)

    def positions(self, index: Sequence[Affine]) -> None:
        for position in index:
            self.said.append(self.affine(position)[0])
            self.parts.append(position)

    def place(self, tensor: Tensor, is_read: bool) -> None:
        self.parts.append(_Place(tensor, is_read))
        form: Tensor | None = tensor
        while form is not None:
            extents = tuple(map(self.affine, form.shape))
            strides = None if form.strides is None else tuple(map(self.affine, form.strides))
            self.said += (form.dtype, extents, strides, form.wish)
            form = form.base

    def affine(self, value: Affine) -> tuple[Hashable, int]:
        return tuple((factor, self.names.get(symbol, symbol)) for factor, symbol in value.terms), value.offset


@slotted
class _Writing:
    """A statement with other parts, in the order in which they are read."""

    parts: Iterator[_New]

    def statement(self, statement: Statement) -> Statement:
        match statement:
            case Assign(index=index, value=value, initial=initial):
                into = self.cells().tensor
                places = self.positions(index)
                value = self.expression(value)
                initial = None if initial is None else self.expression(initial)
                return replace(statement, into=into, index=places, value=value, initial=initial)
            case Check(condition=condition):
                return replace(statement, condition=self.expression(condition))
            case _:
                return statement

    def expression(self, expr: Expr, is_looked_up: bool = True) -> Expr:
        match expr:
            case Load(index=index):
                cells = self.cells()
                return Load(cells.tensor, (*cells.row, *self.positions(index)))
            case Index():
                return Index(self.position())
            case Const() if is_looked_up:
                number = next(self.parts)
                assert not isinstance(number, (_Cells, Affine))
                return number
            case Gather():
                expr = replace(expr, tensor=self.cells().tensor)
            case _:
                pass
        inside = isinstance(expr, Apply) and expr.op in _LOOKED_UP
        return rebuild(expr, tuple([self.expression(operand, inside) for operand in children(expr)]))

    def cells(self) -> _Cells:
        cells = next(self.parts)
        assert isinstance(cells, _Cells)
        return cells

    def position(self) -> Affine:
        position = next(self.parts)
        assert isinstance(position, Affine)
        return position

    def positions(self, index: Sequence[Affine]) -> tuple[Affine, ...]:
        return tuple([self.position() for _ in index])


class _Stretch(NamedTuple):
    """Statements from the one at `start` on, in `times` rounds of `period` that say the same."""

    start: int
    period: int
    times: int

    @property
    def end(self) -> int:
        return self.start + self.period * self.times


class _Role(NamedTuple):
    """A temporary that was first written by a round's statement at `place`, so many rounds `ago`."""

    place: int
    ago: int


@frozen
class _Program:
    """A body, what its statements say, which storages are given, and the first and the last statement that
    uses each."""

    body: tuple[Statement, ...]
    lines: tuple[_Line, ...]
    given: frozenset[Tensor]
    used: dict[Tensor, tuple[int, int]]

    @staticmethod
    def of(computation: Computation) -> _Program:
        used: dict[Tensor, tuple[int, int]] = {}
        for at, statement in enumerate(computation.body):
            for storage in _storages(statement):
                used[storage] = used.get(storage, (at, at))[0], at
        lines = tuple(map(_Line.of, computation.body))
        return _Program(computation.body, lines, given(computation.params), used)

    def rolled(self) -> Iterator[Statement]:
        """The statements, with loops for rounds; the last of these may be one that makes results."""
        done = 0
        for stretch in self.stretches():
            for part in (stretch, stretch._replace(times=stretch.times - 1)):
                found = _Rounds.of(self, part) if part.start >= done else None
                loop = None if found is None else found.loop()
                if found is not None and loop is not None:
                    yield from self.body[done : found.stretch.start]
                    yield from loop
                    done = part.end
        yield from self.body[done:]

    def stretches(self) -> list[_Stretch]:
        """Where statements are there again and again, by the shortest rounds."""
        last: dict[Hashable, int] = {}
        distances: Counter[int] = Counter()
        for at, line in enumerate(self.lines):
            if line.said in last:
                distances[at - last[line.said]] += 1
            last[line.said] = at
        found: list[_Stretch] = []
        for period in sorted(period for period, _ in distances.most_common(_PERIODS)):
            found += self.repeated(period)
        return sorted(found)

    def repeated(self, period: int) -> Iterator[_Stretch]:
        """The long stretches in which statements say what those of a round before do."""
        start = 0
        for at in range(period, len(self.lines) + 1):
            if at == len(self.lines) or self.lines[at].said != self.lines[at - period].said:
                times = (at - start) // period
                if times >= MANY and period * times >= LONG:
                    yield self.turned(_Stretch(start, period, times), at)
                start = at - period + 1

    def turned(self, stretch: _Stretch, end: int) -> _Stretch:
        """The stretch, beginning where the fewest cells are handed from round to round."""
        start, period, times = stretch
        middle = start + times // 2 * period
        writers: dict[Tensor, int] = {}
        needed: set[tuple[int, int, int]] = set()
        for at in range(start, middle + period):
            for place in self.places(at):
                storage = place.tensor.storage
                if at >= middle and storage in writers:
                    needed.add((writers[storage], at, _cells(storage)))
            statement = self.body[at]
            if isinstance(statement, Assign):
                writers.setdefault(statement.into.storage, at)

        def handed_on(by: int) -> int:
            first = start + by
            return sum(
                cells * ((at - first) // period - (writer - first) // period) for writer, at, cells in needed
            )

        by = min(range(period), key=handed_on)
        return _Stretch(start + by, period, (end - start - by) // period)

    def places(self, at: int) -> Iterator[_Place]:
        return (part for part in self.lines[at].parts if isinstance(part, _Place))


@frozen
class _Rounds:
    """Rounds that read and write the same, each its own: `parts` are those of each round, `roles` what the
    tensors among them are to all of them, `written` the storages that they write."""

    program: _Program
    stretch: _Stretch
    parts: tuple[tuple[_Part, ...], ...]
    roles: tuple[_Role | None, ...]
    written: frozenset[Tensor]

    @staticmethod
    def of(program: _Program, stretch: _Stretch) -> _Rounds | None:
        """The last of the rounds in a stretch that do so, those before the first being known; None where
        these are too few."""
        start, period, times = stretch
        numbers = [range(at, at + period) for at in range(start, stretch.end, period)]
        parts = [tuple(chain.from_iterable(program.lines[at].parts for at in each)) for each in numbers]
        writers = _writers(program.body[start : stretch.end], period)
        roles = [tuple(_role(part, at, writers) for part in own) for at, own in enumerate(parts)]
        first = times - 1
        while first and roles[first - 1] == roles[-1]:
            first -= 1
        first = max(first, *(role.ago for role in roles[-1] if role is not None), 0)
        stretch = _Stretch(start + first * period, period, times - first)
        if stretch.times < MANY or period * stretch.times < LONG:
            return None
        return _Rounds(program, stretch, tuple(parts[first:]), roles[-1], frozenset(writers))

    def loop(self) -> tuple[Statement, ...] | None:
        """The loop, with what stands before it; None where rounds differ in more than a loop's may."""
        making = _Making(self)
        if not making.may_hand_on():
            return None
        parts: list[_New] = []
        for each, role in zip(zip(*self.parts, strict=True), self.roles, strict=True):
            new = making.part(each, role)
            if new is None:
                return None
            parts.append(new)
        writing = _Writing(iter(parts))
        body = [writing.statement(statement) for statement in self.last]
        count = Affine.of(self.stretch.times)
        whole = (*body, *making.handing_on())
        loop = Loop(making.symbol, Affine.of(0), count, 1, whole, loc=self.last[0].loc)
        return (*making.filling, loop)

    @property
    def last(self) -> tuple[Assign | Check, ...]:
        """The statements of the last round, which leaves what is read after the loop."""
        lines = self.program.body[self.stretch.end - self.stretch.period : self.stretch.end]
        return tuple(line for line in lines if isinstance(line, (Assign, Check)))

    def temporary(self, place: int, at: int) -> Tensor:
        """What a round, or one before the first, writes at a place."""
        statement = self.program.body[self.stretch.start + at * self.stretch.period + place]
        assert isinstance(statement, Assign)
        return statement.into.storage


@slotted
class _Making:
    """A loop as it is made: its symbol, tables by what is in them, and what fills these."""

    rounds: _Rounds
    symbol: Symbol = field(init=False)
    tables: dict[Hashable, Tensor] = field(default_factory=dict)
    filling: list[Assign] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.symbol = Symbol("round", lower=0, upper=self.rounds.stretch.times)

    @property
    def handed_on(self) -> dict[int, int]:
        """The places of what later rounds read, and how many rounds it is handed on through; 0 for what only
        its own round reads."""
        found: dict[int, int] = {}
        for role in self.rounds.roles:
            if role is not None:
                found[role.place] = max(found.get(role.place, 0), role.ago)
        return found

    def may_hand_on(self) -> bool:
        """Whether nobody else reads what rounds leave, but for the last one, and it is little."""
        stretch, program, handed_on = self.rounds.stretch, self.rounds.program, self.handed_on
        for place, far in handed_on.items():
            for at in range(-far, stretch.times):
                storage = self.rounds.temporary(place, at)
                first, last = program.used[storage]
                is_alone = (first >= stretch.start or at < 0) and last < stretch.end
                if storage in program.given or not (is_alone or at == stretch.times - 1):
                    return False
        return self.is_little({place: far for place, far in handed_on.items() if far})

    def is_little(self, handed_on: dict[int, int]) -> bool:
        """Whether rounds would not hand it on in registers either, and have enough to do besides."""
        sizes = {place: _cells(self.rounds.temporary(place, 0)) for place in handed_on}
        if max(handed_on.values(), default=0) > FAR or (
            max(sizes.values(), default=1) > 1 and not self.adds_up
        ):
            return False
        copied = sum(far * sizes[place] for place, far in handed_on.items())
        return copied * LEAST_WORK <= sum(map(_points, self.rounds.last))

    @property
    def adds_up(self) -> bool:
        """Whether a round combines cells, which the next one has to wait for."""
        return any(isinstance(line, Assign) and line.reduced_loops for line in self.rounds.last)

    def handing_on(self) -> Iterator[Assign]:
        """What rounds before were, a round later."""
        for place, far in self.handed_on.items():
            tensors = [self.rounds.temporary(place, -ago) for ago in range(1, far + 1)]
            tensors.insert(0, self.rounds.temporary(place, self.rounds.stretch.times - 1))
            for ago in range(far, 0, -1):
                yield _copy(tensors[ago], tensors[ago - 1])

    def part(self, each: tuple[_Part, ...], role: _Role | None) -> _New | None:
        """What stands for a part of each round, the last of which is in the body; None where nothing can."""
        match each[-1]:
            case Affine() as last:
                offsets = [part.offset for part in each if isinstance(part, Affine)]
                steps = _in_steps(offsets, self.symbol)
                return None if steps is None else last - last.offset + steps
            case Const() as last:
                return self.number([part for part in each if isinstance(part, Const)])
            case _Place(tensor=tensor) as last:
                if role is None:
                    return self.cells([part for part in each if isinstance(part, _Place)])
                if role.ago <= 0 or tensor.base is not None:
                    return _Cells(tensor) if role.ago == 0 else None
                return _Cells(self.rounds.temporary(role.place, -role.ago))

    def number(self, numbers: Sequence[Const]) -> Expr:
        """A constant, a multiple of the round's number, or one that is looked up."""
        if len({repr(number) for number in numbers}) == 1:
            return numbers[0]
        if numbers[0].dtype is I64:
            steps = _in_steps([int(number.value) for number in numbers], self.symbol)
            if steps is not None:
                return Index(steps)
        words = tuple(map(repr, numbers))
        if words not in self.tables:
            table = self.tables[words] = Tensor.of("table", (len(numbers),), numbers[0].dtype)
            for at, number in enumerate(numbers):
                self.filling.append(Assign((), table, (Affine.of(at),), number))
        return Load(self.tables[words], (Affine.of(self.symbol),))

    def cells(self, places: Sequence[_Place]) -> _Cells | None:
        """An array that all rounds have, or a row of a table of their arrays."""
        tensors = [place.tensor for place in places]
        first = tensors[0]
        if all(tensor is first for tensor in tensors):
            return _Cells(first)
        is_table = first.base is None and first.has_fixed_shape and first.size <= LARGE
        changes = any(tensor.storage in self.rounds.written for tensor in tensors)
        if not is_table or changes or not all(place.is_read for place in places):
            return None
        if tuple(tensors) not in self.tables:
            table = Tensor("table", (Affine.of(len(tensors)), *first.shape), first.dtype)
            self.tables[tuple(tensors)] = table
            self.filling += (_copy(table, each, Affine.of(at)) for at, each in enumerate(tensors))
        return _Cells(self.tables[tuple(tensors)], (Affine.of(self.symbol),))


def _in_steps(numbers: Sequence[int], symbol: Symbol) -> Affine | None:
    """The numbers as a multiple of their places, and one more; None if they are none."""
    first, step = numbers[0], numbers[1] - numbers[0]
    if any(number != first + at * step for at, number in enumerate(numbers)):
        return None
    return symbol * step + first


def _copy(into: Tensor, tensor: Tensor, *row: Affine) -> Assign:
    """A tensor copied, into a row of the other one."""
    loops = tuple((Symbol("i"), extent) for extent in tensor.shape)
    index = tuple(Affine.of(symbol) for symbol, _ in loops)
    return Assign(loops, into, (*row, *index), Load(tensor, index))


def _writers(body: Sequence[Statement], period: int) -> dict[Tensor, tuple[int, int] | None]:
    """The storages that are written, each with the round and the place where it is first; None where several
    rounds write it."""
    found: dict[Tensor, tuple[int, int] | None] = {}
    for at, statement in enumerate(body):
        if isinstance(statement, Assign):
            number, place = divmod(at, period)
            before = found.setdefault(statement.into.storage, (number, place))
            if before is not None and before[0] != number:
                found[statement.into.storage] = None
    return found


def _role(part: _Part, at: int, writers: dict[Tensor, tuple[int, int] | None]) -> _Role | None:
    """What a part is to the round that has it, if it is a temporary of some round."""
    written = writers.get(part.tensor.storage) if isinstance(part, _Place) else None
    return None if written is None else _Role(written[1], at - written[0])


def _storages(statement: Statement) -> Iterator[Tensor]:
    """What a statement, and those in it, use."""
    for inner in statements((statement,)):
        if isinstance(inner, Assign):
            yield inner.into.storage
        for expr in expressions(inner):
            for tensor, _ in loads(expr):
                yield tensor.storage


def _points(statement: Assign | Check) -> int:
    """How often a statement computes its value; many times where only the run knows."""
    extents = [extent.offset if extent.is_constant else _UNKNOWN for _, extent in statement.loops]
    return prod(extents)


def _cells(tensor: Tensor) -> int:
    return prod(extent.offset if extent.is_constant else _UNKNOWN for extent in tensor.shape)
