"""What rows come to: geometric means, losses; and times in words."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from functools import partial

from .results import Results, Row, Time
from .tasks import OURS

__all__ = [
    "BEST",
    "answers",
    "ceilings",
    "columns",
    "groups",
    "losses",
    "means",
    "named",
    "of",
    "ordered",
    "peers",
    "seconds",
    "summary",
    "where",
]

BEST = "the best of them"


def groups(results: Results) -> dict[tuple[str, int], list[Row]]:
    """The rows by suite and number of threads."""
    found: dict[tuple[str, int], list[Row]] = {}
    for row in results.rows:
        found.setdefault((row.suite, row.threads), []).append(row)
    return found


def peers(rows: Sequence[Row]) -> list[str]:
    """Those who have an entry in any row, but for ourselves."""
    return [peer for peer in dict.fromkeys(peer for row in rows for peer in row.times) if peer != OURS]


def means(rows: Sequence[Row]) -> dict[str, float]:
    """How many times as fast as each peer, and as the best in each row, we are in the geometric mean."""
    found = {peer: [ratio for row in rows if (ratio := row.ratio(peer))] for peer in peers(rows)}
    found[BEST] = [ratio for row in rows if (ratio := row.ratio(row.best))]
    return {peer: statistics.geometric_mean(ratios) for peer, ratios in found.items() if ratios}


def losses(rows: Sequence[Row]) -> list[Row]:
    """The rows in which a peer is faster, the worst first."""
    lost = [row for row in rows if (ratio := row.ratio(row.best)) and ratio < 1]
    return sorted(lost, key=lambda row: row.ratio(row.best) or 0)


def ordered(rows: Sequence[Row]) -> list[Row]:
    """The losses, the worst first, then the others as they are."""
    lost = losses(rows)
    return [*lost, *(row for row in rows if row not in lost)]


def summary(rows: Sequence[Row]) -> str:
    """The means in a sentence."""
    found = ", ".join(f"{mean:.2f} times {peer}" for peer, mean in means(rows).items())
    return f"Our speed in the geometric mean: {found}" if found else "There is nothing to compare with"


def against(row: Row, peer: str) -> str:
    """A peer's time, and how many times as fast we are."""
    time = row.times.get(peer)
    if time is None or time.error:
        return "" if time is None else "error"
    ratio = row.ratio(peer)
    return f"{seconds(time.median)} ({ratio:.2f})" if ratio else seconds(time.median)


def columns(results: Results, rows: Sequence[Row]) -> list[tuple[str, Callable[[Row], str]]]:
    """What a table of the rows shows after their titles: a heading, and what is under it."""
    ours = [row.times.get(OURS, Time()) for row in rows]
    found: list[tuple[str, Callable[[Row], str]]] = []
    if any(time.first == time.first for time in ours):
        found.append(("first call", lambda row: seconds(row.times.get(OURS, Time()).first)))
    found.append((OURS, lambda row: seconds(row.times.get(OURS, Time()).median)))
    found.append(("±, samples", lambda row: spread(row.times.get(OURS, Time()))))
    if results.gpu and results.gpu.roofline:
        found.append(("GB/s", lambda row: rate(row.moved / row.times.get(OURS, Time()).median / 1e9)))
        found.append(
            ("TFLOP/s", lambda row: rate(row.operations / row.times.get(OURS, Time()).median / 1e12))
        )
    if any(results.reached(row) for row in rows):
        found.append(("of the limit", lambda row: percent(results.reached(row) or math.nan)))
    if any(row.answer for row in rows):
        found.append(("answer", lambda row: seconds(row.answer or math.nan)))
    found.append(("ratio to best", lambda row: f"{ratio:.2f}" if (ratio := row.ratio(row.best)) else ""))
    return found + [(peer, partial(against, peer=peer)) for peer in peers(rows)]


def spread(time: Time) -> str:
    """How far apart the samples are, and how many there are."""
    return ", ".join(filter(None, (percent(time.spread), f"{time.samples or ''}")))


def rate(value: float) -> str:
    """With three digits."""
    return f"{float(f'{value:.3g}'):,.12g}" if value > 0 else ""


def ceilings(results: Results) -> list[str]:
    """What bounds the rows of a GPU: the fastest copy and products by a library in this run, and the limits
    that our own kernels have reached in it."""
    if results.gpu is None or results.gpu.roofline is None:
        return []
    limits = results.gpu.roofline.limits
    found = []
    for row in results.rows:
        if row.name in ("copy", "matmul") and row.best:
            seconds = row.times[row.best].median
            amount = f"{rate(row.moved / seconds / 1e9)} GB/s"
            if row.name == "matmul":
                amount = f"{rate(row.operations / seconds / 1e12)} TFLOP/s"
            found.append(f"{row.title} by {row.best}: {amount}")
    peaks = ", ".join(f"{name} {rate(peak / 1e12)}" for name, peak in results.gpu.roofline.peaks.items())
    ours = f"copy {rate(limits.copy / 1e9)} GB/s; TFLOP/s: {peaks}"
    return [*found, f"by arrayjit's own kernels, timed by events: {ours}"]


def answers(results: Results) -> list[str]:
    """In what time cores answered one another while rows on several threads were measured."""
    found: dict[int, list[float]] = {}
    for row in results.rows:
        if row.answer:
            found.setdefault(row.threads, []).append(row.answer)
    return [
        f"{of(threads)}: a core answers another in {seconds(statistics.median(times))}, in single rows in "
        f"{seconds(min(times))} to {seconds(max(times))}"
        for threads, times in found.items()
    ]


def percent(fraction: float) -> str:
    return "" if math.isnan(fraction) else f"{fraction:.0%}"


def of(threads: int) -> str:
    return f"{threads} thread{'s' * (threads > 1)}"


def where(results: Results, threads: int) -> str:
    """What a group of rows was measured on."""
    return results.gpu.name if results.gpu else of(threads)


def named(results: Results, row: Row) -> str:
    """A row with its suite and what it was measured on."""
    return f"{row.suite}: {row.title}, {where(results, row.threads)}"


def seconds(value: float) -> str:
    """With three digits, and a unit that suits them."""
    if math.isnan(value):
        return ""
    value = float(f"{value:.3g}")
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value / 1e-9:.3g} ns"
