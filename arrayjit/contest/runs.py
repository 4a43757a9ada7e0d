"""A run: the rows of a plan, measured in processes of their own, so that what ends one does not end the
run."""

from __future__ import annotations

import compileall
import json
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from ..errors import UserError
from ..frozen import frozen_by_identity
from ..settings import left_out
from .environment import environment, machine
from .journal import Journal
from .plan import Plan
from .results import Results, Row, Time
from .tasks import OURS

__all__ = ["JOURNAL", "Run"]

JOURNAL = "journal.jsonl"
GLANCE = 0.5
"""Seconds between looks at the journal: more often would take time of a core from what is measured."""
PACKAGE = Path(__file__).parents[1]
PACE = 0.95
"""Of the time that there is, a process plans with so much."""


@frozen_by_identity
class Run:
    """What is measured, into which folder; how many seconds an entry may take; and what is called when
    something has happened."""

    plan: Plan
    folder: Path
    patience: float
    seen: Callable[[Journal], None]

    def results(self, minutes: float) -> Results:
        """Measure what of the plan the journal in the folder has not, or with too few samples, as far as
        there is time; each number of threads has its share of it, by its rows. Raises UserError where nothing
        can be measured."""
        # As installers do: else the first of all first calls would.
        compileall.compile_dir(PACKAGE, quiet=2)
        journal = Journal(self.folder / JOURNAL)
        journal.follow()
        self._check(journal)
        if remark := left_out():
            journal.append(remark=remark)
        described, latest = machine(), time.monotonic() + 60 * minutes
        keys = self.plan.rows()
        left = Counter(key[4] for key in keys if not journal.has(key))
        left.update(row.threads for row in journal.hurried(keys, self.plan.effort.samples))
        for threads in self.plan.threads:
            now = time.monotonic()
            end = now + (latest - now) * left[threads] / (left.total() or 1)
            while time.monotonic() < end and self._ended_early(threads, journal, end):
                pass
            del left[threads]
        journal.follow()
        return results(self.plan, journal, described)

    def _check(self, journal: Journal) -> None:
        """Raises UserError if what the journal has was measured somewhere else."""
        target = journal.gpu.target if journal.gpu else ""
        if journal.rows and target != self.plan.target:
            raise UserError(
                f"the run in {self.folder} is one on {target or 'the processor'}",
                fix=f"resume it {f'with --target {target}' if target else 'without --target'}",
            )

    def _ended_early(self, threads: int, journal: Journal, end: float) -> bool:
        """Measure in one process; whether it has ended before all rows were there."""
        seconds = PACE * (end - time.monotonic())
        words = [json.dumps(self.plan.as_json()), str(threads), str(journal.path), str(seconds)]
        log = self.folder / "log.txt"
        with log.open("a") as output:
            child = subprocess.Popen(
                [sys.executable, "-m", "arrayjit.contest.worker", *words],
                env=environment(threads),
                stdout=output,
                stderr=subprocess.STDOUT,
            )
            try:
                reason = self._watched(child, journal, end)
            finally:
                child.kill()
                child.wait()
        journal.follow()
        if not reason:
            return False
        if journal.current is None:
            tail = log.read_text().splitlines()[-8:]
            raise UserError(f"the process that measures {reason}", details=tuple(tail), fix=f"see {log}")
        key, peer = journal.current
        journal.append(failed=key, peer=peer, error=f"the process {reason}")
        return True

    def _watched(self, child: subprocess.Popen[bytes], journal: Journal, end: float) -> str:
        """How the process has ended, "" if as it should. One that takes too long is to be ended."""
        heard = time.monotonic()
        while child.poll() is None:
            time.sleep(GLANCE)
            now = time.monotonic()
            if journal.follow():
                heard = now
                self.seen(journal)
            if now > end:
                return ""
            if now > heard + self.patience:
                return f"took longer than {self.patience:.0f} s"
        if child.returncode < 0:
            return f"was ended by {signal.Signals(-child.returncode).name}"
        return f"ended with status {child.returncode}" if child.returncode else ""


def results(plan: Plan, journal: Journal, described: dict[str, str]) -> Results:
    """What the journal says of a plan."""
    keys = plan.rows()
    lost = {key: errors[""] for key, errors in journal.failed.items() if "" in errors}
    rows = [
        journal.rows.get(key) or Row(*key, times={OURS: Time(error=lost[key])})
        for key in keys
        if key in journal.rows or key in lost
    ]
    left = [key for key in keys if key not in journal.rows and key not in lost]
    gpu = journal.gpu
    described = described | ({"GPU": f"{gpu.name}, target {gpu.target}"} if gpu else {})
    return Results(described, journal.rooflines, rows, tuple(journal.remarks), left, gpu)
