"""Whole jitted functions compared with NumPy on every target."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from harness import assert_same

import arrayjit

__all__ = ["TARGETS", "assert_runs_as_in_numpy"]

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
