"""`pytest bench` measures the rows of the suites with pytest-benchmark."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_rows_of_a_suite_are_benchmarks(tmp_path: Path) -> None:
    kept = tmp_path / "kept.json"
    choice = ["--suite", "calls", "--peers", "arrayjit", "numpy", "--threads", "1", "-k", "sum"]
    brief = ["--benchmark-max-time", "0.01", f"--benchmark-json={kept}"]
    command = [sys.executable, "-m", "pytest", "bench", "-q", "-p", "no:cacheprovider", *choice, *brief]
    outside = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(command, cwd=ROOT, env=outside, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    measured = json.loads(kept.read_text())["benchmarks"]
    assert {one["name"] for one in measured} == {
        f"test_entry[calls-a.sum()-16-float64-{peer}]" for peer in ("arrayjit", "numpy")
    }
    assert {one["group"] for one in measured} == {"calls a.sum() 16 float64"}
