"""`f.lower(x).cost()` equals what one counts by hand.

Hand counts stand in the tests as formulas: floating-point operations, elementary functions by name, bytes of
the call's arrays that are read and written, each once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

import arrayjit
from arrayjit import spec
from arrayjit.profile.amounts import Amount
from arrayjit.profile.cost import Cost

N, M, K = 123, 45, 67


def cost(function: Callable[..., Any], *args: Any) -> Cost:
    return arrayjit.jit(function).lower(*args).cost()


def saxpy(a: Any, x: Any, y: Any) -> Any:
    return a * x + y


def matmul(a: Any, b: Any) -> Any:
    return a @ b


def stencil(a: Any, b: Any) -> None:
    b[1:-1, 1:-1] = 0.2 * (a[1:-1, 1:-1] + a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:])


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def layernorm(x: Any, gain: Any, bias: Any) -> Any:
    centred = x - x.sum(axis=1, keepdims=True) / x.shape[1]
    variance = (centred * centred).sum(axis=1, keepdims=True) / x.shape[1]
    return centred / np.sqrt(variance + 1e-5) * gain + bias


def black_scholes(s: Any, k: Any, t: Any) -> Any:
    """A call's price where rate and volatility are 0.02 and 0.3."""
    d = np.log(s / k) + 0.065 * t
    d1 = d / (0.3 * np.sqrt(t))
    d2 = d1 - 0.3 * np.sqrt(t)
    return s * (1.0 + np.tanh(d1)) - k * np.exp(-0.02 * t) * (1.0 + np.tanh(d2))


def cumsum(x: Any) -> Any:
    return np.cumsum(x)


def transpose(x: Any) -> Any:
    return np.ascontiguousarray(x.T)


def squares(x: Any) -> Any:
    return (x * x).sum()


def triangular(a: Any, b: Any) -> Any:
    out = np.zeros(len(a))
    for i in range(len(a)):
        out[i] = a[i, : i + 1] @ b[: i + 1]
    return out


def horner(x: Any) -> Any:
    y = 0.0 * x
    for c in (1.0, 2.0, 3.0, 4.0, 5.0):
        y = y * x + c
    return y


def normalise(x: Any) -> None:
    x /= np.sqrt((x * x).sum())


KERNELS: Mapping[str, tuple[Callable[..., Any], tuple[Any, ...], int, Mapping[str, int], int, int]] = {
    "saxpy": (saxpy, (spec(()), spec(N), spec(N)), 2 * N, {}, 8 + 16 * N, 8 * N),
    "matmul": (matmul, (spec((N, K)), spec((K, M))), 2 * N * K * M, {}, 8 * (N * K + K * M), 8 * N * M),
    "stencil": (
        stencil,
        (spec((N, M)), spec((N, M))),
        5 * (N - 2) * (M - 2),
        {},
        8 * (N * M - 4),
        8 * (N - 2) * (M - 2),
    ),
    "softmax": (softmax, (spec((N, M), np.float32),), 3 * N * M, {"exp": N * M}, 4 * N * M, 4 * N * M),
    "layernorm": (
        layernorm,
        (spec((N, M)), spec(M), spec(M)),
        (1 + 1 + 1 + 1 + 3) * N * M + (1 + 1 + 2) * N,
        {},
        8 * (N * M + 2 * M),
        8 * N * M,
    ),
    "black_scholes": (
        black_scholes,
        (spec(N), spec(N), spec(N)),
        (3 + 3 + 3 + 7) * N,
        {"exp": N, "log": N, "tanh": 2 * N},
        24 * N,
        8 * N,
    ),
    "cumsum": (cumsum, (spec(N),), N - 1, {}, 8 * N, 8 * N),
    "transpose": (transpose, (spec((N, M)),), 0, {}, 8 * N * M, 8 * N * M),
    "squares": (squares, (spec((N, M)),), 2 * N * M, {}, 8 * N * M, 8),
    "triangular": (
        triangular,
        (spec((N, N)), spec(N)),
        2 * N * (N + 1) // 2,
        {},
        8 * (N * (N + 1) // 2 + N),
        8 * N,
    ),
    "horner": (horner, (spec(N),), 11 * N, {}, 8 * N, 8 * N),
    "normalise": (normalise, (spec(N),), 3 * N + 1, {}, 8 * N, 8 * N),
}


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("target", ["sync_llvm", "llvm", "interp"])
def test_counts_are_those_made_by_hand(name: str, target: str) -> None:
    function, args, flops, functions, read, written = KERNELS[name]
    found = arrayjit.jit(function, target=target).lower(*args).cost()
    assert int(found.flops) == flops
    assert {function: int(amount) for function, amount in found.functions.items()} == functions
    assert (int(found.read), int(found.written)) == (read, written)


def test_what_is_executed_is_counted_on_the_final_kernel() -> None:
    """100 = 6 vectors of 16 and one that repeats 12 of their cells."""
    with arrayjit.use(target="sync_llvm"):
        found = cost(lambda x, y: x * y + x, spec(96), spec(96))
    assert found.executed.flops == found.asked.flops == {"float64": Amount(192, 192)}
    assert found.executed.loads == Amount(192, 192)
    assert found.executed.bytes_stored == Amount(768, 768)
    assert found.intensity == 192 / (3 * 768)


def test_an_elementary_function_counts_as_itself_and_as_its_arithmetic() -> None:
    found = cost(lambda x: np.exp(x), spec(64))
    assert found.functions == {"exp": Amount(64, 64)}
    assert found.flops == Amount(0, 0)
    assert found.executed.functions == {}
    assert found.executed.all_flops.low >= 10 * 64


def test_lanes_that_are_combined_count() -> None:
    """The sum of 64 numbers in vectors: the lanes' sums, which are combined with the first one."""
    found = cost(lambda x: x.sum(), spec(64))
    lanes = int(found.executed.all_flops) - 64
    assert lanes & (lanes - 1) == 0
    assert lanes > 1


def test_stores_that_combine_count_as_a_load_an_addition_and_a_store() -> None:
    def scattered(a: Any, p: Any, v: Any) -> None:
        np.add.at(a, p, v)

    arrays = spec(100), spec(64, np.int64), spec(64)
    jitted = arrayjit.jit(scattered, target="cuda", unchecked=True)
    atomic = jitted.lower(*arrays, fast="atomics").cost().executed
    in_order = jitted.lower(*arrays).cost().executed
    assert atomic.flops == {"float64": Amount(64, 64)}
    assert (atomic.loads, atomic.stores) == (in_order.loads, in_order.stores)
    assert (atomic.bytes_loaded, atomic.bytes_stored) == (in_order.bytes_loaded, in_order.bytes_stored)


def test_an_integer_argument_counts_as_what_it_is() -> None:
    def smooth(x: Any, n: int) -> None:
        for _ in range(n):
            x[1:-1] = 0.5 * (x[:-2] + x[2:])

    for n in (0, 1, 7):
        found = cost(smooth, np.zeros(N), n)
        assert int(found.flops) == 2 * (N - 2) * n
        assert int(found.written) == (8 * (N - 2) if n else 0)


def test_an_integer_that_is_not_known_leaves_bounds() -> None:
    found = cost(lambda x, n: x[:n].sum(), spec(N), spec((), np.int64))
    assert found.flops == Amount(0, N)
    assert found.read == Amount(8, 8 + 8 * N)
    with pytest.raises(ValueError, match=f"only bounds are known: 0 to {N}"):
        int(found.flops)


def test_what_data_decides_is_counted_within_bounds() -> None:
    found = cost(lambda x: arrayjit.while_loop(lambda v: v.sum() > 1, lambda v: v / 2, x), spec(N))
    assert found.flops == Amount(N, math.inf)
    assert str(found.flops) == f"at least {N}"


def test_a_branch_counts_from_nothing_to_all() -> None:
    found = cost(lambda x: arrayjit.cond(x[0] > 0, lambda v: v * 2, lambda v: v + 0, x), spec(N))
    assert found.flops.low <= N <= found.flops.high
    assert not found.flops.is_exact


def test_what_indices_say_is_read_somewhere() -> None:
    found = cost(lambda x, i: x[i], spec(1000), spec(N, np.int64))
    assert {array.label: array.read for array in found.arrays}["x"] == Amount(8, 8 * N)
    assert {array.label: array.read for array in found.arrays}["i"] == Amount(8 * N, 8 * N)


@pytest.mark.parametrize(
    ("function", "cells"),
    [
        (lambda x: x[::2].sum() + x[1::2].sum(), 1000),
        (lambda x: x[::3].sum() + x[1::3].sum(), 334 + 333),
        (lambda x: x[10:20].sum() + x[15:40].sum(), 30),
        (lambda x: x.reshape(10, 100)[3:5, ::7].sum() + x[300:310].sum(), 2 * 15 + 10 - 2),
        (lambda x: np.diagonal(x.reshape(25, 40)).sum(), 25),
        (lambda x: x[::-1][:100].sum() + x[950:].sum(), 100),
        (lambda x: x.reshape(10, 100).T[:, 2].sum(), 100),
        (lambda x: np.broadcast_to(x[:10], (50, 10)).sum(), 10),
    ],
)
def test_each_cell_counts_once(function: Callable[..., Any], cells: int) -> None:
    assert int(cost(function, spec(1000)).read) == 8 * cells


def test_an_array_that_was_broadcast_has_few_cells() -> None:
    found = cost(lambda x: x.sum(), np.broadcast_to(np.ones(7), (100, 7)))
    assert int(found.read) == 8 * 7


def test_integers_and_choices_are_counted_apart() -> None:
    found = cost(lambda i, x: (i * 3 + 1, np.where(x > 0, x, -x)), spec(N, np.int64), spec(N))
    assert found.flops == Amount(0, 0)
    assert found.asked.integer == Amount(2 * N, 2 * N)
    assert found.asked.other == Amount(3 * N, 3 * N)


def test_float32_and_float64_are_counted_apart() -> None:
    found = cost(lambda x, y: (x + x, y * y), spec(10, np.float32), spec(20))
    assert found.asked.flops == {"float32": Amount(10, 10), "float64": Amount(20, 20)}


def test_temporaries_are_told() -> None:
    def scaled(x: Any) -> Any:
        y = np.cumsum(x)
        return y[::-1] / y.max()

    found = cost(scaled, spec(100_000))
    assert found.arena_bytes >= 800_000


def test_as_text_it_is_a_table() -> None:
    text = str(cost(softmax, spec((10, 20), np.float32)))
    lines = text.splitlines()
    assert lines[0] == "softmax for llvm"
    assert lines[2].split()[:3] == ["flops", "float32", "600"]
    assert lines[3].split() == ["exp", "200", "as", "arithmetic"]
    assert any(line.split() == ["x", "800", "0"] for line in lines)


def test_programs_that_grow_are_counted_in_time_that_does_not() -> None:
    small, large = (cost(triangular, spec((n, n)), spec(n)) for n in (10, 3000))
    assert int(small.flops) == 110
    assert int(large.flops) == 3000 * 3001
