"""Measures rows on some number of threads, and writes each to the journal: `python -m arrayjit.contest.worker
PLAN THREADS JOURNAL`.

It goes on where the journal ends. What has ended an earlier process is not tried again.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path

from ..profile.roofline import roofline
from .journal import Journal
from .peers import installed
from .plan import Plan, listed
from .results import Time
from .tasks import OURS, Peer, Suite, Task
from .timing import Effort, held
from .work import with_work

__all__ = ["main"]


def main(plan: Plan, threads: int, journal: Journal) -> None:
    journal.follow()
    peers, reasons = installed(listed(plan.folder), plan.peers)
    slow = [row.name for row in listed(plan.folder) if row.slow and plan.quick and row.name not in plan.peers]
    for remark in (
        *reasons,
        *(f"without {name}, which takes long to compile: --peers has it" for name in slow),
    ):
        journal.append(remark=remark)
    tasks = plan.tasks(threads)
    if threads not in journal.rooflines and any(suite.threaded for suite, _ in tasks):
        journal.append(roofline=asdict(roofline(threads, again=True)))
    for suite, task in tasks:
        key = (*task.key, threads)
        if key not in journal.rows and "" not in journal.failed.get(key, {}):
            measure(suite, task, peers, threads, plan.effort, journal)


def measure(
    suite: Suite, task: Task, peers: Mapping[str, Peer], threads: int, effort: Effort, journal: Journal
) -> None:
    """One row, without those that have ended a process in it."""
    key = (*task.key, threads)
    failed = journal.failed.get(key, {})
    sound = {name: peer for name, peer in peers.items() if name not in failed}
    try:
        row = held(
            task,
            sound,
            threads,
            suite.clock(threads),
            effort,
            lambda peer: journal.append(begun=key, peer=peer),
        )
    except Exception as error:  # NumPy's own program, or drawing its arguments
        journal.append(failed=key, peer="", error=f"{type(error).__name__}: {error}")
        return
    row = replace(row, times={**row.times, **{name: Time(error=error) for name, error in failed.items()}})
    if suite.threaded and not row.times.get(OURS, Time(error="not timed")).error:
        row = with_work(row, task)
    journal.append(row=row.as_json())


if __name__ == "__main__":
    main(Plan.from_json(json.loads(sys.argv[1])), int(sys.argv[2]), Journal(Path(sys.argv[3])))
