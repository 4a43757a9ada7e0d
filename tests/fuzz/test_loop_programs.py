"""Loops written by hand to go wrong mean what they mean in Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import loop_bodies
import loop_names
import loop_numbers
import loop_regressions
import loop_views
import pytest
from judging import TARGETS, Rules, assert_calls_like_numpy

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

FILES = (loop_names, loop_numbers, loop_bodies, loop_views, loop_regressions)
PROGRAMS = {name: case for file in FILES for name, case in file.programs.items()}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("program", "makers"), PROGRAMS.values(), ids=PROGRAMS)
def test_loops(program: Callable[..., Any], makers: list[Callable[[], tuple[Any, ...]]], target: str) -> None:
    assert "refused" not in assert_calls_like_numpy(program, makers, Rules(), (target,))
