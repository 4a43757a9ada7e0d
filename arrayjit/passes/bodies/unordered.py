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
a NaN is done again as it was. A short loop that makes such a chain is written out first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from functools import partial, reduce

from ...frozen import frozen
from ...ir.code import Caps
from ...ir.conditions import compare, either
from ...ir.expr import Apply, Cast, Const, Expr, Local, Variable
from ...ir.loops import Comment, Define, For, If, Kernel, LoopKind, Stmt, Store, Update, walk_statements
from ...ir.ops import OPS
from ...ir.walk import expressions, kept, locals_read, rewrite_bodies, variables, walk
from ..analysis.copies import Copying, copy_body
from ..analysis.repeats import weight

__all__ = ["unordered"]

WHERE, UNLIKE = OPS["where"], OPS["not_equal"]
COMPARISONS = {OPS[name] for name in ("greater", "greater_equal", "less", "less_equal")}

SAVED = 3
"""So many operations make up for a branch and a second text."""

BRANCH = 2
"""Operations that ask whether any lane has a NaN."""

LIGHT = 4.0
"""Operations that take longer are not done again."""

STEPS, HEAVY = 8, 64
"""The most steps, and operations, of a short loop."""


def unordered(kernel: Kernel, caps: Caps) -> Kernel:
    """Every such chain of a vector loop."""
    body = _in_vectors(kernel.body, _written_out)
    inside = list(walk_statements(body))
    changing = {stmt.variable for stmt in inside if isinstance(stmt, Update)}
    news = _in_vectors(body, partial(_among_numbers, known=_Locals(Counter(locals_read(inside)), changing)))
    notes = [] if news is body else ["unordered: extremes are formed again where there is a NaN"]
    return kernel.with_body(news, notes)


Rule = Callable[[Sequence[Stmt]], Iterable[Stmt]]


def _in_vectors(body: tuple[Stmt, ...], rule: Rule, inside: bool = False) -> tuple[Stmt, ...]:
    """The bodies of vector loops, and of loops in these, as a rule makes them, from the inside out."""
    out: list[Stmt] = []
    for stmt in body:
        is_vector = isinstance(stmt, For) and stmt.kind is LoopKind.VECTOR
        out.append(rewrite_bodies(stmt, partial(_in_vectors, rule=rule, inside=inside or is_vector)))
    return kept(body, list(rule(out)) if inside else out)


def _written_out(body: Sequence[Stmt]) -> Iterator[Stmt]:
    """The statements with the steps of short loops in a row, if they form an extreme that they hand on."""
    for stmt in body:
        yield from _steps(stmt) if isinstance(stmt, For) else (stmt,)


def _steps(loop: For) -> Sequence[Stmt]:
    *steps, last = loop.body
    is_short = loop.trips is not None and loop.trips <= STEPS and loop.trips * weight(loop.body) <= HEAVY
    if not is_short or loop.kind is not LoopKind.SEQUENTIAL or not isinstance(last, Update) or last.accum:
        return (loop,)
    if not all(isinstance(stmt, Define) for stmt in steps) or not any(map(_is_nan, steps)):
        return (loop,)
    step, now, out = (*steps, Define(last.variable, last.value)), last.variable, list[Stmt]()
    for number in range(loop.trips or 0):
        copied = copy_body(step, {loop.symbol: loop.lo + number * loop.step}, {last.variable: now})
        now = _made(copied[-1]) or now
        out += copied
    return *out, Update(last.variable, Local(now))


@frozen
class _Locals:
    """How often locals of the kernel are read, and which change after they are defined."""

    reads: Counter[Variable]
    changing: Set[Variable]


def _among_numbers(body: Sequence[Stmt], known: _Locals) -> Iterator[Stmt]:
    """The statements of a vector loop, with a branch at the end of each chain."""
    chain = _Chain(known)
    for stmt in body:
        if not chain.takes(stmt):
            yield from chain.statements()
            chain = _Chain(known)
            chain.takes(stmt)
    yield from chain.statements()


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
