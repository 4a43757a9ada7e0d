"""The flow as a whole: what is kept of it on request, and whose fault a failure is."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import numpy as np
import pytest

import arrayjit
from arrayjit.compile import build
from arrayjit.errors import CompilerBug, SettingError
from arrayjit.ir.assign import Computation
from arrayjit.passes import manager
from arrayjit.passes.pipeline import ON_ASSIGNMENTS
from arrayjit.passes.table import Pass
from arrayjit.targets.interp import InterpTarget


def broken(*args):
    raise KeyError("lost")


def test_each_build_has_a_folder_with_a_file_per_stage(tmp_path, monkeypatch):
    monkeypatch.setenv("ARRAYJIT_DUMP", str(tmp_path))
    double = arrayjit.jit(lambda x: x * 2)
    double(np.arange(3.0))
    double(np.arange(4))
    float_build, int_build = sorted(tmp_path.iterdir())
    stages = [file.name for file in sorted(float_build.iterdir())]
    assert stages[:2] == ["000-traced.txt", f"001-{ON_ASSIGNMENTS[0].name}.txt"]
    assert [stage[4:] for stage in stages[-2:]] == ["emitted.txt", "asm.txt"]
    assert __file__ in (float_build / stages[0]).read_text()
    assert "function_kernel" in (float_build / stages[-1]).read_text()
    for folder, dtype in ((float_build, "f64"), (int_build, "i64")):
        (lowered,) = folder.glob("*-lower.txt")
        assert dtype in lowered.read_text()


def test_folders_of_dumps_are_made_and_have_readable_names(tmp_path, monkeypatch):
    monkeypatch.setenv("ARRAYJIT_DUMP", str(tmp_path / "new" / "dumps"))
    program = Computation("../two words/<lambda>", (), ())
    for _ in range(2):
        build(program, "interp")
    found = sorted(folder.name for folder in (tmp_path / "new" / "dumps").iterdir())
    assert found == ["_two_words_lambda_-0", "_two_words_lambda_-1"]


def test_a_folder_that_cannot_be_written_is_named(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("ARRAYJIT_DUMP", str(tmp_path / "file" / "dumps"))
    with pytest.raises(
        SettingError, match=r"ARRAYJIT_DUMP is .*file/dumps', where nothing can be written: Not a"
    ):
        arrayjit.jit(lambda x: x * 2)(np.arange(3.0))


def test_a_failing_pass_says_where_its_reproducer_is(tmp_path, monkeypatch):
    monkeypatch.setenv("ARRAYJIT_DUMP", str(tmp_path))
    monkeypatch.setattr(manager, "ON_LOOPS", (Pass(broken),))
    with pytest.raises(CompilerBug, match="KeyError: 'lost'") as failure:
        arrayjit.jit(lambda x: x * 2)(np.arange(3.0))
    assert "f64, 3" in Path(failure.value.reproducer).read_text()


def test_a_failing_emitter_is_named(monkeypatch):
    monkeypatch.setattr(InterpTarget, "emit", broken)
    with pytest.raises(CompilerBug, match="arrayjit bug in the emitter of interp: KeyError: 'lost'"):
        arrayjit.jit(lambda x: x * 2, target="interp")(np.arange(3.0))


class Clock:
    def rings(self, *of):
        raise TimeoutError("too long")


@pytest.mark.parametrize("handler", [Clock().rings, lambda *of: Clock().rings()])
def test_what_a_handler_of_signals_raises_is_the_users(monkeypatch, handler):
    def slow(*args):
        signal.raise_signal(signal.SIGALRM)

    before = signal.signal(signal.SIGALRM, handler)
    double = arrayjit.jit(lambda x: x * 2, target="interp")
    try:
        for place, name, broken in ((manager, "ON_LOOPS", (Pass(slow),)), (InterpTarget, "emit", slow)):
            monkeypatch.setattr(place, name, broken)
            with pytest.raises(TimeoutError, match="too long"):
                double(np.arange(3.0))
            monkeypatch.undo()
    finally:
        signal.signal(signal.SIGALRM, before)
    np.testing.assert_array_equal(double(np.arange(3.0)), np.arange(3.0) * 2)


def test_memory_that_gives_out_is_no_fault(monkeypatch):
    def large(*args):
        raise MemoryError

    monkeypatch.setattr(manager, "ON_LOOPS", (Pass(large),))
    with pytest.raises(MemoryError):
        arrayjit.jit(lambda x: x * 2)(np.arange(3.0))


def test_a_stack_is_its_callers_unless_a_pass_takes_most_of_it(monkeypatch):
    def deep(kernel, caps, calls=100):
        return kernel if calls == 0 else deep(kernel, caps, calls - 1)

    def call(calls):
        return double(np.arange(3.0)) if calls == 0 else call(calls - 1)

    double = arrayjit.jit(lambda x: x * 2)
    limit = sys.getrecursionlimit()
    monkeypatch.setattr(manager, "ON_LOOPS", (Pass(deep),))
    for calls in range(0, limit, 20):
        try:
            call(calls)
        except RecursionError:
            assert calls > limit // 2
            break
    else:
        pytest.fail("the stack is larger")
    monkeypatch.setattr(manager, "ON_LOOPS", (Pass(lambda kernel, caps: deep(kernel, caps, limit)),))
    with pytest.raises(CompilerBug, match="RecursionError"):
        arrayjit.jit(lambda x: x * 2)(np.arange(3.0))
