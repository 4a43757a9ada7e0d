"""Integers that a loop chooses among are held in vector registers.

for j in sequential(1, 170):                   ; best, and what follows from it, as one lane of two
    up = x[i - 1, j]                     ->    ; of an xmm register, of which one instruction takes
    best = where(up > best, up, best)          ; the greater
    x[i, j] = best

A choice takes two instructions where integers are usually held, and these are half as many registers. Rows of
a table that are taken side by side wait for nothing else: an alignment of sequences takes 0.6 of the time,
with more rows at once. Positions are computed there, and so are products.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager

from ..ir.dtype import BOOL, I64
from ..ir.expr import Apply, Cast, Expr, Gather, Local, Variable
from ..ir.loops import Bind, Comment, Define, For, LoopKind, Prefetch, Stmt, Store, Update
from ..ir.ops import OPS
from ..ir.walk import children, expressions, variables
from .bodies import changes
from .llvm_memory import Lanes
from .llvm_text import Value, Writer

__all__ = ["holding"]

FEATURE = "avx512vl"
"""What a processor needs to choose the greater of two int64s at once."""

LANES = 2

ABREAST = 3
"""So many choices must wait for nothing but others at a time: one of them is made sooner elsewhere."""

CHOICE = OPS["where"]

SIMPLE = frozenset(
    OPS[name]
    for name in (
        *("add", "subtract", "where", "maximum", "minimum", "bitwise_and", "bitwise_or", "bitwise_xor"),
        *("less", "less_equal", "greater", "greater_equal", "equal", "not_equal"),
    )
)
"""Ops that vector registers are as good for."""


@contextmanager
def holding(
    loop: For, writer: Writer, values: dict[Variable, Value], lanes: Lanes
) -> Iterator[tuple[Variable, ...]]:
    """While a loop is printed: the locals that it hands on, in vector registers if it chooses among them."""
    changed = changes(loop.body)
    within = changed if lanes.count == 1 and _chooses(loop, changed, writer.features) else ()
    for variable in within:
        values[variable] = writer.widen(values[variable], LANES)
    yield changed
    for variable in within:
        values[variable] = writer.lane(values[variable], 0)


def _chooses(loop: For, changed: Sequence[Variable], features: Collection[str]) -> bool:
    """Whether what a loop does to the locals is to choose among int64s, several at a time."""
    if FEATURE not in features or loop.kind is not LoopKind.SEQUENTIAL or not changed:
        return False
    if any(variable.dtype is not I64 for variable in changed) or not all(map(_may_be_held, loop.body)):
        return False
    waits = dict.fromkeys(changed, 0)
    choices = longest = 0
    for stmt in loop.body:
        for value in expressions(stmt):
            following = list(_following(value, waits))
            if following and (isinstance(stmt, Bind) or not all(map(_may_follow, following))):
                return False
            choices += sum(map(_is_choice, following))
            longest = max(longest, wait := _wait(value, waits))
            if isinstance(stmt, (Define, Update)) and following:
                waits[stmt.variable] = wait
    return choices >= ABREAST * max(longest, 1)


def _may_be_held(stmt: Stmt) -> bool:
    match stmt:
        case Store(accum=None) | Define() | Update(accum=None) | Bind() | Prefetch() | Comment():
            return True
        case _:
            return False


def _following(value: Expr, inside: Collection[Variable]) -> Iterator[Expr]:
    """The nodes that follow from the locals."""
    if any(variable in inside for variable in variables(value)):
        yield value
        for child in children(value):
            yield from _following(child, inside)


def _may_follow(node: Expr) -> bool:
    """Whether vector registers are as good for what follows from the locals."""
    match node:
        case Apply(op=op, dtype=dtype):
            return op in SIMPLE and dtype in (BOOL, I64)
        case Gather() | Cast():
            return False
        case _:
            return True


def _is_choice(node: Expr) -> bool:
    return isinstance(node, Apply) and node.op is CHOICE


def _wait(value: Expr, waits: Mapping[Variable, int]) -> int:
    """How many choices are made one after the other from the start of an iteration on."""
    if isinstance(value, Local):
        return waits.get(value.variable, 0)
    return max((_wait(child, waits) for child in children(value)), default=0) + _is_choice(value)
