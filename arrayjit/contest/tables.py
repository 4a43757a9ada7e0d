"""Results in a terminal: a line for each row when it is there, then a table for each suite, losses first."""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from .journal import Journal
from .results import Results, Row, Time
from .saved import Change
from .standings import (
    answers,
    ceilings,
    columns,
    groups,
    losses,
    named,
    of,
    ordered,
    peers,
    seconds,
    summary,
    where,
)
from .tasks import OURS

__all__ = ["Watcher", "compared", "console", "printed", "text"]

WIDTH = 180
"""Where nobody looks at once."""


def console() -> Console:
    """Names of rows are text, brackets and all."""
    return Console(width=None if sys.stdout.isatty() else WIDTH, markup=False)


def text(results: Results) -> str:
    """What `printed` shows."""
    shown = Console(width=WIDTH, file=io.StringIO(), markup=False)
    printed(shown, results)
    return shown.file.getvalue()  # type: ignore[attr-defined, no-any-return]


class Watcher:
    """Shows how far a run has come: a bar, and above it the rows that are there."""

    def __init__(self, console: Console, total: int) -> None:
        words = TextColumn("{task.description}", markup=False)
        columns = (words, BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        # Drawing takes time of the cores that are measured.
        self._progress = Progress(*columns, console=console, transient=True, refresh_per_second=1)
        self._bar = self._progress.add_task("", total=total)
        self._shown: set[object] = set()

    def __enter__(self) -> Watcher:
        self._progress.start()
        return self

    def __exit__(self, *raised: object) -> None:
        self._progress.stop()

    def __call__(self, journal: Journal) -> None:
        for key, row in journal.rows.items():
            if key not in self._shown:
                self._shown.add(key)
                self._progress.console.print(told(row), style="red" if losses([row]) else "", highlight=False)
        words = ""
        if journal.current is not None:
            key, peer = journal.current
            row = Row(*key)
            words = f"{row.suite}: {row.title}, {peer or 'timing'}, {of(row.threads)}"
        self._progress.update(self._bar, description=words, completed=len(self._shown))


def told(row: Row) -> str:
    """A row in a line."""
    ours = row.times.get(OURS, Time())
    others = ", ".join(f"{peer} {ratio:.2f}" for peer in peers([row]) if (ratio := row.ratio(peer)))
    errors = ", ".join(f"{peer}: {time.error}" for peer, time in row.times.items() if time.error)
    title = f"{row.suite:10} {row.threads} {row.title:32.32}"
    return f"{title} {seconds(ours.median):>8}  {others}  {errors}".rstrip()


def printed(console: Console, results: Results) -> None:
    """A table for each suite and number of threads, then what is wrong and what is missing."""
    for (suite, threads), rows in groups(results).items():
        console.print(table(results, f"{suite} on {where(results, threads)}", rows))
    for words in (*ceilings(results), *answers(results)):
        console.print(words)
    for row, peer, error in results.errors:
        console.print(f"{named(results, row)}, {peer}: {error}", style="red")
    for remark in results.remarks:
        console.print(remark)
    if results.left:
        console.print(f"{len(results.left)} rows are left, for want of time; --resume measures them")


def table(results: Results, title: str, rows: Sequence[Row]) -> Table:
    """Losses come first, in red."""
    made = Table(title=f"{title}, losses first", caption=summary(rows), box=SIMPLE_HEAD)
    made.add_column("", no_wrap=True)
    shown = columns(results, rows)
    for heading, _ in shown:
        made.add_column(heading, justify="right")
    for row in ordered(rows):
        made.add_row(row.title, *(cell(row) for _, cell in shown), style="red" if losses([row]) else "")
    return made


def compared(console: Console, changes: Sequence[Change], threshold: float) -> bool:
    """Show what has changed since; whether something has become slower by more than the threshold."""
    slower = [change for change in changes if change.factor > threshold and change.is_clear]
    made = Table(
        title=f"now and then: {len(changes)} rows, of which {len(slower)} are slower", box=SIMPLE_HEAD
    )
    made.add_column("")
    for heading in ("times as long", "measured by"):
        made.add_column(heading, justify="right")
    for change in changes:
        if change.factor > threshold or change.factor < 1 / threshold:
            by = "NumPy, then and now" if change.is_relative else "seconds"
            title = f"{change.row.suite}: {change.row.title}, {of(change.row.threads)}"
            made.add_row(title, f"{change.factor:.2f}", by, style="red" if change in slower else "")
    console.print(made)
    return bool(slower)
