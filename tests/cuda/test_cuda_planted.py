"""Mistakes in schedules of rows and scans, each of which the simulated GPU finds."""

from __future__ import annotations

import numpy as np
import pytest
from planted import BARRIER, OUTSIDE, RACE, UNWRITTEN, pieces_of, run_with

from arrayjit.errors import DeviceError
from arrayjit.passes.gpu import scan


def norm(x):
    return x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + 1e-6)


def rows() -> np.ndarray:
    """75 vectors each, of 64 threads: 64 and 11."""
    return np.random.default_rng(0).random((3, 300)).astype(np.float32)


def sums(x):
    return np.cumsum(x, axis=-1)


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).integers(-9, 9, shape).astype(np.int32)


@pytest.mark.parametrize("barrier", range(2))
def test_each_missing_barrier_of_rows_is_found(barrier: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert pieces_of(BARRIER, norm, rows()) == 2
    with pytest.raises(DeviceError, match=f"{RACE}|{UNWRITTEN}"):
        run_with(monkeypatch, (BARRIER, "", barrier), norm, rows())


OF_ROWS = {
    "a thread too many reads": (r"if \((\w+) < 11LL\)", r"if (\1 < 12LL)", 0, OUTSIDE),
    "a thread too many writes": (r"if \((\w+) < 11LL\)", r"if (\1 < 12LL)", 1, f"{OUTSIDE}|{RACE}"),
    "the second turn reads from elsewhere": (r"\+ 256\);", "+ 300);", 0, OUTSIDE),
    "two threads write to one place": (r"\+ 4 \* (\w+), ", r"+ 4 * (\1 / 2), ", 0, RACE),
    "the second turn writes where the first did": (r"\+ 256, ", "+ 4, ", 0, RACE),
    "a part of a sum that nobody wrote": (r"threadIdx\.x \+ 32\]", "threadIdx.x + 33]", 0, UNWRITTEN),
    "all threads write the sum of all": (r"if \(threadIdx\.x == 0\) \*whole", "*whole", 0, RACE),
}


@pytest.mark.parametrize("name", OF_ROWS)
def test_mistakes_of_rows_are_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    right, wrong, occurrence, found = OF_ROWS[name]
    with pytest.raises(DeviceError, match=found):
        run_with(monkeypatch, (right, wrong, occurrence), norm, rows())


STEPS = 8
"""1, 2, 4, ..., 128 threads before: 256 of them take a row of 700."""


@pytest.mark.parametrize("barrier", range(STEPS + 1))
def test_each_missing_barrier_of_a_scan_is_found(barrier: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert pieces_of(BARRIER, sums, numbers(3, 700)) == STEPS + 1
    with pytest.raises(DeviceError, match=RACE):
        run_with(monkeypatch, (BARRIER, "", barrier), sums, numbers(3, 700))


OF_SCANS = {
    "a step in place": (r"others\[t\] = (.*parts\[t - 1\])", r"parts[t] = \1", 0, RACE),
    "a step from too far before": (r"parts\[t - 4\]", "parts[t - 5]", 0, OUTSIDE),
    "a step by a thread too many": (r"t >= 8LL", "t >= 7LL", 0, OUTSIDE),
    "a step that leaves some out": (r"others\[t\] = parts\[t\];", ";", 0, UNWRITTEN),
    "cells beyond the row are read": (r"<= 700LL", "<= 702LL", 0, OUTSIDE),
    "cells beyond the row are written": (r"<= 700LL", "<= 702LL", 1, f"{OUTSIDE}|{RACE}"),
    "two threads write to one place": (r"(cum_add \+ 700 \* k) \+ 4 \* t", r"\1 + 4 * (t / 2)", 0, RACE),
    "blocks write one row": (r"(cum_add) \+ 700 \* k", r"\1 + 0 * k", 0, RACE),
}


@pytest.mark.parametrize("name", OF_SCANS)
def test_mistakes_of_scans_are_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    right, wrong, occurrence, found = OF_SCANS[name]
    with pytest.raises(DeviceError, match=found):
        run_with(monkeypatch, (right, wrong, occurrence), sums, numbers(3, 700))


@pytest.mark.parametrize(
    ("right", "wrong", "found"),
    [
        (r"sums\[p\] =", "sums[0] =", RACE),
        (r"ahead\[p - 1\]", "ahead[p + 1]", OUTSIDE),
    ],
    ids=["one cell for all sums", "a sum that is not there"],
)
def test_mistakes_of_a_scan_by_many_blocks_are_found(
    right: str, wrong: str, found: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scan, "LONG", 2)
    with pytest.raises(DeviceError, match=found):
        run_with(monkeypatch, (right, wrong, 0), sums, numbers(10_000))
