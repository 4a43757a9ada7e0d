"""How much a call computes, in numbers that are the same on every machine and in every run."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any
from unittest.mock import patch

from arrayjit.garbage import resting

__all__ = ["calls_in"]


def calls_in(work: Callable[[], Any]) -> int:
    """How many Python and C functions `work` calls, all the way down. Nothing is recalled from files, and
    what earlier tests have left is not collected meanwhile."""
    calls = 0

    def count(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    before = sys.getprofile()
    with patch.dict(os.environ, ARRAYJIT_CACHE_BYTES="0"), resting():
        sys.setprofile(count)
        try:
            work()
        finally:
            sys.setprofile(before)
    return calls
