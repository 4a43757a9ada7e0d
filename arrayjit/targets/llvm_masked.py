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
"""

from __future__ import annotations

from collections.abc import Collection

from ..ir.expr import Apply, Expr, Gather, Load
from ..ir.loops import Comment, Define, For, LoopKind, Store, Update, walk_statements
from ..ir.ops import divides_integers
from ..ir.walk import nodes_in
from .bodies import changes
from .llvm_memory import MASKED, Lanes
from .llvm_text import LINE_BYTES

__all__ = ["masked_widths"]

FEATURE = "avx512vl"
"""What a processor needs to load and store under masks as fast as without."""

LOCKSTEP = "sse4a"
"""What AMD's processors have, on which steps in lockstep end under masks: of others it is not known."""


def masked_widths(loop: For, features: Collection[str]) -> tuple[int, ...]:
    """The widths in which a loop is printed that a vector of fewer lanes ends: its own, and one register's.
    None if that may not be, or is not worth it: the loop must be `masked`, have loops inside or go in
    lockstep, all that is read or written one number or neighbours, nothing accumulated in order, and nothing
    that lanes of zeros would do harm to. What a loop appends is stored under a mask anyway."""
    if loop.kind is LoopKind.SEQUENTIAL:
        return (loop.lanes,)
    in_step = loop.kind is LoopKind.LOCKSTEP and LOCKSTEP in features
    if FEATURE not in features or not (in_step or loop.kind is LoopKind.VECTOR):
        return ()
    if loop.step != 1 or changes(loop.body):
        return ()
    inside, lanes = list(walk_statements(loop.body)), Lanes(loop.symbol, loop.step, loop.lanes)
    if not all(isinstance(stmt, (Define, Update, Store, Comment, For)) for stmt in inside):
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
