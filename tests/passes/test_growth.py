"""A program twice as long takes twice the work to compile, counted in calls of functions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from work import calls_in

from arrayjit import jit

Program = Callable[..., Any]


@dataclass
class Belief:
    mean: np.ndarray
    spread: np.ndarray


def estimates(start: Any, moves: Any, seen: Any) -> Any:
    """Steps of a filter, which a list of results keeps from being a loop."""
    belief, out = Belief(start[0], start), []
    for number in seen:
        spread = moves @ belief.spread @ moves.T + 0.01
        gain = spread @ np.linalg.inv(spread + 0.1)
        belief = Belief(belief.mean + gain @ (number - belief.mean), spread - gain @ spread)
        out.append(belief.mean)
    return np.stack(out)


def halves(values: Any) -> Any:
    """Parts of parts, put together again."""
    if len(values) == 1:
        return values
    even, odd = halves(values[::2]), halves(values[1::2])
    turned = np.exp(np.arange(len(odd)) / len(values)) * odd
    return np.concatenate([even + turned, even - turned])


def of_filter(length: int) -> tuple[Program, tuple[Any, ...]]:
    return estimates, (np.eye(3), np.eye(3) + 0.1, np.ones((length, 3)))


def of_halves(length: int) -> tuple[Program, tuple[Any, ...]]:
    return halves, (np.linspace(1, 2, length),)


def calls(program: Program, args: tuple[Any, ...]) -> int:
    """How many calls of functions it takes to compile a program, those of generators included."""
    function = jit(program, target="llvm")
    return calls_in(lambda: function.lower(*args).as_text("llvm"))


@pytest.mark.parametrize(("make", "length"), [(of_filter, 3), (of_halves, 8)])
def test_twice_the_program_takes_twice_the_work(make: Any, length: int) -> None:
    once, twice, four_times = (calls(*make(length * factor)) for factor in (1, 2, 4))
    assert four_times - twice < 2.4 * (twice - once)
