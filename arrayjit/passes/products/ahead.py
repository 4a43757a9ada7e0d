"""What panels are packed from is asked for while those before them are multiplied.

    for run in sequential(0, 4):                    for run in sequential(0, 4):
        ... panel[p, k, l] = w[k, 256*run + ...]        following = where(run == 3, 0, run + 1)
        for p in sequential(0, 8):                      further = where(run == 3, 128, 0)
            for q in sequential(0, 8):                  ... panel[p, k, l] = w[k, 256*run + ...]
                for l in vector(0, 32, lanes=32): ->    for p in sequential(0, 8):
                    for k in sequential(0, 128, 4):         for q in sequential(0, 8):
                        ... c = fma(x[4*q, k], t, c)            for l in vector(0, 32, lanes=32):
                                                                    for k in sequential(0, 128, 4):
                                                                        prefetch(w[further + 16*p + 2*q, ...])
                                                                        prefetch(w[... + 1, ...])
                                                                        ... c = fma(x[4*q, k], t, c)

Of a factor that the second cache does not hold, panels of few rows take as long to be packed as to be
multiplied, and memory rests in the meantime. So each step of the sums asks for a few lines of what is packed
next: each panel for its part of these terms, each sliver for some of them, each step along them for a line.
On Zen 5, 32 x 4096 x 1024 take 0.7 of the time in float64 and 0.8 in float32, 64 x 2048 x 2048 0.83, of 100 x
1500 x 1500 and 200 x 2000 x 2000 0.9.
"""

from __future__ import annotations

from ...ir.conditions import compare, one_of
from ...ir.dtype import I64
from ...ir.expr import Const, Index, Load, dtype_of
from ...ir.index import Affine, Symbol
from ...ir.loops import Bind, For, Prefetch
from ...ir.walk import substitute
from .cuts import Onward, Panel, Requests, Strip
from .depths import UNROLL, Depth
from .products import Sum

__all__ = ["following", "requests", "requests_for"]

MOST = 4
"""Lines that a step of the sums asks for at most: of eight, 16 x 1000 x 1000 take 1.1 times as long."""

TWICE = 2
"""So many times the lines that come next are asked for at most."""

LINE = 64
"""Bytes of a line."""


def requests_for(panels: int, depth: int, slivers: int, nbytes: int) -> Requests | None:
    """Of panels with `nbytes` a term; None if slivers are too few to ask for everything, or so many that each
    would ask for little."""
    by_panel = -(-depth // panels)
    by_sliver = -(-by_panel // slivers)
    lines = -(-panels * nbytes * UNROLL // (depth * LINE))
    if by_sliver * lines > MOST or slivers > TWICE * by_panel:
        return None
    return Requests(by_panel, by_sliver, lines)


def following(
    run: Symbol, runs: int, panels: int, depth: int, strip: Strip
) -> tuple[tuple[Bind, ...], Onward]:
    """Where what is packed after a run of so many panels lies: in the next run, or in the first one of the
    terms that follow; after the statements that find it out."""
    place, further = Symbol("following", lower=0, upper=runs), Symbol("further", lower=0, upper=depth + 1)
    is_last = compare("equal", Index(Affine.of(run)), Const(runs - 1, I64))
    binds = (
        Bind(place, one_of(is_last, Const(0, I64), Index(run + 1))),
        Bind(further, one_of(is_last, Const(depth, I64), Const(0, I64))),
    )
    return binds, Onward(Affine.of(further), strip.start + Affine.of(place) * (panels * strip.lanes))


def requests(
    total: Sum,
    columns: For,
    asked: Requests,
    run: Strip,
    terms: Depth,
    panel: Panel,
    sliver: Symbol,
    step: Affine,
) -> tuple[Prefetch, ...]:
    """What a sliver of a panel asks for where it has come so many terms."""
    right, onward = total.right, run.onward
    assert isinstance(right, Load)
    assert onward is not None
    (loop,), (term,) = terms.loops, total.terms
    first = loop.lo + onward.further + panel.packed * asked.by_panel + Affine.of(sliver) * asked.by_sliver
    line = LINE // dtype_of(right).itemsize
    column = columns.lo + onward.start + step * (asked.lines * line // UNROLL)
    cells = (
        substitute(right, {term.symbol: term.lo + first + row, columns.symbol: column + number * line})
        for row in range(asked.by_sliver)
        for number in range(asked.lines)
    )
    return tuple(Prefetch(cell.tensor, cell.index) for cell in cells if isinstance(cell, Load))
