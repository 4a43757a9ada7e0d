"""straight: where no position counts from the end, positions are taken as they are.

    ok = True                                   signs = 0
    for i in vector(0, 80):                     for i in vector(0, 80):
        t = n[i]                                    t = n[i]
        ok = and(ok, t >= -9 and t < 9)             signs = or(signs, or(t, 8 - t))
    raise_(not ok, 'IndexError', ...)           ok = True
    for i in vector(0, 80):                     if signs < 0:
        t = n[i]                                    (the loop of before)
        y[i] = x.at(where(t < 0, t + 9, t)) ->  raise_(not ok, 'IndexError', ...)
                                                if signs < 0:
                                                    (the loop of before)
                                                else:
                                                    for i in vector(0, 80):
                                                        t = n[i]
                                                        y[i] = x.at(t)

Every array of positions is looked through before it is used. Whether one of them is negative or too large
shows in the sign of one number, which takes less than two comparisons for each; and a processor that gathers
cell by cell finds them sooner where nothing is computed between loading a position and using it. Both forms
of a loop add up in the same order. The statements between may not write the positions, and a long body is not
written twice.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...frozen import frozen
from ...ir.code import Caps
from ...ir.dtype import I64
from ...ir.expr import Apply, Const, Expr, Index, Local, Variable
from ...ir.loops import Define, For, If, Kernel, LoopKind, Stmt, Update, walk_statements, written_in
from ...ir.ops import OPS
from ...ir.walk import kept, rewrite_bodies, rewrite_expressions, transform
from ..analysis.copies import copy_body
from ..analysis.positions import ZERO, Positions, are_negative
from ..analysis.repeats import HEAVY, weight

__all__ = ["straight"]

INDEPENDENT = (LoopKind.PARALLEL, LoopKind.VECTOR)


def straight(kernel: Kernel, caps: Caps) -> Kernel:
    """Every such loop in two forms, of which the signs choose one."""
    notes: list[str] = []

    def visit(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        inner = kept(body, [rewrite_bodies(stmt, visit) for stmt in body])
        return _chosen(inner, notes)

    return kernel.with_body(visit(kernel.body), notes)


@frozen
class _Check:
    """A loop nest that does nothing but look whether positions lie within an axis; `last` is the last of them
    that counts from the start. `signs` is negative if one does not, or counts from the end."""

    nest: For
    positions: Positions
    last: Expr
    signs: Variable

    @staticmethod
    def of(nest: For) -> _Check | None:
        loops: list[For] = []
        body: tuple[Stmt, ...] = (nest,)
        while len(body) == 1 and isinstance(loop := body[0], For) and loop.kind in INDEPENDENT:
            loops.append(loop)
            body = loop.body
        match body:
            case (Define(variable=one, value=value), Update(accum=accum, value=Apply() as test)):
                positions, last = Positions.of(value, tuple(loops)), _last(test, one)
                if accum is OPS["logical_and"] and positions is not None and last is not None:
                    return _Check(nest, positions, last, Variable("signs", I64))
        return None

    def statements(self) -> tuple[Stmt, ...]:
        """What tells the signs, and the check, for where they leave it open."""
        telling = self.positions.told(self.positions.loops, self.last, self.signs)
        return *telling, If(are_negative((Local(self.signs),)), (self.nest,))


def _last(test: Apply, one: Variable) -> Expr | None:
    """The last position of an axis, if the test is whether one lies within, counted from either end."""
    match test:
        case Apply(
            op=both,
            args=(
                Apply(op=from_below, args=(Local(variable=first), lower)),
                Apply(op=below, args=(Local(variable=second), upper)),
            ),
        ) if first is one and second is one:
            ops = both, from_below, below
            if ops != (OPS["logical_and"], OPS["greater_equal"], OPS["less"]):
                return None
        case _:
            return None
    match lower, upper:
        case Const(value=int(least)), Const(value=int(size)):
            return Const(size - 1, I64) if least <= 0 else None
        case Index(value=end), Index(value=extent):
            known = end.bounds({})
            return Index(extent - 1) if known is not None and known[1] <= 0 else None
        case _:
            return None


def _chosen(body: tuple[Stmt, ...], notes: list[str]) -> tuple[Stmt, ...]:
    """A body in which the loops that use checked positions have two forms."""
    checks: list[_Check] = []
    used: dict[int, _Check] = {}
    new: list[tuple[Stmt, ...]] = []
    for stmt in body:
        written = written_in(walk_statements((stmt,)))
        checks = [check for check in checks if check.positions.load.tensor.storage not in written]
        form: tuple[Stmt, ...] = (stmt,)
        if isinstance(stmt, For) and checks and weight(stmt.body) <= HEAVY:
            straightened = _Straightened(checks)
            fast = straightened.statement(stmt, ())
            if straightened.used:
                used |= straightened.used
                needed = tuple(straightened.used.values())
                form = (
                    If(
                        are_negative([Local(check.signs) for check in needed]),
                        (stmt,),
                        copy_body((fast,), {}, {}),
                    ),
                )
                notes.append(f"straight: loop {stmt.symbol.hint} looks at the signs of positions all at once")
        new.append(form)
        if isinstance(stmt, For) and (check := _Check.of(stmt)) is not None:
            checks.append(check)
    if not used:
        return body
    out: list[Stmt] = []
    for stmt, form in zip(body, new, strict=True):
        out += used[id(stmt)].statements() if id(stmt) in used else form
    return tuple(out)


class _Straightened:
    """A loop in the making that takes positions as they are; `used` are the checks that this needs, by the
    identity of their loops."""

    def __init__(self, checks: Sequence[_Check]) -> None:
        self.checks = checks
        self.used: dict[int, _Check] = {}
        self.known: dict[Variable, _Check] = {}

    def statement(self, stmt: Stmt, loops: tuple[For, ...]) -> Stmt:
        positions = Positions.of(stmt.value, loops) if isinstance(stmt, Define) else None
        if isinstance(stmt, Define) and positions is not None:
            found = next((check for check in self.checks if check.positions.are(positions)), None)
            if found is not None:
                self.known[stmt.variable] = found
        around = (*loops, stmt) if isinstance(stmt, For) else loops
        stmt = rewrite_expressions(stmt, lambda expr: transform(expr, self._node))
        return rewrite_bodies(stmt, lambda body: tuple(self.statement(inner, around) for inner in body))

    def _node(self, node: Expr) -> Expr:
        match node:
            case Apply(op=op, args=(Apply(op=less, args=(Local() as one, zero)), Apply(), Local() as other)):
                check = self.known.get(one.variable) if one == other and zero == ZERO else None
                if check is not None and op is OPS["where"] and less is OPS["less"]:
                    self.used[id(check.nest)] = check
                    return one
        return node
