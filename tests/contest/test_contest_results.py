"""What rows come to, how results are kept, and what counts as slower."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from arrayjit.contest.results import Results, Row, Time
from arrayjit.contest.saved import changes, keep, kept
from arrayjit.contest.standings import losses, means, ordered, seconds, summary
from arrayjit.contest.tasks import OURS
from arrayjit.errors import UserError
from arrayjit.profile.machine import Limits
from arrayjit.profile.roofline import Level, Roofline

ROOF = Roofline(1, Limits(100e9, 50e9, 20e9, 10e9, 12e9), (Level("L1", 1000, 80e9), Level("memory", 0, 20e9)))


def row(name: str, spread: float = 0.0, **medians: float) -> Row:
    times = {
        peer: Time(1.0, median, median - spread, median + spread, median - spread, 7)
        for peer, median in medians.items()
    }
    return Row("vector", name, "10", "float32", 1, times)


def results(*rows: Row) -> Results:
    return Results({"processor": "a CPU", "date": "today"}, {1: ROOF}, rows)


def test_means_are_over_each_peer_and_over_the_best_of_a_row() -> None:
    rows = [row("one", arrayjit=1, numpy=4, jax=2), row("two", arrayjit=1, numpy=1, jax=0.5)]
    assert means(rows) == pytest.approx({"numpy": 2, "jax": 1, "the best of them": 1})
    assert summary(rows).endswith("2.00 times numpy, 1.00 times jax, 1.00 times the best of them")


def test_losses_come_first_the_worst_of_them_at_the_front() -> None:
    rows = [
        row("won", arrayjit=1, numpy=2),
        row("lost", arrayjit=2, numpy=1),
        row("worst", arrayjit=3, jax=1),
    ]
    assert [one.name for one in losses(rows)] == ["worst", "lost"]
    assert [one.name for one in ordered(rows)] == ["worst", "lost", "won"]


def test_compiling_is_what_the_first_call_takes_longer() -> None:
    assert Time(first=1.0, median=0.25).compiling == 0.75
    assert Time(first=0.1, median=0.25).compiling == 0


def test_the_spread_is_half_of_the_middle_half() -> None:
    assert row("one", spread=0.5, arrayjit=5).times[OURS].spread == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("flops", "moved", "reached"), [(50e9, 1, 0.5), (0, 1_000_000_000, 0.05), (0, 500, 500 / 80e9)]
)
def test_the_limit_is_arithmetic_or_where_the_bytes_lie(flops: float, moved: int, reached: float) -> None:
    ours = replace(row("one", arrayjit=1.0), flops={"float32": flops}, moved=moved)
    assert results(ours).reached(ours) == pytest.approx(reached)


def test_without_known_work_there_is_no_limit() -> None:
    ours = row("one", arrayjit=1.0)
    assert results(ours).reached(ours) is None


def test_results_are_read_as_they_were_written() -> None:
    some = results(
        row("one", arrayjit=1, numpy=4),
        replace(row("two", jax=1), flops={"float32": 3}, moved=8, answer=1e-7),
    )
    again = Results.from_json(some.as_json())
    assert again == replace(some, rows=list(some.rows), remarks=[], left=[])


def test_what_has_no_time_has_none_after_it_was_written() -> None:
    text = results(replace(row("one"), times={"jax": Time(error="no")})).as_json()
    (again,) = Results.from_json(text).rows
    assert "NaN" not in text
    assert np.isnan(again.times["jax"].median)
    assert again.times["jax"].error == "no"


@pytest.mark.parametrize(
    ("value", "words"), [(2.0, "2 s"), (0.0123456, "12.3 ms"), (1.5e-6, "1.5 µs"), (2.5e-8, "25 ns")]
)
def test_seconds_have_three_digits_and_a_unit(value: float, words: str) -> None:
    assert seconds(value) == words


def test_what_is_saved_by_name_is_found_by_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    some = results(row("one", arrayjit=1))
    assert keep(some, "before").exists()
    assert kept("before").rows == [*some.rows]
    assert kept(str(keep(some, str(tmp_path / "file.json")))).rows == [*some.rows]


def test_what_was_never_saved_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    keep(results(), "before")
    with pytest.raises(UserError, match=r"after\.json does not exist; saved are: before"):
        kept("after")


def test_what_cannot_be_read_or_written_is_an_error(tmp_path: Path) -> None:
    broken = tmp_path / "broken.json"
    broken.write_text("{}")
    with pytest.raises(UserError, match="cannot be read"):
        kept(str(broken))
    with pytest.raises(UserError, match="cannot write"):
        keep(results(), str(broken / "inside.json"))


def test_slower_is_measured_by_numpy_s_time() -> None:
    then = results(row("one", arrayjit=1, numpy=4), row("two", arrayjit=1, numpy=4), row("gone", arrayjit=1))
    now = results(row("one", arrayjit=2, numpy=8), row("two", arrayjit=2, numpy=4), row("new", arrayjit=1))
    assert [(one.row.name, one.factor, one.is_relative) for one in changes(now, then)] == [
        ("two", 2.0, True),
        ("one", 1.0, True),
    ]


def test_without_numpy_seconds_count() -> None:
    (change,) = changes(results(row("one", arrayjit=3)), results(row("one", arrayjit=2, numpy=1)))
    assert (change.factor, change.is_relative) == (1.5, False)


@pytest.mark.parametrize(("spread", "is_clear"), [(0.1, True), (2.0, False)])
def test_a_slowdown_that_the_spread_explains_is_not_clear(spread: float, is_clear: bool) -> None:
    now, then = (row("one", spread, arrayjit=median, numpy=1) for median in (2, 1))
    (change,) = changes(results(now), results(then))
    assert change.is_clear == is_clear
