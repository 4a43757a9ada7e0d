"""A later process finds what an earlier one compiled, and compiles again whatever may differ."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest

import arrayjit
from arrayjit import cache, reuse
from arrayjit.compile import build
from arrayjit.ir.code import Schedule
from arrayjit.targets.host import cpu_named, host_cpu
from arrayjit.tracer.calls.function import trace_function
from arrayjit.tracer.calls.names import declared


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("ARRAYJIT_CACHE_DIR", str(tmp_path))
    return tmp_path


PROGRAM = """
import json, sys
import numpy as np
import arrayjit
from arrayjit.cache import counters

@arrayjit.jit
def f(a, b, i):
    total = np.tanh(a @ b).sum(axis=0)
    return {"total": total, "one": a[i]}, np.exp(a)

a = np.linspace(0, 1, 9000).reshape(90, 100)
b = np.ones((100, 30))
for _ in range(100):
    found, exponential = f(a, b, 3)
try:
    f(a, b, np.int64(1000))
except IndexError as error:
    message = str(error)
print(json.dumps([found["total"].tobytes().hex(), exponential.sum(), message, "llvmlite" in sys.modules,
    "arrayjit.passes" in sys.modules, "arrayjit.targets.llvm_module" in sys.modules, counters.written]))
"""


def run_program(folder, **environment):
    file = folder / "program.py"
    file.write_text(PROGRAM)
    ran = subprocess.run(
        [sys.executable, str(file)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment},
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def test_a_process_whose_code_is_all_there_loads_neither_llvm_nor_passes(folder):
    *results, llvm, passes, emitter, written = run_program(folder)
    assert (llvm, passes, emitter) == (True, True, True)
    assert written > 2
    assert run_program(folder) == [*results, False, False, False, 0]
    assert "program.py" in results[2]


def test_where_nothing_can_be_kept_every_process_compiles(folder):
    environment = {"ARRAYJIT_CACHE_BYTES": "0"}
    assert run_program(folder, **environment) == run_program(folder, **environment)
    assert run_program(folder, **environment)[3:] == [True, True, True, 0]


TOLD = """
import json, sys
import numpy as np
import arrayjit
import helper

@arrayjit.jit
def f(a, n, scale=helper.scale):
    rows = np.arange(len(a))
    for k in range(n):
        a = a[rows] * helper.twice(k + 1) + scale
    return {"a": a, "plain": (None, "text")}, [a[0]], helper.name

@arrayjit.jit(static_argnames="way")
def reduced(a, way, m):
    return way(a.reshape(m, -1), axis=1), a

a = np.linspace(0, 1, 48)
results = []
for n in (2, 3, 2):
    found, (first,), name = f(a, n)
    results += [found["a"].sum(), found["plain"], first, name]
for way in (np.sum, np.prod):
    for m in (2, 4):
        totals, same = reduced(a, way, m)
        results += [totals.tolist(), same is a]
traced = [name for name in {only_for_traces!r} if name in sys.modules]
print(json.dumps([results, bool(traced), f.stats().misses + reduced.stats().misses]))
"""
HELPER = """
scale, name = 0.5, "one"
def twice(x):
    return 2 * x
"""


ONLY_FOR_TRACES = (
    "arrayjit.tracer.calls.function",
    "arrayjit.ir.expr",
    "arrayjit.ir.loops",
    "arrayjit.passes",
)
TOLD = TOLD.replace("{only_for_traces!r}", repr(ONLY_FOR_TRACES))


def test_an_import_brings_nothing_that_only_traces_need():
    names = (*ONLY_FOR_TRACES, "llvmlite")
    code = f"import sys, arrayjit; sys.exit(any(name in sys.modules for name in {names}))"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)


def test_an_import_brings_few_modules():
    """Of our own, and of Python's those that NumPy has not brought already."""
    code = (
        "import sys, numpy\n"
        "before = set(sys.modules)\n"
        "import arrayjit\n"
        "print(*sorted(set(sys.modules) - before))"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    ran = subprocess.run(
        [sys.executable, "-c", code], check=True, env=environment, capture_output=True, text=True
    )
    ours = [name for name in ran.stdout.split() if name.startswith("arrayjit")]
    others = [name for name in ran.stdout.split() if not name.startswith("arrayjit")]
    assert len(ours) <= 60, ours
    assert len(others) <= 20, others


def run_told(folder, program=TOLD, helper=HELPER, **environment):
    file = folder / "program.py"
    file.write_text(program)
    (folder / "helper.py").write_text(helper)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment}
    environment["PYTHONDONTWRITEBYTECODE"] = "1"  # a file that changes twice in a second looks the same
    ran = subprocess.run(
        [sys.executable, str(file)], capture_output=True, text=True, env=environment, check=False
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def test_a_process_whose_calls_are_all_there_traces_nothing(folder):
    results, traced, misses = run_told(folder)
    assert traced
    assert run_told(folder) == [results, False, misses]
    assert run_told(folder, ARRAYJIT_CACHE_BYTES="0") == [results, True, misses]


@pytest.mark.parametrize(
    ("file", "before", "after"),
    [
        ("helper", "return 2 * x", "return 3 * x"),
        ("helper", "0.5", "0.75"),
        ("helper", '"one"', '"two"'),
        ("program", "a[rows] * ", "a[rows] + "),
        ("program", "a[rows] * ", "a[rows[::-1]] * "),
        ("program", "arange(len(a))", "arange(len(a))[::-1]"),
        ("program", '"text"', '"other text"'),
    ],
)
def test_a_change_between_two_processes_is_noticed(folder, file, before, after):
    texts = {"program": TOLD, "helper": HELPER}
    first, *_ = run_told(folder, **texts)
    texts[file] = texts[file].replace(before, after)
    changed, traced, misses = run_told(folder, **texts)
    assert traced
    assert [changed, True, misses] == run_told(folder, **texts, ARRAYJIT_CACHE_BYTES="0")
    assert changed != first
    assert run_told(folder, **texts) == [changed, False, misses]


def test_what_was_recalled_is_checked_as_what_was_traced(folder):
    """A name that is bound anew leads to other code in either."""
    program = TOLD.replace(
        "results = []",
        "results = []\nf(a, 2)\nhelper.twice = lambda x: x\nresults += [f(a, 2)[0]['a'].sum()]",
    )
    first, traced, _ = run_told(folder, program)
    again, *_ = run_told(folder, program)
    assert traced
    assert first == again == run_told(folder, program, ARRAYJIT_CACHE_BYTES="0")[0]


def blur(x, w):
    y = x.copy()
    y[1:-1] = (x[2:] + x[:-2]) * w + x[1:-1]
    return y


def computed(function=blur, *args):
    arguments = args or (np.ones(50), 0.5)
    return trace_function(function, arguments, {}, declared(function), False).computation


def phases(computation, target="sync_llvm", **options):
    return build(computation, target, **options).seconds.keys()


def test_code_is_recalled_with_all_that_belongs_to_it():
    first, again = (build(computed(), "sync_llvm") for _ in range(2))
    assert again.seconds.keys() == {"recall text"}
    assert again.code.params == again.computation.params != first.code.params
    for name in ("target", "name", "payload", "arena_bytes", "failures", "needs", "threads", "is_short"):
        assert getattr(again.code, name) == getattr(first.code, name), name
    for stage in ("assignments", "loops", "optimized", "llvm", "asm"):
        assert again.as_text(stage) == first.as_text(stage)
    assert again.optimized.notes == first.optimized.notes
    assert again.optimized is again.optimized


CHANGES = {
    "the program": lambda: phases(computed(lambda x, w: blur(x, w) + 1, np.ones(50), 0.5)),
    "a size": lambda: phases(computed(blur, np.ones(51), 0.5)),
    "a dtype": lambda: phases(computed(blur, np.ones(50, np.float32), 0.5)),
    "the threads": lambda: phases(computed(), "llvm", threads=1),
    "the schedule": lambda: phases(computed(), schedule=Schedule(without=("fuse",))),
}


@pytest.mark.parametrize("change", CHANGES)
def test_anything_else_is_compiled(change):
    phases(computed())
    assert "lower" in CHANGES[change]()
    assert CHANGES[change]() == {"recall text"}


def test_another_version_of_the_package_finds_nothing(monkeypatch):
    phases(computed())
    monkeypatch.setattr(reuse, "_package_identity", lambda: "another")
    assert "lower" in phases(computed())


def test_the_identity_of_the_package_changes_with_any_file(tmp_path):
    (tmp_path / "ir").mkdir()
    files = [tmp_path / "a.py", tmp_path / "ir" / "b.py"]
    for file in files:
        file.write_text("x = 1")
    before = sorted(reuse._files(str(tmp_path)))
    (tmp_path / "notes.txt").write_text("no source")
    assert sorted(reuse._files(str(tmp_path))) == before
    os.utime(files[1], (1, 1))
    assert sorted(reuse._files(str(tmp_path))) != before


CPU_PROGRAM = """
import numpy as np
import arrayjit

def doubled(x):
    return np.exp(x) * 2

lowered = arrayjit.jit(doubled, target="sync_llvm").lower(np.ones(100))
built = lowered.build
print("recall text" in built.seconds, built.code.needs, "target-features" in built.code.payload)
"""


@pytest.mark.parametrize("before", ["", "generic"])
def test_code_for_another_cpu_is_other_code(folder, before):
    """`generic` and `sse2` are the same to the passes, and so are the host and its own row."""
    file = folder / "cpu.py"
    file.write_text(CPU_PROGRAM)

    def told(cpu):
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "ARRAYJIT_CPU": cpu}
        command = [sys.executable, str(file)]
        return subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout

    assert told(before).startswith("False ")
    for cpu in {"sse2", host_cpu().name} - {before}:
        needs = cpu_named(cpu).features
        assert told(cpu) == f"False {needs} True\n"
        assert told(cpu) == f"True {needs} True\n"


@pytest.mark.parametrize("setting", ["ARRAYJIT_VERIFY", "ARRAYJIT_DUMP"])
def test_who_watches_the_passes_sees_them_at_work(monkeypatch, tmp_path, setting):
    phases(computed())
    monkeypatch.setenv(setting, "1" if setting == "ARRAYJIT_VERIFY" else str(tmp_path / "dump"))
    assert "lower" in phases(computed())


def test_a_damaged_entry_is_compiled_anew_and_counted(folder, monkeypatch):
    x = np.linspace(0, 1, 50)
    expected = arrayjit.jit(blur, target="sync_llvm")(x, 0.5)
    for file in folder.glob("*/*"):
        file.write_bytes(file.read_bytes()[:-1])
    monkeypatch.setattr(cache, "counters", cache.Counters())
    assert np.array_equal(arrayjit.jit(blur, target="sync_llvm")(x, 0.5), expected)
    assert cache.counters.damaged == 3


def test_the_reference_keeps_nothing(folder):
    arrayjit.jit(blur, target="interp")(np.ones(50), 0.5)
    assert list(folder.glob("*/*")) == []
