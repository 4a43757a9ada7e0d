"""What NumPy tells of an array without looking at its numbers: shape, dtype, how it lies in memory."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from ...errors import UnsupportedError
from ..record.registry import implements, method
from ..values.array import SymbolicArray, describe
from ..values.elementwise import as_array
from ..values.extents import product
from ..values.integer import python_int
from ..values.layout import is_laid_out
from .operands import axes_of, kind_of

__all__ = ["ndim", "result_type", "shape", "size"]


@implements(np.shape)
def shape(a: Any) -> tuple[int, ...]:
    return as_array(a).shape


@implements(np.ndim)
def ndim(a: Any) -> int:
    return as_array(a).ndim


@implements(np.size)
def size(a: Any, axis: Any = None) -> int:
    array = as_array(a)
    count = product(array.cells.shape[one] for one in axes_of(axis, array.ndim))
    return python_int(count, array.record)  # type: ignore[return-value]


@implements(np.result_type)
def result_type(*arrays_and_dtypes: Any) -> np.dtype[Any]:
    return np.result_type(*map(kind_of, arrays_and_dtypes))


@implements(np.can_cast)
def can_cast(from_: Any, to: Any, casting: Any = "safe") -> bool:
    return np.can_cast(as_array(from_).dtype, to, casting)


_FLAGS = {
    "C": ("c_contiguous", "contiguous", "C_CONTIGUOUS", "CONTIGUOUS", "C"),
    "F": ("f_contiguous", "F_CONTIGUOUS", "FORTRAN", "F"),
    "FNC": ("fnc", "FNC"),
    "FORC": ("forc", "FORC"),
    "WRITEABLE": ("writeable", "WRITEABLE", "W"),
}
_FLAG_OF = {name: flag for flag, names in _FLAGS.items() for name in names}


class Flags:
    """`x.flags`: in which order the cells of an array lie, and whether it may be written."""

    __slots__ = ("_array",)
    _array: SymbolicArray

    def __init__(self, array: SymbolicArray) -> None:
        object.__setattr__(self, "_array", array)

    def __getattr__(self, name: str) -> bool:
        if not name.islower() or not hasattr(np.empty(0).flags, name):
            raise AttributeError(f"'numpy._core.multiarray.flagsobj' object has no attribute {name!r}")
        return self._answer(name)

    def __getitem__(self, name: str) -> bool:
        if name.islower():
            raise KeyError("Unknown flag")
        return self._answer(name)

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        self._refuse(name, "leave it out, or copy the array: x.copy()")

    def __setitem__(self, name: str, value: Any) -> NoReturn:
        self._refuse(name, "leave it out, or copy the array: x.copy()")

    def _answer(self, name: str) -> bool:
        array = self._array
        flag = _FLAG_OF.get(name) or self._refuse(name, "ask before the call")
        if flag == "WRITEABLE":
            return bool(array.cells.writeable) and not array.is_scalar
        array.record.layouts.require_numpys(array.cells)
        answers = {order: is_laid_out(array.cells, order) for order in "CF" if flag in (order, "FNC", "FORC")}
        match flag:
            case "FNC":
                return answers["F"] and not answers["C"]
            case "FORC":
                return answers["F"] or answers["C"]
            case _:
                return answers[flag]

    def _refuse(self, name: str, fix: str) -> NoReturn:
        raise UnsupportedError(
            f"the flag {name} of an array is not supported in a jitted function",
            details=(describe(self._array),),
            fix=fix,
        )


@method("flags")
def flags(self: SymbolicArray) -> Flags:
    return Flags(self)


@implements(np.isfortran)
def isfortran(a: Any) -> bool:
    return Flags(as_array(a)).fnc
