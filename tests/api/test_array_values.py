"""`arrayjit.Array` computes as ndarray does: the same program on both, on every kind of device."""

from __future__ import annotations

import operator

import numpy as np
import pytest
from remote import remote_device

import arrayjit
from arrayjit.errors import UserError


@pytest.fixture(params=["sync_llvm", "llvm", "interp", "remote"])
def device(request):
    return remote_device() if request.param == "remote" else arrayjit.asarray(0, device=request.param).device


def assert_same(got, want):
    """Arrays where NumPy has arrays or scalars, of their dtype, shape and values; the same otherwise."""
    if isinstance(want, (tuple, list)):
        assert type(got) is type(want)
        assert len(got) == len(want)
        for mine, numpys in zip(got, want, strict=True):
            assert_same(mine, numpys)
    elif isinstance(want, (np.ndarray, np.generic)):
        assert isinstance(got, arrayjit.Array)
        assert (got.dtype, got.shape) == (want.dtype, want.shape)
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-13)
    else:
        assert type(got) is type(want)
        assert got == want


X = np.array([[0.5, -1.5, 2.0], [3.0, 0.25, -4.0]])
Y = np.array([[1.0, 2.0, -3.0], [0.5, 8.0, 2.0]])
I = np.array([2, 0, 1])  # noqa: E741
M = X > 0

EXPRESSIONS = {
    "python scalars": lambda x, y, i, m: (x + 1, 1 - x, x * 2.0, 1 / x, x // 2, x % 2, x**2, 2.0**x, i**2),
    "arrays": lambda x, y, i, m: (x + y, x - y, x / y, x // y, x % y, divmod(x, y), abs(x) ** y),
    "NumPy arrays on either side": lambda x, y, i, m: (X + y, x * Y, Y.T @ x, x @ Y.T, np.float32(2) * x),
    "integers and bools": lambda x, y, i, m: (i << 1, i | 1, ~i, m & (y > 0), m ^ m, ~m, i + m),
    "unary": lambda x, y, i, m: (-x, +x, abs(x), np.sign(x)),
    "comparisons": lambda x, y, i, m: (x < y, x <= y, x > 0, x >= y, x == y, x != 0),
    "matmul": lambda x, y, i, m: (x @ y.T, x @ i, np.matmul(x.T, y), np.dot(x, y.T), x.dot(y.T)),
    "reductions": lambda x, y, i, m: (x.sum(), x.mean(axis=0), np.max(x, axis=1), m.any(), i.prod(), x.std()),
    "keepdims": lambda x, y, i, m: x.sum(axis=(0, 1), keepdims=True),
    "ufunc methods": lambda x, y, i, m: (np.add.reduce(x, axis=1), np.add.accumulate(x), np.add.outer(i, i)),
    "ufuncs of two results": lambda x, y, i, m: np.modf(x),
    "out and where": lambda x, y, i, m: np.add(x, y, where=m, out=y.copy()),
    "functions": lambda x, y, i, m: (np.where(m, x, y), np.sort(x), np.cumsum(x, axis=1), np.argmax(x)),
    "functions of lists": lambda x, y, i, m: (
        np.concatenate([x, y]),
        np.stack([x, y], axis=1),
        np.add(x, [1, 2, 3]),
    ),
    "functions that give lists": lambda x, y, i, m: (np.split(x, [1], axis=1), np.nonzero(m)),
    "questions": lambda x, y, i, m: (np.shape(x), np.ndim(x), len(x), x.tolist(), x.item(3), 2 in i, 7 in i),
    "views": lambda x, y, i, m: (x.T, x.mT, x.reshape(3, 2), x.ravel(), x.transpose(1, 0), x[None].squeeze()),
    "methods": lambda x, y, i, m: (x.astype("int32"), x.clip(-1, 1), x.round(1), x.repeat(2), x.take(i)),
    "basic indices": lambda x, y, i, m: (x[1], x[-1, 0], x[::-1, 1:], x[..., None], x[np.int64(1)], x[:, 2]),
    "arrays as indices": lambda x, y, i, m: (x[:, i], x[m], x[i[1]], x[[1, 0]], x[1, i], x[I % 2, 1:]),
    "linear algebra": lambda x, y, i, m: (
        np.linalg.norm(x),
        np.linalg.inv(x @ x.T),
        np.einsum("ij,ij", x, y),
    ),
    "iteration": lambda x, y, i, m: ([row for row in x], [n for n in i]),
    "scalars in Python": lambda x, y, i, m: (int(i[0]), float(x[0, 0]), bool(m[0, 0]), complex(x[1, 1])),
    "formats and list indices": lambda x, y, i, m: (f"{x.sum():.3f}", "abc"[i[0]], str(x), f"{x[0]}"),
}


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_expressions_give_what_numpy_gives(name, device):
    program = EXPRESSIONS[name]
    want = program(X, Y, I, M)
    with np.errstate(all="ignore"):
        assert_same(program(*(arrayjit.asarray(array.copy(), device=device) for array in (X, Y, I, M))), want)


def assign_rows(x):
    x[0] = 7
    x[1:, ::2] = [1, 2]
    x[-1, 1] = x[0, 0]


def assign_by_arrays(x):
    x[:, [0, 2]] = -1
    x[x > 2] = 0
    x[np.array([1, 0]), 1] = [5, 6]


def assign_overlapping(x):
    x[:, 1:] = x[:, :-1]
    x.T[0] += 1


def in_place_operators(x):
    x += 1
    x *= x
    x /= 2
    x[0] -= 3
    x.fill(2) if x.size == 1 else x.sort()


@pytest.mark.parametrize(
    "program",
    [assign_rows, assign_by_arrays, assign_overlapping, in_place_operators],
    ids=lambda f: f.__name__,
)
def test_writes_are_seen_by_all_views(program, device):
    want, got = X.copy(), arrayjit.asarray(X, device=device, copy=True)
    view = got[::-1]
    program(want)
    program(got)
    assert_same(got, want)
    assert_same(view, want[::-1])


def test_numpys_scalars_are_copies_that_nobody_writes(device):
    x = arrayjit.asarray([1.0, 2.0, 3.0], device=device)
    first, total = x[0], x.sum()
    kept = total
    x[0] = 9
    total += 1
    assert (float(first), float(kept), float(total)) == (1.0, 6.0, 7.0)
    with pytest.raises(ValueError, match="read-only"):
        first[...] = 2


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int32", "uint64", "float32", "float64"])
@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (1,), (2, 3)])
def test_shapes_and_dtypes(dtype, shape, device):
    want = np.ones(shape, dtype)
    x = arrayjit.asarray(want, device=device)
    assert (x.shape, x.dtype, x.ndim, x.size) == (want.shape, want.dtype, want.ndim, want.size)
    assert (x.nbytes, x.itemsize) == (want.nbytes, want.itemsize)
    assert x.strides == want.strides or not x.size
    assert_same(x + x, want + want)
    assert_same(x.copy(), want)
    assert x.device is device


def test_repr_is_numpys_with_the_device(device):
    x = arrayjit.asarray(np.float32([[1, 2], [3, 4]]), device=device)
    place = f"device={device.name!r})"
    assert repr(x) == f"Array([[1., 2.],\n       [3., 4.]], dtype=float32, {place}"
    assert str(x) == "[[1. 2.]\n [3. 4.]]"
    x.delete()
    assert repr(x) == f"Array(deleted, shape=(2, 2), dtype=float32, {place}"


@pytest.mark.parametrize(
    ("mistake", "error"),
    [
        (lambda x: x[5], IndexError),
        (lambda x: x[0, 0, 0], IndexError),
        (lambda x: x[np.array([9])], IndexError),
        (lambda x: x + np.ones(7), ValueError),
        (lambda x: x.reshape(4, 4), ValueError),
        (lambda x: x + "a", TypeError),
        (lambda x: bool(x), ValueError),
        (lambda x: float(x), TypeError),
        (lambda x: operator.index(x[0, 0]), TypeError),
        (lambda x: hash(x), TypeError),
        (lambda x: len(x[0, 0]), TypeError),
        (lambda x: list(x[0, 0]), TypeError),
        (lambda x: x.nothing, AttributeError),
        (lambda x: np.linalg.eigvals(x), NotImplementedError),
    ],
)
def test_mistakes_raise_what_numpy_raises(mistake, error):
    x = arrayjit.asarray(X, device="sync_llvm")
    with pytest.raises(error):
        mistake(x)


@pytest.mark.parametrize("dtype", ["clongdouble", "longdouble", "datetime64[s]", "O", "U3"])
def test_other_dtypes_are_refused(dtype):
    with pytest.raises(UserError, match="is not supported"):
        arrayjit.asarray(np.zeros(2, dtype))


def test_foreign_byte_order_is_refused():
    with pytest.raises(TypeError, match="byte order"):
        arrayjit.asarray(np.zeros(2, ">f8"))
