"""Which numbers fit: Python's in the dtype that takes them, and what is stored in cells. What only the run
knows is checked there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Union

import numpy as np

from ...errors import DTypeError, IntegerOverflow, NumberError
from ...ir.conditions import compare
from ...ir.dtype import BOOL, F64, I64, DType, Kind
from ...ir.expr import Const, Expr, convert, literal
from ..record.trace import Trace
from .array import SymbolicArray

__all__ = ["ALL_MUST_FIT", "Operand", "check_fits", "check_single", "check_stored", "limits", "literal_of"]

Operand = Union[SymbolicArray, bool, int, float, complex]


ALL_MUST_FIT = np.lib.NumpyVersion(np.__version__) >= "2.5.0"
"""Whether Python numbers must fit wherever an array takes them: NumPy wraps them around in `np.where` and in
parts of arrays until 2.4."""


class Need(NamedTuple):
    """What must hold of a number, and what is raised where it does not."""

    condition: Expr
    exception: str
    words: str


_USE_FLOATS = "use an array of a float dtype"


def literal_of(value: bool | int | float | complex, dtype: DType) -> Expr:
    """A Python number as a constant of a dtype, which it must fit."""
    if isinstance(value, complex):
        if not dtype.is_complex and dtype is not BOOL:
            raise DTypeError(
                f"a complex number cannot become {'an int' if dtype.is_integer else 'a float'}",
                fix="use the .real part, or an array of a complex dtype",
            )
        return literal(bool(value) if dtype is BOOL else value, dtype)
    if dtype.is_integer:
        value = _whole(value)
        low, high = limits(dtype)
        if not low <= value <= high:
            raise IntegerOverflow(
                f"Python integer {value} out of bounds for {dtype.name}",
                fix=f"convert the array to a wider dtype, or wrap the number: np.array({value}).astype(...)",
            )
    return literal(float(value) if dtype.is_inexact else value, dtype)


def _whole(value: bool | int | float) -> int:
    """A Python number as an integer, as Python makes one of it."""
    try:
        return int(value)
    except ValueError:
        raise NumberError("cannot convert float NaN to integer", fix=_USE_FLOATS) from None
    except OverflowError:
        words = "cannot convert float infinity to integer"
        raise IntegerOverflow(words, fix=_USE_FLOATS) from None


def check_fits(value: Operand, dtype: DType, trace: Trace, stored: bool = False) -> None:
    """A Python number must fit the integer dtype that takes it: now, or where traced when it runs. Where it
    is `stored` in an array, it must be real if that is."""
    for need in _fits(value, dtype, stored):
        _check(trace, need)


def check_stored(value: Operand, dtype: DType, trace: Trace) -> None:
    """A number of NumPy's that is stored in a cell or a slice must fit if integers there have a sign: else,
    and where arrays say which cells, these take its lowest bits."""
    for need in _fits_stored(value, dtype):
        _check(trace, need)


def check_single(value: Operand, dtype: DType, trace: Trace) -> None:
    """A number that is stored in one cell of `x.flat` must fit as `check_fits` and `check_stored` say. NumPy
    raises one exception whatever is wrong."""
    words = "Error setting single item of array."
    try:
        needs = [*_fits(value, dtype, stored=True), *_fits_stored(value, dtype)]
    except (DTypeError, IntegerOverflow, NumberError) as error:
        raise NumberError(words, details=(error.what,), fix=error.fix) from None
    for need in needs:
        _check(trace, Need(need.condition, "ValueError", words))


def _fits(value: Operand, dtype: DType, stored: bool) -> Iterator[Need]:
    if type(value) is not SymbolicArray:
        literal_of(value, dtype)
        return
    if stored and value.weak is complex and not dtype.is_complex and dtype is not BOOL:
        literal_of(0j, dtype)
    if value.weak not in (int, float) or not dtype.is_integer:
        return
    number = value.load(())
    if value.weak is float:
        yield from _is_whole(number, dtype)
        return
    (low, high), widest = limits(dtype), limits(I64)
    bounds = [("greater_equal", low)] if low > widest[0] else []
    bounds += [("less_equal", high)] if high < widest[1] else []
    for name, limit in bounds:
        yield Need(compare(name, number, Const(limit, I64)), "OverflowError", _beyond(dtype))


def _is_whole(number: Expr, dtype: DType) -> Iterator[Need]:
    """A float that becomes an integer is a number, which fits without its fraction."""
    is_number = compare("equal", number, number)
    yield Need(is_number, "ValueError", "cannot convert float NaN to integer")
    low, high = limits(dtype)
    # -128.9 becomes the least int8; between the least int64 and the float64 below it there is none.
    exact = float(low - 1) == low - 1
    relation, lowest = ("greater", low - 1.0) if exact else ("greater_equal", float(low))
    for name, limit in ((relation, lowest), ("less", high + 1.0)):
        yield Need(compare(name, number, Const(limit, F64)), "OverflowError", _beyond(dtype))


def _fits_stored(value: Operand, dtype: DType) -> Iterator[Need]:
    if type(value) is not SymbolicArray or not value.is_scalar or value.weak is not None:
        return
    kind = value.element_type
    if dtype.kind is not Kind.INT:
        return
    if kind.is_float:
        yield from _is_whole(convert(value.load(()), F64), dtype)
    if not kind.is_integer:
        return
    (least, most), (low, high) = limits(kind), limits(dtype)
    number = value.load(())
    if least < low:
        fits = compare("greater_equal", number, Const(low, kind))
        yield Need(fits, "OverflowError", _beyond(dtype))
    if most > high:
        fits = compare("less_equal", number, Const(high, kind))
        yield Need(fits, "OverflowError", _beyond(dtype))


def _beyond(dtype: DType) -> str:
    return f"Python integer out of bounds for {dtype.name}"


def limits(dtype: DType) -> tuple[int, int]:
    """The smallest and largest value of an integer dtype."""
    if dtype.kind is Kind.UINT:
        return 0, (1 << dtype.bits) - 1
    return -(1 << (dtype.bits - 1)), (1 << (dtype.bits - 1)) - 1


def _check(trace: Trace, need: Need) -> None:
    trace.check((), lambda _: need.condition, need.exception, need.words)
