"""`jit(tune=seconds)`: schedules are tried on the arguments of a call, and the fastest is kept.

What is not about time itself decides who is faster by rule, so that it does not depend on the machine's mood.
"""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import arrayjit
from arrayjit import cache, tuning
from arrayjit.backends import backend
from arrayjit.compile import build
from arrayjit.errors import CompilerBug, IndexOutOfRange, NumberError
from arrayjit.ir.code import Schedule
from arrayjit.passes.pipeline import LOWERING, ON_ASSIGNMENTS, ON_LOOPS, OPTIONAL
from arrayjit.tracer.calls.function import trace_function
from arrayjit.trials import Trials

SIZES = tuning.SIZES
FEW_PASSES = frozenset(("fuse", "tails"))
FEW_SIZES = (("threads", 0), ("thread_work", 0.001))


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("ARRAYJIT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(tuning, "_learnt", {})
    monkeypatch.setattr(tuning, "OPTIONAL", FEW_PASSES)
    monkeypatch.setattr(tuning, "SIZES", FEW_SIZES)
    return tmp_path / "cache" / "schedules"


@pytest.fixture
def x():
    return np.random.default_rng(1).random((40, 50))


def smooth(x):
    y = np.exp(x)
    z = np.roll(y, 1, axis=0) + y
    return z.T / z.sum(axis=1)


def tune_notes(f, *args):
    return [line for line in f.explain(*args).splitlines() if line.startswith("tune:")]


def judge(monkeypatch, gain_of):
    """Who is faster is told by `gain_of(tried, rounds)`, of how many comparisons there were before."""
    count = iter(range(10_000))
    monkeypatch.setattr(
        Trials, "compare", lambda self, one, other, rounds: 2 * (gain_of(next(count), rounds),)
    )


def another_process(monkeypatch):
    """What is known is what the files say."""
    monkeypatch.setattr(tuning, "_learnt", {})


def search_fails(monkeypatch):
    def fail(*args):
        raise AssertionError("searched again")

    monkeypatch.setattr(tuning, "_search", fail)


def test_the_result_is_the_default_s(x, monkeypatch):
    monkeypatch.setattr(tuning, "OPTIONAL", OPTIONAL)
    monkeypatch.setattr(tuning, "SIZES", SIZES)
    f = arrayjit.jit(smooth, tune=3)
    np.testing.assert_array_equal(f(x), arrayjit.jit(smooth)(x))
    np.testing.assert_array_equal(f(x), arrayjit.jit(smooth)(x))


def test_what_a_call_writes_is_written_once(x):
    def halved(x, y):
        x *= 0.5
        y[::-1, 1:] += x[:, 1:]

    mine, plain = (x.copy(), np.ones((40, 50))), (x.copy(), np.ones((40, 50)))
    arrayjit.jit(halved, tune=0.3, target="sync_llvm")(mine[0][:, ::-1], mine[1])
    halved(plain[0][:, ::-1], plain[1])
    np.testing.assert_array_equal(mine[0], plain[0])
    np.testing.assert_array_equal(mine[1], plain[1])


def test_who_is_clearly_faster_is_kept_and_told(x, monkeypatch):
    judge(monkeypatch, lambda tried, rounds: 1.5 if tried < 2 or rounds == tuning.LAST_ROUNDS else 0.5)
    f = arrayjit.jit(smooth, tune=60)
    np.testing.assert_array_equal(f(x), arrayjit.jit(smooth)(x))
    first, *rest = tune_notes(f, x)
    assert "is kept, 1.50 times as fast as the default" in first
    assert "without" in first
    assert len(rest) > 2
    assert f.lower(x).as_text("llvm") != arrayjit.jit(smooth).lower(x).as_text("llvm")


def test_the_default_is_kept_unless_it_is_clearly_beaten(x, monkeypatch):
    judge(monkeypatch, lambda tried, rounds: 1.02)
    f = arrayjit.jit(smooth, tune=60)
    f(x)
    assert tune_notes(f, x)[0].startswith("tune: the default is kept; ")
    assert f.lower(x).as_text("llvm") == arrayjit.jit(smooth).lower(x).as_text("llvm")


def test_a_winner_that_loses_in_the_end_is_not_kept(x, monkeypatch):
    judge(monkeypatch, lambda tried, rounds: 1.0 if rounds == tuning.LAST_ROUNDS else 1.5 * (tried < 2))
    f = arrayjit.jit(smooth, tune=60)
    f(x)
    assert tune_notes(f, x)[0].startswith("tune: the default is kept; ")


def test_schedules_that_fail_or_compute_something_else_are_dropped(x, monkeypatch):
    def broken(*args, schedule, **kwargs):
        if schedule.sizes:
            raise CompilerBug("a pass is wrong", stage="tile")
        return build(*args, schedule=schedule, **kwargs)

    outcomes = iter([[b"right"], *([b"wrong"] for _ in range(100))])
    monkeypatch.setattr(tuning, "build", broken)
    monkeypatch.setattr(Trials, "outcome", lambda self, procedure: next(outcomes))
    judge(monkeypatch, lambda tried, rounds: 9.0)
    f = arrayjit.jit(smooth, tune=60)
    np.testing.assert_array_equal(f(x), arrayjit.jit(smooth)(x))
    first, *rest = tune_notes(f, x)
    assert first.startswith("tune: the default is kept; ")
    assert {line.split(": ")[-1] for line in rest} == {"CompilerBug, dropped", "other results, dropped"}


def test_the_choice_is_kept_for_other_processes(x, monkeypatch):
    judge(monkeypatch, lambda tried, rounds: 1.5 if tried < 2 or rounds == tuning.LAST_ROUNDS else 0.5)
    f = arrayjit.jit(smooth, tune=60)
    f(x)
    another_process(monkeypatch)
    search_fails(monkeypatch)
    again = arrayjit.jit(smooth, tune=1)
    again(x)
    assert tune_notes(again, x) == tune_notes(f, x)
    assert again.lower(x).as_text("llvm") == f.lower(x).as_text("llvm")


def test_a_search_that_had_no_time_is_made_again_with_more(x, monkeypatch):
    arrayjit.jit(smooth, tune=1e-9)(x)
    with monkeypatch.context() as patch:
        search_fails(patch)
        arrayjit.jit(smooth, tune=1e-10)(x)
    judge(monkeypatch, lambda tried, rounds: 1.0)
    f = arrayjit.jit(smooth, tune=60)
    f(x)
    assert len(tune_notes(f, x)) > 2


@pytest.mark.parametrize(("seconds", "count"), [(0.15, 1), (0.25, 2), (60, len(FEW_PASSES) + len(FEW_SIZES))])
def test_there_is_a_budget(x, monkeypatch, seconds, count):
    """Each look at the clock finds it a tenth of a second later."""
    looks, tried, built = itertools.count(), [], tuning._built
    monkeypatch.setattr(tuning, "time", SimpleNamespace(perf_counter=lambda: next(looks) / 10))
    monkeypatch.setattr(tuning, "_built", lambda *args: (tried.append(args), built(*args))[1])
    judge(monkeypatch, lambda tried, rounds: 1.0)
    arrayjit.jit(smooth, tune=seconds)(x)
    assert len(tried) == count


DAMAGES = {
    "empty": lambda text: "",
    "cut off": lambda text: text[: len(text) // 2],
    "one letter": lambda text: text.replace("tune", "tone", 1),
    "no text": lambda text: "\0\1",
}

STRANGE = {
    "another value": [1, 2],
    "an unknown size": {
        "schedule": {"without": [], "sizes": [["wings", 2]]},
        "notes": [],
        "seconds": 9,
        "finished": True,
    },
}


@pytest.mark.parametrize("damage", [*DAMAGES, *STRANGE])
def test_a_damaged_file_is_as_good_as_none(x, folder, monkeypatch, damage):
    judge(monkeypatch, lambda tried, rounds: 1.0)
    f = arrayjit.jit(smooth, tune=60)
    f(x)
    (file,) = folder.iterdir()
    if damage in DAMAGES:
        file.write_text(DAMAGES[damage](file.read_text()))
    else:
        cache.remember(file.parent.name, file.name, json.dumps(STRANGE[damage]).encode())
    another_process(monkeypatch)
    again = arrayjit.jit(smooth, tune=60)
    assert tune_notes(again, x) == ["tune: the first call on NumPy arrays tries schedules"]
    np.testing.assert_array_equal(again(x), f(x))
    assert tune_notes(again, x)[0].startswith("tune: the default is kept")
    assert file.read_text().partition("\n")[2].startswith('{"schedule"')
    assert list(folder.iterdir()) == [file]


def test_without_a_place_for_files_the_choice_is_kept_for_the_process(x, tmp_path, monkeypatch):
    (tmp_path / "taken").write_text("a file, no folder")
    monkeypatch.setenv("ARRAYJIT_CACHE_DIR", str(tmp_path / "taken"))
    judge(monkeypatch, lambda tried, rounds: 1.0)
    arrayjit.jit(smooth, tune=60)(x)
    search_fails(monkeypatch)
    arrayjit.jit(smooth, tune=60)(x)


def test_a_call_that_raises_is_not_tuned_and_raises(x, folder):
    def picked(x, n):
        return x[n]

    f = arrayjit.jit(picked, tune=60)
    with pytest.raises(IndexOutOfRange):
        f(x, np.array([1, 99]))
    assert not folder.exists()
    np.testing.assert_array_equal(f(x, np.array([1, 39])), x[[1, 39]])


def test_the_interpreter_has_nothing_to_choose(x):
    f = arrayjit.jit(smooth, tune=60, target="interp")
    f(x[:3, :4])
    assert tune_notes(f, x[:3, :4]) == ["tune: target interp has one schedule only"]


def test_calls_on_a_device_s_arrays_take_what_was_chosen_before(x, monkeypatch):
    judge(monkeypatch, lambda tried, rounds: 1.0)
    f = arrayjit.jit(smooth, tune=60)
    here = arrayjit.asarray(x, device="llvm")
    np.testing.assert_array_equal(f(here).numpy(), f(x))


def test_what_a_choice_depends_on(x):
    def key(function, *args, target="llvm", threads=None):
        return tuning._key(build(trace_function(function, args, {}).computation, target, threads=threads))

    keys = [
        key(smooth, x),
        key(smooth, x[:39]),
        key(smooth, x.astype(np.float32)),
        key(lambda x: smooth(x), x),
        key(smooth, x, threads=1),
        key(smooth, x, target="sync_llvm"),
    ]
    assert len(set(keys)) == len(keys)
    assert key(smooth, x) == keys[0]


PROGRAM = """
import numpy as np, arrayjit, sys
f = arrayjit.jit(lambda x: np.exp(x) / x.sum(axis=0), tune=1e-9)
f(np.ones((30, 40)))
"""


def test_processes_agree_about_keys(folder):
    for _ in range(2):
        subprocess.run([sys.executable, "-c", PROGRAM], check=True)
    assert len(list(folder.iterdir())) == 1


@pytest.mark.parametrize("tune", [0, -1.0, "long", True, float("nan")])
def test_what_is_no_time_is_refused(tune):
    with pytest.raises(NumberError, match="tune is"):
        arrayjit.jit(smooth, tune=tune)


@pytest.mark.parametrize("name", sorted(OPTIONAL))
def test_programs_are_right_without_an_optional_pass(x, name):
    assert name in {step.name for step in (*ON_ASSIGNMENTS, *ON_LOOPS)}
    computation = trace_function(smooth, (x,), {}).computation
    left_out = build(computation, "sync_llvm", schedule=Schedule((name,)))
    assert name not in left_out.seconds
    chosen, wanted = (_results(program, x) for program in (left_out, build(computation, "sync_llvm")))
    assert chosen == wanted


def _results(program, x):
    y = np.empty((50, 40))
    program.load().launch([x.ctypes.data, y.ctypes.data])
    return y.tobytes()


def test_passes_that_a_program_needs_are_never_left_out(x):
    caps = backend("llvm").target.caps()
    names = {LOWERING.name, *(step.name for step in ON_LOOPS if step.suits(caps))} - OPTIONAL
    computation = trace_function(smooth, (x,), {}).computation
    assert names <= build(computation, "llvm", schedule=Schedule(tuple(sorted(names)))).seconds.keys()


def test_sizes_are_those_that_passes_plan_by():
    caps = backend("llvm").target.caps()
    seen = Schedule(sizes=(("l2_bytes", 1), ("threads", 1))).seen_on(caps)
    assert (seen.l2_bytes, seen.threads, seen.l1_bytes) == (1, 1, caps.l1_bytes)
    assert caps.l2_bytes > 1
