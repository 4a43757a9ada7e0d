"""The processor's counters are read, or it is said why not."""

from __future__ import annotations

import errno
import os
import struct
from pathlib import Path

import pytest

from arrayjit.profile import counters
from arrayjit.profile.counters import Refused, counted_while


@pytest.fixture
def files(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The files that were opened for events, which give the numbers 1, 2, ... counted in half of the time."""
    opened: list[int] = []

    def opening(number: int, name: str, leader: int) -> int:
        reading, writing = os.pipe()
        if leader < 0:
            count = len(counters._EVENTS)
            os.write(writing, struct.pack(f"<{3 + count}Q", count, 200, 100, *range(1, count + 1)))
        os.close(writing)
        opened.append(reading)
        return reading

    monkeypatch.setattr(counters, "_CALLS", dict.fromkeys(("x86_64", "aarch64", "arm64", "AMD64"), 1))
    monkeypatch.setattr(counters.sys, "platform", "linux")
    monkeypatch.setattr(counters, "_opened", opening)
    return opened


def test_counts_are_scaled_to_the_whole_time(files: list[int]) -> None:
    runs: list[int] = []
    found = counted_while(lambda: runs.append(1))
    assert runs == [1]
    assert found == {name: 2 * number for number, name in enumerate(counters._EVENTS, 1)}


def test_files_are_closed_whatever_happens(files: list[int]) -> None:
    with pytest.raises(ZeroDivisionError):
        counted_while(lambda: [1 // 0])
    assert len(files) == len(counters._EVENTS)
    for file in files:
        with pytest.raises(OSError, match="Bad file"):
            os.fstat(file)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (errno.EACCES, "not permitted (perf_event_paranoid is 4)"),
        (errno.EPERM, "sysctl kernel.perf_event_paranoid=2"),
        (errno.ENOENT, "as most virtual machines"),
        (errno.EMFILE, "cannot be read"),
    ],
)
def test_a_refusal_says_why(
    error: int, words: str, files: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    level = tmp_path / "level"
    level.write_text("4\n")
    monkeypatch.setattr(counters, "_LEVEL", level)
    monkeypatch.setattr(counters, "_opened", lambda number, name, leader: -error)
    found = counted_while(lambda: None)
    assert isinstance(found, Refused)
    assert words in found.why


def test_other_systems_have_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counters.sys, "platform", "darwin")
    assert counted_while(lambda: None) == Refused(
        "hardware counters are read on Linux for x86-64 and ARM64, not on darwin"
    )


def test_this_machine_counts_or_says_why() -> None:
    found = counted_while(lambda: sum(range(10_000)))
    assert (isinstance(found, Refused) and found.why) or found["instructions"] > 10_000
