"""The error function of float32s, in pieces: their tables, and results where one ends and the next begins."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from test_targets import run_elementwise

from arrayjit.ir.dtype import F32
from arrayjit.ir.error_function import PIECES
from arrayjit.ir.evaluation import Evaluation
from arrayjit.ir.ops import OPS

CENTRES, CONSTANTS, *_ = (table[F32] for table in PIECES.values())
LENGTH = CENTRES[-1] / (len(CENTRES) - 1)


def units(x: np.ndarray, result: np.ndarray) -> float:
    """The greatest error."""
    exact = np.array([math.erf(number) for number in x.tolist()])
    return float((np.abs(result - exact) / np.spacing(exact.astype(np.float32))).max())


def test_constants_are_the_function_of_the_centres_to_many_bits() -> None:
    for piece, (centre, constant) in enumerate(zip(CENTRES, CONSTANTS, strict=True)):
        assert abs(centre - piece * LENGTH) < 1e-4
        exact = math.erf(centre)
        rounding = 0.15 if piece < len(CENTRES) - 1 else 0.5
        assert abs(constant - exact) <= rounding * np.spacing(np.float32(exact))


@pytest.mark.parametrize("piece", range(len(CENTRES)))
def test_errors_are_within_the_bound_in_and_between_pieces(piece: int) -> None:
    edge = np.float32((piece + 0.5) * LENGTH)
    beside = edge + np.arange(-2000, 2000) * np.spacing(edge)
    inside = np.random.default_rng(piece).uniform(max(piece - 0.5, 0) * LENGTH, edge, 20_000)
    x = np.concatenate([beside, inside]).astype(np.float32)
    result, negated = (run_elementwise(OPS["erf"], [(y,)], "sync_llvm")[0] for y in (x, -x))
    assert result.max() <= 1
    assert units(x, result) <= OPS["erf"].error(F32)
    np.testing.assert_array_equal(negated, -result)


def test_small_results_are_relatively_exact() -> None:
    x = np.exp(np.random.default_rng(1).uniform(-80, -1.3, 50_000)).astype(np.float32)
    (result,) = run_elementwise(OPS["erf"], [(x,)], "sync_llvm")
    assert units(x, result) < 0.7


def test_ends() -> None:
    x = np.array([0.0, -0.0, 3.92, 5.0, np.inf, -np.inf, np.nan], np.float32)
    (result,) = run_elementwise(OPS["erf"], [(x,)], "sync_llvm")
    np.testing.assert_array_equal(result, np.array([0, 0, 1, 1, 1, -1, np.nan], np.float32))
    assert np.signbit(result[1])


def test_a_table_holds_eight_numbers_and_there_is_no_division() -> None:
    asked: list[str] = []

    class Recorded(Evaluation):
        def op(self, name: str, *args: Any) -> Any:
            asked.append(name)
            return super().op(name, *args)

    OPS["erf"].expand(Recorded(), np.ones(3, np.float32))
    assert asked.count("fma") == 7
    assert "divide" not in asked
    assert {len(OPS[name].tables[F32]) for name in asked if OPS[name].tables} == {8}
