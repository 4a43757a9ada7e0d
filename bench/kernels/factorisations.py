"""Matrices taken apart, and systems solved with the parts."""

from __future__ import annotations

import numpy as np
from numpy import sqrt, zeros, zeros_like
from numpy.testing import assert_allclose

from .registry import Kernel


def trisolv(L, x, b):
    """Solves L x = b for a lower triangular L."""
    for i in range(len(b)):
        x[i] = (b[i] - L[i, :i] @ x[:i]) / L[i, i]


def make_trisolv(random, n):
    L = random.standard_normal((n, n)) / np.sqrt(n)
    L[np.diag_indices(n)] += 2
    return L, random.standard_normal(n), random.standard_normal(n)


def check_trisolv(arguments, results):
    L, _, b = arguments
    x = results[2]
    assert_allclose(np.tril(L) @ x, b, atol=1e-10)


def cholesky(A):
    """The lower triangle of A becomes its Cholesky factor, row by row."""
    for i in range(A.shape[0]):
        for j in range(i):
            A[i, j] -= A[i, :j] @ A[j, :j]
            A[i, j] /= A[j, j]
        A[i, i] = sqrt(A[i, i] - A[i, :i] @ A[i, :i])


def make_cholesky(random, n):
    B = random.standard_normal((n, n + 3))
    return (B @ B.T / n + np.eye(n),)


def check_cholesky(arguments, results):
    (A,) = arguments
    factor = np.tril(results[1])
    assert_allclose(factor @ factor.T, A, atol=1e-10)
    assert np.array_equal(np.triu(results[1], 1), np.triu(A, 1))


def gramschmidt(A):
    """Orthonormal columns Q and an upper triangular R with Q R = A; A is used up."""
    n = A.shape[1]
    Q = zeros_like(A)
    R = zeros((n, n), dtype=A.dtype)
    for k in range(n):
        R[k, k] = sqrt(A[:, k] @ A[:, k])
        Q[:, k] = A[:, k] / R[k, k]
        for j in range(k + 1, n):
            R[k, j] = Q[:, k] @ A[:, j]
            A[:, j] -= Q[:, k] * R[k, j]
    return Q, R


def make_gramschmidt(random, m, n):
    return (random.standard_normal((m, n)) + np.eye(m, n),)


def check_gramschmidt(arguments, results):
    (A,) = arguments
    Q, R, _ = results
    assert_allclose(Q @ R, A, atol=1e-10)
    assert_allclose(Q.T @ Q, np.eye(Q.shape[1]), atol=1e-10)
    assert np.array_equal(R, np.triu(R))


FACTORISATIONS = (
    Kernel(
        "trisolv",
        trisolv,
        make_trisolv,
        {"small": {"n": 13}, "medium": {"n": 4000}, "large": {"n": 16000}},
        source="PolyBench",
        check=check_trisolv,
    ),
    Kernel(
        "cholesky",
        cholesky,
        make_cholesky,
        {"small": {"n": 11}, "medium": {"n": 150}, "large": {"n": 900}},
        source="PolyBench",
        check=check_cholesky,
    ),
    Kernel(
        "gramschmidt",
        gramschmidt,
        make_gramschmidt,
        {"small": {"m": 13, "n": 9}, "medium": {"m": 150, "n": 120}, "large": {"m": 700, "n": 500}},
        source="PolyBench",
        check=check_gramschmidt,
    ),
)
