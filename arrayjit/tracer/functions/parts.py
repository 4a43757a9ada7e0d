"""The real and imaginary parts of arrays, and what depends on whether arrays are complex.

Of a complex array the parts are views, as in NumPy.
"""

from __future__ import annotations

from functools import partial, reduce
from typing import Any

import numpy as np

from ...ir.expr import literal
from ...ir.index import Affine
from ...ir.ops import op
from ..indices.indexing import setitem
from ..record.registry import implements, method
from ..record.trace import current_trace
from ..record.view import View
from ..values.array import SymbolicArray
from ..values.elementwise import as_array, as_operand, cast, elementwise
from ..values.fitting import ALL_MUST_FIT
from .operands import deliver

__all__ = ["conjugated", "imag", "parts", "real", "squares"]


@implements(np.real)
@method("real")
def real(val: Any) -> Any:
    array = as_array(val)
    return _part(array, 0) if array.element_type.is_complex else array


@implements(np.imag)
@method("imag")
def imag(val: Any) -> Any:
    """Of a real array, zeros that cannot be written."""
    array = as_array(val)
    if array.element_type.is_complex:
        return _part(array, 1)
    trace, dtype = current_trace(), array.element_type
    zeros = trace.compute(array.cells.shape, dtype, lambda _: literal(0, dtype))
    shown = View(zeros.tensor, zeros.shape, zeros.axes, zeros.index, writeable=False)
    return SymbolicArray(shown, trace, array.weak, array.is_scalar)


def _part(array: SymbolicArray, part: int) -> SymbolicArray:
    """One part of a complex array, a view; of a number, a number."""
    trace, view = array.record, array.cells
    as_operand(array, trace)
    form = trace.parts(view.tensor)
    shown = View(form, view.shape, view.axes, (*view.index, Affine.of(part)), view.writeable)
    if not array.is_scalar and array.weak is None:
        return SymbolicArray(shown, trace)
    number = trace.compute((), form.dtype, shown.load)
    weak = None if array.weak is None else float
    return SymbolicArray(number, trace, weak, array.is_scalar)


@method("__write__")
def write(part: SymbolicArray, value: Any) -> None:
    """What `x.real = value` does. Until NumPy 2.4, numbers are converted as arrays are, and need not fit."""
    if not ALL_MUST_FIT:
        value = as_array(value)
        if value.element_type is not part.element_type:
            value = cast(value, part.element_type)
    setitem(part, Ellipsis, value)


def parts(array: SymbolicArray) -> tuple[SymbolicArray, ...]:
    """The real and the imaginary part of a complex array; a real array itself."""
    return (_part(array, 0), _part(array, 1)) if array.element_type.is_complex else (array,)


def squares(array: SymbolicArray) -> SymbolicArray:
    """The squares of sizes."""
    return reduce(partial(elementwise, op("add")), (elementwise(op("multiply"), x, x) for x in parts(array)))


def conjugated(array: SymbolicArray) -> SymbolicArray:
    """The conjugates of a complex array; a real one itself."""
    return elementwise(op("conjugate"), array) if array.element_type.is_complex else array


@method("conj", "conjugate")
def conjugate_of(self: SymbolicArray, out: Any = None) -> SymbolicArray:
    """A Python number stays one; a real array is itself."""
    if self.weak is complex:
        value = elementwise(op("conjugate"), self)
        return SymbolicArray(value.cells, value.record, weak=complex)
    return deliver(conjugated(self), out)


@implements(np.iscomplexobj)
def iscomplexobj(x: Any) -> bool:
    return as_array(x).element_type.is_complex
