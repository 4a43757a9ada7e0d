"""`x.view(dtype)`: the same bits as numbers of another dtype of as many bytes.

NumPy's view shares memory. Here the numbers are made anew, and which of the two arrays was written later is
known: what the other one then holds is not, so that it must not be read any more (`Sameness`), nor leave the
function beside the array whose bits it has.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import UnsupportedError
from ...ir.dtype import DType, from_numpy, named
from ...ir.expr import Apply, Cast, Expr, dtype_of
from ...ir.ops import OPS
from ..record.registry import method
from ..record.retrace import Reason
from ..record.trace import Trace, current_trace, user_location
from ..values.array import SymbolicArray, describe
from ..values.elementwise import as_operand
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
    if dtype is None or np.dtype(dtype) == self.dtype:
        return self if self.is_scalar else SymbolicArray(self.shown(), self.record)
    wanted = _as_wide(self, dtype)
    trace = current_trace()
    as_operand(self, trace)
    made = trace.compute(self.cells.shape, wanted, lambda at: _reinterpreted(self.load(at), wanted))
    if not self.is_scalar:
        trace.sameness.note(made.tensor, self.cells.tensor.storage, _AS_ANOTHER)
    return SymbolicArray(made, trace, None, self.is_scalar)


def _as_wide(array: SymbolicArray, dtype: Any) -> DType:
    """The dtype, of as many bytes as the array's."""
    mine, theirs = array.element_type, from_numpy(np.dtype(dtype))
    if mine.bits != theirs.bits or not (_has_plain_bits(mine) and _has_plain_bits(theirs)):
        raise UnsupportedError(
            f"a view of {mine.name} as {theirs.name} is not supported in a jitted function",
            loc=user_location(),
            details=(describe(array),),
            fix="view integers, float32 or float64 as numbers of as many bytes, or use x.astype(dtype)",
        )
    return theirs


def _has_plain_bits(dtype: DType) -> bool:
    return dtype.is_integer or (dtype.is_float and not dtype.is_small)


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
