"""What a product is cut into: slivers of rows by panels of columns, and blocks and strips of these."""

from __future__ import annotations

from ...frozen import frozen
from ...ir.index import Affine, Symbol
from ...ir.loops import Bind, Stmt
from ..analysis.trips import lesser

__all__ = [
    "ZERO",
    "Blocking",
    "Onward",
    "Panel",
    "Requests",
    "Rows",
    "Strip",
    "end_of",
    "last_panel",
    "row_numbers",
]

ZERO = Affine.of(0)

SAVED = 24
"""One of so many columns that are not computed twice is worth a last panel of its own width."""


@frozen
class Requests:
    """How it is shared what is asked for: of the terms so many `by_panel`, of these `by_sliver`, and for each
    of these so many `lines` a step."""

    by_panel: int
    by_sliver: int
    lines: int


@frozen
class Blocking:
    """How a product is cut: slivers of `rows`, panels of `columns`, `strip` of these, `depth` terms at once;
    blocks of `block` rows, none for strips of all rows. `left` and `right` say which factors are packed, of
    the columns `run` panels at a time, which divides `strip`, or is as much; `across`, that a sliver goes
    through these before the next one does; `ahead`, how slivers ask for what is packed next."""

    rows: int
    columns: int
    depth: int
    strip: int
    run: int
    block: int | None
    left: bool
    right: bool
    across: bool = False
    ahead: Requests | None = None


def last_panel(columns: int, width: int) -> int:
    """The columns of the last panel: as few lanes as hold what whole panels leave, if that saves enough."""
    narrow = max(2, 1 << (columns % width - 1).bit_length()) if columns % width else width
    return narrow if (width - narrow) * SAVED >= columns else width


@frozen
class Rows:
    """Rows from `start` on, `count` of them, after the statements that find out how many; `most` where that
    varies, and `least` of them, where these may be a sliver."""

    start: Affine
    count: Affine
    most: int
    before: tuple[Stmt, ...] = ()
    least: int = 0


def row_numbers(rows: Rows, height: int) -> tuple[tuple[Stmt, ...], list[Affine]]:
    """Which rows a sliver has, after what finds it out: where all make one, and may be fewer, the last one
    again."""
    numbers = [Affine.of(row) for row in range(height)]
    if rows.count.is_constant or rows.most > height:
        return (), numbers
    symbols = [Symbol("row", lower=0, upper=height) for _ in range(rows.least, height)]
    last = rows.count - 1
    binds = [Bind(symbol, lesser(Affine.of(row), last)) for row, symbol in enumerate(symbols, rows.least)]
    return tuple(binds), [*numbers[: rows.least], *map(Affine.of, symbols)]


def end_of(rows: Rows, height: int) -> Affine:
    """How many rows a sliver has, each once."""
    return Affine.of(height) if rows.count.is_constant or rows.most > height else rows.count


@frozen
class Onward:
    """Where what is packed next lies: how many terms further, and from which column on."""

    further: Affine
    start: Affine


@frozen
class Strip:
    """`width` columns from `start` on, in `count` panels, at most `most`, the first of them the panel of a
    number, or part of such a strip, from the panel `place` of it on; panels have `lanes` columns. What is
    done with sums of columns before `fresh` was done with the panel before. Where the last panel overlaps
    that, `last` is its first column. What is packed next lies `onward`."""

    start: Affine
    width: Affine
    number: Affine
    count: Affine
    most: int
    lanes: int
    fresh: Affine = ZERO
    before: tuple[Stmt, ...] = ()
    place: Affine = ZERO
    last: Affine | None = None
    onward: Onward | None = None


@frozen
class Panel:
    """So many `lanes` of columns from `start` on, and from `column` on in the strip; a panel by its number
    among all, and among those that are packed together."""

    start: Affine
    column: Affine
    number: Affine
    packed: Affine
    lanes: int
