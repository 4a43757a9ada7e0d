"""Which of our functions stands for which of NumPy's: the tables that the tracer grows by.

Feature files fill them with the decorators below and `tracer/__init__.py` imports every feature file,
so that `array.py` can dispatch to features which themselves are written over `SymbolicArray`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

__all__ = [
    "CREATION",
    "FUNCTIONS",
    "METHODS",
    "UFUNC_METHODS",
    "AnyCallable",
    "creates",
    "implements",
    "method",
    "ufunc_method",
]

AnyCallable = Callable[..., Any]
Function = TypeVar("Function", bound=AnyCallable)

FUNCTIONS: dict[AnyCallable, AnyCallable] = {}
"""NumPy functions that receive symbolic arrays (`np.sum`, `np.matmul`) -> ours, same signature."""

CREATION: dict[Any, Any] = {}
"""NumPy functions that make arrays from none (`np.zeros`, `np.ndarray`) -> ours, same signature."""

METHODS: dict[str, AnyCallable] = {}
"""Methods and operators of ndarray -> functions whose first argument is the symbolic array."""

UFUNC_METHODS: dict[str, AnyCallable] = {}
"""Methods of ufuncs (`reduce`) -> functions whose first argument is the ufunc."""


def implements(*functions: AnyCallable | str) -> Callable[[Function], Function]:
    """Register the decorated function for calls of `functions` with symbolic arrays. One that the oldest
    NumPy lacks is given by its name in `np`, and left out where it is missing."""
    present = (getattr(np, f, None) if isinstance(f, str) else f for f in functions)
    return _filling(FUNCTIONS, *(function for function in present if function is not None))


def creates(*functions: AnyCallable) -> Callable[[Function], Function]:
    """Register the decorated function for calls of `functions` inside a traced function."""
    return _filling(CREATION, *functions)


def method(*names: str) -> Callable[[Function], Function]:
    """Register the decorated function as methods of symbolic arrays."""
    return _filling(METHODS, *names)


def ufunc_method(*names: str) -> Callable[[Function], Function]:
    """Register the decorated function as methods of every ufunc."""
    return _filling(UFUNC_METHODS, *names)


def _filling(table: dict[Any, AnyCallable], *keys: Any) -> Callable[[Function], Function]:
    def register(function: Function) -> Function:
        for key in keys:
            table[key] = function
        return function

    return register
