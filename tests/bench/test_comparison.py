"""`bench/comparison.py`: entries are checked against NumPy before they are timed, and losses are shown.

The versions of the peers that are installed are compared with NumPy here, one by one. Numba, JAX, PyTorch and
numexpr are no dependencies of the tests: without them, these are NumPy's own versions and arrayjit's.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any

import comparison
import machine
import numpy as np
import pytest
from contest import OURS, Entry, Peer, Row, Task, Time, held, in_turn, sampler, verdict
from peers import PEERS, installed
from rich.console import Console
from standings import losses, markdown, means, remarks
from workloads import matmul, memory, vector

BOTH = ("float32", "float64")
FEW = [*matmul(BOTH, ("32", "64x64x64x64")), *vector(BOTH, ("2000",)), *memory(BOTH, ("1",))]
FOUND, _ = installed()
KERNELS = list(comparison.kernels((), ("small",)))
THEIRS = {name: peer for name, peer in FOUND.items() if name not in (OURS, "numpy")}
"""Who has kernels of their own; tests/programs has arrayjit's."""
VERSIONS = [(name, task) for name, peer in FOUND.items() for task in FEW if peer(task, ())]
VERSIONS += [(name, task) for name, peer in THEIRS.items() for task in KERNELS if peer(task, ())]
LIMITS = machine.Limits(100e9, 50e9, 20e9, 10e9, 12e9)


def label(value: Any) -> str:
    return value if isinstance(value, str) else f"{value.name}-{value.dtype or value.suite}-{value.size}"


def row(name: str, **medians: float) -> Row:
    times = {peer: Time(0.1, median, median) for peer, median in medians.items()}
    return Row("vector", name, "10", "float32", 1, "", 0.0, times)


def task(function: Callable[..., Any], *arguments: Any, **rest: Any) -> Task:
    return Task("vector", "task", "2", "float64", function, arguments, 1e-12, **rest)


def peer(call: Callable[..., Any], **rest: Any) -> Peer:
    return lambda task, written: Entry(lambda *arguments: call, **rest)


@pytest.mark.parametrize(("name", "task"), VERSIONS, ids=label)
def test_a_version_agrees_with_numpy(name: str, task: Task) -> None:
    assert verdict(task, FOUND[name]) == ""


def test_the_peers_are_numpy_s_arrayjit_and_those_that_are_installed() -> None:
    _, reasons = installed()
    assert {OURS, "numpy"} <= set(FOUND)
    assert len(FOUND) + len(reasons) == len(PEERS)


def test_entries_that_agree_are_timed() -> None:
    taken = held(task(np.exp, np.ones(3)), {OURS: peer(np.exp), "other": peer(np.exp)}, 1, machine.clock(1))
    for time in taken.times.values():
        assert 0 < time.least <= time.median
        assert time.first > 0
        assert time.error == ""


def test_a_wrong_result_is_an_error_and_has_no_time() -> None:
    wrong = held(task(np.exp, np.ones(3)), {OURS: peer(np.log), "numpy": peer(np.exp)}, 1, machine.clock(1))
    assert wrong.times[OURS].error.startswith("differs by")
    assert np.isnan(wrong.times[OURS].median)
    assert wrong.ratio("numpy") is None
    assert [remark.split(": ")[0] for remark in remarks([wrong])] == ["task 2 f64, arrayjit"]


def test_what_raises_is_an_error() -> None:
    def refuses(x: Any) -> Any:
        raise ValueError("not for me\nbecause")

    assert verdict(task(np.exp, np.ones(3)), peer(refuses)) == "ValueError: not for me"


def test_each_call_of_a_function_that_writes_has_fresh_arguments() -> None:
    seen = []

    def grow(x: Any) -> None:
        seen.append(x[0])
        x += 1

    taken = held(task(grow, np.zeros(2)), {OURS: peer(grow)}, 1, machine.clock(1))
    assert taken.times[OURS].error == ""
    assert len(seen) > 7
    assert set(seen) == {0.0}


def test_a_pure_version_returns_what_is_written() -> None:
    def grow(x: Any, y: Any) -> Any:
        y += x
        return x.sum()

    growing = task(grow, np.ones(2), np.zeros(2))
    assert verdict(growing, peer(lambda x, y: (x.sum(), y + x), pure=True)) == ""
    assert verdict(growing, peer(lambda x, y: x.sum(), pure=True)).startswith("differs")
    assert verdict(growing, peer(lambda x, y: x.sum())).startswith("differs")


def test_samples_are_at_least_seven_of_each_in_turn() -> None:
    order = []

    def named(name: str) -> Callable[[int], float]:
        def sample(calls: int) -> float:
            order.append(name)
            return 10.0

        return sample

    samples = in_turn({name: named(name) for name in "abc"})
    assert all(len(taken) >= 7 for taken in samples.values())
    assert order[-6:] != ["a"] * 6
    assert {tuple(sorted(order[k : k + 3])) for k in range(6, len(order), 3)} == {("a", "b", "c")}


def test_before_each_sample_the_threads_of_others_have_time_to_sleep(monkeypatch) -> None:
    happened: list[Any] = []
    monkeypatch.setattr("contest.time.sleep", happened.append)
    in_turn({name: lambda calls, name=name: happened.append(name) or 10.0 for name in "ab"}, pause=0.5)
    before, samples = happened[4::2], happened[5::2]
    assert set(before) == {0.5}
    assert samples[:4] == ["a", "b", "b", "a"]


@pytest.mark.parametrize("written", [(), (0,)])
def test_calls_go_untimed_until_threads_are_awake(written) -> None:
    begins = []
    work = task(np.exp, np.ones(3))
    sample = sampler(
        work, Entry(lambda x: np.exp), lambda x: begins.append(perf_counter()), written, perf_counter, 0.01
    )
    begin = perf_counter()
    assert sample(1) > 0
    assert begins[-1] > begin + 0.01


def test_means_are_over_each_peer_and_over_the_best_of_a_row() -> None:
    rows = [row("one", arrayjit=1, numpy=4, jax=2), row("two", arrayjit=1, numpy=1, jax=0.5)]
    assert means(rows) == pytest.approx({"numpy": 2, "jax": 1, "the best of them": 1})


def test_the_page_lists_losses_first_the_worst_of_them_at_the_front() -> None:
    rows = [
        row("won", arrayjit=1, numpy=2),
        row("lost", arrayjit=2, numpy=1),
        row("worst", arrayjit=3, jax=1),
    ]
    assert [lost.name for lost in losses(rows)] == ["worst", "lost"]
    text = markdown("vector", rows, {1: LIMITS}, "a machine")
    assert "Losses: worst 10 f32 (0.33, jax), lost 10 f32 (0.50, numpy)." in text
    assert "| won 10 f32 | 100 ms | 1 s | 2.00 | 2 s (2.00) |  |" in text
    assert "in the geometric mean: 1.00 times numpy, 0.33 times jax" in text


def test_a_row_with_a_limit_says_what_part_of_it_was_reached() -> None:
    product = Row("matmul", "matmul", "9", "float32", 1, "float32", 50e9, {OURS: Time(0.1, 1.0, 1.0)})
    assert "| matmul 9 f32 | 100 ms | 1 s | 50% |" in markdown("matmul", [product], {1: LIMITS}, "a machine")


def test_the_page_of_the_kernels_has_first_calls() -> None:
    text = markdown("kernels", [row("one", arrayjit=1, numpy=4, jax=2)], {1: LIMITS}, "a machine")
    assert "|  | arrayjit | jax |\n|---|--:|--:|\n| one 10 f32 | 100 ms | 100 ms |\n" in text
    assert "| geometric mean | 100 ms | 100 ms |" in text


def test_rows_are_read_as_they_were_written() -> None:
    rows = [replace(row("one", arrayjit=1, numpy=4), limit="read", amount=8.0), row("two", jax=1)]
    assert comparison.read(comparison.document("a machine", rows, {1: LIMITS})) == (rows, {1: LIMITS})


def test_what_has_no_time_has_none_after_it_was_written() -> None:
    text = comparison.document("a machine", [replace(row("one"), times={"jax": Time(error="no")})], {})
    (again,) = comparison.read(text)[0]
    assert "NaN" not in text
    assert np.isnan(again.times["jax"].median)
    assert again.times["jax"].error == "no"


def test_each_number_of_threads_has_an_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in comparison.MISLEADING:
        monkeypatch.setenv(name, "Haswell")
    made = comparison.environment(3)
    assert not set(comparison.MISLEADING) & set(made)
    assert {made[name] for name in comparison.THREAD_VARIABLES} == {"3"}


def test_the_limits_of_this_machine_are_measured() -> None:
    assert min(machine.limits(2, turns=1000, megabytes=1).__getstate__()) > 1e6


def test_names_of_no_row_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparison, "limits", lambda threads: LIMITS)
    chosen = comparison.options(["matmul", "--only", "exp", "--size", "32", "--peers", OURS])
    with pytest.raises(SystemExit, match="matmul has no such row"):
        comparison.measured(chosen, 1, Console())


def test_the_command_writes_rows_and_a_page(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(comparison, "limits", lambda threads: LIMITS)
    for name, value in comparison.environment(1).items():
        monkeypatch.setenv(name, value)
    for name in comparison.MISLEADING:
        monkeypatch.delenv(name, raising=False)
    written = {"--json": tmp_path / "rows.json", "--markdown": tmp_path / "new" / "page.md"}
    choice = ["vector", "--threads", "1", "--only", "exp", "--size", "100", "--dtype", "float32"]
    files = [str(word) for pair in written.items() for word in pair]
    assert comparison.main([*choice, "--peers", OURS, "numpy", *files]) == 0
    assert "exp 100 f32" in capsys.readouterr().out
    assert "| exp 100 f32 |" in written["--markdown"].read_text()
    (taken,) = json.loads(written["--json"].read_text())["rows"]
    assert set(taken["times"]) == {OURS, "numpy"}
