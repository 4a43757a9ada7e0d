"""cascade: long float sums are added in a tree of short ones, so that they lose no accuracy.

    for i in vector(0, 65536, lanes=64):    for l in vector(0, 64, lanes=64):
        s = add(s, x[i])            ->          p1 = -0.0
                                                for b in sequential(0, 32):
                                                    p0 = -0.0
                                                    for k in sequential(0, 32):
                                                        p0 = add(p0, x[l + 2048*b + 64*k])
                                                    p1 = add(p1, p0)
                                                s = add(s, p1)

A running sum of n terms loses up to n roundings; here no chain is longer than about `FAN`, and the lanes
are folded in half, as NumPy's pairwise sum does. Memory is walked in the same order as before. What does
not fill the tree becomes a partial sum of its own, added last. A sum inside a sum (rows of columns) gets
a partial sum per inner loop. The order is in the loops and so the same on every target.

Matrix products (`contract`) keep one chain of fused multiply-adds per cell, as BLAS does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from ..ir.code import Caps
from ..ir.dtype import DType
from ..ir.expr import Const, Local, Variable, constant
from ..ir.index import Affine, Symbol
from ..ir.loops import Define, For, Kernel, LoopKind, Stmt, Update, walk_statements
from ..ir.ops import OPS, Op
from ..ir.walk import kept, rewrite_bodies
from .copies import copy_body
from .vectorise import MIN_LANES

__all__ = ["FAN", "cascade"]

FAN = 32
"""How many terms are added one after another at most."""

Sums = Mapping[Variable, Op]
"""The locals that a loop accumulates into from outside, with the op of each."""

Names = Mapping[Variable, Variable]
"""Which local stands for each of them; itself where none does."""


def cascade(kernel: Kernel, caps: Caps) -> Kernel:
    """Every long float sum as a tree."""
    body = _body(kernel.body, frozenset())
    return kernel if body is kernel.body else replace(kernel, body=body)


def _body(body: tuple[Stmt, ...], outer: frozenset[Variable]) -> tuple[Stmt, ...]:
    """`outer` are the sums of the loops around."""
    out: list[Stmt] = []
    for stmt in body:
        if isinstance(stmt, For):
            out.extend(_loop(stmt, outer))
        else:
            out.append(rewrite_bodies(stmt, lambda inner: _body(inner, outer)))
    return kept(body, out)


def _loop(loop: For, outer: frozenset[Variable]) -> Sequence[Stmt]:
    is_vector = loop.kind is LoopKind.VECTOR
    sums = _sums(loop, is_vector)
    if is_vector and sums:
        return _lanes(loop, sums)
    inner = rewrite_bodies(loop, lambda body: _body(body, frozenset(sums)))
    assert isinstance(inner, For)
    if sums and loop.step == 1 and loop.trips is not None and loop.trips > FAN:
        sizes = _sizes(loop.trips)
        return [*_nest(inner, sums, {}, sizes, loop.lo, 1), *_rest(inner, sums, math.prod(sizes))]
    if outer & sums.keys():
        return _partial(sums, {}, lambda names: copy_body((inner,), {}, names))
    return [inner]


def _sums(loop: For, contracted: bool) -> Sums:
    """The accumulators of a loop that adds floats into one of them; none where it does not."""
    inside = list(walk_statements(loop.body))
    own = {stmt.variable for stmt in inside if isinstance(stmt, Define)}
    found: dict[Variable, Op] = {}
    adds = False
    for stmt in inside:
        if isinstance(stmt, Update) and stmt.accum is not None and stmt.variable not in own:
            found[stmt.variable] = stmt.accum
            is_sum = stmt.accum is OPS["add"] and stmt.variable.dtype.is_float
            adds = adds or (is_sum and (contracted or not stmt.contract))
    return found if adds else {}


def _lanes(loop: For, sums: Sums) -> Sequence[Stmt]:
    """A vector loop whose lanes add up trees of their own and are folded once, at the end."""
    if loop.trips is None:
        return [loop]
    lanes, vectors = loop.lanes, loop.trips // loop.lanes
    if vectors <= FAN:
        whole = vectors * lanes
        if whole in (0, loop.trips):
            return [loop]
        return [replace(loop, hi=loop.lo + whole), *_rest(loop, sums, whole)]
    sizes = _sizes(vectors)
    lane = Symbol("l")
    start = loop.lo + Affine.of(lane)
    body = _partial(sums, {}, lambda names: _nest(loop, sums, names, sizes, start, lanes))
    main = For(lane, Affine.of(0), Affine.of(lanes), tuple(body), LoopKind.VECTOR, lanes=lanes)
    return [main, *_rest(loop, sums, math.prod(sizes) * lanes)]


def _nest(
    loop: For, sums: Sums, names: Names, sizes: Sequence[int], start: Affine, unit: int
) -> Sequence[Stmt]:
    """The iterations `start, start + unit, ...` of a loop, `prod(sizes)` of them, as loops of these
    sizes, the first outermost; each but the innermost adds up partial sums."""
    symbol = Symbol(loop.symbol.hint)
    position = start + Affine.of(symbol) * (unit * math.prod(sizes[1:]))
    if len(sizes) == 1:
        body: Sequence[Stmt] = copy_body(loop.body, {loop.symbol: position}, names)
    else:
        body = _partial(sums, names, lambda partials: _nest(loop, sums, partials, sizes[1:], position, unit))
    return [For(symbol, Affine.of(0), Affine.of(sizes[0]), tuple(body))]


def _rest(loop: For, sums: Sums, done: int) -> Sequence[Stmt]:
    """The iterations of a loop after the first `done`, added up apart."""
    assert loop.trips is not None
    left = loop.trips - done
    if not left:
        return []
    lanes = loop.lanes
    while lanes > left or (lanes > 1 and left % lanes > left // lanes):
        lanes //= 2
    kind = loop.kind if lanes >= MIN_LANES else LoopKind.SEQUENTIAL
    rest = replace(loop, lo=loop.lo + done, kind=kind, lanes=lanes if lanes >= MIN_LANES else 1)
    return _partial(sums, {}, lambda names: copy_body((rest,), {}, names))


def _partial(sums: Sums, names: Names, make: Callable[[Names], Sequence[Stmt]]) -> Sequence[Stmt]:
    """Statements that add into partial sums, which are then added to the sums that `names` gives."""
    partials = {variable: Variable(variable.hint, variable.dtype) for variable in sums}
    return [
        *(Define(partials[v], _neutral(op, v.dtype)) for v, op in sums.items()),
        *make(partials),
        *(Update(names.get(v, v), Local(partials[v]), op) for v, op in sums.items()),
    ]


def _neutral(op: Op, dtype: DType) -> Const:
    assert op.identity is not None
    return constant(op.identity(dtype), dtype)


def _sizes(count: int) -> list[int]:
    """Factors of at most FAN whose product is `count` or a little less, the outermost first."""
    sizes: list[int] = []
    while count > FAN:
        size = min(range(FAN, FAN // 2 - 1, -1), key=lambda candidate: count % candidate)
        sizes.append(size)
        count //= size
    return [*([count] if count > 1 else []), *reversed(sizes)]
