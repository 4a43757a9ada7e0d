"""What the machine can do is measured once, and asked for by dtype and size."""

from __future__ import annotations

from pathlib import Path

import pytest

from arrayjit.profile import machine
from arrayjit.profile import roofline as rooflines
from arrayjit.profile.machine import Limits
from arrayjit.profile.roofline import Level, Roofline, roofline

LEVELS = (Level("L1", 1000, 100.0), Level("L2", 4000, 50.0), Level("memory", 0, 10.0))
ROOFLINE = Roofline(1, Limits(8.0, 4.0, 9.0, 8.0, 10.0), LEVELS)


@pytest.fixture
def measurements(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of threads that were measured with, in a new cache."""
    made: list[int] = []

    def measure(threads: int) -> Roofline:
        made.append(threads)
        return Roofline(threads, ROOFLINE.limits, LEVELS)

    monkeypatch.setenv("ARRAYJIT_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(rooflines, "_known", {})
    monkeypatch.setattr(rooflines, "_measured", measure)
    return made


def test_the_nearest_level_that_has_room_counts() -> None:
    assert [ROOFLINE.level(nbytes).name for nbytes in (1, 1000, 1001, 4001)] == ["L1", "L1", "L2", "memory"]


def test_work_takes_its_arithmetic_or_its_bytes_whatever_is_longer() -> None:
    assert ROOFLINE.seconds({"float32": 16, "float64": 4}, 100, 1000) == 3.0
    assert ROOFLINE.seconds({"float64": 4}, 1000, 10_000) == 100.0


def test_it_is_measured_once_for_each_number_of_threads(measurements: list[int]) -> None:
    assert roofline(1) is roofline(1)
    assert roofline(2).threads == 2
    assert measurements == [1, 2]


def test_several_threads_reach_at_least_what_one_does(
    measurements: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    def measure(threads: int) -> Roofline:
        others = Level("L1", 2000, 150.0), Level("L2", 8000, 40.0), Level("memory", 0, 2.0)
        return ROOFLINE if threads == 1 else Roofline(2, Limits(16.0, 2.0, 1.0, 1.0, 11.0), others)

    monkeypatch.setattr(rooflines, "_measured", measure)
    found = roofline(2)
    assert found.limits == Limits(16.0, 4.0, 9.0, 8.0, 11.0)
    assert [(level.nbytes, level.rate) for level in found.levels] == [(2000, 150.0), (8000, 50.0), (0, 10.0)]


def test_other_processes_find_it_in_a_file(measurements: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    first = roofline(1)
    monkeypatch.setattr(rooflines, "_known", {})
    assert roofline(1) == first
    assert measurements == [1]


def test_it_is_measured_again_on_demand(measurements: list[int]) -> None:
    roofline(1)
    roofline(1, again=True)
    assert measurements == [1, 1]


def test_a_file_that_makes_no_sense_is_as_good_as_none(
    measurements: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    roofline(1)
    for nonsense in (b"[]", b"{", b'{"threads": 1, "limits": {}, "levels": [{}]}'):
        monkeypatch.setattr(rooflines, "_known", {})
        monkeypatch.setattr(rooflines, "recall", lambda kind, key, found=nonsense: found)
        roofline(1)
    assert measurements == [1] * 4


def test_loops_over_a_cache_move_bytes() -> None:
    """Other programs may take the cores away for longer than a short loop takes."""
    assert any(machine.cached_rate(2, 32 << 10, amount=1 << (20 + more)) > 1e8 for more in range(10))
