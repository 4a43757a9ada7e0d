"""Matrices taken apart, for JAX."""

from __future__ import annotations

import jax
import jax.numpy as jnp

__all__ = ["FACTORISATIONS"]


def trisolv(L, x, b):
    return jax.scipy.linalg.solve_triangular(L, b, lower=True)


def cholesky(A):
    return jnp.where(jnp.tri(len(A), dtype=bool), jnp.linalg.cholesky(A), A)


def gramschmidt(A):
    n = A.shape[1]
    later = jnp.arange(n)

    def column(k, state):
        A, Q, R = state
        size = jnp.sqrt(A[:, k] @ A[:, k])
        direction = A[:, k] / size
        along = jnp.where(later > k, direction @ A, 0)
        R = R.at[k].set(along.at[k].set(size))
        return A - jnp.outer(direction, along), Q.at[:, k].set(direction), R

    A, Q, R = jax.lax.fori_loop(0, n, column, (A, jnp.zeros_like(A), jnp.zeros((n, n))))
    return Q, R, A


FACTORISATIONS = {"trisolv": trisolv, "cholesky": cholesky, "gramschmidt": gramschmidt}
