"""Whole jitted functions compared with NumPy on every target."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from harness import assert_same

import arrayjit

__all__ = ["TARGETS", "assert_near_numpy", "assert_runs_as_in_numpy"]

TARGETS = ("interp", "sync_llvm")


def assert_runs_as_in_numpy(
    make: Callable[[], tuple[Callable[..., Any], tuple[Any, ...]]],
    after: Callable[[Callable[..., Any]], Any] = lambda function: None,
) -> None:
    """`make` makes a function anew and its arguments. Two calls of it give the same, jitted and plain, do the
    same to the arguments, and leave the same behind, which `after` finds from the function."""
    plain, arguments = make()
    with np.errstate(all="ignore"):
        wanted = plain(*arguments), plain(*arguments)
    for target in TARGETS:
        function, traced = make()
        jitted = arrayjit.jit(function, target=target)
        assert_same((jitted(*traced), jitted(*traced)), wanted)
        assert_same(traced, arguments)
        assert_same(after(function), after(plain))


def assert_near_numpy(program: Callable[..., Any], *arguments: Any, units: int = 100) -> None:
    """As NumPy in types, dtypes and shapes; floats equal but for so many units in the last place of the
    largest. The arguments stay as they are."""
    before = [np.copy(argument) for argument in arguments]
    wanted = program(*arguments)
    for target in TARGETS:
        got = arrayjit.jit(program, target=target)(*arguments)
        assert type(got) is type(wanted)
        parts = zip(got, wanted, strict=True) if isinstance(wanted, tuple) else [(got, wanted)]
        for ours, theirs in parts:
            assert type(ours) is type(theirs)
            dtype = np.asarray(theirs).dtype
            room = units * float(np.finfo(dtype).eps) if np.issubdtype(dtype, np.inexact) else 0
            limit = room * max(1.0, float(np.max(np.abs(theirs), initial=0)))
            np.testing.assert_allclose(ours, theirs, rtol=room, atol=limit, strict=True)
    for argument, kept in zip(arguments, before, strict=True):
        np.testing.assert_array_equal(argument, kept)
