"""A run survives what its rows do: a crash, a hang, an exception cost one entry or one row."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from arrayjit.contest.environment import environment
from arrayjit.contest.journal import Journal
from arrayjit.contest.results import Results, Row, Time

ROOT = Path(__file__).parents[2]
SUITES = """
import operator
from arrayjit.contest.tasks import Suite, Task

def make():
    return 2.0, 3.0

def fails():
    raise RuntimeError("no arguments today")

def tasks(choice):
    for name in ("first", "second", "third"):
        yield Task("sums", name, "", "", operator.add, fails if name == "third" else make, 0.0)

SUITES = {"sums": Suite("sums", "Sums.", tasks, threaded=False)}
"""
PEERS = """
import operator, os, time
from arrayjit.contest.peers import Listed
from arrayjit.contest.tasks import Entry

def sound(task, written):
    return Entry(lambda *arguments: operator.add)

def abort(*arguments):
    os.abort()

def hang(*arguments):
    time.sleep(3600)

def crashing(task, written):
    return Entry(lambda *arguments: abort if task.name == "first" else operator.add)

def hanging(task, written):
    return Entry(lambda *arguments: hang if task.name == "second" else operator.add)

PEERS = (
    Listed("arrayjit", "arrayjit", "peers", "sound"),
    Listed("crashing", "arrayjit", "peers", "crashing"),
    Listed("hanging", "arrayjit", "peers", "hanging"),
    Listed("missing", "no_such_package", "peers", "sound"),
)
"""


CHOICE = ("--suites", ".", "--threads", "1")


def bench(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """The command in that folder, which has suites of its own."""
    paths = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    return subprocess.run(
        [sys.executable, "-m", "arrayjit", "bench", *options, *CHOICE],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": paths, "OPENBLAS_CORETYPE": "Haswell"},
        capture_output=True,
        text=True,
        check=False,
    )


def measured(folder: Path) -> Results:
    return Results.from_json((folder / "bench-results" / "results.json").read_text())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("suites")
    (made / "suites.py").write_text(SUITES)
    (made / "peers.py").write_text(PEERS)
    return made


@pytest.fixture(scope="module")
def ran(folder: Path) -> subprocess.CompletedProcess[str]:
    return bench(folder, "--patience", "20")


def test_an_entry_that_ends_the_process_loses_its_place_only(ran: Any, folder: Path) -> None:
    first, second, third = measured(folder).rows
    assert first.times["crashing"].error == "the process was ended by SIGABRT"
    assert second.times["hanging"].error == "the process took longer than 20 s"
    assert third.times["arrayjit"].error == "RuntimeError: no arguments today"
    for row, sound in ((first, ("arrayjit", "hanging")), (second, ("arrayjit", "crashing"))):
        assert [row.times[name].error for name in sound] == ["", ""]
        assert all(row.times[name].median > 0 for name in sound)


def test_what_is_wrong_is_shown_and_the_status_is_1(ran: Any) -> None:
    assert ran.returncode == 1
    for words in (
        "ended by SIGABRT",
        "longer than 20 s",
        "no arguments today",
        "no_such_package is not installed",
    ):
        assert words in ran.stdout


def test_variables_that_mislead_numpy_are_dropped_and_that_is_said(ran: Any, folder: Path) -> None:
    words = re.compile(r"without .*OPENBLAS_CORETYPE.*, which would slow NumPy's products down")
    assert words.search(ran.stdout)
    assert words.search((folder / "bench-results" / "report.html").read_text().replace("&#x27;", "'"))


def test_first_calls_do_not_compile_our_own_modules(
    ran: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    modules = (ROOT / "arrayjit").rglob("*.py")
    assert all(Path(importlib.util.cache_from_source(str(module))).exists() for module in modules)
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    assert "PYTHONDONTWRITEBYTECODE" not in environment(1)


def test_what_is_there_is_not_measured_again(ran: Any, folder: Path) -> None:
    before = measured(folder)
    again = bench(folder, "--resume", "--save", "before")
    assert again.returncode == 1
    assert measured(folder).rows == before.rows
    assert (folder / ".benchmarks" / "arrayjit" / "before.json").exists()


def test_rows_that_there_was_little_time_for_are_measured_again(ran: Any, folder: Path) -> None:
    """Until every entry that can be timed has seven samples."""
    hurried, complete, _ = measured(folder).rows
    few = {name: replace(time, samples=3) for name, time in hurried.times.items() if not time.error}
    (folder / "hurried").mkdir()
    journal = Journal(folder / "hurried" / "journal.jsonl")
    for row in (replace(hurried, times=few), complete):
        journal.append(row=row.as_json())
    bench(folder, "--resume", "--only", "first", "second", "--output", "hurried")
    again, same = Results.from_json((folder / "hurried" / "results.json").read_text()).rows
    assert same == complete
    assert all(time.samples >= 7 for time in again.times.values() if not time.error)


def test_hurried_rows_are_those_with_few_samples_and_the_short_ones_come_first(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.jsonl")
    for name, seconds, samples in (("long", 9.0, 3), ("enough", 1.0, 7), ("short", 1.0, 6)):
        times = {"numpy": Time(1.0, seconds, samples=samples), "numba": Time(error="none")}
        journal.append(row=Row("sums", name, "", "", 1, times).as_json())
    journal.follow()
    rows = journal.hurried([*journal.rows, ("sums", "left", "", "", 1)], 7)
    assert [(row.name, row.seconds(7)) for row in rows] == [("short", 8.0), ("long", 64.0)]
    assert journal.hurried([("sums", "enough", "", "", 1)], 7) == []


def test_rows_that_there_is_no_time_for_are_told(folder: Path) -> None:
    short = bench(folder, "--minutes", "0.0001", "--output", "short")
    assert "3 rows are left, for want of time; --resume measures them" in short.stdout
    assert len(Results.from_json((folder / "short" / "results.json").read_text()).left) == 3


def test_a_quick_run_says_what_is_less_exact_about_it(folder: Path) -> None:
    quick = bench(folder, "--quick", "--peers", "arrayjit", "--output", "quick")
    assert "a quick run: few rows and samples" in quick.stdout
    results = Results.from_json((folder / "quick" / "results.json").read_text())
    assert [row.name for row in results.rows] == ["first", "second", "third"]
    assert results.left == []
    assert any("a quick run" in remark for remark in results.remarks)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("nothing",), "there is no suite 'nothing'"),
        (("--only", "fourth"), "there is no row 'fourth'\n  fix: choose among first, second, third"),
        (("--peers", "matlab"), "there is no peer 'matlab'"),
        (("--compare", "never"), "never.json does not exist"),
        (("--output", "suites.py/inside"), "cannot write to suites.py/inside: Not a directory"),
    ],
)
def test_a_mistake_is_said_before_anything_is_measured(
    folder: Path, options: tuple[str, ...], words: str
) -> None:
    done = bench(folder, *options)
    assert done.returncode == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_without_suites_the_error_says_where_they_are(tmp_path: Path) -> None:
    done = bench(tmp_path)
    assert done.returncode == 2
    assert "there are no suites in .: they are no part of the package" in done.stderr


def test_a_journal_s_half_line_is_what_a_killed_process_leaves(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.jsonl")
    journal.path.write_text('{"begun": ["sums", "first", "", "", 1], "peer": "a"}\n{"row": {"sui')
    journal.append(row=Row("sums", "second", "", "", 1).as_json())
    assert journal.follow()
    assert not journal.follow()
    assert list(journal.rows) == [("sums", "second", "", "", 1)]
