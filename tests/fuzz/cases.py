"""Programs written by hand, each with the arguments of its calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["POSITIONS", "Cases", "counts", "matrix", "vector"]

Program = Callable[..., Any]
Maker = Callable[[], tuple[Any, ...]]

POSITIONS = np.array([3, 1, 0, 2, 5, 4, 8, 7, 6])


def vector() -> tuple[np.ndarray]:
    return (np.arange(9.0) - 3,)


def matrix() -> tuple[np.ndarray]:
    return (np.arange(81.0).reshape(9, 9) % 7,)


def counts(*numbers: int) -> list[Maker]:
    """A vector and a number for each call."""
    return [lambda number=number: (*vector(), number) for number in numbers]  # type: ignore[misc]


class Cases(dict[str, tuple[Program, tuple[Maker, ...]]]):
    """Programs by name; as a decorator, it adds one that is called with what each maker makes."""

    def __call__(self, *makers: Maker) -> Callable[[Program], Program]:
        def add(program: Program) -> Program:
            self[program.__name__] = (program, makers or (vector,))
            return program

        return add
