"""The rows of the suites, one by one, for pytest-benchmark: its storage, comparison and histograms.

A row's entries are a group. Each is compared with NumPy first; where a call writes to its arguments, every
round has fresh ones.
"""

from __future__ import annotations

from typing import Any

import pytest
from peers import PEERS
from suites import SUITES

from arrayjit.contest.checking import reference, tried
from arrayjit.contest.peers import installed
from arrayjit.contest.tasks import Choice, Peer, Task
from arrayjit.profile.machine import clock


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    option = metafunc.config.getoption
    peers, _ = installed(PEERS, option("peers"))
    choice = Choice(tuple(option("dtype")), tuple(option("size")))
    entries = [
        pytest.param(task, peer, id="-".join(filter(None, (*task.key, name))))
        for suite in option("suite")
        for task in SUITES[suite].tasks(choice)
        for name, peer in peers.items()
        if name in task.peers or not task.peers
    ]
    metafunc.parametrize(("task", "peer"), entries)


def test_entry(benchmark: Any, task: Task, peer: Peer) -> None:
    arguments = task.make()
    wanted, written = reference(task, arguments)
    entry = peer(task, written)
    if entry is None:
        pytest.skip("it has no entry")
    time, call = tried(task, entry, arguments, written, wanted, clock(1))
    assert time.error == ""
    benchmark.group = " ".join(filter(None, task.key))
    if written and not task.idempotent:
        benchmark.pedantic(call, setup=lambda: (entry.place(arguments), {}), rounds=15)
    else:
        benchmark(call, *entry.place(arguments))
