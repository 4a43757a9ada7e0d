"""What was measured: times, rows of them, and all the rows of a run with the machine that they are from."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, field
from typing import Any

from ..frozen import frozen
from ..profile.machine import Limits
from ..profile.roofline import Level, Roofline
from .gpu import Gpu
from .tasks import OURS

__all__ = ["Key", "Results", "Row", "Time", "roofline_from_json"]

Key = tuple[str, str, str, str, int]
"""Of a row: its task's, and the number of threads."""


@frozen
class Time:
    """Seconds: of the first call, which compiles; and of those after it the median, the quartiles around it,
    and the least, of so many samples. `difference` is how far the result is from NumPy's, as a fraction of
    its largest number. `error` says why there is no time."""

    first: float = math.nan
    median: float = math.nan
    low: float = math.nan
    high: float = math.nan
    least: float = math.nan
    samples: int = 0
    difference: float = math.nan
    error: str = ""

    @property
    def compiling(self) -> float:
        """What the first call takes longer than a later one."""
        return max(self.first - self.median, 0.0)

    @property
    def spread(self) -> float:
        """Half of the distance between the quartiles, as a fraction of the median."""
        return (self.high - self.low) / 2 / self.median


@frozen
class Row:
    """The times of all entries of a task, by the names of the peers; and where it was counted, how many
    floating-point operations our code does in a call, by dtype, and how many bytes of its arrays it has to
    move; of several threads, in how many seconds one core answered another right after."""

    suite: str
    name: str
    size: str
    dtype: str
    threads: int
    times: Mapping[str, Time] = field(default_factory=dict)
    flops: Mapping[str, int] = field(default_factory=dict)
    moved: int = 0
    answer: float = 0.0

    @property
    def key(self) -> Key:
        return self.suite, self.name, self.size, self.dtype, self.threads

    @property
    def title(self) -> str:
        """The task in a few words."""
        return " ".join(filter(None, (self.name, self.size, self.dtype.replace("float", "f"))))

    @property
    def operations(self) -> int:
        """The floating-point operations of a call, of all dtypes."""
        return sum(self.flops.values())

    @property
    def best(self) -> str:
        """The fastest of the others, "" if there is none."""
        others = {peer: time.median for peer, time in self.times.items() if peer != OURS and not time.error}
        return min(others, key=others.__getitem__, default="")

    def ratio(self, peer: str) -> float | None:
        """How many times as fast as the peer we are."""
        ours, theirs = self.times.get(OURS), self.times.get(peer)
        if ours is None or theirs is None or ours.error or theirs.error:
            return None
        return theirs.median / ours.median

    def seconds(self, samples: int) -> float:
        """What measuring so many samples of every entry takes at least."""
        timed = [time for time in self.times.values() if not time.error]
        return sum(time.first + samples * time.median for time in timed)

    def as_json(self) -> dict[str, Any]:
        """What `from_json` reads; JSON has no NaN."""
        times = {
            peer: {key: value for key, value in asdict(time).items() if value == value}
            for peer, time in self.times.items()
        }
        return {**asdict(self), "times": times}

    @staticmethod
    def from_json(read: Mapping[str, Any]) -> Row:
        times = {peer: Time(**time) for peer, time in read["times"].items()}
        return Row(**{**read, "times": times})


@frozen
class Results:
    """A run: the machine in words by what they are about, its rooflines by the number of threads, remarks on
    how it was made, the rows, the keys of those that there was no time for, and the GPU that all were
    measured on, if it was one."""

    machine: Mapping[str, str]
    rooflines: Mapping[int, Roofline]
    rows: Sequence[Row]
    remarks: Sequence[str] = ()
    left: Sequence[Key] = ()
    gpu: Gpu | None = None

    @property
    def errors(self) -> list[tuple[Row, str, str]]:
        """The entries that are wrong or failed: the row, the peer, and what is wrong."""
        return [
            (row, peer, time.error) for row in self.rows for peer, time in row.times.items() if time.error
        ]

    def reached(self, row: Row) -> float | None:
        """What fraction of the speed that the machine's limits allow we have reached in a row, where its
        work is known."""
        ours = row.times.get(OURS, Time())
        roof = self.gpu.roofline if self.gpu else self.rooflines.get(row.threads)
        if roof is None or not (row.flops or row.moved) or math.isnan(ours.median):
            return None
        return roof.seconds(row.flops, row.moved, row.moved) / ours.median

    def as_json(self) -> str:
        """What `from_json` reads."""
        whole = {
            "machine": self.machine,
            "rooflines": [asdict(roof) for roof in self.rooflines.values()],
            "remarks": self.remarks,
            "left": self.left,
            "gpu": self.gpu and asdict(self.gpu),
            "rows": [row.as_json() for row in self.rows],
        }
        return json.dumps(whole, indent=1)

    @staticmethod
    def from_json(text: str) -> Results:
        read = json.loads(text)
        rooflines = {roof["threads"]: roofline_from_json(roof) for roof in read["rooflines"]}
        left = [(suite, name, size, dtype, threads) for suite, name, size, dtype, threads in read["left"]]
        rows = [Row.from_json(row) for row in read["rows"]]
        gpu = Gpu.from_json(read["gpu"]) if read.get("gpu") else None
        return Results(read["machine"], rooflines, rows, read["remarks"], left, gpu)


def roofline_from_json(read: Mapping[str, Any]) -> Roofline:
    levels = tuple(Level(**level) for level in read["levels"])
    return Roofline(read["threads"], Limits(**read["limits"]), levels)
