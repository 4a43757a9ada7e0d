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
"""

from __future__ import annotations

from collections.abc import Callable

from ...frozen import slotted
from ...ir.code import Caps
from ...ir.definitions.terms import Term, definition, rarely, where
from ...ir.dtype import Kind, named
from ...ir.expr import Apply, Cast, Const, Expr, Index, Load, Local, Variable, dtype_of
from ...ir.index import Affine, Symbol
from ...ir.loops import Bind, Define, For, Kernel, Stmt, Update, While, walk_statements, written
from ...ir.ops import OPS, Op
from ...ir.tensor import Tensor
from ...ir.walk import children, kept, rewrite_bodies, rewrite_expressions, transform
from ..analysis.access import Range, exists
from ..analysis.trips import about, enter
from .expand import Definitions

__all__ = ["divisors"]

FEW = 16
"""Divisions that do not make up for the reciprocal."""

ROUNDS = 4
"""So often runs a loop of which only the run knows how often."""


def divisors(kernel: Kernel, caps: Caps) -> Kernel:
    """Every division by what stays the same for long a product."""
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


@slotted
class _Frame:
    """A loop around the present statement: what it changes, and about how often it runs."""

    stores: set[Tensor]
    updates: set[Variable]
    trips: int

    @staticmethod
    def around(body: tuple[Stmt, ...], trips: int) -> _Frame:
        inside = list(walk_statements(body))
        stores = {tensor for tensor in map(written, inside) if tensor is not None}
        return _Frame(stores, {stmt.variable for stmt in inside if isinstance(stmt, Update)}, trips)


class _Walk:
    """A walk with the loops around the present statement. The *level* of a value is the number of those
    loops that change it, from the outermost one on."""

    def __init__(self, body: tuple[Stmt, ...]) -> None:
        self.changing = {stmt.variable for stmt in walk_statements(body) if isinstance(stmt, Update)}
        self.levels: dict[Variable, int] = {}
        self.depths: dict[Symbol, int] = {}
        self.ranges: dict[Symbol, Range] = {}
        self.frames: list[_Frame] = []
        self.copies: dict[Variable, Variable] = {}
        self.found: list[Op] = []

    def body(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        self.copies.clear()
        new = kept(body, [new for stmt in body for new in self.statement(stmt)])
        self.copies.clear()
        return new

    def statement(self, stmt: Stmt) -> list[Stmt]:
        """A statement after what its quotients need; those in the condition of a loop are as before."""
        match stmt:
            case For(symbol=symbol):
                enter(stmt, self.ranges)
                frame = _Frame.around(stmt.body, about(stmt, self.ranges) or FEW)
                self.depths[symbol] = len(self.frames) + 1
                return [self.inside(stmt, frame)]
            case While(test=test, body=body):
                return [self.inside(stmt, _Frame.around((*test, *body), ROUNDS))]
            case Bind(symbol=symbol):
                self.depths[symbol] = len(self.frames)
            case Define(variable=variable, value=value):
                is_one = variable not in self.changing
                self.levels[variable] = self.level(value) if is_one else len(self.frames)
            case _:
                pass
        definitions = Definitions(())

        def product(node: Expr) -> Expr:
            if not (isinstance(node, Apply) and node.op in DEFINITIONS and self.is_lasting(node)):
                return node
            self.found.append(node.op)
            operands = (self.operand(arg, definitions) for arg in node.args)
            return DEFINITIONS[node.op](definitions, *operands)

        stmt = rewrite_expressions(stmt, lambda expr: transform(expr, product))
        if isinstance(stmt, Update):
            self.copies.pop(stmt.variable, None)
        return [*definitions.lines, rewrite_bodies(stmt, self.body)]

    def operand(self, value: Expr, definitions: Definitions) -> Expr:
        """What names an operand. One that changes gets a name of its own, which quotient and remainder
        share: `rare` moves to its branch what reads no local that changes."""
        if not isinstance(value, Local) or value.variable not in self.changing:
            return definitions.bound(value)
        if value.variable not in self.copies:
            self.copies[value.variable] = Variable("n", value.variable.dtype)
            definitions.lines.append(Define(self.copies[value.variable], value))
        return Local(self.copies[value.variable])

    def inside(self, loop: For | While, frame: _Frame) -> Stmt:
        self.frames.append(frame)
        new = rewrite_bodies(loop, self.body)
        self.frames.pop()
        return new

    def is_lasting(self, node: Apply) -> bool:
        """Are integers of one type divided, many times by the same?"""
        left, right = node.args
        if not node.dtype.is_integer or not dtype_of(left) is dtype_of(right) is node.dtype:
            return False
        if isinstance(right, Const) or (isinstance(right, Index) and right.value.is_constant):
            return False
        times = 1
        for frame in self.frames[self.level(right) :]:
            times *= frame.trips
        return times >= FEW

    def level(self, value: Expr) -> int:
        match value:
            case Index(value=position):
                return self.innermost((position,))
            case Local(variable=variable):
                known = self.levels.get(variable, len(self.frames))
                return max(known, self.last(lambda frame: variable in frame.updates))
            case Load(tensor=tensor, index=index) if exists(tensor, index, self.ranges):
                return max(self.innermost(index), self.last(lambda frame: tensor.storage in frame.stores))
            case Const() | Apply() | Cast():
                return max(map(self.level, children(value)), default=0)
            case _:
                return len(self.frames)

    def innermost(self, positions: tuple[Affine, ...]) -> int:
        """The level below every loop whose symbol the positions mention."""
        return max((self.depths.get(s, 0) for position in positions for s in position.symbols), default=0)

    def last(self, holds: Callable[[_Frame], bool]) -> int:
        """The level inside the innermost loop for which something holds."""
        return max((n + 1 for n, frame in enumerate(self.frames) if holds(frame)), default=0)
