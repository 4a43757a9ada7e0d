"""Python's operators on symbolic arrays: the rows of the op table that have a `dunder`.

Arrays are written in place by `+=` and its kin; scalars, which are immutable, are rebound. Python
scalars among themselves follow Python, not NumPy: see `scalars.py`. What is no number is asked for its own
operator, where Python and NumPy ask it; lists and text are repeated by integers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import DTypeError
from ...ir.dtype import BOOL
from ...ir.expr import literal
from ...ir.ops import OPS, Op
from ..record.registry import FUNCTIONS, METHODS, AnyCallable, implements, method
from ..record.resident import Resident
from ..record.trace import current_trace
from .array import SymbolicArray
from .elementwise import as_array, elementwise
from .integer import SymbolicInt
from .rows import LISTS
from .scalars import is_python_scalar, python_operator, unsupported

__all__ = ["power"]

_NUMBERS = (SymbolicArray, SymbolicInt, Resident, np.ndarray, np.generic, bool, int, float, complex)
_REFLECTED = {"lt": "__gt__", "le": "__ge__", "gt": "__lt__", "ge": "__le__", "eq": "__eq__", "ne": "__ne__"}
_SHORT_CUTS = {-1: "reciprocal", 0.5: "sqrt", 1: "positive", 2: "square"}


def _applied(op: Op, *operands: Any) -> SymbolicArray:
    if all(is_python_scalar(operand) for operand in operands):
        return python_operator(op, *operands)
    return _raised(*operands) if op.dunder == "pow" else elementwise(op, *operands)


def _operated(op: Op, left: Any, right: Any, own: Any, other: Any) -> Any:
    """`left` and `right` under the operator: `own` is the operand of ours, `other` the other one."""
    if isinstance(other, _NUMBERS):
        return _applied(op, left, right)
    is_python = is_python_scalar(own)
    if other is None and not is_python and op.dunder in ("eq", "ne"):
        return _beside_none(own, op.dunder == "ne")
    is_row = isinstance(other, LISTS)
    if op.dunder == "mul" and (is_python or own.is_scalar) and (is_row or isinstance(other, (str, bytes))):
        return _repeated(other, own)
    if is_python and type(other).__module__ == "builtins" and op.dunder not in ("eq", "ne"):
        raise unsupported(
            op, [type(operand) if operand is other else own.__class__ for operand in (left, right)]
        )
    if is_python or (not is_row and _answers_itself(other, own, op)):
        return NotImplemented
    return _applied(op, left, right)


def _beside_none(array: SymbolicArray, truth: bool) -> SymbolicArray | bool:
    """What NumPy says of each cell beside None, to which nothing is equal; of a number Python says it."""
    if array.is_scalar:
        return truth
    trace = current_trace()
    view = trace.compute(array.cells.shape, BOOL, lambda _: literal(truth, BOOL))
    return SymbolicArray(view, trace)


def _repeated(sequence: Any, times: Any) -> Any:
    """`sequence * times`, of which Python needs the number."""
    is_integer = type(times) is SymbolicInt or issubclass(times.__class__, (int, np.integer))
    if not is_integer:
        raise DTypeError(
            f"can't multiply sequence by non-int of type '{times.__class__.__name__}'",
            fix="make an array of the sequence, np.array(...), to multiply its items",
        )
    return sequence * times.__index__()


def _answers_itself(other: Any, own: SymbolicArray, op: Op) -> bool:
    """Whether NumPy leaves the operation to an object of the user's."""
    kind = type(other)
    if getattr(kind, "__array_ufunc__", own) is None:
        return True
    name = _REFLECTED.get(op.dunder, f"__r{op.dunder}__")
    return hasattr(kind, name) and (own.is_scalar or getattr(kind, "__array_priority__", 0) > 0)


def power(base: Any, exponent: Any, out: SymbolicArray | None = None) -> SymbolicArray:
    """`np.power`, with NumPy's short cuts for float arrays and constant exponents."""
    if _is_array(base) and base.element_type.is_inexact:
        short_cut = _SHORT_CUTS.get(exponent) if type(exponent) in (int, float) else None
        if short_cut is not None:
            return elementwise(OPS[short_cut], base, out=out)
    return elementwise(OPS["power"], base, exponent, out=out)


def _raised(base: Any, exponent: Any, out: SymbolicArray | None = None) -> SymbolicArray:
    """`base ** exponent`, where NumPy squares arrays of any dtype: of bools that gives int8."""
    if _is_array(base) and type(exponent) is int and exponent == 2:
        return elementwise(OPS["square"], base, out=out)
    return power(base, exponent, out)


def _is_array(value: Any) -> bool:
    return type(value) is SymbolicArray and not value.is_scalar and value.weak is None


@implements(np.power)
def power_function(
    x1: Any, x2: Any, /, out: Any = None, *, where: Any = None, dtype: Any = None, casting: str = "same_kind"
) -> SymbolicArray:
    if where is None and dtype is None and casting == "same_kind":
        return power(x1, x2, out)
    return elementwise(OPS["power"], x1, x2, out=out, where=where, dtype=dtype, casting=casting)


@implements(np.float_power)
def float_power(
    x1: Any, x2: Any, /, out: Any = None, *, where: Any = None, dtype: Any = None, casting: str = "same_kind"
) -> SymbolicArray:
    """Of complex numbers it is the power in 128 bits."""
    is_complex = any(as_array(x).element_type.is_complex for x in (x1, x2)) or dtype is not None
    if is_complex and np.dtype(np.complex128 if dtype is None else dtype) == np.complex128:
        row, dtype = OPS["power"], np.complex128
    else:
        row = OPS["float_power"]
    return elementwise(row, x1, x2, out=out, where=where, dtype=dtype, casting=casting)


def _forward_operator(op: Op) -> AnyCallable:
    def apply(self: SymbolicArray, *others: Any) -> Any:
        if len(others) != 1:  # none, or the modulus of `pow`
            return _applied(op, self) if not others else pow(self.__index__(), *others)
        return _operated(op, self, others[0], self, others[0])

    return apply


def _reflected_operator(op: Op) -> AnyCallable:
    def apply(self: SymbolicArray, other: Any) -> Any:
        return _operated(op, other, self, self, other)

    return apply


def _in_place_operator(op: Op) -> AnyCallable:
    def apply(self: SymbolicArray, other: Any) -> Any:
        if self.is_scalar or self.weak is not None:
            return _operated(op, self, other, self, other)
        return (
            _raised(self, other, out=self) if op.dunder == "pow" else elementwise(op, self, other, out=self)
        )

    return apply


for _row in OPS.values():
    if _row.dunder:
        METHODS[f"__{_row.dunder}__"] = _forward_operator(_row)
        METHODS[f"__r{_row.dunder}__"] = _reflected_operator(_row)
        METHODS[f"__i{_row.dunder}__"] = _in_place_operator(_row)


@method("__divmod__")
def divide_with_remainder(left: Any, right: Any) -> tuple[SymbolicArray, SymbolicArray]:
    """`divmod(left, right)`."""
    return _applied(OPS["floor_divide"], left, right), _applied(OPS["remainder"], left, right)


@method("__rdivmod__")
def reflected_divmod(right: SymbolicArray, left: Any) -> tuple[SymbolicArray, SymbolicArray]:
    """`divmod(left, right)` for a left operand that is no symbolic array."""
    return divide_with_remainder(left, right)


@method("__matmul__")
def matmul(left: Any, right: Any) -> Any:
    """`left @ right`."""
    if getattr(type(right), "__array_ufunc__", left) is None:
        return NotImplemented
    return FUNCTIONS[np.matmul](left, right)


@method("__rmatmul__")
def reflected_matmul(right: SymbolicArray, left: Any) -> Any:
    """`left @ right` for a left operand that is no symbolic array."""
    return FUNCTIONS[np.matmul](left, right)


@method("__imatmul__")
def in_place_matmul(left: SymbolicArray, right: Any) -> Any:
    """`left @= right`."""
    return FUNCTIONS[np.matmul](left, right, out=left)
