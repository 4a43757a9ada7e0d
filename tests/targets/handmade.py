"""Kernels made by hand, and running them on NumPy arrays."""

from __future__ import annotations

import numpy as np

from arrayjit.backends import backend
from arrayjit.ir.assign import ArrayParam, IndexParam
from arrayjit.ir.dtype import F64, from_numpy
from arrayjit.ir.expr import Apply, Load, dtype_of
from arrayjit.ir.index import Affine, Symbol, SymbolKind, affine
from arrayjit.ir.loops import For, Kernel, LoopKind, Store
from arrayjit.ir.ops import op
from arrayjit.ir.resolve import resolve
from arrayjit.ir.tensor import Tensor


def call(name, *args):
    """An op of the table."""
    row = op(name)
    return Apply(row, args, resolve(row, [dtype_of(arg) for arg in args])[1])


def at(tensor, *index):
    return Load(tensor, affine(index))


def put(tensor, *index, value):
    return Store(tensor, affine(index), value)


def loop(symbol, hi, *body, lo=0, **how):
    """A sequential loop, unless `kind` says otherwise."""
    return For(symbol, Affine.of(lo), Affine.of(hi), body, **how)


def vector(symbol, hi, *body, lanes=8, **how):
    return loop(symbol, hi, *body, kind=LoopKind.VECTOR, lanes=lanes, **how)


def static(hint):
    return Symbol(hint, SymbolKind.STATIC)


def tensor_like(label, array):
    """A parameter with the array's own layout."""
    strides = None if array.flags.c_contiguous else affine(s // array.itemsize for s in array.strides)
    return Tensor(label, affine(array.shape), from_numpy(array.dtype), strides)


def link(kernel, target="sync_llvm"):
    chosen = backend(target)
    return chosen.get_device(0).load(chosen.target.emit(kernel))


def run(body, reads=(), writes=(), bindings=(), name="kernel", **rest):
    """Run the statements, first as the reference means them, then as native code by way of LLVM and of C,
    which must agree. Arrays are given as pairs (tensor, array), static symbols as (symbol, number)."""
    params = [ArrayParam(tensor, "read") for tensor, _ in reads]
    params += [ArrayParam(tensor, "update") for tensor, _ in writes]
    params += [IndexParam(symbol) for symbol, _ in bindings]
    kernel = Kernel(name, tuple(params), tuple(body), **rest)
    numbers = [number for _, number in bindings]
    inputs, outputs = [array for _, array in reads], [array for _, array in writes]
    expected = [array.copy() for array in outputs]
    launch(kernel, "interp", [*inputs, *expected], numbers)
    through_c = [array.copy() for array in outputs]
    for target, results in (("sync_c", through_c), ("sync_llvm", outputs)):
        launch(kernel, target, [*inputs, *results], numbers)
        for got, wanted in zip(results, expected, strict=True):
            np.testing.assert_array_equal(got, wanted, strict=True)


def launch(kernel, target, arrays, numbers=()):
    link(kernel, target).launch([array.ctypes.data for array in arrays], numbers)


def elementwise(make, *arrays, dtype=None, lanes=8, target="sync_llvm"):
    """`make(x, y, ...)` for each element of one-dimensional arrays, in a vector loop."""
    count = len(arrays[0])
    tensors = [tensor_like(f"x{n}", array) for n, array in enumerate(arrays)]
    i = Symbol("i")
    value = make(*(at(tensor, i) for tensor in tensors))
    out = Tensor.of("out", (count,), dtype or dtype_of(value))
    result = np.empty(count, out.dtype.numpy)
    params = [ArrayParam(tensor, "read") for tensor in tensors] + [ArrayParam(out, "write")]
    kernel = Kernel("elementwise", tuple(params), (vector(i, count, put(out, i, value=value), lanes=lanes),))
    launch(kernel, target, [*arrays, result])
    return result


def f64(label, *shape):
    return Tensor.of(label, shape, F64)
