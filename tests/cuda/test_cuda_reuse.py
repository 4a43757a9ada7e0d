"""What a process has compiled for GPUs, later ones find: they trace nothing, and compile nothing."""

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
from arrayjit import reuse
from arrayjit.ir.code import Code
from arrayjit.ir.index import Affine, Symbol, SymbolKind
from arrayjit.ir.launches import Blocks, DeviceProgram, Launch, Number, Repeat
from arrayjit.ir.params import IndexParam

PROGRAM = """
import json, sys
import numpy as np
import arrayjit
from arrayjit.cache import counters

@arrayjit.jit(target="cuda-sim")
def picked(x, i):
    return np.exp(x)[i], {"sum": x.sum()}

@arrayjit.jit(target="cuda-sim")
def smoothed(x, steps):
    for _ in range(steps):
        x[1:-1] = 0.5 * (x[:-2] + x[2:])
    return x

@arrayjit.jit(target="cuda-sim")
def halved(x):
    return arrayjit.while_loop(lambda x: np.abs(x).max() > 1, lambda x: x * 0.5, x)

x = np.linspace(0, 3, 5000, dtype=np.float32)
first, rest = picked(x, np.arange(9))
second = halved(smoothed(arrayjit.asarray(x, device="cuda-sim"), 3))
third = smoothed(x.copy(), 2)
try:
    picked(x, np.arange(4997, 5003))
except IndexError as error:
    message = str(error)
results = [np.asarray(part).tobytes().hex() for part in (first, rest["sum"], second, third)]
loaded = [name in sys.modules
    for name in ("arrayjit.tracer.calls.function", "arrayjit.passes", "arrayjit.targets.cuda_module")]
print(json.dumps([results, message, *loaded, counters.written]))
"""


def run_program(folder: Path) -> list[Any]:
    file = folder / "program.py"
    file.write_text(PROGRAM)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "ARRAYJIT_CACHE_DIR": str(folder)}
    environment.pop("ARRAYJIT_CACHE_BYTES", None)
    ran = subprocess.run(
        [sys.executable, str(file)], capture_output=True, text=True, env=environment, check=False
    )
    assert ran.returncode == 0, ran.stderr
    found: list[Any] = json.loads(ran.stdout)
    return found


def test_a_later_process_neither_traces_nor_compiles(tmp_path: Path) -> None:
    results, message, *first, written = run_program(tmp_path)
    assert first == [True, True, True]
    assert written
    assert "program.py" in message
    assert run_program(tmp_path) == [results, message, False, False, False, 0]


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARRAYJIT_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("ARRAYJIT_CACHE_BYTES", raising=False)


def test_a_plan_is_about_the_symbols_of_the_parameters_that_it_is_recalled_for(kept: None) -> None:
    def param() -> IndexParam:
        return IndexParam(Symbol("n", SymbolKind.STATIC, 0, 100))

    first, again, step = param(), param(), Symbol("step")
    launch = Launch("k", (Blocks(Affine.of(first.symbol), 32),), (32,), (Number(step + first.symbol),))
    plan = (Repeat(step, Affine.of(0), Affine.of(first.symbol), (launch,)),)
    code = Code("cuda-sim", "k", DeviceProgram("source", "sm_90", plan), (first,))
    reuse.remember_code("key", (first,), code)
    found = reuse.recall_code("key", (again,))
    assert found is not None
    (repeat,) = found.payload.plan
    (inner,) = repeat.body
    assert (repeat.hi, inner.grid[0].cells) == (Affine.of(again.symbol), Affine.of(again.symbol))
    assert inner.arguments == (Number(repeat.symbol + again.symbol),)
    assert repeat.symbol is not step
    assert found.payload.source == "source"


def test_arrays_that_are_given_away_are_traced_again(kept: None) -> None:
    """What is written where depends on them."""
    x = np.linspace(0, 1, 3000)
    for _ in range(2):
        f = arrayjit.jit(lambda x: x + 1)
        given = arrayjit.asarray(x, device="cuda-sim")
        np.testing.assert_array_equal(f(arrayjit.donate(given)).numpy(), x + 1)
        assert "trace" in f.stats().reasons[-1].phases
