"""A profile of a GPU's kernels as a page that needs no other file."""

from __future__ import annotations

from html import escape

from ...pages import page
from ..figures import Point, bars, colour, lines, roof, table
from ..report import rate
from .profiled import GpuProfile
from .report import SIMULATED, as_text, kernel_rows, machine, resource_rows
from .roofline import GpuRoofline

__all__ = ["as_html"]


def as_html(found: GpuProfile) -> str:
    """The whole page."""
    title = f"{found.name} for {found.target}"
    parts = [f'<h1>{escape(title)}</h1><p class="quiet">{escape(machine(found))}</p>']
    if found.is_simulated:
        parts.append(f"<p>{escape(SIMULATED)}</p>")
    parts += [
        "<h2>Where the time on the GPU goes</h2>",
        bars(
            [
                ("between", found.between, "#888888"),
                *((f"kernel {k.number}", k.seconds.median, colour(k.number)) for k in found.kernels),
            ]
        ),
        f"<h2>Kernels</h2>{table(kernel_rows(found))}",
        f"<h2>What they take</h2>{table(resource_rows(found))}",
    ]
    if found.roofline is not None:
        parts += ["<h2>Roofline</h2>", _chart(found, found.roofline)]
    parts += [
        "<h2>Lines</h2>",
        lines(found.lines),
        f'<h2>As text</h2><pre class="wide">{escape(as_text(found))}</pre>',
    ]
    return page(title, "\n".join(parts))


def _chart(found: GpuProfile, limits: GpuRoofline) -> str:
    """The kernels beside the GPU's limits."""
    points = [
        Point(f"kernel {k.number}", k.intensity, k.flops_per_second, colour(k.number)) for k in found.kernels
    ]
    words = f"The limits of {limits.gpu}; its memory copies {rate(limits.limits.copy, 'B/s')}."
    return f'{roof(points, limits.peaks, limits.levels)}<p class="quiet">{escape(words)}</p>'
