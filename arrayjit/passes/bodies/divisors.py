"""divisors: quotients and remainders by an integer that a loop does not change are products.

    for i in sequential(0, 800):                for i in sequential(0, 800):
        y[i] = remainder(x[i], m[()])               t = x[i]
                                                    d = m[()]
                                                    r = raw_divide(u64(-1), maximum(d, 2))
                                          ->        q = raw_upper_half(t, r)
                                                    rest = where(t < 0, t, t - d) - q * d
                                                    y[i] = rarely(d < 2, remainder(t, d),
                                                                  where(rest < 0, rest + d, rest))

By the reciprocal r, all bits divided by d, the upper half of a product is the quotient or one less, of a
negative number the quotient or one more; what is left tells (T. Granlund and P. Montgomery, Division by
invariant integers using multiplication, 1994). Two products take less time than a division, go several at
once and in vectors. `hoist` takes the reciprocal out of the loop. Divisors less than two are divided by as
before; those without a sign need no such branch.

    y[i] = floor_divide(x[i], 7)       ->           t = x[i]
                                                    s = raw_right_shift(t, 63)
                                                    q = raw_upper_half(u64(t ^ s), 5270498306774157605)
                                                    y[i] = i64(raw_right_shift(q, 1)) ^ s

Integers of 64 bits are so divided by known numbers as well, for which processors have no vectors: by a
reciprocal of as many bits as make the quotient right. That of a negative number is found among those that are
none, of which all bits are turned around: -1 - x towards zero is as far as x towards minus infinity. Fewer
bits LLVM divides in vectors itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from ...ir.code import Caps
from ...ir.definitions.terms import Term, definition, rarely, where
from ...ir.dtype import Kind, named
from ...ir.expr import Apply, Cast, Const, Expr, Index, Local, Variable, dtype_of
from ...ir.loops import Bind, Define, For, Kernel, Stmt, Update, While
from ...ir.ops import OPS, Op
from ...ir.walk import applies, kept, rewrite_bodies, rewrite_expressions, transform
from ..analysis.levels import Levels
from ..analysis.trips import about
from .expand import Definitions

__all__ = ["divisors"]

RAW = OPS["raw_divide"], OPS["raw_remainder"]

FEW = 16
"""Divisions that do not make up for the reciprocal."""

ROUNDS = 4
"""So often runs a loop of which only the run knows how often."""


def divisors(kernel: Kernel, caps: Caps) -> Kernel:
    """Every division by what stays the same for long a product."""
    if not applies(kernel.body, KNOWN):
        return kernel
    walk = _Walk(kernel.body)
    return kernel.with_body(walk.body(kernel.body), [f"divisors: {op} by a product" for op in walk.found])


@definition
def _remainder(x: Term, y: Term) -> Term:
    if x.dtype.kind is Kind.UINT:
        _, rest, divisor = _without_sign(x, y)
        return where(rest < divisor, rest, rest - divisor)
    _, rest, divisor = _with_sign(x, y)
    return rarely(y < 2, x.op("remainder", y), where(rest < 0, rest + divisor, rest))


@definition
def _quotient(x: Term, y: Term) -> Term:
    if x.dtype.kind is Kind.UINT:
        about, rest, divisor = _without_sign(x, y)
        return where(y == 0, 0, where(rest < divisor, about, about + 1))
    about, rest, _ = _with_sign(x, y)
    places = x.dtype.bits - 1
    missing = x.op("raw_right_shift", places) + rest.op("raw_right_shift", places)
    return rarely(y < 2, x.op("floor_divide", y), about + 1 + missing)


DEFINITIONS: dict[Op, Callable[..., Expr]] = {
    OPS["remainder"]: _remainder,
    OPS["divmod_remainder"]: _remainder,
    OPS["floor_divide"]: _quotient,
    OPS["divmod_quotient"]: _quotient,
}


@definition
def _known_quotient(x: Term, y: Term) -> Term:
    return _by_known(x, y)


@definition
def _known_remainder(x: Term, y: Term) -> Term:
    return x - _by_known(x, y) * y


KNOWN: dict[Op, Callable[..., Expr]] = {
    OPS["remainder"]: _known_remainder,
    OPS["divmod_remainder"]: _known_remainder,
    OPS["floor_divide"]: _known_quotient,
    OPS["divmod_quotient"]: _known_quotient,
    OPS["raw_divide"]: _known_quotient,
    OPS["raw_remainder"]: _known_remainder,
}
"""Raw divisions, which are those of integers without a sign, are downwards too."""


def _by_known(x: Term, y: Term) -> Term:
    divisor, bits = int(y.known or 0), x.dtype.bits
    if x.dtype.kind is Kind.UINT:
        return _positive_quotient(x, divisor, bits)
    sign = x.op("raw_right_shift", bits - 1)
    quotient = _positive_quotient((x ^ sign).cast(named(f"u{bits}")), divisor, bits - 1)
    return quotient.cast(x.dtype) ^ sign


def _positive_quotient(x: Term, divisor: int, bits: int) -> Term:
    """Of an integer without a sign that has so many bits. A reciprocal is rounded up, by less than what adds
    up to a fraction's distance to the next integer; where it takes a bit more than there are, what that one
    adds is halved with the rest."""
    size = x.dtype.bits
    shift = next(n for n in range(size + 1) if -(1 << size + n) % divisor <= 1 << size + n - bits)
    reciprocal = -(-(1 << size + shift) // divisor)
    if reciprocal < 1 << size:
        return x.op("raw_upper_half", reciprocal).op("raw_right_shift", shift)
    upper = x.op("raw_upper_half", reciprocal - (1 << size))
    return ((x - upper).op("raw_right_shift", 1) + upper).op("raw_right_shift", shift - 1)


def _without_sign(x: Term, y: Term) -> tuple[Term, Term, Term]:
    """About the quotient, what is left, and the divisor. By a reciprocal that is less than one too small, the
    quotient is at most one too small."""
    divisor = where(y == 0, 1, y)
    about = x.op("raw_upper_half", _reciprocal(divisor))
    return about, x - about * divisor, divisor


def _with_sign(x: Term, y: Term) -> tuple[Term, Term, Term]:
    """Likewise. The quotient of a negative number is found right or one too large, that of another right or
    one too small: there, one divisor more is taken away."""
    plain = named(f"u{x.dtype.bits}")
    divisor = y.op("maximum", 2)
    about = x.op("raw_upper_half", _reciprocal(divisor.cast(plain)).cast(x.dtype))
    return about, where(x < 0, x, x - divisor) - about * divisor, divisor


def _reciprocal(divisor: Term) -> Term:
    return divisor.const((1 << divisor.dtype.bits) - 1).op("raw_divide", divisor)


class _Walk:
    """A walk that knows about how often each loop around the present statement runs."""

    def __init__(self, body: tuple[Stmt, ...]) -> None:
        self.levels = Levels(body)
        self.trips: list[int] = []
        self.copies: dict[Variable, Variable] = {}
        self.found: list[Op] = []

    def body(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        self.copies.clear()
        new = kept(body, [new for stmt in body for new in self.statement(stmt)])
        self.copies.clear()
        return new

    def statement(self, stmt: Stmt) -> list[Stmt]:
        """A statement after what its quotients need; those in the condition of a loop are as before."""
        levels = self.levels
        match stmt:
            case For() | While():
                return [self.inside(stmt)]
            case Bind(symbol=symbol):
                levels.symbols[symbol] = levels.innermost
            case Define(variable=variable, value=value):
                is_one = variable not in levels.changing
                levels.locals[variable] = self.levels.in_each(value) if is_one else levels.innermost
            case _:
                pass
        definitions = Definitions(())

        def product(node: Expr) -> Expr:
            if not (isinstance(node, Apply) and node.op in KNOWN):
                return node
            found = KNOWN if _is_known(node) else DEFINITIONS if self.is_lasting(node) else {}
            if node.op not in found:
                return node
            self.found.append(node.op)
            operands = (self.operand(arg, definitions) for arg in node.args)
            return found[node.op](definitions, *operands)

        stmt = rewrite_expressions(stmt, lambda expr: transform(expr, product))
        if isinstance(stmt, Update):
            self.copies.pop(stmt.variable, None)
        return [*definitions.lines, rewrite_bodies(stmt, self.body)]

    def operand(self, value: Expr, definitions: Definitions) -> Expr:
        """What names an operand. One that changes gets a name of its own, which quotient and remainder
        share: `rare` moves to its branch what reads no local that changes."""
        if not isinstance(value, Local) or value.variable not in self.levels.changing:
            return definitions.bound(value)
        if value.variable not in self.copies:
            self.copies[value.variable] = Variable("n", value.variable.dtype)
            definitions.lines.append(Define(self.copies[value.variable], value))
        return Local(self.copies[value.variable])

    def inside(self, loop: For | While) -> Stmt:
        self.levels.enter(loop)
        self.trips.append((about(loop, self.levels.ranges) or FEW) if isinstance(loop, For) else ROUNDS)
        new = rewrite_bodies(loop, self.body)
        self.trips.pop()
        self.levels.around.pop()
        return new

    def is_lasting(self, node: Apply) -> bool:
        """Are integers of one type divided, many times by the same?"""
        left, right = node.args
        if not node.dtype.is_integer or not dtype_of(left) is dtype_of(right) is node.dtype:
            return False
        if isinstance(right, Const) or (isinstance(right, Index) and right.value.is_constant):
            return False
        return math.prod(self.trips[self.levels.in_each(right) :]) >= FEW


def _is_known(node: Apply) -> bool:
    """Is an integer of 64 bits that is no position divided by a number that is no power of two?"""
    left, right = node.args
    if not (isinstance(right, Const) and node.dtype.is_integer and node.dtype.bits == 64):
        return False
    if dtype_of(left) is not node.dtype or (node.op in RAW and node.dtype.kind is not Kind.UINT):
        return False
    divided = left.arg if isinstance(left, Cast) else left
    divisor = int(right.value)
    return divisor > 2 and divisor.bit_count() > 1 and not isinstance(divided, Index)
