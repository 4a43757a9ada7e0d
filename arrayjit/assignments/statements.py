"""Statements of hand-written programs, and the functions that make them.

    i, j, k = axes("i j k")
    product = reduce("add", c[i, j], a[i, k] * b[k, j])

A statement is about the product space of its symbols: those of the target from left to right, then those
of the value, each running over the axes that it stands on. For every point in order the value goes to the
target's cell: `assign` overwrites, so that the last point wins; `accumulate` combines it with what the
cell holds; `reduce` does so from the op's neutral element on, which is also what cells hold in the end
that no point reaches. All that a statement reads it reads before it writes.

A list of values under a target with a `concat` axis makes the parts of the axis, one after the other:
`assign(c[concat(i, j)], [a[i], b[j]])`. A list of targets takes it apart again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import takewhile
from typing import Union

from ..errors import InvalidProgram, Location, ShapeError, UnsupportedError
from ..frozen import frozen_by_identity
from ..ir.index import Affine, Extent, Symbol, SymbolKind, affine, row_major_strides
from ..ir.ops import OPS, Op
from .here import here
from .nodes import Cell, Concat, Node
from .values import Bits, Value, as_value, number

__all__ = [
    "MAX_NUMBERS",
    "NOOP",
    "Accumulate",
    "Block",
    "Series",
    "Statement",
    "accumulate",
    "accumulations",
    "assign",
    "axes",
    "axis",
    "block",
    "concat",
    "einsum",
    "fill",
    "fill_bits",
    "fill_each",
    "fill_range",
    "is_noop",
    "name_of",
    "reduce",
    "sequence",
    "static",
]

MAX_NUMBERS = 256
"""So many numbers may be written out in a program; more are data, which a context is given."""


@frozen_by_identity
class Accumulate:
    """For every point: a target's cell gets a value, by `op` if there is one, from its neutral element on
    if `fresh`. Of several targets or values that one counts whose symbols the point has."""

    targets: tuple[Cell, ...]
    values: tuple[Value, ...]
    op: Op | None
    fresh: bool
    loc: Location


@frozen_by_identity
class Block:
    """Statements under a comment, which names them."""

    text: str
    body: Statement


@frozen_by_identity
class Series:
    """Statements one after the other."""

    body: tuple[Statement, ...]


Statement = Union[Accumulate, Block, Series]

NOOP = Series(())

Target = Union[Cell, Node]


# ---- symbols -----------------------------------------------------------------------------------------


def axis(name: str, extent: int | None = None) -> Symbol:
    """A symbol to index with; its extent is that of the axes where it stands alone, unless it is given."""
    return Symbol(name) if extent is None else Symbol(name, lower=0, upper=extent)


def axes(names: str) -> tuple[Symbol, ...]:
    """Several symbols at once: `i, j = axes("i j")`."""
    return tuple(axis(name) for name in names.split())


def static(name: str, lower: int | None = None, upper: int | None = None) -> Symbol:
    """A static symbol: an integer from `lower` to below `upper` that is chosen at each launch."""
    return Symbol(name, SymbolKind.STATIC, lower, upper)


def concat(*symbols: Symbol) -> Concat:
    """An axis made of several, one after the other."""
    return Concat(symbols)


# ---- assignments -------------------------------------------------------------------------------------


def assign(target: Target | Sequence[Target], value: object) -> Accumulate:
    """The cells are overwritten; where several points reach one cell, the last one wins."""
    return Accumulate(_targets(target), _values(value), None, False, here())


def accumulate(op: str | Op, target: Target | Sequence[Target], value: object) -> Accumulate:
    """`cell = op(cell, value)` for one point after the other."""
    return Accumulate(_targets(target), _values(value), _accumulator(op), False, here())


def reduce(op: str | Op, target: Target | Sequence[Target], value: object) -> Accumulate:
    """As `accumulate`, each cell starting from the op's neutral element."""
    return Accumulate(_targets(target), _values(value), _accumulator(op), True, here())


def _targets(target: Target | Sequence[Target]) -> tuple[Cell, ...]:
    found = target if isinstance(target, (list, tuple)) else (target,)
    cells = tuple(cell[...] if isinstance(cell, Node) else cell for cell in found)
    for cell in cells:
        if not isinstance(cell, Cell):
            raise InvalidProgram(f"{cell!r} is no target", loc=here(), fix="write to a node's cell: y[i]")
        if cell.slot is not None:
            raise InvalidProgram(
                f"merge buffer {cell.slot} of {cell.node.name} is written",
                loc=here(),
                fix="write to a node; only transfers fill merge buffers",
            )
    return cells


def _values(value: object) -> tuple[Value, ...]:
    return tuple(map(as_value, value)) if isinstance(value, list) else (as_value(value),)


def _accumulator(op: str | Op) -> Op:
    row = OPS.get(op) if isinstance(op, str) else op
    if row is None or row.arity != 2:
        raise UnsupportedError(
            f"{op!s} does not accumulate", loc=here(), fix="choose an op of two operands from the table"
        )
    return row


def einsum(subscripts: str, target: Target, *operands: Node) -> Accumulate:
    """Sums of products in NumPy's notation: `einsum("ik,kj->ij", c, a, b)`."""
    left, arrow, right = subscripts.replace(" ", "").partition("->")
    inputs = left.split(",")
    if not arrow or len(inputs) != len(operands) or not operands or not isinstance(target, Node):
        raise ShapeError(
            f"einsum subscripts {subscripts!r} do not fit {len(operands)} operands",
            loc=here(),
            fix="write one group of letters for each operand and one for the target, as in 'ik,kj->ij'",
        )
    symbols = {letter: axis(letter) for letter in left + right if letter.isalpha()}
    product, *others = [
        operand[tuple(symbols[letter] for letter in letters)]
        for operand, letters in zip(operands, inputs, strict=True)
    ]
    value: Value = product
    for factor in others:
        value = as_value(value * factor)
    return reduce("add", target[tuple(symbols[letter] for letter in right)], value)


# ---- what nodes are filled with ----------------------------------------------------------------------


def fill(node: Node, value: object) -> Accumulate:
    """Every cell gets the number, or the value: `fill(step, number(n))`."""
    return assign(node[...], value)


def fill_bits(node: Node, pattern: int) -> Accumulate:
    """Every cell gets the number with these bits."""
    return assign(node[...], Bits(pattern))


def fill_range(node: Node) -> Accumulate:
    """Every cell gets its offset in row-major order."""
    symbols = tuple(axis(f"i{position}") for position in range(len(node.shape)))
    return assign(node[symbols], number(_offset(node, symbols)))


def fill_each(node: Node, numbers: Iterable[bool | int | float]) -> Statement:
    """The cells get the numbers one by one, in row-major order, at most `MAX_NUMBERS`."""
    listed = list(numbers)
    if len(listed) != node.size or len(listed) > MAX_NUMBERS:
        raise ShapeError(
            f"{node.name} has {node.size} cells and is filled with {len(listed)} numbers",
            loc=here(),
            details=(f"at most {MAX_NUMBERS} numbers are written out in a program",),
            fix="give the values to a context, with init_from_host",
        )
    positions = [affine(index) for index in _indices(node.shape)]
    return sequence(*(assign(node[index], one) for index, one in zip(positions, listed, strict=True)))


def _indices(shape: tuple[int, ...]) -> list[tuple[int, ...]]:
    found: list[tuple[int, ...]] = [()]
    for extent in shape:
        found = [(*index, position) for index in found for position in range(extent)]
    return found


def _offset(node: Node, index: Sequence[Extent]) -> Affine:
    total = Affine.of(0)
    for position, stride in zip(index, row_major_strides(affine(node.shape)), strict=True):
        total = total + Affine.of(position) * stride.constant
    return total


# ---- statements together -----------------------------------------------------------------------------


def sequence(*statements: Statement) -> Statement:
    """One after the other; what does nothing is left out."""
    for one in statements:
        if not isinstance(one, (Accumulate, Block, Series)):
            raise InvalidProgram(
                f"{type(one).__name__} is no statement",
                loc=here(),
                fix="give statements one by one, as in program(*statements)",
            )
    body = [inner for one in statements for inner in (one.body if isinstance(one, Series) else (one,))]
    return body[0] if len(body) == 1 else Series(tuple(body))


def block(text: str, *statements: Statement) -> Block:
    """Statements under a comment; the routine may get its name from it."""
    return Block(text, sequence(*statements))


def is_noop(statement: Statement) -> bool:
    """Whether nothing is assigned."""
    return not accumulations(statement)


def accumulations(statement: Statement) -> tuple[Accumulate, ...]:
    """The assignments in a statement, in program order."""
    match statement:
        case Accumulate():
            return (statement,)
        case Block(body=body):
            return accumulations(body)
        case Series(body=parts):
            return tuple(one for part in parts for one in accumulations(part))


def name_of(statement: Statement) -> str:
    """A name from the comments: that of a block, or those of a series with what they share said once.
    Empty when there are none."""
    match statement:
        case Accumulate():
            return ""
        case Block(text=text):
            return re.sub(r"\W+", "_", text).strip("_")
        case Series(body=parts):
            return _joined([name for part in parts if (name := name_of(part))])


def _joined(names: Sequence[str]) -> str:
    words = [name.split("_") for name in dict.fromkeys(names)]
    if len(words) < 2:
        return "_".join(words[0]) if words else ""
    first = _shared(words)
    last = min(_shared([name[::-1] for name in words]), min(map(len, words)) - first)
    middles = [word for name in words for word in name[first : len(name) - last]]
    return "_".join([*words[0][:first], *middles, *words[0][len(words[0]) - last :]])


def _shared(words: Sequence[list[str]]) -> int:
    """With how many equal words all names begin."""
    return sum(1 for _ in takewhile(lambda column: len(set(column)) == 1, zip(*words, strict=False)))
