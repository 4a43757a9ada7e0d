"""log: every value that the program assigns goes into its journal, in the program's order.

                                                    told[16] = 17
                                                    ...
    y[i] = sqrt(x[i])   for i in 4                  y[i] = sqrt(x[i])   for i in 4
                                                    for i in range(0, 4):
                                        ->              n: index[17, None] = told[16]
                                                        if n <= 262141:
                                                            told[n] = 3
                                                            told[n + 1] = bits(y[i])
                                                            told[n + 2] = i
                                                        else:
                                                            if n < 262144:
                                                                told[n] = -1
                                                        told[16] = n + 3

For small runs: the loops are in order, and nothing is joined with what is looked at. A record is the number
of a statement, of which `logged` has the rest, the bits of the value and the index of its cell. First come
the arguments. What has no room is counted and left out; where the first such record would be, the log ends.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field, replace

from ...errors import Location
from ...frozen import slotted
from ...ir.assign import ArrayParam, Assign, Bind, Branch, Computation, Loop, Statement, rewrite_bodies
from ...ir.code import Caps
from ...ir.conditions import compare
from ...ir.dtype import F64, I64
from ...ir.expr import Apply, Const, Expr, Index, Load, convert, dtype_of
from ...ir.index import Affine, Symbol
from ...ir.journal import CAPACITY, END, FIRST, NEXT, VALUES, Logged, new_journal
from ...ir.ops import OPS
from ...ir.tensor import Tensor
from ...ir.walk import substitute

__all__ = ["as_cell", "log"]


def log(computation: Computation, caps: Caps) -> Computation:
    """The computation with its values in a journal, if that is wished."""
    if VALUES not in computation.checks:
        return computation
    journal = new_journal(CAPACITY)
    logging = _Logging(journal.tensor)
    body = (
        logging.told(NEXT, Const(FIRST, I64)),
        *logging.arguments(computation),
        *logging.body(computation.body),
    )
    params = (*computation.params, journal)
    checks = tuple(kind for kind in computation.checks if kind != VALUES)
    return replace(computation, params=params, body=body, checks=checks, logged=tuple(logging.logged))


@slotted
class _Logging:
    journal: Tensor
    logged: list[Logged] = field(default_factory=list)

    def arguments(self, computation: Computation) -> Iterator[Statement]:
        """The values that the caller passes."""
        for param in computation.params:
            if isinstance(param, ArrayParam) and param.access != "write":
                tensor = param.tensor
                symbols = tuple(Symbol("i") for _ in tensor.shape)
                loops = tuple(zip(symbols, tensor.shape, strict=True))
                yield from self.cells(tensor, loops, tuple(map(Affine.of, symbols)), None)

    def body(self, body: tuple[Statement, ...]) -> Iterator[Statement]:
        for statement in body:
            match statement:
                case Assign(into=into, index=index, loc=loc):
                    yield statement
                    yield from self.cells(into, statement.cell_loops, index, loc)
                case _:
                    yield rewrite_bodies(statement, lambda body: tuple(self.body(body)))

    def cells(
        self,
        tensor: Tensor,
        loops: Sequence[tuple[Symbol, Affine]],
        index: Sequence[Affine],
        loc: Location | None,
    ) -> Iterator[Statement]:
        """What the cells at the index hold, one after the other."""
        number = len(self.logged)
        self.logged.append(Logged(tensor.label, tensor.dtype.short, len(index), loc))
        values: dict[Symbol, Affine] = {}
        own: list[tuple[Symbol, Affine]] = []
        for symbol, extent in loops:
            own.append((Symbol(symbol.hint), extent.substitute(values)))
            values[symbol] = Affine.of(own[-1][0])
        place = Symbol("n", lower=FIRST)
        record: list[Expr] = [Const(number, I64)]
        record.append(as_cell(substitute(Load(tensor, tuple(index)), values)))
        record += [Index(position.substitute(values)) for position in index]
        last = Const(CAPACITY - len(record), I64)
        has_room = compare("less_equal", Index(Affine.of(place)), last)
        told = (self.told(Affine.of(place) + offset, value) for offset, value in enumerate(record))
        is_inside = compare("less", Index(Affine.of(place)), Const(CAPACITY, I64))
        end = Branch(is_inside, (self.told(Affine.of(place), Const(END, I64)),))
        body: tuple[Statement, ...] = (
            Bind(place, Load(self.journal, (Affine.of(NEXT),))),
            Branch(has_room, tuple(told), (end,)),
            self.told(NEXT, Index(Affine.of(place) + len(record))),
        )
        for symbol, extent in reversed(own):
            body = (Loop(symbol, Affine.of(0), extent, 1, body),)
        yield from body

    def told(self, place: Affine | int, value: Expr) -> Assign:
        return Assign((), self.journal, (Affine.of(place),), value)


def as_cell(value: Expr) -> Expr:
    """A number as the bits of a cell: a float as that of a float64."""
    dtype = dtype_of(value)
    if dtype.is_float:
        wide = convert(value, F64)
        return Apply(OPS["bits"], (wide,), I64)
    return convert(value, I64)
