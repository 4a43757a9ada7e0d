"""tails: what is left of a vector loop is one more vector, which overlaps the one before it.

    for i in vector(0, 100, lanes=16):          for i in vector(0, 96, lanes=16):
        y[i] = sqrt(x[i])                ->         y[i] = sqrt(x[i])
                                                for i in vector(84, 100, lanes=16):
                                                    y[i] = sqrt(x[i])

The last cells are computed twice, to the same values, instead of one by one. That needs a body that
reads nothing it writes and adds up nothing. A long body is not written twice; a loop around it takes the
one span, then the other:

    for again in sequential(0, 2):
        for i in vector(84*again, 4*again + 96, lanes=16):
            ...

The first cells of a loop of many vectors may be computed twice as well, so that vectors start on boundaries
of memory, wherever an array or the inside of a grid starts: caches give and take what lies across two of
their lines more slowly. That is worth a vector more if most cells of an iteration, as far as is known before
the arrays are, then lie on boundaries:

    for j in vector(0, 298, lanes=16):                    for j in vector(0, 298, lanes=16, aligned=32):
        y[i, j + 1] = add(x[i - 1, j + 1], ...)    ->         y[i, j + 1] = add(x[i - 1, j + 1], ...)

Of vectors that fill lines each one that starts anywhere lies across two. Then a third of the cells of a
stencil is enough, or few operations on few cells, if what is stored is among them: where the second cache
holds them, five points take 0.7 of the time, with rows of any length, and a row that is moved by one cell
0.55. Processors with such vectors have masks: what may not be repeated starts on boundaries, too, behind the
first lanes, which go under one, as the last ones do. Two steps of a relaxation take 0.75 of the time.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...frozen import replace
from ...ir.boundaries import Cell, cells_along, lying_alike
from ...ir.code import Caps
from ...ir.index import Affine, Symbol
from ...ir.loops import Define, For, Kernel, LoopKind, Stmt, Store, Update, bypasses, written_in
from ...ir.walk import rewrite_loops_inside_out
from ..analysis.accounts import Seen, locations
from ..analysis.copies import copy_body
from ..analysis.repeats import HEAVY, may_repeat, weight

__all__ = ["tails"]

LONG = 12
"""The vectors of a loop from which one more costs less than is gained by boundaries."""

MANY = 3
"""One cell of so many is worth boundaries where vectors fill lines, whatever is computed from them."""

FEW, LIGHT = 4, 8
"""So few cells, and so few operations on them, wait for a store across lines. Of five points in rows of any
length boundaries take 1.25 times as long, of an exponential of a row that starts elsewhere 1.05 times."""


def tails(kernel: Kernel, caps: Caps) -> Kernel:
    """Every vector loop that may repeat iterations made of whole vectors."""
    notes: list[str] = []
    body = rewrite_loops_inside_out(kernel.body, lambda loop: _whole(loop, caps, notes))
    return kernel.with_body(body, notes)


def _whole(loop: For, caps: Caps, notes: list[str]) -> Sequence[Stmt]:
    if loop.kind is not LoopKind.VECTOR or loop.trips is None or loop.trips <= loop.lanes:
        return [loop]
    left, is_long = loop.trips % loop.lanes, loop.trips >= LONG * loop.lanes
    if not (left or is_long) or bypasses(loop.body):
        return [loop]
    if not may_repeat(loop.body, (), loop.symbol):
        return [_under_masks(loop, caps, notes) if is_long else loop]
    if is_long and _mostly_aligned(loop, caps):
        notes.append(f"tails: vectors of {_seen(loop)} start on boundaries of memory")
        return [replace(loop, aligned=caps.vector_bytes)]
    if not left:
        return [loop]
    if weight(loop.body) > HEAVY:
        return [_in_two_spans(loop, left)]
    last = replace(loop, lo=loop.hi - loop.lanes)
    return [replace(loop, hi=loop.hi - left), *copy_body((last,), {}, {})]


def _under_masks(loop: For, caps: Caps, notes: list[str]) -> For:
    """A long loop that may not repeat iterations; processors whose vectors fill lines have masks for it."""
    adds_up = any(isinstance(stmt, Update) for stmt in loop.body)
    if caps.vector_bytes < caps.line_bytes or adds_up or not _mostly_aligned(loop, caps):
        return loop
    notes.append(f"tails: vectors of {_seen(loop)} start on boundaries of memory, its ends go under masks")
    return replace(loop, aligned=caps.vector_bytes, masked=True)


def _seen(loop: For) -> Seen:
    return Seen(loop, (), next(iter(locations(loop.body)), None))


def _mostly_aligned(loop: For, caps: Caps) -> bool:
    """Can enough of the cells that a light body reaches lie on boundaries together?"""
    plain = all(isinstance(stmt, (Define, Update, Store)) for stmt in loop.body)
    if not plain or loop.step != 1 or weight(loop.body) > HEAVY:
        return False
    alike, cells = lying_alike(loop, caps.vector_bytes), cells_along(loop)
    if 2 * len(alike) > len(cells):
        return True
    return caps.vector_bytes >= caps.line_bytes and _is_stored_alike(loop, alike, cells)


def _is_stored_alike(loop: For, alike: Sequence[Cell], cells: Sequence[Cell]) -> bool:
    """Are all cells that are stored among those alike, and are these many, or is little done beside?"""
    stored = written_in(loop.body)
    written = sum(tensor.storage in stored for tensor, _ in cells)
    if written != sum(tensor.storage in stored for tensor, _ in alike):
        return False
    is_light = len(cells) <= FEW and weight(loop.body) <= LIGHT
    return is_light or MANY * len(alike) >= len(cells) > 2 * written


def _in_two_spans(loop: For, left: int) -> For:
    """One text for both: the second time it starts a vector before the end."""
    assert loop.trips is not None
    again = Symbol("again")
    lo = loop.lo + Affine.of(again) * (loop.trips - loop.lanes)
    hi = loop.hi - left + Affine.of(again) * left
    return For(again, Affine.of(0), Affine.of(2), (replace(loop, lo=lo, hi=hi),))
