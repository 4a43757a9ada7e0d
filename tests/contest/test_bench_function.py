"""`arrayjit.bench(f, *arguments)` and `python -m arrayjit bench SCRIPT:FUNCTION`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import arrayjit
from arrayjit.contest.callers import CALLERS, anew
from arrayjit.contest.checking import verdict
from arrayjit.contest.peers import installed
from arrayjit.contest.tasks import OURS, Task
from arrayjit.errors import UserError

ROOT = Path(__file__).parents[2]
SCRIPT = """
import numpy as np

def norm(x, scale=1.0, *, shift=0.0):
    return np.sqrt((x * x).sum()) * scale + shift

def make_norm():
    return np.ones(100), 2.0

def raises(x):
    raise KeyError("no such thing")
"""


def norm(x: Any) -> Any:
    return np.sqrt((x * x).sum())


def test_a_function_is_timed_beside_numpy() -> None:
    made = arrayjit.bench(norm, np.ones(100), seconds=0.01)
    (row,) = made.results.rows
    assert set(row.times) == {OURS, "numpy"}
    assert all(time.median > 0 and not time.error for time in row.times.values())
    assert made.ratio() == row.times["numpy"].median / row.times[OURS].median
    assert "norm" in str(made)
    assert row.moved >= 800


def test_a_jitted_function_is_compared_with_the_one_inside() -> None:
    calls = []

    def plain(x: Any) -> Any:
        calls.append(type(x))
        return x + 1

    arrayjit.bench(arrayjit.jit(plain), np.ones(3), seconds=0.01)
    assert np.ndarray in calls


def test_arguments_are_left_as_they_were() -> None:
    def grow(x: Any) -> None:
        x += 1

    given = np.zeros(3)
    arrayjit.bench(grow, given, seconds=0.01)
    np.testing.assert_array_equal(given, 0)


def test_what_arrayjit_refuses_is_said() -> None:
    made = arrayjit.bench(lambda x: x if x[0] > 0 else -x, np.ones(3), seconds=0.01)
    assert "ConcretizationError" in str(made)
    with pytest.raises(
        UserError, match="there are no times to compare with numpy\n  arrayjit: Concretization"
    ):
        made.ratio()


def test_what_the_function_raises_is_raised() -> None:
    with pytest.raises(ValueError, match="broadcast"):
        arrayjit.bench(lambda x, y: x + y, np.ones(3), np.ones(4))


def test_peers_have_names() -> None:
    with pytest.raises(
        UserError, match="there is no peer 'matlab'\n  fix: choose among arrayjit, numpy, numba"
    ):
        arrayjit.bench(norm, np.ones(3), peers=("matlab",))


@pytest.mark.parametrize("name", installed(CALLERS)[0])
def test_whoever_is_installed_computes_the_same(name: str) -> None:
    peer = installed(CALLERS)[0][name]
    task = Task("functions", "norm", "", "float64", norm, lambda: (np.arange(5.0),), 1e-12)
    assert verdict(task, peer) == verdict(task, anew(peer)) == ""


def test_a_benchmark_is_saved_as_a_page_or_as_numbers(tmp_path: Path) -> None:
    made = arrayjit.bench(norm, np.ones(100), seconds=0.01)
    made.save(tmp_path / "norm.html")
    made.save(tmp_path / "norm.json")
    assert "<svg" in (tmp_path / "norm.html").read_text()
    assert json.loads((tmp_path / "norm.json").read_text())["rows"][0]["name"] == "norm"


def bench(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    (folder / "script.py").write_text(SCRIPT)
    paths = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    command = [sys.executable, "-m", "arrayjit", "bench", *words, "--threads", "1", "--peers", "numpy"]
    environment = {**os.environ, "PYTHONPATH": paths}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_the_command_takes_a_function_of_a_script(tmp_path: Path) -> None:
    done = bench(tmp_path, "script.py:norm", "--output", "page", "--save", "before")
    assert done.returncode == 0, done.stderr
    assert "times numpy" in done.stdout
    assert (tmp_path / "page" / "report.html").exists()
    again = bench(
        tmp_path, "script.py:norm", "--arg", "np.ones(9)", "--arg", "shift=1.0", "--compare", "before"
    )
    assert "now and then: 1 rows" in again.stdout or "now and then: 0 rows" in again.stdout


def test_what_a_script_raises_is_shown_as_python_does(tmp_path: Path) -> None:
    done = bench(tmp_path, "script.py:raises", "--arg", "np.ones(3)")
    assert done.returncode == 1
    assert "KeyError: 'no such thing'" in done.stderr
    assert "contest" not in done.stderr


def test_a_function_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    done = bench(tmp_path, "script.py:nothing")
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_where_no_page_can_be_written_nothing_is_measured(tmp_path: Path) -> None:
    done = bench(tmp_path, "script.py:norm", "--output", "script.py/page")
    assert done.returncode == 2
    assert "cannot write to script.py/page" in done.stderr
    assert "times numpy" not in done.stdout
