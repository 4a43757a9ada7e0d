"""A profile as a page that needs no other file: where the time goes, the roofline, the user's lines."""

from __future__ import annotations

from html import escape

from ..pages import page
from .counters import Refused
from .figures import Point, bars, colour, lines, roof, table
from .profiled import Profile
from .report import as_text, part_rows, rate
from .roofline import Roofline

__all__ = ["as_html"]


def as_html(found: Profile) -> str:
    """The whole page."""
    title = f"{found.name} for {found.target}"
    parts = [
        f'<h1>{escape(title)}</h1><p class="quiet">{escape(found.machine)}</p>',
        "<h2>Where the time of a call goes</h2>",
        _times(found),
        f"<h2>Parts</h2>{table(part_rows(found))}",
    ]
    if found.rooflines:
        parts += ["<h2>Roofline</h2>", _chart(found, found.rooflines[-1])]
    parts += [
        "<h2>Lines</h2>",
        lines(found.lines),
        f'<h2>As text</h2><pre class="wide">{escape(as_text(found))}</pre>',
    ]
    return page(title, "\n".join(parts))


def _times(found: Profile) -> str:
    """Dispatch, allocation and each part."""
    rows: list[tuple[str, float, str]] = []
    if not isinstance(found.call, Refused):
        rows.append(("dispatch", found.dispatch or 0.0, "#888888"))
    rows.append(("allocation", found.allocation, "#bbbbbb"))
    return bars(
        [*rows, *((f"part {part.number}", part.seconds.median, colour(part.number)) for part in found.parts)]
    )


def _chart(found: Profile, limits: Roofline) -> str:
    """The parts beside the machine's limits."""
    points = [
        Point(f"part {part.number}", part.intensity, part.flops_per_second, colour(part.number))
        for part in found.parts
    ]
    peaks = {"float32": limits.limits.float32, "float64": limits.limits.float64}
    levels = ", ".join(f"{level.name} {rate(level.rate, 'B/s')}" for level in limits.levels)
    words = f"The limits of {limits.threads} thread{'s' * (limits.threads > 1)}; those that slope: {levels}."
    return f'{roof(points, peaks, limits.levels)}<p class="quiet">{words}</p>'
