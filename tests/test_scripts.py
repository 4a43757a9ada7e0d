"""`python -m arrayjit explain SCRIPT:FUNCTION`: how commands find a function and its arguments, and what they
say when they cannot."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from arrayjit.__main__ import main
from arrayjit.api import JitFunction
from arrayjit.scripts import ScriptError, call_of

SCRIPT = """
import numpy as np
import arrayjit
import beside

@arrayjit.jit
def twice(x, scale=2):
    return x * scale

def make_twice():
    return {"x": np.arange(beside.COUNT), "scale": 3}

def plain(x, y):
    return x + y

def make_plain():
    return np.ones(3), 1.0

def alone():
    return np.arange(3) * 2

class Model:
    @staticmethod
    def step(x):
        return x + 1

def make_step():
    return np.zeros(4)

def wrong(x):
    raise RuntimeError("as it is written")

assert __name__ != "__main__"
"""


@pytest.fixture
def script(tmp_path: Path) -> str:
    (tmp_path / "beside.py").write_text("COUNT = 5\n")
    file = tmp_path / "program.py"
    file.write_text(SCRIPT)
    return str(file)


def test_arguments_are_what_the_script_makes(script: str) -> None:
    call = call_of(f"{script}:twice")
    assert isinstance(call.function, JitFunction)
    assert call.args == ()
    assert call.kwargs["scale"] == 3
    assert call.function(*call.args, **call.kwargs).tolist() == [0, 3, 6, 9, 12]
    assert call_of(f"{script}:plain").args[1] == 1.0
    assert call_of(f"{script}:Model.step").args[0].shape == (4,)


def test_a_function_without_parameters_needs_no_arguments(script: str) -> None:
    call = call_of(f"{script}:alone")
    assert call.function().tolist() == [0, 2, 4]


def test_arguments_are_expressions_over_the_script_and_numpy(script: str) -> None:
    call = call_of(f"{script}:twice", ["np.ones(beside.COUNT)", "scale=len('abc')"])
    assert call.args[0].shape == (5,)
    assert call.kwargs == {"scale": 3}


def test_a_module_is_named_as_it_is_imported() -> None:
    assert call_of("numpy.linalg:norm", ["np.ones(4)"]).function(np.ones(4)) == 2.0


@pytest.mark.parametrize(
    ("name", "expressions", "message"),
    [
        ("{script}", [], "names no function"),
        ("{script}:nowhere", [], "has no function 'nowhere'"),
        ("{script}:twice.nowhere", [], "has no function 'twice.nowhere'"),
        ("{script}:Model.nowhere", [], "has no function 'Model.nowhere'"),
        ("{script}s:twice", [], "there is no script"),
        ("no.such.module:f", [], "there is no script 'no.such.module'"),
        ("{script}:wrong", [], "needs arguments: x"),
        ("{script}:twice", ["1 +"], "--arg '1 +': invalid syntax"),
    ],
)
def test_what_is_missing_is_said(script: str, name: str, expressions: list[str], message: str) -> None:
    with pytest.raises(ScriptError) as raised:
        call_of(name.format(script=script), expressions)
    assert message in str(raised.value)
    assert raised.value.fix


def test_the_command_explains(script: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["explain", f"{script}:twice"]) == 0
    assert "1 assignment became 1 loop nest" in capsys.readouterr().out
    assert main(["explain", f"{script}:twice", "--save", str(tmp_path / "e.html"), "--target", "interp"]) == 0
    assert (tmp_path / "e.html").exists()


def test_the_command_fails_with_status_1_and_the_reason(
    script: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", f"{script}:nowhere"]) == 1
    assert "jitted functions: twice" in capsys.readouterr().err
    assert main(["explain", f"{script}:twice", "--save", "/nowhere/e.svg"]) == 1
    assert "/nowhere/e.svg cannot be written: " in capsys.readouterr().err
    assert main(["explain", f"{script}:twice", "--target", "abacus"]) == 1
    assert "abacus" in capsys.readouterr().err


def test_what_a_script_raises_is_shown_without_our_frames(
    script: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", f"{script}:wrong", "--arg", "1"]) == 1
    shown = capsys.readouterr().err
    assert shown.startswith("Traceback")
    assert shown.endswith("RuntimeError: as it is written\n")
    assert shown.count("File ") == shown.count("program.py") == 1
    Path(script).write_text("1 / 0\n")
    assert main(["explain", f"{script}:wrong"]) == 1
    shown = capsys.readouterr().err
    assert shown.count("File ") == shown.count("program.py") == 1
