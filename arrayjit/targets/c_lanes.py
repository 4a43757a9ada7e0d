"""How a vector loop is cut into loops over its lanes.

A vector loop whose body is straight is printed as a plain loop, which a C compiler makes vectors of. Others
are printed in blocks of as many iterations as there are lanes. The body is cut into regions without branches
and loops; each region is a loop over the lanes, and what one region leaves to another is an array with a cell
for each lane.
"""

from __future__ import annotations

from ..frozen import frozen
from ..ir.dtype import I32, DType, named
from ..ir.expr import Expr, Local, Variable
from ..ir.index import Affine, Symbol
from ..ir.loops import (
    Barrier,
    Bind,
    Comment,
    Copy,
    Define,
    Fill,
    For,
    If,
    Lap,
    LoopKind,
    Multiply,
    Prefetch,
    Raise,
    Stay,
    Stmt,
    Store,
    Update,
    While,
    walk_statements,
)
from ..ir.walk import differs, expressions, locals_defined, walk
from .bodies import changes, updated

__all__ = ["Lanes", "in_region", "is_straight", "lanes_of", "mentions"]


def is_straight(stmt: Stmt) -> bool:
    """Whether there are no branches in a statement, and no loops but those that are printed as copies."""
    match stmt:
        case For(kind=LoopKind.UNROLLED, lo=lo, hi=hi, body=body):
            return lo.is_constant and hi.is_constant and all(map(is_straight, body))
        case _:
            return in_region(stmt)


def in_region(stmt: Stmt) -> bool:
    """Whether a statement stands in a region; others stand between two. The copies of a body are regions of
    their own: in short ones what is accumulated stays in registers."""
    match stmt:
        case Define() | Update() | Store() | Comment():
            return True
        case For() | While() | If() | Bind() | Stay() | Raise() | Fill() | Prefetch() | Lap() | Barrier():
            return False
        case Copy() | Multiply():
            return False


def mentions(body: tuple[Stmt, ...], symbol: Symbol) -> bool:
    """Whether a body needs the symbol."""
    for stmt in walk_statements(body):
        bounds: tuple[Affine, ...] = ()
        match stmt:
            case Store(index=index) | Prefetch(index=index):
                bounds = index
            case For(lo=lo, hi=hi):
                bounds = (lo, hi)
            case _:
                pass
        if any(position.coefficient(symbol) for position in bounds):
            return True
        if any(differs(expr, symbol, ()) for expr in expressions(stmt)):
            return True
    return False


@frozen
class Lanes:
    """What is known of the body of a vector loop: the locals that differ from lane to lane, and of these the
    ones that need an array, being used in several regions. A bool is an integer of the type `mask` there, as
    wide as most of what is computed: vectors of a loop have as many lanes each."""

    symbol: Symbol
    varying: frozenset[Variable]
    crossing: frozenset[Variable]
    mask: DType

    def differs(self, expr: Expr) -> bool:
        """Whether the value depends on the lane."""
        return differs(expr, self.symbol, self.varying)


def lanes_of(loop: For) -> Lanes:
    """What is known of a vector loop."""
    survey = _Survey(loop)
    survey.body(loop.body)
    crossing = (v for v, used in survey.regions.items() if len(used) > 1 and v in survey.own)
    widths = [variable.dtype.bits for variable in survey.varying if variable.dtype.is_float]
    mask = named(f"i{max(32, sorted(widths)[len(widths) // 2])}") if widths else I32
    return Lanes(loop.symbol, frozenset(survey.varying), frozenset(crossing) & survey.varying, mask)


class _Survey:
    """Numbers the regions of a loop's body in the order in which they are printed. A local that is updated
    differs from lane to lane; one that accumulates from outside is used there too."""

    def __init__(self, loop: For) -> None:
        self._symbol = loop.symbol
        self._region = 0
        outside = changes(loop.body)
        self.varying = set(updated(loop.body))
        self.own = locals_defined(walk_statements(loop.body))
        self.own.update(outside)
        self.regions: dict[Variable, set[int]] = {variable: {0} for variable in outside}

    def body(self, body: tuple[Stmt, ...]) -> None:
        is_open = False
        for stmt in body:
            if isinstance(stmt, Prefetch):
                continue
            was_open, is_open = is_open, in_region(stmt)
            if not (was_open and is_open):
                self._region += 1
            if is_open:
                self._whole(stmt)
            else:
                self._cut(stmt)

    def _cut(self, stmt: Stmt) -> None:
        for expr in expressions(stmt):
            self._mention(expr)
        match stmt:
            case If(condition=condition) if differs(condition, self._symbol, self.varying):
                self._whole(stmt)
            case If(body=body, orelse=orelse):
                self.body(body)
                self.body(orelse)
            case While(test=test, body=body):
                self.body(test)
                self.body(body)
            case For(body=body):
                self.body(body)
            case _:
                pass

    def _whole(self, stmt: Stmt) -> None:
        """A statement with all that is in it."""
        for inner in walk_statements((stmt,)):
            for expr in expressions(inner):
                self._mention(expr)
            if isinstance(inner, (Define, Update)):
                self.regions.setdefault(inner.variable, set()).add(self._region)
            if isinstance(inner, Define) and differs(inner.value, self._symbol, self.varying):
                self.varying.add(inner.variable)

    def _mention(self, expr: Expr) -> None:
        for node in walk(expr):
            if isinstance(node, Local):
                self.regions.setdefault(node.variable, set()).add(self._region)
