"""A profile as a page that needs no other file: where the time goes, the roofline, the user's lines."""

from __future__ import annotations

from .counters import Refused
from .figures import Point, bars, colour, document, roof, table
from .profiled import Profile
from .report import part_rows, rate
from .roofline import Roofline

__all__ = ["as_html"]


def as_html(found: Profile) -> str:
    """The whole page."""
    return document(
        found,
        found.machine,
        [
            ("Where the time of a call goes", _times(found)),
            ("Parts", table(part_rows(found))),
            ("Roofline", _chart(found, found.rooflines[-1]) if found.rooflines else ""),
        ],
    )


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
