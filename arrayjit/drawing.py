"""Boxes in two columns, joined by curves, as SVG."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from .frozen import frozen

__all__ = ["Box", "drawn"]

LINE, GAP, PAD, MARGIN, ALLEY = 16, 10, 8, 20, 120
LETTER = 7.3
"""The width of a letter of the monospaced font at its size, 12."""

MOST_LETTERS = 90

COLOURS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#dd8844", "#7755bb")
"""By which a nest and what it is made of are known; distinct to the colour-blind (after Paul Tol's "bright"
scheme)."""


@frozen
class Box:
    """Lines of text; `nests` are the numbers of the boxes on the right that belong to it."""

    lines: tuple[str, ...]
    nests: tuple[int, ...] = ()

    @property
    def height(self) -> int:
        return LINE * len(self.lines) + PAD

    @property
    def colour(self) -> str:
        return COLOURS[self.nests[0] % len(COLOURS)] if self.nests else "#888888"


def drawn(left: Sequence[Box], right: Sequence[Box]) -> str:
    """The boxes from top to bottom, and a curve from each on the left to those that it belongs to."""
    widths = [_width(column) for column in (left, right)]
    heights = [sum(box.height + GAP for box in column) for column in (left, right)]
    edges = MARGIN, MARGIN + widths[0] + ALLEY
    width, height = edges[1] + widths[1] + MARGIN, max(heights, default=0) + 2 * MARGIN
    tops = [list(_tops(column)) for column in (left, right)]
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-family="monospace" font-size="12">',
        f'<rect class="ground" width="{width}" height="{height}" fill="#ffffff"/>',
    ]
    for box, top in zip(left, tops[0], strict=True):
        for number in box.nests:
            start = edges[0] + widths[0], top + box.height / 2
            end = edges[1], tops[1][number] + right[number].height / 2
            parts.append(_curve(start, end, COLOURS[number % len(COLOURS)]))
    for column, edge, span, starts in zip((left, right), edges, widths, tops, strict=True):
        for box, top in zip(column, starts, strict=True):
            parts.extend(_drawn(box, edge, top, span))
    return "\n".join((*parts, "</svg>", ""))


def _width(column: Sequence[Box]) -> int:
    return int(max((LETTER * len(_short(line)) for box in column for line in box.lines), default=0)) + 2 * PAD


def _tops(column: Sequence[Box]) -> Iterator[int]:
    top = MARGIN
    for box in column:
        yield top
        top += box.height + GAP


def _curve(start: tuple[float, float], end: tuple[float, float], colour: str) -> str:
    middle = (start[0] + end[0]) / 2
    path = f"M {start[0]:.0f} {start[1]:.0f} C {middle:.0f} {start[1]:.0f}, {middle:.0f} {end[1]:.0f}, "
    return f'<path d="{path}{end[0]:.0f} {end[1]:.0f}" fill="none" stroke="{colour}" stroke-width="1.5"/>'


def _drawn(box: Box, edge: int, top: int, width: int) -> Iterator[str]:
    dashes = "" if box.nests else ' stroke-dasharray="4 3"'
    yield (
        f'<rect x="{edge}" y="{top}" width="{width}" height="{box.height}" rx="4" fill="{box.colour}" '
        f'fill-opacity="0.12" stroke="{box.colour}"{dashes}/>'
    )
    for number, line in enumerate(box.lines, 1):
        weight = ' font-weight="bold"' if number == 1 else ""
        baseline = top + number * LINE
        shown = escape(_short(line))
        yield f'<text x="{edge + PAD}" y="{baseline}"{weight} xml:space="preserve">{shown}</text>'


def _short(line: str) -> str:
    return line if len(line) <= MOST_LETTERS else f"{line[: MOST_LETTERS - 3]}..."
