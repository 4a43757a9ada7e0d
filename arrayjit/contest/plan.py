"""Which rows a run has: the suites are in the folder `bench` of a checkout, a plan says what of them is
wanted."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from importlib import import_module
from pathlib import Path
from typing import Any

from ..errors import UserError
from ..frozen import frozen
from .peers import Listed
from .results import Key
from .tasks import Choice, Suite, Task
from .timing import Effort

__all__ = ["FOLDER", "Plan", "listed", "suites"]

FOLDER = str(Path(__file__).parents[2] / "bench")


def suites(folder: str = FOLDER) -> Mapping[str, Suite]:
    """The table of the suites: `SUITES` in suites.py. Raises UserError where there is none."""
    return _table(folder, "suites", "SUITES")  # type: ignore[no-any-return]


def listed(folder: str = FOLDER) -> Sequence[Listed]:
    """The table of the peers that the suites have entries of: `PEERS` in peers. Raises UserError where there
    is none."""
    return _table(folder, "peers", "PEERS")  # type: ignore[no-any-return]


def _table(folder: str, module: str, name: str) -> Any:
    if not Path(folder, "suites.py").exists():
        raise UserError(
            f"there are no suites in {folder}: they are no part of the package, but of its repository",
            fix="run `python -m arrayjit bench` in a checkout; your own functions can be measured anywhere: "
            "`python -m arrayjit bench SCRIPT:FUNCTION`",
        )
    if folder not in sys.path:
        sys.path.insert(0, folder)
    return getattr(import_module(module), name)


@frozen
class Plan:
    """What is wanted: these suites, on these numbers of threads; of them these dtypes, sizes, rows and
    peers, or all where none are named; each entry timed for so many seconds and samples. With a `target`
    everything is computed there, tasks are `tiny` where that is simulated."""

    suites: tuple[str, ...]
    threads: tuple[int, ...]
    dtypes: tuple[str, ...] = ()
    sizes: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    peers: tuple[str, ...] = ()
    quick: bool = False
    effort: Effort = Effort()
    folder: str = FOLDER
    target: str = ""
    tiny: bool = False

    def tasks(self, threads: int) -> list[tuple[Suite, Task]]:
        """In the order in which they are measured: every suite from its beginning to its end, all at the
        same pace, so that each has its share of the rows if the time is short."""
        table, choice = suites(self.folder), Choice(self.dtypes, self.sizes, self.quick, self.tiny)
        placed: list[tuple[float, Suite, Task]] = []
        for suite in map(table.__getitem__, self.suites):
            if threads > 1 and not suite.threaded:
                continue
            try:
                tasks = [task for task in suite.tasks(choice) if not self.only or task.name in self.only]
            except ValueError:  # what it takes for numbers are none
                raise UserError(
                    f"the suite {suite.name} has no --size {' '.join(self.sizes)}",
                    fix="name suites that have it; docs/benchmarks.md says what their sizes are",
                ) from None
            placed += [
                ((k + 0.5) / len(tasks), suite, replace(task, target=self.target))
                for k, task in enumerate(tasks)
            ]
        return [(suite, task) for _, suite, task in sorted(placed, key=lambda each: each[0])]

    def rows(self) -> list[Key]:
        """The keys of all rows, by suites."""
        keys = [(*task.key, threads) for threads in self.threads for _, task in self.tasks(threads)]
        return sorted(keys, key=lambda key: (self.suites.index(key[0]), key[4]))

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_json(read: Mapping[str, Any]) -> Plan:
        fields: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in read.items()
        }
        return Plan(**{**fields, "effort": Effort(**read["effort"])})
