"""Python scalars among themselves: Python's arithmetic, not NumPy's.

A traced `int` is an int64, a traced `float` a float64 and a traced `complex` a complex128. Where Python would
raise, or leave these types (a bigger integer, a complex power of floats), a check makes the compiled function
raise. Beside a float an int is rounded to float64 first, as Python does in arithmetic but not in comparisons
of ints beyond 2**53.
"""

from __future__ import annotations

from typing import Any

from ...errors import DTypeError
from ...ir.conditions import both, compare, either, opposite
from ...ir.dtype import BOOL, C128, F64, I64, DType
from ...ir.expr import Apply, Cast, Const, Expr, convert, literal
from ...ir.ops import OPS, Op
from ..record.trace import Trace, current_trace
from .array import PythonNumber, SymbolicArray
from .elementwise import as_operand, operand_at
from .integer import BEYOND, SymbolicInt

__all__ = ["is_python_scalar", "python_operator", "require", "unsupported"]

_DTYPES: dict[PythonNumber, DType] = {bool: BOOL, int: I64, float: F64, complex: C128}
_ORDERS = frozenset(("lt", "le", "gt", "ge"))
_COMPARISONS = _ORDERS | {"eq", "ne"}
_BITWISE = frozenset(("and", "or", "xor", "invert"))
_SHIFTS = frozenset(("lshift", "rshift"))
_DIVISIONS = frozenset(("truediv", "floordiv", "mod"))
_GROWING = frozenset(("add", "sub", "mul", "pow", "lshift"))
_LARGEST = float(2**63 - 2**12)


def is_python_scalar(value: Any) -> bool:
    """Whether `value` is, or stands for, a Python bool, int, float or complex."""
    if type(value) is SymbolicArray:
        return value.weak is not None
    return type(value) in _DTYPES or type(value) is SymbolicInt


def python_operator(op: Op, *operands: Any) -> SymbolicArray:
    """The operator of the row `op` on Python scalars, at least one of them traced."""
    trace = current_trace()
    values = [as_operand(operand, trace) for operand in operands]
    kinds = [value.weak if type(value) is SymbolicArray else type(value) for value in values]
    result = _result_type(op, kinds, values)
    computed: PythonNumber = result
    if op.dunder in _COMPARISONS or complex in kinds:
        computed = max(kinds, key=list(_DTYPES).index)  # type: ignore[assignment,arg-type]
    dtype = _DTYPES[computed]
    args = tuple(operand_at(value, (), dtype) for value in values)
    _check(op, args, dtype, trace)
    view = trace.compute((), _DTYPES[result], lambda _: Apply(op, args, _DTYPES[result]))
    return SymbolicArray(view, trace, weak=result)


def _result_type(op: Op, kinds: list[Any], values: list[Any]) -> PythonNumber:
    name = op.dunder
    if complex in kinds:
        if name in _ORDERS | _BITWISE | _SHIFTS | {"floordiv", "mod"}:
            raise unsupported(op, kinds, "use the real parts")
        if name == "abs":
            return float
        return bool if name in _COMPARISONS else complex
    if name in _COMPARISONS:
        return bool
    if name in _BITWISE | _SHIFTS:
        if float in kinds:
            raise unsupported(op, kinds, "use integers")
        return bool if set(kinds) == {bool} and name not in _SHIFTS and name != "invert" else int
    if name == "truediv" or float in kinds:
        return float
    if name == "pow" and type(values[1]) is int and values[1] < 0:
        return float
    return int


def unsupported(op: Op, kinds: list[Any], fix: str = "convert both to numbers") -> DTypeError:
    """The error that operands of these types raise."""
    names = ", ".join(kind.__name__ for kind in kinds)
    return DTypeError(f"unsupported operand types for {op.name}: {names}", fix=fix)


def _check(op: Op, args: tuple[Expr, ...], dtype: DType, trace: Trace) -> None:
    name = op.dunder
    zero = literal(0, dtype)
    if name in _DIVISIONS:
        require(trace, compare("not_equal", args[1], zero), "ZeroDivisionError", "division by zero")
    if name in _SHIFTS:
        require(trace, compare("greater_equal", args[1], zero), "ValueError", "negative shift count")
    if name == "pow":
        _check_power(args, dtype, trace)
    if name in _GROWING and dtype is I64:
        _check_growth(op, args, trace)


def _check_power(args: tuple[Expr, ...], dtype: DType, trace: Trace) -> None:
    base, exponent = args
    if dtype is C128:
        nothing = compare("equal", base, literal(0, dtype))
        allowed = compare("greater_equal", Cast(exponent, F64), literal(0, F64))
        words = "zero to a negative or complex power"
        require(trace, either(opposite(nothing), allowed), "ZeroDivisionError", words)
        return
    zero = literal(0, dtype)
    if dtype is I64:
        words = "an int to a negative power is a float in Python; make the base a float"
        require(trace, compare("greater_equal", exponent, zero), "ValueError", words)
        return
    nonzero = either(compare("not_equal", base, zero), compare("greater_equal", exponent, zero))
    require(trace, nonzero, "ZeroDivisionError", "0.0 cannot be raised to a negative power")
    whole = compare("equal", exponent, Apply(OPS["rint"], (exponent,), F64))
    real = either(opposite(compare("less", base, zero)), either(whole, opposite(_finite(base))))
    require(trace, real, "ValueError", "a negative number to a fractional power is complex in Python")
    result = _finite(Apply(OPS["power"], args, F64))
    inputs_finite = both(_finite(base), _finite(exponent))
    require(trace, either(result, opposite(inputs_finite)), "OverflowError", "Numerical result out of range")


def _check_growth(op: Op, args: tuple[Expr, ...], trace: Trace) -> None:
    """Sums and differences that wrapped lie on the wrong side of an operand. The size of other results is
    estimated in float64."""
    if op.dunder in ("add", "sub"):
        require(trace, _stays(op, args), "OverflowError", BEYOND)
        return
    left, right = (convert(arg, F64) for arg in args)
    if op.dunder == "lshift":
        right = Apply(OPS["power"], (Const(2.0, F64), right), F64)
        op = OPS["multiply"]
    size = Apply(OPS["absolute"], (Apply(op, (left, right), F64),), F64)
    require(trace, compare("less", size, Const(_LARGEST, F64)), "OverflowError", BEYOND)


def _stays(op: Op, args: tuple[Expr, ...]) -> Expr:
    """Does a sum or difference of int64s stay within 64 bits?"""
    left, right = args
    result = Apply(op, args, I64)
    if isinstance(right, Const):
        grows = (right.value >= 0) == (op.dunder == "add")
        return compare("greater_equal" if grows else "less_equal", result, left)
    if isinstance(left, Const) and op.dunder == "add":
        return compare("greater_equal" if left.value >= 0 else "less_equal", result, right)
    turned = Apply(OPS["bitwise_xor"], (left, result), I64)
    across = Apply(OPS["bitwise_xor"], (right, result if op.dunder == "add" else left), I64)
    signs = Apply(OPS["bitwise_and"], (turned, across), I64)
    return compare("greater_equal", signs, literal(0, I64))


def require(trace: Trace, condition: Expr, exception: str, message: str) -> None:
    """Where the condition of some scalars does not hold, the compiled function raises the exception."""
    trace.check((), lambda _: condition, exception, message)


def _finite(value: Expr) -> Expr:
    return Apply(OPS["isfinite"], (value,), BOOL)
