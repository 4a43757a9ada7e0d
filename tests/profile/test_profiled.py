"""`f.profile(...)` measures a call without changing anything that the caller has."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import arrayjit
from arrayjit.errors import IndexOutOfRange, NumberError, UnsupportedError
from arrayjit.profile import measure, profiled
from arrayjit.profile.counters import Refused
from arrayjit.profile.machine import Limits
from arrayjit.profile.measure import Spread
from arrayjit.profile.profiled import Profile
from arrayjit.profile.report import duration, rate
from arrayjit.profile.roofline import Level, Roofline
from arrayjit.runtime.results import Results

N = 20_000
SECONDS = 0.05


@pytest.fixture(autouse=True)
def limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of a machine that need not be measured."""

    def measured(threads: int) -> Roofline:
        levels = Level("L1", 1 << 15, 100e9), Level("memory", 0, 10e9)
        return Roofline(threads, Limits(80e9, 40e9, 10e9, 10e9, 10e9), levels)

    monkeypatch.setattr(profiled, "roofline", measured)


def steps(x: Any, n: int) -> Any:
    for _ in range(n):
        y = np.cumsum(x)
        x[:] = y[::-1] / y.max()
    return x.sum()


def smooth(x: Any) -> Any:
    return 0.5 * (x[:-1] + x[1:])


def profile(function: Callable[..., Any], *args: Any, **options: Any) -> Profile:
    return arrayjit.jit(function).profile(*args, **{"seconds": SECONDS, **options})


@pytest.mark.parametrize("target", ["llvm", "sync_llvm", "c", "sync_c"])
def test_each_part_has_its_time_beside_the_limits(target: str) -> None:
    found = profile(smooth, np.ones(N), target=target)
    (part,) = found.parts
    assert found.target == target
    assert part.flops == {"float64": 2 * (N - 1)} or part.flops["float64"] >= 2 * (N - 1)
    assert part.nbytes >= 8 * (2 * N - 1)
    assert part.bound == "memory"
    assert part.fraction == pytest.approx(part.nbytes / 10e9 / part.seconds.median)
    assert found.fraction == pytest.approx(part.fraction)
    assert part.lanes > 1
    assert part.bytes_per_second == part.nbytes / part.seconds.median
    assert 0 < part.seconds.low <= part.seconds.median <= part.seconds.high


def test_the_interpreter_has_times_and_no_limits() -> None:
    found = profile(smooth, np.ones(10), target="interp")
    assert [part.fraction for part in found.parts] == [None]
    assert found.fraction is None
    assert found.rooflines == ()
    assert found.parts[0].seconds.median > 0


@pytest.mark.parametrize(("target", "count"), [("llvm", 3000), ("cuda-sim", 300)])
def test_what_a_call_writes_is_not_written(target: str, count: int) -> None:
    x = np.linspace(0, 1, count)
    before = x.copy()
    found = profile(steps, x, 2, target=target)
    np.testing.assert_array_equal(x, before)
    assert isinstance(found.call, Spread)


@pytest.mark.parametrize("target", ["llvm", "interp", "cuda-sim"])
@pytest.mark.parametrize("function", [lambda x: x[1:], lambda x: x[:0] + 1, lambda x: 3.0])
def test_what_computes_nothing_is_profiled_too(
    function: Callable[..., Any], target: str, tmp_path: Path
) -> None:
    found = profile(function, np.ones(N), target=target)
    assert (found.lines, found.fraction, found.flops_per_second, found.bytes_per_second) == ((), None, 0, 0)
    assert "a call" in str(found)
    assert "GFLOP/s" not in str(found)
    assert json.loads(found.as_json())["flops_per_second"] == 0
    found.save(tmp_path / "p.html")
    assert "<table>" not in (tmp_path / "p.html").read_text()


def test_parts_of_a_loop_run_as_often_as_it_says() -> None:
    found = profile(steps, np.ones(N), 4)
    assert {part.runs for part in found.parts} == {4, 1}
    inside = [part for part in found.parts if part.runs == 4]
    assert sum(part.flops.get("float64", 0) for part in inside) >= 4 * 2 * N  # sums and quotients
    assert sum(part.nbytes for part in inside) >= 4 * 5 * 8 * N  # x and y read twice, each written once


def test_the_user_s_lines_share_the_time() -> None:
    found = profile(steps, np.ones(N), 4)
    assert sum(line.share for line in found.lines) == pytest.approx(1)
    assert {line.source for line in found.lines} >= {"y = np.cumsum(x)", "x[:] = y[::-1] / y.max()"}
    assert [line.share for line in found.lines] == sorted((line.share for line in found.lines), reverse=True)


def test_what_a_call_takes_beside_native_code_is_dispatch() -> None:
    found = profile(smooth, np.ones(N))
    assert isinstance(found.call, Spread)
    assert found.dispatch is not None
    assert found.dispatch == max(0.0, found.call.least - found.native.least - found.allocation)
    assert found.native.median == pytest.approx(sum(part.seconds.median for part in found.parts))


def test_memory_for_results_is_measured_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    class Slow(Results):
        def maker(self, shape: tuple[int, ...], *args: Any) -> Callable[[], np.ndarray]:
            make = super().maker(shape, *args)
            return lambda: (time.sleep(0.02 if shape[0] > 1 else 0), make())[1]

    def shift(x: Any) -> None:
        x += 1

    monkeypatch.setattr(measure, "results", Slow)
    assert profile(smooth, np.ones(N)).allocation > 0.01
    assert profile(shift, np.ones(N)).allocation == 0


def test_memory_that_is_met_by_other_ways_is_not_written_by_whole_calls() -> None:
    state = np.ones(N)

    def advance(x: Any) -> None:
        state[:] = state + x

    found = profile(advance, np.ones(N))
    assert isinstance(found.call, Refused)
    assert "no argument of its own" in found.call.why
    assert found.dispatch is None
    np.testing.assert_array_equal(state, np.ones(N))
    assert found.call.why in str(found)


def test_options_of_calls_are_heard() -> None:
    one = arrayjit.jit(smooth).on("sync_llvm").profile(np.ones(N), seconds=SECONDS)
    assert one.target == "sync_llvm"
    assert profile(smooth, np.ones(N), threads=1).threads == 1


def test_a_parameter_called_seconds_is_the_function_s() -> None:
    def fall(seconds: Any) -> Any:
        return 4.905 * seconds * seconds

    assert arrayjit.jit(fall).profile(seconds=np.ones(N)).name.endswith("fall")


def test_as_text_it_has_the_call_the_parts_and_the_lines() -> None:
    text = str(profile(steps, np.ones(N), 4))
    for words in ("a call", "dispatch", "allocation", "native code", "GFLOP/s", "y = np.cumsum(x)", "clock"):
        assert words in text


def test_as_json_it_says_the_same() -> None:
    found = profile(steps, np.ones(N), 4)
    read = json.loads(found.as_json())
    assert read["name"] == found.name
    assert len(read["parts"]) == len(found.parts)
    assert read["parts"][0]["seconds"]["median"] == found.parts[0].seconds.median
    assert read["lines"][0]["source"] == found.lines[0].source
    assert read["cost"]["flops"] == int(found.cost.flops)
    assert read["dispatch"] == found.dispatch
    assert read["allocation"] == found.allocation


def test_bounds_are_two_numbers_in_json() -> None:
    def halve(x: Any) -> Any:
        return arrayjit.while_loop(lambda v: v.sum() > 1, lambda v: v / 2, x)

    read = json.loads(profile(halve, np.ones(N)).as_json())
    assert read["cost"]["flops"] == [N, None]


@pytest.mark.parametrize("ending", ["html", "json", "txt"])
def test_it_is_saved_by_the_ending_of_the_file(tmp_path: Path, ending: str) -> None:
    found = profile(smooth, np.ones(N))
    file = tmp_path / f"p.{ending}"
    found.save(file)
    assert "smooth" in file.read_text()


def test_a_page_needs_no_other_file(tmp_path: Path) -> None:
    found = profile(steps, np.ones(N), 4)
    found.save(tmp_path / "p.html")
    text = (tmp_path / "p.html").read_text()
    assert text.count("<svg") == 2
    assert "x[:] = y[::-1] / y.max()" in text
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "")


def test_another_ending_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match=r"a profile is no \.pdf"):
        profile(smooth, np.ones(N)).save(tmp_path / "p.pdf")


def test_a_file_that_cannot_be_written_raises(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="nowhere"):
        profile(smooth, np.ones(N)).save(tmp_path / "nowhere" / "p.txt")


@pytest.mark.parametrize("seconds", [0, -1.0, "1", True])
def test_seconds_are_a_positive_number(seconds: Any) -> None:
    with pytest.raises(NumberError, match="seconds is"):
        profile(smooth, np.ones(N), seconds=seconds)


def test_arguments_need_values() -> None:
    with pytest.raises(NumberError, match="a shape and a dtype only"):
        profile(smooth, arrayjit.spec(N))


def test_arrays_of_devices_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="on arrays of a device"):
        profile(smooth, arrayjit.asarray(np.ones(N)))


def test_what_the_call_raises_passes() -> None:
    with pytest.raises(IndexOutOfRange):
        profile(lambda x, i: x[i], np.ones(N), np.array([N]))


def test_times_and_rates_are_short() -> None:
    assert [duration(s) for s in (2.0, 0.0123, 4.5e-5, 1e-8)] == ["2 s", "12.3 ms", "45 us", "10 ns"]
    assert [duration(s) for s in (0.9996, 0.9996e-3, 0.0)] == ["1 s", "1 ms", "0 ns"]
    assert [rate(r, "B/s") for r in (3e12, 2.5e9, 10.0)] == ["3 TB/s", "2.5 GB/s", "10 B/s"]
    assert [rate(r, "B/s") for r in (999.9e9, 999.9, 0.0)] == ["1 TB/s", "1 kB/s", "0 B/s"]


def test_limits_are_those_of_the_threads_that_help(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def limits(threads: int) -> Roofline:
        asked.append(threads)
        return Roofline(threads, Limits(8e10, 4e10, 1e10, 1e10, 1e10), (Level("memory", 0, 1e10),))

    monkeypatch.setattr(profiled, "roofline", limits)

    profile(smooth, np.ones(N), target="sync_llvm")
    assert set(asked) == {1}
