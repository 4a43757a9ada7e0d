"""An op on arrays, as a program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from arrayjit.ir.assign import ArrayParam, Assign, Computation
from arrayjit.ir.dtype import DType, from_numpy
from arrayjit.ir.expr import Apply, Load
from arrayjit.ir.index import Affine, Symbol, affine
from arrayjit.ir.ops import Op
from arrayjit.ir.tensor import Tensor


@dataclass(frozen=True)
class Elementwise:
    """The op on each batch of arguments, all in one program; the results are among the arrays."""

    computation: Computation
    arrays: Mapping[Tensor, np.ndarray]
    results: Sequence[np.ndarray]


def elementwise(row: Op, batches: Sequence[Sequence[np.ndarray]]) -> Elementwise:
    params: list[ArrayParam] = []
    body: list[Assign] = []
    arrays: dict[Tensor, np.ndarray] = {}
    results: list[np.ndarray] = []
    for batch in batches:
        size = len(batch[0])
        inputs = [Tensor.of("x", (size,), from_numpy(array.dtype)) for array in batch]
        output = Tensor.of("y", (size,), _result(row, batch))
        results.append(np.zeros(size, output.dtype.numpy))
        symbol = Symbol("i")
        value = Apply(row, tuple(Load(tensor, affine([symbol])) for tensor in inputs), output.dtype)
        body.append(Assign(((symbol, Affine.of(size)),), output, affine([symbol]), value))
        params += [*(ArrayParam(tensor, "read") for tensor in inputs), ArrayParam(output, "write")]
        arrays.update(zip([*inputs, output], [*batch, results[-1]], strict=True))
    return Elementwise(Computation(f"each_{row.name}", tuple(params), tuple(body)), arrays, results)


def _result(row: Op, batch: Sequence[np.ndarray]) -> DType:
    with np.errstate(all="ignore"):
        return from_numpy(np.asarray(row.ref(*(array[:1] for array in batch))).dtype)
