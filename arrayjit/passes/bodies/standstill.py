"""Steps that leave every local as it was, though no condition decides about that alone.

    for k in sequential(0, 60):                     for k in sequential(0, 60):
        y = add(multiply(z, z), c)                      y = add(multiply(z, z), c)
        far = greater(y, 2.0)                           far = greater(y, 2.0)
        first = bitwise_and(far, equal(n, 60))          first = bitwise_and(far, equal(n, 60))
        n = where(first, index(k), n)         ->        n = where(first, index(k), n)
        z = where(far, 2.0, y)                          z1 = where(far, 2.0, y)
                                                        moves = not_equal(bits(z1), bits(z))
                                                        z = z1
                                                        stay(bitwise_or(first, moves))

So it is where what has gone too far is put back to a number, again and again. A local that a condition leaves
as it is needs no look; of one that is put back the bits before and after a step are compared. What a step
computes, but for what such a condition chooses, must follow from what the step before has left.
"""

from __future__ import annotations

from functools import reduce

from ...ir.conditions import compare
from ...ir.dtype import BOOL, F32, F64, I32, I64
from ...ir.expr import Apply, Cast, Const, Expr, Gather, Index, Load, Local, Variable
from ...ir.loops import Define, Stay, Stmt, Update
from ...ir.ops import OPS, Op
from ...ir.walk import locals_defined, locals_read, nodes_in

__all__ = ["until_standstill"]

WORDS = {F32: I32, F64: I64}
"""As what bits of floats are compared."""


def until_standstill(body: tuple[Stmt, ...]) -> tuple[Stmt, ...] | None:
    """A body of definitions and updates that ends early, if conditions put locals back to numbers, and leave
    all others alone."""
    ending = _Ending(body)
    return ending.body if all(map(ending.goes_on, body)) and ending.moving else None


class _Ending:
    """On the way through a body: `moving` are the conditions that tell of a step that changes something,
    `values` what the body's own locals are, if another local, a number or a choice, and `foreign` those that
    depend on more than what the step before has left."""

    def __init__(self, body: tuple[Stmt, ...]) -> None:
        self.made = locals_defined(body)
        self.updated = [stmt.variable for stmt in body if isinstance(stmt, Update)]
        self.values: dict[Variable, Expr] = {}
        self.foreign: set[Variable] = set()
        self.moving: list[Variable] = []
        self.stmts: list[Stmt] = []

    @property
    def body(self) -> tuple[Stmt, ...]:
        """The body with its end."""
        both = OPS["bitwise_or"]
        conditions: list[Expr] = [Local(variable) for variable in dict.fromkeys(self.moving)]
        return *self.stmts, Stay(reduce(lambda one, other: Apply(both, (one, other), BOOL), conditions))

    def goes_on(self, stmt: Stmt) -> bool:
        """Note a statement; may the body still end early?"""
        if isinstance(stmt, (Define, Update)):
            if stmt.variable not in self.made:
                return isinstance(stmt, Update) and self._hands_on(stmt)
            if isinstance(stmt, Update) and stmt.accum:
                return False
            if self._is_foreign(stmt):
                self.foreign.add(stmt.variable)
            self._keep(stmt.variable, self._resolved(stmt.value))
        self.stmts.append(stmt)
        return True

    def _keep(self, variable: Variable, value: Expr) -> None:
        """What one of the body's own locals is from here on, if another local, a number or a choice."""
        is_choice = isinstance(value, Apply) and value.op is OPS["where"]
        if is_choice or (isinstance(value, (Local, Const)) and value != Local(variable)):
            self.values[variable] = value
        else:
            self.values.pop(variable, None)

    def _is_foreign(self, stmt: Stmt) -> bool:
        nodes = nodes_in((stmt,))
        has_others = any(isinstance(node, (Load, Gather, Index)) for node in nodes)
        return has_others or not self.foreign.isdisjoint(locals_read((stmt,)))

    def _resolved(self, value: Expr) -> Expr:
        """Of a copy what is copied, and so of what is chosen."""
        match value:
            case Apply(op=Op(name="where") as op, args=(condition, one, other), dtype=dtype):
                copied = (self._copied(arg) for arg in (one, other))
                chosen = (
                    arg if isinstance(copy, Apply) else copy
                    for arg, copy in zip((one, other), copied, strict=True)
                )
                return Apply(op, (condition, *chosen), dtype)
            case _:
                return self._copied(value)

    def _copied(self, value: Expr) -> Expr:
        """What a local is a copy of, if it is one."""
        found = self.values.get(value.variable) if isinstance(value, Local) else None
        return value if found is None else found

    def _hands_on(self, stmt: Update) -> bool:
        """What a step hands on, of which it tells whether it is another value."""
        if stmt.accum or self.updated.count(stmt.variable) > 1:
            return False
        condition = self._moved_by(self._resolved(stmt.value), Local(stmt.variable))
        if condition is not None:
            self.moving.append(condition)
            self.stmts.append(stmt)
            return True
        dtype = stmt.variable.dtype
        is_compared = dtype in WORDS or not dtype.is_inexact
        if not is_compared or not _is_put_back(self._resolved(stmt.value)) or self._is_foreign(stmt):
            return False
        now, moves = Variable(stmt.variable.hint, dtype), Variable("moves", BOOL)
        differ = compare("not_equal", *(_bits(Local(local)) for local in (now, stmt.variable)))
        self.stmts += [Define(now, stmt.value), Define(moves, differ)]
        self.stmts.append(Update(stmt.variable, Local(now)))
        self.moving.append(moves)
        return True

    def _moved_by(self, value: Expr, was: Local) -> Variable | None:
        """The condition without which a local stays as it was."""
        match value:
            case Apply(op=Op(name="where"), args=(Local(variable=condition), _, same)) if same == was:
                found = condition
            case Apply(op=Op(name="add"), args=(one, Cast(arg=Local(variable=condition)))) if one == was:
                found = condition
            case _:
                return None
        is_settled = found.dtype is BOOL and found not in self.foreign and found not in self.updated
        is_count = isinstance(value, Apply) and value.op.name == "add"
        return found if is_settled and not (is_count and was.variable.dtype.is_float) else None


def _bits(value: Local) -> Expr:
    """What is another number where anything of a value is."""
    word = WORDS.get(value.variable.dtype)
    return value if word is None else Apply(OPS["bits"], (value,), word)


def _is_put_back(value: Expr) -> bool:
    match value:
        case Apply(op=Op(name="where"), args=(_, one, other)):
            return isinstance(one, Const) or isinstance(other, Const)
        case _:
            return False
