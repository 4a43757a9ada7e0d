"""What pages of profiles show: bars of times, a roofline, tables, the user's lines."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Protocol

from ..frozen import frozen
from ..pages import page
from .lines import Line
from .report import duration, rate
from .roofline import Level

__all__ = ["Point", "bars", "colour", "document", "roof", "table"]

COLOURS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377")
"""Distinct to the colour-blind: Paul Tol's "bright" scheme."""

WIDTH, BAR, ROW = 720, 320, 22
"""Of the drawings, of the longest bar, and from one bar to the next."""

LEFT, RIGHT, TOP, BOTTOM, HEIGHT = 60, 20, 20, 40, 360
"""The edges of the roofline's axes."""


class Shown(Protocol):
    """A profile, whose text is its `str`."""

    @property
    def name(self) -> str: ...

    @property
    def target(self) -> str: ...

    @property
    def lines(self) -> Sequence[Line]: ...


@frozen
class Point:
    """A part in a roofline: its operations for each byte, and per second."""

    label: str
    intensity: float
    rate: float
    colour: str


def document(found: Shown, machine: str, sections: Sequence[tuple[str, str]]) -> str:
    """The whole page: sections with their titles, then the user's lines and all as text. A section of nothing
    is left out."""
    title = f"{found.name} for {found.target}"
    ends = [
        ("Lines", lines(found.lines)),
        ("As text", f'<pre class="wide">{escape(str(found))}</pre>'),
    ]
    parts = [f"<h2>{name}</h2>\n{content}" for name, content in (*sections, *ends) if content]
    return page(title, "\n".join((f'<h1>{escape(title)}</h1><p class="quiet">{escape(machine)}</p>', *parts)))


def colour(number: int) -> str:
    """Of part `number`, counted from 1."""
    return COLOURS[(number - 1) % len(COLOURS)]


def bars(rows: Sequence[tuple[str, float, str]]) -> str:
    """Names, seconds and colours as bars that are as long as the time."""
    longest = max((seconds for _, seconds, _ in rows), default=0.0) or 1.0
    drawn = [
        f'<text x="0" y="{ROW * n + 15}">{escape(label)}</text>'
        f'<rect x="90" y="{ROW * n + 2}" width="{BAR * seconds / longest:.1f}" height="{ROW - 6}" '
        f'fill="{shade}"/><text x="{95 + BAR * seconds / longest:.1f}" y="{ROW * n + 15}">'
        f"{duration(seconds)}</text>"
        for n, (label, seconds, shade) in enumerate(rows)
    ]
    return _svg(WIDTH, ROW * len(rows) + 4, drawn)


def roof(parts: Sequence[Point], peaks: Mapping[str, float], levels: Sequence[Level]) -> str:
    """Operations per second over operations per byte: the limits as lines, the parts as points."""
    points = [point for point in parts if point.intensity > 0 and point.rate > 0]
    ridges = [peak / level.rate for peak in peaks.values() for level in levels]
    across = _Axis([*ridges, 0.01, 100.0, *(p.intensity for p in points)], LEFT, WIDTH - RIGHT)
    rates = [p.rate for p in points]
    up = _Axis([*peaks.values(), levels[-1].rate * 0.05, *rates], HEIGHT - BOTTOM, TOP)
    drawn = list(_grid(across, up))
    for level in levels:
        start = max(10**across.low, 10**up.low / level.rate)
        end = max(peaks.values()) / level.rate
        path = f"M {across.at(start):.1f} {up.at(start * level.rate):.1f} L {across.at(end):.1f} "
        drawn.append(f'<path d="{path}{up.at(end * level.rate):.1f}" stroke="var(--quiet)" fill="none"/>')
    for dtype, peak in peaks.items():
        start = across.at(peak / max(level.rate for level in levels))
        y = up.at(peak)
        drawn.append(f'<path d="M {start:.1f} {y:.1f} L {WIDTH - RIGHT} {y:.1f}" stroke="var(--quiet)"/>')
        drawn.append(_label(WIDTH - 170, y - 4, f"{dtype} {rate(peak, 'FLOP/s')}"))
    for point in points:
        x, y = across.at(point.intensity), up.at(point.rate)
        drawn.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="{point.colour}"/>')
        drawn.append(_label(x + 8, y + 4, point.label))
    drawn.append(_label(WIDTH / 2 - 60, HEIGHT - 6, "operations per byte"))
    return _svg(WIDTH, HEIGHT, drawn)


class _Axis:
    """A logarithmic axis that has room for some numbers."""

    def __init__(self, numbers: Sequence[float], start: float, end: float) -> None:
        self.low = math.floor(math.log10(min(numbers)))
        self.high = math.ceil(math.log10(max(numbers)) + 0.1)
        self._start, self._end = start, end

    def at(self, number: float) -> float:
        """Where a number is; what is below the axis is at its start."""
        part = (math.log10(max(number, 10**self.low)) - self.low) / (self.high - self.low)
        return self._start + part * (self._end - self._start)


def _grid(across: _Axis, up: _Axis) -> Iterator[str]:
    for power in range(across.low, across.high + 1):
        x = across.at(10.0**power)
        yield f'<path d="M {x:.1f} {TOP} L {x:.1f} {HEIGHT - BOTTOM}" stroke="var(--line)"/>'
        yield _label(x - 10, HEIGHT - BOTTOM + 14, f"{10.0**power:g}")
    for power in range(up.low, up.high + 1):
        y = up.at(10.0**power)
        yield f'<path d="M {LEFT} {y:.1f} L {WIDTH - RIGHT} {y:.1f}" stroke="var(--line)"/>'
        yield _label(2, y + 4, rate(10.0**power, "F/s"))


def _label(x: float, y: float, text: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}">{escape(text)}</text>'


def _svg(width: int, height: int, lines: Sequence[str]) -> str:
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
    return head + 'font-family="sans-serif" font-size="12">' + "\n".join(lines) + "</svg>"


def table(rows: Sequence[Sequence[str]]) -> str:
    """Rows of cells, the head first."""
    if not rows:
        return ""
    head, *others = ("".join(f"<td>{escape(cell)}</td>" for cell in row) for row in rows)
    head = head.replace("td>", "th>")
    return f'<div class="wide"><table><tr>{head}</tr><tr>' + "</tr><tr>".join(others) + "</tr></table></div>"


def lines(found: Sequence[Line]) -> str:
    """The user's lines in the order of their files, as dark as they are long."""
    rows = [
        f'<tr><td>{escape(str(line.loc))}</td><td class="share" style="--share: {line.share:.1%}">'
        f'{line.share:.0%}</td><td class="source">{escape(line.source)}</td></tr>'
        for line in sorted(found, key=lambda line: (line.loc.file, line.loc.line))
    ]
    if not rows:
        return ""
    return f'<div class="wide"><table>{"".join(rows)}</table></div>'
