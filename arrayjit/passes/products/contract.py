"""contract: products are computed in blocks that suit the registers and the caches.

    for i in parallel(0, 256):                          for p in parallel(0, 16):
        for j in parallel(0, 256):                          ... w_panel[k, l] = w[k, 16*p + l]
            c = 0.0                                         for q in sequential(0, 43):
            for k in parallel(0, 256):          ->              for l in vector(0, 16, lanes=16):
                c = fma(x[i, k], w[k, j], c)                        c, c1, ... = 0.0, 0.0, ...
            y[i, j] = c                                             for k in sequential(0, 256):
                                                                        t = w_panel[k, l]
                                                                        c = fma(x[6*q, k], t, c)
                                                                        c1 = fma(x[6*q + 1, k], t, c1)  ...
                                                                    y[6*q, 16*p + l] = c  ...

`products` says what a product is, `blocking` how its loops look; here it is decided how it is cut. The sums
of a sliver of rows and a panel of columns stay in vector registers. Every cell is computed by the very
operations of before, in their order. Extents that only the run knows are cut as the most that they may be:
slivers, panels and blocks are counted there, and the last ones overlap. Columns that are too few for vectors
are the rows of the same product turned: `x.T @ y` of 1000 x 96 and 1000 x 10 float32 takes 0.5 of the time.
So are many that lie term by term, of `x @ w.T`, where rows are few.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from itertools import chain, combinations

from ...ir.code import Caps
from ...ir.expr import Load, dtype_of
from ...ir.index import Affine, Symbol
from ...ir.loops import For, LoopKind, Stmt
from ..analysis.access import Ranges, effects
from ..analysis.carriers import conflicts
from ..analysis.copies import copy_body
from ..analysis.loopwise import Site, loopwise
from ..analysis.strides import places
from .ahead import requests_for
from .blocking import blocked
from .cuts import Blocking
from .depths import UNROLL
from .in_place import MOST_ROWS, columns_in_place, is_run, is_vector, step_in
from .products import Product, product_of
from .slivers import (
    DEEP,
    ROOM,
    SEEN,
    has_slivers,
    may_pad,
    side_by_side,
    sliver_sizes,
    takes_copies,
    term_of_slivers,
    with_room,
)
from .stages import in_stages
from .symmetric import half

__all__ = ["contract"]

MANY_TERMS = 24
"""So many terms for each row at least make it worth to turn what is stored rather than columns: of half as
many, results whose rows lie whole pages apart take 1.1 to 1.3 times as long."""

INTERLEAVED = 1.8
"""What it costs to take a register of columns from memory where they lie term by term, and multiply it."""

PACKED = 3.0
"""What it costs to turn a register of columns that do not lie side by side."""

TURNED = 0.9
"""A product is turned that then takes less than that."""

ACROSS = 1.0
"""What it costs to store a number of the result across rows."""

SEVERAL = 3
"""So many panels at least a sliver goes through before the next one does, where all rows take half of the
second cache and are read from the last one: 3000 x 500 x 700 float64 take 0.75 of the time, 1000 x 500 x 400
0.78, 448 x 448 x 448 0.9. With two nothing is gained."""

REUSE = 16
"""How many rows must read a panel for a copy of it to pay, where the second cache holds all panels."""

REUSE_AHEAD = 96
"""As many for processors that see far ahead, which fetch the lines of several terms at once; half of them
where these push one another out of the first cache. On Zen 5, 16 rows of layers of 256 to 500 take 0.65 to
0.75 of the time, 32 rows 0.8, 64 rows 0.9; 3 x 3 convolutions of 64 channels 0.9 to 0.95."""

OFTEN, MORE = 4, 2
"""How many times rows must be gone through for a copy of them to pay, and how many times as much must lie in
their lines as in the copy."""

RUN = 1024
"""The bytes of a row of the right factor that are worth packing at once."""

ASKED = 2048
"""As many where they are asked for: each step along the terms asks for a whole line then."""

STRIPS = 2
"""How many strips there are for each thread at least."""

MANY = 96
"""So many rows make up for panels packed in such runs, twice as many for runs of half the length."""

NEAR = 4
"""A left factor that is so many times as large as the second cache is still read anew for every panel where
these are too few for the threads; else one that the last cache holds."""

BLOCK = 384
"""The rows of a block: so many that the time in which a panel comes from memory does not matter."""

BLOCKS = 4
"""How many blocks are made for each thread at least, where several share them."""

TRIED = 32
"""How many numbers of blocks for each thread are considered."""

FEW = 96
"""So many terms at once at least are worth it that their sums leave off and go on."""

PLACES = 32
"""Rows of which the first cache holds fewer lines push one another out before they are read again."""

DIAGONAL = 1.5
"""So many times the sides of a sliver are rows at least of whose columns half are worth leaving out."""

UNEVEN = 1.02
"""What blocks cost whose rows are counted at run time, since the last has fewer."""


@loopwise
def contract(outermost: For, site: Site) -> Iterable[Stmt] | None:
    """Every product in blocks; of a nest whose rows do other things too, what is a product in a nest of its
    own."""
    found = _blocked(outermost, site)
    if found is not None or not _may_part(outermost, site.ranges):
        return found
    parts = [_part(outermost, stmt) for stmt in outermost.body]
    made = [_blocked(part, site) for part in parts]
    if all(part is None for part in made):
        return None
    return chain.from_iterable(new or (old,) for new, old in zip(made, parts, strict=True))


def _blocked(outermost: For, site: Site) -> Iterable[Stmt] | None:
    """A nest in blocks, if it is a product."""
    product = product_of(outermost)
    if product is None:
        return None
    staged = in_stages(outermost, product, partial(_blocked, site=site))
    if staged is not None:
        return staged
    halved = half(product)
    blocking = None if halved is None else _blocking(halved, site.caps)
    if halved is not None and blocking is not None and _pays(halved, blocking):
        site.notes.append(f"{_note(halved, blocking)}, which are stored on both sides of the diagonal")
        return blocked(halved, blocking, site.placement)
    if _is_narrow(product, site.caps):
        product = product.turned()
        site.notes.append("contract: few columns are taken for rows")
    elif _lies_by_terms(product, site.caps):
        product = product.turned()
        site.notes.append("contract: columns that lie term by term are taken for rows")
    blocking = _blocking(product, site.caps)
    if blocking is None:
        return None
    site.notes.append(_note(product, blocking))
    return blocked(product, blocking, site.placement)


def _may_part(rows: For, ranges: Ranges) -> bool:
    """Whether independent rows may do one thing after the other, each for all rows: they hand on to one
    another only cells that are a row's own."""
    if rows.kind is not LoopKind.PARALLEL or len(rows.body) < 2:
        return False
    if not all(isinstance(stmt, For) for stmt in rows.body):
        return False
    does = [effects((stmt,), ranges) for stmt in rows.body]
    if any(one.leaves or one.updates for one in does):
        return False
    return all(
        apart[rows.symbol] == (0, 0)
        for one, other in combinations(does, 2)
        for apart in conflicts(one, other, (rows.symbol,), ranges)
    )


def _part(rows: For, stmt: Stmt) -> For:
    """One of the things that rows do, for all of them."""
    row = Symbol(rows.symbol.hint)
    return replace(rows, symbol=row, body=copy_body((stmt,), {rows.symbol: Affine.of(row)}, {}))


def _pays(halved: Product, cut: Blocking) -> bool:
    """Are the slivers of one half of a product's cells enough fewer than those of all? Those on the diagonal
    are whole: about as many cells per row as a sliver has rows and columns."""
    rows, (total,) = halved.height, halved.sums
    return DIAGONAL * (cut.rows + cut.columns) <= rows and total.depth >= DEEP


def _note(product: Product, cut: Blocking) -> str:
    order = f"{cut.run} panels at a time" if cut.block is None else f"in blocks of {cut.block} rows"
    packed = [name for name, is_packed in (("rows", cut.left), ("columns", cut.right)) if is_packed]
    copies = f", {' and '.join(packed)} packed" if packed else ""
    names = ", ".join(total.variable.hint for total in product.sums)
    ahead = ", of which lines are asked for ahead" if cut.ahead is not None else ""
    return f"contract: {names}: {cut.rows} x {cut.columns} sums at once, {order}{copies}{ahead}"


def _is_narrow(product: Product, caps: Caps) -> bool:
    """Are the columns fewer than those of a panel, and better taken for rows?"""
    size = max(total.variable.dtype.itemsize for total in product.sums)
    if product.within is not None or product.width >= 2 * caps.vector_bytes // size:
        return False
    turned = product.turned()
    if not has_slivers(turned, caps.vector_bytes // size):
        return False
    if columns_in_place(turned, caps) is None:
        return _effort(turned, caps) < TURNED * _effort(product, caps)
    across = ACROSS * product.height * product.width
    return _effort(turned, caps) + across < TURNED * _effort(product, caps, short=True)


def _lies_by_terms(product: Product, caps: Caps) -> bool:
    """Do columns lie term by term, and rows fill vectors so well, or columns so much more than the second
    cache, that it takes less to store results across them than to turn all columns for their sake? These are
    read in place, as rows are, by a processor that sees far ahead. On Zen 5, `x @ w.T` of 32 and 2000 or 4096
    terms take 0.5 to 0.6 of the time in float64, of 16 and 32 rows, 784 terms and 100 columns 0.75 to 0.85.
    Not of results whose rows push one another out: 32 x 512 x 512 would take 1.2 times as long."""
    rows, columns = product.height, product.width
    depth = max(total.depth for total in product.sums)
    size = max(total.variable.dtype.itemsize for total in product.sums)
    if caps.pipes.ahead < SEEN or product.within is not None:
        return False
    turned = product.turned()
    if not has_slivers(turned, caps.vector_bytes // size):
        return False
    if not all(
        isinstance(total.left, Load) and is_run(total) and not is_vector(total.left, turned.rows)
        for total in turned.sums
    ):
        return False
    across = _effort(turned, caps) + ACROSS * rows * columns
    if depth * columns * size <= caps.l2_bytes:
        return places(columns * size, caps) >= rows and across < TURNED * _effort(product, caps, short=True)
    in_place = columns_in_place(product, caps) is not None
    return depth >= MANY_TERMS * max(rows, 2) and not (in_place and _effort(product, caps) <= across)


def _effort(product: Product, caps: Caps, short: bool = False) -> float:
    """About how long a product takes, in the time of two sums; of columns that are copied for sums of few
    terms, or that are too many, only if `short`."""
    rows, columns = product.height, product.width
    size = max(total.variable.dtype.itemsize for total in product.sums)
    lanes, copied = caps.vector_bytes // size, takes_copies(product, caps)
    if min(rows, columns) < 2:
        return math.inf
    terms = sum(total.depth for total in product.sums)
    in_place = columns_in_place(product, caps)
    if in_place is not None:
        term = term_of_slivers(rows, columns, in_place.rows, in_place.columns, lanes, copied)
        return terms * (term + INTERLEAVED * columns / lanes)
    height, width = sliver_sizes(
        product, lanes, caps.registers, MOST_ROWS, copied, padded=may_pad(product, caps)
    )
    term = term_of_slivers(rows, columns, height, width, lanes, copied)
    across = [total for total in product.sums if not is_vector(total.right, product.columns)]
    if not short and any(
        total.depth < DEEP or total.depth * columns * size > caps.l2_bytes for total in across
    ):
        return math.inf
    return terms * term + sum(total.depth for total in across) * PACKED * columns / lanes


def _blocking(product: Product, caps: Caps) -> Blocking | None:
    """How to cut a product, if that pays. Where the right factor takes half of the second cache at most, rows
    go in blocks that with their sums take the other half, not all rows through it for every panel: layers of
    a network (mlp_training) take 0.8 of the time. So do rows of several pictures that share packed columns,
    which each would pack anew (nine products with `w[:, :, i, j]`: 0.2 to 0.65 of the time). In a block a
    sliver goes through all panels, so that whole rows are written: 10000 x 128 x 512 take 0.73 to 0.85 of the
    time, 3000 x 100 x 1000 0.66 to 0.86.

    What is packed next is not asked for if sums leave off for that alone, and rows are many or the last cache
    has it soon: 512 x 512 x 512 float64 take 0.92 to 0.95 of the time, 512 x 512 x 2048 float32 0.9."""
    rows, columns = product.height, product.width
    depth = max(total.depth for total in product.sums)
    size = max(total.variable.dtype.itemsize for total in product.sums)
    if min(rows, columns, depth) < 2 or not has_slivers(product, caps.vector_bytes // size):
        return None
    in_place = (
        _terms_in_memory(product, rows, columns, depth, size, caps)
        or _rows_in_place(product, rows, columns, depth, size, caps)
        or columns_in_place(product, caps)
    )
    if in_place is not None:
        return in_place
    most = min(side_by_side(total, product, caps) for total in product.sums)
    copied, again = takes_copies(product, caps), depth * columns * size > caps.l2_bytes
    near = with_room(caps.l1_bytes) // (depth * size) if again else MOST_ROWS
    lanes, padded = caps.vector_bytes // size, may_pad(product, caps)
    height, width = sliver_sizes(product, lanes, caps.registers, most, copied, near, padded)
    along = all(is_vector(total.right, product.columns) for total in product.sums)
    panels = -(-columns // width)
    near_enough = caps.l1_bytes if rows >= _rows_that_pay(product, caps) else caps.l2_bytes
    right = not along or columns < width or depth * columns * size > near_enough
    half = caps.l2_bytes // 2
    several = again or (rows * depth * size > half and product.within is None)
    run, strip, at_once = _strips(rows, columns, depth, width, size, caps, several)
    if any(len(total.terms) > 1 for total in product.sums):
        at_once = depth
    ahead = None
    soon = rows > BLOCK or depth * columns * size <= caps.l3_bytes // ROOM
    if again and along and columns >= 2 * width and caps.ahead.rows and _may_ask(product):
        slivers = -(-rows // height)
        near_run, near_strip, some = _near_strips(rows, columns, depth, width, size, caps)
        if not soon or some == depth or at_once < depth:
            ahead = requests_for(near_run, some, slivers, width * size)
        if ahead is not None:
            run, strip, at_once = near_run, near_strip, some
    row = (depth + columns) * size
    is_shared = caps.threads == 1 or panels >= STRIPS * caps.threads
    far = with_room(caps.l3_bytes) if is_shared else NEAR * caps.l2_bytes
    block = None
    many = rows * row > caps.l2_bytes or (right and _share(product, caps))
    if many and depth * columns * size <= half and height <= product.least[0]:
        block, run = _block(rows, height, max(height, half // row), caps), panels
    elif rows * at_once * size > far:
        block = _block(rows, height, BLOCK, caps)
    if at_once == depth or block is not None or product.columns.trips is None:
        strip = run
    if block is not None:
        ahead = None
    at_hand = panels == 1 or rows * depth * size <= caps.l1_bytes
    side = (block or rows) * at_once * size <= caps.l2_bytes
    is_spread = block is None and _are_spread(product, panels, size, caps)
    left = not all(
        isinstance(total.left, Load)
        and not is_spread
        and (at_hand or is_run(total) or (side and is_vector(total.left, product.rows)))
        for total in product.sums
    )
    across = block is not None or (run >= SEVERAL and rows * at_once * size > half)
    across = across and product.within is None
    return Blocking(height, width, at_once, strip, run, block, left, right, across, ahead)


def _share(product: Product, caps: Caps) -> bool:
    """Do several iterations around rows share their columns, so that these are packed once for all of them?
    Threads would share little between loops that have columns of their own, one after the other."""
    several = any(loop.trips != 1 for loop in product.around[product.shared :])
    return several and (caps.threads == 1 or product.shared == 0)


def _are_spread(product: Product, panels: int, size: int, caps: Caps) -> bool:
    """Does what rows multiply lie in many more lines than a copy of it, too many for the first cache, and is
    it read so often that a copy pays? So are the weights of a 3 x 3 convolution that a program writes as nine
    products, w[:, :, i, j]."""
    often = math.prod(loop.trips or 0 for loop in product.around) * panels
    if often < OFTEN or not product.has_same_rows:
        return False
    copy = lines = 0
    for total in product.sums:
        steps = [step_in(total.left, loop) for loop in (product.rows, *total.terms)]
        if None in steps:
            return False
        nearest = min((abs(step) for step in steps if step), default=1)
        copy += total.depth * product.height * size
        lines += total.depth * product.height * min(nearest * size, caps.line_bytes)
    return caps.l1_bytes < lines and MORE * copy <= lines and copy <= caps.l2_bytes


def _rows_that_pay(product: Product, caps: Caps) -> int:
    """How many rows must read a panel for a copy of it to pay, where the second cache holds all panels."""
    if caps.pipes.ahead < SEEN:
        return REUSE
    steps = [
        (step_in(total.right, term) or 0) * dtype_of(total.right).itemsize
        for total in product.sums
        for term in total.terms
    ]
    they_stay = all(places(step, caps) >= PLACES for step in steps if step)
    return REUSE_AHEAD if they_stay else REUSE_AHEAD // 2


def _may_ask(product: Product) -> bool:
    """Is what panels are packed from read as it lies, by one sum over one loop for all rows?"""
    sums = product.sums
    is_known = product.columns.trips is not None and not any(total.is_open for total in sums)
    return (
        product.within is None
        and is_known
        and all(len(sums) == len(total.terms) == 1 and isinstance(total.right, Load) for total in sums)
    )


def _near_strips(
    rows: int, columns: int, depth: int, width: int, size: int, caps: Caps
) -> tuple[int, int, int]:
    """As `_strips`, where what is packed next is asked for: the first cache holds a panel, and the second one
    as much again as is packed together, of rows that may push one another out."""
    line, half = width * size, caps.l2_bytes // 2
    fair = -(-columns // width) if caps.threads == 1 else -(-columns // width) // (STRIPS * caps.threads)
    near_tiles = half // (min(rows, BLOCK) * line)
    run = _dividing(columns // width, max(1, min(fair, ASKED // line, near_tiles // 2)))
    most = max(UNROLL, 2 * caps.l1_bytes // (3 * line))
    at_once = depth if depth <= most else _even(depth, -(-depth // most), UNROLL)
    return run, _of_runs(run, columns // width, min(fair, near_tiles)), at_once


def _terms_in_memory(
    product: Product, rows: int, columns: int, depth: int, size: int, caps: Caps
) -> Blocking | None:
    """How to cut a product whose terms lie in memory one after the other, rows and columns of each side by
    side, as those of `x.T @ y` do, if these are few: some terms at a time, of which a panel takes half of the
    first cache, all that is read half of the second, and sums the other. They are near until all sums have
    them, so nothing is packed (20000 x 40 x 40: half of the time) but columns where lines push one another
    out."""
    by_row, by_column = product.rows, product.columns
    if not all(
        len(total.terms) == 1 and is_vector(total.left, by_row) and is_vector(total.right, by_column)
        for total in product.sums
    ):
        return None
    copied = takes_copies(product, caps)
    height, width = sliver_sizes(product, caps.vector_bytes // size, caps.registers, MOST_ROWS, copied)
    strip, block = -(-columns // width), None
    if caps.threads > 1:
        part = _even(rows, caps.threads * (BLOCKS if product.within else 1), height)
        if rows >= columns and part < rows and rows % part in (0, *range(height, part)):
            block = part
        else:
            strip = -(-strip // caps.threads)
    high, wide = block or rows, min(columns, strip * width)
    near = min(caps.l1_bytes // (2 * width * size), caps.l2_bytes // (2 * (high + wide) * size))
    sums = high * wide * size // (2 if product.within else 1)
    if near < min(FEW, depth) or 2 * sums > caps.l2_bytes:
        return None
    parts = -(-depth // near)
    at_once = depth if parts == 1 else _even(depth, parts, UNROLL)
    steps = [
        step_in(factor, total.terms[0]) for total in product.sums for factor in (total.left, total.right)
    ]
    right = any(step is None or places(step * size, caps) < PLACES for step in steps)
    return Blocking(height, width, at_once, strip, strip, block, False, right)


def _rows_in_place(
    product: Product, rows: int, columns: int, depth: int, size: int, caps: Caps
) -> Blocking | None:
    """How to cut a product of few rows whose columns lie side by side in more than the second cache, on a
    processor that sees far ahead: it fetches lines of many terms by itself, and to copy them takes longer
    than to multiply. Slivers have few rows and wide panels, so that memory is read in runs. On Zen 5, 4 to
    12 x 768 x 3072 float32 take 0.35 to 0.5 of the time, 12 x 4096 x 1024 0.7. Of half the columns one sliver
    has all of up to 12 rows (7 to 9 x 1000 x 1000: 0.75 to 0.85) that do not push one another out (else 10 x
    1024 x 1024 would take 1.7 times as long). More rows are two slivers, if the second one finds the panel
    near: 16 x 1500 x 900 take 0.7."""
    total = product.sums[0]
    side = side_by_side(total, product, caps)
    vectors = 4 if rows <= min(MOST_ROWS, (caps.registers - 5) // 4) or side < rows <= MOST_ROWS else 2
    width = vectors * caps.vector_bytes // size
    is_far = depth * columns * size > caps.l2_bytes and columns >= width
    if caps.pipes.ahead < SEEN or not is_far or not _may_ask(product):
        return None
    if not is_vector(total.right, product.columns) or not (isinstance(total.left, Load) and is_run(total)):
        return None
    step = step_in(total.right, total.terms[0])
    stay = 0 if step is None else places(step * size, replace(caps, l1_bytes=caps.l2_bytes))
    is_near = depth <= stay and 4 * depth * width * size < caps.l2_bytes
    if rows > MOST_ROWS and not (rows <= 2 * MOST_ROWS and is_near):
        return None
    most = min((caps.registers - 1 - vectors) // vectors, side)
    height = product.sliver(-(-rows // -(-rows // most)))
    return Blocking(height, width, depth, 1, 1, None, False, False)


def _strips(
    rows: int, columns: int, depth: int, width: int, size: int, caps: Caps, several: bool
) -> tuple[int, int, int]:
    """How many panels are packed together, `several` where a factor takes more than its part of the second
    cache; how many make a strip, and how many terms are taken at once. Where that cache holds panels of all
    terms, sums never leave off: 0.96 of the time for 1024 x 1024. Fewer panels go together then, so that
    memory is read in shorter runs, which many rows make up for."""
    line, half = width * size, caps.l2_bytes // 2
    run, strip, deep = 1, 1, True
    if several:
        fair = -(-columns // width) if caps.threads == 1 else -(-columns // width) // (STRIPS * caps.threads)
        near_tiles = half // (min(rows, BLOCK) * line)
        together = max(1, min(fair, RUN // line, near_tiles // 2))
        fewer = max(1, min(together, half // (depth * line)))
        deep = fewer == together or rows * fewer * line >= MANY * RUN
        run = _dividing(columns // width, fewer if deep else together)
        strip = _of_runs(run, columns // width, min(fair, near_tiles))
    most = max(1, min(half // run, half if deep else 2 * caps.l1_bytes) // line)
    return run, strip, depth if depth <= most else _even(depth, -(-depth // most), UNROLL)


def _dividing(whole: int, most: int) -> int:
    """The size of parts, `most` or down to half of it, that leaves nothing over if there is one."""
    return next((size for size in range(most, most // 2, -1) if whole % size == 0), most)


def _of_runs(run: int, whole: int, most: int) -> int:
    """The size of strips of several runs, at most `most`, that leave nothing over; else of one."""
    return next((size for size in range(most // run * run, run, -run) if whole % size == 0), run)


def _even(whole: int, parts: int, unit: int) -> int:
    """The size of so many parts, all but the last the same, in units."""
    return -(-whole // (parts * unit)) * unit


def _block(rows: int, height: int, most: int, caps: Caps) -> int:
    """The rows of a block, about `most`, the last of one sliver at least: of some numbers of blocks, as many
    for each thread, the one that leaves the fewest slivers to the thread with most. Blocks of 25 rows are
    three of twelve, those of 24 two. Blocks of one size are better if that is a matter of a few."""
    threads = caps.threads
    least = BLOCKS if threads > 1 else 1
    fewest = max(-(-rows // (most * threads)), least) * threads

    def cost(block: int) -> tuple[float, int]:
        before, last = divmod(rows - 1, block)
        slivers = -(-block // height)
        final = -(-(last + 1) // height) if before % threads == 0 else slivers
        return (before // threads * slivers + final) * (UNEVEN if rows % block else 1), -block

    numbers = range(fewest, min(2 * fewest, fewest + TRIED * threads), threads)
    sizes = {_even(rows, blocks, unit) for blocks in numbers for unit in (1, height)}
    fitting = [size for size in sizes if size >= height and (rows % size == 0 or rows % size >= height)]
    return min(fitting, key=cost, default=rows)
