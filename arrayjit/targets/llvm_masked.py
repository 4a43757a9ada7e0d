"""What a vector loop leaves after whole vectors, as the first lanes of one more.

for j in vector(k, 120, lanes=8):              ; (120 - k) % 8 columns are left: a vector that is loaded
    s = 0.0                                    ; and stored under a mask, instead of that many loops over
    for i in sequential(0, 150):          ->   ; the rows, one after the other
        s = fma(q[i], a[i, j], s)
    r[j] = s

Where an iteration has loops of its own, as along the diagonal of a triangle, a few columns one by one take
longer than all others: of a Gram-Schmidt process a fifth. Short bodies are as fast without a mask. What goes
in lockstep would end in loops of several widths: under a mask a tree of prices takes 0.97 of the time on
AMD's processors.

Sums in order may end so, too: without a branch on how many lanes are left, even if none is.

for i in lockstep(m, n, lanes=8, masked=True): ; whole vectors, lane by lane; then all lanes of one more, of
    s = add(s, x[i])                           ; which those behind the end add -0.0
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ..ir.expr import Apply, Expr, Gather, Load
from ..ir.loops import Bind, Comment, Define, For, LoopKind, Store, Update, walk_statements
from ..ir.ops import Op, divides_integers
from ..ir.walk import nodes_in
from .bodies import changes
from .llvm_memory import MASKED, Lanes
from .llvm_text import LINE_BYTES, Value, Writer, constant
from .llvm_values import identity, select

__all__ = ["adding_nothing", "ends_sums", "masked_widths"]

FEATURE = "avx512vl"
"""What a processor needs to load and store under masks as fast as without."""

LOCKSTEP = "sse4a"
"""What AMD's processors have, on which steps in lockstep end under masks: of others it is not known."""


def masked_widths(loop: For, features: Collection[str]) -> tuple[int, ...]:
    """The widths in which a loop is printed that a vector of fewer lanes ends: its own, and one register's.
    None if that may not be, or is not worth it: the loop must be `masked`, have loops inside or go in
    lockstep, all that is read or written one number or neighbours, nothing accumulated in order, and nothing
    that lanes of zeros would do harm to; what is bound is one number for all lanes. What a loop appends is
    stored under a mask anyway, and sums in lockstep end under one if they are `masked`."""
    if loop.kind is LoopKind.SEQUENTIAL:
        return (loop.lanes,)
    if ends_sums(loop, features):
        return (loop.lanes,)
    in_step = loop.kind is LoopKind.LOCKSTEP and LOCKSTEP in features
    if FEATURE not in features or not (in_step or loop.kind is LoopKind.VECTOR):
        return ()
    if loop.step != 1 or changes(loop.body):
        return ()
    inside, lanes = list(walk_statements(loop.body)), Lanes(loop.symbol, loop.step, loop.lanes)
    if not all(isinstance(stmt, (Define, Update, Store, Comment, For, Bind)) for stmt in inside):
        return ()
    stores = [stmt for stmt in inside if isinstance(stmt, Store)]
    if not stores or not (in_step or loop.masked or any(isinstance(stmt, For) for stmt in inside)):
        return ()
    if not all(_are_neighbours(store, lanes) for store in stores):
        return ()
    if not all(_may_be_masked(node, lanes) for node in nodes_in(walk_statements(loop.body))):
        return ()
    register = LINE_BYTES // max(store.tensor.dtype.itemsize for store in stores)
    return (loop.lanes, register) if register < loop.lanes else (loop.lanes,)


def ends_sums(loop: For, features: Collection[str]) -> bool:
    """Whether what a loop adds up in order ends with lanes that add nothing."""
    is_masked = loop.kind is LoopKind.LOCKSTEP and loop.masked and FEATURE in features
    return is_masked and bool(changes(loop.body))


def _may_be_masked(node: Expr, lanes: Lanes) -> bool:
    match node:
        case Gather():
            return False
        case Load(tensor=tensor, index=index):
            return lanes.step_in(tensor, index) == 0 or _are_neighbours(node, lanes)
        case Apply(op=op, dtype=dtype):
            return not divides_integers(op, dtype)
        case _:
            return True


def _are_neighbours(access: Load | Store, lanes: Lanes) -> bool:
    """Whether lanes have neighbouring cells, of a size for which there are masks."""
    return lanes.step_in(access.tensor, access.index) == 1 and access.tensor.dtype.itemsize in MASKED


def adding_nothing(writer: Writer, accum: Op, operands: Sequence[Value], lanes: Lanes) -> list[Value]:
    """What is accumulated, or its two factors, where absent lanes have what leaves a sum as it is."""
    assert lanes.present is not None
    mask, dtype = writer.first_lanes(lanes.present, lanes.count), operands[0].dtype
    nothing = (
        (constant(-0.0, dtype), constant(0.0, dtype)) if len(operands) == 2 else (identity(accum, dtype),)
    )
    return [
        select(writer, mask, writer.widen(operand, lanes.count), writer.widen(neutral, lanes.count))
        for operand, neutral in zip(operands, nothing, strict=True)
    ]
