"""Products of matrices and vectors, and sums over their entries."""

from __future__ import annotations

import numpy as np
from numpy.testing import assert_allclose

from .registry import Kernel


def atax(A, x):
    """A transposed, times A x."""
    return A.T @ (A @ x)


def make_atax(random, m, n):
    return random.standard_normal((m, n)), random.standard_normal(n)


def check_atax(arguments, results):
    A, x = arguments
    gram = np.einsum("ki,kj->ij", A, A)
    assert_allclose(results[0], gram @ x, rtol=1e-9, atol=1e-9 * np.abs(gram).max() * len(x))


def gemm(alpha, beta, C, A, B):
    """C := alpha A B + beta C."""
    C[:] = alpha * A @ B + beta * C


def make_gemm(random, ni, nj, nk):
    C, A, B = (random.standard_normal(shape) for shape in ((ni, nj), (ni, nk), (nk, nj)))
    return 1.5, 1.2, C, A, B


def check_gemm(arguments, results):
    alpha, beta, C, A, B = arguments
    probe = np.linspace(-1, 2, C.shape[1])
    assert_allclose(results[3] @ probe, alpha * (A @ (B @ probe)) + beta * (C @ probe), atol=1e-6)


def gemver(alpha, beta, A, u1, v1, u2, v2, w, x, y, z):
    """Two rank-one updates of A, then a product with its transpose and one with itself."""
    A += np.outer(u1, v1) + np.outer(u2, v2)
    x += beta * y @ A + z
    w += alpha * A @ x


def make_gemver(random, n):
    u1, v1, u2, v2, w, x, y, z = random.standard_normal((8, n))
    return 1.5, 1.2, random.standard_normal((n, n)), u1, v1, u2, v2, w, x, y, z


def check_gemver(arguments, results):
    alpha, beta, A, u1, v1, u2, v2, w, x, y, z = arguments
    x_after = x + beta * (A.T @ y + v1 * (u1 @ y) + v2 * (u2 @ y)) + z
    w_after = w + alpha * (A @ x_after + u1 * (v1 @ x_after) + u2 * (v2 @ x_after))
    assert_allclose(results[9], x_after, atol=1e-9 * np.abs(x_after).max())
    assert_allclose(results[8], w_after, atol=1e-9 * np.abs(w_after).max())


def doitgen(A, C4):
    """Each line of a cube is transformed by the same matrix, in place."""
    nr, nq, _ = A.shape
    for r in range(nr):
        for q in range(nq):
            line = A[r, q, :] @ C4
            A[r, q, :] = line


def make_doitgen(random, nr, nq, length):
    return random.standard_normal((nr, nq, length)), random.standard_normal((length, length))


def check_doitgen(arguments, results):
    A, C4 = arguments
    assert_allclose(results[1], np.einsum("rqs,sp->rqp", A, C4), atol=1e-9 * np.abs(results[1]).max())


def symm(alpha, beta, C, A, B):
    """C := alpha A B + beta C, where A is symmetric and only its lower triangle is stored."""
    m, n = C.shape
    C *= beta
    for i in range(m):
        for j in range(n):
            C[:i, j] += alpha * B[i, j] * A[i, :i]
            C[i, j] += alpha * (B[i, j] * A[i, i] + B[:i, j] @ A[i, :i])


def make_symm(random, m, n):
    A = random.standard_normal((m, m))
    A[np.triu_indices(m, 1)] = np.nan
    return 1.5, 1.2, random.standard_normal((m, n)), A, random.standard_normal((m, n))


def check_symm(arguments, results):
    alpha, beta, C, A, B = arguments
    lower = np.tril(A, -1)
    full = lower + lower.T + np.diag(np.diag(A))
    assert_allclose(results[3], alpha * full @ B + beta * C, atol=1e-9 * np.abs(results[3]).max())


def syrk(alpha, beta, C, A):
    """The lower triangle of C := alpha A A^T + beta C; the upper one is not touched."""
    for i in range(A.shape[0]):
        C[i, : i + 1] *= beta
        for k in range(A.shape[1]):
            C[i, : i + 1] += alpha * A[i, k] * A[: i + 1, k]


def make_syrk(random, n, m):
    return 1.5, 1.2, random.standard_normal((n, n)), random.standard_normal((n, m))


def check_syrk(arguments, results):
    alpha, beta, C, A = arguments
    product = np.tril(alpha * A @ A.T + beta * C)
    assert_allclose(np.tril(results[3]), product, atol=1e-9 * np.abs(product).max())
    assert np.array_equal(np.triu(results[3], 1), np.triu(C, 1))


def tanh_of_trace(a):
    """Adds the sum of the tangents of the diagonal to every entry."""
    trace = 0.0
    for i in range(a.shape[0]):
        trace += np.tanh(a[i, i])
    return a + trace


def make_tanh_of_trace(random, n):
    return (random.standard_normal((n, n)),)


def check_tanh_of_trace(arguments, results):
    (a,) = arguments
    assert_allclose(results[0] - a, np.full_like(a, np.tanh(np.diag(a)).sum()), atol=1e-9 * len(a))


def sparse_product(data, indices, starts, x):
    """A sparse matrix in rows of (column, value) pairs, times a vector."""
    y = np.zeros(starts.size - 1, data.dtype)
    for i in range(y.size):
        columns = indices[starts[i] : starts[i + 1]]
        values = data[starts[i] : starts[i + 1]]
        y[i] = values @ x[columns]
    return y


def make_sparse_product(random, rows, columns, entries):
    where = np.sort(random.choice(rows * columns, entries, replace=False))
    starts = np.searchsorted(where, np.arange(rows + 1) * columns)
    return random.standard_normal(entries), where % columns, starts, random.standard_normal(columns)


def check_sparse_product(arguments, results):
    data, indices, starts, x = arguments
    dense = np.zeros((starts.size - 1, x.size))
    dense[np.repeat(np.arange(starts.size - 1), np.diff(starts)), indices] = data
    assert_allclose(results[0], dense @ x, atol=1e-9 * np.abs(results[0]).max())


LINEAR_ALGEBRA = (
    Kernel(
        "atax",
        atax,
        make_atax,
        {"small": {"m": 13, "n": 9}, "medium": {"m": 3000, "n": 3500}, "large": {"m": 12000, "n": 9000}},
        source="PolyBench",
        check=check_atax,
    ),
    Kernel(
        "gemm",
        gemm,
        make_gemm,
        {
            "small": {"ni": 13, "nj": 11, "nk": 9},
            "medium": {"ni": 800, "nj": 900, "nk": 1000},
            "large": {"ni": 2500, "nj": 2400, "nk": 2300},
        },
        source="PolyBench",
        check=check_gemm,
    ),
    Kernel(
        "gemver",
        gemver,
        make_gemver,
        {"small": {"n": 13}, "medium": {"n": 1500}, "large": {"n": 4000}},
        source="PolyBench",
        check=check_gemver,
    ),
    Kernel(
        "doitgen",
        doitgen,
        make_doitgen,
        {
            "small": {"nr": 5, "nq": 4, "length": 7},
            "medium": {"nr": 60, "nq": 50, "length": 128},
            "large": {"nr": 220, "nq": 200, "length": 270},
        },
        source="PolyBench",
        check=check_doitgen,
    ),
    Kernel(
        "symm",
        symm,
        make_symm,
        {"small": {"m": 9, "n": 7}, "medium": {"m": 70, "n": 80}, "large": {"m": 300, "n": 350}},
        source="PolyBench",
        check=check_symm,
    ),
    Kernel(
        "syrk",
        syrk,
        make_syrk,
        {"small": {"n": 9, "m": 7}, "medium": {"n": 100, "m": 120}, "large": {"n": 500, "m": 400}},
        source="PolyBench",
        check=check_syrk,
    ),
    Kernel(
        "tanh_of_trace",
        tanh_of_trace,
        make_tanh_of_trace,
        {"small": {"n": 13}, "medium": {"n": 2000}, "large": {"n": 8000}},
        source="own",
        check=check_tanh_of_trace,
    ),
    Kernel(
        "sparse_product",
        sparse_product,
        make_sparse_product,
        {
            "small": {"rows": 13, "columns": 11, "entries": 50},
            "medium": {"rows": 10_000, "columns": 8_000, "entries": 500_000},
            "large": {"rows": 200_000, "columns": 1_000, "entries": 4_000_000},
        },
        source="NPBench",
        check=check_sparse_product,
    ),
)
