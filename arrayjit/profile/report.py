"""A profile as text."""

from __future__ import annotations

from collections.abc import Sequence

from .columns import columns
from .counters import Refused
from .lines import Line
from .measure import Spread
from .profiled import Profile
from .rates import PartRates

__all__ = [
    "SPEED",
    "aligned",
    "as_text",
    "duration",
    "line_rows",
    "part_rows",
    "rate",
    "share",
    "speed",
    "spread",
    "title",
]

SPEED = "GFLOP/s", "GB/s", "flops/B", "limit", "of it"
"""The heads of what `speed` gives."""

MOST_LINES = 20
"""Of the user's, in a text."""


def as_text(found: Profile) -> str:
    """Tables: the call, the parts, the lines."""
    sections = [
        [f"{found.name} for {found.target} on {found.machine}"],
        list(_call(found)),
        columns(part_rows(found)),
        line_rows(found.lines),
        list(_counters(found)),
        list(_notes(found)),
    ]
    return "\n\n".join("\n".join(section) for section in sections if section)


def _call(found: Profile) -> Sequence[str]:
    rows: list[tuple[str, str, str]] = []
    call = found.call
    if isinstance(call, Refused):
        rows.append(("a call", "", call.why))
    else:
        rows.append(("a call", duration(call.median), spread(call)))
        words = "all else: finding the code, checking arguments"
        rows.append(("  dispatch", duration(found.dispatch or 0.0), words))
    rows.append(("  allocation", duration(found.allocation), "memory for results, made and touched first"))
    flops, moved = rate(found.flops_per_second, "FLOP/s"), rate(found.bytes_per_second, "B/s")
    functions = " and elementary functions" if found.cost.functions else ""
    rows.append(("  native code", duration(found.native.median), spread(found.native)))
    rows.append(("", "", f"{flops}{functions}, {moved} of arguments and results"))
    return aligned(rows)


def aligned(rows: Sequence[tuple[str, str, str]]) -> list[str]:
    """What is timed, its time, and words on it."""
    width = max(len(row[0]) for row in rows)
    middle = max(len(row[1]) for row in rows)
    return [f"{name.ljust(width)}  {time.rjust(middle)}  {words}".rstrip() for name, time, words in rows]


def part_rows(found: Profile) -> list[tuple[str, ...]]:
    """The table of the parts, its head first; nothing where there are none."""
    total = sum(part.seconds.median for part in found.parts)
    rows: list[tuple[str, ...]] = [("part", "time", "share", "runs", *SPEED, "threads", "lanes")]
    for part in found.parts:
        name, runs = title(part.number, part.lines, "loops"), f"{part.runs:,.0f}"
        rows.append((name, *share(part, total), runs, *speed(part), str(part.threads), str(part.lanes)))
    return rows if found.parts else []


def share(part: PartRates, total: float) -> tuple[str, str]:
    """Its time, and how much of all time that is."""
    seconds = part.seconds.median
    return duration(seconds), f"{seconds / total:.0%}" if total else ""


def speed(part: PartRates) -> tuple[str, str, str, str, str]:
    """What it does in a second, beside its limits."""
    return (
        f"{part.flops_per_second / 1e9:.2f}",
        f"{part.bytes_per_second / 1e9:.2f}",
        f"{part.intensity:.2f}",
        part.bound or "unknown",
        "" if part.fraction is None else f"{part.fraction:.0%}",
    )


def title(number: int, lines: Sequence[Line], otherwise: str) -> str:
    """A part by its number and the lines that most of it is for."""
    numbers = sorted({line.loc.line for line in lines if line.share >= 0.1})
    return f"{number}: " + ("line " + ", ".join(map(str, numbers)) if numbers else otherwise)


def line_rows(lines: Sequence[Line]) -> list[str]:
    """The user's lines with their shares, under a heading."""
    rows = [(f"{line.share:.0%}".rjust(4), str(line.loc), line.source) for line in lines[:MOST_LINES]]
    if not rows:
        return []
    width = max(len(row[1]) for row in rows)
    return [
        "share of the time, by the work of each line in its part",
        *(f"{share}  {place.ljust(width)}  {source}" for share, place, source in rows),
    ]


def _counters(found: Profile) -> Sequence[str]:
    if isinstance(found.counters, Refused):
        return [found.counters.why]
    rows = [(name, f"{count:,.0f}") for name, count in found.counters.items()]
    cycles, instructions = found.counters.get("cycles", 0.0), found.counters.get("instructions", 0.0)
    if cycles:
        rows.append(("instructions per cycle", f"{instructions / cycles:.2f}"))
    return columns([("of the calling thread, per run", ""), *rows])


def _notes(found: Profile) -> Sequence[str]:
    notes = [f"the clock between the parts costs {max(found.clock_overhead, 0.0):.1%} of the time"]
    if any(part.fraction is not None and part.fraction > 1.1 for part in found.parts):
        notes.append(
            "more than a limit: data lay nearer than its size says, or the machine was busy when its limits "
            "were measured (`python -m arrayjit doctor --limits` measures them again)"
        )
    return notes


def spread(seconds: Spread) -> str:
    """The quartiles in words."""
    return f"{duration(seconds.low)} to {duration(seconds.high)} in half of {seconds.count} runs"


def duration(seconds: float) -> str:
    """Three digits and a unit."""
    seconds = float(f"{seconds:.3g}")  # which may be a whole one
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def rate(value: float, unit: str) -> str:
    """With three digits, and the prefix that leaves few before the point."""
    value = float(f"{value:.3g}")
    for prefix, scale in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if value >= scale:
            return f"{value / scale:.3g} {prefix}{unit}"
    return f"{value:.3g} {unit}"
