"""What programs write out loop by loop becomes what the operation would have been."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations
from typing import Any

import numpy as np
import pytest

import arrayjit

a = np.cos(np.arange(30.0 * 40)).reshape(30, 40)
b = np.sin(np.arange(40.0 * 50)).reshape(40, 50)
square = np.cos(np.arange(2500.0)).reshape(50, 50) + 50 * np.eye(50)


def product_by(order: str) -> Callable[[Any, Any], Any]:
    """Three loops in an order."""
    extents = {"i": "len(a)", "j": "b.shape[1]", "k": "len(b)"}
    lines = ["def product(a, b):", "    c = np.zeros((len(a), b.shape[1]))"]
    for depth, name in enumerate(order, 1):
        lines.append(f"{'    ' * depth}for {name} in range({extents[name]}):")
    lines += ["                c[i, j] += a[i, k] * b[k, j]", "    return c"]
    names: dict[str, Any] = {"np": np}
    exec("\n".join(lines), names)
    found: Callable[[Any, Any], Any] = names["product"]
    return found


def by_rows(a: Any, b: Any) -> Any:
    c = np.zeros((len(a), b.shape[1]))
    for i in range(len(a)):
        for k in range(len(b)):
            c[i] += a[i, k] * b[k]
    return c


def by_columns(a: Any, b: Any) -> Any:
    c = np.zeros((len(a), b.shape[1]))
    for j in range(b.shape[1]):
        for k in range(len(b)):
            c[:, j] += a[:, k] * b[k, j]
    return c


def by_outer_products(a: Any, b: Any) -> Any:
    c = np.zeros((len(a), b.shape[1]))
    for k in range(len(b)):
        c += np.outer(a[:, k], b[k])
    return c


def by_locals(a: Any, b: Any) -> Any:
    c = np.empty((len(a), b.shape[1]))
    for i in range(len(a)):
        for j in range(b.shape[1]):
            s = 0.0
            for k in range(len(b)):
                s += a[i, k] * b[k, j]
            c[i, j] = s
    return c


PRODUCTS = [
    *(pytest.param(product_by("".join(order)), id="".join(order)) for order in permutations("ijk")),
    *(by_rows, by_columns, by_outer_products, by_locals),
]


@pytest.mark.parametrize("program", PRODUCTS)
def test_a_product_is_formed_in_blocks_with_the_bits_of_the_program(program: Callable[..., Any]) -> None:
    jitted = arrayjit.jit(program)
    np.testing.assert_array_equal(jitted(a, b), program(a, b))
    assert "contract:" in jitted.explain(a, b)


def lower_and_upper(a: Any) -> Any:
    n = len(a)
    for k in range(n):
        for i in range(k + 1, n):
            a[i, k] /= a[k, k]
            for j in range(k + 1, n):
                a[i, j] -= a[i, k] * a[k, j]
    return a


def test_rows_right_of_the_diagonal_go_in_vectors() -> None:
    jitted = arrayjit.jit(lower_and_upper)
    np.testing.assert_array_equal(jitted(square.copy()), lower_and_upper(square.copy()))
    assert "in vectors of" in jitted.explain(square.copy())


def forward(a: Any, b: Any) -> Any:
    x = np.zeros_like(b)
    for i in range(len(b)):
        s = b[i]
        for j in range(i):
            s -= a[i, j] * x[j]
        x[i] = s / a[i, i]
    return x


def test_rows_of_a_triangle_go_side_by_side() -> None:
    jitted = arrayjit.jit(forward)
    np.testing.assert_array_equal(jitted(square, square[0]), forward(square, square[0]))
    assert "abreast:" in jitted.explain(square, square[0])
