"""Tests that count what a process has run in one of their own."""

from __future__ import annotations

import sys

import pytest


@pytest.mark.alone
def test_no_other_test_was_in_the_process() -> None:
    assert [name for name in sys.modules if name.startswith("test_")] == [__name__]
