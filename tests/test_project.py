"""The project around the compiler: what the documents say is what runs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hardware import ANYWHERE

import arrayjit
from arrayjit.__main__ import main
from arrayjit.backends import BACKENDS, targets

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
DEFINED = re.compile(r"def (test_\w+)")
CI = (ROOT / ".ci" / "run").read_text()


def test_ci_runs_the_test_command_of_the_readme() -> None:
    (command,) = set(re.findall(r"-m (pytest .*)$", README, flags=re.MULTILINE))
    assert f'"$python" -m {command}\n' in CI


def test_the_readme_installs_what_its_commands_need() -> None:
    commands = re.findall(r"^python -m venv .*$", README, flags=re.MULTILINE)
    assert len(commands) == 2
    for command, extras, job in zip(
        commands, ("demo", "test,demo"), ("-m arrayjit demo", "-m pytest"), strict=True
    ):
        assert f".venv/bin/pip install '.[{extras}]'" in command
        assert job in command


def test_the_version_is_the_same_everywhere() -> None:
    newest = re.search(r"^## (\S+)", (ROOT / "CHANGES.md").read_text(), flags=re.MULTILINE)
    assert newest is not None
    declared = re.search(r'^version = "(.*)"', (ROOT / "pyproject.toml").read_text(), flags=re.MULTILINE)
    assert declared is not None
    assert newest[1] == declared[1] == arrayjit.__version__


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_the_files_and_headings_that_a_document_names_exist(document: Path) -> None:
    text = re.sub(r"^ {4}.*$", "", document.read_text(), flags=re.MULTILINE)  # programs have brackets, too
    for file, heading in re.findall(r"\]\((?!https?:)([^)#]*)#?([^)]*)\)", text):
        linked = document.parent / file if file else document
        assert linked.exists(), f"{document.name} links {file}"
        assert not heading or heading in anchors(linked), f"{document.name} links {file}#{heading}"
    for name in re.findall(r"`((?:arrayjit|tests|bench|docs)/[\w./-]+)`", text):
        assert (ROOT / name).exists(), f"{document.name} names {name}"


def anchors(document: Path) -> set[str]:
    """What the headings of a document are called in links."""
    headings = re.findall(r"^#+ (.*)$", document.read_text(), flags=re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_the_tests_that_documents_name_exist() -> None:
    tests = {name for file in (ROOT / "tests").rglob("*.py") for name in DEFINED.findall(file.read_text())}
    tests |= {path.stem for path in (ROOT / "tests").rglob("test_*.py")}
    for document in DOCUMENTS:
        named = re.findall(r"`(test_\w+)[`\[(]", document.read_text())
        assert not set(named) - tests, document.name


@pytest.mark.parametrize("document", ["docs/ARCHITECTURE.md", "CONTRIBUTING.md"])
def test_a_name_in_a_document_of_the_house_is_one_of_the_code(document: str) -> None:
    files = [path for folder in ("arrayjit", "bench", "tests") for path in (ROOT / folder).rglob("*.py")]
    known = {word for path in files for word in re.findall(r"\w+", path.read_text())}
    known |= {part for path in files for part in (path.stem, path.parent.name)}
    text = re.sub(r"^```.*?^```", "", (ROOT / document).read_text(), flags=re.MULTILINE | re.DOTALL)
    words = [
        word for quoted in re.findall(r"`([^`\n]+)`", text) for word in re.findall(r"[A-Za-z]\w+", quoted)
    ]
    stale = [word for word in words if word not in known and not word.endswith("_")]
    assert stale == [], f"{document} names what is not there"


def test_the_tour_fits_a_page() -> None:
    assert len((ROOT / "docs" / "ARCHITECTURE.md").read_text().splitlines()) <= 140


def test_every_decision_is_numbered_and_fits_a_page() -> None:
    records = sorted((ROOT / "docs" / "decisions").glob("*.md"))
    assert [int(path.name[:3]) for path in records] == list(range(1, len(records) + 1))
    for path in records:
        text = path.read_text()
        assert len(text.splitlines()) <= 60, path.name
        for heading in ("## Context", "## Decision", "## Turned down", "## Consequences"):
            assert heading in text, f"{path.name} has no {heading!r}"


def test_no_file_names_a_folder_of_somebody_s_machine() -> None:
    private = re.compile("/" + "(work|tmp|home|root|Users)" + r"/\w")
    suffixes = {".py", ".md", ".toml", ".txt", ".ll", ""}
    tracked = [ROOT / ".ci" / "run", *ROOT.glob("*.*"), *ROOT.glob("[abdt]*/**/*")]
    for path in tracked:
        if path.is_file() and path.suffix in suffixes and "__pycache__" not in path.parts:
            assert private.search(path.read_text()) is None, path


def test_python_m_arrayjit_helps() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "arrayjit", "--help"], capture_output=True, text=True, check=True
    )
    assert "demo" in done.stdout
    assert "targets" in done.stdout


def test_without_a_command_it_helps_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    assert "usage: python -m arrayjit" in capsys.readouterr().out


def test_an_unknown_option_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["targets", "--fast"])
    assert "unrecognized arguments: --fast" in capsys.readouterr().err


def test_a_reader_that_has_seen_enough_is_no_error() -> None:
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [sys.executable, "-m", "arrayjit", "targets"],
        stdout=write,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (1, "")


def test_targets_lists_every_row_of_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["targets"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(BACKENDS)
    assert all(line.endswith("  available") for line in lines if line.split()[0] in ANYWHERE)
    assert all("  available" in line or "  not available: " in line for line in lines)
    assert [line.split(maxsplit=1)[1] for line in lines] == list(targets().values())
