"""What a product is cut into: slivers of rows by panels of columns, and blocks and strips of these."""

from __future__ import annotations

from ...frozen import frozen
from ...ir.index import Affine
from ...ir.loops import Stmt

__all__ = ["ZERO", "Blocking", "Panel", "Rows", "Strip", "last_panel"]

ZERO = Affine.of(0)

SAVED = 24
"""One of so many columns that are not computed twice is worth a last panel of its own width."""


@frozen
class Blocking:
    """How a product is cut: slivers of `rows`, panels of `columns`, `strip` of these, `depth` terms at once;
    blocks of `block` rows, none for strips of all rows. `left` and `right` say which factors are packed, of
    the columns `run` panels at a time, which divides `strip`, or is as much; `across`, that a sliver goes
    through these before the next one does."""

    rows: int
    columns: int
    depth: int
    strip: int
    run: int
    block: int | None
    left: bool
    right: bool
    across: bool = False


def last_panel(columns: int, width: int) -> int:
    """The columns of the last panel: as few lanes as hold what whole panels leave, if that saves enough."""
    narrow = max(2, 1 << (columns % width - 1).bit_length()) if columns % width else width
    return narrow if (width - narrow) * SAVED >= columns else width


@frozen
class Rows:
    """Rows from `start` on, `count` of them, after the statements that find out how many; `most` where that
    varies."""

    start: Affine
    count: Affine
    most: int
    before: tuple[Stmt, ...] = ()


@frozen
class Strip:
    """`width` columns from `start` on, in `count` panels, at most `most`, the first of them the panel of a
    number, or part of such a strip, from the panel `place` of it on; panels have `lanes` columns. What is
    done with sums of columns before `fresh` was done with the panel before. Where the last panel overlaps
    that, `last` is its first column."""

    start: Affine
    width: Affine
    number: Affine
    count: Affine
    most: int
    lanes: int
    fresh: int = 0
    before: tuple[Stmt, ...] = ()
    place: Affine = ZERO
    last: Affine | None = None


@frozen
class Panel:
    """So many `lanes` of columns from `start` on, and from `column` on in the strip; a panel by its number
    among all, and among those that are packed together."""

    start: Affine
    column: Affine
    number: Affine
    packed: Affine
    lanes: int
