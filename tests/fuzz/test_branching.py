"""Python's `if` and `while` mean what they mean in Python, in random programs with `branches=True`."""

from __future__ import annotations

import os

import numpy as np
import pytest
from branching import branching_program

import arrayjit

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

PROGRAMS = 60 * int(os.environ.get("ARRAYJIT_FUZZ", "1"))
MOST_REFUSED = 0.02


@pytest.mark.parametrize("target", ["interp", "sync_llvm"])
def test_branches(target, tmp_path):
    """Numbers are compared bit for bit; one of NumPy.s on one side is one on the other, too."""
    refused = []
    for seed in range(PROGRAMS):
        text = branching_program(seed)
        file = tmp_path / f"program{seed}.py"
        file.write_text(text)
        names = {}
        exec(compile(text, str(file), "exec"), names)
        jitted = arrayjit.jit(names["program"], target=target, branches=True)
        random = np.random.default_rng(seed)
        for _ in range(3):
            x, plain, ours = random.uniform(-2, 2, 6), np.zeros(6), np.zeros(6)
            wanted = names["program"](x, plain, np.float64(0.5), 6)
            try:
                got = jitted(x, ours, np.float64(0.5), 6)
            except (arrayjit.UnsupportedError, arrayjit.DTypeError) as error:
                refused.append((seed, str(error)))
                break
            assert np.array_equal(got, wanted, equal_nan=True), text
            assert np.array_equal(ours, plain, equal_nan=True), text
    assert len(refused) <= MOST_REFUSED * PROGRAMS, refused
