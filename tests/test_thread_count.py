"""How many threads share the loops of a kernel, unless the program says."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from arrayjit import settings
from arrayjit.errors import SettingError
from arrayjit.settings import num_threads


def test_the_setting_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARRAYJIT_NUM_THREADS", "7")
    assert num_threads() == 7


@pytest.mark.parametrize("wish", ["0", "-1", "two", "1.5", " "])
def test_a_setting_that_is_no_number_of_threads_is_a_mistake(
    wish: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARRAYJIT_NUM_THREADS", wish)
    with pytest.raises(SettingError, match="ARRAYJIT_NUM_THREADS"):
        num_threads()


def test_by_default_there_is_one_for_each_core_that_the_process_may_use(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("ARRAYJIT_NUM_THREADS", raising=False)
    assert 1 <= num_threads() <= len(os.sched_getaffinity(0))


def group(root: Path, folder: str, **files: str) -> None:
    """A control group's folder with its files, in a system that begins at `root`."""
    place = root / "sys/fs/cgroup" / folder
    place.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (place / name.replace("__", ".")).write_text(text)


def membership(root: Path, text: str) -> None:
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/cgroup").write_text(text)


def test_every_control_group_around_the_process_may_set_a_limit(tmp_path: Path) -> None:
    membership(tmp_path, "0::/user/job\n")
    group(tmp_path, "", cgroup__procs="")
    group(tmp_path, "user", cpu__max="150000 100000\n")
    group(tmp_path, "user/job", cpu__max="400000 100000\n")
    assert sorted(settings._quotas(tmp_path)) == [1.5, 4.0]


def test_control_groups_of_the_first_version(tmp_path: Path) -> None:
    membership(tmp_path, "3:cpuset:/\n2:cpu,cpuacct:/job\n1:memory:/other\n")
    group(tmp_path, "cpu,cpuacct", cpu__cfs_quota_us="-1\n", cpu__cfs_period_us="100000\n")
    group(tmp_path, "cpu,cpuacct/job", cpu__cfs_quota_us="50000\n", cpu__cfs_period_us="25000\n")
    assert list(settings._quotas(tmp_path)) == [2.0]


def test_no_limit_and_no_control_groups(tmp_path: Path) -> None:
    assert list(settings._quotas(tmp_path)) == []
    membership(tmp_path, "0::/\n")
    group(tmp_path, "", cpu__max="max 100000\n")
    assert list(settings._quotas(tmp_path)) == []


def test_a_part_of_a_core_is_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ARRAYJIT_NUM_THREADS", raising=False)
    monkeypatch.setattr(settings, "_quotas", lambda root: iter([0.5, 3.0]))
    assert settings._cores.__wrapped__() == 1
