"""Results as drawings: each is the text of an SVG element, whose colours are those of the page around it.

The axes are logarithmic, so that twice as fast is as far from the middle as half as fast.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from ..profile.roofline import Roofline
from .results import Results, Row
from .standings import BEST, groups, means, peers, seconds, where
from .tasks import OURS

__all__ = ["COLOURS", "compiling", "overview", "ratios", "roofline", "sizes", "threads"]

COLOURS = {
    OURS: "#e4572e", "numpy": "#4c86c6", "numba": "#2fa37c", "numexpr": "#8a8f98", "jax": "#a463c9",
    "torch": "#d8992b", "torch.compile": "#b0703c", BEST: "#e4572e",
}  # fmt: skip
OTHER = "#5fb3b3"
INK, FAINT, LOSS = "#0a0b0c", "#0b0c0d", "#0c0d0e"
"""They stand for the page's own colours."""
PAGE_COLOURS = {INK: "var(--ink)", FAINT: "var(--line)", LOSS: "var(--loss)"}
STYLE: Any = {
    "svg.fonttype": "none", "font.family": "sans-serif", "font.size": 9.0, "savefig.transparent": True,
    "text.color": INK, "axes.labelcolor": INK, "xtick.color": INK, "ytick.color": INK,
    "axes.edgecolor": FAINT, "grid.color": FAINT, "grid.linewidth": 0.6, "axes.grid": True,
    "axes.axisbelow": True, "axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False,
}  # fmt: skip
WIDTH = 9.0


def drawn(name: str, make: Callable[[], Figure]) -> str:
    """The drawing without what only a file of its own would need."""
    with rc_context({**STYLE, "svg.hashsalt": name}):
        text = io.StringIO()
        make().savefig(text, format="svg", bbox_inches="tight", metadata={"Date": None, "Creator": None})
    svg = text.getvalue()
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg[svg.index("<svg") :], flags=re.DOTALL)
    for stand_in, colour in PAGE_COLOURS.items():
        svg = svg.replace(stand_in, colour)
    width = re.search(r'width="([\d.]+)pt" height="[\d.]+pt"', svg)
    assert width is not None
    svg = svg.replace(width[0], f'style="max-width: {width[1]}pt"', 1)
    return re.sub(r"font: ([\d.]+)px[^;\"]*", r"font: \1px sans-serif", svg)


def blank(height: float, columns: int = 1, rows: int = 1, **rest: Any) -> tuple[Figure, Any]:
    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False, **rest)


def colour(peer: str) -> str:
    return COLOURS.get(peer, OTHER)


def times(value: float, _: object = None) -> str:
    return f"{value:g}x"


def plain(value: float, _: object = None) -> str:
    return f"{value:g}"


def ratio_axis(axes: Axes, ratios: Iterable[float]) -> None:
    """Of how many times as fast we are; what is left of 1 is lost."""
    found = [ratio for ratio in ratios if ratio > 0] or [1.0]
    low, high = min(*found, 0.8), max(*found, 1.25)
    axes.set_xscale("log")
    axes.set_xlim(low / 1.15, high * 1.15)
    axes.axvspan(low / 2, 1, color=LOSS, alpha=0.12, linewidth=0)
    axes.axvline(1, color=INK, linewidth=1)
    logarithmic(axes.xaxis, times, high / low)
    axes.set_xlabel("how many times as fast as the peer arrayjit is")


def logarithmic(axis: Any, words: Callable[..., str], span: float) -> None:
    axis.set_major_locator(LogLocator(10, subs=(1, 2, 5) if span < 500 else (1,)))
    axis.set_major_formatter(FuncFormatter(words))
    axis.set_minor_formatter(NullFormatter())


def dots(axes: Axes, lines: Sequence[tuple[str, Mapping[str, float]]], names: Sequence[str]) -> None:
    """A line for each title, with a dot for each peer, from above."""
    for number, (_, found) in enumerate(lines):
        axes.hlines(number, min(found.values()), max(found.values()), color=FAINT, linewidth=1.2, zorder=1)
    for name in names:
        points = [(found[name], number) for number, (_, found) in enumerate(lines) if name in found]
        marker = "D" if name == BEST else "o"
        x, y = zip(*points, strict=True)
        axes.scatter(x, y, 24, color=colour(name), marker=marker, label=name, zorder=2, linewidths=0)
    axes.set_yticks(range(len(lines)), [title for title, _ in lines])
    axes.set_ylim(len(lines) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.grid(False, axis="y")
    ratio_axis(axes, [ratio for _, found in lines for ratio in found.values()])
    axes.figure.legend(*axes.get_legend_handles_labels(), loc="outside upper center", ncols=len(names))


def overview(results: Results) -> str:
    """The geometric means of each suite, for each peer."""
    found = groups(results).items()
    lines = [(f"{suite}, {where(results, count)}", means(rows)) for (suite, count), rows in found]
    lines = [(title, found) for title, found in lines if found]
    names = [*peers(results.rows), BEST]

    def make() -> Figure:
        figure, axes = blank(0.32 * len(lines) + 1.1)
        dots(axes[0, 0], lines, [name for name in names if any(name in found for _, found in lines)])
        return figure

    return drawn("overview", make) if lines else ""


def ratios(name: str, rows: Sequence[Row]) -> str:
    """Every row of a suite, for each peer: what is lost first."""
    found = [
        (row.title, {peer: ratio for peer in peers([row]) if (ratio := row.ratio(peer))}) for row in rows
    ]
    lines = sorted(
        ((title, ratios) for title, ratios in found if ratios), key=lambda line: min(line[1].values())
    )

    def make() -> Figure:
        figure, axes = blank(0.21 * len(lines) + 1.1)
        dots(axes[0, 0], lines, [peer for peer in peers(rows) if any(peer in ratios for _, ratios in lines)])
        return figure

    return drawn(f"ratios {name}", make) if lines else ""


def sizes(name: str, rows: Sequence[Row]) -> str:
    """How fast everybody is on arrays of several sizes, for the programs that were measured on such."""
    series: dict[str, list[Row]] = {}
    for row in rows:
        if row.size.isdigit() and row.moved:
            series.setdefault(f"{row.name} {row.dtype}", []).append(row)
    shown = {
        title: sorted(taken, key=lambda row: int(row.size))
        for title, taken in series.items()
        if len(taken) > 2
    }

    def make() -> Figure:
        high = math.ceil(len(shown) / 2)
        figure, axes = blank(2.3 * high + 0.5, columns=2, rows=high)
        for place, (title, taken) in zip(axes.flat, shown.items(), strict=False):
            growth(place, title, taken)
        for place in list(axes.flat)[len(shown) :]:
            place.set_axis_off()
        handles = {
            label: handle
            for place in axes.flat
            for handle, label in zip(*place.get_legend_handles_labels(), strict=True)
        }
        figure.legend(handles.values(), handles.keys(), loc="outside upper center", ncols=len(handles))
        return figure

    return drawn(f"sizes {name}", make) if shown else ""


def growth(axes: Axes, title: str, rows: Sequence[Row]) -> None:
    """One program on arrays of several sizes: operations per second, or bytes if there are few operations."""
    is_dense = all(sum(row.flops.values()) > 8 * row.moved for row in rows)
    for peer in (OURS, *peers(rows)):
        points = [
            (
                int(row.size),
                (sum(row.flops.values()) if is_dense else row.moved) / row.times[peer].median / 1e9,
            )
            for row in rows
            if peer in row.times and not row.times[peer].error
        ]
        if points:
            width = 2.2 if peer == OURS else 1.2
            x, y = zip(*points, strict=True)
            axes.plot(x, y, "o-", color=colour(peer), label=peer, linewidth=width, markersize=3.5)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_title(title, fontsize=9, color=INK)
    axes.set_ylabel("GFLOP/s" if is_dense else "GB/s")
    axes.set_xticks([int(row.size) for row in rows], [f"{int(row.size):,}" for row in rows])
    axes.xaxis.set_minor_formatter(NullFormatter())
    logarithmic(axes.yaxis, plain, axes.get_ylim()[1] / axes.get_ylim()[0])


def strips(axes: Axes, lines: Sequence[tuple[str, str, Sequence[float]]]) -> None:
    """A line for each title and peer: a dot for each value, and a bar for their geometric mean."""
    for number, (_, peer, values) in enumerate(lines):
        axes.scatter(values, [number] * len(values), color=colour(peer), s=16, alpha=0.45, linewidths=0)
        mean = math.exp(sum(map(math.log, values)) / len(values))
        axes.plot([mean, mean], [number - 0.36, number + 0.36], color=colour(peer), linewidth=2.6)
    axes.set_yticks(range(len(lines)), [title for title, _, _ in lines])
    axes.set_ylim(len(lines) - 0.4, -0.6)
    axes.set_xscale("log")
    axes.tick_params(axis="y", length=0)
    axes.grid(False, axis="y")


def threads(results: Results) -> str:
    """How many times as fast everybody is on all threads as on one, in every row that was measured on
    both."""
    most = max((row.threads for row in results.rows), default=1)
    alone = {row.key[:4]: row for row in results.rows if row.threads == 1}
    lines: dict[tuple[str, str], list[float]] = {}
    for row in results.rows:
        one = alone.get(row.key[:4])
        if row.threads == most > 1 and one is not None:
            for peer in row.times.keys() & one.times.keys():
                if not row.times[peer].error and not one.times[peer].error:
                    lines.setdefault((row.suite, peer), []).append(
                        one.times[peer].median / row.times[peer].median
                    )
    suites = dict.fromkeys(suite for suite, _ in lines)
    order = [
        (suite, peer) for suite in suites for peer in (OURS, *peers(results.rows)) if (suite, peer) in lines
    ]

    def make() -> Figure:
        figure, axes = blank(0.21 * len(order) + 0.9)
        strips(axes[0, 0], [(f"{suite}, {peer}", peer, lines[suite, peer]) for suite, peer in order])
        axes[0, 0].axvline(1, color=INK, linewidth=1)
        logarithmic(axes[0, 0].xaxis, times, 10)
        axes[0, 0].set_xlabel(f"how many times as fast {most} threads are as one")
        return figure

    return drawn("threads", make) if order else ""


def compiling(results: Results) -> str:
    """What the first call takes longer than a later one, by everybody who compiles."""
    found: dict[str, list[float]] = {}
    for row in results.rows:
        for peer, time in row.times.items():
            if time.compiling > 0 and not time.error and row.threads == 1 and row.flops:
                found.setdefault(peer, []).append(time.compiling)
    lines = [
        (peer, peer, found[peer])
        for peer in (OURS, *peers(results.rows))
        if middle(found.get(peer, [])) > 5e-3
    ]

    def make() -> Figure:
        figure, axes = blank(0.26 * len(lines) + 0.9)
        strips(axes[0, 0], lines)
        logarithmic(axes[0, 0].xaxis, lambda value, _: seconds(value), 1e4)
        axes[0, 0].set_xlabel("what the first call takes longer than a later one")
        return figure

    return drawn("compiling", make) if lines else ""


def middle(values: Sequence[float]) -> float:
    return sorted(values)[len(values) // 2] if values else 0.0


def roofline(roof: Roofline, rows: Sequence[Row]) -> str:
    """Operations per second against operations per byte: our rows under the limits of the machine."""
    shown = [
        row
        for row in rows
        if any(row.flops.values()) and row.moved and OURS in row.times and not row.times[OURS].error
    ]
    points = {
        suite: [
            (sum(row.flops.values()) / row.moved, sum(row.flops.values()) / row.times[OURS].median / 1e9)
            for row in shown
            if row.suite == suite
        ]
        for suite in dict.fromkeys(row.suite for row in shown)
    }

    def make() -> Figure:
        figure, axes = blank(4.2)
        place = axes[0, 0]
        every = [x for taken in points.values() for x, _ in taken]
        low, high = min(*every, 0.1) / 2, max(*every, 10.0) * 2
        roofs(place, roof, low, high)
        for (suite, taken), peer in zip(
            points.items(), ("numba", "jax", OURS, "torch", "numpy", "cupy"), strict=False
        ):
            place.scatter(
                *zip(*taken, strict=True), s=20, color=colour(peer), label=suite, zorder=3, linewidths=0
            )
        place.set_xscale("log")
        place.set_yscale("log")
        place.set_xlim(low, high)
        place.set_xlabel("floating-point operations for each byte that has to be moved")
        place.set_ylabel("GFLOP/s")
        for axis in (place.xaxis, place.yaxis):
            logarithmic(axis, plain, 1e4)
        figure.legend(loc="outside upper center", ncols=len(points))
        return figure

    return drawn(f"roofline {roof.threads}", make) if points else ""


def roofs(axes: Axes, roof: Roofline, low: float, high: float) -> None:
    """The peaks are flat, the bandwidths rise until the higher peak."""
    peaks = {dtype: roof.peak(dtype) / 1e9 for dtype in ("float32", "float64")}
    for dtype, peak in peaks.items():
        axes.hlines(peak, low, high, color=INK, linewidth=1.1)
        axes.text(high, peak * 1.06, f"{dtype}, {peak:.0f} GFLOP/s", ha="right", va="bottom", fontsize=8)
    for level in roof.levels:
        rate, most = level.rate / 1e9, max(peaks.values())
        axes.plot([low, most / rate], [low * rate, most], color=INK, linewidth=0.9, linestyle="--")
    levels = ", ".join(f"{level.name} {level.rate / 1e9:.0f} GB/s" for level in roof.levels)
    axes.text(0.99, 0.03, f"dashed: {levels}", transform=axes.transAxes, ha="right", fontsize=8)
