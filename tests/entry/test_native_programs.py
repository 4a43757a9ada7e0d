"""Whole programs give the same bits without Python, call after call."""

from __future__ import annotations

import numpy as np
import pytest
from kernels import KERNELS, Kernel, results_of

import arrayjit


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
    assert not [*jitted._entries._reasons.values()]
    assert jitted._entries.hits == 2
