"""A profile of a GPU's kernels as a page that needs no other file."""

from __future__ import annotations

from html import escape

from ..figures import Point, bars, colour, document, roof, table
from ..report import rate
from .profiled import GpuProfile
from .report import SIMULATED, kernel_rows, machine, resource_rows
from .roofline import GpuRoofline

__all__ = ["as_html"]


def as_html(found: GpuProfile) -> str:
    """The whole page."""
    return document(
        found,
        machine(found),
        [
            ("A simulation", f"<p>{escape(SIMULATED)}</p>" if found.is_simulated else ""),
            ("Where the time on the GPU goes", _times(found)),
            ("Kernels", table(kernel_rows(found))),
            ("What they take", table(resource_rows(found))),
            ("Roofline", "" if found.roofline is None else _chart(found, found.roofline)),
        ],
    )


def _times(found: GpuProfile) -> str:
    """What is between the kernels, and each of them."""
    kernels = ((f"kernel {k.number}", k.seconds.median, colour(k.number)) for k in found.kernels)
    return bars([("between", found.between, "#888888"), *kernels])


def _chart(found: GpuProfile, limits: GpuRoofline) -> str:
    """The kernels beside the GPU's limits."""
    points = [
        Point(f"kernel {k.number}", k.intensity, k.flops_per_second, colour(k.number)) for k in found.kernels
    ]
    words = f"The limits of {limits.gpu}; its memory copies {rate(limits.limits.copy, 'B/s')}."
    return f'{roof(points, limits.peaks, limits.levels)}<p class="quiet">{escape(words)}</p>'
