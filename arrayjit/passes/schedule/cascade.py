"""cascade: long float sums are added in a tree of short ones, so that they lose no accuracy.

    for i in vector(0, 8192, lanes=64):     for l in vector(0, 64, lanes=64):
        s = add(s, x[i])            ->          p1 = -0.0
                                                for b in sequential(0, 8):
                                                    p0 = -0.0
                                                    for k in sequential(0, 16):
                                                        p0 = add(p0, x[l + 1024*b + 64*k])
                                                    p1 = add(p1, p0)
                                                s = add(s, p1)

A running sum of n terms loses up to n roundings. Here no chain is longer than `CHAIN`, and the lanes are
folded in half at the end, so the error is that of NumPy's pairwise sum: the last few additions make up
nearly all of it in both. Memory is walked in the same order as before. Vectors that do not fill the tree
make a smaller one, which starts earlier where the last of them would not fill its lanes; what was seen before
is ignored (or not, where a maximum or its like does not mind). A sum inside a sum (rows of columns) gets a
partial sum per inner loop. Where the number of terms is known only when they are added, the trees are of a
fixed size, and what they leave is added vector by vector, then in narrower vectors, then one by one. Where
each of these ends follows from the number of terms alone, and no tree is begun for fewer terms than fill one:
a processor that guesses wrong how long a short row is goes on as soon as it knows. The order is in the loops
and so the same on every target.

Extremes, logic and integers give the same bits in any parts: for threads, such a loop is cut into some. Where
much is done for each term of a sum, they note the terms, which are then added in the one order (`terms`).

Bools and narrow integers are added up in narrow sums, as many vectors at a time as these hold, since more of
them go into a register:

    for i in vector(0, 16320, lanes=32):        for l in vector(0, 32, lanes=32):
        s = add(s, cast(x[i], i64))     ->          p = 0
                                                    for b in sequential(0, 2):
                                                        n = u8(0)
                                                        for k in sequential(0, 255):
                                                            n = add(n, cast(x[l + 8160*b + 32*k], u8))
                                                        p = add(p, cast(n, i64))
                                                    s = add(s, p)

Matrix products (`contract`) keep one chain of fused multiply-adds per cell, as BLAS does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from functools import cache

from ...frozen import frozen, replace
from ...ir.code import Caps
from ...ir.conditions import compare, one_of
from ...ir.dtype import F64, I64, DType, named
from ...ir.expr import Cast, Expr, Index, Local, Variable, constant, dtype_of, neutral
from ...ir.index import Affine, Symbol
from ...ir.loops import Define, For, If, Kernel, LoopKind, Place, PlaceKind, Stmt, Update, walk_statements
from ...ir.ops import OPS, Op
from ...ir.tensor import Tensor
from ...ir.walk import children, kept, locals_read, outer_updates, rebuild, rewrite_bodies, walk
from ..analysis.copies import copy_body
from ..analysis.repeats import may_repeat
from ..analysis.trips import blocks
from ..analysis.work import REGISTER_BYTES
from .terms import terms_of

__all__ = [
    "BRANCHES",
    "CHAIN",
    "FAN",
    "Names",
    "Sums",
    "accumulated",
    "cascade",
    "goes_in_tree",
    "narrow_sums",
    "partial",
]

CHAIN = 16
"""How many terms are added one after another at most, as in NumPy's pairwise sum."""

FAN = 8
"""How many partial sums are."""

BRANCHES = 8
"""Parts for each thread, of what may be added up in any parts."""

NARROW = {
    named(terms): (named(total), most)
    for terms, total, most in (
        ("bool", "u8", 255),
        ("u8", "u16", 257),
        ("i8", "i16", 256),
        ("u16", "u32", 65537),
        ("i16", "i32", 65536),
    )
}
"""Where narrow integers are added up, and how many of them: as many as cannot exceed it."""

REPEATABLE = (
    *("maximum", "minimum", "fmax", "fmin"),
    *("logical_and", "logical_or", "bitwise_and", "bitwise_or"),
)
"""The ops that give the same result if a cell takes part twice."""

Sums = Mapping[Variable, Op]
"""The locals that a loop accumulates into from outside, with the op of each."""

Names = Mapping[Variable, Variable]
"""Which local stands for each of them; itself where none does."""


def cascade(kernel: Kernel, caps: Caps) -> Kernel:
    """Every long float sum as a tree."""
    around = _Around(caps)
    body = _body(kernel.body, around)
    noted = dict.fromkeys(around.noted, Place(PlaceKind.ARENA, "threads note what is added up"))
    return kernel.with_body(body, placement=noted)


@frozen
class _Around:
    """What stands around a loop: the hardware, the `sums` of other loops, and whether threads or lanes share
    one of them if they may; `noted` are the terms of sums that threads shall make."""

    caps: Caps
    sums: frozenset[Variable] = frozenset()
    is_shared: bool = False
    noted: list[Tensor] = field(default_factory=list)

    def inside(self, loop: For, sums: Sums) -> _Around:
        goes_apart = loop.kind is LoopKind.VECTOR or (loop.kind is LoopKind.PARALLEL and not sums)
        return replace(self, sums=frozenset(sums), is_shared=self.is_shared or goes_apart)


def _body(body: tuple[Stmt, ...], around: _Around) -> tuple[Stmt, ...]:
    out: list[Stmt] = []
    for stmt in body:
        if isinstance(stmt, For):
            out.extend(_loop(stmt, around))
        else:
            out.append(rewrite_bodies(stmt, lambda inner: _body(inner, around)))
    return kept(body, out)


def _loop(loop: For, around: _Around) -> Sequence[Stmt]:
    is_vector = loop.kind is LoopKind.VECTOR
    if loop.kind is LoopKind.LOCKSTEP:
        return [loop]
    if is_vector and loop.trips is None:
        return _varying(loop, accumulated(loop))
    found = accumulated(loop)
    are_exact = all(op.name in REPEATABLE or not v.dtype.is_float for v, op in found.items())
    if is_vector and found and (are_exact or narrow_sums(loop) is not None):
        return _exact(loop, found, around.caps.threads)
    sums = _sums(loop, is_vector)
    if is_vector and sums:
        return _lanes(loop, sums)
    inner = rewrite_bodies(loop, lambda body: _body(body, around.inside(loop, sums)))
    assert isinstance(inner, For)
    if sums and loop.trips is not None and _is_long(loop):
        is_outermost = not around.is_shared and not around.sums & sums.keys()
        parts = terms_of(inner, sums, around.caps) if is_outermost else None
        if parts is None:
            return _tree(inner, sums, {}, inner.lo, 1, loop.trips)
        around.noted.extend(parts.tensors)
        return [parts.making, *_tree(parts.rest, sums, {}, inner.lo, 1, loop.trips)]
    if around.sums & sums.keys():
        return partial(sums, {}, lambda names: copy_body((inner,), {}, names))
    return [inner]


def goes_in_tree(loop: For) -> bool:
    """Does a loop of scalars add up floats in an order that is not its own?"""
    return _is_long(loop) and bool(_sums(loop, False))


def _is_long(loop: For) -> bool:
    return loop.step == 1 and loop.trips is not None and loop.trips > CHAIN


def _sums(loop: For, contracted: bool) -> Sums:
    """The accumulators of a loop that adds floats into one of them, but for those that it looks at, as at the
    extreme so far; none where it does not."""
    seen = set(locals_read(walk_statements(loop.body)))
    found = {variable: op for variable, op in accumulated(loop).items() if variable not in seen}
    adds = any(
        isinstance(stmt, Update)
        and found.get(stmt.variable) is OPS["add"]
        and stmt.variable.dtype.is_float
        and (contracted or not stmt.contract)
        for stmt in walk_statements(loop.body)
    )
    return found if adds else {}


def accumulated(loop: For) -> Sums:
    """The locals from outside that a loop accumulates into."""
    updates = outer_updates(list(walk_statements(loop.body)))
    return {update.variable: update.accum for update in updates if update.accum is not None}


def _lanes(loop: For, sums: Sums) -> Sequence[Stmt]:
    """A vector loop whose lanes add up trees of their own and are folded once, at the end."""
    assert loop.trips is not None
    lanes = loop.lanes
    vectors, left = divmod(loop.trips, lanes)
    if not vectors or (not left and vectors <= CHAIN):
        return [loop]
    repeats = may_repeat(loop.body, sums, loop.symbol)
    lane = Symbol("l")
    start = loop.lo + Affine.of(lane)

    def add_up(names: Names) -> Sequence[Stmt]:
        if not left or not repeats:
            return _tree(loop, sums, names, start, lanes, vectors)
        sizes = _sizes(vectors)
        done = math.prod(sizes)
        tree = _nest(loop, sums, names, sizes, start, lanes)
        ahead = Affine.of(loop.symbol) - loop.lo - done * lanes
        seen = compare("less", Index(ahead), constant(0, I64))
        rest = replace(loop, body=_ignoring(loop.body, seen, sums))
        count = vectors - done + 1
        first = loop.hi - count * lanes + lane
        if count == 1:
            return [*tree, *_tree(rest, sums, names, first, lanes, 1)]
        last = partial(sums, names, lambda partials: _tree(rest, sums, partials, first, lanes, count))
        return [*tree, *last]

    body = tuple(partial(sums, {}, add_up))
    main = For(lane, Affine.of(0), Affine.of(lanes), body, LoopKind.VECTOR, lanes=lanes)
    if not left or repeats:
        return [main]
    rest = replace(loop, lo=loop.hi - left, kind=LoopKind.SEQUENTIAL, lanes=1)
    return [main, *partial(sums, {}, lambda names: copy_body((rest,), {}, names))]


def _varying(loop: For, found: Sums) -> Sequence[Stmt]:
    """A vector loop of unknown length. Rows of a matrix-vector product are left to `jam`."""
    lanes = loop.lanes
    narrow = REGISTER_BYTES // max((variable.dtype.itemsize for variable in found), default=1)
    if not found or lanes <= narrow:
        return [loop]
    out: list[Stmt] = []
    trees: list[Stmt] = []
    before, at = Affine.of(0), loop.lo
    for chain in (CHAIN * FAN * FAN, CHAIN) if _sums(loop, False) else ():
        binds, count = blocks(loop, lanes * chain)
        if count != Affine.of(0):
            out += binds
            trees.append(_trees(loop, found, at, count - before * (FAN * FAN), chain))
            before, at = count, loop.lo + count * (lanes * chain)
    if trees:
        out.append(If(compare("less", constant(0, I64), Index(before)), tuple(trees)))
    for width in (lanes, narrow):
        binds, count = blocks(loop, width)
        whole = replace(loop, lo=at, hi=loop.lo + count * width, lanes=width)
        out += [*binds, *copy_body((whole,), {}, {})]
        at = whole.hi
    rest = replace(loop, lo=at, kind=LoopKind.SEQUENTIAL, lanes=1)
    return [*out, *copy_body((rest,), {}, {})]


def _trees(loop: For, sums: Sums, start: Affine, count: Affine, chain: int) -> For:
    """As many trees of `chain` vectors from `start` on as `count` will say, one after the other."""
    lanes, lane, turn = loop.lanes, Symbol("l"), Symbol(loop.symbol.hint)
    first = start + lane + Affine.of(turn) * (lanes * chain)

    def tree(names: Names) -> Sequence[Stmt]:
        return _tree(loop, sums, names, first, lanes, chain)

    def trees(names: Names) -> Sequence[Stmt]:
        return [For(turn, Affine.of(0), count, tuple(partial(sums, names, tree)))]

    body = tuple(partial(sums, {}, trees))
    return For(lane, Affine.of(0), Affine.of(lanes), body, LoopKind.VECTOR, lanes=lanes)


def _exact(loop: For, found: Sums, threads: int) -> Sequence[Stmt]:
    """A vector loop whose accumulators have the same bits however it is cut into parts: into as many as
    threads can use, if it is long. Those that may meet a cell twice have a last vector that overlaps."""
    assert loop.trips is not None
    vectors, left = divmod(loop.trips, loop.lanes)
    parts = BRANCHES * threads
    if threads == 1 or vectors < parts * CHAIN:
        parts = 1
    repeats = may_repeat(loop.body, found, loop.symbol) and all(
        op.name in REPEATABLE for op in found.values()
    )
    some, terms = _several(loop, vectors // parts)
    if not vectors or (parts == terms == 1 and not (left and repeats)):
        return [loop]
    lane, unit, length = Symbol("l"), loop.lanes * terms, vectors // (parts * terms)
    start, done = loop.lo + Affine.of(lane), parts * length * terms

    def combine(names: Names) -> Sequence[Stmt]:
        whole = _nest(some, found, names, [n for n in (parts, length) if n > 1], start, unit)
        if done < vectors:
            sizes = [vectors - done] if vectors - done > 1 else []
            whole = [*whole, *_nest(loop, found, names, sizes, start + done * loop.lanes, loop.lanes)]
        if left and repeats:
            whole = [*whole, *copy_body(loop.body, {loop.symbol: loop.hi - loop.lanes + lane}, names)]
        return whole

    body = tuple(partial(found, {}, combine))
    main = replace(loop, symbol=lane, lo=Affine.of(0), hi=Affine.of(loop.lanes), body=body)
    if not left or repeats:
        return [main]
    rest = replace(loop, lo=loop.hi - left, kind=LoopKind.SEQUENTIAL, lanes=1)
    return [main, *copy_body((rest,), {}, {})]


def narrow_sums(loop: For) -> tuple[DType, int] | None:
    """In which dtype a loop that does nothing but add narrow integers up, which come from nothing wider, may
    do so, and how many of them; None where it adds others. Floats of 64 bits have all their sums exactly."""
    values = [stmt.value for stmt in loop.body if isinstance(stmt, Define)]
    updates = [stmt for stmt in loop.body if isinstance(stmt, Update)]
    terms = [stmt.value.arg for stmt in updates if isinstance(stmt.value, Cast) and stmt.accum is OPS["add"]]
    dtypes = {dtype_of(term) for term in terms}
    found = NARROW.get(dtypes.pop()) if len(dtypes) == 1 else None
    if found is None or len(terms) + len(values) < len(loop.body) or len(accumulated(loop)) < len(updates):
        return None
    size = max(dtype_of(term).itemsize for term in terms)
    if any(dtype_of(node).itemsize > size for value in (*values, *terms) for node in walk(value)):
        return None
    wide = (stmt.variable.dtype for stmt in updates)
    is_held = all(dtype is F64 or (dtype.is_integer and dtype.bits > found[0].bits) for dtype in wide)
    return found if is_held else None


def _several(loop: For, vectors: int) -> tuple[For, int]:
    """A loop that adds several of so many vectors up in narrow sums at a time, and how many; the loop itself,
    and one, where it cannot, or they are few."""
    found = narrow_sums(loop)
    if found is None or vectors < CHAIN:
        return loop, 1
    dtype, most = found
    terms = vectors // -(-vectors // most)
    totals = {v: Variable(v.hint, dtype) for v in accumulated(loop)}
    number = Symbol(loop.symbol.hint)

    def narrowed(stmt: Stmt) -> Stmt:
        if isinstance(stmt, Update) and isinstance(stmt.value, Cast):
            return Update(totals[stmt.variable], Cast(stmt.value.arg, dtype), stmt.accum)
        return stmt

    at = loop.symbol + Affine.of(number) * loop.lanes
    chain = copy_body(tuple(narrowed(stmt) for stmt in loop.body), {loop.symbol: at}, {})
    body: tuple[Stmt, ...] = (
        *(Define(total, constant(0, dtype)) for total in totals.values()),
        For(number, Affine.of(0), Affine.of(terms), chain),
        *(Update(v, Cast(Local(total), v.dtype), OPS["add"]) for v, total in totals.items()),
    )
    return replace(loop, body=body), terms


def _ignoring(body: tuple[Stmt, ...], seen: Expr, sums: Sums) -> tuple[Stmt, ...]:
    """A body that adds nothing to the sums in the lanes where `seen` holds."""
    out: list[Stmt] = []
    for stmt in body:
        if isinstance(stmt, Update) and stmt.variable in sums:
            nothing = neutral(sums[stmt.variable], stmt.variable.dtype)
            if stmt.contract:
                first, second = children(stmt.value)
                zero = constant(0.0, nothing.dtype)
                value = rebuild(stmt.value, (one_of(seen, nothing, first), one_of(seen, zero, second)))
            else:
                value = one_of(seen, nothing, stmt.value)
            out.append(replace(stmt, value=value))
        else:
            out.append(rewrite_bodies(stmt, lambda inner: _ignoring(inner, seen, sums)))
    return tuple(out)


def _tree(loop: For, sums: Sums, names: Names, start: Affine, unit: int, count: int) -> Sequence[Stmt]:
    """The iterations `start, start + unit, ...` of a loop, `count` of them, as trees."""
    sizes = _sizes(count)
    done = math.prod(sizes)
    tree = _nest(loop, sums, names, sizes, start, unit)
    if done == count:
        return tree
    after = start + done * unit
    rest = partial(sums, names, lambda partials: _tree(loop, sums, partials, after, unit, count - done))
    return [*tree, *rest]


def _nest(
    loop: For, sums: Sums, names: Names, sizes: Sequence[int], start: Affine, unit: int
) -> Sequence[Stmt]:
    """As many iterations as `sizes` multiply to, as loops of these sizes, the first outermost; each but
    the innermost adds up partial sums."""
    if not sizes:
        return copy_body(loop.body, {loop.symbol: start}, names)
    symbol = Symbol(loop.symbol.hint)
    position = start + Affine.of(symbol) * (unit * math.prod(sizes[1:]))
    if len(sizes) == 1:
        body: Sequence[Stmt] = copy_body(loop.body, {loop.symbol: position}, names)
    else:
        body = partial(sums, names, lambda partials: _nest(loop, sums, partials, sizes[1:], position, unit))
    return [For(symbol, Affine.of(0), Affine.of(sizes[0]), tuple(body))]


def partial(sums: Sums, names: Names, make: Callable[[Names], Sequence[Stmt]]) -> Sequence[Stmt]:
    """Statements that add into partial sums, which are then added to the sums that `names` gives."""
    partials = {variable: Variable(variable.hint, variable.dtype) for variable in sums}
    return [
        *(Define(partials[v], neutral(op, v.dtype)) for v, op in sums.items()),
        *make(partials),
        *(Update(names.get(v, v), Local(partials[v]), op) for v, op in sums.items()),
    ]


@cache
def _sizes(count: int, limit: int = CHAIN) -> tuple[int, ...]:
    """Factors whose product is `count` or a little less, the outermost first: the last at most `limit`,
    the others at most FAN."""
    if count <= limit:
        return (count,) if count > 1 else ()
    options = ((*_sizes(count // size, FAN), size) for size in range(limit, limit // 2, -1))
    return max(options, key=math.prod)
