"""Recurrences over all that came before: the bits are those of the same loops as they are written."""

from __future__ import annotations

import numpy as np
import pytest

import arrayjit
from arrayjit.ir.code import Caps, Schedule
from arrayjit.ir.interp import run
from arrayjit.passes.manager import optimize
from arrayjit.tracer.calls.function import trace_function


def exponential_of_a_series(a):
    """The coefficients of exp(f), of those of f."""
    n = len(a)
    b = np.zeros_like(a)
    weighted = np.arange(n).astype(a.dtype) * a
    b[0] = np.exp(a[0])
    for k in range(1, n):
        b[k] = weighted[1 : k + 1] @ b[:k][::-1] / k
    return b


def quotient_of_series(a):
    """The coefficients of 1 / f, of those of f."""
    b = np.empty_like(a)
    b[0] = 1 / a[0]
    for k in range(1, len(a)):
        b[k] = -(b[:k] @ a[k:0:-1]) / a[0]
    return b


def until_it_is_large(a):
    """As a quotient, with a step of which some are left out."""
    b = np.zeros_like(a)
    b[0] = 1 / a[0]
    for k in range(len(a) - 1):
        past = a[1 : k + 2] @ b[k::-1]
        b[k + 1] = np.where(abs(past) < 0.5, -past, 0.5)
    return b


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("length", [8, 70, 333])
@pytest.mark.parametrize("function", [exponential_of_a_series, quotient_of_series, until_it_is_large])
def test_the_bits_are_those_without_a_copy(function, length, dtype):
    a = (np.random.default_rng(7).standard_normal(length) * 0.9 ** np.arange(length)).astype(dtype)
    a[0] = 1.5
    computation = trace_function(function, (a,), {}).computation
    results = [arrayjit.jit(function)(a)]
    for schedule in (Schedule(), Schedule(("reverse",))):
        kernel = optimize(computation, Caps(), schedule, verify=True).kernel
        has_copy = any(note.startswith("reverse") for note in kernel.notes)
        assert has_copy == (length > 8 and not schedule.without)
        results.append(np.empty(length, dtype))
        run(kernel, dict(zip((param.tensor for param in kernel.params), (a, results[-1]), strict=True)), {})
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_array_equal(results[1], results[2])
    np.testing.assert_allclose(results[0], function(a), rtol=1e-3 if dtype is np.float32 else 1e-9, atol=1e-6)
