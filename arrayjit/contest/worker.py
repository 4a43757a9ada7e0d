"""Measures rows on some number of threads, and writes each to the journal: `python -m arrayjit.contest.worker
PLAN THREADS JOURNAL SECONDS`.

It goes on where the journal ends. What has ended an earlier process is not tried again. Each row has its
share of the seconds that are left when it begins; what then remains of them goes to the rows whose share was
too small, beginning with those that take the least.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path

from ..profile.roofline import roofline
from .gpu import SIMULATION, gpu
from .journal import Journal
from .peers import installed
from .plan import Plan, listed
from .results import Time
from .tasks import OURS, Peer, Suite, Task
from .timing import Effort, held
from .work import with_work

__all__ = ["main"]

QUICK = (
    "a quick run: few rows and samples, and the machine's limits as they were measured before; a ratio near "
    "1 may be on the other side of it in a longer run"
)


def main(plan: Plan, threads: int, journal: Journal, seconds: float) -> None:
    end = time.perf_counter() + seconds
    journal.follow()
    peers, reasons = installed(listed(plan.folder), plan.peers, plan.target)
    here = [row for row in listed(plan.folder) if plan.target in row.targets]
    slow = [row.name for row in here if row.slow and plan.quick and row.name not in plan.peers]
    if plan.target and journal.gpu is None:
        journal.append(gpu=asdict(gpu(plan.target, again=not plan.quick)))
    for remark in (
        *reasons,
        *([SIMULATION] if plan.tiny else []),
        *(f"without {name}, which takes long to compile: --peers has it" for name in slow),
        *([QUICK] if plan.quick else []),
    ):
        journal.append(remark=remark)
    tasks = plan.tasks(threads)
    is_limited = not plan.target and any(suite.threaded for suite, _ in tasks)
    if is_limited and threads not in journal.rooflines:
        journal.append(roofline=asdict(roofline(threads, again=not plan.quick)))
    left = [(suite, task) for suite, task in tasks if not journal.has((*task.key, threads))]
    for number, (suite, task) in enumerate(left):
        now = time.perf_counter()
        until = now + (end - now) / (len(left) - number)
        measure(suite, task, peers, threads, plan.effort, journal, until)
    journal.follow()
    by_key = {(*task.key, threads): (suite, task) for suite, task in tasks}
    for row in journal.hurried(by_key, plan.effort.samples):
        if time.perf_counter() + row.seconds(plan.effort.samples) > end:
            break
        measure(*by_key[row.key], peers, threads, plan.effort, journal, end)


def measure(
    suite: Suite,
    task: Task,
    peers: Mapping[str, Peer],
    threads: int,
    effort: Effort,
    journal: Journal,
    until: float,
) -> None:
    """One row, without those that have ended a process in it, by then if it can be."""
    key = (*task.key, threads)
    failed = journal.failed.get(key, {})
    sound = {name: peer for name, peer in peers.items() if name not in failed}
    try:
        row = held(
            task,
            sound,
            threads,
            time.perf_counter if task.target else suite.clock(threads),
            effort,
            lambda peer: journal.append(begun=key, peer=peer),
            until,
        )
    except Exception as error:  # NumPy's own program, or drawing its arguments
        journal.append(failed=key, peer="", error=f"{type(error).__name__}: {error}")
        return
    row = replace(row, times={**row.times, **{name: Time(error=error) for name, error in failed.items()}})
    if suite.threaded and not row.times.get(OURS, Time(error="not timed")).error:
        row = with_work(row, task)
    journal.append(row=row.as_json())


if __name__ == "__main__":
    main(
        Plan.from_json(json.loads(sys.argv[1])),
        int(sys.argv[2]),
        Journal(Path(sys.argv[3])),
        float(sys.argv[4]),
    )
