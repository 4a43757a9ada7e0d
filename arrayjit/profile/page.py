"""A profile as a page that needs no other file: where the time goes, the roofline, the user's lines."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from html import escape

from ..pages import page
from .counters import Refused
from .profiled import PartProfile, Profile
from .report import as_text, duration, part_rows, rate
from .roofline import Roofline

__all__ = ["as_html"]

COLOURS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377")
"""Distinct to the colour-blind: Paul Tol's "bright" scheme."""

WIDTH, BAR, ROW = 720, 320, 22
"""Of the drawings, of the longest bar, and from one bar to the next."""

LEFT, RIGHT, TOP, BOTTOM, HEIGHT = 60, 20, 20, 40, 360
"""The edges of the roofline's axes."""


def as_html(found: Profile) -> str:
    """The whole page."""
    title = f"{found.name} for {found.target}"
    parts = [
        f'<h1>{escape(title)}</h1><p class="quiet">{escape(found.machine)}</p>',
        "<h2>Where the time of a call goes</h2>",
        _bars(found),
        f"<h2>Parts</h2>{_table(part_rows(found))}",
    ]
    if found.rooflines:
        parts += ["<h2>Roofline</h2>", _chart(found, found.rooflines[-1])]
    parts += [
        "<h2>Lines</h2>",
        "".join(_lines(found)),
        f'<h2>As text</h2><pre class="wide">{escape(as_text(found))}</pre>',
    ]
    return page(title, "\n".join(parts))


def _bars(found: Profile) -> str:
    """Dispatch and each part, as long as they take."""
    rows: list[tuple[str, float, str]] = []
    if not isinstance(found.call, Refused):
        rows.append(("dispatch", found.dispatch or 0.0, "#888888"))
    rows += [(f"part {part.number}", part.seconds.median, _colour(part)) for part in found.parts]
    longest = max(seconds for _, seconds, _ in rows) or 1.0
    lines = [
        f'<text x="0" y="{ROW * n + 15}">{label}</text>'
        f'<rect x="90" y="{ROW * n + 2}" width="{BAR * seconds / longest:.1f}" height="{ROW - 6}" '
        f'fill="{colour}"/><text x="{95 + BAR * seconds / longest:.1f}" y="{ROW * n + 15}">'
        f"{duration(seconds)}</text>"
        for n, (label, seconds, colour) in enumerate(rows)
    ]
    return _svg(WIDTH, ROW * len(rows) + 4, lines)


def _colour(part: PartProfile) -> str:
    return COLOURS[(part.number - 1) % len(COLOURS)]


def _chart(found: Profile, limits: Roofline) -> str:
    """Operations per second over operations per byte: the machine's limits as lines, the parts as points."""
    points = [p for p in found.parts if p.intensity > 0 and p.flops_per_second > 0]
    peaks = {"float32": limits.limits.float32, "float64": limits.limits.float64}
    ridges = [peak / level.rate for peak in peaks.values() for level in limits.levels]
    across = _Axis([*ridges, 0.01, 100.0, *(p.intensity for p in points)], LEFT, WIDTH - RIGHT)
    rates = [p.flops_per_second for p in points]
    up = _Axis([*peaks.values(), limits.levels[-1].rate * 0.05, *rates], HEIGHT - BOTTOM, TOP)
    lines = list(_grid(across, up))
    for level in limits.levels:
        start = max(10**across.low, 10**up.low / level.rate)
        end = max(peaks.values()) / level.rate
        path = f"M {across.at(start):.1f} {up.at(start * level.rate):.1f} L {across.at(end):.1f} "
        lines.append(f'<path d="{path}{up.at(end * level.rate):.1f}" stroke="var(--quiet)" fill="none"/>')
    for dtype, peak in peaks.items():
        start = across.at(peak / max(level.rate for level in limits.levels))
        y = up.at(peak)
        lines.append(f'<path d="M {start:.1f} {y:.1f} L {WIDTH - RIGHT} {y:.1f}" stroke="var(--quiet)"/>')
        lines.append(_label(WIDTH - 170, y - 4, f"{dtype} {rate(peak, 'FLOP/s')}"))
    for part in points:
        x, y = across.at(part.intensity), up.at(part.flops_per_second)
        lines.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="{_colour(part)}"/>')
        lines.append(_label(x + 8, y + 4, f"part {part.number}"))
    lines.append(_label(WIDTH / 2 - 60, HEIGHT - 6, "operations per byte"))
    levels = ", ".join(f"{level.name} {rate(level.rate, 'B/s')}" for level in limits.levels)
    words = f"The limits of {limits.threads} thread{'s' * (limits.threads > 1)}; those that slope: {levels}."
    return f'{_svg(WIDTH, HEIGHT, lines)}<p class="quiet">{words}</p>'


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


def _table(rows: Sequence[Sequence[str]]) -> str:
    head, *others = ("".join(f"<td>{escape(cell)}</td>" for cell in row) for row in rows)
    head = head.replace("td>", "th>")
    return f'<div class="wide"><table><tr>{head}</tr><tr>' + "</tr><tr>".join(others) + "</tr></table></div>"


def _lines(found: Profile) -> Iterator[str]:
    """The user's lines in the order of their files, as dark as they are long."""
    yield '<div class="wide"><table>'
    for line in sorted(found.lines, key=lambda line: (line.loc.file, line.loc.line)):
        yield (
            f'<tr><td>{escape(str(line.loc))}</td><td class="share" style="--share: {line.share:.1%}">'
            f'{line.share:.0%}</td><td class="source">{escape(line.source)}</td></tr>'
        )
    yield "</table></div>"
