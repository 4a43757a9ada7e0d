"""How a program of these tests is written down: the function, and how its arguments are drawn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

__all__ = ["Draw", "Program", "program"]

Function = TypeVar("Function", bound=Callable[..., Any])


class Draw:
    """Random arrays of one dtype. `n` is the size that the program is tried at."""

    def __init__(self, n: int, dtype: str, seed: int = 0) -> None:
        self.n = n
        self.dtype = np.dtype(dtype)
        self._random = np.random.default_rng(seed)

    def normal(self, *shape: int) -> np.ndarray:
        return self._random.standard_normal(shape).astype(self.dtype)

    def uniform(self, low: float, high: float, *shape: int) -> np.ndarray:
        return self._random.uniform(low, high, shape).astype(self.dtype)

    def integers(self, high: int, *shape: int) -> np.ndarray:
        return self._random.integers(0, high, shape)


@dataclass(frozen=True)
class Program:
    """`exact`: every operation is one that arrayjit rounds as NumPy does, so the bits are NumPy's."""

    function: Callable[..., Any]
    arguments: Callable[[Draw], tuple[Any, ...]]
    exact: bool

    @property
    def name(self) -> str:
        return self.function.__name__


def program(
    programs: list[Program], arguments: Callable[[Draw], tuple[Any, ...]], exact: bool = False
) -> Callable[[Function], Function]:
    """Enters the decorated function in a list of programs."""

    def enter(function: Function) -> Function:
        programs.append(Program(function, arguments, exact))
        return function

    return enter
