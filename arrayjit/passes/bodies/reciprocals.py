"""reciprocals: where dividing takes most of the time, quotients by numbers that a loop does not change are
products with their reciprocals, put right by what is left.

    for i in vector(0, 800, lanes=8):           r = divide(1.0, d)
        t = divide(x[i], d)                     usual = where(d*d + r*r <= 2.0**510, -1, 0)
        u = multiply(t, t)               ->     for i in vector(0, 800, lanes=8):
        y[i] = u                                    n = x[i]
                                                    q = multiply(n, r)
                                                    t = fma(fma(q, d, -n), -r, q)
                                                    u = multiply(t, t)
                                                    b = bits(n)
                                                    if seldom((((b << 1) ^ b) & usual) << 1 >= 0):
                                                        if seldom(b << 1 != zero, or usual is none):
                                                            t1 = divide(n, d)
                                                            u1 = multiply(t1, t1)
                                                            u = u1
                                                    y[i] = u

Such a product is the quotient, rounded correctly, if the reciprocal is rounded correctly and nothing
overflows or loses bits below the least normal number: P. Markstein, Computation of elementary functions on
the IBM RISC System/6000 processor (1990); N. Brisebarre, J.-M. Muller and S. K. Raina, Accelerating
correctly rounded floating-point division when the divisor is known in advance (2004). Infinities, NaNs and
what is very large or small are divided as before, and what follows from their quotients is computed again.
One test is for all numerators: the two first bits of an exponent differ in the middle half of the exponents.
Zeros are told from other such numerators where there is one divisor; else they are divided as well. What a
processor does in the time of a division decides whether products are worth it: those that divide slowly take
0.3 to 0.8 of the time for arrays that are divided in place, and 0.7 for a tree of prices.

    for i in vector(0, 800, lanes=8):           r = ...  usual = ...  zero = where(d < 0.0, 1, 0)
        y[i] = divide(x[i], d)                  seen = usual
                                         ->     for i in vector(0, 800, lanes=8):
                                                    n = x[i]
                                                    q = multiply(n, r)
                                                    y[i] = fma(fma(q, d, -n), -r, q)
                                                    b = bits(n)
                                                    u = b << 1
                                                    seen &= where(u == zero, -1, u ^ b)
                                                if seldom(seen << 1 >= 0):
                                                    for i in vector(0, 800, lanes=8):
                                                        y[i] = divide(x[i], d)

Where a loop does little else and reads nothing that it writes, the test waits for the end of the loop, or of
each 4096 iterations of it, and all of them are done again if it fails. A zero by a positive number passes:
the products have its sign. What caches hold is divided in 0.45 to 0.8 of the time so.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Union

from ...frozen import frozen
from ...ir.code import Caps
from ...ir.conditions import compare
from ...ir.definitions.layout import largest_exponent, signed
from ...ir.dtype import F32, F64, DType
from ...ir.expr import Apply, Cast, Const, Expr, Gather, Load, Local, Variable, constant, dtype_of
from ...ir.index import Affine, Symbol
from ...ir.loops import Define, For, If, LoopKind, Stmt, Store, Update
from ...ir.ops import OPS
from ...ir.walk import (
    expressions,
    locals_read,
    locals_updated,
    nodes_in,
    rewrite_expressions,
    transform,
    walk,
)
from ..analysis.copies import Copying, copy_body
from ..analysis.loopwise import Site, loopwise

__all__ = ["reciprocals"]


STEPS, TESTED, BRANCH = 3.0, 3.0, 4.0
"""Operations for a quotient, for the test of a numerator, and for the branch."""

GAIN = 1.25
"""So much longer than all operations of a body must its divisions take."""

FEW = 16
"""Vectors that do not make up for the reciprocals."""

AGAIN = 4096
"""So many iterations at most are done again at once."""

Divisor = Union[Const, Local]


@loopwise
def reciprocals(loop: For, site: Site) -> Iterable[Stmt] | None:
    """Every vector loop that waits for its divisions without them."""
    if not site.caps.fma:
        return None
    found = _found(loop, site.caps) if loop.kind in (LoopKind.VECTOR, LoopKind.LOCKSTEP) else None
    if found is None:
        return None
    if _may_be_done_again(loop) and found.is_simple:
        site.notes.append(
            f"reciprocals: loop {loop.symbol.hint} multiplies, and looks at its numerators later"
        )
        return _deferring(loop, found.quotients)
    quotients = found.quotients if found.is_long else []
    if not quotients:
        return None
    site.notes.append(f"reciprocals: loop {loop.symbol.hint} multiplies for {len(quotients)} quotients")
    return _Loop(loop, quotients).multiplying()


@frozen
class _Quotient:
    """What a loop divides by what it does not change."""

    numerator: Expr
    divisor: Divisor

    @staticmethod
    def of(node: Expr, changed: Collection[Variable]) -> _Quotient | None:
        """None where the loop changes the divisor, and where a known one lies without its range or is a power
        of two, by which nobody divides."""
        match node:
            case Apply(op=op, args=(numerator, Const(value=value, dtype=dtype) as divisor)):
                known = dtype in (F32, F64) and 1 / _most(dtype) <= abs(value) <= _most(dtype)
                fits = known and math.frexp(value)[0] not in (-0.5, 0.5)
            case Apply(op=op, args=(numerator, Local(variable=variable) as divisor)):
                fits = variable.dtype in (F32, F64) and variable not in changed
            case _:
                return None
        return _Quotient(numerator, divisor) if fits and op is OPS["divide"] else None


def _most(dtype: DType) -> float:
    """Divisors and reciprocals up to here make normal quotients and remainders of numerators that have an
    exponent in the middle half."""
    return 2.0 ** (largest_exponent(dtype) // 4)


@frozen
class _Found:
    """The quotients of a loop that can be made of products, the operations beside them, and those that last
    as long as one division."""

    quotients: Sequence[_Quotient]
    others: float
    stores: int
    dividing: float

    @property
    def numerators(self) -> int:
        return len({quotient.numerator for quotient in self.quotients})

    @property
    def is_long(self) -> bool:
        """Does the loop wait for its divisions above all?"""
        others = self.others + self.stores + BRANCH
        others += STEPS * len(self.quotients) + TESTED * self.numerators
        dividing = max(OPS["divide"].cost, self.dividing)
        return dividing * len(self.quotients) > GAIN * others

    @property
    def is_simple(self) -> bool:
        """Is a loop that tests at its end over before its divisions would be?"""
        others = self.others + STEPS * len(self.quotients) + self.numerators
        return self.dividing * len(self.quotients) > others


def _found(loop: For, caps: Caps) -> _Found | None:
    """What a loop divides by what it does not change."""
    if not all(isinstance(stmt, (Define, Update, Store)) for stmt in loop.body):
        return None
    if loop.trips is not None and loop.trips < FEW * loop.lanes:
        return None
    changed = _changed(loop.body)
    found, others = list[_Quotient](), 0.0
    for node in chain.from_iterable(map(walk, chain.from_iterable(map(expressions, loop.body)))):
        if (quotient := _Quotient.of(node, changed)) is not None:
            found.append(quotient)
        elif isinstance(node, Apply):
            others += node.op.cost
        elif isinstance(node, (Load, Gather)):
            others += 1.0
    dtypes = {dtype_of(quotient.divisor) for quotient in found}
    if len(dtypes) != 1:
        return None
    dividing = caps.divisions[dtypes == {F64}]
    return _Found(found, others, sum(isinstance(stmt, Store) for stmt in loop.body), dividing)


def _may_be_done_again(loop: For) -> bool:
    """Whether a loop of known length, in any order, only stores, to where it reads nothing, and not past the
    caches."""
    nodes = list(nodes_in(loop.body))
    read = {node.tensor.storage for node in nodes if isinstance(node, Load)}
    stores = [stmt for stmt in loop.body if isinstance(stmt, Store)]
    if loop.kind is not LoopKind.VECTOR or loop.trips is None or loop.step != 1:
        return False
    if any(isinstance(node, Gather) for node in nodes):
        return False
    if any(isinstance(stmt, Update) for stmt in loop.body):
        return False
    return not any(
        store.bypass or store.accum is not None or store.tensor.storage in read for store in stores
    )


def _deferring(loop: For, quotients: Sequence[_Quotient]) -> Sequence[Stmt]:
    """The loop with products for quotients, as a loop over parts of it if it is long; each is done again by
    dividing where they would not do."""
    made = _Loop(loop, quotients)
    zero = made.zero(made.reciprocals)
    trips = loop.trips or 0
    many = trips // AGAIN if trips > AGAIN else 0
    out = list(made.before)
    if many:
        part, place = Symbol(loop.symbol.hint), Symbol(loop.symbol.hint)
        lo, hi = Affine.of(0), Affine.of(AGAIN)
        start = loop.lo + Affine.of(part) * AGAIN + Affine.of(place)
        body = copy_body(loop.body, {loop.symbol: start}, {})
        short = replace(loop, symbol=place, lo=lo, hi=hi, body=body)
        out.append(For(part, lo, Affine.of(many), made.tested(short, zero), LoopKind.PARALLEL))
    rest = replace(loop, lo=loop.lo + many * AGAIN)
    if rest.trips:
        rest = replace(rest, body=copy_body(loop.body, {}, {})) if many else rest
        out += (rest,) if (rest.trips or 0) < FEW * loop.lanes else made.tested(rest, zero)
    return out


def _changed(body: Sequence[Stmt]) -> frozenset[Variable]:
    return frozenset(stmt.variable for stmt in body if isinstance(stmt, (Define, Update)))


class _Loop:
    """A loop in the making. What stands `before` it makes the reciprocals, and `usual`: all bits if the
    divisors are within their range, else none. Where known, `nothing` is twice the bits of a zero that the
    products may divide."""

    def __init__(self, loop: For, quotients: Sequence[_Quotient]) -> None:
        self.loop = loop
        self.dtype = dtype_of(quotients[0].divisor)
        self.bits = signed(self.dtype)
        self.all_bits = constant(-1, self.bits)
        self.changed = _changed(loop.body)
        self.updated = frozenset(locals_updated(loop.body))
        self.before: list[Stmt] = []
        self.reciprocals = {
            divisor: _named(self.op("divide", constant(1, self.dtype), divisor), "r", self.before)
            for divisor in dict.fromkeys(quotient.divisor for quotient in quotients)
        }
        self.usual = _named(self.are_usual(self.reciprocals), "usual", self.before)
        self.nothing: Expr | None = None

    def op(self, name: str, *args: Expr) -> Expr:
        return Apply(OPS[name], args, self.dtype)

    def on_bits(self, name: str, *args: Expr) -> Expr:
        return Apply(OPS[name], args, self.bits)

    def are_usual(self, reciprocals: Mapping[Divisor, Expr]) -> Expr:
        """All bits if no divisor and no reciprocal is large, nor the sum of their squares; else none."""
        total: Expr = constant(0, self.dtype)
        for number in chain.from_iterable(reciprocals.items()):
            total = _named(self.op("fma", number, number, total), "t", self.before)
        most = constant(_most(self.dtype) ** 2, self.dtype)
        few = compare("less_equal", total, most)
        return self.on_bits("where", few, self.all_bits, constant(0, self.bits))

    def zero(self, divisors: Iterable[Divisor]) -> Expr:
        """Twice the bits of a zero that the products may divide: of none, as 1, if a divisor is negative."""
        found: Expr = constant(0, self.bits)
        for divisor in divisors:
            negative = compare("less", divisor, constant(0, self.dtype))
            found = self.on_bits("where", negative, constant(1, self.bits), found)
        return _named(found, "zero", self.before)

    def tested(self, part: For, zero: Expr) -> tuple[Stmt, ...]:
        """A part of the loop, which is done again after a numerator that is not usual."""
        seen = Variable("seen", self.bits)
        body, quotients = self.products(chain.from_iterable(map(self.apart, part.body)))
        for numerator in dict.fromkeys(quotient.numerator for quotient in quotients.values()):
            bits = _named(self.on_bits("bits", numerator), "b", body)
            twice = _named(self.twice(bits), "u", body)
            nothing = compare("equal", twice, zero)
            differ = self.on_bits("bitwise_xor", twice, bits)
            usual = self.on_bits("where", nothing, self.all_bits, differ)
            body.append(Update(seen, usual, OPS["bitwise_and"]))
        place = Symbol(part.symbol.hint)
        dividing = copy_body(part.body, {part.symbol: Affine.of(place)}, {})
        fails = compare("greater_equal", self.twice(Local(seen)), constant(0, self.bits))
        again = If(fails, (replace(part, symbol=place, body=dividing),), seldom=True)
        return Define(seen, self.usual), replace(part, body=tuple(body), aligned=None), again

    def twice(self, bits: Expr) -> Expr:
        return self.on_bits("raw_left_shift", bits, constant(1, self.bits))

    def multiplying(self) -> tuple[Stmt, ...]:
        """The loop, after what it needs. What is sparse has many zeros, which one number may divide."""
        if len(self.reciprocals) == 1:
            self.nothing = self.zero(self.reciprocals)
        lines = tuple(chain.from_iterable(map(self.apart, self.loop.body)))
        body: list[Stmt] = []
        for run in _runs(lines):
            inside = set(map(id, run))
            body += self.fast(run, [stmt for stmt in lines if id(stmt) not in inside])
        return *self.before, replace(self.loop, body=tuple(body))

    def apart(self, stmt: Stmt) -> Sequence[Stmt]:
        """The statement after those that define its quotients, and the numerators of these."""
        before: list[Stmt] = []

        def part(node: Expr) -> Expr:
            if (quotient := _Quotient.of(node, self.changed)) is None:
                return node
            numerator = quotient.numerator
            is_kept = isinstance(numerator, Local) and numerator.variable not in self.updated
            kept_as = numerator if is_kept else _named(numerator, "n", before)
            return _named(self.op("divide", kept_as, quotient.divisor), "t", before)

        stmt = rewrite_expressions(stmt, lambda expr: transform(expr, part))
        match before, stmt:
            case [*others, Define(variable=t, value=value)], Define(value=Local(variable=u)) if t is u:
                return *others, replace(stmt, value=value)
            case _:
                return *before, stmt

    def products(self, lines: Iterable[Stmt]) -> tuple[list[Stmt], dict[Variable, _Quotient]]:
        """Statements with products for quotients, and what each of these is."""
        out: list[Stmt] = []
        quotients: dict[Variable, _Quotient] = {}
        for stmt in lines:
            quotient = _Quotient.of(stmt.value, self.changed) if isinstance(stmt, Define) else None
            if isinstance(stmt, Define) and quotient is not None:
                quotients[stmt.variable] = quotient
                out += self.product(stmt.variable, quotient)
            else:
                out.append(stmt)
        return out, quotients

    def fast(self, run: Sequence[Stmt], others: Sequence[Stmt]) -> Sequence[Stmt]:
        """A run of statements with products for quotients. Where a numerator is not usual, what others need
        of it is computed once more, as before."""
        out, quotients = self.products(run)
        if not quotients:
            return run
        follows = _follows(run, quotients.keys() | self.updated)
        copying = Copying({}, {})
        again = copying.body(tuple(stmt for stmt in run if not follows.isdisjoint(_changed((stmt,)))))
        wanted = {*locals_read(others), *_changed(others)}
        updates = (Update(old, Local(new)) for old, new in copying.variables.items() if old in wanted)
        numerators = dict.fromkeys(quotient.numerator for quotient in quotients.values())
        divided = (*again, *updates)
        if self.nothing is not None:
            divided = (If(self.unusual(numerators, self.nothing), divided, seldom=True),)
        return *out, If(self.unusual(numerators), divided, seldom=True)

    def unusual(self, numerators: Iterable[Expr], nothing: Expr | None = None) -> Expr:
        """Whether the bit after the sign equals the next in one of them, twice of which is not `nothing`, or
        a divisor is not usual."""
        usual: Expr = self.usual
        for numerator in numerators:
            bits = self.on_bits("bits", numerator)
            twice = self.twice(bits)
            differ = self.on_bits("bitwise_xor", bits, twice)
            if nothing is not None:
                differ = self.on_bits("where", compare("equal", twice, nothing), self.all_bits, differ)
            usual = self.on_bits("bitwise_and", usual, differ)
        return compare("greater_equal", self.twice(usual), constant(0, self.bits))

    def product(self, variable: Variable, quotient: _Quotient) -> Iterator[Stmt]:
        """Defines the variable as the product with the reciprocal, less what is left, divided in turn. GCC
        makes another fused product of a negative one, which has the other zero."""
        numerator, divisor = quotient.numerator, quotient.divisor
        reciprocal, about = self.reciprocals[divisor], Variable("q", self.dtype)
        yield Define(about, self.op("multiply", numerator, reciprocal))
        excess = self.op("fma", Local(about), divisor, self.op("negative", numerator))
        yield Define(variable, self.op("fma", excess, self.op("negative", reciprocal), Local(about)))


def _named(value: Expr, hint: str, body: list[Stmt]) -> Local:
    """The value as a local that the body defines."""
    variable = Variable(hint, dtype_of(value))
    body.append(Define(variable, value))
    return Local(variable)


def _runs(body: Sequence[Stmt]) -> Iterator[Sequence[Stmt]]:
    """A body cut into runs that only compute locals of their own, and what stands between them. A position,
    or an integer that something else may be divided by, is made of no quotient that is not yet put right."""
    run: list[Stmt] = []
    own: set[Variable] = set()
    for stmt in body:
        computes = isinstance(stmt, Define) or (isinstance(stmt, Update) and stmt.variable in own)
        if computes and not any(map(_needs_number, chain.from_iterable(map(walk, expressions(stmt))))):
            run.append(stmt)
            own |= _changed((stmt,))
        else:
            yield run
            yield [stmt]
            run, own = [], set()
    yield run


def _needs_number(node: Expr) -> bool:
    return isinstance(node, Gather) or (isinstance(node, Cast) and node.dtype.is_integer)


def _follows(run: Sequence[Stmt], start: Collection[Variable]) -> frozenset[Variable]:
    """The locals that a run makes of these, with these."""
    found, before = set(start), 0
    while len(found) > before:
        before = len(found)
        for stmt in run:
            if not found.isdisjoint(locals_read((stmt,))):
                found |= _changed((stmt,))
    return frozenset(found)
