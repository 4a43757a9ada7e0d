"""Products of complex matrices and vectors, in any layout, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import arrayjit

RANDOM = np.random.default_rng(5)


def numbers(*shape, dtype=np.complex128):
    """Small whole numbers: their products and sums are exact in any order."""
    return (RANDOM.integers(-9, 9, shape) + 1j * RANDOM.integers(-9, 9, shape)).astype(dtype)


LAYOUTS = {
    "rows": lambda a: a,
    "columns": np.asfortranarray,
    "transposed": lambda a: np.ascontiguousarray(a.T).T,
    "every other row": lambda a: np.repeat(a, 2, axis=0)[::2],
    "every other column": lambda a: np.repeat(a, 2, axis=1)[:, ::2],
    "backwards": lambda a: np.ascontiguousarray(a[::-1, ::-1])[::-1, ::-1],
    "broadcast": lambda a: np.broadcast_to(a[:1], a.shape),
}

PRODUCTS = {
    "matrix by vector": lambda a, x, y: a @ x,
    "vector by matrix": lambda a, x, y: y @ a,
    "conjugate": lambda a, x, y: a.conj() @ x,
    "adjoint": lambda a, x, y: a.conj().T @ y,
    "conjugate vector": lambda a, x, y: a @ x.conj(),
    "vectors": lambda a, x, y: a[0] @ x,
    "vdot": lambda a, x, y: np.vdot(a[0], x),
    "vdot of a conjugate": lambda a, x, y: np.vdot(a[0].conj(), x.conj()),
    "matrices": lambda a, x, y: a @ a.T,
    "matrix by adjoint": lambda a, x, y: a @ a.conj().T,
    "adjoint by matrix": lambda a, x, y: a.conj().T @ a,
    "conjugate by transpose": lambda a, x, y: a.conj() @ a.T,
    "adjoint onto": lambda a, x, y: 2 + a @ a.conj().T - 1j * (a.T @ a.conj()).sum(),
    "both conjugate": lambda a, x, y: a.conj() @ a.conj().T,
    "computed matrix": lambda a, x, y: (a + 1j) @ x,
    "computed vector": lambda a, x, y: a @ (2 * x - 1),
    "real matrix": lambda a, x, y: a.real @ x,
    "real vector": lambda a, x, y: a @ x.real,
    "view": lambda a, x, y: a[1:, ::2] @ x[::2],
    "outer": lambda a, x, y: np.outer(x, y),
    "for each row": lambda a, x, y: np.einsum("ij,ij->i", a, a.conj()),
    "two vectors": lambda a, x, y: (a @ x, a @ x[::-1]),
    "of sums": lambda a, x, y: np.einsum("ij,k->ik", a, y),
    "three": lambda a, x, y: y @ a @ x,
}


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize("shape", [(1, 1), (5, 3), (33, 17), (40, 64)])
@pytest.mark.parametrize("name", PRODUCTS)
def test_every_product(name, shape, dtype):
    rows, columns = shape
    args = [numbers(*shape, dtype=dtype), numbers(columns, dtype=dtype), numbers(rows, dtype=dtype)]
    expected, actual = PRODUCTS[name](*args), arrayjit.jit(PRODUCTS[name])(*args)
    for mine, theirs in zip(*(r if isinstance(r, tuple) else (r,) for r in (actual, expected)), strict=True):
        assert mine.dtype == theirs.dtype
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    "name",
    ["matrix by vector", "vector by matrix", "adjoint", "matrices", "matrix by adjoint", "adjoint by matrix"],
)
def test_every_layout(name, layout):
    args = [LAYOUTS[layout](numbers(33, 20)), numbers(20), numbers(33)]
    np.testing.assert_array_equal(arrayjit.jit(PRODUCTS[name])(*args), PRODUCTS[name](*args))


@pytest.mark.parametrize("target", ["llvm", "c", "interp"])
def test_stacks_of_matrices(target):
    def program(a, b, x):
        return (
            a @ b,
            a @ x[:, :, None],
            np.einsum("nij,nj->ni", a, x),
            np.einsum("nij,ni->j", a, a[..., 0]),
            a @ a.conj().mT,
        )

    args = numbers(3, 12, 9), numbers(3, 9, 7), numbers(3, 9)
    for mine, theirs in zip(arrayjit.jit(program, target=target)(*args), program(*args), strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_onto_what_is_there_and_into_a_factor():
    def program(a, x):
        x[:] = a @ x
        a[0] = x @ a
        a += a @ a
        return a, x

    args = numbers(10, 10), numbers(10)
    for mine, theirs in zip(arrayjit.jit(program)(*(a.copy() for a in args)), program(*args), strict=True):
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize(
    ("target", "shape"),
    [
        ("llvm", (8, 1)),
        ("llvm", (24, 50)),
        ("llvm", (96, 300)),
        ("llvm", (70, 9)),
        ("c", (70, 60)),
        ("interp", (9, 5)),
    ],
)
def test_products_with_adjoints_are_hermitian_to_the_last_bit(shape, dtype, target):
    def program(a, scale):
        computed = a * scale
        return a @ a.conj().T, computed @ computed.conj().T, computed.T @ computed.conj()

    a = (RANDOM.standard_normal(shape) + 1j * RANDOM.standard_normal(shape)).astype(dtype)
    args = a, dtype(1.5 - 0.5j)
    for mine, theirs in zip(arrayjit.jit(program, target=target)(*args), program(*args), strict=True):
        assert mine.dtype == theirs.dtype
        np.testing.assert_array_equal(mine, mine.conj().T)
        np.testing.assert_allclose(
            mine, theirs, rtol=0, atol=np.finfo(dtype).eps * sum(shape) * abs(theirs).max()
        )


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize("shape", [(64, 64), (70, 201)])
def test_products_of_many_rows_with_their_transpose_are_symmetric_to_the_last_bit(shape, dtype):
    def program(a, scale):
        computed = a * scale
        return a @ a.T, 1j + computed @ computed.T, np.asfortranarray(a.T).T @ a.T

    a = (RANDOM.standard_normal(shape) + 1j * RANDOM.standard_normal(shape)).astype(dtype)
    args = a, dtype(1.5 - 0.5j)
    for mine, theirs in zip(arrayjit.jit(program)(*args), program(*args), strict=True):
        assert mine.dtype == theirs.dtype
        np.testing.assert_array_equal(mine, mine.T)
        np.testing.assert_allclose(
            mine, theirs, rtol=0, atol=np.finfo(dtype).eps * sum(shape) * abs(theirs).max()
        )


TERMS = {
    "matrix by vector": lambda a, x, y: (a * x).sum(axis=1),
    "vector by matrix": lambda a, x, y: (a.T * y).sum(axis=1),
    "adjoint": lambda a, x, y: (a.conj().T * y).sum(axis=1),
    "vdot": lambda a, x, y: (a[0].conj() * x).sum(),
}


@pytest.mark.parametrize("name", TERMS)
def test_infinities_and_nans_are_those_of_the_terms(name):
    """The same numbers meet, in whatever order; BLAS multiplies what is infinite by 0 besides."""
    a, x, y = numbers(20, 30), numbers(30), numbers(20)
    a[3, 4], a[5, 6], x[7], y[8] = np.nan, complex(np.inf, 1), complex(0, np.inf), complex(1, np.nan)
    with np.errstate(invalid="ignore"):
        expected = TERMS[name](a, x, y)
    actual = arrayjit.jit(PRODUCTS[name])(a, x, y)
    np.testing.assert_array_equal(actual.real, expected.real)
    np.testing.assert_array_equal(actual.imag, expected.imag)


def test_products_of_parts_whose_length_a_loop_decides():
    def program(a, x):
        y = np.zeros_like(x)
        for i in range(1, len(x)):
            y[i] = a[i, :i] @ x[:i]
            y[:i] += a[:i, :i] @ x[:i] + x[i:] @ a[i:, :i]
        return y

    args = numbers(9, 9), numbers(9)
    np.testing.assert_array_equal(arrayjit.jit(program)(*args), program(*args))


def test_a_loop_of_products_with_one_matrix():
    def powers(a, x, steps):
        for _ in range(steps):
            x = a @ x
            x = x / np.abs(x).max()
        return x

    a, x = numbers(20, 20), numbers(20)
    np.testing.assert_allclose(arrayjit.jit(powers)(a, x, 30), powers(a, x, 30), rtol=1e-12)


@pytest.mark.parametrize("n", [8, 40, 300])
def test_rounding_is_not_worse_than_numpys(n):
    a, x = RANDOM.normal(size=(2, n, n)) @ np.eye(n), RANDOM.normal(size=(2, n))
    a, x = a[0] + 1j * a[1], x[0] + 1j * x[1]
    exact = (a.astype(np.clongdouble) @ x.astype(np.clongdouble)).astype(complex)
    size = np.abs(a) @ np.abs(x)
    mine, theirs = (
        np.max(np.abs(product - exact) / size) for product in (arrayjit.jit(np.matmul)(a, x), a @ x)
    )
    assert mine <= max(2 * theirs, 4e-16)
