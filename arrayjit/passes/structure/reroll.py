"""reroll: a round of a loop that stands before it, written out, joins the loop.

    b[0] = exp(a[0])                             for k in range(0, 8):
    for k in range(1, 8):                  ->        b[k] = exp(a[k])
        b[k] = exp(a[k])

Tracing records a first iteration by itself where a value changes its kind in it, and often it turns out to
do what all do. Temporaries may differ that are used nowhere else. So does one that stands with its loop under
the condition that there is one; it may have a constant where the loop reads what that was stored in before:

    s = 0.0                                      s = 0.0
    if n > 0:                                    for k in range(0, n):
        s = 0.0 + a[0]                     ->        s = s + a[k]
        for k in range(1, n):
            s = s + a[k]
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import field, replace

from ...frozen import slotted
from ...ir.assign import (
    Assign,
    Bind,
    Branch,
    Check,
    Computation,
    Loop,
    Statement,
    While,
    expressions,
    rewrite_bodies,
    statements,
)
from ...ir.code import Caps
from ...ir.dtype import BOOL, I64
from ...ir.expr import Apply, Cast, Const, Expr, Gather, Index, Load
from ...ir.index import Affine, Symbol, symbols_of
from ...ir.ops import OPS
from ...ir.tensor import Tensor
from ...ir.walk import children, substitute_assignments, symbols_read
from ..analysis.access import given, loads

__all__ = ["reroll"]

Body = tuple[Statement, ...]
Loops = tuple[tuple[Symbol, Affine], ...]


def reroll(computation: Computation, caps: Caps) -> Computation:
    """The computation with as many rounds as possible in its loops."""
    if not any(isinstance(statement, Loop) for statement in statements(computation.body)):
        return computation
    rerolling = _Rerolling(given(computation.params), _uses(computation.body))
    body = rerolling.body(computation.body)
    return replace(computation, body=body) if rerolling.joined else computation


@slotted
class _Rerolling:
    """`uses` says how often each storage and each symbol is used, `joined` how many rounds have joined their
    loops."""

    given: frozenset[Tensor]
    uses: Counter[Tensor | Symbol]
    joined: int = 0

    def body(self, body: Body) -> Body:
        out: list[Statement] = []
        for statement in body:
            while isinstance(statement, Loop) and self.is_round(out[-len(statement.body) :], statement):
                self.uses -= _uses(out[-len(statement.body) :])
                self.joined += 1
                del out[-len(statement.body) :]
                statement = _with_one_more(statement)
            if isinstance(statement, Branch) and (whole := self.whole(out, statement)) is not None:
                statement = whole
            out.append(rewrite_bodies(statement, self.body))
        return tuple(out)

    def whole(self, before: list[Statement], branch: Branch) -> Loop | None:
        """The loop that a branch has without its first round, if it is that; `before` stands before it."""
        match branch:
            case Branch(body=(*first, Loop() as loop), orelse=()) if branch.condition == _runs(loop):
                matching = _Matching({loop.symbol: loop.lo - loop.step}, constants=_stored(before, loop))
            case _:
                return None
        if not self.is_alike(matching, first, loop):
            return None
        self.uses -= _uses(first)
        self.joined += 1
        return _with_one_more(loop)

    def is_round(self, before: list[Statement], loop: Loop) -> bool:
        """Whether the statements do what the loop would if it began one step earlier."""
        first = loop.lo - loop.step
        span = ((loop.hi - first) * loop.step).bounds({})
        if not before or span is None or span[0] <= 0:
            return False
        return self.is_alike(_Matching({loop.symbol: first}), before, loop)

    def is_alike(self, matching: _Matching, before: list[Statement], loop: Loop) -> bool:
        """Whether the statements are a round of the loop's, with temporaries and numbers that are used
        nowhere else."""
        if not matching.bodies(loop.body, before):
            return False
        renamed = {own: other for own, other in matching.tensors.items() if own is not other}
        inside, here = _uses(loop.body), _uses(before)
        bound = (part.symbol for part in statements(tuple(before)) if isinstance(part, Bind))
        return all(self.uses[symbol] == here[symbol] for symbol in bound) and all(
            own not in self.given
            and other not in self.given
            and self.uses[own] == inside[own]
            and self.uses[other] == here[other]
            for own, other in renamed.items()
        )


@slotted
class _Matching:
    """A body beside another one: what its symbols and its storages are there. Until it writes them, some hold
    `constants`, which the other may have in their place."""

    symbols: dict[Symbol, Affine]
    tensors: dict[Tensor, Tensor] = field(default_factory=dict)
    owners: dict[Tensor, Tensor] = field(default_factory=dict)
    constants: dict[Tensor, Const] = field(default_factory=dict)

    def bodies(self, body: Iterable[Statement], other: Iterable[Statement]) -> bool:
        """Whether both, of the same length, do the same."""
        body, other = tuple(body), tuple(other)
        return len(body) == len(other) and all(map(self.statement, body, other))

    def statement(self, one: Statement, other: Statement) -> bool:
        match one, other:
            case Assign(), Assign():
                same = (
                    (one.accum, one.contract) == (other.accum, other.contract)
                    and self.loops(one.loops, other.loops)
                    and self.tensor(one.into, other.into)
                    and self.affine(one.index, other.index)
                    and self.expressions(expressions(one), expressions(other))
                )
                self.constants.pop(one.into.storage, None)
                return same
            case Check(), Check():
                said = (one.exception, one.message) == (other.exception, other.message)
                return (
                    said
                    and self.loops(one.loops, other.loops)
                    and self.expressions(expressions(one), expressions(other))
                )
            case Loop(), Loop():
                return (
                    one.step == other.step
                    and self.affine((one.lo, one.hi), (other.lo, other.hi))
                    and self.binds(one.symbol, other.symbol)
                    and self.bodies(one.body, other.body)
                )
            case Bind(), Bind():
                return self.expressions(expressions(one), expressions(other)) and self.binds(
                    one.symbol, other.symbol
                )
            case Branch(), Branch():
                return (
                    self.expressions(expressions(one), expressions(other))
                    and self.bodies(one.body, other.body)
                    and self.bodies(one.orelse, other.orelse)
                )
            case While(), While():
                return (
                    self.bodies(one.test, other.test)
                    and self.expressions(expressions(one), expressions(other))
                    and self.bodies(one.body, other.body)
                )
            case _:
                return one == other

    def expressions(self, some: tuple[Expr, ...], others: tuple[Expr, ...]) -> bool:
        return len(some) == len(others) and all(map(self.expression, some, others))

    def expression(self, one: Expr, other: Expr) -> bool:
        match one, other:
            case Load(tensor=tensor), Const() if tensor in self.constants:
                return repr(self.constants[tensor]) == repr(other)
            case Load(), Load():
                return self.tensor(one.tensor, other.tensor) and self.affine(one.index, other.index)
            case Index(), Index():
                return self.affine((one.value,), (other.value,))
            case Gather(), Gather():
                same = self.tensor(one.tensor, other.tensor)
            case Apply(), Apply():
                same = one.op is other.op and one.dtype is other.dtype
            case Cast(), Cast():
                same = one.dtype is other.dtype
            case _:
                same = one == other
        return same and self.expressions(children(one), children(other))

    def affine(self, some: tuple[Affine, ...], others: tuple[Affine, ...]) -> bool:
        return tuple(value.substitute(self.symbols) for value in some) == others

    def loops(self, some: Loops, others: Loops) -> bool:
        return len(some) == len(others) and all(
            self.affine((extent,), (other,)) and self.binds(symbol, counterpart)
            for (symbol, extent), (counterpart, other) in zip(some, others, strict=True)
        )

    def binds(self, own: Symbol, other: Symbol) -> bool:
        self.symbols[own] = Affine.of(other)
        return (own.kind, own.lower, own.upper) == (other.kind, other.lower, other.upper)

    def tensor(self, own: Tensor, other: Tensor) -> bool:
        """Whether one tensor may stand for the other; each stands for one only."""
        alike = (own.dtype, own.strides, own.wish) == (other.dtype, other.strides, other.wish)
        if not alike or not self.affine(own.shape, other.shape):
            return False
        if own.base is not None and other.base is not None:
            return self.tensor(own.base, other.base)
        single = self.tensors.setdefault(own, other) is other and self.owners.setdefault(other, own) is own
        return single and own.base is other.base


def _runs(loop: Loop) -> Expr:
    """Whether a loop has a round if it begins one step earlier."""
    count = (loop.hi - loop.lo) * (1 if loop.step > 0 else -1) + abs(loop.step)
    return Apply(OPS["greater"], (Index(count), Const(0, I64)), BOOL)


def _stored(before: list[Statement], loop: Loop) -> dict[Tensor, Const]:
    """The constants that the statements end with storing in single cells, but for cells that are written in
    loops and branches of the loop's."""
    found: dict[Tensor, Const] = {}
    for statement in reversed(before):
        match statement:
            case Assign(into=into, loops=(), value=Const() as value, accum=None) if into.rank == 0:
                found.setdefault(into, value)
            case _:
                break
    inner = tuple(part for part in loop.body if not isinstance(part, Assign))
    written = {part.into for part in statements(inner) if isinstance(part, Assign)}
    return {into: value for into, value in found.items() if into.storage is into and into not in written}


def _with_one_more(loop: Loop) -> Loop:
    """The loop, from one step earlier on."""
    old, lo = loop.symbol, loop.lo - loop.step
    lower, upper = old.lower, old.upper
    if loop.step > 0:
        lower = None if lower is None else lower - loop.step
    else:
        upper = None if upper is None else upper - loop.step
    symbol = Symbol(old.hint, old.kind, lower, upper)
    body = substitute_assignments(loop.body, {old: Affine.of(symbol)})
    return replace(loop, symbol=symbol, lo=lo, body=body)


def _uses(body: Iterable[Statement]) -> Counter[Tensor | Symbol]:
    """How often the statements use each storage and each symbol."""
    return Counter(_used(tuple(body)))


def _used(body: Body) -> Iterator[Tensor | Symbol]:
    for statement in statements(body):
        match statement:
            case Assign(loops=loops, into=into, index=index):
                yield into.storage
                yield from symbols_of((*index, *into.shape, *(extent for _, extent in loops)))
            case Check(loops=loops):
                yield from symbols_of(extent for _, extent in loops)
            case Loop(lo=lo, hi=hi):
                yield from symbols_of((lo, hi))
            case _:
                pass
        for expr in expressions(statement):
            yield from symbols_read(expr)
            for tensor, _ in loads(expr):
                yield tensor.storage
                yield from symbols_of(tensor.shape)
