"""The high-level IR: whole-array assignments in program order.

A `Computation` is imperative. Every assignment evaluates its whole right side before it stores
anything, as NumPy does, so an operand may overlap the target. Statements nest in real loops.

    def saxpy(x: read[f32, 1024], y: update[f32, 1024]):
        y[i] = add(mul(2.0, x[i]), y[i])   for i in 1024
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field
from typing import Union, final

from ..errors import Location
from ..frozen import frozen, replace
from .expr import Expr
from .index import Affine, Symbol, symbols_of
from .journal import Logged
from .ops import Op
from .params import Access, ArrayParam, IndexParam, Param
from .tensor import Tensor

__all__ = [
    "Access",
    "ArrayParam",
    "Assign",
    "Bind",
    "Branch",
    "Check",
    "Computation",
    "IndexParam",
    "Loop",
    "Note",
    "Param",
    "Statement",
    "While",
    "assigned",
    "expressions",
    "rewrite_bodies",
    "rewrite_expressions",
    "statements",
]


@final
@frozen
class Assign:
    """For every point of the product space `loops`: `into[index] = value`.

    With `accum` (an associative op) the points that reach one cell are combined: loops absent from
    `index` are reduced over. The cell starts from `initial`, or from what it holds when that is None.
    Without `accum` every point reaches another cell. All of `value` is read before any cell is
    written. `loops` pairs each symbol with its extent; the symbol runs from 0.

    `contract` (matmul and its kin: `accum` is add, `value` is a float or complex multiply) accumulates
    with fused multiply-add: the product is not rounded before it is added. Of complex numbers, the products
    of their parts are accumulated so, those that make up one part of the sum in any order.

    With `regroup`, where `value` applies an associative op to the cell that the iteration before made and
    another value, a scan: passes may group these applications otherwise, in a documented order.
    """

    loops: tuple[tuple[Symbol, Affine], ...]
    into: Tensor
    index: tuple[Affine, ...]
    value: Expr
    accum: Op | None = None
    initial: Expr | None = None
    contract: bool = False
    loc: Location | None = field(default=None, compare=False)
    regroup: bool = False

    @property
    def point(self) -> tuple[Affine, ...]:
        """Where the loops are: the index of an array that has a cell for each of their points."""
        return tuple(Affine.of(symbol) for symbol, _ in self.loops)

    @property
    def cell_loops(self) -> tuple[tuple[Symbol, Affine], ...]:
        """The loops over the cells that are written."""
        written = set(symbols_of(self.index))
        return tuple(loop for loop in self.loops if loop[0] in written)

    @property
    def reduced_loops(self) -> tuple[tuple[Symbol, Affine], ...]:
        """The loops that are reduced over."""
        written = set(symbols_of(self.index))
        return tuple(loop for loop in self.loops if loop[0] not in written)


@final
@frozen
class Check:
    """Leave with an exception if `condition` is false at any point of `loops`.

    `exception` names one of Python's: "ArithmeticError" and "FloatingPointError" (of the pass `check`),
    "IndexError", "OverflowError", "TypeError", "UnboundLocalError", "ValueError", "ZeroDivisionError"; or
    NumPy's "LinAlgError". With a module, as "builtins.ValueError", it is one that the user's code raises.
    """

    loops: tuple[tuple[Symbol, Affine], ...]
    condition: Expr
    exception: str
    message: str
    loc: Location | None = field(default=None, compare=False)


@final
@frozen
class Loop:
    """`for symbol in range(lo, hi, step)`, iterations in order."""

    symbol: Symbol
    lo: Affine
    hi: Affine
    step: int
    body: tuple[Statement, ...]
    loc: Location | None = field(default=None, compare=False)


@final
@frozen
class Bind:
    """From here to the end of the body that this stands in, `symbol` is the int64 `value`.

    So a number that the program computes becomes an extent, a bound or part of an index. The value lies
    in the symbol's declared range, where it has one; who binds it sees to that, by a `Check` if need be.
    """

    symbol: Symbol
    value: Expr
    loc: Location | None = field(default=None, compare=False)


@final
@frozen
class Branch:
    """Run `body` if the bool `condition` holds, else `orelse`."""

    condition: Expr
    body: tuple[Statement, ...]
    orelse: tuple[Statement, ...] = ()
    loc: Location | None = field(default=None, compare=False)


@final
@frozen
class While:
    """Run `test`; if the bool `condition` then holds, run `body` and start again."""

    test: tuple[Statement, ...]
    condition: Expr
    body: tuple[Statement, ...]
    loc: Location | None = field(default=None, compare=False)


@final
@frozen
class Note:
    """A block comment; the first one names the routine."""

    text: str


Statement = Union[Assign, Bind, Branch, Check, Loop, Note, While]


@frozen
class Computation:
    """A whole program. Tensors that are not parameters are its temporaries; `checks` are what the pass
    `check` has it look for, and `VALUES` for `log`, which leaves what it `logged`."""

    name: str
    params: tuple[Param, ...]
    body: tuple[Statement, ...]
    checks: tuple[str, ...] = ()
    logged: tuple[Logged, ...] = ()


def statements(body: tuple[Statement, ...]) -> Iterator[Statement]:
    """Every statement of a body, outer before inner, in program order."""
    for statement in body:
        yield statement
        for inner in bodies(statement):
            yield from statements(inner)


def assigned(body: tuple[Statement, ...]) -> set[Tensor]:
    """The storages that a body assigns to."""
    return {statement.into.storage for statement in statements(body) if isinstance(statement, Assign)}


def bodies(statement: Statement) -> tuple[tuple[Statement, ...], ...]:
    """The bodies that stand in a statement, in program order."""
    match statement:
        case Loop(body=body):
            return (body,)
        case Branch(body=body, orelse=orelse):
            return (body, orelse)
        case While(test=test, body=body):
            return (test, body)
        case Assign() | Bind() | Check() | Note():
            return ()


def rewrite_bodies(
    statement: Statement, rule: Callable[[tuple[Statement, ...]], tuple[Statement, ...]]
) -> Statement:
    """The statement with `rule` applied to each body that stands in it, in program order."""
    match statement:
        case Loop(body=body):
            new = rule(body)
            return statement if new is body else replace(statement, body=new)
        case Branch(body=body, orelse=orelse):
            new, other = rule(body), rule(orelse)
            same = new is body and other is orelse
            return statement if same else replace(statement, body=new, orelse=other)
        case While(test=test, body=body):
            first, new = rule(test), rule(body)
            same = first is test and new is body
            return statement if same else replace(statement, test=first, body=new)
        case Assign() | Bind() | Check() | Note():
            return statement


def expressions(statement: Statement) -> tuple[Expr, ...]:
    """The expressions that stand directly in a statement, not in its bodies."""
    match statement:
        case Assign(value=value, initial=initial):
            return (value,) if initial is None else (value, initial)
        case Bind(value=value):
            return (value,)
        case Branch(condition=condition) | Check(condition=condition) | While(condition=condition):
            return (condition,)
        case Loop() | Note():
            return ()


def rewrite_expressions(statement: Statement, rule: Callable[[Expr], Expr]) -> Statement:
    """The statement with `rule` applied to each expression that stands directly in it."""
    match statement:
        case Assign(value=value, initial=initial):
            new, first = rule(value), None if initial is None else rule(initial)
            same = new is value and first is initial
            return statement if same else replace(statement, value=new, initial=first)
        case Bind(value=value):
            new = rule(value)
            return statement if new is value else replace(statement, value=new)
        case Branch(condition=condition) | Check(condition=condition) | While(condition=condition):
            new = rule(condition)
            return statement if new is condition else replace(statement, condition=new)
        case Loop() | Note():
            return statement
