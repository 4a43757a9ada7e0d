"""How often loops run, where that is known only when they do, and from where they are counted."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

from ...ir.assign import Loop
from ...ir.conditions import compare, one_of
from ...ir.dtype import I64
from ...ir.expr import Apply, Const, Expr, Index
from ...ir.index import Affine, Symbol
from ...ir.loops import Bind, For
from ...ir.ops import OPS
from ...ir.walk import substitute_statements
from .access import Range, Ranges, loop_range
from .inside import Varying

__all__ = [
    "SHORT",
    "about",
    "at_points",
    "between",
    "blocks",
    "divisors",
    "enter",
    "extent",
    "falls_into_parts",
    "fewest",
    "from_its_end",
    "from_zero",
    "greater",
    "lesser",
    "quotient",
]

SHORT = 16
"""So many times as many parts as would do are too short."""

TRIED = 2**16
"""Numbers of parts that are tried one by one."""


def enter(loop: For | Loop, ranges: dict[Symbol, Range]) -> None:
    """Note the values of a loop's symbol, if they are known, and between which outer ones they are."""
    known = loop_range(loop.lo, loop.hi, loop.step, ranges)
    if known is None:
        return
    if loop.lo.terms or loop.hi.terms:
        ends = (loop.lo, loop.hi - 1) if loop.step > 0 else (loop.hi + 1, loop.lo)
        known = Varying.of(known, *ends)
    ranges[loop.symbol] = known


def at_points(loops: Iterable[tuple[Symbol, Affine]], ranges: Ranges) -> dict[Symbol, Range]:
    """The values of symbols, those of an assignment's loops too."""
    inside = dict(ranges)
    for symbol, extent in loops:
        known = loop_range(Affine.of(0), extent, 1, inside)
        if known is not None:
            inside[symbol] = known
    return inside


def from_zero(loop: For) -> For:
    """The same iterations, counted from 0."""
    number = Symbol(loop.symbol.hint)
    body = substitute_statements(loop.body, {loop.symbol: loop.lo + number})
    return replace(loop, symbol=number, lo=Affine.of(0), hi=loop.hi - loop.lo, body=body)


def from_its_end(loop: For) -> For:
    """The same iterations, counted from the last one on: if the loop ends where an outer one stands,
    positions tell that it never is there."""
    number = Symbol(loop.symbol.hint)
    body = substitute_statements(loop.body, {loop.symbol: loop.hi - 1 - number})
    return replace(loop, symbol=number, lo=Affine.of(0), hi=loop.hi - loop.lo, body=body)


def about(loop: For, ranges: Ranges) -> int | None:
    """How often the body runs: for extents that vary, the mean of the least and the most; None where nothing
    is known."""
    if loop.trips is not None:
        return loop.trips
    span = (loop.hi - loop.lo).bounds(ranges)
    if span is None:
        return None
    least, most = (len(range(0, end, loop.step)) for end in span)
    return (least + most + 1) // 2


def divisors(trips: int) -> tuple[int, ...]:
    """Into how many equal parts so many iterations fall, in order; of more than `TRIED` squared, those of at
    most `TRIED` parts or iterations."""
    last = min(math.isqrt(trips), TRIED)
    small = [number for number in range(1, last + 1) if trips % number == 0]
    large = [trips // number for number in reversed(small) if number * number != trips]
    return *small, *large


def falls_into_parts(trips: int, least: int) -> bool:
    """Do so many iterations fall into equal parts, so many at least, and not far more?"""
    return any(least <= number < SHORT * least for number in divisors(trips))


def fewest(loop: For) -> int:
    """How often the body of a loop with step 1 or -1 runs at least, whatever numbers the run has."""
    if loop.trips is not None:
        return loop.trips
    least, _ = ((loop.hi - loop.lo) * loop.step).bounds({}) or (0, 0)
    return max(least, 0)


def extent(loop: For) -> tuple[int, int] | None:
    """How often the body of a loop with step 1 runs at least and at most; None if that is not known, or may
    be not at all."""
    span = None if loop.step != 1 else (loop.hi - loop.lo).bounds({})
    return span if span is not None and span[0] >= 1 else None


def quotient(hint: str, value: Affine, by: int, most: int, least: int = 0) -> tuple[tuple[Bind, ...], Affine]:
    """A number that is 0 at least, divided by another one, `least` to `most`, after what finds it out."""
    if by == 1:
        return (), value
    if value.is_constant:
        return (), Affine.of(value.constant // by)
    symbol = Symbol(hint, lower=least, upper=most + 1)
    return (Bind(symbol, Apply(OPS["raw_divide"], (Index(value), Const(by, I64)), I64)),), Affine.of(symbol)


def blocks(loop: For, size: int) -> tuple[tuple[Bind, ...], Affine]:
    """How many blocks of `size` iterations a loop with step 1 or -1 has, after the statements that tell."""
    if loop.trips is not None:
        return (), Affine.of(loop.trips // size)
    extent = (loop.hi - loop.lo) * loop.step
    least, most = extent.bounds({}) or (-1, None)
    if most is not None and most < size:
        return (), Affine.of(0)
    runs: Expr = Index(extent)
    if least < 0:
        runs = greater(Const(0, I64), runs)
    count = Symbol("blocks", lower=0, upper=None if most is None else most // size + 1)
    return (Bind(count, Apply(OPS["raw_divide"], (runs, Const(size, I64)), I64)),), Affine.of(count)


def lesser(one: Affine | Expr, other: Affine | Expr) -> Expr:
    """The lesser of two int64s."""
    left, right = _number(one), _number(other)
    return one_of(compare("less", left, right), left, right)


def greater(one: Affine | Expr, other: Affine | Expr) -> Expr:
    """The greater of two int64s."""
    left, right = _number(one), _number(other)
    return one_of(compare("less", left, right), right, left)


def _number(value: Affine | Expr) -> Expr:
    return Index(value) if isinstance(value, Affine) else value


def between(symbol: Symbol, value: Affine, least: Affine, most: Affine) -> tuple[Bind, Bind]:
    """The symbol bound to the number of a range that is nearest to a value."""
    above = Symbol(symbol.hint)
    return Bind(above, greater(value, least)), Bind(symbol, lesser(Affine.of(above), most))
