"""The computations of three suites, in plain NumPy: products of matrices, vector mathematics, memory.

The programs know nothing of arrayjit. A suite is a function that yields its tasks, smallest first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from contest import Task
from scipy.special import erf

__all__ = ["SUITES", "matmul", "memory", "vector"]

TOLERANCE = {"float32": 2e-5, "float64": 1e-11}


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


SQUARE = (32, 64, 128, 256, 512, 1024, 2048)
SKINNY = (32, 4096, 1024)
"""Rows, what is summed over, columns."""
BATCHED = (64, 64, 64, 64)


def matmul(dtypes: tuple[str, ...], sizes: tuple[str, ...] | None = None) -> Iterator[Task]:
    """Products of matrices, and a layer of a network around one."""
    shapes = {str(n): (n, n, n) for n in SQUARE} | {"32x4096x1024": SKINNY, "64x64x64x64": BATCHED}
    for dtype in dtypes:
        for size, shape in shapes.items():
            if sizes and size not in sizes:
                continue
            *batch, m, k, n = shape
            random = np.random.default_rng(1)
            a = random.standard_normal((*batch, m, k)).astype(dtype)
            b = random.standard_normal((*batch, k, n)).astype(dtype)
            flops, tolerance = 2.0 * math.prod(shape), TOLERANCE[dtype]
            yield Task("matmul", "matmul", size, dtype, product, (a, b), tolerance, None, dtype, flops)
            if not batch:
                bias = random.standard_normal(n).astype(dtype)
                layer = (a, (b / math.sqrt(k)).astype(dtype), bias)
                yield Task(
                    "matmul", "gelu(x@W+b)", size, dtype, dense_gelu, layer, tolerance, None, dtype, flops
                )


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
NUMBERS = ("10000", "1000000", "10000000")


def vector(dtypes: tuple[str, ...], sizes: tuple[str, ...] | None = None) -> Iterator[Task]:
    """Elementary functions, and what is made of them."""
    for name, (function, make) in FUNCTIONS.items():
        for dtype in dtypes:
            for size in sizes or NUMBERS:
                arguments = cast(make(np.random.default_rng(1), int(size)), dtype)
                # Black and Scholes take the difference of numbers a thousand times as large.
                tolerance = TOLERANCE[dtype] * (10 if name == "black_scholes" else 1)
                yield Task("vector", name, size, dtype, function, arguments, tolerance)


def cast(arguments: tuple[Any, ...], dtype: str) -> tuple[Any, ...]:
    return tuple(one.astype(dtype) if isinstance(one, np.ndarray) else one for one in arguments)


def memory(dtypes: tuple[str, ...], sizes: tuple[str, ...] | None = None) -> Iterator[Task]:
    """Programs that do little but move arrays of so many bytes, in megabytes."""
    for size in sizes or ("128",):
        for dtype in dtypes:
            numbers = (int(size) << 20) // np.dtype(dtype).itemsize
            side = math.isqrt(numbers)
            random = np.random.default_rng(1)
            b, c = random.random((2, numbers), np.float32).astype(dtype)
            square, rows = b[: side * side].reshape(side, side), b[: numbers // 1024 * 1024].reshape(-1, 1024)
            for name, function, arguments, arrays in (
                ("triad", triad, (b, c), 3),
                ("copy", copy_of, (b,), 2),
                ("sum", sum_of, (b,), 1),
                ("stencil", stencil, (square,), 2),
                ("transpose", transpose, (square,), 2),
                ("softmax", softmax, (rows,), 2),
            ):
                moved = float(arrays * arguments[0].nbytes)
                limit = "read" if arrays == 1 else "memory"
                tolerance = TOLERANCE[dtype]
                yield Task("memory", name, size, dtype, function, arguments, tolerance, None, limit, moved)


SUITES = {"matmul": matmul, "vector": vector, "memory": memory}
