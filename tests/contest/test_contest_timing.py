"""A contest: entries are checked against NumPy before they are timed, in turn."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter, process_time
from typing import Any

import numpy as np
import pytest

from arrayjit.contest.checking import added_in_order, difference, verdict
from arrayjit.contest.results import Row
from arrayjit.contest.tasks import OURS, Entry, Peer, Task
from arrayjit.contest.timing import Effort, calls_for, held, in_turn, sampler

LITTLE, ENDLESS = Effort(0.05, 7, fewest=7), Effort(1e6, 7)
"""Where a machine has no time for them, there are as many samples all the same."""


def task(function: Callable[..., Any], *arguments: Any, **rest: Any) -> Task:
    def make() -> tuple[Any, ...]:
        return tuple(np.copy(one) if isinstance(one, np.ndarray) else one for one in arguments)

    return Task("vector", "task", "2", "float64", function, make, 1e-12, **rest)


def peer(call: Callable[..., Any], **rest: Any) -> Peer:
    return lambda task, written: Entry(lambda *arguments: call, **rest)


def contest(of: Task, **peers: Peer) -> Row:
    return held(of, peers, 1, process_time, LITTLE)


def test_entries_that_agree_are_timed() -> None:
    taken = contest(task(np.exp, np.ones(3)), arrayjit=peer(np.exp), other=peer(np.exp))
    assert taken.key == ("vector", "task", "2", "float64", 1)
    for time in taken.times.values():
        assert 0 < time.least <= time.low <= time.median <= time.high
        assert time.first > 0
        assert time.samples >= 7
        assert time.difference == 0
        assert time.error == ""


@pytest.mark.parametrize(
    ("threads", "target", "is_asked"), [(1, "", False), (2, "", True), (2, "cuda", False)]
)
def test_how_near_the_cores_are_is_asked_where_several_share_the_work(
    threads: int, target: str, is_asked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("arrayjit.contest.timing.answer_seconds", lambda: 1e-7)
    taken = held(task(np.exp, np.ones(3), target=target), {}, threads, process_time, LITTLE)
    assert taken.answer == (1e-7 if is_asked else 0.0)


def test_a_wrong_result_is_an_error_and_has_no_time() -> None:
    wrong = contest(task(np.exp, np.ones(3)), arrayjit=peer(np.log), numpy=peer(np.exp))
    assert wrong.times[OURS].error.startswith("differs by")
    assert np.isnan(wrong.times[OURS].median)
    assert wrong.ratio("numpy") is None


def test_what_raises_is_an_error() -> None:
    def refuses(x: Any) -> Any:
        raise ValueError("not for me\nbecause")

    assert verdict(task(np.exp, np.ones(3)), peer(refuses)) == "ValueError: not for me"


def test_only_the_peers_that_a_task_names_take_part() -> None:
    taken = contest(task(np.exp, np.ones(3), peers=("arrayjit",)), arrayjit=peer(np.exp), jax=peer(np.exp))
    assert list(taken.times) == ["arrayjit"]


def test_who_is_begun_with_is_told() -> None:
    told: list[str] = []
    of = task(np.exp, np.ones(3))
    held(of, {"a": peer(np.exp), "b": peer(np.exp)}, 1, process_time, LITTLE, told.append)
    assert told == ["a", "b", ""]


def grow(x: Any) -> None:
    x += 1


def test_each_call_of_a_function_that_writes_has_fresh_arguments() -> None:
    seen = []

    def watched(x: Any) -> None:
        seen.append(x[0])
        grow(x)

    assert contest(task(grow, np.zeros(2)), arrayjit=peer(watched)).times[OURS].error == ""
    assert len(seen) > 7
    assert set(seen) == {0.0}


def test_an_idempotent_function_goes_on_with_what_it_has_written() -> None:
    seen = set()

    def watched(x: Any) -> None:
        seen.add(x[0])
        x[:] = 1

    contest(task(lambda x: x.fill(1), np.zeros(2), idempotent=True), arrayjit=peer(watched))
    assert seen == {0.0, 1.0}


def test_a_pure_version_returns_what_is_written() -> None:
    def add(x: Any, y: Any) -> Any:
        y += x
        return x.sum()

    growing = task(add, np.ones(2), np.zeros(2))
    assert verdict(growing, peer(lambda x, y: (x.sum(), y + x), pure=True)) == ""
    assert verdict(growing, peer(lambda x, y: x.sum(), pure=True)).startswith("differs")
    assert verdict(growing, peer(lambda x, y: x.sum())).startswith("differs")


def slow_samplers(order: list[str], names: str, seconds: float = 10.0) -> dict[str, Callable[[int], float]]:
    def named(name: str) -> Callable[[int], float]:
        def sample(calls: int) -> float:
            order.append(name)
            return seconds

        return sample

    return {name: named(name) for name in names}


def test_samples_are_taken_in_turn_and_each_is_first_once() -> None:
    order: list[str] = []
    samples = in_turn(slow_samplers(order, "abc"), ENDLESS)
    assert {len(taken) for taken in samples.values()} == {41}
    assert order[3:12] == list("abcbcacab")


def test_who_takes_long_is_sampled_three_times(monkeypatch: pytest.MonkeyPatch) -> None:
    now = iter(range(0, 10_000, 10))
    monkeypatch.setattr("arrayjit.contest.timing.time.perf_counter", lambda: next(now))
    samples = in_turn(slow_samplers([], "ab"), Effort(1.0, 7))
    assert {len(taken) for taken in samples.values()} == {3}


@pytest.mark.parametrize(("until", "count"), [(5.0, 3), (75.0, 7), (1e9, 8)])
def test_a_row_that_is_late_is_sampled_as_few_times_as_do(
    until: float, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = iter(range(0, 10_000, 10))
    monkeypatch.setattr("arrayjit.contest.timing.time.perf_counter", lambda: next(now))
    samples = in_turn(slow_samplers([], "ab"), Effort(40.0, 7), until=until)
    assert {len(taken) for taken in samples.values()} == {count}


def test_a_sample_is_of_as_many_calls_as_later_ones_take() -> None:
    seconds = iter([1e-2, 1e-3, 1e-6, 1e-6])
    assert calls_for(lambda calls: next(seconds)) == 2000
    assert calls_for(lambda calls: 1.0) == 1


def test_before_its_samples_the_threads_of_others_have_time_to_sleep(monkeypatch: pytest.MonkeyPatch) -> None:
    happened: list[Any] = []
    monkeypatch.setattr("arrayjit.contest.timing.time.sleep", happened.append)
    in_turn(slow_samplers(happened, "ab"), ENDLESS, pause=0.5)
    assert happened[2:14] == [0.5, "a", "a", "a", 0.5, "b", "b", "b", 0.5, "b", "b", "b"]


@pytest.mark.parametrize("writes", [False, True])
def test_calls_go_untimed_until_threads_are_awake(writes: bool) -> None:
    begins: list[float] = []

    def call(x: Any) -> None:
        begins.append(perf_counter())

    sample = sampler((np.ones(3),), Entry(lambda x: call), call, writes, perf_counter, 0.01)
    begin = perf_counter()
    assert sample(1) > 0
    assert begins[-1] > begin + 0.01


def test_who_adds_in_order_may_be_off_by_what_that_costs() -> None:
    numbers = np.random.default_rng(0).random(1 << 22, np.float32)
    total = Task("vector", "sum", "", "float32", np.sum, lambda: (numbers,), 2e-5)
    by_4e5, by_4e3 = (peer(lambda x, off=off: x.sum() * np.float32(1 + off)) for off in (4e-5, 4e-3))
    assert verdict(total, by_4e5) == "differs by 4e-05, more than 2e-05"
    for call, words in ((by_4e5, ""), (by_4e3, "differs by 4e-03, more than 1e-03")):
        in_order = call(total, ()).start()
        assert verdict(total, peer(in_order, in_order=True)) == words


def test_numbers_added_in_order_are_as_far_off_as_that_lets_them() -> None:
    numbers = np.random.default_rng(0).random(1 << 22, np.float32)
    in_order, exact = np.cumsum(numbers)[-1], numbers.sum(dtype=np.float64)
    allowed = added_in_order(numbers.size, numbers.dtype)
    assert allowed / 1000 < abs(in_order - exact) / exact < allowed
    assert abs(numbers.sum() - exact) / exact < allowed / 1000


def test_results_are_compared_wherever_they_differ() -> None:
    wanted = np.ones(3 << 16)
    for place in (0, 1 << 16, (3 << 16) - 1):
        got = wanted.copy()
        got[place] = 1.25
        assert difference((got,), (wanted,)) == 0.25


def test_a_difference_is_a_fraction_of_the_largest_number() -> None:
    wanted = (np.array([1.0, -4.0, np.inf]),)
    assert difference((np.array([1.0, -3.0, np.inf]),), wanted) == 0.25
    assert difference((np.array([1.0, -4.0, np.nan]),), wanted) == np.inf
    assert difference((), wanted) == np.inf
