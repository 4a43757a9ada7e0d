"""What a run has done so far, in a file of JSON lines, which outlives the processes that measure.

{"begun": [suite, name, size, dtype, threads], "peer": name}     this is being measured
{"row": {...}}                                                   a row is complete
{"failed": [...], "peer": name, "error": words}                  a process ended in it
{"roofline": {...}}   {"gpu": {...}}   {"remark": words}
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ..profile.roofline import Roofline
from .gpu import Gpu
from .results import Key, Row, roofline_from_json

__all__ = ["Journal"]


class Journal:
    """The file, and what has been read of it. Several processes may append to it, of which one reads."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows: dict[Key, Row] = {}
        self.failed: dict[Key, dict[str, str]] = {}
        self.rooflines: dict[int, Roofline] = {}
        self.gpu: Gpu | None = None
        self.remarks: dict[str, None] = {}
        self.current: tuple[Key, str] | None = None
        self._read = 0

    def has(self, key: Key) -> bool:
        """Whether a row was measured, or cannot be."""
        return key in self.rows or "" in self.failed.get(key, {})

    def hurried(self, keys: Iterable[Key], samples: int) -> list[Row]:
        """The rows of these with an entry of fewer samples than that; the short ones first."""
        rows = [self.rows[key] for key in keys if key in self.rows]
        few = [
            row
            for row in rows
            if any(time.samples < samples and not time.error for time in row.times.values())
        ]
        return sorted(few, key=lambda row: row.seconds(samples))

    def append(self, **entry: Any) -> None:
        with self.path.open("a") as file:
            file.write(
                f"\n{json.dumps(entry)}\n"
            )  # what is before it may be half a line of a process that died

    def follow(self) -> bool:
        """Read what has been appended; whether something was."""
        if not self.path.exists():
            return False
        with self.path.open("rb") as file:
            file.seek(self._read)
            added = file.read()
        whole = added[: added.rfind(b"\n") + 1]  # a line may be half written
        self._read += len(whole)
        for line in whole.splitlines():
            if line.startswith(b"{") and line.endswith(b"}"):
                self._take(json.loads(line))
        return bool(whole)

    def _take(self, entry: dict[str, Any]) -> None:
        match entry:
            case {"begun": key, "peer": peer}:
                self.current = tuple(key), peer
            case {"row": row}:
                taken = Row.from_json(row)
                self.rows[taken.key] = taken
                self.current = None
            case {"failed": key, "peer": peer, "error": error}:
                self.failed.setdefault(tuple(key), {})[peer] = error
                self.current = None
            case {"roofline": read}:
                measured = roofline_from_json(read)
                self.rooflines[measured.threads] = measured
            case {"gpu": read}:
                self.gpu = Gpu.from_json(read)
            case {"remark": words}:
                self.remarks[words] = None
            case _:
                raise ValueError(f"{self.path} has a line that is none of a journal's: {entry}")
