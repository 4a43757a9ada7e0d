"""Which products a GPU forms in tiles, and how large these are.

A larger tile reads each factor less often; more and smaller tiles keep more processors busy. The choice is
the one that takes the fewest cycles by a rough count: a block takes, for each slice, as long as its
multiplications take, or at least as long as memory takes to answer; blocks on one processor share it.
"""

from __future__ import annotations

from ...frozen import frozen
from ...ir.code import GpuCaps
from ...ir.loops import For
from ...ir.tensor import Tensor
from ..analysis.access import Ranges
from ..analysis.trips import about
from ..analysis.work import UNKNOWN_TRIPS
from ..products.products import Product, product_of
from .slices import Tile
from .tiling import in_tiles

__all__ = ["Tiled", "tiled"]

TILES = (
    (Tile(128, 128, 16, 8, 8), 0.85),
    (Tile(64, 64, 16, 4, 4), 0.5),
    (Tile(32, 32, 16, 4, 4), 0.4),
)
"""Tiles, the largest first, and the share of cycles that multiply: in others shared memory is read."""

UNITS_BYTES = 512
"""What a processor multiplies in a cycle: 128 elements of 4 bytes."""

LATENCY = 400
"""Cycles from asking memory to an answer, which a slice waits at least."""

ALONE_LATENCY = 25
"""Cycles for a term of a sum that a thread forms by itself, at least: it asks for a few terms ahead."""

ALONE = 10
"""How many times as long as the multiplications of such threads their reading takes."""

MOST_SUM_BYTES = 256
"""What the sums of a thread take of its registers."""


@frozen
class Tiled:
    """A product as a loop over tiles, each a block's, with the temporaries of an iteration and the reason."""

    loop: For
    temporaries: tuple[Tensor, ...]
    reason: str


def tiled(loop: For, gpu: GpuCaps, ranges: Ranges) -> Tiled | None:
    """A nest in tiles, if it is a product for which that pays."""
    product = product_of(loop)
    if product is None or len(product.sums) != 1 or product.within is not None:
        return None
    around = 1
    for outer in product.around:
        if outer.step != 1:
            return None
        around *= about(outer, ranges) or UNKNOWN_TRIPS
    tile = _chosen(product, around, gpu)
    made = None if tile is None else in_tiles(product, tile, gpu.access_bytes)
    if tile is None or made is None:
        return None
    blocks = around * _blocks(product, tile)
    hint = product.sums[0].variable.hint
    reason = f"{hint}: a block of {tile.threads} for each of {blocks} tiles of {tile}"
    return Tiled(*made, reason)


def _chosen(product: Product, around: int, gpu: GpuCaps) -> Tile | None:
    """The tile that takes least, if that is less than a thread for each sum."""
    (total,) = product.sums
    size, depth = total.variable.dtype.itemsize, total.depth
    rows, columns = product.rows.trips or 0, product.columns.trips or 0
    sums = around * rows * columns
    alone = depth * max(ALONE_LATENCY, ALONE * -(-sums * size // (gpu.processors * UNITS_BYTES)))
    best: tuple[float, Tile | None] = (alone, None)
    for tile, share in TILES:
        fits = tile.shared_bytes(size, gpu.access_bytes) <= gpu.array_bytes
        if not fits or tile.high * tile.wide * size > MOST_SUM_BYTES or tile.threads > gpu.block_threads:
            continue
        each = -(-around * _blocks(product, tile) // gpu.processors)
        work = each * tile.rows * tile.columns * tile.depth * size / (UNITS_BYTES * share)
        cycles = (-(-depth // tile.depth) + 1) * max(LATENCY, work)
        best = min(best, (cycles, tile), key=lambda choice: choice[0])
    return best[1]


def _blocks(product: Product, tile: Tile) -> int:
    """The tiles of a product."""
    rows, columns = product.rows.trips or 0, product.columns.trips or 0
    return -(-rows // tile.rows) * -(-columns // tile.columns)
