"""Sines and cosines of float32s: of one polynomial each, and never beyond 1."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from test_targets import run_elementwise

from arrayjit.ir.dtype import F32
from arrayjit.ir.evaluation import Evaluation
from arrayjit.ir.ops import OPS

waves = pytest.mark.parametrize("name", ["sin", "cos"])


class Counted(Evaluation):
    """Which counts what it is asked for."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def op(self, name: str, *args: Any) -> Any:
        self.counts[name] += 1
        return OPS[name].ref(*args) if name == "raw_far_sine" else super().op(name, *args)


@waves
def test_there_is_no_choice_of_polynomials(name: str) -> None:
    counted = Counted()
    OPS[name].expand(counted, np.ones(3, np.float32))
    assert counted.counts["where"] == 0
    assert counted.counts["fma"] <= 10


@waves
@pytest.mark.parametrize("turns", [0, 1, 2, 1000, 20_000])
def test_results_are_within_one_and_the_bound_near_extremes(name: str, turns: int) -> None:
    quarter = np.float32((4 * turns + (name == "sin")) * np.pi / 2)
    x = (quarter + np.arange(-50_000, 50_000) * np.spacing(max(quarter, np.float32(1e-6)))).astype(np.float32)
    (result,) = run_elementwise(OPS[name], [(x,)], "sync_llvm")
    exact = getattr(np, name)(x.astype(np.float64))
    assert np.abs(result).max() <= 1
    assert np.abs(result - exact).max() <= OPS[name].error(F32) * np.spacing(np.float32(0.9))


@waves
def test_signs_and_what_is_no_number(name: str) -> None:
    x = np.array([0.0, -0.0, 1e-45, -1e-45, 1e-20, np.inf, -np.inf, np.nan], np.float32)
    (result,) = run_elementwise(OPS[name], [(x,)], "sync_llvm")
    with np.errstate(invalid="ignore"):
        want = getattr(np, name)(x)
    np.testing.assert_array_equal(result, want)
    np.testing.assert_array_equal(np.signbit(result[:5]), np.signbit(want[:5]))
