"""The flow as a whole: what is kept of it on request, and whose fault a failure is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import arrayjit
from arrayjit.errors import CompilerBug
from arrayjit.passes import manager
from arrayjit.passes.pipeline import ON_ASSIGNMENTS, Pass
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
    assert stages[0] == f"00-{ON_ASSIGNMENTS[0].name}.txt"
    assert stages[-1].endswith("emitted.txt")
    for build, dtype in ((float_build, "f64"), (int_build, "i64")):
        (lowered,) = build.glob("*-lower.txt")
        assert dtype in lowered.read_text()


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
