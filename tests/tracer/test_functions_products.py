"""Contractions, norms and einsum give NumPy's values (products of whole numbers are exact)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from harness import assert_like_numpy, trace_and_interpret

Function = Callable[..., Any]


def whole(dtype: str, *shape: int) -> np.ndarray:
    low = 0 if np.dtype(dtype).kind in "ub" else -5
    return np.random.default_rng(sum(shape)).integers(low, 6, shape).astype(dtype)


PRODUCTS: dict[str, tuple[Function, tuple[tuple[int, ...], ...]]] = {
    "dot": (np.dot, ((3, 4), (4, 5))),
    "dot of vectors": (np.dot, ((7,), (7,))),
    "dot of scalars": (lambda a, b: (np.dot(a, 2), a.dot(b[0, 0])), ((3, 4), (4, 5))),
    "dot of many axes": (np.dot, ((2, 3, 4), (5, 4, 2))),
    "matrix by vector": (lambda a, b: (a @ b, np.dot(a, b)), ((3, 4), (4,))),
    "vector by matrix": (lambda a, b: (a @ b, np.dot(a, b)), ((3,), (3, 4))),
    "vectors": (lambda a, b: a @ b, ((5,), (5,))),
    "matmul": (np.matmul, ((3, 4), (4, 5))),
    "batched": (np.matmul, ((2, 1, 3, 4), (5, 4, 2))),
    "batch by vector": (np.matmul, ((2, 3, 4), (4,))),
    "transposed": (lambda a, b: a.T @ b.T, ((4, 3), (5, 4))),
    "nothing inside": (np.matmul, ((3, 0), (0, 2))),
    "vecdot": (np.vecdot, ((2, 4), (4,))),
    "inner": (np.inner, ((3, 4), (2, 4))),
    "inner of scalars": (lambda a, b: np.inner(a, 3), ((3,), (1,))),
    "outer": (np.outer, ((2, 2), (3,))),
    "vdot": (np.vdot, ((2, 3), (3, 2))),
    "tensordot": (np.tensordot, ((2, 3, 4), (3, 4, 5))),
    "tensordot of axes": (lambda a, b: np.tensordot(a, b, ([0, 2], [2, 0])), ((2, 3, 4), (4, 5, 2))),
    "tensordot of all": (np.tensordot, ((3, 4), (3, 4))),
    "tensordot of none": (lambda a, b: np.tensordot(a, b, 0), ((3,), (2,))),
    "kron": (np.kron, ((2, 3), (3, 2))),
    "kron of ranks": (np.kron, ((3,), (2, 2))),
    "trace": (lambda a, b: (np.trace(a), a.trace(1), np.trace(b, axis1=2, axis2=0)), ((3, 4), (3, 4, 2))),
    "cross": (np.cross, ((4, 3), (3,))),
    "cross along axes": (lambda a, b: np.cross(a, b, 0, -1, 0), ((3, 2, 4), (2, 4, 3))),
    "cross in space": (lambda a, b: np.linalg.cross(a, b, axis=0), ((3, 4), (3, 1))),
    "multi_dot": (lambda a, b: np.linalg.multi_dot([a, b, b.T, a[0]]), ((4, 3), (3, 4))),
    "multi_dot of vectors": (lambda a, b: np.linalg.multi_dot([a[0], b, b.T, a[1]]), ((4, 3), (3, 4))),
    "matrix_power": (
        lambda a, b: [np.linalg.matrix_power(a, power) for power in (0, 1, 2, 3, 5)],
        ((3, 3), (1,)),
    ),
    "einsum": (lambda a, b: np.einsum("ij,jk->ik", a, b), ((3, 4), (4, 5))),
    "einsum implicit": (lambda a, b: (np.einsum("ij,jk", a, b), np.einsum("ba", a)), ((3, 4), (4, 5))),
    "einsum ellipsis": (lambda a, b: np.einsum("...ij,...jk->...ik", a, b), ((2, 1, 3, 4), (5, 4, 2))),
    "einsum of one": (
        lambda a, b: (np.einsum("ij->", a), np.einsum("ij->j", a), np.einsum("i...->...", a)),
        ((3, 4), (1,)),
    ),
    "einsum views": (
        lambda a, b: (np.einsum("ij->ji", a), np.einsum("ii->i", b), np.einsum("ii", b)),
        ((3, 4), (3, 3)),
    ),
    "einsum with lists": (
        lambda a, b: (
            np.einsum(a, [0, 1], b, [1, 2], [2, 0]),
            np.einsum(a, [30, 2]),
            np.einsum(a, [..., 1], b[:, 0], [1]),
        ),
        ((3, 4), (4, 5)),
    ),
    "einsum of three": (lambda a, b: np.einsum("ij,jk,ik->i", a, b, a @ b), ((3, 4), (4, 5))),
    "einsum scalar": (lambda a, b: np.einsum("i,i->", a, b), ((5,), (5,))),
    "einsum outer": (lambda a, b: np.einsum("i,j", a, b), ((5,), (2,))),
    "einsum stretched": (lambda a, b: np.einsum("ij,ij->ij", a, b), ((3, 1), (3, 4))),
}


NOT_OF_BOOLS = ("cross", "cross along axes", "cross in space", "matrix_power")
CASES = [
    (name, dtype)
    for name in PRODUCTS
    for dtype in ("f8", "f4", "i8", "u1", "?")
    if dtype != "?" or name not in NOT_OF_BOOLS
]


@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_products(name: str, dtype: str) -> None:
    function, shapes = PRODUCTS[name]
    assert_like_numpy(function, lambda: tuple(whole(dtype, *shape) for shape in shapes))


def test_dtypes_promote() -> None:
    assert_like_numpy(lambda a, b: a @ b, lambda: (whole("i4", 2, 3), whole("f4", 3, 2)))
    assert_like_numpy(np.dot, lambda: (whole("?", 2, 3), whole("u1", 3, 2)))


NORMS: dict[str, Function] = {
    "vector": lambda x: (np.linalg.norm(x[0]), np.linalg.norm(x, axis=0), np.linalg.norm(x[0], 2)),
    "Frobenius": lambda x: (np.linalg.norm(x), np.linalg.norm(x, "fro", axis=(0, 1), keepdims=True)),
    "several axes": lambda x: [
        np.linalg.vector_norm(x[None], axis=axes, ord=order, keepdims=order == 1)
        for axes in ((0, 1), (2, 0), (-1, 1), (0, 1, 2))
        for order in (2, 1, np.inf, -np.inf, 0, 3)
    ],
    "maximum": lambda x: (np.linalg.norm(x, np.inf, axis=1), np.linalg.norm(x, -np.inf)),
    "one": lambda x: (np.linalg.norm(x, 1), np.linalg.norm(x, 1, axis=1), np.linalg.norm(x[0], 0)),
}


@pytest.mark.parametrize("dtype", ["f8", "f4", "i4"])
@pytest.mark.parametrize("norm", NORMS.values(), ids=NORMS)
def test_norms(norm: Function, dtype: str) -> None:
    assert_like_numpy(norm, lambda: (whole(dtype, 3, 4),))


@pytest.mark.parametrize("shape", [(0, 3), (3, 0)])
def test_the_greatest_of_no_sizes_is_zero(shape: tuple[int, ...]) -> None:
    def norms(x: np.ndarray) -> Any:
        return np.linalg.norm(x, 1), np.linalg.norm(x, np.inf), np.linalg.norm(x.ravel(), np.inf)

    assert_like_numpy(norms, lambda: (np.zeros(shape),))


def test_products_go_into_out() -> None:
    def update(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> np.ndarray:
        np.dot(a, b, out=out)
        a @= b
        return np.matmul(a, b, out=out)

    assert_like_numpy(update, lambda: (whole("f8", 3, 3), whole("f8", 3, 3), np.zeros((3, 3))))


@pytest.mark.parametrize(
    ("function", "error"),
    [
        (lambda a: a @ a, ValueError),
        (lambda a: np.dot(a, a), ValueError),
        (lambda a: np.matmul(a, 2), ValueError),
        (lambda a: np.einsum("ij,jk->il", a, a.T), ValueError),
        (lambda a: np.einsum("i", a), ValueError),
        (lambda a: np.einsum("ij,ij", a, a.T), ValueError),
        (lambda a: np.tensordot(a, a, 1), ValueError),
        (lambda a: np.linalg.matrix_power(a, 2), ValueError),
        (lambda a: np.linalg.matrix_power(a[0], 2), ValueError),
        (lambda a: np.linalg.multi_dot([a, a.T[None], a]), ValueError),
        (lambda a: np.linalg.norm(a, 3), ValueError),
        (lambda a: np.linalg.eigvals(a), NotImplementedError),
    ],
)
def test_mistakes(function: Function, error: type[Exception]) -> None:
    with pytest.raises(error, match=r"test_functions_products\.py"):
        trace_and_interpret(function, whole("f8", 3, 4))


EINSUM_IN: dict[str, Any] = {
    "dot": lambda x, dtype: np.einsum("i,i->", x, x, dtype=dtype),
    "view": lambda x, dtype: np.einsum("i->i", x, dtype=dtype),
    "any cast": lambda x, dtype: np.einsum("i,i->i", x, x, dtype=dtype, casting="unsafe"),
    "like casts": lambda x, dtype: np.einsum("i,i->", x, x, dtype=dtype, casting="same_kind"),
    "out": lambda x, dtype: np.einsum("i,i->", x, x, out=np.zeros((), dtype)),
    "out of a copy": lambda x, dtype: np.einsum("i->i", x, out=np.zeros(3, dtype)),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("product", EINSUM_IN.values(), ids=EINSUM_IN)
@pytest.mark.parametrize("given", ["f8", "f4", "c16", "i8", "?"])
def test_einsum_in_a_dtype_that_is_asked_for(product: Any, given: str) -> None:
    """Operands are converted by the rule `casting`; a view has the dtype that it has."""
    x = np.array([3, 0, 2]).astype(given)
    for dtype in ("f8", "f4", "c16", "c8", "i8", "i4", "?"):

        def function(x: np.ndarray, dtype: str = dtype) -> Any:
            return product(x, dtype)

        try:
            function(x)
        except TypeError:
            with pytest.raises(TypeError):
                trace_and_interpret(function, x)
        else:
            assert_like_numpy(function, lambda: (x.copy(),))


@pytest.mark.filterwarnings("ignore")
def test_sums_of_nothing_read_nothing() -> None:
    def sums(x: np.ndarray) -> Any:
        return np.vdot(x, x), np.linalg.norm(x), np.median(x), np.linalg.vector_norm(x.ravel())

    assert_like_numpy(sums, lambda: (np.zeros((2, 0)),))


@pytest.mark.filterwarnings("ignore:Arrays of 2-dimensional vectors:DeprecationWarning")
@pytest.mark.parametrize(
    "shapes", [((2,), (2,)), ((4, 2), (2,)), ((3, 1, 2), (4, 2)), ((5, 2), (3,)), ((3,), (4, 2))]
)
@pytest.mark.parametrize("dtype", ["int8", "uint8", "float32", "complex128"])
def test_cross_products_in_the_plane(shapes: tuple[tuple[int, ...], ...], dtype: str) -> None:
    assert_like_numpy(np.cross, lambda: tuple(whole(dtype, *shape) for shape in shapes))
