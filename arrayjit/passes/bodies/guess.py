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
    rewrite_expressions,
    rewrite_loops,
    storages_read,
)

__all__ = ["guess"]

WHERE, RARELY = OPS["where"], OPS["rarely"]
_PLAIN = (Bind, Comment, Define, Raise, Store, Update)

LONG = 12.0
"""Operations one after the other that take longer than to go back after a wrong guess."""

LOOK = 4.0
"""What it takes to look into memory where that was not known before."""


def guess(kernel: Kernel, caps: Caps) -> Kernel:
    """Every such choice a branch."""
    notes: list[str] = []

    def guessing(loop: For) -> Sequence[For] | None:
        if loop.kind in (LoopKind.VECTOR, LoopKind.LOCKSTEP):
            return (loop,)
        if loop.kind is not LoopKind.SEQUENTIAL or not all(isinstance(line, _PLAIN) for line in loop.body):
            return None
        body = kept(loop.body, list(_Step(loop.body).guessing()))
        if body is loop.body:
            return (loop,)
        notes.append(f"guess: steps of {loop.symbol.hint} go on before what they choose by is known")
        return (replace(loop, body=body),)

    return kernel.with_body(rewrite_loops(kernel.body, guessing), notes)


class _Step:
    """The body of a loop. What an iteration hands on is in `cells` and in `locals`; `waits` tells how many
    operations after the start of an iteration a local is known, if it follows from these."""

    def __init__(self, body: Sequence[Stmt]) -> None:
        self.body = body
        defined = locals_defined(body)
        changed = locals_updated(body)
        self.locals = changed - defined
        written = written_in(body)
        read = {storage for stmt in body for storage in storages_read(expressions(stmt))}
        self.cells: set[Tensor] = written & read
        self.waits: dict[Variable, float | None] = dict.fromkeys(self.locals, 0.0)

    def guessing(self) -> Iterator[Stmt]:
        """The statements, with branches for the choices that others wait for."""
        for stmt, is_needed in zip(self.body, self.handed_on(), strict=True):
            values = expressions(stmt)
            wait = self.longest(values)
            if is_needed and (choice := self.choice(values)) is not None:
                condition, then, otherwise = choice.args
                chosen = Variable("t", choice.dtype)
                yield Define(chosen, otherwise)
                yield If(condition, (Update(chosen, then),))
                wait = self.longest((then, otherwise))
                stmt = _given(stmt, Local(chosen))
            if isinstance(stmt, (Define, Update)):
                self.waits[stmt.variable] = wait
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

    def choice(self, values: Sequence[Expr]) -> Apply | None:
        """What a statement computes, if that is a choice whose condition is known long after its operands."""
        match values:
            case (Apply(op=op, args=(condition, *chosen)) as choice,) if op is WHERE:
                late = (self.wait(condition) or 0.0) - (self.longest(chosen) or 0.0)
                return choice if late >= LONG else None
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
