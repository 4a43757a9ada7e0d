"""The driver of the reference: Kernels run in NumPy on the caller's memory."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from itertools import compress
from operator import not_
from typing import Any

import numpy as np

from ..errors import UnsupportedError
from ..ir.code import Code
from ..ir.index import Symbol
from ..ir.interp import KernelRaise, run
from ..ir.loops import Kernel, Raise, walk_statements
from ..ir.params import ArrayParam, IndexParam
from ..ir.tensor import Tensor
from .host import HostDriver

__all__ = ["InterpDriver", "InterpExecutable"]


class InterpExecutable:
    """A Kernel and the way to call it by addresses."""

    def __init__(self, kernel: Kernel) -> None:
        self.seconds: Mapping[str, float] = {}
        self._kernel = kernel
        self._raises = [stmt for stmt in walk_statements(kernel.body) if isinstance(stmt, Raise)]
        self._tensors = [param.tensor for param in kernel.params if isinstance(param, ArrayParam)]
        self._symbols = [param.symbol for param in kernel.params if isinstance(param, IndexParam)]
        self._is_index = [isinstance(param, IndexParam) for param in kernel.params]

    def launch(self, pointers: Sequence[int], bindings: Sequence[int], workspace: int, pool: int = 0) -> int:
        """Interpret the Kernel; its temporaries are the interpreter's own."""
        if not bindings:
            numbers = compress(pointers, self._is_index)
            bindings = [ctypes.c_int64.from_address(number).value for number in numbers]
            pointers = list(compress(pointers, map(not_, self._is_index)))
        symbols = dict(zip(self._symbols, bindings, strict=True))
        arrays = {
            tensor: _view(tensor, pointer, symbols)
            for tensor, pointer in zip(self._tensors, pointers, strict=True)
        }
        try:
            run(self._kernel, arrays, symbols)
        except KernelRaise as raised:
            return 1 + next(number for number, stmt in enumerate(self._raises) if stmt is raised.stmt)
        return 0


class InterpDriver(HostDriver):
    """Interprets on the calling thread."""

    def load(self, code: Code, ordinal: int = 0) -> InterpExecutable:
        return InterpExecutable(code.payload)

    def assembly(self, code: Code) -> str:
        raise UnsupportedError(f"target {self.name!r} makes no machine code", fix="compile for llvm")


def _view(tensor: Tensor, pointer: int, symbols: Mapping[Symbol, int]) -> np.ndarray[Any, Any]:
    """The array whose first cell is at the address, with the tensor's layout. Strides may be negative."""
    shape = tuple(extent.evaluate(symbols) for extent in tensor.shape)
    itemsize = tensor.dtype.itemsize
    strides = tuple(stride.evaluate(symbols) * itemsize for stride in tensor.element_strides())
    if 0 in shape:
        return np.empty(shape, tensor.dtype.numpy)
    reach = [(extent - 1) * stride for extent, stride in zip(shape, strides, strict=True)]
    below = -sum(min(0, distance) for distance in reach)
    above = sum(max(0, distance) for distance in reach) + itemsize
    memory = np.ctypeslib.as_array((ctypes.c_uint8 * (below + above)).from_address(pointer - below))
    array: np.ndarray[Any, Any] = np.ndarray(shape, tensor.dtype.numpy, memory, below, strides)
    return array
