"""How many rows and columns slivers have, and what they cost.

    for i in parallel(0, 64):                   for q in sequential(0, 6):
        for j in parallel(0, 32):                   for l in vector(0, 32, lanes=32):
            c = 0.0                     ->              c, c1, ... c10 = 0.0, 0.0, ...
            ...                                         ...

Of 64 rows eleven go together: six slivers of twelve would have eight rows too many.
"""

from __future__ import annotations

from ...ir.code import Caps
from ...ir.expr import Const, Load, dtype_of
from ..analysis.strides import places, stride
from .cuts import last_panel
from .in_place import MOST_ROWS, is_run
from .products import Product, Sum

__all__ = [
    "DEEP",
    "ROOM",
    "SEEN",
    "has_slivers",
    "may_pad",
    "side_by_side",
    "sliver_sizes",
    "takes_copies",
    "term_of_slivers",
    "with_room",
]

LATENCY = 8
"""Fused multiply-adds that are under way at once; with fewer sums the units wait."""

WIDE = 64
"""Bytes of vectors into all lanes of which no plain load copies a number."""

OVERHEAD = 0.6
"""What a sliver costs beside them, per term."""

TWICE = 16
"""Sums of so many terms may be stored in a tile, and then where they belong, for the sake of one panel."""

SEEN = 128
"""Operations behind one that waits; a processor that sees so many fetches lines of several terms at once."""

DEEP = 32
"""Sums of so many terms at least are worth being stored twice rather than formed twice."""

HIGH = 48
"""So many rows make up for a panel that is copied for the sake of zeros beside it."""

FAR = 0.06
"""What it costs to read all rows of a sliver from the second cache for each panel. Of 600 x 600 float64 six
by twice the columns take 0.86 of the time of twelve, of 768 and 1500 0.91, of 1000 x 1000 float32 0.9."""

ROOM = 4
"""One place of the first cache in so many is left to the panel's lines, and as much of the last cache to what
is read and written beside the left factor."""

LEAST_ROWS = 6
"""So many rows at least make it worth to count them by slivers when the product runs."""


def has_slivers(product: Product, lanes: int) -> bool:
    """Are rows and columns that only the run counts enough for slivers of some height?"""
    rows, columns = product.least
    return rows >= min(LEAST_ROWS, -(-product.height // 2)) and (
        product.columns.trips is not None or columns >= lanes
    )


def side_by_side(total: Sum, product: Product, caps: Caps) -> int:
    """The rows of a sliver at most: so many that the first cache holds a line of each, beside those of a
    panel, where they are read in place. Rows of a power of two are a few of its places apart, and push one
    another out: 12 rows of 4096 bytes take 1.1 times as long as 6 by twice the columns on one thread, and up
    to 1.3 on two, where each set of the cache has 8 lines, and 1.03 to 1.14 times where it has 12."""
    left = total.left
    step: int | None = total.depth
    if isinstance(left, Load) and is_run(total):
        step = stride(left.tensor, left.index, product.rows.symbol)
    if step is None:
        return MOST_ROWS
    return min(MOST_ROWS, with_room(places(step * dtype_of(left).itemsize, caps)))


def with_room(size: int) -> int:
    """What a cache of a size holds beside other things."""
    return size - size // ROOM


def takes_copies(product: Product, caps: Caps) -> bool:
    """Does it take time to copy a row's factor into all lanes for several vectors? Where products and
    additions are apart, they leave the widest vectors no unit for that; a single vector takes it from memory,
    as an operand, for nothing (120 terms of 100 x 100 sums: 0.7 of the time)."""
    return caps.vector_bytes == WIDE and any(total.update.accum is None for total in product.sums)


def may_pad(product: Product, caps: Caps) -> int:
    """Of how many vectors a panel may be that is wider than all columns: may sums of columns that are not
    there be formed, and are they long enough to be stored twice? Two vectors are one sliver where each would
    be one, which loads every factor again. On Zen 5, 26 columns of 64 rows and 576 terms (a 3 x 3
    convolution) take 0.8 of the time in float32, 13 of 300 rows and 200 terms 0.83 in float64; of fewer rows
    or terms some take longer."""
    if product.within is not None or product.columns.trips is None:
        return 0
    if not all(isinstance(total.start, Const) for total in product.sums):
        return 0
    depth = min(total.depth for total in product.sums)
    is_wide = caps.pipes.ahead >= SEEN and product.height >= HIGH and depth >= DEEP
    return 2 if is_wide else int(depth >= TWICE)


def term_of_slivers(rows: int, columns: int, height: int, width: int, lanes: int, copied: bool) -> float:
    """What a term of all slivers costs. Two sums take as long as two loads, of a row's factor or of a vector
    of columns, or as a factor that is `copied` for several vectors."""

    def each(width: int) -> float:
        vectors = max(1, width // lanes)
        copies = height if copied and vectors > 1 else 0
        return max(height * vectors + copies, height + vectors, LATENCY) / 2 + OVERHEAD

    panels = columns // width * each(width)
    if columns % width:
        panels += each(last_panel(columns, width))
    return -(-rows // height) * panels


def sliver_sizes(
    product: Product,
    lanes: int,
    registers: int,
    side_by_side: int,
    copied: bool,
    near: int = MOST_ROWS,
    padded: int = 0,
) -> tuple[int, int]:
    """The rows and the columns of a sliver: as many as there are registers for, or fewer if these leave less
    over, or if only so many rows should be read side by side, or are `near` when the next panel reads them
    again; then it may be wider. A panel of as many vectors as may be `padded` may be wider than all columns,
    if these fill most of it."""
    (rows, columns), (fewest, narrowest) = (product.height, product.width), product.least

    def cost(size: tuple[int, int]) -> tuple[float, int]:
        height, width = size
        again = 1 + FAR * max(0, height - near) / MOST_ROWS
        return term_of_slivers(rows, columns, height, width, lanes, copied) * again, -height * width

    options = []
    widths = [2 * lanes >> halvings for halvings in range((2 * lanes).bit_length() - 1)]
    for width in widths if min(side_by_side, near) >= MOST_ROWS else (*widths, 4 * lanes):
        vectors = max(1, width // lanes)
        most = product.sliver(min(rows, (registers - 1 - vectors) // vectors, side_by_side))
        fills = 2 * columns > width if width <= lanes else 4 * columns > 3 * width
        if width <= narrowest or (width <= padded * lanes and fills):
            options += [(height, width) for height in {*range(1, min(fewest, most) + 1), most}]
    return min(options, key=cost)
