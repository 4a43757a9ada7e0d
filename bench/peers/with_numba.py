"""Numba: loops, in parallel over what is independent, as its users write them, into arrays that are there.

Numba computes in float64 what has a Python float in it, so the constants have the dtype of the arrays.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import get_num_threads, njit, prange
from starting import process

from arrayjit.contest.callers import anew, with_numba
from arrayjit.contest.tasks import Entry, Task

from .numba_kernels import KERNELS
from .numba_kernels.flags import SUMS

__all__ = ["entry"]


def entry(task: Task, written: tuple[int, ...]) -> Entry | None:
    match task.suite:
        case "kernels":
            kernel = KERNELS.get(task.name)
            return Entry(lambda *arguments: kernel) if kernel else None
        case "calls":
            return with_numba.entry(task, written) if task.name != "ends of 20 arrays" else None
        case "compile":
            return anew(with_numba.entry)(task, written)
        case "startup":
            return process("numba", "numba_program.py", task)
    make = VERSIONS[task.name]

    def start(*arguments: Any) -> Callable[..., Any]:
        return make(arguments[0].dtype.type, *arguments)

    return Entry(start)


def elementwise(function: Callable[..., Any]) -> Callable[..., Callable[..., Any]]:
    """A loop around what `function` makes of a dtype: a function of numbers."""

    def make(number: Any, x: Any) -> Callable[..., Any]:
        out, scalar = np.empty_like(x), njit(function(number))

        @njit(parallel=True)
        def loop(out, x):
            for i in prange(x.size):
                out[i] = scalar(x[i])
            return out

        return lambda x: loop(out, x)

    return make


def gelu(number: Any) -> Callable[..., Any]:
    half, one, scale, cubic = map(number, (0.5, 1, 0.7978845608028654, 0.044715))

    def of(x):
        return half * x * (one + math.tanh(scale * (x + cubic * x * x * x)))

    return of


def power(number: Any, x: Any, y: Any) -> Callable[..., Any]:
    out = np.empty_like(x)

    @njit(parallel=True)
    def loop(out, x, y):
        for i in prange(x.size):
            out[i] = x[i] ** y[i]
        return out

    return lambda x, y: loop(out, x, y)


def matmul(number: Any, a: Any, b: Any) -> Callable[..., Any]:
    """NumPy's product inside of Numba is SciPy's BLAS, which it calls one matrix at a time."""
    out = np.empty((*a.shape[:-1], b.shape[-1]), a.dtype)

    @njit
    def product(out, a, b):
        np.dot(a, b, out)
        return out

    @njit(parallel=True)
    def batched(out, a, b):
        for i in prange(a.shape[0]):
            np.dot(a[i], b[i], out[i])
        return out

    function = product if a.ndim == 2 else batched
    return lambda a, b: function(out, a, b)


def dense_gelu(number: Any, x: Any, weights: Any, bias: Any) -> Callable[..., Any]:
    out, activation = np.empty((x.shape[0], weights.shape[1]), x.dtype), njit(gelu(number))

    @njit(parallel=True)
    def layer(out, x, weights, bias):
        np.dot(x, weights, out)
        for i in prange(out.shape[0]):
            for j in range(out.shape[1]):
                out[i, j] = activation(out[i, j] + bias[j])
        return out

    return lambda x, weights, bias: layer(out, x, weights, bias)


def softmax(number: Any, x: Any) -> Callable[..., Any]:
    out, zero = np.empty_like(x), number(0)

    @njit(parallel=True, fastmath=SUMS)
    def rows(out, x):
        for i in prange(x.shape[0]):
            largest = x[i, 0]
            for j in range(1, x.shape[1]):
                largest = max(largest, x[i, j])
            total = zero
            for j in range(x.shape[1]):
                out[i, j] = math.exp(x[i, j] - largest)
                total += out[i, j]
            for j in range(x.shape[1]):
                out[i, j] /= total
        return out

    return lambda x: rows(out, x)


def layernorm(number: Any, x: Any, gain: Any, bias: Any) -> Callable[..., Any]:
    out, zero, eps = np.empty_like(x), number(0), number(1e-5)

    @njit(parallel=True, fastmath=SUMS)
    def rows(out, x, gain, bias):
        width = number(x.shape[1])
        for i in prange(x.shape[0]):
            total = zero
            for j in range(x.shape[1]):
                total += x[i, j]
            mean = total / width
            squares = zero
            for j in range(x.shape[1]):
                squares += (x[i, j] - mean) * (x[i, j] - mean)
            scale = number(1) / math.sqrt(squares / width + eps)
            for j in range(x.shape[1]):
                out[i, j] = (x[i, j] - mean) * scale * gain[j] + bias[j]
        return out

    return lambda x, gain, bias: rows(out, x, gain, bias)


def black_scholes(
    number: Any, spot: Any, strike: Any, years: Any, rate: Any, volatility: Any
) -> Callable[..., Any]:
    calls, puts, interest = np.empty_like(spot), np.empty_like(spot), number(rate)
    half, root = number(0.5), number(0.7071067811865476)

    @njit(parallel=True)
    def prices(calls, puts, spot, strike, years, volatility):
        for i in prange(spot.size):
            spread = volatility[i] * math.sqrt(years[i])
            drift = (interest + half * volatility[i] * volatility[i]) * years[i]
            d1 = (math.log(spot[i] / strike[i]) + drift) / spread
            present = strike[i] * math.exp(-interest * years[i])
            nd1 = half + half * math.erf(d1 * root)
            nd2 = half + half * math.erf((d1 - spread) * root)
            calls[i] = spot[i] * nd1 - present * nd2
            puts[i] = calls[i] - spot[i] + present
        return calls, puts

    return lambda spot, strike, years, rate, volatility: prices(calls, puts, spot, strike, years, volatility)


def triad(number: Any, b: Any, c: Any) -> Callable[..., Any]:
    out, three = np.empty_like(b), number(3)

    @njit(parallel=True)
    def loop(out, b, c):
        for i in prange(b.size):
            out[i] = b[i] + three * c[i]
        return out

    return lambda b, c: loop(out, b, c)


def total(number: Any, x: Any) -> Callable[..., Any]:
    zero = number(0)

    @njit(parallel=True, fastmath=SUMS)
    def sum_of(x):
        result = zero
        flat = x.reshape(-1)
        for i in prange(flat.size):
            result += flat[i]
        return result

    return sum_of


def stencil(number: Any, x: Any) -> Callable[..., Any]:
    out, fifth = np.empty((x.shape[0] - 2, x.shape[1] - 2), x.dtype), number(0.2)

    @njit(parallel=True)
    def points(out, x):
        for i in prange(1, x.shape[0] - 1):
            for j in range(1, x.shape[1] - 1):
                cross = x[i, j] + x[i - 1, j] + x[i + 1, j] + x[i, j - 1] + x[i, j + 1]
                out[i - 1, j - 1] = fifth * cross
        return out

    return lambda x: points(out, x)


def transpose(number: Any, x: Any) -> Callable[..., Any]:
    """In squares of 32 by 32 cells, which stay in the nearest cache."""
    out = np.empty((x.shape[1], x.shape[0]), x.dtype)

    @njit(parallel=True)
    def squares(out, x):
        for block in prange((x.shape[0] + 31) // 32):
            for left in range(0, x.shape[1], 32):
                for j in range(left, min(left + 32, x.shape[1])):
                    for i in range(block * 32, min(block * 32 + 32, x.shape[0])):
                        out[j, i] = x[i, j]
        return out

    return lambda x: squares(out, x)


def means_of_columns(number: Any, x: Any) -> Callable[..., Any]:
    """Each thread adds up rows of its own, in sums of its own."""
    parts = get_num_threads()
    sums, height = np.empty((parts, x.shape[1]), x.dtype), number(x.shape[0])

    @njit(parallel=True)
    def columns(sums, x):
        for part in prange(parts):
            sums[part] = 0
            for i in range(part * x.shape[0] // parts, (part + 1) * x.shape[0] // parts):
                for j in range(x.shape[1]):
                    sums[part, j] += x[i, j]
        return sums.sum(axis=0) / height

    return lambda x: columns(sums, x)


def maxima_of_rows(number: Any, x: Any) -> Callable[..., Any]:
    out = np.empty(x.shape[0], x.dtype)

    @njit(parallel=True)
    def rows(out, x):
        for i in prange(x.shape[0]):
            out[i] = x[i].max()
        return out

    return lambda x: rows(out, x)


def argmax(number: Any, x: Any) -> Callable[..., Any]:
    return njit(lambda x: x.argmax())


def variance(number: Any, x: Any) -> Callable[..., Any]:
    zero = number(0)

    @njit(parallel=True, fastmath=SUMS)
    def of(x):
        count = number(x.size)
        total = zero
        for i in prange(x.shape[0]):
            for j in range(x.shape[1]):
                total += x[i, j]
        mean = total / count
        squares = zero
        for i in prange(x.shape[0]):
            for j in range(x.shape[1]):
                squares += (x[i, j] - mean) * (x[i, j] - mean)
        return squares / count

    return of


def norm(number: Any, x: Any) -> Callable[..., Any]:
    zero = number(0)

    @njit(parallel=True, fastmath=SUMS)
    def of(x):
        squares = zero
        for i in prange(x.size):
            squares += x[i] * x[i]
        return math.sqrt(squares)

    return of


def dot(number: Any, x: Any, y: Any) -> Callable[..., Any]:
    return njit(lambda x, y: np.dot(x, y))


def cumsum(number: Any, x: Any) -> Callable[..., Any]:
    out, zero = np.empty_like(x), number(0)

    @njit
    def scan(out, x):
        total = zero
        for i in range(x.size):
            total += x[i]
            out[i] = total
        return out

    return lambda x: scan(out, x)


def logsumexp(number: Any, x: Any) -> Callable[..., Any]:
    out, zero = np.empty(x.shape[0], x.dtype), number(0)

    @njit(parallel=True, fastmath=SUMS)
    def rows(out, x):
        for i in prange(x.shape[0]):
            largest = x[i, 0]
            for j in range(1, x.shape[1]):
                largest = max(largest, x[i, j])
            total = zero
            for j in range(x.shape[1]):
                total += math.exp(x[i, j] - largest)
            out[i] = math.log(total) + largest
        return out

    return lambda x: rows(out, x)


VERSIONS: dict[str, Callable[..., Callable[..., Any]]] = {
    "matmul": matmul,
    "gelu(x@W+b)": dense_gelu,
    "exp": elementwise(lambda number: lambda x: math.exp(x)),
    "log": elementwise(lambda number: lambda x: math.log(x)),
    "tanh": elementwise(lambda number: lambda x: math.tanh(x)),
    "sin": elementwise(lambda number: lambda x: math.sin(x)),
    "erf": elementwise(lambda number: lambda x: math.erf(x)),
    "pow": power,
    "gelu": elementwise(gelu),
    "softmax": softmax,
    "layernorm": layernorm,
    "black_scholes": black_scholes,
    "triad": triad,
    "copy": elementwise(lambda number: lambda x: x),
    "sum": total,
    "stencil": stencil,
    "transpose": transpose,
    "means_of_columns": means_of_columns,
    "maxima_of_rows": maxima_of_rows,
    "argmax": argmax,
    "variance": variance,
    "norm": norm,
    "dot": dot,
    "cumsum": cumsum,
    "logsumexp": logsumexp,
}
