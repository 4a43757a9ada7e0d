"""bytewise: steps that move bits and join them by exclusive or look up what they make of each byte.

    for k in sequential(0, 5000):                   for v in vector(0, 256):
        c = c ^ x[k]                                    (a step from 0 with v, and steps with 0 after it)
        for i in unrolled(0, 8):                    for b in sequential(0, 2):
            t = where(c & 1, 33800, 0)          ->      for v in vector(0, 256):
            c = (c >> 1) ^ t                                (8 steps with 0 from v << 8*b)
                                                    for k in sequential(0, 625):
                                                        c = (tables[0, x[8*k]] ^ ... ^ tables[7, x[8*k + 7]]
                                                             ^ tables[8, c & 255] ^ tables[9, c >> 8 & 255])

Such a step is linear over the field of two elements: what it makes of `a ^ b` is the exclusive or of what it
makes of `a` and of `b`. So are several steps, and what they make of a number is put together from what they
make of its bytes. The steps that follow wait for a lookup instead of for a chain of operations on bits. The
tables are made by the steps themselves. Checksums are such loops.

The method is that of D. V. Sarwate, Computation of cyclic redundancy checks via table look-up (1988), and for
several bytes at once that of M. E. Kounavis and F. L. Berry, Novel table lookup-based algorithms for
high-performance CRC generation (2008).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from ...frozen import frozen
from ...ir.code import Caps
from ...ir.dtype import I64
from ...ir.expr import Apply, Cast, Expr, Gather, Index, Load, Local, Variable, constant, dtype_of
from ...ir.index import Affine, Symbol, affine
from ...ir.loops import Define, For, LoopKind, Place, PlaceKind, Stmt, Store, Update
from ...ir.ops import OPS
from ...ir.tensor import Tensor
from ...ir.walk import substitute, transform_statements
from ..analysis.copies import copy_body
from ..analysis.loopwise import Site, loopwise
from ..analysis.work import work
from .linear import Followed, changed

__all__ = ["bytewise"]

LONG = 2048
"""Fewer steps do not make up for the tables."""

HEAVY = 12.0
"""Operations of a step that take longer than lookups."""

MOST = 8
"""So many steps at a time, if their tables take no more than three quarters of the first cache."""

VALUES = 256
"""Of a byte."""

ZERO = Affine.of(0)
XOR, AND = OPS["bitwise_xor"], OPS["bitwise_and"]


@loopwise
def bytewise(loop: For, site: Site) -> Iterable[Stmt] | None:
    """Every such loop with its steps looked up."""
    steps = _steps(loop)
    if steps is None:
        return None
    lookups = _Lookups(steps, site.caps)
    site.placement[lookups.tables] = Place(PlaceKind.SCRATCH, "steps look up what they make of a byte")
    site.notes.append(f"bytewise: {lookups.count} steps of {loop.symbol.hint} at once look bytes up")
    return lookups.all()


@frozen
class _Steps:
    """A loop that does nothing but change the variable `sofar`, which is linear in the bits that it had
    before and in those of `byte`."""

    loop: For
    sofar: Variable
    byte: Load

    def done(self, sofar: Variable, byte: Expr) -> tuple[Stmt, ...]:
        """A step that changes another variable, by this byte."""

        body = transform_statements(self.loop.body, lambda node: byte if node == self.byte else node)
        return copy_body(body, {}, {self.sofar: sofar})


def _steps(loop: For) -> _Steps | None:
    """None for another loop, and for one where tables do not pay."""
    if loop.kind is not LoopKind.SEQUENTIAL or loop.step != 1 or (loop.trips or 0) < LONG:
        return None
    variables = changed(loop.body)
    if len(variables) != 1 or work(loop.body, frozenset(), {}).get((), 0.0) < HEAVY:
        return None
    (sofar,) = variables
    followed = Followed(sofar)
    if not sofar.dtype.is_integer or not followed.is_linear(loop.body) or len(followed.inputs) != 1:
        return None
    (byte,) = followed.inputs
    return _Steps(loop, sofar, byte)


class _Lookups:
    """A loop whose steps are looked up, `count` at a time. Row `n` of `tables` is for the byte of step `n` of
    these, the rows after them are for the bytes of the variable, and a column is for a value of a byte."""

    def __init__(self, steps: _Steps, caps: Caps) -> None:
        self.steps = steps
        self.dtype = steps.sofar.dtype
        size = self.dtype.itemsize
        self.lanes = caps.vector_bytes // size
        self.count = MOST
        while self.count > 1 and 4 * (self.count + size) * VALUES * size > 3 * caps.l1_bytes:
            self.count //= 2
        self.tables = Tensor("tables", affine((self.count + size, VALUES)), self.dtype)

    def all(self) -> Iterator[Stmt]:
        """The tables, the steps, and those that are left."""
        loop = self.steps.loop
        assert loop.trips is not None
        rounds, left = divmod(loop.trips, self.count)
        yield self.of_bytes()
        yield self.of_values()
        symbol = Symbol(loop.symbol.hint)
        body = (self.looked_up(loop.lo + Affine.of(symbol) * self.count),)
        yield For(symbol, ZERO, Affine.of(rounds), body)
        if left:
            yield replace(loop, lo=loop.hi - left)

    def of_bytes(self) -> For:
        """The rows for the bytes of steps, the last one first: what another one makes of its byte is what the
        step after it makes of that."""
        value, step = Symbol("v"), Symbol("n")
        byte, sofar = Variable("byte", self.steps.byte.tensor.dtype), Variable("sofar", self.dtype)
        row = Affine.of(self.count - 1) - step
        steps = (
            *self.steps.done(sofar, Local(byte)),
            Store(self.tables, (row, Affine.of(value)), Local(sofar)),
            Update(byte, constant(0, byte.dtype)),
        )
        body = (
            Define(byte, Cast(Index(Affine.of(value)), byte.dtype)),
            Define(sofar, constant(0, self.dtype)),
            For(step, ZERO, Affine.of(self.count), steps),
        )
        return self.for_values(value, body)

    def of_values(self) -> For:
        """The rows for the bytes of the variable, which all steps start from."""
        value, place, step = Symbol("v"), Symbol("b"), Symbol("n")
        byte, sofar = constant(0, self.steps.byte.tensor.dtype), Variable("sofar", self.dtype)
        parts = Cast(Index(Affine.of(value)), self.dtype), Cast(Index(Affine.of(place) * 8), self.dtype)
        body = (
            Define(sofar, Apply(OPS["raw_left_shift"], parts, self.dtype)),
            For(step, ZERO, Affine.of(self.count), self.steps.done(sofar, byte)),
            Store(self.tables, (Affine.of(place) + self.count, Affine.of(value)), Local(sofar)),
        )
        return For(place, ZERO, Affine.of(self.dtype.itemsize), (self.for_values(value, body),))

    def for_values(self, value: Symbol, body: tuple[Stmt, ...]) -> For:
        return For(value, ZERO, Affine.of(VALUES), body, LoopKind.VECTOR, lanes=self.lanes)

    def looked_up(self, first: Affine) -> Update:
        """The steps from the first of a round on."""
        sofar, byte, symbol = self.steps.sofar, self.steps.byte, self.steps.loop.symbol
        bytes_ = [substitute(byte, {symbol: first + step}) for step in range(self.count)]
        old: list[Expr] = []
        for place in range(self.dtype.itemsize):
            count = constant(8 * place, self.dtype)
            old.append(
                Apply(OPS["raw_right_shift"], (Local(sofar), count), self.dtype) if place else Local(sofar)
            )
        rows = [self.cell(row, value) for row, value in enumerate((*bytes_, *old))]
        return Update(sofar, _together((_together(rows[: self.count]), _together(rows[self.count :]))))

    def cell(self, row: int, value: Expr) -> Expr:
        """The cell of a row for the lowest byte of a value."""
        column = Apply(AND, (Cast(value, I64), constant(VALUES - 1, I64)), I64)
        return Gather(self.tables, (Index(Affine.of(row)), column))


def _together(values: Sequence[Expr]) -> Expr:
    """Their exclusive or, in halves."""
    if len(values) == 1:
        return values[0]
    middle = len(values) // 2
    halves = _together(values[:middle]), _together(values[middle:])
    return Apply(XOR, halves, dtype_of(values[0]))
