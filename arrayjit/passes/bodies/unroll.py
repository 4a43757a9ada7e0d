"""unroll: vectors of two or three numbers that steps are made of become locals.

    for t in sequential(0, 1000):                   for t in sequential(0, 1000):
        for c in parallel(0, 3):                        k0 = multiply(x[t, 0], 0.5)
            k[c] = multiply(x[t, c], 0.5)               k1 = multiply(x[t, 1], 0.5)
        for c in parallel(0, 3):            ->          k2 = multiply(x[t, 2], 0.5)
            x[t + 1, c] = add(x[t, c], k[c])            x[t + 1, 0] = add(x[t, 0], k0)
                                                        x[t + 1, 1] = add(x[t, 1], k1)
                                                        x[t + 1, 2] = add(x[t, 2], k2)

Loops too short for vectors are written out where all loops around them are in order, and there are some:
others are vectors along another loop. So are those of up to twelve iterations that read an array in which
single cells are stored: a vector of them would wait until they are in memory. A sweep of Gibbs sampling over
ten topics takes 0.76 of the time. What then is left of a temporary is single cells, and a local for each
value of a cell; so are the steps of a sum. Loops over bits, which shift by their index, are written out in
every loop: shifts by known numbers join what is done with the bits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from functools import partial

from ...ir.code import Caps
from ...ir.expr import Apply, Expr, Index, Load, Local, Variable
from ...ir.index import Affine, Symbol
from ...ir.loops import (
    Comment,
    Define,
    For,
    If,
    Kernel,
    LoopKind,
    Stmt,
    Store,
    Update,
    While,
    walk_statements,
)
from ...ir.ops import OPS
from ...ir.tensor import Tensor
from ...ir.walk import (
    children,
    expressions,
    kept,
    nodes_in,
    rewrite_bodies,
    rewrite_expressions,
    storages_read,
    transform,
    walk,
)
from ..analysis.accounts import vanished
from ..analysis.copies import one_by_one
from ..analysis.repeats import weight
from ..analysis.uses import Use, uses_of_temporaries
from .simplify import simplify

__all__ = ["FEW", "explain_unroll", "unroll"]

FEW = 3
"""The most other iterations that are written out: four make a vector."""

FEW_SINGLE = 12
"""The most iterations that read what is stored one cell at a time: more are worth a vector that waits."""

MOST_BITS = 32
MOST_OPERATIONS = 512
"""The most iterations and operations of loops over bits that are written out."""

SHIFTS = {OPS[name] for name in ("left_shift", "right_shift", "raw_left_shift", "raw_right_shift")}

LARGE, HEAVY = 64, 128
"""The most statements that a loop becomes, and operations where a vector of them would wait."""

Cell = tuple[Tensor, tuple[Affine, ...]]


def unroll(kernel: Kernel, caps: Caps) -> Kernel:
    """Every such loop written out, and the cells of small temporaries in locals."""
    body = _body(kernel.body, ())
    if body is kernel.body:
        return kernel
    kernel = replace(kernel, body=body)
    small = {tensor for tensor, uses in uses_of_temporaries(kernel).items() if _is_local(tensor, uses)}
    updates = Counter(stmt.variable for stmt in walk_statements(body) if isinstance(stmt, Update))
    placement = {tensor: place for tensor, place in kernel.placement.items() if tensor not in small}
    body = _Naming(small, updates).body(body)
    return simplify(replace(kernel, body=body, placement=placement), caps)


def explain_unroll(before: Kernel, after: Kernel, caps: Caps) -> Iterator[str]:
    """Which loops are written out."""
    for loop in vanished(before.body, after.body):
        yield f"unroll: loop {loop.symbol.hint} of {loop.trips} is written out"


def _body(body: tuple[Stmt, ...], around: tuple[For | While, ...]) -> tuple[Stmt, ...]:
    """Such loops in a body written out, `around` which those loops are."""
    out: list[Stmt] = []
    single = _single(body)
    in_order = bool(around) and all(
        isinstance(loop, While) or loop.kind is LoopKind.SEQUENTIAL for loop in around
    )
    for stmt in body:
        written_out: tuple[Stmt, ...] = (stmt,)
        if isinstance(stmt, For) and stmt.kind in (LoopKind.PARALLEL, LoopKind.SEQUENTIAL) and in_order:
            written_out = _written_out(stmt, FEW_SINGLE if _waits(stmt, single) else FEW)
        elif isinstance(stmt, For) and around and _is_over_bits(stmt):
            written_out = one_by_one(stmt)
        for new in written_out:
            match new:
                case For() | While():
                    out.append(rewrite_bodies(new, partial(_body, around=(*around, new))))
                case If():
                    out.append(rewrite_bodies(new, partial(_body, around=around)))
                case _:
                    out.append(new)
    return kept(body, out)


def _is_cell(index: tuple[Affine, ...]) -> bool:
    return all(position.is_constant for position in index)


def _single(body: Sequence[Stmt]) -> set[Tensor]:
    """What the statements of a body, or of short loops in it that are in order, store one cell at a time."""
    lines = list(body)
    for stmt in body:
        if isinstance(stmt, For) and stmt.kind is LoopKind.SEQUENTIAL and (stmt.trips or LARGE) <= FEW_SINGLE:
            lines += stmt.body
    return {line.tensor.storage for line in lines if isinstance(line, Store)}


def _waits(loop: For, single: Set[Tensor]) -> bool:
    """Whether vectors of a loop would wait for what is stored in these. Floats are added up by lanes."""
    if any(isinstance(line, Update) and line.accum and line.variable.dtype.is_float for line in loop.body):
        return False
    read = storages_read(value for line in loop.body for value in expressions(line))
    return (loop.trips or 0) * weight(loop.body) <= HEAVY and not single.isdisjoint(read)


def _written_out(loop: For, most: int = FEW) -> tuple[Stmt, ...]:
    """The iterations one after the other; the loop where they are too many, or too long."""
    body: list[Stmt] = []
    for stmt in loop.body:
        body += _written_out(stmt) if isinstance(stmt, For) else [stmt]
    trips = loop.trips
    plain = all(isinstance(stmt, (Comment, Define, Store, Update)) for stmt in body)
    if trips is None or trips > most or not plain or trips * len(body) > LARGE:
        return (loop,)
    return one_by_one(replace(loop, body=tuple(body)))


def _is_over_bits(loop: For) -> bool:
    """Whether a loop shifts by its index, is short, and stores nothing: what it stores would be a vector."""
    trips = loop.trips
    if trips is None or trips > MOST_BITS or not loop.lo.is_constant:
        return False
    if not all(isinstance(stmt, (Comment, Define, Update)) for stmt in loop.body):
        return False
    if trips * weight(loop.body) > MOST_OPERATIONS:
        return False
    told: set[Variable] = set()
    for stmt in loop.body:
        parts = list(nodes_in((stmt,)))
        if any(
            isinstance(p, Apply) and p.op in SHIFTS and _tells(p.args[1], loop.symbol, told) for p in parts
        ):
            return True
        if isinstance(stmt, Define) and _tells(stmt.value, loop.symbol, told):
            told.add(stmt.variable)
    return False


def _tells(value: Expr, symbol: Symbol, told: Collection[Variable]) -> bool:
    """Whether a value is computed from the index of a loop, or from locals that are."""
    return any(
        (isinstance(node, Index) and symbol in node.value.symbols)
        or (isinstance(node, Local) and node.variable in told)
        for node in walk(value)
    )


def _is_local(tensor: Tensor, uses: list[Use]) -> bool:
    """Are there single cells of a temporary only, each written before it is read, in the same body?"""
    path = uses[0].path
    written = set()
    for use in uses:
        if use.tensor is not tensor or use.path != path or use.index is None:
            return False
        if not _is_cell(use.index):
            return False
        if use.writes:
            written.add(use.index)
        elif use.index not in written:
            return False
    return True


class _Naming:
    """A walk that gives each value of a cell of `small`, and each step of a sum that is made in one body, a
    local. `updates` counts those of each local."""

    def __init__(self, small: set[Tensor], updates: Mapping[Variable, int]) -> None:
        self.small = small
        self.updates = updates
        self.cells: dict[Cell, Variable] = {}
        self.latest: dict[Variable, Variable] = {}

    def body(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        here = Counter(stmt.variable for stmt in body if isinstance(stmt, Update))
        self.latest |= {
            stmt.variable: stmt.variable
            for stmt in body
            if isinstance(stmt, Define) and here[stmt.variable] == self.updates.get(stmt.variable, -1)
        }
        return kept(body, [self.statement(stmt) for stmt in body])

    def statement(self, stmt: Stmt) -> Stmt:
        stmt = rewrite_expressions(stmt, lambda expr: transform(expr, self.node))
        match stmt:
            case Store(tensor=tensor, index=index, value=value) if tensor in self.small:
                variable = self.cells[tensor, index] = Variable(tensor.label, tensor.dtype)
                return Define(variable, value)
            case Update(variable=variable) if variable in self.latest:
                new = Variable(variable.hint, variable.dtype)
                value = _updated(stmt, Local(self.latest[variable]))
                self.latest[variable] = new
                return Define(new, value)
            case _:
                return rewrite_bodies(stmt, self.body)

    def node(self, node: Expr) -> Expr:
        match node:
            case Load(tensor=tensor, index=index) if tensor in self.small:
                return Local(self.cells[tensor, index])
            case Local(variable=variable) if variable in self.latest:
                return Local(self.latest[variable])
            case _:
                return node


def _updated(stmt: Update, old: Expr) -> Expr:
    """What a local is after an update."""
    if stmt.accum is None:
        return stmt.value
    if stmt.contract:
        return Apply(OPS["fma"], (*children(stmt.value), old), stmt.variable.dtype)
    return Apply(stmt.accum, (old, stmt.value), stmt.variable.dtype)
