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

from collections.abc import Iterator, Sequence

from ...frozen import frozen
from ...ir.code import Caps
from ...ir.dtype import I64
from ...ir.expr import Apply, Const, Expr, Index, Local, Variable
from ...ir.loops import Define, For, If, Kernel, LoopKind, Stmt, Update, nested, walk_statements, written_in
from ...ir.ops import OPS
from ...ir.walk import kept, rewrite_bodies, rewrite_expressions, transform, variables
from ..analysis.copies import copy_body
from ..analysis.positions import ZERO, Positions, are_negative
from ..analysis.repeats import HEAVY, weight

__all__ = ["Looked", "Straightened", "straight"]

INDEPENDENT = (LoopKind.PARALLEL, LoopKind.VECTOR)


def straight(kernel: Kernel, caps: Caps) -> Kernel:
    """Every such loop in two forms, of which the signs choose one."""
    notes: list[str] = []

    def visit(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        inner = kept(body, [rewrite_bodies(stmt, visit) for stmt in body])
        return _chosen(inner, notes)

    return kernel.with_body(visit(kernel.body), notes)


@frozen
class Looked:
    """Where a nest of loops looks whether positions lie within an axis, by an `update` of what is said of all
    of them, with `one` of them in a local; `last` is the last that counts from the start. `signs` is negative
    if one does not lie within, or counts from the end."""

    nest: For
    update: Update
    one: Variable
    positions: Positions
    last: Expr
    signs: Variable

    @staticmethod
    def all_of(nest: For) -> Iterator[Looked]:
        """Those of a nest, whatever else it does."""
        loops: list[For] = []
        body: tuple[Stmt, ...] = (nest,)
        while len(body) == 1 and isinstance(loop := body[0], For) and loop.kind in INDEPENDENT:
            loops.append(loop)
            body = loop.body
        held: dict[Variable, Positions] = {}
        for stmt in body:
            match stmt:
                case Define(variable=one, value=value):
                    positions = Positions.of(value, tuple(loops))
                    if positions is not None:
                        held[one] = positions
                case Update(accum=accum, value=Apply() as test) if accum is OPS["logical_and"]:
                    asked = set(variables(test))
                    known = asked.pop() if len(asked) == 1 else None
                    last = None if known is None or known not in held else _last(test, known)
                    if known is not None and last is not None:
                        yield Looked(nest, stmt, known, held[known], last, held[known].signs(last))

    def by_signs(self) -> Update:
        """What tells the signs, instead of the check."""
        return self.positions.sign(Local(self.one), self.last, self.signs)

    def afterwards(self) -> If:
        """The check, for where the signs leave it open."""
        body: tuple[Stmt, ...] = (Define(self.one, self.positions.value), self.update)
        return If(are_negative((Local(self.signs),)), copy_body(nested(self.positions.loops, body), {}, {}))


def _with_signs(nest: For, checks: Sequence[Looked]) -> Iterator[Stmt]:
    """A nest that tells signs instead of these checks, which are made behind it if need be."""
    instead = {id(check.update): check.by_signs() for check in checks}

    def visit(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        return tuple(instead.get(id(stmt), rewrite_bodies(stmt, visit)) for stmt in body)

    yield from (Define(check.signs, Const(0, check.signs.dtype)) for check in checks)
    yield from visit((nest,))
    yield from (check.afterwards() for check in checks)


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
    checks: list[Looked] = []
    used: dict[int, Looked] = {}
    new: list[tuple[Stmt, ...]] = []
    for stmt in body:
        written = written_in(walk_statements((stmt,)))
        checks = [check for check in checks if check.positions.load.tensor.storage not in written]
        form: tuple[Stmt, ...] = (stmt,)
        if isinstance(stmt, For) and checks and weight(stmt.body) <= HEAVY:
            straightened = Straightened(checks)
            fast = straightened.statement(stmt, ())
            if straightened.used:
                needed = tuple(straightened.used.values())
                used |= straightened.used
                form = (
                    If(
                        are_negative([Local(check.signs) for check in needed]),
                        (stmt,),
                        copy_body((fast,), {}, {}),
                    ),
                )
                notes.append(f"straight: loop {stmt.symbol.hint} looks at the signs of positions all at once")
        new.append(form)
        if isinstance(stmt, For) and len(form) == 1 and form[0] is stmt:
            checks += Looked.all_of(stmt)
    if not used:
        return body
    out: list[Stmt] = []
    for stmt, form in zip(body, new, strict=True):
        own = [check for check in used.values() if check.nest is stmt]
        out += _with_signs(own[0].nest, own) if own else form
    return tuple(out)


class Straightened:
    """A loop in the making that takes positions as they are; `used` are the checks that this needs, by
    their identity."""

    def __init__(self, checks: Sequence[Looked]) -> None:
        self.checks = checks
        self.used: dict[int, Looked] = {}
        self.known: dict[Variable, Looked] = {}

    def statement(self, stmt: Stmt, loops: tuple[For, ...]) -> Stmt:
        positions = Positions.of(stmt.value, loops) if isinstance(stmt, Define) else None
        if isinstance(stmt, Define) and positions is not None:
            found = next((check for check in self.checks if check.positions.include(positions)), None)
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
                    self.used[id(check)] = check
                    return one
        return node
