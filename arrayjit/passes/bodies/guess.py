"""guess: a choice that the next iteration waits for is a branch, so that the processor goes on with a guess.

    for j in sequential(1, 50):                     for j in sequential(1, 50):
        p = exp(multiply(b, x[j - 1]))                  p = exp(multiply(b, x[j - 1]))
        x[j] = where(less(u[j], p), 1.0, x[j])  ->      t = x[j]
                                                        if less(u[j], p):
                                                            t = 1.0
                                                        x[j] = t

A `where` is made when all its operands are. Where the condition takes long to compute, and what the choice is
made of does not, a branch that is foreseen lets the next iteration start without it; one that is not costs
less than the wait.

    while True:                                     while True:
        ...                                             ...
        t = less(multiply(s.at(n), ...), r)             t = less(multiply(s.at(n), ...), r)
        n = where(t, after.at(n), inside.at(n))  ->     t1 = inside.at(n)
                                                        if t:
                                                            t1 = after.at(n)
                                                        n = t1

Where the choice is a position, the next iteration waits for all that it looks up there as well. A walk
through a tree of bodies takes 0.4 to 0.5 of the time, and as long as before where no branch is foreseen.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ...ir.code import Caps
from ...ir.expr import Apply, Cast, Const, Expr, Gather, Index, Load, Local, Variable
from ...ir.loops import (
    Bind,
    Comment,
    Define,
    For,
    If,
    Kernel,
    LoopKind,
    Raise,
    Stmt,
    Store,
    Update,
    While,
    written_in,
)
from ...ir.ops import OPS
from ...ir.tensor import Tensor
from ...ir.walk import (
    expressions,
    kept,
    locals_defined,
    locals_read,
    locals_updated,
    nodes_in,
    rewrite_bodies,
    rewrite_expressions,
    storages_read,
    variables,
)

__all__ = ["guess"]

WHERE, RARELY = OPS["where"], OPS["rarely"]
_PLAIN = (Bind, Comment, Define, Raise, Store, Update)

LONG = 12.0
"""Operations one after the other that take longer than to go back after a wrong guess."""

LONG_AT_POSITIONS = 6.0
"""The same where the next iteration looks something up at what is chosen."""

LOOK = 4.0
"""What it takes to look into memory where that was not known before."""


def guess(kernel: Kernel, caps: Caps) -> Kernel:
    """Every such choice a branch."""
    notes: list[str] = []

    def visit(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        return kept(body, [statement(stmt) for stmt in body])

    def statement(stmt: Stmt) -> Stmt:
        match stmt:
            case For(kind=LoopKind.VECTOR | LoopKind.LOCKSTEP):
                return stmt
            case For(kind=LoopKind.SEQUENTIAL, symbol=symbol, body=body):
                body = guessing((), body, f"steps of {symbol.hint}")
                return rewrite_bodies(stmt if body is stmt.body else replace(stmt, body=body), visit)
            case While(test=test, body=body):
                body = guessing(test, body, "rounds")
                return rewrite_bodies(stmt if body is stmt.body else replace(stmt, body=body), visit)
            case _:
                return rewrite_bodies(stmt, visit)

    def guessing(test: tuple[Stmt, ...], body: tuple[Stmt, ...], which: str) -> tuple[Stmt, ...]:
        if not all(isinstance(line, _PLAIN) for line in (*test, *body)):
            return body
        new = kept(body, list(_Step(test, body).guessing()))
        if new is not body:
            notes.append(f"guess: {which} go on before what they choose by is known")
        return new

    return kernel.with_body(visit(kernel.body), notes)


class _Step:
    """The body of a loop, behind what it tests. What an iteration hands on is in `cells` and in `locals`;
    `waits` tells how many operations after the start of an iteration a local is known, if it follows from
    these. Something is looked up at `positions`, or at what follows from them."""

    def __init__(self, test: Sequence[Stmt], body: Sequence[Stmt]) -> None:
        self.tested = len(test)
        self.body = body = (*test, *body)
        defined = locals_defined(body)
        changed = locals_updated(body)
        self.locals = changed - defined
        written = written_in(body)
        read = {storage for stmt in body for storage in storages_read(expressions(stmt))}
        self.cells: set[Tensor] = written & read
        self.waits: dict[Variable, float | None] = dict.fromkeys(self.locals, 0.0)
        self.positions = self._positions()

    def _positions(self) -> set[Variable]:
        gathers = [node for node in nodes_in(self.body) if isinstance(node, Gather)]
        found = {variable for node in gathers for index in node.index for variable in variables(index)}
        for stmt in (*self.body[::-1], *self.body[::-1]):
            if isinstance(stmt, (Define, Update)) and stmt.variable in found:
                found.update(locals_read((stmt,)))
        return found

    def guessing(self) -> Iterator[Stmt]:
        """The statements of the body, with branches for the choices that others wait for."""
        for at, (stmt, is_needed) in enumerate(zip(self.body, self.handed_on(), strict=True)):
            values = expressions(stmt)
            wait = self.longest(values)
            is_tested = at < self.tested
            if is_needed and not is_tested and (choice := self.choice(values, self.long(stmt))) is not None:
                condition, then, otherwise = choice.args
                chosen = Variable("t", choice.dtype)
                yield Define(chosen, otherwise)
                yield If(condition, (Update(chosen, then),))
                wait = self.longest((then, otherwise))
                stmt = _given(stmt, Local(chosen))
            if isinstance(stmt, (Define, Update)):
                self.waits[stmt.variable] = wait
            if not is_tested:
                yield stmt

    def handed_on(self) -> list[bool]:
        """Whether the next iteration needs what a statement computes."""
        found: list[bool] = []
        wanted = set(self.locals)
        for stmt in reversed(self.body):
            match stmt:
                case Define(variable=variable) | Update(variable=variable):
                    found.append(variable in wanted)
                case Store(tensor=tensor):
                    found.append(tensor.storage in self.cells)
                case _:
                    found.append(False)
            if found[-1]:
                wanted.update(locals_read((stmt,)))
        return found[::-1]

    def long(self, stmt: Stmt) -> float:
        """How long the choice that a statement makes must wait."""
        at = isinstance(stmt, (Define, Update)) and stmt.variable in self.positions
        return LONG_AT_POSITIONS if at else LONG

    def choice(self, values: Sequence[Expr], long: float) -> Apply | None:
        """What a statement computes, if that is a choice whose condition is known `long` after the rest."""
        match values:
            case (Apply(op=op, args=(condition, *chosen)) as choice,) if op is WHERE:
                late = (self.wait(condition) or 0.0) - (self.longest(chosen) or 0.0)
                return choice if late >= long else None
            case _:
                return None

    def longest(self, values: Sequence[Expr]) -> float | None:
        return max((wait for value in values if (wait := self.wait(value)) is not None), default=None)

    def wait(self, value: Expr) -> float | None:
        """How long after the start of an iteration a value is known; None where it was before."""
        match value:
            case Local(variable=variable):
                return self.waits.get(variable)
            case Load(tensor=tensor):
                return 0.0 if tensor.storage in self.cells else None
            case Gather(tensor=tensor, index=index):
                start = self.longest(index)
                if start is None:
                    return 0.0 if tensor.storage in self.cells else None
                return start + LOOK
            case Apply(op=op, args=args):
                start = self.longest((args[0], args[2]) if op is RARELY else args)
                return None if start is None else start + op.cost
            case Cast(arg=arg):
                start = self.wait(arg)
                return None if start is None else start + 1.0
            case Const() | Index():
                return None


def _given(stmt: Stmt, value: Expr) -> Stmt:
    """The statement with this value."""
    return rewrite_expressions(stmt, lambda _: value)
