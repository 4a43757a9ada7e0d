"""How long cores take to answer one another."""

from __future__ import annotations

import threading

from arrayjit.profile.answers import answer_seconds


def test_an_answer_takes_longer_than_not_to_wait_for_one() -> None:
    before = set(threading.enumerate())
    assert 5e-9 < answer_seconds() < 1.0
    assert set(threading.enumerate()) <= before


def test_every_round_is_asked_and_answered_to_its_end() -> None:
    assert 5e-9 < answer_seconds(turns=1, rounds=1) < 1.0
    assert 5e-9 < answer_seconds(turns=3, rounds=50) < 1.0
