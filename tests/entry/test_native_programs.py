"""Whole programs give the same bits without Python, call after call."""

from __future__ import annotations

import numpy as np
import pytest
from kernels import KERNELS, Kernel, results_of

import arrayjit

WITH_PYTHON = {"dynamic_time_warping": "the result is a view, or of a size that is computed"}
"""Programs whose calls stay with Python, and why."""


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_a_kernel_gives_the_same_bits(kernel: Kernel) -> None:
    jitted = arrayjit.jit(kernel.function)
    first = results_of(jitted, kernel.arguments("small"))
    for _ in range(3):
        again = results_of(jitted, kernel.arguments("small"))
        assert len(again) == len(first)
        for got, wanted in zip(again, first, strict=True):
            assert type(got) is type(wanted)
            np.testing.assert_array_equal(got, wanted)
    reasons = [WITH_PYTHON[kernel.name]] if kernel.name in WITH_PYTHON else []
    assert [*jitted._entries._reasons.values()] == reasons
    assert jitted._entries.hits == (0 if reasons else 2)
