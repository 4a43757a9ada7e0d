"""Sums have the same bits whatever caches hold: how rows are gone through leaves their order alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from arrayjit.ir.assign import ArrayParam
from arrayjit.ir.code import Caps
from arrayjit.ir.interp import run
from arrayjit.passes.manager import optimize
from arrayjit.tracer.calls.function import trace_function

CACHES = (
    Caps(),
    Caps(vector_bytes=64, registers=32, l1_bytes=48 << 10, l2_bytes=2 << 20),
    Caps(l1_bytes=4 << 10, l2_bytes=16 << 10, l3_bytes=64 << 10),
    Caps(vector_bytes=16, l1_bytes=1 << 10, l2_bytes=4 << 10, l3_bytes=16 << 10, stack_bytes=512),
)
"""The last ones hold few rows of what programs are given."""


def beside_running_extremes(x: Any, w: Any) -> Any:
    extremes = np.maximum.accumulate(x, axis=1)
    x -= w[:, None]
    return extremes, (x * x).sum(axis=1)


def between_rows_that_follow_from_others(x: Any, w: Any) -> Any:
    x[1:] += 0.5 * x[:-1]
    return np.diff(x, axis=1).sum(axis=1), np.cumsum(x, axis=0)


def of_rows_and_of_columns(x: Any, w: Any) -> Any:
    return np.linalg.norm(x, axis=1), w @ x


def of_columns_behind_a_recurrence(x: Any, w: Any) -> Any:
    for i in range(x.shape[0]):
        for j in range(1, x.shape[1]):
            x[i, j] += 0.5 * x[i, j - 1]
    return w @ x


def in_sections(x: Any, w: Any) -> Any:
    x -= x.max(axis=1)[:, None]
    return np.sqrt(np.abs(x.sum(axis=1))), np.maximum.accumulate(x, axis=1)


def of_rows_that_others_read_again(x: Any, w: Any) -> Any:
    return np.maximum.accumulate(x, axis=1), x.sum(axis=1), np.cumsum(x[:, ::-1], axis=1), (x * x).sum(axis=1)


@pytest.mark.parametrize(
    "program",
    [
        beside_running_extremes,
        between_rows_that_follow_from_others,
        of_rows_and_of_columns,
        of_columns_behind_a_recurrence,
        in_sections,
        of_rows_that_others_read_again,
    ],
)
@pytest.mark.parametrize(("shape", "dtype"), [((200, 13), "f8"), ((513, 7), "f4"), ((513, 7), "f8")])
def test_bits_do_not_depend_on_caches(
    program: Callable[..., Any], shape: tuple[int, int], dtype: str
) -> None:
    random = np.random.default_rng(0)
    given = [random.standard_normal(shape).astype(dtype), random.standard_normal(shape[0]).astype(dtype)]
    computation = trace_function(program, tuple(array.copy() for array in given), {}).computation
    first, *others = (_left(optimize(computation, caps).kernel, given) for caps in CACHES)
    assert [other == first for other in others] == [True] * len(others)


def _left(kernel: Any, given: list[Any]) -> list[bytes]:
    """What a kernel leaves in the arrays that it is given, which come first, and in its results."""
    arrays = {}
    for param in kernel.params:
        assert isinstance(param, ArrayParam)
        shape = tuple(extent.constant for extent in param.tensor.shape)
        at = len(arrays)
        made = given[at].copy() if at < len(given) else np.zeros(shape, param.tensor.dtype.numpy)
        arrays[param.tensor] = made
    run(kernel, arrays, {})
    return [array.tobytes() for array in arrays.values()]
