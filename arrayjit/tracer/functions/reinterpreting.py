"""`x.view(dtype)`: the same bits as numbers of another dtype.

Of another size, the last axis is taken apart or put together, lowest bytes first, as processors have it.

NumPy's view shares memory. Here the numbers are made anew, and which of the two arrays was written later is
known: what the other one then holds is not, so that it must not be read any more (`Sameness`), nor leave the
function beside the array whose bits it has.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import or_
from typing import Any

import numpy as np

from ...errors import ShapeError, UnsupportedError
from ...ir.dtype import BOOL, DType, from_numpy, named
from ...ir.expr import Apply, Cast, Expr, dtype_of
from ...ir.ops import OPS
from ..record.registry import method
from ..record.retrace import Reason
from ..record.trace import Trace, current_trace
from ..values.array import SymbolicArray, describe
from ..values.elementwise import as_operand
from ..values.numbers import integer_of
from .operands import refuse

__all__ = ["require_shared_by_none"]

_AS_ANOTHER = Reason(
    "an array is used after a view of it as another dtype was written, or the other way round",
    None,
    "take a copy, whose bits are its own: x.view(dtype).copy()",
)


@method("view")
def view(self: SymbolicArray, dtype: Any = None, type: Any = None) -> SymbolicArray:
    """Another view of the same cells, or their bits as another dtype."""
    refuse("ndarray.view", "use x.astype(dtype) for the numbers", type=type)
    if dtype is not None and self.cells.tensor.storage in current_trace().swapped:
        raise UnsupportedError(
            "a view as another dtype of an array of foreign byte order is not supported in a jitted function",
            details=(describe(self),),
            fix="convert it before the call: x.astype(x.dtype.newbyteorder('='))",
        )
    if dtype is None or np.dtype(dtype) == self.dtype:
        return self if self.is_scalar else SymbolicArray(self.shown(), self.record)
    mine, wanted = self.element_type, _supported(self, dtype)
    as_operand(self, current_trace())
    if mine.bits != wanted.bits:
        _require_rows(self, wanted)
    made = _made(self, wanted)
    if not self.is_scalar:
        current_trace().sameness.note(made.cells.tensor, self.cells.tensor.storage, _AS_ANOTHER)
    return made


def _made(array: SymbolicArray, wanted: DType) -> SymbolicArray:
    """New numbers of the bits."""
    mine = array.element_type
    if mine.is_complex:
        parts = _parts(array)
        return parts if wanted is mine.part else _made(parts, wanted)
    if wanted.is_complex:
        return _complex(array if mine is wanted.part else _made(array, wanted.part), wanted)
    if mine.bits > wanted.bits:
        return _as(_apart(_as(array, named(f"u{mine.bits}")), mine.bits // wanted.bits), wanted)
    if mine.bits < wanted.bits:
        return _as(_together(_as(array, named(f"u{mine.bits}")), wanted.bits // mine.bits), wanted)
    return _as(array, wanted)


def _as(array: SymbolicArray, dtype: DType) -> SymbolicArray:
    """The bits as numbers of as many bytes."""
    trace, load = current_trace(), array.load
    made = trace.compute(array.cells.shape, dtype, lambda at: _reinterpreted(load(at), dtype))
    return SymbolicArray(made, trace, None, array.is_scalar)


def _apart(words: Any, count: int) -> Any:
    """Each unsigned integer as `count` smaller ones."""
    bits = 8 * words.itemsize // count
    part = np.dtype(f"u{bits // 8}")
    places = np.arange(count, dtype=words.dtype) * words.dtype.type(bits)
    parts = (words[..., None] >> places).astype(part)
    return parts.reshape((*words.shape[:-1], words.shape[-1] * count))


def _together(parts: Any, count: int) -> Any:
    """Each `count` unsigned integers as a larger one."""
    whole, bits = np.dtype(f"u{parts.itemsize * count}"), 8 * parts.itemsize
    rows = parts.reshape((*parts.shape[:-1], parts.shape[-1] // count, count)).astype(whole)
    return reduce(or_, [rows[..., n] << whole.type(n * bits) for n in range(count)])


def _parts(numbers: Any) -> SymbolicArray:
    """The two floats of each complex number, one beside the other."""
    made: Any = _fresh((*numbers.shape[:-1], numbers.shape[-1] * 2), numbers.element_type.part)
    made[..., ::2], made[..., 1::2] = numbers.real, numbers.imag
    result: SymbolicArray = made
    return result


def _complex(parts: Any, dtype: DType) -> SymbolicArray:
    """Each two floats as a complex number."""
    made: Any = _fresh((*parts.shape[:-1], parts.shape[-1] // 2), dtype)
    made.real[...], made.imag[...] = parts[..., ::2], parts[..., 1::2]
    result: SymbolicArray = made
    return result


def _fresh(shape: Sequence[Any], dtype: DType) -> SymbolicArray:
    trace = current_trace()
    return SymbolicArray(trace.window([integer_of(extent, trace) for extent in shape], dtype), trace)


def _supported(array: SymbolicArray, dtype: Any) -> DType:
    mine, theirs = array.element_type, from_numpy(np.dtype(dtype))
    if not (_has_plain_bits(mine) or mine is BOOL) or not _has_plain_bits(theirs):
        raise UnsupportedError(
            f"a view of {mine.name} as {theirs.name} is not supported in a jitted function",
            details=(describe(array),),
            fix="view integers, float32, float64 or complex numbers as one another, or use x.astype(dtype)",
        )
    return theirs


def _require_rows(array: Any, wanted: DType) -> None:
    """Raise ShapeError, in NumPy's words, where the last axis is not one row of bytes that the dtype fits."""
    words, fix = "", "take a copy first: x.copy().view(dtype)"
    if not array.ndim:
        words = "Changing the dtype of a 0d array is only supported if the itemsize is unchanged"
        fix = "give it an axis: x[np.newaxis].view(dtype)"
    elif array.shape[-1] != 1 and array.size and array.strides[-1] != array.itemsize:
        words = "To change to a dtype of a different size, the last axis must be contiguous"
    elif array.shape[-1] * array.itemsize % (wanted.bits // 8):
        words = (
            "When changing to a larger dtype, its size must be a divisor of the total size in bytes of the "
            "last axis of the array."
        )
        fix = "cut the last axis to a multiple: x[:len(x) // n * n]"
    if words:
        raise ShapeError(words, details=(describe(array),), fix=fix)


def _has_plain_bits(dtype: DType) -> bool:
    return dtype.is_integer or dtype.is_complex or (dtype.is_float and not dtype.is_small)


def _reinterpreted(value: Expr, dtype: DType) -> Expr:
    """The number whose bits are those of a value."""
    mine, signed = dtype_of(value), named(f"i{dtype.bits}")
    if mine.is_float:
        value = Apply(OPS["bits"], (value,), signed)
    elif mine is not signed:
        value = Cast(value, signed)
    if dtype.is_float:
        return Apply(OPS["from_bits"], (value,), dtype)
    return value if dtype is signed else Cast(value, dtype)


def require_shared_by_none(leaves: Sequence[Any], trace: Trace) -> None:
    """Refuse results that would share their memory with others, or with arguments, as another dtype."""
    storages = [
        leaf.cells.tensor.storage for leaf in leaves if type(leaf) is SymbolicArray and not leaf.is_scalar
    ]
    for storage in storages:
        for other, reason in trace.sameness.of(storage).items():
            if reason is _AS_ANOTHER and (other in storages or not trace.is_made_here(other)):
                raise UnsupportedError(
                    "the function returns a view as another dtype of an array that the caller has",
                    fix="return a copy of it: x.view(dtype).copy()",
                )
