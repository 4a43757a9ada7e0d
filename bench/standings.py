"""What the rows of a contest come to: a table, a page in Markdown, geometric means, losses."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence

from contest import OURS, Row, Time
from machine import Limits
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

__all__ = ["markdown", "means", "printed", "remarks"]

BEST = "the best of them"
COMPILERS = (OURS, "numba", "jax", "torch.compile")

PAGE = """\
# {suite}

On {machine}.

Medians of at least 7 samples, the entries of a row taken in turn, each checked against NumPy first. One
thread is measured by the time that the processor spends, several by the time that passes, after a pause in
which the threads of the entry before go to sleep, and calls in which its own wake. After a peer's time is how
many times as fast arrayjit is; "first" is arrayjit's first call, which compiles. Written by
`python bench/comparison.py {suite}`.
"""


def means(rows: Sequence[Row]) -> dict[str, float]:
    """How many times as fast as each peer, and as the best in each row, we are in the geometric mean."""
    peers = [peer for peer in columns(rows) if peer != OURS]
    found = {peer: [ratio for row in rows if (ratio := row.ratio(peer))] for peer in peers}
    found[BEST] = [ratio for row in rows if (ratio := row.ratio(row.best))]
    return {peer: statistics.geometric_mean(ratios) for peer, ratios in found.items() if ratios}


def losses(rows: Sequence[Row]) -> list[Row]:
    """The rows in which a peer is faster, the worst first."""
    lost = [row for row in rows if (ratio := row.ratio(row.best)) and ratio < 1]
    return sorted(lost, key=lambda row: row.ratio(row.best) or 0)


def columns(rows: Sequence[Row]) -> list[str]:
    """The peers that have an entry in any row, in the order of the table of peers."""
    return list(dict.fromkeys(peer for row in rows for peer in row.times))


def printed(console: Console, suite: str, rows: Sequence[Row], machine: Limits) -> None:
    threads = rows[0].threads
    table = Table(
        title=f"{suite} on {threads} thread(s), losses first", caption=summary(rows), box=SIMPLE_HEAD
    )
    table.add_column("", no_wrap=True)
    for heading in headings(rows):
        table.add_column(heading, justify="right", no_wrap=True)
    lost = losses(rows)
    for row in [*lost, *(row for row in rows if row not in lost)]:
        table.add_row(title(row), *cells(row, columns(rows), machine), style="red" if row in lost else "")
    console.print(table)
    for remark in remarks(rows):
        console.print(remark, markup=False)


def markdown(suite: str, rows: Sequence[Row], machine: Mapping[int, Limits], words: str) -> str:
    lines = [PAGE.format(suite=suite, machine=words)]
    for threads, measured in machine.items():
        taken = [row for row in rows if row.threads == threads]
        lines += [
            f"## {threads} thread{'s' * (threads > 1)}\n",
            f"{reached(measured)}\n",
            f"{summary(taken)}.\n",
        ]
        lost = [f"{title(row)} ({row.ratio(row.best):.2f}, {row.best})" for row in losses(taken)]
        lines.append(f"Losses: {', '.join(lost) or 'none'}.\n")
        heading = ["", *headings(taken)]
        lines += [line(heading), "|---" + "|--:" * (len(heading) - 1) + "|"]
        lines += [line([title(row), *cells(row, columns(taken), measured)]) for row in taken]
        lines += ["", *(f"- {remark}" for remark in remarks(taken)), ""]
        if suite == "kernels":
            lines += first_calls(taken)
    return "\n".join(lines)


def first_calls(rows: Sequence[Row]) -> list[str]:
    """What compiling a kernel costs, by each that does."""
    peers = [peer for peer in columns(rows) if peer in COMPILERS]
    times = [[row.times.get(peer, Time()).first for peer in peers] for row in rows]
    found = [[first for row in rows if (first := row.times.get(peer, Time()).first) > 0] for peer in peers]
    mean = [seconds(statistics.geometric_mean(firsts)) if firsts else "" for firsts in found]
    lines = ["First calls, which compile:\n", line(["", *peers]), "|---" + "|--:" * len(peers) + "|"]
    lines += [line([title(row), *map(seconds, firsts)]) for row, firsts in zip(rows, times, strict=True)]
    return [*lines, line(["geometric mean", *mean]), ""]


def line(words: Sequence[str]) -> str:
    return f"| {' | '.join(words)} |"


def reached(machine: Limits) -> str:
    """The limits in words."""
    return (
        f"Measured in the same run: {machine.float32 / 1e9:.0f} GFLOP/s in float32 and "
        f"{machine.float64 / 1e9:.0f} in float64; {machine.read / 1e9:.1f} GB/s read, "
        f"{machine.triad / 1e9:.1f} in a triad, {machine.streamed / 1e9:.1f} in one that writes past caches."
    )


def summary(rows: Sequence[Row]) -> str:
    found = ", ".join(f"{mean:.2f} times {peer}" for peer, mean in means(rows).items())
    return f"The speed in the geometric mean: {found}"


def remarks(rows: Sequence[Row]) -> Iterator[str]:
    """What is wrong with entries."""
    for row in rows:
        for peer, time in row.times.items():
            if time.error:
                yield f"{title(row)}, {peer}: {time.error}"


def title(row: Row) -> str:
    return " ".join(filter(None, (row.name, row.size, row.dtype.replace("float", "f"))))


def headings(rows: Sequence[Row]) -> list[str]:
    limit = ["of the limit"] if any(row.limit for row in rows) else []
    peers = [peer for peer in columns(rows) if peer != OURS]
    return ["first", "arrayjit", *limit, "ratio to best", *peers]


def cells(row: Row, peers: Sequence[str], machine: Limits) -> list[str]:
    """As many as there are headings."""
    ours = row.times.get(OURS, Time())
    shown = [seconds(ours.first), seconds(ours.median)]
    if row.limit:
        part = row.amount / ours.median / getattr(machine, row.limit)
        shown.append("" if math.isnan(part) else f"{part:.0%}")
    best = row.ratio(row.best)
    shown.append(f"{best:.2f}" if best else "")
    return shown + [against(row, peer) for peer in peers if peer != OURS]


def against(row: Row, peer: str) -> str:
    """A peer's time, and the ratio to it."""
    time = row.times.get(peer)
    if time is None or time.error:
        return "" if time is None else "error"
    ratio = row.ratio(peer)
    return f"{seconds(time.median)} ({ratio:.2f})" if ratio else seconds(time.median)


def seconds(value: float) -> str:
    """With three digits, and a unit that suits them."""
    if math.isnan(value):
        return ""
    value = float(f"{value:.3g}")
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value / 1e-6:.3g} µs"
