"""What a user hears of compilations: each with reason and phases, a warning of many, an error of any."""

from __future__ import annotations

import concurrent.futures
import functools
import gc
import logging
import re
import subprocess
import sys
import threading
import warnings
import weakref
from unittest.mock import Mock

import numpy as np
import pytest

import arrayjit
from arrayjit import compilations, variants


@pytest.fixture(params=["interp", "sync_llvm", "llvm"])
def target(request):
    return request.param


def scaled(x, by=2.0):
    return np.exp(x) * by


def line():
    import inspect

    return inspect.currentframe().f_back.f_lineno


def test_the_report_has_each_compilation_with_its_phases(target, monkeypatch, tmp_path):
    monkeypatch.setenv("ARRAYJIT_CACHE_DIR", str(tmp_path))
    f = arrayjit.jit(scaled, target=target)
    assert f.compile_report() == "nothing was compiled yet"
    f(np.ones(3)), f(np.ones(4, "f4"))
    first, second = re.split(r"\n(?=scaled)", f.compile_report())
    assert first.startswith(f"scaled for {target}, ")
    assert f"ms: first call; called at {__file__}" in first
    assert "x: float64[3] -> float32[4]" in second
    phases = f.stats().reasons[0].phases.keys()
    assert {row.split()[-1] for row in first.splitlines()[1:]} <= {*phases, "others"}
    assert phases >= {"trace", "lower", "emit"}
    if target != "interp":
        assert phases >= {"codegen", "link"}
        again = arrayjit.jit(scaled, target=target)
        again(np.ones(3))
        assert {"recall call", "recall code", "link"} == again.stats().reasons[0].phases.keys()


def test_short_phases_are_reported_as_one():
    phases = {"trace": 0.003, "fuse": 0.0001, "emit": 0.05, "place": 0.0002}
    miss = arrayjit.Miss("first call", "llvm", 54.0, None, "scaled", phases)
    head, *rows = compilations.report([miss]).splitlines()
    assert head == str(miss) == "scaled for llvm, 54.0 ms: first call"
    assert [row.split(None, 1) for row in rows] == [
        ["50.00", "emit"],
        ["3.00", "trace"],
        ["0.30", "2 others"],
    ]


def test_stats_are_told_in_a_line_for_each_miss():
    f = arrayjit.jit(scaled)
    f(np.ones(3)), f(np.ones(3)), f(np.ones(4))
    counts, *misses = str(f.stats()).splitlines()
    assert counts == "hits: 1, misses: 2, compiles: 2"
    assert [miss.strip() for miss in misses] == list(map(str, f.stats().reasons))


def test_phases_add_up_to_most_of_the_time():
    f = arrayjit.jit(scaled)
    f(np.ones(5))
    (miss,) = f.stats().reasons
    assert 0 < sum(miss.phases.values()) * 1e3 <= miss.milliseconds


def test_each_compilation_is_logged_once_with_what_changed(caplog):
    f = arrayjit.jit(scaled)
    with caplog.at_level(logging.INFO, "arrayjit"):
        for x in (np.ones(3), np.ones(3), np.ones(4, "f4")):
            f(x)
    at = line() - 1
    assert [(record.name, record.levelname) for record in caplog.records] == 2 * [("arrayjit", "INFO")]
    assert [record.miss for record in caplog.records] == list(f.stats().reasons)
    message = rf"compiled scaled for llvm, \d+\.\d ms: x: float64\[3\] -> float32\[4\]; called at .*:{at}"
    assert re.fullmatch(message, caplog.messages[1])


LOGGED = """
import sys
import numpy as np
import arrayjit

f = arrayjit.jit(lambda x: x + 1)
f(np.ones(3))
f(np.ones(3))
print("logging" in sys.modules)
"""


@pytest.mark.parametrize(("setting", "count"), [("1", 1), ("0", 0), ("", 0)])
def test_without_logging_set_up_a_setting_shows_them(monkeypatch, setting, count):
    monkeypatch.setenv("ARRAYJIT_LOG_COMPILES", setting)
    ran = subprocess.run([sys.executable, "-c", LOGGED], capture_output=True, text=True, check=True)
    assert ran.stdout == f"{bool(count)}\n"
    told = [row for row in ran.stderr.splitlines() if row.startswith("compiled <lambda> for llvm, ")]
    assert len(told) == count
    assert all(row.endswith("called at <string>:7") for row in told)


CALLS = {
    "by itself": lambda f, x: f(x),
    "through C": lambda f, x: functools.reduce(lambda a, b: b, map(f, [x])),
    "through Python's library": lambda f, x: Mock(side_effect=f)(x),
    "through NumPy": lambda f, x: np.apply_along_axis(f, 0, x),
    "in a thread": lambda f, x: in_a_thread(lambda: f(x)),
}


def in_a_thread(work):
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result()


@pytest.mark.parametrize("call", CALLS)
def test_a_call_comes_from_the_users_line_whatever_it_goes_through(call):
    f = arrayjit.jit(scaled)
    CALLS[call](f, np.ones(3))
    (miss,) = f.stats().reasons
    assert (miss.loc.file, miss.loc.line) == (__file__, CALLS[call].__code__.co_firstlineno)


def test_where_only_libraries_run_it_comes_from_the_innermost_of_them():
    f = arrayjit.jit(scaled)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        pool.submit(f, np.ones(3)).result()
    (miss,) = f.stats().reasons
    assert miss.loc.file == concurrent.futures.thread.__file__


FACTOR = 2.0
WEIGHTS = np.ones(3)
SETTINGS = {"steps": [1, 2], "name": "first"}


class Model:
    rate = 0.5


REBOUND = {
    "rebound FACTOR: 2.0 -> 3": ("FACTOR", 3),
    "rebound WEIGHTS: float64[3] -> float32[1]": ("WEIGHTS", np.ones(1, "f4")),
    "rebound Model.rate: 0.5 -> 7": ("Model.rate", 7),
    "rebound SETTINGS['steps']: list of 2 -> list of 3; rebound SETTINGS['steps'][2]: absent -> 5": (
        "SETTINGS",
        {"steps": [1, 2, 5], "name": "first"},
    ),
}


@pytest.mark.parametrize("told", REBOUND)
def test_what_was_rebound_is_told_with_both_values(monkeypatch, told):
    @arrayjit.jit
    def f(x):
        return x * FACTOR * Model.rate + WEIGHTS * sum(SETTINGS["steps"])

    f(np.ones(3))
    name, value = REBOUND[told]
    monkeypatch.setattr(f"{__name__}.{name}", value)
    f(np.ones(3))
    assert f.stats().reasons[-1].reason == told


def test_an_array_whose_layout_was_changed_is_told():
    rows = np.ones((2, 3))
    f = arrayjit.jit(lambda x: x + rows.sum())
    f(1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        rows.shape = (6,)
    f(1.0)
    assert f.stats().reasons[-1].reason.endswith(": float64[2, 3] -> float64[6]")


def test_arrays_of_devices_are_told_with_the_device_and_compiled_for_its_target():
    f = arrayjit.jit(lambda x: x + 1)
    f(np.ones(3))
    near, far, given = (arrayjit.asarray(np.ones(3), device=f"cuda-sim:{number}") for number in (0, 1, 0))
    for array in (near, far, arrayjit.donate(given)):
        f(array)
    told = [(miss.reason.partition(" -> ")[2], miss.target) for miss in f.stats().reasons[1:]]
    assert told == [
        ("float64[3] on cuda-sim:0", "cuda-sim"),
        ("float64[3] on cuda-sim:1", "cuda-sim"),
        ("float64[3] on cuda-sim:0, donated", "cuda-sim"),
    ]


class Rate:
    """What is not an array or a number is compiled in."""

    def __init__(self, value):
        self.value = value

    @arrayjit.jit
    def applied(self, x, kind="linear", *, over=None):
        return x * self.value + (over[0] if over else 0)


def test_each_part_of_an_argument_is_told_with_both_values():
    x, y = np.ones(4), np.ones(9)
    rate = Rate(2.0)
    rate.applied(x)
    rate.value = 3.0
    calls = {
        "self.value: 2.0 -> 3.0": lambda: rate.applied(x),
        "x: float64[4] -> float32[4]": lambda: rate.applied(x.astype("f4")),
        "kind: absent -> 'cubic'": lambda: rate.applied(x, "cubic"),
        "over: absent -> list of 1; over[0]: absent -> int; given by name: absent -> over": lambda: (
            rate.applied(x, over=[2])
        ),
        "over[0]: int -> float": lambda: rate.applied(x, over=[2.0]),
        "x: float64[4] -> float64[4] strides (16,)": lambda: rate.applied(y[::2][:4]),
    }
    earlier = len(Rate.applied.stats().reasons)
    for call in calls.values():
        call()
    assert [miss.reason for miss in Rate.applied.stats().reasons[earlier:]] == list(calls)


def test_arrays_that_share_memory_are_told():
    f = arrayjit.jit(lambda pair, z: pair["x"] + pair["y"] + z)
    x = np.ones(5)
    for pair in ({"x": x[:4], "y": x[:4].copy()}, {"x": x[:4], "y": x[1:]}):
        f(pair, 1.0)
    told = "memory of pair['x'] and pair['y']: absent -> shared, at bytes (0, 8) of 40"
    assert f.stats().reasons[-1].reason == told


def test_of_many_changes_the_first_are_told():
    f = arrayjit.jit(lambda leaves: sum(leaves))
    f([np.ones(3) for _ in range(13)])
    f([np.ones(4) for _ in range(13)])
    (_, miss) = f.stats().reasons
    assert miss.reason.count("float64[3] -> float64[4]") == 10
    assert miss.reason.endswith("; and 3 more")


def test_where_nothing_may_be_compiled_a_new_call_says_what_is_new_about_it(target):
    f = arrayjit.jit(scaled, target=target)
    expected = f(np.ones(3))
    with arrayjit.no_compile():
        np.testing.assert_array_equal(f(np.ones(3)), expected)
        with pytest.raises(arrayjit.CompilationForbidden, match=r"x: float64\[3\] -> float64\[4\]") as caught:
            f(np.ones(4))
        assert (caught.value.loc.file, caught.value.loc.line) == (__file__, line() - 1)
        with pytest.raises(arrayjit.CompilationForbidden, match="first call"):
            arrayjit.jit(scaled, target=target)(np.ones(3))
    assert (f.stats().misses, f.stats().compiles) == (1, 1)
    f(np.ones(4))
    assert f.stats().compiles == 2


def test_a_variable_that_was_rebound_is_no_way_around_it():
    scale = 2.0

    @arrayjit.jit
    def f(x):
        return x * scale

    f(np.ones(3))
    scale = 3.0
    with (
        arrayjit.no_compile(),
        pytest.raises(arrayjit.CompilationForbidden, match=r"rebound scale: 2\.0 -> 3\.0"),
    ):
        f(np.ones(3))


def test_it_holds_for_this_thread_only():
    f = arrayjit.jit(scaled)
    results = []
    with arrayjit.no_compile():
        thread = threading.Thread(target=lambda: results.append(f(np.ones(3))))
        thread.start()
        thread.join()
    np.testing.assert_array_equal(results[0], f(np.ones(3)))


def test_the_eighth_variant_warns_once_and_names_what_varies():
    f = arrayjit.jit(scaled)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for n in range(1, 12):
            f(np.ones(n), 2.0)
            at = line() - 1
    (warning,) = [each for each in caught if each.category is arrayjit.RecompilationWarning]
    assert (warning.filename, warning.lineno) == (__file__, at)
    message = str(warning.message)
    assert message.startswith("scaled was compiled 8 times: what varies is x (float64[1], float64[2], ")
    assert "by" not in message.partition(";")[0]


def halved(x, least):
    return x / 2 if least > 0 else x


def test_the_warning_names_the_line_that_needs_a_value_once():
    f = arrayjit.jit(halved)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for n in range(8):
            f(np.ones(3), 0.5 * n)
    (warning,) = [each for each in caught if each.category is arrayjit.RecompilationWarning]
    line = halved.__code__.co_firstlineno + 1
    assert str(warning.message).startswith(
        "halved was compiled 8 times: what varies is least (float 0.0, float 0.5, float 1.0, ...), "
        f"compiled in because line {line} asks whether a traced value is true"
    )
    assert "arrayjit.cond" in str(warning.message)


def test_seven_variants_are_not_many():
    f = arrayjit.jit(scaled)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for n in range(1, compilations.MANY):
            f(np.ones(n))


def test_operations_on_arrays_of_devices_may_have_any_sizes():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for n in range(1, 12):
            assert (arrayjit.asarray(np.ones(n)) + 1).numpy()[0] == 2


def test_variants_take_so_many_bytes_at_most_and_what_was_used_last_stays(monkeypatch):
    f = arrayjit.jit(scaled, target="sync_llvm")
    f(np.ones(100))
    (known,) = f._variants._known.values()
    monkeypatch.setattr(variants, "MOST_BYTES", int(3.5 * known.nbytes))
    for n in (101, 102, 100, 103):
        f(np.ones(n))
    assert f.stats().compiles == 4
    f(np.ones(100)), f(np.ones(102)), f(np.ones(103))
    assert f.stats().compiles == 4
    f(np.ones(101))
    assert f.stats().compiles == 5


def test_machine_code_goes_with_its_function():
    f = arrayjit.jit(lambda x: x * 3 + 1, target="sync_llvm")
    f(np.ones(3))
    (known,) = f._variants._known.values()
    memory = weakref.ref(known.variant)
    code = weakref.ref(known.variant.procedure.executable)
    del f, known
    gc.collect()
    assert memory() is None
    assert code() is None


def iterated(x, n):
    total = np.zeros_like(x)
    for i in range(n):
        total = np.tanh(total + x * i) @ np.cos(x) / (1 + total.max())
    return total, np.cumsum(total, axis=0), np.sort(total.ravel())[::3], total.mean(axis=1)


def test_results_are_the_same_bits_whatever_the_effort():
    x = np.random.default_rng(1).standard_normal((37, 37))
    texts, results = [], []
    for opt in range(4):
        f = arrayjit.jit(iterated, target="sync_llvm", opt=opt)
        results.append([part.tobytes() for part in f(x, 5)])
        texts.append(f.lower(x, 5).as_text("asm"))
    assert results[1:] == 3 * results[:1]
    assert len({texts[0], texts[2], texts[3]}) == 3


def test_each_effort_has_code_of_its_own(monkeypatch, tmp_path):
    monkeypatch.setenv("ARRAYJIT_CACHE_DIR", str(tmp_path))
    for opt in (0, 2, 3):
        for first in ("codegen", "recall code"):
            f = arrayjit.jit(scaled, target="sync_llvm", opt=opt)
            f(np.ones(3))
            assert first in f.stats().reasons[0].phases


@pytest.mark.parametrize("opt", [-1, 4, 2.0, True, "2", None])
def test_what_is_no_effort_is_refused(opt):
    with pytest.raises(arrayjit.NumberError, match="opt is"):
        arrayjit.jit(scaled, opt=opt)
