"""braid: rows of which each is one chain of steps go several at a time.

    for i in parallel(0, 300):                      for b in parallel(0, 75):
        s = 0.0                                         s, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
        for j in sequential(0, 300):                    for j in sequential(0, 300):
            s = add(s, x[i, j])             ->              s = add(s, x[4*b, j])
            y[i, j] = s                                     y[4*b, j] = s
                                                            s1 = add(s1, x[4*b + 1, j])
                                                            ...

A step waits for the one before it, and the next row is too far ahead to be seen by the processor; steps of
other rows need not wait. Rows that lie in memory as rows would have to be turned for vectors. Moving averages
of each row take 0.3 of the time, running products and extremes 0.5. What a row makes for itself in memory
each of them has in a part of its own.

So do chains that have nothing to do with one another, where one follows the other and takes as many steps:

    for i in sequential(0, 300):                    s, t = 0.0, 0.0
        s = add(multiply(s, 0.9), x[i])             for i in sequential(0, 300):
        y[i] = s                            ->          s = add(multiply(s, 0.9), x[i])
    t = 0.0                                             y[i] = s
    for i in sequential(0, 300):                        t = add(multiply(t, 0.8), x[i])
        t = add(multiply(t, 0.8), x[i])                 z[i] = t
        z[i] = t
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...frozen import replace
from ...ir.code import Caps
from ...ir.expr import Apply
from ...ir.index import Affine, Symbol
from ...ir.loops import (
    Comment,
    Define,
    For,
    Kernel,
    LoopKind,
    Place,
    PlaceKind,
    Stmt,
    Store,
    Update,
    go_in_order,
    walk_statements,
)
from ...ir.ops import is_of_library
from ...ir.tensor import Tensor
from ...ir.walk import (
    kept,
    nodes_in,
    outer_updates,
    rewrite_bodies,
    rewrite_cells,
    rewrite_loops,
    substitute_statements,
)
from ..analysis.access import Range, effects
from ..analysis.carriers import disturb
from ..analysis.copies import Copying, copy_body, merged
from ..analysis.private import private_to
from ..analysis.trips import enter
from ..analysis.uses import counts
from .broaden import CROWDED, is_seen, kept_values, waits, works

__all__ = ["braid"]

MOST = 4
"""So many rows at a time."""

FEWEST = 2 * MOST
"""So many rows are worth it, for each thread."""

GAIN = 1.25
"""So much faster rows must become each time that they are doubled."""

LARGE = 256
"""The most statements of several rows: more take long to compile."""


def braid(kernel: Kernel, caps: Caps) -> Kernel:
    """Every such loop over rows in blocks of several."""
    if not go_in_order(kernel.body):
        return kernel
    ranges: dict[Symbol, Range] = {}
    notes: list[str] = []
    placement: dict[Tensor, Place] = {}

    def together(loop: For) -> Sequence[Stmt] | None:
        enter(loop, ranges)
        if (loop.trips or 0) < FEWEST * caps.threads or not _may_go_together(loop):
            return None
        chains = _chains(loop, ranges)
        rows = _rows(loop, chains, caps)
        own = None if rows == 1 else private_to(loop, kernel, ranges)
        if own is None or not _have_room(own, rows, kernel, caps):
            return None
        notes.append(
            f"braid: {rows} rows of {loop.symbol.hint} go together, since their steps wait for one another"
        )
        apart = {tensor: Tensor.of(tensor.label, (rows, *tensor.shape), tensor.dtype) for tensor in own}
        placement.update((apart[tensor], kernel.placement[tensor]) for tensor in own)
        return _in_blocks(loop, chains, rows, apart)

    body = rewrite_loops(_one_beside_another(kernel.body, caps, notes), together)
    if placement:
        used = counts(body)
        left = {tensor: place for tensor, place in kernel.placement.items() if tensor in used}
        kernel = replace(kernel, placement=left)
    return kernel.with_body(body, notes, placement)


def _one_beside_another(body: tuple[Stmt, ...], caps: Caps, notes: list[str]) -> tuple[Stmt, ...]:
    """A body in which chains of as many steps that have nothing to do with one another are one loop."""
    out: list[Stmt] = []
    for stmt in body:
        stmt = rewrite_bodies(stmt, lambda inner: _one_beside_another(inner, caps, notes))
        at = _last_but_definitions(out) if isinstance(stmt, For) else None
        first = None if at is None else out[at]
        if at is not None and isinstance(first, For) and isinstance(stmt, For):
            names = {stmt.symbol: Affine.of(first.symbol)}
            if _are_apart(first, out[at + 1 :], stmt):
                both = replace(first, body=(*first.body, *substitute_statements(stmt.body, names)))
                if _gains(first, stmt, both, caps):
                    hints = stmt.symbol.hint, first.symbol.hint
                    notes.append(f"braid: the steps of {hints[0]} go beside those of {hints[1]}")
                    out[at:] = [*out[at + 1 :], both]
                    continue
        out.append(stmt)
    return kept(body, out)


def _last_but_definitions(body: Sequence[Stmt]) -> int | None:
    """The place of the last statement that is no definition."""
    places = range(len(body) - 1, -1, -1)
    return next((at for at in places if not isinstance(body[at], (Comment, Define))), None)


def _are_apart(first: For, between: Sequence[Stmt], second: For) -> bool:
    """Are two loops chains of as many steps, of which the second needs nothing that the first one does, nor
    what is defined between them?"""
    if first.bounds != second.bounds or not (_is_chain(first) and _is_chain(second)):
        return False
    one, defined, other = (effects(part, {}) for part in ((first,), between, (second,)))
    return not disturb(one, defined) and not disturb(one, other)


def _is_chain(loop: For) -> bool:
    plain = loop.kind is LoopKind.SEQUENTIAL and loop.lanes == 1 and not is_seen(loop, {})
    simple = all(isinstance(stmt, (Comment, Define, Store, Update)) for stmt in loop.body)
    return plain and simple and not _calls(loop)


def _gains(first: For, second: For, both: For, caps: Caps) -> bool:
    """Do both wait for so long that each can be done while the other one waits?"""
    least = min(waits(first), waits(second))
    return least >= GAIN * works(both) and kept_values(both) <= CROWDED * caps.registers


def _may_go_together(loop: For) -> bool:
    """Is it a loop over rows of which each may be written beside another, if they are independent?"""
    if loop.kind not in (LoopKind.PARALLEL, LoopKind.SEQUENTIAL) or loop.step != 1:
        return False
    inside = list(walk_statements(loop.body))
    if not all(isinstance(stmt, (Comment, Define, For, Store, Update)) for stmt in inside):
        return False
    return not outer_updates(inside)


def _chains(loop: For, ranges: Mapping[Symbol, Range]) -> list[For]:
    """The steps of a row that go in order, as many in each, and on beyond what the processor sees."""
    return [
        stmt
        for stmt in loop.body
        if isinstance(stmt, For)
        and stmt.kind is LoopKind.SEQUENTIAL
        and stmt.lanes == 1
        and loop.symbol not in stmt.bound_by
        and not any(isinstance(inner, For) for inner in stmt.body)
        and not is_seen(stmt, ranges)
        and not _calls(stmt)
    ]


def _calls(steps: For) -> bool:
    nodes = nodes_in(steps.body)
    return any(isinstance(node, Apply) and (node.op.apart or is_of_library(node.op)) for node in nodes)


def _rows(loop: For, chains: Sequence[For], caps: Caps) -> int:
    """How many rows go fastest."""
    rows = 1
    while chains and rows < MOST:
        if 2 * rows * sum(1 for _ in walk_statements(loop.body)) > LARGE:
            break
        if any(waits(steps) < GAIN * rows * works(steps) for steps in chains):
            break
        if any(2 * rows * kept_values(steps) > CROWDED * caps.registers for steps in chains):
            break
        rows *= 2
    return rows


def _have_room(own: Sequence[Tensor], rows: int, kernel: Kernel, caps: Caps) -> bool:
    """Is there memory on the stack for what so many rows make for themselves there?"""
    held = sum(tensor.nbytes for tensor in own if kernel.placement[tensor].kind is PlaceKind.STACK)
    return kernel.stack_bytes + (rows - 1) * held <= caps.stack_bytes


def _in_blocks(loop: For, chains: Sequence[For], rows: int, apart: Mapping[Tensor, Tensor]) -> list[Stmt]:
    """So many rows at a time, and what is left of them. Other loops go one row after the other. The arrays
    `apart` are those of all rows together instead of those of each."""
    assert loop.trips is not None
    block, part = Symbol(loop.symbol.hint), Symbol("row")
    count, left = divmod(loop.trips, rows)
    first = loop.lo + Affine.of(block) * rows
    copies = [Copying({loop.symbol: first + row, part: Affine.of(row)}, {}) for row in range(rows)]

    def cell(tensor: Tensor, index: tuple[Affine, ...]) -> tuple[Tensor, tuple[Affine, ...]]:
        return (apart[tensor], (Affine.of(part), *index)) if tensor in apart else (tensor, index)

    before = loop.body
    loop = replace(loop, body=rewrite_cells(before, cell)) if apart else loop
    body: list[Stmt] = []
    for stmt, old in zip(loop.body, before, strict=True):
        if isinstance(stmt, For) and not any(old is steps for steps in chains):
            body += (copy.statement(stmt) for copy in copies)
        else:
            body += merged((stmt,), copies)
    blocks = For(block, Affine.of(0), Affine.of(count), tuple(body), loop.kind)
    rest = copy_body((replace(loop, lo=loop.hi - left),), {part: Affine.of(0)}, {}) if left else ()
    return [blocks, *rest]
