"""Jitted programs with loops beside NumPy's, and whether their loops were kept."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import numpy as np
from harness import assert_same

import arrayjit

__all__ = ["TARGETS", "assert_kept", "assert_like_numpy", "assert_unrolled", "length"]

TARGETS = ("interp", "sync_llvm")


def assert_like_numpy(program: Callable[..., Any], *calls: tuple[Any, ...]) -> Any:
    """Results and arguments are as in NumPy, for each call in turn. Returns the jitted function."""
    jitted = arrayjit.jit(program)
    for target in TARGETS:
        for arguments in calls:
            plain, traced = deepcopy(arguments), deepcopy(arguments)
            with np.errstate(all="ignore"):
                wanted = program(*plain)
            assert_same(jitted.on(target)(*traced), wanted)
            assert_same(traced, plain)
    return jitted


def length(program: Callable[..., Any], *arguments: Any) -> int:
    """How many lines the program has as traced."""
    return len(arrayjit.jit(program).lower(*arguments).as_text("assignments").splitlines())


def assert_kept(program: Callable[[np.ndarray], Any]) -> None:
    assert length(program, np.ones(12)) == length(program, np.ones(996))


def assert_unrolled(program: Callable[[np.ndarray], Any]) -> None:
    assert length(program, np.ones(7)) < length(program, np.ones(14))
