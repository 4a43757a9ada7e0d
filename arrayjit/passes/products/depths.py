"""Terms of the sums of a product, some at once.

    for k in sequential(256*part, 256*part + 256, 4):
        for u in unrolled(0, 4):
            c = fma(x[i, k + u], right[k + u - 256*part, l], c)

The terms of several loops are numbered, by which packed factors are found; all of them at once are gone
through by the loops that they have.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from ...frozen import frozen
from ...ir.dtype import I64
from ...ir.expr import Apply, Const, Index
from ...ir.index import Affine, Symbol
from ...ir.loops import Bind, For, LoopKind, Stmt, nested
from ...ir.ops import OPS
from ..analysis.copies import copy_body, unless_once
from .products import Sum

__all__ = ["UNROLL", "Depth", "all_terms", "some_terms", "unrolled"]

ZERO = Affine.of(0)

UNROLL = 4
"""How many terms are added one after the other before the loop over them is tested again."""


@frozen
class Depth:
    """Some of the terms: loops over them, what the product's symbols are, the number of a term among all, and
    among these; which part of all they are."""

    loops: tuple[For, ...]
    symbols: dict[Symbol, Affine]
    number: Affine
    place: Affine
    part: Affine = ZERO


def all_terms(total: Sum) -> Depth:
    """All terms of a sum, in loops of their own."""
    loops: list[For] = []
    symbols: dict[Symbol, Affine] = {}
    number = ZERO
    for term in total.terms:
        here = Symbol(term.symbol.hint)
        loops.append(For(here, ZERO, term.hi - term.lo, ()))
        symbols[term.symbol] = term.lo + here
        number = number * (term.trips or 0) + here
    return Depth(tuple(loops), symbols, number, number)


def some_terms(total: Sum, part: Affine, lo: Affine, hi: Affine) -> Depth:
    """A part of the terms by their numbers, for factors that are packed or sums over one loop."""
    number = Symbol("k")
    symbols = {total.terms[0].symbol: total.terms[0].lo + number} if len(total.terms) == 1 else {}
    return Depth((For(number, lo, hi, ()),), symbols, Affine.of(number), number - lo, part)


def unrolled(
    loops: Sequence[For], body: tuple[Stmt, ...], asked: Callable[[Affine], tuple[Stmt, ...]] | None = None
) -> tuple[Stmt, ...]:
    """Loops around a body in order, a few iterations of the innermost one at a time, after what is `asked`
    for where that has come so far."""
    *outer, inner = loops

    def some(first: Affine, count: int) -> tuple[Stmt, ...]:
        one = Symbol("u")
        copies = copy_body(body, {inner.symbol: first + one}, {})
        return unless_once(For(one, ZERO, Affine.of(count), copies, LoopKind.UNROLLED))

    if inner.trips is None:
        count = Symbol("count", lower=0)
        length, unit = Index(inner.hi - inner.lo), Const(UNROLL, I64)
        inside: tuple[Stmt, ...] = (Bind(count, Apply(OPS["raw_divide"], (length, unit), I64)),)
        middle = inner.lo + Affine.of(count) * UNROLL
        rest: tuple[Stmt, ...] = (replace(inner, lo=middle, body=body),)
    else:
        middle, left = inner.lo + inner.trips // UNROLL * UNROLL, inner.trips % UNROLL
        inside, rest = (), some(middle, left) if left else ()
    symbol = Symbol(inner.symbol.hint)
    before = () if asked is None else asked(Affine.of(symbol) - inner.lo)
    main = For(symbol, inner.lo, middle, (*before, *some(Affine.of(symbol), UNROLL)), step=UNROLL)
    inside += (*(() if main.trips == 0 else unless_once(main)), *rest)
    return nested(outer, inside, LoopKind.SEQUENTIAL)
