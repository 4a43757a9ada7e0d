"""unordered: chains of extremes are formed without a thought of NaN, and again where there is one.

    for i in vector(0, 64, lanes=8):                for i in vector(0, 64, lanes=8):
        m = where(greater(a, b), a, b)                  m = where(greater(a, b), a, b)
        m1 = where(not_equal(a, a), a, m)               m1 = m
        n = where(greater(m1, c), m1, c)    ->          n = where(greater(m1, c), m1, c)
        n1 = where(not_equal(m1, m1), m1, n)            n1 = n
        ...                                             ...
        y[i] = n1                                       if seldom(logical_or(not_equal(a, a), ...)):
                                                            ...
                                                            n1 = where(not_equal(m1, m1), m1, n)
                                                        y[i] = n1

An extreme of two numbers is one operation of a processor, which takes the second where they do not compare;
NumPy takes a NaN from either, for which each step of a chain has a comparison and a choice more. Instead all
that a chain chooses from is looked at, two values by one comparison, before its result is used; a vector with
a NaN is done again as it was. Short loops that make such chains are written out first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from functools import partial, reduce
from itertools import chain

from ...frozen import frozen
from ...ir.code import Caps
from ...ir.conditions import BEYOND, compare, either, is_compared, one_of
from ...ir.dtype import BOOL, F32, F64
from ...ir.expr import Apply, Cast, Const, Expr, Load, Local, Variable
from ...ir.loops import (
    Comment,
    Define,
    For,
    If,
    Kernel,
    LoopKind,
    Prefetch,
    Stmt,
    Store,
    Update,
    walk_statements,
)
from ...ir.ops import OPS
from ...ir.walk import (
    expressions,
    kept,
    locals_read,
    outer_updates,
    rewrite_bodies,
    rewrite_expressions,
    variables,
    walk,
)
from ..analysis.copies import Copying, copy_body
from ..analysis.repeats import weight
from ..analysis.values import written_out

__all__ = ["unordered"]

WHERE, UNLIKE = OPS["where"], OPS["not_equal"]
COMPARISONS = {OPS[name] for name in ("greater", "greater_equal", "less", "less_equal")}

SAVED = 3
"""So many operations make up for a branch and a second text."""

BRANCH = 2
"""Operations that ask whether any lane has a NaN."""

LIGHT = 4.0
"""Operations that take longer are not done again."""

STEPS, FEWEST, HEAVY = 8, 6, 64
"""The most steps of a loop that are taken together, and the fewest, and the most operations. What is computed
for a step stays in registers until it has been looked at; what is read can be read again."""

LONGEST = 15
"""The most steps of a loop that is written out. Columns of 14 numbers take 0.8 of the time of a loop that is
looked at once, windows of as many 0.96; of 16 and more as much, or a tenth more."""


def unordered(kernel: Kernel, caps: Caps) -> Kernel:
    """Every such chain of a vector loop."""
    every = list(walk_statements(kernel.body))
    if not any(map(_is_of_extremes, every)):
        return kernel
    vectors = (stmt for stmt in every if isinstance(stmt, For) and stmt.kind is LoopKind.VECTOR)
    totals = {update.variable for loop in vectors for update in outer_updates([*walk_statements(loop.body)])}
    body = _in_vectors(kernel.body, partial(_written_out, caps=caps, totals=totals))
    inside = list(walk_statements(body))
    changing = {stmt.variable for stmt in inside if isinstance(stmt, Update)}
    known = _Locals(Counter(locals_read(inside)), changing)
    news = _in_vectors(body, lambda stmts, lanes: _among_numbers(stmts, known))
    notes = [] if news is body else ["unordered: extremes are formed again where there is a NaN"]
    return kernel.with_body(news, notes)


def _is_of_extremes(stmt: Stmt) -> bool:
    """Is it a step of an extreme that a loop forms, or does it look for a NaN?"""
    return _is_step(stmt) or _is_nan(stmt)


def _is_step(stmt: Stmt) -> bool:
    """Is it a step of an extreme?"""
    return (
        isinstance(stmt, Update) and stmt.accum is not None and is_compared(stmt.accum, stmt.variable.dtype)
    )


Rule = Callable[[Sequence[Stmt], int], Iterable[Stmt]]


def _in_vectors(body: tuple[Stmt, ...], rule: Rule, lanes: int = 0) -> tuple[Stmt, ...]:
    """The bodies of vector loops, and of loops in these, which have so many lanes, as a rule makes them, from
    the inside out."""
    out: list[Stmt] = []
    for stmt in body:
        inside = stmt.lanes if isinstance(stmt, For) and stmt.kind is LoopKind.VECTOR else lanes
        out.append(rewrite_bodies(stmt, partial(_in_vectors, rule=rule, lanes=inside)))
    return kept(body, list(rule(out, lanes)) if lanes else out)


def _written_out(body: Sequence[Stmt], lanes: int, caps: Caps, totals: Set[Variable]) -> Iterator[Stmt]:
    """The statements with the steps of loops in a row, if these are few and form an extreme that they hand
    on. Targets look for NaN behind longer loops, and where the extremes of all lanes are put together after
    the vector loop: these are among the `totals`, and what lanes do to them must say how they combine."""
    folded = {
        stmt.value.variable
        for stmt in body
        if isinstance(stmt, Update) and stmt.variable in totals and isinstance(stmt.value, Local)
    }
    for stmt in body:
        extreme = _handed_on(stmt) if isinstance(stmt, For) else None
        if isinstance(stmt, For) and extreme is not None and extreme not in totals | folded:
            wide = lanes * extreme.dtype.itemsize // caps.vector_bytes
            most = STEPS if _is_read(stmt) else caps.registers // 2 // max(1, wide)
            yield from _steps(stmt, extreme, min(STEPS, most))
        else:
            yield stmt


def _handed_on(loop: For) -> Variable | None:
    """The extreme that each step of a loop hands on to the next, and nothing else."""
    *steps, last = loop.body
    if loop.kind is not LoopKind.SEQUENTIAL or loop.trips is None or not isinstance(last, Update):
        return None
    is_extreme = _is_step(last) if last.accum else any(map(_is_nan, steps))
    is_plain = all(isinstance(stmt, (Define, Prefetch)) for stmt in steps) and last.variable.dtype in (
        F32,
        F64,
    )
    return last.variable if is_extreme and is_plain else None


def _steps(loop: For, extreme: Variable, count: int) -> Sequence[Stmt]:
    """The steps of a loop of few, so many before they are looked at."""
    trips = loop.trips or 0
    if trips > LONGEST or count < FEWEST or count * weight(loop.body) > HEAVY:
        return (loop,)

    def group(first: int) -> tuple[Stmt, ...]:
        numbers = range(first, min(first + count, trips))
        places = (loop.lo + number * loop.step for number in numbers)
        copies = (copy_body(loop.body, {loop.symbol: place}, {}) for place in places)
        return _in_a_row(tuple(chain.from_iterable(copies)), extreme)

    return tuple(chain.from_iterable(group(first) for first in range(0, trips, count)))


def _in_a_row(body: tuple[Stmt, ...], extreme: Variable) -> tuple[Stmt, ...]:
    """Steps that each have their own local for what they hand on."""
    now = Local(Variable(extreme.hint, extreme.dtype))
    out: list[Stmt] = [Define(now.variable, Local(extreme))]
    for stmt in body:
        stmt = rewrite_expressions(stmt, partial(written_out, values={extreme: now}))
        if isinstance(stmt, Update):
            new = Variable(extreme.hint, extreme.dtype)
            out += _extreme(new, now, stmt) if stmt.accum else (Define(new, stmt.value),)
            now = Local(new)
        else:
            out.append(stmt)
    return *out, Update(extreme, now)


def _extreme(new: Variable, one: Local, stmt: Update) -> Iterator[Define]:
    """An extreme of two, put right for NaN."""
    other, beyond, lost = (Variable("t", dtype) for dtype in (new.dtype, new.dtype, BOOL))
    assert stmt.accum is not None
    yield Define(other, stmt.value)
    is_beyond = compare(BEYOND[stmt.accum], one, Local(other))
    yield Define(beyond, one_of(is_beyond, one, Local(other)))
    yield Define(lost, compare("not_equal", one, one))
    yield Define(new, one_of(Local(lost), one, Local(beyond)))


def _is_read(loop: For) -> bool:
    """Are the values of which an extreme is formed but read?"""
    values = (value for stmt in loop.body for value in expressions(stmt)[:1])
    return any(isinstance(value, Load) for value in values) and weight(loop.body) == 0


@frozen
class _Locals:
    """How often locals of the kernel are read, and which change after they are defined."""

    reads: Counter[Variable]
    changing: Set[Variable]


def _among_numbers(body: Sequence[Stmt], known: _Locals) -> Iterator[Stmt]:
    """The statements of a vector loop, with a branch at the end of each chain."""
    found = _Chain(known)
    for stmt in body:
        if not found.takes(stmt):
            yield from found.statements()
            found = _Chain(known)
            found.takes(stmt)
    yield from found.statements()


class _Chain:
    """Statements in a row. `mended` are extremes that a choice puts right, with what they are among numbers;
    `later` are they and what follows from them; `made` says what locals are, `nans` which they compare with
    themselves, `leaves` from what values they are chosen, and `asked` which of these must be numbers. The
    last extreme stands before `end`."""

    def __init__(self, known: _Locals) -> None:
        self.known = known
        self.stmts: list[Stmt] = []
        self.mended: dict[Variable, Expr] = {}
        self.later: dict[Variable, None] = {}
        self.made: dict[Variable, Expr] = {}
        self.nans: dict[Variable, Variable] = {}
        self.leaves: dict[Variable, tuple[Variable, ...]] = {}
        self.asked: dict[Variable, None] = {}
        self.end = 0

    def takes(self, stmt: Stmt) -> bool:
        """Note a statement; False where what stands before it has to be right first."""
        is_made = isinstance(stmt, Define) and stmt.variable not in self.known.changing
        if self.later and not is_made and not isinstance(stmt, (Comment, Define, Store)):
            return False
        follows = not self.later.keys().isdisjoint(locals_read((stmt,)))
        if follows and not (is_made and _may_go_again(stmt, self.known)):
            return False
        self.stmts.append(stmt)
        if isinstance(stmt, Define) and is_made:
            self._define(stmt, follows)
        return True

    def _define(self, stmt: Define, follows: bool) -> None:
        variable, value = stmt.variable, stmt.value
        self.made[variable] = value
        if follows:
            self.later[variable] = None
        match value:
            case Apply(args=(Local(variable=one), *_)) if _is_nan(stmt) and one not in self.known.changing:
                self.nans[variable] = one
            case Apply(op=op, args=(Local(variable=lost), Local(variable=first), other)) if (
                op is WHERE and self.nans.get(lost) is first
            ):
                self.asked.update(dict.fromkeys(self.leaves.get(first, (first,))))
                self.mended[variable] = other
                self.leaves[variable] = self._leaves_of(other, variable)
                self.later[variable] = None
                self.end = len(self.stmts)
            case _:
                self.leaves[variable] = self._leaves_of(value, variable)

    def _leaves_of(self, value: Expr, variable: Variable) -> tuple[Variable, ...]:
        """From what a value is chosen that has this name."""
        found = self._chosen_from(value)
        return (variable,) if found is None else found

    def _chosen_from(self, value: Expr) -> tuple[Variable, ...] | None:
        """What an extreme is chosen from, but for known numbers; None if a value is none."""
        match value:
            case Local(variable=variable):
                return None if variable in self.known.changing else self.leaves.get(variable, (variable,))
            case Const(value=number):
                return () if number == number else None
            case Apply(op=op, args=(condition, one, other)) if op is WHERE:
                by = self.made.get(condition.variable) if isinstance(condition, Local) else condition
                is_extreme = isinstance(by, Apply) and by.op in COMPARISONS and {*by.args} == {one, other}
                chosen = [self._chosen_from(arg) for arg in (one, other)] if is_extreme else [None]
                if None in chosen:
                    return None
                return tuple(dict.fromkeys(leaf for leaves in chosen for leaf in leaves or ()))
            case _:
                return None

    def statements(self) -> Sequence[Stmt]:
        """What stands there; with a branch where the chain ends, if that saves enough."""
        chain, rest = self.stmts[: self.end], self.stmts[self.end :]
        moved = self._nans_of_the_chain(chain)
        saved = len(self.mended) + len(moved) - (len(self.asked) + 1) // 2 - BRANCH
        if not self.asked or saved < SAVED:
            return self.stmts
        again = Copying({}, {})
        mending = [
            again.statement(stmt)
            for stmt in chain
            if isinstance(stmt, Define) and (stmt.variable in self.later or stmt.variable in moved)
        ]
        inside = Counter(locals_read(chain))
        reads = self.known.reads
        seen = [variable for variable in self.later if reads[variable] > inside[variable]]
        mending += (
            Update(variable, Local(again.variables[variable]))
            for variable in seen
            if variable in again.variables
        )
        fast = [self._among_numbers(stmt) for stmt in chain if _made(stmt) not in moved]
        return *fast, If(_any_nan(list(self.asked)), tuple(mending), seldom=True), *rest

    def _nans_of_the_chain(self, chain: Sequence[Stmt]) -> set[Variable]:
        """Comparisons that nothing reads but what puts extremes right."""
        by = (stmt for stmt in chain if _made(stmt) in self.mended)
        read = Counter(locals_read(by))
        return {nan for nan in self.nans if self.known.reads[nan] == read[nan] > 0}

    def _among_numbers(self, stmt: Stmt) -> Stmt:
        match stmt:
            case Define(variable=variable) if variable in self.mended:
                return Define(variable, self.mended[variable])
            case _:
                return stmt


def _any_nan(values: Sequence[Variable]) -> Expr:
    """Is one of the values a NaN? One comparison looks at two of them."""
    each = [compare("not_equal", Local(value), Local(value)) for value in values]
    return reduce(either, (reduce(either, each[at : at + 2]) for at in range(0, len(each), 2)))


def _is_nan(stmt: Stmt) -> bool:
    """Does a statement say whether a float is a NaN?"""
    match stmt:
        case Define(value=Apply(op=op, args=(Local(variable=one), Local(variable=other)))) if op is UNLIKE:
            return one is other and one.dtype.is_float
        case _:
            return False


def _made(stmt: Stmt) -> Variable | None:
    return stmt.variable if isinstance(stmt, Define) else None


def _may_go_again(stmt: Stmt, known: _Locals) -> bool:
    """Does a definition take but a moment, and look nothing up? So a NaN that has become another number on
    the way reaches nothing but numbers."""
    (value,) = expressions(stmt)
    if not known.changing.isdisjoint(variables(value)):
        return False
    return all(_is_light(node) for node in walk(value))


def _is_light(node: Expr) -> bool:
    match node:
        case Const() | Local():
            return True
        case Apply(op=op, dtype=dtype):
            return op.cost <= LIGHT and (dtype.is_float or op in COMPARISONS or op is UNLIKE)
        case Cast(dtype=dtype):
            return dtype.is_float
        case _:
            return False
