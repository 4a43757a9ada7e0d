"""same: a number that is bound twice is bound once.

    t = starts[k]                                   t = starts[k]
    n = t                                           n = t
    u = starts[k]                           ->      u = starts[k]
    m = u
    y[i] = x[i]   for i in m                        y[i] = x[i]   for i in n

What goes over the same number of cells may be joined, and checks that two sizes agree fall away. This is
value numbering (Cocke and Schwartz, 1970) of bound symbols, through the temporary numbers that they are read
from: two are the same if their expressions are, over the same values, and nothing that these read was written
in between. A value is numbered by a cell that nobody writes.
"""

from __future__ import annotations

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
    Note,
    Statement,
    While,
    assigned,
    expressions,
    rewrite_bodies,
    statements,
)
from ...ir.code import Caps
from ...ir.expr import Expr, Gather, Load, dtype_of
from ...ir.index import Affine, Symbol
from ...ir.tensor import Tensor
from ...ir.walk import kept, storages_read, substitute_assignments, transform, walk
from ..analysis.access import given

__all__ = ["same"]

Body = tuple[Statement, ...]


def same(computation: Computation, caps: Caps) -> Computation:
    """The computation with one symbol for each number."""
    if sum(isinstance(statement, Bind) for statement in statements(computation.body)) < 2:
        return computation
    sizes = frozenset(_sizes(computation.body))
    body = _Numbering(given(computation.params), sizes).body(computation.body)
    return computation if body is computation.body else replace(computation, body=body)


@slotted
class _Numbering:
    """What is known where we are: the number of each value by the expression that it is of, over numbers, and
    of what is in each scalar temporary; and the symbol of each number. An expression's number is known since
    a time, and holds unless what it reads was `written` later. Symbols in `sizes` are part of a tensor's
    shape and keep their names."""

    given: frozenset[Tensor]
    sizes: frozenset[Symbol]
    now: int = 0
    written: dict[Tensor, int] = field(default_factory=dict)
    numbers: dict[Expr, tuple[int, Load]] = field(default_factory=dict)
    content: dict[Tensor, Load] = field(default_factory=dict)
    symbols: dict[Load, Symbol] = field(default_factory=dict)

    def body(self, body: Body) -> Body:
        names: dict[Symbol, Affine] = {}
        out: list[Statement] = []
        for statement in body:
            if names:
                (statement,) = substitute_assignments((statement,), names)
            if isinstance(statement, Bind) and (known := self.bound(statement)) is not None:
                names[statement.symbol] = Affine.of(known)
            else:
                out.append(self.statement(statement))
        return kept(body, out)

    def statement(self, statement: Statement) -> Statement:
        """A statement with its bodies; what is known after it."""
        match statement:
            case Assign(into=into, value=value):
                number = self.number(value) if self.is_scalar(statement) else None
                self.forget((into.storage,))
                if number is not None:
                    self.content[into] = number
                return statement
            case Loop() | Branch() | While():
                written = assigned((statement,))
                self.forget(written)
                statement = self.inside(statement)
                self.forget(written)
                return statement
            case Bind() | Check() | Note():
                return statement

    def inside(self, statement: Loop | Branch | While) -> Statement:
        """Bodies that may run any number of times: what they find out stays there."""

        def bodies(body: Body) -> Body:
            known = dict(self.written), dict(self.numbers), dict(self.content), dict(self.symbols)
            return _Numbering(self.given, self.sizes, self.now, *known).body(body)

        if isinstance(statement, While):  # what its test binds is known in its condition
            new = bodies(statement.body)
            return statement if new is statement.body else replace(statement, body=new)
        return rewrite_bodies(statement, bodies)

    def bound(self, statement: Bind) -> Symbol | None:
        """The symbol that has the value already."""
        symbol = statement.symbol
        known = self.symbols.setdefault(self.number(statement.value), symbol)
        is_other = known is not symbol and symbol not in self.sizes
        return known if is_other and (known.lower, known.upper) == (symbol.lower, symbol.upper) else None

    def is_scalar(self, statement: Assign) -> bool:
        """Whether a statement gives a temporary number its value."""
        into = statement.into
        is_own = into not in self.given and into.rank == 0 and into.base is None
        return is_own and not statement.loops and statement.accum is None

    def number(self, value: Expr) -> Load:
        """The number of a value."""

        def rule(expr: Expr) -> Expr:
            return self.content.get(expr.tensor, expr) if isinstance(expr, Load) else expr

        if isinstance(value, Load) and value.tensor in self.content:
            return self.content[value.tensor]
        value = transform(value, rule)
        since, number = self.numbers.get(value, (-1, None))
        if number is None or any(self.written.get(tensor, 0) > since for tensor in storages_read((value,))):
            number = Load(Tensor("value", (), dtype_of(value)), ())
            self.numbers[value] = self.now, number
        return number

    def forget(self, written: Iterable[Tensor]) -> None:
        """What these hold is not known any more, nor what is computed from them hereafter. Values stay."""
        self.now += 1
        for tensor in written:
            self.written[tensor] = self.now
            self.content.pop(tensor, None)


def _sizes(body: Body) -> Iterator[Symbol]:
    """The symbols in shapes and strides."""
    for statement in statements(body):
        nodes = (node for value in expressions(statement) for node in walk(value))
        tensors = {node.tensor for node in nodes if isinstance(node, (Load, Gather))}
        if isinstance(statement, Assign):
            tensors.add(statement.into)
        for tensor in tensors:
            for extent in (*tensor.shape, *(tensor.strides or ())):
                yield from extent.symbols
