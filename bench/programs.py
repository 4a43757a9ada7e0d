"""The computations of three suites, in plain NumPy: products of matrices, vector mathematics, memory.

The programs know nothing of arrayjit. A suite is a function that yields its tasks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
from scipy.special import erf

from arrayjit.contest.tasks import Arguments, Choice, Task

__all__ = ["TOLERANCE", "matmul", "memory", "vector"]

BOTH = ("float32", "float64")
TOLERANCE = {"float32": 2e-5, "float64": 1e-11}
"""Of results that are rounded otherwise in a few places, also sums in lanes, pairs or blocks."""


def product(a, b):
    return a @ b


def gelu(x):
    """The Gaussian error linear unit, by its usual approximation."""
    return 0.5 * x * (1 + np.tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)))


def dense_gelu(x, weights, bias):
    return gelu(x @ weights + bias)


def softmax(x):
    shifted = np.exp(x - x.max(axis=-1, keepdims=True))
    return shifted / shifted.sum(axis=-1, keepdims=True)


def layernorm(x, gain, bias):
    centred = x - x.mean(axis=-1, keepdims=True)
    variance = (centred * centred).mean(axis=-1, keepdims=True)
    return centred / np.sqrt(variance + 1e-5) * gain + bias


def black_scholes(spot, strike, years, rate, volatility):
    """The prices of European calls and puts."""
    spread = volatility * np.sqrt(years)
    d1 = (np.log(spot / strike) + (rate + 0.5 * volatility * volatility) * years) / spread
    present = strike * np.exp(-rate * years)
    nd1 = 0.5 + 0.5 * erf(d1 * 0.7071067811865476)
    nd2 = 0.5 + 0.5 * erf((d1 - spread) * 0.7071067811865476)
    call = spot * nd1 - present * nd2
    return call, call - spot + present


def power(x, y):
    return x**y


def triad(b, c):
    return b + 3 * c


def stencil(x):
    return 0.2 * (x[1:-1, 1:-1] + x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:])


def transpose(x):
    return x.T.copy()


def wrapped(name: str) -> Callable[[Any], Any]:
    """A function of NumPy's as a user's program."""
    called = getattr(np, name)

    def program(x):
        return called(x)

    return program


def sum_of(x):
    return x.sum()


def copy_of(x):
    return x.copy()


SQUARES = (32, 64, 128, 256, 512, 1024, 2048)
SHAPES = {str(n): (n, n, n) for n in SQUARES} | {"32x4096x1024": (32, 4096, 1024)}
"""Rows, what is summed over, columns."""
LAYERS = ("128", "256", "512", "32x4096x1024")
BATCHED = {"64x64x64x64": (64, 64, 64, 64)}


def matmul(choice: Choice) -> Iterator[Task]:
    """Products of matrices, and a layer of a network around one."""
    for dtype in choice.dtypes or (("float32",) if choice.quick else BOTH):
        for size in choice.sizes or (("512",) if choice.quick else (*SHAPES, *BATCHED)):
            shape = {**SHAPES, **BATCHED}.get(size) or 3 * (int(size),)
            make = partial(factors, shape, dtype)
            yield Task("matmul", "matmul", size, dtype, product, make, TOLERANCE[dtype])
            if len(shape) == 3 and (size in choice.sizes or size in LAYERS):
                make = partial(layer, shape, dtype)
                yield Task("matmul", "gelu(x@W+b)", size, dtype, dense_gelu, make, TOLERANCE[dtype])


def factors(shape: tuple[int, ...], dtype: str) -> Arguments:
    *batch, m, k, n = shape
    random = np.random.default_rng(1)
    sizes = (*batch, m, k), (*batch, k, n)
    return tuple(random.standard_normal(size).astype(dtype) for size in sizes)


def layer(shape: tuple[int, ...], dtype: str) -> Arguments:
    x, weights = factors(shape, dtype)
    bias = np.random.default_rng(2).standard_normal(shape[-1]).astype(dtype)
    return x, (weights / math.sqrt(shape[1])).astype(dtype), bias


def normal(random: np.random.Generator, n: int) -> tuple[np.ndarray, ...]:
    return (random.standard_normal(n),)


def positive(random: np.random.Generator, n: int) -> tuple[np.ndarray, ...]:
    return (random.uniform(0.01, 100, n),)


def angles(random: np.random.Generator, n: int) -> tuple[np.ndarray, ...]:
    return (random.uniform(-50, 50, n),)


def bases_and_exponents(random: np.random.Generator, n: int) -> tuple[np.ndarray, ...]:
    return random.uniform(0.1, 10, n), random.uniform(-3, 3, n)


def rows_of_1000(random: np.random.Generator, n: int) -> tuple[np.ndarray, ...]:
    return (random.standard_normal((n // 1000, 1000)),)


def rows_and_parameters(random: np.random.Generator, n: int) -> tuple[np.ndarray, ...]:
    return *rows_of_1000(random, n), random.uniform(0.5, 2, 1000), random.standard_normal(1000)


def options(random: np.random.Generator, n: int) -> tuple[Any, ...]:
    spot, strike = random.uniform(50, 150, (2, n))
    return spot, strike, random.uniform(0.1, 2, n), 0.03, random.uniform(0.1, 0.6, n)


FUNCTIONS: Mapping[str, tuple[Callable[..., Any], Callable[..., tuple[Any, ...]]]] = {
    "exp": (wrapped("exp"), normal),
    "log": (wrapped("log"), positive),
    "tanh": (wrapped("tanh"), normal),
    "sin": (wrapped("sin"), angles),
    "erf": (erf, normal),
    "pow": (power, bases_and_exponents),
    "gelu": (gelu, normal),
    "softmax": (softmax, rows_of_1000),
    "layernorm": (layernorm, rows_and_parameters),
    "black_scholes": (black_scholes, options),
}
QUICK = ("exp", "softmax")
LENGTHS = {"float32": ("10000", "1000000", "10000000"), "float64": ("10000", "1000000")}
"""Arrays that the nearest caches hold, the last cache, or memory alone."""


def vector(choice: Choice) -> Iterator[Task]:
    """Elementary functions, and what is made of them."""
    for name, (function, make) in FUNCTIONS.items():
        if choice.quick and name not in QUICK:
            continue
        for dtype in choice.dtypes or (("float32",) if choice.quick else BOTH):
            for size in choice.sizes or (("1000000",) if choice.quick else LENGTHS[dtype]):
                # Black and Scholes take the difference of numbers a thousand times as large.
                tolerance = TOLERANCE[dtype] * (10 if name == "black_scholes" else 1)
                drawn = partial(cast, make, int(size), dtype)
                yield Task("vector", name, size, dtype, function, drawn, tolerance)


def cast(make: Callable[..., Arguments], n: int, dtype: str) -> Arguments:
    drawn = make(np.random.default_rng(1), n)
    return tuple(one.astype(dtype) if isinstance(one, np.ndarray) else one for one in drawn)


MOVING = {
    "triad": triad,
    "copy": copy_of,
    "sum": sum_of,
    "stencil": stencil,
    "transpose": transpose,
    "softmax": softmax,
}


def memory(choice: Choice) -> Iterator[Task]:
    """Programs that do little but move arrays of so many bytes, in megabytes."""
    for size in choice.sizes or (("16",) if choice.quick else ("128",)):
        for dtype in choice.dtypes or ("float32",):
            for name, function in MOVING.items():
                if choice.quick and name not in ("triad", "stencil"):
                    continue
                make = partial(megabytes, name, int(size), dtype)
                yield Task("memory", name, size, dtype, function, make, TOLERANCE[dtype])


def megabytes(name: str, size: int, dtype: str) -> Arguments:
    """Arrays of that size in the shape that the program is about."""
    numbers = (size << 20) // np.dtype(dtype).itemsize
    side = math.isqrt(numbers)
    b, c = np.random.default_rng(1).random((2, numbers), np.float32).astype(dtype)
    match name:
        case "triad":
            return b, c
        case "softmax":
            return (b[: numbers // 1024 * 1024].reshape(-1, 1024),)
        case "stencil" | "transpose":
            return (b[: side * side].reshape(side, side),)
        case _:
            return (b,)
