"""The error function in pieces: their tables, and results where one ends and the next begins."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from test_targets import run_elementwise

from arrayjit.ir.definitions.error_function import PIECES
from arrayjit.ir.dtype import F32, F64
from arrayjit.ir.evaluation import Evaluation
from arrayjit.ir.ops import OPS

CENTRES, CONSTANTS, *_ = (table[F32] for table in PIECES.values() if F32 in table)
DOUBLES = [table[F64] for table in PIECES.values()]
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


def _doubles(x: np.ndarray) -> np.ndarray:
    return run_elementwise(OPS["erf"], [(x,)], "sync_llvm")[0]


@pytest.mark.parametrize("piece", range(7))
def test_float64s_are_as_exact_where_pieces_meet(piece: int) -> None:
    low, high = DOUBLES[0][piece : piece + 2]
    x = np.random.default_rng(piece).uniform(low, high, 20_000)
    result = _doubles(x)
    exact = np.array([math.erf(number) for number in x.tolist()])
    assert result.max() <= 1
    # The library's are rounded themselves, by less than one unit.
    assert (np.abs(result - exact) / np.spacing(exact)).max() <= 2
    np.testing.assert_array_equal(_doubles(-x), -result)


def test_small_float64s_are_relatively_exact() -> None:
    x = np.exp(np.random.default_rng(1).uniform(-600, -20, 50_000))
    exact = x * 1.1283791670955126
    assert (np.abs(_doubles(x) - exact) / np.spacing(exact)).max() <= 1


def test_ends_of_float64s() -> None:
    x = np.array([0.0, -0.0, 5.93, 7.0, 1e300, np.inf, -np.inf, np.nan])
    result = _doubles(x)
    np.testing.assert_array_equal(result, np.array([0, 0, 1, 1, 1, 1, -1, np.nan]))
    assert np.signbit(result[1])


def test_tables_of_float64s_hold_eight_numbers_and_polynomials_are_short() -> None:
    asked: list[str] = []

    class Recorded(Evaluation):
        def op(self, name: str, *args: Any) -> Any:
            asked.append(name)
            return super().op(name, *args)

    OPS["erf"].expand(Recorded(), np.ones(3))
    assert asked.count("fma") == 15
    assert {len(OPS[name].tables[F64]) for name in asked if OPS[name].tables} == {8}


def test_lower_halves_of_centres_and_of_high_coefficients_are_zero() -> None:
    halved = [all(np.float64(entry).view(np.int64) & 0xFFFFFFFF == 0 for entry in table) for table in DOUBLES]
    assert [n for n, is_short in enumerate(halved) if is_short] == [0, 11, 12, 13, 14]
