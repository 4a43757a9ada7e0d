"""`arrayjit.log_values(file)`: what a program assigns, cell by cell with the user's line, the same on every
target."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import arrayjit
from arrayjit.backends import backend
from arrayjit.compile import compile as compile_program
from arrayjit.ir.journal import CAPACITY
from arrayjit.ir.parse import parse
from arrayjit.ir.tensor import Tensor
from arrayjit.runtime.context import Context
from arrayjit.timeline import RECORDER

TARGETS = ("interp", "llvm", "sync_llvm", "sync_c")


def logged(function: Callable[..., Any], *args: Any, **options: Any) -> str:
    """The log of a call, the same on every target; lines of this file are numbered from the function on."""
    texts = set()
    for target in TARGETS:
        out = io.StringIO()
        copies = [np.copy(arg) if isinstance(arg, np.ndarray) else arg for arg in args]
        with arrayjit.log_values(out):
            arrayjit.jit(function, target=target, **options)(*copies)
        texts.add(out.getvalue())
    (text,) = texts
    first = function.__code__.co_firstlineno
    return re.sub(rf"{re.escape(__file__)}:(\d+)", lambda match: f"+{int(match[1]) - first}", text)


def test_arguments_then_each_assignment_with_its_line() -> None:
    def program(x: Any) -> Any:
        y = np.sqrt(x)
        return y.sum(axis=0)

    assert logged(program, np.array([[4.0, 9.0], [16.0, 2.0]])) == (
        "program:\n"
        "  arguments\n"
        "    x[0, 0] = 4.0\n"
        "    x[0, 1] = 9.0\n"
        "    x[1, 0] = 16.0\n"
        "    x[1, 1] = 2.0\n"
        "  +1: y = np.sqrt(x)\n"
        "    t[0, 0] = 2.0\n"
        "    t[0, 1] = 3.0\n"
        "    t[1, 0] = 4.0\n"
        "    t[1, 1] = 1.4142135623730951\n"
        "  +2: return y.sum(axis=0)\n"
        "    add[0] = 6.0\n"
        "    add[1] = 4.414213562373095\n"
    )


def test_iterations_come_one_after_the_other() -> None:
    def program(x: Any, n: int) -> Any:
        for i in range(n):
            x[i + 1] += x[i]
        return x

    text = logged(program, np.arange(1.0, 7.0), 5)
    assert re.findall(r"x\[(\d)\] = (\S+)", text)[6:] == [
        ("1", "3.0"),
        ("2", "6.0"),
        ("3", "10.0"),
        ("4", "15.0"),
        ("5", "21.0"),
    ]


@pytest.mark.parametrize(
    ("dtype", "values", "shown"),
    [
        (np.float32, [0.1, np.inf], ["0.2", "inf"]),
        (np.float16, [0.1, 2.0], ["0.2", "4.0"]),
        (np.int8, [-1, 3], ["-2", "6"]),
        (np.uint64, [2**63 - 1, 1], ["18446744073709551614", "2"]),
    ],
)
def test_values_are_shown_as_their_dtype_has_them(dtype: type, values: list[Any], shown: list[str]) -> None:
    text = logged(lambda x: x + x, np.array(values, dtype))
    assert re.findall(r"t\[\d\] = (\S+)", text) == shown
    assert re.findall(r"t\[\d\] = (\S+)", logged(lambda x: x > 0, np.array(values, dtype)))[1] == "True"


def test_elementary_functions_and_products_have_the_same_bits_everywhere() -> None:
    x = np.random.default_rng(0).standard_normal((5, 7))
    text = logged(lambda x: np.tanh(x @ x.T) + np.exp(x).mean() + np.sin(x).sum(), x)
    assert text.count("\n") > 130


def test_what_an_exception_cut_short_is_shown_up_to_there() -> None:
    out = io.StringIO()
    with arrayjit.log_values(out), pytest.raises(FloatingPointError):
        arrayjit.jit(lambda x: np.log(x + 1) * 2, check="nan")(np.array([-3.0]))
    assert re.findall(r"t\[0\] = (\S+)", out.getvalue()) == ["-2.0"]


def test_results_and_later_calls_are_as_ever() -> None:
    f = arrayjit.jit(lambda x: np.exp(x).sum())
    x = np.random.default_rng(0).random(1000)
    plain = f(x)
    out = io.StringIO()
    with arrayjit.log_values(out):
        assert f(x) == plain
        assert f(x) == plain
    assert out.getvalue().count("arguments") == 2
    assert f(x) == plain
    assert out.getvalue().count("arguments") == 2
    assert "told" not in f.lower(x).as_text("loops")


def test_functions_that_are_called_without_python_are_logged_as_well() -> None:
    f = arrayjit.jit(lambda x: x + 1)
    for _ in range(60):
        f(np.ones(2))
    out = io.StringIO()
    with arrayjit.log_values(out):
        f(np.ones(2))
    assert out.getvalue().count("t[1] = 2.0") == 1


def test_what_has_no_room_is_left_out_and_said() -> None:
    n = CAPACITY // 3
    out = io.StringIO()
    with arrayjit.log_values(out):
        assert arrayjit.jit(lambda x: x * 2)(np.ones(n)).sum() == 2 * n
    lines = out.getvalue().splitlines()
    assert len(lines) <= n + 3
    assert lines[-1] == "  the log has no room for what follows"


PROGRAM = """
def double(x: read[f64, 3], y: write[f64, 3]):
    for i in each(3):
        y[i] = multiply[f64](x[i], f64(2.0))
"""


def test_routines_that_are_compiled_in_the_block_are_logged() -> None:
    program: Any = parse(PROGRAM)
    x, y = (param.tensor for param in program.params)
    assert isinstance(x, Tensor)
    made = backend("sync_llvm")
    out = io.StringIO()
    with arrayjit.log_values(out):
        routine = Context(made.get_device(0)).link(compile_program(made, program))
        routine.context.from_host(x, np.arange(3.0))
        routine.run().sync()
        result = np.empty(3)
        routine.context.to_host(y, result)
        routine.context.stream.await_()
    assert result.tolist() == [0.0, 2.0, 4.0]
    assert re.findall(r"y\[\d\] = (\S+)", out.getvalue()) == ["0.0", "2.0", "4.0"]


def test_arrays_on_devices() -> None:
    out = io.StringIO()
    with arrayjit.log_values(out):
        (arrayjit.asarray(np.arange(3.0), device="llvm") * 2.0).block_until_ready()
    assert re.findall(r"t\[\d\] = (\S+)", out.getvalue()) == ["0.0", "2.0", "4.0"]


def test_a_file_is_written_and_one_log_at_a_time(tmp_path: Path) -> None:
    with arrayjit.log_values(tmp_path / "v.txt"):
        arrayjit.jit(lambda x: x + 1)(np.ones(2))
        with pytest.raises(RuntimeError, match="logged already"), arrayjit.log_values(tmp_path / "w.txt"):
            pass
    assert (tmp_path / "v.txt").read_text().count(" = 2.0\n") == 2
    with pytest.raises(FileNotFoundError), arrayjit.log_values(tmp_path / "nowhere" / "v.txt"):
        pass
    assert RECORDER.values is None
