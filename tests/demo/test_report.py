"""`python -m arrayjit demo` from the outside, and how it measures."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from arrayjit.backends import BACKENDS
from arrayjit.demo.measure import in_turn, largest_difference
from arrayjit.settings import MISLEADING, environment_for_numpy, misleading


def demo(*options: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "arrayjit", "demo", *options],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"COLUMNS": "80"} | variables,
    )


def test_the_demo_shows_its_tables_and_writes_pictures(tmp_path: Path) -> None:
    done = demo("--small", "--out", str(tmp_path / "pictures"))
    assert done.returncode == 0, done.stderr
    for heading in ("NumPy", "first call", "warm call", "speed-up", "difference", "test accuracy"):
        assert heading in done.stdout
    before, after, outlines = (
        Image.open(tmp_path / "pictures" / f"{name}.png") for name in ("before", "after", "outlines")
    )
    assert before.size == after.size == outlines.size == (160, 107)
    assert (before.mode, after.mode, outlines.mode) == ("RGB", "RGB", "L")
    assert np.asarray(before).std() > 20
    assert np.asarray(after).std() > 20
    assert not np.array_equal(np.asarray(before), np.asarray(after))


def test_an_unknown_target_is_an_error_of_two_lines() -> None:
    done = demo("--small", "--target", "abacus")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-2:] == [
        "unknown target 'abacus'",
        f"  fix: choose one of {', '.join(BACKENDS)}",
    ]


def test_a_missing_extra_is_an_error_that_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "rich.py").write_text("raise ModuleNotFoundError('No module named rich', name='rich')")
    done = demo(PYTHONPATH=f"{tmp_path}{os.pathsep}{Path(__file__).parents[2]}")
    assert done.returncode == 1
    assert done.stderr == "the demo needs rich\n  fix: pip install 'arrayjit[demo]'\n"


@pytest.fixture
def none_misleads(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in MISLEADING:
        monkeypatch.delenv(name, raising=False)


@pytest.mark.usefixtures("none_misleads")
def test_variables_that_slow_numpy_down_are_left_out_and_named() -> None:
    assert "without OPENBLAS_CORETYPE, which" in demo("--help", OPENBLAS_CORETYPE="Nehalem").stdout


@pytest.mark.usefixtures("none_misleads")
def test_without_such_variables_the_demo_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENBLAS_L2_SIZE", "1024")
    assert misleading() == ["OPENBLAS_L2_SIZE"]
    assert environment_for_numpy() == {
        name: value for name, value in os.environ.items() if name != "OPENBLAS_L2_SIZE"
    }
    monkeypatch.delenv("OPENBLAS_L2_SIZE")
    assert misleading() == []
    assert environment_for_numpy() == os.environ


def test_two_calls_are_timed_in_turn() -> None:
    calls: list[str] = []
    times = in_turn(lambda: calls.append("one"), lambda: calls.append("other"), range(3))
    assert calls == ["one", "other"] * 3
    assert all(time > 0 for time in times)


def test_the_largest_difference_is_over_all_results() -> None:
    zeros = np.zeros(3)
    assert largest_difference((zeros, 1.0), (zeros, 1.5)) == 0.5
    assert largest_difference((zeros[:0],), (zeros[:0],)) == 0


@pytest.mark.parametrize("other", [np.zeros(3, np.float32), np.zeros(4), np.full(3, np.nan)])
def test_results_of_other_kinds_are_not_compared(other: np.ndarray) -> None:
    with pytest.raises(AssertionError):
        largest_difference((np.zeros(3),), (other,))
