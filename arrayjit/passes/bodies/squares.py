"""squares: roots and lengths that are only compared with another number are not drawn.

    for i in parallel(0, 100):                      for i in parallel(0, 100):
        t = add(square(x[i]), square(y[i]))             t = add(square(x[i]), square(y[i]))
        d = sqrt(t)                         ->          near = less_equal(t, most)
        near = less(d, r)

Roots keep the order of numbers, and rounded ones do: a root is less than r where its square is not more than
`most`, the last number whose root is. That is near r * r, and found by trying what lies around it, once for
many roots; so all comparisons come out as they did. Of numbers that may be negative it is asked whether they
are. Of lengths (`hypot`, the absolute values of complex numbers) the square is formed as it is under their
root, if they are compared with a known number near which it neither overflows nor vanishes.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Container
from dataclasses import replace

import numpy as np

from ...ir.code import Caps
from ...ir.conditions import both, compare, either
from ...ir.definitions.roots import length_is_infinite, square_of_length
from ...ir.dtype import F32, F64
from ...ir.expr import Apply, Const, Expr, Local, Variable, constant, dtype_of
from ...ir.loops import Bind, Define, For, Kernel, Stmt, While, walk_statements
from ...ir.ops import OPS, Op
from ...ir.walk import applies, kept, locals_read, rewrite_bodies, rewrite_expressions, transform
from ..analysis.levels import Levels
from ..analysis.trips import about
from .expand import Definitions
from .least import Floats
from .rules import simpler

__all__ = ["squares"]

SQRT, HYPOT = OPS["sqrt"], OPS["hypot"]
BELOW, WITHIN = OPS["square_below"], OPS["square_within"]

TURNED = {
    OPS[one]: OPS[other]
    for one, other in (
        ("less", "greater"),
        ("less_equal", "greater_equal"),
        ("greater", "less"),
        ("greater_equal", "less_equal"),
    )
}
"""What holds for two numbers if it does for the other one and the first."""

PLAIN = 2.0**-60, 2.0**60
"""Squares of these numbers, and what is near them, neither overflow nor vanish."""

MANY = 64
"""So many roots make up for the search of what their squares are compared with."""

ROUNDS = 4
"""So often runs a loop of which only the run knows how often."""


def squares(kernel: Kernel, caps: Caps) -> Kernel:
    """Every such root without its root."""
    if not applies(kernel.body, (SQRT, HYPOT)):
        return kernel
    seen = _Walk(kernel.body)
    seen.body(kernel.body)
    reads = Counter(locals_read(walk_statements(kernel.body)))
    walk = _Walk(kernel.body, {root for root, asked in seen.asked.items() if asked == reads[root]})
    body = walk.body(kernel.body)
    return kernel.with_body(body, ["squares: roots are compared by their squares"])


class _Walk:
    """A walk that knows about how often each loop around the present statement runs. `roots` are locals, of
    which `asked` counts how often they are compared; where nothing else is done with one, it is `known`, and
    not made."""

    def __init__(self, body: tuple[Stmt, ...], known: Container[Variable] = ()) -> None:
        self.levels = Levels(body)
        self.floats = Floats.of(body)
        self.trips: list[int] = []
        self.known = known
        self.asked = Counter[Variable]()
        self.roots: dict[Variable, Apply] = {}

    def body(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        return kept(body, [new for stmt in body for new in self.statement(stmt)])

    def statement(self, stmt: Stmt) -> list[Stmt]:
        """A statement after what its comparisons need; those in the condition of a loop are as before."""
        levels, definitions = self.levels, Definitions(())
        match stmt:
            case For() | While():
                return [self.inside(stmt)]
            case Bind(symbol=symbol):
                levels.symbols[symbol] = levels.innermost
            case Define(variable=variable) if variable in levels.changing:
                levels.locals[variable] = levels.innermost
            case Define(variable=variable, value=value):
                levels.locals[variable] = self.levels.in_each(value)
                if isinstance(value, Apply) and value.op in (SQRT, HYPOT):
                    self.roots[variable] = value
                    if variable in self.known:
                        self.roots[variable] = replace(value, args=self.operands(value, definitions))
                        return list(definitions.lines)
            case _:
                pass

        def compared(node: Expr) -> Expr:
            if not isinstance(node, Apply) or node.op not in TURNED:
                return node
            left, right = node.args
            for comparison, root, bound in ((node.op, left, right), (TURNED[node.op], right, left)):
                if self.is_worth_while(root, bound):
                    return self.compared(comparison, root, bound, definitions) or node
            return node

        stmt = rewrite_expressions(stmt, lambda expr: transform(expr, compared))
        return [*definitions.lines, rewrite_bodies(stmt, self.body)]

    def inside(self, loop: For | While) -> Stmt:
        self.levels.enter(loop)
        self.trips.append((about(loop, self.levels.ranges) or MANY) if isinstance(loop, For) else ROUNDS)
        new = rewrite_bodies(loop, self.body)
        self.trips.pop()
        self.levels.around.pop()
        return new

    def operands(self, root: Apply, definitions: Definitions) -> tuple[Expr, ...]:
        """What a root is taken of, as locals that do not change."""
        return tuple(self.lasting(arg, definitions) for arg in root.args)

    def lasting(self, value: Expr, definitions: Definitions) -> Expr:
        if not isinstance(value, Local) or value.variable not in self.levels.changing:
            return definitions.bound(value)
        copy = Variable(value.variable.hint, value.variable.dtype)
        definitions.lines.append(Define(copy, value))
        return Local(copy)

    def root(self, value: Expr) -> Apply | None:
        """What a value is, if it may be a root."""
        found = self.roots.get(value.variable) if isinstance(value, Local) else value
        return found if isinstance(found, Apply) else None

    def compared(self, comparison: Op, root: Expr, bound: Expr, definitions: Definitions) -> Expr | None:
        """How the square of a root compares with the bound's, unless the root itself is needed."""
        found = self.root(root)
        assert found is not None
        if isinstance(root, Local):
            self.asked[root.variable] += 1
            if root.variable not in self.known:
                return None
        args = self.operands(found, definitions)
        is_less, is_strict = comparison.name.startswith("less"), not comparison.name.endswith("equal")
        if found.op is HYPOT and found.dtype is F32:
            assert isinstance(bound, Const)
            bound, is_strict = Const(_widest(bound.value, is_less == is_strict), F64), not is_less
        square = args[0] if found.op is SQRT else square_of_length(definitions, *args)
        last = simpler(Apply(BELOW if is_less == is_strict else WITHIN, (bound,), dtype_of(bound)))
        holds = compare("less_equal" if is_less else "greater", square, last)
        if found.op is HYPOT:
            return holds if is_less else either(holds, length_is_infinite(definitions, *args))
        is_square = not is_less or self.floats.least(found.args[0]) >= 0
        return (
            holds if is_square else both(holds, compare("greater_equal", args[0], constant(0.0, found.dtype)))
        )

    def is_worth_while(self, value: Expr, bound: Expr) -> bool:
        """Is this a root, or a length of plain size, of which many are compared with the bound?"""
        root = self.root(value)
        if root is None or root.op not in (SQRT, HYPOT) or root.dtype not in (F32, F64):
            return False
        if isinstance(bound, Const):
            return root.op is SQRT or PLAIN[0] <= bound.value <= PLAIN[1]
        return (
            root.op is SQRT
            and math.prod(self.trips[self.levels.in_each(bound) : self.levels.in_each(value)]) >= MANY
        )


def _widest(bound: float, is_below: bool) -> float:
    """The last float64 that, as a float32, is less than a bound, or not above it."""
    last = np.nextafter(np.float32(bound), np.float32(0)) if is_below else np.float32(bound)
    middle = (float(last) + float(np.nextafter(last, np.float32(math.inf)))) / 2
    return middle if np.float32(middle) == last else math.nextafter(middle, 0.0)
