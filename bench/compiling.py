"""First calls: of functions of a few operations, of loops with conditions and of long chains, all anew."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from arrayjit.contest.tasks import Arguments, Choice, Task

__all__ = ["compiling"]

EVERYONE = ("arrayjit", "numba", "jax", "torch.compile")
MOST = ("arrayjit", "numba", "jax")
TOLERANCE = 1e-9


def hypotenuse(x, y):
    return np.sqrt(x * x + y * y)


def scaled_sum(x, y):
    return x * 2 + y


def where_and_mean(x, y):
    return np.where(x > y, x, y) - x.mean()


def standardised(x, y):
    return (x - x.mean(axis=0)) / (x.std(axis=0) + 1)


def exp_and_tanh(x, y):
    return np.exp(-np.abs(x)) * np.tanh(y)


def dense_relu(x, y):
    return np.maximum(x @ y.T, 0).sum(axis=1)


def clip_and_log1p(x, y):
    return np.clip(x, 0, 1) ** 2 + np.log1p(np.abs(y))


def differences(x, y):
    return (x[1:] - x[:-1]) / (y[1:] + 30)


def joined(x, y):
    return np.concatenate([x, y]).max(axis=1)


def conditions(x, y):
    out = np.zeros_like(x)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            if i == j:
                out[i, j] = x[i, j]
            elif i > j:
                out[i, j] = y[j, i]
            elif j % 2:
                out[i, j] = -y[i, j]
    return out


def chain(length: int) -> Callable[..., Any]:
    """A function of `length` elementwise ops, one after another, each in a line: a loop would stay a loop."""
    lines = (f"    x = x * 0.999 + {step}" for step in range(length // 2))
    names: dict[str, Any] = {}
    exec("\n".join(("def run(x):", *lines, "    return x")), names)
    return names["run"]


# Numba takes a minute for a chain of 100, JAX's memory does not hold one of 1,000.
PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
    "hypotenuse": (hypotenuse, EVERYONE),
    "scaled_sum": (scaled_sum, MOST),
    "where_and_mean": (where_and_mean, MOST),
    "standardised": (standardised, ("arrayjit", "jax")),
    "exp_and_tanh": (exp_and_tanh, MOST),
    "dense_relu": (dense_relu, ("arrayjit", "jax")),
    "clip_and_log1p": (clip_and_log1p, MOST),
    "differences": (differences, MOST),
    "joined": (joined, ("arrayjit", "jax")),
    "conditions": (conditions, ("arrayjit", "numba")),
    "chain_of_100": (chain(100), ("arrayjit", "jax")),
    "chain_of_1000": (chain(1000), ("arrayjit",)),
}
QUICK = ("exp_and_tanh", "chain_of_100")


def compiling(choice: Choice) -> Iterator[Task]:
    for name, (function, peers) in PROGRAMS.items():
        if choice.quick and name not in QUICK:
            continue
        make = a_vector if name.startswith("chain") else two_squares
        yield Task("compile", name, "", "float64", function, make, TOLERANCE, peers=peers)


def two_squares() -> Arguments:
    return tuple(np.random.default_rng(0).standard_normal((2, 64, 64)))


def a_vector() -> Arguments:
    return (np.random.default_rng(0).standard_normal(1000),)
