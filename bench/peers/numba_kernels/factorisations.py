"""Matrices taken apart, for Numba."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from .flags import SUMS

__all__ = ["FACTORISATIONS"]


@njit(fastmath=SUMS)
def trisolv(L, x, b):
    for i in range(len(b)):
        total = b[i]
        for j in range(i):
            total -= L[i, j] * x[j]
        x[i] = total / L[i, i]


@njit(fastmath=SUMS)
def cholesky(A):
    for i in range(A.shape[0]):
        for j in range(i):
            total = A[i, j]
            for k in range(j):
                total -= A[i, k] * A[j, k]
            A[i, j] = total / A[j, j]
        total = A[i, i]
        for k in range(i):
            total -= A[i, k] * A[i, k]
        A[i, i] = math.sqrt(total)


@njit(fastmath=SUMS)
def gramschmidt(A):
    m, n = A.shape
    Q = np.zeros_like(A)
    R = np.zeros((n, n))
    along = np.empty(n)
    for k in range(n):
        total = 0.0
        for i in range(m):
            total += A[i, k] * A[i, k]
        R[k, k] = math.sqrt(total)
        along[:] = 0.0
        for i in range(m):
            Q[i, k] = A[i, k] / R[k, k]
            for j in range(k + 1, n):
                along[j] += Q[i, k] * A[i, j]
        for j in range(k + 1, n):
            R[k, j] = along[j]
        for i in range(m):
            for j in range(k + 1, n):
                A[i, j] -= Q[i, k] * along[j]
    return Q, R


FACTORISATIONS = {"trisolv": trisolv, "cholesky": cholesky, "gramschmidt": gramschmidt}
