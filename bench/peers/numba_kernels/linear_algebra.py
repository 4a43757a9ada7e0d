"""Products of matrices and vectors, for Numba: large products are left to BLAS, the rest are loops."""

from __future__ import annotations

import math

import numpy as np
from numba import njit, prange

from .flags import SUMS

__all__ = ["LINEAR_ALGEBRA"]


@njit
def atax(A, x):
    return A.T @ (A @ x)


@njit(parallel=True)
def gemm(alpha, beta, C, A, B):
    product = A @ B
    for i in prange(C.shape[0]):
        for j in range(C.shape[1]):
            C[i, j] = alpha * product[i, j] + beta * C[i, j]


@njit(parallel=True, fastmath=SUMS)
def gemver(alpha, beta, A, u1, v1, u2, v2, w, x, y, z):
    n = len(x)
    for i in prange(n):
        for j in range(n):
            A[i, j] += u1[i] * v1[j] + u2[i] * v2[j]
    x += beta * (y @ A) + z
    for i in prange(n):
        total = 0.0
        for j in range(n):
            total += A[i, j] * x[j]
        w[i] += alpha * total


@njit(parallel=True)
def doitgen(A, C4):
    for r in prange(A.shape[0]):
        A[r] = np.dot(A[r], C4)


@njit(fastmath=SUMS)
def symm(alpha, beta, C, A, B):
    m, n = C.shape
    for i in range(m):
        for j in range(n):
            C[i, j] *= beta
    for i in range(m):
        below = np.zeros(n)
        for k in range(i):
            for j in range(n):
                C[k, j] += alpha * B[i, j] * A[i, k]
                below[j] += B[k, j] * A[i, k]
        for j in range(n):
            C[i, j] += alpha * (B[i, j] * A[i, i] + below[j])


@njit(parallel=True, fastmath=SUMS)
def syrk(alpha, beta, C, A):
    for i in prange(A.shape[0]):
        for j in range(i + 1):
            total = 0.0
            for k in range(A.shape[1]):
                total += A[i, k] * A[j, k]
            C[i, j] = beta * C[i, j] + alpha * total


@njit(parallel=True)
def tanh_of_trace(a):
    trace = 0.0
    for i in range(a.shape[0]):
        trace += math.tanh(a[i, i])
    out = np.empty_like(a)
    for i in prange(a.shape[0]):
        for j in range(a.shape[1]):
            out[i, j] = a[i, j] + trace
    return out


@njit(parallel=True, fastmath=SUMS)
def sparse_product(data, indices, starts, x):
    y = np.empty(starts.size - 1)
    for i in prange(y.size):
        total = 0.0
        for k in range(starts[i], starts[i + 1]):
            total += data[k] * x[indices[k]]
        y[i] = total
    return y


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
