"""NumPy's functions on arrays whose extents are known only when the compiled function runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sizing import N, assert_like_numpy, matrix, vector

Program = Callable[..., Any]

OF_VECTORS: dict[str, Program] = {
    "sum": lambda x, k: np.sum(x[:k]),
    "sum where": lambda x, k: np.sum(x[:k], where=x[:k] > 0),
    "prod": lambda x, k: x[:k].prod(),
    "min": lambda x, k: x[:k].min(),
    "max": lambda x, k: x[k:].max(),
    "max with a start": lambda x, k: x[k:].max(initial=-3.0),
    "argmax": lambda x, k: x[:k].argmax(),
    "argmin": lambda x, k: np.argmin(x[::-1][:k]),
    "mean": lambda x, k: x[:k].mean(),
    "ptp": lambda x, k: np.ptp(x[:k]),
    "average": lambda x, k: np.average(x[:k], weights=np.arange(N)[:k] + 1.0),
    "average and weights": lambda x, k: np.average(x[:k], returned=True),
    "nanmean": lambda x, k: np.nanmean(x[:k]),
    "any": lambda x, k: (x[:k] > 4).any(),
    "all": lambda x, k: (x[:k] < 5).all(),
    "count_nonzero": lambda x, k: np.count_nonzero(x[:k] > 0),
    "cumsum": lambda x, k: np.cumsum(x[k:])[-1:].sum(),
    "cumprod": lambda x, k: (np.cumprod(x[:k]) * x[:k]).sum(),
    "cumulative maximum": lambda x, k: np.maximum.accumulate(x[:k]).sum(),
    "diff": lambda x, k: np.abs(np.diff(x[:k])).sum(),
    "ediff1d": lambda x, k: np.ediff1d(x[:k], to_begin=0).sum(),
    "dot": lambda x, k: x[:k] @ x[:k],
    "inner": lambda x, k: np.inner(x[:k], x[:k]),
    "vdot": lambda x, k: np.vdot(x[k:], x[k:]),
    "outer": lambda x, k: np.outer(x[:k], x[k:]).sum(),
    "outer sum": lambda x, k: np.add.outer(x[:k], x).sum(),
    "kron": lambda x, k: np.kron(x[:k], x[:2]).sum(),
    "norm": lambda x, k: np.linalg.norm(x[:k]),
    "norm 1": lambda x, k: np.linalg.norm(x[:k], 1),
    "where": lambda x, k: np.where(x[:k] > 0, x[:k], 1).sum(),
    "clip": lambda x, k: np.clip(x[:k], 0, 3).sum(),
    "flip": lambda x, k: (np.flip(x[:k]) * x[:k]).sum(),
    "roll": lambda x, k: (np.roll(x[:k], 2) * x[:k]).sum(),
    "roll by": lambda x, k: np.roll(x, k),
    "concatenate": lambda x, k: np.concatenate([x[k:], x[:k]]).sum(),
    "append": lambda x, k: np.append(x[:k], 3.0).sum(),
    "hstack": lambda x, k: np.hstack([x[:k], x]).sum(),
    "stack": lambda x, k: np.stack([x[:k], x[:k] * 2]).sum(axis=1),
    "column_stack": lambda x, k: np.column_stack([x[:k], x[:k]]).sum(axis=0),
    "a list": lambda x, k: np.array([x[:k], x[:k]]).sum(axis=1),
    "repeat": lambda x, k: (np.repeat(x[:k], 3)[::3] * x[:k]).sum(),
    "pad": lambda x, k: np.pad(x[:k], (1, 2), constant_values=5).sum(),
    "array_split": lambda x, k: [part.sum() for part in np.array_split(x, [k])],
    "reshape to a column": lambda x, k: (x[:k].reshape(-1, 1) * np.ones((1, 2))).sum(axis=0),
    "reshape to a row": lambda x, k: (x[:k].reshape(1, -1) * np.ones((3, 1))).sum(axis=1),
    "expand_dims": lambda x, k: np.expand_dims(x[:k], 0).sum(axis=1),
    "squeeze": lambda x, k: x[:k, None].squeeze(1).sum(),
    "broadcast_to": lambda x, k: np.broadcast_to(x[:k], (2, x[:k].size)).sum(axis=1),
    "sliding windows": lambda x, k: np.lib.stride_tricks.sliding_window_view(x[:k], 2).sum(),
    "meshgrid": lambda x, k: np.meshgrid(x[:k], x)[0].sum(),
    "diag": lambda x, k: np.diag(x[:k]).sum(),
    "zeros_like": lambda x, k: (np.zeros_like(x[:k]) + x[:k]).sum(),
    "full_like": lambda x, k: (np.full_like(x[:k], 3)).sum(),
    "zeros": lambda x, k: np.zeros((2, x[:k].size)).sum(axis=1),
    "ones": lambda x, k: np.ones(x[:k].shape).sum(),
    "arange": lambda x, k: (np.arange(x[:k].size) * x[:k]).sum(),
    "arange between": lambda x, k: np.arange(x[:k].size, N, 2).sum(),
    "arange downward": lambda x, k: np.arange(x[:k].size, 0, -1).sum(),
    "eye": lambda x, k: np.eye(x[:k].size, N).sum(axis=0),
    "copy": lambda x, k: x[:k].copy().sum(),
    "astype": lambda x, k: x[:k].astype(np.int32).sum(),
    "isclose": lambda x, k: np.allclose(x[:k], x[:k]),
    "einsum": lambda x, k: np.einsum("i,i->", x[:k], x[:k]),
    "einsum outer": lambda x, k: np.einsum("i,j->ij", x[:k], x).sum(),
    "polyval": lambda x, k: np.polyval([1.0, 2.0], x[:k]).sum(),
    "take": lambda x, k: np.take(x[:k], [0, 1]).sum(),
    "searchsorted": lambda x, k: np.searchsorted(np.arange(9.0)[: x[:k].size], 2.5),
    "histogram": lambda x, k: np.histogram(x[:k], bins=3),
    "histogram of integers": lambda x, k: np.histogram(x[:k].astype(np.int16), bins=4),
    "histogram in a range": lambda x, k: np.histogram(x[:k], bins=4, range=(-2, 4)),
    "histogram of densities": lambda x, k: np.histogram(x[:k], bins=2, density=True)[0],
    "histogram2d": lambda x, k: np.histogram2d(x[:k], x[:k] ** 2, bins=2),
}


@pytest.mark.parametrize("name", OF_VECTORS)
def test_vectors(name: str) -> None:
    assert_like_numpy(OF_VECTORS[name], vector)


OF_MATRICES: dict[str, Program] = {
    "sum of columns": lambda a, k: a[:k].sum(axis=0),
    "sum of rows": lambda a, k: a[:k].sum(axis=1).sum(),
    "max of columns": lambda a, k: a[:k].max(axis=0),
    "max of rows": lambda a, k: a[:k].max(axis=1).sum(),
    "mean of columns": lambda a, k: a[:k].mean(axis=0),
    "mean of all": lambda a, k: a[:k, 1:].mean(),
    "mean, keeping axes": lambda a, k: (a[:k] - a[:k].mean(axis=1, keepdims=True)).sum(axis=0),
    "argmax": lambda a, k: a[:k].argmax(),
    "argmax of columns": lambda a, k: a[:k].argmax(axis=0),
    "product with a vector": lambda a, k: a[:k].T @ a[:k, 0],
    "product": lambda a, k: a[:k].T @ a[:k],
    "product of products": lambda a, k: np.linalg.multi_dot([a[:k].T, a[:k]]),
    "product, outer extents": lambda a, k: (a[:k] @ a[k:].T).sum(),
    "stacked products": lambda a, k: np.matmul(a[None, :k], a[None, :k].swapaxes(1, 2)).sum(),
    "tensordot": lambda a, k: np.tensordot(a[:k], a[:k], axes=([0], [0])),
    "einsum": lambda a, k: np.einsum("ij,ik->jk", a[:k], a[:k]),
    "einsum of a diagonal": lambda a, k: np.einsum("ii->", a[:k, :k]),
    "cumsum down": lambda a, k: np.cumsum(a[k:], axis=0).sum(axis=0),
    "cumsum along": lambda a, k: np.cumsum(a[k:], axis=1).sum(axis=0),
    "diff": lambda a, k: np.diff(a[:k], axis=0).sum(axis=0),
    "histogram of a column": lambda a, k: np.histogram(a[:k, 1], bins=3, weights=a[:k, 2]),
    "roll": lambda a, k: np.roll(a, k, axis=1),
    "roll both": lambda a, k: np.roll(a, (k, 1), axis=(0, 1)),
    "vstack": lambda a, k: np.vstack([a[:k], a[k:]]).sum(axis=0),
    "transpose": lambda a, k: a[:k].T.sum(axis=1),
    "moveaxis": lambda a, k: np.moveaxis(a[:k], 0, 1).sum(axis=1),
    "tril": lambda a, k: np.tril(a[:k]).sum(axis=0),
    "tril at": lambda a, k: np.tril(a, k),
    "triu at": lambda a, k: np.triu(a, k),
    "trace": lambda a, k: np.trace(a[:k]),
    "diagonal": lambda a, k: np.diagonal(a[k:]).sum(),
    "pad": lambda a, k: np.pad(a[:k], ((1, 0), (0, 2)), constant_values=((1, 2), (3, 4))).sum(axis=0),
    "norm": lambda a, k: np.linalg.norm(a[:k]),
    "norm of columns": lambda a, k: np.linalg.norm(a[:k], axis=0),
    "ravel of rows": lambda a, k: a[:k].ravel().sum(),
    "reshape of rows": lambda a, k: (a[:k] * 2).reshape(-1, 2).sum(axis=0),
    "flatten of a block": lambda a, k: a[:k, 1:3].flatten().sum(),
    "rot90": lambda a, k: np.rot90(a[:k]).sum(axis=1),
    "apply_over_axes": lambda a, k: np.apply_over_axes(np.sum, a[:k], [0, 1]),
}


@pytest.mark.parametrize("name", OF_MATRICES)
def test_matrices(name: str) -> None:
    assert_like_numpy(OF_MATRICES[name], matrix)


ROUNDED: dict[str, Program] = {
    "std": lambda x, k: x[:k].std(),
    "var": lambda x, k: x[:k].var(ddof=1),
    "var with a correction known late": lambda x, k: x.var(ddof=k),
    "trapezoid": lambda x, k: np.trapezoid(x[:k]),
    "cov": lambda x, k: np.cov(x[:k]),
    "cov of two": lambda x, k: np.cov(x[:k], x[:k] ** 2, bias=True),
    "cov of rows": lambda x, k: np.cov(np.stack([x[:k], x[:k] ** 2]), ddof=2),
    "cov of columns": lambda x, k: np.cov(np.stack([x[:k], x[:k] ** 2], axis=1), rowvar=False),
    "cov of complex numbers": lambda x, k: np.cov(x[:k] * 1j, x[:k]),
    "corrcoef": lambda x, k: np.corrcoef(x[:k], x[:k] ** 2),
    "softmax": lambda x, k: (np.exp(x[:k] - 9) / np.exp(x[:k] - 9).sum() * x[:k]).sum(),
}


@pytest.mark.parametrize("name", ROUNDED)
def test_rounded(name: str) -> None:
    assert_like_numpy(ROUNDED[name], vector, tolerance=1e-14)


def test_parts_of_degrees_of_freedom_are_refused() -> None:
    assert_like_numpy(lambda x, k: np.cov(x[:k], ddof=0.5), vector, compiles=None)


def test_a_long_axis_is_searched_too() -> None:
    long = np.random.default_rng(0).permutation(20000).astype(float)
    assert_like_numpy(lambda x, k: x[:k].argmax(), long, numbers=[1, 9000, 20000])
