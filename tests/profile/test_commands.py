"""`python -m arrayjit profile SCRIPT:FUNCTION`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from arrayjit.__main__ import main
from arrayjit.profile import profiled
from arrayjit.profile.machine import Limits
from arrayjit.profile.roofline import Level, Roofline

SCRIPT = """
import numpy as np

def smooth(x):
    return 0.5 * (x[:-1] + x[1:])

def make_smooth():
    return np.ones(1000)

def wrong(x):
    raise RuntimeError("as it is written")
"""


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    limits = Limits(8e10, 4e10, 1e10, 1e10, 1e10)
    monkeypatch.setattr(profiled, "roofline", lambda n: Roofline(n, limits, (Level("memory", 0, 1e10),)))
    file = tmp_path / "program.py"
    file.write_text(SCRIPT)
    return str(file)


def test_a_function_of_a_script_is_profiled(script: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profile", f"{script}:smooth", "--seconds", "0.02"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("smooth for llvm")
    assert "return 0.5 * (x[:-1] + x[1:])" in text


def test_arguments_targets_and_threads_are_heard(script: str, tmp_path: Path) -> None:
    file = tmp_path / "p.json"
    command = ["profile", f"{script}:smooth", "--arg", "np.ones(50, np.float32)", "--seconds", "0.02"]
    assert main([*command, "--target", "sync_llvm", "--threads", "1", "--save", str(file)]) == 0
    read = json.loads(file.read_text())
    assert (read["target"], read["threads"]) == ("sync_llvm", 1)
    assert read["cost"]["asked"]["flops"] == {"float32": 98}


def test_a_script_that_raises_shows_its_own_traceback(
    script: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["profile", f"{script}:wrong", "--arg", "np.ones(3)"]) == 1
    text = capsys.readouterr().err
    assert 'raise RuntimeError("as it is written")' in text
    assert "arrayjit/" not in text


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--seconds", "0"], "NumberError: seconds is 0.0"),
        (["--threads", "0"], "NumberError: threads is 0"),
        (["--target", "nowhere"], "UnknownTarget: unknown target 'nowhere'"),
        (["--save", "nowhere/p.html", "--seconds", "0.01"], "nowhere/p.html cannot be written"),
        (["--save", "p.pdf", "--seconds", "0.01"], "p.pdf cannot be written: a profile is no .pdf"),
    ],
)
def test_mistakes_have_status_1(
    more: list[str], words: str, script: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["profile", f"{script}:smooth", *more]) == 1
    assert words in capsys.readouterr().err
