"""Results that are kept by name, and what has become slower since."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from ..errors import UserError
from ..frozen import frozen
from .results import Results, Row
from .tasks import OURS

__all__ = ["Change", "changes", "keep", "kept"]

FOLDER = Path(".benchmarks") / "arrayjit"
"""Beside what pytest-benchmark keeps."""
YARDSTICK = "numpy"


@frozen
class Change:
    """How many times as long a row takes as it did, and whether that is more than the spread of its samples
    explains. `is_relative`: NumPy's time, then and now, was the yardstick."""

    row: Row
    factor: float
    is_clear: bool
    is_relative: bool


def keep(results: Results, name: str) -> Path:
    """Keep results by a name, or in a file. Raises UserError where it cannot be written."""
    path = place(name)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(results.as_json())
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}", fix="choose another place") from error
    return path


def kept(name: str) -> Results:
    """What was kept by a name, or in a file. Raises UserError where there is no such thing."""
    path = place(name)
    try:
        return Results.from_json(path.read_text())
    except FileNotFoundError as error:
        there = ", ".join(sorted(file.stem for file in FOLDER.glob("*.json"))) or "nothing"
        raise UserError(
            f"{path} does not exist; saved are: {there}", fix="save it first: --save NAME"
        ) from error
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"{path} cannot be read: {error}", fix="save it again: --save NAME") from error


def place(name: str) -> Path:
    """Names are files of a folder here; what looks like a path is one."""
    return Path(name) if "/" in name or name.endswith(".json") else FOLDER / f"{name}.json"


def changes(now: Results, then: Results) -> list[Change]:
    """Of the rows that are in both, the greatest slowdown first.

    Both times are divided by NumPy's in the same row where both have one, so that the machine and its load
    count less.
    """
    before = {row.key: row for row in then.rows}
    found = [change for row in now.rows if row.key in before and (change := changed(row, before[row.key]))]
    return sorted(found, key=lambda change: -change.factor)


def changed(row: Row, before: Row) -> Change | None:
    new, old = row.times.get(OURS), before.times.get(OURS)
    if new is None or old is None or math.isnan(new.median) or math.isnan(old.median):
        return None
    scale = yardstick([before, row])
    return Change(
        row, new.median / old.median * (scale or 1.0), is_clear(row, before, scale), scale is not None
    )


def yardstick(rows: Sequence[Row]) -> float | None:
    """NumPy's time in the first row as a fraction of that in the second."""
    first, second = (row.times.get(YARDSTICK) for row in rows)
    if first is None or second is None or first.error or second.error:
        return None
    return first.median / second.median


def is_clear(row: Row, before: Row, scale: float | None) -> bool:
    """Whether even the faster quarter of the samples is slower than the slower quarter was."""
    return row.times[OURS].low * (scale or 1.0) > before.times[OURS].high
