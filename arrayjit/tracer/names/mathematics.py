"""Python's `math` functions of traced numbers.

They give Python floats, and where Python raises they do when the compiled function runs: ValueError where a
number has no result, OverflowError where the result is too large.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from functools import partial, reduce
from typing import Any, TypeVar

import numpy as np

from ...errors import DTypeError
from ...ir.conditions import compare, either, opposite
from ...ir.dtype import BOOL, F64, I64
from ...ir.expr import Apply, Const, Expr
from ...ir.ops import OPS
from ..loops.control import while_loop
from ..record.trace import Trace, current_trace
from ..values.array import SymbolicArray
from ..values.conversions import scalar, to_float, to_int
from ..values.elementwise import as_array, cast, elementwise
from ..values.scalars import require
from .gamma import gamma, log_gamma

__all__ = ["MATH", "instead_of"]

Function = TypeVar("Function", bound=Callable[..., Any])

MATH: dict[Callable[..., Any], Callable[..., Any]] = {}
"""Functions of `math` and `cmath` -> ours, same signature."""


def instead_of(plain: Callable[..., Any], *counts: int) -> Callable[[Function], Function]:
    """Register the decorated function for calls with a traced number, and with so many arguments, if counts
    are given. Others are Python's, to answer or to refuse."""

    def register(ours: Function) -> Function:
        def function(*args: Any, **options: Any) -> Any:
            is_traced = any(scalar(given) is not None for given in (*args, *options.values()))
            is_ours = is_traced and (not counts or len(args) in counts)
            return (ours if is_ours else plain)(*args, **options)

        MATH[plain] = function
        return function  # type: ignore[return-value]

    return register


_PLAIN = {
    "acos": "arccos", "acosh": "arccosh", "asin": "arcsin", "asinh": "arcsinh", "atan": "arctan",
    "atan2": "arctan2", "atanh": "arctanh", "cbrt": "cbrt", "copysign": "copysign", "cos": "cos",
    "cosh": "cosh", "degrees": "degrees", "erf": "erf", "erfc": "erfc", "exp": "exp", "exp2": "exp2",
    "expm1": "expm1", "fabs": "fabs", "fmod": "fmod", "hypot": "hypot", "isfinite": "isfinite",
    "isinf": "isinf", "isnan": "isnan", "log10": "log10", "log1p": "log1p", "log2": "log2",
    "radians": "radians", "sin": "sin", "sinh": "sinh", "sqrt": "sqrt", "tan": "tan", "tanh": "tanh",
}  # fmt: skip
_QUESTIONS = frozenset(("isfinite", "isinf", "isnan"))
_UNCHECKED = frozenset(("degrees", "hypot", "radians"))
_TOO_LARGE = frozenset(("cosh", "exp", "exp2", "expm1", "pow", "sinh"))


def _function(name: str) -> Callable[..., Any]:
    op = OPS[_PLAIN[name]]
    return instead_of(getattr(math, name), op.arity)(lambda *args: _result(name, op.name, args))


_OF_FLOATS = {name: _function(name) for name in _PLAIN if hasattr(math, name)}
_HYPOT, _ABSOLUTE, _FINITE = (_OF_FLOATS[name] for name in ("hypot", "fabs", "isfinite"))
_LARGEST_ROOT = math.isqrt(2**63 - 1)


def _result(name: str, op: str, args: tuple[Any, ...]) -> SymbolicArray:
    trace = current_trace()
    values = tuple(_number(arg) for arg in args)
    if name in _QUESTIONS:
        view = trace.compute((), BOOL, lambda _: Apply(OPS[op], values, BOOL))
        return SymbolicArray(view, trace, weak=bool)
    view = trace.compute((), F64, lambda _: Apply(OPS[op], values, F64))
    if name not in _UNCHECKED:
        _check(trace, name, values, view.load(()))
    return SymbolicArray(view, trace, weak=float)


def _number(value: Any) -> Expr:
    converted = to_float(value)
    return converted.load(()) if type(converted) is SymbolicArray else Const(converted, F64)


def _check(trace: Trace, name: str, values: tuple[Expr, ...], result: Expr) -> None:
    """A result that is no number needs an argument that is none, an infinite one an infinite argument."""
    undefined, beyond = _any("isnan", values), _any("isinf", values)
    number, finite = opposite(_any("isnan", (result,))), _any("isfinite", (result,))
    require(trace, either(number, undefined), "ValueError", "math domain error")
    small = either(finite, either(beyond, undefined))
    if name in _TOO_LARGE:
        require(trace, small, "OverflowError", "math range error")
    else:
        require(trace, small, "ValueError", "math domain error")


def _any(question: str, values: tuple[Expr, ...]) -> Expr:
    answer: Expr = Apply(OPS[question], values[:1], BOOL)
    for value in values[1:]:
        answer = either(answer, Apply(OPS[question], (value,), BOOL))
    return answer


@instead_of(math.log, 1, 2)
def log(*args: Any) -> Any:
    logarithms = [_result("log", "log", (arg,)) for arg in args]
    return logarithms[0] if len(args) == 1 else logarithms[0] / logarithms[1]  # type: ignore[operator]


@instead_of(math.pow, 2)
def power(*args: Any) -> Any:
    zero = Const(0.0, F64)
    base, exponent = (_number(arg) for arg in args)
    harmless = opposite(compare("less", exponent, zero))
    if sys.version_info >= (3, 11):
        harmless = either(_any("isinf", (exponent,)), harmless)
    defined = either(compare("not_equal", base, zero), harmless)
    require(current_trace(), defined, "ValueError", "math domain error")
    return _result("pow", "power", args)


@instead_of(math.hypot)
def hypot(*coordinates: Any) -> Any:
    return reduce(_HYPOT, coordinates[1:], _ABSOLUTE(coordinates[0]))


def dist(p: Any, q: Any, /) -> Any:
    first, second = tuple(p), tuple(q)
    if all(scalar(one) is None for one in (*first, *second)) or len(first) != len(second):
        return math.dist(first, second)
    return hypot(*(to_float(one) - to_float(other) for one, other in zip(first, second, strict=True)))


MATH[math.dist] = dist


@instead_of(math.isclose)
def isclose(a: Any, b: Any, *, rel_tol: Any = 1e-09, abs_tol: Any = 0.0) -> Any:
    for tolerance in (rel_tol, abs_tol):
        negative = compare("less", _number(tolerance), Const(0.0, F64))
        require(current_trace(), opposite(negative), "ValueError", "tolerances must be non-negative")
    one, other, share, most = map(to_float, (a, b, rel_tol, abs_tol))
    gap: Any = abs(one - other)
    is_near = (gap <= abs(share * other)) | (gap <= abs(share * one)) | (gap <= most)
    return (one == other) | (is_near & _FINITE(one) & _FINITE(other))


@instead_of(math.gcd)
def gcd(*integers: Any) -> Any:
    return reduce(_euclid, (to_int(_integer(one, "gcd")) for one in integers), 0)


@instead_of(math.lcm)
def lcm(*integers: Any) -> Any:
    return reduce(_multiple, (to_int(_integer(one, "lcm")) for one in integers), 1)


def _multiple(one: Any, other: Any) -> Any:
    """The least common multiple of two numbers: 0 where either is 0."""
    divisor = gcd(one, other)
    return abs(one // (divisor + to_int(divisor == 0)) * other)


def _euclid(one: Any, other: Any) -> Any:
    """The greatest common divisor of two numbers, in fewer steps than the op takes for any numbers."""

    def is_left(state: Any) -> Any:
        return state[1] != 0

    def rest(state: Any) -> Any:
        return state[1], state[0] % state[1]

    return abs(while_loop(is_left, rest, (one, other))[0])


@instead_of(math.isqrt, 1)
def isqrt(n: Any) -> Any:
    """The root of the float that is next to `n` is at most one beyond."""
    number = _integer(n, "isqrt")
    negative = compare("less", number.load(()), Const(0, I64))
    require(current_trace(), opposite(negative), "ValueError", "isqrt() argument must be nonnegative")
    root: Any = to_int(elementwise(OPS["minimum"], elementwise(OPS["sqrt"], number), _LARGEST_ROOT))
    return root - to_int(root * root > to_int(number))


@instead_of(math.frexp, 1)
def frexp(x: Any) -> Any:
    mantissa, exponent = np.frexp(to_float(x))
    return to_float(mantissa), to_int(exponent)


@instead_of(math.modf, 1)
def modf(x: Any) -> Any:
    return tuple(map(to_float, np.modf(to_float(x))))


@instead_of(math.ldexp, 2)
def ldexp(x: Any, i: Any) -> Any:
    number, result = as_array(to_float(x)), np.ldexp(to_float(x), to_int(_integer(i, "ldexp")))
    small = either(_any("isfinite", (_number(result),)), opposite(_any("isfinite", (number.load(()),))))
    require(number.record, small, "OverflowError", "math range error")
    return to_float(result)


def _integer(value: Any, name: str) -> SymbolicArray:
    number = as_array(value)
    if not number.element_type.is_integer and number.element_type is not BOOL:
        kind = "float" if number.weak is float else number.dtype.name
        raise DTypeError(
            f"'{kind}' object cannot be interpreted as an integer",
            fix=f"convert it with int(...) before math.{name}",
        )
    return cast(number, I64)


def _by_steps(steps: Callable[[Any], tuple[Any, Any, Any]], x: Any) -> Any:
    """What steps tell: the result, whether it is defined, and whether it is not too large."""
    trace = current_trace()
    result, is_defined, is_small = steps(SymbolicArray(to_float(x).cells, trace, is_scalar=True))
    require(trace, is_defined.load(()), "ValueError", "math domain error")
    require(trace, is_small.load(()), "OverflowError", "math range error")
    return SymbolicArray(result.cells, trace, weak=float)


def _rounded(name: str, x: Any) -> Any:
    number = scalar(x)
    assert number is not None
    if not number.element_type.is_float:
        return to_int(number)
    values = (_number(number),)
    view = number.record.compute((), F64, lambda _: Apply(OPS[name], values, F64))
    return to_int(SymbolicArray(view, number.record, weak=float))


instead_of(math.gamma, 1)(partial(_by_steps, gamma))
instead_of(math.lgamma, 1)(partial(_by_steps, log_gamma))
for _name in ("ceil", "floor", "trunc"):
    instead_of(getattr(math, _name), 1)(partial(_rounded, _name))
