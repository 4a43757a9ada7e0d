"""Random schedules on lazy devices: streams x routines x transfers x merge buffers x events x errors.

Whatever order the queues are worked off in, results equal those of the same operations one after another, in
plain NumPy; no two conflicting accesses are unordered; nothing uses memory that was given back; and nobody
waits for ever.
"""

from __future__ import annotations

import pytest
from exploring import explore, fault, seeds

from arrayjit.runtime import stream

CHUNK = 1000


@pytest.mark.parametrize("chunk", range(7))
def test_a_schedule_gives_what_its_operations_give_one_by_one(chunk):
    for seed in seeds(CHUNK, chunk):
        explore(seed)


@pytest.mark.parametrize("chunk", range(7, 10))
def test_an_error_reaches_its_stream_and_what_waits_for_it_and_nothing_else(chunk):
    for seed in seeds(CHUNK, chunk):
        explore(seed, faults=True)


def test_forgetting_what_is_over_changes_nothing(monkeypatch):
    monkeypatch.setattr(stream, "MANY_STREAMS", 1)
    for seed in seeds(300):
        explore(seed, faults=seed % 2 == 0)


@pytest.mark.parametrize("chunk", range(4))
def test_the_checker_notices_if_any_one_wait_is_left_out(chunk):
    waits = 0
    for seed in seeds(75, chunk):
        explorer = explore(seed)
        waits += explorer.num_waits
        assert [number for number in range(explorer.num_waits) if not fault(seed, number)] == []
    assert waits > 100
