"""Products of matrices and vectors, for JAX."""

from __future__ import annotations

import jax
import jax.numpy as jnp

__all__ = ["LINEAR_ALGEBRA"]


def atax(A, x):
    return (A @ x) @ A  # ten times as fast as A.T @ (A @ x)


def gemm(alpha, beta, C, A, B):
    return alpha * A @ B + beta * C


def gemver(alpha, beta, A, u1, v1, u2, v2, w, x, y, z):
    A = A + jnp.outer(u1, v1) + jnp.outer(u2, v2)
    x = x + beta * y @ A + z
    return A, w + alpha * A @ x, x


def doitgen(A, C4):
    return A @ C4


def symm(alpha, beta, C, A, B):
    lower = jnp.tril(A, -1)
    return alpha * (lower + lower.T + jnp.diag(jnp.diag(A))) @ B + beta * C


def syrk(alpha, beta, C, A):
    return jnp.where(jnp.tri(len(C), dtype=bool), alpha * A @ A.T + beta * C, C)


def tanh_of_trace(a):
    return a + jnp.tanh(jnp.diag(a)).sum()


def sparse_product(data, indices, starts, x):
    rows = jnp.repeat(jnp.arange(starts.size - 1), jnp.diff(starts), total_repeat_length=data.size)
    products = data * x[indices]
    return jax.ops.segment_sum(products, rows, starts.size - 1, indices_are_sorted=True)


LINEAR_ALGEBRA = {
    "atax": atax,
    "gemm": gemm,
    "gemver": gemver,
    "doitgen": doitgen,
    "symm": symm,
    "syrk": syrk,
    "tanh_of_trace": tanh_of_trace,
    "sparse_product": sparse_product,
}
