"""Programs as people post them run with the decorator alone, with two sets of arguments in turn."""

from __future__ import annotations

import numpy as np
import pytest
from catalogue import Draw, Program
from closeness import assert_close
from forum import FORUM
from forum_arrays import FORUM_ARRAYS
from packages import PACKAGES

import arrayjit

PROGRAMS = (*FORUM, *FORUM_ARRAYS, *PACKAGES)
TOLERANCE = 1e-12


@pytest.mark.parametrize("target", ["interp", "sync_llvm"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_a_program_runs_as_it_was_posted(program: Program, target: str) -> None:
    jitted = arrayjit.jit(program.function, target=target)
    for size in (6, 13):
        plain, ours = (program.arguments(Draw(size, "f8")) for _ in range(2))
        with np.errstate(all="ignore"):
            wanted = program.function(*plain)
        assert_close(jitted(*ours), wanted, TOLERANCE)
        assert_close(ours, plain, TOLERANCE)
