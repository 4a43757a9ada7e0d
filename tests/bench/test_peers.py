"""The entries of the suites compute what NumPy computes.

Those of the peers that are installed are compared here, one by one. Numba, JAX, PyTorch and numexpr are no
dependencies of the tests: without them, these are NumPy's own versions and arrayjit's.
"""

from __future__ import annotations

from typing import Any

import pytest
from peers import PEERS
from suites import SUITES

from arrayjit.contest.checking import verdict
from arrayjit.contest.peers import installed
from arrayjit.contest.tasks import OURS, Choice, Task

SMALL = {
    "kernels": ("small",),
    "matmul": ("32", "64x64x64x64"),
    "vector": ("2000",),
    "reductions": ("2500",),
    "memory": ("1",),
}
BOTH = ("float32", "float64")
FOUND, REASONS = installed(PEERS)
TESTED_ELSEWHERE = {(OURS, "kernels"), ("numpy", "kernels")}
TASKS = [
    task
    for suite in SUITES.values()
    if "" in suite.targets
    for task in suite.tasks(Choice(BOTH, SMALL.get(suite.name, ())))
]
ENTRIES = [
    (name, task)
    for name in FOUND
    for task in TASKS
    if (name in task.peers or not task.peers) and (name, task.suite) not in TESTED_ELSEWHERE
]


def label(value: Any) -> str:
    return value if isinstance(value, str) else "-".join(filter(None, value.key))


@pytest.mark.parametrize(("name", "task"), ENTRIES, ids=label)
def test_an_entry_agrees_with_numpy(name: str, task: Task) -> None:
    assert verdict(task, FOUND[name]) in ("", "there is none")


@pytest.mark.parametrize("task", TASKS, ids=label)
def test_arrayjit_has_an_entry_for_every_task(task: Task) -> None:
    assert FOUND[OURS](task, ()) is not None


def test_the_peers_are_numpy_s_arrayjit_and_those_that_are_installed() -> None:
    assert {OURS, "numpy"} <= set(FOUND)
    assert len(FOUND) + len(REASONS) == len([row for row in PEERS if "" in row.targets])


def test_a_quick_run_has_a_few_rows_of_every_suite() -> None:
    for suite in SUITES.values():
        whole, few = (list(suite.tasks(Choice(quick=quick))) for quick in (False, True))
        assert 0 < len(few) < len(whole)


def test_rows_are_told_apart() -> None:
    keys = [task.key for suite in SUITES.values() for task in suite.tasks(Choice())]
    assert len(set(keys)) == len(keys)
