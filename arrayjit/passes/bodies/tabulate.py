"""tabulate: what steps compute of one integer is looked up, where the integer is small.

                                                for v in parallel(0, 32):
                                                    table[v] = exp(multiply(b[()], v - 16))
    for i in sequential(1, 999):                for i in sequential(1, 999):
        d = multiply(s[i], s[i - 1])                d = multiply(s[i], s[i - 1])
        p = exp(multiply(b[()], d))     ->          near = add(d, 16)
        s[i] = where(less(u[i], p), 0, 1)           far = greater(cast(near, u64), 31)
                                                    p = rarely(far, exp(multiply(b[()], d)),
                                                               table[where(far, 0, near)])
                                                    s[i] = where(less(u[i], p), 0, 1)

Steps that wait for one another compute their functions one at a time. If such a function has nothing of the
step in it but one integer, as the energy of a spin among its neighbours, its values around zero are computed
before, side by side, to the same bits. A sweep of an Ising model takes 0.6 of the time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace

from ...frozen import frozen, slotted
from ...ir.code import Caps
from ...ir.conditions import compare, one_of
from ...ir.dtype import BOOL, I64, named
from ...ir.expr import (
    Apply,
    Cast,
    Const,
    Expr,
    Gather,
    Index,
    Local,
    Variable,
    constant,
    dtype_of,
)
from ...ir.index import Affine, Symbol
from ...ir.loops import (
    Bind,
    Comment,
    Define,
    For,
    If,
    Kernel,
    LoopKind,
    Place,
    PlaceKind,
    Raise,
    Stmt,
    Store,
    Update,
)
from ...ir.ops import OPS
from ...ir.tensor import Tensor
from ...ir.walk import (
    bottom_up,
    children,
    kept,
    locals_updated,
    rebuild,
    rewrite_bodies,
    rewrite_expressions,
    rewrite_loops,
    transform,
    walk,
)
from ..analysis.access import Range, Ranges
from ..analysis.changes import Changes
from ..analysis.lockstep import lockstep
from ..analysis.trips import enter
from ..analysis.values import written_out

__all__ = ["tabulate"]

U64 = named("u64")

CELLS = 32
"""The integers from minus half of so many on are in a table."""

COSTLY = 15.0
"""Additions that an op takes at least that is worth a look into memory."""

MANY = 256
"""So many steps make up for the table."""

LARGE = 64
"""Nodes of an expression that may be written out twice."""

PLAIN = (Bind, Comment, Define, Raise, Store, Update)

REASON = "steps look up what they compute of an integer"

_DIVISIONS = {OPS[name] for name in ("floor_divide", "remainder", "raw_divide", "raw_remainder")}


def tabulate(kernel: Kernel, caps: Caps) -> Kernel:
    """Every such function of a small integer looked up."""
    making = _Making()
    return kernel.with_body(making.body(kernel.body), making.notes, making.placement)


@slotted
class _Making:
    """Where the tables lie that are made, and the values of loops' symbols."""

    placement: dict[Tensor, Place] = field(default_factory=dict)
    ranges: dict[Symbol, Range] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def body(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """A body with tables before the outermost loops in which they stay the same."""
        return rewrite_loops(body, self.outermost)

    def outermost(self, loop: For) -> Sequence[Stmt]:
        if loop.kind is not LoopKind.SEQUENTIAL:
            return [loop]
        around = _Around(Changes.by(loop))
        new = self.loop(loop, around, 1)
        return [*self.filled(around.tables), rewrite_bodies(new, self.body)]

    def loop(self, loop: For, around: _Around, steps: int) -> For:
        """A loop whose innermost steps look up what is the same for all loops around."""
        enter(loop, self.ranges)
        steps *= MANY if loop.trips is None else loop.trips
        if not all(isinstance(stmt, PLAIN) for stmt in loop.body):
            body = self.inside(loop.body, around, steps)
        elif steps >= MANY and lockstep(loop, self.ranges) is None:
            body = kept(loop.body, list(_Step(around, self.ranges).lines(loop.body)))
        else:
            return loop
        return loop if body is loop.body else replace(loop, body=body)

    def inside(self, body: tuple[Stmt, ...], around: _Around, steps: int) -> tuple[Stmt, ...]:
        out: list[Stmt] = []
        for stmt in body:
            match stmt:
                case For(kind=LoopKind.SEQUENTIAL):
                    out.append(self.loop(stmt, around, steps))
                case If():
                    out.append(rewrite_bodies(stmt, lambda branch: self.inside(branch, around, steps)))
                case _:
                    out.append(stmt)
        return kept(body, out)

    def filled(self, tables: Mapping[_Function, Tensor]) -> Iterator[For]:
        """The loops that fill tables."""
        for function, table in tables.items():
            self.placement[table] = Place(PlaceKind.ARENA, REASON)
            self.notes.append(f"tabulate: {table.label} has {CELLS} values of a function of one integer")
            cell = Affine.of(Symbol("v"))
            store = Store(table, (cell,), function.of(Index(cell - CELLS // 2)))
            yield For(cell.symbols[0], Affine.of(0), Affine.of(CELLS), (store,), LoopKind.PARALLEL)


INTEGER = Variable("integer", I64)
RARELY = OPS["rarely"]


@frozen
class _Function:
    """An expression in which nothing changes but INTEGER."""

    value: Expr

    def of(self, number: Expr) -> Expr:
        """Its value for an int64."""
        return transform(self.value, lambda node: number if node == Local(INTEGER) else node)


@slotted
class _Around:
    """What a loop changes before which tables are made, and the tables."""

    changes: Changes
    tables: dict[_Function, Tensor] = field(default_factory=dict)

    def table(self, function: _Function) -> Tensor:
        if function not in self.tables:
            self.tables[function] = Tensor.of("table", (CELLS,), dtype_of(function.value))
        return self.tables[function]


@frozen
class _Found:
    """What an expression is made of beside what stays the same: an integer, or nothing. `nodes` are those of
    the expression written out."""

    integer: Variable | None = None
    is_costly: bool = False
    nodes: int = 1


@slotted
class _Step:
    """The steps of an innermost loop: what its locals are made of, and their values over INTEGER."""

    around: _Around
    ranges: Ranges
    found: dict[Variable, _Found] = field(default_factory=dict)
    values: dict[Variable, Expr] = field(default_factory=dict)

    def lines(self, body: Sequence[Stmt]) -> Iterator[Stmt]:
        """The statements, each after what finds its place in a table."""
        updated = locals_updated(body)
        for stmt in body:
            yield from self.line(stmt)
            if isinstance(stmt, Define) and stmt.variable not in updated:
                self.note(stmt.variable, stmt.value)

    def line(self, stmt: Stmt) -> Iterator[Stmt]:
        before: list[Stmt] = []
        stmt = rewrite_expressions(stmt, lambda expr: self.with_tables(expr, before))
        yield from before
        yield stmt

    def note(self, variable: Variable, value: Expr) -> None:
        if variable.dtype is I64:
            self.found[variable], self.values[variable] = _Found(variable), Local(INTEGER)
        elif (found := bottom_up(value, self.made_of)) is not None:
            self.found[variable], self.values[variable] = found, written_out(value, self.values)

    def with_tables(self, value: Expr, before: list[Stmt]) -> Expr:
        """An expression with all that can be looked up, and is not yet."""
        is_done = isinstance(value, Apply) and value.op is RARELY
        if is_done or not any(map(_is_costly, walk(value))):
            return value
        found = bottom_up(value, self.made_of)
        if found is not None and found.integer is not None and found.is_costly:
            return self.looked_up(_Function(written_out(value, self.values)), Local(found.integer), before)
        return rebuild(value, tuple(self.with_tables(child, before) for child in children(value)))

    def looked_up(self, function: _Function, integer: Expr, before: list[Stmt]) -> Expr:
        near, far = Variable("near", I64), Variable("far", BOOL)
        last = constant(CELLS - 1, U64)
        before.append(Define(near, Apply(OPS["add"], (integer, constant(CELLS // 2, I64)), I64)))
        before.append(Define(far, compare("greater", Cast(Local(near), U64), last)))
        cell = one_of(Local(far), constant(0, I64), Local(near))
        known = Gather(self.around.table(function), (cell,))
        return Apply(RARELY, (Local(far), function.of(integer), known), dtype_of(known))

    def made_of(self, node: Expr, operands: Sequence[_Found | None]) -> _Found | None:
        """What a node is made of, given that of its operands; None if that is more than an integer."""
        match node:
            case Local(variable=variable) if variable in self.found:
                return replace(self.found[variable], is_costly=False)
            case Apply() | Cast():
                return _together(node, operands)
            case _:
                return _Found() if self.around.changes.leave(node, self.ranges) else None


def _together(node: Expr, operands: Sequence[_Found | None]) -> _Found | None:
    parts = [part for part in operands if part is not None]
    integers = {part.integer for part in parts if part.integer is not None}
    nodes = 1 + sum(part.nodes for part in parts)
    if len(parts) < len(operands) or len(integers) > 1 or nodes > LARGE:
        return None
    costly = _is_costly(node) or any(part.is_costly for part in parts)
    return _Found(next(iter(integers), None), costly, nodes)


def _is_costly(node: Expr) -> bool:
    """Whether it takes long; powers of -1 are told by a bit, integers divided by constants by products."""
    match node:
        case Apply(op=op, args=(_, Const()), dtype=dtype) if op in _DIVISIONS and dtype.is_integer:
            return False
        case Apply(op=op, args=(Const(value=-1), *_)) if op is OPS["power"]:
            return False
        case Apply(op=op):
            return op.cost >= COSTLY
        case _:
            return False
