"""Whole programs in plain NumPy give NumPy's results and leave NumPy's arguments, on every target."""

from __future__ import annotations

import pytest
from catalogue import Draw, Program
from closeness import assert_close
from grids import GRIDS
from learning import LEARNING
from sciences import SCIENCES

import arrayjit

PROGRAMS = (*GRIDS, *LEARNING, *SCIENCES)
# Of the largest number of a result: sums and elementary functions round otherwise than NumPy's.
TOLERANCES = {"f4": 2e-5, "f8": 4e-14}


@pytest.mark.parametrize("target", ["interp", "sync_llvm"])
@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("size", [13, 64])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_a_program_does_what_it_does_in_numpy(program: Program, size: int, dtype: str, target: str) -> None:
    plain, ours = (program.arguments(Draw(size, dtype)) for _ in range(2))
    wanted = program.function(*plain)
    got = arrayjit.jit(program.function, target=target)(*ours)
    tolerance = 0.0 if program.exact else TOLERANCES[dtype]
    assert_close(got, wanted, tolerance)
    assert_close(ours, plain, tolerance)
